// Patches: the RFCs' own examples, and that a diff applied gives what it was made for.

#include "lib/kube/patch.h"

#include <gtest/gtest.h>

#include <string>

#include "lib/base/json.h"
#include "lib/base/rng.h"

namespace tahoma::kube {
namespace {

Json Read(const char* text) { return ParseJson(text); }

TEST(MergePatchTest, FollowsTheExamplesOfRfc7386) {
  struct Case {
    const char* target;
    const char* patch;
    const char* result;
  };
  for (const Case& c :
       {Case{R"({"a":"b"})", R"({"a":"c"})", R"({"a":"c"})"},
        Case{R"({"a":"b"})", R"({"b":"c"})", R"({"a":"b","b":"c"})"},
        Case{R"({"a":"b"})", R"({"a":null})", R"({})"},
        Case{R"({"a":["b"]})", R"({"a":"c"})", R"({"a":"c"})"},
        Case{R"({"a":{"b":"c"}})", R"({"a":{"b":"d","c":null}})", R"({"a":{"b":"d"}})"},
        Case{R"({"a":[{"b":"c"}]})", R"({"a":[1]})", R"({"a":[1]})"},
        Case{R"({"e":null})", R"({"a":1})", R"({"e":null,"a":1})"},
        Case{R"({})", R"({"a":{"bb":{"ccc":null}}})", R"({"a":{"bb":{}}})"}}) {
    EXPECT_EQ(MergePatch(Read(c.target), Read(c.patch)), Read(c.result)) << c.patch;
  }
}

Json RandomValue(Rng& rng, int depth) {
  switch (rng.Below(depth == 0 ? 2 : 4)) {
    case 0:
      return rng.Below(3);
    case 1:
      return std::string(1, static_cast<char>('a' + rng.Below(3)));
    case 2: {
      Json list = Json::array();
      for (std::uint64_t n = rng.Below(3); n > 0; --n) list.push_back(RandomValue(rng, depth - 1));
      return list;
    }
    default: {
      Json object = Json::object();
      for (std::uint64_t n = rng.Below(4); n > 0; --n) {
        object[std::string(1, static_cast<char>('k' + rng.Below(4)))] = RandomValue(rng, depth - 1);
      }
      return object;
    }
  }
}

TEST(MergeDiffTest, AppliedToTheOldGivesTheNew) {
  Rng rng(3);
  for (int i = 0; i < 2000; ++i) {
    const Json before = {{"x", RandomValue(rng, 3)}};
    const Json after = {{"x", RandomValue(rng, 3)}};
    EXPECT_EQ(MergePatch(before, MergeDiff(before, after)), after);
    EXPECT_EQ(MergeDiff(before, before), Json::object());
  }
}

TEST(JsonPatchTest, CarriesOutEveryOperation) {
  const Json target = Read(R"({"a":{"b":1},"l":[1,2]})");
  const Json patch = Read(R"([
    {"op":"test","path":"/a/b","value":1}, {"op":"add","path":"/l/1","value":9},
    {"op":"add","path":"/l/-","value":7}, {"op":"replace","path":"/a/b","value":2},
    {"op":"copy","from":"/a/b","path":"/a/c"}, {"op":"move","from":"/a/b","path":"/m"},
    {"op":"remove","path":"/l/0"}])");
  EXPECT_EQ(*JsonPatch(target, patch), Read(R"({"a":{"c":2},"l":[9,2,7],"m":2})"));
}

TEST(JsonPatchTest, AFailureNamesTheOperationAndChangesNothing) {
  const Json target = Read(R"({"a":1})");
  struct Case {
    const char* patch;
    absl::StatusCode code;
  };
  for (const Case& c :
       {Case{R"({})", absl::StatusCode::kInvalidArgument},
        Case{R"([1])", absl::StatusCode::kInvalidArgument},
        Case{R"([{"op":"fly","path":"/a"}])", absl::StatusCode::kInvalidArgument},
        Case{R"([{"op":"add","path":"/a"}])", absl::StatusCode::kInvalidArgument},
        Case{R"([{"op":"move","path":"/a"}])", absl::StatusCode::kInvalidArgument},
        Case{R"([{"op":"add","path":"a","value":1}])", absl::StatusCode::kInvalidArgument},
        Case{R"([{"op":"remove","path":"/b"}])", absl::StatusCode::kFailedPrecondition},
        Case{R"([{"op":"test","path":"/a","value":2}])", absl::StatusCode::kFailedPrecondition}}) {
    EXPECT_EQ(JsonPatch(target, Read(c.patch)).status().code(), c.code) << c.patch;
  }
  Json many = Json::array();
  for (std::size_t i = 0; i <= kPatchOperationsMax; ++i) {
    many.push_back({{"op", "test"}, {"path", "/a"}, {"value", 1}});
  }
  EXPECT_EQ(JsonPatch(target, many).status().code(), absl::StatusCode::kResourceExhausted);
}

TEST(JsonPatchTest, PathsWithEscapesAndArrayEndsAreFollowed) {
  struct Case {
    const char* target;
    const char* patch;
    const char* result;
  };
  for (const Case& c :
       {Case{R"({"a/b":1,"m~n":2})", R"([{"op":"replace","path":"/a~1b","value":3},
                {"op":"remove","path":"/m~0n"}])",
             R"({"a/b":3})"},
        Case{R"({"~1":1})", R"([{"op":"test","path":"/~01","value":1}])", R"({"~1":1})"},
        Case{R"({"":{"":1}})", R"([{"op":"replace","path":"//","value":2}])", R"({"":{"":2}})"},
        Case{R"({"l":[]})", R"([{"op":"add","path":"/l/0","value":1},
                {"op":"add","path":"/l/1","value":2}])",
             R"({"l":[1,2]})"},
        Case{R"({"l":[1,2,3]})", R"([{"op":"move","from":"/l/0","path":"/l/-"}])",
             R"({"l":[2,3,1]})"},
        Case{R"({"l":[1,2,3]})", R"([{"op":"move","from":"/l/2","path":"/l/0"}])",
             R"({"l":[3,1,2]})"},
        Case{R"({"a":1})", R"([{"op":"add","path":"/a","value":null}])", R"({"a":null})"},
        Case{R"({"a":1})", R"([{"op":"replace","path":"","value":{"b":2}}])", R"({"b":2})"},
        Case{R"({"a":1})", R"([{"op":"test","path":"/a","value":1.0}])", R"({"a":1})"},
        Case{R"({"a":{"x":1,"y":[1]}})", R"([{"op":"test","path":"/a","value":{"y":[1],"x":1}}])",
             R"({"a":{"x":1,"y":[1]}})"}}) {
    const auto result = JsonPatch(Read(c.target), Read(c.patch));
    ASSERT_TRUE(result.ok()) << c.patch << result.status();
    EXPECT_EQ(*result, Read(c.result)) << c.patch;
  }
}

