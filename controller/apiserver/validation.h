// What objects mean: the checks of a real API server beyond structure.
//
//   std::vector<Cause> causes = ValidateCreate(kind, object);
//   if (!causes.empty()) answer 422 with InvalidMessage(kind.kind, name, causes)
//
// ValidateCreate and ValidateUpdate include the schema (ValidateSchema) and metadata. Call them
// after pruning and defaults, with what the server owns (uid, creationTimestamp, …) filled in.
//
// Scope: pure functions of the objects. Whether a namespace exists or a version is current is known
// to the request pipeline.
//
// Thread safety: pure functions.

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "controller/apiserver/kind.h"
#include "lib/base/json_fwd.h"
#include "lib/kube/name.h"

namespace tahoma::controller {

std::vector<Cause> ValidateCreate(const Kind& kind, const Json& object);

// `subresource` is "" or "status"; both objects are whole. Immutable fields are compared here.
std::vector<Cause> ValidateUpdate(const Kind& kind, const Json& old_object, const Json& new_object,
                                  std::string_view subresource);

// `Gang "g" is invalid: spec.members: Required value`, several errors as "[a, b]".
std::string InvalidMessage(std::string_view kind, std::string_view name,
                           const std::vector<Cause>& causes);

// The rules of lib/kube/name.h: the empty string when valid, else Kubernetes' own text.
inline std::string CheckDnsLabel(std::string_view name) {
  return kube::WrongDns1123Label(name).value_or("");
}
inline std::string CheckDnsSubdomain(std::string_view name) {
  return kube::WrongDns1123Subdomain(name).value_or("");
}
inline std::string CheckQualifiedName(std::string_view name) {
  return kube::WrongQualifiedName(name).value_or("");
}
inline std::string CheckLabelValue(std::string_view value) {
  return kube::WrongLabelValue(value).value_or("");
}

// The causes Kubernetes builds, with its texts: `Invalid value: "x": why`.
Cause Required(std::string field, std::string_view detail = "");
Cause Invalid(std::string field, const Json& value, std::string_view detail);
Cause NotSupported(std::string field, const Json& value, const std::vector<std::string>& supported);
Cause Duplicate(std::string field, const Json& value);
Cause Forbidden(std::string field, std::string_view detail);
Cause TooLong(std::string field, std::size_t limit_bytes);
Cause TooMany(std::string field, std::size_t actual, std::size_t limit);

}  // namespace tahoma::controller
