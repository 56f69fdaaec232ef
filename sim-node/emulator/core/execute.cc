#include "sim-node/emulator/core/execute.h"

#include <array>
#include <string>
#include <utility>

#include "lib/base/check.h"
#include "lib/base/rng.h"
#include "lib/base/status.h"
#include "lib/isa/instruction.h"
#include "sim-node/emulator/core/effects.h"

namespace tahoma::sim {
namespace {

using Effect = absl::Status (*)(const Execution&);

// A machine carries a collective out for all ranks at once, and never asks for one rank's effect.
absl::Status NotOfOneRank(const Execution&) {
  TAHOMA_CHECK(false);
  return absl::OkStatus();
}

constexpr std::array<std::pair<isa::Opcode, Effect>, isa::kOpcodes> kEffects = {{
    {isa::Opcode::kDmaCopy, Copy},
    {isa::Opcode::kMatmul, Matmul},
    {isa::Opcode::kTensorCopy, Copy},
    {isa::Opcode::kMemset, Fill},
    {isa::Opcode::kTensorTensor, TensorTensor},
    {isa::Opcode::kCoreBarrier, Meet},
    {isa::Opcode::kSendRecv, Exchange},
    {isa::Opcode::kTranspose, Transpose},
    {isa::Opcode::kStreamShuffle, StreamShuffle},
    {isa::Opcode::kDmaTranspose, Transpose},
    {isa::Opcode::kIota, Iota},
    {isa::Opcode::kAffineSelect, AffineSelect},
    {isa::Opcode::kLocalGather, LocalGather},
    {isa::Opcode::kGather, Gather},
    {isa::Opcode::kDmaCompute, DmaCompute},
    {isa::Opcode::kActivation, Activate},
    {isa::Opcode::kActivationReduce, Activate},
    {isa::Opcode::kReciprocal, TakeReciprocal},
    {isa::Opcode::kTensorReduce, TensorReduce},
    {isa::Opcode::kTensorPartitionReduce, TensorPartitionReduce},
    {isa::Opcode::kBnStats, BnStats},
    {isa::Opcode::kBnAggr, BnAggr},
    {isa::Opcode::kMax8, Max8},
    {isa::Opcode::kFindIndex8, FindIndex8},
    {isa::Opcode::kMatchReplace8, MatchReplace8},
    {isa::Opcode::kTensorScalar, TensorScalar},
    {isa::Opcode::kScalarTensorTensor, ScalarTensorTensor},
    {isa::Opcode::kTensorScalarReduce, TensorScalarReduce},
    {isa::Opcode::kTensorTensorScan, TensorTensorScan},
    {isa::Opcode::kTensorCopyPredicated, TensorCopyPredicated},
    {isa::Opcode::kTensorScalarCumulative, TensorScalarCumulative},
    {isa::Opcode::kRangeSelect, RangeSelect},
    {isa::Opcode::kDmaCopyIndirect, CopyIndirect},
    {isa::Opcode::kAllReduce, NotOfOneRank},
    {isa::Opcode::kAllGather, NotOfOneRank},
    {isa::Opcode::kReduceScatter, NotOfOneRank},
    {isa::Opcode::kAllToAll, NotOfOneRank},
}};

constexpr bool InOrderOfOpcodes() {
  for (std::size_t at = 0; at < kEffects.size(); ++at) {
    if (static_cast<std::size_t>(kEffects[at].first) != at) return false;
  }
  return true;
}
static_assert(InOrderOfOpcodes());

// Mixed, so that the instructions of neighbouring seeds have seeds far apart.
std::uint64_t SeedOf(std::uint64_t program_seed, std::ptrdiff_t instruction) {
  return Rng(program_seed).Next() + static_cast<std::uint64_t>(instruction);
}

}  // namespace

absl::Status Execute(const isa::Program& program, const isa::Instruction& instruction,
                     const isa::Instruction* other, std::span<CoreMemory> memories, HbmPort& hbm,
                     std::optional<std::uint64_t> rounding_seed) {
  const Effect effect = kEffects[static_cast<std::size_t>(instruction.opcode)].second;
  const auto memory_of = [&](const isa::Instruction& one) {
    return &memories[static_cast<std::size_t>(one.core)];
  };
  const std::ptrdiff_t place_in_program = &instruction - program.instructions.data();
  if (rounding_seed) rounding_seed = SeedOf(*rounding_seed, place_in_program);
  const absl::Status status =
      effect({.program = program,
              .instruction = instruction,
              .memory = *memory_of(instruction),
              .hbm = hbm,
              .other = other,
              .other_memory = other == nullptr ? nullptr : memory_of(*other),
              .rounding_seed = rounding_seed});
  if (status.ok()) return status;
  const std::string place = instruction.line > 0 ? fmt::format("line {}", instruction.line)
                                                 : fmt::format("instruction {}", place_in_program);
  return Annotate(status, fmt::format("{}: {}", place, isa::RowOf(instruction.opcode).name));
}

}  // namespace tahoma::sim
