#include "controller/plan/member_fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "controller/plan/order.h"
#include "lib/base/check.h"
#include "lib/base/status.h"

namespace tahoma::controller {
namespace {

// The taint of a chip that does not work (dra-plugin/inventory/pool.h).
constexpr std::string_view kUnhealthyTaint = "tahoma.dev/unhealthy";

const kube::NodeUse& UseOrNothing(const kube::NodeUse* use) {
  static const kube::NodeUse kNothing;
  return use == nullptr ? kNothing : *use;
}

// Returns whether the request tolerates the device's taints. Our own taint is always tolerated.
bool Tolerated(const Device& device, const DeviceRequest& request, bool repaired) {
  return std::all_of(device.taints.begin(), device.taints.end(), [&](const Taint& taint) {
    if (repaired && taint.key == kUnhealthyTaint) return true;
    if (taint.effect == TaintEffect::kNone || Tolerates(ManagedToleration(), taint)) return true;
    return std::any_of(request.tolerations.begin(), request.tolerations.end(),
                       [&](const Toleration& t) { return Tolerates(t, taint); });
  });
}

// Returns whether a chip behind the device is unhealthy and the device itself has no such taint.
bool IsQuietlyUnhealthy(const Room& room, const Device& device, const DeviceRole& role) {
  const bool core = role.kind == DeviceKind::kCore && (room.unhealthy & BitOf(role.chip)) != 0;
  const bool node = role.kind == DeviceKind::kNode && room.unhealthy != 0;
  const bool says_so =
      std::any_of(device.taints.begin(), device.taints.end(), [](const Taint& taint) {
        return taint.effect != TaintEffect::kNone && !Tolerates(ManagedToleration(), taint);
      });
  return (core || node) && !says_so;
}

// Returns Room::server_sizes. The mode can change only while all cores of the node are idle.
std::uint8_t ServerSizes(const NodeState& state) {
  if (!state.node->elected) return Room().server_sizes;
  const ElectedModes& elected = *state.node->elected;
  if (state.BusyChips() != 0) return static_cast<std::uint8_t>(hw::NodesOf(elected.chosen));
  std::uint8_t sizes = 0;
  for (const hw::UltraServerMode mode : elected.offered) {
    sizes |= static_cast<std::uint8_t>(hw::NodesOf(mode));
  }
  return sizes;
}

// Adds the claim's configurations for requests that have devices. A class's configuration for an
// alternative that was not chosen does not apply.
void AddConfigs(const CompiledClaim& claim, Allocation& allocation) {
  allocation.configs.clear();
  for (const DeviceConfig& config : claim.spec->configs) {
    const auto names = [&](const DeviceResult& result) {
      const std::string request = result.request.substr(0, result.request.find('/'));
      return std::ranges::any_of(config.requests, [&](const std::string& name) {
        return name == request || name == result.request;
      });
    };
    if (config.requests.empty() || std::ranges::any_of(allocation.results, names)) {
      allocation.configs.push_back(config);
    }
  }
}

// Adds the results of other drivers' devices to the claim's allocation, in the order of requests.
void AddOthers(const CompiledClaim& claim, Allocation others, Allocation& allocation) {
  struct Given {
    std::size_t request;
    DeviceResult result;
    std::optional<kube::ResultDetails> details;
  };
  std::vector<Given> all;
  const auto add = [&](Allocation& from) {
    for (std::size_t i = 0; i < from.results.size(); ++i) {
      DeviceResult& result = from.results[i];
      const std::string name = result.request.substr(0, result.request.find('/'));
      const auto request = std::ranges::find(claim.spec->requests, name, &ClaimRequest::name);
      const auto details = std::ranges::find(from.details, i, &kube::ResultDetails::result);
      all.push_back(
          {.request = static_cast<std::size_t>(request - claim.spec->requests.begin()),
           .result = std::move(result),
           .details = details == from.details.end() ? std::nullopt : std::optional(*details)});
    }
  };
  add(allocation);
  add(others);
  std::ranges::stable_sort(all, {}, &Given::request);
  allocation.results.clear();
  allocation.details.clear();
  for (Given& one : all) {
    if (one.details) {
      one.details->result = allocation.results.size();
      allocation.details.push_back(*std::move(one.details));
    }
    allocation.results.push_back(std::move(one.result));
  }
  AddConfigs(claim, allocation);
}

}  // namespace

bool IsAll(const DeviceRequest& request) { return request.mode == AllocationMode::kAll; }

bool IsFree(const Room& room, const DeviceRole& role) {
  switch (role.kind) {
    case DeviceKind::kCore:
      return (room.busy_cores[role.chip] & role.cores) == 0 &&
             (room.lnc[role.chip] == 0 || room.lnc[role.chip] == role.lnc);
    case DeviceKind::kChip:
      return (room.chips & BitOf(role.chip)) != 0;
    case DeviceKind::kNode:
    case DeviceKind::kOther:
      break;
  }
  return room.chips == room.node->family->devices->chip_mask;
}

Room RoomOf(const NodeState& state) {
  Room room;
  room.node = state.node.get();
  const NodeTemplate& devices = *state.node->family->devices;
  if (state.node->schedulable()) {
    room.chips = static_cast<std::uint16_t>(devices.chip_mask & ~state.BusyChips());
  }
  room.unhealthy = static_cast<std::uint16_t>(devices.chip_mask & ~devices.healthy_mask);
  room.busy_cores = state.busy_cores;
  room.lnc = state.lnc;
  room.down = devices.down;
  room.server_sizes = ServerSizes(state);
  room.use = state.use;
  room.others = state.others;
  return room;
}

std::shared_ptr<const kube::NodeUse> UseBeside(const MemberSpec& pod,
                                               const std::shared_ptr<const kube::NodeUse>& use) {
  if (pod.needs == nullptr) return use;
  kube::NodeUse together = UseOrNothing(use.get());
  together.Add(*pod.needs);
  return std::make_shared<const kube::NodeUse>(std::move(together));
}

std::string LacksFor(const MemberSpec& pod, const Node& node, const kube::NodeUse* use) {
  if (pod.needs == nullptr || node.allocatable == nullptr) return "";
  return kube::WhyNotOn(*node.allocatable, UseOrNothing(use), *pod.needs);
}

bool MemberFitter::HasEnough(const MemberSpec& pod, const Room& room) {
  if (pod.needs == nullptr || room.node->allocatable == nullptr) return true;
  const bool enough =
      kube::HasRoomFor(*room.node->allocatable, UseOrNothing(room.use.get()), *pod.needs);
  lacked_ = lacked_ || !enough;
  return enough;
}

std::optional<MemberFit> MemberFitter::Fit(const CompiledMember& member, const Room& room) {
  const bool open = room.node->schedulable() && member.spec->node.Admits(*room.node);
  if (!open && !room.repaired) return std::nullopt;
  return FitAdmitted(member, room);
}

std::optional<MemberFit> MemberFitter::FitAdmitted(const CompiledMember& member, const Room& room) {
  if (!HasEnough(*member.spec, room)) return std::nullopt;
  std::optional<MemberFit> fit = FitDevices(member, room);
  if (fit) fit->left.use = UseBeside(*member.spec, room.use);
  return fit;
}

std::optional<MemberFit> MemberFitter::FitDevices(const CompiledMember& member, const Room& room) {
  tries_ = 0;
  MemberFit fit;
  if (FitClaims(member, 0, room, fit)) return fit;
  std::size_t requests = 0;
  std::size_t rules = 0;
  for (const CompiledClaim& claim : member.claims) {
    requests += claim.requests.size() + (claim.others == nullptr ? 0 : 1);
    rules += claim.constraints.size();
  }
  // With one request and one rule every assignment has been tried already.
  return requests > 1 || rules > 1 ? FitExactly(member, room, false) : std::nullopt;
}

bool MemberFitter::FitClaims(const CompiledMember& member, std::size_t index, const Room& room,
                             MemberFit& into) {
  if (index == member.claims.size()) {
    into.left = room;
    return FitOthers(member, into);
  }
  std::vector<Pick> picks;
  return ChooseAlternatives(member, index, room, picks, into);
}

std::optional<MemberFitter::Pick> MemberFitter::Open(const CompiledRequest& request,
                                                     const CompiledAlternative& alternative,
                                                     const Room& room) {
  const Eligible& eligible = eligibility_.Of(alternative.selectors, *room.node);
  if (!eligible.error.ok() || eligible.devices.empty()) return std::nullopt;
  if (alternative.nodes != 0 && (room.server_sizes & alternative.nodes) == 0) return std::nullopt;
  Pick pick{.request = &request,
            .alternative = &alternative,
            .kind = eligible.kind,
            .selected = eligible.devices.size(),
            .devices = {},
            .taken = {}};
  const bool any = alternative.spec->admin_access;
  for (const std::uint16_t index : eligible.devices) {
    const Device& device = room.node->device(index);
    const DeviceRole& role = room.node->role(index);
    if (!Tolerated(device, *alternative.spec, room.repaired)) continue;
    if (!any && IsQuietlyUnhealthy(room, device, role)) continue;
    const bool lnc_fits = alternative.lnc == 0 || alternative.lnc == role.lnc;
    const bool free = IsFree(room, role) && (role.kind != DeviceKind::kCore || lnc_fits);
    if (free || any) pick.devices.push_back(index);
  }
  const std::size_t needed =
      IsAll(*alternative.spec) ? pick.selected : static_cast<std::size_t>(alternative.spec->count);
  if (pick.devices.size() < needed) return std::nullopt;
  return pick;
}

// Tries requests in order and the alternatives of each in order; takes the first combination that
// fits.
bool MemberFitter::ChooseAlternatives(const CompiledMember& member, std::size_t index,
                                      const Room& room, std::vector<Pick>& picks, MemberFit& into) {
  const CompiledClaim& claim = member.claims[index];
  if (picks.size() == claim.requests.size()) return Constrain(member, index, room, picks, 0, into);
  const CompiledRequest& request = claim.requests[picks.size()];
  for (const CompiledAlternative& alternative : request.alternatives) {
    auto pick = Open(request, alternative, room);
    if (!pick) continue;
    picks.push_back(*std::move(pick));
    if (ChooseAlternatives(member, index, room, picks, into)) return true;
    picks.pop_back();
  }
  return false;
}

bool MemberFitter::Constrain(const CompiledMember& member, std::size_t index, const Room& room,
                             std::vector<Pick> picks, std::size_t constraint, MemberFit& into) {
  const CompiledClaim& claim = member.claims[index];
  if (constraint == claim.constraints.size()) {
    if (++tries_ > kTriesMax) return false;
    Room left = room;
    if (!TakeAll(claim, picks, left)) return false;
    Write(claim, picks, *room.node, into);
    if (FitClaims(member, index + 1, left, into)) return true;
    into.claims.pop_back();
    into.given.pop_back();
    return false;
  }
  const CompiledConstraint& rule = claim.constraints[constraint];
  const auto value_of = [&](std::uint16_t device) {
    return room.node->Lookup(device, rule.attribute.domain, rule.attribute.id);
  };
  const auto covers = [&](const Pick& pick) {
    return rule.Covers(pick.request->name, pick.alternative->name);
  };
  std::vector<AttributeValue> values;
  for (Pick& pick : picks) {
    if (!covers(pick)) continue;
    // A device without the attribute does not meet the constraint.
    std::erase_if(pick.devices, [&](std::uint16_t d) { return value_of(d) == nullptr; });
    for (const std::uint16_t device : pick.devices) {
      const AttributeValue& value = *value_of(device);
      if (std::find(values.begin(), values.end(), value) == values.end()) values.push_back(value);
    }
  }
  if (rule.distinct) return Constrain(member, index, room, std::move(picks), constraint + 1, into);
  const bool covered = std::any_of(picks.begin(), picks.end(), covers);
  if (!covered) return Constrain(member, index, room, std::move(picks), constraint + 1, into);
  for (const AttributeValue& value : values) {
    std::vector<Pick> narrowed = picks;
    for (Pick& pick : narrowed) {
      if (!covers(pick)) continue;
      std::erase_if(pick.devices, [&](std::uint16_t d) { return *value_of(d) != value; });
    }
    if (Constrain(member, index, room, std::move(narrowed), constraint + 1, into)) return true;
  }
  return false;
}

// Keeps one candidate per value for distinctAttribute, without the values that another request of
// the constraint has taken.
void MemberFitter::DropTakenValues(const CompiledClaim& claim, const std::vector<Pick>& picks,
                                   Pick& pick, const Room& room) const {
  const bool any = pick.alternative->spec->admin_access;
  for (const CompiledConstraint& rule : claim.constraints) {
    if (!rule.distinct || !rule.Covers(pick.request->name, pick.alternative->name)) continue;
    std::vector<AttributeValue> used;
    const auto value_of = [&](std::uint16_t device) {
      return room.node->Lookup(device, rule.attribute.domain, rule.attribute.id);
    };
    for (const Pick& other : picks) {
      if (!rule.Covers(other.request->name, other.alternative->name)) continue;
      for (const std::uint16_t device : other.taken) used.push_back(*value_of(device));
    }
    std::erase_if(pick.devices, [&](std::uint16_t device) {
      // A device that another request of the claim took must not be the candidate of its value.
      if (!any && !IsFree(room, room.node->role(device))) return true;
      const AttributeValue* value = value_of(device);
      if (value == nullptr || std::find(used.begin(), used.end(), *value) != used.end()) {
        return true;
      }
      used.push_back(*value);
      return false;
    });
  }
}

bool MemberFitter::TakeAll(const CompiledClaim& claim, std::vector<Pick>& picks, Room& room) const {
  std::vector<std::size_t> order(picks.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  // The least flexible requests take first: mode All, then larger counts.
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const DeviceRequest& left = *picks[a].alternative->spec;
    const DeviceRequest& right = *picks[b].alternative->spec;
    if (IsAll(left) != IsAll(right)) return IsAll(left);
    return left.count > right.count;
  });
  std::size_t results = 0;
  for (const std::size_t i : order) {
    DropTakenValues(claim, picks, picks[i], room);
    if (!Take(picks[i], room)) return false;
    results += picks[i].taken.size();
  }
  return results <= static_cast<std::size_t>(allocate::kResultsMost);
}

