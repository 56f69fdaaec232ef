// InterAlgorithm::kLevels for many domains that are alike: for each layer of the network whose
// uplinks limit, first among the domains below one node, then among such nodes. Each level is one
// message with the domains that make it (DomainMesh).
//
//   if (auto tree = LevelTreeOf(set)) {
//     LevelMeshes meshes(request, set, *std::move(tree));
//     const std::vector<MeshPhase> phases = meshes.PhasesOf({.begin = 0, .end = 1 << 20});
//   }
//
// A domain has a digit for each level: its place below its node, that node's below the next, and so
// on. A level joins the domains that differ in its digit only, and each of these answers for what
// belongs to homes with all of its digits up to this one.
//
// Scope: internal to composition.h; trees in which all nodes of a level have as many children, and
// domains in which the same chips answer for the same blocks. The same bytes on every NIC and
// uplink as ReduceTo and SpreadFrom of kLevels.
//
// Thread safety: a LevelMeshes belongs to one thread; the rest are pure functions.

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "sim-node/emulator/collective/domains/domain_meshes.h"
#include "sim-node/emulator/collective/domains/domains.h"
#include "sim-node/emulator/collective/domains/region.h"
#include "sim-node/emulator/collective/schedule/request.h"
#include "sim-node/emulator/collective/schedule/schedule.h"

namespace tahoma::sim {

struct LevelTree {
  std::vector<std::size_t> radices;              // children of a node, by level; at last all nodes
  std::vector<std::vector<std::size_t>> digits;  // by group, then level
};

// Nothing if no uplink limits, nodes have unequal numbers of children, or groups unequal chips or
// NICs. The first group has the digits 0.
std::optional<LevelTree> LevelTreeOf(const DomainSet& set);

class LevelMeshes {
 public:
  // Both references outlive it.
  LevelMeshes(const Request& request, const DomainSet& set, LevelTree tree);

  // Whether all-gathers and reduce-scatters can be done of blocks that begin so far from that of
  // the first group: each digit must add as much whatever the others are.
  bool Serves(const std::vector<std::uint64_t>& starts) const;

  // The messages of an all-reduce or a broadcast of these elements.
  std::vector<MeshPhase> PhasesOf(const Extent& elements);
  // Those of an all-gather or a reduce-scatter in which each group has such a region, that of the
  // first and of each other so much further.
  std::vector<MeshPhase> PhasesOf(const Region& first, const std::vector<std::uint64_t>& starts);

 private:
  using List = std::shared_ptr<const MeshDomains>;
  // Equally long pieces, at which the same is done: that of the first, and all as copies of it.
  struct Pieces {
    Extent first;
    std::size_t place = 0;  // of the first
    std::vector<Copy> copies;
  };

  std::size_t levels() const { return tree_.radices.size(); }
  bool rooted() const { return request_.operation == Operation::kBroadcast; }
  // Homes in which all digits after the level differ.
  std::uint64_t HomesAfter(std::size_t level) const;
  std::uint64_t Prefix(std::size_t group, std::size_t level) const;
  std::size_t OthersOf(std::size_t group, std::size_t level) const;
  bool IsHome(std::size_t group) const;

  std::vector<Pieces> PiecesOf(const Region& region) const;
  std::size_t WithZeros(std::size_t group, std::size_t begin, std::size_t end) const;
  // Domains that answer for parts with their numbers, which are in [begin, end).
  List Answering(std::size_t level, std::uint64_t begin, std::uint64_t end, bool from_root);
  // All that send to those, or get from them.
  List AllAt(std::size_t level);
  List OfBlocks(std::size_t level, const std::vector<std::uint64_t>& starts);
  MeshSend Make(const List& answering, const List& others, const Extent& elements,
                std::size_t place, std::uint64_t stride, bool to_home, Action action) const;
  MeshStep StepAt(const Pieces& pieces, std::size_t level, bool to_home, Action action,
                  const List& others);

  const Request& request_;
  const DomainSet& set_;
  const LevelTree tree_;
  const List root_;
  std::map<std::vector<std::size_t>, std::size_t> group_of_;  // by digits
  std::map<std::tuple<std::size_t, std::uint64_t, std::uint64_t, bool>, List> answering_;
  std::map<std::size_t, List> all_;  // by level
  std::map<std::pair<std::size_t, std::vector<std::uint64_t>>, List> of_blocks_;
};

}  // namespace tahoma::sim
