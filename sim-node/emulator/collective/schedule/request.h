// The request of a collective, and its members.
//
//   const Request request{.operation = *ParseOperation("allr"), .bytes = 1 << 20};
//   ChipBufferBytes(request, /*ranks=*/4);      // what a chip with four ranks holds for it
//
// A member is a chip with its ranks (logical cores). Ranks are numbered through the members in
// order. Each rank's buffers lie in the HBM bank of its core.
//
// Thread safety: values and pure functions.

#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "lib/collective/neuron_work.h"
#include "lib/collective/operation.h"
#include "lib/numeric/element.h"
#include "lib/torus/box.h"
#include "lib/torus/shape.h"
#include "sim-node/emulator/collective/schedule/blocks.h"

namespace tahoma::sim {

using collective::Combines;
using collective::IsExchange;
using collective::Name;
using collective::Operation;
using collective::ParseOperation;

struct Request {
  Operation operation = Operation::kAllReduce;
  // The size of one rank's buffer; for all-gather, that of everything gathered. A multiple of the
  // element's size.
  std::uint64_t bytes = 0;
  ElementType type = ElementType::kFp32;
  // The blocks of an all-to-all or a permute, if they differ from those of the plain operation
  // (parts.h).
  std::shared_ptr<const std::vector<RankBlock>> blocks = nullptr;
};

struct Member {
  torus::ChipIndex chip;
  int ranks = 1;
  int banks = collective::kHbmBanksMax;  // of the chip's HBM, with the ranks' buffers
  friend auto operator<=>(const Member&, const Member&) = default;
};

// Returns the number of ranks on all members.
std::uint64_t RanksOf(const std::vector<Member>& members);

// Returns the member with a part of its ranks, and banks in proportion, rounded up: exact with LNC
// 2, where a bank belongs to a single rank, and for neighbours on a whole chip.
Member PartOf(const Member& member, int ranks);

// Returns the banks of the chip with the fewest. There must be a member.
int FewestBanks(const std::vector<Member>& members);

// The chips of the mask in ascending order, with as many ranks each, in all banks.
std::vector<Member> MembersOf(torus::ChipMask chips, int ranks = 1);

// A chip's memory for the request. Ranks of one chip share one buffer; in an exchange each has its
// own, and one for the result: first all buffers in order of rank, then all results.
std::uint64_t ChipBufferBytes(const Request& request, int ranks);

}  // namespace tahoma::sim
