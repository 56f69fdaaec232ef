// YAML: scalars as kubectl reads scalars, and bounds against hostile text.

#include "lib/kube/yaml.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <string>

#include "lib/base/json.h"

namespace tahoma::kube {
namespace {

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
                        Case{".inf", ".inf"}}) {
    const auto json = YamlToJson(c.yaml);
    ASSERT_TRUE(json.ok()) << c.yaml << " " << json.status();
    EXPECT_EQ(*json, c.json) << c.yaml;
  }
}

// The expected values are from sigs.k8s.io/yaml 1.6.0, which kubectl 1.36 uses.
TEST(YamlTest, ScalarsAreReadAsKubectlReadsThem) {
  struct Case {
    const char* yaml;
    const char* json;
  };
  for (const Case& c : {Case{"y", "true"},
                        Case{"Yes", "true"},
                        Case{"YES", "true"},
                        Case{"on", "true"},
                        Case{"On", "true"},
                        Case{"N", "false"},
                        Case{"no", "false"},
                        Case{"Off", "false"},
                        Case{"\"yes\"", R"("yes")"},
                        Case{"!!str on", R"("on")"},
                        Case{"oN", R"("oN")"},
                        Case{"tRUE", R"("tRUE")"},
                        Case{"yEs", R"("yEs")"},
                        Case{"1_000", "1000"},
                        Case{"0_", "0"},
                        Case{"1__0", "10"},
                        Case{"_1", R"("_1")"},
                        Case{".2_5", "0.25"},
                        Case{".25_", R"(".25_")"},
                        Case{".4_e2", R"(".4_e2")"},
                        Case{"--2", R"("--2")"},
                        Case{"+-8", R"("+-8")"},
                        Case{"-+8", R"("-+8")"},
                        Case{"0x_10", "16"},
                        Case{"1_0.5", "10.5"},
                        Case{"0X1F", "31"},
                        Case{"0O17", "15"},
                        Case{"0B11", "3"},
                        Case{"-017", "-15"},
                        Case{"-0x1f", "-31"},
                        Case{"+0x10", "16"},
                        Case{"+1", "1"},
                        Case{"018", "18"},
                        Case{"0b", R"("0b")"},
                        Case{"190:20:30", R"("190:20:30")"},
                        Case{"0x8000000000000000", "9223372036854775808"},
                        Case{"-0x8000000000000000", "-9223372036854775808"},
                        Case{"12345678901234567890", "12345678901234567890"},
                        Case{"123456789012345678901", "123456789012345680000.0"},
                        Case{"-9223372036854775809", "-9223372036854775808.0"},
                        Case{"1e400", R"("1e400")"},
                        Case{".", R"(".")"},
                        Case{"5e", R"("5e")"},
                        Case{".5e-3", "0.0005"},
                        Case{"!!int \"5\"", "5"}}) {
    const auto json = YamlToJson(c.yaml);
    ASSERT_TRUE(json.ok()) << c.yaml << " " << json.status();
    EXPECT_EQ(*json, ParseJson(c.json)) << c.yaml;
    EXPECT_EQ(json->is_number_float(), ParseJson(c.json).is_number_float()) << c.yaml;
  }
}

TEST(YamlTest, AFloatWithoutAFractionIsAnIntegerAsInJson) {
  for (const char* text : {"1e3", "1000.0", "1.0e+3", "1000."}) {
    EXPECT_EQ(YamlToJson(text)->dump(), "1000") << text;
  }
}

TEST(YamlTest, KeysAreTypedAndThenMadeText) {
  struct Case {
    const char* yaml;
    const char* json;
  };
  for (const Case& c : {Case{"1: a", R"({"1":"a"})"}, Case{"0x10: a", R"({"16":"a"})"},
                        Case{"yes: a", R"({"true":"a"})"}, Case{"y: a", R"({"true":"a"})"},
                        Case{"\"yes\": a", R"({"yes":"a"})"}, Case{"off: a", R"({"false":"a"})"},
                        Case{"1.0: a", R"({"1":"a"})"}, Case{"1e3: a", R"({"1000":"a"})"},
                        Case{"1.5: a", R"({"1.5":"a"})"},
                        Case{"app.kubernetes.io/name: a", R"({"app.kubernetes.io/name":"a"})"},
                        Case{"\"<<\": a", R"({"<<":"a"})"}}) {
    const auto json = YamlToJson(c.yaml);
    ASSERT_TRUE(json.ok()) << c.yaml << " " << json.status();
    EXPECT_EQ(*json, ParseJson(c.json)) << c.yaml;
  }
  EXPECT_FALSE(YamlToJson("~: a").ok());
  EXPECT_FALSE(YamlToJson("null: a").ok());
  EXPECT_FALSE(YamlToJson("1: a\n\"1\": b").ok()) << "the same key twice";
  EXPECT_FALSE(YamlToJson("on: a\ntrue: b").ok());
}

TEST(YamlTest, SeveralMappingsMergeAndTheEarlierWins) {
  EXPECT_EQ(*YamlToJson("a: &a {x: 1, v: 1}\nb: &b {v: 2, z: 2}\n"
                        "use: {<<: [*a, *b], x: 0}\n")
                 ->find("use"),
            ParseJson(R"({"x":0,"v":1,"z":2})"));
  EXPECT_FALSE(YamlToJson("use: {<<: [1]}").ok());
  EXPECT_FALSE(YamlToJson("use: {<<: text}").ok());
}