bool MemberFitter::Take(Pick& pick, Room& room) const {
  const DeviceRequest& wanted = *pick.alternative->spec;
  if (IsAll(wanted) && pick.devices.size() != pick.selected) return false;
  if (!IsAll(wanted) && pick.devices.size() < static_cast<std::size_t>(wanted.count)) return false;
  if (wanted.admin_access) {
    const std::size_t count =
        IsAll(wanted) ? pick.devices.size() : static_cast<std::size_t>(wanted.count);
    pick.taken.assign(pick.devices.begin(),
                      pick.devices.begin() + static_cast<std::ptrdiff_t>(count));
    return true;
  }
  switch (pick.kind) {
    case DeviceKind::kChip:
      return TakeChips(pick, room);
    case DeviceKind::kNode:
      return TakeNode(pick, room);
    case DeviceKind::kCore:
      return TakeCores(pick, room);
    case DeviceKind::kOther:
      break;
  }
  return false;
}

bool MemberFitter::TakeChips(Pick& pick, Room& room) const {
  std::uint16_t candidates = 0;
  for (const std::uint16_t device : pick.devices) {
    candidates |= BitOf(room.node->role(device).chip);
  }
  candidates &= room.chips;
  const bool all = IsAll(*pick.alternative->spec);
  const int count = static_cast<int>(all ? pick.selected
                                         : static_cast<std::size_t>(pick.alternative->spec->count));
  const hw::InstanceType* type = room.node->family->type;
  torus::Shape shape = type == nullptr ? torus::kInstanceShape : type->torus;
  if (type != nullptr && type->fabric == hw::FabricKind::kSwitch) shape = torus::Shape();
  const hw::ChipModel& model = type == nullptr ? hw::kTrainium2 : *type->chip;
  const auto chosen = choice_.Choose(candidates, count, room.down, shape, model);
  if (!chosen) return false;
  TAHOMA_CHECK((*chosen & ~candidates) == 0 && std::popcount(*chosen) == count);
  for (int chip = 0; chip < kChipsPerNode; ++chip) {
    if ((*chosen & BitOf(chip)) == 0) continue;
    pick.taken.push_back(room.node->family->devices->chips[static_cast<std::size_t>(chip)]);
    room.busy_cores[static_cast<std::size_t>(chip)] = 0xff;
  }
  room.chips &= static_cast<std::uint16_t>(~*chosen);
  return true;
}

