// Lists and watches: broken streams, 410, missed deletes, lines that cannot be read.

#include "lib/kube/list_watch.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <condition_variable>
#include <future>
#include <map>
#include <mutex>

#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/kube/http_transport.h"
#include "lib/rest/server.h"
#include "tests/unit/lib/kube/scripted_transport.h"

namespace tahoma::kube {
namespace {

using json = Json;
using std::chrono::milliseconds;
using testing::CountingSleeper;
using testing::ScriptedTransport;

const Resource kNodes{.group = "", .version = "v1", .plural = "nodes", .namespaced = false};

json Node(const std::string& name, int version, const std::string& uid = "") {
  return {{"kind", "Node"},
          {"metadata",
           {{"name", name},
            {"uid", uid.empty() ? "uid-" + name : uid},
            {"resourceVersion", std::to_string(version)}}}};
}
json List(int version, std::vector<json> items, const std::string& next = "") {
  json list{{"kind", "NodeList"},
            {"metadata", {{"resourceVersion", std::to_string(version)}}},
            {"items", std::move(items)}};
  if (!next.empty()) list["metadata"]["continue"] = next;
  return list;
}
std::string Line(const std::string& type, const json& object) {
  return json{{"type", type}, {"object", object}}.dump();
}

// Events as text: "+a@1", "~a@2", "-a", "-a?" (without object), "synced".
std::string Show(const WatchEvent& event) {
  const std::string version =
      event.object == nullptr ? "?" : "@" + std::string(ResourceVersionOf(*event.object));
  switch (event.type) {
    case WatchEvent::Type::kAdded:
      return "+" + event.key.name + version;
    case WatchEvent::Type::kModified:
      return "~" + event.key.name + version;
    case WatchEvent::Type::kDeleted:
      return "-" + event.key.name + (event.object ? "" : "?");
    case WatchEvent::Type::kSynced:
      return "synced";
  }
  return "";
}

class WatchCacheTest : public ::testing::Test {
 protected:
  std::vector<std::string> Take() { return std::exchange(seen_, {}); }
  std::vector<std::string> seen_;
  WatchCache cache_{[this](const WatchEvent& event) { seen_.push_back(Show(event)); }};
};
using Strings = std::vector<std::string>;

TEST_F(WatchCacheTest, AListInPagesIsToldAndThenSynced) {
  cache_.BeginList();
  EXPECT_EQ(*cache_.AddPage(List(5, {Node("a", 1), Node("b", 2)}, "more")), "more");
  EXPECT_EQ(cache_.resource_version(), "");
  EXPECT_EQ(*cache_.AddPage(List(5, {Node("c", 3)})), "");
  EXPECT_EQ(Take(), (Strings{"+a@1", "+b@2", "+c@3", "synced"}));
  EXPECT_EQ(cache_.resource_version(), "5");
  EXPECT_EQ(cache_.size(), 3u);
}

TEST_F(WatchCacheTest, LinesMoveThePlace) {
  cache_.BeginList();
  ASSERT_TRUE(cache_.AddPage(List(5, {Node("a", 1)})).ok());
  Take();
  EXPECT_EQ(cache_.AddLine(Line("ADDED", Node("b", 6))), WatchCache::Next::kContinue);
  EXPECT_EQ(cache_.AddLine(Line("MODIFIED", Node("a", 7))), WatchCache::Next::kContinue);
  EXPECT_EQ(cache_.AddLine(Line("MODIFIED", Node("a", 7))), WatchCache::Next::kContinue);
  EXPECT_EQ(cache_.AddLine(Line("DELETED", Node("b", 8))), WatchCache::Next::kContinue);
  EXPECT_EQ(cache_.AddLine(Line("DELETED", Node("b", 8))), WatchCache::Next::kContinue);
  EXPECT_EQ(cache_.AddLine(Line("BOOKMARK", Node("", 20))), WatchCache::Next::kContinue);
  EXPECT_EQ(Take(), (Strings{"+b@6", "~a@7", "-b"}));
  EXPECT_EQ(cache_.resource_version(), "20");
}

TEST_F(WatchCacheTest, ANewListShowsWhatWasMissed) {
  cache_.BeginList();
  ASSERT_TRUE(
      cache_.AddPage(List(5, {Node("a", 1), Node("b", 2), Node("c", 3), Node("d", 4)})).ok());
  Take();
  cache_.BeginList();
  ASSERT_TRUE(cache_.AddPage(List(9, {Node("a", 1), Node("b", 7), Node("d", 8, "other")})).ok());
  EXPECT_EQ(Take(), (Strings{"~a@1", "~b@7", "-d?", "+d@8", "-c?", "synced"}))
      << "what is as it was too: the owner may have written what the server has lost";
}

TEST_F(WatchCacheTest, ALostPlaceIsListedAgain) {
  for (const std::string& line :
       {Line("ERROR", {{"code", 410}}), Line("ERROR", {{"reason", "Expired"}}), std::string("{"),
        std::string("[]"), std::string("{}"), Line("ADDED", json::object()), Line("ADDED", nullptr),
        Line("SHOUTED", Node("a", 1)), Line("ADDED", {{"metadata", {{"name", "a"}}}}),
        std::string(R"({"type":1,"object":{}})")}) {
    EXPECT_EQ(cache_.AddLine(line), WatchCache::Next::kListAgain) << line;
  }
  EXPECT_EQ(cache_.AddLine(Line("ERROR", {{"code", 500}})), WatchCache::Next::kWatchAgain);
  EXPECT_TRUE(seen_.empty());
}

TEST_F(WatchCacheTest, WhatIsNotAListIsRefused) {
  for (const json& page : {json(), json::object(), json{{"items", 1}},
                           json{{"items", json::array()}}, List(1, {json::object()})}) {
    EXPECT_FALSE(cache_.AddPage(page).ok()) << page;
  }
  EXPECT_TRUE(
      cache_.AddPage(json::parse(R"({"items":null,"metadata":{"resourceVersion":"1"}})")).ok());
}

TEST_F(WatchCacheTest, AListOlderThanWhatWasSeenIsRefused) {
  cache_.BeginList();
  ASSERT_TRUE(cache_.AddPage(List(5, {Node("a", 1)})).ok());
  EXPECT_EQ(cache_.AddLine(Line("MODIFIED", Node("a", 7))), WatchCache::Next::kContinue);
  Take();
  cache_.BeginList();
  EXPECT_TRUE(absl::IsUnavailable(cache_.AddPage(List(6, {Node("a", 1), Node("b", 6)})).status()));
  EXPECT_TRUE(Take().empty());
  EXPECT_EQ(*cache_.AddPage(List(7, {Node("a", 7)})), "");
  EXPECT_EQ(Take(), (Strings{"~a@7", "synced"}));
}

TEST_F(WatchCacheTest, AServerThatLostItsHistoryIsBelievedAfterAWhile) {
  cache_.BeginList();
  ASSERT_TRUE(cache_.AddPage(List(500, {Node("a", 300), Node("b", 400)})).ok());
  Take();
  for (int i = 0; i < NewestVersion::kRefusalsMax; ++i) {
    cache_.BeginList();
    EXPECT_FALSE(cache_.AddPage(List(20, {Node("a", 12)})).ok());
  }
  cache_.BeginList();
  EXPECT_TRUE(cache_.AddPage(List(20, {Node("a", 12)})).ok());
  EXPECT_EQ(cache_.resource_version(), "20");
  EXPECT_EQ(cache_.AddLine(Line("MODIFIED", Node("a", 21))), WatchCache::Next::kContinue);
  EXPECT_EQ(Take(), (Strings{"~a@12", "-b?", "synced", "~a@21"}));
}

TEST_F(WatchCacheTest, OfEventsAboutAnObjectTheNewerIsKept) {
  cache_.BeginList();
  ASSERT_TRUE(cache_.AddPage(List(9, {Node("a", 8), Node("b", 4)})).ok());
  Take();
  EXPECT_EQ(cache_.AddLine(Line("DELETED", Node("a", 7, "older"))), WatchCache::Next::kContinue);
  EXPECT_EQ(cache_.AddLine(Line("MODIFIED", Node("a", 7))), WatchCache::Next::kContinue);
  EXPECT_EQ(cache_.AddLine(Line("DELETED", Node("b", 1))), WatchCache::Next::kContinue);
  EXPECT_EQ(cache_.AddLine(Line("BOOKMARK", Node("", 2))), WatchCache::Next::kContinue);
  EXPECT_EQ(Take(), (Strings{"-b"})) << "a delete of the known object is final";
  EXPECT_EQ(cache_.resource_version(), "9");
}

// The defect: they were dropped as if they were news from the past. The server was restored from a
// backup, and what it was written since brought it past the versions that were seen.
TEST_F(WatchCacheTest, ObjectsThatWentBackInANewListAreTheTruth) {
  cache_.BeginList();
  ASSERT_TRUE(cache_.AddPage(List(50, {Node("a", 30), Node("b", 40), Node("c", 41)})).ok());
  Take();
  cache_.BeginList();
  ASSERT_TRUE(cache_.AddPage(List(60, {Node("a", 12), Node("b", 10, "before")})).ok());
  EXPECT_EQ(cache_.AddLine(Line("MODIFIED", Node("a", 61))), WatchCache::Next::kContinue);
  EXPECT_EQ(Take(), (Strings{"~a@12", "-b?", "+b@10", "-c?", "synced", "~a@61"}));
}

// Whatever is lost on the way, after a list the owner knows what the server has.
RC_GTEST_PROP(WatchCacheProperty, TheOwnersViewFollowsTheServer, (std::uint64_t seed)) {
  Rng rng(seed);
  std::map<std::string, json> server;
  std::map<std::string, std::string> view;
  WatchCache cache([&](const WatchEvent& event) {
    if (event.type == WatchEvent::Type::kDeleted) {
      RC_ASSERT(view.erase(event.key.name) == 1);
    } else if (event.type != WatchEvent::Type::kSynced) {
      RC_ASSERT(view.contains(event.key.name) == (event.type == WatchEvent::Type::kModified));
      view[event.key.name] = event.object->dump();
    }
  });
  bool broken = true;
  for (int version = 1; version < 100; ++version) {
    const std::string name(1, static_cast<char>('a' + rng.Below(6)));
    std::string line;
    if (server.contains(name) && rng.Chance(1, 3)) {
      line = Line("DELETED", Node(name, version));
      server.erase(name);
    } else {
      const bool is_new = !server.contains(name);
      const std::string uid = is_new ? std::to_string(version) : std::string(UidOf(server[name]));
      server[name] = Node(name, version, uid);
      line = Line(is_new ? "ADDED" : "MODIFIED", server[name]);
    }
    if (rng.Chance(1, 10)) broken = true;
    if (!broken) RC_ASSERT(cache.AddLine(line) == WatchCache::Next::kContinue);
    if (broken && rng.Chance(1, 4)) {
      std::vector<json> items;
      for (const auto& [unused, object] : server) items.push_back(object);
      cache.BeginList();
      RC_ASSERT(cache.AddPage(List(version, items)).ok());
      broken = false;
    }
    if (broken) continue;
    RC_ASSERT(view.size() == server.size());
    for (const auto& [key, object] : server) RC_ASSERT(view[key] == object.dump());
  }
}

class ReflectorTest : public ::testing::Test {
 protected:
  std::vector<std::string> Targets() const {
    std::vector<std::string> targets;
    for (const Request& request : transport_.requests) {
      const std::size_t end = request.target.find("&timeoutSeconds");
      targets.push_back(request.target.substr(0, end));
    }
    return targets;
  }
  ScriptedTransport transport_;
  CountingSleeper sleeper_;
  std::vector<std::string> seen_;
  Reflector reflector_{transport_,
                       sleeper_,
                       Rng(1),
                       {.resource = kNodes, .label_selector = "a=b", .page_size = 2},
                       [this](const WatchEvent& event) { seen_.push_back(Show(event)); }};
};

const std::string kList = "/api/v1/nodes?labelSelector=a%3Db&limit=2";
std::string WatchAt(int version) {
  return "/api/v1/nodes?watch=true&allowWatchBookmarks=true&resourceVersion=" +
         std::to_string(version);
}

TEST_F(ReflectorTest, AStreamThatEndedInOrderGoesOnWhereItWas) {
  transport_.Will(200, List(5, {Node("a", 1)}).dump());
  transport_.WillStream({Line("ADDED", Node("b", 6))});
  transport_.WillStream({Line("MODIFIED", Node("b", 7))});
  EXPECT_EQ(reflector_.RunOnce(), absl::OkStatus());
  EXPECT_EQ(reflector_.RunOnce(), absl::OkStatus());
  EXPECT_EQ(seen_, (Strings{"+a@1", "synced", "+b@6", "~b@7"}));
  EXPECT_EQ(Targets(), (Strings{kList, WatchAt(5), WatchAt(6)}));
  EXPECT_TRUE(reflector_.has_synced());
}

// The server that answers next may have been restored from a backup; one that was restored to
// before the place of the watch leaves it open and silent.
TEST_F(ReflectorTest, AStreamThatBrokeOffOrBroughtNothingIsFollowedByAList) {
  transport_.Will(200, List(5, {Node("a", 4)}).dump());
  transport_.WillStream({Line("ADDED", Node("b", 6))}, Unavailable("reset"));
  transport_.Will(200, List(7, {Node("a", 3)}).dump());
  transport_.WillStream({});
  transport_.Will(200, List(8, {Node("a", 2)}).dump());
  transport_.WillStream({Line("BOOKMARK", Node("", 9))});
  EXPECT_TRUE(absl::IsUnavailable(reflector_.RunOnce()));
  EXPECT_EQ(reflector_.RunOnce(), absl::OkStatus());
  EXPECT_EQ(reflector_.RunOnce(), absl::OkStatus());
  EXPECT_EQ(seen_, (Strings{"+a@4", "synced", "+b@6", "~a@3", "-b?", "synced", "~a@2", "synced"}));
  EXPECT_EQ(Targets(), (Strings{kList, WatchAt(5), kList, WatchAt(7), kList, WatchAt(8)}));
}

TEST_F(ReflectorTest, A410AsStatusOrAsEventLeadsToANewList) {
  transport_.Will(200, List(5, {Node("a", 1), Node("b", 2)}).dump());
  transport_.Will(410, R"({"kind":"Status","code":410,"reason":"Expired","message":"too old"})");
  transport_.Will(200, List(8, {Node("b", 2)}).dump());
  transport_.WillStream({Line("ERROR", {{"code", 410}}), Line("ADDED", Node("never", 9))});
  transport_.Will(200, List(9, {Node("b", 9)}).dump());
  transport_.WillStream({});
  EXPECT_TRUE(absl::IsOutOfRange(reflector_.RunOnce()));
  EXPECT_EQ(reflector_.RunOnce(), absl::OkStatus());
  EXPECT_EQ(reflector_.RunOnce(), absl::OkStatus());
  EXPECT_EQ(seen_, (Strings{"+a@1", "+b@2", "synced", "~b@2", "-a?", "synced", "~b@9", "synced"}));
  EXPECT_EQ(Targets(), (Strings{kList, WatchAt(5), kList, WatchAt(8), kList, WatchAt(9)}));
}

TEST_F(ReflectorTest, AListThatExpiresBetweenPagesBeginsAnew) {
  transport_.Will(200, List(5, {Node("a", 1), Node("b", 2)}, "c1").dump());
  transport_.Will(410, R"({"code":410,"reason":"Expired"})");
  transport_.Will(200, List(6, {Node("b", 2)}).dump());
  transport_.WillStream({});
  EXPECT_FALSE(reflector_.RunOnce().ok());
  EXPECT_FALSE(reflector_.has_synced());
  EXPECT_EQ(reflector_.RunOnce(), absl::OkStatus());
  EXPECT_EQ(seen_, (Strings{"+a@1", "+b@2", "~b@2", "-a?", "synced"}));
}

TEST_F(ReflectorTest, FailuresAreWaitedOutLongerAndLonger) {
  CountingSleeper sleeper(5);
  Reflector reflector(transport_, sleeper, Rng(1), {.resource = kNodes}, [](const WatchEvent&) {});
  reflector.Start();
  reflector.Stop();
  for (std::size_t i = 0; i < sleeper.sleeps.size(); ++i) {
    EXPECT_LE(sleeper.sleeps[i], milliseconds(100) * (2 << i));
  }
}

TEST_F(ReflectorTest, AListThatExpiredBetweenItsPagesIsAskedForWhole) {
  transport_.Will(200, List(5, {Node("a", 1), Node("b", 2)}, "c1").dump());
  transport_.Will(410, R"({"code":410,"reason":"Expired"})");
  transport_.Will(200, List(6, {Node("b", 2), Node("c", 3), Node("d", 4)}).dump());
  transport_.WillStream({Line("ERROR", {{"code", 410}})});
  transport_.Will(200, List(7, {}).dump());
  transport_.WillStream({});
  EXPECT_FALSE(reflector_.RunOnce().ok());
  EXPECT_EQ(reflector_.RunOnce(), absl::OkStatus());
  EXPECT_EQ(reflector_.RunOnce(), absl::OkStatus());
  EXPECT_EQ(Targets(),
            (Strings{kList, "/api/v1/nodes?labelSelector=a%3Db&continue=c1&limit=2",
                     "/api/v1/nodes?labelSelector=a%3Db", WatchAt(6), kList, WatchAt(7)}))
      << "pages again once a list was whole";
}

TEST_F(ReflectorTest, AWatchFromAVersionThatTheServerDoesNotHaveIsListedAgain) {
  const char* too_large = R"({"kind":"Status","code":504,"reason":"Timeout",
      "message":"Too large resource version: 500, current: 20",
      "details":{"causes":[{"reason":"ResourceVersionTooLarge"}],"retryAfterSeconds":1}})";
  transport_.Will(200, List(500, {Node("a", 1)}).dump());
  transport_.Will(504, too_large);
  transport_.Will(200, List(501, {Node("a", 1)}).dump());
  transport_.WillStream({Line("ERROR", json::parse(too_large))});
  transport_.Will(200, List(502, {Node("a", 1)}).dump());
  transport_.WillStream({});
  EXPECT_TRUE(absl::IsDeadlineExceeded(reflector_.RunOnce()));
  (void)reflector_.RunOnce();
  EXPECT_EQ(reflector_.RunOnce(), absl::OkStatus());
  EXPECT_EQ(Targets(), (Strings{kList, WatchAt(500), kList, WatchAt(501), kList, WatchAt(502)}));
}

