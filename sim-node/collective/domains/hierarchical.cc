#include "sim-node/collective/domains/hierarchical.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "lib/base/check.h"
#include "lib/base/status.h"
#include "lib/collective/predict_domains.h"
#include "sim-node/collective/algorithms/moves.h"
#include "sim-node/collective/domains/domains.h"
#include "sim-node/collective/domains/nic_relay.h"
#include "sim-node/collective/domains/region.h"
#include "sim-node/collective/plan/chip_cost.h"

namespace tahoma::sim {
namespace {

// Numbers of scheduled steps that must have ended.
using Ends = std::vector<std::uint32_t>;

// The operation among the members of one topology domain.
enum class Inside : std::uint8_t { kReduceScatter, kAllGather, kScatter };

// A chunk has no less: small buffers are one.
constexpr std::uint64_t kChunkBytesMin = std::uint64_t{1} << 20U;
// Chunks of what goes over other chips' NICs: enough that handing over and on hides behind them.
constexpr std::uint64_t kRelayChunks = 8;

std::uint64_t BytesOf(const Request& request, std::uint64_t elements) {
  return elements * Size(request.type);
}

Send MakeSend(const Request& request, torus::ChipIndex from, torus::ChipIndex to,
              const Extent& elements, Action action) {
  return {.from = from,
          .to = to,
          .offset = BytesOf(request, elements.begin),
          .to_offset = BytesOf(request, elements.begin),
          .bytes = BytesOf(request, elements.size()),
          .action = action};
}

// Steps with what the chips add to each.
struct WorkedSteps {
  std::vector<Step> steps;
  std::vector<StepWork> work;
  // The work of ranks on one chip, before the first and after the last step.
  VirtualDuration before{};
  VirtualDuration after{};
};

WorkedSteps Worked(Schedule schedule) {
  TAHOMA_CHECK(schedule.scheduled.empty() && schedule.stripes == 1);
  schedule.work.resize(schedule.steps.size());
  return {.steps = std::move(schedule.steps),
          .work = std::move(schedule.work),
          .before = schedule.before,
          .after = schedule.after};
}

// Steps of a group on a padded buffer, in which every place has a block of `block` elements, made
// on `times` such buffers at once: all of them together decide which algorithm is best.
class PaddedSteps {
 public:
  PaddedSteps(const Request& request, const HierarchyChoice& choice)
      : request_(request), choice_(choice) {}

  absl::StatusOr<WorkedSteps> Of(Inside inside, const DomainSet::Group& group,
                                 const TorusLinks& links, std::uint64_t block,
                                 std::uint64_t times) const {
    if (group.local.size() == 1) return WorkedSteps{};
    if (inside == Inside::kScatter) return Scatter(group, links, block);
    Request asked{.operation = inside == Inside::kReduceScatter ? Operation::kReduceScatter
                                                                : Operation::kAllGather,
                  .bytes = BytesOf(request_, block * group.local.size() * times),
                  .type = request_.type};
    PlanOptions options = choice_.options;
    options.stripes = 1;
    options.few_channels = true;  // the schedules of five chunk counts are made and timed
    std::optional<Algorithm> algorithm = choice_.inside;
    if (!algorithm) {
      TAHOMA_ASSIGN_OR_RETURN(Plan plan, PlanCollective(asked, group.local, links, options));
      if (times == 1) return Worked(std::move(plan.schedule));
      algorithm = plan.algorithm;
    }
    asked.bytes /= times;
    TAHOMA_ASSIGN_OR_RETURN(Plan plan, PlanWith(*algorithm, asked, group.local, links, options));
    return Worked(std::move(plan.schedule));
  }