bool MemberFitter::TakeNode(Pick& pick, Room& room) const {
  const std::uint16_t all = room.node->family->devices->chip_mask;
  if (pick.devices.empty() || room.chips != all) return false;
  if (!IsAll(*pick.alternative->spec) && pick.alternative->spec->count != 1) return false;
  pick.taken.push_back(pick.devices.front());
  room.chips = 0;
  room.busy_cores.fill(0xff);
  return true;
}

// Takes cores of one logical size for the request: from started chips before whole chips, and from
// the fullest started chip that still fits everything.
bool MemberFitter::TakeCores(Pick& pick, Room& room) const {
  const bool all = IsAll(*pick.alternative->spec);
  const std::size_t count =
      all ? pick.selected : static_cast<std::size_t>(pick.alternative->spec->count);
  for (const std::uint8_t lnc : {std::uint8_t{2}, std::uint8_t{1}}) {
    std::array<std::vector<std::uint16_t>, kChipsPerNode> by_chip;
    for (const std::uint16_t device : pick.devices) {
      const DeviceRole& role = room.node->role(device);
      const bool free = (room.busy_cores[role.chip] & role.cores) == 0;
      const bool same = room.lnc[role.chip] == 0 || room.lnc[role.chip] == lnc;
      if (role.lnc == lnc && free && same) by_chip[role.chip].push_back(device);
    }
    std::vector<std::size_t> order;
    for (std::size_t chip = 0; chip < by_chip.size(); ++chip) {
      if (!by_chip[chip].empty()) order.push_back(chip);
    }
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      const auto rank = [&](std::size_t chip) {
        const bool whole = room.busy_cores[chip] == 0;
        const bool enough = by_chip[chip].size() >= count;
        const auto size = static_cast<int>(by_chip[chip].size());
        return CoreChipOrder{!enough, whole, enough ? size : -size};
      };
      return rank(a) < rank(b);
    });
    std::vector<std::uint16_t> taken;
    for (const std::size_t chip : order) {
      for (const std::uint16_t device : by_chip[chip]) {
        if (taken.size() < count) taken.push_back(device);
      }
    }
    if (taken.size() < count) continue;
    for (const std::uint16_t device : taken) {
      const DeviceRole& role = room.node->role(device);
      room.busy_cores[role.chip] |= role.cores;
      room.lnc[role.chip] = role.lnc;
      room.chips &= static_cast<std::uint16_t>(~BitOf(role.chip));
    }
    pick.taken = std::move(taken);
    return true;
  }
  return false;
}

