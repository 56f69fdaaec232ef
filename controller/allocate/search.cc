#include "controller/allocate/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "controller/allocate/consumption.h"
#include "controller/allocate/selection.h"
#include "lib/base/check.h"
#include "lib/base/status.h"

namespace tahoma::controller::allocate {
namespace {

bool IsAll(const Alternative& alternative) {
  return alternative.spec->mode == kube::AllocationMode::kAll;
}

}  // namespace

Search::Search(std::span<const WantedPtr> claims, std::span<const Given> given,
               std::span<const Pool> pools, NodeView node, const InUse& in_use,
               const Features& features, std::size_t steps_most)
    : claims_(claims),
      given_(given),
      pools_(pools),
      node_(node),
      features_(features),
      steps_left_(steps_most),
      candidates_(CandidatesOf(pools, in_use, features, counters_)),
      choices_(claims.size()) {
  TAHOMA_CHECK(given.empty() || given.size() == claims.size());
  for (const WantedPtr& claim : claims) {
    std::vector<ConstraintState>& states = constraints_.emplace_back();
    for (const kube::Constraint& constraint : claim->claim.spec.constraints) {
      states.emplace_back(constraint, features.list_attributes);
    }
  }
}

absl::StatusOr<bool> Search::Run() {
  TAHOMA_RETURN_IF_ERROR(MakeRows());
  if (!AddGiven()) return false;
  switch (ChooseRequest({})) {
    case Outcome::kFound:
      return true;
    case Outcome::kStopped:
      return stopped_;
    case Outcome::kNone:
      break;
  }
  for (const Pool& pool : pools_) {
    if (pool.state != PoolState::kInvalid) continue;
    return FailedPrecondition("no devices were found, and pool {}/{} is invalid: {}", pool.driver,
                              pool.name, pool.why);
  }
  return false;
}

absl::Status Search::MakeRows() {
  std::int64_t least = 0;
  for (std::size_t claim = 0; claim < claims_.size(); ++claim) {
    rows_.emplace_back();
    for (const WantedRequest& request : claims_[claim]->requests) {
      std::vector<Row>& rows = rows_.back().emplace_back();
      for (const Alternative& alternative : request.alternatives) {
        rows.push_back({.selected = std::vector<std::int8_t>(candidates_.size(), -1),
                        .all = {},
                        .count = alternative.spec->count});
        if (!IsAll(alternative)) continue;
        const Place at{claim, rows_.back().size() - 1, rows.size() - 1};
        TAHOMA_RETURN_IF_ERROR(Annotate(
            ListAll(at),
            fmt::format("claim {}, request {}", claims_[claim]->claim.name, alternative.name)));
      }
    }
    TAHOMA_RETURN_IF_ERROR(CheckLeast(claim));
    least += least_from_[claim][0];
  }
  if (least <= kDevicesMost) return absl::OkStatus();
  return InvalidArgument("the claims ask for more than {} devices together", kDevicesMost);
}

// "All" is known only when every pool is: a device that is missing now may be one of them.
absl::Status Search::ListAll(const Place& at) {
  for (const Pool& pool : pools_) {
    if (pool.state == PoolState::kIncomplete) {
      return FailedPrecondition("asks for all devices, and pool {}/{} is being published",
                                pool.driver, pool.name);
    }
    if (pool.state == PoolState::kInvalid) {
      return FailedPrecondition("asks for all devices, and pool {}/{} is invalid: {}", pool.driver,
                                pool.name, pool.why);
    }
  }
  Row& row = RowOf(at);
  for (std::size_t i = 0; i < candidates_.size(); ++i) {
    TAHOMA_ASSIGN_OR_RETURN(const bool selected, IsSelected(at, i));
    if (!selected) continue;
    if (features_.consumable_capacity &&
        !ConsumptionOf(AlternativeOf(at).spec->capacities, candidates_[i])) {
      continue;
    }
    row.all.push_back(i);
  }
  row.count = static_cast<std::int64_t>(row.all.size());
  return absl::OkStatus();
}

absl::Status Search::CheckLeast(std::size_t claim) {
  std::vector<std::int64_t>& least = least_from_.emplace_back(rows_[claim].size() + 1, 0);
  for (std::size_t request = rows_[claim].size(); request-- > 0;) {
    const auto fewest = std::ranges::min(rows_[claim][request], {}, &Row::count).count;
    least[request] =
        std::min(least[request + 1] + std::min(fewest, kResultsMost + 1), kResultsMost + 1);
  }
  if (least[0] <= kResultsMost) return absl::OkStatus();
  return InvalidArgument("claim {} asks for more than {} devices", claims_[claim]->claim.name,
                         kResultsMost);
}

// Returns whether the constraints admit the devices that the claims have already.
bool Search::AddGiven() {
  for (std::size_t claim = 0; claim < given_.size(); ++claim) {
    for (const Given::Value& value : given_[claim].values) {
      if (!constraints_[claim].at(value.constraint).AddValues({value.value})) return false;
    }
  }
  return true;
}

Search::Outcome Search::Stop(absl::Status why) {
  stopped_ = std::move(why);
  return Outcome::kStopped;
}

Search::Outcome Search::ChooseRequest(Place at) {
  while (at.claim < claims_.size() && at.request == ClaimOf(at).requests.size()) {
    at = {.claim = at.claim + 1};
  }
  if (at.claim == claims_.size()) return Outcome::kFound;
  const std::size_t before = given_.empty() ? 0 : given_[at.claim].devices;
  const auto chosen = static_cast<std::int64_t>(before + choices_[at.claim].size());
  const std::int64_t later = least_from_[at.claim][at.request + 1];
  for (at.alternative = 0; at.alternative < RequestOf(at).alternatives.size(); ++at.alternative) {
    const std::int64_t count = RowOf(at).count;
    if (count > kResultsMost || chosen + count + later > kResultsMost) continue;
    if (devices_ + count > kDevicesMost) continue;
    const Outcome outcome =
        IsAll(AlternativeOf(at)) ? ChooseAll(at, count) : ChooseDevices(at, 0, count);
    if (outcome != Outcome::kNone) return outcome;
  }
  return Outcome::kNone;
}

// Every device must be taken, in an order that does not matter.
Search::Outcome Search::ChooseAll(const Place& at, std::int64_t left) {
  const Row& row = RowOf(at);
  if (row.count == 0) return Outcome::kNone;  // "all" is at least one
  if (left == 0) return ChooseRequest({.claim = at.claim, .request = at.request + 1});
  return TryDevice(at, row.all[static_cast<std::size_t>(row.count - left)], left);
}

Search::Outcome Search::ChooseDevices(const Place& at, std::size_t from, std::int64_t left) {
  if (left == 0) return ChooseRequest({.claim = at.claim, .request = at.request + 1});
  const bool first = left == RowOf(at).count;
  std::vector<std::size_t> failed;
  for (std::size_t i = from; i < candidates_.size(); ++i) {
    // Too few devices are left. The first device goes through all, for every error to be seen.
    if (!first && candidates_.size() - i < static_cast<std::size_t>(left)) break;
    if (steps_left_ == 0) {
      return Stop(ResourceExhausted("gave up after as many tries as are allowed on one node"));
    }
    --steps_left_;
    if (IsBlocked(at, i)) continue;
    const auto selected = IsSelected(at, i);
    if (!selected.ok()) return Stop(selected.status());
    if (!*selected) continue;
    if (IsLikeOneOf(failed, i)) continue;
    const bool untouched = candidates_[i].taken_by.empty();
    const Outcome outcome = TryDevice(at, i, left);
    if (outcome != Outcome::kNone) return outcome;
    if (untouched) failed.push_back(i);
  }
  return Outcome::kNone;
}

// Each comparison is a step: a node may have very many devices of which no two are alike.
bool Search::IsLikeOneOf(const std::vector<std::size_t>& failed, std::size_t candidate) {
  return std::ranges::any_of(failed, [&](std::size_t other) {
    if (steps_left_ == 0) return false;
    --steps_left_;
    return AreAlike(other, candidate);
  });
}

Search::Outcome Search::TryDevice(const Place& at, std::size_t candidate, std::int64_t left) {
  const bool all = IsAll(AlternativeOf(at));
  bool violated = false;
  if ((all && IsBlocked(at, candidate)) || !Take(at, candidate, violated)) {
    if (!all || !violated) return Outcome::kNone;
    return Stop(InvalidArgument(
        "claim {}, request {} asks for all devices, which a constraint of the claim forbids: "
        "device {} does not go with those before",
        ClaimOf(at).claim.name, AlternativeOf(at).name, candidates_[candidate].device().name));
  }
  const Outcome outcome =
      all ? ChooseAll(at, left - 1) : ChooseDevices(at, candidate + 1, left - 1);
  if (outcome == Outcome::kNone) Undo(at);
  return outcome;
}

// Admin access shares a device with everybody, but a claim has a device once.
bool Search::IsBlocked(const Place& at, std::size_t candidate) const {
  const Candidate& device = candidates_[candidate];
  if (!AlternativeOf(at).spec->admin_access) return device.in_use || !device.taken_by.empty();
  return std::ranges::find(device.taken_by, at.claim) != device.taken_by.end();
}

absl::StatusOr<bool> Search::IsSelected(const Place& at, std::size_t candidate) {
  std::int8_t& known = RowOf(at).selected[candidate];
  if (known < 0) {
    TAHOMA_ASSIGN_OR_RETURN(const bool selected,
                            Selects(AlternativeOf(at), candidates_[candidate], node_, features_));
    known = selected ? 1 : 0;
  }
  return known == 1;
}

bool Search::Tolerates(const Alternative& alternative, const Candidate& candidate) const {
  if (!features_.device_taints) return true;
  return std::ranges::all_of(candidate.device().taints, [&](const kube::Taint& taint) {
    return taint.effect == kube::TaintEffect::kNone ||
           std::ranges::any_of(alternative.spec->tolerations, [&](const kube::Toleration& one) {
             return kube::Tolerates(one, taint);
           });
  });
}

bool Search::AddToConstraints(const Place& at, const Candidate& candidate) {
  std::vector<ConstraintState>& states = constraints_[at.claim];
  for (std::size_t i = 0; i < states.size(); ++i) {
    if (!states[i].AppliesTo(RequestOf(at), AlternativeOf(at)) || states[i].Add(candidate)) {
      continue;
    }
    while (i-- > 0) {
      if (states[i].AppliesTo(RequestOf(at), AlternativeOf(at))) states[i].RemoveLast();
    }
    return false;
  }
  return true;
}

bool Search::Take(const Place& at, std::size_t candidate, bool& violated) {
  Candidate& device = candidates_[candidate];
  Choice choice{at.request, at.alternative, candidate, {}, false};
  if (device.barred || !Tolerates(AlternativeOf(at), device)) return false;
  if (features_.consumable_capacity) {
    auto consumed = ConsumptionOf(AlternativeOf(at).spec->capacities, device);
    if (!consumed) return false;
    if (device.shared) choice.consumed = *std::move(consumed);
  }
  // The first share of a device takes the device's counters for all shares.
  if (!device.counters.empty() && (!device.shared || device.shares == 0)) {
    if (!counters_.Take(device.counters)) return false;
    choice.took_counters = true;
  }
  if (!AddToConstraints(at, device)) {
    if (choice.took_counters) counters_.GiveBack(device.counters);
    violated = true;
    return false;
  }
  if (device.shared) {
    ++device.shares;
    for (std::size_t i = 0; i < choice.consumed.size(); ++i) {
      device.capacities[i].used = device.capacities[i].used + choice.consumed[i];
    }
  } else {
    device.taken_by.push_back(at.claim);
  }
  choices_[at.claim].push_back(std::move(choice));
  ++devices_;
  return true;
}

void Search::Undo(const Place& at) {
  const Choice choice = std::move(choices_[at.claim].back());
  choices_[at.claim].pop_back();
  --devices_;
  Candidate& device = candidates_[choice.candidate];
  if (device.shared) {
    --device.shares;
    for (std::size_t i = 0; i < choice.consumed.size(); ++i) {
      device.capacities[i].used = device.capacities[i].used - choice.consumed[i];
    }
  } else {
    device.taken_by.pop_back();
  }
  for (ConstraintState& state : constraints_[at.claim]) {
    if (state.AppliesTo(RequestOf(at), AlternativeOf(at))) state.RemoveLast();
  }
  if (choice.took_counters) counters_.GiveBack(device.counters);
}

// Returns whether two devices can stand for each other in every choice. When all choices with one
// of them have failed, the other need not be tried: otherwise each subset of equal devices would
// be.
bool Search::AreAlike(std::size_t a, std::size_t b) {
  const Candidate& one = candidates_[a];
  const Candidate& other = candidates_[b];
  const auto same = [](const CapacityState& x, const CapacityState& y) {
    return x.total == y.total && x.used == y.used && x.policy == nullptr && y.policy == nullptr;
  };
  if (one.shared || other.shared || !other.taken_by.empty() || one.in_use != other.in_use ||
      one.barred != other.barred || one.slice->driver != other.slice->driver ||
      one.counters != other.counters || one.device().taints != other.device().taints ||
      !std::ranges::equal(one.device().capacities, other.device().capacities, {},
                          &kube::Capacity::name, &kube::Capacity::name) ||
      !std::ranges::equal(one.capacities, other.capacities, same)) {
    return false;
  }
  for (const auto& states : constraints_) {
    for (const ConstraintState& state : states) {
      if (!SameValues(state.ValuesOf(one), state.ValuesOf(other))) return false;
    }
  }
  for (std::size_t claim = 0; claim < rows_.size(); ++claim) {
    for (std::size_t request = 0; request < rows_[claim].size(); ++request) {
      for (std::size_t i = 0; i < rows_[claim][request].size(); ++i) {
        const std::vector<std::int8_t>& selected = rows_[claim][request][i].selected;
        if (selected[a] == selected[b]) continue;
        const Place at{claim, request, i};
        const auto x = IsSelected(at, a);
        const auto y = IsSelected(at, b);
        if (!x.ok() || !y.ok() || *x != *y) return false;
      }
    }
  }
  return true;
}

}  // namespace tahoma::controller::allocate
