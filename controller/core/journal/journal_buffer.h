// The entries that one step of the core adds to the journal and drops from it, under one count.
//
//   JournalBuffer buffer;
//   const Sequence run = buffer.Add(EncodeRecord(prepared));
//   buffer.Drop(run);
//   journal.Write(buffer.DrainBatch());
//
// Scope: numbering. Gangs and Capacity Blocks write into the same journal.
//
// Thread safety: belongs to one thread.

#pragma once

#include <absl/container/flat_hash_set.h>
#include <absl/status/status.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "controller/core/journal/journal.h"
#include "lib/base/status.h"

namespace tahoma::controller {

class JournalBuffer {
 public:
  // Takes the number of an entry that the journal has. They come in order.
  absl::Status Restore(Sequence sequence) {
    if (sequence <= last_) return DataLoss("journal entry {} after entry {}", sequence, last_);
    last_ = sequence;
    return absl::OkStatus();
  }

  // Returns the number of a step that leaves no entry.
  Sequence Skip() { return ++last_; }
  Sequence Add(std::string bytes) {
    batch_.put.push_back({++last_, std::move(bytes)});
    ++records_;
    return last_;
  }
  void Drop(Sequence sequence) { batch_.drop.push_back(sequence); }

  // Returns what is to be written. An entry that is obsolete already is not written at all.
  JournalBatch DrainBatch() {
    JournalBatch batch = std::exchange(batch_, {});
    if (batch.put.empty() || batch.drop.empty()) return batch;
    const absl::flat_hash_set<Sequence> dropped(batch.drop.begin(), batch.drop.end());
    std::erase_if(batch.put,
                  [&](const JournalEntry& entry) { return dropped.contains(entry.sequence); });
    return batch;
  }

  // Counts the entries, also those that were obsolete before they were written.
  std::uint64_t records() const { return records_; }

 private:
  Sequence last_ = 0;
  JournalBatch batch_;
  std::uint64_t records_ = 0;
};

}  // namespace tahoma::controller
