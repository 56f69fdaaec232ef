#include "controller/app/options.h"

#include <algorithm>

#include "controller/reserve/block_time.h"
#include "lib/base/status.h"
#include "lib/kube/name.h"
#include "lib/rest/site_check.h"

namespace tahoma::controller {
namespace {

absl::Status CheckSchedulerNames(const std::vector<std::string>& names) {
  for (auto name = names.begin(); name != names.end(); ++name) {
    if (const auto wrong = kube::WrongDns1123Subdomain(*name)) {
      return InvalidArgument("schedulerNames: \"{}\" is not the name of a scheduler: {}", *name,
                             *wrong);
    }
    if (std::find(names.begin(), name, *name) != name) {
      return InvalidArgument("schedulerNames: \"{}\" is named twice", *name);
    }
  }
  return absl::OkStatus();
}

}  // namespace

config::Spec DeclareOptions(Options& options) {
  config::Spec spec({.program = "controller",
                     .kind = "ControllerConfig",
                     .summary = "Places gangs of pods on Trainium2 capacity."});
  spec.Bool("standalone", &options.standalone,
            "also serve the Kubernetes API, kept in dataDir, instead of using a cluster's");
  spec.String("dataDir", &options.data_dir, "folder of the journal and the standalone API");
  spec.String("listenAddress", &options.listen_address,
              "where the standalone Kubernetes API is served; port 0: any");
  spec.String("adminAddress", &options.admin_address, "where the admin API is served; port 0: any");
  spec.String("kubeconfig", &options.kubeconfig,
              "cluster to use; empty: KUBECONFIG, else the one this program runs in");
  spec.String("podName", &options.pod_name,
              "a cluster's: of this pod, which has the label tahoma.dev/leader while it leads; "
              "empty: none has");
  spec.String("crdDir", &options.crd_dir,
              "CustomResourceDefinitions that the standalone API begins with; those of AWS are in "
              "the folder aws-crds beside");
  spec.String("writeKubeconfig", &options.write_kubeconfig,
              "file that receives a kubeconfig for the standalone API");
  spec.String("portFile", &options.port_file, "file that receives the bound addresses as YAML");
  spec.String("nodeTokenFile", &options.node_token_file,
              "standalone: secret of which the token for each node's logs is derived "
              "(docs/formats/config.md#nodetokenfile)");
  spec.String("tokenFile", &options.token_file,
              "bearer token of \"admin\", who may do everything on both APIs");
  spec.String("identityFile", &options.identity_file,
              "who else may call, and as what (docs/formats/identities.md); read again when it "
              "changes");
  spec.String("accessKeyFile", &options.access_key_file,
              "who may call EC2's API, with requests that he signs (docs/formats/ec2-api.md); "
              "empty: whoever may use the admin API");
  spec.Bool(
      "adminAsksCluster", &options.admin_asks_cluster,
      "a cluster's: its API server says whose other tokens are, and what of the admin API they "
      "may read (docs/formats/config.md)");
  spec.String("auditFile", &options.audit_file,
              "file that receives a line about every change; empty: the log");
  spec.Bool("auditRequired", &options.audit_required,
            "refuse changes while auditFile cannot be written");
  spec.String("tlsCertFile", &options.tls_cert_file, "certificate of both APIs, PEM");
  spec.String("tlsKeyFile", &options.tls_key_file, "its key, PEM");
  spec.String("clientCaFile", &options.client_ca_file,
              "CA of client certificates for both APIs, PEM");
  spec.Strings("allowedHosts", &options.allowed_hosts,
               "hosts by whose names both APIs may be called, and from whose pages, beside their "
               "own (docs/formats/config.md)");
  spec.Int("watchHistoryBytes", &options.watch_history_bytes,
           {.min = 64 << 10, .max = std::int64_t{4} << 30},
           "standalone: memory for the newest changes of each resource, from which watches resume");
  spec.Section("capacityBlocks", "Capacity Blocks (docs/formats/config.md)",
               [&](config::Fields& fields) { DeclareBlockOptions(fields, options.blocks); });
  spec.Int("timeScale", &options.time_scale, {.min = 1, .max = BlockTime::kScaleMost},
           "standalone, for tests: how fast the time of Capacity Blocks passes; 1440: a day in a "
           "minute. Only with a dataDir that was created with it (docs/formats/config.md)");
  spec.Strings("schedulerNames", &options.scheduler_names,
               "pods with one of these in spec.schedulerName are placed; none: tahoma, and "
               "default-scheduler when standalone");
  config::DeclareLog(spec, &options.log);
  return spec;
}

std::vector<std::string> SchedulerNames(const Options& options) {
  if (!options.scheduler_names.empty()) return options.scheduler_names;
  if (!options.standalone) return {"tahoma"};
  return {"tahoma", "default-scheduler"};
}

absl::Status CheckOptions(const Options& options) {
  if (options.data_dir.empty()) return InvalidArgument("dataDir is empty; name a folder");
  if (options.tls_cert_file.empty() != options.tls_key_file.empty()) {
    return InvalidArgument("tlsCertFile and tlsKeyFile must be given together");
  }
  if (!options.client_ca_file.empty() && options.tls_cert_file.empty()) {
    return InvalidArgument("clientCaFile needs tlsCertFile and tlsKeyFile");
  }
  if (options.audit_required && options.audit_file.empty()) {
    return InvalidArgument("auditRequired needs auditFile");
  }
  if (options.standalone && options.listen_address == options.admin_address &&
      !options.listen_address.ends_with(":0")) {
    return InvalidArgument("listenAddress and adminAddress are both {}", options.admin_address);
  }
  if (options.standalone && options.admin_asks_cluster) {
    return InvalidArgument(
        "adminAsksCluster is for a cluster: standalone has an identityFile "
        "(docs/formats/identities.md)");
  }
  if (options.standalone && !options.pod_name.empty()) {
    return InvalidArgument("podName is for a cluster: standalone has no stand-by");
  }
  if (!options.standalone && !options.write_kubeconfig.empty()) {
    return InvalidArgument("writeKubeconfig is for standalone: a cluster has its own kubeconfig");
  }
  if (!options.standalone && options.time_scale != 1) {
    return InvalidArgument(
        "timeScale is for standalone: a stand-by that takes a cluster's blocks over has no store "
        "that says since when they live faster");
  }
  TAHOMA_RETURN_IF_ERROR(Annotate(rest::CheckAllowedHosts(options.allowed_hosts), "allowedHosts"));
  TAHOMA_RETURN_IF_ERROR(BookOptionsOf(options.blocks).status());
  return CheckSchedulerNames(options.scheduler_names);
}

Callers::Files CallerFilesOf(const Options& options) {
  return {.tokens = options.token_file,
          .identities = options.identity_file,
          .access_keys = options.access_key_file,
          .audit = options.audit_file,
          .audit_required = options.audit_required,
          .certificates = !options.client_ca_file.empty()};
}

}  // namespace tahoma::controller
