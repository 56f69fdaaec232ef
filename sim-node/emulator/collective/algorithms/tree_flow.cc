#include "sim-node/emulator/collective/algorithms/tree_flow.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

#include "lib/base/check.h"

namespace tahoma::sim {
namespace {

// Priorities are at first in quarters of a step, for links that take several steps, or a part of
// one, for a piece. The way before a piece counts so many times as much as its place among the
// pieces.
constexpr std::uint64_t kStep = 4;
constexpr std::uint64_t kOfWay = 4;
// The most times that the first order is improved when others follow.
constexpr int kImprovementsMost = 3;
// By how many steps what makes the last links wait comes earlier in the next order.
constexpr std::uint32_t kHurry = 5;
// So many orders in a row that do not help are the last.
constexpr std::size_t kInVainMost = 12;
// Fewer are tried where links take many steps for a piece, so that they have no more parts in all.
constexpr std::size_t kPartsTried = 6'000'000;

// The tasks of a link that may be done, by their rank.
class ReadyTasks {
 public:
  void Resize(std::size_t tasks) { words_.assign((tasks + 63) / 64, 0); }
  void Add(std::uint32_t rank) {
    words_[rank / 64] |= std::uint64_t{1} << (rank % 64);
    ++count_;
  }
  bool empty() const { return count_ == 0; }
  std::uint32_t TakeFirst() {
    std::size_t at = 0;
    while (words_[at] == 0) ++at;
    const auto rank = static_cast<std::uint32_t>(at * 64) +
                      static_cast<std::uint32_t>(std::countr_zero(words_[at]));
    words_[at] &= words_[at] - 1;
    --count_;
    return rank;
  }

 private:
  std::vector<std::uint64_t> words_;
  std::size_t count_ = 0;
};

}  // namespace

// A piece on a link is a task: task 2 i brings the sum of what branch i has below it to its parent,
// task 2 i + 1 the result back. Read backwards in time the roles of the two change, on trees that
// are the same.
class FlowPlanner {
 public:
  FlowPlanner(const TreePacking& packing, std::uint64_t grain)
      : packing_(packing),
        branches_(packing.chips().size() - 1),
        grain_(grain),
        fastest_(packing.fastest()),
        links_(2 * packing.cables().size()) {
    for (const TreePacking::Tree& tree : packing.trees()) AddTree(tree);
    for (std::uint32_t task = 0; task < link_.size(); ++task) ++links_[link_[task]].tasks;
    std::uint32_t first = 0;
    for (Link& link : links_) {
      link.first = first;
      first += link.tasks;
    }
    begin_.resize(link_.size());
    end_.resize(link_.size());
  }

  // Tries so many orders after the first, as long as links are idle for much of the time and some
  // orders help.
  void Plan(std::size_t orders, TreeFlow& flow) {
    Improve(FirstPriorities(), orders > 0 ? kImprovementsMost : 1);
    orders = std::min(orders, kPartsTried / best_.parts.size());
    std::size_t in_vain = 0;
    for (; orders > 0 && in_vain < kInVainMost; --orders) {
      if (best_.steps <= LeastSteps() * 26 / 25) break;
      const std::size_t before = best_.steps;
      Improve(Hurried(), 1);
      in_vain = best_.steps < before ? 0 : in_vain + 1;
    }
    flow.step_count_ = best_.steps;
    flow.crossings_.reserve(best_.parts.size());
    for (const Part& part : best_.parts) flow.crossings_.push_back(CrossingOf(part));
  }

 private:
  static constexpr std::uint32_t kRoot = std::numeric_limits<std::uint32_t>::max();
  static constexpr std::uint32_t kNone = kRoot;

  struct Link {
    std::uint32_t tasks = 0;
    std::uint32_t first = 0;  // of its tasks in the order of all
    std::uint32_t current = kNone;
    std::uint64_t done = 0;  // of the current one
    ReadyTasks ready = {};
  };
  // A part of a task that a link does in one step.
  struct Part {
    std::uint32_t task = 0;
    std::uint32_t step = 0;
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
  };
  // All parts in the order of their steps.
  struct Course {
    std::size_t steps = std::numeric_limits<std::size_t>::max();
    std::vector<Part> parts;
  };