 private:
  // Returns the steps that scatter from the first place to all: directly to each in one step, or
  // along the channels of a box, which keep all of its links busy and take more steps. The faster
  // of the two.
  absl::StatusOr<WorkedSteps> Scatter(const DomainSet::Group& group, const TorusLinks& links,
                                      std::uint64_t block) const {
    const ChipSet set = SetOf(group.local, links);
    const std::vector<int> weights(set.size(), 1);
    const Layout layout = Layout::Weighted(weights, block * set.size(), Size(request_.type));
    Schedule straight;
    Step& step = straight.steps.emplace_back();
    for (std::size_t to = 1; to < set.size(); ++to) {
      const Extent elements{.begin = layout.bounds[to], .end = layout.bounds[to + 1]};
      step.push_back(MakeSend(request_, set.chips()[0], set.chips()[to], elements, Action::kCopy));
    }
    AddWork(straight, set, links);
    if (set.box() == nullptr) return Worked(std::move(straight));
    Schedule channels;
    channels.steps =
        ScatterSteps(set, links.torus(), layout, BalancedChannels(*set.box(), links.torus()));
    AddWork(channels, set, links);
    TAHOMA_ASSIGN_OR_RETURN(const auto straight_times, TimeSchedules({&straight}, links));
    TAHOMA_ASSIGN_OR_RETURN(const auto channels_times, TimeSchedules({&channels}, links));
    return Worked(straight_times[0].end < channels_times[0].end ? std::move(straight)
                                                                : std::move(channels));
  }

  void AddWork(Schedule& schedule, const ChipSet& set, const TorusLinks& links) const {
    schedule.through = set.through();
    for (const Step& step : schedule.steps) {
      schedule.work.push_back(WorkOf(step, {}, choice_.options.costs, links.timing()));
    }
  }

  const Request& request_;
  const HierarchyChoice& choice_;
};

// The sends of padded steps on the region, whose places have [bounds[p], bounds[p + 1]).
std::vector<Step> Unpadded(const std::vector<Step>& padded, const Request& request,
                           std::uint64_t block, const Region& region,
                           const std::vector<std::uint64_t>& bounds) {
  TAHOMA_CHECK(block > 0);
  const std::uint64_t size = Size(request.type);
  std::vector<Step> steps(padded.size());
  for (std::size_t t = 0; t < padded.size(); ++t) {
    for (const Send& send : padded[t]) {
      std::uint64_t at = send.offset / size;
      const std::uint64_t end = at + send.bytes / size;
      while (at < end) {
        const std::uint64_t place = at / block;
        const std::uint64_t until = std::min(end, (place + 1) * block);
        const std::uint64_t room = bounds[place + 1];
        const std::uint64_t from = std::min(bounds[place] + at % block, room);
        const std::uint64_t to = std::min(from + (until - at), room);
        for (const Extent& real : region.RealOf(from, to)) {
          steps[t].push_back(MakeSend(request, send.from, send.to, real, send.action));
        }
        at = until;
      }
    }
  }
  return steps;
}

// Makes the schedule of one request with everything chosen but what PlanCollective chooses.
class Composer {
 public:
  Composer(const Request& request, const Layout& layout, const DomainSet& set, const Fabric& fabric,
           const HierarchyChoice& choice, InterAlgorithm between, int chunks)
      : request_(request),
        layout_(layout),
        set_(set),
        fabric_(fabric),
        between_(between),
        chunks_(static_cast<std::uint64_t>(chunks)),
        options_(choice.options),
        padded_(request, choice) {}

