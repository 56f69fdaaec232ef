// ResourceClaims as the plugin reads them, and their opaque configurations as the controller and
// the plugin do. A grant holds no core of a broken chip, and its message can be read again.

#include <string>
#include <string_view>

#include "dra-plugin/claims/allocation.h"
#include "lib/base/check.h"
#include "lib/base/status.h"
#include "lib/driver/device_config.h"
#include "lib/hw/catalogue.h"
#include "lib/wire/messages.h"
#include "tests/fuzz/fuzz_target.h"

namespace {

using namespace tahoma;

wire::Inventory Node() {
  const hw::InstanceType& type = *hw::FindInstanceType("trn2u.48xlarge");
  wire::Inventory inventory;
  inventory.node_name = "n";
  inventory.instance_type = type.name;
  inventory.driver_version = "2.26.10.0";
  inventory.ultra_server = wire::UltraServer{.id = "us-0", .node_id = 1};
  for (int chip = 0; chip < type.chip_count(); ++chip) {
    inventory.chips.push_back({.index = chip, .healthy = chip != 5});
  }
  return inventory;
}

}  // namespace

void FuzzOne(std::string_view input) {
  const auto config = hw::ParseDeviceConfig(input);
  TAHOMA_CHECK(config.ok() || absl::IsInvalidArgument(config.status()));

  static const wire::Inventory kNode = Node();
  const dra::ClaimRef claim = {.name_space = "default", .name = "a", .uid = "uid-1"};
  const auto allocation = dra::ReadAllocation(input, claim);
  if (!allocation.ok()) {
    TAHOMA_CHECK(!Message(allocation.status()).empty());
    return;
  }
  const auto grant = dra::BuildGrant(claim, *allocation, kNode);
  if (!grant.ok()) return;
  const auto again = wire::DecodeClaimGrant(wire::EncodeClaimGrant(*grant));
  TAHOMA_CHECK_OK(again.status());
  TAHOMA_CHECK(*again == *grant);
  constexpr int kBroken = 5;
  TAHOMA_CHECK(wire::HeldCores(*grant)[kBroken] == 0);
  TAHOMA_CHECK(!wire::CheckDisjoint(*grant, *grant).ok());
}
