// Request bodies: from JSON, YAML or the protobuf of built-in kinds to JSON values.
//
//   TAHOMA_ASSIGN_OR_RETURN(DecodedBody body, DecodeBody(request));
//   body.object;  body.duplicates;
//
// Thread safety: pure functions.

#pragma once

#include <absl/status/statusor.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/json_fwd.h"
#include "lib/rest/message.h"

namespace tahoma::controller::apiserver {

// The body limit of a Kubernetes API server.
inline constexpr std::size_t kBodyBytesMax = 3UL << 20U;

// The media type of server-side apply.
inline constexpr std::string_view kApplyType = "application/apply-patch+yaml";

struct DecodedBody {
  std::shared_ptr<Json> object;
  std::vector<std::string> duplicates;  // fields that occur twice (JSON only)
};

// Returns the bytes of memory that a body takes while it is handled, including its decoded values.
// For text, the separators give the number of values.
std::size_t DecodedBytes(const rest::Request& request);

// Decodes by Content-Type; without one as JSON. 413, 415, or 400 with the parser's message.
absl::StatusOr<DecodedBody> DecodeBody(const rest::Request& request);

// Returns the JSON body of a patch as a value. 400 when the body is not JSON.
absl::StatusOr<std::shared_ptr<const Json>> DecodePatch(const rest::Request& request);
// Returns the fields that occur twice in a patch.
std::vector<std::string> DuplicatesInPatch(const rest::Request& request);
// Returns a request's body as text, for messages.
std::string BodyText(const rest::Request& request);

// Parse a JSON or YAML document whatever the Content-Type is; 400 for other text.
absl::StatusOr<Json> ParseJsonText(std::string_view text);
absl::StatusOr<Json> ParseYamlText(std::string_view text);

// Returns "application/json" for "Application/JSON; charset=utf-8".
std::string MediaType(std::string_view content_type);

}  // namespace tahoma::controller::apiserver
