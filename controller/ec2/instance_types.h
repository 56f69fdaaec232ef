// An instance type as DescribeInstanceTypes shows it.
//
// Chips, vCPUs and memory are the catalogue's, the rest is what EC2 says (lib/hw/ec2_type.h). That
// Capacity Blocks of a type can be bought is said of those that are sold here.
//
// Thread safety: pure functions.

#pragma once

#include <span>

#include "controller/ec2/tree.h"
#include "lib/hw/ec2_type.h"

namespace tahoma::controller::ec2 {

// `supported`: the fleet has such instances.
Tree InstanceTypeTree(const hw::Ec2Type& type, bool supported);

// All filters of the action.
std::span<const TreeFilter> InstanceTypeFilters();

}  // namespace tahoma::controller::ec2
