// Movements on random views, types and options against oracles that compute each element's place
// from its number, and the cost of each by hand.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "lib/base/rng.h"
#include "lib/base/status.h"
#include "lib/isa/check.h"
#include "lib/isa/text.h"
#include "sim-node/emulator/core/cost.h"
#include "tests/unit/sim-node/emulator/core/execute_bench.h"

namespace tahoma::sim {
namespace {

using ::testing::HasSubstr;

constexpr ElementType kTypes[] = {
    ElementType::kUint8,   ElementType::kInt8,   ElementType::kFp8E3m4, ElementType::kFp8E4m3,
    ElementType::kFp8E5m2, ElementType::kUint16, ElementType::kInt16,   ElementType::kFp16,
    ElementType::kBf16,    ElementType::kUint32, ElementType::kInt32,   ElementType::kFp32,
    ElementType::kFp32r};

template <typename List>
auto AnyOf(Rng& rng, const List& list) {
  return list[rng.Below(std::size(list))];
}
std::int64_t Between(Rng& rng, std::int64_t low, std::int64_t high) {
  return low + static_cast<std::int64_t>(rng.Below(static_cast<std::uint64_t>(high - low + 1)));
}

// A bench with buffers whose rows leave a view room for strides.
class Moves {
 public:
  explicit Moves(std::uint64_t seed) : rng(seed) {}

  // A view of so many rows and elements in a buffer of its own, filled with random bits.
  View Add(Memory memory, ElementType type, std::int64_t rows, std::int64_t columns) {
    const std::int64_t width = 3 * columns + 4;
    std::int64_t& free = free_[static_cast<std::size_t>(memory)];
    const BufferId id = bench.Add(memory, type, rows + 3, width, free);
    free += (memory == Memory::kHbm ? (rows + 3) * width : width) * 4;
    bench.Fill(rng, id, /*any=*/true);
    View view = bench.Whole(id);
    view.rows.count = rows;
    const std::int64_t stride = AnyOf(rng, std::vector<std::int64_t>{1, 2, 3, -1, -2});
    view.free = {{.stride = stride, .count = columns}};
    if (columns % 2 == 0 && rng.Chance(1, 2)) {
      view.free = {{.stride = stride, .count = 2}, {.stride = 2 * stride, .count = columns / 2}};
    }
    const std::int64_t first = Between(rng, 0, 3);
    if (memory == Memory::kHbm) {
      view.offset = first * width;
    } else {
      view.partition = static_cast<int>(first);
    }
    view.offset += (stride < 0 ? -stride * (columns - 1) : 0) + Between(rng, 0, 3);
    return view;
  }

  Rng rng;
  Bench bench;

 private:
  std::int64_t free_[3] = {0, 0, 0};
};

// Puts an integer of a type of 16 or 32 bits.
void PutInteger(Bench& bench, const View& view, std::int64_t number, std::uint32_t value) {
  std::byte bytes[4];
  std::memcpy(bytes, &value, sizeof(value));
  bench.Put(view, number, std::span(bytes).first(Size(bench.program().Of(view).type)));
}

TEST(MoveTest, TransposesSwapRowsAndInnermostElementsAndKeepBits) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Moves moves(seed);
    const bool dma = moves.rng.Chance(1, 2);
    const std::int64_t rows = Between(moves.rng, 1, 9), inner = Between(moves.rng, 1, 9);
    const std::int64_t middle = dma ? Between(moves.rng, 1, 4) : 1;
    const Memory from = moves.rng.Chance(1, 2) ? Memory::kSbuf : dma ? Memory::kHbm : Memory::kPsum;
    const Memory to = dma || moves.rng.Chance(1, 2) ? Memory::kSbuf : Memory::kPsum;
    const ElementType type = AnyOf(moves.rng, kTypes);
    const View src = moves.Add(from, type, rows, middle * inner);
    const View dst = moves.Add(to, type, inner, middle * rows);
    for (std::int64_t number = 0; number < rows * middle * inner; ++number) {
      const std::int64_t row = number / inner / middle;
      const std::int64_t m = number / inner % middle;
      moves.bench.Remember(dst, (number % inner * middle + m) * rows + row,
                           moves.bench.Expected(src, number));
    }
    const Opcode opcode = dma ? Opcode::kDmaTranspose : Opcode::kTranspose;
    const absl::Status status = moves.bench.Run(opcode, {dst, src});
    ASSERT_TRUE(status.ok()) << status;
    ASSERT_EQ(moves.bench.Difference(), "") << "seed " << seed;
  }
}

