// The form of a journal entry: a header with a checksum, then one value in CBOR.
//
//   const std::string bytes = EncodeEntry(EntryType::kGangBound, body);
//   TAHOMA_RETURN_IF_ERROR(DecodeEntry(bytes, [&](EntryType type, const Json& read) {
//     return Restore(type, read);
//   }));
//
// docs/formats/ledger.md describes it. What the bodies are: record.h, block_record.h,
// usage_record.h.
//
// Thread safety: pure functions.

#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "lib/base/json_fwd.h"

namespace tahoma::controller {

enum class EntryType : char {
  kGangPrepared = 1,
  kGangAllocated = 2,
  kGangBound = 3,
  kClaimReleased = 4,
  kGangUndoing = 5,
  kBlockChanged = 6,
  kMemberReplaced = 7,
  kMemberAdded = 8,
  kUsageCounted = 9,
  kQueueUsed = 10,
};

std::string EncodeEntry(EntryType type, const Json& body);

// Calls `read` with what the entry holds and returns its answer. kDataLoss for bytes that
// EncodeEntry of this or an earlier version did not write, for a checksum that does not match, and
// when `read` throws because the body is not what it expects; the message says which.
absl::Status DecodeEntry(std::string_view bytes,
                         const std::function<absl::Status(EntryType, const Json&)>& read);

// An entry whose header and checksum are in order.
struct EntryView {
  EntryType type = EntryType::kGangPrepared;
  std::string_view body;  // CBOR, as part of the entry's bytes
};
// For who reads the body itself (cbor_reader.h). kDataLoss as of DecodeEntry.
absl::StatusOr<EntryView> OpenEntry(std::string_view bytes);
// Returns kDataLoss for an entry whose body is not what it should be.
absl::Status BadBody(EntryType type, std::string_view why);

// Returns the CRC-32C (Castagnoli), as RFC 3720 appendix B.4 defines it.
std::uint32_t Crc32c(std::string_view bytes);

}  // namespace tahoma::controller
