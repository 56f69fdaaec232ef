// Tests a Reflector against broken streams, objects made again, lists older than seen states, and
// servers that answer nonsense.

#include "lib/kube/reflector.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <future>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "lib/base/json.h"
#include "lib/base/rng.h"
#include "lib/base/status.h"
#include "lib/kube/http_transport.h"
#include "lib/rest/server.h"
#include "tests/unit/lib/kube/scripted_transport.h"

namespace tahoma::kube {
namespace {

using json = Json;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::ScriptedTransport;

json Object(const std::string& name, int version, const std::string& uid = "u") {
  return {{"metadata",
           {{"name", name},
            {"namespace", "ns"},
            {"uid", uid},
            {"resourceVersion", std::to_string(version)}}}};
}

std::string List(int version, const std::vector<json>& items, const std::string& token = "") {
  json list{{"metadata", {{"resourceVersion", std::to_string(version)}}}, {"items", items}};
  if (!token.empty()) list["metadata"]["continue"] = token;
  return list.dump();
}

std::string Event(const std::string& type, const json& object) {
  return json{{"type", type}, {"object", object}}.dump();
}

const std::string kExpired = Event("ERROR", {{"code", 410}, {"reason", "Expired"}});

// Told as text: "+a@3" seen, "-a(u)" gone, "listed".
class ReflectorTest : public ::testing::Test {
 protected:
  std::vector<std::string> Take() { return std::exchange(told_, {}); }

  WatchHandlers Handlers() {
    WatchHandlers handlers;
    handlers.wanted = [](const json& object) { return object.value("wanted", true); };
    handlers.seen = [this](const json& object) {
      const json& metadata = object.at("metadata");
      told_.push_back("+" + metadata.at("name").get<std::string>() + "@" +
                      metadata.at("resourceVersion").get<std::string>());
      return object.contains("broken") ? InvalidArgument("{}", object.at("broken").dump())
                                       : absl::OkStatus();
    };
    handlers.unreadable = [this](const ObjectKey& key, const absl::Status& why) {
      told_.push_back(
          fmt::format("{} left out: {}", key.name.empty() ? "" : key.ToString(), Message(why)));
    };
    handlers.gone = [this](const ObjectKey& key, const std::string& uid) {
      EXPECT_EQ(key.ns, "ns");
      told_.push_back("-" + key.name + "(" + uid + ")");
    };
    handlers.listed = [this] { told_.push_back("listed"); };
    handlers.history_lost = [this](const std::string& why) { told_.push_back("lost: " + why); };
    handlers.failed = [this](const absl::Status& status) {
      failures_.emplace_back(Message(status));
    };
    return handlers;
  }
  // Returns the targets of the requests, without the random part.
  std::vector<std::string> Targets() const {
    std::vector<std::string> targets;
    for (const Request& request : transport_.requests) {
      targets.push_back(request.target.substr(0, request.target.find("&timeoutSeconds")));
    }
    return targets;
  }

