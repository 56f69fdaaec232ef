// Each limit of copies by offsets from memory and of double rows by its message, and who waits for
// whom.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "lib/base/status.h"
#include "lib/isa/assemble.h"
#include "lib/isa/binary.h"
#include "lib/isa/check.h"
#include "lib/isa/text.h"

namespace tahoma::isa {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::string_view kBuffers = R"(tensor t bf16 [4096, 512]
tensor c bf16 [128, 512]
sbuf s bf16 [128, 512]
sbuf i int32 [128, 2]
sbuf u uint32 [128, 1]
sbuf f fp8_e4m3 [128, 2048]
sbuf g fp8_e5m2 [128, 1024]
sbuf h fp8_e3m4 [128, 1024]
sbuf b bf16 [128, 1024]
psum p fp32 [128, 512]
psum q fp32 [128, 1024]
)";

Program Parsed(std::string_view lines) {
  const auto program = ParseText(std::string(kBuffers) + std::string(lines), "test");
  EXPECT_TRUE(program.ok()) << program.status();
  return *program;
}

std::string Answer(std::string_view line) {
  const absl::Status status = CheckProgram(Parsed(line));
  if (status.ok()) return "OK";
  std::string message(Message(status));
  return message.substr(message.find(": ") + 2);
}

TEST(RulesIndirectTest, ACopyByOffsetsHasOneForEachRowOrOneForAll) {
  for (const std::string_view line :
       {"dma_copy_indirect s <- t.ap(rows=128x0, free=512x1) u step=512",
        "dma_copy_indirect s <- t.ap(rows=128x0, free=512x1) i[:, 1] step=512 skip",
        "dma_copy_indirect t.ap(rows=128x0, free=512x1) <- s u step=512 scatter skip",
        "dma_copy_indirect c <- t.ap(rows=128x0, free=512x1) u step=512",
        "dma_copy_indirect s <- t[0:128] u[0:1] step=512 engine=scalar",
        "dma_copy_indirect c[0] <- t[0] u[5:6] step=1 engine=sync"}) {
    EXPECT_EQ(Answer(line), "OK") << line;
  }
  EXPECT_EQ(
      Answer("dma_copy_indirect s <- t[0:128] u[0:64] step=512"),
      "dma_copy_indirect: offsets has 64 partitions and dst 128 rows; expected as many, or one "
      "offset");
  EXPECT_EQ(Answer("dma_copy_indirect s <- t.ap(rows=256x0, free=256x1) u step=512"),
            "dma_copy_indirect: offsets has 128 partitions and src 256 rows; expected as many, or "
            "one offset");
  EXPECT_EQ(Answer("dma_copy_indirect s <- t.ap(rows=128x0, free=512x1) u step=512 engine=sync"),
            "dma_copy_indirect: engine sync; expected gpsimd, for an offset of each row");
  EXPECT_EQ(Answer("dma_copy_indirect s <- t[0:128] i step=512"),
            "dma_copy_indirect: offsets has 2 elements in a partition; at most 1: split the "
            "instruction");
  EXPECT_EQ(Answer("dma_copy_indirect s <- t[0:128] s[:, 0] step=512"),
            "dma_copy_indirect: offsets is s of type bf16; expected uint32 or int32");
  EXPECT_EQ(Answer("dma_copy_indirect s <- t[0:64] u step=512"),
            "dma_copy_indirect: dst has 65536 elements and src 32768; expected as many");
}

TEST(RulesIndirectTest, TheSideOfOffsetsIsInHbmAndHasAStep) {
  EXPECT_EQ(Answer("dma_copy_indirect c <- s u step=512"),
            "dma_copy_indirect: src is s, which is in sbuf; expected hbm, for offsets from memory");
  EXPECT_EQ(Answer("dma_copy_indirect s <- c u step=512 scatter"),
            "dma_copy_indirect: dst is s, which is in sbuf; expected hbm, for offsets from memory");
  for (const std::string_view step : {"", "step=0", "step=-1"}) {
    EXPECT_EQ(Answer("dma_copy_indirect s <- c u " + std::string(step)),
              "dma_copy_indirect: step= is not a number from 1 to 1099511627775; expected the "
              "elements of src from one offset to the next")
        << step;
  }
}

