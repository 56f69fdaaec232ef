// CapacityBlocks that the API server refuses, by the CustomResourceDefinition and by rules beyond
// it.

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "controller/apiserver/schema/causes.h"
#include "controller/apiserver/schema/schema.h"
#include "controller/apiserver/validation/defaults.h"
#include "controller/apiserver/validation/validation.h"
#include "lib/base/json.h"
#include "tests/unit/controller/apiserver/validation/crd_file.h"

namespace tahoma::controller::apiserver {
namespace {

const Kind& BlockKind() {
  static const auto* const kind = new std::shared_ptr<const Kind>(KindOfCrdFile("capacityblocks"));
  return **kind;
}

Json Block(const std::string& spec) {
  Json block = {{"apiVersion", "tahoma.dev/v1alpha1"},
                {"kind", "CapacityBlock"},
                {"metadata", {{"name", "train"}, {"namespace", "team-a"}}},
                {"spec", ParseJson(spec)}};
  ApplyDefaults(*BlockKind().schema, block);
  return block;
}

std::string Text(const std::vector<Cause>& causes) {
  std::string text;
  for (const Cause& cause : causes) text += cause.field + ": " + cause.message + "\n";
  return text;
}

TEST(BlockCrdTest, ADefinedBlockIsTakenWithItsDefaults) {
  const Json block = Block(R"({"capacityBlockOfferingId": "cb-01"})");
  EXPECT_EQ(Text(ValidateCreate(BlockKind(), block)), "");
  EXPECT_EQ(block["spec"]["instancePlatform"], "Linux/UNIX");
  EXPECT_EQ(block["spec"]["replacePolicy"], "OnRequest");
  EXPECT_EQ(block["spec"]["bindingMode"], "BeforeStart");
}

TEST(BlockCrdTest, WhatIsNoOfferingIdIsRefused) {
  for (const char* spec :
       {R"({})", R"({"capacityBlockOfferingId": ""})", R"({"capacityBlockOfferingId": "cb-x"})",
        R"({"capacityBlockOfferingId": 7})",
        R"({"capacityBlockOfferingId": "cb-01", "replacePolicy": "Never"})",
        R"({"capacityBlockOfferingId": "cb-01", "instancePlatform": "Windows"})"}) {
    EXPECT_NE(Text(ValidateCreate(BlockKind(), Block(spec))), "") << spec;
  }
}

TEST(BlockCrdTest, WhatWasBoughtCannotBeChanged) {
  const Json before = Block(R"({"capacityBlockOfferingId": "cb-01"})");
  Json after = before;
  after["spec"]["tags"] = {{"team", "x"}};
  after["spec"]["lendIdle"] = true;
  EXPECT_EQ(Text(ValidateUpdate(BlockKind(), before, after, "")), "");
  after["spec"]["capacityBlockOfferingId"] = "cb-02";
  after["spec"]["bindingMode"] = "AtPurchase";
  EXPECT_EQ(Text(ValidateUpdate(BlockKind(), before, after, "")),
            "spec.capacityBlockOfferingId: Invalid value: cannot be changed after the purchase\n"
            "spec.bindingMode: Invalid value: cannot be changed after the purchase\n");
}

TEST(BlockCrdTest, OnlyABlockWithoutCapacityIsDeleted) {
  Json block = Block(R"({"capacityBlockOfferingId": "cb-01"})");
  EXPECT_EQ(WhyNotDeletable(BlockKind(), block), "");
  block["status"] = {{"state", "scheduled"}, {"endDate", "2026-12-01T11:30:00Z"}};
  EXPECT_EQ(WhyNotDeletable(BlockKind(), block),
            "a Capacity Block cannot be cancelled: it is scheduled and ends 2026-12-01T11:30:00Z");
  for (const char* state : {"expired", "failed", "payment-failed"}) {
    block["status"]["state"] = state;
    EXPECT_EQ(WhyNotDeletable(BlockKind(), block), "") << state;
  }
}

}  // namespace
}  // namespace tahoma::controller::apiserver