TEST(MoveTest, AMatmulThatTransposesPassesBitsOn) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    Moves moves(seed);
    const ElementType type =
        AnyOf(moves.rng, std::vector{ElementType::kFp32, ElementType::kBf16, ElementType::kFp16});
    const std::int64_t k = Between(moves.rng, 1, 9), m = Between(moves.rng, 1, 9);
    const std::int64_t n = Between(moves.rng, 1, 9);
    const View stationary = moves.Add(Memory::kSbuf, type, k, m);
    const View moving = moves.Add(Memory::kSbuf, type, k, n);
    const View dst = moves.Add(Memory::kPsum, type, m, n);
    const auto put = [&](std::int64_t number, float value) {
      std::byte bytes[4];
      Narrow(type, {&value, 1}, bytes);
      moves.bench.Put(moving, number, std::span(bytes).first(Size(type)));
    };
    for (std::int64_t number = 0; number < k * n; ++number) put(number, 0);
    for (std::int64_t column = 0; column < n; ++column) {
      const std::int64_t chosen = Between(moves.rng, 0, k - 1);
      put(chosen * n + column, 1);
      for (std::int64_t row = 0; row < m; ++row) {
        moves.bench.Remember(dst, row * n + column,
                             moves.bench.Expected(stationary, chosen * m + row));
      }
    }
    const auto run = [&] {
      return moves.bench.Run({.opcode = Opcode::kMatmul,
                              .engine = isa::Engine::kTensor,
                              .operands = {dst, stationary, moving},
                              .is_transpose = true});
    };
    ASSERT_TRUE(run().ok());
    ASSERT_EQ(moves.bench.Difference(), "") << "seed " << seed;
    put(0, 0.5);
    EXPECT_THAT(Message(run()), HasSubstr("moving has 0.5 in partition 0 of column 0"));
    for (std::int64_t row = 0; row < k; ++row) put(row * n, 0);
    EXPECT_THAT(Message(run()), HasSubstr("moving has no 1 in column 0"));
  }
}

TEST(MoveTest, APromiseOfZerosAndOnesIsKept) {
  Moves moves(5);
  const View ones = moves.Add(Memory::kSbuf, ElementType::kFp32, 4, 2);
  const View moving = moves.Add(Memory::kSbuf, ElementType::kFp32, 4, 3);
  const View dst = moves.Add(Memory::kPsum, ElementType::kFp32, 2, 3);
  const float values[] = {0, 1, 1, 0, 1, 1, 0, 0};
  for (std::int64_t number = 0; number < 12; ++number) {
    const float small = static_cast<float>(number) / 4;
    moves.bench.Put(moving, number, std::as_bytes(std::span(&small, 1)));
    if (number < 8) moves.bench.Put(ones, number, std::as_bytes(std::span(&values[number], 1)));
  }
  for (std::int64_t number = 0; number < 6; ++number) {
    float sum = 0;
    for (std::int64_t k = 0; k < 4; ++k) {
      sum += values[2 * k + number / 3] * static_cast<float>(3 * k + number % 3) / 4;
    }
    moves.bench.RememberFp32(dst, number, sum);
  }
  isa::Instruction product = {.opcode = Opcode::kMatmul,
                              .engine = isa::Engine::kTensor,
                              .operands = {dst, ones, moving},
                              .stationary_onezero = true};
  EXPECT_TRUE(moves.bench.Run(product).ok());
  EXPECT_EQ(moves.bench.Difference(), "");
  product.moving_onezero = true;
  EXPECT_THAT(Message(moves.bench.Run(product)),
              HasSubstr("moving has 0.25; is_moving_onezero promises 0 and 1 only"));
}

