// A request to the Kubernetes API, taken apart.
//
//   TAHOMA_ASSIGN_OR_RETURN(ApiRequest request, ApiRequest::Parse(http, kinds));
//   request.kind->plural;  request.name_space;  request.name;  request.subresource;
//
// Paths are /api/v1/… and /apis/<group>/<version>/…, then [namespaces/<ns>/]<resource>[/<name>
// [/<subresource>]].
//
// Thread safety: a value.

#pragma once

#include <absl/status/statusor.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "controller/apiserver/schema/kind.h"
#include "controller/apiserver/storage/object_store.h"
#include "lib/base/byte_budget.h"
#include "lib/rest/message.h"

namespace tahoma::controller::apiserver {

enum class FieldValidation : std::uint8_t { kIgnore, kWarn, kStrict };

// The parts of a resource's path, whether or not there is such a resource. Authorization and the
// verbs read a path by this one function, so they cannot differ about it.
struct ResourcePath {
  std::string group;
  std::string version;
  std::string resource;
  std::string name_space;
  std::string name;
  std::string subresource;
  bool watch = false;  // /api/v1/watch/…, the old form of ?watch=true

  // Whether a path is deep enough to be a resource's: "/api/v1" and "/apis/g/v" are documents.
  static bool Is(std::string_view path);
  // 404 for what is not a resource's path, 400 for a broken escape.
  static absl::StatusOr<ResourcePath> Parse(std::string_view path);
};

struct ApiRequest {
  const rest::Request* http = nullptr;
  std::shared_ptr<const KindTable> kinds;  // keeps `kind` alive
  const Kind* kind = nullptr;
  std::string name_space;                                 // empty: cluster scope or all namespaces
  std::string name;                                       // empty: the collection
  std::string subresource;                                // "status", "scale", "binding", …
  bool watch_path = false;                                // /api/v1/watch/…: a watch, also of one
  std::map<std::string, std::string, std::less<>> query;  // the first value of each key
  bool own = false;  // made by this server for itself at its start: no webhook is asked
  CommitsInFlight* flight = nullptr;  // who answers waits for it; null: waits
  ByteBudget* answers = nullptr;  // of answers that wait for readers; null: for one in this process

  // `http` must outlive the result. 404 for what is not a resource's path.
  static absl::StatusOr<ApiRequest> Parse(const rest::Request& http,
                                          std::shared_ptr<const KindTable> kinds);

  ResourceName resource() const { return {kind->group, kind->plural}; }
  std::string key() const { return ObjectKey(name_space, name); }
  // Keys of a collection begin with this.
  std::string key_prefix() const { return name_space.empty() ? "" : name_space + "/"; }

  std::string_view parameter(std::string_view name) const;  // empty when absent
  bool flag(std::string_view name) const;  // there, and neither "false" nor "0", as Go reads it
  // 400 when it is no number of 64 bits; nullopt when absent or empty.
  absl::StatusOr<std::optional<std::int64_t>> number(std::string_view name) const;

  // The parameter dryRun: absent or "All"; 422 otherwise.
  absl::StatusOr<bool> dry_run() const;
  absl::StatusOr<FieldValidation> field_validation() const;
  // 422 for a fieldManager that is no name, and for `force` where nothing is applied.
  absl::Status CheckManager() const;
  // "CreateOptions" and the like: whose parameters they are, for errors.
  std::string_view options_kind() const;
  // fieldManager, or the first part of User-Agent as Kubernetes does.
  std::string field_manager() const;
};

// Decodes "a=1&b=x%20y"; 400 for a bad escape.
absl::StatusOr<std::map<std::string, std::string, std::less<>>> ParseQuery(std::string_view query);

}  // namespace tahoma::controller::apiserver
