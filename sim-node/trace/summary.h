// The answer of trn-trace in few numbers: for other programs as JSON.
//
//   TAHOMA_ASSIGN_OR_RETURN(const Traced traced, TraceOf(options));
//   std::cout << JsonSummary(traced);         // {"algorithm": "rdh", …, "timeUs": 236.1}
//
// Thread safety: pure functions.

#pragma once

#include <string>

#include "sim-node/trace/trace_options.h"

namespace tahoma::sim {

// One JSON object and a newline: what was asked, the algorithm, the steps, "timeUs", "startUpUs",
// "algbwGiBps" and "busbwGiBps", and "boundUs" where one is known, with "overBound", the time over
// start-up and bound together. "links" has an entry for each kind
// that there is ("x", "y", "z", "efaOut", "efaIn", and the uplinks of network layers, "layer3" to
// "layer1"): how many, how many are down, the least, mean and most utilisation of the others, 0 to
// 1, and the name of the fullest.
std::string JsonSummary(const Traced& traced);

}  // namespace tahoma::sim
