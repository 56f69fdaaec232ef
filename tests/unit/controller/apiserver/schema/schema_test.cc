// The schema engine: what it refuses and in which words, what it prunes, what it fills in.

#include "controller/apiserver/schema/schema.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "controller/apiserver/schema/crd.h"
#include "controller/apiserver/schema/kind.h"
#include "controller/apiserver/schema/schema_table.h"
#include "lib/base/check.h"
#include "lib/base/json.h"
#include "lib/base/status.h"

namespace tahoma::controller::apiserver {
namespace {

SchemaPtr Widget() {
  auto schema = SchemaOfOpenApi(ParseJson(R"({
    "type": "object", "required": ["spec"],
    "properties": {
      "spec": {"type": "object", "required": ["members"], "properties": {
        "members": {"type": "integer", "minimum": 1, "maximum": 4096},
        "shape": {"type": "string", "maxLength": 8, "pattern": "^[0-9]x[0-9]$"},
        "queue": {"type": "string", "default": "default"},
        "size": {"x-kubernetes-int-or-string": true},
        "phase": {"type": "string", "enum": ["A", "B"]},
        "note": {"type": "string", "nullable": true},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "tags": {"type": "array", "x-kubernetes-list-type": "set", "maxItems": 3,
                 "items": {"type": "string"}},
        "ports": {"type": "array", "x-kubernetes-list-type": "map",
                  "x-kubernetes-list-map-keys": ["n"],
                  "items": {"type": "object", "required": ["n"], "properties": {
                    "n": {"type": "integer"}, "p": {"type": "string", "default": "TCP"}}}},
        "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {
          "known": {"type": "object", "properties": {"a": {"type": "integer"}}}}}}}}})"),
                                "");
  TAHOMA_CHECK_OK(schema.status());
  return *schema;
}

std::vector<std::string> Texts(const std::vector<Cause>& causes) {
  std::vector<std::string> texts;
  for (const Cause& cause : causes) {
    texts.push_back(cause.reason + "|" + cause.field + ": " + cause.message);
  }
  return texts;
}

// The defect: a search takes as long as its pattern's instructions times the bytes of the text, and
// nothing ends it: this one, seconds.
TEST(ValidatePatternTest, ATextThatTakesTooLongToBeMatchedIsRefusedUnread) {
  const auto schema = SchemaOfOpenApi(ParseJson(R"({"type": "object", "properties": {
                        "text": {"type": "string", "pattern": "(a{30}){30}b"}}})"),
                                      "");
  ASSERT_TRUE(schema.ok()) << schema.status();
  const auto errors_of = [&](std::size_t bytes) {
    const auto causes = ValidateSchema(**schema, {{"text", std::string(bytes, 'a')}});
    return causes.size() == 1 ? causes[0].message : fmt::format("{} errors", causes.size());
  };
  EXPECT_THAT(errors_of(2'000), ::testing::EndsWith("text in body should match '(a{30}){30}b'"));
  EXPECT_THAT(errors_of(2'000'000),
              ::testing::ContainsRegex("text in body is too long to be matched with "
                                       "'\\(a\\{30\\}\\)\\{30\\}b': 2000000 bytes; at most "
                                       "[0-9]+ can be$"));
}

struct Case {
  const char* spec;
  std::vector<std::string> errors;
};

class ValidateTable : public ::testing::TestWithParam<Case> {};

TEST_P(ValidateTable, SaysWhatKubernetesSays) {
  const Json object = {{"spec", ParseJson(GetParam().spec)}};
  EXPECT_EQ(Texts(ValidateSchema(*Widget(), object)), GetParam().errors);
}

INSTANTIATE_TEST_SUITE_P(
    Specs, ValidateTable,
    ::testing::Values(
        Case{R"({"members": 4, "shape": "4x4", "size": "50%", "tags": ["a", "b"]})", {}},
        Case{R"({"members": 4096, "size": 7, "note": null, "labels": {"a": "b"}})", {}},
        Case{R"({})", {"FieldValueRequired|spec.members: Required value"}},
        Case{R"({"members": "4"})",
             {"FieldValueTypeInvalid|spec.members: Invalid value: \"string\": spec.members in body "
              "must be of type integer: \"string\""}},
        Case{R"({"members": 0})",
             {"FieldValueInvalid|spec.members: Invalid value: 0: spec.members in body should be "
              "greater than or equal to 1"}},
        Case{R"({"members": 5000})",
             {"FieldValueInvalid|spec.members: Invalid value: 5000: spec.members in body should be "
              "less than or equal to 4096"}},
        Case{R"({"members": 1, "shape": "44"})",
             {"FieldValueInvalid|spec.shape: Invalid value: \"44\": spec.shape in body should "
              "match '^[0-9]x[0-9]$'"}},
        Case{R"({"members": 1, "shape": "4x4444444444"})",
             {"FieldValueTooLong|spec.shape: Too long: may not be more than 8 bytes",
              "FieldValueInvalid|spec.shape: Invalid value: \"4x4444444444\": spec.shape in body "
              "should match '^[0-9]x[0-9]$'"}},
        Case{R"({"members": 1, "phase": "C"})",
             {"FieldValueNotSupported|spec.phase: Unsupported value: \"C\": supported values: "
              "\"A\", \"B\""}},
        Case{R"({"members": 1, "tags": ["a", "a"]})",
             {"FieldValueDuplicate|spec.tags[1]: Duplicate value: \"a\""}},
        Case{R"({"members": 1, "tags": ["a", "b", "c", "d"]})",
             {"FieldValueTooMany|spec.tags: Too many: 4: must have at most 3 items"}},
        Case{R"({"members": 1, "ports": [{"n": 1}, {"n": 1, "p": "x"}]})",
             {"FieldValueDuplicate|spec.ports[1]: Duplicate value: {\"n\":1}"}},
        Case{R"({"members": 1, "ports": [{"p": "x"}]})",
             {"FieldValueRequired|spec.ports[0].n: Required value"}},
        Case{R"({"members": 1, "labels": {"a": 1}})",
             {"FieldValueTypeInvalid|spec.labels.a: Invalid value: \"integer\": spec.labels.a in "
              "body must be of type string: \"integer\""}},
        Case{R"({"members": 1, "size": true})",
             {"FieldValueTypeInvalid|spec.size: Invalid value: \"boolean\": spec.size in body must "
              "be of type integer,string: \"boolean\""}}));

TEST(ValidateSchemaTest, ReportsAtMostAHundredErrors) {
  Json object = {{"spec", {{"members", 1}, {"labels", Json::object()}}}};
  for (int i = 0; i < 300; ++i) object["spec"]["labels"][std::to_string(i)] = i;
  EXPECT_EQ(ValidateSchema(*Widget(), object).size(), kMaxCauses);
}

TEST(PruneTest, RemovesAndNamesUnknownFieldsAtEveryDepth) {
  Json object = ParseJson(R"({"spec": {"foo": 1, "members": 1, "labels": {"any": "x"},
    "ports": [{"n": 1}, {"n": 2, "bar": {}}], "open": {"x": {"y": 1}, "known": {"a": 1, "b": 2}}},
    "zed": 1})");
  EXPECT_EQ(Prune(*Widget(), object), (std::vector<std::string>{"spec.foo", "spec.open.known.b",
                                                                "spec.ports[1].bar", "zed"}));
  EXPECT_EQ(object, ParseJson(R"({"spec": {"members": 1, "labels": {"any": "x"},
    "ports": [{"n": 1}, {"n": 2}], "open": {"x": {"y": 1}, "known": {"a": 1}}}})"));
  EXPECT_TRUE(Prune(*Widget(), object).empty());
}

