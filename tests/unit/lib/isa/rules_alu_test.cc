// Rules of the instructions that name operators, by their messages.

#include "lib/isa/rules_alu.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "lib/base/status.h"
#include "lib/isa/check.h"
#include "lib/isa/text.h"

namespace tahoma::isa {
namespace {

constexpr std::string_view kBuffers = R"(sbuf s bf16 [128, 64]
sbuf t fp32 [128, 64]
sbuf n int32 [128, 64]
sbuf u uint32 [128, 64]
sbuf b uint8 [128, 64]
sbuf c fp32 [128, 1]
sbuf d int8 [128, 1]
psum p fp32 [128, 64]
psum q fp32 [128, 64]
psum r uint16 [128, 64]
)";

absl::Status Checked(std::string_view line) {
  const auto program = ParseText(std::string(kBuffers) + std::string(line), "test");
  EXPECT_TRUE(program.ok()) << program.status();
  return CheckProgram(*program);
}

// Without "line 11: NAME: ".
std::string Answer(std::string_view line) {
  const absl::Status status = Checked(line);
  if (status.ok()) return "OK";
  const std::string message(Message(status));
  const std::string place = "line 11: " + std::string(line.substr(0, line.find(' '))) + ": ";
  EXPECT_THAT(message, ::testing::StartsWith(place));
  return message.substr(place.size());
}

TEST(RulesAluTest, WhatFitsPasses) {
  for (const std::string_view line : {
           "tensor_tensor n <- u b op=left_shift",
           "tensor_tensor t <- t s op=power engine=gpsimd",
           "tensor_tensor n <- n u op=multiply engine=gpsimd",
           "tensor_scalar t <- p op0=subtract operand0=c reverse0 op1=multiply operand1=-0.5",
           "tensor_scalar t <- p op0=abs op1=rsqrt",
           "tensor_scalar t <- p op0=equal operand0=d",
           "tensor_scalar t <- s op0=multiply operand0=c op1=add operand1=1 engine=scalar",
           "tensor_scalar t <- s op0=add operand0=1e-6 engine=scalar",
           "tensor_scalar t <- s op0=rsqrt engine=gpsimd",
           "tensor_scalar n <- u op0=right_shift operand0=d op1=bitwise_and operand1=4294901760",
           "tensor_scalar n <- u op0=invert",
           "scalar_tensor_tensor t <- p t op0=multiply operand0=c op1=add reverse1",
           "scalar_tensor_tensor s <- s n op0=multiply operand0=d op1=less",
           "tensor_scalar_reduce s <- p reduce_res=c op0=abs reduce_op=maximum",
           "tensor_scalar_reduce s <- p op0=multiply operand0=2 reduce_op=add",
           "tensor_tensor_scan t <- p s initial=c op0=multiply op1=add reverse0 reverse1",
           "tensor_copy_predicated s <- b src=s reverse_pred",
           "tensor_copy_predicated t <- r src=-1",
           "tensor_scalar_cumulative b <- s op0=multiply imm0=c op1=subtract imm1=c",
           "range_select s <- p c c reduce_res=c comp_op0=greater_equal comp_op1=less "
           "range_start=16777152",
       }) {
    EXPECT_EQ(Answer(line), "OK") << line;
  }
}

TEST(RulesAluTest, TensorTensorTakesBitsOnVectorAndPowerOnGpSimd) {
  EXPECT_EQ(Answer("tensor_tensor t <- t t op=square"),
            "op square takes one operand; expected an operator of two");
  EXPECT_EQ(Answer("tensor_tensor t <- p q op=add"),
            "data1 and data2 are in psum; at most one may be");
  EXPECT_EQ(Answer("tensor_tensor n <- n s op=bitwise_or"),
            "data2 is of type bf16; expected integers, as op bitwise_or works on bits");
  EXPECT_EQ(Answer("tensor_tensor t <- n n op=bitwise_or"),
            "dst is of type fp32; expected integers, as op bitwise_or works on bits");
  EXPECT_EQ(Answer("tensor_tensor n <- n n op=bitwise_or engine=gpsimd"),
            "op bitwise_or works on bits, which the engine gpsimd does not; use vector");
  EXPECT_EQ(Answer("tensor_tensor t <- t t op=power"),
            "op power runs on the engine gpsimd only, not on vector");
  EXPECT_EQ(Checked("tensor_tensor n <- n u op=power engine=gpsimd").code(),
            absl::StatusCode::kUnimplemented);
}

TEST(RulesAluTest, TensorScalarHasOperatorsOfAKind) {
  EXPECT_EQ(Answer("tensor_scalar n <- n op0=bitwise_or op1=add"),
            "op0 bitwise_or works on bits and op1 add on numbers; expected two of a kind");
  EXPECT_EQ(Answer("tensor_scalar n <- n op0=add op1=invert"),
            "op0 add works on numbers and op1 invert on bits; expected two of a kind");
  EXPECT_EQ(Answer("tensor_scalar n <- n op0=invert engine=scalar"),
            "op0 invert works on bits, which the engine scalar does not; use vector");
  EXPECT_EQ(Answer("tensor_scalar n <- n op0=bitwise_or operand0=c"),
            "operand0 is of type fp32; expected integers, as op0 bitwise_or works on bits");
  EXPECT_EQ(Answer("tensor_scalar n <- n op0=bitwise_or operand0=1.5"),
            "operand0 is 1.5; expected a whole number of 32 bits");
  EXPECT_EQ(Answer("tensor_scalar n <- n op0=invert op1=bitwise_or operand1=4294967296"),
            "operand1 is 4294967300; expected a whole number of 32 bits");
}

TEST(RulesAluTest, TensorScalarHasNoOperandThatNoOperatorTakes) {
  EXPECT_EQ(Answer("tensor_scalar t <- t op0=abs operand0=1"),
            "operand0 is there, but abs takes one operand; leave operand0 out");
  EXPECT_EQ(Answer("tensor_scalar t <- t op0=add op1=abs operand1=c"),
            "operand1 is there, but abs takes one operand; leave operand1 out");
  for (const std::string_view line :
       {"tensor_scalar t <- t operand1=1", "tensor_scalar t <- t operand1=c",
        "tensor_scalar t <- t reverse1"}) {
    EXPECT_EQ(Answer(line), "operand1 or reverse1 is there and op1 is not; expected both or none");
  }
  EXPECT_EQ(Answer("tensor_scalar t <- t operand0=s"),
            "operand0 has 64 elements in a partition; expected 1");
}

TEST(RulesAluTest, AnEngineHasItsOperatorsOfTensorScalar) {
  EXPECT_EQ(Answer("tensor_scalar t <- t op0=add op1=multiply engine=scalar"),
            "the engine scalar has multiply, add, or multiply and then add, not add and multiply; "
            "use vector");
  EXPECT_EQ(Answer("tensor_scalar t <- t op0=maximum engine=scalar"),
            "the engine scalar has multiply, add, or multiply and then add, not maximum; use "
            "vector");
  EXPECT_EQ(Answer("tensor_scalar t <- t op0=rsqrt op1=add engine=gpsimd"),
            "the engine gpsimd has rsqrt alone, not rsqrt and add; use vector");
}

TEST(RulesAluTest, TwoOperatorsOfNumbersAreThere) {
  EXPECT_EQ(Answer("scalar_tensor_tensor t <- t t op0=add"),
            "op1 is left out; expected an operator");
  EXPECT_EQ(Answer("scalar_tensor_tensor n <- n n op0=bitwise_or op1=add"),
            "op0 bitwise_or works on bits; expected an operator of numbers");
  EXPECT_EQ(Answer("scalar_tensor_tensor t <- p q op0=add op1=add"),
            "data and operand1 are in psum; at most one may be");
  EXPECT_EQ(Answer("tensor_tensor_scan t <- t t op0=add op1=abs"),
            "op1 abs takes one operand; expected an operator of two");
  EXPECT_EQ(Answer("tensor_tensor_scan t <- p q op0=add op1=add"),
            "data0 and data1 are in psum; at most one may be");
  EXPECT_EQ(Answer("tensor_scalar_reduce t <- t op0=add"),
            "reduce_op is left out; expected an operator");
  EXPECT_EQ(Answer("tensor_scalar_reduce t <- t op0=add reduce_op=subtract"),
            "reduce_op subtract; expected one of add, multiply, maximum, minimum");
  EXPECT_EQ(Answer("tensor_scalar_cumulative t <- t op0=add op1=less"),
            "op1 less; expected one of add, subtract, multiply, maximum, minimum");
  EXPECT_EQ(Answer("tensor_scalar_cumulative t <- n op0=add op1=add"),
            "src is n of type int32; expected uint8, int8, fp8_e3m4, fp8_e4m3, fp8_e5m2, uint16, "
            "int16, fp16, bf16 or fp32");
}

TEST(RulesAluTest, ASelectionHasItsTypesAndRange) {
  EXPECT_EQ(Answer("tensor_copy_predicated s <- b src=t"),
            "src is of type fp32; expected bf16, as dst is");
  EXPECT_EQ(Answer("tensor_copy_predicated t <- r src=p"),
            "src and predicate are in psum; at most one may be");
  EXPECT_EQ(Answer("tensor_copy_predicated t <- n"),
            "predicate is n of type int32; expected uint8, uint16 or uint32");
  EXPECT_EQ(Answer("range_select s <- p c c comp_op0=not_equal comp_op1=less"),
            "comp_op0 not_equal; expected one of equal, less, less_equal, greater, greater_equal");
  EXPECT_EQ(Answer("range_select s <- p c c comp_op0=less"),
            "comp_op1 is left out; expected an operator");
  EXPECT_EQ(Answer("range_select s <- p c c comp_op0=less comp_op1=less range_start=16777153"),
            "range_start is 16777153; expected a whole number from -16777216 to 16777152");
  EXPECT_EQ(Answer("range_select s <- p c c comp_op0=less comp_op1=less range_start=0.5"),
            "range_start is 0.5; expected a whole number from -16777216 to 16777152");
}

}  // namespace
}  // namespace tahoma::isa
