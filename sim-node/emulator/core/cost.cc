#include "sim-node/emulator/core/cost.h"

#include <algorithm>
#include <cmath>

#include "lib/base/check.h"
#include "lib/isa/instruction.h"
#include "lib/numeric/element.h"

namespace tahoma::sim {
namespace {

using isa::Engine;
using isa::Memory;
using isa::View;

constexpr int kPartitionsOfDmaEngine = isa::kPartitions / kDmaEngines;

// How many elements lie side by side, beginning with a view's first.
std::int64_t AdjacentElements(const View& view) {
  std::int64_t adjacent = 1;
  for (auto step = view.free.rbegin(); step != view.free.rend(); ++step) {
    if (step->count != 1 && step->stride != adjacent) return adjacent;
    adjacent *= step->count;
  }
  return adjacent;
}

bool IsContiguous(const View& view) { return AdjacentElements(view) == view.FreeCount(); }

bool IsShort(ElementType type) { return type == ElementType::kBf16 || type == ElementType::kFp16; }

// How many elements of a partition the vector engine copies in a cycle (D trainium2_arch.rst).
double CopiedEachCycle(const isa::Program& program, const View& to, const View& from) {
  const isa::Buffer& target = program.Of(to);
  const isa::Buffer& source = program.Of(from);
  if (!IsShort(target.type) || !IsShort(source.type)) return 1;
  const bool sbuf = target.memory == Memory::kSbuf && source.memory == Memory::kSbuf;
  return sbuf && IsContiguous(to) && IsContiguous(from) ? 4 : 2;
}

Cost MatmulCost(const isa::Program& program, const isa::Instruction& instruction,
                const hw::CoreProfile& profile) {
  const View& moving = instruction.operands[2];
  const bool fp32 = program.Of(moving).type == ElementType::kFp32;
  const double columns =
      static_cast<double>(moving.FreeCount()) * (fp32 ? profile.fp32_passes.value : 1);
  const VirtualDuration busy =
      Cycles(std::max(columns, profile.least_interval.value), Engine::kTensor, profile);
  return {.busy = busy,
          .ready = busy + Cycles(profile.matmul_fill.value, Engine::kTensor, profile)};
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

double ElementsEachCycle(const isa::Program& program, const isa::Instruction& instruction) {
  const bool vector = instruction.engine == Engine::kVector;
  switch (isa::RowOf(instruction.opcode).cost) {
    case isa::CostForm::kFill:
      return vector ? FilledEachCycle(program, instruction) : 1;
    case isa::CostForm::kTwoInputs:
      return vector ? CombinedEachCycle(program, instruction) : 0.5;
    default:
      return vector ? CopiedEachCycle(program, instruction.operands[0], instruction.operands[1])
                    : 1;
  }
}

Cost ElementsCost(const isa::Program& program, const isa::Instruction& instruction,
                  const hw::CoreProfile& profile) {
  const double elements = static_cast<double>(instruction.operands[0].FreeCount()) /
                          ElementsEachCycle(program, instruction);
  double cycles =
      std::max(elements, profile.least_interval.value) + profile.elements_overhead.value;
  if (instruction.engine == Engine::kGpSimd) cycles += profile.gpsimd_start.value;
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

// The view of a DMA whose partitions say which engine moves a row; nullptr: both are in HBM.
const View* OnChip(const isa::Program& program, const isa::Instruction& instruction) {
  for (const View& view : instruction.operands) {
    if (program.Of(view).memory != Memory::kHbm) return &view;
  }
  return nullptr;
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
    case isa::CostForm::kElements:
    case isa::CostForm::kFill:
    case isa::CostForm::kTwoInputs:
      return ElementsCost(program, instruction, profile);
    case isa::CostForm::kBarrier: {
      const double cycles = profile.least_interval.value + profile.semaphore.value;
      const VirtualDuration busy = Cycles(cycles, instruction.engine, profile);
      return {.busy = busy, .ready = busy};
    }
    case isa::CostForm::kDma:
      break;
  }
  TAHOMA_CHECK(false);
  return {};
}

DmaWork DmaWorkOf(const isa::Program& program, const isa::Instruction& instruction,
                  const hw::CoreProfile& profile) {
  const View& to = instruction.operands[0];
  const View& from = instruction.operands[1];
  const auto size = [&](const View& view) {
    return static_cast<std::int64_t>(Size(program.Of(view).type));
  };
  const std::int64_t elements = to.rows.count * to.FreeCount();
  const std::int64_t element_bytes = std::max(size(to), size(from));
  const std::int64_t run = std::min(AdjacentElements(to), AdjacentElements(from)) * element_bytes;
  const auto most = static_cast<std::int64_t>(profile.dma_packet_bytes.value);
  const std::int64_t packets_of_run = (run + most - 1) / most;
  const auto time_of = [&](std::int64_t bytes) {
    const double packets = std::ceil(static_cast<double>(bytes) / static_cast<double>(run)) *
                           static_cast<double>(packets_of_run);
    return Microseconds((packets * profile.dma_packet.value +
                         static_cast<double>(bytes) / profile.dma_engine_rate.value) /
                        1e3);
  };
  DmaWork work;
  const View* on_chip = OnChip(program, instruction);
  for (int engine = 0; engine < kDmaEngines; ++engine) {
    std::int64_t bytes = elements * element_bytes / kDmaEngines;
    if (on_chip != nullptr) {
      const std::int64_t first = std::max(on_chip->partition, engine * kPartitionsOfDmaEngine);
      const std::int64_t last = std::min(on_chip->partition + on_chip->rows.count,
                                         std::int64_t{engine + 1} * kPartitionsOfDmaEngine);
      bytes = std::max<std::int64_t>(last - first, 0) * on_chip->FreeCount() * element_bytes;
    }
    work.engines.at(static_cast<std::size_t>(engine)) =
        bytes == 0 ? VirtualDuration{} : time_of(bytes);
  }
  for (const View* view : {&to, &from}) {
    if (program.Of(*view).memory != Memory::kHbm) continue;
    work.hbm_bytes += static_cast<std::uint64_t>(elements * size(*view));
  }
  return work;
}

}  // namespace tahoma::sim
