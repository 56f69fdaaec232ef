// Instructions on random views are checked against an oracle that moves one element after the other
// between maps from byte to value, and computes each index from the number of the element.

#include "sim-node/emulator/core/execute.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "lib/base/rng.h"
#include "lib/base/status.h"
#include "lib/numeric/convert.h"
#include "tests/unit/sim-node/emulator/core/execute_bench.h"

namespace tahoma::sim {
namespace {

// Copies by the oracle: all elements are read before the first is written.
void CopyOneByOne(Bench& bench, const View& to, const View& from) {
  const bool same = bench.program().Of(to).type == bench.program().Of(from).type;
  std::vector<std::vector<std::byte>> elements;
  for (std::int64_t number = 0; number < CountOf(from); ++number) {
    elements.push_back(bench.Expected(from, number));
  }
  const std::vector<float> values = bench.ExpectedFp32(from);
  for (std::int64_t number = 0; number < CountOf(to); ++number) {
    const auto at = static_cast<std::size_t>(number);
    if (same) {
      bench.Remember(to, number, elements[at]);
    } else {
      bench.RememberFp32(to, number, values[at]);
    }
  }
}

constexpr std::int64_t kRows = 8;
constexpr std::int64_t kColumns = 300;

// A view with such counts, the first of them of rows, somewhere in a buffer of kRows x kColumns
// elements. Strides are of either sign or zero; in HBM those of rows, too.
View RandomView(Rng& rng, const Program& program, BufferId id,
                const std::vector<std::int64_t>& counts) {
  const bool hbm = program.Of(id).memory == Memory::kHbm;
  View view = {.buffer = id, .rows = {.stride = 1, .count = counts.front()}};
  std::int64_t least = 0;
  std::int64_t most = 0;
  const auto stride_of = [&](std::int64_t count, std::uint64_t bound) {
    const auto stride =
        static_cast<std::int64_t>(rng.Below(2 * bound + 1)) - static_cast<std::int64_t>(bound);
    (stride < 0 ? least : most) += stride * (count - 1);
    return stride;
  };
  std::int64_t dense = 1;  // half of the views lie in one piece
  const bool contiguous = rng.Chance(1, 2);
  for (std::size_t at = counts.size() - 1; at > 0; --at) {
    isa::Step step = {.stride = dense, .count = counts[at]};
    if (contiguous) {
      most += dense * (step.count - 1);
      dense *= step.count;
    } else {
      step.stride = stride_of(step.count, 7);
    }
    view.free.insert(view.free.begin(), step);
  }
  if (hbm) view.rows.stride = stride_of(view.rows.count, 50);
  const std::int64_t elements = hbm ? kRows * kColumns : kColumns;
  view.offset =
      static_cast<std::int64_t>(rng.Below(static_cast<std::uint64_t>(elements - (most - least)))) -
      least;
  if (!hbm)
    view.partition =
        static_cast<int>(rng.Below(static_cast<std::uint64_t>(kRows - view.rows.count + 1)));
  return view;
}

// Up to five counts in an order of their own.
std::vector<std::int64_t> Shuffled(Rng& rng, std::vector<std::int64_t> counts) {
  for (std::size_t at = counts.size() - 1; at > 0; --at)
    std::swap(counts[at], counts[rng.Below(at + 1)]);
  return counts;
}

constexpr ElementType kTypes[] = {
    ElementType::kUint8,   ElementType::kInt8,   ElementType::kFp8E3m4, ElementType::kFp8E4m3,
    ElementType::kFp8E5m2, ElementType::kUint16, ElementType::kInt16,   ElementType::kFp16,
    ElementType::kBf16,    ElementType::kUint32, ElementType::kInt32,   ElementType::kFp32,
    ElementType::kFp32r};

// Copies between random views of two buffers, or of one.
void ExpectRandomCopies(Opcode opcode, const std::vector<Memory>& memories, std::uint64_t seed) {
  Rng rng(seed);
  for (int i = 0; i < 40; ++i) {
    Bench bench;
    const auto any = [&](const auto& list) { return list[rng.Below(std::size(list))]; };
    std::vector<BufferId> buffers;
    for (int at = 0; at < 2; ++at) {
      const Memory memory = any(memories);
      const std::int64_t address = memory == Memory::kPsum ? 4096 * at : at * 200'000;
      buffers.push_back(bench.Add(memory, any(kTypes), kRows, kColumns, address));
      bench.Fill(rng, buffers.back(), /*any=*/true);
    }
    for (int copy = 0; copy < 10; ++copy) {
      std::vector<std::int64_t> counts;
      for (std::uint64_t left = 2 + rng.Below(4); left > 0; --left) {
        counts.push_back(1 + static_cast<std::int64_t>(rng.Below(4)));
      }
      const View to = RandomView(rng, bench.program(), any(buffers), Shuffled(rng, counts));
      const View from = RandomView(rng, bench.program(), any(buffers), Shuffled(rng, counts));
      CopyOneByOne(bench, to, from);
      const absl::Status status = bench.Run(opcode, {to, from});
      ASSERT_TRUE(status.ok()) << status;
    }
    ASSERT_EQ(bench.Difference(), "") << "seed " << seed << " program " << i;
  }
}

TEST(ExecuteTest, DmaCopiesRandomViewsAsTheOracle) {
  ExpectRandomCopies(Opcode::kDmaCopy, {Memory::kHbm, Memory::kSbuf}, 21);
}

TEST(ExecuteTest, TensorCopiesOfRandomViewsAreAsTheOracles) {
  ExpectRandomCopies(Opcode::kTensorCopy, {Memory::kSbuf, Memory::kPsum}, 22);
}

// A view of all rows and columns, but with the columns reversed or dealt in two steps.
View Rearranged(Rng& rng, View whole) {
  const std::int64_t columns = whole.FreeCount();
  if (rng.Chance(1, 2)) {
    whole.offset += columns - 1;
    whole.free = {{.stride = -1, .count = columns}};
  } else if (columns % 2 == 0) {
    whole.free = {{.stride = 1, .count = 2}, {.stride = 2, .count = columns / 2}};
  }
  return whole;
}

float Combined(isa::AluOp op, float a, float b) {
  const std::map<isa::AluOp, float> all = {{isa::AluOp::kAdd, a + b},
                                           {isa::AluOp::kSubtract, a - b},
                                           {isa::AluOp::kMultiply, a * b},
                                           {isa::AluOp::kMaximum, a < b ? b : a},
                                           {isa::AluOp::kMinimum, b < a ? b : a}};
  return all.at(op);
}

TEST(ExecuteTest, SumsAndFillsOfAllTypesAreAsTheOracles) {
  Rng rng(28);
  for (int i = 0; i < 200; ++i) {
    Bench bench;
    const auto add = [&](std::int64_t address) {
      return bench.Add(Memory::kSbuf, kTypes[rng.Below(std::size(kTypes))], 4, 6, address);
    };
    const BufferId buffers[] = {add(0), add(512), add(1024)};
    for (const BufferId id : buffers) bench.Fill(rng, id);
    const View out = Rearranged(rng, bench.Whole(buffers[0]));
    const View left = Rearranged(rng, bench.Whole(buffers[1]));
    const View right = Rearranged(rng, bench.Whole(buffers[2]));
    const auto op = static_cast<isa::AluOp>(rng.Below(5));  // alu_test.cc has all
    const std::vector<float> a = bench.ExpectedFp32(left), b = bench.ExpectedFp32(right);
    for (std::size_t at = 0; at < a.size(); ++at) {
      bench.RememberFp32(out, static_cast<std::int64_t>(at), Combined(op, a[at], b[at]));
    }
    ASSERT_TRUE(
        bench.Run({.opcode = Opcode::kTensorTensor, .operands = {out, left, right}, .op = op})
            .ok());
    ASSERT_EQ(bench.Difference(), "") << "program " << i;
    const float value = static_cast<float>(rng.Below(2000)) / 8 - 125;
    for (std::size_t at = 0; at < a.size(); ++at) {
      bench.RememberFp32(left, static_cast<std::int64_t>(at), value);
    }
    ASSERT_TRUE(bench.Run({.opcode = Opcode::kMemset, .operands = {left}, .value = value}).ok());
    ASSERT_EQ(bench.Difference(), "") << "program " << i;
  }
}

TEST(ExecuteTest, TwoCoresExchangeTiles) {
  Program program;
  std::vector<isa::Instruction> meeting;
  for (int core = 0; core < 2; ++core) {
    const BufferId tile = program.Add({.name = fmt::format("t{}", core),
                                       .memory = Memory::kSbuf,
                                       .type = ElementType::kInt32,
                                       .shape = {2, 4},
                                       .address = 64 * core,
                                       .core = core});
    meeting.push_back({.opcode = Opcode::kSendRecv,
                       .engine = isa::Engine::kSync,
                       .operands = {program.Whole(tile), program.Whole(tile)},
                       .core = core});
  }
  program.instructions = meeting;
  std::vector<CoreMemory> memories(2);
  FlatHbm hbm(0);
  for (int core = 0; core < 2; ++core) {
    for (int partition = 0; partition < 2; ++partition) {
      const std::vector<std::byte> bytes(16, static_cast<std::byte>(10 * core + partition));
      memories[static_cast<std::size_t>(core)].Write(Memory::kSbuf, partition, 64 * core, bytes);
    }
  }
  ASSERT_TRUE(
      Execute(program, program.instructions[0], &program.instructions[1], memories, hbm).ok());
  for (int core = 0; core < 2; ++core) {
    std::vector<std::byte> bytes(16);
    ASSERT_TRUE(
        memories[static_cast<std::size_t>(core)].Read(Memory::kSbuf, 1, 64 * core, bytes).ok());
    EXPECT_EQ(bytes, std::vector<std::byte>(16, static_cast<std::byte>(10 * (1 - core) + 1)));
  }
}

struct MatmulViews {
  View out;
  View stationary;
  View moving;
};

void MultiplyOneByOne(Bench& bench, const MatmulViews& views, bool accumulate) {
  const auto k = static_cast<std::size_t>(views.moving.rows.count);
  const auto m = static_cast<std::size_t>(views.stationary.FreeCount());
  const auto n = static_cast<std::size_t>(views.moving.FreeCount());
  const std::vector<float> stationary = bench.ExpectedFp32(views.stationary);
  const std::vector<float> moving = bench.ExpectedFp32(views.moving);
  std::vector<float> out(m * n);
  if (accumulate) out = bench.ExpectedFp32(views.out);
  for (std::size_t row = 0; row < m; ++row) {
    for (std::size_t column = 0; column < n; ++column) {
      volatile float sum = 0;
      for (std::size_t i = 0; i < k; ++i) {
        const volatile float product = stationary[i * m + row] * moving[i * n + column];
        sum = sum + product;
      }
      const std::size_t at = row * n + column;
      bench.RememberFp32(views.out, static_cast<std::int64_t>(at), out[at] + sum);
    }
  }
}

TEST(ExecuteTest, MatmulsOfAllTypesAreAsTheOracles) {
  Rng rng(23);
  const std::vector<ElementType> short_types = {ElementType::kBf16, ElementType::kFp16,
                                                ElementType::kFp8E3m4, ElementType::kFp8E4m3,
                                                ElementType::kFp8E5m2};
  for (int i = 0; i < 60; ++i) {
    Bench bench;
    const bool wide = i % 3 == 0;
    const auto type = [&] {
      if (wide) return rng.Chance(1, 2) ? ElementType::kFp32 : ElementType::kFp32r;
      return short_types[rng.Below(short_types.size())];
    };
    const auto k = static_cast<std::int64_t>(1 + rng.Below(20));
    const auto m = static_cast<std::int64_t>(1 + rng.Below(20));
    const auto n = static_cast<std::int64_t>(1 + rng.Below(40));
    const BufferId out = bench.Add(Memory::kPsum, ElementType::kFp32, m, n, 2048);
    const BufferId stationary = bench.Add(Memory::kSbuf, type(), k, m, 64);
    const BufferId moving = bench.Add(Memory::kSbuf, type(), k, n, 4096);
    bench.Fill(rng, stationary);
    bench.Fill(rng, moving);
    const MatmulViews views = {.out = Rearranged(rng, bench.Whole(out)),
                               .stationary = Rearranged(rng, bench.Whole(stationary)),
                               .moving = Rearranged(rng, bench.Whole(moving))};
    for (const bool accumulate : {false, true, true}) {
      MultiplyOneByOne(bench, views, accumulate);
      const absl::Status status =
          bench.Run(Opcode::kMatmul, {views.out, views.stationary, views.moving}, accumulate);
      ASSERT_TRUE(status.ok()) << status;
    }
    ASSERT_EQ(bench.Difference(), "") << "program " << i;
  }
}

TEST(ExecuteTest, AProductGoesFromHbmToHbm) {
  Rng rng(24);
  Bench bench;
  const auto add = [&](Memory memory, ElementType type, std::int64_t rows, std::int64_t columns,
                       std::int64_t address) {
    return bench.Whole(bench.Add(memory, type, rows, columns, address));
  };
  const View a = add(Memory::kHbm, ElementType::kBf16, 128, 32, 0);
  const View b = add(Memory::kHbm, ElementType::kBf16, 128, 48, 16384);
  const View c = add(Memory::kHbm, ElementType::kBf16, 32, 48, 65536);
  const View left = add(Memory::kSbuf, ElementType::kBf16, 128, 32, 0);
  const View right = add(Memory::kSbuf, ElementType::kBf16, 128, 48, 128);
  const View sums = add(Memory::kPsum, ElementType::kFp32, 32, 48, 0);
  const View result = add(Memory::kSbuf, ElementType::kFp32, 32, 48, 1024);
  for (const View& input : {a, b}) {  // small integers: each sum is exact
    for (std::int64_t number = 0; number < CountOf(input); ++number) {
      std::vector<std::byte> element(2);
      StoreInteger(ElementType::kBf16, static_cast<std::int64_t>(rng.Below(9)) - 4, element.data());
      bench.Put(input, number, element);
    }
  }
  ASSERT_TRUE(bench.Run(Opcode::kDmaCopy, {left, a}).ok());
  EXPECT_EQ(bench.hbm().calls, 1);  // partitions of equal length, one piece of HBM
  ASSERT_TRUE(bench.Run(Opcode::kDmaCopy, {right, b}).ok());
  ASSERT_TRUE(bench.Run(Opcode::kMatmul, {sums, left, right}).ok());
  ASSERT_TRUE(bench.Run(Opcode::kTensorCopy, {result, sums}).ok());
  ASSERT_TRUE(bench.Run(Opcode::kDmaCopy, {c, result}).ok());
  const std::vector<float> left_values = bench.ExpectedFp32(a);
  const std::vector<float> right_values = bench.ExpectedFp32(b);
  for (std::size_t row = 0; row < 32; ++row) {
    for (std::size_t column = 0; column < 48; ++column) {
      float sum = 0;
      for (std::size_t i = 0; i < 128; ++i) {
        sum += left_values[i * 32 + row] * right_values[i * 48 + column];
      }
      bench.RememberFp32(c, static_cast<std::int64_t>(row * 48 + column), sum);
    }
  }
  EXPECT_EQ(bench.Difference(), "");
}

TEST(ExecuteTest, ARowOfHbmThatStandsApartIsACallOfItsOwn) {
  Bench bench;
  Rng rng(25);
  const BufferId a = bench.Add(Memory::kHbm, ElementType::kFp32, 16, 8, 0);
  const BufferId tile = bench.Add(Memory::kSbuf, ElementType::kFp32, 16, 4, 0);
  bench.Fill(rng, a);
  View left_half = bench.Whole(a);
  left_half.free = {{.stride = 1, .count = 4}};
  ASSERT_TRUE(bench.Run(Opcode::kDmaCopy, {bench.Whole(tile), left_half}).ok());
  EXPECT_EQ(bench.hbm().calls, 16);
}

TEST(ExecuteTest, ACopyOfMoreThanAPieceIsWhole) {
  constexpr auto kElements = static_cast<std::int64_t>(kCopyElements) + 1000;
  Bench bench(3 * kElements);
  const View from = bench.Whole(bench.Add(Memory::kHbm, ElementType::kUint8, 1, kElements, 0));
  const View to =
      bench.Whole(bench.Add(Memory::kHbm, ElementType::kInt16, kElements, 1, kElements));
  Rng rng(26);
  std::vector<std::byte> bytes(kElements);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(rng.Next());
  ASSERT_TRUE(bench.hbm().Write(0, bytes).ok());
  ASSERT_TRUE(bench.Run(Opcode::kDmaCopy, {to, from}).ok());
  std::vector<std::byte> found(2 * bytes.size());
  ASSERT_TRUE(bench.hbm().Read(kElements, found).ok());
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    ASSERT_EQ(found[2 * at], bytes[at]) << at;
    ASSERT_EQ(found[2 * at + 1], std::byte{0}) << at;
  }
}

TEST(ExecuteTest, AFailureNamesLineInstructionOperandAndPlace) {
  Bench bench;
  Rng rng(27);
  const View out = bench.Whole(bench.Add(Memory::kPsum, ElementType::kFp32, 8, 8, 0));
  const View stationary = bench.Whole(bench.Add(Memory::kSbuf, ElementType::kBf16, 4, 8, 512));
  const BufferId moving_buffer = bench.Add(Memory::kSbuf, ElementType::kBf16, 4, 8, 1024);
  const View moving = bench.Whole(moving_buffer);
  bench.Fill(rng, moving_buffer);
  EXPECT_EQ(Message(bench.Run(Opcode::kMatmul, {out, stationary, moving}, false, 7)),
            "line 7: nc_matmul: stationary: sbuf partition 0 byte 512 is read, and nothing has "
            "written it");
  EXPECT_EQ(Message(bench.Run(Opcode::kMatmul, {out, moving, moving}, /*accumulate=*/true, 0)),
            "instruction 1: nc_matmul: dst: psum partition 0 byte 0 is read, and nothing has "
            "written it");
  const View far = bench.Whole(bench.Add(Memory::kHbm, ElementType::kBf16, 4, 8, 1 << 20));
  const absl::Status refused = bench.Run(Opcode::kDmaCopy, {far, moving}, false, 9);
  EXPECT_EQ(Message(refused), "line 9: dma_copy: dst: no byte 1048640");
  EXPECT_EQ(refused.code(), absl::StatusCode::kOutOfRange);
}

}  // namespace
}  // namespace tahoma::sim
