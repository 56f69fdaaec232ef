// Creates pods or gangs over HTTP against `controller --standalone` and measures until they are
// seen bound over an HTTP watch.
//
//   standalone_load SERVER pods 8000       one line: pods bound per second
//   standalone_load SERVER gangs 1000      gangs (four pods and four claims each) bound per second
//
// The fleet is made first: Ready nodes of trn2.48xlarge with one slice of 16 chips each. No kubelet
// takes part: bound is where scheduling ends. Load generator and controller share the machine.

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "dra-plugin/inventory/pool.h"
#include "dra-plugin/slices/slice_json.h"
#include "lib/base/check.h"
#include "lib/hw/catalogue.h"
#include "lib/kube/http_transport.h"

namespace tahoma {
namespace {

using Json = nlohmann::json;
using std::chrono::steady_clock;

constexpr int kClients = 8;
constexpr int kChipsPerNode = 16;
constexpr int kMembers = 4;
constexpr std::chrono::minutes kDeadline{5};
constexpr const char* kPods = "/api/v1/namespaces/default/pods";

// Ends the program on any other answer: a benchmark of failures says nothing.
Json Post(kube::Transport& api, const std::string& target, const Json& body,
          const char* method = "POST", const char* type = "application/json") {
  const auto answer = api.Send({.method = method,
                                .target = target,
                                .headers = {{"Content-Type", type}},
                                .body = body.dump()});
  if (!answer.ok() || answer->status >= 300) {
    std::fprintf(stderr, "%s %s: %s\n", method, target.c_str(),
                 answer.ok() ? answer->body.c_str() : answer.status().ToString().c_str());
    std::exit(1);
  }
  return Json::parse(answer->body);
}

std::string NodeName(int index) { return "node-" + std::to_string(index); }

void MakeNode(kube::Transport& api, int index) {
  const hw::InstanceType& type = *hw::FindInstanceType("trn2.48xlarge");
  wire::Inventory inventory;
  inventory.node_name = NodeName(index);
  inventory.instance_type = type.name;
  inventory.driver_version = "2.26.10.0";
  for (int chip = 0; chip < type.chip_count(); ++chip) {
    inventory.chips.push_back({.index = chip, .healthy = true, .lnc = 2});
  }
  const Json ready = {{{"type", "Ready"}, {"status", "True"}}};
  const Json node =
      Post(api, "/api/v1/nodes",
           {{"apiVersion", "v1"}, {"kind", "Node"}, {"metadata", {{"name", NodeName(index)}}}});
  Post(api, "/api/v1/nodes/" + NodeName(index) + "/status", {{"status", {{"conditions", ready}}}},
       "PATCH", "application/merge-patch+json");
  const dra::PoolOptions chips = {.publish = {.lnc1 = false, .lnc2 = false, .node = false}};
  const auto slices = dra::CutIntoSlices(*dra::BuildPool(inventory, chips));
  for (std::size_t i = 0; i < slices.size(); ++i) {
    Post(api, "/apis/resource.k8s.io/v1/resourceslices",
         dra::SliceObject({inventory.node_name, node["metadata"]["uid"]},
                          {.slice_count = slices.size()}, slices[i], i));
  }
}

void MakeTemplate(kube::Transport& api, int chips) {
  const Json request = {{"name", "neurons"},
                        {"exactly",
                         {{"deviceClassName", "neuron.aws.com"},
                          {"allocationMode", "ExactCount"},
                          {"count", chips}}}};
  Post(api, "/apis/resource.k8s.io/v1/namespaces/default/resourceclaimtemplates",
       {{"apiVersion", "resource.k8s.io/v1"},
        {"kind", "ResourceClaimTemplate"},
        {"metadata", {{"name", "chips"}}},
        {"spec", {{"spec", {{"devices", {{"requests", {request}}}}}}}}});
}

Json Pod(const std::string& name, const std::string& gang) {
  Json pod = {
      {"apiVersion", "v1"},
      {"kind", "Pod"},
      {"metadata", {{"name", name}}},
      {"spec",
       {{"schedulerName", "tahoma"},
        {"containers",
         {{{"name", "main"},
           {"image", "none"},
           {"resources", {{"claims", {{{"name", "neurons"}}}}}}}}},
        {"resourceClaims", {{{"name", "neurons"}, {"resourceClaimTemplateName", "chips"}}}}}}};
  if (!gang.empty()) pod["metadata"]["labels"]["tahoma.dev/gang"] = gang;
  return pod;
}

void MakeGang(kube::Transport& api, const std::string& name) {
  Post(api, "/apis/tahoma.dev/v1alpha1/namespaces/default/gangs",
       {{"apiVersion", "tahoma.dev/v1alpha1"},
        {"kind", "Gang"},
        {"metadata", {{"name", name}}},
        {"spec", {{"members", kMembers}, {"shape", "4x4"}}}});
  for (int i = 0; i < kMembers; ++i) Post(api, kPods, Pod(name + "-" + std::to_string(i), name));
}

// Counts distinct pods that a watch shows with a node.
class BoundPods {
 public:
  void Watch(kube::Transport& api) {
    const auto answer = api.Stream(
        {.target = std::string(kPods) + "?watch=true&resourceVersion=0"},
        [&](std::string_view line) { return Take(line); }, std::chrono::minutes(10));
    if (!answer.ok()) std::fprintf(stderr, "watch: %s\n", answer.status().ToString().c_str());
  }

