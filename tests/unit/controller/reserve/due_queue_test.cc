// DueQueue finds the first due in the order of a set of all dues and ids, at every look.

#include "controller/reserve/due_queue.h"

#include <gtest/gtest.h>

#include <chrono>
#include <set>
#include <string>
#include <utility>

#include "lib/base/rng.h"

namespace tahoma::controller {
namespace {

TEST(DueQueueTest, TheOrderIsThatOfASet) {
  Rng rng(1);
  DueQueue dues;
  std::set<std::pair<Due, std::string>> oracle;
  for (int i = 0; i < 20'000; ++i) {
    const Due due{WallTime(std::chrono::hours(rng.Below(20))),
                  rng.Chance(1, 2) ? DueKind::kBind : DueKind::kWarn};
    const std::string id = std::to_string(rng.Below(100));
    if (oracle.contains({due, id})) {
      dues.Remove(due, id);
      oracle.erase({due, id});
    } else {
      dues.Add(due, id);
      oracle.emplace(due, id);
    }
    ASSERT_EQ(dues.empty(), oracle.empty());
    if (oracle.empty()) continue;
    ASSERT_EQ(dues.FirstDue(), oracle.begin()->first);
    if (rng.Chance(1, 3)) {
      ASSERT_EQ(dues.First(), *oracle.begin());
      ASSERT_EQ(dues.Has(due, id), oracle.contains({due, id}));
    }
  }
}

}  // namespace
}  // namespace tahoma::controller
