// Results that are rounded stochastically: how often each of two neighbours comes, and that the
// seed, the instruction and the element alone decide which.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <vector>

#include "lib/base/rng.h"
#include "lib/numeric/convert.h"
#include "tests/unit/sim-node/emulator/core/execute_bench.h"

namespace tahoma::sim {
namespace {

constexpr std::int64_t kRows = 8;
constexpr std::int64_t kColumns = 256;

// A tile of fp32 whose elements are one number, and a tile of another type that instructions write.
class Tiles {
 public:
  explicit Tiles(ElementType type, float number)
      : from_(bench_.Add(Memory::kSbuf, ElementType::kFp32, kRows, kColumns, 0)),
        to_(bench_.Add(Memory::kSbuf, type, kRows, kColumns, 4096)),
        table_(bench_.Add(Memory::kHbm, type, kRows, kColumns, 0)),
        offsets_(bench_.Add(Memory::kSbuf, ElementType::kUint32, kRows, 1, 16384)) {
    std::vector<std::byte> element(sizeof(float));
    std::memcpy(element.data(), &number, sizeof number);
    for (std::int64_t at = 0; at < kRows * kColumns; ++at) bench_.Put(from(), at, element);
    for (std::int64_t row = 0; row < kRows; ++row) {
      StoreInteger(ElementType::kUint32, row, element.data());
      bench_.Put(offsets(), row, element);
    }
  }

  View from() const { return bench_.Whole(from_); }
  View to() const { return bench_.Whole(to_); }
  View table() const { return bench_.Whole(table_); }
  View offsets() const { return bench_.Whole(offsets_); }
  Bench& bench() { return bench_; }

  // Returns the numbers of dst after the instruction.
  std::vector<float> After(const isa::Instruction& instruction, std::optional<std::uint64_t> seed) {
    const absl::Status status = bench_.Run(instruction, seed);
    EXPECT_TRUE(status.ok()) << status;
    return bench_.FoundFp32(to());
  }
  std::vector<float> AfterCopy(std::optional<std::uint64_t> seed) {
    return After({.opcode = Opcode::kTensorCopy, .operands = {to(), from()}}, seed);
  }

 private:
  Bench bench_;
  BufferId from_, to_, table_, offsets_;
};

// Each way in which engines and DMA write results.
std::vector<isa::Instruction> Writers(const Tiles& tiles) {
  const View to = tiles.to();
  const View from = tiles.from();
  return {
      {.opcode = Opcode::kTensorCopy, .operands = {to, from}},
      {.opcode = Opcode::kDmaCopy, .operands = {to, from}},
      {.opcode = Opcode::kTensorTensor, .operands = {to, from, from}, .op = isa::AluOp::kMaximum},
      {.opcode = Opcode::kActivation, .operands = {to, from}, .left_out = 0b11010, .value = 1},
      {.opcode = Opcode::kDmaCompute, .operands = {to, from, from}, .left_out = 0b11000}};
}

TEST(RoundingTest, EveryWriterRoundsUpAsOftenAsTheNumberIsNear) {
  constexpr float kQuarter = 1 + 0.25F / 128;  // a quarter of a step of bf16 above 1
  Tiles tiles(ElementType::kBf16, kQuarter);
  for (const isa::Instruction& writer : Writers(tiles)) {
    const bool doubles = writer.opcode == Opcode::kDmaCompute;
    const float scale = doubles ? 2 : 1;
    const std::vector<float> found = tiles.After(writer, 7);
    const auto up = std::ranges::count(found, scale * (1 + 1.0F / 128));
    EXPECT_EQ(up + std::ranges::count(found, scale), std::ssize(found));
    const auto count = static_cast<double>(found.size());
    EXPECT_NEAR(static_cast<double>(up), count / 4, 5 * std::sqrt(count * 3 / 16))
        << static_cast<int>(writer.opcode);
    for (const float nearest : tiles.After(writer, std::nullopt)) EXPECT_EQ(nearest, scale);
  }
}

TEST(RoundingTest, SeedAndInstructionDecideAndNothingElse) {
  constexpr float kHalf = 1 + 0.5F / 128;
  Tiles one(ElementType::kBf16, kHalf);
  Tiles other(ElementType::kBf16, kHalf);
  const std::vector<float> first = one.AfterCopy(1);
  EXPECT_EQ(other.AfterCopy(1), first);  // the first instruction of another program
  EXPECT_NE(one.AfterCopy(1), first);    // the second instruction
  EXPECT_NE(Tiles(ElementType::kBf16, kHalf).AfterCopy(2), first);
}

TEST(RoundingTest, ACopyRowByRowRoundsAsTheCopyOfTheWhole) {
  constexpr float kHalf = 1 + 0.5F / 128;
  Tiles tiles(ElementType::kBf16, kHalf);
  View rows = tiles.table();
  rows.rows.stride = 0;
  ASSERT_TRUE(tiles.bench()
                  .Run({.opcode = Opcode::kDmaCopyIndirect,
                        .operands = {rows, tiles.from(), tiles.offsets()},
                        .numbers = {kColumns},
                        .scatter = true},
                       9)
                  .ok());
  const std::vector<float> scattered =
      tiles.After({.opcode = Opcode::kDmaCopy, .operands = {tiles.to(), tiles.table()}}, 9);
  EXPECT_EQ(scattered, Tiles(ElementType::kBf16, kHalf).AfterCopy(9));
}

TEST(RoundingTest, AnInstructionsSeedIsTheProgramsMixedAndItsPlace) {
  Tiles tiles(ElementType::kFp8E4m3, 0.3F);
  constexpr std::uint64_t kSeed = 42;
  for (std::uint64_t place = 0; place < 3; ++place) {
    const std::vector<float> found = tiles.AfterCopy(kSeed);
    const std::uint64_t seed = Rng(kSeed).Next() + place;
    for (std::size_t at = 0; at < found.size(); ++at) {
      const float number = 0.3F;
      std::byte element{};
      NarrowStochastic(ElementType::kFp8E4m3, {&number, 1}, seed, at, &element);
      float expected = 0;
      Widen(ElementType::kFp8E4m3, &element, {&expected, 1});
      ASSERT_EQ(found[at], expected) << place << " " << at;
    }
  }
}

TEST(RoundingTest, WholeNumbersAndNumbersOfTheProgramAreRoundedToNearest) {
  Tiles whole(ElementType::kInt16, 2.5F);
  for (const float number : whole.AfterCopy(3)) ASSERT_EQ(number, 2);
  Tiles tiles(ElementType::kBf16, 1);
  const isa::Instruction fill = {
      .opcode = Opcode::kMemset, .operands = {tiles.to()}, .value = 1 + 0.5F / 128};
  for (const float number : tiles.After(fill, 3)) ASSERT_EQ(number, 1);
}

}  // namespace
}  // namespace tahoma::sim
