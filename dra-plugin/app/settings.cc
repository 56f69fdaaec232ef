#include "dra-plugin/app/settings.h"

#include <optional>

#include "lib/base/status.h"
#include "lib/kube/name.h"
#include "lib/wire/socket.h"

namespace tahoma::dra {

config::Spec DeclareSettings(Settings& settings) {
  config::Spec spec({.program = "dra-plugin",
                     .kind = "DraPluginConfig",
                     .summary = "Publishes a node's Neuron devices and prepares claims on them."});
  spec.String("nodeName", &settings.node_name, "the Kubernetes node, also the pool's name; needed");
  spec.String("kubeconfig", &settings.kubeconfig, "how to reach the API server; empty: in a pod");
  spec.String("nodeSocket", &settings.node_socket,
              "where sim-node listens: a path or host:port; needed");
  spec.String("pluginDir", &settings.plugin_dir, "the kubelet's folder for plugins' sockets");
  spec.String("registryDir", &settings.registry_dir, "the kubelet's folder for registrations");
  spec.String("cdiDir", &settings.cdi_dir, "the runtime's folder for dynamic CDI files");
  spec.Strings("publish", &settings.publish,
               "which devices the node shows: whole chips, their logical NeuronCores of one or two "
               "cores, and the whole node where it is in an UltraServer; a change of the file is "
               "followed without a restart",
               {"chips", "lnc1", "lnc2", "node"});
  spec.Bool("managedTaint", &settings.managed_taint,
            "give the devices the taint tahoma.dev/managed, which keeps kube-scheduler from them; "
            "false where kube-scheduler gives them away and Tahoma's controller does not");
  spec.Bool("efa", &settings.efa,
            "also be the driver of the node's EFA interfaces, dra.net, as AWS's chart aws-dranet "
            "is; false where that driver runs");
  spec.Map(
      "faultEffects", &settings.fault_effects,
      "what the taint of a fault does, NoExecute or NoSchedule, by its reason: sram-uncorrectable, "
      "nc-uncorrectable, hbm-uncorrectable, dma, dead, unknown, node-lost (NoExecute unless it is "
      "said here), link-down (no taint unless it is said here), efa-down (NoSchedule unless it is "
      "said here)");
  spec.Duration("flapHold", &settings.flap_hold, {.min = {}, .max = std::chrono::minutes(5)},
                "how long a chip or link that fails again within 10 minutes stays marked after its "
                "repair; it doubles with each time, up to 5 minutes");
  spec.Bool("labelNode", &settings.label_node,
            "keep the Node's labels of instance type, network and UltraServer; for nodes with a "
            "kubelet that no cloud controller and no device plugin labels");
  spec.String("podUid", &settings.pod_uid, "of this pod, for rolling updates; empty: none");
  spec.String("metricsAddress", &settings.metrics_address,
              "where GET /metrics, /livez and /readyz are answered, to everybody; empty: nowhere");
  spec.Duration("nodeLostAfter", &settings.node_lost_after,
                {.min = std::chrono::milliseconds(100), .max = std::chrono::hours(1)},
                "how long sim-node may be away before its devices become unhealthy");
  spec.Duration("resyncPeriod", &settings.resync_period,
                {.min = std::chrono::seconds(1), .max = std::chrono::hours(24)},
                "how often the published ResourceSlices are checked, and at every second time the "
                "prepared claims");
  config::DeclareLog(spec, &settings.log);
  return spec;
}

absl::Status CheckSettings(const Settings& settings) {
  if (settings.node_name.empty()) return InvalidArgument("nodeName is empty; name the node");
  if (const auto wrong = kube::WrongDns1123Subdomain(settings.node_name)) {
    return InvalidArgument("nodeName is no name of a node: {}", *wrong);
  }
  if (settings.node_socket.empty()) {
    return InvalidArgument("nodeSocket is empty; say where sim-node listens");
  }
  return Annotate(wire::ParseAddress(settings.node_socket).status(), "nodeSocket");
}

absl::StatusOr<PoolOptions> PoolOptionsOf(const Settings& settings) {
  PoolOptions options;
  TAHOMA_ASSIGN_OR_RETURN(options.publish, ParsePublish(settings.publish));
  TAHOMA_ASSIGN_OR_RETURN(options.fault_effects, ParseFaultEffects(settings.fault_effects));
  options.managed_taint = settings.managed_taint;
  return options;
}

}  // namespace tahoma::dra
