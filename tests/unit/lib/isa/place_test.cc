// Where buffers lie: those that live at once never overlap.

#include "lib/isa/place.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lib/base/rng.h"
#include "lib/base/status.h"
#include "lib/isa/check.h"
#include "lib/isa/text.h"
#include "tests/unit/lib/isa/random_program.h"

namespace tahoma::isa {
namespace {

using ::testing::HasSubstr;

Program Parsed(std::string_view text) {
  auto program = ParseText(text, "test");
  EXPECT_TRUE(program.ok()) << program.status();
  const absl::Status status = CheckProgram(*program);
  EXPECT_TRUE(status.ok()) << status;
  return *std::move(program);
}

Program Placed(std::string_view text) {
  Program program = Parsed(text);
  const absl::Status status = PlaceBuffers(program);
  EXPECT_TRUE(status.ok()) << status;
  return program;
}

std::int64_t AddressOf(const Program& program, std::string_view name) {
  for (const Buffer& buffer : program.buffers) {
    if (buffer.name == name) return buffer.address.value_or(-1);
  }
  return -2;
}

// Whether an instruction lies between the first and the last that name both, slowly.
bool LiveAtOnce(const Program& program, std::uint32_t a, std::uint32_t b) {
  const auto span_of = [&](std::uint32_t id) {
    std::vector<std::size_t> named;
    for (std::size_t at = 0; at < program.instructions.size(); ++at) {
      for (const View& view : program.instructions[at].operands) {
        if (view.buffer == BufferId(id)) named.push_back(at);
      }
    }
    return named;
  };
  const auto one = span_of(a);
  const auto other = span_of(b);
  if (one.empty() || other.empty()) return false;
  for (std::size_t at = one.front(); at <= one.back(); ++at) {
    if (at >= other.front() && at <= other.back()) return true;
  }
  return false;
}

void ExpectApart(const Program& before, const Program& placed) {
  for (std::uint32_t a = 0; a < placed.buffers.size(); ++a) {
    for (std::uint32_t b = 0; b < a; ++b) {
      const Buffer& x = placed.buffers[a];
      const Buffer& y = placed.buffers[b];
      if (x.memory != y.memory || x.core != y.core) continue;
      if (before.buffers[a].address && before.buffers[b].address) continue;
      if (x.memory != Memory::kHbm && !LiveAtOnce(placed, a, b)) continue;
      EXPECT_TRUE(*x.address + BytesOf(x) <= *y.address || *y.address + BytesOf(y) <= *x.address)
          << x.name << " and " << y.name << " of\n"
          << FormatText(placed);
    }
  }
}

TEST(PlaceTest, BuffersThatLiveAtOnceAreApart) {
  Rng rng(30);
  for (int run = 0; run < 150; ++run) {
    const Program before = RandomProgram(rng, {.buffers = 14, .two_cores = rng.Chance(1, 2)});
    Program placed = before;
    ASSERT_TRUE(PlaceBuffers(placed).ok());
    ExpectApart(before, placed);
    for (std::size_t at = 0; at < placed.buffers.size(); ++at) {
      const Buffer& buffer = placed.buffers[at];
      ASSERT_TRUE(buffer.address);
      if (before.buffers[at].address) {
        EXPECT_EQ(buffer.address, before.buffers[at].address);
      } else if (buffer.memory != Memory::kPsum) {
        EXPECT_EQ(*buffer.address % kPlaceAlignment, 0);
      } else {
        EXPECT_EQ(*buffer.address / kPsumBankBytes,
                  (*buffer.address + BytesOf(buffer) - 1) / kPsumBankBytes);
      }
    }
    EXPECT_TRUE(CheckProgram(placed).ok());
  }
}

// Buffers of a third of SBUF: three live at most at once.
constexpr std::string_view kTurns = R"(
tensor a fp32 [128, 16384] in
sbuf   x fp32 [128, 16384]
sbuf   y fp32 [128, 16384]
sbuf   z fp32 [128, 16384]
sbuf   w fp32 [128, 16384]
sbuf   v fp32 [128, 16384]
dma_copy x <- a
dma_copy y <- a
dma_copy x <- y
dma_copy z <- a
dma_copy w <- a
dma_copy v <- a
)";

TEST(PlaceTest, TheNextBufferGetsThePlaceThatHasBeenFreeLongest) {
  const Program program = Placed(kTurns);
  EXPECT_EQ(AddressOf(program, "x"), 0);
  EXPECT_EQ(AddressOf(program, "y"), 65536);
  EXPECT_EQ(AddressOf(program, "z"), 131072);
  EXPECT_EQ(AddressOf(program, "w"), 0);
  EXPECT_EQ(AddressOf(program, "v"), 65536);
}

TEST(PlaceTest, WhereTurnsLeaveNoRoomTheLowestPlacesDo) {
  const Program program = Placed(R"(
tensor a fp32 [128, 49152] in
sbuf   x fp32 [128, 16384]
sbuf   s fp32 [128, 16]
sbuf   t fp32 [128, 49152]
dma_copy x <- a[:, 0:16384]
dma_copy s <- a[:, 0:16]
dma_copy t <- a
dma_copy s <- t[:, 0:16]
)");
  EXPECT_EQ(AddressOf(program, "s"), 0);
  EXPECT_EQ(AddressOf(program, "t"), 64);
}

TEST(PlaceTest, ABufferMakesRoomForOneWithAnAddressThatComesLater) {
  const Program program = Placed(R"(
tensor a fp32 [128, 16] in
sbuf   x fp32 [128, 16]
sbuf   y fp32 [128, 16] @ 0
dma_copy x <- a
dma_copy y <- a
dma_copy y <- x
)");
  EXPECT_EQ(AddressOf(program, "x"), 64);
}

TEST(PlaceTest, PsumIsGivenInBanks) {
  const Program program = Placed(R"(
sbuf x fp32 [128, 513]
psum p fp32 [128, 300]
psum q fp32 [128, 300]
psum r fp32 [128, 100]
psum s fp32 [128, 513]
tensor_copy p <- x[:, 0:300]
tensor_copy q <- x[:, 0:300]
tensor_copy r <- x[:, 0:100]
tensor_copy s <- x
tensor_copy x[:, 0:300] <- p
tensor_copy x[:, 0:300] <- q
tensor_copy x[:, 0:100] <- r
)");
  EXPECT_EQ(AddressOf(program, "p"), 0);
  EXPECT_EQ(AddressOf(program, "q"), kPsumBankBytes);
  EXPECT_EQ(AddressOf(program, "r"), 1200);
  EXPECT_EQ(AddressOf(program, "s"), 2 * kPsumBankBytes);
}

TEST(PlaceTest, ABufferWithoutRoomIsToldWithItsLineAndItsNeighbours) {
  Program program = Parsed(R"(
tensor a fp32 [128, 40000] in
sbuf   x fp32 [128, 40000]
sbuf   y fp32 [128, 40000]
dma_copy x <- a
dma_copy y <- x
)");
  const absl::Status status = PlaceBuffers(program);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(
      Message(status),
      "line 6: dma_copy: sbuf has no room for 160000 bytes of a partition for y; there live x "
      "(160000 bytes)");
}

// 20,000 of each took four seconds, and time grew with the square.
TEST(PlaceTest, ManyAddressesBesideManyBuffersWithoutOneAreRefused) {
  Program program;
  for (int i = 0; i < 20'000; ++i) {
    program.Add({.name = fmt::format("f{}", i),
                 .memory = Memory::kSbuf,
                 .type = ElementType::kUint8,
                 .shape = {1, 1},
                 .address = 0});
  }
  for (int i = 0; i < 20'000; ++i) {
    const BufferId id = program.Add({.name = fmt::format("b{}", i),
                                     .memory = Memory::kSbuf,
                                     .type = ElementType::kUint8,
                                     .shape = {1, 1}});
    program.instructions.push_back(
        {.opcode = Opcode::kMemset, .engine = Engine::kVector, .operands = {program.Whole(id)}});
  }
  const absl::Status status = PlaceBuffers(program);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(Message(status), HasSubstr("expected fewer addresses in sbuf"));
}

TEST(PlaceTest, HbmEndsToo) {
  Program program = Parsed(R"(
tensor a fp32 [8192, 2097152]
tensor b fp32 [8192, 2097152]
dma_copy a <- b
)");
  const absl::Status status = PlaceBuffers(program);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(Message(status), HasSubstr("line 4: dma_copy: hbm has no room for 68719476736"));
}

}  // namespace
}  // namespace tahoma::isa
