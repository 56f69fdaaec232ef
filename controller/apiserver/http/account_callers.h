// The user who a service account's token stands for, as long as account, pod and secret are there.
//
// Scope: what kube-apiserver's authenticator of service accounts does. The signature is
// access/account_tokens.h's; rights are the AccessTable's.
//
// Thread safety: pure function of the tokens and the stored objects.

#pragma once

#include <absl/functional/function_ref.h>
#include <absl/status/statusor.h>

#include <string>
#include <string_view>
#include <vector>

#include "controller/access/account_tokens.h"
#include "controller/apiserver/storage/object_store.h"
#include "lib/base/clock.h"
#include "lib/rest/message.h"

namespace tahoma::controller::apiserver {

struct AccountCaller {
  rest::Identity user;
  std::vector<std::string> audiences;  // the token's, as far as they were asked for
};

// Says who shows the token. kUnauthenticated, with kube-apiserver's words, for a token that is not
// good for any of `audiences`, not now, or whose account, pod, secret or node has gone: an object
// of the same name that was made since is another one.
absl::StatusOr<AccountCaller> CallerOf(std::string_view token,
                                       const std::vector<std::string>& audiences,
                                       const AccountTokens& tokens, const ObjectStore& objects,
                                       WallTime now);

// CallerOf of a server's own tokens, at this moment.
using AskAccount = absl::FunctionRef<absl::StatusOr<AccountCaller>(
    std::string_view token, const std::vector<std::string>& audiences)>;

// The audiences that this server's API is for.
std::vector<std::string> OwnAudiences();

}  // namespace tahoma::controller::apiserver
