#include "sim-node/node/claim_memory.h"

#include <set>
#include <utility>

#include "lib/base/check.h"
#include "lib/base/status.h"

namespace tahoma::sim {

ClaimMemory::ClaimMemory(const std::vector<Share>& shares, std::shared_ptr<PageBudget> budget)
    : budget_(std::move(budget)) {
  for (const Share& share : shares) {
    TAHOMA_CHECK(chips_.try_emplace(share.chip, share.bytes, *budget_).second);
  }
}

absl::Status ClaimMemory::Check(const MemoryRange& range) const {
  const MutexLock lock(mutex_);
  const auto chip = chips_.find(range.at.chip);
  if (chip == chips_.end()) {
    return PermissionDenied("the claim holds no memory of chip {}", range.at.chip.value());
  }
  return Annotate(chip->second.Check(range.at.address, range.bytes),
                  fmt::format("chip {}", range.at.chip.value()));
}

absl::Status ClaimMemory::Reserve(std::span<const MemoryRange> ranges) {
  for (const MemoryRange& range : ranges) TAHOMA_RETURN_IF_ERROR(Check(range));
  const MutexLock lock(mutex_);
  std::map<torus::ChipIndex, std::set<std::uint64_t>> missing;
  for (const MemoryRange& range : ranges) {
    chips_.at(range.at.chip).AddMissing(range.at.address, range.bytes, missing[range.at.chip]);
  }
  std::uint64_t pages = 0;
  for (const auto& [chip, numbers] : missing) pages += numbers.size();
  TAHOMA_RETURN_IF_ERROR(budget_->Acquire(pages));
  for (const auto& [chip, numbers] : missing) chips_.at(chip).AddPages(numbers);
  return absl::OkStatus();
}

absl::Status ClaimMemory::Write(const MemoryPlace& at, std::string_view bytes) {
  TAHOMA_RETURN_IF_ERROR(Check({.at = at, .bytes = bytes.size()}));
  const MutexLock lock(mutex_);
  return chips_.at(at.chip).Write(at.address, bytes);
}

absl::StatusOr<std::string> ClaimMemory::Read(const MemoryRange& range) const {
  TAHOMA_RETURN_IF_ERROR(Check(range));
  const MutexLock lock(mutex_);
  return chips_.at(range.at.chip).Read(range.at.address, range.bytes);
}

std::uint64_t ClaimMemory::capacity(torus::ChipIndex chip) const {
  const MutexLock lock(mutex_);
  const auto found = chips_.find(chip);
  return found == chips_.end() ? 0 : found->second.capacity();
}

std::uint64_t ClaimMemory::written_bytes(torus::ChipIndex chip) const {
  const MutexLock lock(mutex_);
  const auto found = chips_.find(chip);
  return found == chips_.end() ? 0 : found->second.resident_bytes();
}

std::shared_ptr<ClaimMemory> NodeMemory::Of(const std::string& claim,
                                            const std::vector<ClaimMemory::Share>& shares) {
  const MutexLock lock(mutex_);
  std::shared_ptr<ClaimMemory>& memory = claims_[claim];
  if (memory == nullptr) memory = std::make_shared<ClaimMemory>(shares, budget_);
  return memory;
}

void NodeMemory::Drop(const std::string& claim) {
  const MutexLock lock(mutex_);
  claims_.erase(claim);
}

}  // namespace tahoma::sim
