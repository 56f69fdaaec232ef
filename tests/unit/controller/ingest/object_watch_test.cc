// What an ObjectWatch tells when the world misbehaves: objects made again, lists that are older
// than what was seen, servers that answer nonsense, and how long it waits for them.

#include "controller/ingest/object_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "lib/base/rng.h"
#include "lib/base/status.h"
#include "tests/unit/lib/kube/scripted_transport.h"

namespace tahoma::controller {
namespace {

using nlohmann::json;
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
    };
    handlers.gone = [this](const std::string& ns, const std::string& name, const std::string& uid) {
      EXPECT_EQ(ns, "ns");
      told_.push_back("-" + name + "(" + uid + ")");
    };
    handlers.listed = [this] { told_.push_back("listed"); };
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

}  // namespace
}  // namespace tahoma::controller
