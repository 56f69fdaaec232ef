// dra-plugin: the node's driver for Dynamic Resource Allocation. See docs/design/0001-seams.md for
// its configuration.

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <ctime>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "dra-plugin/app/settings.h"
#include "dra-plugin/run/plugin.h"
#include "dra-plugin/run/plugin_metrics.h"
#include "lib/base/clock.h"
#include "lib/base/environment.h"
#include "lib/base/files.h"
#include "lib/base/status.h"
#include "lib/config/log.h"
#include "lib/config/parse.h"
#include "lib/kube/http_transport.h"
#include "lib/kube/kubeconfig.h"
#include "lib/rest/metrics.h"
#include "lib/rest/probes.h"
#include "lib/rest/process_metrics.h"
#include "lib/rest/server.h"

namespace tahoma::dra {
namespace {

constexpr timespec kLookAtConfiguration = {.tv_sec = 10, .tv_nsec = 0};
// The kubelet's calls wait for each other, so no call may wait long for an API server.
constexpr kube::HttpLimits kLimits = {.connect_timeout = std::chrono::seconds(5),
                                      .request_timeout = std::chrono::seconds(15)};

absl::StatusOr<PluginOptions> OptionsOf(const Settings& settings) {
  TAHOMA_RETURN_IF_ERROR(CheckSettings(settings));
  PluginOptions options = {.node_name = settings.node_name,
                           .node_socket = settings.node_socket,
                           .plugin_dir = settings.plugin_dir,
                           .registry_dir = settings.registry_dir,
                           .cdi_dir = settings.cdi_dir,
                           .pod_uid = settings.pod_uid};
  TAHOMA_ASSIGN_OR_RETURN(options.pool, PoolOptionsOf(settings));
  options.damping.hold = settings.flap_hold;
  options.label_node = settings.label_node;
  options.efa = settings.efa;
  // Linux's id, also in a container. Elsewhere unknown; then no claim is of an earlier boot.
  if (const auto boot_id = ReadFile("/proc/sys/kernel/random/boot_id"); boot_id.ok()) {
    options.boot_id = boot_id->substr(0, boot_id->find('\n'));
  }
  options.node_lost_after = std::chrono::ceil<std::chrono::milliseconds>(settings.node_lost_after);
  options.resync_period = std::chrono::ceil<std::chrono::milliseconds>(settings.resync_period);
  return options;
}

using ReadSettings = std::function<absl::StatusOr<Settings>()>;

// Follows changes of the published kinds, as a mounted ConfigMap brings.
class PublishFollower {
 public:
  PublishFollower(ReadSettings read, const Settings& now)
      : read_(std::move(read)), publish_(now.publish) {}

  void Look(Plugin& plugin) {
    const absl::StatusOr<Settings> settings = read_();
    const absl::StatusOr<Publish> publish =
        settings.ok() ? ParsePublish(settings->publish) : settings.status();
    std::string problem(Message(publish.status()));
    if (problem != problem_ && !publish.ok()) {
      spdlog::error("what the node shows stays as it is: {}", problem);
    }
    problem_ = std::move(problem);
    if (!publish.ok() || settings->publish == publish_) return;
    publish_ = settings->publish;
    spdlog::info("the node shows {} from now on", fmt::join(publish_, ", "));
    plugin.SetPublish(*publish);
  }

 private:
  const ReadSettings read_;
  std::vector<std::string> publish_;
  std::string problem_;
};

// Serves metrics and probes at the configured address; null without an address.
absl::StatusOr<std::unique_ptr<rest::Server>> ServeMetrics(const Settings& settings,
                                                           rest::Metrics& metrics,
                                                           std::shared_ptr<rest::Probes> probes) {
  if (settings.metrics_address.empty()) return std::unique_ptr<rest::Server>();
  auto server = std::make_unique<rest::Server>(
      rest::ServerOptions{.address = settings.metrics_address,
                          .max_body_bytes = 1 << 10,  // no route takes a body
                          .max_header_bytes = 16 << 10,
                          .max_threads = 4,
                          .reserved_threads = 2,
                          .max_connections = 64,
                          .probes = std::move(probes),
                          .log = [](const std::string& line) { spdlog::warn("{}", line); }},
      metrics);
  TAHOMA_RETURN_IF_ERROR(Annotate(server->Start(), "metricsAddress"));
  spdlog::info("serving metrics and probes on {}", server->address());
  return server;
}

// Runs until SIGTERM or SIGINT. An error when the kubelet refuses the plugin: the pod must start
// again. SIGHUP reads the configuration at once.
absl::Status Run(const Settings& settings, const ReadSettings& read, const sigset_t& signals) {
  TAHOMA_ASSIGN_OR_RETURN(PluginOptions options, OptionsOf(settings));
  TAHOMA_ASSIGN_OR_RETURN(kube::ServerAccess access,
                          kube::FindAccess(settings.kubeconfig, FromEnvironment));
  TAHOMA_ASSIGN_OR_RETURN(
      const std::unique_ptr<kube::HttpTransport> transport,
      kube::HttpTransport::Create(std::move(access), kLimits,
                                  [](const std::string& line) { spdlog::warn("{}", line); }));
  std::atomic<bool> refused = false;
  options.on_refused = [&refused](const std::string&) {
    refused = true;
    kill(getpid(), SIGTERM);
  };
  rest::Metrics metrics;
  rest::AddProcessMetrics(metrics, "dra-plugin");
  const auto probes = std::make_shared<rest::Probes>();
  PluginMetrics counters(metrics, *probes);
  TAHOMA_ASSIGN_OR_RETURN(const std::unique_ptr<rest::Server> server,
                          ServeMetrics(settings, metrics, probes));
  const SystemClock clock;
  TAHOMA_ASSIGN_OR_RETURN(const std::unique_ptr<Plugin> plugin,
                          Plugin::Start(std::move(options), *transport, clock, counters));
  PublishFollower follower(read, settings);
  const auto next = [&] { return sigtimedwait(&signals, nullptr, &kLookAtConfiguration); };
  for (int signal = next(); signal < 0 || signal == SIGHUP; signal = next()) {
    follower.Look(*plugin);
  }
  spdlog::info("ending");
  transport->Shutdown();
  plugin->Stop();
  return refused ? FailedPrecondition("the kubelet refused the plugin") : absl::OkStatus();
}

int Main(int argc, char** argv) {
  Settings settings;
  const config::Spec spec = DeclareSettings(settings);
  if (const std::optional<int> exit = config::Parse(argc, argv, spec)) return *exit;
  const auto read = [&]() -> absl::StatusOr<Settings> {
    Settings now;
    const std::vector<std::string> arguments(argv + 1, argv + argc);
    TAHOMA_RETURN_IF_ERROR(config::ParseArguments(arguments, DeclareSettings(now)).status());
    return now;
  };
  // Sockets and files of this program are for the kubelet and the runtime: for this user only.
  umask(0077);
  config::StartLog("dra-plugin", settings.log);
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGHUP);
  // inherited by every thread: Run waits for these signals
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signal(SIGPIPE, SIG_IGN);
  const absl::Status status = Run(settings, read, signals);
  if (status.ok()) return 0;
  spdlog::error("{}", Message(status));
  return 1;
}

}  // namespace
}  // namespace tahoma::dra

int main(int argc, char** argv) { return tahoma::dra::Main(argc, argv); }
