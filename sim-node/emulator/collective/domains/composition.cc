#include "sim-node/emulator/collective/domains/composition.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "lib/base/check.h"
#include "lib/base/status.h"
#include "sim-node/emulator/collective/domains/between_domains.h"
#include "sim-node/emulator/collective/domains/chunk_sizes.h"
#include "sim-node/emulator/collective/domains/domain_meshes.h"
#include "sim-node/emulator/collective/domains/hand_over.h"
#include "sim-node/emulator/collective/domains/padded_steps.h"
#include "sim-node/emulator/collective/domains/region.h"
#include "sim-node/emulator/collective/plan/chip_cost.h"

namespace tahoma::sim {
namespace {

// Numbers of scheduled steps that must have ended.
using Ends = std::vector<std::uint32_t>;

class Composer {
 public:
  explicit Composer(const Composition& of)
      : request_(of.request),
        layout_(of.layout),
        set_(of.set),
        fabric_(of.fabric),
        between_(of.choice.between.value()),
        chunks_(static_cast<std::uint64_t>(of.choice.chunks.value())),
        sizes_(of.request.operation, chunks_),
        options_(of.choice.options),
        kinds_(of.set.kinds()),
        padded_(of.request, of.choice),
        last_inside_(kinds_.size()),
        home_weights_(of.request.operation == Operation::kBroadcast
                          ? BroadcastWeights(between_, static_cast<int>(of.set.size()))
                          : std::vector<int>(of.set.size(), 1)) {
    if (of.meshes) meshes_.emplace(request_, set_, MeshKindsOf(request_, layout_, set_));
  }

  absl::StatusOr<Schedule> Compose() {
    struct Sent {
      std::vector<HomedRegion> regions;
      Ends ends;
    };
    std::vector<Sent> all;
    for (std::uint64_t chunk = 0; chunk < chunks_; ++chunk) {
      std::vector<HomedRegion> regions = RegionsOf(chunk);
      if (regions.empty()) continue;
      TAHOMA_ASSIGN_OR_RETURN(const Ends ready, Reduce(regions));
      Ends ends = SendBetween(regions, ready);
      all.push_back({.regions = std::move(regions), .ends = std::move(ends)});
    }
    if (request_.operation == Operation::kReduceScatter) return std::move(schedule_);
    for (const Sent& sent : all) TAHOMA_RETURN_IF_ERROR(Gather(sent.regions, sent.ends));
    return std::move(schedule_);
  }

 private:
  // A region whose parts belong to the members of one group in the end, or (-1) to nobody; and
  // those of the other groups of its kind.
  struct HomedRegion {
    Region region;
    int home = -1;
    std::size_t kind = 0;                     // of the groups
    std::vector<std::uint64_t> starts = {0};  // of each group's, counted from this one's
  };

  // Reduces in each domain, or scatters from the root in its own. Returns the ends.
  absl::StatusOr<Ends> Reduce(const std::vector<HomedRegion>& regions) {
    const bool reduces = Combines(request_.operation);
    if (!reduces && request_.operation != Operation::kBroadcast) return Ends();
    const Inside inside = reduces ? Inside::kReduceScatter : Inside::kScatter;
    Ends ready;
    for (std::size_t kind = 0; kind < kinds_.size(); ++kind) {
      if (GroupsIn(inside, kind).empty()) continue;
      Ends& last = last_inside_[kind];
      TAHOMA_ASSIGN_OR_RETURN(last, ScheduleInside(inside, kind, regions, last));
      ready.insert(ready.end(), last.begin(), last.end());
    }
    return ready;
  }

  static bool IsOwn(const HomedRegion& homed, std::size_t group) {
    return homed.home == static_cast<int>(group);
  }

  Ends SendBetween(const std::vector<HomedRegion>& regions, Ends ready) {
    if (meshes_) return SendInMeshes(regions, ready);
    ready = ScheduleBetween(regions, HandOver(regions, ready, /*back=*/false));
    return HandOver(regions, ready, /*back=*/true);
  }

  absl::Status Gather(const std::vector<HomedRegion>& regions, const Ends& sent) {
    for (std::size_t kind = 0; kind < kinds_.size(); ++kind) {
      if (GroupsIn(Inside::kAllGather, kind).empty()) continue;
      Ends& last = last_inside_[kind];
      Ends after = sent;
      after.insert(after.end(), last.begin(), last.end());
      TAHOMA_ASSIGN_OR_RETURN(last, ScheduleInside(Inside::kAllGather, kind, regions, after));
    }
    return absl::OkStatus();
  }

