// Names and labels, with the texts of k8s.io/apimachinery pkg/util/validation.

#include <cctype>

#include "controller/apiserver/validation.h"

namespace tahoma::controller {
namespace {

constexpr std::size_t kLabelMax = 63;       // RFC 1123 label, label names and values
constexpr std::size_t kSubdomainMax = 253;  // RFC 1123 subdomain

bool IsLower(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }
bool IsAlphanumeric(char c) { return IsLower(c) || (c >= 'A' && c <= 'Z'); }

bool IsDnsLabelText(std::string_view text) {
  if (text.empty() || !IsLower(text.front()) || !IsLower(text.back())) return false;
  for (const char c : text) {
    if (!IsLower(c) && c != '-') return false;
  }
  return true;
}

bool IsDnsSubdomainText(std::string_view text) {
  while (true) {
    const auto dot = text.find('.');
    if (!IsDnsLabelText(text.substr(0, dot))) return false;
    if (dot == std::string_view::npos) return true;
    text.remove_prefix(dot + 1);
  }
}

bool IsNameText(std::string_view text) {
  if (text.empty() || !IsAlphanumeric(text.front()) || !IsAlphanumeric(text.back())) return false;
  for (const char c : text) {
    if (!IsAlphanumeric(c) && c != '-' && c != '_' && c != '.') return false;
  }
  return true;
}

std::string MaxBytes(std::size_t length) {
  return fmt::format("must be no more than {} bytes", length);
}

std::string MaxLength(std::size_t length) {
  return fmt::format("must be no more than {} characters", length);
}

constexpr char kNameRule[] =
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for "
    "validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";

}  // namespace

std::string CheckDnsLabel(std::string_view name) {
  if (name.size() > kLabelMax) return MaxLength(kLabelMax);
  if (IsDnsLabelText(name)) return "";
  return "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
         "and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', "
         "regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
}

std::string CheckDnsSubdomain(std::string_view name) {
  if (name.size() > kSubdomainMax) return MaxLength(kSubdomainMax);
  if (IsDnsSubdomainText(name)) return "";
  return "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' "
         "or '.', and must start and end with an alphanumeric character (e.g. 'example.com', "
         "regex used for validation is "
         "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
}

std::string CheckQualifiedName(std::string_view name) {
  const auto slash = name.find('/');
  std::string_view last = name;
  if (slash != std::string_view::npos) {
    if (name.find('/', slash + 1) != std::string_view::npos) {
      return fmt::format(
          "a valid label key {} with an optional DNS subdomain prefix and '/' "
          "(e.g. 'example.com/MyName')",
          kNameRule);
    }
    const std::string_view prefix = name.substr(0, slash);
    if (prefix.empty()) return "prefix part must be non-empty";
    if (const std::string why = CheckDnsSubdomain(prefix); !why.empty()) {
      return "prefix part " + why;
    }
    last = name.substr(slash + 1);
  }
  if (last.empty()) return "name part must be non-empty";
  if (last.size() > kLabelMax) return "name part " + MaxBytes(kLabelMax);
  if (!IsNameText(last)) return fmt::format("name part {}", kNameRule);
  return "";
}

std::string CheckLabelValue(std::string_view value) {
  if (value.size() > kLabelMax) return MaxBytes(kLabelMax);
  if (value.empty() || IsNameText(value)) return "";
  return "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or "
         "'.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or "
         "'my_value',  or '12345', regex used for validation is "
         "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
}

}  // namespace tahoma::controller
