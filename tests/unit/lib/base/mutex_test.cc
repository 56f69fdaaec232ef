#include "lib/base/mutex.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace tahoma {
namespace {

constexpr std::chrono::seconds kLong{60};

// The example of the header.
class Mailbox {
 public:
  void Put(std::string letter) {
    const MutexLock lock(mutex_);
    letters_.push_back(std::move(letter));
    changed_.NotifyOne();
  }
  std::string Pop() {
    const MutexLock lock(mutex_);
    while (letters_.empty()) changed_.Wait(mutex_);
    return PopFirst();
  }
  // Empty when none has come.
  std::string PopWithin(std::chrono::nanoseconds timeout) {
    const auto deadline = CondVar::In(timeout);
    const MutexLock lock(mutex_);
    while (letters_.empty() && changed_.WaitUntil(mutex_, deadline)) {
    }
    return letters_.empty() ? "" : PopFirst();
  }

 private:
  std::string PopFirst() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    std::string first = std::move(letters_.front());
    letters_.erase(letters_.begin());
    return first;
  }

  Mutex mutex_;
  CondVar changed_;
  std::vector<std::string> letters_ ABSL_GUARDED_BY(mutex_);
};

struct Counted {
  Mutex mutex;
  int count ABSL_GUARDED_BY(mutex) = 0;
};

TEST(MutexTest, AdditionsUnderTheLockAreNotLost) {
  constexpr int kThreads = 4;
  constexpr int kEach = 20'000;
  Counted counted;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int j = 0; j < kEach; ++j) {
        const MutexLock lock(counted.mutex);
        ++counted.count;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const MutexLock lock(counted.mutex);
  EXPECT_EQ(counted.count, kThreads * kEach);
}

TEST(MutexTest, AnUnlockedMutexLockLetsAnotherThreadLock) {
  Counted counted;
  MutexLock lock(counted.mutex);
  lock.Unlock();
  std::thread([&] {
    const MutexLock other(counted.mutex);
    counted.count = 1;
  }).join();
  lock.Lock();
  EXPECT_EQ(counted.count, 1);
}

TEST(MutexTest, AnUnlockedMutexLockIsNotReleasedAgainAtItsEnd) {
  Counted counted;
  {
    MutexLock lock(counted.mutex);
    lock.Unlock();
  }
  const MutexLock lock(counted.mutex);
  counted.count = 1;
}

TEST(CondVarTest, AWaitEndsWithTheNotification) {
  Mailbox mailbox;
  std::string taken;
  std::thread reader([&] { taken = mailbox.Pop(); });
  mailbox.Put("a");
  reader.join();
  EXPECT_EQ(taken, "a");
}

TEST(CondVarTest, AWaitWithADeadlineEndsWithTheNotification) {
  Mailbox mailbox;
  std::string taken;
  std::thread reader([&] { taken = mailbox.PopWithin(kLong); });
  mailbox.Put("a");
  reader.join();
  EXPECT_EQ(taken, "a");
}

TEST(CondVarTest, AWaitEndsWithItsDeadline) {
  EXPECT_EQ(Mailbox().PopWithin(std::chrono::milliseconds(1)), "");
}

TEST(CondVarTest, ADeadlineInThePastStillLooks) {
  Mailbox mailbox;
  mailbox.Put("a");
  EXPECT_EQ(mailbox.PopWithin(-kLong), "a");
  EXPECT_EQ(mailbox.PopWithin(-kLong), "");
}

TEST(CondVarTest, EveryoneIsWoken) {
  constexpr int kThreads = 4;
  Counted waiting;
  CondVar changed;
  bool open = false;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      const MutexLock lock(waiting.mutex);
      while (!open) changed.Wait(waiting.mutex);
      ++waiting.count;
    });
  }
  {
    const MutexLock lock(waiting.mutex);
    open = true;
    changed.NotifyAll();
  }
  for (std::thread& thread : threads) thread.join();
  const MutexLock lock(waiting.mutex);
  EXPECT_EQ(waiting.count, kThreads);
}

}  // namespace
}  // namespace tahoma
