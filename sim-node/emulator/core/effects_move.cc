// Movements: transpositions, shuffles, gathers, and the affine patterns that choose elements.

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "lib/base/status.h"
#include "lib/isa/instruction.h"
#include "lib/numeric/alu.h"
#include "lib/numeric/convert.h"
#include "sim-node/emulator/core/effects.h"
#include "sim-node/emulator/core/execute.h"

namespace tahoma::sim {
namespace {

std::size_t ColumnsOf(const Execution& execution, std::size_t operand) {
  return static_cast<std::size_t>(execution.ViewOf(operand).FreeCount());
}

// The instruction with one partition of an operand. No operand of the row is left out.
isa::Instruction WithRow(const Execution& execution, std::size_t operand, std::size_t row) {
  isa::Instruction one = execution.instruction;
  one.operands[operand].partition += static_cast<int>(row);
  one.operands[operand].rows.count = 1;
  return one;
}

// The values of an affine pattern (docs/formats/program.md#instructions) for each element of dst.
std::vector<std::int32_t> PatternOf(const Execution& execution) {
  const std::vector<std::int64_t>& numbers = execution.instruction.numbers;
  std::vector<std::int32_t> values;
  values.reserve(execution.ElementsOf(0));
  for (std::size_t row = 0; row < execution.RowsOf(0); ++row) {
    const std::size_t first = values.size();
    values.push_back(
        static_cast<std::int32_t>(numbers[0] + static_cast<std::int64_t>(row) * numbers[1]));
    // From the innermost dimension: each repeats all values that the row has until now.
    for (std::size_t at = numbers.size(); at > 2; at -= 2) {
      const std::int64_t step = numbers[at - 2];
      const std::size_t block = values.size() - first;
      for (std::int64_t i = 1; i < numbers[at - 1]; ++i) {
        for (std::size_t in = 0; in < block; ++in) {
          values.push_back(static_cast<std::int32_t>(values[first + in] + i * step));
        }
      }
    }
  }
  return values;
}

std::vector<float> AsFp32(const std::vector<std::int32_t>& values) {
  std::vector<float> converted(values.size());
  std::ranges::transform(values, converted.begin(),
                         [](std::int32_t value) { return static_cast<float>(value); });
  return converted;
}

std::vector<std::byte> Rearranged(std::span<const std::byte> from,
                                  std::span<const std::size_t> sources, std::size_t size) {
  std::vector<std::byte> to(sources.size() * size);
  for (std::size_t at = 0; at < sources.size(); ++at) {
    std::memcpy(&to[at * size], &from[sources[at] * size], size);
  }
  return to;
}

// Element `at` becomes that with the number sources[at].
Moved Rearranged(const Moved& from, std::span<const std::size_t> sources, std::size_t size) {
  Moved to = {.bytes = Rearranged(from.bytes, sources, size), .written = {}};
  if (!from.written.empty()) to.written = Rearranged(from.written, sources, size);
  return to;
}

}  // namespace

absl::Status Transpose(const Execution& execution) {
  TAHOMA_ASSIGN_OR_RETURN(const Moved moved, TakeBytes(execution, 1));
  const std::size_t size = Size(execution.TypeOf(0));
  const std::size_t rows = execution.RowsOf(1);
  const std::size_t inner = execution.RowsOf(0);
  const std::size_t middle = ColumnsOf(execution, 1) / inner;
  std::vector<std::size_t> sources(moved.bytes.size() / size);
  std::size_t next = 0;
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t m = 0; m < middle; ++m) {
      for (std::size_t i = 0; i < inner; ++i, ++next) {
        sources[(i * middle + m) * rows + row] = next;
      }
    }
  }
  return PutBytes(execution, Rearranged(moved, sources, size));
}

