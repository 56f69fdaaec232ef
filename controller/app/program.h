// The controller from its options to its end.
//
// Thread safety: called once, by main, with SIGTERM and SIGINT blocked.

#pragma once

#include <absl/status/status.h>

#include "controller/app/options.h"

namespace tahoma::controller {

// Runs until SIGTERM or SIGINT (OK), or until something makes going on impossible.
absl::Status RunProgram(const Options& options);

}  // namespace tahoma::controller
