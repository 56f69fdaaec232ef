// Kubernetes' protobuf: objects of the built-in kinds as bytes, to and from JSON values.
//
//   TAHOMA_ASSIGN_OR_RETURN(Json pod, DecodeProtobuf(body));       // {"apiVersion":"v1","kind":…}
//   TAHOMA_ASSIGN_OR_RETURN(std::string bytes, EncodeProtobuf(pod));
//
// A body is "k8s\0" and a runtime.Unknown, which names the kind and holds the kind's message. Bytes
// and JSON are the same as those of Go's types: a value that went through protobuf equals the value
// sent as JSON.
//
// Scope: the kinds of controller/apiserver/protobuf/*.proto. Custom kinds have no protobuf.
//
// Thread safety: pure functions.

#pragma once

#include <absl/status/statusor.h>

#include <string>
#include <string_view>
#include <vector>

#include "lib/base/json_fwd.h"

namespace tahoma::controller::apiserver {

inline constexpr std::string_view kProtobufType = "application/vnd.kubernetes.protobuf";

// The deepest JSON nesting of a body, and the most JSON values of a body: a field of two bytes may
// become an object of a hundred values.
inline constexpr int kProtobufNestingMax = 100;
inline constexpr int kProtobufValuesMax = 500'000;

// Returns whether objects of the kind have a message.
bool HasProtobuf(std::string_view api_version, std::string_view kind);

// Returns the object in a body. kUnimplemented for a kind without a message; kInvalidArgument names
// the wrong field: damaged bytes, text that is not UTF-8, bad JSON inside. Skips fields that the
// kind does not have.
absl::StatusOr<Json> DecodeProtobuf(std::string_view bytes);

// Returns the whole body. kUnimplemented for a kind without a message; kInvalidArgument names the
// field whose value has the wrong type. Leaves out fields without a number.
absl::StatusOr<std::string> EncodeProtobuf(const Json& object);

// Returns the kind's message alone, as in lists.
absl::StatusOr<std::string> EncodeMessage(std::string_view api_version, std::string_view kind,
                                          const Json& object);
// Returns the body around a message.
std::string ProtobufBody(std::string_view api_version, std::string_view kind,
                         std::string_view message);
// The parts of a body before and behind a message of `bytes` bytes.
struct ProtobufFrame {
  std::string before;
  std::string_view behind;
};
ProtobufFrame FrameOf(std::string_view api_version, std::string_view kind, std::size_t bytes);
// A list's message is its metadata, a ListMeta, and then the messages of its items, each behind an
// ItemHead.
absl::StatusOr<std::string> ListMetaMessage(const Json& metadata);
std::string ItemHead(std::size_t bytes);
// Returns the head of a watch's frame, which ends with an object's body of `bytes` bytes: four
// bytes of length and the beginning of a WatchEvent.
std::string WatchHead(std::string_view type, std::size_t bytes);

}  // namespace tahoma::controller::apiserver