  bool HasHomes() const {
    return request_.operation == Operation::kAllGather ||
           request_.operation == Operation::kReduceScatter;
  }
  // The groups of the kind that take part: of a scattering the root's.
  DomainSet::Kind GroupsIn(Inside inside, std::size_t kind) const {
    DomainSet::Kind groups = kinds_[kind];
    if (inside == Inside::kScatter)
      std::erase_if(groups, [](std::size_t group) { return group != 0; });
    return groups;
  }

  // Returns a part of every member's block, by group, if there are homes; otherwise a part of the
  // buffer.
  std::vector<HomedRegion> RegionsOf(std::uint64_t chunk) const {
    const auto part = [&](const Extent& whole) {
      return Extent{.begin = whole.begin + sizes_.Before(chunk, whole.size()),
                    .end = whole.begin + sizes_.Before(chunk + 1, whole.size())};
    };
    std::vector<HomedRegion> regions;
    if (!HasHomes()) {
      regions.push_back({.region = Region({part({.begin = 0, .end = layout_.bounds.back()})})});
    }
    std::size_t number = 0;
    for (const DomainSet::Kind& kind : KindsOfHomes()) {
      const std::vector<std::size_t>& first = set_.groups()[kind.front()].members;
      std::vector<Extent> pieces;
      for (const std::size_t member : first) {
        pieces.push_back(
            part({.begin = layout_.bounds[member], .end = layout_.bounds[member + 1]}));
      }
      HomedRegion& homed = regions.emplace_back(HomedRegion{.region = Region(std::move(pieces)),
                                                            .home = static_cast<int>(kind.front()),
                                                            .kind = number++,
                                                            .starts = {}});
      for (const std::size_t group : kind) {
        homed.starts.push_back(layout_.bounds[set_.groups()[group].members[0]] -
                               layout_.bounds[first[0]]);
      }
    }
    std::erase_if(regions, [](const HomedRegion& homed) { return homed.region.size() == 0; });
    return regions;
  }

  // Groups that have blocks which lie alike, or each by itself.
  std::vector<DomainSet::Kind> KindsOfHomes() const {
    std::vector<DomainSet::Kind> kinds;
    if (!HasHomes()) return kinds;
    if (meshes_) return meshes_->kinds();
    for (std::size_t group = 0; group < set_.size(); ++group) kinds.push_back({group});
    return kinds;
  }

  // Returns the bounds of the parts of the region that the places of the group have inside it.
  std::vector<std::uint64_t> BoundsOf(const HomedRegion& homed, std::size_t group) const {
    const std::size_t places = set_.groups()[group].local.size();
    if (homed.region.pieces().size() == places && homed.home >= 0) return homed.region.bounds();
    return CutBy(std::vector<int>(places, 1), homed.region.size());
  }
  std::vector<OutsidePart> PartsOf(const HomedRegion& homed, std::size_t group) const {
    return OutsideParts(BoundsOf(homed, group), set_.groups()[group]);
  }

  // Steps of a kind on a region that begins at 0, as numbers in the schedule.
  absl::StatusOr<Ends> StepsInside(Inside inside, std::size_t kind, const Region& normal,
                                   const std::vector<std::uint64_t>& bounds, std::uint64_t times) {
    const auto known = inside_.find({inside, kind, normal.pieces(), bounds});
    if (known != inside_.end()) return known->second;
    const DomainSet::Group& group = set_.groups()[kinds_[kind].front()];
    std::uint64_t block = 0;
    for (std::size_t place = 0; place + 1 < bounds.size(); ++place) {
      block = std::max(block, bounds[place + 1] - bounds[place]);
    }
    const auto key = std::tuple(inside, kind, block, times);
    auto padded = padded_steps_.find(key);
    if (padded == padded_steps_.end()) {
      TAHOMA_ASSIGN_OR_RETURN(
          WorkedSteps steps, padded_.Of(inside, group, fabric_.domain(group.domain), block, times));
      padded = padded_steps_.emplace(key, std::move(steps)).first;
    }
    Ends numbers;
    const WorkedSteps& worked = padded->second;
    std::vector<Step> steps = Unpadded(worked.steps, request_, block, normal, bounds);
    for (std::size_t i = 0; i < steps.size(); ++i) {
      if (steps[i].empty() && !worked.steps[i].empty()) continue;  // all of it was padding
      numbers.push_back(schedule_.Add(std::move(steps[i]), worked.work[i]));
    }
    inside_.emplace(std::tuple(inside, kind, normal.pieces(), bounds), numbers);
    return numbers;
  }

