// A Journal in memory, for tests: survives the core that writes it, as a disk would.
//
//   MemoryJournal journal;
//   journal.FailWrite(3);      // the third write from now fails and leaves nothing
//
// Thread safety: one thread at a time.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "controller/core/journal/journal.h"
#include "controller/core/journal/usage_record.h"
#include "lib/base/status.h"

namespace tahoma::controller {

class MemoryJournal final : public Journal {
 public:
  absl::Status Write(const JournalBatch& batch) override {
    if (batch.empty()) return absl::OkStatus();
    ++writes_;
    if (fail_in_ > 0 && --fail_in_ == 0) return Internal("the disk is broken");
    for (const JournalEntry& entry : batch.put) entries_[entry.sequence] = entry.bytes;
    for (const Sequence sequence : batch.drop) entries_.erase(sequence);
    return absl::OkStatus();
  }

  absl::Status Load(const std::function<absl::Status(Sequence, std::string_view)>& visit) override {
    for (const auto& [sequence, bytes] : entries_) {
      if (absl::Status status = visit(sequence, bytes); !status.ok()) return status;
    }
    return absl::OkStatus();
  }

  void FailWrite(int nth) { fail_in_ = nth; }
  void Lose() { entries_.clear(); }
  // Counts the entries of gangs and Capacity Blocks: sums of usage stay for ever.
  std::size_t size() const {
    return static_cast<std::size_t>(std::ranges::count_if(
        entries_, [](const auto& entry) { return !IsUsageEntry(entry.second); }));
  }
  int writes() const { return writes_; }

 private:
  std::map<Sequence, std::string> entries_;
  int writes_ = 0;
  int fail_in_ = 0;
};

}  // namespace tahoma::controller
