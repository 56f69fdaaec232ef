#include "sim-node/emulator/chip/hbm.h"

#include <algorithm>
#include <cstring>

#include "lib/base/check.h"
#include "lib/base/status.h"

namespace tahoma::sim {
namespace {

// Calls each(page number, offset in it, bytes, offset in the range) along a range.
template <typename Each>
void ForEachPiece(std::uint64_t address, std::uint64_t bytes, const Each& each) {
  for (std::uint64_t done = 0; done < bytes;) {
    const std::uint64_t at = address + done;
    const std::uint64_t inside = at % kHbmPageBytes;
    const std::uint64_t length = std::min(bytes - done, kHbmPageBytes - inside);
    each(at / kHbmPageBytes, inside, length, done);
    done += length;
  }
}

}  // namespace

absl::Status PageBudget::Acquire(std::uint64_t pages) {
  const MutexLock lock(mutex_);
  if (pages > pages_ - used_) {
    return ResourceExhausted(
        "the chips' memories of this node may keep {} bytes on the host; {} are kept and {} more "
        "are asked for",
        pages_ * kHbmPageBytes, used_ * kHbmPageBytes, pages * kHbmPageBytes);
  }
  used_ += pages;
  return absl::OkStatus();
}

void PageBudget::GiveBack(std::uint64_t pages) {
  const MutexLock lock(mutex_);
  TAHOMA_CHECK(pages <= used_);
  used_ -= pages;
}

std::uint64_t PageBudget::used_bytes() const {
  const MutexLock lock(mutex_);
  return used_ * kHbmPageBytes;
}

Hbm::~Hbm() { budget_.GiveBack(pages_.size()); }

absl::Status Hbm::Check(std::uint64_t address, std::uint64_t bytes) const {
  if (bytes <= capacity_ && address <= capacity_ - bytes) return absl::OkStatus();
  return OutOfRange("{} bytes from {} are not in a memory of {}", bytes, address, capacity_);
}

void Hbm::AddMissing(std::uint64_t address, std::uint64_t bytes,
                     std::set<std::uint64_t>& pages) const {
  ForEachPiece(address, bytes, [&](std::uint64_t number, auto, auto, auto) {
    if (!pages_.contains(number)) pages.insert(number);
  });
}

void Hbm::AddPages(const std::set<std::uint64_t>& pages) {
  for (const std::uint64_t number : pages) {
    const bool added = pages_.try_emplace(number, std::make_unique<Page>()).second;
    TAHOMA_CHECK(added);
  }
}

absl::Status Hbm::Write(std::uint64_t address, std::string_view bytes) {
  TAHOMA_RETURN_IF_ERROR(Check(address, bytes.size()));
  std::set<std::uint64_t> missing;
  AddMissing(address, bytes.size(), missing);
  TAHOMA_RETURN_IF_ERROR(budget_.Acquire(missing.size()));
  AddPages(missing);
  ForEachPiece(
      address, bytes.size(),
      [&](std::uint64_t number, std::uint64_t inside, std::uint64_t length, std::uint64_t done) {
        std::memcpy(pages_.at(number)->data() + inside, bytes.data() + done, length);
      });
  return absl::OkStatus();
}

absl::StatusOr<std::string> Hbm::Read(std::uint64_t address, std::uint64_t bytes) const {
  TAHOMA_RETURN_IF_ERROR(Check(address, bytes));
  std::string read(bytes, '\0');
  ForEachPiece(
      address, bytes,
      [&](std::uint64_t number, std::uint64_t inside, std::uint64_t length, std::uint64_t done) {
        const auto page = pages_.find(number);
        if (page == pages_.end()) return;
        std::memcpy(read.data() + done, page->second->data() + inside, length);
      });
  return read;
}

}  // namespace tahoma::sim
