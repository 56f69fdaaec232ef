// A message of every kind of field goes out and comes back; what is absent, of another type or out
// of bounds is named.

#include "lib/wire/field_list.h"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/json.h"
#include "lib/base/status.h"

namespace tahoma::wire {
namespace {

using std::chrono::milliseconds;

enum class Colour { kRed, kGreen };
constexpr std::array<std::string_view, 2> kColours = {"red", "green"};

struct Inner {
  int number = 5;
  bool operator==(const Inner&) const = default;
};
struct Sample {
  std::uint64_t id = 0;
  milliseconds timeout{7};
  bool on = false;
  bool maybe = true;
  std::string name = "n";
  std::string token = {};
  Colour colour = Colour::kRed;
  std::uint64_t serial = 0;
  std::vector<std::string> words = {};
  std::vector<int> numbers = {};
  std::array<std::uint32_t, 2> pair = {1, 1};
  std::vector<int> ascending = {};
  std::vector<Inner> list = {};
  Inner one = {};
  std::optional<Inner> other = {};
  bool operator==(const Sample&) const = default;
};

constexpr auto kInner = [](auto& list, auto& inner) {
  list.Int("number", inner.number, 0, 9, kOptional);
};
constexpr auto kMessage = [](auto& list, auto& message) {
  list.Int("id", message.id, 1, INT64_MAX);
  list.Int("timeoutMs", message.timeout, 0, 100, kOptional);
  list.Bool("on", message.on);
  list.Bool("maybe", message.maybe, kOptional);
  list.String("name", message.name, 1, 3);
  list.String("token", message.token, 2, 2, kOptional);
  list.Name("colour", message.colour, kColours);
  list.Hex("serial", message.serial);
  list.Strings("words", message.words, 2, 3);
  list.Ints("numbers", message.numbers, 3, 0, 9);
  list.Ints("pair", message.pair, 2, 1, 9);
  list.Ascending("ascending", message.ascending, 3);
  list.Objects("list", message.list, 2, kInner);
  list.Object("one", message.one, kInner);
  list.Object("other", message.other, kInner);
  list.Check([&](Fields& fields) {
    if (message.name == "bad") fields.Fail(InvalidArgument("{} is bad", fields.Path("name")));
  });
};

absl::StatusOr<Sample> Read(const std::string& text) {
  return ReadMessage<Sample>(text, "m", kMessage);
}

std::string WhyNot(const std::string& text) { return std::string(Message(Read(text).status())); }

const std::string kLeast =
    R"("id":1,"on":true,"name":"a","colour":"green","serial":"00000000000000ff","pair":[2,3])";

TEST(FieldListTest, WhatIsWrittenIsReadBack) {
  const Sample all = {.id = INT64_MAX,
                      .timeout = milliseconds(100),
                      .on = true,
                      .maybe = false,
                      .name = "abc",
                      .token = "tt",
                      .colour = Colour::kGreen,
                      .serial = 0xfedcba9876543210U,
                      .words = {"", "xyz"},
                      .numbers = {0, 9, 0},
                      .pair = {1, 9},
                      .ascending = {0, 3},
                      .list = {{1}, {2}},
                      .one = {.number = 3},
                      .other = Inner{.number = 4}};
  for (const Sample& message : {all, Sample{.id = 1}}) {
    const auto back = Read(WriteMessage(message, kMessage));
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(*back, message);
  }
}

TEST(FieldListTest, OptionalFieldsKeepWhatTheMessageHas) {
  const auto least = Read("{" + kLeast + "}");
  ASSERT_TRUE(least.ok()) << least.status();
  EXPECT_EQ(*least, (Sample{.id = 1,
                            .on = true,
                            .name = "a",
                            .colour = Colour::kGreen,
                            .serial = 255,
                            .pair = {2, 3}}));
  EXPECT_EQ(ReadMessage<Inner>("{}", "inner", kInner, {.number = 8})->number, 8);
}

TEST(FieldListTest, EveryMistakeIsNamed) {
  const auto why = [](const std::string& more) { return WhyNot("{" + kLeast + "," + more + "}"); };
  EXPECT_EQ(why(R"("timeoutMs":101)"), "m.timeoutMs is 101; expected 0 to 100");
  EXPECT_EQ(why(R"("token":"t")"), "m.token has 1 bytes; expected 2 to 2");
  EXPECT_EQ(why(R"("words":["abcd"])"), "m.words must hold strings of at most 3 bytes");
  EXPECT_EQ(why(R"("words":["a","b","c"])"), "m.words has 3 elements; expected at most 2");
  EXPECT_EQ(why(R"("numbers":[10])"), "m.numbers must hold whole numbers from 0 to 9");
  EXPECT_EQ(why(R"("numbers":[18446744073709551615])"),
            "m.numbers must hold whole numbers from 0 to 9");
  EXPECT_EQ(why(R"("ascending":[1,1])"),
            "m.ascending must hold ascending whole numbers from 0 to 3");
  EXPECT_EQ(why(R"("list":[{},{"number":-1}])"), "m.list[1].number is -1; expected 0 to 9");
  EXPECT_EQ(why(R"("other":[])"), "m.other is of type array; expected an object");
}

TEST(FieldListTest, EveryRequiredFieldIsMissed) {
  const Json whole = tahoma::ParseJson("{" + kLeast + "}");
  for (const auto& [key, value] : whole.items()) {
    Json part = whole;
    part.erase(key);
    EXPECT_NE(WhyNot(part.dump()).find("m." + key), std::string::npos) << key;
    part[key] = nullptr;
    EXPECT_FALSE(Read(part.dump()).ok()) << key;
    part[key] = Json::object();
    EXPECT_FALSE(Read(part.dump()).ok()) << key;
  }
}

TEST(FieldListTest, NamesDigitsAndFixedArraysAreExact) {
  const auto why = [](const std::string& key, const Json& value) {
    Json object = tahoma::ParseJson("{" + kLeast + "}");
    object[key] = value;
    return WhyNot(object.dump());
  };
  EXPECT_EQ(why("colour", "blue"), "m.colour is \"blue\"; expected one of red, green");
  EXPECT_EQ(why("serial", "00000000000000fg"), "m.serial must be 16 hex digits");
  EXPECT_EQ(why("serial", "ff"), "m.serial has 2 bytes; expected 16 to 16");
  EXPECT_EQ(why("pair", {1}), "m.pair must hold 2 whole numbers from 1 to 9");
  EXPECT_EQ(why("name", "bad"), "m.name is bad");
}

}  // namespace
}  // namespace tahoma::wire