  // Regions that are the same but for where they begin go together.
  absl::StatusOr<Ends> ScheduleInside(Inside inside, std::size_t kind,
                                      const std::vector<HomedRegion>& regions, const Ends& after) {
    if (regions.empty()) return after;
    const DomainSet::Kind groups = GroupsIn(inside, kind);
    std::uint64_t count = 0;
    for (const HomedRegion& homed : regions) count += homed.starts.size();
    std::map<Ends, std::vector<std::uint64_t>> begins;  // in bytes, by steps
    for (const HomedRegion& homed : regions) {
      const Region normal = homed.region.Normal();
      TAHOMA_ASSIGN_OR_RETURN(
          const Ends steps,
          StepsInside(inside, kind, normal, BoundsOf(homed, groups.front()), count));
      for (const std::uint64_t start : homed.starts) {
        begins[steps].push_back(BytesOf(request_, homed.region.begin() + start));
      }
    }
    std::vector<Copy> copies;
    for (const std::size_t group : groups) {
      copies.push_back({.chips = Fabric::ChipOf(set_.groups()[group].domain, 0).value()});
    }
    Ends ends;
    for (const auto& [steps, starts] : begins) {
      const std::size_t first = schedule_.scheduled.size();
      const Ends last = Chain(steps, copies, set_.groups()[groups.front()].through, after);
      for (std::size_t i = first; i < schedule_.scheduled.size(); ++i) {
        schedule_.scheduled[i].parts = starts;
      }
      ends.insert(ends.end(), last.begin(), last.end());
    }
    return ends;
  }

  // Schedules the steps, each after the one before it. Returns the last.
  Ends Chain(const Ends& steps, const std::vector<Copy>& copies, torus::ChipMask through,
             Ends after) {
    for (const std::uint32_t step : steps) {
      const auto index = static_cast<std::uint32_t>(schedule_.scheduled.size());
      schedule_.scheduled.push_back(
          {.step = step, .after = std::move(after), .copies = copies, .through = through});
      after = {index};
    }
    return after;
  }

  Ends HandOver(const std::vector<HomedRegion>& regions, const Ends& after, bool back) {
    if (set_.even()) return after;
    const bool sums = back && OwnersCombine(request_.operation);
    const Action action = sums ? Action::kReduce : Action::kCopy;
    Ends ends = after;
    for (std::size_t group = 0; group < set_.size(); ++group) {
      Step step;
      for (const HomedRegion& homed : regions) {
        if (!HandsOver({request_.operation, IsOwn(homed, group), group, back})) continue;
        AppendHandOver(request_, set_, group, homed.region, PartsOf(homed, group), back, action,
                       step);
      }
      if (step.empty()) continue;
      const ChipUse use{.reads = sums ? 2 : 1, .banks = set_.banks()};
      const StepWork work =
          WorkOf(step, use, options_.costs, fabric_.domain(set_.groups()[group].domain).timing());
      const Ends last =
          Chain({schedule_.Add(std::move(step), work)}, {{}}, set_.groups()[group].through, after);
      // The first chunk's bytes go first: side by side all would be handed over before one is sent.
      const auto [before, first] = last_handed_.try_emplace({group, back}, last.front());
      if (!first) {
        schedule_.scheduled.back().behind = before->second;
        before->second = last.front();
      }
      ends.insert(ends.end(), last.begin(), last.end());
    }
    return ends;
  }

  // Elements of a region for which the same chip of every group answers.
  struct Segment {
    Extent elements;                  // of the region
    std::vector<std::size_t> places;  // by group
    std::vector<bool> own;            // by group: the chip owns it inside, too
  };
  std::vector<Segment> SegmentsOf(const HomedRegion& homed) const {
    std::vector<std::vector<OutsidePart>> parts;
    std::set<std::uint64_t> cuts = {0, homed.region.size()};
    for (std::size_t group = 0; group < set_.size(); ++group) {
      parts.push_back(PartsOf(homed, group));
      for (const OutsidePart& part : parts.back()) cuts.insert(part.elements.begin);
    }
    std::vector<std::size_t> at(set_.size());  // by group: the part in which the segment is
    std::vector<Segment> segments;
    for (auto cut = cuts.begin(); std::next(cut) != cuts.end(); ++cut) {
      Segment& segment = segments.emplace_back();
      segment.elements = {.begin = *cut, .end = *std::next(cut)};
      for (std::size_t group = 0; group < set_.size(); ++group) {
        if (parts[group][at[group]].elements.end <= *cut) ++at[group];
        const OutsidePart& part = parts[group][at[group]];
        segment.places.push_back(part.place);
        segment.own.push_back(part.place == part.owner);
      }
    }
    return segments;
  }

