// Functions and reductions against an oracle of single elements, and costs by hand.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lib/isa/check.h"
#include "lib/isa/text.h"
#include "sim-node/emulator/core/cost.h"
#include "tests/unit/sim-node/emulator/core/execute_bench.h"

namespace tahoma::sim {
namespace {

using isa::AluOp;
using isa::Instruction;

constexpr std::array kTypes = {ElementType::kUint8,   ElementType::kInt8,    ElementType::kFp8E3m4,
                               ElementType::kFp8E4m3, ElementType::kFp8E5m2, ElementType::kUint16,
                               ElementType::kInt16,   ElementType::kFp16,    ElementType::kBf16,
                               ElementType::kUint32,  ElementType::kInt32,   ElementType::kFp32,
                               ElementType::kFp32r};

// Adds tiles one behind the other, each with elements of any type.
class Tiles {
 public:
  explicit Tiles(std::uint64_t seed) : rng_(seed) {}

  Bench& bench() { return bench_; }
  Rng& rng() { return rng_; }
  ElementType AnyType() { return kTypes.at(rng_.Below(kTypes.size())); }

  // Every other view takes the columns backwards, or dealt in two steps.
  View Add(std::int64_t rows, std::int64_t columns, ElementType type) {
    const Memory memory = rng_.Chance(1, 3) ? Memory::kPsum : Memory::kSbuf;
    const BufferId id = bench_.Add(memory, type, rows, columns, next_);
    next_ += 512;
    bench_.Fill(rng_, id);
    View view = bench_.Whole(id);
    switch (rng_.Below(4)) {
      case 0:
        view.offset += columns - 1;
        view.free = {{.stride = -1, .count = columns}};
        break;
      case 1:
        if (columns % 2 == 0) {
          view.free = {{.stride = 1, .count = 2}, {.stride = 2, .count = columns / 2}};
        }
        break;
      default:
        break;
    }
    return view;
  }
  View Add(std::int64_t rows, std::int64_t columns) { return Add(rows, columns, AnyType()); }

