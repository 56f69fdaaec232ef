#include "lib/kube/field.h"

#include <gtest/gtest.h>

#include "lib/base/json.h"
#include "lib/base/status.h"

namespace tahoma::kube {
namespace {

using json = Json;

const json& Claim() {
  static const json kClaim = ParseJson(R"({"metadata": {"name": "c", "labels": {"a.b/c": 7}},
      "spec": {"devices": {"requests": [{"name": "r", "count": 4, "admin": true}, {"name": "s"},
                                        {"name": 3, "count": "four", "admin": "no"}]},
               "whole": 4.0, "half": 4.5, "wide": 3000000000, "huge": 18446744073709551615}})");
  return kClaim;
}

// Returns why `read` fails on the claim; empty when it does not.
template <typename Read>
std::string WhyNot(const Read& read) {
  Reading reading(Claim());
  read(reading.root());
  return std::string(Message(reading.status()));
}

Field RequestAt(Field root, std::size_t at) {
  return root.At("spec").At("devices").At("requests").Items()[at];
}

TEST(FieldTest, ReadsValuesOfTheirTypes) {
  Reading reading(Claim());
  const Field request = RequestAt(reading.root(), 0);
  EXPECT_EQ(request.At("name").Text(), "r");
  EXPECT_EQ(request.At("count").Int(), 4);
  EXPECT_EQ(request.At("count").Int32(), 4);
  EXPECT_TRUE(request.At("admin").Bool());
  EXPECT_EQ(reading.root().At("spec").At("whole").Int(), 4) << "as in a custom resource";
  EXPECT_EQ(reading.root().At("spec").At("devices").At("requests").size(), 3U);
  EXPECT_TRUE(reading.status().ok()) << reading.status();
  EXPECT_TRUE(reading.StatusOf("claim").ok());
}

TEST(FieldTest, WhatIsAbsentOrNullIsEmpty) {
  const json object = {{"null", nullptr}};
  Reading reading(object);
  for (const Field field : {reading.root().At("null"), reading.root().At("no").At("where")}) {
    EXPECT_FALSE(field.has_value());
    EXPECT_EQ(field.Text(), "");
    EXPECT_EQ(field.Int(), 0);
    EXPECT_EQ(field.Int(1), 1);
    EXPECT_EQ(field.Int32(-1), -1);
    EXPECT_FALSE(field.Bool());
    EXPECT_TRUE(field.Bool(true));
    EXPECT_TRUE(field.Texts().empty());
    EXPECT_EQ(field.size(), 0U);
    field.Entries([](const std::string&, Field) { FAIL(); });
    for (const Field item : field.Items()) item.Fail("is there");
  }
  EXPECT_TRUE(reading.status().ok()) << reading.status();
}

TEST(FieldTest, AnErrorSaysPathAndType) {
  EXPECT_EQ(WhyNot([](Field root) { return RequestAt(root, 2).At("count").Int(); }),
            "spec.devices.requests[2].count: is a string, must be an integer");
  EXPECT_EQ(WhyNot([](Field root) { return RequestAt(root, 2).At("name").Text(); }),
            "spec.devices.requests[2].name: is a number, must be a string");
  EXPECT_EQ(WhyNot([](Field root) { return RequestAt(root, 2).At("admin").Bool(); }),
            "spec.devices.requests[2].admin: is a string, must be true or false");
  EXPECT_EQ(WhyNot([](Field root) { return root.At("spec").At("half").Int(); }),
            "spec.half: is a number, must be an integer");
  EXPECT_EQ(WhyNot([](Field root) { return root.At("metadata").At("labels").Items().size(); }),
            "metadata.labels: is an object, must be a list");
  EXPECT_EQ(WhyNot([](Field root) { return root.At("metadata").At("name").size(); }),
            "metadata.name: is a string, must be a list or an object");
  EXPECT_EQ(WhyNot([](Field root) { root.At("metadata").At("name").At("x"); }),
            "metadata.name: is a string, must be an object");
  EXPECT_EQ(WhyNot([](Field root) {
              root.At("metadata").At("labels").Entries([](const std::string&, Field value) {
                (void)value.Text();
              });
            }),
            "metadata.labels[a.b/c]: is a number, must be a string");
  EXPECT_EQ(
      WhyNot([](Field root) {
        root.At("spec").At("devices").At("requests").Entries([](const std::string&, Field) {});
      }),
      "spec.devices.requests: is a list, must be an object");
}

TEST(FieldTest, AListMayBeBounded) {
  EXPECT_EQ(WhyNot([](Field root) {
              EXPECT_EQ(root.At("spec").At("devices").At("requests").Items(2).size(), 0U);
            }),
            "spec.devices.requests: has 3 entries; at most 2 are taken");
}

TEST(FieldTest, WhatIsMissingIsNamed) {
  EXPECT_EQ(WhyNot([](Field root) { return root.Required("status").Required("phase"); }),
            "status: is missing");
  EXPECT_EQ(WhyNot([](Field root) { return RequestAt(root, 1).Required("count"); }),
            "spec.devices.requests[1].count: is missing");
}

TEST(FieldTest, NumbersBeyondTheirBitsAreErrors) {
  EXPECT_EQ(WhyNot([](Field root) { EXPECT_EQ(root.At("spec").At("wide").Int32(5), 5); }),
            "spec.wide: is beyond 32 bits, must be an integer of 32 bits");
  EXPECT_EQ(WhyNot([](Field root) { EXPECT_EQ(root.At("spec").At("huge").Int(), INT64_MAX); }),
            "spec.huge: is beyond 64 bits, must be an integer of 64 bits");
}

TEST(FieldTest, TheFirstErrorIsKeptAndNamesItsObject) {
  Reading reading(Claim());
  EXPECT_EQ(RequestAt(reading.root(), 2).At("count").Int(7), 7) << "reads as if it were absent";
  EXPECT_EQ(RequestAt(reading.root(), 2).At("name").Text(), "");
  EXPECT_EQ(Message(reading.StatusOf("claim")),
            "claim c: spec.devices.requests[2].count: is a string, must be an integer");
  EXPECT_EQ(reading.StatusOf("claim").code(), absl::StatusCode::kInvalidArgument);
}

TEST(FieldTest, AnythingButAnObjectHasNoFields) {
  for (const auto& [text, says] :
       {std::pair{"[]", "the object is a list, must be an object"},
        std::pair{"3", "the object is a number, must be an object"},
        std::pair{"null", "metadata: is missing"}, std::pair{"{}", "metadata: is missing"}}) {
    const json object = ParseJson(text);
    Reading reading(object);
    reading.root().Required("metadata").Required("name");
    EXPECT_EQ(Message(reading.status()), says) << text;
    EXPECT_EQ(Message(reading.StatusOf("pod")), fmt::format("pod without a name: {}", says));
  }
}

TEST(FieldTest, AnErrorInADeepObjectEnds) {
  json deep = 1;
  for (int i = 0; i < 100'000; ++i) deep = json::array({std::move(deep)});
  const json object = {{"deep", std::move(deep)}, {"name", 7}};
  Reading reading(object);
  (void)reading.root().At("name").Text();
  EXPECT_EQ(Message(reading.status()), "name: is a number, must be a string");
}

}  // namespace
}  // namespace tahoma::kube