  ScriptedTransport transport_;
  testing::CountingSleeper sleeper_;
  std::vector<std::string> told_;
  std::vector<std::string> failures_;
  Reflector watch_{transport_, sleeper_, Rng(1), {.resource = kPods}, Handlers()};
};

const std::string kList = "/api/v1/pods?limit=500";
std::string WatchAt(int version) {
  return "/api/v1/pods?watch=true&allowWatchBookmarks=true&resourceVersion=" +
         std::to_string(version);
}

TEST_F(ReflectorTest, AStreamThatEndedInOrderContinuesAtItsPlace) {
  transport_.Will(200, List(5, {Object("a", 1)}));
  transport_.WillStream({Event("ADDED", Object("b", 6))});
  transport_.WillStream({Event("MODIFIED", Object("b", 7))});
  for (int i = 0; i < 3; ++i) EXPECT_EQ(watch_.Step(), absl::OkStatus());
  EXPECT_THAT(Take(), ElementsAre("+a@1", "listed", "+b@6", "+b@7"));
  EXPECT_THAT(Targets(), ElementsAre(kList, WatchAt(5), WatchAt(6)));
}

// The next server may have been restored from a backup.
TEST_F(ReflectorTest, AStreamThatBrokeOffIsFollowedByAList) {
  transport_.Will(200, List(5, {Object("a", 4)}));
  transport_.WillStream({Event("ADDED", Object("b", 6))}, Unavailable("reset"));
  transport_.Will(200, List(7, {Object("a", 4)}));
  EXPECT_TRUE(watch_.Step().ok());
  EXPECT_TRUE(absl::IsUnavailable(watch_.Step()));
  EXPECT_TRUE(watch_.Step().ok());
  EXPECT_THAT(Take(), ElementsAre("+a@4", "listed", "+b@6", "+a@4", "-b(u)", "listed"));
  EXPECT_THAT(Targets(), ElementsAre(kList, WatchAt(5), kList));
}

TEST_F(ReflectorTest, A410AsStatusOrAsEventLeadsToANewList) {
  transport_.Will(200, List(5, {Object("a", 1), Object("b", 2)}));
  transport_.Will(410, R"({"kind":"Status","code":410,"reason":"Expired","message":"too old"})");
  transport_.Will(200, List(8, {Object("b", 2)}));
  transport_.WillStream({kExpired, Event("ADDED", Object("never", 9))});
  transport_.Will(200, List(9, {Object("b", 9)}));
  for (int i = 0; i < 5; ++i) EXPECT_EQ(absl::IsOutOfRange(watch_.Step()), i % 2 == 1);
  EXPECT_THAT(Take(),
              ElementsAre("+a@1", "+b@2", "listed", "+b@2", "-a(u)", "listed", "+b@9", "listed"));
  EXPECT_THAT(Targets(), ElementsAre(kList, WatchAt(5), kList, WatchAt(8), kList));
}

TEST_F(ReflectorTest, AWatchFromAVersionThatTheServerDoesNotHaveIsListedAgain) {
  const char* too_large = R"({"kind":"Status","code":504,"reason":"Timeout",
      "message":"Too large resource version: 500, current: 20",
      "details":{"causes":[{"reason":"ResourceVersionTooLarge"}],"retryAfterSeconds":1}})";
  transport_.Will(200, List(500, {Object("a", 1)}));
  transport_.Will(504, too_large);
  transport_.Will(200, List(501, {Object("a", 1)}));
  transport_.WillStream({Event("ERROR", ParseJson(too_large))});
  transport_.Will(200, List(502, {Object("a", 1)}));
  for (int i = 0; i < 5; ++i) EXPECT_EQ(absl::IsDeadlineExceeded(watch_.Step()), i % 2 == 1);
  EXPECT_THAT(Targets(), ElementsAre(kList, WatchAt(500), kList, WatchAt(501), kList));
}

TEST_F(ReflectorTest, OtherErrorsOfAWatchKeepThePlace) {
  transport_.Will(200, List(5, {Object("a", 1)}));
  transport_.Will(500, "<html>oops</html>");
  transport_.Will(429, "");
  transport_.WillStream({Event("BOOKMARK", Object("", 30)), Event("ERROR", {{"code", 500}})});
  transport_.WillStream({});
  for (int i = 0; i < 5; ++i) (void)watch_.Step();
  EXPECT_THAT(Targets(), ElementsAre(kList, WatchAt(5), WatchAt(5), WatchAt(5), WatchAt(30)));
}

TEST_F(ReflectorTest, SelectorsAreSentWithListsAndWatches) {
  Reflector watch(transport_, sleeper_, Rng(1),
                  {.resource = kPods, .ns = "ns", .label_selector = "a=b", .field_selector = "c=d"},
                  Handlers());
  transport_.Will(200, List(5, {}));
  (void)watch.Step();
  (void)watch.Step();
  for (const Request& request : transport_.requests) {
    EXPECT_THAT(request.target, ::testing::StartsWith("/api/v1/namespaces/ns/pods?"));
    EXPECT_THAT(request.target, HasSubstr("labelSelector=a%3Db"));
    EXPECT_THAT(request.target, HasSubstr("fieldSelector=c%3Dd"));
  }
}

TEST_F(ReflectorTest, AnObjectMadeAgainBetweenTwoListsIsGoneBeforeItIsSeen) {
  transport_.Will(200, List(5, {Object("a", 3, "first"), Object("b", 4)}));
  transport_.WillStream({kExpired});
  transport_.Will(200, List(9, {Object("a", 8, "second"), Object("b", 4)}));
  ASSERT_TRUE(watch_.Step().ok());
  Take();
  EXPECT_TRUE(absl::IsOutOfRange(watch_.Step()));
  ASSERT_TRUE(watch_.Step().ok());
  EXPECT_THAT(Take(), ElementsAre("-a(first)", "+a@8", "+b@4", "listed"));
}