TEST(MoveTest, AShuffleMovesPartitionsWithinTheir32AndKeepsThoseOf255) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    Moves moves(seed);
    const ElementType type = AnyOf(moves.rng, kTypes);
    const std::int64_t rows = Between(moves.rng, 1, 96), columns = Between(moves.rng, 1, 5);
    const std::int64_t whole = (rows + 31) / 32 * 32;
    const View src = moves.Add(Memory::kSbuf, type, whole, columns);
    const View dst = moves.Add(Memory::kSbuf, type, rows, columns);
    const bool in_place = moves.rng.Chance(1, 3);
    View to = in_place ? src : dst;
    to.rows.count = rows;
    std::vector<std::int64_t> mask;
    for (int i = 0; i < 32; ++i) {
      mask.push_back(moves.rng.Chance(1, 4) ? 255 : Between(moves.rng, 0, 31));
    }
    std::vector<std::vector<std::byte>> before;
    for (std::int64_t number = 0; number < whole * columns; ++number) {
      before.push_back(moves.bench.Expected(src, number));
    }
    for (std::int64_t number = 0; number < rows * columns; ++number) {
      const std::int64_t row = number / columns;
      const std::int64_t from = mask[static_cast<std::size_t>(row % 32)];
      if (from == 255) continue;
      const std::int64_t named = (row - row % 32 + from) * columns + number % columns;
      moves.bench.Remember(to, number, before[static_cast<std::size_t>(named)]);
    }
    const absl::Status status =
        moves.bench.Run({.opcode = Opcode::kStreamShuffle, .operands = {to, src}, .numbers = mask});
    ASSERT_TRUE(status.ok()) << status;
    ASSERT_EQ(moves.bench.Difference(), "") << "seed " << seed;
  }
}

TEST(MoveTest, AShuffleReadsOnlyThePartitionsThatItsMaskNames) {
  Bench bench;
  Rng rng(1);
  const BufferId filled = bench.Add(Memory::kSbuf, ElementType::kFp32, 1, 4, 0);
  bench.Fill(rng, filled);
  const View src = bench.Whole(bench.Add(Memory::kSbuf, ElementType::kFp32, 32, 4, 0));
  const View dst = bench.Whole(bench.Add(Memory::kSbuf, ElementType::kFp32, 32, 4, 512));
  std::vector<std::int64_t> mask(32, 0);
  EXPECT_TRUE(
      bench.Run({.opcode = Opcode::kStreamShuffle, .operands = {dst, src}, .numbers = mask}).ok());
  mask[7] = 3;
  EXPECT_EQ(
      Message(bench.Run(
          {.opcode = Opcode::kStreamShuffle, .operands = {dst, src}, .numbers = mask, .line = 4})),
      "line 4: nc_stream_shuffle: src: sbuf partition 3 byte 0 is read, and nothing has "
      "written it");
}

// A random pattern, and its value for the number of an element.
struct Pattern {
  std::vector<std::int64_t> numbers;
  std::int64_t columns = 1;

  explicit Pattern(Rng& rng) {
    const std::int64_t reach = rng.Chance(1, 2) ? 5 : 1'000'000;
    numbers = {Between(rng, -reach, reach), Between(rng, -reach, reach)};
    for (std::int64_t left = Between(rng, 1, 4); left > 0; --left) {
      const std::int64_t count = Between(rng, 1, 4);
      numbers.insert(numbers.end(), {Between(rng, -reach, reach), count});
      columns *= count;
    }
  }
  std::int64_t At(std::int64_t number) const {
    std::int64_t value = numbers[0] + number / columns * numbers[1];
    std::int64_t rest = number % columns;
    for (std::size_t at = numbers.size(); at > 2; at -= 2) {
      value += rest % numbers[at - 1] * numbers[at - 2];
      rest /= numbers[at - 1];
    }
    return value;
  }
};