TEST(ApplyDefaultsTest, FillsAbsentFieldsAndNullsAndDropsOtherNulls) {
  Json object = ParseJson(R"({"spec": {"queue": null, "shape": null, "note": null,
    "ports": [{"n": 1}, {"n": 2, "p": "UDP"}]}})");
  ApplyDefaults(*Widget(), object);
  EXPECT_EQ(object, ParseJson(R"({"spec": {"queue": "default", "note": null,
    "ports": [{"n": 1, "p": "TCP"}, {"n": 2, "p": "UDP"}]}})"));
}

TEST(PartsTest, OnlyTheNamedFieldsAreLookedAt) {
  const Schema& pod = *BuiltInKinds().front()->schema;
  const Json wrong = ParseJson(R"({"spec": {"members": 9999, "foo": 1, "queue": null}})");
  const Parts none(std::in_place);
  Json object = wrong;
  EXPECT_TRUE(Prune(*Widget(), object, none).empty());
  ApplyDefaults(*Widget(), object, none);
  EXPECT_EQ(object, wrong);
  EXPECT_TRUE(ValidateSchema(*Widget(), object, "", none).empty());
  EXPECT_EQ(DecodeError(pod, {{"spec", 1}}, none), std::nullopt);

  const Parts spec = Parts::value_type{"spec"};
  EXPECT_EQ(Prune(*Widget(), object, spec), std::vector<std::string>{"spec.foo"});
  ApplyDefaults(*Widget(), object, spec);
  EXPECT_EQ(object["spec"]["queue"], "default");
  EXPECT_EQ(ValidateSchema(*Widget(), object, "", spec).size(), 1U);
  EXPECT_NE(DecodeError(pod, {{"spec", 1}}, spec), std::nullopt);
}

TEST(PartsTest, AFieldThatIsRequiredIsMissedWhateverIsLookedAt) {
  EXPECT_EQ(ValidateSchema(*Widget(), Json::object(), "", Parts(std::in_place)).size(), 1U);
}

