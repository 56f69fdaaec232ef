// The fleet of a replay: how many UltraServers and lone instances, and what each node publishes.
//
// As text: 2-UltraServers, 8-trn2.48xlarge, or such groups joined by +. Nodes are named "us-0-n0" …
// in UltraServers and "node-0" … alone. They publish chips as dra-plugin does, without NeuronCores:
// jobs of traces ask for whole chips.
//
// Failures: kInvalidArgument with the text at fault and what would be right.
//
// Thread safety: values; pure functions.

#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "controller/model/inventory.h"

namespace tahoma::controller {

struct ReplayFleet {
  struct Group {
    std::int64_t count = 0;
    std::string instance_type;
    bool ultra_servers = false;  // `count` UltraServers of four such instances
  };
  std::vector<Group> groups;

  std::int64_t nodes() const;
  std::int64_t chips() const;
  // Returns "2 UltraServers, 8 trn2.48xlarge: 256 chips".
  std::string Describe() const;
};

inline constexpr std::int64_t kReplayNodesMost = 100'000;

absl::StatusOr<ReplayFleet> ParseFleet(std::string_view text);

std::vector<NodeFacts> NodesOf(const ReplayFleet& fleet);

}  // namespace tahoma::controller