TEST_F(ReflectorTest, OtherErrorsOfAWatchKeepThePlace) {
  transport_.Will(200, List(5, {Node("a", 1)}).dump());
  transport_.Will(500, "<html>oops</html>");
  transport_.Will(429, "");
  transport_.WillStream({Line("BOOKMARK", Node("", 30))});
  transport_.WillStream({});
  for (int i = 0; i < 4; ++i) (void)reflector_.RunOnce();
  EXPECT_EQ(Targets(), (Strings{kList, WatchAt(5), WatchAt(5), WatchAt(5), WatchAt(30)}));
}

// Waits for nothing, and tells when it was asked to for the last time.
class EndingSleeper final : public Sleeper {
 public:
  explicit EndingSleeper(std::size_t last) : last_(last) {}
  bool Sleep(std::chrono::nanoseconds duration) override {
    sleeps.push_back(duration);
    if (sleeps.size() < last_) return true;
    over.set_value();
    return false;
  }
  std::vector<std::chrono::nanoseconds> sleeps;
  std::promise<void> over;

 private:
  const std::size_t last_;
};

// What a reflector's thread waits for, the first `count` times.
std::vector<std::chrono::nanoseconds> WaitsOf(ScriptedTransport& transport, std::size_t count) {
  EndingSleeper sleeper(count);
  Reflector reflector(transport, sleeper, Rng(1), {.resource = kNodes}, [](const WatchEvent&) {});
  reflector.Start();
  sleeper.over.get_future().wait();
  reflector.Stop();
  return sleeper.sleeps;
}

