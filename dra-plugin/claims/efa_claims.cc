#include "dra-plugin/claims/efa_claims.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <optional>

#include "dra-plugin/claims/cdi.h"
#include "lib/base/status.h"
#include "lib/driver/efa_nic.h"
#include "lib/hw/catalogue.h"
#include "lib/kube/name.h"

namespace tahoma::dra {
namespace {

// Returns the NIC of a result. kInvalidArgument when the node has no such NIC.
absl::StatusOr<hw::EfaNic> FindNic(const kube::DeviceResult& result,
                                   const std::vector<hw::EfaNic>& nics,
                                   const wire::Inventory& inventory) {
  const auto nic = std::ranges::find(nics, result.device, &hw::EfaNic::device);
  if (result.pool == inventory.node_name && nic != nics.end()) return *nic;
  return InvalidArgument("request \"{}\": node {} ({}) has no NIC \"{}\" of pool \"{}\"",
                         result.request, inventory.node_name, inventory.instance_type,
                         result.device, result.pool);
}

absl::Status CheckUp(const hw::EfaNic& nic, const wire::Inventory& inventory) {
  const auto down = std::ranges::find_if(inventory.chips, [&](const wire::Chip& chip) {
    return chip.efa_down && std::ranges::find(nic.chips, chip.index) != nic.chips.end();
  });
  if (down == inventory.chips.end()) return absl::OkStatus();
  return FailedPrecondition("NIC {} of node {} is down", nic.device, inventory.node_name);
}

// The uid is a part of a file's name.
absl::Status CheckUid(const ClaimRef& claim) {
  if (const auto wrong = kube::WrongDns1123Label(claim.uid)) {
    return InvalidArgument("its uid is none: {}", *wrong);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<PreparedDevice>> EfaClaims::PrepareNamed(const ClaimRef& claim) {
  TAHOMA_RETURN_IF_ERROR(CheckNames(claim));
  TAHOMA_RETURN_IF_ERROR(CheckUid(claim));
  TAHOMA_ASSIGN_OR_RETURN(const std::string object, source_.Get(claim.name_space, claim.name));
  TAHOMA_ASSIGN_OR_RETURN(const std::vector<kube::DeviceResult> results,
                          ReadResults(object, claim, hw::kEfaDriver));
  TAHOMA_ASSIGN_OR_RETURN(const wire::Inventory inventory, node_.GetInventory());
  if (inventory.node_name != node_name_) {
    return FailedPrecondition("sim-node is node \"{}\"; this plugin serves node \"{}\"",
                              inventory.node_name, node_name_);
  }
  const std::string file = EfaCdiFileName(claim.uid);
  TAHOMA_ASSIGN_OR_RETURN(const std::optional<std::string> before, cdi_.Read(file));
  const hw::InstanceType* type = hw::FindInstanceType(inventory.instance_type);
  const std::vector<hw::EfaNic> all =
      type == nullptr ? std::vector<hw::EfaNic>() : hw::EfaNics(*type);
  std::vector<hw::EfaNic> nics;
  std::vector<PreparedDevice> devices;
  for (const kube::DeviceResult& result : results) {
    TAHOMA_ASSIGN_OR_RETURN(hw::EfaNic nic, FindNic(result, all, inventory));
    if (!before.has_value()) TAHOMA_RETURN_IF_ERROR(CheckUp(nic, inventory));
    if (std::ranges::find(nics, nic.device, &hw::EfaNic::device) != nics.end()) {
      return InvalidArgument("the allocation names NIC {} twice", nic.device);
    }
    nics.push_back(std::move(nic));
    devices.push_back({.request = std::string(BaseRequest(result.request)),
                       .pool = result.pool,
                       .device = result.device});
  }
  const std::string spec = EfaCdiSpec(claim.uid, nics, inventory.workload_socket);
  if (before != spec) TAHOMA_RETURN_IF_ERROR(cdi_.Write(file, spec));
  spdlog::info("prepared {}: {} NICs", claim.ToString(), nics.size());
  return devices;
}

absl::StatusOr<std::vector<PreparedDevice>> EfaClaims::Prepare(const ClaimRef& claim) {
  absl::StatusOr<std::vector<PreparedDevice>> devices = PrepareNamed(claim);
  if (!devices.ok()) return Annotate(devices.status(), claim.ToString());
  return devices;
}

absl::Status EfaClaims::Unprepare(const ClaimRef& claim) {
  TAHOMA_RETURN_IF_ERROR(Annotate(CheckUid(claim), claim.ToString()));
  TAHOMA_RETURN_IF_ERROR(Annotate(cdi_.Remove(EfaCdiFileName(claim.uid)), claim.ToString()));
  spdlog::info("unprepared {}: its NICs", claim.ToString());
  return absl::OkStatus();
}

}  // namespace tahoma::dra
