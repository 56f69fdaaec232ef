// Functions of the Scalar engine, reductions, statistics, and the largest elements.
//
// AWS leaves open how the engines add (docs/formats/program.md): here in fp32, one element after
// the other, and for statistics exactly, rounded once.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "lib/base/status.h"
#include "lib/numeric/activation.h"
#include "lib/numeric/alu.h"
#include "lib/numeric/element.h"
#include "sim-node/emulator/core/effects.h"

namespace tahoma::sim {
namespace {

// The first element begins, so that maximum and subtract need no neutral element.
float Fold(AluOp op, std::span<const float> values) {
  if (op == AluOp::kLogicalAnd) return Reduce(op, 1, values);
  if (op == AluOp::kLogicalOr || op == AluOp::kLogicalXor) return Reduce(op, 0, values);
  return Reduce(op, values.front(), values.subspan(1));
}

// The partitions of a tile's values, one after the other.
class Partitions {
 public:
  Partitions(std::span<float> values, std::size_t count)
      : values_(values), width_(values.size() / count) {}
  std::span<float> operator[](std::size_t at) const { return values_.subspan(at * width_, width_); }

 private:
  std::span<float> values_;
  std::size_t width_;
};

// Count, mean, and variance times count of every other element.
std::array<double, 3> StatisticsOf(std::span<const float> values, std::size_t first) {
  double count = 0, sum = 0, deviations = 0;
  for (std::size_t at = first; at < values.size(); at += 2) {
    count += 1;
    sum += static_cast<double>(values[at]);
  }
  if (count == 0) return {0, 0, 0};
  const double mean = sum / count;
  for (std::size_t at = first; at < values.size(); at += 2) {
    const double deviation = static_cast<double>(values[at]) - mean;
    deviations += deviation * deviation;
  }
  return {count, mean, deviations};
}

constexpr std::size_t kEight = 8;
using Places = std::array<std::optional<std::size_t>, kEight>;

// A NaN is below all numbers: the order is strict, and a sort cannot fail.
bool IsAbove(float a, float b) { return a > b || (std::isnan(b) && !std::isnan(a)); }

// Where the data have each value, as far as they do. Equal values get one place each, the first
// place the first of them or, if `backward`, the last.
Places PlacesOf(std::span<const float> data, std::span<const float> values, bool backward) {
  Places places;
  for (std::size_t turn = 0; turn < kEight; ++turn) {
    const std::size_t at = backward ? kEight - 1 - turn : turn;
    for (std::size_t place = 0; place < data.size() && !places[at]; ++place) {
      if (data[place] != values[at] || std::ranges::find(places, place) != places.end()) continue;
      places[at] = place;
    }
  }
  return places;
}

// A value that is in no place gets all ones.
absl::Status WritePlaces(const Execution& execution, std::size_t operand,
                         std::span<const Places> partitions) {
  const ElementType type = execution.TypeOf(operand);
  std::vector<std::byte> bytes;
  for (const Places& places : partitions) {
    for (const auto& place : places) {
      std::array<std::byte, sizeof(std::uint32_t)> element;
      element.fill(std::byte{0xFF});
      if (place) StoreInteger(type, static_cast<std::int64_t>(*place), element.data());
      bytes.insert(bytes.end(), element.begin(), element.begin() + Size(type));
    }
  }
  return OperandCursor(execution, operand).Write(bytes);
}

}  // namespace

absl::Status Activate(const Execution& execution) {
  constexpr std::size_t kDst = 0;
  constexpr std::size_t kReduceRes = 1;
  constexpr std::size_t kData = 2;
  constexpr std::size_t kScale = 3;
  constexpr std::size_t kBias = 4;
  const isa::Instruction& instruction = execution.instruction;
  TAHOMA_ASSIGN_OR_RETURN(std::vector<float> values, ReadFp32(execution, kData));
  TAHOMA_ASSIGN_OR_RETURN(const std::vector<float> scales,
                          ReadColumn(execution, kScale, instruction.value));
  TAHOMA_ASSIGN_OR_RETURN(const std::vector<float> biases,
                          ReadColumn(execution, kBias, instruction.value1));
  std::vector<float> sums(scales.size());
  const Partitions partitions(values, sums.size());
  for (std::size_t at = 0; at < sums.size(); ++at) {
    const std::span<float> partition = partitions[at];
    Apply(AluOp::kMultiply, partition, scales[at], /*reversed=*/false);
    // Adding zero would make a positive zero of a negative one.
    if (biases[at] != 0) Apply(AluOp::kAdd, partition, biases[at], /*reversed=*/false);
    Evaluate(instruction.function, partition);
    sums[at] = Reduce(AluOp::kAdd, 0, partition);
  }
  TAHOMA_RETURN_IF_ERROR(WriteFp32(execution, kDst, values));
  return execution.Has(kReduceRes) ? WriteFp32(execution, kReduceRes, sums) : absl::OkStatus();
}

absl::Status TakeReciprocal(const Execution& execution) {
  TAHOMA_ASSIGN_OR_RETURN(std::vector<float> values, ReadFp32(execution, 1));
  Apply(AluOp::kReciprocal, values, 0, /*reversed=*/false);
  return WriteFp32(execution, 0, values);
}

absl::Status TensorReduce(const Execution& execution) {
  TAHOMA_ASSIGN_OR_RETURN(const std::vector<float> values, ReadFp32(execution, 1));
  std::vector<float> results(execution.ElementsOf(0));
  const std::size_t each = values.size() / results.size();
  for (std::size_t at = 0; at < results.size(); ++at) {
    results[at] = Fold(execution.instruction.op, std::span(values).subspan(at * each, each));
    if (execution.instruction.negate) results[at] = -results[at];
  }
  return WriteFp32(execution, 0, results);
}

absl::Status TensorPartitionReduce(const Execution& execution) {
  TAHOMA_ASSIGN_OR_RETURN(const std::vector<float> values, ReadFp32(execution, 1));
  const std::size_t width = execution.ElementsOf(0);
  std::vector<float> results(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(width));
  for (std::size_t at = width; at < values.size(); at += width) {
    Apply(execution.instruction.op, results, std::span(values).subspan(at, width),
          /*reversed=*/false);
  }
  return WriteFp32(execution, 0, results);
}

absl::Status BnStats(const Execution& execution) {
  TAHOMA_ASSIGN_OR_RETURN(std::vector<float> values, ReadFp32(execution, 1));
  const std::size_t count = execution.RowsOf(1);
  const Partitions partitions(values, count);
  std::vector<float> results;
  for (std::size_t at = 0; at < count; ++at) {
    for (const std::size_t first : {0U, 1U}) {
      for (const double one : StatisticsOf(partitions[at], first)) {
        results.push_back(static_cast<float>(one));
      }
    }
  }
  return WriteFp32(execution, 0, results);
}

absl::Status BnAggr(const Execution& execution) {
  TAHOMA_ASSIGN_OR_RETURN(std::vector<float> values, ReadFp32(execution, 1));
  const std::size_t count = execution.RowsOf(1);
  const Partitions partitions(values, count);
  std::vector<float> results;
  for (std::size_t at = 0; at < count; ++at) {
    const std::vector<double> wide(partitions[at].begin(), partitions[at].end());
    double elements = 0, sum = 0, deviations = 0;
    for (std::size_t i = 0; i < wide.size(); i += 3) {
      elements += wide[i];
      sum += wide[i] * wide[i + 1];
    }
    const double mean = sum / elements;
    for (std::size_t i = 0; i < wide.size(); i += 3) {
      const double deviation = wide[i + 1] - mean;
      deviations += wide[i + 2] + wide[i] * deviation * deviation;
    }
    results.push_back(static_cast<float>(mean));
    results.push_back(static_cast<float>(deviations / elements));
  }
  return WriteFp32(execution, 0, results);
}

absl::Status Max8(const Execution& execution) {
  TAHOMA_ASSIGN_OR_RETURN(std::vector<float> values, ReadFp32(execution, 1));
  const std::size_t count = execution.RowsOf(1);
  const Partitions partitions(values, count);
  std::vector<float> results;
  for (std::size_t at = 0; at < count; ++at) {
    std::vector<float> largest;  // of equal ones the first stays in front
    for (const float value : partitions[at]) {
      largest.insert(std::ranges::upper_bound(largest, value, IsAbove), value);
      if (largest.size() > kEight) largest.pop_back();
    }
    results.insert(results.end(), largest.begin(), largest.end());
  }
  return WriteFp32(execution, 0, results);
}

absl::Status FindIndex8(const Execution& execution) {
  TAHOMA_ASSIGN_OR_RETURN(std::vector<float> data, ReadFp32(execution, 1));
  TAHOMA_ASSIGN_OR_RETURN(std::vector<float> values, ReadFp32(execution, 2));
  const std::size_t count = execution.RowsOf(1);
  std::vector<Places> places;
  for (std::size_t at = 0; at < count; ++at) {
    places.push_back(PlacesOf(Partitions(data, count)[at], Partitions(values, count)[at],
                              /*backward=*/false));
  }
  return WritePlaces(execution, 0, places);
}

absl::Status MatchReplace8(const Execution& execution) {
  constexpr std::size_t kIndex = 1;
  TAHOMA_ASSIGN_OR_RETURN(std::vector<float> data, ReadFp32(execution, 2));
  TAHOMA_ASSIGN_OR_RETURN(std::vector<float> values, ReadFp32(execution, 3));
  const std::size_t count = execution.RowsOf(2);
  std::vector<Places> places;
  for (std::size_t at = 0; at < count; ++at) {
    const std::span<float> partition = Partitions(data, count)[at];
    places.push_back(PlacesOf(partition, Partitions(values, count)[at], /*backward=*/true));
    for (const auto& place : places.back()) {
      if (place) partition[*place] = execution.instruction.value;
    }
  }
  TAHOMA_RETURN_IF_ERROR(WriteFp32(execution, 0, data));
  return execution.Has(kIndex) ? WritePlaces(execution, kIndex, places) : absl::OkStatus();
}

}  // namespace tahoma::sim
