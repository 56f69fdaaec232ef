#include "sim-node/emulator/collective/domains/flow_over_domains.h"

#include <absl/container/flat_hash_map.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "lib/base/check.h"
#include "lib/base/status.h"
#include "sim-node/emulator/collective/algorithms/trees.h"
#include "sim-node/emulator/collective/domains/fabric_trees.h"
#include "sim-node/emulator/collective/domains/padded_steps.h"
#include "sim-node/emulator/collective/domains/region.h"
#include "sim-node/emulator/collective/domains/task_order.h"
#include "sim-node/emulator/collective/plan/bound.h"
#include "sim-node/emulator/collective/plan/question.h"

namespace tahoma::sim {
namespace {

using torus::ChipIndex;

// Links are planned with steps that are so many hundredths longer than they take: a domain that a
// message has kept waiting can catch up.
constexpr std::uint64_t kPlannedPercent = 105;

// The most sends of a plan, and the most pieces that are worth their time.
constexpr std::uint64_t kSendsMost = 512'000;
constexpr std::uint64_t kPiecesMost = 1024;

// The most steps that a message is planned to take beside its time on the NICs: more would mean a
// buffer so short that it is not worth cutting.
constexpr std::int64_t kDelayMost = 32;

// A part of a piece on a link in one step.
struct Crossing {
  std::uint32_t piece = 0;
  std::uint32_t link = 0;
  Action action = Action::kCopy;
  std::uint64_t begin = 0;  // of the fastest link's rate, as which a piece counts
  std::uint64_t end = 0;
};

// Orders the crossings of all trees: tasks on links.
class CrossingOrder {
 public:
  CrossingOrder(const FabricTrees& trees, std::uint64_t grain, std::uint32_t efa_delay)
      : trees_(trees), piece_(trees.fastest()), efa_delay_(efa_delay) {
    for (const FabricLink& link : trees.links) {
      const std::uint64_t rate = link.rate * grain;
      graph_.budgets.push_back(link.efa ? rate / 100 * kPlannedPercent : rate);
    }
    for (std::uint32_t piece = 0; piece < trees.trees.size(); ++piece) AddTree(piece);
  }

  // In the order of their steps.
  std::vector<std::vector<Crossing>> Order() const {
    std::vector<std::vector<Crossing>> steps;
    for (const TaskPart& part : OrderTasks(graph_)) {
      if (steps.size() <= part.step) steps.resize(std::size_t{part.step} + 1);
      const TaskGraph::Task& task = graph_.tasks[part.task];
      steps[part.step].push_back({.piece = task.group,
                                  .link = task.resource,
                                  .action = actions_[part.task],
                                  .begin = part.begin,
                                  .end = part.end});
    }
    return steps;
  }

 private:
  // Of a chip: the task that has the sum of all below it, and the one that brings it the result.
  struct AtChip {
    std::uint32_t summed = 0;
    std::uint32_t has = 0;
  };

  std::uint32_t Add(std::uint32_t piece) {
    graph_.tasks.push_back({.group = piece});
    actions_.push_back(Action::kCopy);
    return static_cast<std::uint32_t>(graph_.tasks.size() - 1);
  }
  std::uint32_t AddCrossing(std::uint32_t piece, std::uint32_t link, Action action) {
    graph_.tasks.push_back({.resource = link,
                            .work = piece_,
                            .delay = trees_.links[link].efa ? efa_delay_ : 0,
                            .group = piece});
    actions_.push_back(action);
    return static_cast<std::uint32_t>(graph_.tasks.size() - 1);
  }
  void Precede(std::uint32_t before, std::uint32_t after) {
    graph_.precedes.emplace_back(before, after);
  }

  void AddTree(std::uint32_t piece) {
    const FabricTree& tree = trees_.trees[piece];
    std::map<ChipIndex, AtChip> at;
    if (tree.swap) {
      const std::uint32_t both = Add(piece);
      const std::uint32_t swapped = Add(piece);
      for (const std::uint32_t link : {tree.swap->there, tree.swap->back}) {
        const std::uint32_t crossing = AddCrossing(piece, link, Action::kReduce);
        Precede(both, crossing);
        Precede(crossing, swapped);
      }
      at[tree.swap->one] = at[tree.swap->other] = {.summed = both, .has = swapped};
    } else {
      const std::uint32_t all = Add(piece);
      at[tree.branches[0].parent] = {.summed = all, .has = all};
    }
    for (const FabricTree::Branch& branch : tree.branches) {
      const AtChip& parent = at.at(branch.parent);
      const std::uint32_t up = AddCrossing(piece, branch.up, Action::kReduce);
      const std::uint32_t down = AddCrossing(piece, branch.down, Action::kCopy);
      Precede(up, parent.summed);
      Precede(parent.has, down);
      at[branch.chip] = {.summed = up, .has = down};
    }
  }

