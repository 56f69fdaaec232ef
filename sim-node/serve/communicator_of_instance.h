// Translates an instance for its communicators: its place in the torus, its links, a claim's cores.
//
// Scope: translation between Instance, which numbers its own chips, and the torus of the
// UltraServer, where chip c of node n is ChipIndex(16 n + c).
//
// Thread safety: pure functions, except AddCommunicatorCalls, which goes before the server serves.

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

// Returns the instance's place in its UltraServer; 0 without one.
int NodeIdOf(const Instance& instance);

// Describes the instance to nodes of other domains.
NodePlace PlaceOf(const Instance& instance);

// Returns all links of the UltraServer the instance belongs to, or of the instance alone, as if all
// were healthy.
TorusLinks LinksAround(const Instance& instance);

// Returns the directed links that chips of this instance send on and that are not healthy.
std::vector<LinkState> UnhealthyLinks(const Instance& instance);

// Return the chips of this instance that are dead, and those whose EFA interface is down.
std::vector<torus::ChipIndex> DeadChips(const Instance& instance);
std::vector<torus::ChipIndex> ChipsWithoutEfa(const Instance& instance);

// Returns the number of logical cores that a claim has on each of its chips, chips ascending.
std::vector<Member> CoresOfClaim(const Instance& instance, const HeldClaim& claim);

// The most bytes of a commId that a workload gives.
inline constexpr std::size_t kMaxCommIdBytes = 256;

// Returns the request with the namespace in front of its commId: "default/job". Pods of different
// namespaces can so never join one communicator, in which each could read the others' memory.
// kInvalidArgument for params without a commId, or with one that is too long.
absl::StatusOr<wire::Request> InNamespace(const wire::Request& request,
                                          const std::string& name_space);

// Serves commJoin, commRun and commLeave to the bearers of claims' tokens, and calls `called` with
// the token before each call. All must outlive `server`. Calls are kUnimplemented on instance types
// whose chips are joined by switches.
void AddCommunicatorCalls(NodeServer& server, const LiveInstance& live, CommunicatorCalls& calls,
                          const std::function<void(const std::string& token)>& called);

}  // namespace tahoma::sim
