#include "sim-node/app/sim_node.h"

#include <openssl/rand.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <utility>

#include "lib/base/check.h"
#include "lib/base/files.h"
#include "lib/base/json.h"
#include "lib/base/rng.h"
#include "lib/base/status.h"
#include "lib/hw/ec2_type.h"
#include "lib/kube/kubeconfig.h"
#include "lib/kube/reflector.h"
#include "lib/rest/bearer.h"
#include "lib/rest/process_metrics.h"
#include "lib/wire/server.h"
#include "sim-node/app/running_fleet.h"
#include "sim-node/podrunner/plugin_registry.h"
#include "sim-node/podrunner/pod_runner.h"
#include "sim-node/podrunner/pod_users.h"
#include "sim-node/podrunner/serving_certificate.h"
#include "sim-node/podrunner/usage.h"
#include "sim-node/serve/admin.h"
#include "sim-node/serve/driver_files.h"
#include "sim-node/serve/link_counters.h"
#include "sim-node/serve/node_communicators.h"
#include "sim-node/serve/node_server.h"
#include "sim-node/serve/socket_folders.h"

namespace tahoma::sim {
namespace {

// Tokens guard claims against other pods, so the operating system's generator makes each token.
std::array<std::uint64_t, 2> SecureToken() {
  std::array<std::uint64_t, 2> bits{};
  void* raw = bits.data();
  TAHOMA_CHECK(RAND_bytes(static_cast<unsigned char*>(raw), sizeof bits) == 1);
  return bits;
}

// Bounds of a node's HTTP servers: the heads of a few programs' requests, faults of a few fields,
// and requests for logs, which have no body.
constexpr std::size_t kHeaderBytes = std::size_t{16} << 10U;
constexpr std::size_t kFaultBytes = std::size_t{64} << 10U;
constexpr std::size_t kLogBodyBytes = std::size_t{1} << 10U;
// All waiting requests and answers of a server: each of the log server's 512 connections may hold a
// part of a log that its reader has not taken.
constexpr std::size_t kBufferedBytes = std::size_t{64} << 20U;

void Log(std::string_view line) { spdlog::info("{}", line); }
void Warn(std::string_view line) { spdlog::warn("{}", line); }

absl::StatusOr<std::string> ReadToken(const std::string& key, const std::string& file) {
  if (file.empty()) return std::string();
  absl::StatusOr<std::string> token = ReadTokenFile(file, Warn);
  if (!token.ok()) return Annotate(token.status(), key);
  return token;
}

std::string UnixAddress(const std::string& path) { return "unix:" + path; }

class RunningNode final : public SimNode {
 public:
  explicit RunningNode(const Options& options) : options_(options) {}
  ~RunningNode() override { Stop(); }

  absl::Status Begin() {
    TAHOMA_RETURN_IF_ERROR(BeginNode());
    TAHOMA_RETURN_IF_ERROR(BeginAdmin());
    if (options_.pod_runner.enabled) {
      TAHOMA_RETURN_IF_ERROR(Annotate(BeginPods(), "pod runner"));
    }
    return WritePorts();
  }

  void Stop() override {
    if (NodeElection* election = communicators_ ? communicators_->election() : nullptr) {
      election->Follow(nullptr);
    }
    if (runner_) runner_->Stop();
    if (transport_) {
      sleeper_.Interrupt();
      transport_->Shutdown();
    }
    pods_.reset();
    log_server_.reset();
    runner_.reset();
    registry_.reset();
    admin_.reset();
    if (live_) live_->Close();
    if (communicators_) communicators_->Close();  // the workload socket waits for its calls
    workload_socket_.reset();
    node_socket_.reset();
    communicators_.reset();
  }

 private:
  absl::Status BeginNode();
  absl::Status BeginSockets();
  void BeginDriverFolder();
  std::string DriverFolderPath() const;
  rest::ServerOptions BoundedServer(const std::string& address, rest::TlsOptions tls) const;
  absl::Status BeginAdmin();
  absl::Status BeginPods();
  absl::StatusOr<std::shared_ptr<PodUsers>> OpenPodUsers() const;
  absl::Status BeginLogs();
  absl::Status WritePorts() const;
  NodeFacts Facts() const;
  void FollowPods();

