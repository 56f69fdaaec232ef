// A Defragmentation is valid by the CustomResourceDefinition, its schema and its CEL together,
// exactly when controller/core/facts/defragmentation.h finds no broken rule.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "controller/apiserver/schema/schema.h"
#include "controller/apiserver/validation/defaults.h"
#include "controller/apiserver/validation/validation.h"
#include "controller/core/facts/defragmentation.h"
#include "lib/base/json.h"
#include "lib/base/rng.h"
#include "tests/unit/controller/apiserver/validation/crd_file.h"

namespace tahoma::controller::apiserver {
namespace {

const Kind& Defragmentations() {
  static const auto* const kind =
      new std::shared_ptr<const Kind>(KindOfCrdFile("defragmentations"));
  return **kind;
}

Json DefragmentationOf(const Json& spec) {
  Json object = {{"apiVersion", "tahoma.dev/v1alpha1"},
                 {"kind", "Defragmentation"},
                 {"metadata", {{"name", "clear"}}},
                 {"spec", spec}};
  ApplyDefaults(*Defragmentations().schema, object);
  return object;
}

TEST(DefragmentationCrdTest, AnObjectIsReadAsItIsWritten) {
  const Json object = DefragmentationOf({{"shape", "4x4x2"},
                                         {"slices", 3},
                                         {"maxMoves", 5},
                                         {"movesPerHour", 60},
                                         {"keepFor", "2h"},
                                         {"apply", true},
                                         {"abort", true}});
  EXPECT_TRUE(ValidateCreate(Defragmentations(), object).empty());
  const auto fact = *ParseDefragmentation(object);
  EXPECT_EQ(fact->spec_error, "");
  EXPECT_EQ(fact->spec, (DefragmentationSpec{.shape = "4x4x2",
                                             .slices = 3,
                                             .ultra_servers = {},
                                             .for_gang = {},
                                             .max_moves = 5,
                                             .moves_per_hour = 60,
                                             .apply = true,
                                             .abort = true,
                                             .keep_for = std::chrono::hours(2)}));
}

TEST(DefragmentationCrdTest, WithoutMoreItIsADryRunOfTenMoves) {
  const auto fact = *ParseDefragmentation(DefragmentationOf({{"ultraServers", 2}}));
  EXPECT_EQ(fact->spec_error, "");
  DefragmentationSpec expected;
  expected.ultra_servers = 2;
  EXPECT_EQ(fact->spec, expected);
}

TEST(DefragmentationCrdTest, TheDefinitionAndTheControllerRefuseTheSame) {
  Rng rng(7);
  int valid = 0;
  const auto one_of = [&](const std::vector<Json>& values) {
    return values[rng.Below(values.size())];
  };
  for (int i = 0; i < 3000; ++i) {
    Json spec = Json::object();
    const auto maybe = [&](const char* field, const std::vector<Json>& values, std::uint64_t of) {
      if (rng.Below(of) == 0) spec[field] = one_of(values);
    };
    maybe("shape", {"4x4x4", "4x4", "2x2x1", "4x4x3", "4", "", "x", "4x4x4x4", "44x4"}, 2);
    maybe("slices", {1, 2, 64, 65, 0, -1}, 4);
    maybe("ultraServers", {1, 64, 65, 0}, 3);
    maybe("forGang", {Json{{"namespace", "a"}, {"name", "b"}}}, 3);
    maybe("maxMoves", {1, 64, 65, 0}, 4);
    maybe("movesPerHour", {1, 3600, 3601, 0}, 4);
    maybe("keepFor", {"10m", "0s", "24h", "25h", "1441m", "ten", "", "-1m"}, 4);
    maybe("apply", {true, false}, 3);
    const Json object = DefragmentationOf(spec);
    const bool by_definition = ValidateCreate(Defragmentations(), object).empty();
    const auto fact = ParseDefragmentation(object);
    ASSERT_TRUE(fact.ok());
    EXPECT_EQ(by_definition, (*fact)->spec_error.empty()) << spec.dump() << (*fact)->spec_error;
    valid += by_definition ? 1 : 0;
  }
  EXPECT_GT(valid, 100);
}

TEST(DefragmentationCrdTest, WhatIsWantedStaysAndApplyAndAbortAreNotTakenBack) {
  const Json before = DefragmentationOf({{"shape", "4x4"}, {"apply", true}});
  const auto refused = [&](const Json& spec) {
    return !ValidateUpdate(Defragmentations(), before, DefragmentationOf(spec), "").empty();
  };
  EXPECT_FALSE(refused({{"shape", "4x4"}, {"apply", true}, {"abort", true}}));
  EXPECT_TRUE(refused({{"shape", "4x4"}, {"apply", false}}));
  EXPECT_TRUE(refused({{"shape", "4x4x2"}, {"apply", true}}));
  EXPECT_TRUE(refused({{"ultraServers", 1}, {"apply", true}}));
  EXPECT_TRUE(refused({{"shape", "4x4"}, {"slices", 2}, {"apply", true}}));
}

}  // namespace
}  // namespace tahoma::controller::apiserver
