#include "sim-node/emulator/collective/domains/domain_meshes.h"

#include <algorithm>
#include <set>
#include <utility>

#include "lib/base/check.h"
#include "sim-node/emulator/collective/domains/padded_steps.h"
#include "sim-node/emulator/engine/virtual_time.h"
#include "sim-node/emulator/link/fabric.h"

namespace tahoma::sim {
namespace {

bool HasHomes(Operation operation) {
  return operation == Operation::kAllGather || operation == Operation::kReduceScatter;
}

// What tells the groups of different kinds apart.
using Traits = std::tuple<bool, std::size_t, std::vector<int>, std::vector<std::uint64_t>>;

// Numbers lists of chips in the order in which they are met.
class ChipLists {
 public:
  std::size_t Of(const std::vector<Member>& local) {
    std::vector<int> chips;
    for (const Member& member : local) chips.push_back(member.chip.value());
    return numbers_.try_emplace(std::move(chips), numbers_.size()).first->second;
  }

 private:
  std::map<std::vector<int>, std::size_t> numbers_;
};

Copy CopyAt(const Request& request, const std::vector<Member>& local, std::size_t first,
            std::size_t place, std::uint64_t elements) {
  return {.chips = local[place].chip.value() - local[first].chip.value(),
          .bytes = BytesOf(request, elements)};
}

// Calls visit(elements, place, other place) for each part that both have in one place.
template <typename Visit>
void ForEachCommonPart(const std::vector<OutsidePart>& parts,
                       const std::vector<OutsidePart>& others, const Visit& visit) {
  std::size_t other = 0;
  for (const OutsidePart& part : parts) {
    std::uint64_t begin = part.elements.begin;
    while (begin < part.elements.end) {
      const std::uint64_t end = std::min(part.elements.end, others[other].elements.end);
      visit(Extent{.begin = begin, .end = end}, part.place, others[other].place);
      begin = end;
      if (others[other].elements.end == end) ++other;
    }
  }
}

}  // namespace

std::vector<DomainSet::Kind> MeshKindsOf(const Request& request, const Layout& layout,
                                         const DomainSet& set) {
  ChipLists lists;
  std::map<Traits, std::size_t> known;
  std::vector<DomainSet::Kind> kinds;
  for (std::size_t i = 0; i < set.size(); ++i) {
    const DomainSet::Group& group = set.groups()[i];
    std::vector<std::uint64_t> blocks;  // counted from the begin of the first
    for (const std::size_t member : group.members) {
      if (!HasHomes(request.operation)) break;
      blocks.push_back(layout.bounds[member] - layout.bounds[group.members[0]]);
      blocks.push_back(layout.bounds[member + 1] - layout.bounds[group.members[0]]);
    }
    const bool root = i == 0 && request.operation == Operation::kBroadcast;
    Traits traits(root, lists.Of(group.local), group.nics, std::move(blocks));
    const auto [entry, added] = known.try_emplace(std::move(traits), kinds.size());
    if (added) kinds.emplace_back();
    kinds[entry->second].push_back(i);
  }
  return kinds;
}

std::vector<std::uint64_t> MeshHome::Starts() const {
  std::vector<std::uint64_t> starts;
  for (const MeshDomain& one : *domains) starts.push_back(one.number * stride);
  return starts;
}

std::uint32_t MeshNumbers::Of(const DomainMesh& mesh, std::vector<DomainMesh>& meshes) {
  const auto [entry, added] = numbers_.try_emplace(
      {mesh.senders.get(), mesh.receivers.get(), mesh.by_sender.offset, mesh.by_receiver.offset},
      static_cast<std::uint32_t>(meshes.size()) + 1);
  if (added) meshes.push_back(mesh);
  return entry->second;
}

DomainMeshes::DomainMeshes(const Request& request, const DomainSet& set,
                           std::vector<DomainSet::Kind> kinds)
    : request_(request), set_(set), kinds_(std::move(kinds)) {
  for (const DomainSet::Kind& kind : kinds_) {
    const DomainSet::Group& group = set.groups()[kind.front()];
    even_ = even_ && group.local == set.groups()[0].local && !HasProxies(group);
  }
}

std::shared_ptr<const MeshDomains> DomainMeshes::Some(std::size_t kind, std::size_t first,
                                                      std::size_t count) {
  std::shared_ptr<const MeshDomains>& known = some_[{kind, first, count}];
  if (known) return known;
  MeshDomains domains;
  for (std::size_t i = 0; i < count; ++i) {
    domains.push_back({.domain = set_.groups()[kinds_[kind][first + i]].domain, .number = i});
  }
  known = std::make_shared<const MeshDomains>(std::move(domains));
  return known;
}

std::shared_ptr<const MeshDomains> DomainMeshes::Numbered(
    std::size_t kind, const std::vector<std::uint64_t>& numbers) {
  std::shared_ptr<const MeshDomains>& known = numbered_[{kind, numbers}];
  if (known) return known;
  MeshDomains domains;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    domains.push_back({.domain = set_.groups()[kinds_[kind][i]].domain, .number = numbers[i]});
  }
  known = std::make_shared<const MeshDomains>(std::move(domains));
  return known;
}

