// Reads the fields of a JSON object from outside, with types and bounds, and keeps the first error.
//
//   Fields fields(json, "applyClaim");
//   claim.uid = fields.String("claimUid", 1, 64);
//   claim.lnc = static_cast<int>(fields.Int("lnc", 1, 2));
//   TAHOMA_RETURN_IF_ERROR(fields.status());     // "applyClaim.lnc is 3; expected 1 to 2"
//
// After an error every reader answers with its fallback, so that code stays straight.
//
// Scope: small objects of known shape. Unknown fields are let pass (a newer peer may send more)
// unless OnlyKnown() is called.
//
// Thread safety: one thread per object; the JSON must outlive it.

#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "lib/base/json_fwd.h"

namespace tahoma::wire {

// Parses untrusted text. kInvalidArgument: "<where> is not JSON" or nested deeper than 32.
absl::StatusOr<Json> ParseJson(std::string_view text, std::string_view where);

class Fields {
 public:
  // `where` begins every message. Anything but an object is an error at once.
  Fields(const Json& object, std::string where);

  // Required; the length in bytes must be within the bounds.
  std::string String(std::string_view key, std::size_t min_bytes, std::size_t max_bytes);
  std::int64_t Int(std::string_view key, std::int64_t min, std::int64_t max);
  bool Bool(std::string_view key);

  // Absent (or null) gives the fallback; present must be right.
  std::string StringOr(std::string_view key, std::size_t max_bytes, std::string fallback);
  std::int64_t IntOr(std::string_view key, std::int64_t min, std::int64_t max,
                     std::int64_t fallback);
  bool BoolOr(std::string_view key, bool fallback);

  // Whether there is a value, of whatever type.
  bool Has(std::string_view key) { return Find(key, /*required=*/false) != nullptr; }

  // The array under `key` with at most `max` elements; an empty array when absent.
  const Json& Array(std::string_view key, std::size_t max);
  // The object under `key`; nullptr when absent.
  const Json* Object(std::string_view key);

  // Records an error unless one is kept already.
  void Fail(absl::Status status);
  // Records an error for a key that none of the readers above was asked for.
  void OnlyKnown();

  const absl::Status& status() const { return status_; }
  // "where.key", to name a nested object.
  std::string Path(std::string_view key) const;

 private:
  const Json* Find(std::string_view key, bool required);

  const Json& object_;
  std::string where_;
  absl::Status status_;
  std::set<std::string, std::less<>> asked_;
};

}  // namespace tahoma::wire