  void AddTree(const TreePacking::Tree& tree) {
    const auto base = static_cast<std::uint32_t>(parent_.size());
    std::vector<std::uint32_t> branch_to(packing_.chips().size(), kRoot);
    for (std::uint32_t i = 0; i < tree.size(); ++i) {
      const TreePacking::Branch& branch = tree[i];
      const TreePacking::Cable& cable = packing_.cables()[branch.cable];
      const auto up = static_cast<std::uint32_t>(2 * branch.cable);
      const std::uint32_t back = cable.one == branch.chip ? 0 : 1;
      link_.push_back(up + back);
      link_.push_back(up + 1 - back);
      branch_to[branch.chip] = base + i;
      parent_.push_back(branch_to[branch.parent]);
      children_.push_back({});
      Children& siblings =
          branch.depth == 1 ? OfRoot(base / branches_) : children_[branch_to[branch.parent]];
      if (siblings.count == 0) siblings.first = base + i;
      ++siblings.count;
    }
  }

  // The branches that go on from one, or from a root.
  struct Children {
    std::uint32_t first = 0;
    std::uint32_t count = 0;
  };
  Children& OfRoot(std::size_t tree) {
    if (tree == of_root_.size()) of_root_.push_back({});
    return of_root_[tree];
  }

  std::uint64_t RateOf(std::uint32_t link) const { return packing_.cables()[link / 2].rate; }

  // Quarters of a step until a piece has crossed the link.
  std::uint64_t LengthOf(std::uint32_t link) const {
    return std::max(kStep, kStep * fastest_ / (RateOf(link) * grain_));
  }

  // The way that a piece has before it, and how late it is among all pieces.
  std::vector<std::uint32_t> FirstPriorities() const {
    std::vector<std::uint64_t> way(link_.size());
    std::vector<std::uint64_t> below(parent_.size());  // back from a branch to the farthest leaf
    std::vector<std::uint64_t> below_root(of_root_.size());
    const auto below_parent = [&](std::uint32_t branch) -> std::uint64_t& {
      return parent_[branch] == kRoot ? below_root[branch / branches_] : below[parent_[branch]];
    };
    for (std::size_t i = parent_.size(); i-- > 0;) {
      const auto branch = static_cast<std::uint32_t>(i);
      way[2 * i + 1] = below[i] + LengthOf(link_[2 * i + 1]);
      below_parent(branch) = std::max(below_parent(branch), way[2 * i + 1]);
    }
    std::uint64_t most = 0;
    for (std::size_t i = 0; i < parent_.size(); ++i) {
      const auto branch = static_cast<std::uint32_t>(i);
      way[2 * i] = LengthOf(link_[2 * i]) +
                   (parent_[i] == kRoot ? below_parent(branch) : way[2 * std::size_t{parent_[i]}]);
      most = std::max(most, way[2 * i]);
    }
    const std::uint64_t steps = kStep * LeastSteps();
    const std::size_t pieces = of_root_.size();
    std::vector<std::uint32_t> priority(link_.size());
    for (std::size_t task = 0; task < link_.size(); ++task) {
      const std::uint64_t earlier = pieces - task / 2 / branches_;
      priority[task] = static_cast<std::uint32_t>(kOfWay * way[task] + steps * earlier / pieces);
    }
    return priority;
  }

  // Keeps the best of this order and those that follow from it, backwards and forwards in turn,
  // until a round is in vain.
  void Improve(const std::vector<std::uint32_t>& priority, int rounds) {
    std::size_t steps = Try(priority);
    for (int round = 0; round < rounds; ++round) {
      Run(end_, /*backwards=*/true, [&](const Part& part) { end_[part.task] = part.step; });
      const std::size_t before = std::exchange(steps, Try(end_));
      if (steps >= before) return;
    }
  }

  // Runs forwards, keeps what is better than the best so far, and notes when tasks begin and end.
  std::size_t Try(const std::vector<std::uint32_t>& priority) {
    Course course;
    course.parts.reserve(link_.size());
    course.steps = Run(priority, /*backwards=*/false, [&](const Part& part) {
      if (part.begin == 0) begin_[part.task] = part.step;
      end_[part.task] = part.step;
      course.parts.push_back(part);
    });
    const std::size_t steps = course.steps;
    if (steps < best_.steps) best_ = std::move(course);
    return steps;
  }

  // The order in which tasks ended the last time, but what made those links wait that were busy in
  // the last step comes earlier: of the tasks that each of theirs had to wait for, those that were
  // not begun as soon as they could be (squeaky wheels; Joslin and Clements 1999).
  std::vector<std::uint32_t> Hurried() const {
    const std::uint32_t steps = *std::ranges::max_element(end_) + 1;
    std::vector<std::uint32_t> priority(link_.size());
    std::vector<bool> is_last(links_.size());
    for (std::size_t task = 0; task < link_.size(); ++task) {
      priority[task] = steps - end_[task];
      if (end_[task] + 1 == steps) is_last[link_[task]] = true;
    }
    const std::vector<std::uint32_t> before = LastBeforeEach();
    std::vector<bool> seen(link_.size());
    for (std::size_t task = 0; task < link_.size(); ++task) {
      if (!is_last[link_[task]]) continue;
      for (std::uint32_t at = before[task]; at != kNone && !seen[at]; at = before[at]) {
        seen[at] = true;
        const std::uint32_t ready = before[at] == kNone ? 0 : end_[before[at]] + 1;
        if (begin_[at] > ready) priority[at] += kHurry;
      }
    }
    return priority;
  }

