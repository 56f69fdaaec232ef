// A collective's use of the links as traces, tables and pictures for people.
//
//   ChromeTrace(use, fabric, "all_reduce …");    // opens in ui.perfetto.dev, chrome://tracing
//   HeatMapText(use, fabric);                    // one table a plane, per cent by link
//   HeatMapSvg(use, fabric, "all_reduce …");     // the planes side by side, links coloured
//
// In a fabric of several topology domains chips have a number in their domain, and their
// NICs are links, too.
//
// Thread safety: pure functions.

#pragma once

#include <string>
#include <string_view>

#include "sim-node/trace/occupancy.h"

namespace tahoma::sim {

// The Trace Event Format's JSON: a process for each chip, a thread for each of its links, an event
// for each step in which the link is busy, with the bytes it carried; counters would repeat them.
// NICs are threads of their chip; the nodes of the network layers are processes with their uplinks.
// One process more has a thread for the work in HBM of each domain and one for the start-ups of
// steps that start at the same time. Times are microseconds of virtual time.
std::string ChromeTrace(const Occupancy& use, const Fabric& fabric, std::string_view title);

// A table for each plane with a link that carries anything, in it a line for each chip with the
// utilisation of the links on which it sends (and of its NIC in both directions): "-" where there
// is none, "down" where it is broken. Domains follow one another; at the end are the uplinks of the
// network. "no link is used" for a single chip.
std::string HeatMapText(const Occupancy& use, const Fabric& fabric);

// X and Y links as lines between chips (from each chip halfway to its neighbour), Z links as dots
// and NICs as squares beside them; white is idle, dark red full, grey down. A row for each domain,
// and one for the uplinks of the network.
std::string HeatMapSvg(const Occupancy& use, const Fabric& fabric, std::string_view title);

}  // namespace tahoma::sim
