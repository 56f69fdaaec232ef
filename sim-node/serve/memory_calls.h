// The calls of a workload about its chips' memory: memStore, memLoad and commAccess.
//
//   MemoryCalls memory(communicators, communicator_calls);
//   AddMemoryCalls(server, live, memory, called);
//   memory.Drop(token);                         // its claim is released
//
// memStore and memLoad are the host's: they put bytes into a chip's memory and take them out, at no
// virtual time. commAccess is the chips' own DMA, together with the other ranks of a communicator
// (sim-node/collective/participants/remote_memory.h). docs/formats/wire.md has every field.
//
// Scope: translation, and which memory a token opens. Chips are counted as a communicator does: a
// claim's own from 0, ascending; a gang's through its ranks.
//
// Thread safety: Call and Drop may run on many threads; AddMemoryCalls goes before the server
// serves.

#pragma once

#include <absl/status/statusor.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lib/wire/call.h"
#include "sim-node/chip/claim_memory.h"
#include "sim-node/node/instance.h"
#include "sim-node/serve/communicator.h"
#include "sim-node/serve/communicator_calls.h"
#include "sim-node/serve/live_instance.h"
#include "sim-node/serve/node_server.h"

namespace tahoma::sim {

inline constexpr std::string_view kMemStore = "memStore";
inline constexpr std::string_view kMemLoad = "memLoad";
inline constexpr std::string_view kCommAccess = "commAccess";

// What one memStore or memLoad may carry: half of what a frame may.
inline constexpr std::uint64_t kMaxHostBytes = std::uint64_t{32} << 20U;
// What this process keeps for the memories of all claims.
inline constexpr std::uint64_t kMaxMemoryBytes = std::uint64_t{1} << 30U;

class MemoryCalls {
 public:
  // Both must outlive the object.
  MemoryCalls(Communicators& communicators, CommunicatorCalls& ranks)
      : communicators_(communicators), ranks_(ranks), memory_(kMaxMemoryBytes) {}

  // `claim` names the caller (its token), `shares` is the memory that it has of its chips,
  // ascending.
  absl::StatusOr<wire::Reply> Call(const wire::Request& request, const std::string& claim,
                                   const std::vector<ClaimMemory::Share>& shares);

  // The claim is released: what it wrote is gone.
  void Drop(const std::string& claim) { memory_.Drop(claim); }

  // What the host keeps for all claims.
  std::uint64_t resident_bytes() const { return memory_.resident_bytes(); }

 private:
  absl::StatusOr<wire::Reply> Store(const wire::Request& request, ClaimMemory& memory,
                                    const std::vector<ClaimMemory::Share>& shares);
  absl::StatusOr<wire::Reply> Load(const wire::Request& request, ClaimMemory& memory,
                                   const std::vector<ClaimMemory::Share>& shares);
  absl::StatusOr<wire::Reply> Access(const wire::Request& request, const std::string& claim,
                                     ClaimMemory& memory);

  Communicators& communicators_;
  CommunicatorCalls& ranks_;
  NodeMemory memory_;
};

// A claim's share of the memory of its chips, ascending: as large as its share of their cores.
std::vector<ClaimMemory::Share> MemoryOfClaim(const Instance& instance, const HeldClaim& claim);

// Serves the three calls to the bearers of claims' tokens; `called` hears of each token before its
// call. All must outlive `server`.
void AddMemoryCalls(NodeServer& server, const LiveInstance& live, MemoryCalls& calls,
                    const std::function<void(const std::string& token)>& called);

}  // namespace tahoma::sim
