#include "lib/kube/name.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/base/ascii.h"

namespace tahoma::kube {
namespace {

constexpr std::size_t kLabelBytesMax = 63;
constexpr std::size_t kSubdomainBytesMax = 253;

bool IsLower(char c) { return c >= 'a' && c <= 'z'; }
bool IsAlphanumeric(char c) { return IsLower(c) || IsDigit(c) || (c >= 'A' && c <= 'Z'); }

bool IsDns1123Label(std::string_view value) {
  const auto edge = [](char c) { return IsLower(c) || IsDigit(c); };
  return !value.empty() && edge(value.front()) && edge(value.back()) &&
         std::all_of(value.begin(), value.end(), [&](char c) { return edge(c) || c == '-'; });
}

bool IsDns1123Subdomain(std::string_view value) {
  while (true) {
    const std::size_t dot = value.find('.');
    if (!IsDns1123Label(value.substr(0, dot))) return false;
    if (dot == std::string_view::npos) return true;
    value.remove_prefix(dot + 1);
  }
}

bool IsNamePart(std::string_view value) {
  return !value.empty() && IsAlphanumeric(value.front()) && IsAlphanumeric(value.back()) &&
         std::all_of(value.begin(), value.end(),
                     [](char c) { return IsAlphanumeric(c) || c == '-' || c == '_' || c == '.'; });
}

// Kubernetes counts bytes everywhere, but its messages about DNS names say characters.
std::string TooLong(std::size_t max) { return fmt::format("must be no more than {} bytes", max); }
std::string TooLongForDns(std::size_t max) {
  return fmt::format("must be no more than {} characters", max);
}

constexpr std::string_view kLabelRule =
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and "
    "must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used "
    "for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
constexpr std::string_view kLetterFirstRule =
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an "
    "alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', "
    "regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
constexpr std::string_view kSubdomainRule =
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
    "'.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used "
    "for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
constexpr std::string_view kQualifiedRule =
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end "
    "with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for "
    "validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
constexpr std::string_view kValueRule =
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
    "and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or "
    "'12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

}  // namespace

std::optional<std::string> WrongDns1123Label(std::string_view value) {
  if (value.size() > kLabelBytesMax) return TooLongForDns(kLabelBytesMax);
  if (IsDns1123Label(value)) return std::nullopt;
  // A valid subdomain that is no label has dots.
  return IsDns1123Subdomain(value) ? "must not contain dots" : std::string(kLabelRule);
}

std::optional<std::string> WrongDns1035Label(std::string_view value) {
  if (value.size() > kLabelBytesMax) return TooLongForDns(kLabelBytesMax);
  if (!IsDns1123Label(value) || !IsLower(value.front())) return std::string(kLetterFirstRule);
  return std::nullopt;
}

std::optional<std::string> WrongDns1123Subdomain(std::string_view value) {
  if (value.size() > kSubdomainBytesMax) return TooLongForDns(kSubdomainBytesMax);
  if (!IsDns1123Subdomain(value)) return std::string(kSubdomainRule);
  return std::nullopt;
}

std::optional<std::string> WrongQualifiedName(std::string_view key) {
  const std::size_t slash = key.find('/');
  std::string_view name = key;
  if (slash != std::string_view::npos) {
    const std::string_view prefix = key.substr(0, slash);
    name.remove_prefix(slash + 1);
    if (name.find('/') != std::string_view::npos) {
      return fmt::format(
          "a valid label key {} with an optional DNS subdomain prefix and '/' (e.g. "
          "'example.com/MyName')",
          kQualifiedRule.substr(std::string_view("name part ").size()));
    }
    if (prefix.empty()) return "prefix part must be non-empty";
    if (const auto wrong = WrongDns1123Subdomain(prefix)) return "prefix part " + *wrong;
  }
  if (name.empty()) return "name part must be non-empty";
  if (name.size() > kLabelBytesMax) return "name part " + TooLong(kLabelBytesMax);
  if (!IsNamePart(name)) return std::string(kQualifiedRule);
  return std::nullopt;
}

std::optional<std::string> WrongLabelValue(std::string_view value) {
  if (value.size() > kLabelBytesMax) return TooLong(kLabelBytesMax);
  if (!value.empty() && !IsNamePart(value)) return std::string(kValueRule);
  return std::nullopt;
}

}  // namespace tahoma::kube
