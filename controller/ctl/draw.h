// The fleet as text: each UltraServer as four planes of 4x4 chips side by side, a lone instance as
// one plane, and a legend of the holders.
//
//   std::string text = DrawTopology(cluster, holders);
//
// The text is, for example:
//
//   UltraServer us-0  trn2u.48xlarge  48 of 64 chips free  modes X4,X2V,X1
//     z=0 node-a   z=1 node-b   z=2 node-c   z=3 node-d
//     A A A A      . . . .      . . . .      . . . .
//     …
//   A  gang default/train  2x2  pods train-0, train-1
//
// A cell is the letter of the gang that holds the chip (small when the gang holds only some of its
// cores), "." free, "!" broken, "~" free with a link down. "modes" lists the elected modes of an
// UltraServer's nodes, with "*" at the chosen mode, by node where the nodes differ.
//
// Thread safety: pure functions.

#pragma once

#include <map>
#include <optional>
#include <string>

#include "controller/model/cluster.h"
#include "lib/base/json_fwd.h"

namespace tahoma::controller {

// By holder ("gang default/train"): the note behind its name in the legend.
using HolderNotes = std::map<std::string, std::string>;

std::string DrawTopology(const ClusterState& cluster, const HolderNotes& notes);

// Draws the UltraServer or lone instance of that name, or the domain of the node of that name;
// nullopt when nothing has the name.
std::optional<std::string> DrawDomain(const ClusterState& cluster, const HolderNotes& notes,
                                      const std::string& name);

// The same as values for programs: {"domains": [{"name": "us-0", "kind": "UltraServer",
// "instanceType": …, "freeChips": 48, "nodes": [{"name", "z", "ready", "chips": [{"chip": 0,
// "state": "held", "holder": "gang default/train"}]}]}]}. A state is free, linkDown, held, shared
// (some cores are held) or broken.
Json TopologyJson(const ClusterState& cluster);
std::optional<Json> DomainJson(const ClusterState& cluster, const std::string& name);

}  // namespace tahoma::controller
