// The text form: read and written, and each mistake by its place.

#include "lib/isa/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "lib/base/rng.h"
#include "lib/base/status.h"
#include "lib/isa/check.h"
#include "lib/isa/instruction.h"
#include "tests/unit/lib/isa/random_program.h"

namespace tahoma::isa {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

Program WithoutLines(Program program) {
  for (Instruction& instruction : program.instructions) instruction.line = 0;
  return program;
}

TEST(TextTest, TheExampleOfThePageIsReadAndWrittenInItsOrder) {
  const auto program = ParseText(R"(# c = a^T b
tensor a  bf16 [128, 128] in
tensor c  fp32 [128, 128] out
sbuf   at bf16 [128, 128]
psum   p  fp32 [128, 128]
sbuf   ct fp32 [128, 128] @ 4096        # an address is optional
dma_copy    at <- a
nc_matmul   p  <- at at
nc_matmul   p  <- at at accumulate
tensor_copy ct <- p  engine=scalar
dma_copy    c[0:64]  <- ct[0:64, :]
dma_copy    c.ap(offset=8192, rows=64x128, free=128x1) <- ct[64:128]
)",
                                 "example");
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_TRUE(CheckProgram(*program).ok()) << CheckProgram(*program);
  EXPECT_EQ(program->name, "example");
  EXPECT_EQ(program->instructions.front().line, 7);
  EXPECT_EQ(FormatText(*program), R"(tensor a bf16 [128, 128] in
tensor c fp32 [128, 128] out
sbuf at bf16 [128, 128]
psum p fp32 [128, 128]
sbuf ct fp32 [128, 128] @ 4096
dma_copy at <- a
nc_matmul p <- at at
nc_matmul p <- at at accumulate
tensor_copy ct <- p engine=scalar
dma_copy c[0:64, 0:128] <- ct[0:64, 0:128]
dma_copy c[64:128, 0:128] <- ct[64:128, 0:128]
)");
}

TEST(TextTest, AProgramThatWasWrittenIsReadAsTheSame) {
  Rng rng(10);
  for (int run = 0; run < 150; ++run) {
    const Program program = RandomProgram(rng, {.two_cores = rng.Chance(1, 2)});
    const std::string text = FormatText(program);
    const auto read = ParseText(text, program.name);
    ASSERT_TRUE(read.ok()) << read.status() << " in\n" << text;
    EXPECT_EQ(WithoutLines(*read), WithoutLines(program)) << text;
  }
}

std::string ViewOf(std::string_view buffers, const std::string& view) {
  const auto program =
      ParseText(std::string(buffers) + "\ntensor z fp32 [1]\ndma_copy z <- " + view, "test");
  EXPECT_TRUE(program.ok()) << program.status();
  const std::string text = FormatText(*program);
  const std::string line = text.substr(text.find("<- ") + 3);
  return line.substr(0, line.size() - 1);
}

TEST(TextTest, AViewIsWrittenAsPlainlyAsItCanBe) {
  constexpr std::string_view kBatch = "tensor a fp32 [4, 128, 512]";
  EXPECT_EQ(ViewOf(kBatch, "a[:]"), "a");
  EXPECT_EQ(ViewOf(kBatch, "a[3]"), "a[3, 0:128, 0:512]");
  EXPECT_EQ(ViewOf(kBatch, "a[3, 5, 7]"), "a[3:4, 5:6, 7:8]");
  EXPECT_EQ(ViewOf(kBatch, "a[3, :64, 256:]"), "a[3, 0:64, 256:512]");
  EXPECT_EQ(ViewOf(kBatch, "a[1:3, 0:64, 256:512]"), "a[1:3, 0:64, 256:512]");
  EXPECT_EQ(ViewOf(kBatch, "a.ap(rows=4x1, free=2x-0)"),
            "a.ap(partition=0, offset=0, rows=4x1, free=2x0)");
  EXPECT_EQ(ViewOf("sbuf a.ap fp32 [64, 4, 8]\nsbuf a fp32 [64]", "a.ap[32:64, 1:2, 0:8]"),
            "a.ap[32:64, 1:2, 0:8]");
  EXPECT_EQ(ViewOf("sbuf a.ap fp32 [64, 4, 8]\nsbuf a fp32 [64]", "a.ap(rows=1x1, free=1x5)"),
            "a.ap(partition=0, offset=0, rows=1x1, free=1x5)");
}

std::string Wrong(std::string_view text) {
  const auto program = ParseText(text, "test");
  return program.ok() ? "OK" : std::string(Message(program.status()));
}

