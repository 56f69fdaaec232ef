// A chip's memory: addresses from 0, zero until written, kept in pages that exist once they are
// touched.
//
//   PageBudget budget(1 << 30);                       // of this process, for all its chips
//   Hbm hbm(96ULL << 30, budget);
//   hbm.Write(address, bytes);
//   hbm.Read(address, 4096);
//
// An emulated instance has 1.5 TiB and its host a few GiB: the budget bounds the bytes that all
// chips together really keep, and a write beyond it is refused before it changes anything.
//
// Scope: bytes. claim_memory.h has their owners, dma.h the cost of moving them.
//
// Thread safety: Hbm none; PageBudget may be used from any thread.

#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/status/statusor.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "lib/base/mutex.h"

namespace tahoma::sim {

inline constexpr std::uint64_t kHbmPageBytes = std::uint64_t{64} << 10U;

// The budget of host memory for pages.
class PageBudget {
 public:
  // Rounded down to whole pages.
  explicit PageBudget(std::uint64_t bytes) : pages_(bytes / kHbmPageBytes) {}

  // All or none. kResourceExhausted says how much is kept and how much more was asked for.
  absl::Status Acquire(std::uint64_t pages);
  void GiveBack(std::uint64_t pages);
  std::uint64_t used_bytes() const;

 private:
  const std::uint64_t pages_;
  mutable Mutex mutex_;
  std::uint64_t used_ ABSL_GUARDED_BY(mutex_) = 0;
};

class Hbm {
 public:
  // `budget` must outlive the object, which gives its pages back at its end.
  Hbm(std::uint64_t capacity, PageBudget& budget) : capacity_(capacity), budget_(budget) {}
  ~Hbm();
  Hbm(const Hbm&) = delete;
  Hbm& operator=(const Hbm&) = delete;

  std::uint64_t capacity() const { return capacity_; }
  std::uint64_t resident_bytes() const { return pages_.size() * kHbmPageBytes; }

  // kOutOfRange unless [address, address + bytes) lies in the memory.
  absl::Status Check(std::uint64_t address, std::uint64_t bytes) const;

  // kOutOfRange as Check; kResourceExhausted as PageBudget::Take.
  absl::Status Write(std::uint64_t address, std::string_view bytes);
  // kOutOfRange as Check. The result is as long as asked for: the caller bounds `bytes`.
  absl::StatusOr<std::string> Read(std::uint64_t address, std::uint64_t bytes) const;

  // Adds the numbers of the pages that a write there would add.
  void AddMissing(std::uint64_t address, std::uint64_t bytes, std::set<std::uint64_t>& pages) const;
  // Adds pages that the caller has taken from the budget.
  void AddPages(const std::set<std::uint64_t>& pages);

 private:
  using Page = std::array<char, kHbmPageBytes>;

  const std::uint64_t capacity_;
  PageBudget& budget_;
  absl::flat_hash_map<std::uint64_t, std::unique_ptr<Page>> pages_;  // by number
};

}  // namespace tahoma::sim