// As evanphx/json-patch v4 does, which kube-apiserver uses.
TEST(JsonPatchTest, AMemberThatIsNotThereCanBeReplacedAndTestedForNull) {
  const Json target = Read(R"({"a":{},"l":[1],"n":1})");
  EXPECT_EQ(*JsonPatch(target, Read(R"([{"op":"test","path":"/a/x","value":null},
      {"op":"replace","path":"/a/x","value":5},{"op":"test","path":"/a/x","value":5}])")),
            Read(R"({"a":{"x":5},"l":[1],"n":1})"));
  for (const char* patch :
       {R"([{"op":"test","path":"/a/x","value":1}])", R"([{"op":"test","path":"/n","value":null}])",
        R"([{"op":"test","path":"/l/5","value":null}])",
        R"([{"op":"replace","path":"/b/x","value":1}])",
        R"([{"op":"replace","path":"/l/1","value":1}])"}) {
    EXPECT_FALSE(JsonPatch(target, Read(patch)).ok()) << patch;
  }
}

TEST(JsonPatchTest, PathsThatLeadNowhereAreRefused) {
  for (const char* patch : {R"([{"op":"add","path":"/n/x","value":1}])",
                            R"([{"op":"add","path":"/s/x","value":1}])",
                            R"([{"op":"add","path":"/z/x","value":1}])",
                            R"([{"op":"add","path":"/b/0","value":1}])",
                            R"([{"op":"remove","path":"/n/x"}])",
                            R"([{"op":"remove","path":"/s/0"}])",
                            R"([{"op":"replace","path":"/n/x","value":1}])",
                            R"([{"op":"copy","from":"/n","path":"/s/x"}])",
                            R"([{"op":"move","from":"/n","path":"/s/x"}])",
                            R"([{"op":"move","from":"/o","path":"/o/p"}])",
                            R"([{"op":"move","from":"/n/x","path":"/y"}])",
                            R"([{"op":"remove","path":"/l/2"}])",
                            R"([{"op":"add","path":"/l/3","value":1}])",
                            R"([{"op":"replace","path":"/l/2","value":1}])",
                            R"([{"op":"test","path":"/l/-","value":1}])",
                            R"([{"op":"remove","path":"/l/-"}])",
                            R"([{"op":"add","path":"/l/x","value":1}])",
                            R"([{"op":"add","path":"/l/-1","value":1}])",
                            R"([{"op":"add","path":"/l/99999999999999999999","value":1}])",
                            R"([{"op":"add","path":"/a~2","value":1}])",
                            R"([{"op":"add","path":"/a~","value":1}])",
                            R"([{"op":"remove","path":""}])",
                            R"([{"op":"test","path":"/s","value":1}])",
                            R"([{"op":"add","path":"/missing/x","value":1}])"}) {
    const auto result =
        JsonPatch(Read(R"({"n":1,"s":"t","z":null,"b":true,"o":{},"l":[1,2]})"), Read(patch));
    EXPECT_FALSE(result.ok()) << patch << " gave " << *result;
  }
}

TEST(JsonPatchTest, CopiesOfTheWholeIntoItselfAreBounded) {
  Json doubling = Json::array();
  for (int i = 0; i < 64; ++i) {
    doubling.push_back({{"op", "copy"}, {"from", ""}, {"path", "/a" + std::to_string(i)}});
  }
  EXPECT_EQ(JsonPatch(Read(R"({"x":"some text"})"), doubling).status().code(),
            absl::StatusCode::kFailedPrecondition);
  Json many = Json::array();
  for (int i = 0; i < 1000; ++i) {
    many.push_back({{"op", "copy"}, {"from", "/x"}, {"path", "/a" + std::to_string(i)}});
  }
  EXPECT_EQ(JsonPatch(Json{{"x", std::string(1000, 'x')}}, many)->size(), 1001U);
}

}  // namespace
}  // namespace tahoma::kube
