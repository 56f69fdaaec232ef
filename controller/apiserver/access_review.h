// "May I?": the reviews of authorization.k8s.io and authentication.k8s.io that clients post.
//
// Standalone has one class of caller: whoever HttpFront let in may do everything. Nothing is
// stored and the kinds are not in discovery, as only fixed paths are asked for.
//
// Thread safety: pure function.

#pragma once

#include <optional>

#include "lib/rest/message.h"

namespace tahoma::controller {

// nullopt: not one of these paths.
std::optional<rest::Response> ServeAccessReview(const rest::Request& request);

}  // namespace tahoma::controller