std::vector<DomainMeshes::Segment> DomainMeshes::SegmentsOf(const Extent& elements) const {
  std::set<std::uint64_t> cuts;
  std::vector<std::vector<std::uint64_t>> bounds;
  for (const DomainSet::Kind& kind : kinds_) {
    const std::size_t places = set_.groups()[kind.front()].local.size();
    bounds.push_back(CutBy(std::vector<int>(places, 1), elements.size()));
    cuts.insert(bounds.back().begin(), bounds.back().end());
  }
  std::vector<std::size_t> owners(kinds_.size());
  std::vector<Segment> segments;
  for (auto cut = cuts.begin(); std::next(cut) != cuts.end(); ++cut) {
    for (std::size_t kind = 0; kind < kinds_.size(); ++kind) {
      while (bounds[kind][owners[kind] + 1] <= *cut) ++owners[kind];
    }
    segments.push_back(
        {.elements = {.begin = elements.begin + *cut, .end = elements.begin + *std::next(cut)},
         .owners = owners});
  }
  return segments;
}

// The part of each segment from `begin` on.
MeshHome DomainMeshes::HomeOf(const std::vector<Segment>& segments, std::uint64_t begin,
                              std::uint64_t length, std::size_t kind) {
  std::vector<Extent> pieces;
  std::vector<std::size_t> places;
  for (const Segment& segment : segments) {
    const std::uint64_t at = segment.elements.begin + begin;
    pieces.push_back({.begin = at, .end = at + length});
    if (even_) places.push_back(segment.owners[0]);
  }
  MeshHome home{.region = Region(std::move(pieces)),
                .kind = kind,
                .domains = nullptr,
                .stride = length,
                .parts = {},
                .places = std::move(places)};
  for (std::size_t with = 0; with < kinds_.size(); ++with) {
    const DomainSet::Group& group = set_.groups()[kinds_[with].front()];
    std::vector<std::uint64_t> bounds(group.local.size() + 1);
    for (const Segment& segment : segments) bounds[segment.owners[with] + 1] += length;
    for (std::size_t place = 0; place < group.local.size(); ++place) {
      bounds[place + 1] += bounds[place];
    }
    home.parts.push_back(OutsideParts(bounds, group));
  }
  return home;
}

