// Reads the identity file, which has the tokens and certificates of callers with their roles.
//
// Such a file is:
//
//   apiVersion: tahoma.dev/v1alpha1
//   kind: IdentityFile
//   identities:
//   - {name: ops, role: admin, tokenSha256: 9f86d081884c7d65…}
//   - {name: alice, role: edit, groups: [research], namespaces: [team-a], token: "…"}
//   - {name: "system:node:trn2-0", role: node, token: "…"}
//   - {name: bob, role: view}                   # the CN of a client certificate
//
// docs/formats/identities.md describes it. Unknown keys are errors; sizes are bounded.
//
// Thread safety: pure functions.

#pragma once

#include <absl/status/statusor.h>

#include <string>
#include <string_view>
#include <vector>

#include "controller/access/access_table.h"

namespace tahoma::controller {

inline constexpr std::size_t kIdentityFileBytesMost = 1 << 20;

// kInvalidArgument names the file, the line or the entry, and what would be right.
absl::StatusOr<std::vector<IdentityEntry>> ParseIdentityFile(std::string_view text,
                                                             std::string_view file);

// The one identity of a token file: "admin", who may do everything.
IdentityEntry AdminOfToken(std::string_view token);

}  // namespace tahoma::controller
