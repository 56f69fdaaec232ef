// Server-side apply: ownership, removal, conflicts, and that applying twice changes nothing.

#include "controller/apiserver/merge/apply.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "controller/apiserver/merge/apply_fields.h"
#include "controller/apiserver/merge/field_text.h"
#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/kube/json_writer.h"
#include "tests/unit/controller/apiserver/schema/gang_crd.h"

namespace tahoma::controller::apiserver {
namespace {

const Kind& PodKind() { return *BuiltInKinds().front(); }

Json Applied(const Kind& kind, const Json& live, const Json& config, const std::string& manager,
             bool force = false) {
  const auto outcome = Apply(kind, live, config,
                             {.field_manager = manager,
                              .force = force,
                              .subresource = {},
                              .time = "2026-01-01T00:00:00Z"});
  EXPECT_TRUE(outcome.ok()) << outcome.status().ToString();
  EXPECT_TRUE(outcome->conflicts.empty()) << outcome->conflicts[0].message;
  return *outcome->object;
}

std::vector<Cause> Conflicts(const Kind& kind, const Json& live, const Json& config,
                             const std::string& manager) {
  return Apply(kind, live, config,
               {.field_manager = manager, .force = false, .subresource = {}, .time = "t"})
      ->conflicts;
}

Json Owned(const Json& object, const std::string& manager) {
  for (const Json& entry : object["metadata"]["managedFields"]) {
    if (entry["manager"] == manager) return ParseJson(kube::JsonText(entry["fieldsV1"]));
  }
  return nullptr;
}

Json Pod(const char* spec) {
  return {{"apiVersion", "v1"},
          {"kind", "Pod"},
          {"metadata", {{"name", "p"}, {"labels", {{"app", "a"}}}}},
          {"spec", ParseJson(spec)}};
}

TEST(ApplyTest, ACreateOwnsWhatItSetsAndNothingTheServerOwns) {
  const Json live = Applied(
      PodKind(), nullptr,
      Pod(R"({"containers": [{"name": "c", "image": "i", "ports": [{"containerPort": 80}]}]})"),
      "kubectl");
  EXPECT_EQ(Owned(live, "kubectl"), ParseJson(R"({
    "f:metadata": {"f:labels": {"f:app": {}}},
    "f:spec": {"f:containers": {"k:{\"name\":\"c\"}": {".": {}, "f:name": {}, "f:image": {},
      "f:ports": {"k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {".": {},
                                                                "f:containerPort": {}}}}}}})"));
  const Json& entry = live["metadata"]["managedFields"][0];
  EXPECT_EQ(entry["operation"], "Apply");
  EXPECT_EQ(entry["apiVersion"], "v1");
  EXPECT_EQ(entry["fieldsType"], "FieldsV1");
}

TEST(ApplyTest, AFieldLeftOutOfALaterApplyIsRemoved) {
  Json live =
      Applied(PodKind(), nullptr, Pod(R"({"containers": [{"name": "a", "image": "x", "tty": true},
                                             {"name": "b", "image": "y"}]})"),
              "kubectl");
  live =
      Applied(PodKind(), live, Pod(R"({"containers": [{"name": "a", "image": "x"}]})"), "kubectl");
  EXPECT_EQ(live["spec"], ParseJson(R"({"containers": [{"name": "a", "image": "x"}]})"));
}

TEST(ApplyTest, AFieldOfAnotherManagerStays) {
  Json live = Applied(PodKind(), nullptr, Pod(R"({"hostname": "h", "subdomain": "s"})"), "one");
  live = Applied(PodKind(), live, Pod(R"({"hostname": "h"})"), "two");
  live = Applied(PodKind(), live, Pod(R"({})"), "one");
  EXPECT_EQ(live["spec"], ParseJson(R"({"hostname": "h"})"));
}

TEST(ApplyTest, DefaultsThatNobodyOwnsStay) {
  Json live = Applied(PodKind(), nullptr, Pod(R"({"hostname": "h"})"), "one");
  live["spec"]["restartPolicy"] = "Always";
  live = Applied(PodKind(), live, Pod(R"({"subdomain": "s"})"), "one");
  EXPECT_EQ(live["spec"], ParseJson(R"({"subdomain": "s", "restartPolicy": "Always"})"));
}

