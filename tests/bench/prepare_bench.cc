// How long a kubelet waits for a claim on a full node: 128 claims of an LNC-1 core each are
// prepared, then each in turn is unprepared and prepared again, beside the 127 others.
//
// Only the kubelet and the processes' borders are replaced: the plugin serves its gRPC socket,
// reads the claims from an API server over HTTP, gives them to a sim-node over its socket, and
// syncs checkpoint and CDI files to a disk.

#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "controller/apiserver/http/api_server.h"
#include "controller/apiserver/http/http_front.h"
#include "controller/store/store.h"
#include "dra-plugin/run/plugin.h"
#include "lib/base/check.h"
#include "lib/base/clock.h"
#include "lib/base/json.h"
#include "lib/base/rng.h"
#include "lib/hw/catalogue.h"
#include "lib/kube/client.h"
#include "lib/kube/http_transport.h"
#include "lib/kube/sleeper.h"
#include "lib/wire/server.h"
#include "sim-node/podrunner/plugin_client.h"
#include "sim-node/serve/node_server.h"
#include "tests/support/temp_dir.h"

namespace tahoma {
namespace {

namespace apiserver = controller::apiserver;

constexpr int kChips = 16;
constexpr int kCores = 8;
constexpr int kClaims = kChips * kCores;
constexpr int kPairs = 250;  // an iteration's calls of each kind
constexpr const char* kNode = "node-a";

using SteadyClock = std::chrono::steady_clock;

double MsSince(SteadyClock::time_point start) {
  return std::chrono::duration<double, std::milli>(SteadyClock::now() - start).count();
}

// An API server on a socket of loopback, with a store on disk.
class Api {
 public:
  explicit Api(const std::string& folder) : store_(Open(folder)), server_(Serve()) {
    TAHOMA_CHECK_OK(front_.Start());
    transport_ = *kube::HttpTransport::Create({.server = front_.url()});
    client_ = std::make_unique<kube::Client>(*transport_, sleeper_, Rng(1));
  }

  kube::Transport& transport() { return *transport_; }

  void MakeNode() {
    const Json node = {{"metadata", {{"name", kNode}}}};
    TAHOMA_CHECK_OK(client_->Create(kube::kNodes, "", node).status());
  }

  // Makes a claim with this core allocated; returns the claim's uid.
  std::string MakeClaim(const std::string& name, const std::string& device) {
    const Json exactly = {{"deviceClassName", "neuron-core.tahoma.dev"}};
    auto claim = client_->Create(
        kube::kResourceClaims, "default",
        {{"metadata", {{"name", name}, {"namespace", "default"}}},
         {"spec", {{"devices", {{"requests", {{{"name", "core"}, {"exactly", exactly}}}}}}}}});
    TAHOMA_CHECK_OK(claim.status());
    (*claim)["status"]["allocation"]["devices"]["results"] = Json::array(
        {{{"request", "core"}, {"driver", "neuron.aws.com"}, {"pool", kNode}, {"device", device}}});
    TAHOMA_CHECK_OK(client_->UpdateStatus(kube::kResourceClaims, *claim).status());
    return std::string(kube::UidOf(*claim));
  }

 private:
  static std::unique_ptr<controller::Store> Open(const std::string& folder) {
    auto store = controller::Store::Open({.dir = folder});
    TAHOMA_CHECK_OK(store.status());
    return *std::move(store);
  }
  std::unique_ptr<apiserver::ApiServer> Serve() {
    auto server = apiserver::ApiServer::Open(*store_, clock_, {});
    TAHOMA_CHECK_OK(server.status());
    return *std::move(server);
  }

  SystemClock clock_;
  std::unique_ptr<controller::Store> store_;
  std::unique_ptr<apiserver::ApiServer> server_;
  rest::Metrics metrics_;
  apiserver::HttpFront front_{*server_, {}, metrics_};
  std::unique_ptr<kube::HttpTransport> transport_;
  kube::InterruptibleSleeper sleeper_;
  std::unique_ptr<kube::Client> client_;
};

// A sim-node's socket for the plugin.
class Node {
 public:
  explicit Node(const std::string& folder) : live_(Make()), node_(live_, Options(folder)) {
    auto server =
        wire::Server::Start("unix:" + folder + "/node.sock", {},
                            [this](const wire::Request& call) { return node_.ServePlugin(call); });
    TAHOMA_CHECK_OK(server.status());
    server_ = *std::move(server);
  }
  ~Node() { live_.Close(); }