void MemberFitter::Write(const CompiledClaim& claim, const std::vector<Pick>& picks,
                         const Node& node, MemberFit& into) {
  ClaimPlacement& made = into.claims.emplace_back();
  made.claim = claim.spec->key;
  made.uid = claim.spec->uid;
  made.allocation.node = node.name;
  for (const Pick& pick : picks) {
    std::vector<Toleration> tolerations = pick.alternative->spec->tolerations;
    if (std::find(tolerations.begin(), tolerations.end(), ManagedToleration()) ==
        tolerations.end()) {
      tolerations.push_back(ManagedToleration());
    }
    for (const std::uint16_t device : pick.taken) {
      made.allocation.results.push_back({.request = pick.alternative->name,
                                         .driver = std::string(kNeuronDriver),
                                         .pool = node.name,
                                         .device = node.device(device).name,
                                         .admin_access = pick.alternative->spec->admin_access,
                                         .tolerations = tolerations});
    }
  }
  // The API server admits no more results. Both ways to take devices count the results.
  TAHOMA_CHECK(made.allocation.results.size() <= static_cast<std::size_t>(allocate::kResultsMost));
  AddConfigs(claim, made.allocation);
  AddGiven(claim, picks, node, into);
}

void MemberFitter::AddGiven(const CompiledClaim& claim, const std::vector<Pick>& picks,
                            const Node& node, MemberFit& into) {
  allocate::Given& given = into.given.emplace_back();
  if (claim.others == nullptr) return;
  given.devices = into.claims.back().allocation.results.size();
  for (std::size_t i = 0; i < claim.constraints.size(); ++i) {
    const CompiledConstraint& rule = claim.constraints[i];
    for (const Pick& pick : picks) {
      if (!rule.Covers(pick.request->name, pick.alternative->name)) continue;
      for (const std::uint16_t device : pick.taken) {
        const auto* value = node.Lookup(device, rule.attribute.domain, rule.attribute.id);
        TAHOMA_CHECK(value != nullptr);  // else the chip would break the constraint
        given.values.push_back({.constraint = i, .value = value});
      }
    }
  }
}

