// serviceaccounts/NAME/token: makes a token of a service account.
//
// Validation, defaults and words are kube-apiserver's (k8s.io/kubernetes
// pkg/registry/core/serviceaccount/storage/token.go and plugin/pkg/admission/noderestriction).
//
// Thread safety: from any thread.

#pragma once

#include <absl/status/statusor.h>

#include "controller/access/account_tokens.h"
#include "controller/apiserver/request/api_context.h"
#include "controller/apiserver/request/api_request.h"

namespace tahoma::controller::apiserver {

// Whether the request is for a service account's token, whatever the method is.
bool IsTokenRequest(const ApiRequest& request);

// Returns the TokenRequest with its status. A node gets only tokens that end with a pod of its own.
absl::StatusOr<rest::Response> ServeTokenRequest(const ApiContext& context,
                                                 const ApiRequest& request,
                                                 const AccountTokens& tokens);

}  // namespace tahoma::controller::apiserver
