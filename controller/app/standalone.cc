#include "controller/app/standalone.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "controller/apiserver/verbs/node_fetch.h"
#include "controller/apiserver/verbs/node_tunnel.h"
#include "controller/apiserver/webhooks/http_call.h"
#include "controller/app/account_key.h"
#include "controller/model/admin_address.h"
#include "controller/run/test_clock.h"
#include "lib/base/files.h"
#include "lib/base/json.h"
#include "lib/base/rng.h"
#include "lib/base/status.h"

namespace tahoma::controller {
namespace {

using json = Json;

constexpr int kControllerThreads = 8;  // waiting for the disk's shared syncs
// The classes of charts/tahoma/files/deviceclasses.yaml. docs/design/0001-seams.md: AWS's class
// selects chips and whole nodes, ours partitions.
constexpr std::string_view kChipSelector =
    "device.driver == \"neuron.aws.com\" && "
    "device.attributes[\"neuron.aws.com\"].resourceType in [\"neuron_device\", \"neuron_node\"]";
constexpr std::string_view kCoreSelector =
    "device.driver == \"neuron.aws.com\" && "
    "device.attributes[\"neuron.aws.com\"].resourceType == \"neuron_core\"";
constexpr std::string_view kNeuronSelector =
    "device.driver == \"neuron.aws.com\" && "
    "device.attributes[\"neuron.aws.com\"].resourceType == \"neuron_device\"";
// As AWS's chart aws-dranet has it.
constexpr std::string_view kEfaSelector =
    "device.driver == \"dra.net\" && "
    "device.attributes[\"dra.net\"].pciDevice == \"Elastic Fabric Adapter (EFA)\"";

struct CrdFile {
  std::string path;
  std::string text = {};
};

// Kinds of AWS's operators that the controller carries out. They are in a folder beside crdDir,
// because Helm installs all of a chart's folder crds, and AWS's chart may bring these kinds.
constexpr const char* kAwsCrds = "aws-crds";

absl::StatusOr<std::vector<CrdFile>> ReadCrds(const std::string& folder) {
  std::error_code error;
  std::vector<CrdFile> files;
  const auto beside = std::filesystem::absolute(folder).lexically_normal() / ".." / kAwsCrds;
  for (const auto& entry : std::filesystem::directory_iterator(beside, error)) {
    if (entry.path().extension() == ".yaml") files.push_back({.path = entry.path().string()});
  }
  error.clear();  // a folder of other definitions has no such folder beside
  const std::size_t of_aws = files.size();
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (entry.path().extension() == ".yaml") files.push_back({.path = entry.path().string()});
  }
  if (error) return NotFound("crdDir {}: {}", folder, error.message());
  if (files.size() == of_aws) return NotFound("crdDir {} has no .yaml file", folder);
  std::sort(files.begin(), files.end(),
            [](const CrdFile& a, const CrdFile& b) { return a.path < b.path; });
  for (CrdFile& file : files) {
    TAHOMA_ASSIGN_OR_RETURN(file.text, ReadFile(file.path));
  }
  return files;
}

// Makes the folder of the volumes that are made for claims, and returns its absolute path. Other
// users of the machine cannot enter the folder: a volume is everybody's who has it mounted.
absl::StatusOr<std::string> MakeVolumeFolder(const std::string& data_dir) {
  std::error_code error;
  const auto folder = std::filesystem::absolute(data_dir).lexically_normal() / "volumes";
  std::filesystem::create_directories(folder, error);
  if (!error) {
    std::filesystem::permissions(folder, std::filesystem::perms::owner_all, error);
  }
  if (error) return Unavailable("dataDir: folder {}: {}", folder.string(), error.message());
  return folder.string();
}

absl::Status RemoveFolder(const std::string& folder) {
  std::error_code error;
  std::filesystem::remove_all(folder, error);
  if (!error) return absl::OkStatus();
  return Unavailable("folder {} cannot be removed: {}", folder, error.message());
}

}  // namespace

