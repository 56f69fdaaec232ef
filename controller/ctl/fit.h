// Asks the controller's admin API where a gang would go: `kubectl tahoma fit`.
//
//   TAHOMA_ASSIGN_OR_RETURN(const Json answer, AskFit(admin, "default", {.shape = "4x4x4"}));
//   fmt::print("{}", FitText(answer));
//
// Scope: the question and its answer as text. Nothing is reserved by asking.
//
// Thread safety: any thread.

#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>

#include "lib/base/json_fwd.h"
#include "lib/kube/transport.h"

namespace tahoma::controller {

// As typed; the controller checks the values. 0 and empty: not said.
struct FitAsked {
  std::string shape = {};
  std::int64_t chips = 0;
  std::int64_t ultra_servers = 0;
  std::int64_t slices = 0;
  std::int64_t members = 0;
  std::string max_runtime = {};
  std::string block = {};
  std::string queue = {};
  std::string instance_type = {};
  std::int64_t priority = 0;
  bool preemptible = false;
  bool moves = true;  // look, too, for gangs that would have to move
};

// A question that makes no sense is kInvalidArgument.
absl::StatusOr<Json> AskFit(kube::Transport& admin, const std::string& ns, const FitAsked& asked);

bool Fits(const Json& answer);
// Says where the gang fits now; or why not, from when on, who would end, and the cheapest change.
std::string FitText(const Json& answer);

}  // namespace tahoma::controller
