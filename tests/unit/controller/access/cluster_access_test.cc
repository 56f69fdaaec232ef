// The cluster's answers about a token: whom it lets in, what is asked of it and how often, and what
// happens when it does not answer. An API server that is written out here answers.

#include "controller/access/cluster_access.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "lib/base/json.h"
#include "lib/base/status.h"

namespace tahoma::controller {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;
using Answer = ClusterAccess::Answer;

constexpr const char* kTokens = "/apis/authentication.k8s.io/v1/tokenreviews";
constexpr const char* kRights = "/apis/authorization.k8s.io/v1/subjectaccessreviews";

class ReviewingApi final : public kube::Transport {
 public:
  absl::StatusOr<kube::Response> Send(const kube::Request& request) override {
    ++sent_;
    while (stuck || IsStuck(request)) std::this_thread::yield();
    if (!failure.ok()) return failure;
    if (status != 201) return kube::Response{.status = status, .body = R"({"message":"no"})"};
    const Json review = ParseJson(request.Text());
    const std::lock_guard lock(mutex_);
    reviews.push_back(review);
    const Json& spec = review.at("spec");
    Json result;
    if (request.target == kTokens) {
      const auto user = users.find(spec.at("token"));
      result["authenticated"] = user != users.end();
      if (user != users.end()) result["user"] = user->second;
      if (user == users.end()) result["error"] = "[invalid bearer token]";
    } else {
      EXPECT_EQ(request.target, kRights);
      const Json& path = spec.at("nonResourceAttributes");
      result["allowed"] =
          rights.contains({spec.at("user"), path.at("verb").get<std::string>() + " " +
                                                path.at("path").get<std::string>()});
    }
    return kube::Response{.status = 201, .body = Json({{"status", result}}).dump()};
  }
  absl::StatusOr<kube::Response> Stream(const kube::Request&, const kube::LineSink&,
                                        std::chrono::milliseconds) override {
    return absl::UnimplementedError("not here");
  }
  int sent() const { return sent_; }
  bool IsStuck(const kube::Request& request) const {
    const std::string_view begin = stuck_token.load();
    return !begin.empty() && request.Text().find("\"" + std::string(begin)) != std::string::npos;
  }

  std::map<std::string, Json> users;
  std::set<std::pair<std::string, std::string>> rights;
  absl::Status failure;
  int status = 201;
  std::atomic<bool> stuck = false;
  std::atomic<const char*> stuck_token = "";  // the beginning of tokens that get no answer
  std::vector<Json> reviews;

 private:
  std::mutex mutex_;
  std::atomic<int> sent_ = 0;
};

class ClusterAccessTest : public ::testing::Test {
 protected:
  ClusterAccessTest() {
    api_.users["prom-token"] = {{"username", "system:serviceaccount:mon:prom"},
                                {"uid", "u-1"},
                                {"groups", {"system:serviceaccounts", "system:authenticated"}},
                                {"extra", {{"scope", {"a"}}}}};
    api_.rights = {{"system:serviceaccount:mon:prom", "get /metrics"}};
  }
  ClusterAccess::Verdict Ask(const std::string& token, const std::string& path) {
    return Ask(token, path, "10.0.0.1");
  }
  ClusterAccess::Verdict Ask(const std::string& token, const std::string& path,
                             const std::string& address) {
    return cluster_.Ask(token, address, PathAttributes("GET", path));
  }

