#include "sim-node/emulator/core/core_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

#include "lib/base/rng.h"
#include "lib/base/status.h"

namespace tahoma::sim {
namespace {

using isa::Memory;

std::vector<std::byte> RandomBytes(Rng& rng, std::size_t count) {
  std::vector<std::byte> bytes(count);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(rng.Next());
  return bytes;
}

TEST(CoreMemoryTest, BytesAreReadAsTheyWereWrittenAndNoOthers) {
  Rng rng(1);
  CoreMemory memory;
  std::map<std::tuple<Memory, int, std::int64_t>, std::byte> written;
  int refused = 0;
  for (int i = 0; i < 4000; ++i) {
    const Memory where = rng.Chance(1, 2) ? Memory::kSbuf : Memory::kPsum;
    const int partition = rng.Chance(1, 2) ? 0 : 127;
    // Around the seams of pages and words.
    const std::int64_t page =
        where == Memory::kSbuf ? 16384 * static_cast<std::int64_t>(1 + rng.Below(13)) : 8192;
    const std::int64_t offset = page - 200 + static_cast<std::int64_t>(rng.Below(300));
    const std::size_t bytes = rng.Below(100);
    if (rng.Chance(1, 3)) {
      const std::vector<std::byte> from = RandomBytes(rng, bytes);
      memory.Write(where, partition, offset, from);
      for (std::size_t at = 0; at < bytes; ++at) {
        written[{where, partition, offset + static_cast<std::int64_t>(at)}] = from[at];
      }
      continue;
    }
    if (rng.Chance(1, 8)) {
      memory.Forget(where, partition, offset, bytes);
      for (std::size_t at = 0; at < bytes; ++at) {
        written.erase({where, partition, offset + static_cast<std::int64_t>(at)});
      }
      continue;
    }
    std::vector<std::byte> found(bytes);
    const absl::Status status = memory.Read(where, partition, offset, found);
    std::vector<std::byte> expected;
    while (expected.size() < bytes) {
      const auto at =
          written.find({where, partition, offset + static_cast<std::int64_t>(expected.size())});
      if (at == written.end()) break;
      expected.push_back(at->second);
    }
    std::vector<std::byte> before(bytes);
    ASSERT_EQ(memory.ReadWritten(where, partition, offset, before), expected.size());
    ASSERT_TRUE(std::equal(expected.begin(), expected.end(), before.begin()));
    if (expected.size() == bytes) {
      ASSERT_TRUE(status.ok()) << status;
      ASSERT_EQ(found, expected);
      continue;
    }
    ++refused;
    ASSERT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    ASSERT_EQ(Message(status),
              fmt::format("{} partition {} byte {} is read, and nothing has written it",
                          where == Memory::kSbuf ? "sbuf" : "psum", partition,
                          offset + static_cast<std::int64_t>(expected.size())));
  }
  EXPECT_GT(refused, 100);
  EXPECT_LT(refused, 2400);
}

TEST(CoreMemoryTest, TheLastByteOfEachMemoryIsThere) {
  CoreMemory memory;
  const std::vector<std::byte> one = {std::byte{7}};
  for (const auto& [where, last] :
       {std::pair{Memory::kSbuf, isa::kSbufBytes - 1}, {Memory::kPsum, isa::kPsumBytes - 1}}) {
    memory.Write(where, 127, last, one);
    std::vector<std::byte> found(1);
    ASSERT_TRUE(memory.Read(where, 127, last, found).ok());
    EXPECT_EQ(found, one);
  }
}

TEST(CoreMemoryTest, PartitionsAndMemoriesAreApart) {
  CoreMemory memory;
  memory.Write(Memory::kSbuf, 3, 64, std::vector<std::byte>(8));
  std::vector<std::byte> found(8);
  EXPECT_TRUE(memory.Read(Memory::kSbuf, 3, 64, found).ok());
  EXPECT_FALSE(memory.Read(Memory::kSbuf, 2, 64, found).ok());
  EXPECT_FALSE(memory.Read(Memory::kSbuf, 4, 64, found).ok());
  EXPECT_FALSE(memory.Read(Memory::kPsum, 3, 64, found).ok());
}

TEST(CoreMemoryTest, OnlyWrittenPagesTakeMemory) {
  CoreMemory memory;
  EXPECT_EQ(memory.resident_bytes(), 0U);
  std::vector<std::byte> bytes(4);
  EXPECT_FALSE(memory.Read(Memory::kSbuf, 0, 0, bytes).ok());
  memory.Forget(Memory::kSbuf, 0, 0, bytes.size());
  EXPECT_EQ(memory.resident_bytes(), 0U);
  memory.Write(Memory::kSbuf, 0, 0, bytes);
  const std::uint64_t page = memory.resident_bytes();
  EXPECT_GT(page, 0U);
  EXPECT_LE(page, 64U << 10U);
  memory.Write(Memory::kSbuf, 0, 4, bytes);
  EXPECT_EQ(memory.resident_bytes(), page);
  memory.Write(Memory::kPsum, 0, 0, bytes);
  EXPECT_EQ(memory.resident_bytes(), 2 * page);
}

TEST(CoreMemoryDeathTest, APlaceThatNoCoreHasIsAMistakeOfOurs) {
  CoreMemory memory;
  std::vector<std::byte> bytes(2);
  EXPECT_DEATH(memory.Write(Memory::kSbuf, 128, 0, bytes), "CHECK");
  EXPECT_DEATH(memory.Write(Memory::kPsum, 0, isa::kPsumBytes - 1, bytes), "CHECK");
  EXPECT_DEATH(memory.Write(Memory::kHbm, 0, 0, bytes), "CHECK");
}

}  // namespace
}  // namespace tahoma::sim
