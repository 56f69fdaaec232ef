#include "controller/plan/decision.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/base/check.h"

namespace tahoma::controller {

WallTime EndOf(WallTime now, std::chrono::seconds runtime) {
  const auto left = std::chrono::floor<std::chrono::seconds>(WallTime::max() - now);
  return runtime < left ? now + runtime : WallTime::max();
}

namespace {

// On a test clock a minute may be the day between two blocks. Its fleet is emulated, and binds a
// gang within this.
constexpr std::chrono::seconds kBindingMostOnTestClock{5};

std::chrono::seconds BindingOf(const BlockUse& use) {
  return use.scale == 1 ? kBindingMost : kBindingMostOnTestClock;
}

// Returns by when the last pod of a gang with a maxRuntime has gone.
WallTime GoneBy(const GangSpec& gang, const BlockUse& use, WallTime now) {
  return EndOf(now, *gang.max_runtime + BindingOf(use) + gang.grace);
}

// Returns whether the hardware may be lent to the gang for long enough.
bool MayBorrow(const BlockUse& use, const GangSpec& gang, WallTime now) {
  const auto end = LoanEnd(use, gang.grace);
  return !use.wanted && (!end || *end >= now + std::chrono::nanoseconds(kLoanLeast) / use.scale);
}

}  // namespace

bool BlocksAdmit(const DomainState& domain, const GangSpec& gang, WallTime now) {
  const BlockUse& use = domain.block;
  if (!gang.reservation.empty()) return use.reservation == gang.reservation;
  if (gang.preemptible && MayBorrow(use, gang, now)) return true;
  if (!use.reservation.empty()) return false;
  if (use.spare && !gang.max_runtime) return false;
  if (!use.kept_from) return true;
  return gang.max_runtime && GoneBy(gang, use, now) <= *use.kept_from;
}

std::optional<std::chrono::seconds> LongestRuntime(const BlockUse& use, const GangSpec& gang,
                                                   WallTime now) {
  if (!use.kept_from || !use.reservation.empty()) return std::nullopt;
  const auto left = std::chrono::floor<std::chrono::seconds>(*use.kept_from - now);
  return left - BindingOf(use) - gang.grace;
}

std::optional<std::vector<DomainId>> DomainsOfBlock(const ClusterState& state,
                                                    const GangSpec& gang) {
  if (gang.reservation.empty()) return std::nullopt;
  std::vector<DomainId> domains;
  for (const std::string& host : gang.block_hosts) {
    if (const auto domain = state.FindDomain(host)) domains.push_back(*domain);
  }
  return domains;
}

MemberPlacement PlacementOn(const MemberSpec& pod, const Node& node) {
  MemberPlacement placed;
  placed.pod = pod.pod;
  placed.uid = pod.uid;
  placed.node = node.name;
  placed.needs = pod.needs;
  return placed;
}

std::string SlicePlacement::ToString() const {
  return fmt::format("{} {}", domain, box.ToString());
}

std::string Placement::ToString() const {
  std::string text;
  for (const SlicePlacement& slice : slices) {
    if (!text.empty()) text += "; ";
    text += slice.ToString();
  }
  if (!slices.empty()) return text;
  std::vector<std::string> seen;
  for (const MemberPlacement& member : members) {
    if (std::find(seen.begin(), seen.end(), member.node) != seen.end()) continue;
    seen.push_back(member.node);
    if (!text.empty()) text += ", ";
    text += member.node;
  }
  return text;
}

std::vector<std::shared_ptr<const Holding>> Placement::Holdings(const GangSpec& gang,
                                                                WallTime now) const {
  std::vector<std::shared_ptr<const Holding>> holdings;
  for (const MemberPlacement& member : members) {
    for (const ClaimPlacement& claim : member.claims) {
      Holding made;
      made.claim = claim.claim;
      made.claim_uid = claim.uid;
      made.holder = gang.Describe();
      if (gang.max_runtime) made.end = EndOf(now, *gang.max_runtime);
      HoldDevicesOf(claim.allocation, made);
      holdings.push_back(std::make_shared<const Holding>(std::move(made)));
    }
  }
  return holdings;
}

void CheckNobodyHolds(const ClusterState& state, const Holding& holding) {
  const NodeState* node = nullptr;  // carried over: devices of one node come together
  for (const Holding::HeldDevice& device : holding.devices) {
    if (device.admin_access) continue;
    if (node == nullptr || node->node->name != device.node) {
      const auto id = state.FindNode(device.node);
      TAHOMA_CHECK(id.has_value());
      node = &state.node(*id);
    }
    const DeviceRole role = node->node->RoleNamed(device.device);
    switch (role.kind) {
      case DeviceKind::kNode:
        TAHOMA_CHECK((node->BusyChips() & node->node->family->devices->chip_mask) == 0);
        break;
      case DeviceKind::kChip:
        TAHOMA_CHECK(node->busy_cores[role.chip] == 0);
        break;
      case DeviceKind::kCore:
        TAHOMA_CHECK((node->busy_cores[role.chip] & role.cores) == 0);
        break;
      case DeviceKind::kOther:  // holds no core
        break;
    }
  }
}

std::string_view ToString(BlockedReason reason) {
  switch (reason) {
    case BlockedReason::kWaitsForCapacity:
      return "WaitsForCapacity";
    case BlockedReason::kWaitsForRepair:
      return "WaitsForRepair";
    case BlockedReason::kNeverFits:
      return "NeverFits";
    case BlockedReason::kNotFound:
      return "NotFoundWithinBound";
    case BlockedReason::kInvalid:
      break;
  }
  return "Invalid";
}

}  // namespace tahoma::controller
