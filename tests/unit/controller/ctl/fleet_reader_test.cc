// Tests what kubectl-tahoma reads from an API server, page by page, and what it says of it.

#include "controller/ctl/fleet_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "lib/base/json.h"
#include "lib/base/status.h"

namespace tahoma::controller {
namespace {

using json = Json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kGang = "/apis/tahoma.dev/v1alpha1/namespaces/default/gangs/a";
constexpr const char* kPod = "/api/v1/namespaces/default/pods/a-0";
constexpr const char* kPodList = "/api/v1/pods?limit=500";

// Answers by target; 404 for others.
class Pages final : public kube::Transport {
 public:
  absl::StatusOr<kube::Response> Send(const kube::Request& request) override {
    asked.push_back(request.target);
    const auto found = answers.find(request.target);
    if (found == answers.end()) return kube::Response{.status = 404, .body = "{}"};
    return found->second;
  }
  absl::StatusOr<kube::Response> Stream(const kube::Request&, const kube::LineSink&,
                                        std::chrono::milliseconds) override {
    return Unimplemented("nothing is watched");
  }
  void Put(const std::string& target, const json& body, int status = 200) {
    answers[target] = {.status = status, .body = body.dump()};
  }

  std::map<std::string, kube::Response> answers;
  std::vector<std::string> asked;
};

json List(const std::vector<json>& items, const std::string& token = "") {
  return {{"items", items}, {"metadata", {{"continue", token}}}};
}
json Named(const std::string& name) { return {{"metadata", {{"name", name}}}}; }

std::vector<std::string> NamesOf(Pages& pages, absl::Status& status) {
  std::vector<std::string> names;
  status = ReadAll(pages, kube::kPods, [&](const json& object) {
    names.push_back(object["metadata"]["name"].get<std::string>());
  });
  return names;
}

TEST(ReadAllTest, FollowsContinueTokensWhateverTheyHold) {
  Pages pages;
  pages.Put(kPodList, List({Named("a"), Named("b")}, "a+b/=&c"));
  pages.Put("/api/v1/pods?continue=a%2Bb%2F%3D%26c&limit=500", List({Named("c")}));
  absl::Status status;
  EXPECT_THAT(NamesOf(pages, status), ElementsAre("a", "b", "c"));
  EXPECT_EQ(status, absl::OkStatus());
}

TEST(ReadAllTest, AnEmptyListMayBeNull) {
  Pages pages;
  pages.Put(kPodList, {{"items", nullptr}, {"metadata", json::object()}});
  absl::Status status;
  EXPECT_THAT(NamesOf(pages, status), ElementsAre());
  EXPECT_EQ(status, absl::OkStatus());
}

TEST(ReadAllTest, AnUnreadableListIsNamedWithItsPath) {
  Pages pages;
  absl::Status status;
  for (const char* body : {"", "[]", "{}", R"({"items":[]})", "<html>"}) {
    pages.answers[kPodList] = {.status = 200, .body = body};
    NamesOf(pages, status);
    EXPECT_THAT(std::string(Message(status)), HasSubstr("/api/v1/pods: ")) << body;
  }
}

// A list that expired between its pages begins anew.
TEST(ReadAllTest, EveryObjectIsGivenOnce) {
  Pages pages;
  json first = Named("a");
  first["metadata"]["uid"] = "u";
  pages.Put(kPodList, List({first}, "c"));
  pages.Put("/api/v1/pods?continue=c&limit=500", {{"reason", "Expired"}}, 410);
  pages.Put("/api/v1/pods", List({first, Named("b")}));
  absl::Status status;
  EXPECT_THAT(NamesOf(pages, status), ElementsAre("a", "b"));
  EXPECT_EQ(status, absl::OkStatus());
}

// A user without the rights must see which.
TEST(ReadAllTest, ARefusalIsSaidInTheServersWords) {
  Pages pages;
  absl::Status status;
  pages.Put(kPodList,
            {{"kind", "Status"}, {"message", "pods is forbidden: User \"eve\" cannot list"}}, 403);
  NamesOf(pages, status);
  EXPECT_EQ(Message(status), "/api/v1/pods: pods is forbidden: User \"eve\" cannot list");
  pages.answers[kPodList] = {.status = 502, .body = "<html>bad gateway"};
  NamesOf(pages, status);
  EXPECT_EQ(Message(status), "/api/v1/pods: HTTP 502 <html>bad gateway");
}

json Gang() {
  return {{"metadata", {{"namespace", "default"}, {"name", "a"}}},
          {"spec", {{"members", 4}, {"shape", "4x4x1"}}},
          {"status",
           {{"phase", "Waiting"},
            {"reason", "NoRoom"},
            {"placement", nullptr},
            {"conditions", json::array({json{{"type", "Placed"},
                                             {"status", "False"},
                                             {"reason", "NoRoom"},
                                             {"message", "no 4 instances are free"}}})}}}};
}

std::string Why(Pages& pages, const std::string& name) {
  return WhyText(*ReadWhy(pages, "default", name));
}

TEST(ReadWhyTest, APlacedGangSaysHowFastItsChipsTalk) {
  Pages pages;
  json placed = Gang();
  placed["status"] = {{"phase", "Running"},
                      {"reason", "Bound"},
                      {"predictedAllReduce", "1.019ms"},
                      {"placement", "us-0 4x4+0,0,0"}};
  pages.Put(kGang, placed);
  EXPECT_EQ(Why(pages, "a"),
            "Gang a: Running, Bound\n"
            "  An all-reduce of 256 MiB in each chip is predicted to take 1.019ms\n");
}

TEST(ReadWhyTest, AGangSaysItsReasonAndConditions) {
  Pages pages;
  pages.Put(kGang, Gang());
  EXPECT_EQ(Why(pages, "a"),
            "Gang a: Waiting, NoRoom\n  Placed False (NoRoom): no 4 instances are free\n");
}

TEST(ReadWhyTest, APodSaysItsOwnReasonAndItsGangs) {
  Pages pages;
  json pod = {{"metadata", {{"name", "a-0"}, {"labels", {{"tahoma.dev/gang", "a"}}}}},
              {"spec", json::object()},
              {"status",
               {{"phase", "Pending"},
                {"conditions",
                 {{{"type", "Ready"}, {"status", "False"}},
                  {{"type", "PodScheduled"},
                   {"status", "False"},
                   {"reason", "Unschedulable"},
                   {"message", "waits for its gang"}}}}}}};
  pages.Put(kPod, pod);
  pages.Put(kGang, Gang());
  EXPECT_EQ(Why(pages, "a-0"),
            "Pod a-0: Pending\n  PodScheduled False (Unschedulable): waits for its gang\n"
            "Gang a: Waiting, NoRoom\n  Placed False (NoRoom): no 4 instances are free\n");
  const json value = WhyJson(*ReadWhy(pages, "default", "a-0"));
  EXPECT_EQ(value["pod"]["phase"], "Pending");
  EXPECT_EQ(value["gang"]["reason"], "NoRoom");
  EXPECT_EQ(value["gang"]["conditions"][0]["message"], "no 4 instances are free");
  EXPECT_FALSE(WhyJson(*ReadWhy(pages, "default", "a")).contains("pod"));
  pages.answers.erase(kGang);
  pod["spec"]["nodeName"] = "node-a";
  pod["status"] = {{"phase", "Running"},
                   {"conditions", {{{"type", "PodScheduled"}, {"status", "True"}}}}};
  pages.Put(kPod, pod);
  EXPECT_EQ(Why(pages, "a-0"), "Pod a-0: Running on node node-a\n  PodScheduled True\n");
  pod["status"] = {{"phase", "Running"}, {"conditions", nullptr}};
  pages.Put(kPod, pod);
  EXPECT_EQ(Why(pages, "a-0"), "Pod a-0: Running on node node-a\n");
}

TEST(ReadWhyTest, APodOfAnotherSchedulerSaysSoUntilThatSchedulerTookIt) {
  Pages pages;
  json pod = {{"metadata", {{"name", "a-0"}}},
              {"spec", {{"schedulerName", "my-scheduler"}}},
              {"status", {{"phase", "Pending"}}}};
  pages.Put(kPod, pod);
  EXPECT_EQ(
      Why(pages, "a-0"),
      "Pod a-0: Pending\n"
      "  spec.schedulerName is \"my-scheduler\": Tahoma places the pod only if schedulerNames of "
      "its controller has that name; usual are tahoma and default-scheduler\n");
  pod["spec"]["schedulerName"] = "default-scheduler";
  pages.Put(kPod, pod);
  EXPECT_EQ(Why(pages, "a-0"), "Pod a-0: Pending\n");
  pod["spec"] = {{"schedulerName", "my-scheduler"}, {"nodeName", "node-a"}};
  pages.Put(kPod, pod);
  EXPECT_EQ(Why(pages, "a-0"), "Pod a-0: Pending on node node-a\n");
}

TEST(ReadWhyTest, NamesAreNoPathsAndWhatIsMissingIsNamed) {
  Pages pages;
  EXPECT_EQ(Message(ReadWhy(pages, "default", "../x?y").status()),
            "no gang and no pod ../x?y in namespace default");
  EXPECT_EQ(pages.asked.back(), "/api/v1/namespaces/default/pods/..%2Fx%3Fy");
  pages.Put(kGang, {{"message", "gangs.tahoma.dev \"a\" is forbidden"}}, 403);
  EXPECT_EQ(Message(ReadWhy(pages, "default", "a").status()),
            std::string(kGang) + ": gangs.tahoma.dev \"a\" is forbidden");
}

}  // namespace
}  // namespace tahoma::controller
