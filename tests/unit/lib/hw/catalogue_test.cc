// The catalogue against published sums: one constant checks another.

#include "lib/hw/catalogue.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "lib/hw/core_profile.h"

namespace tahoma::hw {
namespace {

using torus::Axis;

TEST(CatalogueTest, EveryTypeHasASiteForEachOfItsChips) {
  for (const InstanceType& type : InstanceTypes()) {
    EXPECT_EQ(static_cast<int>(type.chips.size()), type.chip_count()) << type.name;
    std::set<std::string_view> bdfs;
    std::set<std::string_view> efa;
    for (const ChipSite& site : type.chips) {
      bdfs.insert(site.bdf);
      efa.insert(site.efa_bdf);
    }
    EXPECT_EQ(bdfs.size(), type.chips.size()) << type.name;
    // Two chips of a Trn1 share an EFA device; the groups that AWS's driver makes of them need one.
    const std::size_t sharing = type.name.starts_with("trn1") ? 2 : 1;
    if (type.device_groups) {
      EXPECT_EQ(efa.size(), type.chips.size() / sharing) << type.name;
      EXPECT_FALSE(efa.contains("")) << type.name;
    }
    EXPECT_EQ(FindInstanceType(type.name), &type);
  }
}

TEST(CatalogueTest, AnUnknownTypeIsNotFoundAndTheKnownOnesCanBeNamed) {
  EXPECT_EQ(FindInstanceType("p5.48xlarge"), nullptr);
  EXPECT_EQ(InstanceTypeNames(),
            "inf2.xlarge, inf2.8xlarge, inf2.24xlarge, inf2.48xlarge, trn1.2xlarge, trn1.32xlarge, "
            "trn1n.32xlarge, trn2.3xlarge, trn2.48xlarge, trn2u.48xlarge, trn3-gen1, trn3-gen2");
}

TEST(CatalogueTest, LinkRatesAddUpToThePublishedBandwidthPerChip) {
  // 1,024 GB/s inside an instance and 256 GB/s between instances, both directions together.
  EXPECT_EQ(2 * 4 * kTrainium2.links.intra_instance, 1'024'000'000'000);
  EXPECT_EQ(2 * 2 * kTrainium2.links.inter_instance, 256'000'000'000);
  // 16 chips of 200 Gb/s are the 3.2 Tb/s of the instance.
  EXPECT_EQ(16 * kTrainium2.links.efa * 8, 3'200'000'000'000);
}

// GB/s over both directions of all links of a chip, as AWS's tables say.
TEST(CatalogueTest, LinkRatesOfTheOtherGenerationsAddUpToo) {
  constexpr std::int64_t kGB = 1'000'000'000;
  EXPECT_EQ(2 * 4 * kTrainium1.links.intra_instance, 384 * kGB);
  EXPECT_EQ(2 * 4 * kTrainium1N.links.intra_instance, 768 * kGB);
  EXPECT_EQ(2 * 2 * kInferentia2.links.intra_instance, 192 * kGB);
  // Eleven PCIe 6 x8 of 64 GB/s in each direction.
  EXPECT_EQ(kTrainium3.links.intra_instance + kTrainium3.links.inter_instance, 11 * 64 * kGB);
}

TEST(CatalogueTest, EfaOfAllChipsIsTheInstances) {
  const auto gigabits = [](std::string_view name) {
    const InstanceType& type = *FindInstanceType(name);
    return type.chip_count() * type.chip->links.efa * 8 / 1'000'000'000;
  };
  EXPECT_EQ(gigabits("trn1.32xlarge"), 800);
  EXPECT_EQ(gigabits("trn1n.32xlarge"), 1600);
  EXPECT_EQ(gigabits("trn2.48xlarge"), 3200);
  EXPECT_EQ(gigabits("inf2.48xlarge"), 0);
  EXPECT_EQ(4 * gigabits("trn3-gen1"), 12'800);
  EXPECT_EQ(36 * gigabits("trn3-gen2"), 28'800);
}

TEST(CatalogueTest, CablesAreAsManyAsTheTorusHas) {
  const auto cables = [](const torus::Shape& torus) {
    int count = 0;
    for (const Axis axis : torus::kAxes) count += CableCount(torus, axis);
    return count;
  };
  EXPECT_EQ(cables(torus::kInstanceShape), 32);
  EXPECT_EQ(cables(torus::kUltraServerShape), 192);
  EXPECT_EQ(CableCount(torus::kUltraServerShape, Axis::kX) +
                CableCount(torus::kUltraServerShape, Axis::kY),
            128);
  EXPECT_EQ(CableCount(torus::kUltraServerShape, Axis::kZ), 64);
  EXPECT_EQ(cables(FindInstanceType("inf2.48xlarge")->torus), 12);
  EXPECT_EQ(cables(FindInstanceType("inf2.24xlarge")->torus), 6);
  EXPECT_EQ(cables(FindInstanceType("trn2.3xlarge")->torus), 0);
  EXPECT_EQ(cables(torus::Shape::Of<2, 2, 1>()), 4) << "two chips share one cable";
}

TEST(CatalogueTest, EveryTypesFabricFitsItsShape) {
  for (const InstanceType& type : InstanceTypes()) {
    const bool row = type.torus.extent(Axis::kY) == 1 && type.torus.extent(Axis::kZ) == 1;
    switch (type.fabric) {
      case FabricKind::kNone:
        EXPECT_EQ(type.chip_count(), 1) << type.name;
        break;
      case FabricKind::kTorus:
        EXPECT_EQ(type.torus, torus::kInstanceShape) << type.name;
        break;
      case FabricKind::kRing:
      case FabricKind::kSwitch:
        EXPECT_TRUE(row && type.chip_count() > 2) << type.name;
        break;
    }
    EXPECT_FALSE(FabricName(type.fabric).empty());
    EXPECT_LE(type.chip->lnc_default, type.chip->lnc_max) << type.name;
  }
}

TEST(CatalogueTest, UltraServersHaveThePublishedTotals) {
  struct Totals {
    std::string_view name;
    int chips;
    std::int64_t hbm_gib;
    int vcpus;
    std::int64_t memory_gib;
  };
  constexpr Totals kTotals[] = {{"trn2", 64, 6144, 768, 8192},
                                {"trn3-gen1", 64, 9216, 768, 8192},
                                {"trn3-gen2", 144, 20'736, 2304, 27'648}};
  ASSERT_EQ(UltraServers().size(), std::size(kTotals));
  for (std::size_t i = 0; i < std::size(kTotals); ++i) {
    const UltraServerModel& server = UltraServers()[i];
    const Totals& totals = kTotals[i];
    EXPECT_EQ(server.name, totals.name);
    const InstanceType* type = FindInstanceType(server.instance_type);
    ASSERT_NE(type, nullptr) << server.name;
    EXPECT_EQ(type->fabric, server.fabric);
    const int chips = server.nodes * type->chip_count();
    EXPECT_EQ(chips, totals.chips);
    EXPECT_EQ(chips * type->chip->hbm_bytes >> 30, totals.hbm_gib);
    EXPECT_EQ(server.nodes * type->vcpus, totals.vcpus);
    EXPECT_EQ(server.nodes * type->memory_bytes >> 30, totals.memory_gib);
  }
  EXPECT_EQ(kNetwork.cluster_chips % 64, 0) << "whole UltraServers of Trn2";
}

TEST(CatalogueTest, OnlyTrn2AndTrn3JoinTheirCores) {
  EXPECT_FALSE(HasLnc(kTrainium1, 2));
  EXPECT_FALSE(HasLnc(kInferentia2, 2));
  EXPECT_TRUE(HasLnc(kTrainium1, 1));
  EXPECT_TRUE(HasLnc(kTrainium3, 2));
  for (const int bad : {-1, 0, 3, 4}) EXPECT_FALSE(HasLnc(kTrainium2, bad)) << bad;
  EXPECT_EQ(LogicalCores(kTrainium1, 1), 2);
  EXPECT_EQ(LogicalCores(kTrainium3, 2), 4);
  EXPECT_EQ(HbmBank(kInferentia2, 1, 1), 1);
}

TEST(CatalogueTest, LogicalCoresAreThoseOfTheLncPage) {
  EXPECT_EQ(LogicalCores(kTrainium2, 1), 8);
  EXPECT_EQ(LogicalCores(kTrainium2, 2), 4);
  for (int core = 0; core < 8; ++core) EXPECT_EQ(HbmBank(kTrainium2, 1, core), core / 2);
  for (int core = 0; core < 4; ++core) EXPECT_EQ(HbmBank(kTrainium2, 2, core), core);
}

// AWS publishes the rate of a Trainium2 chip rounded, that of its stacks to the bit.
TEST(CatalogueTest, TheBanksOfATrainium2TogetherHaveTheChipsRateWithinTwoPercent) {
  const auto chip = static_cast<double>(kTrainium2.hbm_bytes_per_second);
  const auto bank = static_cast<double>(kTrainium2.hbm_bank_bytes_per_second);
  EXPECT_NEAR(kTrainium2.hbm_banks * bank, chip, 0.02 * chip);
  EXPECT_EQ(bank, kTrainium2Core.hbm_stack_rate.value * 1e9) << "that of programs";
}

TEST(CatalogueTest, MoreBanksAreFasterAndAllHaveTheChipsRate) {
  EXPECT_EQ(HbmRate(kTrainium2, 1), 716'000'000'000);
  EXPECT_EQ(HbmRate(kTrainium2, 3), 3 * HbmRate(kTrainium2, 1));
  for (const InstanceType& type : InstanceTypes()) {
    const ChipModel& chip = *type.chip;
    ASSERT_LE(chip.hbm_banks, kHbmBanksMax) << type.name;
    for (int banks = 1; banks <= kHbmBanksMax; ++banks) {
      EXPECT_LE(HbmRate(chip, banks), HbmRate(chip, banks + 1)) << type.name;
      const bool all = banks >= chip.hbm_banks || &chip != &kTrainium2;
      EXPECT_EQ(HbmRate(chip, banks) == chip.hbm_bytes_per_second, all) << type.name;
    }
  }
}

TEST(CatalogueTest, ConnectedDevicesAreThoseThatNeuronLsPrints) {
  const InstanceType& type = *FindInstanceType("trn2.48xlarge");
  EXPECT_EQ(ConnectedDevices(type, 0), "12, 3, 4, 1");
  EXPECT_EQ(ConnectedDevices(type, 5), "1, 4, 9, 6");
  EXPECT_EQ(ConnectedDevices(type, 15), "11, 14, 3, 12");
  EXPECT_EQ(ConnectedDevices(*FindInstanceType("trn2.3xlarge"), 0), "");
  EXPECT_EQ(ConnectedDevices(*FindInstanceType("trn1.32xlarge"), 0), "12, 3, 4, 1");
  EXPECT_EQ(ConnectedDevices(*FindInstanceType("inf2.48xlarge"), 0), "11, 1");
  EXPECT_EQ(ConnectedDevices(*FindInstanceType("inf2.24xlarge"), 5), "4, 0");
  EXPECT_EQ(ConnectedDevices(*FindInstanceType("trn3-gen1"), 0), "") << "behind switches";
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
