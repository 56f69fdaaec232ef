// Watches: where they begin, what selectors make of changes, when they end; and the property that
// replaying a watch gives the list.

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <map>

#include "controller/apiserver/request/status_error.h"
#include "lib/base/rng.h"
#include "lib/kube/json_writer.h"
#include "tests/support/api_fixture.h"
#include "tests/unit/controller/apiserver/paths.h"

namespace tahoma::controller::apiserver {
namespace {

using json = Json;
using testing::Answer;
using ::testing::ElementsAre;

class WatchTest : public testing::ApiFixture {
 protected:
  json MapOf(const std::string& name, const std::string& colour) {
    json map = ConfigMapOf(name, "1");
    map["metadata"]["labels"] = {{"colour", colour}};
    return map;
  }
  void Create(const std::string& name, const std::string& colour = "red") {
    ASSERT_EQ(Call("POST", kMaps, MapOf(name, colour)).status, 201);
  }
  void Paint(const std::string& name, const std::string& colour) {
    ASSERT_EQ(Patch(kMaps + "/" + name, "merge-patch+json",
                    {{"metadata", {{"labels", {{"colour", colour}}}}}})
                  .status,
              200);
  }
  std::string Version() { return std::to_string(server_->objects().version()); }
};

TEST_F(WatchTest, WithoutAVersionItBeginsWithThePresentObjects) {
  Create("a");
  for (const char* version : {"", "&resourceVersion=0"}) {
    Answer watch = Call("GET", kMaps + "?watch=true" + version);
    EXPECT_EQ(watch.status, 200);
    EXPECT_EQ(watch.header("Content-Type"), "application/json");
    EXPECT_THAT(watch.Events(), ElementsAre("ADDED a"));
  }
}

TEST_F(WatchTest, EveryWordThatGoReadsAsTrueAsksForIt) {
  Create("a");
  for (const char* yes : {"watch=true", "watch=1", "watch=True", "watch=", "watch"}) {
    EXPECT_NE(Call("GET", kMaps + "?" + yes).source, nullptr) << yes;
  }
  for (const char* no : {"watch=false", "watch=0", "watch=False", ""}) {
    EXPECT_EQ(Call("GET", kMaps + "?" + no).source, nullptr) << no;
  }
}

TEST_F(WatchTest, FromAVersionItSendsTheLaterEvents) {
  Create("a");
  const std::string version = Version();
  Answer watch = Call("GET", kMaps + "?watch=1&resourceVersion=" + version);
  EXPECT_THAT(watch.Events(), ElementsAre());
  Create("b");
  Paint("a", "blue");
  Call("DELETE", kMaps + "/b");
  EXPECT_THAT(watch.Events(), ElementsAre("ADDED b", "MODIFIED a", "DELETED b"));
  Answer again = Call("GET", kMaps + "?watch=1&resourceVersion=" + version);
  EXPECT_THAT(again.Events(), ElementsAre("ADDED b", "MODIFIED a", "DELETED b"));
}

TEST_F(WatchTest, ADeletionCarriesTheLastStateWithItsOwnVersion) {
  Create("a");
  Answer watch = Call("GET", kMaps + "?watch=1&resourceVersion=" + Version());
  Call("DELETE", kMaps + "/a");
  const json event = watch.Read().at(0);
  EXPECT_EQ(event.at("object").at("data").at("key"), "1");
  EXPECT_EQ(event.at("object").at("metadata").at("resourceVersion"), Version());
}

TEST_F(WatchTest, OtherNamespacesAndResourcesAreNotSeen) {
  Answer watch = Call("GET", kMaps + "?watch=1&resourceVersion=" + Version());
  ASSERT_EQ(Call("POST", "/api/v1/namespaces/kube-system/configmaps", ConfigMapOf("x", "1")).status,
            201);
  ASSERT_EQ(Call("POST", "/api/v1/namespaces/default/pods", PodOf("p")).status, 201);
  EXPECT_THAT(watch.Events(), ElementsAre());
}

TEST_F(WatchTest, EnteringAndLeavingASelectionAreAddedAndDeleted) {
  Create("a");
  Answer watch =
      Call("GET", kMaps + "?watch=1&labelSelector=colour%3Dred&resourceVersion=" + Version());
  Paint("a", "blue");
  const json left = watch.Read().at(0);
  EXPECT_EQ(left.at("type"), "DELETED");
  EXPECT_EQ(left.at("object").at("metadata").at("labels").at("colour"), "red")
      << "as it was while it was selected";
  EXPECT_EQ(left.at("object").at("metadata").at("resourceVersion"), Version());
  Paint("a", "green");
  Paint("a", "red");
  EXPECT_THAT(watch.Events(), ElementsAre("ADDED a"));
  Answer one =
      Call("GET", "/api/v1/watch/namespaces/default/configmaps/b?resourceVersion=" + Version());
  Create("b");
  Create("bb");
  EXPECT_THAT(one.Events(), ElementsAre("ADDED b"));
}

TEST_F(WatchTest, SendInitialEventsEndsWithItsBookmark) {
  Create("a");
  const std::string query =
      "?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
  Answer watch = Call("GET", kMaps + query);
  const std::vector<json> events = watch.Read();
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[0].at("type"), "ADDED");
  EXPECT_EQ(events[1].at("type"), "BOOKMARK");
  const json& bookmark = events[1].at("object");
  EXPECT_EQ(bookmark.at("metadata").at("annotations").at("k8s.io/initial-events-end"), "true");
  EXPECT_EQ(bookmark.at("metadata").at("resourceVersion"), Version());
  EXPECT_EQ(bookmark.at("kind"), "ConfigMap");
  Create("b");
  EXPECT_THAT(watch.Events(), ElementsAre("ADDED b"));
}

TEST_F(WatchTest, BookmarksComeEveryMinuteAndKeepUpWithOtherResources) {
  Answer watch =
      Call("GET", kMaps + "?watch=1&allowWatchBookmarks=true&resourceVersion=" + Version());
  EXPECT_THAT(watch.Events(), ElementsAre());
  ASSERT_EQ(Call("POST", "/api/v1/nodes", {{"metadata", {{"name", "n"}}}}).status, 201);
  clock_.Advance(std::chrono::seconds(61));
  const json bookmark = watch.Read().at(0);
  EXPECT_EQ(bookmark.at("type"), "BOOKMARK");
  EXPECT_EQ(bookmark.at("object").at("metadata").at("resourceVersion"), Version());
}

TEST_F(WatchTest, ItEndsAtItsTimeout) {
  Answer watch = Call("GET", kMaps + "?watch=1&timeoutSeconds=10&resourceVersion=" + Version());
  watch.Events();
  EXPECT_TRUE(watch.open);
  clock_.Advance(std::chrono::seconds(11));
  EXPECT_THAT(watch.Events(), ElementsAre());
  EXPECT_FALSE(watch.open);
}

TEST_F(WatchTest, AForgottenVersionIsAnErrorEventWith410) {
  Create("a");
  const std::string old = Version();
  Create("b");
  Restart();
  Answer watch = Call("GET", kMaps + "?watch=1&resourceVersion=" + old);
  const json event = watch.Read().at(0);
  EXPECT_EQ(event.at("type"), "ERROR");
  EXPECT_EQ(event.at("object").at("code"), 410);
  EXPECT_EQ(event.at("object").at("reason"), "Expired");
  EXPECT_FALSE(watch.open);
}

TEST_F(WatchTest, AWatcherThatFallsBehindTheHistoryIsSentAway) {
  Restart({.log_count_max = 10, .log_bytes_max = 64 << 20});
  Create("a");
  Answer watch = Call("GET", kMaps + "?watch=1&resourceVersion=" + Version());
  for (int i = 0; i < 11; ++i) Paint("a", fmt::format("c{}", i));
  EXPECT_THAT(watch.Events(), ElementsAre("ERROR "));
  EXPECT_FALSE(watch.open);
}

TEST_F(WatchTest, ATableWatchBringsItsColumnsOnce) {
  Create("a");
  Answer watch = Call("GET", kMaps + "?watch=1", "",
                      {{"Accept", "application/json;as=Table;v=v1;g=meta.k8s.io"}});
  Create("b");
  const std::vector<json> events = watch.Read();
  ASSERT_EQ(events.size(), 2U);
  EXPECT_FALSE(events[0].at("object").at("columnDefinitions").empty());
  EXPECT_TRUE(events[1].at("object").value("columnDefinitions", json::array()).empty());
  EXPECT_EQ(events[1].at("object").at("rows").at(0).at("cells").at(0), "b");
}

TEST_F(WatchTest, ABookmarkHasTheFormOfItsWatch) {
  Create("a");
  const std::string all =
      "?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
  const auto last = [&](const std::string& path, const std::string& as) {
    Answer watch = Call("GET", path + all, "",
                        {{"Accept", "application/json;as=" + as + ";v=v1;g=meta.k8s.io"}});
    const json event = watch.Read().back();
    EXPECT_EQ(event.at("type"), "BOOKMARK") << path;
    return event.at("object");
  };
  EXPECT_EQ(last(kMaps, "PartialObjectMetadata").at("kind"), "PartialObjectMetadata");
  for (const char* path :
       {"/api/v1/configmaps", "/api/v1/pods", "/api/v1/nodes", "/api/v1/events", "/api/v1/secrets",
        "/api/v1/namespaces", "/apis/resource.k8s.io/v1/resourceclaims",
        "/apis/resource.k8s.io/v1/resourceslices", "/apis/coordination.k8s.io/v1/leases",
        "/apis/tahoma.dev/v1alpha1/gangs",
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"}) {
    const json table = last(path, "Table");
    EXPECT_EQ(table.at("kind"), "Table") << path;
    const json& metadata = table.at("rows").at(0).at("object").at("metadata");
    EXPECT_EQ(metadata.at("annotations").at("k8s.io/initial-events-end"), "true") << path;
  }
}

TEST_F(WatchTest, AThousandWatchersOfAllFormsSeeTheSame) {
  Create("a");
  std::vector<Answer> watches;
  for (int i = 0; i < 1000; ++i) {
    watches.push_back(Call("GET", kMaps + "?watch=1&resourceVersion=" + Version(), "",
                           {{"Accept", i % 2 == 0 ? "application/json"
                                                  : "application/json;as=PartialObjectMetadata;"
                                                    "g=meta.k8s.io;v=v1"}}));
  }
  Paint("a", "blue");
  for (Answer& watch : watches) EXPECT_THAT(watch.Events(), ElementsAre("MODIFIED a"));
}

// Random writes; watches with and without a selector, opened at random moments, must lead to what
// a list with the same selector gives.
// A reader in the same process gets the objects that the lines of the text say.
TEST_F(WatchTest, EventsAsObjectsAreThoseOfTheText) {
  Create("a");
  Create("b", "blue");
  const std::string query = "watch=1&allowWatchBookmarks=true&labelSelector=colour%3Dred";
  rest::Request request;
  request.method = "GET";
  request.path = kMaps;
  request.query = query;
  const auto watch = server_->OpenWatch(request);
  ASSERT_TRUE(watch.ok());
  Answer text = Call("GET", kMaps + "?" + query);
  std::vector<json> events;
  const kube::EventSink sink = [&](std::string_view type, const json& object) {
    events.push_back({{"type", type}, {"object", ParseJson(kube::JsonText(object))}});
    return true;
  };
  const auto read = [&] {
    EXPECT_TRUE((*watch)->ReadEvents(sink, std::chrono::milliseconds(0)));
    EXPECT_TRUE((*watch)->ReadEvents(sink, std::chrono::milliseconds(0)));
  };
  Create("c");
  Paint("a", "blue");
  Paint("b", "red");
  Call("DELETE", kMaps + "/c");
  read();
  EXPECT_EQ(events, text.Read());
  EXPECT_EQ(events.size(), 5U);
  clock_.Advance(std::chrono::minutes(2));
  read();
  EXPECT_EQ(events.back().at("type"), "BOOKMARK");
  Create("d");
  Create("e");
  EXPECT_FALSE(
      (*watch)->ReadEvents([](auto, const auto&) { return false; }, std::chrono::milliseconds(0)))
      << "the reader has had enough";
  request.path = "/api/v1/namespaces/default/nothing";
  EXPECT_EQ(ResponseOf(server_->OpenWatch(request).status()).status, 404);
}

TEST_F(WatchTest, ReplayingAnyWatchGivesTheList) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    Rng rng(seed);
    struct Follower {
      Answer watch;
      std::string query;
      std::map<std::string, json> objects;
    };
    std::vector<Follower> followers;
    for (int step = 0; step < 60; ++step) {
      const std::string name = fmt::format("m{}", rng.Below(6));
      const std::string colour = rng.Chance(1, 2) ? "red" : "blue";
      switch (rng.Below(4)) {
        case 0:
          Call("POST", kMaps, MapOf(name, colour));
          break;
        case 1:
          Call("DELETE", kMaps + "/" + name);
          break;
        case 2:
          Patch(kMaps + "/" + name, "merge-patch+json",
                {{"metadata", {{"labels", {{"colour", colour}}}}}});
          break;
        default: {
          const std::string query = rng.Chance(1, 2) ? "labelSelector=colour%3Dred" : "limit=100";
          followers.push_back({Call("GET", kMaps + "?watch=1&" + query), query, {}});
        }
      }
    }
    for (Follower& follower : followers) {
      for (const json& event : follower.watch.Read()) {
        const std::string name = event.at("object").at("metadata").at("name");
        const bool known = follower.objects.contains(name);
        EXPECT_EQ(event.at("type") == "ADDED", !known);
        follower.objects[name] = event.at("object");
        if (event.at("type") == "DELETED") follower.objects.erase(name);
      }
      std::map<std::string, json> listed;
      const Answer list = Call("GET", kMaps + "?" + follower.query);
      for (const json& item : list.body.at("items")) {
        json& object = listed[item.at("metadata").at("name")] = item;
        object["kind"] = "ConfigMap";  // events carry it, items of a list do not
        object["apiVersion"] = "v1";
      }
      EXPECT_EQ(follower.objects, listed) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace tahoma::controller::apiserver
