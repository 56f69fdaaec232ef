#include "controller/access/identity_file.h"

#include <algorithm>
#include <utility>

#include "lib/base/hex.h"
#include "lib/base/status.h"
#include "lib/config/parse.h"
#include "lib/config/spec.h"

namespace tahoma::controller {
namespace {

// A token of fewer characters can be guessed.
constexpr std::size_t kTokenBytesLeast = 16;
constexpr std::size_t kTokenBytesMost = 1024;

constexpr std::string_view kEverywhere = "*";

struct Entry {
  std::string name, role, token, token_sha256;
  std::vector<std::string> groups;
  std::vector<std::string> namespaces = {std::string(kEverywhere)};
};

// Returns the namespaces for the table. An empty list is an error: its author hardly means
// "everywhere".
absl::StatusOr<std::vector<std::string>> NamespacesOf(const Entry& entry) {
  if (entry.namespaces.empty()) {
    return InvalidArgument("namespaces is empty; leave it out to give the role everywhere");
  }
  const auto all = std::find(entry.namespaces.begin(), entry.namespaces.end(), kEverywhere);
  if (all == entry.namespaces.end()) return entry.namespaces;
  if (entry.namespaces.size() == 1) return std::vector<std::string>();
  return InvalidArgument("namespaces has {} beside names; one or the other is right", kEverywhere);
}

absl::StatusOr<Sha256Digest> DigestOf(std::string_view hex) {
  Sha256Digest digest = {};
  const std::optional<std::string> bytes = Unhex(hex);
  // Hex writes lower case: upper case does not come back.
  if (!bytes || bytes->size() != digest.size() || Hex(*bytes) != hex) {
    return InvalidArgument(
        "tokenSha256 must have 64 lower-case hex digits (printf %s TOKEN | sha256sum)");
  }
  std::ranges::copy(*bytes, digest.begin());
  return digest;
}

absl::Status CheckToken(std::string_view token) {
  const bool visible =
      std::all_of(token.begin(), token.end(), [](char c) { return c > ' ' && c < '\x7f'; });
  if (visible && token.size() >= kTokenBytesLeast && token.size() <= kTokenBytesMost) {
    return absl::OkStatus();
  }
  // The message does not contain the token, because messages are logged.
  return InvalidArgument("token must have {} to {} visible ASCII characters", kTokenBytesLeast,
                         kTokenBytesMost);
}

absl::StatusOr<IdentityEntry> IdentityOf(const Entry& entry) {
  const std::optional<Role> role = RoleNamed(entry.role);
  if (!role) {
    return InvalidArgument("role is \"{}\"; one of admin, edit, view, node is right", entry.role);
  }
  IdentityEntry identity{
      .name = entry.name, .token = std::nullopt, .role = *role, .groups = entry.groups};
  TAHOMA_ASSIGN_OR_RETURN(identity.namespaces, NamespacesOf(entry));
  if (!entry.token.empty() && !entry.token_sha256.empty()) {
    return InvalidArgument("token and tokenSha256 are both given; one is enough");
  }
  if (!entry.token.empty()) {
    TAHOMA_RETURN_IF_ERROR(CheckToken(entry.token));
    identity.token = Sha256(entry.token);
  } else if (!entry.token_sha256.empty()) {
    TAHOMA_ASSIGN_OR_RETURN(identity.token, DigestOf(entry.token_sha256));
  }
  return identity;
}

}  // namespace

absl::StatusOr<std::vector<IdentityEntry>> ParseIdentityFile(std::string_view text,
                                                             std::string_view file) {
  std::vector<Entry> entries;
  config::Spec spec({.program = "controller", .kind = "IdentityFile", .summary = ""});
  spec.List<Entry>("identities", &entries, "who may call", [](config::Fields& fields, Entry& e) {
    fields.String("name", &e.name, "the user's name, or a certificate's CN");
    fields.String("role", &e.role, "admin, edit, view or node");
    fields.String("token", &e.token, "a bearer token");
    fields.String("tokenSha256", &e.token_sha256, "its SHA-256 instead");
    fields.Strings("groups", &e.groups, "groups the user is in");
    fields.Strings("namespaces", &e.namespaces, "where the role holds; none: everywhere");
  });
  TAHOMA_RETURN_IF_ERROR(config::ParseFile(text, file, spec));
  std::vector<IdentityEntry> identities;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    absl::StatusOr<IdentityEntry> identity = IdentityOf(entries[i]);
    if (!identity.ok()) {
      return Annotate(identity.status(),
                      fmt::format("{}: identities[{}] ({})", file, i, entries[i].name));
    }
    identities.push_back(*std::move(identity));
  }
  if (identities.empty()) {
    return InvalidArgument("{}: it names nobody; leave identityFile out to ask for no token", file);
  }
  return identities;
}

IdentityEntry AdminOfToken(std::string_view token) {
  return {.name = "admin", .token = Sha256(token), .role = Role::kAdmin};
}

}  // namespace tahoma::controller