  // By task, the last one to end of those that must end before it; kNone where there are none.
  std::vector<std::uint32_t> LastBeforeEach() const {
    std::vector<std::uint32_t> before(link_.size(), kNone);
    const auto later = [&](std::uint32_t& last, std::uint32_t task) {
      if (last == kNone || end_[task] > end_[last]) last = task;
    };
    std::vector<std::uint32_t> into_root(of_root_.size(), kNone);
    for (std::uint32_t i = 0; i < parent_.size(); ++i) {
      later(parent_[i] == kRoot ? into_root[i / branches_] : before[2 * std::size_t{parent_[i]}],
            2 * i);
    }
    for (std::uint32_t i = 0; i < parent_.size(); ++i) {
      before[2 * std::size_t{i} + 1] =
          parent_[i] == kRoot ? into_root[i / branches_] : 2 * parent_[i] + 1;
    }
    return before;
  }

  TreeFlow::Crossing CrossingOf(const Part& part) const {
    const std::size_t tree = part.task / 2 / branches_;
    const TreePacking::Branch& branch = packing_.trees()[tree][part.task / 2 % branches_];
    const bool spreads = part.task % 2 != 0;
    return {.step = part.step,
            .piece = static_cast<std::uint32_t>(tree),
            .from = static_cast<std::uint8_t>(spreads ? branch.parent : branch.chip),
            .to = static_cast<std::uint8_t>(spreads ? branch.chip : branch.parent),
            .action = spreads ? Action::kCopy : Action::kReduce,
            .begin = part.begin,
            .end = part.end};
  }

  // The steps that the fullest link needs.
  std::uint64_t LeastSteps() const {
    std::uint64_t most = 0;
    for (std::uint32_t link = 0; link < links_.size(); ++link) {
      const std::uint64_t carries = RateOf(link) * grain_;
      most = std::max(most, (links_[link].tasks * fastest_ + carries - 1) / carries);
    }
    return most;
  }

  // Orders the tasks of each link by falling priority: order_[link.first + rank], and rank_.
  void Rank(const std::vector<std::uint32_t>& priority) {
    std::vector<std::uint32_t> count(std::size_t{*std::ranges::max_element(priority)} + 2);
    for (const std::uint32_t one : priority) ++count[count.size() - 1 - one];
    for (std::size_t i = 1; i < count.size(); ++i) count[i] += count[i - 1];
    std::vector<std::uint32_t> sorted(link_.size());
    for (std::uint32_t task = 0; task < link_.size(); ++task) {
      sorted[count[count.size() - 2 - priority[task]]++] = task;
    }
    std::vector<std::uint32_t> next(links_.size());
    order_.resize(link_.size());
    rank_.resize(link_.size());
    for (const std::uint32_t task : sorted) {
      rank_[task] = next[link_[task]]++;
      order_[links_[link_[task]].first + rank_[task]] = task;
    }
  }

  void MakeReady(std::uint32_t task) { links_[link_[task]].ready.Add(rank_[task]); }

  // Makes everything ready that waited for this task only.
  void Finish(std::uint32_t task, bool backwards) {
    const std::uint32_t sums = backwards ? 1 : 0;
    const std::uint32_t branch = task / 2;
    if (task % 2 != sums) {
      MakeChildrenReady(children_[branch], sums);
    } else if (parent_[branch] != kRoot) {
      if (--waits_for_[parent_[branch]] == 0) MakeReady(2 * parent_[branch] + sums);
    } else if (--root_waits_for_[branch / branches_] == 0) {
      MakeChildrenReady(of_root_[branch / branches_], sums);
    }
  }
  void MakeChildrenReady(const Children& children, std::uint32_t sums) {
    for (std::uint32_t i = 0; i < children.count; ++i) {
      MakeReady(2 * (children.first + i) + 1 - sums);
    }
  }