TEST(MoveTest, IotaWritesThePatternToEachType) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Moves moves(seed);
    const Pattern pattern(moves.rng);
    const ElementType type = AnyOf(moves.rng, kTypes);
    const View dst = moves.Add(Memory::kSbuf, type, Between(moves.rng, 1, 5), pattern.columns);
    for (std::int64_t number = 0; number < CountOf(dst); ++number) {
      const std::int64_t value = pattern.At(number);
      if (type == ElementType::kInt32 || type == ElementType::kUint32) {
        const auto whole = static_cast<std::uint32_t>(
            type == ElementType::kUint32 ? std::max<std::int64_t>(value, 0) : value);
        moves.bench.Remember(dst, number, std::as_bytes(std::span(&whole, 1)));
      } else {
        moves.bench.RememberFp32(dst, number, static_cast<float>(value));
      }
    }
    const absl::Status status = moves.bench.Run({.opcode = Opcode::kIota,
                                                 .engine = isa::Engine::kGpSimd,
                                                 .operands = {dst},
                                                 .numbers = pattern.numbers});
    ASSERT_TRUE(status.ok()) << status;
    ASSERT_EQ(moves.bench.Difference(), "") << "seed " << seed;
  }
}

bool Compares(isa::AluOp op, std::int64_t value) {
  switch (op) {
    case isa::AluOp::kEqual:
      return value == 0;
    case isa::AluOp::kNotEqual:
      return value != 0;
    case isa::AluOp::kGreater:
      return value > 0;
    case isa::AluOp::kGreaterEqual:
      return value >= 0;
    case isa::AluOp::kLess:
      return value < 0;
    default:
      return value <= 0;
  }
}

TEST(MoveTest, AffineSelectKeepsElementsWhereThePatternCompares) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Moves moves(seed);
    const Pattern pattern(moves.rng);
    const std::int64_t rows = Between(moves.rng, 1, 5);
    const ElementType type = AnyOf(moves.rng, kTypes);
    const bool same = moves.rng.Chance(1, 2);
    const View src = moves.Add(Memory::kSbuf, type, rows, pattern.columns);
    const View dst =
        moves.Add(Memory::kSbuf, same ? type : AnyOf(moves.rng, kTypes), rows, pattern.columns);
    const auto op = AnyOf(moves.rng, std::vector{isa::AluOp::kEqual, isa::AluOp::kNotEqual,
                                                 isa::AluOp::kGreater, isa::AluOp::kGreaterEqual,
                                                 isa::AluOp::kLess, isa::AluOp::kLessEqual});
    const float value = moves.rng.Chance(1, 2) ? -3.4e38F : 2.5F;
    const std::vector<float> values = moves.bench.ExpectedFp32(src);
    const bool moved = moves.bench.program().Of(dst).type == type;
    for (std::int64_t number = 0; number < CountOf(dst); ++number) {
      if (!Compares(op, pattern.At(number))) {
        moves.bench.RememberFp32(dst, number, value);
      } else if (moved) {
        moves.bench.Remember(dst, number, moves.bench.Expected(src, number));
      } else {
        moves.bench.RememberFp32(dst, number, values[static_cast<std::size_t>(number)]);
      }
    }
    const absl::Status status = moves.bench.Run({.opcode = Opcode::kAffineSelect,
                                                 .engine = isa::Engine::kGpSimd,
                                                 .operands = {dst, src},
                                                 .op = op,
                                                 .value = value,
                                                 .numbers = pattern.numbers});
    ASSERT_TRUE(status.ok()) << status;
    ASSERT_EQ(moves.bench.Difference(), "") << "seed " << seed;
  }
}

