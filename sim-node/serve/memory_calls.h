// Serves a workload's calls about its chips' memory: memStore, memLoad and commAccess.
//
// memStore and memLoad are accesses of the host: they write and read a chip's memory in no virtual
// time. commAccess is DMA by the chips, together with the other ranks of a communicator
// (sim-node/participants/remote_memory.h). docs/formats/wire.md has every field.
//
// Scope: translation, and the memory that a token opens. Chips are numbered as in a communicator: a
// claim's own from 0, ascending; a gang's in the order of its ranks.
//
// Thread safety: Call and Drop may run on many threads; AddMemoryCalls goes before the server
// serves.

#pragma once

#include <absl/functional/function_ref.h>
#include <absl/status/statusor.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lib/wire/call.h"
#include "sim-node/node/claim_memory.h"
#include "sim-node/node/instance.h"
#include "sim-node/serve/communicator.h"
#include "sim-node/serve/communicator_calls.h"
#include "sim-node/serve/live_instance.h"
#include "sim-node/serve/node_server.h"

namespace tahoma::sim {

inline constexpr std::string_view kMemStore = "memStore";
inline constexpr std::string_view kMemLoad = "memLoad";
inline constexpr std::string_view kCommAccess = "commAccess";

// The most bytes of a memStore or memLoad: half of a frame's payload.
inline constexpr std::uint64_t kMaxHostBytes = std::uint64_t{32} << 20U;
// The most host memory that this process uses for the chip memories of all claims.
inline constexpr std::uint64_t kMaxMemoryBytes = std::uint64_t{1} << 30U;

class MemoryCalls {
 public:
  // Both arguments must outlive the object.
  MemoryCalls(Communicators& communicators, CommunicatorCalls& ranks)
      : communicators_(communicators), ranks_(ranks), memory_(kMaxMemoryBytes) {}

  // Carries out a call. `claim` identifies the caller (its token), `shares` are the claim's bytes
  // of the memory of each of its chips, ascending. Fails as ClaimMemory's functions, commAccess
  // also as Communicators::Access.
  absl::StatusOr<wire::Reply> Call(const wire::Request& request, const std::string& claim,
                                   const std::vector<ClaimMemory::Share>& shares);

  // Carries out a call on the caller's memory. If the claim is released meanwhile, the memory goes
  // with it.
  absl::StatusOr<wire::Reply> With(
      const LiveInstance& live, const Caller& caller,
      absl::FunctionRef<absl::StatusOr<wire::Reply>(ClaimMemory& memory,
                                                    const std::vector<ClaimMemory::Share>& shares)>
          use);

  // Frees the memory of a released claim.
  void Drop(const std::string& claim) { memory_.Drop(claim); }

  // Returns the bytes of host memory in use for all claims.
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

// Returns a claim's bytes of the memory of each of its chips, ascending: in proportion to its
// logical cores of the chip.
std::vector<ClaimMemory::Share> MemoryOfClaim(const Instance& instance, const HeldClaim& claim);

// Serves the three calls to the bearers of claims' tokens, and calls `called` with the token before
// each call. All must outlive `server`.
void AddMemoryCalls(NodeServer& server, const LiveInstance& live, MemoryCalls& calls,
                    const std::function<void(const std::string& token)>& called);

}  // namespace tahoma::sim