  absl::StatusOr<Schedule> Compose() {
    const bool reduces = Combines(request_.operation);
    const bool gathers = request_.operation != Operation::kReduceScatter;
    std::vector<Ends> reduced(set_.kinds().size());  // by kind: of the chunk before
    std::vector<Ends> gathered(set_.kinds().size());
    std::vector<Ends> sent;  // between the domains, by chunk
    for (std::uint64_t chunk = 0; chunk < chunks_; ++chunk) {
      const std::vector<HomedRegion> regions = RegionsOf(chunk);
      if (regions.empty()) continue;
      Ends ready;
      for (std::size_t kind = 0; kind < set_.kinds().size(); ++kind) {
        const bool roots = request_.operation == Operation::kBroadcast && kind == KindOfRoot();
        if (!reduces && !roots) continue;
        const Inside inside = reduces ? Inside::kReduceScatter : Inside::kScatter;
        TAHOMA_ASSIGN_OR_RETURN(reduced[kind],
                                ScheduleInside(inside, kind, regions, reduced[kind]));
        ready.insert(ready.end(), reduced[kind].begin(), reduced[kind].end());
      }
      const bool first = request_.operation == Operation::kAllGather;
      const std::size_t window = first ? 2 : collective::kChunksBetween;
      if (sent.size() >= window) {
        const Ends& before = sent[sent.size() - window];
        ready.insert(ready.end(), before.begin(), before.end());
      }
      if (first) ready = ScheduleOwnerMoves(regions, ready);
      ready = ScheduleBetween(regions, ready);
      sent.push_back(ready);
      if (request_.operation == Operation::kReduceScatter) ScheduleOwnerMoves(regions, ready);
      for (std::size_t kind = 0; gathers && kind < set_.kinds().size(); ++kind) {
        Ends after = ready;
        after.insert(after.end(), gathered[kind].begin(), gathered[kind].end());
        TAHOMA_ASSIGN_OR_RETURN(gathered[kind],
                                ScheduleInside(Inside::kAllGather, kind, regions, after));
      }
    }
    return std::move(schedule_);
  }

 private:
  // A region whose parts belong to the members of one group in the end, or (-1) to nobody.
  struct HomedRegion {
    Region region;
    int home = -1;
  };

  bool HasSingleStep() const {
    return between_ == InterAlgorithm::kSingleStep && request_.operation == Operation::kAllReduce;
  }
  bool HasHomes() const {
    return request_.operation == Operation::kAllGather ||
           request_.operation == Operation::kReduceScatter;
  }
  std::size_t KindOfRoot() const {
    for (std::size_t kind = 0; kind < set_.kinds().size(); ++kind) {
      if (set_.kinds()[kind].front() == 0) return kind;  // kinds are in order of groups
    }
    return 0;
  }

  // Chunks are of equal size, except where they go between the domains first, two at a time: there
  // the first is half as long, so that one ends while the other is in the middle and the NICs never
  // wait.
  std::uint64_t ElementsBefore(std::uint64_t chunk, std::uint64_t elements) const {
    if (request_.operation != Operation::kAllGather) return elements * chunk / chunks_;
    return chunk == 0 ? 0 : elements * (2 * chunk - 1) / (2 * chunks_ - 1);
  }

  // Returns a part of every member's block, by group, if there are homes; otherwise a part of the
  // buffer.
  std::vector<HomedRegion> RegionsOf(std::uint64_t chunk) const {
    const auto part = [&](const Extent& whole) {
      return Extent{.begin = whole.begin + ElementsBefore(chunk, whole.size()),
                    .end = whole.begin + ElementsBefore(chunk + 1, whole.size())};
    };
    std::vector<HomedRegion> regions;
    if (!HasHomes()) {
      regions.push_back({.region = Region({part({.begin = 0, .end = layout_.bounds.back()})})});
    }
    for (std::size_t group = 0; HasHomes() && group < set_.size(); ++group) {
      std::vector<Extent> pieces;
      for (const std::size_t member : set_.groups()[group].members) {
        pieces.push_back(
            part({.begin = layout_.bounds[member], .end = layout_.bounds[member + 1]}));
      }
      regions.push_back({.region = Region(std::move(pieces)), .home = static_cast<int>(group)});
    }
    std::erase_if(regions, [](const HomedRegion& homed) { return homed.region.size() == 0; });
    return regions;
  }

  // Returns the bounds of the parts of the region for which the places of the group answer.
  std::vector<std::uint64_t> BoundsOf(const HomedRegion& homed, std::size_t group) const {
    if (homed.home >= 0 && set_.even()) return homed.region.bounds();
    return CutBy(set_.groups()[group].answers, homed.region.size());
  }