// Cuts segments of one length into parts of one length for each kind of homes; the last that have
// any may have a shorter one, or none.
void DomainMeshes::CutAmong(const std::vector<Segment>& segments, const std::vector<int>& weights,
                            std::vector<MeshHome>& homes) {
  const std::uint64_t length = segments[0].elements.size();
  Wide all = 0;
  for (const DomainSet::Kind& kind : kinds_) {
    all += static_cast<Wide>(weights[kind.front()]) * kind.size();
  }
  TAHOMA_CHECK(all > 0);
  std::uint64_t begin = 0;
  for (std::size_t kind = 0; kind < kinds_.size() && begin < length; ++kind) {
    const auto weight = static_cast<Wide>(weights[kinds_[kind].front()]);
    if (weight == 0) continue;
    const auto part = static_cast<std::uint64_t>((weight * length + all - 1) / all);
    const std::size_t count = kinds_[kind].size();
    const std::size_t whole = std::min<std::size_t>(count, (length - begin) / part);
    if (whole > 0) {
      homes.push_back(HomeOf(segments, begin, part, kind));
      homes.back().domains = Some(kind, 0, whole);
      begin += whole * part;
    }
    if (whole == count || begin == length) continue;
    homes.push_back(HomeOf(segments, begin, length - begin, kind));
    homes.back().domains = Some(kind, whole, 1);
    begin = length;
  }
  TAHOMA_CHECK(begin == length);
}

std::vector<MeshHome> DomainMeshes::HomesIn(const Extent& elements,
                                            const std::vector<int>& weights) {
  std::map<std::uint64_t, std::vector<Segment>> by_length;
  for (Segment& segment : SegmentsOf(elements)) {
    by_length[segment.elements.size()].push_back(std::move(segment));
  }
  std::vector<MeshHome> homes;
  for (const auto& [length, segments] : by_length) CutAmong(segments, weights, homes);
  return homes;
}

void DomainMeshes::AppendSend(const MeshHome& home, std::size_t kind, bool to_home, Action action,
                              const Extent& elements, std::size_t place, std::size_t place_at_home,
                              MeshStep& step) {
  const torus::ChipIndex chip = set_.ChipOf(kinds_[kind].front(), place);
  const torus::ChipIndex chip_at_home = set_.ChipOf(kinds_[home.kind].front(), place_at_home);
  const std::uint64_t bytes = BytesOf(request_, home.stride);
  const DomainMesh::Stride stride{.offset = bytes, .to_offset = bytes};
  const auto domains = Some(kind, 0, kinds_[kind].size());
  for (const Extent& real : home.region.RealOf(elements.begin, elements.end)) {
    if (to_home) {
      step.sends.push_back({.send = MakeSend(request_, chip, chip_at_home, real, action),
                            .mesh = {.senders = domains,
                                     .receivers = home.domains,
                                     .by_sender = {},
                                     .by_receiver = stride}});
    } else {
      step.sends.push_back({.send = MakeSend(request_, chip_at_home, chip, real, action),
                            .mesh = {.senders = home.domains,
                                     .receivers = domains,
                                     .by_sender = stride,
                                     .by_receiver = {}}});
    }
  }
}

// Appends what the domains of the kind send to the homes, or get from them. Where places of all
// domains do the same, that of the first is made at all of them.
void DomainMeshes::Append(const MeshHome& home, std::size_t kind, bool to_home, Action action,
                          MeshPhase& phase) {
  if (kinds_[kind].size() == 1 && home.kind == kind) return;  // to itself
  const auto step_with = [&](const std::vector<Copy>& copies) -> MeshStep& {
    const auto known = std::ranges::find(phase, copies, &MeshStep::copies);
    return known != phase.end() ? *known
                                : phase.emplace_back(MeshStep{.sends = {}, .copies = copies});
  };
  if (home.places.empty()) {
    MeshStep& step = step_with({{}});
    ForEachCommonPart(home.parts[kind], home.parts[home.kind],
                      [&](const Extent& elements, std::size_t place, std::size_t at_home) {
                        AppendSend(home, kind, to_home, action, elements, place, at_home, step);
                      });
    return;
  }
  std::map<std::uint64_t, std::vector<std::size_t>> pieces;  // by length
  for (std::size_t i = 0; i < home.places.size(); ++i) {
    if (home.region.pieces()[i].size() > 0) pieces[home.region.pieces()[i].size()].push_back(i);
  }
  const std::vector<Member>& local = set_.groups()[0].local;
  for (const auto& [length, alike] : pieces) {
    const std::size_t first = alike.front();
    std::vector<Copy> copies;
    for (const std::size_t piece : alike) {
      copies.push_back(
          CopyAt(request_, local, home.places[first], home.places[piece],
                 home.region.pieces()[piece].begin - home.region.pieces()[first].begin));
    }
    const std::uint64_t begin = home.region.bounds()[first];
    AppendSend(home, kind, to_home, action, {.begin = begin, .end = begin + length},
               home.places[first], home.places[first], step_with(copies));
  }
}

