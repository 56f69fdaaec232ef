// Each limit by its message, one step inside and one outside.

#include "lib/isa/check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "lib/base/status.h"
#include "lib/isa/text.h"

namespace tahoma::isa {
namespace {

using ::testing::HasSubstr;

constexpr std::string_view kBuffers = R"(tensor a bf16 [128, 2048]
tensor i bf16 [128, 512] in
tensor f fp32 [128, 2048]
sbuf s bf16 [128, 2048]
sbuf e fp8_e4m3 [128, 70000]
sbuf t fp32 [128, 2048]
sbuf n int32 [128, 512]
psum p fp32 [128, 2048]
psum h fp16 [128, 512]
)";

absl::Status Checked(const std::string& text) {
  const auto program = ParseText(text, "test");
  EXPECT_TRUE(program.ok()) << program.status();
  return CheckProgram(*program);
}

// The answer to the buffers above and further lines, without "line 10: ".
std::string Answer(std::string_view lines) {
  const absl::Status status = Checked(std::string(kBuffers) + std::string(lines));
  if (status.ok()) return "OK";
  std::string message(Message(status));
  EXPECT_THAT(message, HasSubstr("line 1"));
  return message.substr(message.find(": ") + 2);
}

TEST(CheckTest, WhatFitsPasses) {
  for (const std::string_view line : {
           "dma_copy s <- a",
           "dma_copy a[0:2, 0:7] <- s[3:5, 0:7] engine=gpsimd\ndma_copy s.ap(rows=7x1, free=2x1) "
           "<- "
           "a[0:1, 0:14] engine=scalar",
           "dma_copy s <- f  # a cast",
           "dma_copy a.ap(rows=128x1, free=2048x128) <- a",
           "nc_matmul p[:, 0:512] <- s[:, 0:128] s[:, 0:512]",
           "nc_matmul p[:, 512:1024] <- e[:, 0:128] s[:, 0:512]",
           "nc_matmul p[0:1, 0:1] <- t[0:32, 0:1] t[0:32, 0:1]",
           "nc_matmul p[:, 0:8] <- s[:, 0:128] s[:, 0:8]\n"
           "nc_matmul p[:, 0:8] <- s[:, 0:128] s[:, 0:8] accumulate",
           "nc_matmul p[:, 0:8] <- s[:, 0:128] s.ap(rows=128x1, free=8x0)",
           "tensor_copy t <- p",
           "tensor_copy t <- s engine=gpsimd",
           "tensor_copy t.ap(offset=2047, rows=128x1, free=2048x-1) <- p engine=scalar",
           "tensor_copy t[96:128] <- p[32:64]",
           "memset n value=-3 engine=gpsimd",
           "memset p[0:32]",
           "tensor_tensor t <- s p op=maximum",
           "tensor_tensor p[:, 0:8] <- t[:, 0:8] s.ap(rows=128x1, free=8x0)",
       }) {
    EXPECT_EQ(Answer(line), "OK") << line;
  }
}

TEST(CheckTest, AViewStaysInItsBuffer) {
  EXPECT_EQ(Answer("dma_copy s <- a.ap(offset=1, rows=128x2048, free=2048x1)"),
            "dma_copy: src takes elements 1 to 262144; a has 0 to 262143");
  EXPECT_EQ(Answer("dma_copy s <- a.ap(rows=128x2048, free=2048x-1)"),
            "dma_copy: src takes elements -2047 to 260096; a has 0 to 262143");
  EXPECT_EQ(Answer("tensor_copy t <- s.ap(offset=1, rows=128x1, free=2048x1)"),
            "tensor_copy: src takes elements 1 to 2048 of a partition; s has 0 to 2047");
  EXPECT_EQ(Answer("dma_copy s <- a.ap(rows=128x9223372036854775807, free=2048x1)"),
            "dma_copy: src has a stride of 9223372036854775807; expected -1099511627775 to "
            "1099511627775");
  EXPECT_EQ(Answer("dma_copy s <- a.ap(rows=128x-1099511627775, free=2048x1)"),
            "dma_copy: src has 128 elements -1099511627775 apart, more than a buffer can hold");
  EXPECT_EQ(Answer("dma_copy s <- a.ap(rows=1099511627775x0, free=2048x0)"),
            "dma_copy: src takes more than 1099511627775 elements: split the instruction");
  EXPECT_EQ(Answer("dma_copy s <- a.ap(rows=0x1, free=1x1)"),
            "dma_copy: src has a step of 0 elements; expected 1 to 1099511627775");
  EXPECT_EQ(Answer("dma_copy s <- a.ap(partition=1, rows=1x1, free=1x1)"),
            "dma_copy: src begins at partition 1; hbm has none: expected 0");
  EXPECT_EQ(Answer("dma_copy s <- a.ap(offset=-1, rows=1x1, free=1x1)"),
            "dma_copy: src begins at element -1; expected 0 to 1099511627775");
}

TEST(CheckTest, StepsInSbufHave16Bits) {
  EXPECT_EQ(Answer("dma_copy a <- e.ap(rows=2x1, free=65536x1)"),
            "dma_copy: src has a step of 65536 elements; expected 1 to 65535");
  EXPECT_EQ(Answer("dma_copy a <- e.ap(rows=2x1, free=2x32768)"),
            "dma_copy: src has a stride of 32768; expected -32767 to 32767");
}

TEST(CheckTest, EnginesTakePartitionsFromQuartersAndDmaFromAnywhere) {
  EXPECT_EQ(Answer("tensor_copy t[1:33] <- s[0:32]"),
            "tensor_copy: dst begins at partition 1; an engine takes 32 partitions from 0, 32, 64 "
            "or 96");
  EXPECT_EQ(Answer("tensor_copy t[0:33] <- s[32:65]"),
            "tensor_copy: src begins at partition 32; an engine takes 33 partitions from 0 or 64");
  EXPECT_EQ(Answer("tensor_copy t[0:64] <- s[64:128]"), "OK");
  EXPECT_EQ(Answer("tensor_copy t[0:65] <- s[32:97]"),
            "tensor_copy: src begins at partition 32; an engine takes 65 partitions from 0");
  EXPECT_EQ(Answer("tensor_copy t <- s.ap(partition=1, rows=128x1, free=2048x1)"),
            "tensor_copy: src takes 128 partitions from 1; s has 128");
  EXPECT_EQ(
      Answer("tensor_copy t <- s.ap(rows=64x2, free=2048x1)"),
      "tensor_copy: src takes 64 partitions 2 apart; expected 1 to 128, each beside the next");
}

TEST(CheckTest, AMatmulHasItsShapes) {
  EXPECT_EQ(Answer("nc_matmul p[:, 0:1024] <- s[:, 0:128] s[:, 0:1024]"),
            "nc_matmul: dst has 1024 elements in a partition; at most 512: split the instruction");
  EXPECT_EQ(
      Answer("nc_matmul p[:, 0:512] <- s[:, 0:128] s[:, 0:513]"),
      "nc_matmul: moving has 513 elements in a partition; at most 512: split the instruction");
  EXPECT_EQ(Answer("nc_matmul p[:, 0:512] <- s[:, 0:129] s[:, 0:512]"),
            "nc_matmul: stationary has 129 elements in a partition; at most 128: split the "
            "instruction");
  EXPECT_EQ(Answer("nc_matmul p[:, 0:512] <- s[0:64, 0:128] s[:, 0:512]"),
            "nc_matmul: stationary has 64 partitions and moving 128; expected as many");
  EXPECT_EQ(Answer("nc_matmul p[0:64, 0:512] <- s[:, 0:128] s[:, 0:512]"),
            "nc_matmul: dst has 64 partitions; expected 128, as stationary has elements in one");
  EXPECT_EQ(Answer("nc_matmul p[:, 0:511] <- s[:, 0:128] s[:, 0:512]"),
            "nc_matmul: dst has 511 elements in a partition; expected 512, as moving has");
  EXPECT_EQ(Answer("nc_matmul p[:, 1:513] <- s[:, 0:128] s[:, 0:512]"),
            "nc_matmul: dst has bytes 4 to 2051 of a partition; expected one bank of 2048 bytes");
}

TEST(CheckTest, OperandsLieWhereTheirEngineReaches) {
  EXPECT_EQ(Answer("dma_copy p <- a"),
            "dma_copy: dst is p, which is in psum; expected hbm or sbuf");
  EXPECT_EQ(Answer("tensor_copy t <- p engine=gpsimd"),
            "tensor_copy: src is p, which is in psum; the engine gpsimd reaches sbuf only");
  EXPECT_EQ(Answer("tensor_copy t <- s engine=tensor"),
            "tensor_copy: engine tensor; expected vector, scalar or gpsimd");
  EXPECT_EQ(Answer("nc_matmul h <- s[:, 0:128] s[:, 0:512]"),
            "nc_matmul: dst is h of type fp16; expected fp32");
  EXPECT_EQ(Answer("nc_matmul p[:, 0:512] <- n[:, 0:128] s[:, 0:512]"),
            "nc_matmul: stationary is n of type int32; expected bf16, fp16, fp8_e3m4, fp8_e4m3, "
            "fp8_e5m2, fp32 or fp32r");
  EXPECT_EQ(Answer("nc_matmul p[:, 0:512] <- t[:, 0:128] s[:, 0:512]"),
            "nc_matmul: stationary is fp32 and moving bf16; fp32 and fp32r go with each "
            "other only");
  EXPECT_EQ(Answer("tensor_tensor t[:, 0:512] <- p[:, 0:512] h"),
            "tensor_tensor: data1 and data2 are in psum; at most one may be");
  EXPECT_EQ(Answer("memset t value=nan"), "memset: value is no number");
}

TEST(CheckTest, CopiesHaveAsManyElements) {
  EXPECT_EQ(Answer("dma_copy s <- a[:, 0:3]"),
            "dma_copy: dst has 262144 elements and src 384; expected as many");
  EXPECT_EQ(Answer("tensor_copy t[0:32] <- s[0:1]"),
            "tensor_copy: dst has 32 partitions and src 1; expected as many");
  EXPECT_EQ(Answer("tensor_copy t[:, 0:9] <- s[:, 0:8]"),
            "tensor_copy: dst has 9 elements in a partition and src 8; expected as many");
  EXPECT_EQ(Answer("tensor_tensor t <- s s[:, 0:8]"),
            "tensor_tensor: dst has 2048 elements in a partition and data2 8; expected as many");
}

TEST(CheckTest, AnOptionIsOneOfTheInstructions) {
  Program program = *ParseText(std::string(kBuffers) + "tensor_copy t <- s", "test");
  program.instructions[0].accumulate = true;
  EXPECT_THAT(Message(CheckProgram(program)),
              HasSubstr("tensor_copy: has accumulate, which is no option of the instruction here"));
  program.instructions[0] = {.opcode = Opcode::kTensorCopy,
                             .engine = Engine::kVector,
                             .operands = program.instructions[0].operands,
                             .numbers = {1}};
  EXPECT_THAT(Message(CheckProgram(program)), HasSubstr("has 1 numbers; expected at most 0"));
}

TEST(CheckTest, CoresMeetAsOftenAndAlike) {
  const std::string head = "tensor m int8 [8, 8]\nsbuf x int8 [8, 8]\nmemset x\ndma_copy m <- x\n";
  const auto answer = [&](const std::string& rest) {
    return std::string(Message(Checked(head + rest)));
  };
  const std::string other = "core 1\nsbuf y int8 [8, 8]\n";
  EXPECT_EQ(answer("core_barrier m\nsendrecv x <- x\n" + other +
                   "core_barrier m\nmemset y\nsendrecv y <- y"),
            "");
  EXPECT_EQ(answer("core_barrier m"),
            "line 5: core_barrier: core 1 has no instruction that meets this one");
  EXPECT_EQ(answer(other + "memset y\nsendrecv y <- y"),
            "line 8: sendrecv: core 0 has no instruction that meets this one");
  EXPECT_EQ(answer("core_barrier m\n" + other + "memset y\nsendrecv y <- y"),
            "line 9: sendrecv: meets a core_barrier of core 0; expected the same instruction");
  EXPECT_EQ(answer("sendrecv x <- x\n" + other + "memset y\nsendrecv y[0:4] <- y[0:4]"),
            "line 9: sendrecv: sends 4 x 8 elements of int8, and core 0 takes 8 x 8 of int8; "
            "expected as many of one type");
  EXPECT_EQ(answer(other + "memset x"),
            "line 7: memset: dst is x, in the sbuf of core 0; expected a buffer of core 1");
}

TEST(CheckTest, OnlyOptionalOperandsMayBeLeftOut) {
  Program program = *ParseText(std::string(kBuffers) + "tensor_copy t <- s", "test");
  program.instructions[0].left_out = 2;
  program.instructions[0].operands.pop_back();
  EXPECT_THAT(Message(CheckProgram(program)),
              HasSubstr("src is left out; only optional operands may be"));
  program.instructions[0].left_out = 4;
  EXPECT_THAT(Message(CheckProgram(program)), HasSubstr("behind the last is left out"));
}

TEST(CheckTest, WhatTheChipDoesNotDefineIsToldApart) {
  for (const std::string line : {
           "tensor_copy t.ap(rows=128x1, free=8x0) <- s[:, 0:8]",
           "dma_copy a.ap(rows=128x0, free=8x1) <- s[:, 0:8]",
           "nc_matmul p[:, 0:8] <- s[:, 0:128] s[:, 0:8] accumulate",
           "nc_matmul p[:, 0:8] <- s[:, 0:128] s[:, 0:8]\ntensor_copy p[:, 0:8] <- s[:, 0:8]\n"
           "nc_matmul p[:, 0:8] <- s[:, 0:128] s[:, 0:8] accumulate",
       }) {
    EXPECT_EQ(Checked(std::string(kBuffers) + line).code(), absl::StatusCode::kFailedPrecondition)
        << line;
  }
  EXPECT_EQ(
      Answer("nc_matmul p[:, 0:8] <- s[:, 0:128] s[:, 0:8] accumulate"),
      "nc_matmul: accumulates on p, which no nc_matmul has written; the first of a group must "
      "not accumulate");
}

TEST(CheckTest, AMatmulMayAddToAnotherBufferAtItsAddress) {
  EXPECT_EQ(Answer("psum q fp32 [128, 8] @ 0\npsum r fp32 [128, 8] @ 0\n"
                   "nc_matmul q <- s[:, 0:128] s[:, 0:8]\n"
                   "nc_matmul r <- s[:, 0:128] s[:, 0:8] accumulate"),
            "OK");
}

TEST(CheckTest, InputsAreReadAndOutputsWritten) {
  EXPECT_EQ(Answer("dma_copy i <- s[:, 0:512]"),
            "dma_copy: dst is i, an input; a program writes outputs and internal buffers only");
  const absl::Status status = Checked("tensor c fp32 [1] out\n");
  EXPECT_EQ(Message(status), "c is an output that no instruction writes");
}

std::string OfBuffer(const Buffer& buffer) {
  const absl::Status status = CheckBuffer(buffer);
  return status.ok() ? "OK" : std::string(Message(status));
}

TEST(CheckTest, ABufferFitsIntoItsMemory) {
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(OfBuffer({.name = "x", .memory = Memory::kSbuf, .shape = {128, 57344}}), "OK");
  EXPECT_EQ(OfBuffer({.name = "x", .memory = Memory::kSbuf, .shape = {128, 57345}}),
            "x: 229380 bytes; sbuf has 229376 of a partition");
  EXPECT_EQ(OfBuffer({.name = "x", .memory = Memory::kPsum, .shape = {129}}),
            "x: 129 partitions; psum has 128");
  EXPECT_EQ(OfBuffer({.name = "x", .memory = Memory::kSbuf, .shape = {8, 8}, .address = 229348}),
            "x: the address is 229348; expected 0 to 229344, for 32 bytes in 229376 of sbuf of a "
            "partition");
  EXPECT_EQ(OfBuffer({.name = "x", .shape = {8}, .address = 2}),
            "x: the address is 2; expected a multiple of 4, the bytes of fp32");
  EXPECT_EQ(
      OfBuffer({.name = "x", .shape = {8}, .address = -4}),
      "x: the address is -4; expected 0 to 103079215072, for 32 bytes in 103079215104 of hbm");
  EXPECT_EQ(OfBuffer({.name = "x", .shape = {kMost, kMost}}),
            "x: a dimension is 9223372036854775807; expected at least 1, all together at most "
            "1099511627775");
  EXPECT_EQ(OfBuffer({.name = "x", .shape = {0}}),
            "x: a dimension is 0; expected at least 1, all together at most 1099511627775");
  EXPECT_EQ(OfBuffer({.name = "x", .shape = {}}), "x: the shape has 0 dimensions; expected 1 to 5");
  EXPECT_EQ(OfBuffer({.name = "x", .memory = Memory::kSbuf, .use = Use::kOutput, .shape = {8}}),
            "x: an output in sbuf; inputs and outputs are in hbm");
}

TEST(CheckTest, NamesAreShortPlainAndDifferent) {
  EXPECT_EQ(OfBuffer({.name = std::string(63, 'x'), .shape = {1}}), "OK");
  for (const std::string& name : {std::string(), std::string(64, 'x'), std::string("1a"),
                                  std::string("a b"), std::string("a\xff")}) {
    EXPECT_THAT(OfBuffer({.name = name, .shape = {1}}), HasSubstr("expected 1 to 63"));
  }
  Program program;
  program.Add({.name = "x", .shape = {1}});
  program.Add({.name = "x", .shape = {1}});
  EXPECT_EQ(Message(CheckProgram(program)),
            "two buffers are called x; each needs a name of its own");
}

TEST(CheckTest, AnInstructionWithoutALineIsTheProgramsNumber) {
  Program program;
  program.Add({.name = "x", .shape = {8}});
  program.instructions.push_back({.operands = {program.Whole({}), View{.buffer = BufferId(7)}}});
  EXPECT_EQ(Message(CheckProgram(program)),
            "instruction 0: dma_copy: src is buffer 7; the program has 1");
  program.instructions[0].operands.pop_back();
  EXPECT_EQ(Message(CheckProgram(program)), "instruction 0: dma_copy: 1 operands; expected 2");
}

}  // namespace
}  // namespace tahoma::isa