TEST(ReflectorWaitsTest, TheServersRetryAfterIsHonoured) {
  ScriptedTransport transport;
  transport.Will(429, "", {{"Retry-After", "7"}});
  transport.Will(200, List(5, {}).dump());
  transport.Will(429, "", {{"Retry-After", "9"}});
  transport.Will(429, "", {{"Retry-After", "86400"}});
  const auto waits = WaitsOf(transport, 3);
  EXPECT_EQ(waits[0], std::chrono::seconds(7));
  EXPECT_EQ(waits[1], std::chrono::seconds(9));
  EXPECT_EQ(waits[2], std::chrono::seconds(60)) << "as the client does";
}

TEST(ReflectorWaitsTest, AServerWhoseListsWorkAndWhoseWatchesDoNotIsAskedLessAndLessOften) {
  const std::string expired = Line("ERROR", {{"code", 410}});
  for (const Strings& watch : {Strings{"<html>", "Please log in"}, Strings{expired}, Strings{}}) {
    ScriptedTransport transport;
    for (int i = 0; i < 8; ++i) {
      transport.Will(200, List(5, {}).dump());  // to a watch: one that ends at once
      transport.WillStream(watch);
    }
    // The sixth of a doubling from 0.1 s, of which half is random.
    EXPECT_GE(WaitsOf(transport, 6).back(), milliseconds(1600)) << json(watch);
  }
}

