#include "controller/access/access_keys.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "controller/access/rules.h"
#include "lib/base/status.h"
#include "lib/config/parse.h"
#include "lib/config/spec.h"
#include "lib/kube/name.h"

namespace tahoma::controller {
namespace {

// The SDKs take ids of these lengths only.
constexpr std::size_t kIdBytesLeast = 16;
constexpr std::size_t kIdBytesMost = 128;
// A shorter secret can be guessed.
constexpr std::size_t kSecretBytesLeast = 16;
constexpr std::size_t kSecretBytesMost = 256;
constexpr std::size_t kCallerNameBytesMost = 253;
constexpr std::size_t kAccountDigits = 12;

struct KeyEntry {
  std::string id, secret, name, account;
  std::string name_space = "default";
  std::string role = "edit";
};

bool IsVisible(char c) { return c > ' ' && c < '\x7f'; }

bool IsIdCharacter(char c) {
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
}

absl::StatusOr<AccessKey> KeyOf(KeyEntry entry) {
  if (entry.id.size() < kIdBytesLeast || entry.id.size() > kIdBytesMost ||
      !std::ranges::all_of(entry.id, IsIdCharacter)) {
    return InvalidArgument("accessKeyId must have {} to {} letters, digits and '_'", kIdBytesLeast,
                           kIdBytesMost);
  }
  // The message does not contain the secret, because messages are logged.
  if (entry.secret.size() < kSecretBytesLeast || entry.secret.size() > kSecretBytesMost ||
      !std::ranges::all_of(entry.secret, IsVisible)) {
    return InvalidArgument("secretAccessKey must have {} to {} visible ASCII characters",
                           kSecretBytesLeast, kSecretBytesMost);
  }
  if (entry.name.empty() || entry.name.size() > kCallerNameBytesMost) {
    return InvalidArgument("name must have 1 to {} bytes", kCallerNameBytesMost);
  }
  if (const auto why = kube::WrongDns1123Label(entry.name_space)) {
    return InvalidArgument("namespace is \"{}\": {}", entry.name_space, *why);
  }
  if (!IsAccount(entry.account)) {
    return InvalidArgument("account is \"{}\"; {} digits in quotes are right", entry.account,
                           kAccountDigits);
  }
  const std::optional<Role> role = RoleNamed(entry.role);
  if (!role || *role == Role::kNode) {
    return InvalidArgument("role is \"{}\"; one of admin, edit, view is right", entry.role);
  }
  return AccessKey{.id = std::move(entry.id),
                   .secret = std::move(entry.secret),
                   .name = std::move(entry.name),
                   .name_space = std::move(entry.name_space),
                   .account = std::move(entry.account),
                   .may_buy = *role != Role::kView};
}

}  // namespace

bool IsAccount(std::string_view text) {
  return text.size() == kAccountDigits &&
         std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

absl::StatusOr<AccessKeys> AccessKeys::Parse(std::string_view text, std::string_view file) {
  if (text.size() > kFileBytesMost) {
    return InvalidArgument("{}: has {} bytes; at most {} are right", file, text.size(),
                           kFileBytesMost);
  }
  std::vector<KeyEntry> entries;
  config::Spec spec({.program = "controller", .kind = "AccessKeyFile", .summary = ""});
  spec.List<KeyEntry>(
      "accessKeys", &entries, "who may call", [](config::Fields& fields, KeyEntry& e) {
        fields.String("accessKeyId", &e.id, "the key's public name");
        fields.String("secretAccessKey", &e.secret, "what requests are signed with");
        fields.String("name", &e.name, "who calls");
        fields.String("namespace", &e.name_space, "who owns what is bought");
        fields.String("account", &e.account, "the same, as EC2 shows it: 12 digits");
        fields.String("role", &e.role, "admin, edit or view; view may not buy");
      });
  TAHOMA_RETURN_IF_ERROR(config::ParseFile(text, file, spec));
  if (entries.empty() || entries.size() > kKeysMost) {
    return InvalidArgument("{}: has {} access keys; 1 to {} are right", file, entries.size(),
                           kKeysMost);
  }
  AccessKeys keys;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const std::string where = fmt::format("{}: accessKeys[{}] ({})", file, i, entries[i].name);
    absl::StatusOr<AccessKey> key = KeyOf(std::move(entries[i]));
    if (!key.ok()) return Annotate(key.status(), where);
    const std::string id = key->id;
    if (!keys.keys_.emplace(id, *std::move(key)).second) {
      return InvalidArgument("{}: accessKeyId {} is there twice", where, id);
    }
  }
  return keys;
}

const AccessKey* AccessKeys::Find(std::string_view id) const {
  const auto found = keys_.find(id);
  return found == keys_.end() ? nullptr : &found->second;
}

}  // namespace tahoma::controller