TEST(MoveTest, ALocalGatherTakesRunsByTheIndicesOfItsSixteenPartitions) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    Moves moves(seed);
    const ElementType type = AnyOf(moves.rng, kTypes);
    const std::int64_t rows = 16 * Between(moves.rng, 1, 3),
                       run = std::int64_t{1} << Between(moves.rng, 0, 3);
    const std::int64_t columns = run + Between(moves.rng, 0, 20);
    const std::int64_t held = Between(moves.rng, 1, 3), taken = Between(moves.rng, 1, 16 * held);
    const View src = moves.Add(Memory::kSbuf, type, rows, columns);
    const View index = moves.Add(Memory::kSbuf, ElementType::kUint16, rows, held);
    const View dst = moves.Add(Memory::kSbuf, type, rows, taken * run);
    std::vector<std::int64_t> indices;  // row by row
    for (std::int64_t number = 0; number < rows * held; ++number) {
      indices.push_back(Between(moves.rng, 0, columns - run));
      PutInteger(moves.bench, index, number, static_cast<std::uint32_t>(indices.back()));
    }
    for (std::int64_t number = 0; number < CountOf(dst); ++number) {
      const std::int64_t row = number / (taken * run), element = number % (taken * run);
      const std::int64_t group = row / 16, at = element / run;
      const std::int64_t first =
          indices[static_cast<std::size_t>((16 * group + at % 16) * held + at / 16)];
      moves.bench.Remember(dst, number,
                           moves.bench.Expected(src, row * columns + first + element % run));
    }
    const absl::Status status = moves.bench.Run({.opcode = Opcode::kLocalGather,
                                                 .engine = isa::Engine::kGpSimd,
                                                 .operands = {dst, src, index},
                                                 .numbers = {run}});
    ASSERT_TRUE(status.ok()) << status;
    ASSERT_EQ(moves.bench.Difference(), "") << "seed " << seed;
  }
}

TEST(MoveTest, AGatherTakesElementsByTheIndicesOfEachPartition) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    Moves moves(seed);
    const ElementType type = AnyOf(moves.rng, kTypes);
    const std::int64_t rows = Between(moves.rng, 1, 9), columns = Between(moves.rng, 1, 30);
    const View src = moves.Add(Memory::kSbuf, type, rows, columns);
    const View index =
        moves.Add(Memory::kSbuf, ElementType::kUint32, rows, Between(moves.rng, 1, 20));
    const View dst = moves.Add(Memory::kSbuf, type, rows, index.FreeCount());
    for (std::int64_t number = 0; number < CountOf(dst); ++number) {
      const std::int64_t named = Between(moves.rng, 0, columns - 1);
      PutInteger(moves.bench, index, number, static_cast<std::uint32_t>(named));
      moves.bench.Remember(dst, number,
                           moves.bench.Expected(src, number / index.FreeCount() * columns + named));
    }
    const absl::Status status = moves.bench.Run(Opcode::kGather, {dst, src, index});
    ASSERT_TRUE(status.ok()) << status;
    ASSERT_EQ(moves.bench.Difference(), "") << "seed " << seed;
  }
}