  const FabricTrees& trees_;
  const std::uint64_t piece_;
  const std::uint32_t efa_delay_;
  TaskGraph graph_;
  std::vector<Action> actions_;  // by task
};

// Makes a schedule of the crossings: each domain makes one step after the other, messages over EFA
// go beside them.
class Composer {
 public:
  Composer(const FlowQuestion& asked, const FabricTrees& trees, std::size_t stripes)
      : asked_(asked),
        trees_(trees),
        stripes_(stripes),
        piece_(trees.fastest()),
        bounds_(CutBy(std::vector<int>(trees.trees.size(), 1),
                      asked.request.bytes / Size(asked.request.type))),
        last_of_link_(trees.links.size()),
        last_of_group_(asked.set.size()),
        steps_(stripes, std::vector<std::vector<std::uint32_t>>(asked.set.size())),
        inside_(stripes, std::vector<std::uint32_t>(trees.trees.size() * PlacesOfPiece(), kNone)),
        between_(stripes) {
    for (const DomainSet::Group& group : asked.set.groups()) {
      sets_.push_back(SetOf(group.local, asked.fabric.domain(group.domain)));
    }
  }

  Schedule Compose(const std::vector<std::vector<Crossing>>& order) {
    for (std::uint32_t step = 0; step < order.size(); ++step) {
      std::vector<std::vector<Crossing>> inside(asked_.set.size());
      std::vector<Crossing> between;
      for (const Crossing& crossing : order[step]) {
        const FabricLink& link = trees_.links[crossing.link];
        if (!link.efa) {
          inside[asked_.set.GroupOf(link.from)].push_back(crossing);
        } else if (crossing.begin == 0) {
          between.push_back(crossing);
        }
      }
      // What is sent between domains has arrived before this step.
      for (std::size_t stripe = 0; stripe < stripes_; ++stripe) {
        for (const Crossing& crossing : between) AddMessage(crossing, stripe);
      }
      for (std::size_t stripe = 0; stripe < stripes_; ++stripe) {
        for (std::size_t group = 0; group < inside.size(); ++group) {
          AddStep(group, inside[group], stripe);
        }
      }
    }
    for (std::size_t group = 0; group < asked_.set.size(); ++group) AddKeptBlock(group);
    return std::move(schedule_);
  }

 private:
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

  std::size_t PlacesOfPiece() const { return asked_.set.size() * Fabric::kChipsPerDomain; }
  std::size_t PlaceOf(std::uint32_t piece, ChipIndex chip) const {
    return piece * PlacesOfPiece() + asked_.set.GroupOf(chip) * Fabric::kChipsPerDomain +
           static_cast<std::size_t>(Fabric::LocalOf(chip).value());
  }

