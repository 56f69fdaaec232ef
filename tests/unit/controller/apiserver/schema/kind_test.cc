// The built-in kinds and the registry that CRDs come to and leave.

#include "controller/apiserver/schema/kind.h"

#include <gtest/gtest.h>

#include <set>

#include "controller/apiserver/schema/schema.h"
#include "lib/base/json.h"

namespace tahoma::controller::apiserver {
namespace {

Json WidgetCrd(const std::string& plural = "widgets", const std::string& kind = "Widget") {
  return ParseJson(R"({"apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition", "metadata": {"name": ")" +
                   plural + R"(.example.com"}, "spec": {"group": "example.com",
    "scope": "Namespaced", "names": {"plural": ")" +
                   plural + R"(", "kind": ")" + kind + R"("},
    "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema":
      {"type": "object", "properties": {"spec": {"type": "object"}}}}}]}})");
}

TEST(KindTableTest, FindsBuiltInKindsByResourceAndByKind) {
  const KindRegistry registry;
  const auto kinds = registry.Snapshot();
  const Kind* pods = kinds->Find("", "v1", "pods");
  ASSERT_NE(pods, nullptr);
  EXPECT_EQ(pods->kind, "Pod");
  EXPECT_EQ(pods->resource(), "pods");
  EXPECT_EQ(kinds->FindKind("v1", "Pod"), pods);
  EXPECT_EQ(kinds->FindKind("resource.k8s.io/v1", "ResourceClaim"),
            kinds->FindStorage("resource.k8s.io", "resourceclaims"));
  EXPECT_EQ(kinds->Find("", "v1", "replicationcontrollers"), nullptr);
  EXPECT_EQ(kinds->Find("apps", "v1", "pods"), nullptr);
}

TEST(KindTableTest, EveryBuiltInKindHasASchemaOfAnObject) {
  const std::set<std::string> expected = {"pods",
                                          "nodes",
                                          "namespaces",
                                          "events",
                                          "componentstatuses",
                                          "configmaps",
                                          "secrets",
                                          "serviceaccounts",
                                          "services",
                                          "endpoints",
                                          "deployments",
                                          "replicasets",
                                          "statefulsets",
                                          "daemonsets",
                                          "controllerrevisions",
                                          "jobs",
                                          "poddisruptionbudgets",
                                          "persistentvolumes",
                                          "persistentvolumeclaims",
                                          "storageclasses",
                                          "mutatingwebhookconfigurations",
                                          "validatingwebhookconfigurations",
                                          "leases",
                                          "priorityclasses",
                                          "resourceslices",
                                          "resourceclaims",
                                          "resourceclaimtemplates",
                                          "deviceclasses",
                                          "customresourcedefinitions"};
  std::set<std::string> found;
  for (const auto& kind : BuiltInKinds()) {
    found.insert(kind->plural);
    ASSERT_NE(kind->schema, nullptr) << kind->kind;
    for (const char* field : {"apiVersion", "kind", "metadata"}) {
      EXPECT_NE(kind->schema->Field(field), nullptr) << kind->kind << "." << field;
    }
    EXPECT_EQ(kind->has_status,
              kind->plural != "events" && kind->schema->Field("status") != nullptr)
        << kind->kind;
    EXPECT_EQ(kind->columns.empty(), false);
  }
  EXPECT_EQ(found, expected);
}

TEST(KindTableTest, KindsAreSortedWithCoreFirst) {
  const auto kinds = KindRegistry().Snapshot();
  EXPECT_EQ(kinds->kinds().front()->group, "");
  EXPECT_EQ(kinds->kinds().front()->plural, "componentstatuses");
  EXPECT_EQ(kinds->kinds().back()->group, "storage.k8s.io");
}

TEST(KindRegistryTest, ACrdAddsAKindAndRemovingItTakesItAway) {
  KindRegistry registry;
  const auto before = registry.Snapshot();
  ASSERT_TRUE(registry.ApplyCrd(WidgetCrd()).ok());
  const auto with = registry.Snapshot();
  ASSERT_NE(with->Find("example.com", "v1", "widgets"), nullptr);
  EXPECT_EQ(with->Find("example.com", "v1", "widgets")->resource(), "widgets.example.com");
  registry.RemoveCrd("widgets.example.com");
  registry.RemoveCrd("widgets.example.com");
  EXPECT_EQ(registry.Snapshot()->Find("example.com", "v1", "widgets"), nullptr);
  EXPECT_EQ(before->Find("example.com", "v1", "widgets"), nullptr);
  EXPECT_NE(with->Find("example.com", "v1", "widgets"), nullptr) << "a snapshot never changes";
  EXPECT_LT(before->generation(), with->generation());
}

TEST(KindRegistryTest, ApplyingACrdAgainReplacesIt) {
  KindRegistry registry;
  ASSERT_TRUE(registry.ApplyCrd(WidgetCrd()).ok());
  Json again = WidgetCrd();
  again["spec"]["names"]["shortNames"] = {"wd"};
  ASSERT_TRUE(registry.ApplyCrd(again).ok());
  EXPECT_EQ(registry.Snapshot()->Find("example.com", "v1", "widgets")->short_names,
            std::vector<std::string>{"wd"});
}

TEST(KindRegistryTest, TwoCrdsCannotHaveOneKind) {
  KindRegistry registry;
  ASSERT_TRUE(registry.ApplyCrd(WidgetCrd()).ok());
  const absl::Status status = registry.ApplyCrd(WidgetCrd("gadgets", "Widget"));
  EXPECT_EQ(status.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(registry.Snapshot()->Find("example.com", "v1", "gadgets"), nullptr);
}

TEST(KindRegistryTest, ABadCrdChangesNothing) {
  KindRegistry registry;
  const auto before = registry.Snapshot();
  Json bad = WidgetCrd();
  bad["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["type"] = "strnig";
  EXPECT_EQ(registry.ApplyCrd(bad).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(registry.Snapshot(), before);
}

TEST(PartsToCheckTest, AreThoseThatWereChangedAddedOrRemoved) {
  const KindRegistry registry;
  const Kind& pods = *registry.Snapshot()->Find("", "v1", "pods");
  const Json before = {{"metadata", {{"name", "a"}}}, {"spec", {{"x", 1}}}, {"old", 1}};
  Json after = before;
  EXPECT_EQ(PartsToCheck(pods, before, after), Parts(std::in_place));
  after["spec"]["x"] = 2;
  after["status"] = Json::object();
  after.erase("old");
  EXPECT_EQ(PartsToCheck(pods, before, after), Parts(Parts::value_type{"old", "spec", "status"}));
}

TEST(PartsToCheckTest, AreAllOfACustomKindWhoseSchemaMayHaveChanged) {
  KindRegistry registry;
  ASSERT_TRUE(registry.ApplyCrd(WidgetCrd()).ok());
  const Kind& widgets = *registry.Snapshot()->Find("example.com", "v1", "widgets");
  EXPECT_EQ(PartsToCheck(widgets, {{"spec", 1}}, {{"spec", 1}}), std::nullopt);
}

}  // namespace
}  // namespace tahoma::controller::apiserver
