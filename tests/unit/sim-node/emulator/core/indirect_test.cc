// Copies by offsets from memory and products of double rows against oracles that compute each
// element's place from its number, and their costs by hand.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
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

constexpr std::int64_t kTableRows = 24;

std::int64_t Between(Rng& rng, std::int64_t low, std::int64_t high) {
  return low + static_cast<std::int64_t>(rng.Below(static_cast<std::uint64_t>(high - low + 1)));
}

// A table in HBM, a tile and offsets in SBUF.
struct Indirect {
  explicit Indirect(std::uint64_t seed) : rng(seed) {
    columns = Between(rng, 1, 6);
    rows = Between(rng, 2, 9);
    const ElementType types[] = {ElementType::kFp32, ElementType::kBf16, ElementType::kInt8};
    type = types[rng.Below(3)];
    const bool is_signed = rng.Chance(1, 2);
    table = bench.Add(Memory::kHbm, type, kTableRows, columns, 64);
    tile = bench.Add(Memory::kSbuf, rng.Chance(1, 3) ? ElementType::kFp32 : type, rows, columns, 0);
    offsets = bench.Add(Memory::kSbuf, is_signed ? ElementType::kInt32 : ElementType::kUint32, rows,
                        1, 1024);
    bench.Fill(rng, table);
    bench.Fill(rng, tile);
  }

  void PutOffset(std::int64_t row, std::int64_t value) {
    const auto bits = static_cast<std::uint32_t>(value);
    bench.Put(bench.Whole(offsets), row, std::as_bytes(std::span(&bits, 1)));
  }

  // Rows of the table, each where its offset says.
  View Rows(std::int64_t count) {
    View view = bench.Whole(table);
    view.rows = {.stride = 0, .count = count};
    return view;
  }

  // Remembers what a copy of an element leaves.
  void Move(const View& from, std::int64_t at, const View& to, std::int64_t number) {
    const std::vector<std::byte> element = bench.Expected(from, at);
    const ElementType its = bench.program().Of(from).type;
    if (its == bench.program().Of(to).type) {
      bench.Remember(to, number, element);
    } else {
      float value = 0;
      Widen(its, element.data(), {&value, 1});
      bench.RememberFp32(to, number, value);
    }
  }

  isa::Instruction Copy(bool scatter, bool skip) {
    const View place = Rows(rows);
    const View own = bench.Whole(tile);
    return {.opcode = Opcode::kDmaCopyIndirect,
            .engine = isa::Engine::kGpSimd,
            .operands = {scatter ? place : own, scatter ? own : place, bench.Whole(offsets)},
            .numbers = {columns},
            .scatter = scatter,
            .skip = skip,
            .line = 4};
  }

  Rng rng;
  Bench bench;
  std::int64_t columns = 0, rows = 0;
  ElementType type = ElementType::kFp32;
  BufferId table{}, tile{}, offsets{};
};

TEST(IndirectTest, RowsComeFromAndGoToWhereOffsetsSay) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Indirect one(seed);
    const bool scatter = one.rng.Chance(1, 2);
    const bool skip = one.rng.Chance(1, 2);
    const View table = one.bench.Whole(one.table);
    const View tile = one.bench.Whole(one.tile);
    for (std::int64_t row = 0; row < one.rows; ++row) {
      std::int64_t from = Between(one.rng, 0, kTableRows - 1);
      if (skip && one.rng.Chance(1, 3)) from = one.rng.Chance(1, 2) ? kTableRows : -1;
      one.PutOffset(row, from);
      if (from < 0 || from >= kTableRows) continue;
      for (std::int64_t column = 0; column < one.columns; ++column) {
        const std::int64_t here = row * one.columns + column;
        const std::int64_t there = from * one.columns + column;
        if (scatter) {
          one.Move(tile, here, table, there);
        } else {
          one.Move(table, there, tile, here);
        }
      }
    }
    const absl::Status status = one.bench.Run(one.Copy(scatter, skip));
    ASSERT_TRUE(status.ok()) << status;
    ASSERT_EQ(one.bench.Difference(), "") << "seed " << seed;
  }
}

