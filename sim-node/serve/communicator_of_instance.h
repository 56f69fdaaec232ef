// How an instance takes part in communicators: its place in the torus, its links, a claim's cores.
//
//   Communicators communicators({.node_id = NodeIdOf(node), .links = LinksAround(node)});
//   CommunicatorCalls calls(communicators);
//   AddCommunicatorCalls(server, live, calls);
//   communicators.SetLinks(live.Read(UnhealthyLinks), live.Read(DeadChips));   // at each change
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

#include "sim-node/collective/plan/plan.h"
#include "sim-node/link/torus_links.h"
#include "sim-node/node/instance.h"
#include "sim-node/serve/communicator_calls.h"
#include "sim-node/serve/gang_fabric.h"
#include "sim-node/serve/node_server.h"

namespace tahoma::sim {

// 0 without an UltraServer.
int NodeIdOf(const Instance& instance);

// What nodes of other units must know of this one.
NodePlace PlaceOf(const Instance& instance);

// All links of the UltraServer the instance belongs to, or of the instance alone; healthy.
TorusLinks LinksAround(const Instance& instance);

// The directed links that chips of this instance send on and that are not healthy.
std::vector<LinkState> UnhealthyLinks(const Instance& instance);

// The chips of this instance that are dead, and those whose network card is down.
std::vector<torus::ChipIndex> DeadChips(const Instance& instance);
std::vector<torus::ChipIndex> ChipsWithoutEfa(const Instance& instance);

// The logical cores of a claim by chip, ascending.
std::vector<Member> CoresOfClaim(const Instance& instance, const HeldClaim& claim);

// The most bytes of a commId that a workload gives.
inline constexpr std::size_t kMaxCommIdBytes = 256;

// The request with the namespace in front of its commId: "default/job". Communicators of different
// namespaces never meet, whatever their workloads call them, as nothing else in Kubernetes does; a
// member could read the memory of the others. kInvalidArgument for params without a commId, or with
// one that is too long.
absl::StatusOr<wire::Request> InNamespace(const wire::Request& request,
                                          const std::string& name_space);

// Serves commJoin, commRun and commLeave to the bearers of claims' tokens; `called` hears of each
// token before its call. All must outlive `server`.
void AddCommunicatorCalls(NodeServer& server, const LiveInstance& live, CommunicatorCalls& calls,
                          const std::function<void(const std::string& token)>& called);

}  // namespace tahoma::sim