  // Steps of a kind on a region that begins at 0, as numbers in the schedule.
  absl::StatusOr<Ends> StepsInside(Inside inside, std::size_t kind, const Region& normal,
                                   const std::vector<std::uint64_t>& bounds, std::uint64_t times) {
    const auto known = inside_.find({inside, kind, normal.pieces(), bounds});
    if (known != inside_.end()) return known->second;
    const DomainSet::Group& group = set_.groups()[set_.kinds()[kind].front()];
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
    std::vector<Step> steps = Unpadded(padded->second.steps, request_, block, normal, bounds);
    for (std::size_t i = 0; i < steps.size(); ++i) {
      if (steps[i].empty()) continue;
      numbers.push_back(Add(std::move(steps[i]), padded->second.work[i]));
    }
    schedule_.before = std::max(schedule_.before, padded->second.before);
    schedule_.after = std::max(schedule_.after, padded->second.after);
    inside_.emplace(std::tuple(inside, kind, normal.pieces(), bounds), numbers);
    return numbers;
  }

  // Regions that are the same but for where they begin go together.
  absl::StatusOr<Ends> ScheduleInside(Inside inside, std::size_t kind,
                                      const std::vector<HomedRegion>& regions, const Ends& after) {
    const DomainSet::Kind& groups = set_.kinds()[kind];
    std::map<Ends, std::vector<std::uint64_t>> begins;  // by steps
    for (const HomedRegion& homed : regions) {
      TAHOMA_ASSIGN_OR_RETURN(const Ends steps,
                              StepsInside(inside, kind, homed.region.Normal(),
                                          BoundsOf(homed, groups.front()), regions.size()));
      begins[steps].push_back(homed.region.begin());
    }
    Ends ends;
    for (const auto& [steps, starts] : begins) {
      std::vector<Copy> copies;
      for (const std::size_t group : groups) {
        if (inside == Inside::kScatter && group != 0) continue;
        for (const std::uint64_t start : starts) {
          copies.push_back({.chips = Fabric::ChipOf(set_.groups()[group].domain, 0).value(),
                            .bytes = BytesOf(request_, start)});
        }
      }
      const Ends last = Chain(steps, copies, set_.groups()[groups.front()].through, after);
      ends.insert(ends.end(), last.begin(), last.end());
    }
    return ends;
  }