absl::Status TransposeByMatmul(const Execution& execution) {
  TAHOMA_ASSIGN_OR_RETURN(const Moved stationary, TakeBytes(execution, 1));
  TAHOMA_ASSIGN_OR_RETURN(const std::vector<float> moving, ReadFp32(execution, 2));
  const std::size_t rows = execution.RowsOf(0);
  const std::size_t columns = ColumnsOf(execution, 0);
  std::vector<std::size_t> sources(rows * columns);
  for (std::size_t column = 0; column < columns; ++column) {
    std::optional<std::size_t> chosen;
    for (std::size_t k = 0; k < execution.RowsOf(2); ++k) {
      const float factor = moving[k * columns + column];
      if (factor == 0) continue;
      if (factor != 1 || chosen) {
        return FailedPrecondition(
            "moving has {} in partition {} of column {}; is_transpose passes elements on and adds "
            "none: expected a single 1, all else 0",
            factor, k, column);
      }
      chosen = k;
    }
    if (!chosen) {
      return FailedPrecondition("moving has no 1 in column {}; is_transpose needs a single 1",
                                column);
    }
    for (std::size_t row = 0; row < rows; ++row) {
      sources[row * columns + column] = *chosen * rows + row;
    }
  }
  return PutBytes(execution, Rearranged(stationary, sources, Size(execution.TypeOf(0))));
}

absl::Status StreamShuffle(const Execution& execution) {
  constexpr std::size_t kQuadrant = 32;
  constexpr std::int64_t kKept = 255;
  const std::vector<std::int64_t>& mask = execution.instruction.numbers;
  const std::size_t bytes = ColumnsOf(execution, 1) * Size(execution.TypeOf(1));
  // Only partitions that the mask names are read, and all are before the first is written.
  std::vector<std::optional<std::vector<std::byte>>> moved(execution.RowsOf(0));
  for (std::size_t row = 0; row < moved.size(); ++row) {
    const std::int64_t from = mask[row % kQuadrant];
    if (from == kKept) continue;
    const isa::Instruction one =
        WithRow(execution, 1, row / kQuadrant * kQuadrant + static_cast<std::size_t>(from));
    const Execution reading = {execution.program, one, execution.memory, execution.hbm};
    moved[row].emplace(bytes);
    TAHOMA_RETURN_IF_ERROR(OperandCursor(reading, 1).Read(*moved[row]));
  }
  for (std::size_t row = 0; row < moved.size(); ++row) {
    if (!moved[row]) continue;
    const isa::Instruction one = WithRow(execution, 0, row);
    const Execution writing = {execution.program, one, execution.memory, execution.hbm};
    TAHOMA_RETURN_IF_ERROR(OperandCursor(writing, 0).Write(*moved[row]));
  }
  return absl::OkStatus();
}

absl::Status Iota(const Execution& execution) {
  std::vector<std::int32_t> values = PatternOf(execution);
  const ElementType type = execution.TypeOf(0);
  if (type != ElementType::kInt32 && type != ElementType::kUint32) {
    return WriteFp32(execution, 0, AsFp32(values));
  }
  // fp32 has not all of int32's numbers. Below zero an unsigned type saturates, as elsewhere.
  if (type == ElementType::kUint32) {
    for (std::int32_t& value : values) value = std::max(value, 0);
  }
  return OperandCursor(execution, 0).Write(std::as_bytes(std::span(values)));
}

absl::Status AffineSelect(const Execution& execution) {
  TAHOMA_ASSIGN_OR_RETURN(std::vector<std::byte> bytes, ReadBytes(execution, 1));
  const ElementType type = execution.TypeOf(0);
  const std::size_t size = Size(type);
  std::vector<float> kept = AsFp32(PatternOf(execution));
  Apply(execution.instruction.op, kept, 0.0F, /*reversed=*/false);
  if (execution.TypeOf(1) != type) {
    std::vector<float> values(kept.size());
    Widen(execution.TypeOf(1), bytes.data(), values);
    bytes.resize(values.size() * size);
    execution.Round(0, 0, values, bytes.data());
  }
  std::array<std::byte, 4> other{};
  const float value = execution.instruction.value;
  Narrow(type, {&value, 1}, other.data());
  for (std::size_t at = 0; at < kept.size(); ++at) {
    if (kept[at] == 0) std::memcpy(&bytes[at * size], other.data(), size);
  }
  return OperandCursor(execution, 0).Write(bytes);
}

