// Kubernetes' protobuf: objects of the built-in kinds as bytes, to and from JSON values.
//
//   TAHOMA_ASSIGN_OR_RETURN(Json pod, DecodeProtobuf(body));       // {"apiVersion":"v1","kind":…}
//   TAHOMA_ASSIGN_OR_RETURN(std::string bytes, EncodeProtobuf(pod));
//
// An object is "k8s\0" and a runtime.Unknown, which names the kind and holds the kind's message.
// The bytes are those that Go's types write, and the JSON is that of Go's types: a value that went
// through protobuf is the value that came as JSON.
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

// JSON nesting that a body may have, and how many JSON values it may become: a field of two bytes
// may be an object of a hundred.
inline constexpr int kProtobufNestingMax = 100;
inline constexpr int kProtobufValuesMax = 500'000;

// Whether objects of that kind have a message.
bool HasProtobuf(std::string_view api_version, std::string_view kind);

// The object in a body. kUnimplemented for a kind without a message; kInvalidArgument says which
// field is wrong: damaged bytes, texts that are not UTF-8, JSON inside that is none. Fields that
// the kind does not have are skipped.
absl::StatusOr<Json> DecodeProtobuf(std::string_view bytes);

// The whole body. kUnimplemented for a kind without a message; kInvalidArgument names the field
// whose value is not of its type. Fields without a number are left out.
absl::StatusOr<std::string> EncodeProtobuf(const Json& object);

// The kind's message alone, as lists hold it.
absl::StatusOr<std::string> EncodeMessage(std::string_view api_version, std::string_view kind,
                                          const Json& object);
// The body around a message.
std::string ProtobufBody(std::string_view api_version, std::string_view kind,
                         std::string_view message);
// What stands before and behind a message of so many bytes in that body.
struct ProtobufFrame {
  std::string before;
  std::string_view behind;
};
ProtobufFrame FrameOf(std::string_view api_version, std::string_view kind, std::size_t bytes);
// A list's message is its metadata, a ListMeta, and then the messages of its items, each behind an
// ItemHead.
absl::StatusOr<std::string> ListMetaMessage(const Json& metadata);
std::string ItemHead(std::size_t bytes);
// What stands before an object's body of so many bytes in a frame of a watch, which ends with it:
// four bytes of length and the beginning of a WatchEvent.
std::string WatchHead(std::string_view type, std::size_t bytes);

}  // namespace tahoma::controller::apiserver
