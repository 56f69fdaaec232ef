// Reads the fields of a JSON object from outside, with types and bounds, and keeps the first error.
//
//   Fields fields(json, "applyClaim");
//   claim.uid = fields.String("claimUid", 1, 64);
//   claim.lnc = static_cast<int>(fields.Int("lnc", 1, 2));
//   TAHOMA_RETURN_IF_ERROR(fields.status());     // "applyClaim.lnc is 3; expected 1 to 2"
//
// A reader that fails returns a fallback, so the caller checks status() once, at the end.
//
// Scope: small objects of known shape. Unknown fields are ignored (a newer peer may send more)
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

// Parses untrusted text. kInvalidArgument when it is not valid JSON, or nested deeper than 32
// levels.
absl::StatusOr<Json> ReadJson(std::string_view text, std::string_view where);

class Fields {
 public:
  // `where` begins every error message. A value that is not an object is an error at once.
  Fields(const Json& object, std::string where);

  // Return a required field. A string's length in bytes, or a number, must be within the bounds.
  std::string String(std::string_view key, std::size_t min_bytes, std::size_t max_bytes);
  std::int64_t Int(std::string_view key, std::int64_t min, std::int64_t max);
  bool Bool(std::string_view key);

  // Return `fallback` when the field is absent or null; a value that is present must be valid.
  std::string StringOr(std::string_view key, std::size_t max_bytes, std::string fallback);
  std::int64_t IntOr(std::string_view key, std::int64_t min, std::int64_t max,
                     std::int64_t fallback);
  bool BoolOr(std::string_view key, bool fallback);

  // Whether the field has a value of any type but null.
  bool Has(std::string_view key) { return Find(key, /*required=*/false) != nullptr; }

  // Returns the array under `key`, of at most `max` elements; an empty one when it is absent.
  const Json& Array(std::string_view key, std::size_t max);
  // Returns the object under `key`; nullptr when it is absent.
  const Json* Object(std::string_view key);

  // Records an error unless there is one already.
  void Fail(absl::Status status);
  // Records an error when the object has a key that none of the readers above was asked for.
  void OnlyKnown();

  const absl::Status& status() const { return status_; }
  // Returns "where.key", which names a field or a nested object in messages.
  std::string Path(std::string_view key) const;

 private:
  const Json* Find(std::string_view key, bool required);

  const Json& object_;
  std::string where_;
  absl::Status status_;
  std::set<std::string, std::less<>> asked_;
};

}  // namespace tahoma::wire