  Extent ElementsOf(std::size_t piece, std::size_t stripe) const {
    const auto at = [&](std::uint64_t part) {
      return bounds_[piece] + (bounds_[piece + 1] - bounds_[piece]) * part / stripes_;
    };
    return {.begin = at(stripe), .end = at(stripe + 1)};
  }
  Extent PartOf(const Crossing& crossing, std::size_t stripe) const {
    const Extent all = ElementsOf(crossing.piece, stripe);
    const auto at = [&](std::uint64_t done) {
      return all.begin + static_cast<std::uint64_t>(static_cast<Wide>(all.size()) * done / piece_);
    };
    return {.begin = at(crossing.begin), .end = at(crossing.end)};
  }
  void AddStep(std::size_t group, std::vector<Crossing>& crossings, std::size_t stripe) {
    std::ranges::stable_sort(crossings, {}, &Crossing::action);
    Step step;
    std::vector<std::uint32_t> after;
    std::vector<std::uint32_t>& before = steps_[stripe][group];
    if (!before.empty()) after.push_back(before.back());
    const auto index = static_cast<std::uint32_t>(schedule_.scheduled.size());
    for (const Crossing& crossing : crossings) {
      const Extent part = PartOf(crossing, stripe);
      if (part.size() == 0) continue;
      const FabricLink& link = trees_.links[crossing.link];
      const auto messages = between_[stripe].find(PlaceOf(crossing.piece, link.from));
      if (messages != between_[stripe].end()) {
        after.insert(after.end(), messages->second.begin(), messages->second.end());
      }
      inside_[stripe][PlaceOf(crossing.piece, link.to)] = index;
      step.push_back(MakeSend(asked_.request, link.from, link.to, part, crossing.action));
    }
    if (step.empty()) return;
    std::ranges::sort(after);
    after.erase(std::unique(after.begin(), after.end()), after.end());
    const DomainSet::Group& of = asked_.set.groups()[group];
    const StepWork work = WorkOfStep(QuestionOf(group), Algorithm::kTree, step);
    Add(std::move(step), work, std::move(after), of.through, last_of_group_[group]);
    before.push_back(index);
  }

  // What an all-reduce of the chips of the group alone would ask.
  Question QuestionOf(std::size_t group) const {
    const DomainSet::Group& of = asked_.set.groups()[group];
    return {asked_.request, of.local, sets_[group], asked_.fabric.domain(of.domain),
            asked_.options};
  }

  // Adds the time in which chips with several ranks read the block that they keep, and write it.
  void AddKeptBlock(std::size_t group) {
    const VirtualDuration kept = KeptBlockTime(QuestionOf(group));
    for (const Action action : {Action::kReduce, Action::kCopy}) {
      std::vector<StepWork*> of_phase;
      for (const auto& scheduled : steps_) {
        for (const std::uint32_t index : scheduled[group]) {
          const std::uint32_t step = schedule_.scheduled[index].step;
          if (schedule_.steps[step][0].action != action) continue;
          of_phase.push_back(&schedule_.work[step]);
        }
      }
      SpreadOver(of_phase, kept);
    }
  }

  void AddMessage(const Crossing& crossing, std::size_t stripe) {
    const Extent elements = ElementsOf(crossing.piece, stripe);
    if (elements.size() == 0) return;
    const FabricTree& tree = trees_.trees[crossing.piece];
    if (tree.swap) {
      // Made once, for both directions.
      if (crossing.link == tree.swap->there) AddSwap(*tree.swap, crossing, elements, stripe);
      return;
    }
    const FabricLink& link = trees_.links[crossing.link];
    const auto index = static_cast<std::uint32_t>(schedule_.scheduled.size());
    Add({MakeSend(asked_.request, link.from, link.to, elements, crossing.action)}, {},
        AfterAll({link.from}, crossing.piece, stripe), kAllChips, last_of_link_[crossing.link]);
    between_[stripe][PlaceOf(crossing.piece, link.to)].push_back(index);
  }

  // Both ends combine in the same order: a sum that rounds has the same bits everywhere.
  void AddSwap(const FabricTree::Roots& roots, const Crossing& crossing, const Extent& elements,
               std::size_t stripe) {
    Step step;
    for (const ChipIndex to : {roots.one, roots.other}) {
      step.push_back(MakeSend(asked_.request, roots.one, to, elements, Action::kCopy));
      step.push_back(MakeSend(asked_.request, roots.other, to, elements, Action::kReduce));
    }
    const auto index = static_cast<std::uint32_t>(schedule_.scheduled.size());
    Add(std::move(step), {}, AfterAll({roots.one, roots.other}, crossing.piece, stripe), kAllChips,
        last_of_link_[crossing.link]);
    schedule_.scheduled.back().snapshot = true;
    for (const ChipIndex to : {roots.one, roots.other}) {
      between_[stripe][PlaceOf(crossing.piece, to)].push_back(index);
    }
  }

  // The scheduled steps that have brought something of a piece to the chips.
  std::vector<std::uint32_t> AfterAll(const std::vector<ChipIndex>& chips, std::uint32_t piece,
                                      std::size_t stripe) {
    std::vector<std::uint32_t> after;
    for (const ChipIndex chip : chips) {
      const std::size_t place = PlaceOf(piece, chip);
      if (inside_[stripe][place] != kNone) after.push_back(inside_[stripe][place]);
      const auto messages = between_[stripe].find(place);
      if (messages == between_[stripe].end()) continue;
      after.insert(after.end(), messages->second.begin(), messages->second.end());
    }
    return after;
  }