TEST(TextTest, AMistakeIsToldWithLineAndColumn) {
  EXPECT_EQ(Wrong("tensor a fp31 [1]"),
            "line 1, column 10: unknown data type \"fp31\"; expected one of uint8, int8, fp8_e3m4, "
            "fp8_e4m3, fp8_e5m2, uint16, int16, fp16, bf16, uint32, int32, fp32, fp32r");
  EXPECT_EQ(Wrong("\n\ntensor a fp32 1"), "line 3, column 15: expected [");
  EXPECT_EQ(Wrong("tensor a fp32 [1"), "line 1, column 17: expected ]");
  EXPECT_EQ(Wrong("tensor a fp32 [x]"), "line 1, column 16: expected a whole number of 64 bits");
  EXPECT_EQ(Wrong("tensor a fp32 [1,1,1,1,1,1]"),
            "line 1, column 26: expected at most 5 dimensions");
  EXPECT_EQ(Wrong("tensor a fp32 [1] inside"), "line 1, column 19: expected the end of the line");
  EXPECT_EQ(Wrong("sbuf a fp32 [1] in"),
            "line 1, column 17: a: an input in sbuf; inputs and outputs are in hbm");
  EXPECT_EQ(Wrong("sbuf a fp32 [1]\npsum a fp32 [1]"), "line 2, column 6: this name is taken");
  EXPECT_THAT(Wrong("a <- b"),
              HasSubstr("line 1, column 1: unknown instruction \"a\"; expected one of dma_copy, "));
  EXPECT_THAT(Wrong("register_load a"),
              HasSubstr("line 1, column 1: register_load is not built yet; there are dma_copy, "));
  EXPECT_EQ(Wrong("sbuf t fp32 [1]\nmemset t value=x"),
            "line 2, column 16: expected a number of fp32");
  EXPECT_EQ(Wrong("sbuf t fp32 [1]\ntensor_tensor t <- t t op=divide"),
            "line 2, column 27: expected one of add, subtract, multiply, maximum, minimum, power, "
            "abs_max, abs_min, equal, not_equal, greater, greater_equal, less, less_equal, "
            "logical_and, logical_or, logical_xor, abs, square, relu, rsqrt, reciprocal, "
            "bitwise_and, bitwise_or, bitwise_xor, invert, left_shift, right_shift");
  EXPECT_EQ(ParseText("register_load a", "").status().code(), absl::StatusCode::kUnimplemented);
}

TEST(TextTest, AMistakeInAViewIsToldWithLineAndColumn) {
  const auto wrong = [](const std::string& line) {
    return Wrong("sbuf a fp32 [8, 16]\ndma_copy " + line);
  };
  EXPECT_EQ(wrong("b <- a"), "line 2, column 10: expected a buffer as dst, of a line above");
  EXPECT_EQ(wrong("a, a"), "line 2, column 11: expected <-");
  EXPECT_EQ(wrong("a <- a a"), "line 2, column 17: expected engine=NAME or the end of the line");
  EXPECT_EQ(wrong("a <- a engine=sink"),
            "line 2, column 24: expected one of tensor, vector, scalar, gpsimd, sync");
  EXPECT_EQ(wrong("a[8] <- a"), "line 2, column 12: index 8; expected 0 to 7");
  EXPECT_EQ(wrong("a[0:9] <- a"), "line 2, column 14: 0:9; expected begin below end, within 0:8");
  EXPECT_EQ(wrong("a[3:3] <- a"), "line 2, column 14: 3:3; expected begin below end, within 0:8");
  EXPECT_EQ(wrong("a[] <- a"), "line 2, column 12: expected an index or BEGIN:END");
  EXPECT_EQ(wrong("a[0,0,0] <- a"), "line 2, column 15: a has 2 dimensions");
  EXPECT_EQ(wrong("a.ap(free=1x1) <- a"), "line 2, column 15: expected rows=");
  EXPECT_EQ(wrong("a.ap(rows=1x1, free=1x1 1x1 1x1 1x1 1x1) <- a"),
            "line 2, column 46: expected at most 4 free steps");
  EXPECT_EQ(wrong("a.ap(partition=128, rows=1x1, free=1x1) <- a"),
            "line 2, column 25: expected a partition from 0 to 127");
  EXPECT_EQ(wrong("a.ap(rows=1x99999999999999999999, free=1x1) <- a"),
            "line 2, column 22: expected a whole number of 64 bits");
}

TEST(TextTest, ATextHasABound) {
  EXPECT_THAT(Wrong(std::string(kTextBytesMax + 1, ' ')), HasSubstr("at most 16777216"));
  EXPECT_EQ(Wrong(std::string(kTextBytesMax, '\n')), "OK");
  // An error repeats no more of a word than a name may have.
  EXPECT_LT(Wrong(std::string(100'000, 'x')).size(), 2'000U);
}

}  // namespace
}  // namespace tahoma::isa
