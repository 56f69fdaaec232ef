// Gangs as a table, as a list and as they change.

#include "controller/ctl/gang_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <string>
#include <vector>

#include "lib/base/json.h"
#include "lib/base/status.h"

namespace tahoma::controller {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kList = "/apis/tahoma.dev/v1alpha1/namespaces/team/gangs?limit=500";

// Answers lists by target, 404 for others, and watches one after another.
class Server final : public kube::Transport {
 public:
  absl::StatusOr<kube::Response> Send(const kube::Request& request) override {
    const auto found = answers.find(request.target);
    if (found == answers.end()) return kube::Response{.status = 404, .body = "{}"};
    return found->second;
  }
  absl::StatusOr<kube::Response> Stream(const kube::Request& request, const kube::LineSink& sink,
                                        std::chrono::milliseconds) override {
    watched.push_back(request.target);
    if (watches.empty()) return Unavailable("the server has gone");
    const std::vector<Json> events = watches.front();
    watches.pop_front();
    for (const Json& event : events) {
      if (!sink(event.dump())) break;
    }
    return kube::Response{.status = 200};
  }
  void Put(const std::string& target, const Json& body, int status = 200) {
    answers[target] = {.status = status, .body = body.dump()};
  }

  std::map<std::string, kube::Response> answers;
  std::deque<std::vector<Json>> watches;
  std::vector<std::string> watched;
};

Json Gang(const std::string& name, const std::string& phase = "Pending",
          const std::string& version = "7") {
  return {{"metadata", {{"namespace", "team"}, {"name", name}, {"resourceVersion", version}}},
          {"spec", {{"members", 4}, {"shape", "4x4x1"}, {"queue", "low"}}},
          {"status", {{"phase", phase}, {"reason", "NoRoom"}, {"readyMembers", 2}}}};
}

Json List(const std::vector<Json>& items, const std::string& token = "") {
  return {{"items", items}, {"metadata", {{"continue", token}, {"resourceVersion", "10"}}}};
}

TEST(GangTableTest, ColumnsAreAlignedAndWhatIsNotSetIsEmpty) {
  const Json a = Gang("a");
  Json other = Gang("a-gang-with-a-long-name");
  other["status"] = Json::object();
  EXPECT_EQ(
      GangTable(GangColumns::kUsual, true).Text({&a, &other}),
      "NAMESPACE   NAME                      MEMBERS   SHAPE   PHASE     ALLREDUCE   PLACEMENT\n"
      "team        a                         4         4x4x1   Pending\n"
      "team        a-gang-with-a-long-name   4         4x4x1\n");
}

TEST(GangTableTest, WideHasMoreColumnsAndRowsGoOnInThem) {
  const Json a = Gang("a");
  GangTable table(GangColumns::kWide, false);
  EXPECT_EQ(
      table.Text({&a}),
      "NAME   MEMBERS   SHAPE   PHASE     ALLREDUCE   PLACEMENT   CHIPS   QUEUE   READY   REASON\n"
      "a      4         4x4x1   Pending                                   low     2       "
      "NoRoom\n");
  EXPECT_EQ(table.Row(Gang("b")),
            "b      4         4x4x1   Pending                                   low     2       "
            "NoRoom\n");
}

TEST(ListGangsTest, PagesBecomeOneListOfWholeObjects) {
  Server server;
  server.Put(kList, List({Gang("a")}, "next"));
  server.Put("/apis/tahoma.dev/v1alpha1/namespaces/team/gangs?continue=next&limit=500",
             List({Gang("b")}));
  const auto list = ListGangs(server, "team");
  ASSERT_TRUE(list.ok()) << list.status();
  EXPECT_EQ((*list)["kind"], "List");
  ASSERT_EQ((*list)["items"].size(), 2U);
  EXPECT_EQ((*list)["items"][1]["kind"], "Gang");
  EXPECT_EQ((*list)["items"][1]["apiVersion"], "tahoma.dev/v1alpha1");
}

TEST(ListGangsTest, ANamespaceThatIsNotThereIsAnError) {
  Server server;
  server.Put(kList, List({}));
  EXPECT_EQ(Message(ListGangs(server, "team").status()), "namespace team is not there");
  server.Put("/api/v1/namespaces/team", {{"metadata", {{"name", "team"}}}});
  EXPECT_TRUE(ListGangs(server, "team").ok());
  server.Put("/api/v1/namespaces/team", {{"message", "forbidden"}}, 403);
  EXPECT_TRUE(ListGangs(server, "team").ok()) << "who may not read namespaces sees an empty list";
}

TEST(ListGangsTest, ARefusalNamesThePath) {
  Server server;
  server.Put(kList, {{"message", "eve cannot list"}}, 403);
  EXPECT_EQ(Message(ListGangs(server, "team").status()),
            "/apis/tahoma.dev/v1alpha1/namespaces/team/gangs: eve cannot list");
}

TEST(WatchGangsTest, AWatchThatEndsGoesOnWhereItEnded) {
  Server server;
  server.watches = {{{{"type", "ADDED"}, {"object", Gang("a", "Pending", "11")}},
                     {{"type", "BOOKMARK"}, {"object", Gang("", "", "15")}}},
                    {{{"type", "MODIFIED"}, {"object", Gang("a", "Running", "16")}}}};
  std::vector<std::string> phases;
  const absl::Status ended = WatchGangs(server, "team", List({}), [&](const Json& gang) {
    phases.push_back(gang["status"]["phase"].get<std::string>());
    return true;
  });
  EXPECT_THAT(phases, ElementsAre("Pending", "Running"));
  EXPECT_THAT(server.watched,
              ElementsAre(HasSubstr("resourceVersion=10"), HasSubstr("resourceVersion=15"),
                          HasSubstr("resourceVersion=16")));
  EXPECT_THAT(std::string(Message(ended)), HasSubstr("the server has gone"));
}

TEST(WatchGangsTest, TheReaderAndAnErrorOfTheServerEndIt) {
  Server server;
  server.watches = {{{{"type", "ADDED"}, {"object", Gang("a")}}}};
  EXPECT_EQ(WatchGangs(server, "team", List({}), [](const Json&) { return false; }),
            absl::OkStatus());
  server.watches = {{{{"type", "ERROR"},
                      {"object", {{"code", 410}, {"reason", "Expired"}, {"message", "old"}}}}}};
  EXPECT_TRUE(
      absl::IsOutOfRange(WatchGangs(server, "team", List({}), [](const Json&) { return true; })));
}

}  // namespace
}  // namespace tahoma::controller
