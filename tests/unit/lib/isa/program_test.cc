// Views of whole buffers, and sizes.

#include "lib/isa/program.h"

#include <gtest/gtest.h>

#include "lib/isa/slice.h"

namespace tahoma::isa {
namespace {

TEST(ProgramTest, AWholeMatrixInHbmIsRowsOfItsLastDimension) {
  Program program;
  const BufferId a = program.Add({.name = "a", .shape = {128, 512}});
  EXPECT_EQ(program.Whole(a), (View{.buffer = a,
                                    .rows = {.stride = 512, .count = 128},
                                    .free = {{.stride = 1, .count = 512}}}));
}

TEST(ProgramTest, AVectorIsOneRowInHbmAndOneElementAPartitionInSbuf) {
  Program program;
  const BufferId a = program.Add({.name = "a", .shape = {64}});
  const BufferId b = program.Add({.name = "b", .memory = Memory::kSbuf, .shape = {64}});
  EXPECT_EQ(program.Whole(a), (View{.buffer = a, .free = {{.stride = 1, .count = 64}}}));
  EXPECT_EQ(program.Whole(b),
            (View{.buffer = b, .rows = {.count = 64}, .free = {{.stride = 1, .count = 1}}}));
}

TEST(ProgramTest, APartOfFourDimensionsJoinsThoseThatAreContiguous) {
  const Buffer buffer = {.name = "a", .memory = Memory::kSbuf, .shape = {128, 4, 8, 16}};
  const std::vector<Range> ranges = {{.begin = 32, .end = 64}, {.begin = 1, .end = 3}};
  EXPECT_EQ(Slice(buffer, {}, ranges), (View{.partition = 32,
                                             .offset = 128,
                                             .rows = {.count = 32},
                                             .free = {{.stride = 1, .count = 256}}}));
  const std::vector<Range> inner = {
      {.end = 128}, {.end = 4}, {.begin = 2, .end = 4}, {.begin = 0, .end = 8}};
  EXPECT_EQ(
      Slice(buffer, {}, inner),
      (View{.offset = 32,
            .rows = {.count = 128},
            .free = {{.stride = 128, .count = 4}, {.stride = 16, .count = 2}, {.count = 8}}}));
}

TEST(ProgramTest, AnIndexDropsItsDimension) {
  const Buffer buffer = {.name = "a", .shape = {4, 128, 512}};
  const std::vector<Range> ranges = {{.begin = 2, .end = 3, .index = true}};
  EXPECT_EQ(Slice(buffer, {}, ranges), (View{.offset = 2 * 128 * 512,
                                             .rows = {.stride = 512, .count = 128},
                                             .free = {{.stride = 1, .count = 512}}}));
}

TEST(ProgramTest, BytesAreAllInHbmAndAPartitionsInSbuf) {
  const Buffer hbm = {.name = "a", .type = ElementType::kBf16, .shape = {128, 512}};
  Buffer sbuf = hbm;
  sbuf.memory = Memory::kSbuf;
  EXPECT_EQ(BytesOf(hbm), 128 * 512 * 2);
  EXPECT_EQ(BytesOf(sbuf), 512 * 2);
  EXPECT_EQ(ElementsOf(sbuf), 128 * 512);
}

}  // namespace
}  // namespace tahoma::isa