  // False when it took longer than the deadline.
  bool WaitFor(std::size_t count) {
    std::unique_lock lock(mutex_);
    wanted_ = count;
    return changed_.wait_for(lock, kDeadline, [&] { return bound_.size() >= count; });
  }

 private:
  bool Take(std::string_view line) {
    const Json event = Json::parse(line, nullptr, false);
    TAHOMA_CHECK(!event.is_discarded() && event["type"] != "ERROR");
    const Json& object = event["object"];
    const std::lock_guard lock(mutex_);
    if (object.contains("spec") && object["spec"].contains("nodeName")) {
      bound_.insert(object["metadata"]["name"]);
    }
    if (bound_.size() < wanted_) return true;
    changed_.notify_all();
    return false;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::set<std::string> bound_;
  std::size_t wanted_ = SIZE_MAX;
};

// Runs f(0) … f(count - 1) on the client threads.
template <typename F>
void InParallel(int count, const F& f) {
  std::atomic<int> next = 0;
  std::vector<std::jthread> threads;
  for (int t = 0; t < kClients; ++t) {
    threads.emplace_back([&] {
      for (int i = next++; i < count; i = next++) f(i);
    });
  }
}

int Run(const std::string& server, bool gangs, int count) {
  auto api = kube::HttpTransport::Create({.server = server});
  TAHOMA_CHECK_OK(api.status());
  kube::Transport& transport = **api;
  const int nodes = gangs ? count : (count + kChipsPerNode - 1) / kChipsPerNode;
  InParallel(nodes, [&](int i) { MakeNode(transport, i); });
  MakeTemplate(transport, gangs ? kChipsPerNode / kMembers : 1);

  BoundPods bound;
  std::jthread watch([&] { bound.Watch(transport); });
  const auto begin = steady_clock::now();
  InParallel(count, [&](int i) {
    const std::string name = (gangs ? "g" : "p") + std::to_string(i);
    if (gangs) {
      MakeGang(transport, name);
    } else {
      Post(transport, kPods, Pod(name, ""));
    }
  });
  const bool all = bound.WaitFor(static_cast<std::size_t>(gangs ? count * kMembers : count));
  const std::chrono::duration<double> took = steady_clock::now() - begin;
  if (!all) {
    std::fprintf(stderr, "not everything was bound within the deadline\n");
    std::exit(1);  // the watch would go on
  }
  std::printf("%.0f\n", count / took.count());
  return 0;
}

}  // namespace
}  // namespace tahoma

int main(int argc, char** argv) {
  const std::string mode = argc == 4 ? argv[2] : "";
  const int count = argc == 4 ? std::atoi(argv[3]) : 0;
  if ((mode != "pods" && mode != "gangs") || count < 1) {
    std::fprintf(stderr, "usage: standalone_load SERVER pods|gangs COUNT\n");
    return 2;
  }
  return tahoma::Run(argv[1], mode == "gangs", count);
}
