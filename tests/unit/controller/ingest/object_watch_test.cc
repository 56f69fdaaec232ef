// What an ObjectWatch tells when the world misbehaves: objects made again, lists that are older
// than what was seen, servers that answer nonsense, and how long it waits for them.

#include "controller/ingest/object_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "lib/base/json.h"
#include "lib/base/rng.h"
#include "lib/base/status.h"
#include "tests/unit/lib/kube/scripted_transport.h"

namespace tahoma::controller {
namespace {

using json = Json;
using std::chrono::milliseconds;
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
class ObjectWatchStepTest : public ::testing::Test {
 protected:
  std::vector<std::string> Take() { return std::exchange(told_, {}); }

  ObjectWatch::Handlers Handlers() {
    ObjectWatch::Handlers handlers;
    handlers.wanted = [](const json& object) { return object.value("wanted", true); };
    handlers.seen = [this](const json& object) {
      const json& metadata = object.at("metadata");
      told_.push_back("+" + metadata.at("name").get<std::string>() + "@" +
                      metadata.at("resourceVersion").get<std::string>());
      return object.contains("broken") ? InvalidArgument("{}", object.at("broken").dump())
                                       : absl::OkStatus();
    };
    handlers.unreadable = [this](const std::string& name, const absl::Status& why) {
      told_.push_back(fmt::format("{} left out: {}", name, Message(why)));
    };
    handlers.gone = [this](const std::string& ns, const std::string& name, const std::string& uid) {
      EXPECT_EQ(ns, "ns");
      told_.push_back("-" + name + "(" + uid + ")");
    };
    handlers.listed = [this] { told_.push_back("listed"); };
    handlers.history_lost = [this](const std::string& why) { told_.push_back("lost: " + why); };
    handlers.failed = [this](const absl::Status& status) {
      failures_.emplace_back(Message(status));
    };
    return handlers;
  }

