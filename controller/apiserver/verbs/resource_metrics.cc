#include "controller/apiserver/verbs/resource_metrics.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "controller/apiserver/schema/fields.h"
#include "controller/apiserver/verbs/pod_node.h"
#include "lib/base/clock.h"
#include "lib/base/json.h"
#include "lib/base/mutex.h"
#include "lib/base/status.h"
#include "lib/kube/json_writer.h"
#include "lib/kube/object.h"

namespace tahoma::controller::apiserver {
namespace {

using json = Json;

constexpr std::string_view kTarget = "/stats/containers";
// The answer of a node with hundreds of pods.
constexpr std::size_t kAnswerMost = std::size_t{256} << 10U;
// Nodes asked at the same time for a list, and the times for one node and all nodes.
constexpr std::size_t kNodesAtOnce = 32;
constexpr int kReadsMost = 8;
constexpr std::chrono::seconds kNodeMost{2};
constexpr std::chrono::seconds kAllNodesMost{5};
constexpr std::chrono::milliseconds kAnswerPart{100};
// Bounds of one number, so that no sum of an answer overflows.
constexpr std::int64_t kNanoCoresMost = 100'000'000'000'000;
constexpr std::int64_t kBytesMost = std::int64_t{1} << 46U;
constexpr std::int64_t kWindowMost = std::int64_t{366} * 24 * 3600 * 1000;

struct Use {
  std::int64_t nano_cores = 0;
  std::int64_t bytes = 0;
  std::int64_t window_millis = 1;

  void Add(const Use& other) {
    nano_cores += other.nano_cores;
    bytes += other.bytes;
    window_millis = std::max(window_millis, other.window_millis);
  }
};

// One of the reads that are served at once, while the object lives.
class Read {
 public:
  Read() : granted_(Open().fetch_add(1) < kReadsMost) {}
  ~Read() { Open().fetch_sub(1); }
  Read(const Read&) = delete;
  Read& operator=(const Read&) = delete;

  bool granted() const { return granted_; }

 private:
  static std::atomic<int>& Open() {
    static std::atomic<int> open = 0;
    return open;
  }

