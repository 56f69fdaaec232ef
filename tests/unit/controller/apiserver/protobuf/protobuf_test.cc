// The bytes are checked against those of Kubernetes' own Go types (tests/golden/protobuf, made by
// tests/clients/go/vectors), so these tests do not depend on how the messages are walked.

#include "controller/apiserver/protobuf/protobuf.h"

#include <absl/strings/escaping.h>
#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

#include <filesystem>
#include <fstream>

#include "controller/apiserver/schema/json_text.h"
#include "lib/base/json.h"
#include "lib/base/status.h"

namespace tahoma::controller::apiserver {
namespace {

using ::testing::HasSubstr;

struct Vector {
  std::string file;
  Json json;
  std::string bytes;
};

std::string Hex(std::string_view bytes) {
  return absl::BytesToHexString({bytes.data(), bytes.size()});
}

std::vector<Vector> GoldenVectors() {
  std::vector<Vector> vectors;
  for (const auto& file : std::filesystem::directory_iterator("tests/golden/protobuf")) {
    if (file.path().extension() != ".jsonl") continue;
    std::ifstream in(file.path());
    for (std::string line; std::getline(in, line);) {
      const Json vector = ParseJson(line);
      std::string bytes;
      EXPECT_TRUE(absl::Base64Unescape(vector.at("protobuf").get<std::string>(), &bytes));
      vectors.push_back({file.path().filename(), vector.at("json"), std::move(bytes)});
    }
  }
  return vectors;
}

std::string Varint(std::size_t value) {
  std::string bytes;
  for (; value >= 128; value >>= 7U) bytes += static_cast<char>((value & 0x7fU) | 0x80U);
  return bytes + static_cast<char>(value);
}

std::string Field(std::size_t number, const std::string& bytes) {
  return Varint(number * 8 + 2) + Varint(bytes.size()) + bytes;
}

std::string Body(const std::string& api_version, const std::string& kind,
                 const std::string& message) {
  return std::string("k8s\0", 4) + Field(1, Field(1, api_version) + Field(2, kind)) +
         Field(2, message);
}

std::string WhyNot(const std::string& body) {
  const absl::StatusOr<Json> decoded = DecodeProtobuf(body);
  return decoded.ok() ? "it is decoded: " + decoded->dump()
                      : std::string(Message(decoded.status()));
}

TEST(ProtobufTest, JsonBecomesTheBytesThatGoWrites) {
  const std::vector<Vector> vectors = GoldenVectors();
  ASSERT_GT(vectors.size(), 100U);
  for (const Vector& vector : vectors) {
    SCOPED_TRACE(vector.file);
    const absl::StatusOr<std::string> encoded = EncodeProtobuf(vector.json);
    ASSERT_TRUE(encoded.ok()) << encoded.status();
    ASSERT_EQ(Hex(*encoded), Hex(vector.bytes)) << vector.json.dump(1);
  }
}

TEST(ProtobufTest, TheBytesThatGoWritesBecomeItsJson) {
  for (const Vector& vector : GoldenVectors()) {
    SCOPED_TRACE(vector.file);
    const absl::StatusOr<Json> decoded = DecodeProtobuf(vector.bytes);
    ASSERT_TRUE(decoded.ok()) << decoded.status();
    ASSERT_EQ(decoded->dump(1), vector.json.dump(1));
  }
}

TEST(ProtobufTest, BytesCutAnywhereAreRefusedOrAShorterObject) {
  for (const Vector& vector : GoldenVectors()) {
    const std::size_t step = vector.bytes.size() / 200 + 1;
    for (std::size_t size = 0; size < vector.bytes.size(); size += step) {
      const absl::StatusOr<Json> decoded = DecodeProtobuf(vector.bytes.substr(0, size));
      EXPECT_TRUE(!decoded.ok() || EncodeProtobuf(*decoded).ok());
    }
  }
}

RC_GTEST_PROP(ProtobufTest, AnObjectReadFromBrokenBytesCanBeWrittenAndReadAgain, ()) {
  static const auto* const vectors = new std::vector<Vector>(GoldenVectors());
  const auto which = *rc::gen::inRange<std::size_t>(0, vectors->size());
  std::string bytes = (*vectors)[which].bytes;
  const auto breaks = *rc::gen::inRange(1, 4);
  for (int i = 0; i < breaks; ++i) {
    const auto at = *rc::gen::inRange<std::size_t>(4, bytes.size());
    bytes[at] = static_cast<char>(*rc::gen::arbitrary<std::uint8_t>());
  }
  const absl::StatusOr<Json> decoded = DecodeProtobuf(bytes);
  if (!decoded.ok()) return;
  const absl::StatusOr<std::string> encoded = EncodeProtobuf(*decoded);
  RC_ASSERT(encoded.ok());
  RC_ASSERT(*DecodeProtobuf(*encoded) == *decoded);
}

TEST(ProtobufTest, FieldsThatTheKindDoesNotHaveAreSkipped) {
  const std::string future = Field(15, "a field of a later version") + std::string("\x78\x07", 2);
  EXPECT_EQ(*DecodeProtobuf(Body("v1", "ConfigMap", Field(1, Field(1, "c") + future) + future)),
            ParseJson(R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"}})"));
}

TEST(ProtobufTest, MessagesInPiecesAreMergedAndOfOthersTheLastCounts) {
  const std::string entry = Field(11, Field(1, "a") + Field(2, "1"));
  const std::string again = Field(11, Field(1, "a") + Field(2, "2"));
  const std::string other = Field(11, Field(1, "0") + Field(2, "3"));
  EXPECT_EQ(DecodeProtobuf(Body("v1", "ConfigMap",
                                Field(1, Field(1, "first") + entry) +
                                    Field(1, Field(1, "last") + again + other)))
                ->at("metadata"),
            ParseJson(R"({"name":"last","labels":{"0":"3","a":"2"}})"));
}

// The bytes of the pieces were put together first: a field could begin in one and end in the next,
// and of nested messages in two pieces each level had a copy of all below.
TEST(ProtobufTest, EachPieceOfAMessageIsAMessageAlone) {
  const std::string begin = Field(1, std::string("\x0a\x04", 2));
  const std::string end = Field(1, "name");
  EXPECT_THAT(WhyNot(Body("v1", "ConfigMap", begin + end)), HasSubstr("no protobuf message"));
}

// They were null in JSON, which is written as if they were not there.
TEST(ProtobufTest, MessagesThatAreNothingInJsonAreLeftOut) {
  const std::string without_bytes = Field(17, Field(1, "me") + Field(7, ""));
  const std::string at_no_time = Field(9, "");
  const std::string body = Body("v1", "ConfigMap", Field(1, without_bytes + at_no_time));
  EXPECT_EQ(DecodeProtobuf(body)->at("metadata"),
            ParseJson(R"({"managedFields":[{"manager":"me"}]})"));
}

// Their upper bits were cut off: field 4294967297 was read as field 1.
TEST(ProtobufTest, TagsAndLengthsOverThirtyTwoBitsAreRefused) {
  const std::string tag("\x8a\x80\x80\x80\x80\x01", 6);  // 10 and bit 35
  for (const std::string& message :
       {tag + std::string(1, '\0'), "\x0a" + tag + "0123456789",     // of a field that the kind has
        "\x7a" + tag + "0123456789", std::string("\x7b\x7c", 2)}) {  // of others; a group
    EXPECT_THAT(WhyNot(Body("v1", "ConfigMap", message)), HasSubstr("no protobuf message"));
  }
}

TEST(ProtobufTest, ListsOfNumbersMayBePacked) {
  const std::string packed = Field(4, std::string("\x01\xac\x02", 3));
  const Json pod = *DecodeProtobuf(Body("v1", "Pod", Field(2, Field(14, packed))));
  EXPECT_EQ(pod.at("spec").at("securityContext").at("supplementalGroups"), Json({1, 300}));
}

TEST(ProtobufTest, RefusalsNameTheFieldAndTheReason) {
  struct Case {
    std::string body;
    std::string reason;
  };
  for (const Case& c : std::vector<Case>{
           {"", "does not begin with \"k8s\""},
           {"{}", "does not begin with \"k8s\""},
           {std::string("k8s\0", 4), "Object 'Kind' is missing"},
           {Body("v1", "Secret", "\xff"), "no protobuf message"},
           {Body("v1", "Gang", ""), "no kind \"Gang\" of version \"v1\""},
           {Body("tahoma.dev/v1alpha1", "Gang", ""), "has a protobuf form"},
           {Body("v1", "PodSpec", ""), "no kind \"PodSpec\""},
           {Body("v1", "ConfigMap", Field(1, Field(1, "\xff"))), "metadata: name: the text is not"},
           {Body("v1", "ConfigMap", Field(2, Field(1, "\xc0\x80"))), "data: the text is not UTF-8"},
           {Body("v1", "ConfigMap", Field(1, std::string("\x08\x01", 2))),
            "metadata: field 1 (name) has the wire type 0"},
           {Body("v1", "ConfigMap", std::string("\x0a\x7f", 2)), "no protobuf message"},
           {Body("v1", "ConfigMap",
                 Field(1, Field(8, std::string("\x08\xff\xff\xff\xff\xff\xff\xff"
                                               "\xff\x7f",
                                               10)))),
            "creationTimestamp: 9223372036854775807 s 0 ns is no time"},
           {Body("resource.k8s.io/v1", "DeviceClass",
                 Field(2, Field(2, Field(1, Field(1, Field(2, Field(1, "{"))))))),
            "spec: config: [0]: opaque: parameters: the bytes are no JSON"}}) {
    SCOPED_TRACE(c.reason);
    EXPECT_THAT(WhyNot(c.body), HasSubstr(c.reason));
  }
}

TEST(ProtobufTest, NestingAndTheNumberOfValuesAreBounded) {
  std::string schema;
  for (int i = 0; i < 300; ++i) schema = Field(28, schema);  // not: {not: …}
  const std::string version = Field(4, Field(1, schema));
  EXPECT_THAT(WhyNot(Body("apiextensions.k8s.io/v1", "CustomResourceDefinition",
                          Field(2, Field(7, version)))),
              HasSubstr("nested deeper than 100"));
  std::string raw = std::string(110, '[') + std::string(110, ']');
  EXPECT_THAT(WhyNot(Body("resource.k8s.io/v1", "DeviceClass",
                          Field(2, Field(2, Field(1, Field(1, Field(2, Field(1, raw)))))))),
              HasSubstr("nested deeper than 100"));
  std::string container;
  for (int i = 0; i < 30; ++i) container += std::string("\x3a\x00", 2);  // an empty env
  std::string containers;
  for (int i = 0; i < 20'000; ++i) containers += Field(2, container);
  EXPECT_THAT(WhyNot(Body("v1", "Pod", Field(2, containers))),
              HasSubstr("more than 500000 values"));
}

// As in JSON (json_text.h).
TEST(ProtobufTest, MapsAndListsAreNoWiderThanInJson) {
  const auto map = [](int count) {
    std::string entries;
    for (int i = 0; i < count; ++i) entries += Field(2, Field(1, std::to_string(i)));
    return Body("v1", "ConfigMap", entries);
  };
  const auto list = [](int count) {
    std::string items;
    for (int i = 0; i < count; ++i) items += Field(14, std::to_string(i));
    return Body("v1", "ConfigMap", Field(1, items));
  };
  EXPECT_TRUE(DecodeProtobuf(map(10'000)).ok());
  EXPECT_THAT(WhyNot(map(10'001)), HasSubstr("data: it is wider than 10000 members of one object"));
  EXPECT_TRUE(DecodeProtobuf(list(20'000)).ok());
  EXPECT_THAT(WhyNot(list(20'001)),
              HasSubstr("finalizers: it is wider than 20000 items of one list"));
}

TEST(ProtobufTest, AMapOfManyMembersIsReadInAnyOrder) {
  std::string entries;
  for (int i = 0; i < 10'000; ++i) {
    entries += Field(2, Field(1, fmt::format("{:06}", (i * 7919) % 10'000)) + Field(2, "x"));
  }
  const absl::StatusOr<Json> map = DecodeProtobuf(Body("v1", "ConfigMap", entries));
  ASSERT_TRUE(map.ok()) << map.status();
  EXPECT_EQ(map->at("data").size(), 10'000U);
}

// It was written, and nobody could read it.
TEST(ProtobufTest, ATimeThatCannotBeReadAgainIsNotWritten) {
  for (const char* time : {"12345-01-01T00:00:00Z", "0000-01-01T00:00:00Z", "infinite-future"}) {
    const Json lease = {{"apiVersion", "coordination.k8s.io/v1"},
                        {"kind", "Lease"},
                        {"spec", {{"renewTime", time}}}};
    EXPECT_THAT(std::string(Message(EncodeProtobuf(lease).status())),
                HasSubstr("is no time of the years 1 to 9999"));
  }
}

TEST(ProtobufTest, ValuesThatAreNotOfTheirTypeAreNamed) {
  const auto why = [](const char* json) {
    return std::string(Message(EncodeProtobuf(ParseJson(json)).status()));
  };
  EXPECT_EQ(why(R"({"apiVersion":"v1","kind":"Pod","spec":{"containers":[{"name":7}]}})"),
            "spec: containers: [0]: name: it is a number, not a string");
  EXPECT_EQ(why(R"({"apiVersion":"v1","kind":"Secret","data":{"a":"%"}})"),
            "data: [a]: it is not base64");
  EXPECT_THAT(why(R"({"apiVersion":"v1","kind":"Unicorn"})"), HasSubstr("no kind \"Unicorn\""));
}

}  // namespace
}  // namespace tahoma::controller::apiserver
