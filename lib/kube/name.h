// The rules for names, labels and annotations, with the messages that Kubernetes gives.
//
//   if (auto why = WrongDns1123Subdomain("Bad_Name")) return InvalidArgument("name: {}", *why);
//
// Source: apimachinery pkg/util/validation/validation.go and pkg/api/validation.

#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tahoma::kube {

// Checks names of namespaces, containers and gangs: at most 63 characters.
std::optional<std::string> WrongDns1123Label(std::string_view value);

// Checks the same but beginning with a letter: versions and names of custom resources.
std::optional<std::string> WrongDns1035Label(std::string_view value);

// Checks names of most objects: labels joined by dots, at most 253 characters.
std::optional<std::string> WrongDns1123Subdomain(std::string_view value);

// Checks keys of labels and annotations: an optional subdomain and "/", then a name of at most 63.
std::optional<std::string> WrongQualifiedName(std::string_view key);

// Checks values of labels: empty, or at most 63 of [A-Za-z0-9._-] that begin and end
// alphanumerically.
std::optional<std::string> WrongLabelValue(std::string_view value);

// The most bytes of all annotations of an object together.
inline constexpr std::size_t kAnnotationBytesMax = 256 << 10;

}  // namespace tahoma::kube
