#include "sim-node/emulator/collective/domains/level_meshes.h"

#include <algorithm>
#include <set>
#include <utility>

#include "lib/base/check.h"
#include "sim-node/emulator/collective/domains/padded_steps.h"
#include "sim-node/emulator/link/fabric.h"

namespace tahoma::sim {
namespace {

// Returns the children of each node in the order in which they are met, by the groups below them.
// A child has the number `child_of[group]`.
std::map<int, std::vector<int>> ChildrenOf(const std::vector<int>& node_of,
                                           const std::vector<int>& child_of) {
  std::map<int, std::vector<int>> children;
  std::set<int> seen;
  for (std::size_t group = 0; group < node_of.size(); ++group) {
    if (seen.insert(child_of[group]).second) children[node_of[group]].push_back(child_of[group]);
  }
  return children;
}

bool AllAlike(const DomainSet& set) {
  return set.even() && std::ranges::all_of(set.groups(), [&](const DomainSet::Group& group) {
           return group.local == set.groups()[0].local;
         });
}

}  // namespace

std::optional<LevelTree> LevelTreeOf(const DomainSet& set) {
  if (set.levels().empty() || !AllAlike(set)) return std::nullopt;
  LevelTree tree{.radices = {}, .digits = std::vector<std::vector<std::size_t>>(set.size())};
  std::vector<int> child_of;
  for (std::size_t group = 0; group < set.size(); ++group) {
    child_of.push_back(static_cast<int>(group));
  }
  for (std::size_t level = 0; level <= set.levels().size(); ++level) {
    const std::vector<int> node_of =
        level < set.levels().size() ? set.levels()[level] : std::vector<int>(set.size(), 0);
    const auto children = ChildrenOf(node_of, child_of);
    tree.radices.push_back(children.begin()->second.size());
    std::map<int, std::size_t> digit;  // by child
    for (const auto& [node, below] : children) {
      if (below.size() != tree.radices.back()) return std::nullopt;
      for (std::size_t i = 0; i < below.size(); ++i) digit[below[i]] = i;
    }
    for (std::size_t group = 0; group < set.size(); ++group) {
      tree.digits[group].push_back(digit.at(child_of[group]));
    }
    child_of = node_of;
  }
  return tree;
}

LevelMeshes::LevelMeshes(const Request& request, const DomainSet& set, LevelTree tree)
    : request_(request),
      set_(set),
      tree_(std::move(tree)),
      root_(std::make_shared<const MeshDomains>(
          MeshDomains{{.domain = set.groups()[0].domain, .number = 0, .among = 0}})) {
  for (std::size_t group = 0; group < set.size(); ++group) {
    group_of_.emplace(tree_.digits[group], group);
  }
}

bool LevelMeshes::IsHome(std::size_t group) const {
  return !rooted() || tree_.digits[group].back() > 0;
}

std::uint64_t LevelMeshes::HomesAfter(std::size_t level) const {
  std::uint64_t homes = 1;
  for (std::size_t after = level + 1; after < levels(); ++after) {
    homes *= tree_.radices[after] - (rooted() && after + 1 == levels() ? 1 : 0);
  }
  return homes;
}

std::uint64_t LevelMeshes::Prefix(std::size_t group, std::size_t level) const {
  std::uint64_t prefix = 0;
  for (std::size_t i = 0; i <= level; ++i) {
    const std::size_t root = rooted() && i + 1 == levels() ? 1 : 0;
    prefix = prefix * (tree_.radices[i] - root) + tree_.digits[group][i] - root;
  }
  return prefix;
}

// A number for the digits of all levels but this one.
std::size_t LevelMeshes::OthersOf(std::size_t group, std::size_t level) const {
  std::size_t number = 0;
  for (std::size_t i = 0; i < levels(); ++i) {
    if (i != level) number = number * tree_.radices[i] + tree_.digits[group][i];
  }
  return number;
}

LevelMeshes::List LevelMeshes::Answering(std::size_t level, std::uint64_t begin, std::uint64_t end,
                                         bool from_root) {
  List& known = answering_[{level, begin, end, from_root}];
  if (known) return known;
  MeshDomains domains;
  for (std::size_t group = 0; group < set_.size(); ++group) {
    if (level + 1 == levels() && !IsHome(group)) continue;
    const std::uint64_t number = Prefix(group, level);
    if (number < begin || number >= end) continue;
    domains.push_back({.domain = set_.groups()[group].domain,
                       .number = number,
                       .among = from_root ? 0 : OthersOf(group, level)});
  }
  known = std::make_shared<const MeshDomains>(std::move(domains));
  return known;
}

LevelMeshes::List LevelMeshes::AllAt(std::size_t level) {
  List& known = all_[level];
  if (known) return known;
  MeshDomains domains;
  // The root of a broadcast gets nothing.
  for (std::size_t group = rooted() ? 1 : 0; group < set_.size(); ++group) {
    domains.push_back(
        {.domain = set_.groups()[group].domain, .number = 0, .among = OthersOf(group, level)});
  }
  known = std::make_shared<const MeshDomains>(std::move(domains));
  return known;
}

LevelMeshes::List LevelMeshes::OfBlocks(std::size_t level,
                                        const std::vector<std::uint64_t>& starts) {
  List& known = of_blocks_[{level, starts}];
  if (known) return known;
  MeshDomains domains;
  for (std::size_t group = 0; group < set_.size(); ++group) {
    domains.push_back({.domain = set_.groups()[group].domain,
                       .number = starts[WithZeros(group, level + 1, levels())],
                       .among = OthersOf(group, level)});
  }
  known = std::make_shared<const MeshDomains>(std::move(domains));
  return known;
}

// Returns the group with the digits of this one, but 0 in levels [begin, end).
std::size_t LevelMeshes::WithZeros(std::size_t group, std::size_t begin, std::size_t end) const {
  std::vector<std::size_t> digits = tree_.digits[group];
  std::fill(digits.begin() + static_cast<std::ptrdiff_t>(begin),
            digits.begin() + static_cast<std::ptrdiff_t>(end), 0);
  return group_of_.at(digits);
}

bool LevelMeshes::Serves(const std::vector<std::uint64_t>& starts) const {
  for (std::size_t group = 0; group < set_.size(); ++group) {
    for (std::size_t level = 1; level < levels(); ++level) {
      if (starts[group] !=
          starts[WithZeros(group, level, levels())] + starts[WithZeros(group, 0, level)]) {
        return false;
      }
    }
  }
  return true;
}

std::vector<LevelMeshes::Pieces> LevelMeshes::PiecesOf(const Region& region) const {
  const std::vector<Member>& local = set_.groups()[0].local;
  TAHOMA_CHECK(region.pieces().size() == local.size());
  std::map<std::uint64_t, Pieces> by_length;
  for (std::size_t place = 0; place < local.size(); ++place) {
    const Extent& piece = region.pieces()[place];
    if (piece.size() == 0) continue;
    const auto [entry, added] = by_length.try_emplace(piece.size());
    Pieces& pieces = entry->second;
    if (added) {
      pieces.first = piece;
      pieces.place = place;
    }
    pieces.copies.push_back({.chips = local[place].chip.value() - local[pieces.place].chip.value(),
                             .bytes = BytesOf(request_, piece.begin - pieces.first.begin)});
  }
  std::vector<Pieces> all;
  for (auto& [length, pieces] : by_length) all.push_back(std::move(pieces));
  return all;
}

MeshSend LevelMeshes::Make(const List& answering, const List& others, const Extent& elements,
                           std::size_t place, std::uint64_t stride, bool to_home,
                           Action action) const {
  const List& from = to_home ? others : answering;
  const List& to = to_home ? answering : others;
  const int local = set_.groups()[0].local[place].chip.value();
  const std::uint64_t bytes = BytesOf(request_, stride);
  const DomainMesh::Stride by{.offset = bytes, .to_offset = bytes};
  return {.send = MakeSend(request_, Fabric::ChipOf(from->front().domain, local),
                           Fabric::ChipOf(to->front().domain, local), elements, action),
          .mesh = {.senders = from,
                   .receivers = to,
                   .by_sender = to_home ? DomainMesh::Stride{} : by,
                   .by_receiver = to_home ? by : DomainMesh::Stride{}}};
}

// Cuts the pieces among the homes; the last that have any may have a shorter part, or none.
MeshStep LevelMeshes::StepAt(const Pieces& pieces, std::size_t level, bool to_home, Action action,
                             const List& others) {
  const std::uint64_t length = pieces.first.size();
  const std::uint64_t homes = tree_.radices[0] * HomesAfter(0);
  const std::uint64_t stride = (length + homes - 1) / homes * HomesAfter(level);
  const std::uint64_t whole = length / stride;
  MeshStep step{.sends = {}, .copies = pieces.copies};
  const auto add = [&](std::uint64_t begin, std::uint64_t end, std::uint64_t of_each) {
    const List answering = Answering(level, begin, end, to_home && rooted());
    const Extent elements{.begin = pieces.first.begin, .end = pieces.first.begin + of_each};
    step.sends.push_back(Make(answering, others, elements, pieces.place, stride, to_home, action));
  };
  if (whole > 0) add(0, whole, stride);
  if (length > whole * stride) add(whole, whole + 1, length - whole * stride);
  return step;
}

std::vector<MeshPhase> LevelMeshes::PhasesOf(const Extent& elements) {
  const std::size_t places = set_.groups()[0].local.size();
  const std::vector<std::uint64_t> bounds = CutBy(std::vector<int>(places, 1), elements.size());
  std::vector<Extent> blocks;
  for (std::size_t place = 0; place < places; ++place) {
    blocks.push_back(
        {.begin = elements.begin + bounds[place], .end = elements.begin + bounds[place + 1]});
  }
  const std::vector<Pieces> all = PiecesOf(Region(std::move(blocks)));
  std::vector<MeshPhase> phases;
  const auto add = [&](std::size_t level, bool to_home, Action action, const List& others) {
    MeshPhase& phase = phases.emplace_back();
    for (const Pieces& pieces : all) {
      phase.push_back(StepAt(pieces, level, to_home, action, others));
    }
  };
  if (rooted()) {
    add(levels() - 1, /*to_home=*/true, Action::kCopy, root_);
  } else {
    for (std::size_t level = 0; level < levels(); ++level) {
      add(level, /*to_home=*/true, Action::kReduce, AllAt(level));
    }
  }
  for (std::size_t level = levels(); level-- > 0;) {
    add(level, /*to_home=*/false, Action::kCopy, AllAt(level));
  }
  return phases;
}

std::vector<MeshPhase> LevelMeshes::PhasesOf(const Region& first,
                                             const std::vector<std::uint64_t>& starts) {
  const bool reduces = request_.operation == Operation::kReduceScatter;
  const std::vector<Pieces> all = PiecesOf(first);
  std::vector<MeshPhase> phases;
  for (std::size_t i = 0; i < levels(); ++i) {
    const std::size_t level = reduces ? i : levels() - 1 - i;
    std::vector<std::uint64_t> parts;  // of homes that differ in later digits only
    for (std::size_t group = 0; group < set_.size(); ++group) {
      if (WithZeros(group, 0, level + 1) == group) {
        parts.push_back(BytesOf(request_, starts[group]));
      }
    }
    MeshPhase& phase = phases.emplace_back();
    for (const Pieces& pieces : all) {
      phase.push_back(
          {.sends = {Make(OfBlocks(level, starts), AllAt(level), pieces.first, pieces.place,
                          /*stride=*/1, reduces, reduces ? Action::kReduce : Action::kCopy)},
           .copies = pieces.copies,
           .parts = parts});
    }
  }
  return phases;
}

}  // namespace tahoma::sim