 private:
  Rng rng_;
  Bench bench_;
  std::int64_t next_ = 0;
};

float FunctionOf(Activation function, float x) {
  const auto wide = static_cast<double>(x);
  switch (function) {
    case Activation::kCopy:
      return x;
    case Activation::kSquare:
      return static_cast<float>(wide * wide);
    case Activation::kRelu:
      return x > 0 ? x : 0;
    case Activation::kExp:
      return static_cast<float>(std::exp(wide));
    case Activation::kTanh:
      return static_cast<float>(std::tanh(wide));
    default:
      return std::abs(x);
  }
}
constexpr std::array kFunctions = {Activation::kCopy, Activation::kSquare, Activation::kRelu,
                                   Activation::kExp,  Activation::kTanh,   Activation::kAbs};

struct Sums {
  std::optional<View> reduce_res, scale, bias;
};

// Writes to the oracle's memory what an activation writes.
void ActivateOneByOne(Bench& bench, const Instruction& one, const View& dst, const View& data,
                      const Sums& sums) {
  const auto number = [&](const std::optional<View>& view, float option) {
    const std::vector<float> same(static_cast<std::size_t>(dst.rows.count), option);
    return view ? bench.ExpectedFp32(*view) : same;
  };
  const std::vector<float> values = bench.ExpectedFp32(data);
  const std::vector<float> scales = number(sums.scale, one.value);
  const std::vector<float> biases = number(sums.bias, one.value1);
  std::vector<float> results;
  for (std::size_t at = 0; at < scales.size(); ++at) {
    float sum = 0;
    const std::size_t width = values.size() / scales.size();
    for (std::size_t i = 0; i < width; ++i) {
      volatile float x = values[at * width + i] * scales[at];  // no fused multiply-add
      if (biases[at] != 0) x = x + biases[at];
      results.push_back(FunctionOf(one.function, x));
      sum += results.back();
    }
    if (sums.reduce_res) {
      bench.RememberFp32(*sums.reduce_res, static_cast<std::int64_t>(at), sum);
    }
  }
  for (std::size_t at = 0; at < results.size(); ++at) {
    bench.RememberFp32(dst, static_cast<std::int64_t>(at), results[at]);
  }
}

TEST(ActivationTest, FunctionsOfAllTypesWithScaleBiasAndSumsAreAsTheOracles) {
  for (std::uint64_t i = 0; i < 300; ++i) {
    Tiles tiles(i);
    Rng& rng = tiles.rng();
    const View dst = tiles.Add(4, 6), data = tiles.Add(4, 6);
    Sums sums;
    Instruction one = {.function = kFunctions.at(rng.Below(kFunctions.size())),
                       .value = static_cast<float>(rng.Below(17)) / 8 - 1,
                       .value1 = static_cast<float>(rng.Below(9)) - 4};
    const bool reduces = rng.Chance(1, 2);
    one.opcode = reduces && rng.Chance(1, 2) ? Opcode::kActivationReduce : Opcode::kActivation;
    one.operands = {dst};
    const auto add = [&](std::optional<View>& view, unsigned bit, bool there, ElementType type) {
      if (there) {
        view = tiles.Add(4, 1, type);
        one.operands.push_back(*view);
      } else {
        one.left_out |= static_cast<std::uint8_t>(1U << bit);
      }
    };
    add(sums.reduce_res, 1, reduces, tiles.AnyType());
    one.operands.push_back(data);
    add(sums.scale, 3, rng.Chance(1, 2), ElementType::kFp32);
    add(sums.bias, 4, rng.Chance(1, 2), tiles.AnyType());
    ActivateOneByOne(tiles.bench(), one, dst, data, sums);
    const absl::Status status = tiles.bench().Run(one);
    ASSERT_TRUE(status.ok()) << status;
    ASSERT_EQ(tiles.bench().Difference(), "") << "program " << i;
  }
}

TEST(ActivationTest, ACopyWithoutBiasKeepsTheSignOfZero) {
  Bench bench;
  const View tile = bench.Whole(bench.Add(Memory::kSbuf, ElementType::kFp32, 1, 1, 0));
  const float zero = -0.0F;
  bench.Put(tile, 0, std::as_bytes(std::span(&zero, 1)));
  ASSERT_TRUE(bench
                  .Run({.opcode = Opcode::kActivation,
                        .operands = {tile, tile},
                        .left_out = 0b11010,
                        .value = 1})
                  .ok());
  EXPECT_EQ(bench.Difference(), "");
}

TEST(ActivationTest, OfResultsThatHaveOnePlaceTheLastStays) {
  Bench bench;
  const auto add = [&](std::int64_t columns, std::int64_t address) {
    return bench.Whole(bench.Add(Memory::kSbuf, ElementType::kFp32, 2, columns, address));
  };
  const View data = add(5, 0), place = add(1, 512), sums = add(1, 1024);
  for (std::int64_t at = 0; at < 10; ++at) {
    const auto value = static_cast<float>(at);
    bench.Put(data, at, std::as_bytes(std::span(&value, 1)));
  }
  View scratch = place;
  scratch.free = {{.stride = 0, .count = 5}};
  bench.RememberFp32(place, 0, 4 * 4);
  bench.RememberFp32(place, 1, 9 * 9);
  bench.RememberFp32(sums, 0, 0 + 1 + 4 + 9 + 16);
  bench.RememberFp32(sums, 1, 25 + 36 + 49 + 64 + 81);
  ASSERT_TRUE(bench
                  .Run({.opcode = Opcode::kActivationReduce,
                        .operands = {scratch, sums, data},
                        .left_out = 0b11000,
                        .function = Activation::kSquare,
                        .value = 1})
                  .ok());
  EXPECT_EQ(bench.Difference(), "");
}

TEST(ActivationTest, AReciprocalIsOneDividedByEachElement) {
  for (std::uint64_t i = 0; i < 50; ++i) {
    Tiles tiles(i);
    const View dst = tiles.Add(5, 7), data = tiles.Add(5, 7);
    const std::vector<float> values = tiles.bench().ExpectedFp32(data);
    for (std::size_t at = 0; at < values.size(); ++at) {
      tiles.bench().RememberFp32(dst, static_cast<std::int64_t>(at), 1 / values[at]);
    }
    ASSERT_TRUE(tiles.bench().Run(Opcode::kReciprocal, {dst, data}).ok());
    ASSERT_EQ(tiles.bench().Difference(), "") << "program " << i;
  }
}

float Combined(AluOp op, float a, float b) {
  switch (op) {
    case AluOp::kAdd:
      return a + b;
    case AluOp::kSubtract:
      return a - b;
    case AluOp::kMultiply:
      return a * b;
    case AluOp::kMaximum:
      return a < b ? b : a;
    case AluOp::kMinimum:
      return b < a ? b : a;
    case AluOp::kLogicalAnd:
      return a != 0 && b != 0 ? 1 : 0;
    case AluOp::kLogicalOr:
      return a != 0 || b != 0 ? 1 : 0;
    default:
      return (a != 0) != (b != 0) ? 1 : 0;
  }
}
constexpr std::array kReductions = {AluOp::kAdd,       AluOp::kSubtract,  AluOp::kMultiply,
                                    AluOp::kMaximum,   AluOp::kMinimum,   AluOp::kLogicalAnd,
                                    AluOp::kLogicalOr, AluOp::kLogicalXor};

// The element itself, or whether it is true.
float Alone(AluOp op, float value) {
  return op == AluOp::kLogicalAnd   ? Combined(op, 1, value)
         : op == AluOp::kLogicalOr  ? Combined(op, 0, value)
         : op == AluOp::kLogicalXor ? Combined(op, 0, value)
                                    : value;
}

TEST(ActivationTest, ReductionsOfFreeElementsAreAsTheOracles) {
  for (std::uint64_t i = 0; i < 300; ++i) {
    Tiles tiles(i);
    Rng& rng = tiles.rng();
    const auto results = static_cast<std::int64_t>(1 + rng.Below(4));
    const auto each = static_cast<std::int64_t>(1 + rng.Below(6));
    const View dst = tiles.Add(3, results), data = tiles.Add(3, results * each);
    const Instruction one = {.opcode = Opcode::kTensorReduce,
                             .operands = {dst, data},
                             .negate = rng.Chance(1, 3),
                             .op = kReductions.at(rng.Below(kReductions.size()))};
    const std::vector<float> values = tiles.bench().ExpectedFp32(data);
    for (std::int64_t at = 0; at < 3 * results; ++at) {
      const auto first = static_cast<std::size_t>(at * each);
      float result = Alone(one.op, values[first]);
      for (std::size_t k = first + 1; k < first + static_cast<std::size_t>(each); ++k) {
        result = Combined(one.op, result, values[k]);
      }
      tiles.bench().RememberFp32(dst, at, one.negate ? -result : result);
    }
    ASSERT_TRUE(tiles.bench().Run(one).ok());
    ASSERT_EQ(tiles.bench().Difference(), "") << "program " << i;
  }
}

TEST(ActivationTest, ReductionsOfPartitionsAreAsTheOracles) {
  for (std::uint64_t i = 0; i < 100; ++i) {
    Tiles tiles(i);
    const auto rows = 1 + tiles.rng().Below(9);
    const AluOp op = tiles.rng().Chance(1, 2) ? AluOp::kAdd : AluOp::kMaximum;
    const View dst = tiles.Add(1, 8), data = tiles.Add(static_cast<std::int64_t>(rows), 8);
    const std::vector<float> values = tiles.bench().ExpectedFp32(data);
    for (std::size_t at = 0; at < 8; ++at) {
      float result = values[at];
      for (std::size_t row = 1; row < rows; ++row) {
        result = Combined(op, result, values[row * 8 + at]);
      }
      tiles.bench().RememberFp32(dst, static_cast<std::int64_t>(at), result);
    }
    ASSERT_TRUE(
        tiles.bench()
            .Run({.opcode = Opcode::kTensorPartitionReduce, .operands = {dst, data}, .op = op})
            .ok());
    ASSERT_EQ(tiles.bench().Difference(), "") << "program " << i;
  }
}

// The numbers of a partition of a view with so many columns.
std::vector<double> WideRow(const std::vector<float>& values, std::size_t row,
                            std::size_t columns) {
  const auto first = values.begin() + static_cast<std::ptrdiff_t>(row * columns);
  return {first, first + static_cast<std::ptrdiff_t>(columns)};
}

// Two passes over what the statistics are of, in long double.
std::array<float, 3> Statistics(const std::vector<double>& values) {
  if (values.empty()) return {0, 0, 0};
  long double sum = 0, deviations = 0;
  for (const double value : values) sum += value;
  const long double mean = sum / static_cast<long double>(values.size());
  for (const double value : values) deviations += (value - mean) * (value - mean);
  return {static_cast<float>(values.size()), static_cast<float>(mean),
          static_cast<float>(deviations)};
}

TEST(ActivationTest, StatisticsOfEvenAndOddElementsAreAsTheOracles) {
  for (std::uint64_t i = 0; i < 100; ++i) {
    Tiles tiles(i);
    const auto columns = 1 + tiles.rng().Below(9);
    const View dst = tiles.Add(3, 6, ElementType::kFp32);
    const View data = tiles.Add(3, static_cast<std::int64_t>(columns), ElementType::kInt8);
    const std::vector<float> values = tiles.bench().ExpectedFp32(data);
    for (std::size_t row = 0; row < 3; ++row) {
      std::array<std::vector<double>, 2> halves;
      const std::vector<double> all = WideRow(values, row, columns);
      for (std::size_t at = 0; at < all.size(); ++at) halves.at(at % 2).push_back(all[at]);
      for (std::size_t half = 0; half < 2; ++half) {
        for (std::size_t at = 0; at < 3; ++at) {
          tiles.bench().RememberFp32(dst, static_cast<std::int64_t>(row * 6 + half * 3 + at),
                                     Statistics(halves.at(half)).at(at));
        }
      }
    }
    ASSERT_TRUE(tiles.bench().Run(Opcode::kBnStats, {dst, data}).ok());
    ASSERT_EQ(tiles.bench().Difference(), "") << "program " << i;
  }
}

TEST(ActivationTest, StatisticsOfPartsAggregateToThoseOfAll) {
  for (std::uint64_t i = 0; i < 100; ++i) {
    Tiles tiles(i);
    const View data = tiles.Add(2, 12, ElementType::kInt8);
    const View parts = tiles.Add(2, 18, ElementType::kFp32);
    View dst =
        tiles.bench().Whole(tiles.bench().Add(Memory::kSbuf, ElementType::kFp32, 2, 2, 8192));
    const std::vector<float> values = tiles.bench().ExpectedFp32(data);
    std::int64_t begin = 0;
    std::size_t part = 0;
    for (const std::int64_t count : {1, 7, 4}) {  // of the columns in the data's own order
      View from = tiles.bench().Whole(data.buffer);
      from.offset = begin;
      from.free = {{.stride = 1, .count = count}};
      View to = tiles.bench().Whole(parts.buffer);
      to.offset = static_cast<std::int64_t>(6 * part++);
      to.free = {{.stride = 1, .count = 6}};
      begin += count;
      ASSERT_TRUE(tiles.bench().Run(Opcode::kBnStats, {to, from}).ok());
    }
    ASSERT_TRUE(tiles.bench().Run(Opcode::kBnAggr, {dst, tiles.bench().Whole(parts.buffer)}).ok());
    for (std::size_t row = 0; row < 2; ++row) {
      const std::array<float, 3> all = Statistics(WideRow(values, row, 12));
      dst.partition = static_cast<int>(row);
      dst.rows.count = 1;
      const std::vector<float> found = tiles.bench().FoundFp32(dst);
      EXPECT_NEAR(found.at(0), all[1], 1e-4);
      EXPECT_NEAR(found.at(1), all[2] / 12, 1e-5 * all[2] + 1e-6);
    }
  }
}

// All ones, or the number, of a type of integers.
void RememberIndex(Bench& bench, const View& view, std::int64_t number, std::int64_t index) {
  std::vector<std::byte> element(Size(bench.program().Of(view).type));
  for (std::size_t byte = 0; byte < element.size(); ++byte) {
    element[byte] = static_cast<std::byte>(static_cast<std::uint64_t>(index) >> (8 * byte));
  }
  bench.Remember(view, number, element);
}

TEST(ActivationTest, TheEightLargestTheirPlacesAndReplacementsAreAsTheOracles) {
  for (std::uint64_t i = 0; i < 200; ++i) {
    Tiles tiles(i);
    Bench& bench = tiles.bench();
    const bool few = tiles.rng().Chance(1, 2);  // of few values, so that some are equal
    const ElementType type = few ? ElementType::kFp8E3m4 : ElementType::kBf16;
    const auto columns = 8 + tiles.rng().Below(40);
    const View data = tiles.Add(2, static_cast<std::int64_t>(columns), type);
    const View values = tiles.Add(2, 8, type);
    const ElementType index = few ? ElementType::kUint16 : ElementType::kUint32;
    const View found = tiles.Add(2, 8, index), replaced = tiles.Add(2, 8, index);
    for (std::size_t row = 0; row < 2; ++row) {
      const std::vector<double> all = WideRow(bench.ExpectedFp32(data), row, columns);
      std::vector<double> sorted = all;
      std::ranges::stable_sort(sorted, std::greater());
      std::set<std::size_t> forward, backward;
      for (std::size_t at = 0; at < 8; ++at) {
        const auto number = [row](std::size_t column) {
          return static_cast<std::int64_t>(row * 8 + column);
        };
        bench.RememberFp32(values, number(at), static_cast<float>(sorted[at]));
        const auto take = [&](std::set<std::size_t>& taken, double value) {
          std::size_t place = 0;
          while (all[place] != value || taken.contains(place)) ++place;
          taken.insert(place);
          return static_cast<std::int64_t>(place);
        };
        RememberIndex(bench, found, number(at), take(forward, sorted[at]));
        RememberIndex(bench, replaced, number(7 - at), take(backward, sorted[7 - at]));
      }
      for (const std::size_t place : backward) {
        bench.RememberFp32(data, static_cast<std::int64_t>(row * columns + place), -1);
      }
    }
    ASSERT_TRUE(bench.Run(Opcode::kMax8, {values, data}).ok());
    ASSERT_TRUE(bench.Run(Opcode::kFindIndex8, {found, data, values}).ok());
    ASSERT_TRUE(bench
                    .Run({.opcode = Opcode::kMatchReplace8,
                          .operands = {data, replaced, data, values},
                          .value = -1})
                    .ok());
    ASSERT_EQ(bench.Difference(), "") << "program " << i;
  }
}

TEST(ActivationTest, AValueThatIsNotThereHasAllOnesAsItsPlace) {
  Bench bench;
  const auto add = [&](ElementType type, std::int64_t address, std::vector<float> values) {
    const View view = bench.Whole(
        bench.Add(Memory::kSbuf, type, 1, static_cast<std::int64_t>(values.size()), address));
    for (std::size_t at = 0; at < values.size(); ++at) {
      bench.Put(view, static_cast<std::int64_t>(at), std::as_bytes(std::span(&values[at], 1)));
    }
    return view;
  };
  // AWS's example of equal values, and a value that the data lack.
  const View data = add(ElementType::kFp32, 0, {1, 2, 3, 4, 8, 8, 8, 8, 8, 8, 8});
  const View values = add(ElementType::kFp32, 512, {3, 8, 8, 8, 8, 8, NAN, 5});
  const View found = bench.Whole(bench.Add(Memory::kSbuf, ElementType::kUint16, 1, 8, 1024));
  const View replaced = bench.Whole(bench.Add(Memory::kSbuf, ElementType::kUint32, 1, 8, 2048));
  ASSERT_TRUE(bench.Run(Opcode::kFindIndex8, {found, data, values}).ok());
  ASSERT_TRUE(bench
                  .Run({.opcode = Opcode::kMatchReplace8,
                        .operands = {data, replaced, data, values},
                        .value = -INFINITY})
                  .ok());
  constexpr std::array kFound = {2, 4, 5, 6, 7, 8, -1, -1};
  constexpr std::array kReplaced = {2, 8, 7, 6, 5, 4, -1, -1};
  for (std::size_t at = 0; at < 8; ++at) {
    RememberIndex(bench, found, static_cast<std::int64_t>(at), kFound.at(at));
    RememberIndex(bench, replaced, static_cast<std::int64_t>(at), kReplaced.at(at));
  }
  for (const std::int64_t place : {2, 4, 5, 6, 7, 8}) bench.RememberFp32(data, place, -INFINITY);
  EXPECT_EQ(bench.Difference(), "");
}

TEST(ActivationTest, ANanIsBelowTheEightLargest) {
  Bench bench;
  const View data = bench.Whole(bench.Add(Memory::kSbuf, ElementType::kFp32, 1, 9, 0));
  const View largest = bench.Whole(bench.Add(Memory::kSbuf, ElementType::kFp32, 1, 8, 512));
  for (std::int64_t at = 0; at < 9; ++at) {
    const float value = at % 3 == 0 ? NAN : static_cast<float>(at);
    bench.Put(data, at, std::as_bytes(std::span(&value, 1)));
  }
  constexpr std::array kLargest = {8, 7, 5, 4, 2, 1};
  for (std::size_t at = 0; at < kLargest.size(); ++at) {
    bench.RememberFp32(largest, static_cast<std::int64_t>(at), static_cast<float>(kLargest[at]));
  }
  ASSERT_TRUE(bench.Run(Opcode::kMax8, {largest, data}).ok());
  EXPECT_EQ(bench.Difference(), "");
}

// Cycles of the instruction's engine, at so many GHz, without the overhead of each.
double CyclesOf(const std::string& line, double clock) {
  const std::string text =
      "sbuf s fp32 [128, 512]\nsbuf t fp32 [128, 512]\nsbuf h bf16 [128, 512]\n"
      "sbuf g bf16 [128, 512]\nsbuf i uint32 [128, 8]\npsum p fp32 [128, 512]\n" +
      line + "\n";
  const auto program = isa::ParseText(text, "test");
  EXPECT_TRUE(program.ok()) << program.status();
  EXPECT_TRUE(isa::CheckProgram(*program).ok()) << isa::CheckProgram(*program);
  const Cost cost = CostOf(*program, program->instructions.back(), hw::kTrainium2Core);
  EXPECT_EQ(cost.busy, cost.ready);
  return Nanoseconds(cost.busy) * clock - hw::kTrainium2Core.elements_overhead.value;
}

TEST(ActivationTest, AFunctionTakesACycleAnElementAndItsSumsAnInstructionMore) {
  EXPECT_NEAR(CyclesOf("activation s <- p op=exp", 1.2), 512, 0.01);
  EXPECT_NEAR(CyclesOf("activation h <- g op=gelu scale=2", 1.2), 512, 0.01);
  EXPECT_NEAR(CyclesOf("activation s[:, 0:8] <- p[:, 0:8]", 1.2), 64, 0.01);
  EXPECT_NEAR(CyclesOf("activation s <- p op=exp reduce_res=t[:, 0]", 1.2), 512 + 64, 0.01);
  EXPECT_NEAR(CyclesOf("activation_reduce s t[:, 0] <- p op=exp", 1.2), 512 + 64, 0.01);
}

TEST(ActivationTest, ReductionsTakeACycleForAnElementOfTheirInput) {
  EXPECT_NEAR(CyclesOf("tensor_reduce t[:, 0] <- s", 0.96), 512, 0.01);
  EXPECT_NEAR(CyclesOf("tensor_reduce h[:, 0:2] <- g op=maximum", 0.96), 256, 0.01);
  EXPECT_NEAR(CyclesOf("tensor_reduce h[:, 0:2] <- g op=multiply", 0.96), 512, 0.01);
  EXPECT_NEAR(CyclesOf("tensor_reduce t[:, 0:2] <- g op=maximum", 0.96), 512, 0.01);
  EXPECT_NEAR(CyclesOf("tensor_partition_reduce t[0:1] <- s", 1.2), 512 + 150, 0.01);
  EXPECT_NEAR(CyclesOf("reciprocal s <- t", 0.96), 8 * 512, 0.01);
  EXPECT_NEAR(CyclesOf("bn_stats t[:, 0:6] <- s", 0.96), 512, 0.01);
  EXPECT_NEAR(CyclesOf("bn_aggr t[:, 0:2] <- s[:, 0:300]", 0.96), 1300, 0.01);
  EXPECT_NEAR(CyclesOf("max8 t[:, 0:8] <- s", 0.96), 512, 0.01);
  EXPECT_NEAR(CyclesOf("nc_find_index8 i <- s t[:, 0:8]", 0.96), 512, 0.01);
  EXPECT_NEAR(CyclesOf("nc_match_replace8 s <- s t[:, 0:8] dst_idx=i", 0.96), 512, 0.01);
  EXPECT_NEAR(CyclesOf("reciprocal s[:, 0:2] <- t[:, 0:2]", 0.96), 64, 0.01);
}

}  // namespace
}  // namespace tahoma::sim
