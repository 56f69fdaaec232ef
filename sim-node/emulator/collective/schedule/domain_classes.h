// Classes of topology domains that do the same in all meshes of some schedules, where one flow
// stands for the flows between all domains of two classes.
//
// A class is made of the domains that are in the same lists of meshes, whose NICs have the same
// rates and, where uplinks can limit messages, that lie at the same place of the network: below
// nodes with the same uplinks and the same domains below. All domains of a class then send as many
// messages of each kind over their NICs and uplinks, and get the same rates (an equitable partition
// of the links). Where meshes join only some of their domains (MeshDomain::among), classes are
// split until the rates are the same.
//
// Thread safety: const members may run together.

#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "sim-node/emulator/collective/schedule/schedule.h"
#include "sim-node/emulator/link/fabric.h"
#include "sim-node/emulator/link/transfer.h"

namespace tahoma::sim {

class DomainClasses {
 public:
  // Without `reduce` each domain is by itself: needed while links of the network may fail, and
  // where messages between domains are in no mesh. Flows point into the object.
  DomainClasses(std::span<const DomainMesh* const> meshes, const Fabric& fabric, bool reduce);
  DomainClasses(const DomainClasses&) = delete;
  DomainClasses& operator=(const DomainClasses&) = delete;

  // Calls visit(flow) for the flows that the mesh makes of one, or for one of each kind. Of `one`
  // the chips' numbers in their domains count.
  template <typename Visit>
  void ForEachFlow(const DomainMesh& mesh, const Flow& one, const Visit& visit) const {
    const int from = Fabric::LocalOf(one.from).value();
    const int to = Fabric::LocalOf(one.to).value();
    Flow flow = one;
    if (!reduce_) {
      for (const MeshDomain& sender : *mesh.senders) {
        for (const MeshDomain& receiver : *mesh.receivers) {
          if (!AreJoined(sender, receiver)) continue;
          flow.from = Fabric::ChipOf(sender.domain, from);
          flow.to = Fabric::ChipOf(receiver.domain, to);
          visit(flow);
        }
      }
      return;
    }
    for (const std::size_t sender : classes_in_.at(mesh.senders.get())) {
      for (const std::size_t receiver : classes_in_.at(mesh.receivers.get())) {
        flow.from = Fabric::ChipOf(in_[sender].front(), from);
        flow.to = Fabric::ChipOf(in_[receiver].front(), to);
        for (const AlikeFlows& alike : alike_.at(PairOf(mesh, sender, receiver))) {
          flow.alike = &alike;
          visit(flow);
        }
      }
    }
  }

 private:
  // By layers that a message climbs.
  using Climbs = std::array<std::uint64_t, kNetworkLayers + 1>;
  // Two classes, and the lists of the mesh if it joins only some of them.
  using Pair = std::tuple<const MeshDomains*, const MeshDomains*, std::size_t, std::size_t>;

  static bool IsSplit(const MeshDomains& list);
  Pair PairOf(const DomainMesh& mesh, std::size_t sender, std::size_t receiver) const {
    const bool split = split_.contains({mesh.senders.get(), mesh.receivers.get()});
    return {split ? mesh.senders.get() : nullptr, split ? mesh.receivers.get() : nullptr, sender,
            receiver};
  }

  void Classify(const std::map<int, std::uint64_t>& numbers);
  std::map<int, std::uint64_t> Refined() const;
  void CountClimbs();
  void AddPair(const DomainMesh& mesh, std::size_t sender, std::size_t receiver);
  Climbs ClimbsIn(const DomainMesh& mesh, bool sends, std::size_t one, std::size_t other) const;
  std::vector<AlikeFlows::Uplink> UplinksBetween(std::size_t sender, std::size_t receiver,
                                                 const AlikeFlows& flows) const;
  std::uint64_t CountBelow(std::size_t domains, int layer) const;
  int FarthestBetween(std::size_t one, std::size_t other) const;

  const Fabric& fabric_;
  const bool reduce_;
  const bool by_layers_;              // uplinks limit, so messages to other distances are others
  std::vector<std::vector<int>> in_;  // of each class: its domains
  std::map<int, std::size_t> class_of_;
  // Meshes that do not join all domains of their lists.
  std::set<std::pair<const MeshDomains*, const MeshDomains*>> split_;
  std::map<const MeshDomains*, std::vector<std::size_t>> classes_in_;
  // By class and layer: a domain below the node that stands for all nodes that are alike.
  std::vector<std::array<int, kNetworkLayers>> nodes_;
  std::vector<std::vector<Climbs>> climbs_;  // domains of another class that are so far from one
  std::map<Pair, std::vector<AlikeFlows>> alike_;
};

}  // namespace tahoma::sim