TEST(RulesIndirectTest, OnlyRowsWithOffsetsOfTheirOwnMayHaveOnePlace) {
  const std::string refused =
      "dma_copy_indirect: dst writes one place again and again (a stride of 0), and the element "
      "that stays is not defined; give each element its own place";
  EXPECT_EQ(Answer("dma_copy_indirect t.ap(rows=128x0, free=512x1) <- s u[0:1] step=512 scatter"),
            refused);
  EXPECT_EQ(Answer("dma_copy_indirect t.ap(rows=128x0, free=512x0) <- s u step=512 scatter"),
            refused);
}

TEST(RulesIndirectTest, ACopyByOffsetsWaitsForAllThatTouchItsBuffer) {
  const auto assembled =
      Assemble(Parsed("dma_copy t[4000:4001] <- c[0]\n"
                      "dma_copy_indirect s[0:1] <- t[0:1] u[0:1] step=512\n"
                      "dma_copy t[3000:3001] <- c[1]\n"
                      "dma_copy_indirect t[0:1] <- c[2] u[0:1] step=512 scatter\n"
                      "dma_copy s[1:2] <- t[9:10]\n"));
  ASSERT_TRUE(assembled.ok()) << assembled.status();
  EXPECT_THAT(assembled->waits[0], IsEmpty());
  EXPECT_THAT(assembled->waits[1], ElementsAre(0));
  EXPECT_THAT(assembled->waits[2], ElementsAre(1));
  EXPECT_THAT(assembled->waits[3], ElementsAre(2));
  EXPECT_THAT(assembled->waits[4], ElementsAre(3));
}

TEST(RulesIndirectTest, ADoubleRowHasTwoOfEightBits) {
  for (const std::string_view line :
       {"nc_matmul p <- f[:, 0:256] g double_row", "nc_matmul p <- g[:, 0:256] g double_row",
        "nc_matmul p[0:3, 0:5] <- f[0:7, 0:6] f[0:7, 8:18] double_row"}) {
    EXPECT_EQ(Answer(line), "OK") << line;
  }
  EXPECT_EQ(Answer("nc_matmul p <- f[:, 0:256] b double_row"),
            "nc_matmul: moving is bf16; expected fp8_e4m3 or fp8_e5m2, for double_row");
  EXPECT_EQ(Answer("nc_matmul p <- h[:, 0:256] g double_row"),
            "nc_matmul: stationary is fp8_e3m4; expected fp8_e4m3 or fp8_e5m2, for double_row");
  EXPECT_EQ(Answer("nc_matmul p <- f[:, 0:255] g double_row"),
            "nc_matmul: stationary has 255 elements in a partition; expected an even number: two "
            "rows, for double_row");
  EXPECT_EQ(Answer("nc_matmul p <- f[:, 0:128] g double_row"),
            "nc_matmul: dst has 128 partitions; expected 64, as stationary has elements in a row "
            "of one");
  EXPECT_EQ(Answer("nc_matmul p <- f[:, 0:256] g[:, 0:512] double_row"),
            "nc_matmul: dst has 512 elements in a partition; expected 256, as moving has in a row");
  EXPECT_EQ(Answer("nc_matmul p <- f[:, 0:256] f double_row"),
            "nc_matmul: moving has 2048 elements in a partition; at most 1024: split the "
            "instruction");
  EXPECT_EQ(Answer("nc_matmul q <- f[:, 0:128] g"),
            "nc_matmul: dst has 1024 elements in a partition; at most 512: split the instruction");
}

TEST(RulesIndirectTest, TextAndBinaryFormKeepWhatTheyAreGiven) {
  const Program program = Parsed(
      "dma_copy_indirect t.ap(rows=128x0, free=512x1) <- s u step=512 scatter skip\n"
      "dma_copy_indirect s <- t[0:128] i[5, 1] step=3 engine=scalar\n"
      "nc_matmul p <- f[:, 0:256] g double_row\n");
  const std::string text = FormatText(program);
  EXPECT_THAT(text, HasSubstr(" <- s u step=512 scatter skip\n"));
  EXPECT_THAT(text,
              HasSubstr(" step=3 engine=scalar\nnc_matmul p <- f[0:128, 0:256] g double_row\n"));
  EXPECT_EQ(*ParseText(text, "test"), program);
  EXPECT_EQ(*Decode(Encode(program)), program);
}

}  // namespace
}  // namespace tahoma::isa
