// Projections: what is written of objects that show the controller's knowledge, and that everything
// that somebody else did to them is put right.

#include "controller/publish/projection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "lib/base/json.h"
#include "lib/base/rng.h"

namespace tahoma::controller {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

const kube::ObjectKey kOne{"", "us-0"};

TEST(ProjectionTest, NothingIsWrittenBeforeTheListIsComplete) {
  Projection projection;
  projection.Want(kOne, {{"a", 1}});
  EXPECT_THAT(projection.PopDue(10), IsEmpty());
  projection.OnSeen(kOne, {{"a", 1}});
  projection.OnListed();
  EXPECT_THAT(projection.PopDue(10), IsEmpty());  // it is as it should be
}

TEST(ProjectionTest, AnObjectIsMadeReplacedAndDeleted) {
  Projection projection;
  projection.OnListed();
  projection.Want(kOne, {{"a", 1}, {"b", nullptr}});
  auto writes = projection.PopDue(10);
  ASSERT_THAT(writes, SizeIs(1));
  EXPECT_EQ(writes[0].kind, Projection::Kind::kCreate);
  EXPECT_EQ(writes[0].content, R"({"a":1})");
  projection.Want(kOne, {{"a", 2}});
  EXPECT_THAT(projection.PopDue(10), IsEmpty());  // the first is under way
  projection.OnAnswer(kOne, true);
  writes = projection.PopDue(10);
  ASSERT_THAT(writes, SizeIs(1));
  EXPECT_EQ(writes[0].kind, Projection::Kind::kReplace);
  EXPECT_EQ(writes[0].before, R"({"a":1})");
  projection.OnAnswer(kOne, true);
  EXPECT_THAT(projection.PopDue(10), IsEmpty());
  projection.Unwant(kOne);
  writes = projection.PopDue(10);
  ASSERT_THAT(writes, SizeIs(1));
  EXPECT_EQ(writes[0].kind, Projection::Kind::kDelete);
  projection.OnAnswer(kOne, true);
  EXPECT_THAT(projection.PopDue(10), IsEmpty());
}

TEST(ProjectionTest, AnEditIsPutRightAndAStrangerIsRemoved) {
  Projection projection;
  projection.Want(kOne, {{"a", 1}});
  projection.OnSeen(kOne, {{"a", 1}});
  projection.OnSeen({"", "stranger"}, {{"a", 1}});
  projection.OnListed();
  auto writes = projection.PopDue(10);
  ASSERT_THAT(writes, SizeIs(1));
  EXPECT_EQ(writes[0].kind, Projection::Kind::kDelete);
  EXPECT_EQ(writes[0].key.name, "stranger");
  projection.OnSeen(kOne, {{"a", 1}, {"note", "mine"}});
  writes = projection.PopDue(10);
  ASSERT_THAT(writes, SizeIs(1));
  EXPECT_EQ(writes[0].kind, Projection::Kind::kReplace);
  projection.OnAnswer(kOne, true);
  projection.OnGone(kOne);
  writes = projection.PopDue(10);
  ASSERT_THAT(writes, SizeIs(1));
  EXPECT_EQ(writes[0].kind, Projection::Kind::kCreate);
}

TEST(ProjectionTest, AFailureIsTriedAgainAfterTheOthers) {
  Projection projection;
  projection.OnListed();
  for (const char* name : {"a", "b", "c"}) projection.Want({"", name}, {{"x", 1}});
  const auto first = projection.PopDue(1);
  projection.OnAnswer(first[0].key, false);
  const auto rest = projection.PopDue(10);
  ASSERT_THAT(rest, SizeIs(3));
  EXPECT_EQ(rest[2].key.name, "a");
}

TEST(ProjectionTest, AnObjectThatChangesOftenIsWrittenWithItsNewestState) {
  Projection projection;
  projection.OnListed();
  for (int i = 0; i < 1000; ++i) projection.Want(kOne, {{"a", i}});
  const auto writes = projection.PopDue(10);
  ASSERT_THAT(writes, SizeIs(1));
  EXPECT_EQ(writes[0].content, R"({"a":999})");
}

// Whoever else writes, however late watches are and whatever fails: when all is quiet the API shows
// what is wanted.
TEST(ProjectionTest, InTheEndTheApiShowsWhatIsWanted) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    Projection projection;
    std::map<kube::ObjectKey, Json> wanted, api;
    std::vector<std::pair<kube::ObjectKey, std::optional<Json>>> watch;  // not seen yet
    const auto change = [&](const kube::ObjectKey& key, std::optional<Json> status) {
      if (status) api[key] = *status;
      if (!status) api.erase(key);
      watch.emplace_back(key, status);
    };
    const auto see = [&] {
      const auto [key, status] = watch.front();
      watch.erase(watch.begin());
      if (status) projection.OnSeen(key, *status);
      if (!status) projection.OnGone(key);
    };
    const auto write = [&](std::size_t most) {
      for (const Projection::Write& one : projection.PopDue(most)) {
        const bool lost = rng.Chance(1, 5), exists = api.contains(one.key);
        const bool fits = one.kind == Projection::Kind::kCreate ? !exists : exists;
        if (!lost && fits) {
          change(one.key, one.kind == Projection::Kind::kDelete
                              ? std::nullopt
                              : std::optional(ParseJson(one.content)));
        }
        projection.OnAnswer(one.key, !lost && fits);
      }
    };
    projection.OnListed();
    for (int step = 0; step < 200; ++step) {
      const kube::ObjectKey key{"", std::string(1, static_cast<char>('a' + rng.Below(4)))};
      const Json status = {{"n", rng.Below(3)}};
      switch (rng.Below(6)) {
        case 0:
          wanted[key] = status;
          projection.Want(key, status);
          break;
        case 1:
          wanted.erase(key);
          projection.Unwant(key);
          break;
        case 2:
          change(key, status);  // somebody
          break;
        case 3:
          if (api.contains(key)) change(key, std::nullopt);
          break;
        case 4:
          if (!watch.empty()) see();
          break;
        default:
          write(2);
      }
    }
    for (int round = 0; round < 200 && (projection.due() != 0 || !watch.empty()); ++round) {
      while (!watch.empty()) see();
      write(10);
    }
    EXPECT_EQ(api, wanted);
  }
}

}  // namespace
}  // namespace tahoma::controller
