// AWS's ids of connected device groups, by which one matchAttribute constraint ties chips to each
// other and to the EFA devices beside them.
//
// Source: aws-neuron connected-device-maps-over-efa v1.1.0, lookup.go. Nothing of the node enters
// the hash: values repeat on every node of an instance type.

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lib/hw/catalogue.h"
#include "lib/kube/objects/slice.h"

namespace tahoma::dra {

// The first 16 hex digits of the SHA-256 of the distinct addresses, sorted as text and joined by
// commas.
std::string DeviceGroupId(std::vector<std::string_view> efa_addresses);

// The attributes resource.aws.com/devicegroup{1,4,8,16}_id of a chip, and of the NIC beside it.
// None for an instance type without such groups.
std::vector<kube::Attribute> DeviceGroups(const hw::InstanceType& type, int chip);

}  // namespace tahoma::dra
