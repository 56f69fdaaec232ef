// WatchCache against missed deletes, versions that go back, 410, and unreadable events.

#include "lib/kube/watch_cache.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "lib/base/json.h"
#include "lib/base/rng.h"
#include "lib/base/status.h"

namespace tahoma::kube {
namespace {

using json = Json;

json Node(const std::string& name, int version, const std::string& uid = "") {
  return {{"kind", "Node"},
          {"metadata",
           {{"name", name},
            {"uid", uid.empty() ? "uid-" + name : uid},
            {"resourceVersion", std::to_string(version)}}}};
}
json ListAt(int version, std::vector<json> items, const std::string& next = "") {
  json list{{"kind", "NodeList"},
            {"metadata", {{"resourceVersion", std::to_string(version)}}},
            {"items", std::move(items)}};
  if (!next.empty()) list["metadata"]["continue"] = next;
  return list;
}

// Told as text: "+a@1" seen for the first time, "~a@2" again, "-a" gone, "listed", and the rest.
class WatchCacheTest : public ::testing::Test {
 protected:
  std::vector<std::string> Take() { return std::exchange(told_, {}); }
  bool Goes(const std::string& type, const json& object) {
    return cache_.AddEvent(type, object).ok();
  }

  std::vector<std::string> told_;
  std::map<ObjectKey, std::string> uids_;
  WatchCache cache_{{.seen =
                         [this](const json& object) {
                           const bool is_new = uids_.emplace(KeyOf(object), UidOf(object)).second;
                           EXPECT_EQ(uids_[KeyOf(object)], UidOf(object));
                           told_.push_back((is_new ? "+" : "~") + std::string(NameOf(object)) +
                                           "@" + std::string(ResourceVersionOf(object)));
                           return absl::OkStatus();
                         },
                     .gone =
                         [this](const ObjectKey& key, const std::string& uid) {
                           EXPECT_EQ(uids_[key], uid);
                           uids_.erase(key);
                           told_.push_back("-" + key.name);
                         },
                     .listed = [this] { told_.push_back("listed"); },
                     .unreadable =
                         [this](const ObjectKey& key, const absl::Status& why) {
                           told_.push_back(fmt::format("{} left out: {}", key.name, Message(why)));
                         },
                     .history_lost = [this](const std::string&) { told_.push_back("lost"); }}};
};
using Strings = std::vector<std::string>;

TEST_F(WatchCacheTest, AListInPagesIsToldAndThenListed) {
  cache_.BeginList();
  EXPECT_EQ(*cache_.AddPage(ListAt(5, {Node("a", 1), Node("b", 2)}, "more")), "more");
  EXPECT_EQ(cache_.resource_version(), "");
  EXPECT_EQ(*cache_.AddPage(ListAt(5, {Node("c", 3)})), "");
  EXPECT_EQ(Take(), (Strings{"+a@1", "+b@2", "+c@3", "listed"}));
  EXPECT_EQ(cache_.resource_version(), "5");
  EXPECT_EQ(cache_.size(), 3u);
}

TEST_F(WatchCacheTest, LinesMoveThePlace) {
  cache_.BeginList();
  ASSERT_TRUE(cache_.AddPage(ListAt(5, {Node("a", 1)})).ok());
  Take();
  EXPECT_TRUE(Goes("ADDED", Node("b", 6)));
  EXPECT_TRUE(Goes("MODIFIED", Node("a", 7)));
  EXPECT_TRUE(Goes("MODIFIED", Node("a", 7)));
  EXPECT_TRUE(Goes("DELETED", Node("b", 8)));
  EXPECT_TRUE(Goes("DELETED", Node("b", 8)));
  EXPECT_TRUE(Goes("BOOKMARK", Node("", 20)));
  EXPECT_EQ(Take(), (Strings{"+b@6", "~a@7", "-b"}));
  EXPECT_EQ(cache_.resource_version(), "20");
}

TEST_F(WatchCacheTest, ANewListShowsWhatWasMissed) {
  cache_.BeginList();
  ASSERT_TRUE(
      cache_.AddPage(ListAt(5, {Node("a", 1), Node("b", 2), Node("c", 3), Node("d", 4)})).ok());
  Take();
  cache_.BeginList();
  ASSERT_TRUE(cache_.AddPage(ListAt(9, {Node("a", 1), Node("b", 7), Node("d", 8, "other")})).ok());
  EXPECT_EQ(Take(), (Strings{"~a@1", "~b@7", "-d", "+d@8", "-c", "listed"}))
      << "what is as it was too: the owner may have written what the server has lost";
}

TEST_F(WatchCacheTest, ALostPlaceIsListedAgain) {
  const std::vector<std::pair<std::string, json>> events = {
      {"ERROR", {{"code", 410}}},
      {"ERROR", {{"reason", "Expired"}}},
      {"", nullptr},
      {"ADDED", json::object()},
      {"ADDED", nullptr},
      {"SHOUTED", Node("a", 1)},
      {"ADDED", {{"metadata", {{"name", "a"}}}}}};
  for (const auto& [type, object] : events) {
    cache_.BeginList();
    ASSERT_TRUE(cache_.AddPage(ListAt(5, {})).ok());
    EXPECT_FALSE(Goes(type, object)) << type << object;
    EXPECT_EQ(cache_.resource_version(), "") << type << object;
  }
  cache_.BeginList();
  ASSERT_TRUE(cache_.AddPage(ListAt(5, {})).ok());
  EXPECT_FALSE(Goes("ERROR", {{"code", 500}}));
  EXPECT_EQ(cache_.resource_version(), "5");
  EXPECT_EQ(cache_.size(), 0u);
}

TEST_F(WatchCacheTest, WhatIsNotAListIsRefused) {
  for (const json& page :
       {json(), json::object(), json{{"items", 1}}, json{{"items", json::array()}}}) {
    EXPECT_FALSE(cache_.AddPage(page).ok()) << page;
  }
  EXPECT_TRUE(
      cache_.AddPage(ParseJson(R"({"items":null,"metadata":{"resourceVersion":"1"}})")).ok());
}

// The defect: an object never seen was reported as gone, with an empty uid.
TEST_F(WatchCacheTest, AnObjectThatWasNeverReadIsNotGone) {
  const json no_uid{{"metadata", {{"name", "a"}, {"uid", 1}, {"resourceVersion", "1"}}}};
  for (const std::vector<json>& items : {std::vector<json>{no_uid}, {no_uid}, {}, {no_uid}}) {
    cache_.BeginList();
    ASSERT_TRUE(cache_.AddPage(ListAt(5, items)).ok());
  }
  const std::string left_out = "a left out: metadata.uid is not a text";
  EXPECT_EQ(Take(), (Strings{left_out, "listed", "listed", "listed", left_out, "listed"}))
      << "nothing is remembered of it once it is no longer listed";
  EXPECT_EQ(cache_.size(), 0u);
}

TEST_F(WatchCacheTest, AnObjectTwiceInAListIsNoLostHistory) {
  cache_.BeginList();
  ASSERT_TRUE(cache_.AddPage(ListAt(9, {Node("a", 5), Node("a", 3)}, "more")).ok());
  ASSERT_TRUE(cache_.AddPage(ListAt(9, {Node("a", 4)})).ok());
  EXPECT_EQ(Take(), (Strings{"+a@5", "listed"}));
}

TEST_F(WatchCacheTest, AListOlderThanWhatWasSeenIsRefused) {
  cache_.BeginList();
  ASSERT_TRUE(cache_.AddPage(ListAt(5, {Node("a", 1)})).ok());
  EXPECT_TRUE(Goes("MODIFIED", Node("a", 7)));
  Take();
  cache_.BeginList();
  EXPECT_TRUE(
      absl::IsUnavailable(cache_.AddPage(ListAt(6, {Node("a", 1), Node("b", 6)})).status()));
  EXPECT_TRUE(Take().empty());
  EXPECT_EQ(*cache_.AddPage(ListAt(7, {Node("a", 7)})), "");
  EXPECT_EQ(Take(), (Strings{"~a@7", "listed"}));
}

TEST_F(WatchCacheTest, AServerWhoseListsStayOldIsBelievedAfterSeveralRefusals) {
  cache_.BeginList();
  ASSERT_TRUE(cache_.AddPage(ListAt(500, {Node("a", 300), Node("b", 400)})).ok());
  Take();
  for (int i = 0; i < NewestVersion::kRefusalsMax; ++i) {
    cache_.BeginList();
    EXPECT_FALSE(cache_.AddPage(ListAt(20, {Node("a", 12)})).ok());
  }
  cache_.BeginList();
  EXPECT_TRUE(cache_.AddPage(ListAt(20, {Node("a", 12)})).ok());
  EXPECT_EQ(cache_.resource_version(), "20");
  EXPECT_TRUE(Goes("MODIFIED", Node("a", 21)));
  EXPECT_EQ(Take(), (Strings{"lost", "~a@12", "-b", "listed", "~a@21"}));
}

TEST_F(WatchCacheTest, OfEventsAboutAnObjectTheNewerIsKept) {
  cache_.BeginList();
  ASSERT_TRUE(cache_.AddPage(ListAt(9, {Node("a", 8), Node("b", 4)})).ok());
  Take();
  EXPECT_TRUE(Goes("DELETED", Node("a", 7, "older")));
  EXPECT_TRUE(Goes("MODIFIED", Node("a", 7)));
  EXPECT_TRUE(Goes("DELETED", Node("b", 1)));
  EXPECT_TRUE(Goes("BOOKMARK", Node("", 2)));
  EXPECT_EQ(Take(), (Strings{"-b"})) << "a delete of the known object is final";
  EXPECT_EQ(cache_.resource_version(), "9");
}

// The defect: older objects were dropped as news from the past. The server was restored from a
// backup, and later writes brought it beyond the seen versions.
TEST_F(WatchCacheTest, ObjectsThatWentBackInANewListAreTheTruth) {
  cache_.BeginList();
  ASSERT_TRUE(cache_.AddPage(ListAt(50, {Node("a", 30), Node("b", 40), Node("c", 41)})).ok());
  Take();
  cache_.BeginList();
  ASSERT_TRUE(cache_.AddPage(ListAt(60, {Node("a", 12), Node("b", 10, "before")})).ok());
  EXPECT_TRUE(Goes("MODIFIED", Node("a", 61)));
  EXPECT_EQ(Take(), (Strings{"lost", "~a@12", "-b", "+b@10", "-c", "listed", "~a@61"}));
}

// Whatever is lost on the way, after a list the owner knows the server's objects.
RC_GTEST_PROP(WatchCacheProperty, TheOwnersViewFollowsTheServer, (std::uint64_t seed)) {
  Rng rng(seed);
  std::map<std::string, json> server;
  std::map<std::string, std::string> view;
  const auto name_of = [](const json& object) { return std::string(NameOf(object)); };
  WatchCache cache({.seen =
                        [&](const json& object) {
                          const auto known = view.find(name_of(object));
                          if (known != view.end()) {
                            RC_ASSERT(UidOf(ParseJson(known->second)) == UidOf(object));
                          }
                          view[name_of(object)] = object.dump();
                          return absl::OkStatus();
                        },
                    .gone = [&](const ObjectKey& key,
                                const std::string&) { RC_ASSERT(view.erase(key.name) == 1); },
                    .listed = [] {}});
  bool broken = true;
  for (int version = 1; version < 100; ++version) {
    const std::string name(1, static_cast<char>('a' + rng.Below(6)));
    std::string type = "DELETED";
    json object = Node(name, version);
    if (server.contains(name) && rng.Chance(1, 3)) {
      object["metadata"]["uid"] = UidOf(server[name]);
      server.erase(name);
    } else {
      const bool is_new = !server.contains(name);
      const std::string uid = is_new ? std::to_string(version) : std::string(UidOf(server[name]));
      type = is_new ? "ADDED" : "MODIFIED";
      server[name] = object = Node(name, version, uid);
    }
    if (rng.Chance(1, 10)) broken = true;
    if (!broken) RC_ASSERT(cache.AddEvent(type, object).ok());
    if (broken && rng.Chance(1, 4)) {
      std::vector<json> items;
      for (const auto& [unused, shown] : server) items.push_back(shown);
      cache.BeginList();
      RC_ASSERT(cache.AddPage(ListAt(version, items)).ok());
      broken = false;
    }
    if (broken) continue;
    RC_ASSERT(view.size() == server.size());
    for (const auto& [key, shown] : server) RC_ASSERT(view[key] == shown.dump());
  }
}

}  // namespace
}  // namespace tahoma::kube