  // The moves of a part with a home, from step to step.
  std::vector<std::pair<DomainMove, Action>> MovesOf(int home) const {
    const auto domains = static_cast<int>(set_.size());
    std::vector<std::pair<DomainMove, Action>> moves;
    int steps = 0;
    if (Combines(request_.operation)) {
      for (const DomainMove& move : ReduceTo(between_, domains, home)) {
        moves.emplace_back(move, Action::kReduce);
      }
      steps = StepsAmong(between_, domains);
    }
    if (request_.operation == Operation::kBroadcast) {
      for (const DomainMove& move : BroadcastVia(between_, domains, home)) {
        moves.emplace_back(move, Action::kCopy);
      }
      return moves;
    }
    if (request_.operation == Operation::kReduceScatter) return moves;
    for (DomainMove move : SpreadFrom(between_, domains, home)) {
      move.step += steps;
      moves.emplace_back(move, Action::kCopy);
    }
    return moves;
  }

  void AppendMoves(const HomedRegion& homed, const Segment& segment, const Extent& elements,
                   int home, std::vector<Step>& steps) const {
    // The owner combines what arrives at home with its own: the first of it replaces what a chip
    // has there that only answers for it.
    bool first = OwnersCombine(request_.operation) && !segment.own[static_cast<std::size_t>(home)];
    for (auto [move, action] : MovesOf(home)) {
      if (first && move.to == home) {
        action = Action::kCopy;
        first = false;
      }
      const auto from = static_cast<std::size_t>(move.from);
      const auto to = static_cast<std::size_t>(move.to);
      const auto at = static_cast<std::size_t>(move.step);
      if (steps.size() <= at) steps.resize(at + 1);
      for (const Extent& real : homed.region.RealOf(elements.begin, elements.end)) {
        steps[at].push_back(MakeSend(request_, set_.ChipOf(from, segment.places[from]),
                                     set_.ChipOf(to, segment.places[to]), real, action));
      }
    }
  }

  void AppendSegment(const HomedRegion& homed, const Segment& segment,
                     std::vector<Step>& steps) const {
    if (homed.home >= 0) return AppendMoves(homed, segment, segment.elements, homed.home, steps);
    const std::vector<std::uint64_t> parts = CutBy(home_weights_, segment.elements.size());
    for (std::size_t home = 0; home < set_.size(); ++home) {
      const Extent part{.begin = segment.elements.begin + parts[home],
                        .end = segment.elements.begin + parts[home + 1]};
      if (part.size() > 0) AppendMoves(homed, segment, part, static_cast<int>(home), steps);
    }
  }

  // Places of all groups do the same, each on a block of its own: then the first place's steps are
  // made at all of them. Nothing when they do not.
  std::vector<Copy> CopiesOf(const std::vector<HomedRegion>& regions) const {
    if (kinds_.size() != 1 || !set_.even()) return {};
    const std::vector<Member>& local = set_.groups()[0].local;
    std::vector<Copy> copies;
    for (std::size_t place = 0; place < local.size(); ++place) {
      Copy& copy = copies.emplace_back();
      copy.chips = local[place].chip.value() - local[0].chip.value();
      for (const HomedRegion& homed : regions) {
        const std::vector<std::uint64_t> bounds = BoundsOf(homed, 0);
        const auto first = homed.region.RealOf(bounds[0], bounds[1]);
        const auto block = homed.region.RealOf(bounds[place], bounds[place + 1]);
        if (first.size() != 1 || block.size() != 1 || block[0].size() != first[0].size()) return {};
        const std::uint64_t bytes = BytesOf(request_, block[0].begin - first[0].begin);
        if (&homed != &regions.front() && bytes != copy.bytes) return {};
        copy.bytes = bytes;
      }
    }
    return copies;
  }

