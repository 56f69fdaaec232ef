// Who waits for whom, against a slow oracle that compares all pairs of instructions byte by byte.

#include "lib/isa/assemble.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>
#include <tuple>

#include "lib/base/rng.h"
#include "lib/base/status.h"
#include "lib/isa/check.h"
#include "lib/isa/instruction.h"
#include "lib/isa/text.h"
#include "tests/unit/lib/isa/random_program.h"

namespace tahoma::isa {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Waits = std::vector<std::vector<std::uint32_t>>;

// Memory, partition, byte.
using Place = std::tuple<int, std::int64_t, std::int64_t>;

void ForEachElement(const View& view, const std::function<void(std::int64_t, std::int64_t)>& take) {
  for (std::int64_t row = 0; row < view.rows.count; ++row) {
    std::vector<std::int64_t> at(view.free.size());
    for (std::int64_t left = view.FreeCount(); left > 0; --left) {
      std::int64_t element = view.offset;
      for (std::size_t i = 0; i < at.size(); ++i) element += at[i] * view.free[i].stride;
      take(row, element);
      for (std::size_t i = at.size(); i-- > 0;) {
        if (++at[i] < view.free[i].count) break;
        at[i] = 0;
      }
    }
  }
}

std::set<Place> PlacesOf(const Program& program, const View& view) {
  std::set<Place> places;
  const Buffer& buffer = program.Of(view);
  const auto size = static_cast<std::int64_t>(Size(buffer.type));
  ForEachElement(view, [&](std::int64_t row, std::int64_t element) {
    const bool hbm = buffer.memory == Memory::kHbm;
    if (hbm) element += row * view.rows.stride;
    for (std::int64_t byte = 0; byte < size; ++byte) {
      places.emplace(static_cast<int>(buffer.memory), hbm ? 0 : view.partition + row,
                     *buffer.address + element * size + byte);
    }
  });
  return places;
}

struct Touched {
  std::set<Place> read;
  std::set<Place> written;
};

std::vector<Touched> TouchedBy(const Program& program) {
  std::vector<Touched> touched;
  for (const Instruction& instruction : program.instructions) {
    Touched& one = touched.emplace_back();
    ForEachOperand(instruction, [&](const OperandRow& row, const View& view) {
      (row.written ? one.written : one.read).merge(PlacesOf(program, view));
    });
  }
  return touched;
}

bool Meet(const std::set<Place>& a, const std::set<Place>& b) {
  return std::ranges::any_of(a, [&](const Place& place) { return b.contains(place); });
}

bool Conflict(const Touched& a, const Touched& b) {
  return Meet(a.written, b.written) || Meet(a.written, b.read) || Meet(a.read, b.written);
}

// ended[i][j]: instruction i has ended when j begins. By closure over begins (2i) and ends (2i+1).
std::vector<std::vector<bool>> EndedBefore(const Program& program, const Waits& waits) {
  const std::size_t count = program.instructions.size();
  std::vector<std::vector<bool>> before(2 * count, std::vector<bool>(2 * count));
  for (std::size_t j = 0; j < count; ++j) {
    before[2 * j][2 * j + 1] = true;
    for (const std::uint32_t i : waits[j]) before[2 * i + 1][2 * j] = true;
    for (std::size_t i = 0; i < j; ++i) {
      const Instruction& earlier = program.instructions[i];
      if (earlier.engine != program.instructions[j].engine) continue;
      if (earlier.core != program.instructions[j].core) continue;
      before[2 * i + (IsAsynchronous(earlier.opcode) ? 0 : 1)][2 * j] = true;
    }
  }
  for (std::size_t k = 0; k < 2 * count; ++k) {
    for (std::size_t i = 0; i < 2 * count; ++i) {
      for (std::size_t j = 0; before[i][k] && j < 2 * count; ++j) {
        if (before[k][j]) before[i][j] = true;
      }
    }
  }
  std::vector<std::vector<bool>> ended(count, std::vector<bool>(count));
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t j = 0; j < count; ++j) ended[i][j] = before[2 * i + 1][2 * j];
  }
  return ended;
}

bool BuffersMeet(const Program& program, const Instruction& a, const Instruction& b) {
  const auto meet = [&](const View& one, const View& other) {
    const Buffer& x = program.Of(one);
    const Buffer& y = program.Of(other);
    return x.memory == y.memory && *x.address < *y.address + BytesOf(y) &&
           *y.address < *x.address + BytesOf(x);
  };
  return std::ranges::any_of(a.operands, [&](const View& one) {
    return std::ranges::any_of(b.operands, [&](const View& other) { return meet(one, other); });
  });
}

