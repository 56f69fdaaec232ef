// Each limit of instructions that move elements by its message, one step inside and one outside.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "lib/base/status.h"
#include "lib/isa/check.h"
#include "lib/isa/text.h"

namespace tahoma::isa {
namespace {

using ::testing::HasSubstr;

constexpr std::string_view kBuffers = R"(tensor a bf16 [128, 4, 128]
tensor b bf16 [6, 40]
sbuf s bf16 [128, 2048]
sbuf e fp8_e4m3 [128, 512]
sbuf t fp32 [128, 2048]
sbuf n int32 [128, 512]
sbuf x uint16 [128, 512]
sbuf u uint32 [128, 512]
psum p bf16 [128, 2048]
psum q fp8_e4m3 [128, 512]
psum r fp32 [128, 512]
)";

absl::Status Checked(std::string_view line) {
  const auto program = ParseText(std::string(kBuffers) + std::string(line), "test");
  EXPECT_TRUE(program.ok()) << program.status();
  return CheckProgram(*program);
}

std::string Answer(std::string_view line) {
  const absl::Status status = Checked(line);
  if (status.ok()) return "OK";
  std::string message(Message(status));
  return message.substr(message.find(": ") + 2);
}

std::string Mask(int first, const std::string& rest = "0") {
  std::string mask = " shuffle_mask=" + std::to_string(first);
  for (int i = 1; i < 32; ++i) mask += "," + rest;
  return mask;
}

TEST(RulesMoveTest, ATransposeHasTheShapeTheTypeAndThePlaceOfItsEngine) {
  for (const std::string_view line :
       {"nc_transpose p[:, 0:128] <- s[:, 0:128]", "nc_transpose p[0:8, 0:128] <- s[:, 0:8]",
        "nc_transpose p[0:8, 960:1024] <- s.ap(rows=64x1, free=8x0)",
        "nc_transpose s[0:32, 0:32] <- p[0:32, 0:32] engine=vector",
        "nc_transpose q.ap(rows=128x1, free=128x2) <- e[:, 0:128]",
        "nc_transpose e[0:32, 0:32] <- e[0:32, 0:32] engine=vector"}) {
    EXPECT_EQ(Answer(line), "OK") << line;
  }
  EXPECT_EQ(Answer("nc_transpose p[:, 0:128] <- t[:, 0:128]"),
            "nc_transpose: dst is bf16 and data fp32; expected the same type");
  EXPECT_EQ(
      Answer("nc_transpose p[0:8, 0:8] <- s[:, 0:8]"),
      "nc_transpose: dst has 8 partitions of 8 elements and data 128 of 8; expected 8 of 128");
  EXPECT_EQ(
      Answer("nc_transpose p[:, 0:128] <- s[:, 0:129]"),
      "nc_transpose: data has 129 elements in a partition; at most 128: split the instruction");
  EXPECT_THAT(Answer("nc_transpose s[0:8, 0:8] <- s[0:8, 0:8]"),
              HasSubstr("dst is in sbuf and data in sbuf; the engine tensor writes psum"));
  EXPECT_THAT(Answer("nc_transpose s[0:8, 0:33] <- s[0:33, 0:8] engine=vector"),
              HasSubstr("the engine vector transposes at most 32 of 32"));
  EXPECT_EQ(Answer("nc_transpose p[:, 960:1088] <- s[:, 0:128]"),
            "nc_transpose: dst has bytes 1920 to 2175 of a partition; expected one bank of 2048 "
            "bytes");
  EXPECT_THAT(Answer("nc_transpose q[:, 0:128] <- e[:, 0:128]"),
              HasSubstr("expected an even offset and even strides"));
}

TEST(RulesMoveTest, AMatmulThatTransposesHasTheTypeOfItsDataAndAddsNothing) {
  const std::string operands = "nc_matmul p[:, 0:128] <- s[:, 0:128] s[:, 0:128]";
  EXPECT_EQ(Answer(operands + " is_transpose"), "OK");
  EXPECT_EQ(Answer(operands), "nc_matmul: dst is p of type bf16; expected fp32");
  EXPECT_EQ(Answer(operands + " is_transpose accumulate"),
            "nc_matmul: is_transpose and accumulate; expected at most one of both");
  EXPECT_EQ(Answer("nc_matmul p[:, 0:128] <- t[:, 0:128] t[:, 0:128] is_transpose"),
            "nc_matmul: dst is bf16 and stationary fp32; expected the same type, for is_transpose");
  const std::string sums = "nc_matmul r[:, 0:128] <- t[:, 0:128] t[:, 0:128]";
  EXPECT_EQ(Answer(sums + "\n" + sums + " accumulate"), "OK");
  EXPECT_THAT(Answer(sums + " is_transpose\n" + sums + " accumulate"),
              HasSubstr("accumulates on r, which no nc_matmul has written"));
}

TEST(RulesMoveTest, AShuffleNamesPartitionsThatAreThere) {
  for (const std::string& line :
       {"nc_stream_shuffle s[64:96] <- s[0:1]" + Mask(0), "nc_stream_shuffle s <- s" + Mask(31),
        "nc_stream_shuffle s[0:40] <- s[0:33]" + Mask(0),
        "nc_stream_shuffle p[0:32, 0:8] <- s[96:128, 0:8]" + Mask(255)}) {
    EXPECT_EQ(Answer(line), "OK") << line;
  }
  const auto refused = [](const std::string& line, const std::string& message) {
    EXPECT_THAT(Answer("nc_stream_shuffle " + line), HasSubstr(message));
  };
  refused("s[0:32] <- t[0:32]" + Mask(0), "dst is bf16 and src fp32; expected the same type");
  refused("s[0:32] <- s[0:32, 0:8]" + Mask(0), "dst has 2048 elements in a partition and src 8");
  refused("s[0:32] <- s[0:32] shuffle_mask=1,2", "shuffle_mask has 2 numbers; expected 32");
  refused("s[0:32] <- s[0:32]", "shuffle_mask has 0 numbers; expected 32");
  refused("s[0:32] <- s[0:32]" + Mask(32), "shuffle_mask has 32; expected 0 to 31, or 255 to keep");
  refused("s[0:32] <- s[0:1]" + Mask(1), "takes partition 1 of src for 0 of dst; src has 1");
  refused("s[0:33] <- s[0:32]" + Mask(0), "takes partition 32 of src for 32 of dst; src has 32");
  refused("s[0:64] <- s[32:64]" + Mask(255, "255"),
          "src begins at partition 32; expected a multiple of 64, for 64");
}

TEST(RulesMoveTest, ATransposeByDmaHasTheElementsOfBothSides) {
  for (const std::string_view line :
       {"dma_transpose s[:, 0:512] <- a", "dma_transpose s[0:40, 0:6] <- b",
        "dma_transpose s[0:20, 0:12] <- b", "dma_transpose s[3:13, 0:24] <- b engine=scalar",
        "dma_transpose s[0:8, 0:64] <- s[64:128, 0:8]"}) {
    EXPECT_EQ(Answer(line), "OK") << line;
  }
  EXPECT_EQ(Answer("dma_transpose t[0:40, 0:6] <- b"),
            "dma_transpose: dst is fp32 and src bf16; expected the same type");
  EXPECT_THAT(
      Answer("dma_transpose s[0:39, 0:6] <- b"),
      HasSubstr("dst has 39 partitions, and a row of src 40 elements; expected a multiple"));
  EXPECT_EQ(Answer("dma_transpose s[0:20, 0:6] <- b"),
            "dma_transpose: dst has 6 elements in a partition; expected 12, as src has beside the "
            "20");
  EXPECT_THAT(Answer("dma_transpose e <- e"),
              HasSubstr("dst is e of type fp8_e4m3; expected uint16"));
}

TEST(RulesMoveTest, APatternHasTheElementsOfDstAndStaysInInt32) {
  for (const std::string_view line :
       {"iota n pattern=0,0,1,512", "iota s[0:3, 0:24] pattern=5,-7,0,2,1,3,-9,4",
        "iota n pattern=2147483136,0,1,512", "iota n pattern=-2147483648,0,1,512",
        "iota n pattern=0,0,1,2,1,2,1,2,1,64"}) {
    EXPECT_EQ(Answer(line), "OK") << line;
  }
  EXPECT_THAT(Answer("iota n"), HasSubstr("pattern has 0 numbers; expected an offset"));
  EXPECT_THAT(Answer("iota n pattern=1,2,3"), HasSubstr("pattern has 3 numbers"));
  EXPECT_EQ(Answer("iota n pattern=0,0,1,256"),
            "iota: pattern has 256 elements; expected 512, as dst has in a partition");
  EXPECT_EQ(Answer("iota n pattern=0,0,1,513"),
            "iota: pattern has a dimension of 513; expected 1 or more, all together 512");
  EXPECT_THAT(Answer("iota n pattern=0,0,1,0"), HasSubstr("pattern has a dimension of 0"));
  EXPECT_EQ(Answer("iota n pattern=0,2147483648,1,512"),
            "iota: pattern has 2147483648; expected -2147483648 to 2147483647");
  EXPECT_EQ(Answer("iota n pattern=2147483137,0,1,512"),
            "iota: pattern reaches from 2147483137 to 2147483648; the chip computes in int32: "
            "-2147483648 to 2147483647");
  EXPECT_EQ(Checked("iota n pattern=0,-2000000000,1,512").code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST(RulesMoveTest, ASelectionComparesWithZero) {
  EXPECT_EQ(Answer("affine_select s[:, 0:512] <- n cmp_op=equal pattern=0,1,-1,512"), "OK");
  EXPECT_EQ(Answer("affine_select n <- n pattern=0,1,-1,512"),
            "affine_select: cmp_op is add; expected equal, not_equal, greater, greater_equal, less "
            "or less_equal");
  EXPECT_THAT(Answer("affine_select n <- n cmp_op=less"), HasSubstr("pattern has 0 numbers"));
  EXPECT_EQ(
      Answer("affine_select n <- n[:, 0:8] cmp_op=less pattern=0,1,-1,512"),
      "affine_select: dst has 512 elements in a partition and on_true_tile 8; expected as many");
}

TEST(RulesMoveTest, GathersHaveIndicesForWhatTheyTake) {
  for (const std::string_view line :
       {"local_gather s[:, 0:128] <- s[:, 0:1000] x[:, 0:8]",
        "local_gather s[0:16, 0:127] <- s[0:16] x[0:16, 0:8]",
        "local_gather s <- s x num_elem_per_idx=32", "nc_n_gather t[:, 0:512] <- t[:, 0:99] u"}) {
    EXPECT_EQ(Answer(line), "OK") << line;
  }
  EXPECT_EQ(Answer("local_gather s[0:8, 0:8] <- s[0:8] x[0:8]"),
            "local_gather: dst has 8 partitions; expected a multiple of 16");
  EXPECT_EQ(Answer("local_gather s[0:16, 0:8] <- s[0:32] x[0:16]"),
            "local_gather: dst has 16 partitions and src_buffer 32; expected as many");
  EXPECT_EQ(Answer("local_gather s[0:16, 0:8] <- s[0:16] x[0:32]"),
            "local_gather: dst has 16 partitions and index 32; expected as many");
  EXPECT_THAT(Answer("local_gather s <- s x num_elem_per_idx=3"),
              HasSubstr("num_elem_per_idx is 3; expected 1, 2, 4, 8, 16 or 32"));
  EXPECT_THAT(
      Answer("local_gather s[:, 0:129] <- s x[:, 0:8]"),
      HasSubstr("dst has 129 elements in a partition; expected 1 for each index, of which 16 "
                "partitions of index have 128"));
  EXPECT_THAT(Answer("local_gather s[:, 0:7] <- s x num_elem_per_idx=2"),
              HasSubstr("expected 2 for"));
  EXPECT_THAT(Answer("local_gather t <- s x"), HasSubstr("dst is fp32 and src_buffer bf16"));
  EXPECT_THAT(Answer("local_gather s <- s u"),
              HasSubstr("index is u of type uint32; expected uint16"));
  EXPECT_THAT(Answer("nc_n_gather s[:, 0:512] <- t u"), HasSubstr("dst is bf16 and data fp32"));
  EXPECT_THAT(Answer("nc_n_gather s[0:8, 0:512] <- s u[0:8]"),
              HasSubstr("dst has 8 partitions and data 128; expected as many"));
}

TEST(RulesMoveTest, ASumByDmaHasSourcesOfItsSize) {
  EXPECT_EQ(Answer("dma_compute s[:, 0:512] <- a n"), "OK");
  EXPECT_EQ(Answer("dma_compute a <- a s[:, 0:512] src2=n src3=a"), "OK");
  EXPECT_EQ(Answer("dma_compute a <- a s[:, 0:512] src3=b"),
            "dma_compute: dst has 65536 elements and a source 240; expected as many");
}

}  // namespace
}  // namespace tahoma::isa