bool MemberFitter::FitOthers(const CompiledMember& member, MemberFit& fit) {
  std::vector<allocate::WantedPtr> wanted;
  std::vector<allocate::Given> given;
  std::vector<std::size_t> claims;
  for (std::size_t i = 0; i < member.claims.size(); ++i) {
    if (member.claims[i].others == nullptr) continue;
    wanted.push_back(member.claims[i].others);
    given.push_back(fit.given[i]);
    claims.push_back(i);
  }
  if (wanted.empty()) return true;
  auto found = others_.Fit(wanted, given, *fit.left.node, fit.left.others.get());
  if (!found) {
    lacked_ = true;
    return false;
  }
  std::vector<HeldOther> held;
  if (fit.left.others != nullptr) held = *fit.left.others;
  for (std::size_t i = 0; i < claims.size(); ++i) {
    for (HeldOther& one : HeldOthers((*found)[i])) held.push_back(std::move(one));
    AddOthers(member.claims[claims[i]], std::move((*found)[i]), fit.claims[claims[i]].allocation);
  }
  fit.left.others = std::make_shared<const std::vector<HeldOther>>(std::move(held));
  return true;
}

std::optional<MemberFitter::ChipRange> MemberFitter::ChipsOn(const CompiledMember& member,
                                                             const Node& node) {
  ChipRange sum;
  for (const CompiledClaim& claim : member.claims) {
    for (const CompiledRequest& request : claim.requests) {
      std::optional<ChipRange> range;
      for (const CompiledAlternative& alternative : request.alternatives) {
        const DeviceRequest& spec = *alternative.spec;
        const Eligible& eligible = eligibility_.Of(alternative.selectors, node);
        const auto count =
            IsAll(spec) ? eligible.devices.size() : static_cast<std::size_t>(spec.count);
        if (!eligible.error.ok() || count == 0 || count > eligible.devices.size()) continue;
        int chips = 0;
        if (eligible.kind == DeviceKind::kNode) chips = std::popcount(eligible.chips);
        if (eligible.kind == DeviceKind::kChip) chips = static_cast<int>(count);
        if (spec.admin_access) chips = 0;
        if (!range) range = ChipRange{chips, chips};
        range->least = std::min(range->least, chips);
        range->most = std::max(range->most, chips);
      }
      if (!range) return std::nullopt;
      sum.least += range->least;
      sum.most += range->most;
    }
  }
  return sum;
}

