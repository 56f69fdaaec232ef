// A plan gives out no core that is held, and one that would stops the program.

#include "controller/plan/decision.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "controller/plan/fleet_index.h"
#include "tests/support/fleet.h"

namespace tahoma::controller {
namespace {

class CheckNobodyHoldsTest : public ::testing::Test {
 protected:
  CheckNobodyHoldsTest() {
    state_.PutNode(
        NodeFactsOf({.name = "n0", .type = "trn2u.48xlarge", .ultra_server = "us-0", .z = 0}));
    state_.Hold(std::make_shared<const Holding>(Of("held", "n0", {"neuron-device-3"})));
  }

  static Holding Of(const std::string& uid, const std::string& node,
                    const std::vector<std::string>& devices, bool admin = false) {
    Holding holding;
    holding.claim_uid = uid;
    for (const std::string& device : devices) {
      holding.devices.push_back({.node = node, .device = device, .admin_access = admin});
    }
    return holding;
  }

  ClusterState state_;
};

TEST_F(CheckNobodyHoldsTest, DevicesThatAreFreePass) {
  CheckNobodyHolds(state_, Of("a", "n0", {"neuron-device-2", "neuron-device-4"}));
  CheckNobodyHolds(state_, Of("b", "n0", {"neuron-device-3"}, true));
}

TEST_F(CheckNobodyHoldsTest, ADeviceOfACoreThatIsHeldStopsTheProgram) {
  const std::string core = "neuron-core-3-lnc2-0";
  EXPECT_DEATH(CheckNobodyHolds(state_, Of("a", "n0", {"neuron-device-2", "neuron-device-3"})),
               "CHECK failed: node->busy_cores");
  EXPECT_DEATH(CheckNobodyHolds(state_, Of("b", "n0", {core})), "CHECK failed: .node->busy_cores");
  EXPECT_DEATH(CheckNobodyHolds(state_, Of("c", "n0", {"neuron-node"})),
               "CHECK failed: .node->BusyChips");
  EXPECT_DEATH(CheckNobodyHolds(state_, Of("d", "n7", {"neuron-device-2"})),
               "CHECK failed: id.has_value");
}

TEST(FleetIndexKeyTest, AnAmountThatHasNoKeyStopsTheProgram) {
  EXPECT_LT(FleetIndex::ChipKey(16), FleetIndex::CoreKey(1, 1));
  EXPECT_DEATH(FleetIndex::ChipKey(0), "CHECK failed: chips >= 1");
  EXPECT_DEATH(FleetIndex::ChipKey(17), "CHECK failed: chips >= 1");
  EXPECT_DEATH(FleetIndex::CoreKey(2, 5), "CHECK failed: cores >= 1");
  EXPECT_DEATH(FleetIndex::CoreKey(3, 1), "CHECK failed: lnc == 1");
}

}  // namespace
}  // namespace tahoma::controller
