// Who shares an HBM stack, by hand and against an oracle in small steps of time.

#include "sim-node/emulator/chip/hbm_stack.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "lib/base/rng.h"

namespace tahoma::sim {
namespace {

constexpr std::uint64_t kRate = 1'000'000'000'000;  // a byte a picosecond

class HbmStackTest : public ::testing::Test {
 protected:
  std::function<void()> EndOf(std::int64_t& end) {
    return [this, &end] { end = queue_.now().time_since_epoch().count(); };
  }

  EventQueue queue_;
  HbmStack stack_{queue_, kRate};
};

TEST_F(HbmStackTest, MovesOfAPortFollowOneAnother) {
  const HbmStack::Port port = stack_.AddPort();
  std::int64_t first = 0, second = 0;
  stack_.Move(port, 1000, EndOf(first));
  stack_.Move(port, 500, EndOf(second));
  queue_.RunUntilIdle();
  EXPECT_EQ(first, 1000);
  EXPECT_EQ(second, 1500);
}

TEST_F(HbmStackTest, TwoPortsShareEvenlyUntilOneHasEnded) {
  std::int64_t first = 0, second = 0;
  stack_.Move(stack_.AddPort(), 1000, EndOf(first));
  stack_.Move(stack_.AddPort(), 3000, EndOf(second));
  queue_.RunUntilIdle();
  EXPECT_EQ(first, 2000);
  EXPECT_EQ(second, 4000);
}

TEST_F(HbmStackTest, WhatOneCannotTakeTheOthersGet) {
  std::int64_t slow = 0, fast = 0;
  stack_.Share(1000, kRate / 10, EndOf(slow));
  stack_.Move(stack_.AddPort(), 9000, EndOf(fast));
  queue_.RunUntilIdle();
  EXPECT_EQ(slow, 10'000);
  EXPECT_EQ(fast, 10'000);
}

TEST_F(HbmStackTest, AnEndMayBeginTheNext) {
  const HbmStack::Port port = stack_.AddPort();
  std::int64_t end = 0;
  stack_.Move(port, 100, [&] { stack_.Move(port, 50, EndOf(end)); });
  queue_.RunUntilIdle();
  EXPECT_EQ(end, 150);
}

struct Job {
  std::int64_t begin = 0;
  std::uint64_t bytes = 0;
  std::optional<std::size_t> port = std::nullopt;
  double most = 1;  // bytes a picosecond
  std::int64_t end = 0;
};

// Moves a picosecond's bytes after another's: each that moves gets an equal share of what is left
// by those that cannot take more.
std::vector<double> SlowEnds(std::vector<Job> jobs) {
  std::vector<double> ends(jobs.size(), -1);
  std::vector<double> left;
  for (const Job& job : jobs) left.push_back(static_cast<double>(job.bytes));
  for (std::int64_t now = 0; std::ranges::count(ends, -1) > 0; ++now) {
    std::vector<std::size_t> moving;
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      if (jobs[i].begin > now || left[i] <= 0) continue;
      // Jobs of a port are in the order in which they begin.
      const bool behind = std::ranges::any_of(moving, [&](std::size_t other) {
        return jobs[i].port && jobs[other].port == jobs[i].port;
      });
      if (!behind) moving.push_back(i);
    }
    std::ranges::sort(moving, {}, [&](std::size_t i) { return jobs[i].most; });
    double rate = 1;
    for (std::size_t place = 0; place < moving.size(); ++place) {
      const std::size_t i = moving[place];
      const double its = std::min(jobs[i].most, rate / static_cast<double>(moving.size() - place));
      rate -= its;
      left[i] -= its;
      if (left[i] <= 1e-6) ends[i] = static_cast<double>(now) + 1;
    }
  }
  return ends;
}

TEST_F(HbmStackTest, RandomMovesEndWhenSmallStepsSaySo) {
  Rng rng(0x5dc45);
  for (int round = 0; round < 30; ++round) {
    EventQueue queue;
    HbmStack stack(queue, kRate);
    const std::vector<HbmStack::Port> ports = {stack.AddPort(), stack.AddPort()};
    std::vector<Job> jobs(2 + rng.Below(6));
    std::int64_t begin = 0;
    for (Job& job : jobs) {
      job.begin = begin += static_cast<std::int64_t>(rng.Below(400));
      job.bytes = 200 + rng.Below(2000);
      if (rng.Below(2) == 0) {
        job.port = rng.Below(2);
      } else {
        job.most = static_cast<double>(1 + rng.Below(10)) / 8;
      }
      queue.Schedule(VirtualTime{VirtualDuration(job.begin)}, EventPriority::kStart, [&] {
        const auto done = [&] { job.end = queue.now().time_since_epoch().count(); };
        if (job.port) {
          stack.Move(ports[*job.port], job.bytes, done);
        } else {
          stack.Share(job.bytes, static_cast<std::uint64_t>(job.most * kRate), done);
        }
      });
    }
    queue.RunUntilIdle();
    const std::vector<double> slow = SlowEnds(jobs);
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      EXPECT_NEAR(static_cast<double>(jobs[i].end), slow[i], 10) << "round " << round << " " << i;
    }
  }
}

}  // namespace
}  // namespace tahoma::sim