TEST(ReflectorWaitsTest, AWatchThatBroughtSomethingBeginsTheWaitsAnew) {
  ScriptedTransport transport;
  for (int i = 0; i < 6; ++i) {
    transport.Will(200, List(5 + i, {}).dump());
    transport.WillStream({Line("ADDED", Node("a", 6 + i))}, Unavailable("reset"));
  }
  for (const auto wait : WaitsOf(transport, 6)) EXPECT_LE(wait, milliseconds(200));
}

TEST(ReflectorOverHttpTest, FollowsARealServerAndStops) {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::string> lines, seen;
  rest::Metrics metrics;
  rest::Server server({.stream_wait = milliseconds(20)}, metrics);
  server.Raw([&](const rest::Request& request) {
    if (!request.query_value("watch")) {
      return rest::Response::Json(200, List(5, {Node("a", 1)}).dump());
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
  Reflector reflector(**transport, sleeper, Rng(1), {.resource = kNodes},
                      [&](const WatchEvent& event) {
                        const std::lock_guard lock(mutex);
                        seen.push_back(Show(event));
                        if (event.type == WatchEvent::Type::kSynced) {
                          lines.push_back(Line("ADDED", Node("b", 6)));
                        }
                        changed.notify_all();
                      });
  reflector.Start();
  {
    std::unique_lock lock(mutex);
    changed.wait_for(lock, std::chrono::seconds(10), [&] { return seen.size() >= 3; });
    EXPECT_EQ(seen, (Strings{"+a@1", "synced", "+b@6"}));
  }
  sleeper.Interrupt();
  (*transport)->Shutdown();
  reflector.Stop();
}

}  // namespace
}  // namespace tahoma::kube
