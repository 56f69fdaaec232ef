// Measures a cluster's API server, and how fast a scheduler binds pods there.
//
//   cluster_load KUBECONFIG writes 4000          one line: writes per second that make more nodes
//                                                like the first, each with its slice
//   cluster_load KUBECONFIG configs 4000         the same of updates of ConfigMaps of 1 KiB
//   cluster_load KUBECONFIG pods 1000 SCHEDULER  makes that many pods, each with a claim for
//                                                four chips of a ring, and prints "made"; when all
//                                                are bound, one line: pods bound per second
//   cluster_load KUBECONFIG gangs 100 tahoma     the same of gangs of four pods of 16 chips each
//   cluster_load KUBECONFIG unscheduled 1000     the same pods, which this program binds itself: it
//                                                decides nothing, and writes what Tahoma writes
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
#include <vector>

#include "lib/base/check.h"
#include "lib/base/json.h"
#include "lib/kube/http_transport.h"
#include "lib/kube/kubeconfig.h"
#include "lib/kube/object.h"
#include "lib/kube/objects/claim.h"
#include "tests/bench/api_load.h"

namespace tahoma::bench {
namespace {

using std::chrono::steady_clock;

constexpr int kMembers = 4;  // of a gang: an UltraServer's nodes
constexpr std::size_t kConfigBytes = 1024;
constexpr const char* kMerge = "application/merge-patch+json";
constexpr int kWriters = 32;  // each has an object for itself, most of the time
const std::string kDefault = "/api/v1/namespaces/default";
const std::string kClaims = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims";
const std::string kNodes = "/api/v1/nodes";
const std::string kSlices = "/apis/resource.k8s.io/v1/resourceslices";
const std::string kGangs = "/apis/tahoma.dev/v1alpha1/namespaces/default/gangs";

double Rate(std::size_t count, steady_clock::duration took) {
  return static_cast<double>(count) / std::chrono::duration<double>(took).count();
}

// The metadata of a copy of the object under another name.
Json MetadataOf(const Json& object, const std::string& name) {
  Json metadata = {{"name", name}};
  const Json& old = object.at("metadata");
  if (old.contains("labels")) metadata["labels"] = old.at("labels");
  return metadata;
}

// A Node, its status, its taints and its slice: four writes.
constexpr int kWritesOfNode = 4;
void MakeNode(kube::Transport& api, const std::string& name, const Json& node, const Json& slice) {
  const std::string target = kNodes + "/" + name;
  Send(api, kNodes, {{"metadata", MetadataOf(node, name)}});
  Send(api, target + "/status", {{"status", node.at("status")}}, "PATCH", kMerge);
  Send(api, target, {{"spec", {{"taints", nullptr}}}}, "PATCH", kMerge);
  Json spec = slice.at("spec");
  spec["nodeName"] = name;
  spec["pool"]["name"] = name;
  Send(api, kSlices,
       {{"apiVersion", "resource.k8s.io/v1"},
        {"kind", "ResourceSlice"},
        {"metadata", MetadataOf(slice, name)},
        {"spec", std::move(spec)}});
}

double Writes(kube::Transport& api, int count) {
  const Json node = Get(api, kNodes).at("items").at(0);
  const Json slice = Get(api, kSlices).at("items").at(0);
  const int nodes = count / kWritesOfNode;
  const auto begin = steady_clock::now();
  InParallel(
      nodes, [&](int i) { MakeNode(api, fmt::format("load-{}", i), node, slice); }, kWriters);
  return Rate(static_cast<std::size_t>(nodes * kWritesOfNode), steady_clock::now() - begin);
}

double Configs(kube::Transport& api, int count) {
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

// A claim and the pod of it, whose uid is returned.
std::string MakePod(kube::Transport& api, const std::string& name, int chips,
                    const std::string& scheduler, const std::string& gang) {
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
  const Json pod =
      Send(api, kDefault + "/pods",
           {{"metadata", std::move(metadata)},
            {"spec",
             {{"schedulerName", scheduler},
              {"containers",
               {{{"name", "main"},
                 {"image", "none"},
                 {"resources", {{"claims", {{{"name", "chips"}}}}}}}}},
              {"resourceClaims", {{{"name", "chips"}, {"resourceClaimName", name}}}}}}});
  return std::string(kube::UidOf(pod));
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

// Sends Tahoma's writes for a pod and its claim: a finalizer, the allocation, the binding, an
// event. Any devices will do: the server does not check whether a chip is given away twice.
void Bind(kube::Transport& api, const std::string& name, const std::string& uid,
          const std::string& node) {
  const std::string target = fmt::format("{}/{}", kClaims, name);
  const Json old =
      Send(api, target, {{"metadata", {{"finalizers", {kube::kClaimFinalizer}}}}}, "PATCH", kMerge);
  Json results = Json::array();
  for (int chip = 0; chip < 4; ++chip) {
    results.push_back({{"request", "chips"},
                       {"driver", "neuron.aws.com"},
                       {"pool", node},
                       {"device", fmt::format("neuron-device-{}", chip)},
                       {"tolerations", {{{"key", "tahoma.dev/managed"}, {"operator", "Exists"}}}}});
  }
  const Json on_node = {{"key", "metadata.name"}, {"operator", "In"}, {"values", {node}}};
  const Json term = {{"matchFields", {on_node}}};
  Send(api, target + "/status",
       {{"apiVersion", "resource.k8s.io/v1"},
        {"kind", "ResourceClaim"},
        {"metadata",
         {{"name", name},
          {"namespace", "default"},
          {"uid", kube::UidOf(old)},
          {"resourceVersion", kube::ResourceVersionOf(old)}}},
        {"status",
         {{"reservedFor", {{{"resource", "pods"}, {"name", name}, {"uid", uid}}}},
          {"allocation",
           {{"devices", {{"results", std::move(results)}}},
            {"nodeSelector", {{"nodeSelectorTerms", {term}}}}}}}}},
       "PUT");
  Send(api, fmt::format("{}/pods/{}/binding", kDefault, name),
       {{"metadata", {{"name", name}, {"annotations", {{"tahoma.dev/placement", "4x1+0,0"}}}}},
        {"target", {{"apiVersion", "v1"}, {"kind", "Node"}, {"name", node}}}});
  Send(api, kDefault + "/events",
       {{"metadata", {{"name", name + ".bound"}, {"namespace", "default"}}},
        {"involvedObject", {{"kind", "Pod"}, {"name", name}, {"namespace", "default"}}},
        {"reason", "Scheduled"},
        {"message", fmt::format("bound to {}, chips 0, 1, 2, 3", node)},
        {"type", "Normal"}});
}

double Bound(kube::Transport& api, const std::string& mode, int count,
             const std::string& scheduler) {
  std::vector<std::string> uids(static_cast<std::size_t>(count));
  InParallel(count, [&](int i) {
    if (mode == "gangs") return MakeGang(api, fmt::format("g{}", i), scheduler);
    uids[static_cast<std::size_t>(i)] = MakePod(api, fmt::format("p{}", i), 4, scheduler, "");
  });
  BoundPods bound(static_cast<std::size_t>(mode == "gangs" ? count * kMembers : count));
  std::jthread watch([&] { bound.Watch(api); });
  std::printf("made\n");
  std::fflush(stdout);
  std::getchar();
  const auto begin = steady_clock::now();
  if (mode == "unscheduled") {
    const Json nodes = Get(api, kNodes).at("items");
    InParallel(
        count,
        [&](int i) {
          const auto index = static_cast<std::size_t>(i);
          Bind(api, fmt::format("p{}", i), uids[index],
               std::string(kube::NameOf(nodes.at(index % nodes.size()))));
        },
        kWriters);
  }
  if (!bound.Wait()) std::exit(1);  // the watch would go on
  return Rate(static_cast<std::size_t>(count), steady_clock::now() - begin);
}

int Run(const std::string& kubeconfig, const std::string& mode, int count,
        const std::string& scheduler) {
  auto access = kube::LoadKubeconfig(kubeconfig);
  TAHOMA_CHECK_OK(access.status());
  const auto api = kube::HttpTransport::Create(*std::move(access));
  TAHOMA_CHECK_OK(api.status());
  const double rate = mode == "writes"    ? Writes(**api, count)
                      : mode == "configs" ? Configs(**api, count)
                                          : Bound(**api, mode, count, scheduler);
  std::printf("%.1f\n", rate);
  return 0;
}

}  // namespace
}  // namespace tahoma::bench

int main(int argc, char** argv) {
  const std::string mode = argc > 3 ? argv[2] : "";
  const int count = argc > 3 ? std::atoi(argv[3]) : 0;
  const bool scheduled = mode == "pods" || mode == "gangs";
  const bool known = scheduled || mode == "writes" || mode == "configs" || mode == "unscheduled";
  if (count < 1 || !known || argc != (scheduled ? 5 : 4)) {
    std::fprintf(stderr,
                 "usage: cluster_load KUBECONFIG writes|configs|unscheduled COUNT\n"
                 "       cluster_load KUBECONFIG pods|gangs COUNT SCHEDULER\n");
    return 2;
  }
  return tahoma::bench::Run(argv[1], mode, count, scheduled ? argv[4] : "none");
}
