// The controller's journal, in the store's ledger keyspace.
//
//   RocksJournal journal(*store);
//   TAHOMA_RETURN_IF_ERROR(journal.Write(batch));   // one synced commit
//
// Every record carries its own CRC-32C, to detect damage that RocksDB's checksums miss
// (docs/formats/store.md).
//
// Thread safety: as Journal; other code may use the store at the same time.

#pragma once

#include <absl/status/statusor.h>

#include <string_view>

#include "controller/core/journal/journal.h"
#include "controller/store/store.h"

namespace tahoma::controller {

// The prefix of the journal's keys in Keyspace::kLedger.
inline constexpr std::string_view kJournalPrefix = "j/";
// A stored record. kDataLoss when the key is no record's or the checksum does not match.
struct StoredRecord {
  Sequence sequence = 0;
  std::string_view bytes;  // part of the value
};
absl::StatusOr<StoredRecord> ReadStoredRecord(std::string_view key, std::string_view value);

class RocksJournal final : public Journal {
 public:
  // `store` must outlive the journal.
  explicit RocksJournal(Store& store) : store_(store) {}

  absl::Status Write(const JournalBatch& batch) override;
  absl::Status Load(
      const std::function<absl::Status(Sequence sequence, std::string_view bytes)>& visit) override;

 private:
  Store& store_;
  Sequence newest_ = 0;  // the largest number loaded or written
};

}  // namespace tahoma::controller
