// CRDs that we serve, and the words in which we refuse others.

#include "controller/apiserver/schema/crd.h"

#include <gtest/gtest.h>

#include "lib/base/json.h"
#include "lib/base/status.h"

namespace tahoma::controller::apiserver {
namespace {

Json Crd() {
  return ParseJson(R"({
    "metadata": {"name": "widgets.example.com"},
    "spec": {
      "group": "example.com", "scope": "Cluster",
      "names": {"plural": "widgets", "kind": "Widget", "shortNames": ["wd"],
                "categories": ["all"]},
      "versions": [{
        "name": "v1", "served": true, "storage": true,
        "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.n",
                                                 "statusReplicasPath": ".status.n"}},
        "additionalPrinterColumns": [{"name": "N", "type": "integer", "jsonPath": ".spec.n",
                                      "priority": 1}],
        "selectableFields": [{"jsonPath": ".spec.color"}],
        "schema": {"openAPIV3Schema": {
          "type": "object", "required": ["spec"],
          "properties": {
            "spec": {"type": "object", "properties": {
              "n": {"type": "integer", "default": 1, "minimum": 0},
              "color": {"type": "string", "pattern": "^[a-z]+$"}}},
            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}}}]}})");
}

Json& RootSchema(Json& crd) { return crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]; }

TEST(KindsOfCrdTest, ReadsNamesSubresourcesColumnsAndSchema) {
  const auto kinds = KindsOfCrd(Crd());
  ASSERT_TRUE(kinds.ok()) << kinds.status().ToString();
  const Kind& kind = *kinds->at(0);
  EXPECT_EQ(kind.list_kind, "WidgetList");
  EXPECT_EQ(kind.singular, "widget");
  EXPECT_FALSE(kind.namespaced);
  EXPECT_FALSE(kind.built_in);
  EXPECT_TRUE(kind.has_status);
  EXPECT_TRUE(kind.has_generation);
  EXPECT_EQ(kind.scale->spec_replicas, (std::vector<std::string>{"spec", "n"}));
  ASSERT_EQ(kind.columns.size(), 2U);
  EXPECT_EQ(kind.columns[1].json_path, ".spec.n");
  EXPECT_EQ(kind.columns[1].priority, 1);
  EXPECT_EQ(kind.selectable.at(0).label, "spec.color");
  EXPECT_EQ(kind.schema->name, "com.example.v1.Widget");
  EXPECT_NE(kind.schema->Field("metadata")->Field("labels"), nullptr);
  EXPECT_EQ(*kind.schema->Field("spec")->Field("n")->default_value, Json(1));
}

TEST(KindsOfCrdTest, WithoutColumnsThereIsAge) {
  Json crd = Crd();
  crd["spec"]["versions"][0].erase("additionalPrinterColumns");
  EXPECT_EQ(KindsOfCrd(crd)->at(0)->columns.at(1).name, "Age");
}

TEST(KindsOfCrdTest, EstablishedStatusNamesTheStoredVersion) {
  const Json status = EstablishedStatus(Crd(), "2026-01-01T00:00:00Z");
  EXPECT_EQ(status["storedVersions"], Json::array({"v1"}));
  EXPECT_EQ(status["conditions"][1]["type"], "Established");
  EXPECT_EQ(status["acceptedNames"]["listKind"], "WidgetList");
}

struct Refusal {
  const char* patch;  // RFC 7386, on the root schema when it begins with "type", else on the CRD
  const char* message;
};

class RefusedCrd : public ::testing::TestWithParam<Refusal> {};

TEST_P(RefusedCrd, SaysWhereAndWhy) {
  Json crd = Crd();
  const Json patch = ParseJson(GetParam().patch);
  if (patch.contains("schema")) {
    RootSchema(crd).merge_patch(patch["schema"]);
  } else {
    crd.merge_patch(patch);
  }
  const auto kinds = KindsOfCrd(crd);
  ASSERT_FALSE(kinds.ok());
  EXPECT_EQ(Message(kinds.status()), GetParam().message);
}

