#include "controller/core/forecast/asked_queues.h"

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "controller/core/queue/queue_lines.h"

namespace tahoma::controller {
namespace {

void CountFleet(const ClusterState& fleet, QueueShares& shares) {
  std::map<std::string, std::int64_t> free;
  for (std::size_t i = 0; i < fleet.domain_count(); ++i) {
    if (const auto one = FreeIn(fleet, DomainId(i))) free[one->type] += one->chips;
  }
  for (const auto& [type, chips] : free) shares.SetFree(type, chips);
}

QueueTree TreeOf(const Snapshot& snapshot) {
  QueueTree::Specs specs;
  std::set<std::string> others;
  snapshot.queues.ForEach([&](const std::string& name, const auto& view) {
    if (view->spec != nullptr) {
      specs[name] = view->spec;
    } else {
      others.insert(name);
    }
  });
  return QueueTree(specs, others);
}

}  // namespace

AskedQueues::AskedQueues(const Snapshot& snapshot, WallTime now) : snapshot_(snapshot), now_(now) {
  shares_.SetTree(TreeOf(snapshot), now);
  if (!ordered()) return;
  TakeHeld(now);
  CountFleet(*snapshot.cluster, shares_);
  if (shares_.limits()) TakeEnds(now);
}

// Views count gangs of queues below, too; shares are told of each queue's own.
void AskedQueues::TakeHeld(WallTime now) {
  const QueueTree& tree = shares_.tree();
  const auto view_of = [&](std::size_t node) {
    const auto* found = snapshot_.queues.Find(tree.nodes()[node].name);
    return found == nullptr ? nullptr : found->get();
  };
  for (std::size_t i = 0; i < tree.nodes().size(); ++i) {
    const QueueView* view = view_of(i);
    if (view == nullptr) continue;
    Own own{.held = view->held_eighths, .running = view->running};
    for (const std::size_t child : tree.nodes()[i].children) {
      const QueueView* below = view_of(child);
      if (below == nullptr) continue;
      for (const auto& [type, eighths] : below->held_eighths) own.held[type] -= eighths;
      own.running -= below->running;
    }
    for (auto& [type, eighths] : own.held) eighths = std::max<std::int64_t>(eighths, 0);
    own.running = std::max<std::int64_t>(own.running, 0);
    shares_.Change(view->name, own.held, own.running, now, now);
    own_[view->name] = std::move(own);
  }
}

void AskedQueues::TakeEnds(WallTime now) {
  snapshot_.gangs.ForEach([&](const GangRef&, const auto& view) {
    if (view->decision == nullptr || !view->run) return;
    const GangDecision& decision = *view->decision;
    if (!decision.end || *decision.end <= now) return;
    HeldUntil held{.end = *decision.end,
                   .queue = decision.queue.empty() ? kDefaultQueue : decision.queue,
                   .amount = {}};
    for (const DecidedClaim& claim : decision.claims) {
      const Holding* holding = snapshot_.cluster->FindHolding(claim.uid);
      if (holding != nullptr) AddEighths(*holding, *snapshot_.cluster, held.amount);
    }
    ends_.push_back(std::move(held));
  });
  std::ranges::sort(ends_, {}, &HeldUntil::end);
}

std::optional<QueueRefusal> AskedQueues::Enter(GangSpec& gang) const {
  const QueueTree& tree = shares_.tree();
  if (!ordered()) return std::nullopt;
  const std::string queue = tree.QueueFor({.ns = gang.key.ns, .queue = gang.queue});
  if (auto refusal = EnterQueue(tree, queue, gang)) return refusal;
  return RefuseWhereFull(tree, queue, [&](const std::string& name) {
    const auto* view = snapshot_.queues.Find(name);
    return view == nullptr ? 0 : (*view)->waiting;
  });
}

std::optional<QueueDenial> AskedQueues::Deny(const GangSpec& gang) const {
  if (!ordered() || !shares_.limits()) return std::nullopt;
  std::optional<QueueDenial> denial = shares_.MayStart(gang.queue, {});
  if (denial) return denial;
  const std::int64_t least = LeastEighthsOf(gang);
  for (const std::string& type : shares_.FleetTypes()) {
    denial = shares_.MayStart(gang.queue, {{type, least}});
    if (!denial) return std::nullopt;
  }
  return denial;
}

std::optional<QueueDenial> AskedQueues::Deny(const GangSpec& gang, const Placement& placement,
                                             const ClusterState& fleet, WallTime when) const {
  if (!ordered() || !shares_.limits()) return std::nullopt;
  const Eighths need = EighthsOf(placement.Holdings(gang, when), fleet);
  if (when <= now_) return shares_.MayStart(gang.queue, need);
  return SharesAt(fleet, when).MayStart(gang.queue, need);
}

// Returns the shares when all runs have ended that end by then.
QueueShares AskedQueues::SharesAt(const ClusterState& fleet, WallTime when) const {
  QueueShares shares = shares_;
  std::map<std::string, Own> own = own_;
  for (const HeldUntil& held : ends_) {
    if (held.end > when) break;
    const auto queue = own.find(held.queue);
    if (queue == own.end() || queue->second.running == 0) continue;
    --queue->second.running;
    Eighths less;
    for (const auto& [type, eighths] : held.amount) {
      std::int64_t& left = queue->second.held[type];
      const std::int64_t part = std::min(eighths, left);
      left -= part;
      less[type] = -part;
    }
    shares.Change(held.queue, less, -1, when, when);
  }
  CountFleet(fleet, shares);
  return shares;
}

std::vector<std::string> AskedQueues::Others(const GangSpec& gang) const {
  std::vector<std::string> names;
  std::size_t left = kOthersMost;
  for (const QueueTree::Node& node : shares_.tree().nodes()) {
    if (!ordered() || left-- == 0) break;
    if (node.name == gang.queue) continue;
    if (shares_.tree().QueueFor({.ns = gang.key.ns, .queue = node.name}) != node.name) continue;
    GangSpec asked = gang;
    asked.queue = node.name;
    if (!EnterQueue(shares_.tree(), node.name, asked)) names.push_back(node.name);
  }
  return names;
}

}  // namespace tahoma::controller
