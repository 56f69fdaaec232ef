#include "sim-node/emulator/collective/domains/all_to_all.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "sim-node/emulator/collective/algorithms/moves.h"
#include "sim-node/emulator/collective/plan/chip_cost.h"
#include "sim-node/emulator/collective/schedule/blocks.h"

namespace tahoma::sim {
namespace {

// The members of one group, which follow one another.
std::vector<Member> MembersOf(const DomainSet::Group& group, const std::vector<Member>& members) {
  const auto first = members.begin() + static_cast<std::ptrdiff_t>(group.members.front());
  return {first, first + std::ssize(group.members)};
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

using Ends = std::vector<std::uint32_t>;

class AllToAllMaker {
 public:
  explicit AllToAllMaker(const AllToAllInput& input) : input_(input) {
    std::vector<std::uint64_t> ranks_before = {0};  // by member
    for (const Member& member : input.members) {
      ranks_before.push_back(ranks_before.back() + static_cast<std::uint64_t>(member.ranks));
    }
    for (const DomainSet::Kind& kind : input.kinds) {
      const DomainSet::Group& front = input.set.groups()[kind.front()];
      Side& side = sides_.emplace_back();
      side.first = MembersOf(front, input.members);
      side.through = front.through;
      MeshDomains domains;
      for (const std::size_t i : kind) {
        const DomainSet::Group& group = input.set.groups()[i];
        const std::uint64_t before = ranks_before[group.members.front()];
        side.chips.push_back((group.domain - front.domain) * Fabric::kChipsPerDomain);
        side.starts.push_back(before * input.block);
        domains.push_back({.domain = group.domain, .number = before});
      }
      side.domains = std::make_shared<const MeshDomains>(std::move(domains));
      for (const Member& member : side.first) AddAreas(member, side);
    }
  }

  Schedule Make() {
    for (std::size_t from = 0; from < sides_.size(); ++from) {
      for (std::size_t to = 0; to < sides_.size(); ++to) {
        if (from != to || sides_[from].chips.size() > 1) AddMessages(from, to);
      }
    }
    if (!direct_.empty()) schedule_.Append(std::move(direct_), StartOnly(), {});
    Ends handed;
    for (const auto& [kinds, step] : handed_over_) {
      handed.push_back(Hand(sides_[kinds.first], sides_[kinds.second], step, {}));
    }
    std::vector<Ends> on(sides_.size());
    if (!relayed_.empty()) {
      const Ends sent = {schedule_.Append(std::move(relayed_), StartOnly(), {.after = handed})};
      for (const auto& [kinds, step] : handed_on_) {
        const auto& [from, to] = kinds;
        const std::uint32_t last = Hand(sides_[to], sides_[from], step, sent);
        // Parts of a domain's own chips are handed on with those of its kind, and then replaced.
        if (from == to) on[to].push_back(last);
      }
    }
    for (std::size_t kind = 0; kind < sides_.size(); ++kind) AddInside(sides_[kind], on[kind]);
    schedule_.relay_bytes = relay_bytes_;
    return std::move(schedule_);
  }

 private:
  // A kind of domains.
  struct Side {
    std::vector<Member> first;          // of the first group
    std::vector<int> chips;             // of each group: how much higher its chips are numbered
    std::vector<std::uint64_t> starts;  // of each group: bytes of the blocks before its first
    std::shared_ptr<const MeshDomains> domains;
    torus::ChipMask through = 0;
    std::uint64_t relay_bytes = 0;
  };
  // The place of what others relay for a chip, behind their buffers, where it lies as in the chip's
  // own memory.
  struct Area {
    std::uint64_t begin = 0;
    std::uint64_t base = 0;  // of the chip's memory that is first in it
  };
  using Areas = std::map<torus::ChipIndex, Area>;

  void AddAreas(const Member& member, Side& side) {
    const std::uint64_t bytes = input_.request.bytes * static_cast<std::uint64_t>(member.ranks);
    free_[member.chip] = ChipBufferBytes(input_.request, member.ranks);
    if (input_.set.ProxyOf(member.chip) != member.chip) {
      sent_[member.chip] = {.begin = side.relay_bytes, .base = 0};
      received_[member.chip] = {.begin = side.relay_bytes + bytes, .base = bytes};
      side.relay_bytes += 2 * bytes;
    }
    relay_bytes_ = std::max(relay_bytes_, side.relay_bytes);
  }
  std::uint64_t Kept(const Areas& areas, torus::ChipIndex of, torus::ChipIndex at,
                     std::uint64_t offset) const {
    const Area& area = areas.at(of);
    return free_.at(at) + area.begin + offset - area.base;
  }

  StepWork StartOnly() const { return {.start = input_.work.start, .memory = {}}; }

  // Hands over inside domains of a kind what goes to others, or comes from them.
  std::uint32_t Hand(const Side& side, const Side& others, const Step& step, Ends after) {
    const StepWork work =
        WorkOf(step, {.banks = input_.set.banks()}, input_.costs, input_.fabric.timing());
    std::vector<Copy> copies;
    for (const int chips : side.chips) copies.push_back({.chips = chips});
    return schedule_.Append(step, work,
                            {.after = std::move(after),
                             .copies = std::move(copies),
                             .parts = others.starts,
                             .through = side.through});
  }

  // Ranks on one chip copy beside the messages; memory serves all of them at once.
  void AddInside(const Side& side, Ends after) {
    std::vector<Copy> copies;
    for (std::size_t i = 0; i < side.chips.size(); ++i) {
      copies.push_back({.chips = side.chips[i], .bytes = side.starts[i]});
    }
    schedule_.Append(
        AllToAllAmong(input_.request, side.first, input_.block), input_.work,
        {.after = std::move(after), .copies = std::move(copies), .through = side.through});
  }

  void AddMessages(std::size_t from, std::size_t to) {
    schedule_.meshes.push_back({.senders = sides_[from].domains,
                                .receivers = sides_[to].domains,
                                .by_sender = {.to_offset = input_.block},
                                .by_receiver = {.offset = input_.block}});
    const std::vector<Member>& first = sides_[from].first;
    for (Send send : from == to
                         ? AllToAllAmong(input_.request, first, input_.block)
                         : StepBetween(input_.request, first, sides_[to].first, input_.block)) {
      send.mesh = static_cast<std::uint32_t>(schedule_.meshes.size());
      const torus::ChipIndex sender = input_.set.ProxyOf(send.from);
      const torus::ChipIndex receiver = input_.set.ProxyOf(send.to);
      if (sender == send.from && receiver == send.to) {
        direct_.push_back(send);
      } else {
        AddRelayed(send, sender, receiver, {from, to});
      }
    }
  }

  // `sender` and `receiver` are the chips whose NICs carry the message.
  void AddRelayed(const Send& send, torus::ChipIndex sender, torus::ChipIndex receiver,
                  const std::pair<std::size_t, std::size_t>& kinds) {
    Send leg = send;
    leg.mesh = 0;
    const std::uint64_t at = leg.to_offset;
    if (sender != send.from) {
      leg.to = sender;
      leg.to_offset = Kept(sent_, send.from, sender, leg.offset);
      handed_over_[kinds].push_back(leg);
      leg.offset = leg.to_offset;
    }
    const bool kept = receiver != send.to;
    leg.mesh = send.mesh;
    leg.from = sender;
    leg.to = receiver;
    leg.to_offset = kept ? Kept(received_, send.to, receiver, at) : at;
    relayed_.push_back(leg);
    if (!kept) return;
    leg.mesh = 0;
    leg.from = receiver;
    leg.to = send.to;
    leg.offset = leg.to_offset;
    leg.to_offset = at;
    handed_on_[kinds].push_back(leg);
  }

  const AllToAllInput& input_;
  std::vector<Side> sides_;
  std::map<torus::ChipIndex, std::uint64_t> free_;  // of chips of first groups
  Areas sent_;
  Areas received_;
  std::uint64_t relay_bytes_ = 0;
  Step direct_;
  Step relayed_;
  // By kinds of the senders and receivers.
  std::map<std::pair<std::size_t, std::size_t>, Step> handed_over_;
  std::map<std::pair<std::size_t, std::size_t>, Step> handed_on_;
  Schedule schedule_;
};

}  // namespace

std::optional<std::vector<DomainSet::Kind>> AllToAllKindsOf(const Request& request,
                                                            const std::vector<Member>& members,
                                                            const DomainSet& set) {
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
      traits.push_back(group.nics[place]);
    }
    by_traits[{group.through, std::move(traits)}].push_back(i);
  }
  std::vector<DomainSet::Kind> kinds;
  for (auto& [traits, kind] : by_traits) kinds.push_back(std::move(kind));
  std::ranges::sort(kinds);
  return kinds;
}

Schedule AllToAllOver(const AllToAllInput& input) { return AllToAllMaker(input).Make(); }

}  // namespace tahoma::sim