TEST_F(ReflectorTest, AnObjectMadeAgainForAnotherSchedulerIsGone) {
  json foreign = Object("a", 8, "second");
  foreign["wanted"] = false;
  transport_.Will(200, List(5, {Object("a", 3, "first")}));
  transport_.WillStream({kExpired});
  transport_.Will(200, List(9, {foreign}));
  ASSERT_TRUE(watch_.Step().ok());
  Take();
  EXPECT_TRUE(absl::IsOutOfRange(watch_.Step()));
  ASSERT_TRUE(watch_.Step().ok());
  EXPECT_THAT(Take(), ElementsAre("-a(first)", "listed"));
}

TEST_F(ReflectorTest, AnObjectThatIsNoLongerWantedIsGoneAtOnce) {
  json changed = Object("a", 6);
  changed["wanted"] = false;
  transport_.Will(200, List(5, {Object("a", 3)}));
  transport_.WillStream({Event("MODIFIED", changed), Event("DELETED", Object("a", 7))});
  ASSERT_TRUE(watch_.Step().ok());
  Take();
  ASSERT_TRUE(watch_.Step().ok());
  EXPECT_THAT(Take(), ElementsAre("-a(u)"));
}

TEST_F(ReflectorTest, ADeleteOfAnUnseenSuccessorRemovesTheKnownObject) {
  transport_.Will(200, List(5, {Object("a", 3, "first")}));
  transport_.WillStream({Event("DELETED", Object("a", 9, "second"))});
  ASSERT_TRUE(watch_.Step().ok());
  Take();
  ASSERT_TRUE(watch_.Step().ok());
  EXPECT_THAT(Take(), ElementsAre("-a(first)"));
}

TEST_F(ReflectorTest, AListOlderThanWhatWasSeenIsRefused) {
  transport_.Will(200, List(5, {Object("a", 3)}));
  transport_.WillStream({Event("MODIFIED", Object("a", 7)), kExpired});
  transport_.Will(200, List(6, {Object("a", 3), Object("b", 6)}));
  transport_.Will(200, List(7, {Object("a", 7)}));
  ASSERT_TRUE(watch_.Step().ok());
  EXPECT_TRUE(absl::IsOutOfRange(watch_.Step()));
  Take();
  EXPECT_EQ(watch_.Step(), Unavailable("the list is of version 6, older than 7, which was seen"));
  EXPECT_THAT(Take(), IsEmpty());
  ASSERT_TRUE(watch_.Step().ok());
  EXPECT_THAT(Take(), ElementsAre("+a@7", "listed"));
}

TEST_F(ReflectorTest, ASecondPageOlderThanTheFirstIsRefused) {
  transport_.Will(200, List(9, {Object("a", 8)}, "more"));
  transport_.Will(200, List(6, {Object("b", 2)}));
  EXPECT_TRUE(absl::IsUnavailable(watch_.Step()));
  EXPECT_THAT(Take(), ElementsAre("+a@8"));
}

TEST_F(ReflectorTest, AServerWhoseListsStayOldIsBelievedAfterSeveralRefusals) {
  transport_.Will(200, List(500, {Object("a", 300), Object("b", 400)}));
  transport_.WillStream({kExpired});
  for (int i = 0; i <= NewestVersion::kRefusalsMax; ++i) {
    transport_.Will(200, List(20, {Object("a", 12)}));
  }
  transport_.WillStream({Event("MODIFIED", Object("a", 21))});
  ASSERT_TRUE(watch_.Step().ok());
  EXPECT_TRUE(absl::IsOutOfRange(watch_.Step()));
  Take();
  for (int i = 0; i < NewestVersion::kRefusalsMax; ++i) {
    EXPECT_TRUE(absl::IsUnavailable(watch_.Step())) << i;
  }
  EXPECT_THAT(Take(), IsEmpty());
  ASSERT_TRUE(watch_.Step().ok());
  EXPECT_THAT(Take(), ElementsAre("lost: its lists are of version 20, older than what was seen",
                                  "+a@12", "-b(u)", "listed"));
  ASSERT_TRUE(watch_.Step().ok());
  EXPECT_THAT(Take(), ElementsAre("+a@21"));
}