  ScriptedTransport transport_;
  std::vector<std::string> told_;
  std::vector<std::string> failures_;
  ObjectWatch watch_{transport_, {.path = "/api/v1/pods", .field_selector = ""}, Handlers()};
};

TEST_F(ObjectWatchStepTest, AnObjectMadeAgainBetweenTwoListsIsGoneBeforeItIsSeen) {
  transport_.Will(200, List(5, {Object("a", 3, "first"), Object("b", 4)}));
  transport_.WillStream({kExpired});
  transport_.Will(200, List(9, {Object("a", 8, "second"), Object("b", 4)}));
  ASSERT_TRUE(watch_.Step().ok());
  Take();
  EXPECT_TRUE(absl::IsOutOfRange(watch_.Step()));
  ASSERT_TRUE(watch_.Step().ok());
  EXPECT_THAT(Take(), ElementsAre("-a(first)", "+a@8", "+b@4", "listed"));
}

TEST_F(ObjectWatchStepTest, AnObjectMadeAgainForAnotherSchedulerIsGone) {
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

TEST_F(ObjectWatchStepTest, AnObjectThatIsNoLongerWantedIsGoneAtOnce) {
  json changed = Object("a", 6);
  changed["wanted"] = false;
  transport_.Will(200, List(5, {Object("a", 3)}));
  transport_.WillStream({Event("MODIFIED", changed), Event("DELETED", Object("a", 7))});
  ASSERT_TRUE(watch_.Step().ok());
  Take();
  ASSERT_TRUE(watch_.Step().ok());
  EXPECT_THAT(Take(), ElementsAre("-a(u)"));
}

TEST_F(ObjectWatchStepTest, ADeleteOfASuccessorThatWasNeverSeenTakesTheKnownOneAway) {
  transport_.Will(200, List(5, {Object("a", 3, "first")}));
  transport_.WillStream({Event("DELETED", Object("a", 9, "second"))});
  ASSERT_TRUE(watch_.Step().ok());
  Take();
  ASSERT_TRUE(watch_.Step().ok());
  EXPECT_THAT(Take(), ElementsAre("-a(first)"));
}

TEST_F(ObjectWatchStepTest, AListOlderThanWhatWasSeenIsRefused) {
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

TEST_F(ObjectWatchStepTest, ASecondPageOlderThanTheFirstIsRefused) {
  transport_.Will(200, List(9, {Object("a", 8)}, "more"));
  transport_.Will(200, List(6, {Object("b", 2)}));
  EXPECT_TRUE(absl::IsUnavailable(watch_.Step()));
  EXPECT_THAT(Take(), ElementsAre("+a@8"));
}

TEST_F(ObjectWatchStepTest, AServerThatLostItsHistoryIsBelievedAfterAWhile) {
  transport_.Will(200, List(500, {Object("a", 300), Object("b", 400)}));
  transport_.WillStream({kExpired});
  for (int i = 0; i <= kube::NewestVersion::kRefusalsMax; ++i) {
    transport_.Will(200, List(20, {Object("a", 12)}));
  }
  transport_.WillStream({Event("MODIFIED", Object("a", 21))});
  ASSERT_TRUE(watch_.Step().ok());
  EXPECT_TRUE(absl::IsOutOfRange(watch_.Step()));
  Take();
  for (int i = 0; i < kube::NewestVersion::kRefusalsMax; ++i) {
    EXPECT_TRUE(absl::IsUnavailable(watch_.Step())) << i;
  }
  EXPECT_THAT(Take(), IsEmpty());
  ASSERT_TRUE(watch_.Step().ok());
  EXPECT_THAT(Take(), ElementsAre("lost: its lists are of version 20, older than what was seen",
                                  "+a@12", "-b(u)", "listed"));
  ASSERT_TRUE(watch_.Step().ok());
  EXPECT_THAT(Take(), ElementsAre("+a@21"));
}

// The defect: they were dropped as if they were news from the past. The server was restored from a
// backup, and what it was written since brought it past the versions that were seen.
TEST_F(ObjectWatchStepTest, ObjectsThatWentBackInANewListAreTheTruth) {
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

TEST_F(ObjectWatchStepTest, AServerWithoutThePlaceOfTheWatchIsListed) {
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

TEST_F(ObjectWatchStepTest, OfEventsAboutAnObjectTheNewerIsKept) {
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

TEST_F(ObjectWatchStepTest, ListsAskForTheMostRecentState) {
  transport_.Will(200, List(5, {}));
  transport_.WillStream({kExpired});
  transport_.Will(200, List(6, {}));
  for (int i = 0; i < 3; ++i) (void)watch_.Step();
  // A resourceVersion would let the server answer from a cache.
  EXPECT_EQ(transport_.requests.at(2).target, "/api/v1/pods?limit=500");
}

// How long Run waits, until it was asked to `count` times.
class ObjectWatchWaitsTest : public ObjectWatchStepTest {
 protected:
  std::vector<milliseconds> Waits(std::size_t count) {
    std::vector<milliseconds> waits;
    watch_.Run([&](milliseconds pause) {
      waits.push_back(pause);
      return waits.size() < count;
    });
    return waits;
  }
};

TEST_F(ObjectWatchWaitsTest, AServerWhoseListsWorkAndWhoseWatchesDoNotIsAskedLessAndLessOften) {
  for (const std::vector<std::string>& lines :
       {std::vector<std::string>{"<html>"}, std::vector<std::string>{kExpired}, {}}) {
    ObjectWatch watch(transport_, {.path = "/api/v1/pods", .field_selector = ""}, Handlers());
    for (int i = 0; i < 8; ++i) {
      transport_.Will(200, List(5, {}));  // to a watch: one that ends at once
      transport_.WillStream(lines);
    }
    std::vector<milliseconds> waits;
    watch.Run([&](milliseconds pause) {
      waits.push_back(pause);
      return waits.size() < 4;
    });
    EXPECT_THAT(waits, ElementsAre(milliseconds(100), milliseconds(200), milliseconds(400),
                                   milliseconds(800)))
        << json(lines);
    while (!transport_.done()) (void)transport_.Send({});
  }
}

TEST_F(ObjectWatchWaitsTest, AWatchThatBroughtSomethingGoesOnAtOnce) {
  transport_.Will(200, List(5, {}));
  for (int i = 0; i < 5; ++i) {
    transport_.WillStream({Event("BOOKMARK", Object("", 6 + i))});
    transport_.WillStream({Event("ADDED", Object("a", 20 + i)), kExpired});
    transport_.Will(200, List(30 + i, {}));
  }
  EXPECT_THAT(Waits(1), ElementsAre(milliseconds(100)));
  EXPECT_THAT(failures_, ElementsAre("/api/v1/pods: the script is over"));
  EXPECT_EQ(transport_.requests.size(), 17U);
}

// A real API server that was restored to before the place of a watch leaves it open and silent.
TEST_F(ObjectWatchWaitsTest, AWatchThatBroughtNothingIsFollowedByAList) {
  transport_.Will(200, List(50, {Object("a", 40)}));
  transport_.WillStream({Event("BOOKMARK", Object("", 51))});
  transport_.WillStream({});
  transport_.Will(200, List(60, {Object("a", 20)}));
  (void)Waits(2);
  EXPECT_THAT(Take(), ElementsAre("+a@40", "listed",
                                  "lost: ns/a is of version 20, older than what was seen", "+a@20",
                                  "listed"));
}

TEST_F(ObjectWatchWaitsTest, TheServersRetryAfterIsHonouredWithinReason) {
  transport_.Will(429, "", {{"Retry-After", "7"}});
  transport_.Will(503, R"({"details":{"retryAfterSeconds":9}})");
  transport_.Will(429, "", {{"Retry-After", "86400"}});
  EXPECT_THAT(Waits(3),
              ElementsAre(milliseconds(7'000), milliseconds(9'000), milliseconds(60'000)));
}

TEST_F(ObjectWatchWaitsTest, AFailureSaysWhatTheServerSaid) {
  transport_.Will(
      403, R"({"kind":"Status","code":403,"reason":"Forbidden","message":"pods is forbidden"})");
  transport_.Will(200, "<html>Please log in</html>");
  (void)Waits(2);
  ASSERT_EQ(failures_.size(), 2U);
  EXPECT_EQ(failures_[0], "/api/v1/pods: pods is forbidden");
  EXPECT_THAT(failures_[1], HasSubstr("a list that cannot be read"));
}

// Objects "a" and "c" around one that cannot be read, in a list or in an event.
TEST_F(ObjectWatchStepTest, OneObjectThatCannotBeReadHarmsNoOther) {
  for (const auto& [broken, why] : std::vector<std::pair<json, std::string>>{
           {json(7), "it has no metadata"},
           {{{"metadata", json::array()}}, "it has no name"},
           {{{"metadata", {{"name", 7}, {"resourceVersion", "3"}}}}, "metadata.name is not a text"},
           {{{"metadata", {{"name", "b"}, {"namespace", json::array()}}}},
            "metadata.namespace is not a text"}}) {
    SCOPED_TRACE(broken.dump());
    ObjectWatch watch(transport_, {.path = "/api/v1/pods", .field_selector = ""}, Handlers());
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

TEST_F(ObjectWatchStepTest, AnEventAboutAnObjectThatCannotBeReadIsPassedOver) {
  transport_.Will(200, List(5, {Object("a", 1)}));
  transport_.WillStream({Event("ADDED", {{"metadata", {{"name", 1}, {"resourceVersion", "6"}}}}),
                         Event("DELETED", {{"metadata", {{"uid", "u"}, {"resourceVersion", "7"}}}}),
                         Event("ADDED", Object("b", 8))});
  ASSERT_TRUE(watch_.Step().ok());
  ASSERT_TRUE(watch_.Step().ok());
  EXPECT_THAT(Take(), ElementsAre("+a@1", "listed", " left out: metadata.name is not a text",
                                  " left out: it has no name", "+b@8"));
}

TEST_F(ObjectWatchStepTest, AnObjectIsToldUnreadableOncePerReasonAndStaysKnown) {
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

TEST_F(ObjectWatchStepTest, AListThatExpiredBetweenItsPagesIsAskedForWhole) {
  transport_.Will(200, List(5, {Object("a", 1)}, "c1"));
  transport_.Will(410, R"({"code":410,"reason":"Expired"})");
  transport_.Will(200, List(6, {Object("a", 1), Object("b", 6)}));
  transport_.WillStream({kExpired});
  transport_.Will(200, List(7, {}));
  EXPECT_TRUE(absl::IsOutOfRange(watch_.Step()));
  ASSERT_TRUE(watch_.Step().ok());
  EXPECT_THAT(Take(), ElementsAre("+a@1", "+a@1", "+b@6", "listed"));
  EXPECT_EQ(transport_.requests.at(2).target, "/api/v1/pods?limit=0");
  (void)watch_.Step();
  ASSERT_TRUE(watch_.Step().ok());
  EXPECT_EQ(transport_.requests.at(4).target, "/api/v1/pods?limit=500");
}

// A server of which every list may come from a replica that is behind.
class LaggingServer final : public kube::Transport {
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

  absl::StatusOr<kube::Response> Send(const kube::Request&) override {
    const bool late = lags && rng_.Chance(1, 3);
    const std::size_t behind = late ? rng_.Below(std::min<std::size_t>(history_.size(), 6)) : 0;
    const std::size_t at = history_.size() - 1 - behind;
    std::vector<json> items;
    for (const auto& [name, object] : history_[at]) items.push_back(object);
    kube::Response answer;
    answer.status = 200;
    answer.body = List(static_cast<int>(at) + 1, items);
    return answer;
  }
  // A few of the changes since then, and then the end, in order or as 410.
  absl::StatusOr<kube::Response> Stream(const kube::Request& request, const kube::LineSink& sink,
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
    kube::Response answer;
    answer.status = 200;
    return answer;
  }

 private:
  Rng rng_;
  std::vector<std::map<std::string, json>> history_;  // version - 1 is the index
};

TEST(ObjectWatchPropertyTest, GoesBackInTimeOnlyIfItSaysSoAndEndsWithTheTruth) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    LaggingServer server(seed);
    std::map<std::string, json> view;
    std::map<std::string, int> newest;  // by name, what was told last, deletes included
    ObjectWatch::Handlers handlers;
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
    handlers.gone = [&](const std::string&, const std::string& name, const std::string& uid) {
      ASSERT_TRUE(view.contains(name)) << seed;
      EXPECT_EQ(view[name].at("metadata").at("uid"), uid) << seed;
      view.erase(name);
    };
    handlers.listed = [] {};
    // A server that lags each time it is asked cannot be told from one that lost its history.
    handlers.history_lost = [&](const std::string&) { newest.clear(); };
    ObjectWatch watch(server, {.path = "/p", .field_selector = ""}, handlers);
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

}  // namespace
}  // namespace tahoma::controller