  // Does all tasks in the order of their priority, calls visit(part) for every part in the order of
  // the steps, and returns how many steps it takes. Backwards, what others wait for comes last.
  template <typename Visit>
  std::size_t Run(const std::vector<std::uint32_t>& priority, bool backwards, const Visit& visit) {
    Rank(priority);
    for (Link& link : links_) link.ready.Resize(link.tasks);
    waits_for_.resize(parent_.size());
    root_waits_for_.resize(of_root_.size());
    for (std::size_t i = 0; i < of_root_.size(); ++i) root_waits_for_[i] = of_root_[i].count;
    for (std::uint32_t i = 0; i < parent_.size(); ++i) {
      waits_for_[i] = children_[i].count;
      if (waits_for_[i] == 0) MakeReady(2 * i + (backwards ? 1 : 0));
    }
    std::size_t left = link_.size();
    std::vector<std::uint32_t> ended;
    std::uint32_t step = 0;
    for (; left > 0; ++step) {
      ended.clear();
      for (std::uint32_t link = 0; link < links_.size(); ++link) {
        DoStep(link, step, ended, visit);
      }
      for (const std::uint32_t task : ended) Finish(task, backwards);
      left -= ended.size();
    }
    return step;
  }

  // Lets a link do what it can in one step.
  template <typename Visit>
  void DoStep(std::uint32_t index, std::uint32_t step, std::vector<std::uint32_t>& ended,
              const Visit& visit) {
    Link& link = links_[index];
    std::uint64_t budget = RateOf(index) * grain_;
    while (budget > 0) {
      if (link.current == kNone) {
        if (link.ready.empty()) return;
        link.current = order_[link.first + link.ready.TakeFirst()];
        link.done = 0;
      }
      const std::uint64_t part = std::min(budget, fastest_ - link.done);
      visit(Part{.task = link.current, .step = step, .begin = link.done, .end = link.done + part});
      link.done += part;
      budget -= part;
      if (link.done < fastest_) return;
      ended.push_back(std::exchange(link.current, kNone));
    }
  }

  const TreePacking& packing_;
  const std::size_t branches_;  // of each tree
  const std::uint64_t grain_;
  const std::uint64_t fastest_;
  std::vector<Link> links_;            // two of each cable
  std::vector<std::uint32_t> link_;    // of each task
  std::vector<std::uint32_t> parent_;  // of each branch
  std::vector<Children> children_;     // of each branch
  std::vector<Children> of_root_;      // of each tree
  std::vector<std::uint32_t> rank_;    // of each task among those of its link
  std::vector<std::uint32_t> order_;   // tasks by link and rank
  std::vector<std::uint32_t> begin_;   // step, of each task when it was last tried
  std::vector<std::uint32_t> end_;
  std::vector<std::uint32_t> waits_for_;  // children of each branch
  std::vector<std::uint32_t> root_waits_for_;
  Course best_;
};

TreeFlow::TreeFlow(const TreePacking& packing, std::uint64_t grain, std::size_t orders)
    : chips_(packing.chips()), pieces_(packing.trees().size()), whole_(packing.fastest()) {
  TAHOMA_CHECK(grain > 0);
  FlowPlanner(packing, grain).Plan(orders, *this);
}

std::vector<Step> TreeFlow::Steps(const Layout& layout, Stripe stripe) const {
  const std::uint64_t parts = pieces_ * stripe.count;
  const auto place_of = [&](std::uint64_t part) {
    return static_cast<std::uint64_t>(static_cast<Wide>(layout.bounds.back()) * part / parts);
  };
  std::vector<std::pair<std::uint64_t, std::uint64_t>> places;  // of each piece, in elements
  for (std::uint64_t piece = 0; piece < pieces_; ++piece) {
    const std::uint64_t part = piece * stripe.count + stripe.index;
    places.emplace_back(place_of(part), place_of(part + 1));
  }
  std::vector<std::size_t> sends(step_count_);
  for (const Crossing& crossing : crossings_) ++sends[crossing.step];
  std::vector<Step> steps(step_count_);
  for (std::size_t step = 0; step < step_count_; ++step) steps[step].reserve(sends[step]);
  for (const Action action : {Action::kReduce, Action::kCopy}) {
    for (const Crossing& crossing : crossings_) {
      if (crossing.action != action) continue;
      const auto [first, last] = places[crossing.piece];
      const auto at = [&, first = first, last = last](std::uint64_t done) {
        if (done == 0) return first;
        if (done == whole_) return last;
        return first + static_cast<std::uint64_t>(static_cast<Wide>(last - first) * done / whole_);
      };
      const std::uint64_t begin = at(crossing.begin) * layout.element_bytes;
      const std::uint64_t bytes = at(crossing.end) * layout.element_bytes - begin;
      if (bytes == 0) continue;
      steps[crossing.step].push_back({.from = chips_[crossing.from],
                                      .to = chips_[crossing.to],
                                      .offset = begin,
                                      .to_offset = begin,
                                      .bytes = bytes,
                                      .action = action});
    }
  }
  return steps;
}

}  // namespace tahoma::sim
