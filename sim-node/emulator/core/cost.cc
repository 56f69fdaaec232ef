#include "sim-node/emulator/core/cost.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "lib/base/check.h"
#include "lib/isa/instruction.h"
#include "lib/numeric/element.h"

namespace tahoma::sim {
namespace {

using isa::Engine;
using isa::Memory;
using isa::View;

constexpr int kPartitionsOfDmaEngine = isa::kPartitions / kDmaEngines;

bool IsContiguous(const View& view) { return view.AdjacentCount() == view.FreeCount(); }

bool IsShort(ElementType type) { return type == ElementType::kBf16 || type == ElementType::kFp16; }

// How many elements of a partition the vector engine copies in a cycle (D trainium2_arch.rst).
double CopiedEachCycle(const isa::Program& program, const View& to, const View& from) {
  const isa::Buffer& target = program.Of(to);
  const isa::Buffer& source = program.Of(from);
  if (!IsShort(target.type) || !IsShort(source.type)) return 1;
  const bool sbuf = target.memory == Memory::kSbuf && source.memory == Memory::kSbuf;
  return sbuf && IsContiguous(to) && IsContiguous(from) ? 4 : 2;
}

// Whether the tensor engine takes several passes for an operand. A pass multiplies the bits of
// fp32r at most; a transposition moves all bits of an element.
bool TakesPasses(ElementType type, bool is_transpose) {
  return is_transpose ? Size(type) == 4 : type == ElementType::kFp32;
}

Cost MatmulCost(const isa::Program& program, const isa::Instruction& instruction,
                const hw::CoreProfile& profile) {
  const View& moving = instruction.operands[2];
  const auto takes_passes = [&](const View& view) {
    return TakesPasses(program.Of(view).type, instruction.is_transpose);
  };
  const bool wide = takes_passes(instruction.operands[1]) || takes_passes(moving);
  const bool half =
      instruction.is_transpose || instruction.stationary_onezero || instruction.moving_onezero;
  const double passes = profile.fp32_passes.value / (half ? 2 : 1);
  const double rows = instruction.double_row ? 2 : 1;  // of a partition, at once
  const double columns = static_cast<double>(moving.FreeCount()) / rows * (wide ? passes : 1);
  const VirtualDuration busy =
      Cycles(std::max(columns, profile.least_interval.value), Engine::kTensor, profile);
  return {.busy = busy,
          .ready = busy + Cycles(profile.matmul_fill.value, Engine::kTensor, profile)};
}

// The tensor engine streams the partitions of data as columns, fp32 in half the passes of a product
// (O; D trainium2_arch.rst). The vector engine takes an element of each partition a cycle.
Cost TransposeCost(const isa::Program& program, const isa::Instruction& instruction,
                   const hw::CoreProfile& profile) {
  const View& data = instruction.operands[1];
  const auto columns = static_cast<double>(data.rows.count);
  const auto elements = static_cast<double>(data.FreeCount());
  const double least = profile.least_interval.value;
  if (instruction.engine == Engine::kVector) {
    const VirtualDuration busy = Cycles(std::max(columns, least) + profile.elements_overhead.value,
                                        Engine::kVector, profile);
    return {.busy = busy, .ready = busy};
  }
  const double passes = Size(program.Of(data).type) == 4 ? profile.fp32_passes.value / 2 : 1;
  const VirtualDuration busy =
      Cycles(passes * std::max(columns, std::min(least, elements)), Engine::kTensor, profile);
  return {.busy = busy,
          .ready = busy + Cycles(profile.matmul_fill.value, Engine::kTensor, profile)};
}

// How many cycles a processor of GpSimd takes for an element that it gathers (O; the page divides
// by the figure, which would make more elements for each index slower).
double CyclesOfGathered(const isa::Program& program, const isa::Instruction& instruction) {
  const double run = instruction.numbers.empty() ? 1 : static_cast<double>(instruction.numbers[0]);
  const auto bytes = static_cast<double>(Size(program.Of(instruction.operands[0]).type));
  return (28 + 4 * run) / (4 * run) / std::min(4 / bytes, run);
}

// The vector engine fills two elements of 16 bits with zeros in a cycle (O).
double FilledEachCycle(const isa::Program& program, const isa::Instruction& instruction) {
  return instruction.value == 0 && Size(program.Of(instruction.operands[0]).type) == 2 ? 2 : 1;
}

// An element of each input takes a cycle, but an input in PSUM comes beside the other, and so do
// contiguous bf16 in SBUF that are added, subtracted or multiplied (O).
double CombinedEachCycle(const isa::Program& program, const isa::Instruction& instruction) {
  using isa::AluOp;
  const bool simple = instruction.op == AluOp::kAdd || instruction.op == AluOp::kSubtract ||
                      instruction.op == AluOp::kMultiply;
  bool all_bf16 = true;
  for (const View& view : instruction.operands) {
    const isa::Buffer& buffer = program.Of(view);
    if (&view != &instruction.operands[0] && buffer.memory == Memory::kPsum) return 1;
    all_bf16 = all_bf16 && buffer.type == ElementType::kBf16 && IsContiguous(view);
  }
  return simple && all_bf16 ? 1 : 0.5;
}

// How many cycles of its engine an element of the input takes (O).
double CyclesOfInput(const isa::Program& program, const isa::Instruction& instruction) {
  using isa::Opcode;
  switch (instruction.opcode) {
    case Opcode::kReciprocal:
      return 8;
    case Opcode::kBnAggr:
      return 13.0 / 3;
    case Opcode::kTensorReduce: {
      const auto is_bf16 = [&](const View& view) {
        return program.Of(view).type == ElementType::kBf16;
      };
      const bool simple =
          instruction.op == isa::AluOp::kAdd || instruction.op == isa::AluOp::kMaximum;
      return simple && std::ranges::all_of(instruction.operands, is_bf16) ? 0.5 : 1;
    }
    default:
      return 1;
  }
}

Cost InputCost(const isa::Program& program, const isa::Instruction& instruction,
               const hw::CoreProfile& profile) {
  const auto operands = isa::RowOf(instruction.opcode).operands;
  const auto input = std::ranges::find(operands, false, &isa::OperandRow::written);
  const View* view = instruction.Find(static_cast<std::size_t>(input - operands.begin()));
  TAHOMA_CHECK(view != nullptr);
  const double elements =
      static_cast<double>(view->FreeCount()) * CyclesOfInput(program, instruction);
  double cycles =
      std::max(elements, profile.least_interval.value) + profile.elements_overhead.value;
  // Another instruction reads the sums of a function out of their registers (O).
  if (instruction.engine == Engine::kScalar && instruction.Find(1) != nullptr) {
    cycles += profile.least_interval.value;
  }
  if (instruction.engine == Engine::kGpSimd) cycles += profile.gpsimd_start.value;
  const VirtualDuration busy = Cycles(cycles, instruction.engine, profile);
  return {.busy = busy, .ready = busy};
}

// Two cycles an element, or one where bf16 are subtracted from and multiplied in pairs (O).
double ScaledEachCycle(const isa::Program& program, const isa::Instruction& instruction) {
  const auto is_bf16 = [&](std::size_t operand) {
    return program.Of(*instruction.Find(operand)).type == ElementType::kBf16;
  };
  const bool fast = is_bf16(1) && is_bf16(3) && instruction.op == isa::AluOp::kSubtract &&
                    instruction.op1 == isa::AluOp::kMultiply &&
                    instruction.operands[0].FreeCount() % 2 == 0;
  return fast ? 1 : 0.5;
}

// Two inputs in SBUF share a port; one of both in PSUM, or a number, comes beside the other (O).
double PredicatedEachCycle(const isa::Program& program, const isa::Instruction& instruction) {
  if (instruction.Find(1) == nullptr) return 1;
  const auto in_sbuf = [&](std::size_t operand) {
    return program.Of(*instruction.Find(operand)).memory == Memory::kSbuf;
  };
  return in_sbuf(1) && in_sbuf(2) ? 0.5 : 1;
}

// tensor_copy and tensor_scalar. GpSimd's only operator in tensor_scalar is rsqrt, and is four
// times as slow as the scalar engine's (D nki.isa).
double CopiedOrScaledEachCycle(const isa::Program& program, const isa::Instruction& instruction) {
  const bool scalar = instruction.opcode == isa::Opcode::kTensorScalar;
  if (scalar && instruction.engine == Engine::kGpSimd) return 0.25;
  if (instruction.engine != Engine::kVector) return 1;
  return CopiedEachCycle(program, instruction.operands[0], instruction.operands[1]);
}

double ElementsEachCycle(const isa::Program& program, const isa::Instruction& instruction) {
  const bool vector = instruction.engine == Engine::kVector;
  switch (isa::RowOf(instruction.opcode).cost) {
    case isa::CostForm::kFill:
      return vector ? FilledEachCycle(program, instruction) : 1;
    case isa::CostForm::kTwoInputs:
      return vector ? CombinedEachCycle(program, instruction) : 0.5;
    case isa::CostForm::kLocalGather:
      return 1 / CyclesOfGathered(program, instruction);
    case isa::CostForm::kScalarTwoInputs:
      return ScaledEachCycle(program, instruction);
    case isa::CostForm::kPredicated:
      return PredicatedEachCycle(program, instruction);
    case isa::CostForm::kTwoCycles:
      return 0.5;
    case isa::CostForm::kOneCycle:
    case isa::CostForm::kReduced:
      return 1;
    default:
      return CopiedOrScaledEachCycle(program, instruction);
  }
}

Cost ElementsCost(const isa::Program& program, const isa::Instruction& instruction,
                  const hw::CoreProfile& profile) {
  const double elements = static_cast<double>(instruction.operands[0].FreeCount()) /
                          ElementsEachCycle(program, instruction);
  double cycles =
      std::max(elements, profile.least_interval.value) + profile.elements_overhead.value;
  if (instruction.engine == Engine::kGpSimd) cycles += profile.gpsimd_start.value;
  if (isa::RowOf(instruction.opcode).cost == isa::CostForm::kReduced) {
    cycles += profile.least_interval.value;  // the numbers of the partitions are read out (O)
  }
  const VirtualDuration busy = Cycles(cycles, instruction.engine, profile);
  return {.busy = busy, .ready = busy};
}

const hw::Figure& ClockOf(Engine engine, const hw::CoreProfile& profile) {
  switch (engine) {
    case Engine::kTensor:
      return profile.tensor_clock;
    case Engine::kVector:
      return profile.vector_clock;
    case Engine::kScalar:
      return profile.scalar_clock;
    case Engine::kGpSimd:
      return profile.gpsimd_clock;
    case Engine::kSync:
      return profile.sync_clock;
  }
  TAHOMA_CHECK(false);
  return profile.sync_clock;
}

// dst and what is copied there, without the offsets that say from where.
std::span<const View> MovedOf(const isa::Instruction& instruction) {
  const std::span<const View> operands = instruction.operands;
  return isa::IndirectOf(instruction) == nullptr ? operands : operands.first(2);
}

// The view of a DMA whose partitions say which engine moves a row; nullptr: both are in HBM.
const View* OnChip(const isa::Program& program, const isa::Instruction& instruction) {
  for (const View& view : MovedOf(instruction)) {
    if (program.Of(view).memory != Memory::kHbm) return &view;
  }
  return nullptr;
}

// A copy of one source of a DMA to its dst.
struct DmaCopy {
  std::int64_t element_bytes = 0;
  std::int64_t run_bytes = 0;  // adjacent on both sides, of a transposition in dst
  double share = 1;            // of a plain copy's rate
};

DmaCopy CopyOf(const isa::Program& program, const isa::Instruction& instruction, const View& from,
               const hw::CoreProfile& profile) {
  const View& to = instruction.operands[0];
  const auto size = [&](const View& view) {
    return static_cast<std::int64_t>(Size(program.Of(view).type));
  };
  DmaCopy copy = {.element_bytes = std::max(size(to), size(from))};
  std::int64_t run = to.AdjacentCount();
  if (instruction.opcode == isa::Opcode::kDmaTranspose) {
    // Packets of the runs of src, here 256 bytes, would take 314 us in a kernel that AWS measured
    // at 245 us (nki-autotune, 2048 x 2048 x 2048).
    const bool hbm = program.Of(from).memory == Memory::kHbm;
    copy.share = hbm ? profile.dma_transpose_hbm.value : profile.dma_transpose_sbuf.value;
  } else {
    run = std::min(run, from.AdjacentCount());
  }
  copy.run_bytes = run * copy.element_bytes;
  return copy;
}

VirtualDuration TimeOf(const DmaCopy& copy, std::int64_t bytes, const hw::CoreProfile& profile) {
  const auto most = static_cast<std::int64_t>(profile.dma_packet_bytes.value);
  const std::int64_t packets_of_run = (copy.run_bytes + most - 1) / most;
  const double packets =
      std::ceil(static_cast<double>(bytes) / static_cast<double>(copy.run_bytes)) *
      static_cast<double>(packets_of_run);
  return Microseconds((packets * profile.dma_packet.value +
                       static_cast<double>(bytes) / profile.dma_engine_rate.value) /
                      copy.share / 1e3);
}

}  // namespace

VirtualDuration Cycles(double cycles, Engine engine, const hw::CoreProfile& profile) {
  return Microseconds(cycles / ClockOf(engine, profile).value / 1e3);
}

VirtualDuration FromNanoseconds(const hw::Figure& figure) {
  return Microseconds(figure.value / 1e3);
}

Cost CostOf(const isa::Program& program, const isa::Instruction& instruction,
            const hw::CoreProfile& profile) {
  switch (isa::RowOf(instruction.opcode).cost) {
    case isa::CostForm::kMatmul:
      return MatmulCost(program, instruction, profile);
    case isa::CostForm::kTranspose:
      return TransposeCost(program, instruction, profile);
    case isa::CostForm::kElements:
    case isa::CostForm::kFill:
    case isa::CostForm::kTwoInputs:
    case isa::CostForm::kLocalGather:
    case isa::CostForm::kScalarTwoInputs:
    case isa::CostForm::kReduced:
    case isa::CostForm::kOneCycle:
    case isa::CostForm::kTwoCycles:
    case isa::CostForm::kPredicated:
      return ElementsCost(program, instruction, profile);
    case isa::CostForm::kBarrier: {
      const double cycles = profile.least_interval.value + profile.semaphore.value;
      const VirtualDuration busy = Cycles(cycles, instruction.engine, profile);
      return {.busy = busy, .ready = busy};
    }
    case isa::CostForm::kInput:
      return InputCost(program, instruction, profile);
    case isa::CostForm::kDma:
    case isa::CostForm::kCollective:
      break;
  }
  TAHOMA_CHECK(false);
  return {};
}

DmaWork DmaWorkOf(const isa::Program& program, const isa::Instruction& instruction,
                  const hw::CoreProfile& profile) {
  const View& to = instruction.operands[0];
  const std::int64_t elements = to.Count();
  const View* on_chip = OnChip(program, instruction);
  DmaWork work;
  const std::span<const View> moved = MovedOf(instruction);
  for (const View& from : moved.subspan(1)) {
    const DmaCopy copy = CopyOf(program, instruction, from, profile);
    for (int engine = 0; engine < kDmaEngines; ++engine) {
      std::int64_t bytes = elements * copy.element_bytes / kDmaEngines;
      if (on_chip != nullptr) {
        const std::int64_t first = std::max(on_chip->partition, engine * kPartitionsOfDmaEngine);
        const std::int64_t last = std::min(on_chip->partition + on_chip->rows.count,
                                           std::int64_t{engine + 1} * kPartitionsOfDmaEngine);
        bytes = std::max<std::int64_t>(last - first, 0) * on_chip->FreeCount() * copy.element_bytes;
      }
      if (bytes > 0) {
        work.engines.at(static_cast<std::size_t>(engine)) += TimeOf(copy, bytes, profile);
      }
    }
  }
  for (const View& view : moved) {
    if (program.Of(view).memory != Memory::kHbm) continue;
    work.hbm.push_back(
        {.buffer = view.buffer,
         .bytes = static_cast<std::uint64_t>(elements) * Size(program.Of(view).type)});
  }
  return work;
}

}  // namespace tahoma::sim