  ReviewingApi api_;
  ManualClock clock_;
  ClusterAccess cluster_{api_, clock_};
};

TEST_F(ClusterAccessTest, AUserOfTheClusterMayDoWhatTheClusterAllows) {
  const auto verdict = Ask("prom-token", "/metrics");
  EXPECT_EQ(verdict.answer, Answer::kAllowed);
  ASSERT_NE(verdict.identity, nullptr);
  EXPECT_EQ(verdict.identity->name, "system:serviceaccount:mon:prom");
  EXPECT_THAT(verdict.identity->groups,
              ElementsAre("system:serviceaccounts", "system:authenticated"));
  EXPECT_EQ(Ask("prom-token", "/v1/topology").answer, Answer::kForbidden);
  const auto nobody = Ask("other", "/metrics");
  EXPECT_EQ(nobody.answer, Answer::kUnknownToken);
  EXPECT_EQ(nobody.identity, nullptr);
}

TEST_F(ClusterAccessTest, TheAccessReviewHasAllFieldsOfTheReviewedUser) {
  (void)Ask("prom-token", "/metrics");
  ASSERT_THAT(api_.reviews, SizeIs(2));
  EXPECT_EQ(api_.reviews[0], Json({{"apiVersion", "authentication.k8s.io/v1"},
                                   {"kind", "TokenReview"},
                                   {"spec", {{"token", "prom-token"}}}}));
  EXPECT_EQ(api_.reviews[1],
            Json({{"apiVersion", "authorization.k8s.io/v1"},
                  {"kind", "SubjectAccessReview"},
                  {"spec",
                   {{"user", "system:serviceaccount:mon:prom"},
                    {"uid", "u-1"},
                    {"groups", {"system:serviceaccounts", "system:authenticated"}},
                    {"extra", {{"scope", {"a"}}}},
                    {"nonResourceAttributes", {{"path", "/metrics"}, {"verb", "get"}}}}}}));
}

TEST_F(ClusterAccessTest, AnswersAreKeptForAWhileRefusalsShorter) {
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(Ask("prom-token", "/metrics").answer, Answer::kAllowed);
    EXPECT_EQ(Ask("other", "/metrics").answer, Answer::kUnknownToken);
    EXPECT_EQ(Ask("prom-token", "/v1/nodes").answer, Answer::kForbidden);
  }
  EXPECT_EQ(api_.sent(), 4);
  api_.users["other"] = api_.users["prom-token"];
  api_.rights = {{"system:serviceaccount:mon:prom", "get /v1/nodes"}};
  clock_.Advance(ClusterAccess::kRefusedFor - std::chrono::seconds(1));
  EXPECT_EQ(Ask("prom-token", "/v1/nodes").answer, Answer::kForbidden);
  clock_.Advance(std::chrono::seconds(1));
  EXPECT_EQ(Ask("prom-token", "/v1/nodes").answer, Answer::kAllowed);
  EXPECT_EQ(Ask("other", "/v1/nodes").answer, Answer::kAllowed) << "known by now";
  EXPECT_EQ(Ask("prom-token", "/metrics").answer, Answer::kAllowed) << "still kept";
  clock_.Advance(ClusterAccess::kGrantedFor - ClusterAccess::kRefusedFor);
  EXPECT_EQ(Ask("prom-token", "/metrics").answer, Answer::kForbidden);
  api_.users.clear();
  clock_.Advance(ClusterAccess::kGrantedFor);
  EXPECT_EQ(Ask("prom-token", "/v1/nodes").answer, Answer::kUnknownToken);
}

TEST_F(ClusterAccessTest, WithoutAnAnswerNobodyIsLetInAndTheFailureIsNotKept) {
  api_.failure = absl::UnavailableError("connection refused");
  const auto refused = Ask("prom-token", "/metrics");
  EXPECT_EQ(refused.answer, Answer::kNoAnswer);
  EXPECT_EQ(
      refused.reason,
      "the cluster cannot be asked who calls and what he may: TokenReview: connection refused");
  api_.failure = absl::OkStatus();
  for (const int status : {403, 404, 500, 503}) {
    api_.status = status;
    EXPECT_EQ(Ask("prom-token", "/metrics").answer, Answer::kNoAnswer) << status;
  }
  api_.status = 201;
  EXPECT_EQ(Ask("prom-token", "/metrics").answer, Answer::kAllowed);
  // The token is known still; the right to another path is not.
  api_.failure = absl::DeadlineExceededError("too slow");
  const auto half = Ask("prom-token", "/v1/nodes");
  EXPECT_EQ(half.answer, Answer::kNoAnswer);
  EXPECT_THAT(half.reason, HasSubstr("SubjectAccessReview: too slow"));
  EXPECT_EQ(Ask("prom-token", "/metrics").answer, Answer::kAllowed);
}