absl::StatusOr<std::unique_ptr<StandaloneApi>> StandaloneApi::Open(
    const Options& options, apiserver::HttpFrontOptions front, const Clock& clock,
    rest::Metrics& metrics, const LogLine& log, const Evicted& evicted) {
  front.address = options.listen_address;
  front.tls = {.cert_file = options.tls_cert_file,
               .key_file = options.tls_key_file,
               .client_ca_file = options.client_ca_file};
  front.allowed_hosts = options.allowed_hosts;
  front.seed = SeedFromMachine();
  TAHOMA_RETURN_IF_ERROR(Annotate(apiserver::HttpFront::Check(front), "listenAddress"));
  TAHOMA_ASSIGN_OR_RETURN(const std::vector<CrdFile> crds, ReadCrds(options.crd_dir));
  std::unique_ptr<StandaloneApi> api(new StandaloneApi());
  TAHOMA_ASSIGN_OR_RETURN(api->store_,
                          Store::Open({.dir = options.data_dir,
                                       .only_copy = true,
                                       .first = TestClockEntry(options.time_scale, clock.WallNow()),
                                       .log = log}));
  TAHOMA_ASSIGN_OR_RETURN(api->block_time_, BlockTimeOf(*api->store_, options.data_dir,
                                                        options.time_scale, clock.WallNow()));
  if (api->store_->unmarked()) {
    TAHOMA_RETURN_IF_ERROR(apiserver::ObjectStore::RaiseVersion(*api->store_));
  }
  api->journal_ = std::make_unique<RocksJournal>(*api->store_);
  apiserver::ApiServer::Options server_options;
  server_options.seed = SeedFromMachine();
  server_options.node_fetch = apiserver::HttpNodeFetch(options.node_token_file);
  server_options.node_tunnel = apiserver::HttpNodeTunnel(options.node_token_file);
  server_options.webhook_call = apiserver::HttpWebhookCall();
  TAHOMA_ASSIGN_OR_RETURN(server_options.account_tokens, AccountTokensOf(*api->store_));
  server_options.log = log;
  server_options.objects.log_bytes_max = options.watch_history_bytes;
  TAHOMA_ASSIGN_OR_RETURN(
      api->server_, apiserver::ApiServer::Open(*api->store_, clock, std::move(server_options)));
  api->transport_ =
      std::make_unique<apiserver::InProcessTransport>(*api->server_, clock, "tahoma-controller");
  api->front_ = std::make_unique<apiserver::HttpFront>(*api->server_, front, metrics);
  TAHOMA_RETURN_IF_ERROR(Annotate(api->front_->Start(), "listenAddress"));
  for (const CrdFile& crd : crds) {
    TAHOMA_RETURN_IF_ERROR(Annotate(api->server_->InstallCrd(crd.text), crd.path));
  }
  TAHOMA_RETURN_IF_ERROR(api->InstallDeviceClasses());
  TAHOMA_ASSIGN_OR_RETURN(api->volume_folder_, MakeVolumeFolder(options.data_dir));
  TAHOMA_RETURN_IF_ERROR(api->InstallStorageClass());
  api->controllers_transport_ =
      std::make_unique<apiserver::InProcessTransport>(*api->server_, clock, "tahoma-controllers");
  api->controllers_ = std::make_unique<apiserver::Controllers>(
      [server = api->server_.get()] { return server->Kinds(); }, api->server_->objects(),
      *api->controllers_transport_,
      apiserver::ControllerOptions{.protect_claims = true,
                                   .scheduler_names = SchedulerNames(options),
                                   .volume_folder = api->volume_folder_,
                                   .remove_folder = RemoveFolder,
                                   .log = log,
                                   .evicted = evicted});
  api->controller_threads_ = std::make_unique<apiserver::ControllerThreads>(
      *api->controllers_, api->server_->objects(), clock, kControllerThreads);
  return api;
}

StandaloneApi::~StandaloneApi() {
  EndStreams();
  controller_threads_.reset();
  if (front_ != nullptr) front_->Stop();
}

void StandaloneApi::EndStreams() {
  if (transport_ != nullptr) transport_->Close();
  if (server_ != nullptr) server_->StopWatches();
}

