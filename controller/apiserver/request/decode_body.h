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

// Returns the bytes of memory that a body takes while it is worked on, with the values that it may
// become; of a text, by the signs that separate values.
std::size_t DecodedBytes(const rest::Request& request);

// Decodes by Content-Type; without one as JSON. 413, 415, or 400 with the parser's words.
absl::StatusOr<DecodedBody> DecodeBody(const rest::Request& request);

// The JSON body of a patch, as a value. 400 when it is none.
absl::StatusOr<std::shared_ptr<const Json>> DecodePatch(const rest::Request& request);
// The fields that occur twice in it.
std::vector<std::string> DuplicatesInPatch(const rest::Request& request);
// Returns a request's body as text, for messages about it.
std::string BodyText(const rest::Request& request);

// One JSON or YAML document whatever the Content-Type says; 400 when it is neither.
absl::StatusOr<Json> ParseJsonText(std::string_view text);
absl::StatusOr<Json> ParseYamlText(std::string_view text);

// "application/json" of "Application/JSON; charset=utf-8".
std::string MediaType(std::string_view content_type);

}  // namespace tahoma::controller::apiserver
