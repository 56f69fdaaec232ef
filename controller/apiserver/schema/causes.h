// The causes for which an object is refused, with Kubernetes' texts, and the rules of names.
//
//   std::vector<Cause> causes;
//   if (image.empty()) causes.push_back(Required("spec.containers[0].image"));
//   InvalidMessage("Pod", "web", causes);
//   // Pod "web" is invalid: spec.containers[0].image: Required value
//
// Source of the texts: k8s.io/apimachinery pkg/util/validation/field/errors.go.
//
// Thread safety: pure functions.

#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "controller/apiserver/schema/schema.h"
#include "lib/base/json_fwd.h"
#include "lib/kube/name.h"

namespace tahoma::controller::apiserver {

using Causes = std::vector<Cause>;

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

// Adds `Invalid value: "x": why` unless `why` is empty.
void AddInvalid(std::string field, std::string_view value, const std::string& why, Causes& causes);

}  // namespace tahoma::controller::apiserver