// The defect: older objects were dropped as news from the past. The server was restored from a
// backup, and later writes brought it beyond the seen versions.
TEST_F(ReflectorTest, ObjectsThatWentBackInANewListAreTheTruth) {
  transport_.Will(200, List(50, {Object("a", 30), Object("b", 40), Object("c", 41)}));
  transport_.WillStream({Event("MODIFIED", Object("a", 52)), kExpired});
  transport_.Will(200, List(60, {Object("a", 12), Object("b", 10, "before"), Object("d", 59)}));
  transport_.WillStream({Event("MODIFIED", Object("a", 61))});
  ASSERT_TRUE(watch_.Step().ok());
  EXPECT_TRUE(absl::IsOutOfRange(watch_.Step()));
  Take();
  ASSERT_TRUE(watch_.Step().ok());
  EXPECT_THAT(Take(), ElementsAre("lost: ns/a is of version 12, older than what was seen", "+a@12",
                                  "-b(u)", "+b@10", "+d@59", "-c(u)", "listed"));
  ASSERT_TRUE(watch_.Step().ok());
  EXPECT_THAT(Take(), ElementsAre("+a@61"));
}

TEST_F(ReflectorTest, AServerWithoutThePlaceOfTheWatchIsListed) {
  transport_.Will(200, List(500, {Object("a", 300)}));
  transport_.Will(504, R"({"kind":"Status","code":504,"reason":"Timeout",
      "message":"Too large resource version: 500, current: 20",
      "details":{"causes":[{"reason":"ResourceVersionTooLarge"}],"retryAfterSeconds":1}})");
  transport_.Will(200, List(501, {Object("a", 20)}));
  ASSERT_TRUE(watch_.Step().ok());
  Take();
  EXPECT_FALSE(watch_.Step().ok());
  ASSERT_TRUE(watch_.Step().ok());
  EXPECT_THAT(Take(), ElementsAre("lost: ns/a is of version 20, older than what was seen", "+a@20",
                                  "listed"));
}

TEST_F(ReflectorTest, OfEventsAboutAnObjectTheNewerIsKept) {
  transport_.Will(200, List(9, {Object("a", 8), Object("b", 4)}));
  transport_.WillStream({Event("DELETED", Object("a", 7, "older")),
                         Event("ADDED", Object("b", 2, "older")),
                         Event("MODIFIED", Object("a", 10)), Event("DELETED", Object("b", 1))});
  transport_.WillStream({});
  ASSERT_TRUE(watch_.Step().ok());
  Take();
  ASSERT_TRUE(watch_.Step().ok());
  EXPECT_THAT(Take(), ElementsAre("+a@10", "-b(u)")) << "a delete of the known object is final";
  ASSERT_TRUE(watch_.Step().ok());
  EXPECT_THAT(transport_.requests.back().target, HasSubstr("resourceVersion=10")) << "not 1";
}

TEST_F(ReflectorTest, ListsAskForTheMostRecentState) {
  transport_.Will(200, List(5, {}));
  transport_.WillStream({kExpired});
  transport_.Will(200, List(6, {}));
  for (int i = 0; i < 3; ++i) (void)watch_.Step();
  // A resourceVersion would let the server answer from a cache.
  EXPECT_EQ(transport_.requests.at(2).target, "/api/v1/pods?limit=500");
}

// Never waits; ends the program at the given wait.
class EndingSleeper final : public Sleeper {
 public:
  explicit EndingSleeper(std::size_t last) : last_(last) {}
  bool Sleep(std::chrono::nanoseconds duration) override {
    sleeps.push_back(duration);
    return sleeps.size() < last_;
  }
  std::vector<std::chrono::nanoseconds> sleeps;

 private:
  const std::size_t last_;
};

// Records the waits of Run, `count` of them.
class ReflectorWaitsTest : public ReflectorTest {
 protected:
  std::vector<std::chrono::nanoseconds> Waits(std::size_t count) {
    EndingSleeper sleeper(count);
    Reflector watch(transport_, sleeper, Rng(1), {.resource = kPods}, Handlers());
    watch.Run();
    return sleeper.sleeps;
  }
};

// A wait from the upper half of the range.
auto About(milliseconds longest) {
  return ::testing::AllOf(::testing::Ge(std::chrono::nanoseconds(longest) / 2),
                          ::testing::Le(std::chrono::nanoseconds(longest)));
}

