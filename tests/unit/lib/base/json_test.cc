// Json against nlohmann's own type, which shares nothing.

#include "lib/base/json.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "lib/base/rng.h"

namespace tahoma {
namespace {

using Plain = nlohmann::json;

Json Pod() {
  return {{"kind", "Pod"},
          {"metadata", {{"name", "a"}, {"labels", {{"app", "x"}}}}},
          {"spec", {{"containers", {{{"name", "c"}, {"image", "i"}}}}}}};
}

TEST(JsonTest, ACopyOfASharedValueHasTheSameMembers) {
  Json pod = Pod();
  ShareJson(pod);
  const Json copy = pod;
  EXPECT_EQ(&copy.at("spec"), &std::as_const(pod).at("spec"));
  EXPECT_EQ(copy, pod);
}

TEST(JsonTest, ACopyOfAnUnsharedValueHasItsOwn) {
  const Json pod = Pod();
  const Json copy = pod;
  EXPECT_NE(&copy.at("spec"), &pod.at("spec"));
  EXPECT_EQ(copy, pod);
}

TEST(JsonTest, AChangeIsOfOneValueAndLeavesTheRestShared) {
  Json pod = Pod();
  ShareJson(pod);
  Json bound = pod;
  bound["spec"]["nodeName"] = "n1";
  bound["metadata"].erase("name");
  EXPECT_EQ(pod, Pod());
  EXPECT_EQ(bound["spec"]["nodeName"], "n1");
  EXPECT_FALSE(bound["metadata"].contains("name"));
  EXPECT_EQ(&std::as_const(bound).at("metadata").at("labels"),
            &std::as_const(pod).at("metadata").at("labels"));
}

TEST(JsonTest, AnItemOfASharedListChangesInOneValue) {
  Json pod = Pod();
  ShareJson(pod);
  Json other = pod;
  for (Json& container : other["spec"]["containers"]) container["image"] = "j";
  EXPECT_EQ(pod, Pod());
  EXPECT_EQ(other["spec"]["containers"][0]["image"], "j");
}

TEST(JsonTest, OwnMembersMayBeChangedInALoop) {
  Json pod = Pod();
  ShareJson(pod);
  Json other = pod;
  EXPECT_TRUE(SharesMembers(other));
  OwnMembers(other);
  EXPECT_FALSE(SharesMembers(other));
  for (Json& member : other) member = nullptr;
  EXPECT_EQ(pod, Pod());
  EXPECT_EQ(other, (Json{{"kind", nullptr}, {"metadata", nullptr}, {"spec", nullptr}}));
}

TEST(JsonTest, AMergePatchLeavesTheOriginal) {
  Json pod = Pod();
  ShareJson(pod);
  Json patched = pod;
  patched.merge_patch({{"metadata", {{"labels", {{"app", nullptr}, {"new", "y"}}}}}});
  EXPECT_EQ(pod, Pod());
  EXPECT_EQ(patched["metadata"]["labels"], (Json{{"new", "y"}}));
}

TEST(JsonTest, AnUnsharedCopyMayBePatchedInPlace) {
  Json pod = Pod();
  ShareJson(pod);
  Json patched = Unshared(pod);
  patched.patch_inplace({{{"op", "replace"}, {"path", "/spec/containers/0/image"}, {"value", 1}}});
  EXPECT_EQ(pod, Pod());
  EXPECT_EQ(patched["spec"]["containers"][0]["image"], 1);
}

TEST(JsonTest, FindMemberTakesAnyValue) {
  const Json pod = Pod();
  EXPECT_EQ(FindMember(pod, "kind")->get<std::string>(), "Pod");
  EXPECT_EQ(FindMember(pod, "status"), nullptr);
  EXPECT_EQ(FindMember(Json("text"), "kind"), nullptr);
  EXPECT_EQ(FindMember(Json::array(), "kind"), nullptr);
}

// Names that differ late, early, in length only, and by zeros.
TEST(JsonTest, NamesAreFoundAndInTheOrderOfTheirBytes) {
  std::vector<std::string> names = {"",          "a",        std::string("a\0", 2),
                                    "ab",        "abcdefgh", "abcdefgha",
                                    "abcdefghb", "abcdefg",  "abcdefgi",
                                    "\xff",      "\x7f",     "abcdefghaaaaaaaaaa",
                                    "abcdefghab"};
  for (int i = 0; i < 40; ++i) names.push_back("n" + std::to_string(i));
  // More names with the same first eight bytes than are looked through one by one.
  for (int i = 0; i < 60; ++i) names.push_back("abcdefghi" + std::to_string(i * 37 % 60));
  Json json = Json::object();
  Plain plain = Plain::object();
  for (const std::string& name : names) json[name] = plain[name] = name;
  std::vector<std::string> order;
  for (const auto& [name, value] : json.items()) order.push_back(name);
  std::vector<std::string> wanted;
  for (const auto& [name, value] : plain.items()) wanted.push_back(name);
  EXPECT_EQ(order, wanted);
  for (const std::string& name : names) {
    ASSERT_NE(FindMember(json, name), nullptr) << name;
    EXPECT_EQ(*FindMember(json, name), name);
    EXPECT_EQ(FindMember(json, name + "?"), nullptr);
  }
}

TEST(JsonTest, AValueNestedAsDeepAsItsTextIsLongIsFreed) {
  constexpr int kDepth = 200'000;
  std::string list(kDepth, '[');
  list.append(kDepth, ']');
  EXPECT_TRUE(ParseJson(list).is_array());
  std::string object;
  for (int i = 0; i < kDepth; ++i) object += i % 2 == 0 ? R"({"a":)" : "[";
  object += "1";
  for (int i = kDepth - 1; i >= 0; --i) object += i % 2 == 0 ? "}" : "]";
  Json deep = ParseJson(object);
  const Json& inner = deep["a"][0]["a"];
  EXPECT_TRUE(inner.is_array());
}

// A family of values that are copied, shared, changed and dropped at random, and the same with
// nlohmann's own type.
class Family {
 public:
  explicit Family(std::uint64_t seed) : rng_(seed), values_(1, {Json::object(), Plain::object()}) {}