  // Lets each step from `first` on leave behind the same step of the chunk before. So steps of
  // different kinds keep NICs busy in both directions, and no latency lies between those of one:
  // side by side all chunks would be reduced, and then all spread.
  void KeepInOrder(std::size_t first) {
    for (std::size_t i = first; i < schedule_.scheduled.size(); ++i) {
      const std::size_t step = i - first;
      if (step < last_between_.size()) schedule_.scheduled[i].behind = last_between_[step];
      if (step == last_between_.size()) last_between_.push_back(0);
      last_between_[step] = static_cast<std::uint32_t>(i);
    }
  }

  // The parts of the regions, with the domains that are their homes.
  std::vector<MeshHome> MeshHomesOf(const std::vector<HomedRegion>& regions) {
    if (!HasHomes()) {
      return meshes_->HomesIn(regions.front().region.pieces().front(), home_weights_);
    }
    std::vector<MeshHome> homes;
    const std::vector<DomainSet::Kind>& kinds = meshes_->kinds();
    for (const HomedRegion& homed : regions) {
      const auto domains = meshes_->Numbered(homed.kind, homed.starts);
      MeshHome& home = homes.emplace_back(MeshHome{.region = homed.region,
                                                   .kind = homed.kind,
                                                   .domains = domains,
                                                   .stride = 1,
                                                   .parts = {},
                                                   .places = {}});
      for (const DomainSet::Kind& with : kinds) {
        home.parts.push_back(PartsOf(homed, with.front()));
      }
      for (std::size_t i = 0; meshes_->even() && i < homed.region.pieces().size(); ++i) {
        home.places.push_back(i);
      }
    }
    return homes;
  }

  // Sends the regions between kinds of domains.
  Ends SendInMeshes(const std::vector<HomedRegion>& regions, const Ends& ready) {
    const std::vector<MeshHome> homes = MeshHomesOf(regions);
    const Ends sent =
        ScheduleMeshes(meshes_->PhasesOf(homes), HandOverKinds(homes, ready, /*back=*/false));
    return HandOverKinds(homes, sent, /*back=*/true);
  }

  // Schedules the messages, from phase to phase. Steps leave behind those of the chunk before, as
  // KeepInOrder lets others do.
  Ends ScheduleMeshes(const std::vector<MeshPhase>& phases, const Ends& after) {
    Ends ready = after;
    std::vector<std::uint32_t> first_of_phase;
    for (const MeshPhase& phase : phases) {
      const std::size_t number = first_of_phase.size();
      Ends ends;
      for (const MeshStep& made : phase) {
        Step step;
        for (const MeshSend& one : made.sends) {
          step.push_back(one.send);
          step.back().mesh = mesh_numbers_.Of(one.mesh, schedule_.meshes);
        }
        // A NIC is far slower than memory, and the packet's time holds its start.
        ScheduledStep scheduled{.after = ready, .copies = made.copies, .parts = made.parts};
        if (number < last_between_.size()) scheduled.behind = last_between_[number];
        ends.push_back(schedule_.Append(std::move(step), {}, std::move(scheduled)));
      }
      first_of_phase.push_back(ends.front());
      ready = std::move(ends);
    }
    last_between_ = first_of_phase;
    return ready;
  }

  // Lets domains with unequal NICs hand over what they send, or get, of the homes' parts.
  Ends HandOverKinds(const std::vector<MeshHome>& homes, const Ends& after, bool back) {
    Ends ends = after;
    for (std::size_t kind = 0; kind < meshes_->kinds().size(); ++kind) {
      const std::size_t front = meshes_->kinds()[kind].front();
      if (!HasProxies(set_.groups()[front])) continue;
      HandOverCase region{request_.operation, /*home=*/false, front, back};
      const bool others = HandsOver(region);
      region.home = true;
      // In a mesh the place that answers for a part sums it up, the domain's own, too.
      const bool own = OwnersCombine(request_.operation) || HandsOver(region);
      std::size_t step = 0;
      for (HandOverStep& made : meshes_->HandOversOf(homes, kind, back, own, others)) {
        const StepWork work =
            WorkOf(made.step, {.banks = set_.banks()}, options_.costs, fabric_.timing());
        const Ends last =
            Chain({schedule_.Add(std::move(made.step), work)}, made.copies, made.through, after);
        schedule_.scheduled.back().parts = std::move(made.parts);
        // The first chunk's bytes go first: side by side all would be handed over before one is
        // sent.
        const auto [before, first] = last_in_kind_.try_emplace({kind, step++, back}, last.front());
        if (!first) schedule_.scheduled.back().behind = std::exchange(before->second, last.front());
        ends.push_back(last.front());
      }
    }
    return ends;
  }