TEST_F(ReflectorWaitsTest, AServerWithFailingWatchesIsAskedLessAndLessOften) {
  for (const std::vector<std::string>& lines : {std::vector<std::string>{"<html>", "Please log in"},
                                                std::vector<std::string>{kExpired},
                                                {}}) {
    for (int i = 0; i < 8; ++i) {
      transport_.Will(200, List(5, {}));  // answers a watch, too: a stream that ends at once
      transport_.WillStream(lines);
    }
    EXPECT_THAT(Waits(6), ElementsAre(About(milliseconds(100)), About(milliseconds(200)),
                                      About(milliseconds(400)), About(milliseconds(800)),
                                      About(milliseconds(1600)), About(milliseconds(3200))))
        << json(lines);
    while (!transport_.done()) (void)transport_.Send({});
  }
}

TEST_F(ReflectorWaitsTest, FailuresAreWaitedOutLongerAndLongerButNotForever) {
  const auto waits = Waits(12);
  EXPECT_THAT(waits[3], About(milliseconds(800)));
  EXPECT_THAT(waits[11], About(seconds(30)));
}

TEST_F(ReflectorWaitsTest, TwoReflectorsDoNotWaitInStep) {
  const auto waits_of = [&](std::uint64_t seed) {
    EndingSleeper sleeper(8);
    Reflector watch(transport_, sleeper, Rng(seed), {.resource = kPods}, Handlers());
    watch.Run();
    return sleeper.sleeps;
  };
  EXPECT_NE(waits_of(1), waits_of(2));
}

TEST_F(ReflectorWaitsTest, AWatchThatBroughtSomethingBeginsTheWaitsAnew) {
  for (int i = 0; i < 6; ++i) {
    transport_.Will(200, List(5 + i, {}));
    transport_.WillStream({Event("ADDED", Object("a", 6 + i))}, Unavailable("reset"));
  }
  EXPECT_THAT(Waits(6), ::testing::Each(About(milliseconds(100))));
}

TEST_F(ReflectorWaitsTest, AWatchThatBroughtSomethingGoesOnAtOnce) {
  transport_.Will(200, List(5, {}));
  for (int i = 0; i < 5; ++i) {
    transport_.WillStream({Event("BOOKMARK", Object("", 6 + i))});
    transport_.WillStream({Event("ADDED", Object("a", 20 + i)), kExpired});
    transport_.Will(200, List(30 + i, {}));
  }
  EXPECT_THAT(Waits(1), ElementsAre(About(milliseconds(100))));
  EXPECT_THAT(failures_, ElementsAre("/api/v1/pods: the script is over"));
  EXPECT_EQ(transport_.requests.size(), 17U);
}

TEST_F(ReflectorWaitsTest, ListsInPagesWatchesAndListsAgainWhenTheVersionExpired) {
  transport_.Will(200, List(5, {Object("a", 1)}, "more"));
  transport_.Will(200, List(5, {Object("b", 2)}));
  transport_.WillStream({Event("ADDED", Object("d", 6)), Event("DELETED", Object("d", 7))});
  transport_.WillStream({kExpired});
  transport_.Will(200, List(9, {Object("b", 2), Object("c", 8)}));
  (void)Waits(2);
  EXPECT_THAT(Take(), ElementsAre("+a@1", "+b@2", "listed", "+d@6", "-d(u)", "+b@2", "+c@8",
                                  "-a(u)", "listed"));
  EXPECT_THAT(Targets(), ElementsAre(kList, "/api/v1/pods?continue=more&limit=500", WatchAt(5),
                                     WatchAt(7), kList, WatchAt(9)));
}

TEST_F(ReflectorWaitsTest, AnEventThatCannotBeReadMeansListingAgain) {
  for (const char* line : {"{\"type\":", "[]", R"({"type":"ADDED"})", R"({"type":1,"object":{}})",
                           R"({"type":"ADDED","object":{"metadata":{}}})"}) {
    transport_.Will(200, List(5, {Object("a", 1)}));
    transport_.WillStream({line});
    transport_.Will(200, List(9, {Object("a", 1)}));
    transport_.WillStream({});
    (void)Waits(2);
    EXPECT_EQ(failures_.size(), 1U) << line;
    EXPECT_EQ(transport_.requests.size(), 4U) << line;  // list, watch, list, watch
    failures_.clear();
    transport_.requests.clear();
  }
}

