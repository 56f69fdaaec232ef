#include "lib/driver/efa_nic.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <iterator>

#include "lib/base/check.h"

namespace tahoma::hw {
namespace {

int HexAt(std::string_view address, std::size_t begin) {
  int value = 0;
  const auto [end, error] =
      std::from_chars(address.data() + begin, address.data() + begin + 2, value, 16);
  TAHOMA_CHECK(error == std::errc());
  return value;
}

// udev names an RDMA device by the bus and the slot of its PCI address, as decimal numbers.
std::string RdmaName(std::string_view address) {
  TAHOMA_CHECK(address.size() == std::string_view("0000:c9:00.0").size());
  return fmt::format("rdmap{}s{}", HexAt(address, 5), HexAt(address, 8));
}

std::string DeviceNameOf(std::string_view address) {
  std::string name = fmt::format("pci-{}", address);
  std::ranges::replace_if(
      name, [](char c) { return c == ':' || c == '.'; }, '-');
  return name;
}

}  // namespace

std::vector<EfaNic> EfaNics(const InstanceType& type) {
  std::vector<EfaNic> nics;
  for (int chip = 0; chip < type.chip_count(); ++chip) {
    const ChipSite& site = type.chips[static_cast<std::size_t>(chip)];
    if (site.efa_bdf.empty()) continue;
    auto nic = std::ranges::find(nics, site.efa_bdf, &EfaNic::address);
    if (nic == nics.end()) {
      nics.push_back({.device = DeviceNameOf(site.efa_bdf),
                      .address = std::string(site.efa_bdf),
                      .rdma = RdmaName(site.efa_bdf),
                      .number = static_cast<int>(nics.size()),
                      .numa_node = site.numa_node});
      nic = std::prev(nics.end());
    }
    nic->chips.push_back(chip);
  }
  return nics;
}

}  // namespace tahoma::hw
