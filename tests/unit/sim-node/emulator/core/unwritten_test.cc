// Unwritten bytes of SBUF and PSUM: copies move them, and other instructions refuse them. The
// oracle is a map of the written bytes, moved element by element.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "lib/base/rng.h"
#include "lib/base/status.h"
#include "lib/numeric/element.h"
#include "tests/unit/sim-node/emulator/core/execute_bench.h"

namespace tahoma::sim {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kRows = 8;
constexpr std::int64_t kColumns = 40;
constexpr ElementType kTypes[] = {ElementType::kUint8, ElementType::kBf16, ElementType::kFp32};

// Two tiles of a type in which some bytes are written, beside the oracle.
class Tiles {
 public:
  Tiles(Rng& rng, ElementType type)
      : size_(Size(type)),
        tiles_{bench_.Add(Memory::kSbuf, type, kRows, kColumns, 0),
               bench_.Add(rng.Chance(1, 2) ? Memory::kSbuf : Memory::kPsum, type, kRows, kColumns,
                          1024)} {
    for (const BufferId tile : tiles_) {
      const View whole = bench_.Whole(tile);
      for (std::int64_t number = 0; number < CountOf(whole); ++number) {
        for (std::size_t byte = 0; byte < size_; ++byte) {
          if (rng.Chance(1, 4)) continue;
          const Place place = At(whole, number, byte);
          const auto value = static_cast<std::byte>(rng.Next());
          const auto& [memory, partition, offset] = place;
          bench_.memory().Write(memory, partition, offset, {&value, 1});
          written_[place] = value;
        }
      }
    }
  }

  // Rows and columns somewhere in one of the tiles, the columns forwards, backwards or apart.
  View Any(Rng& rng, std::int64_t rows, std::int64_t columns) const {
    View view = bench_.Whole(tiles_[rng.Below(2)]);
    view.partition = static_cast<int>(rng.Below(static_cast<std::uint64_t>(kRows - rows + 1)));
    view.rows.count = rows;
    const auto stride = static_cast<std::int64_t>(1 + rng.Below(3));
    const std::int64_t length = (columns - 1) * stride;
    view.offset =
        static_cast<std::int64_t>(rng.Below(static_cast<std::uint64_t>(kColumns - length)));
    view.free = {{.stride = stride, .count = columns}};
    if (rng.Chance(1, 2)) {
      view.offset += length;
      view.free = {{.stride = -stride, .count = columns}};
    }
    return view;
  }

  // Element `number` of `to` becomes element source(number) of `from`.
  void Move(const View& to, const View& from,
            const std::function<std::int64_t(std::int64_t)>& source) {
    std::vector<std::optional<std::byte>> moved;
    for (std::int64_t number = 0; number < CountOf(to); ++number) {
      for (std::size_t byte = 0; byte < size_; ++byte) {
        const auto found = written_.find(At(from, source(number), byte));
        moved.push_back(found == written_.end() ? std::nullopt : std::optional(found->second));
      }
    }
    auto next = moved.begin();
    for (std::int64_t number = 0; number < CountOf(to); ++number) {
      for (std::size_t byte = 0; byte < size_; ++byte, ++next) {
        written_.erase(At(to, number, byte));
        if (*next) written_[At(to, number, byte)] = **next;
      }
    }
  }

  // Expects the bytes of both tiles to be written as in the map, and no more.
  void ExpectAsTheOracle() {
    for (const BufferId tile : tiles_) {
      const View whole = bench_.Whole(tile);
      for (std::int64_t number = 0; number < CountOf(whole); ++number) {
        for (std::size_t byte = 0; byte < size_; ++byte) {
          const auto& [memory, partition, offset] = At(whole, number, byte);
          std::byte found{};
          const bool there = bench_.memory().Read(memory, partition, offset, {&found, 1}).ok();
          const auto expected = written_.find({memory, partition, offset});
          ASSERT_EQ(there, expected != written_.end()) << partition << " " << offset;
          if (!there) continue;
          ASSERT_EQ(found, expected->second) << partition << " " << offset;
        }
      }
    }
  }

  Bench& bench() { return bench_; }

 private:
  Place At(const View& view, std::int64_t number, std::size_t byte) const {
    auto [memory, partition, offset] = PlaceOf(bench_.program(), view, number);
    return {memory, partition, offset + static_cast<std::int64_t>(byte)};
  }

