// Serves a workload's calls about communicators: commJoin, commRun and commLeave.
//
// The server has checked the claim's token and knows the cores behind it; a workload can join with
// nothing else. docs/formats/wire.md has every field.
//
// Thread safety: Call may run on many threads; it blocks while it waits for other ranks.

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

  // Carries out a call. `claim` identifies the caller (its token), `cores` are the logical cores
  // that it holds: chips of the torus, ascending, with the number of cores of each. When the rank
  // was joined with another claim, commJoin is kAlreadyExists and the others are kPermissionDenied.
  // Otherwise fails as Communicators' Join, Run and Leave; kUnimplemented for another method.
  absl::StatusOr<wire::Reply> Call(const wire::Request& request, const std::string& claim,
                                   const std::vector<Member>& cores);

  // Checks that the rank was joined with that claim: kFailedPrecondition when it was not joined,
  // kPermissionDenied when it was joined with another claim.
  absl::Status CheckHolder(const std::pair<std::string, int>& rank_of, const std::string& claim);

  // Leaves every communicator that was joined with the claim, which was released or whose pod
  // ended.
  void LeaveAll(const std::string& claim);

 private:
  using Key = std::pair<std::string, int>;  // comm id and rank
  absl::StatusOr<wire::Reply> Join(const wire::Request& request, const std::string& claim,
                                   const std::vector<Member>& cores);
  absl::StatusOr<wire::Reply> Run(const wire::Request& request, const std::string& claim);
  absl::StatusOr<wire::Reply> Leave(const wire::Request& request, const std::string& claim);

  absl::StatusOr<Division> ReadLargeDivision(const std::string& text);

  // Whether the rank was joined with that claim.
  bool Holds(const Key& key, const std::string& claim) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Communicators& communicators_;
  Mutex large_mutex_;  // held while a large text is read: as a value it takes much memory
  Mutex mutex_;
  std::map<Key, std::string> holders_ ABSL_GUARDED_BY(mutex_);  // claim by joined rank
};

}  // namespace tahoma::sim