TEST_F(ReflectorWaitsTest, ObjectsThatAreNotWantedDoNotExist) {
  const auto foreign = [](const std::string& name, int version) {
    json object = Object(name, version);
    object["wanted"] = false;
    return object;
  };
  transport_.Will(200, List(5, {Object("a", 1), foreign("other", 2)}));
  transport_.WillStream(
      {Event("ADDED", foreign("other-2", 6)), Event("DELETED", foreign("other", 7))});
  transport_.WillStream({kExpired});
  transport_.Will(200, List(9, {foreign("other", 8)}));
  (void)Waits(2);
  EXPECT_THAT(Take(), ElementsAre("+a@1", "listed", "-a(u)", "listed"));
  EXPECT_EQ(Targets().at(2), WatchAt(7));
}

// A real API server, restored to a time before the watch's place, leaves the watch open and silent.
TEST_F(ReflectorWaitsTest, AWatchThatBroughtNothingIsFollowedByAList) {
  transport_.Will(200, List(50, {Object("a", 40)}));
  transport_.WillStream({Event("BOOKMARK", Object("", 51))});
  transport_.WillStream({});
  transport_.Will(200, List(60, {Object("a", 20)}));
  (void)Waits(2);
  EXPECT_THAT(Take(), ElementsAre("+a@40", "listed",
                                  "lost: ns/a is of version 20, older than what was seen", "+a@20",
                                  "listed"));
}

TEST_F(ReflectorWaitsTest, TheServersRetryAfterIsHonouredWithinReason) {
  transport_.Will(429, "", {{"Retry-After", "7"}});
  transport_.Will(503, R"({"details":{"retryAfterSeconds":9}})");
  transport_.Will(429, "", {{"Retry-After", "86400"}});
  EXPECT_THAT(Waits(3), ElementsAre(seconds(7), seconds(9), seconds(60)));
}

TEST_F(ReflectorWaitsTest, AFailureSaysWhatTheServerSaid) {
  transport_.Will(
      403, R"({"kind":"Status","code":403,"reason":"Forbidden","message":"pods is forbidden"})");
  transport_.Will(200, "<html>Please log in</html>");
  (void)Waits(2);
  ASSERT_EQ(failures_.size(), 2U);
  EXPECT_EQ(failures_[0], "/api/v1/pods: pods is forbidden");
  EXPECT_THAT(failures_[1], HasSubstr("the answer is not JSON"));
}

// Objects "a" and "c" around an unreadable object, in a list or in an event.
TEST_F(ReflectorTest, AnUnreadableObjectHarmsNoOtherObject) {
  for (const auto& [broken, why] : std::vector<std::pair<json, std::string>>{
           {json(7), "it has no metadata"},
           {{{"metadata", json::array()}}, "it has no name"},
           {{{"metadata", {{"name", 7}, {"resourceVersion", "3"}}}}, "metadata.name is not a text"},
           {{{"metadata", {{"name", "b"}, {"namespace", json::array()}}}},
            "metadata.namespace is not a text"}}) {
    SCOPED_TRACE(broken.dump());
    Reflector watch(transport_, sleeper_, Rng(1), {.resource = kPods}, Handlers());
    for (int version = 5; version < 7; ++version) {
      transport_.Will(200, List(version, {Object("a", 1), broken, Object("c", 2)}));
      transport_.WillStream({kExpired});
    }
    ASSERT_TRUE(watch.Step().ok());
    EXPECT_THAT(Take(), ElementsAre("+a@1", " left out: " + why, "+c@2", "listed"));
    EXPECT_TRUE(absl::IsOutOfRange(watch.Step()));
    ASSERT_TRUE(watch.Step().ok());
    EXPECT_THAT(Take(), ElementsAre("+a@1", "+c@2", "listed")) << "it was told already";
    (void)watch.Step();
  }
}

TEST_F(ReflectorTest, AnEventAboutAnObjectThatCannotBeReadIsPassedOver) {
  transport_.Will(200, List(5, {Object("a", 1)}));
  transport_.WillStream({Event("ADDED", {{"metadata", {{"name", 1}, {"resourceVersion", "6"}}}}),
                         Event("DELETED", {{"metadata", {{"uid", "u"}, {"resourceVersion", "7"}}}}),
                         Event("ADDED", Object("b", 8))});
  ASSERT_TRUE(watch_.Step().ok());
  ASSERT_TRUE(watch_.Step().ok());
  EXPECT_THAT(Take(), ElementsAre("+a@1", "listed", " left out: metadata.name is not a text",
                                  " left out: it has no name", "+b@8"));
}