TEST(YamlTest, LineEndsMarksAndDocumentEndsAreUnderstood) {
  const Json wanted = ParseJson(R"({"a":[1,2],"b":"x"})");
  EXPECT_EQ(*YamlToJson("a:\r\n- 1\r\n- 2\r\nb: x\r\n"), wanted);
  EXPECT_EQ(*YamlToJson("\xEF\xBB\xBF"
                        "a: [1, 2]\nb: x"),
            wanted);
  EXPECT_EQ(*YamlToJson("%YAML 1.1\n---\na: [1, 2]\nb: x\n...\n"), wanted);
  EXPECT_EQ(YamlDocuments("# only words\n---\n# more\n---\na: 1\n...\n---\nb: 2\n")->size(), 2U);
  EXPECT_EQ(YamlDocuments("--- 1\n--- two\n")->size(), 2U);
}

TEST(YamlTest, AManifestBecomesTheSameJson) {
  EXPECT_EQ(
      *YamlToJson("kind: Gang\nspec: {members: 4, list: [a, 1]}\ntext: |\n  two\n  lines\n"),
      ParseJson(R"({"kind":"Gang","spec":{"members":4,"list":["a",1]},"text":"two\nlines\n"})"));
  const Json object = ParseJson(R"({"a":[1,2.5,"x",null,true,{"b":"1"}]})");
  EXPECT_EQ(*YamlToJson(object.dump()), object) << "JSON is YAML";
}

TEST(YamlTest, AnchorsAndMergeKeysAreExpanded) {
  EXPECT_EQ(*YamlToJson("base: &b {x: 1, z: 2}\nuse: {<<: *b, z: 3}\n"),
            ParseJson(R"({"base":{"x":1,"z":2},"use":{"x":1,"z":3}})"));
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
  // yaml-cpp would make empty documents of this text for ever.
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

// 400 kB become ten gigabytes, or a hundred megabytes: a bound on the number of values is not
// enough.
TEST(YamlTest, LongTextThatIsNamedManyTimesIsRefused) {
  const std::string text(100'000, 'x');
  std::string uses = "]";
  for (int i = 0; i < 100'000; ++i) uses += i == 0 ? "*a" : ",*a";
  std::rotate(uses.begin(), uses.begin() + 1, uses.end());
  // A key has at most 1,024 bytes.
  for (const std::string& named : {"&a " + text, "&a {" + text.substr(0, 1000) + ": 1}"}) {
    const auto json = YamlToJson("a: " + named + "\nb: [" + uses + "\n");
    EXPECT_NE(std::string(json.status().message()).find("expand"), std::string::npos)
        << json.status();
  }
}

TEST(YamlTest, AnchorsAroundAnchorsAreNotCopiedWithoutEnd) {
  std::string text;
  for (int i = 0; i < 90; ++i) text += "[&a" + std::to_string(i) + " ";
  text += "[";
  for (int i = 0; i < 400'000; ++i) text += "1,";
  text += "1]" + std::string(90, ']');
  const auto json = YamlToJson(text);
  EXPECT_NE(std::string(json.status().message()).find("expand"), std::string::npos)
      << json.status();
}

// The most memory of this process until now.
long PeakMiB() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    long kib = 0;
    if (word == "VmHWM:" && status >> kib) return kib / 1024;
  }
  return 0;
}

// The defect: 3 MB of a list in a line took 435 MB and four seconds before the first value was
// counted.
TEST(YamlTest, ATextTakesNoMoreMemoryThanTheValuesThatItMayBecome) {
  const long before = PeakMiB();
  for (const char* item : {"a,", "[],", "{},", "? ,", "*a ", "\"\"", "- ", "a: a, ", "\na: "}) {
    std::string text = "[";
    while (text.size() + 20 < kYamlBytesMax) text += item;
    EXPECT_FALSE(YamlToJson(text + "]").ok()) << item;
    text.front() = '{';
    EXPECT_FALSE(YamlToJson(text + "}").ok()) << item;
  }
  EXPECT_LT(PeakMiB() - before, 100);
}

TEST(YamlTest, AnAliasNamesAnEarlierValueAndNeverItsOwnContainer) {
  EXPECT_EQ(*YamlToJson("a: &x 1\nb: *x\nc: &x 2\nd: *x\n"),
            ParseJson(R"({"a":1,"b":1,"c":2,"d":2})"));
  EXPECT_FALSE(YamlToJson("a: &x [*x]").ok());
  EXPECT_FALSE(YamlToJson("a: &x 1\nb: &x [*x]").ok());
}

TEST(YamlTest, AsMuchAsABodyMayHoldIsReadWhenNothingExpands) {
  EXPECT_TRUE(YamlToJson("a: " + std::string(kYamlBytesMax - 10, 'x')).ok());
  std::string pairs;
  for (int i = 0; i < 40'000; ++i)
    pairs += "k" + std::to_string(i) + ": v" + std::to_string(i) + "\n";
  EXPECT_EQ(YamlToJson(pairs)->size(), 40'000U);
  for (int i = 40'000; i <= 50'000; ++i) pairs += "k" + std::to_string(i) + ": v\n";
  EXPECT_EQ(YamlToJson(pairs).status().message(),
            "line 50001: more than 50000 members of one mapping");
}

TEST(YamlTest, TextThatIsNotUtf8IsRefused) {
  for (const char* text : {"a: \xff", "a: \"\xc3\"", "\xed\xa0\x80: 1"}) {
    EXPECT_EQ(YamlToJson(text).status().message(), "the text is not UTF-8");
  }
}

}  // namespace
}  // namespace tahoma::kube
