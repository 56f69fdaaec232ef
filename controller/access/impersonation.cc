#include "controller/access/impersonation.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "controller/access/access_table.h"
#include "lib/base/ascii.h"
#include "lib/base/status.h"
#include "lib/base/utf8.h"

namespace tahoma::controller {
namespace {

constexpr std::string_view kPrefix = "impersonate-";
constexpr std::string_view kAuthentication = "authentication.k8s.io";
constexpr std::string_view kAnonymous = "system:anonymous";
constexpr std::string_view kUnauthenticatedGroup = "system:unauthenticated";
constexpr std::size_t kHeadersMost = 64;
constexpr std::size_t kNameBytesMost = 253;

// Names stand in logs and messages.
absl::Status CheckText(std::string_view header, std::string_view text) {
  const bool visible = IsUtf8(text) && std::ranges::none_of(text, [](char c) {
                         return static_cast<unsigned char>(c) < ' ' || c == '\x7f';
                       });
  if (!text.empty() && text.size() <= kNameBytesMost && visible) return absl::OkStatus();
  return InvalidArgument(
      "the header {} must have 1 to {} bytes of UTF-8 without control characters", header,
      kNameBytesMost);
}

Attributes RightTo(std::string_view group, std::string_view resource, std::string_view name) {
  return {.verb = "impersonate",
          .group = std::string(group),
          .resource = std::string(resource),
          .name = std::string(name)};
}

// `header` is the name after "Impersonate-", in lower case.
absl::Status Take(const std::string& header, const std::string& value, Impersonation& wanted) {
  rest::Identity& user = wanted.user;
  if (header == "user") {
    if (!user.name.empty()) return InvalidArgument("the header Impersonate-User is there twice");
    user.name = value;
    if (const auto account = AccountNamed(value)) {
      wanted.rights.push_back(RightTo("", "serviceaccounts", account->name));
      wanted.rights.back().name_space = account->name_space;
    } else {
      wanted.rights.push_back(RightTo("", "users", value));
    }
    return absl::OkStatus();
  }
  if (header == "group") {
    user.groups.push_back(value);
    wanted.rights.push_back(RightTo("", "groups", value));
    return absl::OkStatus();
  }
  if (header == "uid") {
    user.uid = value;
    wanted.rights.push_back(RightTo(kAuthentication, "uids", value));
    return absl::OkStatus();
  }
  return InvalidArgument(
      "there is no header Impersonate-{} here; Impersonate-User, -Group and -Uid are",
      CutUtf8(header, kNameBytesMost));
}

void AddGroups(rest::Identity& user) {
  const auto add = [&](std::string group) {
    const bool is_there = std::ranges::find(user.groups, group) != user.groups.end();
    if (!is_there) user.groups.push_back(std::move(group));
  };
  if (const auto account = AccountNamed(user.name); account && user.groups.empty()) {
    add(std::string(kAccountsGroup));
    add(fmt::format("{}:{}", kAccountsGroup, account->name_space));
  }
  add(std::string(user.name == kAnonymous ? kUnauthenticatedGroup : kAuthenticatedGroup));
}

}  // namespace

absl::StatusOr<std::optional<Impersonation>> ImpersonationOf(const rest::Headers& headers) {
  Impersonation wanted;
  std::string first;  // of the headers
  for (const auto& [name, value] : headers) {
    std::string lower = name;
    std::ranges::transform(lower, lower.begin(), AsciiLower);
    if (!lower.starts_with(kPrefix)) continue;
    if (first.empty()) first = name;
    if (wanted.rights.size() == kHeadersMost) {
      return InvalidArgument("more than {} headers Impersonate-*", kHeadersMost);
    }
    TAHOMA_RETURN_IF_ERROR(CheckText(CutUtf8(name, kNameBytesMost), value));
    TAHOMA_RETURN_IF_ERROR(Take(lower.substr(kPrefix.size()), value, wanted));
  }
  if (first.empty()) return std::nullopt;
  if (wanted.user.name.empty()) {
    return InvalidArgument("the header {} is there without Impersonate-User",
                           CutUtf8(first, kNameBytesMost));
  }
  AddGroups(wanted.user);
  return wanted;
}

}  // namespace tahoma::controller
