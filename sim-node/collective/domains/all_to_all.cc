#include "sim-node/collective/domains/all_to_all.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "sim-node/collective/algorithms/moves.h"

namespace tahoma::sim {
namespace {

// The members of one group, which follow one another.
std::vector<Member> MembersOf(const DomainSet::Group& group, const std::vector<Member>& members) {
  const auto first = members.begin() + static_cast<std::ptrdiff_t>(group.members.front());
  return {first, first + std::ssize(group.members)};
}

std::uint64_t RanksOf(const std::vector<Member>& members) {
  std::uint64_t ranks = 0;
  for (const Member& member : members) ranks += static_cast<std::uint64_t>(member.ranks);
  return ranks;
}

// Returns what the chips of one domain send to those of another, as if the first ranks were theirs.
Step StepBetween(const Request& request, const std::vector<Member>& senders,
                 const std::vector<Member>& receivers, std::uint64_t block) {
  std::vector<Member> both = senders;
  both.insert(both.end(), receivers.begin(), receivers.end());
  const int from = Fabric::DomainOf(senders[0].chip);
  const int to = Fabric::DomainOf(receivers[0].chip);
  const std::uint64_t before = RanksOf(senders) * block;
  Step step;
  for (Send send : AllToAllAmong(request, both, block)) {
    if (Fabric::DomainOf(send.from) != from || Fabric::DomainOf(send.to) != to) continue;
    send.offset -= before;
    step.push_back(send);
  }
  return step;
}

}  // namespace

std::optional<std::vector<DomainSet::Kind>> AllToAllKindsOf(const Request& request,
                                                            const std::vector<Member>& members,
                                                            const DomainSet& set,
                                                            const Fabric& fabric) {
  if (request.operation != Operation::kAllToAll || request.blocks != nullptr) return std::nullopt;
  std::map<std::pair<torus::ChipMask, std::vector<int>>, DomainSet::Kind> by_traits;
  for (std::size_t i = 0; i < set.size(); ++i) {
    const DomainSet::Group& group = set.groups()[i];
    std::vector<int> traits;
    for (std::size_t place = 0; place < group.members.size(); ++place) {
      if (group.members[place] != group.members[0] + place) return std::nullopt;
      const Member& member = members[group.members[place]];
      traits.push_back(Fabric::LocalOf(member.chip).value());
      traits.push_back(member.ranks);
      for (const NicDirection direction : {NicDirection::kOut, NicDirection::kIn}) {
        if (fabric.capacity(fabric.NicOf(member.chip, direction)) == 0) return std::nullopt;
      }
    }
    by_traits[{group.through, std::move(traits)}].push_back(i);
  }
  std::vector<DomainSet::Kind> kinds;
  for (auto& [traits, kind] : by_traits) kinds.push_back(std::move(kind));
  std::ranges::sort(kinds);
  return kinds;
}

Schedule AllToAllOver(const Request& request, const std::vector<Member>& members,
                      const DomainSet& set, const std::vector<DomainSet::Kind>& kinds,
                      std::uint64_t block) {
  std::vector<std::uint64_t> ranks_before = {0};  // by member
  for (const Member& member : members) {
    ranks_before.push_back(ranks_before.back() + static_cast<std::uint64_t>(member.ranks));
  }
  Schedule schedule;
  std::vector<std::vector<Member>> first;  // of each kind: the members of the first group
  std::vector<std::shared_ptr<const MeshDomains>> lists;
  for (const DomainSet::Kind& kind : kinds) {
    const DomainSet::Group& front = set.groups()[kind.front()];
    first.push_back(MembersOf(front, members));
    ScheduledStep inside{.step = static_cast<std::uint32_t>(schedule.steps.size()),
                         .copies = {},
                         .through = front.through};
    MeshDomains domains;
    for (const std::size_t i : kind) {
      const DomainSet::Group& group = set.groups()[i];
      const std::uint64_t before = ranks_before[group.members.front()];
      inside.copies.push_back({.chips = (group.domain - front.domain) * Fabric::kChipsPerDomain,
                               .bytes = before * block});
      domains.push_back({.domain = group.domain, .number = before});
    }
    lists.push_back(std::make_shared<const MeshDomains>(std::move(domains)));
    schedule.steps.push_back(AllToAllAmong(request, first.back(), block));
    schedule.scheduled.push_back(std::move(inside));
  }
  Step between;
  for (std::size_t from = 0; from < kinds.size(); ++from) {
    for (std::size_t to = 0; to < kinds.size(); ++to) {
      if (from == to && kinds[from].size() == 1) continue;
      schedule.meshes.push_back({.senders = lists[from],
                                 .receivers = lists[to],
                                 .by_sender = {.to_offset = block},
                                 .by_receiver = {.offset = block}});
      Step step = from == to ? AllToAllAmong(request, first[from], block)
                             : StepBetween(request, first[from], first[to], block);
      for (Send& send : step) send.mesh = static_cast<std::uint32_t>(schedule.meshes.size());
      between.insert(between.end(), step.begin(), step.end());
    }
  }
  schedule.scheduled.push_back({.step = static_cast<std::uint32_t>(schedule.steps.size())});
  schedule.steps.push_back(std::move(between));
  return schedule;
}

}  // namespace tahoma::sim