  const bool granted_;
};

// Containers by name, of pods by namespace and name.
using PodUses = std::map<std::string, std::map<std::string, Use>>;

std::int64_t Bounded(const json& one, std::string_view name, std::int64_t least,
                     std::int64_t most) {
  return std::clamp(kube::IntAt(one, {name}), least, most);
}

// Returns the uses in a node's answer; nothing without an answer of the right form.
std::optional<PodUses> AskNode(const ApiContext& context, const NodeEndpoint& node) {
  const MonotonicTime until = context.clock.MonotonicNow() + kNodeMost;
  const rest::Response answer = context.node_fetch(node, std::string(kTarget));
  std::string text = answer.body;
  bool goes_on = static_cast<bool>(answer.source);
  while (goes_on && text.size() <= kAnswerMost && context.clock.MonotonicNow() < until) {
    goes_on = answer.source(text, kAnswerPart);
  }
  if (answer.closed) answer.closed();
  if (answer.status != 200 || goes_on || text.size() > kAnswerMost) return std::nullopt;
  const json read = TryParseJson(text);
  PodUses uses;
  for (const json& one : kube::ListAt(read, {"containers"})) {
    const std::string pod = ObjectKey(TextAt(one, "namespace"), TextAt(one, "pod"));
    uses[pod][TextAt(one, "container")].Add(
        {.nano_cores = Bounded(one, "cpuNanoCores", 0, kNanoCoresMost),
         .bytes = Bounded(one, "memoryBytes", 0, kBytesMost),
         .window_millis = Bounded(one, "windowMillis", 1, kWindowMost)});
  }
  return uses;
}

bool IsReady(const ApiContext& context, const std::string& node) {
  const ObjectPtr found = context.objects.Get({"", "nodes"}, ObjectKey("", node));
  if (found == nullptr) return false;
  const json& conditions = kube::ListAt(*found->body, {"status", "conditions"});
  return std::ranges::any_of(conditions, [](const json& condition) {
    return TextAt(condition, "type") == "Ready" && TextAt(condition, "status") == "True";
  });
}

// Asks the nodes, several at a time. Leaves out nodes without an answer, not ready nodes, and nodes
// with a turn after the end of the time.
std::map<std::string, PodUses> AskNodes(const ApiContext& context,
                                        const std::set<std::string>& nodes) {
  std::vector<NodeEndpoint> asked;
  for (const std::string& node : nodes) {
    if (!context.node_fetch || !IsReady(context, node)) continue;
    if (auto endpoint = EndpointOf(context, node)) asked.push_back(*std::move(endpoint));
  }
  std::map<std::string, PodUses> uses;
  Mutex mutex;
  std::atomic<std::size_t> next = 0;
  const MonotonicTime until = context.clock.MonotonicNow() + kAllNodesMost;
  const auto work = [&] {
    for (std::size_t i = next++; i < asked.size(); i = next++) {
      if (context.clock.MonotonicNow() >= until) return;
      std::optional<PodUses> answer = AskNode(context, asked[i]);
      if (!answer) continue;
      const MutexLock lock(mutex);
      uses[asked[i].node] = *std::move(answer);
    }
  };
  std::vector<std::jthread> threads;
  while (threads.size() < std::min(kNodesAtOnce, asked.size())) threads.emplace_back(work);
  for (std::jthread& thread : threads) thread.join();
  return uses;
}

std::string WindowText(std::int64_t millis) {
  const std::int64_t part = millis % 1000;
  return part == 0 ? fmt::format("{}s", millis / 1000)
                   : fmt::format("{}.{:03}s", millis / 1000, part);
}

json UsageOf(const Use& use) {
  constexpr std::int64_t kKibi = 1024;
  return {{"cpu", fmt::format("{}n", use.nano_cores)},
          {"memory", fmt::format("{}Ki", use.bytes / kKibi)}};
}

ObjectPtr MetricsOf(const ApiContext& context, const ApiRequest& request, const json& of,
                    const Use& all, json more) {
  const json& metadata = MetadataOf(of);
  json own = {{"name", TextAt(metadata, "name")},
              {"creationTimestamp", FormatTime(context.clock.WallNow())}};
  const std::string name_space = TextAt(metadata, "namespace");
  if (!name_space.empty()) own["namespace"] = name_space;
  if (metadata.contains("labels")) own["labels"] = metadata.at("labels");
  more["apiVersion"] = request.kind->api_version();
  more["kind"] = request.kind->kind;
  more["metadata"] = std::move(own);
  more["timestamp"] = FormatTime(context.clock.WallNow());
  more["window"] = WindowText(all.window_millis);
  auto object = std::make_shared<Object>();
  object->key = ObjectKey(name_space, TextAt(metadata, "name"));
  object->bytes = kube::JsonText(more);
  object->body = std::make_shared<const json>(std::move(more));
  return object;
}

// Returns the objects of the kind that the request selects.
std::vector<ObjectPtr> Selected(const ApiContext& context, const ApiRequest& request) {
  const ResourceName resource{"", request.kind->plural};
  if (request.name.empty()) return context.objects.List(resource, request.key_prefix()).objects;
  ObjectPtr found = context.objects.Get(resource, request.key());
  return found == nullptr ? std::vector<ObjectPtr>() : std::vector<ObjectPtr>{std::move(found)};
}

// The node of a pod that runs; "" for another pod.
std::string NodeOf(const json& pod) {
  const bool runs = TextAt(PartOf(pod, "status"), "phase") == "Running";
  return runs ? TextAt(PartOf(pod, "spec"), "nodeName") : "";
}

std::vector<ObjectPtr> PodMetrics(const ApiContext& context, const ApiRequest& request) {
  const std::vector<ObjectPtr> pods = Selected(context, request);
  std::set<std::string> names;
  for (const ObjectPtr& pod : pods) names.insert(NodeOf(*pod->body));
  const std::map<std::string, PodUses> answers = AskNodes(context, names);
  std::vector<ObjectPtr> found;
  for (const ObjectPtr& pod : pods) {
    const auto node = answers.find(NodeOf(*pod->body));
    if (node == answers.end()) continue;
    const auto own = node->second.find(pod->key);
    if (own == node->second.end()) continue;
    Use all;
    json containers = json::array();
    for (const auto& [name, use] : own->second) {
      all.Add(use);
      containers.push_back({{"name", name}, {"usage", UsageOf(use)}});
    }
    found.push_back(
        MetricsOf(context, request, *pod->body, all, {{"containers", std::move(containers)}}));
  }
  return found;
}

std::vector<ObjectPtr> NodeMetrics(const ApiContext& context, const ApiRequest& request) {
  const std::vector<ObjectPtr> nodes = Selected(context, request);
  std::set<std::string> names;
  for (const ObjectPtr& node : nodes) names.insert(TextAt(MetadataOf(*node->body), "name"));
  const std::map<std::string, PodUses> answers = AskNodes(context, names);
  std::vector<ObjectPtr> found;
  for (const ObjectPtr& node : nodes) {
    const auto uses = answers.find(TextAt(MetadataOf(*node->body), "name"));
    if (uses == answers.end()) continue;
    Use all;
    for (const auto& [pod, containers] : uses->second) {
      for (const auto& [container, use] : containers) all.Add(use);
    }
    found.push_back(MetricsOf(context, request, *node->body, all, {{"usage", UsageOf(all)}}));
  }
  return found;
}

}  // namespace

bool IsResourceMetrics(const Kind& kind) { return kind.group == "metrics.k8s.io"; }

absl::StatusOr<std::vector<ObjectPtr>> ResourceMetrics(const ApiContext& context,
                                                       const ApiRequest& request) {
  const Read read;
  if (!read.granted()) {
    return ResourceExhausted("{} reads of metrics are being served; try again", kReadsMost);
  }
  return request.kind->namespaced ? PodMetrics(context, request) : NodeMetrics(context, request);
}

}  // namespace tahoma::controller::apiserver