constexpr char kAt[] = "spec.versions[0].schema.openAPIV3Schema";

INSTANTIATE_TEST_SUITE_P(
    Table, RefusedCrd,
    ::testing::Values(
        Refusal{R"({"metadata": {"name": "x"}})",
                "metadata.name: Invalid value: \"x\": must be spec.names.plural+\".\"+spec.group"},
        Refusal{R"({"spec": {"group": null}})", "spec.group: Required value"},
        Refusal{R"({"spec": {"names": {"kind": null}}})", "spec.names.kind: Required value"},
        Refusal{R"({"spec": {"versions": []}})",
                "spec.versions: Required value: must have at least one version"},
        Refusal{R"({"spec": {"conversion": {"strategy": "Webhook"}}})",
                "spec.conversion.strategy: Unsupported value: only \"None\" is served"},
        Refusal{R"({"schema": {"properties": {"spec": {"type": null}}}})",
                "spec.versions[0].schema.openAPIV3Schema.properties[spec].type: Required value: "
                "must not be empty"},
        Refusal{R"({"schema": {"properties": {"spec": {"properties": {"n": {"default": -1}}}}}})",
                "spec.versions[0].schema.openAPIV3Schema.properties[spec].properties[n].default: "
                "Invalid value: -1: "
                "spec.versions[0].schema.openAPIV3Schema.properties[spec].properties[n].default "
                "in body should be greater than or equal to 0"},
        Refusal{R"({"schema": {"properties": {"a": {"type": "array"}}}})",
                "spec.versions[0].schema.openAPIV3Schema.properties[a].items: Required value: "
                "must be specified"},
        Refusal{R"({"schema": {"properties": {"a": {"type": "array", "items": {"type": "object"},
                    "x-kubernetes-list-type": "map"}}}})",
                "spec.versions[0].schema.openAPIV3Schema.properties[a].x-kubernetes-list-map-keys: "
                "Required value: must not be empty if x-kubernetes-list-type is map"}));

TEST(KindsOfCrdTest, ABadPatternIsNamed) {
  Json crd = Crd();
  RootSchema(crd)["properties"]["spec"]["properties"]["color"]["pattern"] = "(";
  const auto kinds = KindsOfCrd(crd);
  ASSERT_FALSE(kinds.ok());
  EXPECT_TRUE(Message(kinds.status())
                  .starts_with(std::string(kAt) +
                               ".properties[spec].properties[color].pattern: Invalid value: \"(\""))
      << kinds.status().ToString();
}

// The defect: a search with such a pattern cannot be ended in the middle.
TEST(KindsOfCrdTest, APatternThatIsCompiledToTooMuchIsRefused) {
  Json crd = Crd();
  RootSchema(crd)["properties"]["spec"]["properties"]["color"]["pattern"] = R"([\pL\pN]{100})";
  const auto kinds = KindsOfCrd(crd);
  ASSERT_FALSE(kinds.ok());
  EXPECT_TRUE(Message(kinds.status())
                  .starts_with(std::string(kAt) +
                               ".properties[spec].properties[color].pattern: Invalid value: "
                               "\"[\\pL\\pN]{100}\": too large: it is compiled to "))
      << kinds.status().ToString();
  EXPECT_TRUE(Message(kinds.status())
                  .ends_with("instructions, which may be at most 50000; use fewer or smaller "
                             "counted repetitions"));
}

TEST(KindsOfCrdTest, NestingIsBounded) {
  Json inner = {{"type", "string"}};
  for (int i = 0; i < 200; ++i) inner = {{"type", "array"}, {"items", inner}};
  Json crd = Crd();
  RootSchema(crd)["properties"]["deep"] = inner;
  EXPECT_EQ(KindsOfCrd(crd).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace tahoma::controller::apiserver
