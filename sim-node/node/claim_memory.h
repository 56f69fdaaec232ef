// The memory of a claim, chip by chip, out of reach for other claims.
//
//   NodeMemory node(/*host_bytes=*/1 << 30);
//   std::shared_ptr<ClaimMemory> memory = node.Of(token, {{torus::ChipIndex(5), 96ULL << 30}});
//   memory->Write({.chip = torus::ChipIndex(5), .address = 0}, bytes);
//   node.Drop(token);                    // the claim is released: the next one finds zeros
//
// A claim has its own address space on each of its chips: two claims on the cores of a chip cannot
// see each other. The memory begins with zeros, as after the driver's scrub between processes
// (docs/reference/trainium2.md#memory), and lives as long as the claim: a restarted pod finds its
// data.
//
// Scope: bytes and bounds. sim-node/participants decides which chips may reach a claim's memory.
//
// Thread safety: all members may be called from any thread.

#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/mutex.h"
#include "lib/torus/shape.h"
#include "sim-node/emulator/chip/hbm.h"

namespace tahoma::sim {

struct MemoryPlace {
  torus::ChipIndex chip = torus::ChipIndex(0);
  std::uint64_t address = 0;
  friend bool operator==(const MemoryPlace&, const MemoryPlace&) = default;
};

struct MemoryRange {
  MemoryPlace at;
  std::uint64_t bytes = 0;
};

class ClaimMemory {
 public:
  struct Share {
    torus::ChipIndex chip;
    std::uint64_t bytes = 0;  // of the chip's memory
  };

  // No chip twice.
  ClaimMemory(const std::vector<Share>& shares, std::shared_ptr<PageBudget> budget);

  // kPermissionDenied for a chip outside the claim, kOutOfRange beyond the claim's share.
  absl::Status Check(const MemoryRange& range) const;
  // Makes all ranges writable, or none. Fails as Check; kResourceExhausted as PageBudget::Take.
  absl::Status Reserve(std::span<const MemoryRange> ranges);
  // Fails as Reserve; a failed write has written nothing.
  absl::Status Write(const MemoryPlace& at, std::string_view bytes);
  // Errors as Check.
  absl::StatusOr<std::string> Read(const MemoryRange& range) const;

  // 0 for a chip outside the claim. What is written takes whole pages.
  std::uint64_t capacity(torus::ChipIndex chip) const;
  std::uint64_t written_bytes(torus::ChipIndex chip) const;

 private:
  const std::shared_ptr<PageBudget> budget_;
  mutable Mutex mutex_;
  std::map<torus::ChipIndex, Hbm> chips_ ABSL_GUARDED_BY(mutex_);
};

class NodeMemory {
 public:
  explicit NodeMemory(std::uint64_t host_bytes)
      : budget_(std::make_shared<PageBudget>(host_bytes)) {}

  // Returns the claim's memory, made at the first call. After Drop, a holder keeps a memory that no
  // other claim sees.
  std::shared_ptr<ClaimMemory> Of(const std::string& claim,
                                  const std::vector<ClaimMemory::Share>& shares);
  void Drop(const std::string& claim);

  // The host memory in use for all claims.
  std::uint64_t resident_bytes() const { return budget_->used_bytes(); }

 private:
  const std::shared_ptr<PageBudget> budget_;
  Mutex mutex_;
  std::map<std::string, std::shared_ptr<ClaimMemory>> claims_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tahoma::sim
