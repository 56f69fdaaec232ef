#include "lib/isa/instruction.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

#include "lib/base/status.h"

namespace tahoma::isa {
namespace {

TEST(InstructionTest, EachOpcodeHasItsRowAndEachRowItsName) {
  for (int at = 0; at < kOpcodes; ++at) {
    const auto opcode = static_cast<Opcode>(at);
    const InstructionRow& row = RowOf(opcode);
    EXPECT_EQ(row.opcode, opcode);
    EXPECT_EQ(RowByName(row.name), &row);
    EXPECT_EQ(*ParseOpcode(row.name), opcode);
    EXPECT_FALSE(row.engines.empty());
    // Written operands come first: the text form has its arrow behind them.
    EXPECT_TRUE(row.operands.front().written);
    EXPECT_TRUE(std::ranges::is_partitioned(row.operands, &OperandRow::written));
  }
  EXPECT_EQ(RowByName("nc_matmu"), nullptr);
}

TEST(InstructionTest, RowsAndThoseNotBuiltAreThe35ThatPublicKernelsUse) {
  std::set<std::string_view> names(NotBuilt().begin(), NotBuilt().end());
  for (const InstructionRow& row : AllRows()) names.insert(row.name);
  EXPECT_EQ(names.size(), NotBuilt().size() + AllRows().size());
  // NKI's dma_copy has two rows: the second reads places from memory.
  names.erase(RowOf(Opcode::kDmaCopyIndirect).name);
  // Collectives are of nki.collectives.
  std::erase_if(names, [](std::string_view name) {
    const InstructionRow* row = RowByName(name);
    return row != nullptr && IsCollective(row->opcode);
  });
  EXPECT_EQ(names.size(), 35U);
}

TEST(InstructionTest, AnInstructionOfNkiIsNotBuiltYetAndAnyOtherNameUnknown) {
  const absl::Status later = ParseOpcode(NotBuilt().front()).status();
  EXPECT_EQ(later.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(Message(later), testing::HasSubstr(" is not built yet; there are dma_copy, nc_m"));
  const absl::Status unknown = ParseOpcode("activate").status();
  EXPECT_EQ(unknown.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Message(unknown),
              testing::StartsWith(
                  "unknown instruction \"activate\"; expected one of dma_copy, nc_matmul, "));
}

template <typename Values>
std::string Listed(const Values& values) {
  std::string text;
  for (const auto& value : values)
    text += fmt::format("{}{}", text.empty() ? "" : ", ", Name(value));
  return text;
}

std::string_view Remark(const OperandRow& operand) {
  if (operand.optional) return operand.written ? " (written, optional)" : " (optional)";
  return operand.written ? " (written)" : "";
}

TEST(InstructionTest, ThePageHasTheRows) {
  std::ifstream file("docs/formats/program.md");
  const std::string page(std::istreambuf_iterator<char>(file), {});
  constexpr std::size_t kTypes = 13;
  for (const InstructionRow& row : AllRows()) {
    for (const OperandRow& operand : row.operands) {
      EXPECT_THAT(
          page, testing::HasSubstr(fmt::format(
                    "\n| `{}` | {} | `{}`{} | {} | {} | {} | {} |\n", row.name, Listed(row.engines),
                    operand.name, Remark(operand), Listed(operand.memories),
                    operand.types.size() == kTypes ? "any" : Listed(operand.types),
                    operand.most_partitions,
                    operand.most_elements == 0 ? "what the memory has"
                                               : std::to_string(operand.most_elements))));
    }
  }
}

TEST(InstructionTest, OnlyDmaAndCollectivesAreAsynchronous) {
  EXPECT_TRUE(IsDma(Opcode::kDmaCopy));
  EXPECT_TRUE(IsDma(Opcode::kDmaTranspose));
  EXPECT_TRUE(IsDma(Opcode::kDmaCompute));
  EXPECT_FALSE(IsDma(Opcode::kMatmul));
  EXPECT_FALSE(IsDma(Opcode::kTensorCopy));
  EXPECT_FALSE(IsDma(Opcode::kAllReduce));
  EXPECT_TRUE(IsCollective(Opcode::kAllReduce));
  EXPECT_FALSE(IsCollective(Opcode::kSendRecv));
  for (const InstructionRow& row : AllRows()) {
    EXPECT_EQ(IsAsynchronous(row.opcode), IsDma(row.opcode) || IsCollective(row.opcode));
  }
}

}  // namespace
}  // namespace tahoma::isa
