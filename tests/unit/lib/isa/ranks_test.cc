// Groups of ranks against their definition, and each limit of a collective by its message.

#include "lib/isa/ranks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

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

constexpr std::string_view kBuffers = R"(tensor a fp32 [64, 32]
tensor b fp32 [64, 32]
tensor c fp32 [64, 128]
tensor x fp32 [4, 32] @ 65536
tensor y fp32 [4, 32] @ 65540
tensor i int32 [64, 32]
tensor j int32 [64, 32]
tensor h bf16 [64, 32] in
sbuf s fp32 [64, 32]
)";

Program Parsed(std::string_view lines) {
  const auto program = ParseText(std::string(kBuffers) + std::string(lines), "test");
  EXPECT_TRUE(program.ok()) << program.status();
  return *program;
}

std::string Said(const absl::Status& status) {
  if (status.ok()) return "OK";
  std::string message(Message(status));
  return message.substr(message.find(": ") + 2);
}

std::string Answer(std::string_view line) { return Said(CheckProgram(Parsed(line))); }

std::string AnswerOf(int ranks, std::string_view line) {
  const Program program = Parsed(line);
  EXPECT_EQ(Said(CheckProgram(program)), "OK");
  return Said(CheckRanks(program, ranks));
}

TEST(RanksTest, GroupsAreOfRanksThatAreOneStrideApartAndEachRankIsInOne) {
  for (int ranks = 1; ranks <= 48; ++ranks) {
    for (std::int64_t size = 1; size <= ranks; ++size) {
      for (std::int64_t stride = 1; size * stride <= ranks; ++stride) {
        const Instruction collective = {.opcode = Opcode::kAllReduce, .numbers = {size, stride}};
        if (ranks % (size * stride) != 0) continue;
        std::map<int, int> times;  // that a rank is in a group
        for (int rank = 0; rank < ranks; ++rank) {
          const std::vector<int> group = GroupOf(collective, rank, ranks);
          ASSERT_EQ(group.size(), static_cast<std::size_t>(size));
          EXPECT_THAT(group, testing::Contains(rank));
          for (std::size_t at = 1; at < group.size(); ++at) {
            EXPECT_EQ(group[at] - group[at - 1], stride);
          }
          if (group.front() != rank) continue;
          for (const int member : group) {
            ++times[member];
            EXPECT_EQ(GroupOf(collective, member, ranks), group);
          }
        }
        EXPECT_EQ(times.size(), static_cast<std::size_t>(ranks));
        for (const auto& [rank, count] : times) EXPECT_EQ(count, 1) << rank;
      }
    }
  }
}

