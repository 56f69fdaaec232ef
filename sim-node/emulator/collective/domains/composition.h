// The phases of a collective over several topology domains as one schedule: inside each domain,
// between the domains, inside again, chunk after chunk.
//
// Scope: internal to hierarchical.h, which chooses the algorithm between the domains and the number
// of chunks. An operation without phases (an exchange) is composed there.
//
// Thread safety: values and pure functions.

#pragma once

#include <absl/status/statusor.h>

#include "sim-node/emulator/collective/domains/domains.h"
#include "sim-node/emulator/collective/domains/hierarchical.h"
#include "sim-node/emulator/collective/schedule/blocks.h"
#include "sim-node/emulator/collective/schedule/request.h"
#include "sim-node/emulator/collective/schedule/schedule.h"
#include "sim-node/emulator/link/fabric.h"

namespace tahoma::sim {

// A collective with everything chosen but, perhaps, the algorithm inside each domain.
struct Composition {
  const Request& request;
  const Layout& layout;  // of the buffer, by member
  const DomainSet& set;
  const Fabric& fabric;
  const HierarchyChoice& choice;  // `between` and `chunks` are given
  // In a mesh one message stands for those between all domains of two kinds (domain_meshes.h), and
  // not each is listed.
  bool meshes = false;
};

// Whether the domains follow one another and have the same chips, links and NICs, and equal blocks
// if blocks have homes: what one of them sends in a mesh says what all do.
bool AreAlikeInARow(const Request& request, const Layout& layout, const DomainSet& set);

// The schedule names chips by their numbers in the fabric. Errors are those of PlanCollective
// inside a domain.
absl::StatusOr<Schedule> ComposePhases(const Composition& composition);

}  // namespace tahoma::sim
