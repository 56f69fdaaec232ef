// One world from its seed to its end.
//
// A world is set up, lives through its chaos (arrivals, faults, crashes), is repaired except for
// its broken chips, comes to rest and is judged; then everything is deleted and it is judged again.
//
// Thread safety: pure; worlds do not share anything.

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "tests/sim/world.h"

namespace tahoma::simulation {

struct RunOptions {
  Plant plant = Plant::kNone;
  bool verbose = false;  // prints every request and what fails
};

struct Report {
  std::uint64_t seed = 0;
  std::uint64_t steps = 0;
  std::uint64_t hash = 0;
  std::optional<std::string> failure;
  Duration failed_at{};
  std::map<std::string, int> met;
};

Report RunWorld(std::uint64_t seed, const RunOptions& options);

}  // namespace tahoma::simulation