TEST(IndirectTest, ARowThatLeavesTheBufferEndsTheRun) {
  for (const std::int64_t beyond : {kTableRows, std::int64_t{-1}, std::int64_t{INT32_MIN}}) {
    for (const bool scatter : {false, true}) {
      Indirect one(7);
      for (std::int64_t row = 0; row < one.rows; ++row) one.PutOffset(row, row == 1 ? beyond : 0);
      const absl::Status status = one.bench.Run(one.Copy(scatter, false));
      EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
      EXPECT_THAT(Message(status), HasSubstr("line 4: dma_copy_indirect: offsets has "));
      EXPECT_THAT(Message(status),
                  HasSubstr(scatter ? "from where dst leaves b0" : "from where src leaves b0"));
    }
  }
}

TEST(IndirectTest, OneOffsetMovesTheWholeView) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    Indirect one(seed);
    const bool scatter = one.rng.Chance(1, 2);
    const std::int64_t first = Between(one.rng, 0, kTableRows);
    one.PutOffset(0, first);
    isa::Instruction copy = one.Copy(scatter, false);
    copy.operands[scatter ? 0 : 1].rows.stride = one.columns;
    copy.operands[2].rows.count = 1;
    copy.engine = isa::Engine::kSync;
    const bool fits = first + one.rows <= kTableRows;
    for (std::int64_t at = 0; fits && at < one.rows * one.columns; ++at) {
      const View table = one.bench.Whole(one.table);
      const View tile = one.bench.Whole(one.tile);
      if (scatter) {
        one.Move(tile, at, table, first * one.columns + at);
      } else {
        one.Move(table, first * one.columns + at, tile, at);
      }
    }
    EXPECT_EQ(one.bench.Run(copy).ok(), fits);
    copy.skip = true;
    EXPECT_TRUE(one.bench.Run(copy).ok());
    ASSERT_EQ(one.bench.Difference(), "") << "seed " << seed;
  }
}

TEST(IndirectTest, AStepIsCountedFromTheViewsOwnOffset) {
  Bench bench;
  const BufferId table = bench.Add(Memory::kHbm, ElementType::kFp32, 6, 4, 0);
  const BufferId tile = bench.Add(Memory::kSbuf, ElementType::kFp32, 1, 1, 0);
  const BufferId offset = bench.Add(Memory::kSbuf, ElementType::kUint32, 1, 1, 16);
  Rng rng(1);
  bench.Fill(rng, table);
  const std::uint32_t two = 2;
  bench.Put(bench.Whole(offset), 0, std::as_bytes(std::span(&two, 1)));
  View from = bench.Whole(table);
  from = {.buffer = table, .offset = 5, .rows = {.stride = 1, .count = 1}, .free = {{}}};
  bench.Remember(bench.Whole(tile), 0, bench.Expected(bench.Whole(table), 5 + 2 * 3));
  ASSERT_TRUE(bench
                  .Run({.opcode = Opcode::kDmaCopyIndirect,
                        .engine = isa::Engine::kSync,
                        .operands = {bench.Whole(tile), from, bench.Whole(offset)},
                        .numbers = {3}})
                  .ok());
  EXPECT_EQ(bench.Difference(), "");
}

