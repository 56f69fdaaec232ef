#include "controller/core/queue/queue_entry.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

namespace tahoma::controller {
namespace {

// Gives the gang the run time and the patience of the queues. Returns why the gang may not run for
// so long, or "".
std::string LimitRuntime(const QueueTree& tree, const QueueTree::Node& queue, GangSpec& gang) {
  std::optional<std::chrono::seconds> usual;
  std::optional<std::chrono::seconds> most;
  std::string by;
  for (const std::size_t above : tree.PathOf(*tree.IndexOf(queue.name))) {
    const auto& spec = tree.nodes()[above].spec;
    if (spec == nullptr) continue;
    if (!usual) usual = spec->default_max_runtime;
    if (!gang.patience) gang.patience = spec->patience;
    if (spec->max_runtime && (!most || *spec->max_runtime < *most)) {
      most = spec->max_runtime;
      by = spec->name;
    }
  }
  if (!gang.max_runtime) {
    gang.max_runtime = usual && most ? std::min(usual, most) : (usual ? usual : most);
  }
  if (!most || *gang.max_runtime <= *most) return "";
  return fmt::format("its maxRuntime of {} s is more than the {} s that queue {} allows",
                     gang.max_runtime->count(), most->count(), by);
}

}  // namespace

std::optional<QueueRefusal> EnterQueue(const QueueTree& tree, const std::string& queue,
                                       GangSpec& gang) {
  const QueueTree::Node* node = tree.Find(queue);
  if (node == nullptr || (node->spec == nullptr && queue != kDefaultQueue)) {
    return QueueRefusal{GangReason::kQueueUnknown, fmt::format("queue {} does not exist", queue)};
  }
  if (!node->serves) {
    return QueueRefusal{GangReason::kQueueInvalid,
                        fmt::format("queue {}: {}", queue, node->message)};
  }
  if (!node->Admits(gang.key.ns)) {
    return QueueRefusal{
        GangReason::kQueueNotAllowed,
        fmt::format("queue {} is not for namespace {} (spec.namespaces)", queue, gang.key.ns)};
  }
  gang.queue = queue;
  std::string refusal = LimitRuntime(tree, *node, gang);
  if (refusal.empty()) return std::nullopt;
  return QueueRefusal{GangReason::kQueueNotAllowed, std::move(refusal)};
}

std::optional<QueueRefusal> RefuseWhereFull(
    const QueueTree& tree, const std::string& queue,
    absl::FunctionRef<std::int64_t(const std::string&)> waiting, std::string* full) {
  for (const std::size_t above : tree.PathOf(*tree.IndexOf(queue))) {
    const QueueTree::Node& node = tree.nodes()[above];
    if (node.spec == nullptr || !node.spec->most_waiting) continue;
    if (waiting(node.name) < *node.spec->most_waiting) continue;
    if (full != nullptr) *full = node.name;
    return QueueRefusal{GangReason::kQueueFull,
                        fmt::format("{} gangs wait in queue {} already (spec.maxWaiting)",
                                    *node.spec->most_waiting, node.name)};
  }
  return std::nullopt;
}

}  // namespace tahoma::controller