  // The number of the step in the schedule.
  std::uint32_t Add(Step step, const StepWork& work) {
    schedule_.steps.push_back(std::move(step));
    schedule_.work.push_back(work);
    return static_cast<std::uint32_t>(schedule_.steps.size() - 1);
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

  // Moves parts inside a group to their owners where other places answer for them.
  Ends ScheduleOwnerMoves(const std::vector<HomedRegion>& regions, const Ends& after) {
    if (set_.even()) return after;
    Ends ends = after;
    for (const HomedRegion& homed : regions) {
      const auto group = static_cast<std::size_t>(homed.home);
      const std::vector<std::uint64_t>& owned = homed.region.bounds();
      const std::vector<std::uint64_t> answered = BoundsOf(homed, group);
      Step step;
      for (std::size_t owner = 0; owner + 1 < owned.size(); ++owner) {
        for (std::size_t place = 0; place + 1 < answered.size(); ++place) {
          const std::uint64_t begin = std::max(owned[owner], answered[place]);
          const std::uint64_t end = std::min(owned[owner + 1], answered[place + 1]);
          if (begin >= end || owner == place) continue;
          const bool gathers = request_.operation == Operation::kAllGather;
          const torus::ChipIndex from = set_.ChipOf(group, gathers ? owner : place);
          const torus::ChipIndex to = set_.ChipOf(group, gathers ? place : owner);
          for (const Extent& real : homed.region.RealOf(begin, end)) {
            step.push_back(MakeSend(request_, from, to, real, Action::kCopy));
          }
        }
      }
      if (step.empty()) continue;
      const StepWork work =
          WorkOf(step, {}, options_.costs, fabric_.domain(set_.groups()[group].domain).timing());
      const Ends last =
          Chain({Add(std::move(step), work)}, {{}}, set_.groups()[group].through, after);
      ends.insert(ends.end(), last.begin(), last.end());
    }
    return ends;
  }

  // Elements of a region for which the same chip of every group answers.
  struct Segment {
    Extent elements;                  // of the region
    std::vector<std::size_t> places;  // by group
  };
  std::vector<Segment> SegmentsOf(const HomedRegion& homed) const {
    std::set<std::uint64_t> cuts;
    std::vector<std::vector<std::uint64_t>> bounds;
    for (std::size_t group = 0; group < set_.size(); ++group) {
      bounds.push_back(BoundsOf(homed, group));
      cuts.insert(bounds.back().begin(), bounds.back().end());
    }
    std::vector<Segment> segments;
    for (auto cut = cuts.begin(); std::next(cut) != cuts.end(); ++cut) {
      Segment& segment = segments.emplace_back();
      segment.elements = {.begin = *cut, .end = *std::next(cut)};
      for (const std::vector<std::uint64_t>& of_group : bounds) {
        const auto after = std::upper_bound(of_group.begin(), of_group.end(), *cut);
        segment.places.push_back(static_cast<std::size_t>(after - of_group.begin() - 1));
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
      if (home != 0)
        moves.emplace_back(DomainMove{.step = 0, .from = 0, .to = home}, Action::kCopy);
      steps = 1;
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
    for (const auto& [move, action] : MovesOf(home)) {
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

  // Every group's chip sends all it has to all others, in one step. All combine in the order of the
  // groups, what they had themselves at its place: a sum that rounds has the same bits everywhere.
  void AppendSingleStep(const HomedRegion& homed, const Segment& segment,
                        std::vector<Step>& steps) const {
    steps.resize(std::max<std::size_t>(steps.size(), 1));
    for (std::size_t to = 0; to < set_.size(); ++to) {
      for (std::size_t from = 0; from < set_.size(); ++from) {
        const Action action = from == 0 ? Action::kCopy : Action::kReduce;
        for (const Extent& real :
             homed.region.RealOf(segment.elements.begin, segment.elements.end)) {
          steps[0].push_back(MakeSend(request_, set_.ChipOf(from, segment.places[from]),
                                      set_.ChipOf(to, segment.places[to]), real, action));
        }
      }
    }
  }

  void AppendSegment(const HomedRegion& homed, const Segment& segment,
                     std::vector<Step>& steps) const {
    if (HasSingleStep()) return AppendSingleStep(homed, segment, steps);
    const bool direct =
        between_ == InterAlgorithm::kSingleStep && request_.operation == Operation::kBroadcast;
    if (homed.home >= 0 || direct) {  // a broadcast's home is the root's domain
      AppendMoves(homed, segment, segment.elements, direct ? 0 : homed.home, steps);
      return;
    }
    const std::vector<std::uint64_t> parts =
        CutBy(std::vector<int>(set_.size(), 1), segment.elements.size());
    for (std::size_t home = 0; home < set_.size(); ++home) {
      const Extent part{.begin = segment.elements.begin + parts[home],
                        .end = segment.elements.begin + parts[home + 1]};
      if (part.size() > 0) AppendMoves(homed, segment, part, static_cast<int>(home), steps);
    }
  }

  // Places of all groups do the same, each on a block of its own: then the first place's steps are
  // made at all of them. Nothing when they do not.
  std::vector<Copy> CopiesOf(const std::vector<HomedRegion>& regions) const {
    if (set_.kinds().size() != 1 || !set_.even()) return {};
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
    if (copies.empty() || key != between_key_) {
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
      for (Step& step : steps) between_steps_.push_back(Add(std::move(step), {}));
    }
    if (copies.empty()) copies = {{}};
    for (Copy& copy : copies) copy.bytes += BytesOf(request_, begin - between_begin_);
    Ends ends = Chain(between_steps_, copies, kAllChips, after);
    if (HasSingleStep() && !between_steps_.empty()) schedule_.scheduled.back().snapshot = true;
    return ends;
  }

  const Request& request_;
  const Layout& layout_;
  const DomainSet& set_;
  const Fabric& fabric_;
  const InterAlgorithm between_;
  const std::uint64_t chunks_;
  const PlanOptions options_;
  const PaddedSteps padded_;
  Schedule schedule_;
  std::map<std::tuple<Inside, std::size_t, std::uint64_t, std::uint64_t>, WorkedSteps>
      padded_steps_;
  std::map<std::tuple<Inside, std::size_t, std::vector<Extent>, std::vector<std::uint64_t>>, Ends>
      inside_;
  // The last steps between the domains, for regions that begin where these did or later.
  std::vector<std::vector<Extent>> between_key_;
  std::uint64_t between_begin_ = 0;
  Ends between_steps_;
};

// The plan of the chip with the most ranks, as if it were alone: refuses what cannot be asked, and
// has what ranks of one chip do among themselves.
absl::StatusOr<Plan> PlanAlone(const Request& request, const std::vector<Member>& members,
                               const Fabric& fabric, const HierarchyChoice& choice) {
  const Member& fullest = *std::ranges::max_element(members, {}, &Member::ranks);
  const Member alone{.chip = Fabric::LocalOf(fullest.chip), .ranks = fullest.ranks};
  Request own = request;
  own.blocks = nullptr;  // they name the ranks of other chips
  return PlanCollective(own, {alone}, fabric.domain(Fabric::DomainOf(fullest.chip)),
                        choice.options);
}

absl::StatusOr<Plan> Timed(Plan plan, const Fabric& fabric) {
  TAHOMA_ASSIGN_OR_RETURN(auto times, TimeSchedules({&plan.schedule}, fabric));
  plan.times = std::move(times[0]);
  return plan;
}

// The facts that all plans of one request over several topology domains share.
struct Question {
  const Request& request;
  const std::vector<Member>& members;
  const Fabric& fabric;
  const HierarchyChoice& choice;
  const DomainSet& set;
  const Layout& layout;

  absl::StatusOr<Plan> Answer(InterAlgorithm between, int chunks) const {
    Plan plan{.algorithm = Algorithm::kHier, .schedule = {}, .times = {}};
    TAHOMA_ASSIGN_OR_RETURN(
        plan.schedule, Composer(request, layout, set, fabric, choice, between, chunks).Compose());
    const bool single = std::ranges::all_of(
        set.groups(), [](const DomainSet::Group& group) { return group.local.size() == 1; });
    if (single) {  // no step inside has it
      TAHOMA_ASSIGN_OR_RETURN(const Plan alone, PlanAlone(request, members, fabric, choice));
      plan.schedule.before = alone.schedule.before;
      plan.schedule.after = alone.schedule.after;
    }
    return Timed(std::move(plan), fabric);
  }
};

// Whether one step in place of two can be worth it for an all-reduce or a broadcast: a packet's
// time saved against N - 1 times a chip's block in place of 2 (N - 1)/N of it.
bool MaySaveAStep(const Question& asked) {
  const Operation operation = asked.request.operation;
  if (operation != Operation::kAllReduce && operation != Operation::kBroadcast) return false;
  const std::uint64_t block = asked.request.bytes / asked.set.groups()[0].local.size();
  const std::uint64_t domains = asked.set.size();
  const std::uint64_t more = block * (domains - 1) * (domains - 2) / domains;
  const auto nic = asked.fabric.efa().capacity(0);
  return nic > 0 && TransferTime(more, nic) < asked.fabric.efa().timing().packet;
}

// Returns the algorithms to try. On a network that only NICs can limit, mesh, ring and rdh send the
// same bytes through each NIC: the fewest steps win. Otherwise the loads of the uplinks decide: all
// are tried.
std::vector<InterAlgorithm> Candidates(const Question& asked) {
  if (asked.choice.between) return {*asked.choice.between};
  std::vector<InterAlgorithm> candidates = {InterAlgorithm::kMesh};
  if (MaySaveAStep(asked)) candidates.push_back(InterAlgorithm::kSingleStep);
  if (!asked.fabric.efa().UplinksLimit()) return candidates;
  candidates.push_back(InterAlgorithm::kRing);
  if (Serves(InterAlgorithm::kRdh, static_cast<int>(asked.set.size()))) {
    candidates.push_back(InterAlgorithm::kRdh);
  }
  return candidates;
}

absl::StatusOr<Plan> PlanPhases(const Question& asked) {
  std::optional<Plan> best;
  std::optional<InterAlgorithm> between;
  const auto take = [&](absl::StatusOr<Plan> plan, InterAlgorithm by) {
    if (best && plan->times.end >= best->times.end) return false;
    best = *std::move(plan);
    between = by;
    return true;
  };
  for (const InterAlgorithm candidate : Candidates(asked)) {
    auto plan = asked.Answer(candidate, asked.choice.chunks.value_or(1));
    if (!plan.ok()) return plan.status();
    take(std::move(plan), candidate);
  }
  if (asked.choice.chunks) return *std::move(best);
  for (const int chunks : collective::kChunkCounts) {
    if (chunks == 1) continue;
    if (asked.request.bytes / static_cast<std::uint64_t>(chunks) < kChunkBytesMin) break;
    auto plan = asked.Answer(*between, chunks);
    if (!plan.ok()) return plan.status();
    if (!take(std::move(plan), *between)) break;  // more chunks cost more starts than they save
  }
  return *std::move(best);
}

// Returns the ring along the rings of the domains, one domain after the other.
std::vector<torus::ChipIndex> RingOf(const DomainSet& set, const Fabric& fabric) {
  std::vector<torus::ChipIndex> ring;
  for (const DomainSet::Group& group : set.groups()) {
    const TorusLinks& links = fabric.domain(group.domain);
    const auto rings = SetOf(group.local, links).Rings(links);
    for (const torus::ChipIndex chip : rings.front()) {
      ring.push_back(Fabric::ChipOf(group.domain, chip.value()));
    }
  }
  return ring;
}

// Schedules the messages inside each domain, all at once. Returns those between the domains.
Step ScheduleInsideMessages(const Step& all, const StepWork& work, const DomainSet& set,
                            Schedule& schedule) {
  std::vector<Step> steps(set.size() + 1);
  for (const Send& send : all) {
    const bool inside = Fabric::DomainOf(send.from) == Fabric::DomainOf(send.to);
    steps[inside ? set.GroupOf(send.from) : set.size()].push_back(send);
  }
  for (std::size_t i = 0; i < set.size(); ++i) {
    if (steps[i].empty()) continue;
    schedule.scheduled.push_back({.step = static_cast<std::uint32_t>(schedule.steps.size()),
                                  .through = set.groups()[i].through});
    schedule.steps.push_back(std::move(steps[i]));
    schedule.work.push_back(
        {.start = work.start, .memory = i == 0 ? work.memory : VirtualDuration(0)});
  }
  return std::move(steps.back());
}

// Plans an exchange: all messages at once, except those that other chips' NICs relay, which go in
// chunks.
absl::StatusOr<Plan> PlanExchangeIn(std::uint64_t chunks, const Question& asked,
                                    const Exchange& exchange) {
  Plan plan{.algorithm = Algorithm::kHier, .schedule = {}, .times = {}};
  const ChipCosts& costs = asked.choice.options.costs;
  // Ranks on one chip copy beside the messages; memory serves all of them at once.
  const StepWork work = WorkOf(exchange.step, {}, costs, asked.fabric.timing());
  const Step between = ScheduleInsideMessages(exchange.step, work, asked.set, plan.schedule);
  std::map<torus::ChipIndex, std::uint64_t> free;
  for (const Member& member : asked.members) {
    free.emplace(member.chip, ChipBufferBytes(asked.request, member.ranks));
  }
  TAHOMA_ASSIGN_OR_RETURN(Relay relay, RelayOf(between, asked.set, asked.fabric, free, chunks));
  plan.schedule.relay_bytes = relay.bytes;
  AppendRelay(std::move(relay), asked.set, work, costs, asked.fabric.timing(), plan.schedule);
  plan.sources = exchange.sources;
  return Timed(std::move(plan), asked.fabric);
}

absl::StatusOr<Plan> PlanExchange(const Question& asked) {
  std::vector<torus::ChipIndex> ring;
  if (asked.request.operation == Operation::kPermute && asked.request.blocks == nullptr) {
    ring = RingOf(asked.set, asked.fabric);
  }
  TAHOMA_ASSIGN_OR_RETURN(const Exchange exchange,
                          ExchangeAlong(asked.request, asked.members, ring));
  const int chunks = asked.choice.chunks.value_or(1);
  TAHOMA_ASSIGN_OR_RETURN(Plan plan,
                          PlanExchangeIn(static_cast<std::uint64_t>(chunks), asked, exchange));
  if (plan.schedule.relay_bytes == 0 || asked.choice.chunks) return plan;
  TAHOMA_ASSIGN_OR_RETURN(Plan cut, PlanExchangeIn(kRelayChunks, asked, exchange));
  return cut.times.end < plan.times.end ? std::move(cut) : std::move(plan);
}

absl::Status Check(const std::vector<Member>& members, const Fabric& fabric,
                   const HierarchyChoice& choice) {
  if (members.empty()) return InvalidArgument("a collective needs at least one chip");
  std::set<torus::ChipIndex> seen;
  for (const Member& member : members) {
    if (!fabric.Contains(member.chip)) {
      return InvalidArgument("chip {} is not in a fabric of {} domains", member.chip.value(),
                             fabric.domain_count());
    }
    if (!seen.insert(member.chip).second) {
      return InvalidArgument("chip {} takes part twice", member.chip.value());
    }
  }
  // The most ranks are checked with the request, on their chip alone.
  const Member& fewest = *std::ranges::min_element(members, {}, &Member::ranks);
  if (fewest.ranks < 1) {
    return InvalidArgument("chip {} has {} ranks; expected at least 1", fewest.chip.value(),
                           fewest.ranks);
  }
  if (choice.chunks && *choice.chunks < 1) {
    return InvalidArgument("{} chunks; expected at least 1", *choice.chunks);
  }
  return absl::OkStatus();
}

// Plans in one topology domain, with the chips' numbers in the fabric.
absl::StatusOr<Plan> PlanInDomain(const Request& request, const std::vector<Member>& members,
                                  const Fabric& fabric, const HierarchyChoice& choice) {
  const int domain = Fabric::DomainOf(members[0].chip);
  std::vector<Member> local = members;
  for (Member& member : local) member.chip = Fabric::LocalOf(member.chip);
  TAHOMA_ASSIGN_OR_RETURN(
      Plan plan,
      choice.inside
          ? PlanWith(*choice.inside, request, local, fabric.domain(domain), choice.options)
          : PlanCollective(request, local, fabric.domain(domain), choice.options));
  if (domain == 0) return plan;
  for (Step& step : plan.schedule.steps) {
    for (Send& send : step) {
      send.from = Fabric::ChipOf(domain, send.from.value());
      send.to = Fabric::ChipOf(domain, send.to.value());
    }
  }
  return plan;
}

}  // namespace

absl::StatusOr<Plan> PlanOnFabric(const Request& request, const std::vector<Member>& members,
                                  const Fabric& fabric, const HierarchyChoice& choice) {
  TAHOMA_RETURN_IF_ERROR(Check(members, fabric, choice));
  const DomainSet set(members, fabric);
  if (set.size() == 1) return PlanInDomain(request, members, fabric, choice);
  // The rules for requests are the same everywhere, so a plan for one chip alone checks them.
  TAHOMA_RETURN_IF_ERROR(PlanAlone(request, members, fabric, choice).status());
  std::vector<int> weights;
  for (const Member& member : members) weights.push_back(member.ranks);
  const std::uint64_t size = Size(request.type);
  const Layout layout = Layout::Weighted(weights, request.bytes / size, size);
  const Question asked{request, members, fabric, choice, set, layout};
  if (IsExchange(request.operation)) return PlanExchange(asked);
  for (const DomainSet::Group& group : set.groups()) {
    if (std::ranges::count(group.answers, 1) == 0) {
      return FailedPrecondition("the EFA NICs of all {} chips of domain {} are down",
                                group.local.size(), group.domain);
    }
  }
  const auto domains = static_cast<int>(set.size());
  if (choice.between && !Serves(*choice.between, domains)) {
    return InvalidArgument("rdh between domains needs a power of two of them; here are {}",
                           domains);
  }
  return PlanPhases(asked);
}

}  // namespace tahoma::sim