absl::Status LocalGather(const Execution& execution) {
  constexpr std::size_t kGroup = 16;
  TAHOMA_ASSIGN_OR_RETURN(const std::vector<std::byte> from, ReadBytes(execution, 1));
  TAHOMA_ASSIGN_OR_RETURN(const std::vector<float> index, ReadFp32(execution, 2));
  const std::vector<std::int64_t>& numbers = execution.instruction.numbers;
  const std::size_t run = numbers.empty() ? 1 : static_cast<std::size_t>(numbers.front());
  const std::size_t size = Size(execution.TypeOf(0));
  const std::size_t columns = ColumnsOf(execution, 1);
  const std::size_t taken = ColumnsOf(execution, 0) / run;
  std::vector<std::byte> to(execution.ElementsOf(0) * size);
  std::size_t next = 0;
  for (std::size_t row = 0; row < execution.RowsOf(0); ++row) {
    for (std::size_t at = 0; at < taken; ++at, next += run * size) {
      // A group's indices go down its partitions first.
      const std::size_t holder = row / kGroup * kGroup + at % kGroup;
      const auto first =
          static_cast<std::size_t>(index[holder * ColumnsOf(execution, 2) + at / kGroup]);
      if (first + run > columns) {
        return FailedPrecondition(
            "index has {} in partition {} of the operand, for elements to {}; src_buffer has {} in "
            "a partition, and what the chip reads behind them is not defined",
            first, holder, first + run - 1, columns);
      }
      std::memcpy(&to[next], &from[(row * columns + first) * size], run * size);
    }
  }
  return OperandCursor(execution, 0).Write(to);
}

absl::Status Gather(const Execution& execution) {
  TAHOMA_ASSIGN_OR_RETURN(const std::vector<std::byte> from, ReadBytes(execution, 1));
  TAHOMA_ASSIGN_OR_RETURN(const std::vector<std::byte> indices, ReadBytes(execution, 2));
  const std::size_t size = Size(execution.TypeOf(0));
  const std::size_t columns = ColumnsOf(execution, 1);
  std::vector<std::byte> to(execution.ElementsOf(0) * size);
  for (std::size_t at = 0; at < execution.ElementsOf(0); ++at) {
    std::uint32_t index = 0;
    std::memcpy(&index, &indices[at * sizeof(index)], sizeof(index));
    const std::size_t row = at / ColumnsOf(execution, 0);
    if (index >= columns) {
      return FailedPrecondition(
          "indices has {} in partition {} of the operand; data has {} elements in a partition, and "
          "what the chip reads behind them is not defined",
          index, row, columns);
    }
    std::memcpy(&to[at * size], &from[(row * columns + index) * size], size);
  }
  return OperandCursor(execution, 0).Write(to);
}

absl::Status DmaCompute(const Execution& execution) {
  const std::size_t operands = isa::RowOf(execution.instruction.opcode).operands.size();
  OperandCursor to(execution, 0);
  std::vector<std::pair<OperandCursor, ElementType>> sources;
  for (std::size_t at = 1; at < operands; ++at) {
    if (execution.Has(at)) sources.emplace_back(OperandCursor(execution, at), execution.TypeOf(at));
  }
  std::vector<float> sum;
  std::vector<float> values;
  std::vector<std::byte> bytes;
  const std::size_t elements = execution.ElementsOf(0);
  for (std::size_t first = 0; first < elements; first += kCopyElements) {
    const std::size_t count = std::min(elements - first, kCopyElements);
    values.resize(count);
    sum.clear();
    for (auto& [from, type] : sources) {
      bytes.resize(count * Size(type));
      TAHOMA_RETURN_IF_ERROR(from.Read(bytes));
      Widen(type, bytes.data(), values);
      if (sum.empty()) {
        sum = values;
      } else {
        Apply(AluOp::kAdd, sum, values, /*reversed=*/false);
      }
    }
    bytes.resize(count * Size(execution.TypeOf(0)));
    execution.Round(0, first, sum, bytes.data());
    TAHOMA_RETURN_IF_ERROR(to.Write(bytes));
  }
  return absl::OkStatus();
}

}  // namespace tahoma::sim
