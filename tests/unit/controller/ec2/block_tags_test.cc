// Tags of Capacity Blocks, changed where everybody finds them: in their objects.

#include "controller/ec2/block_tags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "controller/reserve/refusal.h"
#include "lib/base/json.h"
#include "lib/base/status.h"

namespace tahoma::controller {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

// One CapacityBlock behind an API, with versions.
class BlockApi final : public kube::Transport {
 public:
  absl::StatusOr<kube::Response> Send(const kube::Request& request) override {
    if (before) before(request);
    if (away) return Unavailable("the API server is away");
    if (gone) return Answer(404, {{"kind", "Status"}, {"reason", "NotFound"}});
    if (request.method == "PATCH") {
      const Json patch = ParseJson(request.Text());
      if (patch["metadata"]["resourceVersion"] != block["metadata"]["resourceVersion"]) {
        return Answer(409, {{"kind", "Status"}, {"reason", "Conflict"}});
      }
      block.merge_patch(patch);
      Touch();
      ++patches;
    }
    return Answer(200, block);
  }
  absl::StatusOr<kube::Response> Stream(const kube::Request&, const kube::LineSink&,
                                        std::chrono::milliseconds) override {
    return Unavailable("no streams here");
  }
  void Touch() { block["metadata"]["resourceVersion"] = std::to_string(++version); }
  Tags tags() const {
    Tags tags;
    for (const auto& [key, value] : block["spec"]["tags"].items()) tags.emplace_back(key, value);
    return tags;
  }

  Json block = {{"metadata", {{"uid", "uid-1"}, {"resourceVersion", "1"}}},
                {"spec", {{"tags", {{"run", "7"}, {"team", "research"}}}}}};
  int version = 1;
  int patches = 0;
  bool away = false;
  bool gone = false;
  std::function<void(const kube::Request&)> before;

 private:
  static kube::Response Answer(int status, const Json& body) {
    return {.status = status, .headers = {}, .body = body.dump()};
  }
};

class BlockTagsTest : public ::testing::Test {
 protected:
  BlockTagsTest() {
    block.reservation = "cr-1";
    block.key = {"team-a", "pretrain"};
    block.uid = "uid-1";
  }
  // The core's view, which has heard of all changes.
  std::shared_ptr<const Snapshot> Take() {
    auto shown = std::make_shared<Block>(block);
    shown->tags = api.tags();
    auto snapshot = std::make_shared<Snapshot>();
    snapshot->block_list.Put(block.reservation, std::move(shown));
    ++looks;
    return snapshot;
  }

  BlockApi api;
  Block block;
  int looks = 0;
  BlockTags changes{api, [this] { return Take(); }};
};

TEST_F(BlockTagsTest, TagsAreSetAndRemovedInTheObject) {
  ASSERT_TRUE(changes.Change(block, {.set = {{"team", "serving"}, {"new", ""}}}).ok());
  EXPECT_THAT(api.tags(), ElementsAre(Pair("new", ""), Pair("run", "7"), Pair("team", "serving")));
  ASSERT_TRUE(changes.Change(block, {.remove = {{"run", "8"}, {"team", {}}}}).ok());
  EXPECT_THAT(api.tags(), ElementsAre(Pair("new", ""), Pair("run", "7"))) << "run is not 8";
  ASSERT_TRUE(changes.Change(block, {.remove_all = true}).ok());
  EXPECT_THAT(api.tags(), IsEmpty());
}

TEST_F(BlockTagsTest, AWriteOfAnotherClientInBetweenIsKept) {
  bool raced = false;
  api.before = [&](const kube::Request& request) {
    if (request.method != "PATCH" || std::exchange(raced, true)) return;
    api.block["spec"]["tags"]["other"] = "1";
    api.Touch();
  };
  ASSERT_TRUE(changes.Change(block, {.set = {{"team", "serving"}}}).ok());
  EXPECT_THAT(api.tags(),
              ElementsAre(Pair("other", "1"), Pair("run", "7"), Pair("team", "serving")));
}

TEST_F(BlockTagsTest, MoreThanFiftyAreRefused) {
  ec2::TagChange change;
  for (int i = 0; i < 49; ++i) change.set.push_back({.key = "k" + std::to_string(i), .value = ""});
  EXPECT_EQ(Ec2CodeOf(changes.Change(block, change)), "TagLimitExceeded");
  EXPECT_EQ(api.patches, 0);
}

TEST_F(BlockTagsTest, AnotherObjectOfTheNameIsNotTouched) {
  block.uid = "uid-0";
  EXPECT_EQ(Ec2CodeOf(changes.Change(block, {.remove_all = true})),
            "InvalidCapacityReservationId.NotFound");
  api.gone = true;
  EXPECT_EQ(Ec2CodeOf(changes.Change(block, {.remove_all = true})),
            "InvalidCapacityReservationId.NotFound");
  EXPECT_EQ(api.patches, 0);
}

TEST_F(BlockTagsTest, AnApiThatIsAwayIsToldSo) {
  api.away = true;
  EXPECT_TRUE(absl::IsUnavailable(changes.Change(block, {.remove_all = true})));
}

TEST_F(BlockTagsTest, AnAnswerWaitsUntilTheCoreShowsTheChange) {
  // The core hears of it at the third look.
  BlockTags slow(api, [this]() -> std::shared_ptr<const Snapshot> {
    if (looks < 2) {
      ++looks;
      return nullptr;
    }
    return Take();
  });
  ASSERT_TRUE(slow.Change(block, {.set = {{"team", "serving"}}}).ok());
  EXPECT_EQ(looks, 3);
}

}  // namespace
}  // namespace tahoma::controller