std::optional<MemberFitter::Demand> MemberFitter::RequestDemand(const CompiledRequest& request,
                                                                const Node& node,
                                                                absl::Status& error) {
  for (const CompiledAlternative& alternative : request.alternatives) {
    const Eligible& eligible = eligibility_.Of(alternative.selectors, node);
    if (!eligible.error.ok()) {
      error = Annotate(
          eligible.error,
          fmt::format("device {} of node {}", node.device(eligible.error_device).name, node.name));
    }
    const auto count = IsAll(*alternative.spec) ? eligible.devices.size()
                                                : static_cast<std::size_t>(alternative.spec->count);
    if (!eligible.error.ok() || count == 0 || count > eligible.devices.size()) continue;
    Demand demand;
    if (alternative.spec->admin_access) return demand;
    if (eligible.kind == DeviceKind::kNode) demand.chips = std::popcount(eligible.chips);
    if (eligible.kind == DeviceKind::kChip) demand.chips = static_cast<int>(count);
    if (eligible.kind == DeviceKind::kCore) demand.cores = static_cast<int>(count);
    for (const std::uint16_t device : eligible.devices) {
      const int lnc = node.role(device).lnc;
      if (alternative.lnc != 0 && alternative.lnc != lnc) continue;
      demand.lnc1 = demand.lnc1 || lnc == 1;
      demand.lnc2 = demand.lnc2 || lnc == 2;
    }
    return demand;
  }
  return std::nullopt;
}

