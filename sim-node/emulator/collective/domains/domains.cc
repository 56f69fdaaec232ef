#include "sim-node/emulator/collective/domains/domains.h"

#include <algorithm>
#include <utility>

#include "lib/base/check.h"
#include "lib/base/status.h"
#include "sim-node/emulator/collective/domains/nic_proxies.h"
#include "sim-node/emulator/collective/plan/plan.h"

namespace tahoma::sim {
namespace {

constexpr int kWhole = 1000;

int NicOf(const Fabric& fabric, torus::ChipIndex chip) {
  if (fabric.efa().id_count() == 0) return kWhole;
  return std::min(fabric.permille(fabric.NicOf(chip, NicDirection::kOut)),
                  fabric.permille(fabric.NicOf(chip, NicDirection::kIn)));
}

}  // namespace

DomainSet::DomainSet(const std::vector<Member>& members, const Fabric& fabric) {
  // The fullest chip decides what ranks on one chip cost, and among equals that with the fewest
  // banks.
  const auto less_costly = [](const Member& one, const Member& other) {
    return std::pair(one.ranks, -one.banks) < std::pair(other.ranks, -other.banks);
  };
  Member fullest{.chip = torus::ChipIndex(0)};
  if (!members.empty()) fullest = *std::ranges::max_element(members, less_costly);
  banks_ = fullest.banks;
  for (std::size_t i = 0; i < members.size(); ++i) {
    const int domain = Fabric::DomainOf(members[i].chip);
    const auto [known, added] = group_of_.try_emplace(domain, groups_.size());
    if (added)
      groups_.push_back({.domain = domain, .members = {}, .local = {}, .nics = {}, .proxies = {}});
    Group& group = groups_[known->second];
    group.members.push_back(i);
    group.local.push_back(
        {.chip = Fabric::LocalOf(members[i].chip), .ranks = fullest.ranks, .banks = fullest.banks});
    group.nics.push_back(NicOf(fabric, members[i].chip));
  }
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    Group& group = groups_[i];
    group.through = SetOf(group.local, fabric.domain(group.domain)).through();
    group.proxies = ProxiesOf(group.local, group.nics, fabric.domain(group.domain).torus());
    even_ = even_ && group.local.size() == groups_[0].local.size() && !HasProxies(group);
    const auto kind = std::ranges::find_if(kinds_, [&](const Kind& known) {
      const Group& other = groups_[known.front()];
      return other.local == group.local && fabric.Alike(other.domain, group.domain);
    });
    if (kind == kinds_.end()) {
      kinds_.push_back({i});
    } else {
      kind->push_back(i);
    }
  }
}

torus::ChipIndex DomainSet::ChipOf(std::size_t group, std::size_t place) const {
  return Fabric::ChipOf(groups_[group].domain, groups_[group].local[place].chip.value());
}

torus::ChipIndex DomainSet::ProxyOf(torus::ChipIndex chip) const {
  const std::size_t index = GroupOf(chip);
  const Group& group = groups_[index];
  const auto local = std::ranges::find(group.local, Fabric::LocalOf(chip), &Member::chip);
  TAHOMA_CHECK(local != group.local.end());
  return ChipOf(index, group.proxies[static_cast<std::size_t>(local - group.local.begin())]);
}

std::size_t DomainSet::GroupOf(torus::ChipIndex chip) const {
  const auto group = group_of_.find(Fabric::DomainOf(chip));
  TAHOMA_CHECK(group != group_of_.end());
  return group->second;
}

bool HasProxies(const DomainSet::Group& group) {
  for (std::size_t place = 0; place < group.proxies.size(); ++place) {
    if (group.proxies[place] != place) return true;
  }
  return false;
}

absl::Status CheckNics(const DomainSet::Group& group) {
  if (std::ranges::max(group.nics) > 0) return absl::OkStatus();
  return FailedPrecondition("the EFA NICs of all {} chips of domain {} are down",
                            group.local.size(), group.domain);
}

}  // namespace tahoma::sim
