// Answers the reviews of authorization.k8s.io and authentication.k8s.io that clients post.
//
// The same AccessTable decides about requests, so `kubectl auth can-i`, `can-i --list` and `whoami`
// are right, and so is a TokenReview. Nothing is stored; the kinds are ReviewKinds() (kind.h),
// which discovery lists.
//
// Thread safety: pure function.

#pragma once

#include <optional>

#include "controller/access/access_table.h"
#include "controller/apiserver/http/account_callers.h"
#include "lib/rest/message.h"

namespace tahoma::controller::apiserver {

// nullopt: not one of these paths. `request` has its identity; `wanted` is AttributesOf(request),
// which the caller may do; `account` reads the tokens of service accounts.
std::optional<rest::Response> ServeAccessReview(const rest::Request& request,
                                                const Attributes& wanted, const AccessTable& table,
                                                const NodeView& view, AskAccount account);

}  // namespace tahoma::controller::apiserver
