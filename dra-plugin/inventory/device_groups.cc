#include "dra-plugin/inventory/device_groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <utility>

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

std::vector<kube::Attribute> DeviceGroups(const hw::InstanceType& type, int chip) {
  std::vector<kube::Attribute> out;
  if (!type.device_groups) return out;
  const auto address = [&](int i) { return type.chips[static_cast<std::size_t>(i)].efa_bdf; };
  const auto add = [&](int size, std::string id) {
    out.push_back({{"resource.aws.com", fmt::format("devicegroup{}_id", size)}, std::move(id)});
  };
  add(1, std::string(address(chip)));
  for (const int size : {4, 8, 16}) {
    std::vector<std::string_view> members;
    const int first = chip / size * size;
    for (int i = first; i < first + size && i < type.chip_count(); ++i) {
      members.push_back(address(i));
    }
    add(size, DeviceGroupId(std::move(members)));
  }
  return out;
}

}  // namespace tahoma::dra
