// A gang that does not exist, for questions: how many pods ask for how many chips.
//
//   TAHOMA_ASSIGN_OR_RETURN(const auto gang, GangOfRequest({.shape = "4x4x4"}, {"", "wanted"}));
//
// Scope: a value for the planner. Nothing of the gang is written anywhere.
//
// Thread safety: a pure function.

#pragma once

#include <absl/status/statusor.h>

#include <memory>
#include <string>

#include "controller/model/gang.h"
#include "controller/model/gang_rules.h"
#include "controller/model/ids.h"

namespace tahoma::controller {

// Returns a gang of that request whose pods ask for whole chips, as few pods as can hold them
// unless `request.members` says more. kInvalidArgument for a request that is not valid.
absl::StatusOr<std::shared_ptr<const GangSpec>> GangOfRequest(GangRequest request,
                                                              const GangKey& key,
                                                              const std::string& block = "");

}  // namespace tahoma::controller