TEST(ApplyTest, AnotherManagersFieldIsAConflict) {
  const Json live = Applied(PodKind(), nullptr, Pod(R"({"hostname": "h"})"), "one");
  const auto conflicts = Conflicts(PodKind(), live, Pod(R"({"hostname": "other"})"), "two");
  ASSERT_EQ(conflicts.size(), 1U);
  EXPECT_EQ(conflicts[0],
            (Cause{"FieldManagerConflict", "conflict with \"one\"", ".spec.hostname"}));
  EXPECT_EQ(ConflictMessage(conflicts),
            "Apply failed with 1 conflict: conflict with \"one\": .spec.hostname");
}

TEST(ApplyTest, SeveralConflictsAreListedByManager) {
  Json live = Applied(PodKind(), nullptr, Pod(R"({"hostname": "h"})"), "one");
  Json updated = live;
  updated["spec"]["subdomain"] = "s";
  updated["spec"]["containers"] = ParseJson(R"([{"name": "c", "image": "i"}])");
  TrackUpdate(PodKind(), live, updated,
              {.field_manager = "edit", .force = false, .subresource = {}, .time = "t"});
  const auto conflicts = Conflicts(PodKind(), updated, Pod(R"({"hostname": "x", "subdomain": "y",
                        "containers": [{"name": "c", "image": "j"}]})"),
                                   "two");
  EXPECT_EQ(ConflictMessage(conflicts),
            "Apply failed with 3 conflicts: conflicts with \"edit\" using v1:\n"
            "- .spec.containers[name=\"c\"].image\n- .spec.subdomain\n"
            "conflicts with \"one\":\n- .spec.hostname");
}

TEST(ApplyTest, ForceTakesTheFieldOver) {
  Json live = Applied(PodKind(), nullptr, Pod(R"({"hostname": "h", "subdomain": "s"})"), "one");
  live = Applied(PodKind(), live, Pod(R"({"hostname": "x"})"), "two", true);
  EXPECT_EQ(live["spec"]["hostname"], "x");
  EXPECT_EQ(Owned(live, "one")["f:spec"], ParseJson(R"({"f:subdomain": {}})"));
  EXPECT_EQ(Owned(live, "two")["f:spec"], ParseJson(R"({"f:hostname": {}})"));
}

TEST(ApplyTest, TheSameValueIsSharedWithoutAConflict) {
  Json live = Applied(PodKind(), nullptr, Pod(R"({"hostname": "h"})"), "one");
  live = Applied(PodKind(), live, Pod(R"({"hostname": "h"})"), "two");
  EXPECT_EQ(Owned(live, "one")["f:spec"], Owned(live, "two")["f:spec"]);
}

TEST(ApplyTest, KubectlMovesFromClientSideApplyWithoutConflicts) {
  Json live = Pod(R"({"hostname": "h", "subdomain": "s"})");
  live["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"] =
      Pod(R"({"hostname": "h", "subdomain": "old"})").dump();
  TrackUpdate(PodKind(), nullptr, live,
              {.field_manager = "kubectl-client-side-apply",
               .force = false,
               .subresource = {},
               .time = "t"});
  EXPECT_TRUE(Conflicts(PodKind(), live, Pod(R"({"hostname": "x"})"), "kubectl").empty());
  EXPECT_EQ(Conflicts(PodKind(), live, Pod(R"({"hostname": "x"})"), "other").size(), 1U);
  EXPECT_EQ(Conflicts(PodKind(), live, Pod(R"({"subdomain": "x"})"), "kubectl").size(), 1U)
      << "changed since the last client-side apply";
}

