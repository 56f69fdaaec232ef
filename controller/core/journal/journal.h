// Keeps the controller's decisions before anything acts on them.
//
//   JournalBatch batch;
//   batch.put.push_back({.sequence = 17, .bytes = EncodeRecord(prepared)});
//   batch.drop = {3, 4};                                  // records of a gang that is gone
//   TAHOMA_RETURN_IF_ERROR(journal.Write(batch));         // on disk now, all of it or none
//
// An entry is opaque bytes (docs/formats/ledger.md) under a sequence number that its writer
// chooses, always larger than every number that is in the journal. Entries are dropped one by one
// in the batch that makes them obsolete; the journal is therefore bounded by the gangs that are
// alive, and needs neither a snapshot nor a compaction of its own.
//
// Scope: durability. Only record.h knows what the bytes mean.
//
// Thread safety: one thread at a time; the controller's core thread is the only user.

#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace tahoma::controller {

// Position in the journal. 0 is never used.
using Sequence = std::uint64_t;

struct JournalEntry {
  Sequence sequence = 0;
  std::string bytes;
};

struct JournalBatch {
  std::vector<JournalEntry> put;  // ascending by sequence
  std::vector<Sequence> drop;     // unknown numbers are ignored

  bool empty() const { return put.empty() && drop.empty(); }
};

class Journal {
 public:
  virtual ~Journal() = default;

  // Makes the whole batch durable (synced) before it returns OK. After a failure the batch may or
  // may not be there, but never a part of it; the caller must not go on, and reads again with
  // Load() after a restart. An empty batch is OK and writes nothing.
  virtual absl::Status Write(const JournalBatch& batch) = 0;

  // Gives every entry to `visit` in ascending order of sequence; stops at its first failure and
  // returns it. The view of the bytes is valid during the call only. kDataLoss when the medium is
  // damaged.
  virtual absl::Status Load(
      const std::function<absl::Status(Sequence sequence, std::string_view bytes)>& visit) = 0;
};

}  // namespace tahoma::controller
