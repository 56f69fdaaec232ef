// The NICs of an instance, as AWS's DRA driver for EFA names them (dra.net, chart aws-dranet).
//
//   for (const EfaNic& nic : EfaNics(*type)) names.push_back(nic.device);
//
// Sources: docs/reference/aws-dra-driver.md#efa.
//
// Scope: a pure function of the catalogue.

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lib/hw/catalogue.h"

namespace tahoma::hw {

inline constexpr std::string_view kEfaDriver = "dra.net";

struct EfaNic {
  std::string device;   // of a ResourceSlice, "pci-0000-c9-00-0"
  std::string address;  // PCI, "0000:c9:00.0"
  std::string rdma;     // the RDMA device, "rdmap201s0"
  int number = 0;       // N of /dev/infiniband/uverbsN
  int numa_node = 0;
  std::vector<int> chips = {};  // beside it, ascending
};

// In the order of their first chips; none where the catalogue knows of no EFA.
std::vector<EfaNic> EfaNics(const InstanceType& type);

}  // namespace tahoma::hw