absl::Status StandaloneApi::InstallDeviceClasses() {
  TAHOMA_RETURN_IF_ERROR(InstallDeviceClass("neuron.aws.com", std::string(kChipSelector)));
  TAHOMA_RETURN_IF_ERROR(InstallDeviceClass("efa.networking.k8s.aws", std::string(kEfaSelector)));
  TAHOMA_RETURN_IF_ERROR(InstallDeviceClass("neuroncore.tahoma.dev", std::string(kCoreSelector)));
  TAHOMA_RETURN_IF_ERROR(InstallDeviceClass("neuron.tahoma.dev", std::string(kNeuronSelector),
                                            "aws.amazon.com/neuron"));
  return InstallDeviceClass(
      "neuroncore-lnc2.tahoma.dev",
      fmt::format("{} && device.attributes[\"tahoma.dev\"].lnc == 2", kCoreSelector),
      "aws.amazon.com/neuroncore");
}

absl::Status StandaloneApi::InstallDeviceClass(const std::string& name,
                                               const std::string& expression,
                                               const std::string& resource) {
  json object = {
      {"apiVersion", "resource.k8s.io/v1"},
      {"kind", "DeviceClass"},
      {"metadata", {{"name", name}}},
      {"spec", {{"selectors", json::array({json{{"cel", {{"expression", expression}}}}})}}}};
  if (!resource.empty()) object["spec"]["extendedResourceName"] = resource;
  return Install({"resource.k8s.io", "deviceclasses"}, object);
}

// The class of claims that name none, as in the clusters that people try things in.
absl::Status StandaloneApi::InstallStorageClass() {
  return Install({"storage.k8s.io", "storageclasses"},
                 {{"apiVersion", "storage.k8s.io/v1"},
                  {"kind", "StorageClass"},
                  {"metadata",
                   {{"name", "standard"},
                    {"annotations", {{"storageclass.kubernetes.io/is-default-class", "true"}}}}},
                  {"provisioner", apiserver::kHostPathProvisioner},
                  {"reclaimPolicy", "Delete"},
                  {"volumeBindingMode", "Immediate"}});
}

absl::Status StandaloneApi::Install(const apiserver::ResourceName& resource, const json& object) {
  const std::string name = object["metadata"]["name"];
  // Webhooks that cannot be asked shall not keep the controller from starting again.
  if (server_->objects().Get(resource, apiserver::ObjectKey("", name)) != nullptr) {
    return absl::OkStatus();
  }
  TAHOMA_ASSIGN_OR_RETURN(
      const kube::Response answer,
      transport_->Send({.method = "POST",
                        .target = fmt::format("/apis/{}/v1/{}", resource.group, resource.plural),
                        .headers = {{"Content-Type", "application/json"}},
                        .body = object.dump()}));
  if (answer.status == 201 || answer.status == 409) return absl::OkStatus();
  return Internal("{} {} cannot be created: {} {}", object["kind"].get<std::string>(), name,
                  answer.status, answer.body);
}

std::string KubeconfigText(const KubeconfigParts& parts) {
  // JSON is YAML.
  json cluster = {{"server", parts.url}};
  if (!parts.ca_file.empty()) {
    cluster["certificate-authority"] = std::filesystem::absolute(parts.ca_file).string();
  }
  if (!parts.admin_url.empty()) {
    cluster["extensions"] = json::array({json{
        {"name", kAdminExtension}, {"extension", {{kAdminExtensionServer, parts.admin_url}}}}});
  }
  json user = json::object();
  if (!parts.token_file.empty()) {
    user["tokenFile"] = std::filesystem::absolute(parts.token_file).string();
  }
  if (!parts.token.empty()) user["token"] = parts.token;
  const json config = {
      {"apiVersion", "v1"},
      {"kind", "Config"},
      {"clusters", json::array({json{{"name", "tahoma"}, {"cluster", std::move(cluster)}}})},
      {"users", json::array({json{{"name", "tahoma"}, {"user", std::move(user)}}})},
      {"contexts", json::array({json{{"name", "tahoma"},
                                     {"context", {{"cluster", "tahoma"}, {"user", "tahoma"}}}}})},
      {"current-context", "tahoma"}};
  return config.dump(2) + "\n";
}

}  // namespace tahoma::controller
