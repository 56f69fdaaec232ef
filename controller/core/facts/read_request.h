// Parses the objects of block_request.h: what is asked, and what their status shows.
//
//   absl::StatusOr<std::shared_ptr<const RequestFact>> fact =
//       ParseRequest(RequestKind::kExtension, object);
//
// A request whose spec cannot be used is still a fact: it says why (spec_error). A status that
// somebody has damaged reads as far as it can be read.
//
// Thread safety: pure functions.

#pragma once

#include <absl/status/statusor.h>

#include <memory>

#include "controller/core/facts/block_request.h"
#include "lib/base/json_fwd.h"

namespace tahoma::controller {

// Fails with kInvalidArgument when the object is not of its kind at all.
absl::StatusOr<std::shared_ptr<const RequestFact>> ParseRequest(RequestKind kind,
                                                                const Json& object);

}  // namespace tahoma::controller
