#include "lib/rest/workers.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>

#include "lib/base/mutex.h"

namespace tahoma::rest {
namespace {

using std::chrono::milliseconds;

std::atomic<int> g_left = 0;

// Belongings of a thread, cleared slowly when the thread ends.
struct Belongings {
  ~Belongings() {
    for (int i = 0; i < 2000; ++i) std::this_thread::yield();
    ++g_left;
  }
  int used = 0;
};
thread_local Belongings t_belongings;

// Lets jobs run only when as many as are awaited run at once, each in a thread of its own.
class Gate {
 public:
  explicit Gate(int awaited) : missing_(awaited) {}
  void Pass() {
    const MutexLock lock(mutex_);
    --missing_;
    all_.NotifyAll();
    while (missing_ > 0) all_.Wait(mutex_);
  }

 private:
  Mutex mutex_;
  CondVar all_;
  int missing_ ABSL_GUARDED_BY(mutex_);
};

void RunTogether(Workers& workers, int count) {
  auto gate = std::make_shared<Gate>(count + 1);
  for (int i = 0; i < count; ++i) {
    ASSERT_TRUE(workers.Submit([gate] {
      ++t_belongings.used;
      gate->Pass();
    }));
  }
  gate->Pass();
}

TEST(WorkersTest, ThreadsHaveEndedWithAllThatIsTheirsWhenStopReturns) {
  g_left = 0;
  {
    Workers workers({.max_threads = 8});
    RunTogether(workers, 8);
    workers.Stop();
    EXPECT_EQ(g_left, 8);
    EXPECT_FALSE(workers.Submit([] {}));
  }
  EXPECT_EQ(g_left, 8);
}

TEST(WorkersTest, ThreadsThatEndForWantOfWorkAreWaitedForToo) {
  g_left = 0;
  {
    Workers workers({.max_threads = 4, .idle = milliseconds(1)});
    RunTogether(workers, 4);
    while (workers.threads() > 0) std::this_thread::yield();
    RunTogether(workers, 3);
  }
  EXPECT_EQ(g_left, 7);
}

}  // namespace
}  // namespace tahoma::rest
