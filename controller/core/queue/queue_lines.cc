#include "controller/core/queue/queue_lines.h"

#include <algorithm>
#include <bit>
#include <string_view>

#include "controller/core/journal/usage_record.h"
#include "controller/plan/decision.h"
#include "lib/base/check.h"

namespace tahoma::controller {
namespace {

constexpr std::size_t kBlocks = 0;  // the line of gangs in Capacity Blocks
constexpr std::size_t kAll = 1;     // the only other line without queues

bool Mentions(const DeviceRequest& request, std::string_view text) {
  const auto in = [text](const std::string& selector) {
    return selector.find(text) != std::string::npos;
  };
  return std::ranges::any_of(request.class_selectors, in) ||
         std::ranges::any_of(request.selectors, in);
}

// A device of AWS's driver is a chip at least, unless it may be a core.
std::int64_t LeastOf(const DeviceRequest& request) {
  if (request.admin_access || !Mentions(request, "neuron")) return 0;
  const std::int64_t count = request.mode == AllocationMode::kExactCount
                                 ? std::clamp<std::int64_t>(request.count, 1, 1024)
                                 : 1;
  const bool chips = (Mentions(request, "neuron_device") || Mentions(request, "neuron_node")) &&
                     !Mentions(request, "neuron_core");
  return chips ? count * kEighthsOfChip : count;
}

}  // namespace

WallTime QueueNeed::UnendingUntil(WallTime now) const {
  if (unending.count() == 0) return kEndsAtOnce;
  return unending == std::chrono::seconds::max() ? WallTime::max() : EndOf(now, unending);
}

std::chrono::seconds UnendingOf(const GangSpec& gang) {
  if (gang.preemptible) return std::chrono::seconds(0);
  return gang.max_runtime.value_or(std::chrono::seconds::max());
}

std::int64_t LeastEighthsOf(const GangSpec& gang) {
  const std::size_t members = gang.may_be_fewer() ? gang.min_members : gang.members.size();
  std::set<std::string> seen;
  std::int64_t least = 0;
  for (std::size_t i = 0; i < members; ++i) {
    for (const ClaimSpec& claim : gang.members[i].claims) {
      if (claim.allocated_node || !seen.insert(claim.uid).second) continue;
      for (const ClaimRequest& request : claim.requests) {
        std::int64_t fewest = INT64_MAX;
        for (const DeviceRequest& one : request.alternatives) {
          fewest = std::min(fewest, LeastOf(one));
        }
        if (fewest != INT64_MAX) least += fewest;
      }
    }
  }
  return least;
}

void AddEighths(const Holding& holding, const ClusterState& cluster, Eighths& sum) {
  std::set<std::string> nodes;
  for (const Holding::HeldDevice& device : holding.devices) nodes.insert(device.node);
  for (const std::string& name : nodes) {
    const std::optional<NodeId> id = cluster.FindNode(name);
    const Node* node = id ? cluster.node(*id).node.get() : nullptr;
    if (node == nullptr || node->family == nullptr) continue;
    if (const int eighths = EighthsOf(holding, *node); eighths > 0) {
      sum[node->family->instance_type] += eighths;
    }
  }
}

Eighths EighthsOf(const std::vector<std::shared_ptr<const Holding>>& holdings,
                  const ClusterState& cluster) {
  Eighths sum;
  for (const auto& holding : holdings) AddEighths(*holding, cluster, sum);
  return sum;
}

std::optional<FreeChips> FreeIn(const ClusterState& cluster, DomainId id) {
  if (id.value() >= cluster.domain_count()) return std::nullopt;
  const DomainState& domain = cluster.domain(id);
  const auto node = std::ranges::find_if(domain.nodes, [](NodeId one) { return one.valid(); });
  if (node == domain.nodes.end() || !domain.block.reservation.empty() || domain.block.spare) {
    return std::nullopt;
  }
  return FreeChips{.type = cluster.node(*node).node->family->instance_type,
                   .chips = std::popcount(domain.free)};
}

LineTurns::LineTurns(QueueShares* shares, const std::vector<std::string>& names, WallTime now)
    : shares_(shares), names_(names), now_(now) {
  if (shares_ != nullptr && shares_->tree().any()) turns_.emplace(*shares_, now);
}

LineTurns::~LineTurns() {
  if (shares_ != nullptr) shares_->RollBack(now_);
}

void LineTurns::Add(std::size_t line) {
  if (line <= kAll || !turns_) {
    before_.insert(line);
    return;
  }
  line_of_[names_[line]] = line;
  turns_->Add(names_[line]);
}

void LineTurns::Drop(std::size_t line) {
  if (before_.erase(line) == 0) turns_->Drop(names_[line]);
}

std::optional<std::size_t> LineTurns::First() const {
  if (!before_.empty()) return *before_.begin();
  const std::string* queue = turns_ ? turns_->First() : nullptr;
  if (queue == nullptr) return std::nullopt;
  return line_of_.at(*queue);
}

// The gang's place, and with it the instance type, is not known: the first type counts on which the
// gang may start. A gang without chips counts as a core, so that queues take turns.
void LineTurns::Charge(std::size_t line, const QueueNeed& need) {
  if (line <= kAll || !turns_) return;
  const std::string& queue = names_[line];
  Eighths charge = need.exact;
  for (const std::string& type : shares_->FleetTypes()) {
    if (!need.exact.empty()) break;
    charge = {{type, std::max<std::int64_t>(need.least, 1)}};
    if (!shares_->MayStart(queue, charge, need.gangs())) break;
  }
  shares_->Charge(queue, charge, need.gangs(), now_, need.UnendingUntil(now_));
  turns_->Update(queue);
}

std::size_t QueueLines::LineNamed(const std::string& queue) {
  const auto [found, added] = line_of_.try_emplace(queue, names_.size());
  if (added) names_.push_back(queue);
  return found->second;
}

std::size_t QueueLines::LineOf(const GangSpec& gang) {
  if (!gang.reservation.empty()) return kBlocks;
  if (!ordered()) return kAll;
  const bool known = shares_->tree().IndexOf(gang.queue).has_value();
  return LineNamed(known ? gang.queue : kDefaultQueue);
}

const std::string* QueueLines::BoundBy(const GangSpec& gang) const {
  if (!gang.reservation.empty() || !ordered()) return nullptr;
  return shares_->tree().IndexOf(gang.queue) ? &gang.queue : nullptr;
}

void QueueLines::Put(const ServicePlace& place, const GangSpec& gang, const QueueNeed& need) {
  const std::size_t line = LineOf(gang);
  const bool added =
      gangs_.try_emplace(place.gang, Waiter{.place = place, .line = line, .need = need}).second;
  TAHOMA_CHECK(added);  // else the gang would be planned twice
  lines_[line].insert(place);
}

void QueueLines::Deny(const ServicePlace& place, const GangSpec& gang, const QueueNeed& need,
                      const QueueDenial& why) {
  const std::size_t line = LineOf(gang);
  const Waiter waiter{.place = place, .line = line, .need = need, .denied = true};
  const bool added = gangs_.try_emplace(place.gang, waiter).second;
  TAHOMA_CHECK(added);
  denied_in_[line][need].insert(place);
  lines_waiting_for_[why.by].insert(line);
  to_let_in_.insert(line);  // as in Next
}

// Forgets the line of which no gang is left to be planned.
void QueueLines::Empty(std::size_t line) {
  const auto places = lines_.find(line);
  if (places == lines_.end() || !places->second.empty()) return;
  lines_.erase(places);
  if (turns_) turns_->Drop(line);
}

void QueueLines::Remove(const GangRef& ref) {
  const auto found = gangs_.find(ref);
  if (found == gangs_.end()) return;
  const Waiter waiter = std::move(found->second);
  gangs_.erase(found);
  if (!waiter.denied) {
    lines_.at(waiter.line).erase(waiter.place);
    return Empty(waiter.line);
  }
  auto& needs = denied_in_.at(waiter.line);
  Places& places = needs.at(waiter.need);
  places.erase(waiter.place);
  if (places.empty()) needs.erase(waiter.need);
  if (needs.empty()) denied_in_.erase(waiter.line);
}

bool QueueLines::has_next() const {
  if (!lines_.empty() || !to_let_in_.empty()) return true;
  return !denied_in_.empty() && (free_changed_ || shares_->has_fallen());
}

// Returns why no gang that needs as much may start in the line's queue.
std::optional<QueueDenial> QueueLines::WhyNot(std::size_t line, const QueueNeed& need) const {
  if (line <= kAll || !shares_->limits()) return std::nullopt;
  const WallTime until = need.UnendingUntil(now_);
  if (!need.exact.empty()) {
    return shares_->MayStart(names_[line], need.exact, need.gangs(), until);
  }
  std::optional<QueueDenial> denial = shares_->MayStart(names_[line], {}, need.gangs());
  if (denial) return denial;
  for (const std::string& type : shares_->FleetTypes()) {
    denial = shares_->MayStart(names_[line], {{type, need.least}}, need.gangs(), until);
    if (!denial) return std::nullopt;
  }
  return denial;
}

// Lets gangs back into the lines whose queues may have room by now.
void QueueLines::LetIn() {
  const auto take = [this](const std::string& by) {
    const auto waiting = lines_waiting_for_.find(by);
    if (waiting == lines_waiting_for_.end()) return;
    to_let_in_.merge(waiting->second);
    lines_waiting_for_.erase(waiting);
  };
  const std::set<std::string> fallen =
      shares_ == nullptr ? std::set<std::string>() : shares_->DrainFallen();
  for (const std::string& queue : fallen) take(queue);
  if (std::exchange(free_changed_, false) || !fallen.empty()) take("");
  for (const std::size_t line : std::exchange(to_let_in_, {})) LetInOf(line);
}

void QueueLines::LetInOf(std::size_t line) {
  const auto denied = denied_in_.find(line);
  if (denied == denied_in_.end()) return;
  std::vector<GangRef> back;
  for (const auto& [need, places] : denied->second) {
    if (const auto why = WhyNot(line, need)) {
      lines_waiting_for_[why->by].insert(line);
      continue;
    }
    std::size_t left = kLetInMost;
    for (auto place = places.begin(); place != places.end() && left > 0; ++place, --left) {
      back.push_back(place->gang);
    }
    if (left == 0) to_let_in_.insert(line);
  }
  for (const GangRef& ref : back) {
    Waiter waiter = gangs_.at(ref);
    Remove(ref);
    waiter.denied = false;
    lines_[line].insert(waiter.place);
    gangs_.emplace(ref, std::move(waiter));
  }
}

void QueueLines::CountFree(const ClusterState& before, const ClusterState& now, DomainId id) {
  if (shares_ == nullptr) return;
  const auto count = [&](const ClusterState& state, int sign) {
    const std::optional<FreeChips> free = FreeIn(state, id);
    if (!free) return;
    free_[free->type] += sign * free->chips;
    shares_->SetFree(free->type, free_[free->type]);
  };
  count(before, -1);
  count(now, 1);
  free_changed_ = true;
}

void QueueLines::Begin(WallTime now) {
  now_ = now;
  LetIn();
  turns_.emplace(shares_, names_, now);
  for (const auto& [line, places] : lines_) turns_->Add(line);
}

std::optional<ServicePlace> QueueLines::Next() {
  TAHOMA_CHECK(turns_.has_value());  // a round has begun
  while (const std::optional<std::size_t> line = turns_->First()) {
    const ServicePlace place = *lines_.at(*line).begin();
    Waiter waiter = gangs_.at(place.gang);
    const std::optional<QueueDenial> why = WhyNot(*line, waiter.need);
    if (!why) return place;
    Remove(place.gang);
    waiter.denied = true;
    denied_in_[*line][waiter.need].insert(place);
    lines_waiting_for_[why->by].insert(*line);
    // Gangs may have been charged in this round that get no place: the next round looks again.
    to_let_in_.insert(*line);
    gangs_.emplace(place.gang, std::move(waiter));
    denied_.push_back({.gang = place.gang, .why = *why});
    if (denied_.size() >= kDeniedMost) return std::nullopt;
  }
  return std::nullopt;
}

void QueueLines::Take(const ServicePlace& next) {
  const Waiter waiter = gangs_.at(next.gang);
  turns_->Charge(waiter.line, waiter.need);
  Remove(next.gang);
}

}  // namespace tahoma::controller