TEST_F(ReflectorTest, AnObjectIsToldUnreadableOncePerReasonAndStaysKnown) {
  const auto broken = [](int version, const char* why) {
    json object = Object("a", version);
    object["broken"] = why;
    return object;
  };
  json no_uid = Object("a", 9);
  no_uid["metadata"]["uid"] = 1;
  transport_.Will(200, List(5, {Object("a", 1)}));
  transport_.WillStream({Event("MODIFIED", broken(6, "x")), Event("MODIFIED", broken(7, "x")),
                         Event("MODIFIED", broken(8, "y")), kExpired});
  transport_.Will(200, List(9, {no_uid}));
  transport_.WillStream({Event("MODIFIED", Object("a", 10)), Event("MODIFIED", broken(11, "y")),
                         Event("DELETED", Object("a", 12))});
  ASSERT_TRUE(watch_.Step().ok());
  EXPECT_TRUE(absl::IsOutOfRange(watch_.Step()));
  EXPECT_THAT(Take(), ElementsAre("+a@1", "listed", "+a@6", "ns/a left out: \"x\"", "+a@7", "+a@8",
                                  "ns/a left out: \"y\""));
  ASSERT_TRUE(watch_.Step().ok());
  EXPECT_THAT(Take(), ElementsAre("ns/a left out: metadata.uid is not a text", "listed"));
  ASSERT_TRUE(watch_.Step().ok());
  EXPECT_THAT(Take(), ElementsAre("+a@10", "+a@11", "ns/a left out: \"y\"", "-a(u)"));
}

TEST_F(ReflectorTest, AListThatExpiredBetweenItsPagesIsAskedForWhole) {
  transport_.Will(200, List(5, {Object("a", 1)}, "c1"));
  transport_.Will(410, R"({"code":410,"reason":"Expired"})");
  transport_.Will(200, List(6, {Object("a", 1), Object("b", 6)}));
  transport_.WillStream({kExpired});
  transport_.Will(200, List(7, {}));
  EXPECT_TRUE(absl::IsOutOfRange(watch_.Step()));
  ASSERT_TRUE(watch_.Step().ok());
  EXPECT_THAT(Take(), ElementsAre("+a@1", "+a@1", "+b@6", "listed"));
  EXPECT_EQ(transport_.requests.at(2).target, "/api/v1/pods");
  (void)watch_.Step();
  ASSERT_TRUE(watch_.Step().ok());
  EXPECT_EQ(transport_.requests.at(4).target, "/api/v1/pods?limit=500")
      << "pages again once a list was whole";
}

// A server whose lists may come from a replica that is behind.
class LaggingServer final : public Transport {
 public:
  explicit LaggingServer(std::uint64_t seed) : rng_(seed) { history_.emplace_back(); }

  void Change() {
    std::map<std::string, json> next = history_.back();
    const int version = static_cast<int>(history_.size()) + 1;
    const std::string name(1, static_cast<char>('a' + rng_.Below(4)));
    if (next.contains(name) && rng_.Chance(1, 2)) {
      next.erase(name);
    } else {
      const bool made = !next.contains(name);
      next[name] = Object(
          name, version,
          made ? std::to_string(version) : next[name].at("metadata").at("uid").get<std::string>());
    }
    history_.push_back(std::move(next));
  }
  const std::map<std::string, json>& now() const { return history_.back(); }
  bool lags = true;

  absl::StatusOr<Response> Send(const Request&) override {
    const bool late = lags && rng_.Chance(1, 3);
    const std::size_t behind = late ? rng_.Below(std::min<std::size_t>(history_.size(), 6)) : 0;
    const std::size_t at = history_.size() - 1 - behind;
    std::vector<json> items;
    for (const auto& [name, object] : history_[at]) items.push_back(object);
    Response answer;
    answer.status = 200;
    answer.body = List(static_cast<int>(at) + 1, items);
    return answer;
  }
  // A few of the changes since then, and then the end, in order or as 410.
  absl::StatusOr<Response> Stream(const Request& request, const LineSink& sink,
                                  milliseconds) override {
    const std::string& target = request.target;
    auto at =
        static_cast<std::size_t>(std::stoi(target.substr(target.find("&resourceVersion=") + 17)));
    for (; at < history_.size() && !rng_.Chance(1, 8); ++at) {
      for (const auto& [name, object] : history_[at]) {
        const auto before = history_[at - 1].find(name);
        if (before != history_[at - 1].end() && before->second == object) continue;
        sink(Event(before == history_[at - 1].end() ? "ADDED" : "MODIFIED", object));
      }
      for (auto [name, object] : history_[at - 1]) {
        if (history_[at].contains(name)) continue;
        object["metadata"]["resourceVersion"] = std::to_string(at + 1);
        sink(Event("DELETED", object));
      }
    }
    if (rng_.Chance(1, 3)) sink(kExpired);
    Response answer;
    answer.status = 200;
    return answer;
  }

