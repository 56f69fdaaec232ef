// Translates an instance for its communicators: its place in the torus, its links, a claim's cores.
//
// Scope: translation between Instance, which numbers only its own chips, and the torus of the
// UltraServer: chip c of node n is ChipIndex(16 n + c).
//
// Thread safety: AddCommunicatorCalls goes before the server serves.

#pragma once

#include <absl/status/statusor.h>

#include <functional>
#include <string>
#include <vector>

#include "sim-node/emulator/collective/plan/plan.h"
#include "sim-node/emulator/link/torus_links.h"
#include "sim-node/node/instance.h"
#include "sim-node/serve/communicator_calls.h"
#include "sim-node/serve/gang_fabric.h"
#include "sim-node/serve/node_server.h"

namespace tahoma::sim {

// Returns the instance's place in its UltraServer; 0 without an UltraServer.
int NodeIdOf(const Instance& instance);
// Returns the number of the instance's first chip in its UltraServer, else 0.
int FirstChipOf(const Instance& instance);

// Describes the instance to nodes of other domains.
NodePlace PlaceOf(const Instance& instance);

// Returns all links of the UltraServer the instance belongs to, or of the instance alone, as if all
// were healthy.
TorusLinks LinksAround(const Instance& instance);

// Returns the unhealthy directed links from chips of this instance.
std::vector<LinkState> UnhealthyLinks(const Instance& instance);

// Return the dead chips of this instance, and the chips with a broken EFA interface.
std::vector<torus::ChipIndex> DeadChips(const Instance& instance);
std::vector<torus::ChipIndex> ChipsWithoutEfa(const Instance& instance);

// Returns the number of logical cores that a claim has on each of its chips, in order of the chips.
std::vector<Member> CoresOfClaim(const Instance& instance, const HeldClaim& claim);

// The longest commId of a workload, in bytes.
inline constexpr std::size_t kMaxCommIdBytes = 256;

// Returns the request with the namespace in front of its commId: "default/job". So pods of
// different namespaces never join the same communicator, where each could read the other pods'
// memory.
// kInvalidArgument for params without a commId, or with a commId that is too long.
absl::StatusOr<wire::Request> InNamespace(const wire::Request& request,
                                          const std::string& name_space);

// Serves commJoin, commRun and commLeave to the bearers of claims' tokens, and calls `called` with
// the token before each call. Every argument must outlive `server`. Calls are kUnimplemented on
// instance types with switches between the chips.
void AddCommunicatorCalls(NodeServer& server, const LiveInstance& live, CommunicatorCalls& calls,
                          const std::function<void(const std::string& token)>& called);

}  // namespace tahoma::sim
