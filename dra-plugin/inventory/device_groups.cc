#include "dra-plugin/inventory/device_groups.h"

#include <algorithm>

#include "lib/base/digest.h"

namespace tahoma::dra {

std::string DeviceGroupId(std::vector<std::string_view> efa_addresses) {
  std::sort(efa_addresses.begin(), efa_addresses.end());
  efa_addresses.erase(std::unique(efa_addresses.begin(), efa_addresses.end()), efa_addresses.end());
  std::string joined;
  for (const std::string_view address : efa_addresses) {
    if (!joined.empty()) joined += ',';
    joined += address;
  }
  return Sha256Hex(joined).substr(0, 16);
}

}  // namespace tahoma::dra
