#include "lib/wire/room.h"

#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <thread>

#include "lib/base/status.h"

namespace tahoma::wire {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

CondVar::Deadline AtOnce() { return CondVar::In(milliseconds(0)); }

TEST(RoomTest, BothTheSumAndTheShareAreBounded) {
  Room room({.bytes = 10, .bytes_per_caller = 6});
  auto first = room.Acquire("a", 5, AtOnce());
  ASSERT_TRUE(first.ok());
  EXPECT_TRUE(absl::IsResourceExhausted(room.Acquire("a", 2, AtOnce()).status())) << "its share";
  const auto second = room.Acquire("b", 4, AtOnce());
  EXPECT_TRUE(second.ok());
  EXPECT_EQ(
      Message(room.Acquire("c", 2, AtOnce()).status()),
      "there is no room for the 2 bytes of the call and its reply: the calls that run hold 9");
  EXPECT_EQ(Message(room.Acquire("c", 7, AtOnce()).status()),
            "the call and its reply take 7 bytes; at most 6 are allowed");
  *first = Room::Hold();
  EXPECT_TRUE(room.Acquire("a", 6, AtOnce()).ok()) << "the first gave its bytes back";
}

TEST(RoomTest, WhoFindsNoneWaitsUntilSomeIsGivenBack) {
  Room room({.bytes = 4, .bytes_per_caller = 4});
  std::optional<Room::Hold> held = *room.Acquire("a", 4, AtOnce());
  std::atomic<bool> served = false;
  std::thread waiter([&] {
    EXPECT_TRUE(room.Acquire("b", 1, CondVar::In(seconds(20))).ok());
    served = true;
  });
  std::this_thread::yield();
  EXPECT_FALSE(served);
  held.reset();
  waiter.join();
}

TEST(RoomTest, CloseEndsAllWaits) {
  Room room({.bytes = 4, .bytes_per_caller = 4});
  const auto held = room.Acquire("a", 4, AtOnce());
  std::thread waiter([&] {
    EXPECT_TRUE(absl::IsUnavailable(room.Acquire("b", 1, CondVar::In(seconds(20))).status()));
  });
  room.Close();
  waiter.join();
  EXPECT_TRUE(absl::IsUnavailable(room.Acquire("b", 1, AtOnce()).status()));
}

}  // namespace
}  // namespace tahoma::wire