// Returns where the domains hand over: steps without sends.
std::vector<HandOverStep> DomainMeshes::PlacesOf(const MeshHome& home, std::size_t kind, bool own,
                                                 bool others) const {
  const DomainSet::Kind& groups = kinds_[kind];
  own = own && kind == home.kind;
  others = others && (kind != home.kind || groups.size() > 1);
  std::vector<HandOverStep> all;
  if (!own && !others) return all;
  std::vector<std::uint64_t> starts;
  for (const std::uint64_t start : home.Starts()) starts.push_back(BytesOf(request_, start));
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const DomainSet::Group& group = set_.groups()[groups[i]];
    auto places = std::ranges::find(all, group.through, &HandOverStep::through);
    if (places == all.end()) {
      places =
          all.insert(all.end(), {.step = {}, .through = group.through, .copies = {}, .parts = {0}});
      if (others) places->parts = starts;
    }
    const int further = group.domain - set_.groups()[groups.front()].domain;
    places->copies.push_back(
        {.chips = further * Fabric::kChipsPerDomain, .bytes = others ? 0 : starts[i]});
  }
  return all;
}

std::vector<HandOverStep> DomainMeshes::HandOversOf(const std::vector<MeshHome>& homes,
                                                    std::size_t kind, bool back, bool own,
                                                    bool others) const {
  std::vector<HandOverStep> all;
  for (const MeshHome& home : homes) {
    Step step;
    AppendHandOver(request_, set_, kinds_[kind].front(), home.region, home.parts[kind], back,
                   Action::kCopy, step);
    if (step.empty()) continue;
    for (HandOverStep& made : PlacesOf(home, kind, own, others)) {
      // What is made at one place only is written there, so that it goes together with others.
      std::uint64_t further = 0;
      if (made.parts.size() == 1) further += std::exchange(made.parts[0], 0);
      if (made.copies.size() == 1) further += std::exchange(made.copies[0].bytes, 0);
      const auto same = std::ranges::find_if(all, [&](const HandOverStep& known) {
        return known.through == made.through && known.copies == made.copies &&
               known.parts == made.parts;
      });
      Step& sends = (same != all.end() ? *same : all.emplace_back(std::move(made))).step;
      for (Send send : step) {
        send.offset += further;
        send.to_offset += further;
        sends.push_back(send);
      }
    }
  }
  return all;
}

std::vector<MeshPhase> DomainMeshes::PhasesOf(const std::vector<MeshHome>& homes) {
  const Operation operation = request_.operation;
  const bool rooted = operation == Operation::kBroadcast;
  std::vector<MeshPhase> phases;
  if (operation != Operation::kAllGather) {
    MeshPhase& phase = phases.emplace_back();
    const Action action = rooted ? Action::kCopy : Action::kReduce;
    for (const MeshHome& home : homes) {
      for (std::size_t kind = 0; kind < (rooted ? 1 : kinds_.size()); ++kind) {
        Append(home, kind, /*to_home=*/true, action, phase);
      }
    }
  }
  if (operation != Operation::kReduceScatter) {
    MeshPhase& phase = phases.emplace_back();
    for (const MeshHome& home : homes) {
      for (std::size_t kind = rooted ? 1 : 0; kind < kinds_.size(); ++kind) {
        Append(home, kind, /*to_home=*/false, Action::kCopy, phase);
      }
    }
  }
  for (MeshPhase& phase : phases) {
    std::erase_if(phase, [](const MeshStep& step) { return step.sends.empty(); });
  }
  std::erase_if(phases, [](const MeshPhase& phase) { return phase.empty(); });
  return phases;
}

}  // namespace tahoma::sim
