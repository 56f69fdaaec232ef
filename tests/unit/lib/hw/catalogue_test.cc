// The catalogue against published sums: one constant checks another.

#include "lib/hw/catalogue.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace tahoma::hw {
namespace {

TEST(CatalogueTest, EveryTypeHasASiteForEachOfItsChips) {
  for (const InstanceType& type : InstanceTypes()) {
    EXPECT_EQ(static_cast<int>(type.chips.size()), type.chip_count()) << type.name;
    std::set<std::string_view> bdfs, efa;
    for (const ChipSite& site : type.chips) {
      bdfs.insert(site.bdf);
      efa.insert(site.efa_bdf);
    }
    EXPECT_EQ(bdfs.size(), type.chips.size()) << type.name;
    EXPECT_EQ(efa.size(), type.chips.size()) << type.name;
    EXPECT_EQ(FindInstanceType(type.name), &type);
  }
}

TEST(CatalogueTest, AnUnknownTypeIsNotFoundAndTheKnownOnesCanBeNamed) {
  EXPECT_EQ(FindInstanceType("p5.48xlarge"), nullptr);
  EXPECT_EQ(InstanceTypeNames(), "trn2.3xlarge, trn2.48xlarge, trn2u.48xlarge");
}

TEST(CatalogueTest, LinkRatesAddUpToThePublishedBandwidthPerChip) {
  // 1,024 GB/s inside an instance and 256 GB/s between instances, both directions together.
  EXPECT_EQ(2 * 4 * kTrainium2.links.intra_instance, 1'024'000'000'000);
  EXPECT_EQ(2 * 2 * kTrainium2.links.inter_instance, 256'000'000'000);
  // 16 chips of 200 Gb/s are the 3.2 Tb/s of the instance.
  EXPECT_EQ(16 * kTrainium2.links.efa * 8, 3'200'000'000'000);
}

TEST(CatalogueTest, LogicalCoresAreThoseOfTheLncPage) {
  EXPECT_EQ(LogicalCores(kTrainium2, 1), 8);
  EXPECT_EQ(LogicalCores(kTrainium2, 2), 4);
  for (int core = 0; core < 8; ++core) EXPECT_EQ(HbmBank(kTrainium2, 1, core), core / 2);
  for (int core = 0; core < 4; ++core) EXPECT_EQ(HbmBank(kTrainium2, 2, core), core);
}

TEST(CatalogueTest, ConnectedDevicesAreThoseThatNeuronLsPrints) {
  const InstanceType& type = *FindInstanceType("trn2.48xlarge");
  EXPECT_EQ(ConnectedDevices(type, 0), "12, 3, 4, 1");
  EXPECT_EQ(ConnectedDevices(type, 5), "1, 4, 9, 6");
  EXPECT_EQ(ConnectedDevices(type, 15), "11, 14, 3, 12");
  EXPECT_EQ(ConnectedDevices(*FindInstanceType("trn2.3xlarge"), 0), "");
}

TEST(CatalogueTest, AnUltraServerHas512CoresAnd6TebibytesOfHbm) {
  const InstanceType& type = *FindInstanceType("trn2u.48xlarge");
  ASSERT_TRUE(type.ultra_server);
  const int chips = kUltraServerNodes * type.chip_count();
  EXPECT_EQ(chips * type.chip->physical_cores, 512);
  EXPECT_EQ(chips * type.chip->hbm_bytes, std::int64_t{6144} << 30);
}

}  // namespace
}  // namespace tahoma::hw
