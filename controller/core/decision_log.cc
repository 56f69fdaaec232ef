#include "controller/core/decision_log.h"

#include <chrono>
#include <utility>

#include "lib/base/utf8.h"

namespace tahoma::controller {
namespace {

std::string Cut(std::string text) {
  text.resize(CutUtf8(text, DecisionLog::kTextMost).size());
  return text;
}

std::string WhereOf(const GangDecision& decision) {
  std::string where;
  const auto add = [&](const std::string& place) {
    if (place.empty() || where.size() > DecisionLog::kTextMost) return;
    where += (where.empty() ? "" : "; ") + place;
  };
  for (const DecidedSlice& slice : decision.slices) add(PlacementText(slice));
  if (!where.empty()) return where;
  const std::string* before = nullptr;
  for (const DecidedPod& pod : decision.pods) {
    if (before == nullptr || *before != pod.node) add(pod.node);
    before = &pod.node;
  }
  return where;
}

}  // namespace

std::string_view ToString(DecisionKind kind) {
  switch (kind) {
    case DecisionKind::kPlaced:
      return "Placed";
    case DecisionKind::kBlocked:
      return "Blocked";
    case DecisionKind::kBound:
      return "Bound";
    case DecisionKind::kUndone:
      break;
  }
  return "Undone";
}

void DecisionLog::Add(LoggedDecision decision) {
  if (entries_.empty()) {
    // A multiple of the size, so that the first entry is at the beginning of the ring.
    const auto since = decision.when.time_since_epoch();
    const auto micros = std::chrono::duration_cast<std::chrono::microseconds>(since).count();
    end_ = static_cast<std::uint64_t>(micros) / kEntriesMost * kEntriesMost;
  }
  decision.id = end_;
  decision.where = Cut(std::move(decision.where));
  decision.message = Cut(std::move(decision.message));
  auto entry = std::make_shared<const LoggedDecision>(std::move(decision));
  if (entries_.size() < kEntriesMost) {
    entries_.PushBack(std::move(entry));
  } else {
    entries_.Mutable(end_ % kEntriesMost) = std::move(entry);
  }
  ++end_;
}

void DecisionLog::Add(DecisionKind kind, const GangDecision& decision, std::string message,
                      WallTime when) {
  Add({.when = when,
       .gang = {decision.key, decision.single},
       .kind = kind,
       .pods = decision.pods.size(),
       .where = WhereOf(decision),
       .message = std::move(message)});
}

}  // namespace tahoma::controller