TEST(MoveTest, AnIndexBehindTheLastElementIsRefused) {
  Moves moves(3);
  const View src = moves.Add(Memory::kSbuf, ElementType::kBf16, 16, 8);
  const View dst = moves.Add(Memory::kSbuf, ElementType::kBf16, 16, 2);
  const View index = moves.Add(Memory::kSbuf, ElementType::kUint16, 16, 1);
  const View indices = moves.Add(Memory::kSbuf, ElementType::kUint32, 16, 2);
  for (std::int64_t number = 0; number < 32; ++number) {
    if (number < 16) PutInteger(moves.bench, index, number, 6);
    PutInteger(moves.bench, indices, number, 7);
  }
  const auto local = [&] {
    return moves.bench.Run(
        {.opcode = Opcode::kLocalGather, .operands = {dst, src, index}, .numbers = {2}});
  };
  EXPECT_TRUE(local().ok());
  EXPECT_TRUE(moves.bench.Run(Opcode::kGather, {dst, src, indices}).ok());
  PutInteger(moves.bench, index, 0, 7);
  PutInteger(moves.bench, indices, 11, 8);
  EXPECT_EQ(local().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(Message(local()), HasSubstr("index has 7 in partition 0 of the operand, for elements "
                                          "to 8; src_buffer has 8 in a partition"));
  const absl::Status gather = moves.bench.Run(Opcode::kGather, {dst, src, indices});
  EXPECT_EQ(gather.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(Message(gather),
              HasSubstr("indices has 8 in partition 5 of the operand; data has 8"));
}

TEST(MoveTest, ASumByDmaAddsItsSourcesInFp32) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    Moves moves(seed);
    const std::int64_t rows = Between(moves.rng, 1, 6), columns = Between(moves.rng, 1, 8);
    const auto add = [&] {
      const Memory memory = moves.rng.Chance(1, 2) ? Memory::kHbm : Memory::kSbuf;
      const View view = moves.Add(memory, AnyOf(moves.rng, kTypes), rows, columns);
      for (std::int64_t number = 0; number < CountOf(view); ++number) {
        std::byte bytes[4];
        const float value = static_cast<float>(Between(moves.rng, -500, 500)) / 16;
        const ElementType type = moves.bench.program().Of(view).type;
        Narrow(type, {&value, 1}, bytes);
        moves.bench.Put(view, number, std::span(bytes).first(Size(type)));
      }
      return view;
    };
    isa::Instruction sum = {.opcode = Opcode::kDmaCompute, .operands = {add(), add(), add()}};
    if (moves.rng.Chance(1, 2)) sum.operands.push_back(add());
    if (moves.rng.Chance(1, 2)) sum.operands.push_back(add());
    // Operands that are left out are the last.
    sum.left_out = sum.operands.size() == 5 ? 0 : sum.operands.size() == 4 ? 0b10000 : 0b11000;
    std::vector<float> expected = moves.bench.ExpectedFp32(sum.operands[1]);
    for (std::size_t at = 2; at < sum.operands.size(); ++at) {
      const std::vector<float> values = moves.bench.ExpectedFp32(sum.operands[at]);
      for (std::size_t i = 0; i < values.size(); ++i) expected[i] += values[i];
    }
    for (std::size_t i = 0; i < expected.size(); ++i) {
      moves.bench.RememberFp32(sum.operands[0], static_cast<std::int64_t>(i), expected[i]);
    }
    const absl::Status status = moves.bench.Run(sum);
    ASSERT_TRUE(status.ok()) << status;
    ASSERT_EQ(moves.bench.Difference(), "") << "seed " << seed;
  }
}

const hw::CoreProfile& kProfile = hw::kTrainium2Core;

isa::Program Parsed(const std::string& line) {
  auto program = isa::ParseText(
      "tensor a bf16 [128, 4, 128] in\nsbuf s bf16 [128, 512]\nsbuf f fp32 [128, 512]\n"
      "sbuf i uint16 [128, 8]\nsbuf u uint32 [128, 512]\npsum p bf16 [128, 512]\n"
      "psum q fp32 [128, 512]\n" +
          line,
      "test");
  EXPECT_TRUE(program.ok()) << program.status();
  EXPECT_TRUE(isa::CheckProgram(*program).ok()) << isa::CheckProgram(*program);
  return *std::move(program);
}

// In cycles of the engine.
double BusyOf(const std::string& line) {
  const isa::Program program = Parsed(line);
  const isa::Instruction& one = program.instructions[0];
  return Nanoseconds(CostOf(program, one, kProfile).busy) /
         Nanoseconds(Cycles(1000, one.engine, kProfile)) * 1000;
}

double DmaNanoseconds(const std::string& line, std::size_t engine) {
  const isa::Program program = Parsed(line);
  return Nanoseconds(DmaWorkOf(program, program.instructions[0], kProfile).engines.at(engine));
}

