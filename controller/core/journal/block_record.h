// A Capacity Block as an entry of the journal, and as its CapacityBlock carries it.
//
//   const std::string bytes = EncodeBlock(block);
//   TAHOMA_ASSIGN_OR_RETURN(const Block same, DecodeBlock(bytes));
//
// The entry is the whole block: the newest one of a block replaces those before. A controller that
// has lost its journal reads the same bytes from the object's status, so that what was published is
// never lost.
//
// The stored form is described in docs/formats/ledger.md.
//
// Thread safety: pure functions.

#pragma once

#include <absl/status/statusor.h>

#include <optional>
#include <string>
#include <string_view>

#include "controller/reserve/block.h"

namespace tahoma::controller {

std::string EncodeBlock(const Block& block);

// Returns the version as text, by which records can be compared that need not be read: "3.1017".
std::string VersionText(const BlockVersion& version);
std::optional<BlockVersion> ParseVersion(std::string_view text);

// Returns whether the entry is of this kind, not a record of a gang (record.h).
bool IsBlockEntry(std::string_view bytes);

// kDataLoss for bytes that EncodeBlock of this or an earlier version did not write.
absl::StatusOr<Block> DecodeBlock(std::string_view bytes);

}  // namespace tahoma::controller