TEST(AssembleTest, ConflictsAreOrderedAndNoWaitIsInVain) {
  Rng rng(20);
  int conflicts = 0;
  int of_collectives = 0;
  for (int run = 0; run < 200; ++run) {
    const auto assembled = Assemble(RandomProgram(rng, {.two_cores = run % 2 == 0}));
    ASSERT_TRUE(assembled.ok()) << assembled.status();
    const Program& program = assembled->program;
    const std::vector<Touched> touched = TouchedBy(program);
    const auto ended = EndedBefore(program, assembled->waits);
    for (std::size_t j = 0; j < touched.size(); ++j) {
      for (std::size_t i = 0; i < j; ++i) {
        if (program.instructions[i].core != program.instructions[j].core) continue;
        if (!Conflict(touched[i], touched[j])) continue;
        ++conflicts;
        if (IsCollective(program.instructions[i].opcode)) ++of_collectives;
        EXPECT_TRUE(ended[i][j]) << i << " and " << j << " of\n" << FormatText(program);
      }
      EXPECT_TRUE(std::ranges::is_sorted(assembled->waits[j]));
      for (const std::uint32_t i : assembled->waits[j]) {
        ASSERT_LT(i, j);
        ASSERT_EQ(program.instructions[i].core, program.instructions[j].core);
        EXPECT_TRUE(BuffersMeet(program, program.instructions[i], program.instructions[j]));
        Waits without = assembled->waits;
        std::erase(without[j], i);
        EXPECT_FALSE(EndedBefore(program, without)[i][j])
            << j << " waits for " << i << " anyway, in\n"
            << FormatText(program);
      }
    }
  }
  EXPECT_GT(conflicts, 2'000);
  EXPECT_GT(of_collectives, 50);
}

Assembled Assembly(std::string_view text) {
  auto program = ParseText(text, "test");
  EXPECT_TRUE(program.ok()) << program.status();
  const absl::Status status = CheckProgram(*program);
  EXPECT_TRUE(status.ok()) << status;
  auto assembled = Assemble(*std::move(program));
  EXPECT_TRUE(assembled.ok()) << assembled.status();
  return *std::move(assembled);
}

constexpr std::string_view kMatmulText = R"(
tensor a  bf16 [128, 128] in
tensor b  bf16 [128, 512] in
tensor c  fp32 [128, 512] out
sbuf   at bf16 [128, 128]
sbuf   bt bf16 [128, 512]
psum   p  fp32 [128, 512]
sbuf   ct fp32 [128, 512]
dma_copy    at <- a
dma_copy    bt <- b
nc_matmul   p  <- at bt
tensor_copy ct <- p
dma_copy    c  <- ct
)";

TEST(AssembleTest, AMatmulWaitsForBothLoadsAndTheStoreForTheCopy) {
  const Assembled assembled = Assembly(kMatmulText);
  EXPECT_THAT(assembled.waits,
              ElementsAre(IsEmpty(), IsEmpty(), ElementsAre(0, 1), ElementsAre(2), ElementsAre(3)));
  EXPECT_EQ(assembled.hbm_bytes, 128 * 128 * 2 + 128 * 512 * 2 + 128 * 512 * 4);
}

TEST(AssembleTest, TilesBesideEachOtherInAMatrixInHbmAreStoredSideBySide) {
  const Assembled assembled = Assembly(R"(
tensor c fp32 [128, 1024] out
sbuf   x fp32 [128, 512]
dma_copy x <- c[:, 0:512]
dma_copy c[:, 0:512]    <- x
dma_copy c[:, 512:1024] <- x
)");
  EXPECT_THAT(assembled.waits, ElementsAre(IsEmpty(), ElementsAre(0), IsEmpty()));
}

TEST(AssembleTest, AnEnginesOwnOrderNeedsNoWaitButItsDmaDoes) {
  const Assembled assembled = Assembly(R"(
tensor a fp32 [128, 8] in
tensor c fp32 [128, 8] out
sbuf   x fp32 [128, 8]
sbuf   y fp32 [128, 8]
dma_copy    x <- a engine=scalar
tensor_copy y <- x engine=scalar
tensor_copy x <- y engine=scalar
dma_copy    c <- x engine=scalar
)");
  EXPECT_THAT(assembled.waits, ElementsAre(IsEmpty(), ElementsAre(0), IsEmpty(), IsEmpty()));
}