// Answers that are not what Kubernetes says let nobody in.
TEST_F(ClusterAccessTest, AUserWithoutANameIsNobody) {
  api_.users["odd"] = {{"username", 7}};
  EXPECT_EQ(Ask("odd", "/metrics").answer, Answer::kUnknownToken);
  api_.users["empty"] = Json::object();
  EXPECT_EQ(Ask("empty", "/metrics").answer, Answer::kUnknownToken);
}

TEST_F(ClusterAccessTest, RememberedAnswersAreBoundedAndARefusalGoesBeforeAPermission) {
  EXPECT_EQ(Ask("prom-token", "/metrics").answer, Answer::kAllowed);
  const auto guess = [&] {
    for (std::size_t i = 0; i < 3 * ClusterAccess::kEntriesMost; ++i) {
      EXPECT_EQ(Ask("guess-" + std::to_string(i), "/metrics").answer, Answer::kUnknownToken);
    }
  };
  guess();
  const int sent = api_.sent();
  EXPECT_EQ(Ask("prom-token", "/metrics").answer, Answer::kAllowed);
  EXPECT_EQ(api_.sent(), sent) << "still kept";
  guess();
  EXPECT_GE(api_.sent(), sent + static_cast<int>(2 * ClusterAccess::kEntriesMost)) << "forgotten";
}

TEST_F(ClusterAccessTest, CallersThatWaitForASlowClusterAreBounded) {
  api_.stuck = true;
  std::atomic<int> refused = 0;
  std::vector<std::jthread> callers;
  const int room = ClusterAccess::kAskingMostOfOne + ClusterAccess::kWaitingMostOfOne;
  for (int i = 0; i < room + 1; ++i) {
    callers.emplace_back([&, i] {
      const ClusterAccess::Verdict verdict = Ask("other-" + std::to_string(i), "/metrics");
      if (verdict.answer == Answer::kUnknownToken) return;
      EXPECT_THAT(verdict.reason, HasSubstr("14 callers wait for its answer"));
      EXPECT_THAT(verdict.reason, Not(HasSubstr("other-")));
      ++refused;
    });
  }
  while (refused < 1) std::this_thread::yield();
  EXPECT_EQ(api_.sent(), ClusterAccess::kAskingMostOfOne);
  api_.stuck = false;
  callers.clear();
  EXPECT_EQ(refused, 1);
  EXPECT_EQ(Ask("prom-token", "/metrics").answer, Answer::kAllowed);
}

// The defect: eight made up tokens kept everybody out whose answers were not kept.
TEST_F(ClusterAccessTest, StrangersBlockNeitherKnownUsersNorANewCaller) {
  EXPECT_EQ(Ask("prom-token", "/metrics").answer, Answer::kAllowed);
  api_.users["new-token"] = {{"username", "new"}};
  api_.rights.insert({"new", "get /metrics"});
  clock_.Advance(ClusterAccess::kGrantedFor);  // nothing is known any more
  api_.stuck_token = "stranger";
  std::vector<std::jthread> strangers;
  for (int i = 0; i < ClusterAccess::kAskingMost; ++i) {
    strangers.emplace_back([&, i] { (void)Ask("stranger-" + std::to_string(i), "/metrics"); });
  }
  while (api_.sent() < 2 + ClusterAccess::kAskingMostOfOne) std::this_thread::yield();
  EXPECT_EQ(Ask("new-token", "/metrics", "10.0.0.2").answer, Answer::kAllowed);
  EXPECT_EQ(Ask("prom-token", "/metrics").answer, Answer::kAllowed)
      << "from the strangers' address";
  api_.stuck_token = "";
}

}  // namespace
}  // namespace tahoma::controller