TEST(ApplyTest, ConfigurationsThatCannotBeMergedAreRefused) {
  const auto why = [](Json config) {
    return std::string(Message(Apply(PodKind(), nullptr, config, {.field_manager = "m"}).status()));
  };
  Json config = Pod(R"({"containers": [{"name": "a"}, {"name": "a"}]})");
  EXPECT_EQ(why(config), ".spec.containers: duplicate entries for key {\"name\":\"a\"}");
  config = Pod(R"({"containers": [{"image": "a"}]})");
  EXPECT_EQ(why(config),
            ".spec.containers: element 0: associative list with keys has an element that omits "
            "key field \"name\"");
  config = Pod("{}");
  config["metadata"]["managedFields"] = Json::array();
  EXPECT_EQ(why(config), "metadata.managedFields must be nil");
}

TEST(ApplyTest, StatusIsAppliedThroughItsSubresourceOnly) {
  const auto gang = GangKind();
  Json config = ParseJson(R"({"apiVersion": "tahoma.dev/v1alpha1", "kind": "Gang",
    "metadata": {"name": "g"}, "spec": {"members": 2}, "status": {"boundMembers": 1}})");
  Json live = Applied(*gang, nullptr, config, "one");
  EXPECT_FALSE(live.contains("status"));
  config["spec"]["members"] = 9;
  const auto outcome =
      Apply(*gang, live, config,
            {.field_manager = "one", .force = false, .subresource = "status", .time = "t"});
  EXPECT_EQ((*outcome->object)["spec"]["members"], 2);
  EXPECT_EQ((*outcome->object)["status"]["boundMembers"], 1);
  EXPECT_EQ((*outcome->object)["metadata"]["managedFields"].size(), 2U);
}

TEST(TrackUpdateTest, AnUpdateOwnsWhatItChangesAndTakesItFromOthers) {
  Json live = Applied(PodKind(), nullptr, Pod(R"({"hostname": "h", "subdomain": "s"})"), "one");
  Json updated = live;
  updated["spec"]["hostname"] = "x";
  updated["spec"].erase("subdomain");
  TrackUpdate(PodKind(), live, updated,
              {.field_manager = "edit", .force = false, .subresource = {}, .time = "t2"});
  EXPECT_EQ(Owned(updated, "edit"), ParseJson(R"({"f:spec": {"f:hostname": {}}})"));
  EXPECT_FALSE(Owned(updated, "one").contains("f:spec"));
}

TEST(TrackUpdateTest, ACreateIsRecordedAsARealServerDoes) {
  Json pod = Pod(R"({"containers": [{"name": "c", "image": "i"}], "nodeSelector": {"a": "b"}})");
  TrackUpdate(PodKind(), nullptr, pod,
              {.field_manager = "kubectl-create", .force = false, .subresource = {}, .time = "t"});
  EXPECT_EQ(Owned(pod, "kubectl-create"), ParseJson(R"({
    "f:metadata": {"f:labels": {".": {}, "f:app": {}}},
    "f:spec": {"f:containers": {"k:{\"name\":\"c\"}": {".": {}, "f:image": {}, "f:name": {}}},
               "f:nodeSelector": {}}})"));
}

TEST(TrackUpdateTest, AWriteThatChangesNothingLeavesTheListAlone) {
  const Json live = Applied(PodKind(), nullptr, Pod(R"({"hostname": "h"})"), "one");
  Json same = live;
  TrackUpdate(PodKind(), live, same,
              {.field_manager = "edit", .force = false, .subresource = {}, .time = "t2"});
  EXPECT_EQ(same, live);
}

TEST(TrackUpdateTest, AnEmptyListResetsIt) {
  const Json live = Applied(PodKind(), nullptr, Pod(R"({"hostname": "h"})"), "one");
  Json reset = live;
  reset["metadata"]["managedFields"] = Json::array({Json::object()});
  TrackUpdate(PodKind(), live, reset, {.field_manager = "edit"});
  EXPECT_FALSE(reset["metadata"].contains("managedFields"));
}

TEST(TrackUpdateTest, ManyUpdatersAreFoldedIntoOne) {
  Json live = Pod("{}");
  for (int i = 0; i < 15; ++i) {
    Json next = live;
    next["metadata"]["labels"]["l" + std::to_string(i)] = "x";
    TrackUpdate(PodKind(), live, next,
                {.field_manager = fmt::format("m{:02}", i),
                 .force = false,
                 .subresource = {},
                 .time = fmt::format("2026-01-01T00:00:{:02}Z", i)});
    live = next;
  }
  EXPECT_EQ(live["metadata"]["managedFields"].size(), 10U);
  EXPECT_FALSE(Owned(live, "ancient-changes").is_null());
  EXPECT_FALSE(Owned(live, "m14").is_null());
}

