// The key of a store, with which the tokens of its service accounts are signed
// (access/account_tokens.h).
//
// The key is made at the first start and kept in the store, whose files only their owner reads:
// written in one synced commit, so never in part, and in a backup too, after whose return pods'
// tokens are good.
//
// Scope: docs/formats/store.md.
//
// Thread safety: one thread per store.

#pragma once

#include <absl/status/statusor.h>

#include <memory>
#include <string_view>

#include "controller/access/account_tokens.h"
#include "controller/store/store.h"

namespace tahoma::controller {

// The key's own key in Keyspace::kLedger.
inline constexpr std::string_view kAccountKeyKey = "account-key";

// kDataLoss when the store has something else there.
absl::StatusOr<std::shared_ptr<const AccountTokens>> AccountTokensOf(Store& store);

}  // namespace tahoma::controller
