// Times a batch of accesses in which chips read and write each other's memory by DMA.
//
// An access copies between the memory of the asking chip and another chip's memory (or its own). A
// write sends bytes over the asker's links. A read sends a request first, and the bytes come over
// the other chip's links. All accesses of a batch begin together and share, max-min fair:
//   - the links on their routes,
//   - the 16 DMA engines of a core; a chip's accesses are dealt to its cores round robin,
//   - each memory's bandwidth, half of it for reads and half for writes, as copies need it,
// and none is faster than the engines that its packets keep busy. It ends when its last byte has
// arrived: the start of the DMA engines, the transfer, and the latency of the route (in both
// directions for a read).
//
// Within a batch every access finds the memories' contents from before the batch. Where several
// accesses land on the same place, the last in the order of the batch stays.

#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/torus/box.h"
#include "sim-node/emulator/collective/plan/link_loads.h"
#include "sim-node/emulator/engine/virtual_time.h"
#include "sim-node/emulator/link/fabric.h"
#include "sim-node/emulator/link/torus_links.h"
#include "sim-node/node/claim_memory.h"

namespace tahoma::sim {

enum class AccessKind : std::uint8_t { kRead, kWrite };

struct MemoryAccess {
  AccessKind kind = AccessKind::kRead;
  MemoryPlace local;   // of the asking chip
  MemoryPlace remote;  // may be the same chip
  std::uint64_t bytes = 0;
  friend bool operator==(const MemoryAccess&, const MemoryAccess&) = default;

  const MemoryPlace& source() const { return kind == AccessKind::kRead ? remote : local; }
  const MemoryPlace& target() const { return kind == AccessKind::kRead ? local : remote; }
};

// Solving the rates of more takes too long.
inline constexpr std::size_t kMaxBatchAccesses = 4096;

struct BatchTimes {
  std::vector<VirtualTime> ends;  // of each access; the batch starts at 0
  std::vector<int> hops;          // links on the route of the bytes
  VirtualTime end;                // the last
  std::vector<LinkLoad> loads;    // of all accesses; a link is busy from its first byte to its last
};

// `through` are the chips that routes may cross. kInvalidArgument for an access without bytes, a
// chip outside the torus, or too many accesses; kFailedPrecondition when broken links leave no
// route.
absl::StatusOr<BatchTimes> TimeAccesses(std::span<const MemoryAccess> batch,
                                        const TorusLinks& links, torus::ChipMask through);

// As above in a fabric, with the fabric's numbers of chips and links; `through[u]` are the chips of
// topology domain u that routes may cross. Domains share nothing, so kMaxBatchAccesses bounds each
// domain. Also kPermissionDenied for an access to another domain: chips share memory only within
// their UltraServer (docs/reference/trainium2.md#memory); over EFA there are only messages.
absl::StatusOr<BatchTimes> TimeAccesses(std::span<const MemoryAccess> batch, const Fabric& fabric,
                                        std::span<const torus::ChipMask> through);

// A list of accesses as a text, a line each, and back. kInvalidArgument names the line.
std::string AccessesText(std::span<const MemoryAccess> accesses);
absl::StatusOr<std::vector<MemoryAccess>> ParseAccesses(std::string_view text);

}  // namespace tahoma::sim