TEST(AssembleTest, OneWaitStandsForThoseThatItsInstructionWaitedFor) {
  const Assembled assembled = Assembly(R"(
tensor a fp32 [128, 8] in
tensor c fp32 [128, 8] out
sbuf   x fp32 [128, 8]
sbuf   y fp32 [128, 8]
dma_copy    x <- a
tensor_copy y <- x
tensor_copy x <- y engine=gpsimd
dma_copy    c <- x
)");
  EXPECT_THAT(assembled.waits,
              ElementsAre(IsEmpty(), ElementsAre(0), ElementsAre(1), ElementsAre(2)));
}

TEST(AssembleTest, BuffersAtOneAddressAreOnePlace) {
  const Assembled assembled = Assembly(R"(
tensor a fp32 [16] in
tensor b fp32 [16] @ 4096
tensor c fp32 [8] out @ 4128
dma_copy b <- a
dma_copy c <- a[8:16]
)");
  EXPECT_THAT(assembled.waits, ElementsAre(IsEmpty(), ElementsAre(0)));
}

TEST(AssembleTest, AMillionInstructionsOnTilesAreNotTooMany) {
  Program program = {.name = "large"};
  const BufferId a = program.Add(
      {.name = "a", .use = Use::kInput, .type = ElementType::kBf16, .shape = {4096, 4096}});
  const BufferId c = program.Add({.name = "c", .use = Use::kOutput, .shape = {4096, 4096}});
  std::vector<BufferId> tiles;
  for (int at = 0; at < 24; ++at) {
    tiles.push_back(program.Add({.name = fmt::format("t{}", at),
                                 .memory = at < 16 ? Memory::kSbuf : Memory::kPsum,
                                 .type = at < 8 ? ElementType::kBf16 : ElementType::kFp32,
                                 .shape = {128, at < 8 ? 128 : 512}}));
  }
  const std::size_t count = 1'000'000;
  for (std::uint32_t step = 0; program.instructions.size() < count; ++step) {
    const std::int64_t row = step / 8 % 32 * 128;
    const std::int64_t column = step % 8 * 512;
    const View tile = {.offset = row * 4096 + column,
                       .rows = {.stride = 4096, .count = 128},
                       .free = {{.stride = 1, .count = 512}}};
    View from = tile;
    from.buffer = a;
    from.free[0].count = 128;
    View to = tile;
    to.buffer = c;
    const View in = program.Whole(tiles[step % 8]);
    const View out = program.Whole(tiles[8 + step % 8]);
    const View sum = program.Whole(tiles[16 + step % 8]);
    View part = sum;
    part.free[0].count = 128;
    program.instructions.push_back({Opcode::kDmaCopy, Engine::kSync, {in, from}});
    program.instructions.push_back({Opcode::kMatmul, Engine::kTensor, {part, in, in}});
    program.instructions.push_back({Opcode::kTensorCopy, Engine::kVector, {out, sum}});
    program.instructions.push_back({Opcode::kDmaCopy, Engine::kSync, {to, out}});
  }
  ASSERT_TRUE(CheckProgram(program).ok()) << CheckProgram(program);
  const auto assembled = Assemble(std::move(program));
  ASSERT_TRUE(assembled.ok()) << assembled.status();
  EXPECT_EQ(assembled->waits.size(), count);
}

TEST(AssembleTest, AProgramThatCutsItsBuffersToPiecesIsRefusedAndNotWaitedFor) {
  Program program = {.name = "pieces"};
  const BufferId a = program.Add({.name = "a", .shape = {20'000, 1}});
  const BufferId b = program.Add({.name = "b", .shape = {20'000, 1}});
  for (std::int64_t row = 0; row < 20'000; ++row) {
    const View to = {.buffer = a, .offset = row, .free = {{}}};
    const View from = {.buffer = b, .offset = row, .free = {{}}};
    program.instructions.push_back({Opcode::kDmaCopy, Engine::kSync, {to, from}});
  }
  for (int whole = 0; whole < 1'200; ++whole) {
    program.instructions.push_back(
        {Opcode::kDmaCopy, Engine::kSync, {program.Whole(b), program.Whole(a)}});
  }
  ASSERT_TRUE(CheckProgram(program).ok());
  const auto assembled = Assemble(std::move(program));
  EXPECT_EQ(assembled.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(Message(assembled.status()), HasSubstr("parts of buffers were compared"));
}

}  // namespace
}  // namespace tahoma::isa