bool MemberFitter::ReadsOwn(const CompiledMember& member, const Node& node) {
  for (const CompiledClaim& claim : member.claims) {
    for (const CompiledRequest& request : claim.requests) {
      for (const CompiledAlternative& alternative : request.alternatives) {
        if (eligibility_.ReadsOwn(alternative.selectors, node)) return true;
      }
    }
  }
  return false;
}

bool MemberFitter::FitReadsOwn(const CompiledMember& member, const Node& node) {
  if (member.wants_others()) return true;
  const NodeTemplate& devices = *node.family->devices;
  const auto is_own = [&](const CompiledConstraint& rule) {
    const auto& names = devices.slot_names;
    const auto slot = std::find(names.begin(), names.end(), rule.attribute);
    return slot != names.end() &&
           devices.own_slot[static_cast<std::size_t>(std::distance(names.begin(), slot))];
  };
  const auto constrains = [&](const CompiledClaim& claim) {
    return std::any_of(claim.constraints.begin(), claim.constraints.end(), is_own);
  };
  return ReadsOwn(member, node) ||
         std::any_of(member.claims.begin(), member.claims.end(), constrains);
}

std::optional<MemberFitter::Demand> MemberFitter::DemandOn(const CompiledMember& member,
                                                           const Node& node, absl::Status& error) {
  Demand sum;
  for (const CompiledClaim& claim : member.claims) {
    for (const CompiledRequest& request : claim.requests) {
      const auto demand = RequestDemand(request, node, error);
      if (!demand) return std::nullopt;
      sum.chips += demand->chips;
      sum.cores = std::max(sum.cores, demand->cores);
      sum.lnc1 = sum.lnc1 || demand->lnc1;
      sum.lnc2 = sum.lnc2 || demand->lnc2;
    }
  }
  return sum;
}

}  // namespace tahoma::controller
