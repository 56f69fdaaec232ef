// Serves a workload's calls about communicators: commJoin, commRun and commLeave.
//
// The server has checked the claim's token and knows the cores of the claim; a workload joins with
// no other cores. docs/formats/wire.md has every field.
//
// Thread safety: many threads; Call blocks while it waits for other ranks.

#pragma once

#include <absl/status/statusor.h>

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/base/mutex.h"
#include "lib/wire/call.h"
#include "sim-node/serve/communicator.h"

namespace tahoma::sim {

inline constexpr std::string_view kCommJoin = "commJoin";
inline constexpr std::string_view kCommRun = "commRun";
inline constexpr std::string_view kCommLeave = "commLeave";

class CommunicatorCalls {
 public:
  explicit CommunicatorCalls(Communicators& communicators) : communicators_(communicators) {}

  static bool Serves(std::string_view method);

  // Carries out a call. `claim` identifies the caller (its token); `cores` are the claim's logical
  // cores: chips of the torus, ascending, with the number of cores of each. When another claim
  // joined the rank, commJoin fails with kAlreadyExists and the other calls with kPermissionDenied.
  // Otherwise fails as Communicators' Join, Run and Leave; kUnimplemented for another method.
  absl::StatusOr<wire::Reply> Call(const wire::Request& request, const std::string& claim,
                                   const std::vector<Member>& cores);

  // Checks that the claim joined the rank: kFailedPrecondition when no claim joined the rank,
  // kPermissionDenied when another claim did.
  absl::Status CheckHolder(const std::pair<std::string, int>& rank_of, const std::string& claim);

  // Leaves every communicator joined with the claim, after the claim's release or its pod's end.
  void LeaveAll(const std::string& claim);

 private:
  using Key = std::pair<std::string, int>;  // comm id and rank
  absl::StatusOr<wire::Reply> Join(const wire::Request& request, const std::string& claim,
                                   const std::vector<Member>& cores);
  absl::StatusOr<wire::Reply> Run(const wire::Request& request, const std::string& claim);
  absl::StatusOr<wire::Reply> Leave(const wire::Request& request, const std::string& claim);

  absl::StatusOr<Division> ReadLargeDivision(const std::string& text);

  // Whether the claim joined the rank.
  bool Holds(const Key& key, const std::string& claim) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Communicators& communicators_;
  Mutex large_mutex_;  // held while a large text is read, because its value takes much memory
  Mutex mutex_;
  std::map<Key, std::string> holders_ ABSL_GUARDED_BY(mutex_);  // claim by joined rank
};

}  // namespace tahoma::sim
