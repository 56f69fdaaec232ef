// The command line of trn-checkpoint: how long nodes take to write or read a checkpoint that all of
// them keep on one storage system.
//
//   CheckpointOptions options;
//   config::Spec spec = DeclareCheckpointOptions(options);
//   if (const auto exit = config::Parse(argc, argv, spec)) return *exit;
//   TAHOMA_ASSIGN_OR_RETURN(const CheckpointCost cost, CostOf(options));
//
// Scope: no output; app/ has it.
//
// Thread safety: none; used once, at the program's start.

#pragma once

#include <absl/status/statusor.h>

#include <chrono>
#include <cstdint>
#include <string>

#include "lib/config/spec.h"
#include "sim-node/emulator/link/storage.h"

namespace tahoma::sim {

struct CheckpointOptions {
  std::string access = "write";
  std::int64_t nodes = 128;
  std::string instance_type = "trn2.48xlarge";
  std::int64_t bytes_per_chip = std::int64_t{24} << 30;
  std::int64_t tebibytes = 100;
  std::chrono::nanoseconds stagger{};  // each node begins that much after the one before it
};

config::Spec DeclareCheckpointOptions(CheckpointOptions& options);

struct CheckpointCost {
  VirtualDuration first{};  // until the first node is done, from its own start
  VirtualDuration all{};    // until the last node is done, from the first one's start
  VirtualDuration bound{};  // what neither the system nor the nodes can beat, without the latency
  std::string text;         // for people, some lines
};

// kInvalidArgument names the option that is wrong and what would be right.
absl::StatusOr<CheckpointCost> CostOf(const CheckpointOptions& options);

}  // namespace tahoma::sim
