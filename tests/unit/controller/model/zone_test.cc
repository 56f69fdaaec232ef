// Availability zones: names, regions and ids.

#include "controller/model/zone.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace tahoma::controller {
namespace {

TEST(ZoneTest, TheRegionIsThatOfTheName) {
  EXPECT_EQ(RegionOf("us-east-2a"), "us-east-2");
  EXPECT_EQ(RegionOf("us-gov-west-1b"), "us-gov-west-1");
  EXPECT_EQ(RegionOf("us-east-1-dfw-2a"), "us-east-1") << "a Local Zone";
  EXPECT_EQ(RegionOf("tahoma-1a"), "tahoma-1");
  EXPECT_EQ(RegionOf("rack"), "rack");
  EXPECT_EQ(RegionOf(""), "");
}

TEST(ZoneTest, TheIdIsFormedAsEc2FormsIt) {
  EXPECT_EQ(FormZoneId("us-east-2a"), "use2-az1");
  EXPECT_EQ(FormZoneId("us-west-2d"), "usw2-az4");
  EXPECT_EQ(FormZoneId("ap-southeast-4b"), "apse4-az2");
  EXPECT_EQ(FormZoneId("ap-northeast-1a"), "apne1-az1");
  EXPECT_EQ(FormZoneId("eu-north-1c"), "eun1-az3");
  EXPECT_EQ(FormZoneId("us-gov-west-1a"), "usgw1-az1");
  EXPECT_EQ(FormZoneId("tahoma-1a"), "tahoma1-az1");
}

TEST(ZoneTest, AZoneWithoutARegionIsItsOwnId) {
  EXPECT_EQ(FormZoneId("rack"), "rack");
  EXPECT_EQ(FormZoneId("us-east-1-dfw-2a"), "us-east-1-dfw-2a");
  EXPECT_EQ(FormZoneId("us-east-2"), "us-east-2");
  EXPECT_EQ(FormZoneId(""), "");
}

TEST(ZoneTest, ANodeWithoutALabelIsInTheDefaultZone) {
  Node node;
  EXPECT_EQ(ZoneOf(node), kDefaultZone);
  node.labels = {{std::string(kZoneLabel), "us-east-2b"}};
  EXPECT_EQ(ZoneOf(node), "us-east-2b");
}

}  // namespace
}  // namespace tahoma::controller