// Configurations over few names, so that managers meet.
Json AnyConfig() {
  const auto pick = [](int bound) { return *rc::gen::inRange(0, bound); };
  Json config = {{"apiVersion", "v1"}, {"kind", "Pod"}, {"metadata", {{"name", "p"}}}};
  for (const char* label : {"a", "b"}) {
    if (pick(2) == 0) config["metadata"]["labels"][label] = std::to_string(pick(3));
  }
  Json containers = Json::array();
  for (const char* name : {"x", "y", "z"}) {
    if (pick(2) == 0) continue;
    Json container = {{"name", name}};
    if (pick(2) == 0) container["image"] = std::to_string(pick(3));
    if (pick(3) == 0) container["command"] = {"run", std::to_string(pick(2))};
    containers.push_back(container);
  }
  if (!containers.empty()) config["spec"]["containers"] = containers;
  if (pick(3) == 0) config["spec"]["hostname"] = std::to_string(pick(2));
  return config;
}

RC_GTEST_PROP(ApplyProperty, ApplyingTwiceChangesNothing, ()) {
  Json live;
  for (int i = 0; i < 4; ++i) {
    const Json config = AnyConfig();
    const std::string manager = *rc::gen::elementOf(std::vector<std::string>{"one", "two"});
    const ApplyOptions first{
        .field_manager = manager, .force = true, .subresource = {}, .time = fmt::format("t{}", i)};
    const auto once = Apply(PodKind(), live, config, first);
    RC_ASSERT(once.ok() && once->conflicts.empty());
    const ApplyOptions later{
        .field_manager = manager, .force = false, .subresource = {}, .time = "later"};
    const auto twice = Apply(PodKind(), *once->object, config, later);
    RC_ASSERT(twice.ok() && twice->conflicts.empty());
    RC_ASSERT(*twice->object == *once->object);
    live = *once->object;
  }
}

RC_GTEST_PROP(ApplyProperty, TheResultHoldsTheConfigurationAndOneManagerAloneHoldsNoMore, ()) {
  Json live;
  Json config;
  for (int i = 0; i < 3; ++i) {
    config = AnyConfig();
    live = *Apply(PodKind(), live, config, {.field_manager = "one"})->object;
  }
  const Json merged = MergeFields(*PodKind().schema, live, config);
  RC_ASSERT(merged == live);
  RC_ASSERT(live.value("spec", Json::object()).size() ==
            config.value("spec", Json::object()).size());
}

FieldSet AnySet(int depth) {
  FieldSet set;
  set.member = *rc::gen::inRange(0, 2) == 0;
  for (const char* edge : {"f:a", "f:b", "v:1", R"(k:{"name":"a"})", R"(k:{"name":"b"})"}) {
    if (depth > 2 || *rc::gen::inRange(0, 2) == 0) continue;
    FieldSet child = AnySet(depth + 1);
    if (!child.empty()) set.children.emplace(edge, std::move(child));
  }
  return set;
}

RC_GTEST_PROP(FieldSetProperty, SetAlgebraHolds, ()) {
  const FieldSet a = AnySet(0);
  const FieldSet b = AnySet(0);
  RC_ASSERT(a.Difference(b).Union(a.Intersection(b)) == a);
  RC_ASSERT(a.Union(b) == b.Union(a));
  RC_ASSERT(a.Difference(a).empty());
  RC_ASSERT(a.Intersection(b).Difference(b).empty());
}

RC_GTEST_PROP(FieldSetProperty, TextKeepsTheSet, ()) {
  FieldSet set = AnySet(0);
  set.member = false;  // a whole object is never an element of a stored set
  RC_ASSERT(FieldsIn(FieldText(set)) == set);
  RC_ASSERT(FieldSet::FromJson(ParseJson(kube::JsonText(FieldText(set)))) == set);
}

