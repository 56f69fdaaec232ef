// Queues as a tree of rows, and one queue with its gangs.

#include "controller/ctl/queue_tree.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "lib/base/json.h"
#include "lib/base/status.h"

namespace tahoma::controller {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Json Queue(const std::string& name, const std::string& parent = "") {
  Json queue = {{"metadata", {{"name", name}}}, {"spec", {{"weight", 1}}}};
  if (!parent.empty()) queue["spec"]["parent"] = parent;
  return queue;
}

// Returns the names with their indents, without the header.
std::string TreeOf(const std::vector<Json>& queues) {
  Json list = {{"items", queues}};
  std::string names, text = QueueTreeText(list, QueueColumns::kUsual);
  text.erase(0, text.find('\n') + 1);
  while (!text.empty()) {
    const std::string line = text.substr(0, text.find('\n'));
    names += line.substr(0, line.find(' ', line.find_first_not_of(' '))) + "\n";
    text.erase(0, line.size() + 1);
  }
  return names;
}

TEST(QueueTreeTest, EachQueueStandsBelowItsParentAndSiblingsByName) {
  EXPECT_EQ(TreeOf({Queue("serving", "fleet"), Queue("a"), Queue("fleet"),
                    Queue("nightly", "research"), Queue("research", "fleet")}),
            "a\n"
            "fleet\n"
            "  research\n"
            "    nightly\n"
            "  serving\n");
}

TEST(QueueTreeTest, AQueueOfNoTreeIsShownOnceAtTheTop) {
  EXPECT_EQ(
      TreeOf({Queue("lost", "none"), Queue("a", "b"), Queue("b", "a"), Queue("self", "self")}),
      "lost\n"
      "a\n"
      "  b\n"
      "self\n");
}

TEST(QueueTreeTest, AChainOfManyQueuesIsShownWhole) {
  std::vector<Json> queues = {Queue("q-00000")};
  for (int i = 1; i < 10'000; ++i) {
    queues.push_back(Queue(fmt::format("q-{:05}", i), fmt::format("q-{:05}", i - 1)));
  }
  const std::string text = QueueTreeText({{"items", queues}}, QueueColumns::kUsual);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 10'001);
}

TEST(QueueTreeTest, ARowHasTheNumbersOfTheObject) {
  Json queue = Queue("research", "fleet");
  queue["spec"].update({{"guaranteed", {{"trn2.48xlarge", 32}, {"trn2u.48xlarge", 16}}},
                        {"limit", {{"trn2.48xlarge", 64}}},
                        {"namespaces", {"a", "b"}}});
  queue["status"] = {{"sharePercent", 75},
                     {"usedSharePercent", 60},
                     {"heldChips", 40},
                     {"waiting", 3},
                     {"running", 2},
                     {"place", 1},
                     {"usedChipHours", 17},
                     {"held", Json::array({{{"instanceType", "trn2.48xlarge"}, {"chips", 40}}})},
                     {"conditions", Json::array({{{"type", "Ready"}, {"status", "True"}}})}};
  EXPECT_EQ(
      QueueTreeText({{"items", {queue}}}, QueueColumns::kWide),
      "NAME       WEIGHT   SHARE   USED   HELD   GUARANTEED   LIMIT   WAITING   RUNNING   NEXT"
      "   STATE   CHIP-HOURS   HELD-BY-TYPE       NAMESPACES   MESSAGE\n"
      "research   1        75%     60%    40     48           64      3         2         1   "
      "   Ready   17           trn2.48xlarge=40   a,b\n");
  queue["status"]["guaranteedChips"] = 7;
  EXPECT_THAT(QueueTreeText({{"items", {queue}}}, QueueColumns::kUsual),
              HasSubstr("40     7            64"))
      << "as a calendar has set it";
  queue["spec"]["stop"] = "Hold";
  EXPECT_THAT(QueueTreeText({{"items", {queue}}}, QueueColumns::kUsual), HasSubstr("Hold"));
  queue["status"]["conditions"][0] = {{"type", "Ready"},
                                      {"status", "False"},
                                      {"reason", "Circle"},
                                      {"message", "it is above itself"}};
  EXPECT_THAT(QueueTreeText({{"items", {queue}}}, QueueColumns::kWide),
              HasSubstr("it is above itself"));
  EXPECT_THAT(QueueTreeText({{"items", {queue}}}, QueueColumns::kUsual), HasSubstr("Circle"));
}

class AdminOfQueues final : public kube::Transport {
 public:
  absl::StatusOr<kube::Response> Send(const kube::Request& request) override {
    kube::Response response;
    const auto found = answers.find(request.target);
    response.status = found == answers.end() ? 404 : 200;
    response.body = (found == answers.end() ? Json{{"detail", "no queue"}} : found->second).dump();
    return response;
  }
  absl::StatusOr<kube::Response> Stream(const kube::Request&, const kube::LineSink&,
                                        std::chrono::milliseconds) override {
    return Unavailable("no watches here");
  }
  std::map<std::string, Json> answers;
};

TEST(QueueTreeTest, OneQueueShowsItsGangsInTheOrderOfService) {
  AdminOfQueues admin;
  admin.answers["/v1/queues/research"] = {{"name", "research"},
                                          {"object", true},
                                          {"parent", "fleet"},
                                          {"weight", 3},
                                          {"stop", "Hold"},
                                          {"reason", "Ready"},
                                          {"message", ""},
                                          {"waiting", 1},
                                          {"running", 2},
                                          {"guaranteed", {{"trn2.48xlarge", 32}}},
                                          {"limit", {{"trn2.48xlarge", 64}}},
                                          {"period", "by-day/noon"},
                                          {"held", {{"trn2.48xlarge", 48}}},
                                          {"borrowed", {{"trn2.48xlarge", 16}}},
                                          {"sharePercent", 75},
                                          {"usedSharePercent", 60},
                                          {"place", 1}};
  admin.answers["/v1/queues/research/gangs"] = {
      {"gangs", Json::array({{{"namespace", "team"},
                              {"name", "train"},
                              {"kind", "Gang"},
                              {"priority", -5},
                              {"since", "2026-12-01T00:00:00Z"},
                              {"reason", "WaitsForCapacity"},
                              {"message", "no room"},
                              {"promise", {{"kind", "Start"}, {"from", "2026-12-01T08:00:00Z"}}}},
                             {{"namespace", "team"},
                              {"name", "next"},
                              {"kind", "Gang"},
                              {"priority", -6},
                              {"since", "2026-12-01T00:00:00Z"},
                              {"reason", "QueueLimit"},
                              {"message", "queue research is at its limit"}}})}};
  const absl::StatusOr<QueueRead> read = ReadQueue(admin, "research");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(QueueText(*read),
            "Queue research in fleet: Ready, stopped: Hold\n"
            "  weight 3: 75 % of what siblings use is wanted, 60 % was used\n"
            "  trn2.48xlarge: 48 chips held, 16 of them borrowed, 32 guaranteed, at most 64\n"
            "  by QueueCalendar by-day/noon\n"
            "  1 gangs wait, 2 run, here and in queues below; place 1 among siblings\n"
            "\n"
            "PLACE   NAMESPACE   NAME    PRIORITY   SINCE                  START                  "
            "REASON             MESSAGE\n"
            "1       team        train   -5         2026-12-01T00:00:00Z   2026-12-01T08:00:00Z   "
            "WaitsForCapacity   no room\n"
            "2       team        next    -6         2026-12-01T00:00:00Z                          "
            "QueueLimit         queue research is at its limit\n");
  EXPECT_EQ(QueueJson(*read)["gangs"].size(), 2U);
  EXPECT_THAT(QueueText(*read), Not(HasSubstr("there is no Queue")));
  const absl::Status none = ReadQueue(admin, "none").status();
  EXPECT_TRUE(absl::IsNotFound(none));
  EXPECT_TRUE(absl::IsNotFound(ReadQueue(admin, "../../x?y").status()));
}

}  // namespace
}  // namespace tahoma::controller
