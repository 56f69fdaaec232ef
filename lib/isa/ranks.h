// The ranks of a run, and the groups of ranks that carry a collective out together.
//
//   TAHOMA_RETURN_IF_ERROR(CheckRanks(program, 4));
//   GroupOf(program.instructions[7], 3, 4);   // {1, 3} of ranks=2,2; {2, 3} of ranks=2
//
// A run is of 1 to kRanksMax NeuronCores, the ranks from 0, and all ranks run the same program. The
// program does not say how many ranks there are: `ranks=K,S` of a collective makes groups of K
// ranks, S apart; without `ranks=` all ranks are a group.
//
// Scope: sizes and groups. The emulator moves the data and takes the time.
//
// Thread safety: pure functions.

#pragma once

#include <absl/status/status.h>

#include <vector>

#include "lib/isa/program.h"

namespace tahoma::isa {

inline constexpr int kRanksMax = 128;

// The rule of a collective in a run of any number of ranks, for CheckOwnRule (rules.h).
absl::Status CheckCollective(const Program& program, const Instruction& instruction);

// Whether so many ranks, 1 to kRanksMax, can run a checked program: kInvalidArgument for groups
// that do not divide the ranks, or for operands whose elements do not suit the groups. The message
// names line and instruction.
absl::Status CheckRanks(const Program& program, int ranks);

// The rank's group with the rank itself, ascending. CheckRanks has let the collective pass.
std::vector<int> GroupOf(const Instruction& collective, int rank, int ranks);

}  // namespace tahoma::isa