 private:
  static sim::Instance Make() {
    auto instance =
        sim::Instance::Create({.type = hw::FindInstanceType("trn2.48xlarge"), .name = kNode},
                              [n = std::uint64_t{0}]() mutable {
                                return std::array<std::uint64_t, 2>{++n, 7};
                              });
    TAHOMA_CHECK_OK(instance.status());
    return *std::move(instance);
  }
  static sim::NodeServer::Options Options(const std::string& folder) {
    return {.driver_version = "2.26.10.0", .workload_socket = "unix:" + folder + "/pods/w.sock"};
  }

  sim::LiveInstance live_;
  sim::NodeServer node_;
  std::unique_ptr<wire::Server> server_;
};

// The plugin of a node with a claim on every core, and its kubelet.
class FullNode {
 public:
  FullNode() : api_(dir_.path() + "/store"), node_(dir_.path()) {
    spdlog::set_level(spdlog::level::off);
    api_.MakeNode();
    auto plugin = dra::Plugin::Start({.node_name = kNode,
                                      .node_socket = "unix:" + dir_.path() + "/node.sock",
                                      .plugin_dir = dir_.path() + "/plugins",
                                      .registry_dir = dir_.path() + "/registry",
                                      .cdi_dir = dir_.path() + "/cdi",
                                      .pod_uid = "",
                                      .boot_id = "boot"},
                                     api_.transport(), clock_, counters_);
    TAHOMA_CHECK_OK(plugin.status());
    plugin_ = *std::move(plugin);
    const auto facts = sim::AskPlugin(plugin_->registration_socket(), std::chrono::seconds(10));
    TAHOMA_CHECK_OK(facts.status());
    kubelet_ = std::make_unique<sim::PluginClient>(facts->endpoint, facts->version);
    for (int i = 0; i < kClaims; ++i) {
      sim::ClaimFacts claim = {.name_space = "default", .name = fmt::format("claim-{}", i)};
      claim.uid =
          api_.MakeClaim(claim.name, fmt::format("neuron-core-{}-lnc1-{}", i / kCores, i % kCores));
      claims_.push_back(std::move(claim));
      Prepare(i);
    }
  }

  const sim::ClaimFacts& claim(int i) const { return claims_[static_cast<std::size_t>(i)]; }
  void Prepare(int i) { TAHOMA_CHECK_OK(kubelet_->Prepare(claim(i)).status()); }
  void Unprepare(int i) { TAHOMA_CHECK_OK(kubelet_->Unprepare(claim(i))); }

 private:
  testing::TempDir dir_;
  SystemClock clock_;
  Api api_;
  Node node_;
  rest::Metrics metrics_;
  rest::Probes probes_;
  dra::PluginMetrics counters_{metrics_, probes_};
  std::unique_ptr<dra::Plugin> plugin_;
  std::unique_ptr<sim::PluginClient> kubelet_;
  std::vector<sim::ClaimFacts> claims_;
};

struct Times {
  std::vector<double> prepare;
  std::vector<double> unprepare;
};

void Replace(FullNode& node, Rng& rng, Times& times) {
  for (int pair = 0; pair < kPairs; ++pair) {
    const int i = static_cast<int>(rng.Below(kClaims));
    const auto start = SteadyClock::now();
    node.Unprepare(i);
    times.unprepare.push_back(MsSince(start));
    const auto again = SteadyClock::now();
    node.Prepare(i);
    times.prepare.push_back(MsSince(again));
  }
}

// Reports one of the two lists.
void ReplaceAndCount(benchmark::State& run, std::vector<double> Times::*counted) {
  FullNode node;
  Rng rng(1);
  Times all;
  for (auto unused : run) Replace(node, rng, all);
  std::vector<double>& times = all.*counted;
  std::sort(times.begin(), times.end());
  run.counters["p99_ms"] = times[times.size() * 99 / 100];
  run.counters["median_ms"] = times[times.size() / 2];
}
BENCHMARK_CAPTURE(ReplaceAndCount, prepare, &Times::prepare)
    ->Name("prepare_p99_ms")
    ->Unit(benchmark::kMillisecond)
    ->Iterations(4);
BENCHMARK_CAPTURE(ReplaceAndCount, unprepare, &Times::unprepare)
    ->Name("unprepare_p99_ms")
    ->Unit(benchmark::kMillisecond)
    ->Iterations(4);

}  // namespace
}  // namespace tahoma

BENCHMARK_MAIN();
