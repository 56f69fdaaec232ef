// One participant's share of a collective whose chips are spread over processes.
//
//   Participant self(fabric, pods, /*rank=*/1, peer);
//   auto result = self.Run({.request = {.bytes = 1 << 20}, .check = true}, views);
//
// A participant is a pod: it holds the buffers of its own chips, sends what leaves them and waits
// for what enters them. All compute the same schedule and the same virtual times for themselves;
// the times travel with the data only to prove it. An operation opens with an exchange in which
// everybody tells what was asked of it and what it knows of the links, and closes with one that
// tells how many elements were wrong. So host timing changes nothing: not the data, not a
// picosecond.
//
// Thread safety: one thread per Participant.

#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "sim-node/emulator/collective/domains/hierarchical.h"
#include "sim-node/emulator/collective/plan/link_loads.h"
#include "sim-node/emulator/collective/schedule/parts.h"
#include "sim-node/emulator/engine/virtual_time.h"
#include "sim-node/emulator/link/fabric.h"
#include "sim-node/node/claim_memory.h"
#include "sim-node/participants/link_views.h"
#include "sim-node/participants/remote_memory.h"
#include "sim-node/participants/test_pattern.h"

namespace tahoma::sim {

// Data of one step travels in messages of at most this size.
inline constexpr std::size_t kChunkBytes = std::size_t{1} << 20U;
// The most bytes that one participant keeps in buffers when data really moves.
inline constexpr std::uint64_t kMaxBufferBytes = std::uint64_t{1} << 30U;
// The most repetitions of one operation.
inline constexpr int kMaxRepeats = 1'000'000;
// Longest buffer of a rank: the HBM of a chip would not hold more ranks' worth.
inline constexpr std::uint64_t kMaxRequestBytes = std::uint64_t{8} << 30U;

// A communicator's clock ends after 53 days, half of what its 63 bits hold.
inline constexpr VirtualTime kLastTime{VirtualDuration(std::int64_t{1} << 62U)};

struct RunSpec {
  Request request;
  ReduceOp op = ReduceOp::kSum;
  int warmup = 0;
  int iterations = 1;
  bool check = false;  // move real data once and compare it
  std::uint64_t seed = 0;
  bool ones = false;  // what is checked is ones everywhere, not random
  Division division{};
  // "all_reduce of 1024 bytes fp32 sum, 5 + 20 times, checked with seed 7".
  std::string ToString() const;
};

struct Opening {
  std::uint64_t operation = 0;  // number within the communicator, from 0
  std::string spec;             // ToString(); all must ask for the same
  VirtualTime ready;
  std::vector<NodeLinks> views;
};
struct Chunk {
  std::uint64_t operation = 0;
  std::uint32_t step = 0;
  VirtualTime departure;
  VirtualTime arrival;  // of the last byte of what this participant sends to that one in the step
  std::string payload;
};
struct Closing {
  std::uint64_t operation = 0;
  std::uint64_t wrong_elements = 0;
};
using PeerMessage = std::variant<Opening, Chunk, Closing>;

// The connection to the other participants. Messages between two of them keep their order.
class Peer {
 public:
  virtual ~Peer() = default;
  virtual absl::Status Send(int rank, PeerMessage message) = 0;
  // Waits, within a bound that the implementation sets, for the next message of that participant.
  // kAborted when it is gone, kDeadlineExceeded when nothing came.
  virtual absl::StatusOr<PeerMessage> Receive(int rank) = 0;
};

struct RunResult {
  Algorithm algorithm = Algorithm::kMesh;  // of the first part
  VirtualDuration time{};                  // of one operation: until the last part has ended
  VirtualTime end;                         // the communicator's clock after all of them
  int ranks = 0;                           // logical cores
  int chips = 0;
  std::uint64_t wrong_elements = 0;  // over all participants; 0 unless checked
  // What the links, NICs and uplinks need at least, as they are; nullopt where no bound is known.
  std::optional<VirtualDuration> bound{};
  // The loads of one operation on the links that this participant's chips send on, by their ids in
  // the topology domain.
  std::vector<LinkLoad> loads{};
};

// The most accesses that one participant lists in an operation.
inline constexpr std::size_t kMaxAccesses = 256;
// The most bytes that leave one participant when bytes really move.
inline constexpr std::uint64_t kMaxMovedBytes = std::uint64_t{256} << 20U;

struct AccessSpec {
  std::vector<MemoryAccess> accesses{};  // by this participant's chips
  bool move = true;                      // the bytes; otherwise only time passes
};

struct AccessResult {
  std::vector<VirtualDuration> times;  // of this participant's accesses, from the start
  std::vector<int> hops;               // of the bytes of each
  VirtualDuration time{};              // of all participants' accesses
  VirtualTime end;                     // the communicator's clock after it
  std::vector<LinkLoad> loads{};       // on the links that this participant's chips send on
};

class Participant {
 public:
  // `pods[r]` are the chips of participant r by their numbers in the fabric; communicator ranks are
  // numbered through them. All links of `fabric` are healthy. `peer` must outlive the object.
  Participant(Fabric fabric, std::vector<std::vector<Member>> pods, int rank, Peer& peer);
  // The same in one torus.
  Participant(TorusLinks links, std::vector<std::vector<Member>> pods, int rank, Peer& peer);

