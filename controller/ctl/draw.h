// The fleet as text: each UltraServer as four planes of 4x4 chips side by side, a lone instance as
// one plane, and a legend of who holds what.
//
//   std::string text = DrawTopology(cluster, holders);
//
//   UltraServer us-0  4x4x4  48 of 64 chips free
//     z=0 node-a   z=1 node-b   z=2 node-c   z=3 node-d
//     A A A A      . . . .      . . . .      . . . .
//     …
//   A  gang default/train  2x2  pods train-0, train-1
//
// A cell is the letter of the gang that holds the chip (small when it holds only some of its
// cores), "." free, "!" broken, "~" free with a link down.
//
// Thread safety: pure functions.

#pragma once

#include <map>
#include <string>

#include "controller/model/cluster.h"

namespace tahoma::controller {

// What the legend says behind a holder's name ("gang default/train").
using HolderNotes = std::map<std::string, std::string>;

std::string DrawTopology(const ClusterState& cluster, const HolderNotes& notes);

}  // namespace tahoma::controller