// Random objects over few field names, so that many of them are known to the schema.
Json AnyJson(int depth) {
  const int kind = *rc::gen::inRange(0, depth > 3 ? 4 : 6);
  if (kind == 0) return nullptr;
  if (kind == 1) return *rc::gen::inRange(-2, 5000);
  if (kind == 2) return *rc::gen::elementOf(std::vector<std::string>{"", "4x4", "A", "default"});
  if (kind == 3) return *rc::gen::inRange(0, 2) == 1;
  Json made = kind == 4 ? Json::array() : Json::object();
  const int size = *rc::gen::inRange(0, 4);
  for (int i = 0; i < size; ++i) {
    if (kind == 4) {
      made.push_back(AnyJson(depth + 1));
    } else {
      made[*rc::gen::elementOf(std::vector<std::string>{"spec", "members", "queue", "ports", "n",
                                                        "p", "open", "known", "a", "labels",
                                                        "other"})] = AnyJson(depth + 1);
    }
  }
  return made;
}

RC_GTEST_PROP(SchemaProperty, DefaultsAreIdempotent, ()) {
  Json object = {{"spec", AnyJson(0)}};
  ApplyDefaults(*Widget(), object);
  Json again = object;
  ApplyDefaults(*Widget(), again);
  RC_ASSERT(again == object);
}

RC_GTEST_PROP(SchemaProperty, PruningTwiceFindsNothingAndReportsExactlyWhatIsGone, ()) {
  Json object = {{"spec", AnyJson(0)}};
  const Json before = object;
  const std::vector<std::string> unknown = Prune(*Widget(), object);
  RC_ASSERT(unknown.empty() == (before == object));
  RC_ASSERT(Prune(*Widget(), object).empty());
}

RC_GTEST_PROP(SchemaProperty, ValidationNeverCrashesAndIsBounded, ()) {
  RC_ASSERT(ValidateSchema(*Widget(), AnyJson(0)).size() <= kMaxCauses);
}

const Schema& PodSchema() { return *BuiltInKinds().front()->schema; }

TEST(DecodeErrorTest, SaysWhatGoSays) {
  EXPECT_EQ(DecodeError(PodSchema(), ParseJson(R"({"metadata": {"name": 1}})")),
            "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.name of type "
            "string");
  EXPECT_EQ(DecodeError(PodSchema(), ParseJson(R"({"spec": {"containers": {}}})")),
            "json: cannot unmarshal object into Go struct field PodSpec.spec.containers of type "
            "[]v1.Container");
  EXPECT_EQ(DecodeError(PodSchema(), ParseJson(R"({"spec": {"priority": 3000000000}})")),
            "json: cannot unmarshal number 3000000000 into Go struct field PodSpec.spec.priority "
            "of type int32");
  EXPECT_EQ(DecodeError(PodSchema(), ParseJson(R"({"metadata": {"labels": {"a": true}}})")),
            "json: cannot unmarshal bool into Go struct field ObjectMeta.metadata.labels of type "
            "string");
  EXPECT_EQ(DecodeError(PodSchema(), ParseJson(R"({"metadata": {"creationTimestamp": null},
    "status": null, "spec": {"containers": [{"name": "a",
                               "resources": {"limits": {"cpu": 1}}}]}})")),
            std::nullopt);
}

TEST(SchemaTableTest, NamesTheLineThatIsWrong) {
  const auto missing = ParseSchemaTables({"package p.v1\ntype A : x\n  b B : y\n"});
  EXPECT_EQ(Message(missing.status()), "p.v1 line 3: unknown type p.v1.B");
  const auto loop = ParseSchemaTables({"package p.v1\ntype A : x\n  a A : y\n"});
  EXPECT_EQ(Message(loop.status()), "type p.v1.A contains itself");
  const auto option = ParseSchemaTables({"package p.v1\ntype A : x\n  a string wide=3 : y\n"});
  EXPECT_EQ(Message(option.status()), "p.v1 line 3: unknown option \"wide\"");
}

TEST(SchemaTableTest, EveryTypeAndFieldOfTheBuiltInTablesIsDescribed) {
  const auto types = ParseSchemaTables(BuiltInSchemaTables());
  ASSERT_TRUE(types.ok()) << types.status().ToString();
  EXPECT_GT(types->size(), 150U);
  for (const auto& [name, type] : *types) {
    EXPECT_FALSE(type->description.empty()) << name;
    for (const auto& [field, schema] : type->properties) {
      EXPECT_FALSE(schema->description.empty()) << name << "." << field;
    }
  }
}

TEST(SchemaTableTest, ListsOfThePodKnowHowTheyMerge) {
  const Schema& containers = *PodSchema().Field("spec")->Field("containers");
  EXPECT_EQ(containers.list_map_keys, std::vector<std::string>{"name"});
  EXPECT_EQ(containers.merge_key, "name");
  EXPECT_EQ(containers.patch_strategy, Schema::PatchStrategy::kMerge);
  const Schema& ports = *containers.items->Field("ports");
  EXPECT_EQ(ports.list_map_keys, (std::vector<std::string>{"containerPort", "protocol"}));
  EXPECT_EQ(ports.merge_key, "containerPort");
}

}  // namespace
}  // namespace tahoma::controller::apiserver
