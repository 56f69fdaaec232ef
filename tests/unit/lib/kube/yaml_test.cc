// YAML: scalars as kubectl types them, and bounds against what is made to hurt.

#include "lib/kube/yaml.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

namespace tahoma::kube {
namespace {

using Json = nlohmann::json;

TEST(YamlTest, PlainScalarsAreTypedAndQuotedOnesAreText) {
  struct Case {
    const char* yaml;
    Json json;
  };
  for (const Case& c : {Case{"1", 1},
                        Case{"-7", -7},
                        Case{"0x1f", 31},
                        Case{"0o17", 15},
                        Case{"017", 15},
                        Case{"1.5", 1.5},
                        Case{"1e3", 1000.0},
                        Case{"true", true},
                        Case{"False", false},
                        Case{"yes", "yes"},
                        Case{"on", "on"},
                        Case{"null", nullptr},
                        Case{"~", nullptr},
                        Case{"\"1\"", "1"},
                        Case{"'true'", "true"},
                        Case{"4x4x4", "4x4x4"},
                        Case{"1.2.3", "1.2.3"},
                        Case{"96Gi", "96Gi"},
                        Case{"-", Json::array({nullptr})},
                        Case{"2026-11-21", "2026-11-21"},
                        Case{"9223372036854775807", INT64_MAX},
                        Case{"-9223372036854775808", INT64_MIN},
                        Case{"!!str 5", "5"},
                        Case{"089", 89},
                        Case{".inf", ".inf"},
                        Case{"1_000", "1_000"}}) {
    const auto json = YamlToJson(c.yaml);
    ASSERT_TRUE(json.ok()) << c.yaml << " " << json.status();
    EXPECT_EQ(*json, c.json) << c.yaml;
  }
}

TEST(YamlTest, AManifestBecomesTheSameJson) {
  EXPECT_EQ(
      *YamlToJson("kind: Gang\nspec: {members: 4, list: [a, 1]}\ntext: |\n  two\n  lines\n"),
      Json::parse(R"({"kind":"Gang","spec":{"members":4,"list":["a",1]},"text":"two\nlines\n"})"));
  const Json object = Json::parse(R"({"a":[1,2.5,"x",null,true,{"b":"1"}]})");
  EXPECT_EQ(*YamlToJson(object.dump()), object) << "JSON is YAML";
}

TEST(YamlTest, AnchorsAndMergeKeysAreExpanded) {
  EXPECT_EQ(*YamlToJson("base: &b {x: 1, y: 2}\nuse: {<<: *b, y: 3}\n"),
            Json::parse(R"({"base":{"x":1,"y":2},"use":{"x":1,"y":3}})"));
}

TEST(YamlTest, DocumentsAreSplitAndEmptyOnesLeftOut) {
  EXPECT_EQ(YamlDocuments("---\na: 1\n---\n---\nb: 2\n")->size(), 2U);
  EXPECT_TRUE(YamlToJson("")->is_null());
  EXPECT_FALSE(YamlToJson("a: 1\n---\nb: 2\n").ok());
}

TEST(YamlTest, WhatIsWrongIsNamedWithItsLine) {
  struct Case {
    const char* yaml;
    const char* reason;
  };
  for (const Case& c : {Case{"a: 1\na: 2\n", "line 2: key \"a\" already set in map"},
                        Case{"a: [1\n", "line 2"}, Case{"? {a: 1}\n: 2\n", "a key is not text"},
                        Case{"a: !mine 1\n", "the tag !mine"}, Case{"a: *none\n", "line 1"}}) {
    const auto json = YamlToJson(c.yaml);
    ASSERT_EQ(json.status().code(), absl::StatusCode::kInvalidArgument) << c.yaml;
    EXPECT_NE(std::string(json.status().message()).find(c.reason), std::string::npos)
        << json.status();
  }
}

TEST(YamlTest, ABracketWithoutItsPartnerEnds) {
  // yaml-cpp would make empty documents of it for ever.
  EXPECT_FALSE(YamlToJson("{\"a\":[1]}]x").ok());
}

TEST(YamlTest, TextThatIsMadeToHurtIsRefused) {
  std::string deep;
  for (int i = 0; i < 1000; ++i) deep += "[";
  EXPECT_FALSE(YamlToJson(deep + std::string(1000, ']')).ok());
  std::string bomb = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n";
  for (int i = 1; i < 10; ++i) {
    const std::string last = "*a" + std::to_string(i - 1);
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + last;
    for (int j = 0; j < 9; ++j) bomb += "," + last;
    bomb += "]\n";
  }
  EXPECT_NE(std::string(YamlToJson(bomb).status().message()).find("expand"), std::string::npos);
  EXPECT_FALSE(YamlToJson(std::string(kYamlBytesMax + 1, ' ')).ok());
}

}  // namespace
}  // namespace tahoma::kube