TEST(IndirectTest, ProductsOfDoubleRowsSumBothRowsOfEachPartition) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    Rng rng(seed);
    Bench bench;
    const std::int64_t k = Between(rng, 1, 9), m = Between(rng, 1, 9), n = Between(rng, 1, 9);
    const ElementType type = rng.Chance(1, 2) ? ElementType::kFp8E4m3 : ElementType::kFp8E5m2;
    const BufferId stationary = bench.Add(Memory::kSbuf, type, k, 2 * m, 0);
    const BufferId moving = bench.Add(Memory::kSbuf, type, k, 2 * n, 64);
    const BufferId dst = bench.Add(Memory::kPsum, ElementType::kFp32, m, n, 0);
    // Whole numbers, so that no order of the sum changes the result.
    for (const BufferId id : {stationary, moving}) {
      for (std::int64_t at = 0; at < CountOf(bench.Whole(id)); ++at) {
        const auto value = static_cast<float>(Between(rng, -4, 4));
        std::byte byte{};
        Narrow(type, {&value, 1}, &byte);
        bench.Put(bench.Whole(id), at, {&byte, 1});
      }
    }
    const std::vector<float> left = bench.ExpectedFp32(bench.Whole(stationary));
    const std::vector<float> right = bench.ExpectedFp32(bench.Whole(moving));
    for (std::int64_t at = 0; at < m * n; ++at) {
      float sum = 0;
      for (std::int64_t p = 0; p < k; ++p) {
        for (std::int64_t row = 0; row < 2; ++row) {
          sum += left[static_cast<std::size_t>((p * 2 + row) * m + at / n)] *
                 right[static_cast<std::size_t>((p * 2 + row) * n + at % n)];
        }
      }
      bench.RememberFp32(bench.Whole(dst), at, sum);
    }
    ASSERT_TRUE(
        bench
            .Run({.opcode = Opcode::kMatmul,
                  .engine = isa::Engine::kTensor,
                  .operands = {bench.Whole(dst), bench.Whole(stationary), bench.Whole(moving)},
                  .double_row = true})
            .ok());
    ASSERT_EQ(bench.Difference(), "") << "seed " << seed;
  }
}

isa::Program Parsed(std::string_view lines) {
  const auto program = isa::ParseText(std::string(R"(tensor table bf16 [4096, 512]
tensor copy bf16 [128, 512]
sbuf tile bf16 [128, 512]
sbuf i int32 [128, 1]
sbuf s fp8_e4m3 [128, 256]
sbuf m fp8_e4m3 [128, 1024]
psum p fp32 [128, 512]
)") + std::string(lines),
                                      "costs");
  EXPECT_TRUE(program.ok()) << program.status();
  EXPECT_TRUE(isa::CheckProgram(*program).ok()) << isa::CheckProgram(*program);
  return *program;
}

TEST(IndirectTest, AGatherTakesAsLongAsTheSameCopyAndReadsNoMoreOfHbm) {
  const hw::CoreProfile& profile = hw::kTrainium2Core;
  for (const auto& [indirect, direct] :
       {std::pair("dma_copy_indirect tile <- table.ap(rows=128x0, free=512x1) i step=512\n",
                  "dma_copy tile <- table[0:128]\n"),
        std::pair("dma_copy_indirect table.ap(rows=128x0, free=512x1) <- copy i step=512 scatter\n",
                  "dma_copy table[0:128] <- copy\n")}) {
    const isa::Program one = Parsed(indirect);
    const isa::Program other = Parsed(direct);
    const DmaWork work = DmaWorkOf(one, one.instructions[0], profile);
    const DmaWork same = DmaWorkOf(other, other.instructions[0], profile);
    EXPECT_EQ(work.engines, same.engines) << indirect;
    EXPECT_EQ(work.hbm.front().bytes, same.hbm.front().bytes) << indirect;
  }
}

TEST(IndirectTest, DoubleRowsTakeTheTimeOfOneRow) {
  const hw::CoreProfile& profile = hw::kTrainium2Core;
  const isa::Program two = Parsed("nc_matmul p <- s m double_row\n");
  const isa::Program one = Parsed("nc_matmul p <- s[:, 0:128] m[:, 0:512]\n");
  EXPECT_EQ(CostOf(two, two.instructions[0], profile).busy,
            CostOf(one, one.instructions[0], profile).busy);
}

}  // namespace
}  // namespace tahoma::sim
