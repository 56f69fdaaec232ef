// The capacity that one allocation consumes of a device (KEP-5075).
//
// Thread safety: pure functions.

#pragma once

#include <optional>
#include <vector>

#include "controller/allocate/candidate.h"
#include "lib/kube/objects/claim_spec.h"

namespace tahoma::controller::allocate {

// An amount for each of the device's capacities, in their order: the requested amount as the
// capacity's policy rounds the amount up, else the policy's default, else everything. Returns
// nullopt where the device lacks a requested capacity, the policy forbids an amount, or too little
// is left.
std::optional<std::vector<kube::Quantity>> ConsumptionOf(
    const std::vector<kube::CapacityRequest>& requests, const Candidate& candidate);

}  // namespace tahoma::controller::allocate
