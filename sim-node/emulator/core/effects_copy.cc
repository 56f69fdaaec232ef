// Copies, fills and products.

#include <algorithm>
#include <string_view>
#include <vector>

#include "lib/base/check.h"
#include "lib/base/status.h"
#include "lib/numeric/convert.h"
#include "lib/numeric/tile_product.h"
#include "sim-node/emulator/core/effects.h"
#include "sim-node/emulator/core/execute.h"

namespace tahoma::sim {
namespace {

// The elements of src, from number `first` on, as elements of dst.
std::vector<std::byte> Converted(const Execution& execution, std::size_t first,
                                 std::span<const std::byte> bytes) {
  std::vector<float> values(bytes.size() / Size(execution.TypeOf(1)));
  Widen(execution.TypeOf(1), bytes.data(), values);
  std::vector<std::byte> converted(values.size() * Size(execution.TypeOf(0)));
  execution.Round(0, first, values, converted.data());
  return converted;
}

// The chip takes fewer passes where it is told that an operand is only 0 and 1.
absl::Status CheckOneZero(std::string_view operand, std::span<const float> values) {
  const auto other = std::ranges::find_if(values, [](float v) { return v != 0 && v != 1; });
  if (other == values.end()) return absl::OkStatus();
  return FailedPrecondition("{0} has {1}; is_{0}_onezero promises 0 and 1 only", operand, *other);
}

}  // namespace

absl::Status Copy(const Execution& execution) {
  const ElementType to_type = execution.TypeOf(0);
  const ElementType from_type = execution.TypeOf(1);
  const std::size_t elements = execution.ElementsOf(0);
  TAHOMA_CHECK(elements == execution.ElementsOf(1));
  OperandCursor to(execution, 0);
  OperandCursor from(execution, 1);
  Moved piece;
  for (std::size_t first = 0; first < elements; first += kCopyElements) {
    piece.bytes.resize(std::min(elements - first, kCopyElements) * Size(from_type));
    if (from_type == to_type) {
      TAHOMA_RETURN_IF_ERROR(from.Take(piece));
      TAHOMA_RETURN_IF_ERROR(to.Put(piece));
    } else {
      TAHOMA_RETURN_IF_ERROR(from.Read(piece.bytes));
      TAHOMA_RETURN_IF_ERROR(to.Write(Converted(execution, first, piece.bytes)));
    }
  }
  return absl::OkStatus();
}

absl::Status Matmul(const Execution& execution) {
  if (execution.instruction.is_transpose) return TransposeByMatmul(execution);
  constexpr std::size_t kOut = 0;
  constexpr std::size_t kStationary = 1;
  constexpr std::size_t kMoving = 2;
  const isa::View& right = execution.ViewOf(kMoving);
  const isa::View& left = execution.ViewOf(kStationary);
  // Two rows of a partition lie one behind the other, as those of two partitions do here.
  const std::int64_t rows = execution.instruction.double_row ? 2 : 1;
  const TileSizes sizes = {.k = static_cast<std::size_t>(right.rows.count * rows),
                           .m = static_cast<std::size_t>(left.FreeCount() / rows),
                           .n = static_cast<std::size_t>(right.FreeCount() / rows)};
  TAHOMA_ASSIGN_OR_RETURN(const std::vector<float> stationary, ReadFp32(execution, kStationary));
  TAHOMA_ASSIGN_OR_RETURN(const std::vector<float> moving, ReadFp32(execution, kMoving));
  if (execution.instruction.stationary_onezero) {
    TAHOMA_RETURN_IF_ERROR(CheckOneZero("stationary", stationary));
  }
  if (execution.instruction.moving_onezero) {
    TAHOMA_RETURN_IF_ERROR(CheckOneZero("moving", moving));
  }
  std::vector<float> out(sizes.m * sizes.n);
  Accumulate accumulate = Accumulate::kNo;
  if (execution.instruction.accumulate) {
    TAHOMA_ASSIGN_OR_RETURN(out, ReadFp32(execution, kOut));
    accumulate = Accumulate::kYes;
  }
  MultiplyTiles(sizes, stationary, moving, accumulate, out);
  return WriteFp32(execution, kOut, out);
}

absl::Status Fill(const Execution& execution) {
  const std::size_t elements = execution.ElementsOf(0);
  const std::size_t size = Size(execution.TypeOf(0));
  const std::vector<float> values(std::min(elements, kCopyElements), execution.instruction.value);
  std::vector<std::byte> piece(values.size() * size);
  Narrow(execution.TypeOf(0), values, piece.data());
  OperandCursor to(execution, 0);
  for (std::size_t left = elements; left > 0;) {
    const std::size_t count = std::min(left, values.size());
    TAHOMA_RETURN_IF_ERROR(to.Write(std::span(piece).first(count * size)));
    left -= count;
  }
  return absl::OkStatus();
}

absl::Status Meet(const Execution&) { return absl::OkStatus(); }

absl::Status Exchange(const Execution& execution) {
  TAHOMA_CHECK(execution.other != nullptr);
  const Execution other = {.program = execution.program,
                           .instruction = *execution.other,
                           .memory = *execution.other_memory,
                           .hbm = execution.hbm};
  TAHOMA_ASSIGN_OR_RETURN(const std::vector<std::byte> own, ReadBytes(execution, 1));
  TAHOMA_ASSIGN_OR_RETURN(const std::vector<std::byte> its, ReadBytes(other, 1));
  TAHOMA_RETURN_IF_ERROR(OperandCursor(execution, 0).Write(its));
  return OperandCursor(other, 0).Write(own);
}

}  // namespace tahoma::sim