 private:
  Rng rng_;
  std::vector<std::map<std::string, json>> history_;  // version - 1 is the index
};

TEST(ReflectorPropertyTest, GoesBackInTimeOnlyAfterHistoryLostAndEndsWithTheTruth) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    LaggingServer server(seed);
    std::map<std::string, json> view;
    std::map<std::string, int> newest;  // by name, the last told version, deletes included
    WatchHandlers handlers;
    handlers.seen = [&](const json& object) {
      const json& metadata = object.at("metadata");
      const std::string name = metadata.at("name");
      const int version = std::stoi(metadata.at("resourceVersion").get<std::string>());
      EXPECT_GE(version, newest[name]) << seed;
      newest[name] = version;
      if (view.contains(name)) {
        EXPECT_EQ(view[name].at("metadata").at("uid"), metadata.at("uid")) << seed;
      }
      view[name] = object;
      return absl::OkStatus();
    };
    handlers.gone = [&](const ObjectKey& key, const std::string& uid) {
      ASSERT_TRUE(view.contains(key.name)) << seed;
      EXPECT_EQ(view[key.name].at("metadata").at("uid"), uid) << seed;
      view.erase(key.name);
    };
    handlers.listed = [] {};
    // A server that lags at each request looks like a server with a lost history.
    handlers.history_lost = [&](const std::string&) { newest.clear(); };
    testing::CountingSleeper sleeper;
    Reflector watch(server, sleeper, Rng(seed), {.resource = kPods}, handlers);
    Rng rng(seed);
    for (int turn = 0; turn < 60; ++turn) {
      for (std::uint64_t changes = rng.Below(4); changes > 0; --changes) server.Change();
      (void)watch.Step();
    }
    server.lags = false;
    for (int turn = 0; turn < 200 && view != server.now(); ++turn) (void)watch.Step();
    EXPECT_EQ(view, server.now()) << seed;
  }
}

TEST(ReflectorOverHttpTest, FollowsARealServerAndStops) {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::string> lines, seen;
  rest::Metrics metrics;
  rest::Server server({.stream_wait = milliseconds(20)}, metrics);
  server.Raw([&](const rest::Request& request) {
    if (!request.query_value("watch")) {
      return rest::Response::Json(200, List(5, {Object("a", 1)}));
    }
    return rest::Response::Stream(
        "application/json",
        [&, next = std::size_t{0}](std::string& out, milliseconds wait) mutable {
          std::unique_lock lock(mutex);
          changed.wait_for(lock, wait, [&] { return next < lines.size(); });
          while (next < lines.size()) out += lines[next++] + "\n";
          return true;
        });
  });
  ASSERT_EQ(server.Start(), absl::OkStatus());
  auto transport = HttpTransport::Create({.server = server.url()});
  ASSERT_TRUE(transport.ok());
  InterruptibleSleeper sleeper;
  const auto told = [&](const std::string& what) {
    const std::lock_guard lock(mutex);
    seen.push_back(what);
    if (what == "listed") lines.push_back(Event("ADDED", Object("b", 6)));
    changed.notify_all();
  };
  Reflector reflector(**transport, sleeper, Rng(1), {.resource = kPods},
                      {.seen =
                           [&](const json& object) {
                             told("+" + std::string(NameOf(object)));
                             return absl::OkStatus();
                           },
                       .gone = [](const ObjectKey&, const std::string&) {},
                       .listed = [&] { told("listed"); }});
  reflector.Start();
  {
    std::unique_lock lock(mutex);
    changed.wait_for(lock, std::chrono::seconds(10), [&] { return seen.size() >= 3; });
    EXPECT_THAT(seen, ElementsAre("+a", "listed", "+b"));
  }
  sleeper.Interrupt();
  (*transport)->Shutdown();
  reflector.Stop();
}

}  // namespace
}  // namespace tahoma::kube