RC_GTEST_PROP(FieldSetProperty, TextHasAnyOfASetWhenTheyMeet, ()) {
  FieldSet held = AnySet(0);
  held.member = false;
  const FieldSet asked = AnySet(0);
  RC_ASSERT(HasAnyOf(FieldText(held), asked) == !held.Intersection(asked).empty());
}

RC_GTEST_PROP(AddedTextProperty, IsTheTextOfTheSetOfWhatIsNew, ()) {
  const Json empty = {{"metadata", Json::object()}, {"spec", {{"containers", Json::array()}}}};
  Json object = AnyConfig();
  if (*rc::gen::inRange(0, 2) == 0) object["spec"]["nodeSelector"] = Json::object();
  if (object["spec"].contains("containers")) {
    object["spec"]["containers"][0]["env"] = {{{"name", "B"}}, {{"name", "A"}, {"value", "\n"}}};
  }
  FieldSet unowned;
  unowned.children["f:metadata"].children["f:name"].member = true;
  unowned.children["f:metadata"].member = true;
  unowned.children["f:kind"].member = true;
  Comparison changed = Compare(*PodKind().schema, empty, object);
  FieldSet wanted = changed.added.Union(changed.modified);
  wanted.children.erase("f:kind");
  FieldSet& metadata = wanted.children["f:metadata"];
  metadata.children.erase("f:name");
  if (metadata.empty()) wanted.children.erase("f:metadata");
  RC_ASSERT(AddedText(*PodKind().schema, empty, object, unowned) == FieldText(wanted));
}

TEST(AddedText, IsNullForNothingAndDiscardedForKeysThatComeTwice) {
  const Schema& schema = *PodKind().schema;
  const Json empty = {{"metadata", Json::object()}};
  EXPECT_TRUE(AddedText(schema, empty, empty, {}).is_null());
  EXPECT_TRUE(AddedText(schema, empty, Json::object(), {}).is_null());
  const Json twice = {{"spec", {{"containers", {{{"name", "a"}}, {{"name", "a"}}}}}}};
  EXPECT_TRUE(AddedText(schema, empty, twice, {}).is_discarded());
}

TEST(FieldText, KeepsEdgesThatJsonMustEscape) {
  const Json fields = {
      {"f:spec",
       {{"k:{\"name\":\"a\\\"b\"}", {{".", Json::object()}, {"f:image", Json::object()}}},
        {"v:\"\u00e9\\n\"", Json::object()},
        {"f:\u0001", Json::object()}}}};
  const FieldSet set = FieldSet::FromJson(fields);
  EXPECT_EQ(FieldsIn(FieldText(set)), set);
  EXPECT_EQ(ParseJson(kube::JsonText(FieldText(set))), fields);
  EXPECT_TRUE(HasAnyOf(FieldText(set), set));
}

TEST(FieldText, KeepsKeyedListsInKeyedLists) {
  const Json none = Json::object();
  const Json fields = {{"f:containers",
                        {{R"(k:{"name":"main"})",
                          {{"f:env", {{R"(k:{"name":"A"})", none}, {R"(k:{"name":"B"})", none}}},
                           {"f:image", none}}}}}};
  EXPECT_EQ(FieldsIn(FieldText(FieldSet::FromJson(fields))), FieldSet::FromJson(fields));
}

TEST(FieldText, IsMadeOfWhatClientsSendAndBack) {
  const Json sent = {{"metadata",
                      {{"managedFields",
                        {{{"manager", "a"}, {"fieldsV1", {{"f:spec", {{"f:b", Json::object()}}}}}},
                         {{"manager", "without fields"}},
                         "not an entry"}}}}};
  Json object = sent;
  CompactFields(object);
  EXPECT_TRUE(object["metadata"]["managedFields"][0]["fieldsV1"].is_binary());
  EXPECT_EQ(ParseJson(kube::JsonText(object)), sent);
  ExpandFields(object);
  EXPECT_EQ(object, sent);
  Json bare = {{"metadata", "none"}};
  CompactFields(bare);
  EXPECT_EQ(bare, Json({{"metadata", "none"}}));
}

}  // namespace
}  // namespace tahoma::controller::apiserver