TEST(MoveTest, TransposesTakeACycleForEachPartitionOfTheirData) {
  EXPECT_NEAR(BusyOf("nc_transpose p[:, 0:128] <- s[:, 0:128]"), 128, 0.01);
  EXPECT_NEAR(BusyOf("nc_transpose q[:, 0:128] <- f[:, 0:128]"), 256, 0.01);
  EXPECT_NEAR(BusyOf("nc_matmul p[:, 0:128] <- s[:, 0:128] s[:, 0:128] is_transpose"), 128, 0.01);
  EXPECT_NEAR(BusyOf("nc_matmul q[:, 0:128] <- f[:, 0:128] f[:, 0:128] is_transpose"), 256, 0.01);
  EXPECT_NEAR(BusyOf("nc_matmul q <- f[:, 0:128] f"), 4 * 512, 0.01);
  EXPECT_NEAR(BusyOf("nc_matmul q <- f[:, 0:128] f is_stationary_onezero"), 2 * 512, 0.01);
  EXPECT_NEAR(BusyOf("nc_matmul q <- f[:, 0:128] f is_moving_onezero"), 2 * 512, 0.01);
  EXPECT_NEAR(BusyOf("nc_matmul q <- s[:, 0:128] s is_moving_onezero"), 512, 0.01);
  EXPECT_NEAR(BusyOf("nc_transpose p[0:128, 0:32] <- s[0:32, 0:128]"), 64, 0.01);
  EXPECT_NEAR(BusyOf("nc_transpose p[0:16, 0:32] <- s[0:32, 0:16]"), 32, 0.01);
  EXPECT_NEAR(BusyOf("nc_transpose s[0:32, 0:32] <- s[0:32, 0:32] engine=vector"), 64 + 19, 0.01);
}

TEST(MoveTest, OtherMovementsOnChipTakeACycleForEachElement) {
  std::string mask = " shuffle_mask=0";
  for (int i = 1; i < 32; ++i) mask += ",0";
  EXPECT_NEAR(BusyOf("nc_stream_shuffle s[0:32] <- s[0:1]" + mask), 512 + 19, 0.01);
  EXPECT_NEAR(BusyOf("iota f pattern=0,0,1,512"), 150 + 512 + 19, 0.01);
  EXPECT_NEAR(BusyOf("affine_select f <- s pattern=0,0,1,512 cmp_op=less"), 150 + 512 + 19, 0.01);
  EXPECT_NEAR(BusyOf("nc_n_gather s <- s u"), 150 + 512 + 19, 0.01);
  EXPECT_NEAR(BusyOf("local_gather f[:, 0:128] <- f i"), 150 + 128 * 8 + 19, 0.01);
  EXPECT_NEAR(BusyOf("local_gather s <- s i num_elem_per_idx=4"), 150 + 512 * 2.75 / 2 + 19, 0.01);
}

TEST(MoveTest, ATransposeByDmaIsSlowerThanACopyByItsShare) {
  const double rows = 8 * 512 * 2;  // bytes of an engine
  EXPECT_NEAR(DmaNanoseconds("dma_transpose s <- a", 15), (8 * 16 + rows / 27.2) / 0.9, 0.01);
  EXPECT_NEAR(DmaNanoseconds("dma_transpose s[:, 0:128] <- s[:, 384:512]", 15),
              (8 * 16 + rows / 4 / 27.2) / 0.5, 0.01);
  // Runs of dst count, not those of src.
  EXPECT_NEAR(DmaNanoseconds("dma_transpose s[0:16, 0:128] <- a[:, 0, 0:16]", 1),
              (8 * 16 + rows / 4 / 27.2) / 0.9, 0.01);
}

TEST(MoveTest, ASumByDmaTakesACopyOfEachSource) {
  const double copy = 8 * 16 + 8 * 512 * 2 / 27.2;
  EXPECT_NEAR(DmaNanoseconds("dma_compute s <- a s", 0), 2 * copy, 0.01);
  EXPECT_NEAR(DmaNanoseconds("dma_compute s <- a s src3=a", 0), 3 * copy, 0.01);
  const isa::Program program = Parsed("dma_compute s <- a s src2=a");
  const DmaWork work = DmaWorkOf(program, program.instructions[0], kProfile);
  ASSERT_EQ(work.hbm.size(), 2U);
  EXPECT_EQ(work.hbm[0].bytes + work.hbm[1].bytes, 2U * 128 * 512 * 2);
}

}  // namespace
}  // namespace tahoma::sim