  void Step() {
    auto& [json, plain] = values_[rng_.Below(values_.size())];
    switch (rng_.Below(8)) {
      case 0:
        ShareJson(json);
        if (values_.size() < 6) values_.push_back({json, plain});
        return;
      case 1:
        if (values_.size() > 1) values_.erase(values_.begin());
        return;
      case 2:
        if (values_.size() < 6) values_.push_back({json, plain});
        return;
      case 3:
        Change(json, plain, [](auto& at, const std::string& name) { at.erase(name); });
        return;
      case 4:
        Change(json, plain, [](auto& at, const std::string& name) {
          at[name] = {{"b", {1, {{"c", "text that is longer than a short one"}}}}};
        });
        return;
      case 5:
        Change(json, plain, [](auto& at, const std::string& name) {
          if (at.size() > 1) at.erase(at.begin());
          at.merge_patch({{name, nullptr}, {"merged", {{name, name}}}});
        });
        return;
      case 6:
        if (json.is_object()) {
          OwnMembers(json);
          for (auto& value : json) value = Json::array({value, 7});
          for (auto& value : plain) value = Plain::array({value, 7});
        }
        return;
      default:
        Change(json, plain, [](auto& at, const std::string& name) { at[name] = name; });
    }
  }

  void Check() const {
    for (const auto& [json, plain] : values_) ASSERT_EQ(json.dump(), plain.dump());
    for (const auto& [one, plain_one] : values_) {
      for (const auto& [other, plain_other] : values_) {
        ASSERT_EQ(one == other, plain_one == plain_other);
        ASSERT_EQ(one < other, plain_one < plain_other);
      }
    }
  }

 private:
  // The same change of both, at some depth below the root.
  template <typename F>
  void Change(Json& json, Plain& plain, const F& change) {
    const std::string name(1, static_cast<char>('a' + rng_.Below(5)));
    const bool below = json.contains(name) && json[name].is_object();
    change(below ? json[name] : json, "m");
    change(below ? plain[name] : plain, "m");
    change(json, name);
    change(plain, name);
  }

  Rng rng_;
  std::vector<std::pair<Json, Plain>> values_;
};

TEST(JsonTest, VersionsThatShareBehaveAsCopies) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    Family family(seed);
    for (int step = 0; step < 150; ++step) {
      family.Step();
      ASSERT_NO_FATAL_FAILURE(family.Check());
    }
  }
}

TEST(JsonTest, ThreadsChangeCopiesOfOneValue) {
  Json pod = Pod();
  ShareJson(pod);
  const auto work = [](Json mine, int id) {
    for (int i = 0; i < 500; ++i) {
      Json next = mine;
      next["metadata"]["labels"][std::to_string(id)] = i;
      next["spec"]["containers"][0]["image"] = i;
      ShareJson(next);
      mine = next;
    }
    EXPECT_EQ(mine["metadata"]["labels"][std::to_string(id)], 499);
  };
  {
    std::vector<std::jthread> threads;
    threads.reserve(4);
    for (int id = 0; id < 4; ++id) threads.emplace_back(work, pod, id);
  }
  EXPECT_EQ(pod, Pod());
}

}  // namespace
}  // namespace tahoma
