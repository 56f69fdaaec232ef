#include "controller/store/rocks_journal.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdint>
#include <string>
#include <utility>

#include "controller/core/journal/entry_form.h"
#include "lib/base/check.h"
#include "lib/base/status.h"

namespace tahoma::controller {
namespace {

constexpr std::size_t kChecksumBytes = 4;

std::string KeyOf(Sequence sequence) { return fmt::format("{}{:016x}", kJournalPrefix, sequence); }

// Returns the checksum that stands before an entry.
std::string SealOf(std::string_view bytes) {
  const std::uint32_t checksum = Crc32c(bytes);
  std::string seal;
  for (unsigned shift = 0; shift < 8 * kChecksumBytes; shift += 8) {
    seal += static_cast<char>((checksum >> shift) & 0xffU);
  }
  return seal;
}

absl::StatusOr<Sequence> SequenceOf(std::string_view key) {
  Sequence sequence = 0;
  const std::string_view digits = key.substr(kJournalPrefix.size());
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), sequence, 16);
  if (error != std::errc() || end != digits.data() + digits.size() || key != KeyOf(sequence)) {
    return DataLoss("the ledger holds the key '{}', which is not a journal record's", key);
  }
  return sequence;
}

}  // namespace

absl::StatusOr<StoredRecord> ReadStoredRecord(std::string_view key, std::string_view value) {
  TAHOMA_ASSIGN_OR_RETURN(const Sequence sequence, SequenceOf(key));
  if (value.size() < kChecksumBytes ||
      SealOf(value.substr(kChecksumBytes)) != value.substr(0, kChecksumBytes)) {
    return DataLoss("the checksum of journal record {} does not fit", sequence);
  }
  return StoredRecord{sequence, value.substr(kChecksumBytes)};
}

absl::Status RocksJournal::Write(const JournalBatch& batch) {
  if (batch.empty()) return absl::OkStatus();
  WriteBatch write;
  Sequence newest = newest_;
  for (const JournalEntry& entry : batch.put) {
    // A number that is there already would replace another gang's decision.
    TAHOMA_CHECK(entry.sequence > newest);
    newest = entry.sequence;
    write.Put(Keyspace::kLedger, KeyOf(entry.sequence), SealOf(entry.bytes) + entry.bytes);
  }
  for (const Sequence sequence : batch.drop) write.Delete(Keyspace::kLedger, KeyOf(sequence));
  TAHOMA_RETURN_IF_ERROR(store_.Commit(std::move(write)));
  newest_ = newest;
  return absl::OkStatus();
}

absl::Status RocksJournal::Load(
    const std::function<absl::Status(Sequence sequence, std::string_view bytes)>& visit) {
  absl::Status result;
  newest_ = 0;
  const absl::Status scanned = store_.Scan(
      Keyspace::kLedger, kJournalPrefix, "", [&](std::string_view key, std::string_view value) {
        const absl::StatusOr<StoredRecord> record = ReadStoredRecord(key, value);
        result = record.status();
        if (!record.ok()) return false;
        newest_ = record->sequence;
        result = visit(record->sequence, record->bytes);
        return result.ok();
      });
  return scanned.ok() ? result : scanned;
}

}  // namespace tahoma::controller
