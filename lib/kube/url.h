// Paths and queries of URLs.
//
//   "/api/v1/namespaces/" + PercentEncode("a b") + "?" + EncodeQuery({{"labelSelector", "x=y"}});
//   *ParseTarget("/api/v1/pods?limit=5&watch=");
//       // {"/api/v1/pods", {{"limit", "5"}, {"watch", ""}}}
//
// Thread safety: pure functions.

#pragma once

#include <absl/status/statusor.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tahoma::kube {

// The parameters in their order; a key may come more than once.
using Query = std::vector<std::pair<std::string, std::string>>;

// Returns the first value of that key.
std::optional<std::string_view> Find(const Query& query, std::string_view key);

// Encodes everything but unreserved characters (RFC 3986) as %XX: for one segment or one query
// value.
std::string PercentEncode(std::string_view text);

// Decodes %XX. kInvalidArgument for a broken escape.
absl::StatusOr<std::string> PercentDecode(std::string_view text);

// Returns "a=b&c=d", without "?"; "" for an empty query.
std::string EncodeQuery(const Query& query);

struct Target {
  std::string path;  // not decoded: a segment may hold %2F
  Query query;       // decoded, "+" as space
};

// Splits a request's target. kInvalidArgument for a broken escape in the query or a path that does
// not begin with "/".
absl::StatusOr<Target> ParseTarget(std::string_view target);

// Returns the decoded segments of a path; kInvalidArgument for broken escapes, empty or dot
// segments, and escapes that hide a slash or a control character. A trailing slash is allowed.
absl::StatusOr<std::vector<std::string>> SplitPath(std::string_view path);

}  // namespace tahoma::kube
