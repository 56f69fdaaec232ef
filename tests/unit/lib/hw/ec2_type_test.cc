// EC2's words on instance types against the catalogue's.

#include "lib/hw/ec2_type.h"

#include <gtest/gtest.h>

#include <string_view>

#include "lib/hw/catalogue.h"

namespace tahoma::hw {
namespace {

TEST(Ec2TypeTest, EveryTypeOfTheCatalogueThatEc2HasIsThere) {
  for (const InstanceType& type : InstanceTypes()) {
    const bool named_by_ec2 = type.name.find('.') != std::string_view::npos;
    EXPECT_EQ(FindEc2Type(type.name) != nullptr, named_by_ec2) << type.name;
  }
  for (const Ec2Type& type : Ec2Types()) {
    EXPECT_NE(FindInstanceType(type.name), nullptr) << type.name;
    EXPECT_EQ(FindEc2Type(type.name), &type);
  }
  EXPECT_EQ(FindEc2Type("p5.48xlarge"), nullptr);
}

TEST(Ec2TypeTest, NetworkCardsCarryTheEfaOfTheChips) {
  for (const Ec2Type& type : Ec2Types()) {
    const InstanceType& hardware = *FindInstanceType(type.name);
    if (!hardware.device_groups) continue;
    const double chips_gbps =
        hardware.chip_count() * static_cast<double>(hardware.chip->links.efa) * 8 / 1e9;
    EXPECT_EQ(type.network.cards * type.network.peak_gbps, chips_gbps) << type.name;
    EXPECT_TRUE(type.network.efa) << type.name;
  }
}

TEST(Ec2TypeTest, AnInstanceHasAnEfaInterfaceOnEachCardThatHasEfa) {
  EXPECT_EQ(EfaInterfaces("trn2.48xlarge"), 16);
  EXPECT_EQ(EfaInterfaces("trn2.3xlarge"), 1);
  EXPECT_EQ(EfaInterfaces("trn1.32xlarge"), 8);
  EXPECT_EQ(EfaInterfaces("inf2.48xlarge"), 0);
  EXPECT_EQ(EfaInterfaces("p5.48xlarge"), 0) << "not in the catalogue";
}

TEST(Ec2TypeTest, RatesRiseUpToTheirMaximum) {
  for (const Ec2Type& type : Ec2Types()) {
    EXPECT_LE(type.ebs.baseline_mbps, type.ebs.maximum_mbps) << type.name;
    EXPECT_LE(type.ebs.baseline_iops, type.ebs.maximum_iops) << type.name;
    EXPECT_LE(type.network.baseline_gbps, type.network.peak_gbps) << type.name;
    EXPECT_EQ(type.disks == 0, type.disk_gb == 0) << type.name;
  }
}

}  // namespace
}  // namespace tahoma::hw
