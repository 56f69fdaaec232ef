// An all-to-all over topology domains of which many are alike: the messages in all domains of a
// kind are one step, and the messages between two kinds are one mesh.
//
// A chip that is not served by its own NIC hands its messages over to its proxy before the proxy
// sends, and gets messages handed on afterwards (nic_proxies.h). Messages of other chips go at
// once.
//
// Scope: internal to hierarchical.h.
//
// Thread safety: pure functions.

#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "sim-node/emulator/collective/domains/domains.h"
#include "sim-node/emulator/collective/plan/plan_options.h"
#include "sim-node/emulator/collective/schedule/request.h"
#include "sim-node/emulator/collective/schedule/schedule.h"
#include "sim-node/emulator/link/fabric.h"

namespace tahoma::sim {

// Returns the groups in kinds with the same ranks on the same chips and the same NICs, by
// first group. Nothing for other operations, for a request that lists its blocks, and where the
// members of a domain do not follow one another.
std::optional<std::vector<DomainSet::Kind>> AllToAllKindsOf(const Request& request,
                                                            const std::vector<Member>& members,
                                                            const DomainSet& set);

struct AllToAllInput {
  const Request& request;
  const std::vector<Member>& members;
  const DomainSet& set;
  const Fabric& fabric;
  const std::vector<DomainSet::Kind>& kinds;
  std::uint64_t block;   // bytes between two ranks
  const StepWork& work;  // of all messages of a chip
  const ChipCosts& costs;
};

Schedule AllToAllOver(const AllToAllInput& input);

}  // namespace tahoma::sim