TEST(RanksTest, WithoutNumbersAllRanksAreAGroupAndWithoutAStrideNeighbours) {
  Instruction collective = {.opcode = Opcode::kAllGather};
  EXPECT_THAT(GroupOf(collective, 2, 4), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(GroupOf(collective, 0, 1), ElementsAre(0));
  collective.numbers = {2};
  EXPECT_THAT(GroupOf(collective, 2, 4), ElementsAre(2, 3));
}

TEST(RanksTest, ACollectiveIsOfRunsOfOneTypeInHbm) {
  for (const std::string_view line :
       {"all_reduce a <- b", "all_reduce a <- b op=maximum ranks=4,2 engine=tensor",
        "all_gather c <- a", "all_gather i[0:4] <- j[9]", "reduce_scatter a <- c op=minimum",
        "all_to_all i <- j ranks=2", "all_reduce a <- a", "all_reduce a[3:5] <- a[5:7]",
        "all_to_all a[0, 0:8] <- a[0, 8:16] engine=sync",
        "all_reduce a.ap(rows=2x1024, free=32x32 32x1) <- b"}) {
    EXPECT_EQ(Answer(line), "OK") << line;
  }
  const std::string run = " has elements that do not lie side by side; expected one run of them";
  EXPECT_EQ(Answer("all_reduce a[:, 0:16] <- b[:, 0:16]"), "all_reduce: dst" + run);
  EXPECT_EQ(Answer("all_gather a <- b.ap(rows=32x64, free=32x1)"), "all_gather: src" + run);
  EXPECT_EQ(Answer("all_gather a <- b.ap(rows=1x1, free=32x0)"), "all_gather: src" + run);
  EXPECT_EQ(Answer("all_to_all a <- b.ap(offset=31, rows=1x1, free=32x-1)"),
            "all_to_all: src" + run);
  EXPECT_EQ(Answer("all_gather a <- i"),
            "all_gather: dst is fp32 and src int32; expected one type");
  EXPECT_EQ(Answer("all_reduce i <- j"),
            "all_reduce: dst is i of type int32; expected fp16, bf16 or fp32");
  EXPECT_EQ(Answer("all_reduce a <- s"), "all_reduce: src is s, which is in sbuf; expected hbm");
  EXPECT_EQ(Answer("all_reduce h <- h"),
            "all_reduce: dst is h, an input; a program writes outputs and internal buffers only");
}

TEST(RanksTest, OnlyAnAllReduceMayWriteItsOwnSource) {
  EXPECT_EQ(Answer("all_reduce a[0:4] <- a[3:7]"),
            "all_reduce: dst and src share bytes; expected places apart, or one place");
  EXPECT_EQ(Answer("all_reduce x <- y"),
            "all_reduce: dst and src share bytes; expected places apart, or one place");
  for (const std::string line : {"all_gather a <- a[3:4]", "reduce_scatter a[2:3] <- a",
                                 "all_to_all a <- a", "all_to_all x <- y"}) {
    EXPECT_EQ(Answer(line),
              line.substr(0, line.find(' ')) + ": dst and src share bytes; expected places apart");
  }
}

TEST(RanksTest, OptionsOfACollectiveAreBounded) {
  EXPECT_EQ(Answer("all_reduce a <- b op=multiply"),
            "all_reduce: op multiply; expected add, maximum or minimum");
  for (const std::string_view ranks : {"0", "129", "-2", "2,0", "2,129"}) {
    EXPECT_EQ(Answer("all_reduce a <- b ranks=" + std::string(ranks)),
              "all_reduce: ranks= has a number that is not 1 to 128; expected the ranks of a group "
              "and how far apart they are");
  }
}

TEST(RanksTest, GroupsDivideTheRanksOfTheRun) {
  EXPECT_EQ(AnswerOf(1, "all_reduce a <- b"), "OK");
  EXPECT_EQ(AnswerOf(1, "all_to_all a <- b"), "OK");
  EXPECT_EQ(AnswerOf(128, "all_reduce a <- b ranks=16,8"), "OK");
  EXPECT_EQ(AnswerOf(8, "all_reduce a <- b ranks=2,4"), "OK");
  EXPECT_EQ(AnswerOf(8, "all_reduce a <- b ranks=4,4"),
            "all_reduce: groups of 4 ranks, 4 apart, in a run of 8; expected groups that 8 ranks "
            "can be divided into");
  EXPECT_EQ(AnswerOf(6, "all_reduce a <- b ranks=4"),
            "all_reduce: groups of 4 ranks, 1 apart, in a run of 6; expected groups that 6 ranks "
            "can be divided into");
  EXPECT_EQ(AnswerOf(2, "dma_copy a <- b"), "OK");
}

TEST(RanksTest, OperandsHaveTheElementsOfTheirGroup) {
  EXPECT_EQ(AnswerOf(4, "all_gather c <- a"), "OK");
  EXPECT_EQ(AnswerOf(4, "reduce_scatter a <- c"), "OK");
  EXPECT_EQ(AnswerOf(8, "all_gather c <- a ranks=4,2"), "OK");
  EXPECT_EQ(AnswerOf(8, "all_gather c <- a"),
            "all_gather: dst has 8192 elements and src 2048 in groups of 8 ranks; expected in dst "
            "those of src for each rank");
  EXPECT_EQ(AnswerOf(2, "all_gather c <- a"),
            "all_gather: dst has 8192 elements and src 2048 in groups of 2 ranks; expected in dst "
            "those of src for each rank");
  EXPECT_EQ(AnswerOf(2, "reduce_scatter a <- c"),
            "reduce_scatter: dst has 2048 elements and src 8192 in groups of 2 ranks; expected in "
            "src those of dst for each rank");
  EXPECT_EQ(AnswerOf(4, "reduce_scatter a[0, 0:4] <- c[0, 0:18]"),
            "reduce_scatter: dst has 4 elements and src 18 in groups of 4 ranks; expected in src "
            "those of dst for each rank");
  EXPECT_EQ(AnswerOf(3, "all_to_all a[0, 0:8] <- b[0, 0:8]"),
            "all_to_all: dst has 8 elements and src 8 in groups of 3 ranks; expected as many, as "
            "often as there are ranks in a group");
  EXPECT_EQ(AnswerOf(4, "all_to_all a[0, 0:8] <- b[0, 0:4]"),
            "all_to_all: dst has 8 elements and src 4 in groups of 4 ranks; expected as many, as "
            "often as there are ranks in a group");
  EXPECT_EQ(AnswerOf(4, "all_reduce a[0, 0:8] <- b[0, 0:4]"),
            "all_reduce: dst has 8 elements and src 4 in groups of 4 ranks; expected as many");
}

TEST(RanksTest, TheLineOfACollectiveThatDoesNotFitIsNamed) {
  const absl::Status status =
      CheckRanks(Parsed("all_reduce a <- b\nall_gather c <- a ranks=4\n"), 8);
  EXPECT_TRUE(status.ok()) << status;
  const absl::Status wrong =
      CheckRanks(Parsed("all_reduce a <- b\nall_gather c <- a ranks=8\n"), 8);
  EXPECT_EQ(wrong.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Message(wrong), HasSubstr("line 11: all_gather: dst has 8192 elements"));
}

TEST(RanksTest, AnEngineGoesOnWhileOthersWaitForItsCollective) {
  const auto assembled =
      Assemble(Parsed("dma_copy a <- s\n"
                      "all_reduce b <- a\n"
                      "dma_copy a <- s engine=gpsimd\n"
                      "dma_copy s <- b engine=gpsimd\n"
                      "all_reduce x <- x\n"
                      "all_reduce c[0:4] <- c[0:4] ranks=2\n"));
  ASSERT_TRUE(assembled.ok()) << assembled.status();
  EXPECT_THAT(assembled->waits, ElementsAre(IsEmpty(), ElementsAre(0), ElementsAre(1),
                                            ElementsAre(2), IsEmpty(), IsEmpty()));
}

TEST(RanksTest, TextAndBinaryFormKeepGroupsAndOperators) {
  const Program program = Parsed(
      "all_reduce a <- b op=minimum ranks=4,2 engine=scalar\n"
      "all_gather c <- a ranks=4\n"
      "reduce_scatter a <- c\n"
      "all_to_all i <- j\n");
  const std::string text = FormatText(program);
  EXPECT_THAT(text, HasSubstr("all_reduce a <- b op=minimum ranks=4,2 engine=scalar\n"
                              "all_gather c <- a ranks=4\n"
                              "reduce_scatter a <- c op=add\n"
                              "all_to_all i <- j\n"));
  EXPECT_EQ(*ParseText(text, "test"), program);
  EXPECT_EQ(*Decode(Encode(program)), program);
  EXPECT_EQ(Said(ParseText("tensor a fp32 [1]\nall_to_all a <- a ranks=1,2,3", "t").status()),
            "expected at most 2 numbers");
}

}  // namespace
}  // namespace tahoma::isa