  const std::size_t size_;
  Bench bench_;
  const std::vector<BufferId> tiles_;
  std::map<Place, std::byte> written_;
};

TEST(UnwrittenTest, CopiesAndTranspositionsMoveUnwrittenBytesAsTheOracle) {
  Rng rng(61);
  for (int i = 0; i < 60; ++i) {
    Tiles tiles(rng, kTypes[rng.Below(std::size(kTypes))]);
    for (int move = 0; move < 10; ++move) {
      const auto rows = static_cast<std::int64_t>(1 + rng.Below(kRows));
      const auto columns = static_cast<std::int64_t>(1 + rng.Below(kRows));
      const bool turned = rng.Chance(1, 2);
      const View to = turned ? tiles.Any(rng, columns, rows) : tiles.Any(rng, rows, columns);
      const View from = tiles.Any(rng, rows, columns);
      tiles.Move(to, from, [&](std::int64_t number) {
        return turned ? number % rows * columns + number / rows : number;
      });
      const Opcode plain = rng.Chance(1, 2) ? Opcode::kTensorCopy : Opcode::kDmaCopy;
      const absl::Status status =
          tiles.bench().Run(turned ? Opcode::kTranspose : plain, {to, from});
      ASSERT_TRUE(status.ok()) << status;
    }
    tiles.ExpectAsTheOracle();
  }
}

// A tile of four elements a partition, whose element 2 of partition 1 is unwritten.
class Gap {
 public:
  explicit Gap(ElementType type) : tile_(bench_.Add(Memory::kSbuf, type, 4, 4, 0)) {
    Rng rng(62);
    bench_.Fill(rng, tile_);
    bench_.memory().Forget(Memory::kSbuf, 1, static_cast<std::int64_t>(2 * Size(type)), Size(type));
  }

  View tile() const { return bench_.Whole(tile_); }
  View Another(Memory memory, ElementType type, std::int64_t address = 1024) {
    return bench_.Whole(bench_.Add(memory, type, 4, 4, address));
  }
  Bench& bench() { return bench_; }
  std::string Answer(const isa::Instruction& instruction) {
    return std::string(Message(bench_.Run(instruction)));
  }

 private:
  Bench bench_;
  BufferId tile_;
};

TEST(UnwrittenTest, ATranspositionByMatmulMovesUnwrittenBytes) {
  Gap gap(ElementType::kBf16);
  const View moving = gap.Another(Memory::kSbuf, ElementType::kBf16);
  const View out = gap.Another(Memory::kPsum, ElementType::kBf16, 0);
  for (std::int64_t at = 0; at < CountOf(moving); ++at) {
    std::vector<std::byte> element(2);
    StoreInteger(ElementType::kBf16, at % 5 == 0 ? 1 : 0, element.data());
    gap.bench().Put(moving, at, element);
  }
  EXPECT_EQ(
      gap.Answer(
          {.opcode = Opcode::kMatmul, .operands = {out, gap.tile(), moving}, .is_transpose = true}),
      "");
  std::vector<std::byte> bytes(8);
  EXPECT_THAT(Message(gap.bench().memory().Read(Memory::kPsum, 2, 0, bytes)),
              HasSubstr("psum partition 2 byte 2 is read"));
  for (const int partition : {0, 1, 3}) {
    EXPECT_TRUE(gap.bench().memory().Read(Memory::kPsum, partition, 0, bytes).ok());
  }
}

TEST(UnwrittenTest, ArithmeticConversionsAndStoresEndTheRun) {
  Gap gap(ElementType::kFp32);
  const View other = gap.Another(Memory::kSbuf, ElementType::kFp32);
  const View shorter = gap.Another(Memory::kSbuf, ElementType::kBf16, 2048);
  const View stored = gap.Another(Memory::kHbm, ElementType::kFp32, 0);
  const std::string error = "sbuf partition 1 byte 8 is read, and nothing has written it";
  EXPECT_THAT(
      gap.Answer({.opcode = Opcode::kTensorTensor, .operands = {other, gap.tile(), gap.tile()}}),
      HasSubstr("tensor_tensor: data1: " + error));
  EXPECT_THAT(gap.Answer({.opcode = Opcode::kTensorCopy, .operands = {shorter, gap.tile()}}),
              HasSubstr("tensor_copy: src: " + error));
  EXPECT_THAT(gap.Answer({.opcode = Opcode::kDmaCopy, .operands = {stored, gap.tile()}, .line = 5}),
              HasSubstr("line 5: dma_copy: src: " + error));
  EXPECT_EQ(gap.Answer({.opcode = Opcode::kTensorCopy, .operands = {other, gap.tile()}}), "");
  EXPECT_THAT(gap.Answer({.opcode = Opcode::kDmaCopy, .operands = {stored, other}, .line = 6}),
              HasSubstr("line 6: dma_copy: src: sbuf partition 1 byte 1032 is read"));
}

}  // namespace
}  // namespace tahoma::sim
