// The rules of functions and reductions by their messages.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "lib/base/status.h"
#include "lib/isa/check.h"
#include "lib/isa/text.h"

namespace tahoma::isa {
namespace {

constexpr std::string_view kBuffers = R"(sbuf s fp32 [128, 512]
sbuf h bf16 [128, 512]
sbuf n int32 [128, 512]
sbuf c fp32 [128, 1]
sbuf b bf16 [128, 1]
psum p fp32 [128, 512]
sbuf i uint16 [128, 8]
sbuf w int8 [128, 16385]
)";

absl::Status Checked(std::string_view lines) {
  const auto program = ParseText(std::string(kBuffers) + std::string(lines), "test");
  return program.ok() ? CheckProgram(*program) : program.status();
}

// The message to an instruction, without its line.
std::string Answer(std::string_view line) {
  const absl::Status status = Checked(line);
  if (status.ok()) return "OK";
  const std::string message(Message(status));
  return message.substr(message.find(": ") + 2);
}

TEST(RulesActivationTest, WhatFitsPasses) {
  for (const std::string_view line : {
           "activation h <- p op=exp scale=-0.5 bias=c reduce_res=c",
           "activation p <- n op=gelu scale=c bias=b",
           "activation s <- s bias=1e-6",
           "activation_reduce h b <- s op=square",
           "activation_reduce c.ap(rows=128x1, free=512x0) b <- s op=square",
           "reciprocal c <- b",
           "tensor_reduce c <- s",
           "tensor_reduce s[:, 0:64] <- h.ap(rows=128x1, free=64x1 8x64) op=maximum negate",
           "tensor_partition_reduce h[32:33] <- s op=maximum",
           "bn_stats h[:, 0:6] <- p",
           "bn_aggr h[:, 0:2] <- s[:, 0:510]",
           "max8 n[:, 0:8] <- s[:, 0:8]",
           "nc_find_index8 i <- w[:, 0:16384] s.ap(rows=128x1, free=8x0)",
           "nc_match_replace8 h <- s n[:, 0:8] imm=-inf",
           "nc_match_replace8 h <- s n[:, 0:8] dst_idx=i",
       }) {
    EXPECT_EQ(Answer(line), "OK") << line;
  }
}

TEST(RulesActivationTest, ScaleBiasAndSumsAreColumns) {
  EXPECT_EQ(Answer("activation s <- p scale=s"),
            "activation: scale has 512 elements in a partition; expected 1");
  EXPECT_EQ(Answer("activation s <- p bias=c[0:64]"),
            "activation: dst has 128 partitions and bias 64; expected as many");
  EXPECT_EQ(Answer("activation s <- p scale=b"),
            "activation: scale is b of type bf16; expected fp32");
  EXPECT_EQ(Answer("activation s <- p[:, 0:8]"),
            "activation: dst has 512 elements in a partition and data 8; expected as many");
  EXPECT_EQ(Answer("activation_reduce s s <- p"),
            "activation_reduce: reduce_res has 512 elements in a partition; expected 1");
  EXPECT_EQ(Checked("activation_reduce s c.ap(rows=128x1, free=1x1 2x0) <- p").code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Answer("activation s <- p engine=vector"),
            "activation: engine vector; expected scalar");
}

TEST(RulesActivationTest, ReductionsHaveTheirOperatorsAndShapes) {
  EXPECT_EQ(Answer("tensor_reduce c <- s op=power"),
            "tensor_reduce: op power does not reduce; expected an operator such as add or maximum");
  EXPECT_EQ(Answer("tensor_reduce s[:, 0:7] <- h"),
            "tensor_reduce: dst has 7 elements in a partition and data 512; expected as many "
            "elements of data for each");
  EXPECT_EQ(Answer("tensor_reduce c[0:64] <- s"),
            "tensor_reduce: dst has 64 partitions and data 128; expected as many");
  EXPECT_EQ(Checked("tensor_reduce n[:, 0] <- n op=bitwise_or").code(),
            absl::StatusCode::kUnimplemented);
  EXPECT_EQ(Answer("tensor_partition_reduce s <- s"),
            "tensor_partition_reduce: dst has 128 partitions; at most 1: split the instruction");
  EXPECT_EQ(Answer("tensor_partition_reduce s[0:1, 0:8] <- s"),
            "tensor_partition_reduce: dst has 8 elements in a partition and data 512; expected as "
            "many");
  EXPECT_EQ(Answer("tensor_partition_reduce s[0:1] <- s op=multiply"),
            "tensor_partition_reduce: op multiply; expected add or maximum");
  EXPECT_EQ(Answer("tensor_partition_reduce s[0:1] <- p"),
            "tensor_partition_reduce: data is p, which is in psum; expected sbuf");
  EXPECT_EQ(Checked("tensor_partition_reduce n[0:1] <- n op=bitwise_or").code(),
            absl::StatusCode::kUnimplemented);
}

TEST(RulesActivationTest, StatisticsAreTriples) {
  EXPECT_EQ(Answer("bn_stats h[:, 0:5] <- p"),
            "bn_stats: dst has 5 elements in a partition; expected 6");
  EXPECT_EQ(Answer("bn_stats h[:, 0:7] <- p"),
            "bn_stats: dst has 7 elements in a partition; at most 6: split the instruction");
  EXPECT_EQ(Answer("bn_stats h[:, 0:6] <- w[:, 0:513]"),
            "bn_stats: data has 513 elements in a partition; at most 512: split the instruction");
  EXPECT_EQ(Answer("bn_stats h[0:64, 0:6] <- p"),
            "bn_stats: dst has 64 partitions and data 128; expected as many");
  EXPECT_EQ(Answer("bn_aggr h[:, 0:2] <- s[:, 0:512]"),
            "bn_aggr: data has 512 elements in a partition; expected a multiple of 3");
  EXPECT_EQ(Answer("bn_aggr h[:, 0:2] <- s[:, 0:2]"),
            "bn_aggr: data has 2 elements in a partition; expected at least 3");
}

TEST(RulesActivationTest, TheLargestAreEightOfEightOrMore) {
  EXPECT_EQ(Answer("max8 s[:, 0:7] <- h"), "max8: dst has 7 elements in a partition; expected 8");
  EXPECT_EQ(Answer("max8 s[:, 0:8] <- h[:, 0:7]"),
            "max8: src has 7 elements in a partition; expected at least 8");
  EXPECT_EQ(Answer("max8 s[:, 0:8] <- w"),
            "max8: src has 16385 elements in a partition; at most 16384: split the instruction");
  EXPECT_EQ(Answer("nc_find_index8 i <- s h[:, 0:7]"),
            "nc_find_index8: vals has 7 elements in a partition; expected 8");
  EXPECT_EQ(Answer("nc_find_index8 n[:, 0:8] <- s h[:, 0:8]"),
            "nc_find_index8: dst is n of type int32; expected uint16 or uint32");
  EXPECT_EQ(Answer("nc_match_replace8 s <- h s[:, 0:8] dst_idx=i[:, 0:4]"),
            "nc_match_replace8: dst_idx has 4 elements in a partition; expected 8");
  EXPECT_EQ(Answer("nc_match_replace8 s <- h s[:, 0:8] imm=nan"),
            "nc_match_replace8: imm is no number");
}

}  // namespace
}  // namespace tahoma::isa
