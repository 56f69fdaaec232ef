// Strategic merge patch: each directive by example, lists against a slow oracle.

#include "controller/apiserver/merge/strategic_merge.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "controller/apiserver/schema/kind.h"
#include "lib/base/json.h"
#include "lib/base/status.h"

namespace tahoma::controller::apiserver {
namespace {

const Schema& Pod() { return *BuiltInKinds().front()->schema; }

Json Merged(const char* object, const char* patch) {
  const auto merged = StrategicMerge(Pod(), ParseJson(object), ParseJson(patch));
  return merged.ok() ? *merged : Json(merged.status().ToString());
}

TEST(StrategicMergeTest, ContainersMergeByName) {
  EXPECT_EQ(Merged(R"({"spec": {"containers": [{"name": "a", "image": "x"},
                                               {"name": "b", "image": "y"}]}})",
                   R"({"spec": {"containers": [{"name": "b", "image": "z"},
                                               {"name": "c", "image": "w"}]}})"),
            ParseJson(R"({"spec": {"containers": [{"name": "a", "image": "x"},
                {"name": "b", "image": "z"}, {"name": "c", "image": "w"}]}})"));
}

TEST(StrategicMergeTest, FinalizersMergeByValueAndTolerationsAreReplaced) {
  EXPECT_EQ(Merged(R"({"metadata": {"finalizers": ["a", "b"]},
                       "spec": {"tolerations": [{"key": "x"}]}})",
                   R"({"metadata": {"finalizers": ["b", "c"]},
                       "spec": {"tolerations": [{"key": "y"}]}})"),
            ParseJson(R"({"metadata": {"finalizers": ["a", "b", "c"]},
                            "spec": {"tolerations": [{"key": "y"}]}})"));
}

TEST(StrategicMergeTest, PatchDeleteTakesAnItemOut) {
  EXPECT_EQ(Merged(R"({"status": {"conditions": [{"type": "A"}, {"type": "B"}]}})",
                   R"({"status": {"conditions": [{"$patch": "delete", "type": "A"}]}})"),
            ParseJson(R"({"status": {"conditions": [{"type": "B"}]}})"));
}

TEST(StrategicMergeTest, PatchReplaceReplacesAListOrAMap) {
  EXPECT_EQ(Merged(R"({"spec": {"containers": [{"name": "a"}, {"name": "b"}]}})",
                   R"({"spec": {"containers": [{"name": "c"}, {"$patch": "replace"}]}})"),
            ParseJson(R"({"spec": {"containers": [{"name": "c"}]}})"));
  EXPECT_EQ(Merged(R"({"metadata": {"labels": {"a": "1", "b": "2"}}})",
                   R"({"metadata": {"labels": {"$patch": "replace", "c": "3"}}})"),
            ParseJson(R"({"metadata": {"labels": {"c": "3"}}})"));
}

TEST(StrategicMergeTest, PatchDeleteEmptiesAMapAndNullRemovesAField) {
  EXPECT_EQ(Merged(R"({"metadata": {"labels": {"a": "1"}, "annotations": {"x": "1", "y": "2"}}})",
                   R"({"metadata": {"labels": {"$patch": "delete"}, "annotations": {"x": null}}})"),
            ParseJson(R"({"metadata": {"labels": {}, "annotations": {"y": "2"}}})"));
}

TEST(StrategicMergeTest, DeleteFromPrimitiveListTakesValuesOut) {
  EXPECT_EQ(Merged(R"({"metadata": {"finalizers": ["a", "b", "c"]}})",
                   R"({"metadata": {"$deleteFromPrimitiveList/finalizers": ["a", "c"]}})"),
            ParseJson(R"({"metadata": {"finalizers": ["b"]}})"));
}

TEST(StrategicMergeTest, SetElementOrderSortsWhatItNames) {
  EXPECT_EQ(Merged(R"({"spec": {"containers": [{"name": "a"}, {"name": "x"}, {"name": "b"}]}})",
                   R"({"spec": {"$setElementOrder/containers": [{"name": "b"}, {"name": "c"},
                        {"name": "a"}], "containers": [{"name": "c", "image": "i"}]}})"),
            ParseJson(R"({"spec": {"containers": [{"name": "x"}, {"name": "b"},
                {"name": "c", "image": "i"}, {"name": "a"}]}})"));
}

TEST(StrategicMergeTest, RetainKeysDropsTheOthers) {
  EXPECT_EQ(Merged(R"({"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}})",
                   R"({"spec": {"volumes": [{"name": "v", "$retainKeys": ["name", "hostPath"],
                                             "hostPath": {"path": "/p"}}]}})"),
            ParseJson(R"({"spec": {"volumes": [{"name": "v", "hostPath": {"path": "/p"}}]}})"));
}

TEST(StrategicMergeTest, ReservationsAreTakenBackByUid) {
  const KindRegistry registry;
  const Kind& claims = *registry.Snapshot()->Find("resource.k8s.io", "v1", "resourceclaims");
  const auto merged = StrategicMerge(
      *claims.schema, ParseJson(R"({"status": {"reservedFor": [{"uid": "1", "name": "a"},
                                                                 {"uid": "2", "name": "b"}]}})"),
      ParseJson(R"({"metadata": {"uid": "u"},
                      "status": {"reservedFor": [{"$patch": "delete", "uid": "1"}]}})"));
  EXPECT_EQ(merged->at("status"), ParseJson(R"({"reservedFor": [{"uid": "2", "name": "b"}]})"));
}

