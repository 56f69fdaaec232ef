#include "sim-node/emulator/collective/domains/domains.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "lib/base/check.h"
#include "sim-node/emulator/collective/plan/plan.h"

namespace tahoma::sim {
namespace {

constexpr int kWhole = 1000;

int NicOf(const Fabric& fabric, torus::ChipIndex chip) {
  if (fabric.efa().id_count() == 0) return kWhole;
  return std::min(fabric.permille(fabric.NicOf(chip, NicDirection::kOut)),
                  fabric.permille(fabric.NicOf(chip, NicDirection::kIn)));
}

NetworkLevels LevelsOf(const std::vector<DomainSet::Group>& groups, const EfaNetwork& network) {
  NetworkLevels levels;
  if (network.id_count() == 0) return levels;
  for (int layer = kNetworkLayers; layer > 0; --layer) {
    if (!network.UplinksLimit(layer)) continue;
    std::map<LinkId, int> number;  // of the nodes, by uplink
    std::vector<int> nodes;
    for (const DomainSet::Group& group : groups) {
      const LinkId uplink = network.UplinkOf(group.domain, layer, NicDirection::kOut);
      nodes.push_back(number.try_emplace(uplink, static_cast<int>(number.size())).first->second);
    }
    if (number.size() > 1 && number.size() < groups.size()) levels.push_back(std::move(nodes));
  }
  return levels;
}

}  // namespace

DomainSet::DomainSet(const std::vector<Member>& members, const Fabric& fabric) {
  // The fullest chip decides what ranks on one chip cost.
  const int ranks =
      members.empty() ? 1 : std::ranges::max_element(members, {}, &Member::ranks)->ranks;
  for (std::size_t i = 0; i < members.size(); ++i) {
    const int domain = Fabric::DomainOf(members[i].chip);
    const auto [known, added] = group_of_.try_emplace(domain, groups_.size());
    if (added) groups_.push_back({.domain = domain, .members = {}, .local = {}, .nics = {}});
    Group& group = groups_[known->second];
    group.members.push_back(i);
    group.local.push_back({.chip = Fabric::LocalOf(members[i].chip), .ranks = ranks});
    group.nics.push_back(NicOf(fabric, members[i].chip));
  }
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    Group& group = groups_[i];
    group.through = SetOf(group.local, fabric.domain(group.domain)).through();
    even_ = even_ && group.local.size() == groups_[0].local.size() &&
            std::ranges::all_of(group.nics, [](int nic) { return nic == kWhole; });
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
  levels_ = LevelsOf(groups_, fabric.efa());
}

torus::ChipIndex DomainSet::ChipOf(std::size_t group, std::size_t place) const {
  return Fabric::ChipOf(groups_[group].domain, groups_[group].local[place].chip.value());
}

std::size_t DomainSet::GroupOf(torus::ChipIndex chip) const {
  const auto group = group_of_.find(Fabric::DomainOf(chip));
  TAHOMA_CHECK(group != group_of_.end());
  return group->second;
}

std::vector<DomainSet::Kind> DomainSet::KindsWithNics() const {
  std::vector<Kind> kinds;
  for (const Kind& kind : kinds_) {
    std::map<std::vector<int>, Kind> by_nics;
    for (const std::size_t group : kind) by_nics[groups_[group].nics].push_back(group);
    for (auto& [nics, alike] : by_nics) kinds.push_back(std::move(alike));
  }
  return kinds;
}

bool HasUnequalNics(const DomainSet::Group& group) {
  return std::ranges::count(group.nics, group.nics[0]) != std::ssize(group.nics);
}

std::vector<std::uint64_t> NicRates(const DomainSet& set) {
  std::vector<std::uint64_t> rates;
  for (const DomainSet::Group& group : set.groups()) {
    rates.push_back(std::accumulate(group.nics.begin(), group.nics.end(), std::uint64_t{0}));
  }
  return rates;
}

}  // namespace tahoma::sim