  // `views` is what this participant's node knows of every node's links. All participants must call
  // Run in the same order. kInvalidArgument when they ask for different things or the request is
  // impossible; kResourceExhausted when checked buffers of a participant would pass
  // kMaxBufferBytes; kOutOfRange when it would end after kLastTime; kFailedPrecondition when links
  // that are down cut chips off: all participants get these alike and may go on with the next
  // operation. kAborted when a chip is dead, alike too; otherwise what Peer says, or kInternal for
  // messages out of order: nothing more can then run.
  absl::StatusOr<RunResult> Run(const RunSpec& spec, std::vector<NodeLinks> views);

  // Reads and writes chips' memories, those of other participants too; all listed accesses happen
  // at once (remote_memory.h). Chips count as in the fabric; `memory` is that of this participant's
  // claim, which counts them as in their topology domain. All participants must call Access in the
  // same order. To all alike, with nothing changed: kInvalidArgument for too many or empty
  // accesses, or when they ask for different things; kPermissionDenied for a chip that is not the
  // asker's, not of the gang or not in the asker's topology domain; kOutOfRange beyond a memory or
  // kLastTime; kResourceExhausted when a host would keep too much; kFailedPrecondition and the rest
  // as Run.
  absl::StatusOr<AccessResult> Access(const AccessSpec& spec, ClaimMemory& memory,
                                      std::vector<NodeLinks> views);

 private:
  struct Buffers;
  // A part and its plan. Chunks of its first scheduled step are of step `first_step`.
  struct PlannedPart {
    Part part;
    Plan plan;
    std::size_t first_step = 0;
    std::uint64_t seed = 0;
  };
  // The accesses of all participants together.
  struct Batch {
    std::vector<MemoryAccess> accesses;  // in order of rank
    std::vector<int> asker;              // of each
    BatchTimes times;
  };
  absl::Status Open(const std::string& spec, std::vector<NodeLinks>& views);
  // kOutOfRange when the clock would pass kLastTime.
  absl::Status CheckClock(VirtualDuration time, int times) const;
  absl::StatusOr<Chunk> ReceiveChunk(int rank);
  // Sends `text` to all, and gets theirs, by rank; in a step of its own.
  absl::StatusOr<std::vector<std::string>> Exchange(std::uint32_t step, const std::string& text);
  absl::StatusOr<Batch> Gather(const AccessSpec& spec);
  absl::Status Agree(const Batch& batch, const AccessSpec& spec, ClaimMemory& memory);
  absl::Status CheckBatch(const Batch& batch) const;
  // Returns for each topology domain the chips that accesses may cross: the gang's own where they
  // are joined.
  std::vector<torus::ChipMask> CrossedChips(const Fabric& fabric) const;
  absl::Status MoveMemory(const Batch& batch, ClaimMemory& memory);
  absl::StatusOr<std::string> ReceiveMemory(int rank, std::uint64_t bytes, VirtualTime arrival);
  // All parts with their plans and the times that they have side by side.
  absl::StatusOr<std::vector<PlannedPart>> PlanParts(const RunSpec& spec, std::vector<Part> parts,
                                                     const LinkOutlook& outlook) const;
  static std::optional<VirtualDuration> BoundOf(const std::vector<PlannedPart>& planned,
                                                const Fabric& fabric);
  absl::StatusOr<std::uint64_t> MoveData(const RunSpec& spec, const PlannedPart& planned);
  absl::Status RunStep(const PlannedPart& planned, std::size_t step, const RunSpec& spec,
                       Buffers& buffers);
  absl::Status SendStep(const PlannedPart& planned, std::size_t step, const Buffers& buffers);
  absl::StatusOr<std::string> ReceiveFrom(int rank, const PlannedPart& planned, std::size_t index,
                                          std::uint64_t bytes, VirtualTime arrival);
  // Bytes of buffers that the pod with the most of them holds for a checked part; each chip keeps
  // `relayed` bytes for others.
  std::uint64_t FullestPod(const Part& part, std::uint64_t relayed) const;
  absl::StatusOr<std::uint64_t> Close(std::uint64_t wrong);
  // Returns the loads of links that this participant's chips send on, by their ids in the chips'
  // topology domain.
  std::vector<LinkLoad> Own(const std::vector<LinkLoad>& loads) const;
  int OwnerOf(torus::ChipIndex chip) const {
    return owner_[static_cast<std::size_t>(chip.value())];
  }

  const Fabric healthy_;
  const std::vector<std::vector<Member>> pods_;
  const int rank_;
  Peer& peer_;
  std::vector<Member> members_;  // of all participants
  std::vector<int> owner_;       // participant by chip; -1 = nobody
  int total_ranks_ = 0;
  std::uint64_t next_operation_ = 0;
  std::uint64_t operation_ = 0;  // the current one
  VirtualTime now_;
};

}  // namespace tahoma::sim