TEST(StrategicMergeTest, DirectivesNeverReachTheObject) {
  EXPECT_EQ(Merged(R"({})", R"({"spec": {"$retainKeys": ["x"], "volumes": [
                {"name": "v", "$patch": "delete"},
                {"name": "w", "emptyDir": {"medium": null}}]}})"),
            ParseJson(R"({"spec": {"volumes": [{"name": "w", "emptyDir": {}}]}})"));
}

TEST(StrategicMergeTest, MalformedPatchesAreRefused) {
  const auto why = [](const char* patch) {
    const auto merged = StrategicMerge(
        Pod(), ParseJson(R"({"spec": {"containers": [{"name": "a"}]}})"), ParseJson(patch));
    return std::string(Message(merged.status()));
  };
  EXPECT_EQ(why(R"({"spec": {"containers": [{"image": "x"}]}})"),
            "map: {\"image\":\"x\"} does not contain declared merge key: name");
  EXPECT_EQ(why(R"({"spec": {"$patch": "explode"}})"),
            "unknown patch type: \"explode\" in map: {\"$patch\":\"explode\"}");
  EXPECT_EQ(why(R"({"spec": {"$retainKeys": ["a"], "b": 1}})"),
            "invalid patch format of $retainKeys: \"b\" is not in the list");
  EXPECT_FALSE(StrategicMerge(Pod(), Json::object(), Json::array()).ok());
}

std::vector<std::string> Keys(const std::vector<int>& numbers) {
  std::vector<std::string> keys;
  for (const int number : numbers) {
    std::string key(1, static_cast<char>('a' + number));
    if (std::find(keys.begin(), keys.end(), key) == keys.end()) keys.push_back(std::move(key));
  }
  return keys;
}

// Which items there are and what they hold, without their order, by going through all keys.
RC_GTEST_PROP(StrategicMergeProperty, ListsHoldWhatTheOracleSays, ()) {
  const auto numbers = rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 6));
  const auto old_keys = Keys(*numbers);
  const auto new_keys = Keys(*numbers);
  const auto gone_keys = Keys(*numbers);
  Json list = Json::array();
  for (const auto& key : old_keys) list.push_back({{"name", key}, {"image", "old"}});
  Json patch = Json::array();
  for (const auto& key : new_keys) patch.push_back({{"name", key}, {"tty", true}});
  for (const auto& key : gone_keys) patch.push_back({{"name", key}, {"$patch", "delete"}});
  const auto merged = StrategicMerge(Pod(), {{"spec", {{"containers", list}}}},
                                     {{"spec", {{"containers", patch}}}});
  RC_ASSERT(merged.ok());
  const auto has = [](const auto& keys, const std::string& key) {
    return std::find(keys.begin(), keys.end(), key) != keys.end();
  };
  std::map<std::string, Json> expected;
  for (const char* key : {"a", "b", "c", "d", "e", "f"}) {
    // A deletion meets what was there; what the same patch sets comes after it.
    Json item = Json::object();
    if (has(old_keys, key) && !has(gone_keys, key)) item["image"] = "old";
    if (has(new_keys, key)) item["tty"] = true;
    if (!item.empty()) expected[key] = item;
  }
  std::map<std::string, Json> found;
  for (Json item : merged->at("spec")["containers"]) {
    const std::string name = item["name"];
    item.erase("name");
    RC_ASSERT(found.emplace(name, item).second);
  }
  RC_ASSERT(found == expected);
}

RC_GTEST_PROP(StrategicMergeProperty, SetElementOrderKeepsBothOrders, ()) {
  const auto numbers = rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 8));
  const auto server = Keys(*numbers);
  const auto order = Keys(*numbers);
  Json list = Json::array();
  for (const auto& key : server) list.push_back({{"name", key}});
  Json wanted = Json::array();
  for (const auto& key : order) wanted.push_back({{"name", key}});
  const auto merged = StrategicMerge(Pod(), {{"spec", {{"containers", list}}}},
                                     {{"spec", {{"$setElementOrder/containers", wanted}}}});
  RC_ASSERT(merged.ok());
  const auto only = [](const Json& items, const std::vector<std::string>& keys, bool in) {
    std::vector<std::string> names;
    for (const Json& item : items) {
      const bool is_in = std::find(keys.begin(), keys.end(), item["name"]) != keys.end();
      if (is_in == in) names.push_back(item["name"]);
    }
    return names;
  };
  const Json& result = merged->at("spec")["containers"];
  RC_ASSERT(result.size() == list.size());
  RC_ASSERT(only(result, order, false) == only(list, order, false));
  RC_ASSERT(only(result, order, true) == only(wanted, server, true));
}

RC_GTEST_PROP(StrategicMergeProperty, AppliedTwiceIsAppliedOnce, ()) {
  const auto numbers = rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 6));
  Json list = Json::array();
  for (const auto& key : Keys(*numbers)) list.push_back({{"name", key}, {"image", "old"}});
  Json patch = Json::array();
  for (const auto& key : Keys(*numbers)) patch.push_back({{"name", key}, {"image", "new"}});
  const Json change = {{"spec", {{"containers", patch}}}};
  const auto once = StrategicMerge(Pod(), {{"spec", {{"containers", list}}}}, change);
  const auto twice = StrategicMerge(Pod(), *once, change);
  RC_ASSERT(*once == *twice);
}

TEST(MergePatchTest, NullRemovesAndListsAreReplaced) {
  EXPECT_EQ(MergePatch(ParseJson(R"({"a": 1, "b": [1], "c": {"d": 1}})"),
                       ParseJson(R"({"a": null, "b": [2], "c": {"e": 2}})")),
            ParseJson(R"({"b": [2], "c": {"d": 1, "e": 2}})"));
}

}  // namespace
}  // namespace tahoma::controller::apiserver