  const Options options_;
  SystemClock clock_;
  std::unique_ptr<LiveInstance> live_;
  std::unique_ptr<NodeServer> node_;
  rest::Metrics metrics_;
  std::unique_ptr<LinkCounters> links_;
  std::unique_ptr<NodeCommunicators> communicators_;
  std::unique_ptr<DriverFolder> driver_folder_;
  std::unique_ptr<wire::Server> node_socket_;
  std::unique_ptr<wire::Server> workload_socket_;
  rest::Metrics log_metrics_;
  std::unique_ptr<rest::Server> admin_;
  kube::InterruptibleSleeper sleeper_;
  std::unique_ptr<kube::HttpTransport> transport_;
  std::unique_ptr<kube::Client> api_;
  std::unique_ptr<kube::Client> api_once_;
  std::unique_ptr<PluginRegistry> registry_;
  std::unique_ptr<rest::Server> log_server_;
  std::unique_ptr<PodRunner> runner_;
  std::unique_ptr<kube::Reflector> pods_;
};

absl::Status RunningNode::BeginNode() {
  Instance::Options node{.type = hw::FindInstanceType(options_.instance_type),
                         .name = options_.node_name,
                         .network_layers = options_.network_layers,
                         .capacity_block_id = options_.capacity_block_id};
  if (!options_.ultra_server.id.empty()) {
    node.ultra_server =
        UltraServerPlace{.id = options_.ultra_server.id, .node_id = options_.ultra_server.node_id};
  }
  TAHOMA_ASSIGN_OR_RETURN(Instance instance, Instance::Create(std::move(node), SecureToken));
  live_ = std::make_unique<LiveInstance>(std::move(instance));
  node_ = std::make_unique<NodeServer>(
      *live_, NodeServer::Options{.driver_version = options_.driver_version,
                                  .workload_socket = UnixAddress(options_.workload_socket)});
  TAHOMA_ASSIGN_OR_RETURN(communicators_, NodeCommunicators::Start(CommunicatorOptionsOf(options_),
                                                                   *live_, *node_, clock_));
  links_ = std::make_unique<LinkCounters>(metrics_, *live_);
  communicators_->communicators().Observe(
      [this](const Communicators::Traffic& traffic) { links_->Add(traffic); });
  live_->Listen([this] { links_->ShowStates(); });
  metrics_.AddGaugeCallback(
      "tahoma_node_memory_resident_bytes",
      "Kept on the host of what claims wrote into their chips' memory.",
      [this] { return static_cast<double>(communicators_->memory().resident_bytes()); });
  communicators_->cores().Show(metrics_);
  if (options_.pod_runner.enabled) BeginDriverFolder();
  rest::AddProcessMetrics(metrics_, "sim-node");
  return BeginSockets();
}

std::string RunningNode::DriverFolderPath() const {
  return std::filesystem::path(options_.pod_runner.pods_dir) / "sysfs";
}

void RunningNode::BeginDriverFolder() {
  driver_folder_ =
      std::make_unique<DriverFolder>(DriverFolderPath(), *live_, communicators_->cores(), Warn);
  live_->Listen([this] { driver_folder_->ShowAll(); });
  communicators_->cores().Listen(
      [this](torus::ChipIndex chip) { driver_folder_->ShowChip(chip.value()); });
  driver_folder_->ShowAll();
}

absl::Status RunningNode::BeginSockets() {
  const std::string& node_path = options_.node_socket;
  TAHOMA_RETURN_IF_ERROR(Annotate(MakePrivateFolder(node_path), "nodeSocket"));
  auto plugin = wire::Server::Start(
      UnixAddress(node_path), {.own_user_only = true},
      [this](const wire::Request& request) { return node_->ServePlugin(request); });
  if (!plugin.ok()) return Annotate(plugin.status(), "nodeSocket");
  node_socket_ = *std::move(plugin);
  const std::string& workload_path = options_.workload_socket;
  TAHOMA_RETURN_IF_ERROR(Annotate(MakeWorkloadFolder(workload_path), "workloadSocket"));
  auto workloads = wire::Server::Start(
      UnixAddress(workload_path), node_->WorkloadOptions(),
      [this](const wire::Request& request) { return node_->ServeWorkload(request); });
  if (!workloads.ok()) return Annotate(workloads.status(), "workloadSocket");
  workload_socket_ = *std::move(workloads);
  // Containers have users of their own; a token decides the rights of a container here.
  if (chmod(workload_path.c_str(), 0666) != 0) {
    return Unavailable("workloadSocket {} cannot be opened to containers", workload_path);
  }
  return absl::OkStatus();
}

// Returns the common options of both HTTP servers; the caller sets bodies and threads.
rest::ServerOptions RunningNode::BoundedServer(const std::string& address,
                                               rest::TlsOptions tls) const {
  return {.address = address,
          .tls = std::move(tls),
          .max_header_bytes = kHeaderBytes,
          .max_buffered_bytes = kBufferedBytes,
          .max_buffered_bytes_per_client = kBufferedBytes,
          .allowed_hosts = options_.allowed_hosts,
          .log = Warn};
}

absl::Status RunningNode::BeginAdmin() {
  TAHOMA_ASSIGN_OR_RETURN(const std::string token,
                          ReadToken("adminTokenFile", options_.admin_token_file));
  rest::TlsOptions tls{.cert_file = options_.admin_tls_cert_file,
                       .key_file = options_.admin_tls_key_file};
  rest::ServerOptions server = BoundedServer(options_.admin_address, std::move(tls));
  server.max_body_bytes = kFaultBytes;
  server.max_threads = 16;
  server.reserved_threads = 4;
  server.max_connections = 64;
  admin_ = std::make_unique<rest::Server>(std::move(server), metrics_);
  if (!token.empty()) admin_->SetGate(rest::TokenGate(token));
  InstallAdminRoutes(*admin_, metrics_, *live_, communicators_->election());
  InstallLinkRoutes(*admin_, *links_);
  TAHOMA_RETURN_IF_ERROR(Annotate(admin_->Start(), "adminAddress"));
  spdlog::info("serving the admin API at {}", admin_->url());
  return absl::OkStatus();
}

NodeFacts RunningNode::Facts() const {
  const hw::InstanceType* type = hw::FindInstanceType(options_.instance_type);
  const auto election = live_->Read([](const Instance& instance) {
    return instance.election() ? std::optional(ElectionOf(*instance.election())) : std::nullopt;
  });
  return {.name = options_.node_name,
          .instance_type = options_.instance_type,
          .vcpus = type->vcpus,
          .memory_bytes = type->memory_bytes,
          .efa_interfaces = hw::EfaInterfaces(type->name),
          .ultra_server_id = options_.ultra_server.id,
          .ultra_server_node = options_.ultra_server.node_id,
          .election = election,
          .network_layers = options_.network_layers,
          .capacity_block_id = options_.capacity_block_id,
          .log_port = log_server_->port(),
          .ready_since = clock_.WallNow()};
}

// The Node's registration needs the port, and the pod runner starts after the registration. So the
// log server starts first, over a folder shared with the pod runner.
absl::Status RunningNode::BeginLogs() {
  rest::TlsOptions tls;
  if (options_.pod_runner.log_tls) {
    TAHOMA_ASSIGN_OR_RETURN(
        const ServingCertificate certificate,
        MakeServingCertificate(options_.state_dir, options_.node_name, clock_.WallNow()));
    tls = {.cert_file = certificate.cert_file,
           .key_file = certificate.key_file,
           .client_ca_file = options_.pod_runner.log_client_ca_file,
           .require_client_certificate = !options_.pod_runner.log_client_ca_file.empty()};
  }
  TAHOMA_ASSIGN_OR_RETURN(const std::string token,
                          ReadToken("podRunner.logTokenFile", options_.pod_runner.log_token_file));
  rest::ServerOptions server = BoundedServer(options_.pod_runner.log_address, std::move(tls));
  server.max_body_bytes = kLogBodyBytes;
  server.max_threads = 256;
  server.reserved_threads = 8;
  server.max_connections = 512;
  log_server_ = std::make_unique<rest::Server>(std::move(server), log_metrics_);
  if (!token.empty()) log_server_->SetGate(rest::TokenGate(token));
  return absl::OkStatus();
}

// Null when pods run as our own user.
absl::StatusOr<std::shared_ptr<PodUsers>> RunningNode::OpenPodUsers() const {
  const Options::Runner& runner = options_.pod_runner;
  if (runner.pod_user == "same") {
    spdlog::warn(
        "pods run as user {}, as sim-node does: they can do what it can, also to each other",
        geteuid());
    return std::shared_ptr<PodUsers>();
  }
  TAHOMA_ASSIGN_OR_RETURN(std::shared_ptr<PodUsers> users,
                          PodUsers::Open({.first = runner.first_user, .count = runner.users}));
  spdlog::info("pods run as users {} to {}", users->first(), users->last());
  const std::filesystem::path pods = std::filesystem::path(runner.pods_dir) / "pods";
  std::error_code error;
  std::filesystem::create_directories(pods, error);
  using enum std::filesystem::perms;
  for (const std::filesystem::path& folder : {pods.parent_path(), pods}) {
    std::filesystem::permissions(folder, group_exec | others_exec,
                                 std::filesystem::perm_options::add, error);
  }
  const std::filesystem::path workload =
      std::filesystem::path(options_.workload_socket).parent_path();
  for (const auto& [key, path] :
       {std::pair("podRunner.podsDir", &pods), std::pair("workloadSocket", &workload)}) {
    const std::filesystem::path closed = ClosedTo(users->first(), *path);
    if (closed.empty()) continue;
    return FailedPrecondition(
        "{}: pods have users of their own, which cannot enter {}: put it elsewhere, or open that "
        "folder (chmod o+x)",
        key, closed.string());
  }
  return users;
}

absl::Status RunningNode::BeginPods() {
  std::error_code error;
  std::filesystem::create_directories(options_.state_dir, error);
  if (error) return Unavailable("stateDir {}: {}", options_.state_dir, error.message());
  TAHOMA_ASSIGN_OR_RETURN(kube::ServerAccess access,
                          kube::LoadKubeconfig(options_.pod_runner.kubeconfig));
  TAHOMA_ASSIGN_OR_RETURN(transport_, kube::HttpTransport::Create(std::move(access), {}, Warn));
  api_ = std::make_unique<kube::Client>(*transport_, sleeper_, Rng(SeedFromMachine()));
  api_once_ = std::make_unique<kube::Client>(*transport_, sleeper_, Rng(SeedFromMachine()),
                                             kube::RetryOptions{.attempts = 1});
  TAHOMA_ASSIGN_OR_RETURN(registry_, PluginRegistry::Watch(options_.pod_runner.registry_dir, Log));
  TAHOMA_RETURN_IF_ERROR(BeginLogs());
  auto logs = std::make_shared<LogFolder>(options_.pod_runner.pods_dir);
  InstallLogRoutes(*log_server_, *logs, clock_);
  InstallUsageRoute(*log_server_, logs, clock_);
  auto sessions = std::make_shared<PodSessions>(logs);
  InstallSessionRoutes(*log_server_, sessions);
  TAHOMA_RETURN_IF_ERROR(Annotate(log_server_->Start(), "podRunner.logAddress"));
  spdlog::info("serving the logs of pods at {}", log_server_->url());
  TAHOMA_ASSIGN_OR_RETURN(const std::shared_ptr<PodUsers> users, OpenPodUsers());
  PodRunner::Options options{
      .node = Facts(),
      .images = options_.pod_runner.images,
      .cdi_dir = options_.pod_runner.cdi_dir,
      .state_dir = options_.state_dir,
      .tools_dir = std::filesystem::path(options_.pod_runner.pods_dir) / "tools",
      .driver_files = DriverFolderPath(),
      .users = users,
      .processes_most = options_.pod_runner.processes_most,
      .shutdown_grace =
          std::chrono::duration_cast<std::chrono::seconds>(options_.pod_runner.shutdown_grace)};
  runner_ = std::make_unique<PodRunner>(
      std::move(options),
      PodRunner::Ports{.api = *api_,
                       .api_once = *api_once_,
                       .plugins = [this](const auto& driver) { return registry_->Find(driver); },
                       .clock = clock_,
                       .logs = std::move(logs),
                       .sessions = std::move(sessions),
                       .seed = SeedFromMachine(),
                       .log = Log});
  TAHOMA_RETURN_IF_ERROR(runner_->Start());
  if (NodeElection* election = communicators_->election()) {
    election->Follow(
        [this](const ElectionResult& result) { runner_->OnElection(ElectionOf(result)); });
  }
  FollowPods();
  return absl::OkStatus();
}

void RunningNode::FollowPods() {
  pods_ = std::make_unique<kube::Reflector>(
      *transport_, sleeper_, Rng(SeedFromMachine()),
      kube::ReflectorOptions{.resource = kube::kPods,
                             .field_selector = "spec.nodeName=" + options_.node_name},
      kube::WatchHandlers{
          .seen =
              [this](const Json& pod) {
                runner_->OnPod(pod);
                return absl::OkStatus();
              },
          .gone = [this](const kube::ObjectKey&,
                         const std::string& uid) { runner_->OnPodGone(uid); },
          .listed = [this] { runner_->OnPodsSynced(); },
          .unreadable =
              [](const kube::ObjectKey& key, const absl::Status& why) {
                Warn(fmt::format("pod {} is left out: {}", key.ToString(), Message(why)));
              },
          .failed = [](const absl::Status& why) { Warn(fmt::format("watch: {}", Message(why))); }});
  pods_->Start();
}

absl::Status RunningNode::WritePorts() const {
  if (options_.port_file.empty()) return absl::OkStatus();
  std::string text = fmt::format("adminAddress: \"{}\"\n", admin_->address());
  if (log_server_) text += fmt::format("logAddress: \"{}\"\n", log_server_->address());
  return Annotate(WriteAtomically(options_.port_file, text, 0600), "portFile");
}

}  // namespace

absl::StatusOr<std::unique_ptr<SimNode>> SimNode::Start(const Options& options) {
  if (options.fleet > 0) return StartFleet(options);
  auto program = std::make_unique<RunningNode>(options);
  TAHOMA_RETURN_IF_ERROR(program->Begin());
  spdlog::info("node {} ({}) is up", options.node_name, options.instance_type);
  return program;
}

}  // namespace tahoma::sim