  void Add(Step step, const StepWork& work, std::vector<std::uint32_t> after,
           torus::ChipMask through, std::optional<std::uint32_t>& last) {
    last = schedule_.Append(std::move(step), work,
                            {.after = std::move(after), .behind = last, .through = through});
  }

  const FlowQuestion& asked_;
  const FabricTrees& trees_;
  const std::size_t stripes_;
  const std::uint64_t piece_;
  const std::vector<std::uint64_t> bounds_;  // of the pieces, in elements
  std::vector<ChipSet> sets_;                // by group
  Schedule schedule_;
  std::vector<std::optional<std::uint32_t>> last_of_link_;
  std::vector<std::optional<std::uint32_t>> last_of_group_;
  std::vector<std::vector<std::vector<std::uint32_t>>> steps_;  // by stripe and group
  // By stripe and place: the scheduled steps that brought something of a piece to a chip, inside
  // the domain the last one, between the domains all.
  std::vector<std::vector<std::uint32_t>> inside_;
  std::vector<absl::flat_hash_map<std::size_t, std::vector<std::uint32_t>>> between_;
};

}  // namespace

std::vector<DomainFlow> FlowsWorthTrying(const FlowQuestion& asked) {
  std::uint64_t fastest = 0;
  std::uint64_t chips = 0;
  for (const DomainSet::Group& group : asked.set.groups()) {
    const TorusLinks& links = asked.fabric.domain(group.domain);
    fastest = std::max(fastest, FastestLink(SetOf(group.local, links), links));
    chips += group.local.size();
  }
  if (fastest == 0) return {};
  const collective::LinkCosts costs =
      DomainLinksOf(asked.fabric.domain(asked.set.groups()[0].domain), asked.options.costs).costs();
  const auto start = static_cast<double>((costs.step + costs.hop).count());
  const auto buffer = static_cast<double>(TransferTime(asked.request.bytes, fastest).count());
  std::vector<DomainFlow> flows;
  for (const std::uint64_t stripes : {2U, 4U, 8U}) {
    // While one stripe starts up the others keep the links busy.
    const double step = start * static_cast<double>(stripes) / static_cast<double>(stripes - 1);
    const std::uint64_t most = std::min(kPiecesMost, kSendsMost / (2 * (chips - 1) * stripes));
    const double pieces = std::max(buffer / step, 1.0);  // that take a step each
    const double grain = std::max(std::floor(static_cast<double>(most) / pieces), 1.0);
    flows.push_back(
        {.pieces = static_cast<std::size_t>(std::min(grain * pieces, static_cast<double>(most))),
         .grain = static_cast<std::uint64_t>(grain),
         .stripes = stripes});
  }
  // The time in which the first pieces come through, and the last, grows with that of a step.
  const auto step_of = [](const DomainFlow& flow) {
    return static_cast<double>(flow.grain) / static_cast<double>(flow.pieces);
  };
  const double shortest = step_of(*std::ranges::min_element(flows, {}, step_of));
  std::erase_if(flows, [&](const DomainFlow& flow) { return step_of(flow) > 1.9 * shortest; });
  return flows;
}

absl::StatusOr<Schedule> FlowOverDomains(const FlowQuestion& asked, const DomainFlow& flow) {
  TAHOMA_CHECK(asked.request.operation == Operation::kAllReduce && asked.set.size() > 1);
  TAHOMA_ASSIGN_OR_RETURN(const FabricTrees trees,
                          PackFabricTrees(asked.set, asked.fabric, flow.pieces));
  const VirtualDuration step =
      TransferTime(asked.request.bytes / trees.trees.size() * flow.grain, trees.fastest());
  const VirtualDuration packet = asked.fabric.efa().timing().packet;
  const auto delay = static_cast<std::uint32_t>(
      std::min(packet / std::max(step, VirtualDuration(1)), kDelayMost) + 1);
  const CrossingOrder order(trees, flow.grain, delay);
  return Composer(asked, trees, flow.stripes).Compose(order.Order());
}

}  // namespace tahoma::sim