  // Schedules the steps between the domains, all regions in the same steps.
  Ends ScheduleBetween(const std::vector<HomedRegion>& regions, const Ends& after) {
    std::vector<Copy> copies = CopiesOf(regions);
    const std::uint64_t begin = regions.front().region.begin();
    std::vector<std::vector<Extent>> key;
    for (const HomedRegion& homed : regions) {
      std::vector<Extent>& pieces = key.emplace_back(homed.region.pieces());
      for (Extent& piece : pieces) {
        piece.begin -= begin;
        piece.end -= begin;
      }
    }
    if (key != between_key_) {
      between_key_ = key;
      between_begin_ = begin;
      between_steps_.clear();
      std::vector<Step> steps;
      for (const HomedRegion& homed : regions) {
        const std::vector<Segment> segments = SegmentsOf(homed);
        const std::size_t made = copies.empty() ? segments.size() : 1;
        for (std::size_t i = 0; i < made; ++i) AppendSegment(homed, segments[i], steps);
      }
      std::erase_if(steps, [](const Step& step) { return step.empty(); });
      // A NIC is far slower than memory, and the packet's time holds its start.
      for (Step& step : steps) between_steps_.push_back(schedule_.Add(std::move(step), {}));
    }
    if (copies.empty()) copies = {{}};
    for (Copy& copy : copies) copy.bytes += BytesOf(request_, begin - between_begin_);
    const std::size_t first = schedule_.scheduled.size();
    Ends ends = Chain(between_steps_, copies, kAllChips, after);
    KeepInOrder(first);
    return ends;
  }

  const Request& request_;
  const Layout& layout_;
  const DomainSet& set_;
  const Fabric& fabric_;
  const InterAlgorithm between_;
  const std::uint64_t chunks_;
  const ChunkSizes sizes_;
  const PlanOptions options_;
  const std::vector<DomainSet::Kind> kinds_;
  const PaddedSteps padded_;
  // One message stands for those between all domains of two kinds.
  std::optional<DomainMeshes> meshes_;
  MeshNumbers mesh_numbers_;
  // By kind, the steps inside domains that the next ones wait for: Neuron does one phase at a time,
  // as its work on the chip does not hide behind messages.
  std::vector<Ends> last_inside_;
  const std::vector<int> home_weights_;  // by group, of what belongs to nobody
  Schedule schedule_;
  std::vector<std::uint32_t> last_between_;  // by step, of the chunk before
  // What was handed over last, or back, by group.
  std::map<std::pair<std::size_t, bool>, std::uint32_t> last_handed_;
  // The same by kind of domains and number of the step.
  std::map<std::tuple<std::size_t, std::size_t, bool>, std::uint32_t> last_in_kind_;
  std::map<std::tuple<Inside, std::size_t, std::uint64_t, std::uint64_t>, WorkedSteps>
      padded_steps_;
  std::map<std::tuple<Inside, std::size_t, std::vector<Extent>, std::vector<std::uint64_t>>, Ends>
      inside_;
  // The last steps between the domains, for regions that begin where these did or later.
  std::vector<std::vector<Extent>> between_key_;
  std::uint64_t between_begin_ = 0;
  Ends between_steps_;
};

}  // namespace

bool AreAlikeInARow(const Request& request, const Layout& layout, const DomainSet& set) {
  if (!set.even() || set.kinds().size() != 1) return false;
  const std::vector<DomainSet::Group>& groups = set.groups();
  const bool blocks =
      request.operation != Operation::kAllReduce && request.operation != Operation::kBroadcast;
  // An all-to-all leaves out what does not divide.
  const bool equal = request.operation == Operation::kAllToAll;
  std::size_t next = 0;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    if (groups[i].domain != groups[0].domain + static_cast<int>(i)) return false;
    for (const std::size_t member : groups[i].members) {
      const std::uint64_t block = layout.bounds[member + 1] - layout.bounds[member];
      if (blocks && (member != next++ || (!equal && block != layout.bounds[1]))) return false;
    }
  }
  return true;
}

absl::StatusOr<Schedule> ComposePhases(const Composition& composition) {
  return Composer(composition).Compose();
}

}  // namespace tahoma::sim
