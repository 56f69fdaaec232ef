// Measures a cluster's API server, and how fast a scheduler binds pods there.
//
//   cluster_load KUBECONFIG writes 4000          one line: updates of ConfigMaps per second
//   cluster_load KUBECONFIG pods 1000 SCHEDULER  makes that many pods, each with a claim for
//                                                four chips of a ring, and prints "made"; when all
//                                                are bound, one line: pods bound per second
//   cluster_load KUBECONFIG gangs 100 tahoma     the same of gangs of four pods of 16 chips each
//
// The pods are there before the scheduler is started, which whoever reads "made" does and then
// writes a line: so the server has nothing to do but what scheduling needs. Time counts from that
// line to the last pod that is bound. Nodes and DeviceClasses are there already.

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include "lib/base/check.h"
#include "lib/base/json.h"
#include "lib/kube/http_transport.h"
#include "lib/kube/kubeconfig.h"
#include "tests/bench/api_load.h"

namespace tahoma::bench {
namespace {

using std::chrono::steady_clock;

constexpr int kMembers = 4;  // of a gang: an UltraServer's nodes
constexpr std::size_t kConfigBytes = 1024;
constexpr int kWriters = 32;  // each has an object for itself, most of the time
const std::string kDefault = "/api/v1/namespaces/default";
const std::string kClaims = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims";
const std::string kGangs = "/apis/tahoma.dev/v1alpha1/namespaces/default/gangs";

double Rate(std::size_t count, steady_clock::duration took) {
  return static_cast<double>(count) / std::chrono::duration<double>(took).count();
}

double Writes(kube::Transport& api, int count) {
  const auto config = [](int i, char filling) {
    return Json{{"metadata", {{"name", fmt::format("load-{}", i % kWriters)}}},
                {"data", {{"text", std::string(kConfigBytes, filling)}}}};
  };
  for (int i = 0; i < kWriters; ++i) Send(api, kDefault + "/configmaps", config(i, 'a'));
  const auto begin = steady_clock::now();
  const auto write = [&](int i) {
    Send(api, fmt::format("{}/configmaps/load-{}", kDefault, i % kWriters),
         config(i, static_cast<char>('a' + i % 26)), "PUT");
  };
  InParallel(count, write, kWriters);
  return Rate(static_cast<std::size_t>(count), steady_clock::now() - begin);
}

// A claim and the pod of it.
void MakePod(kube::Transport& api, const std::string& name, int chips, const std::string& scheduler,
             const std::string& gang) {
  Json request = {{"name", "chips"},
                  {"exactly",
                   {{"deviceClassName", "neuron.aws.com"},
                    {"count", chips},
                    {"tolerations", {{{"key", "tahoma.dev/managed"}, {"operator", "Exists"}}}}}}};
  Json devices = {{"requests", {std::move(request)}}};
  if (gang.empty()) {
    devices["constraints"] = {{{"matchAttribute", "resource.aws.com/devicegroup4_id"}}};
  }
  Send(api, kClaims,
       {{"apiVersion", "resource.k8s.io/v1"},
        {"kind", "ResourceClaim"},
        {"metadata", {{"name", name}}},
        {"spec", {{"devices", std::move(devices)}}}});
  Json metadata = {{"name", name}};
  if (!gang.empty()) metadata["labels"] = {{"tahoma.dev/gang", gang}};
  Send(api, kDefault + "/pods",
       {{"metadata", std::move(metadata)},
        {"spec",
         {{"schedulerName", scheduler},
          {"containers",
           {{{"name", "main"},
             {"image", "none"},
             {"resources", {{"claims", {{{"name", "chips"}}}}}}}}},
          {"resourceClaims", {{{"name", "chips"}, {"resourceClaimName", name}}}}}}});
}

void MakeGang(kube::Transport& api, const std::string& name, const std::string& scheduler) {
  Send(api, kGangs,
       {{"apiVersion", "tahoma.dev/v1alpha1"},
        {"kind", "Gang"},
        {"metadata", {{"name", name}}},
        {"spec", {{"members", kMembers}, {"shape", "4x4x4"}}}});
  for (int i = 0; i < kMembers; ++i) {
    MakePod(api, fmt::format("{}-{}", name, i), 16, scheduler, name);
  }
}

double Bound(kube::Transport& api, bool gangs, int count, const std::string& scheduler) {
  InParallel(count, [&](int i) {
    if (gangs) return MakeGang(api, fmt::format("g{}", i), scheduler);
    MakePod(api, fmt::format("p{}", i), 4, scheduler, "");
  });
  BoundPods bound;
  std::jthread watch([&] { bound.Watch(api); });
  std::printf("made\n");
  std::fflush(stdout);
  std::getchar();
  const auto begin = steady_clock::now();
  const auto pods = static_cast<std::size_t>(gangs ? count * kMembers : count);
  if (!bound.WaitFor(pods)) {
    std::fprintf(stderr, "not everything was bound within the deadline\n");
    std::exit(1);  // the watch would go on
  }
  return Rate(static_cast<std::size_t>(count), steady_clock::now() - begin);
}

int Run(const std::string& kubeconfig, const std::string& mode, int count,
        const std::string& scheduler) {
  auto access = kube::LoadKubeconfig(kubeconfig);
  TAHOMA_CHECK_OK(access.status());
  const auto api = kube::HttpTransport::Create(*std::move(access));
  TAHOMA_CHECK_OK(api.status());
  const double rate =
      mode == "writes" ? Writes(**api, count) : Bound(**api, mode == "gangs", count, scheduler);
  std::printf("%.1f\n", rate);
  return 0;
}

}  // namespace
}  // namespace tahoma::bench

int main(int argc, char** argv) {
  const std::string mode = argc > 3 ? argv[2] : "";
  const int count = argc > 3 ? std::atoi(argv[3]) : 0;
  const bool binds = mode == "pods" || mode == "gangs";
  if (count < 1 || (mode != "writes" && !binds) || argc != (binds ? 5 : 4)) {
    std::fprintf(stderr,
                 "usage: cluster_load KUBECONFIG writes COUNT\n"
                 "       cluster_load KUBECONFIG pods|gangs COUNT SCHEDULER\n");
    return 2;
  }
  return tahoma::bench::Run(argv[1], mode, count, binds ? argv[4] : "");
}
