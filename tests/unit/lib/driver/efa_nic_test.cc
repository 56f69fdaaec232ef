#include "lib/driver/efa_nic.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

namespace tahoma::hw {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// As in the captured ResourceSlice of a trn1.32xlarge (docs/reference/aws-dra-driver.md#efa).
TEST(EfaNicTest, NamesAreThoseOfACapturedSlice) {
  std::map<std::string, std::string> rdma;
  for (const EfaNic& nic : EfaNics(*FindInstanceType("trn1.32xlarge"))) rdma[nic.device] = nic.rdma;
  EXPECT_EQ(rdma, (std::map<std::string, std::string>{{"pci-0000-10-19-0", "rdmap16s25"},
                                                      {"pci-0000-10-1a-0", "rdmap16s26"},
                                                      {"pci-0000-20-19-0", "rdmap32s25"},
                                                      {"pci-0000-20-1a-0", "rdmap32s26"},
                                                      {"pci-0000-90-19-0", "rdmap144s25"},
                                                      {"pci-0000-90-1a-0", "rdmap144s26"},
                                                      {"pci-0000-a0-19-0", "rdmap160s25"},
                                                      {"pci-0000-a0-1a-0", "rdmap160s26"}}));
}

TEST(EfaNicTest, EachChipIsBesideOneNicAndNumbersAreDense) {
  for (const InstanceType& type : InstanceTypes()) {
    std::set<int> chips;
    int number = 0;
    for (const EfaNic& nic : EfaNics(type)) {
      EXPECT_EQ(nic.number, number++) << type.name;
      for (const int chip : nic.chips) {
        EXPECT_TRUE(chips.insert(chip).second) << type.name;
        EXPECT_EQ(type.chips[static_cast<std::size_t>(chip)].efa_bdf, nic.address);
      }
    }
    for (int chip = 0; chip < type.chip_count(); ++chip) {
      const bool has_efa = !type.chips[static_cast<std::size_t>(chip)].efa_bdf.empty();
      EXPECT_EQ(chips.contains(chip), has_efa) << type.name << " chip " << chip;
    }
  }
}

TEST(EfaNicTest, Trn2HasOneForEachChipTrn1OneForTwoAndInf2None) {
  EXPECT_EQ(EfaNics(*FindInstanceType("trn2.48xlarge")).size(), 16u);
  EXPECT_THAT(EfaNics(*FindInstanceType("trn1.32xlarge")).front().chips, ElementsAre(0, 1));
  EXPECT_THAT(EfaNics(*FindInstanceType("inf2.48xlarge")), IsEmpty());
}

}  // namespace
}  // namespace tahoma::hw
