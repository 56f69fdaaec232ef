#include "controller/core/decision_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "lib/base/utf8.h"

namespace tahoma::controller {
namespace {

// Room for ", and 1000000 more".
constexpr std::size_t kMoreBytes = 24;

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

// Returns the first pods with their nodes, and how many more there are.
std::string MembersOf(const GangDecision& decision) {
  std::string members;
  for (std::size_t i = 0; i < decision.pods.size(); ++i) {
    const DecidedPod& pod = decision.pods[i];
    const std::string member = fmt::format("{}{} on {}", i == 0 ? "" : ", ", pod.name, pod.node);
    if (members.size() + member.size() + kMoreBytes > DecisionLog::kTextMost) {
      return members + fmt::format(", and {} more", decision.pods.size() - i);
    }
    members += member;
  }
  return members;
}

// Returns the beginning of the line after the gang: "placed on node-1".
std::string VerbOf(const LoggedDecision& decision) {
  const std::string on = decision.where.empty() ? "" : " on " + decision.where;
  switch (decision.kind) {
    case DecisionKind::kPlaced:
      return "placed" + on;
    case DecisionKind::kBlocked:
      return "waits";
    case DecisionKind::kBound:
      return "bound" + on;
    case DecisionKind::kUndone:
      break;
  }
  return "taken back";
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
  decision.members = Cut(std::move(decision.members));
  auto entry = std::make_shared<const LoggedDecision>(std::move(decision));
  if (entries_.size() < kEntriesMost) {
    entries_.PushBack(std::move(entry));
  } else {
    entries_.Mutable(end_ % kEntriesMost) = std::move(entry);
  }
  ++end_;
}

LoggedDecision LoggedOf(DecisionKind kind, const GangDecision& decision, WallTime when) {
  return {.when = when,
          .gang = {decision.key, decision.single},
          .kind = kind,
          .pods = decision.pods.size(),
          .where = WhereOf(decision),
          .members = decision.single ? "" : MembersOf(decision)};
}

std::string DecisionLine(const LoggedDecision& decision) {
  std::string line = fmt::format("{}: {}", Describe(decision.gang), VerbOf(decision));
  if (decision.reason != GangReason::kNone) {
    line += fmt::format(" ({})", ToString(decision.reason));
  }
  if (!decision.message.empty()) line += ": " + decision.message;
  if (!decision.members.empty()) line += "; pods: " + decision.members;
  if (decision.waited) {
    line += fmt::format("; {:.3f} s after its last pod was created",
                        std::chrono::duration<double>(*decision.waited).count());
  }
  std::ranges::replace_if(
      line, [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; }, ' ');
  return line;
}

}  // namespace tahoma::controller
