// A pod's calls to its sim-node: what nccom-test, trn-mem and trn-run have in common.
//
// Scope: commJoin, commLeave, memStore, memLoad and the fields that every call has
// (docs/formats/wire.md).
//
// Thread safety: none.

#pragma once

#include <absl/status/statusor.h>

#include <chrono>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/base/json_fwd.h"
#include "lib/wire/call.h"

namespace tahoma::sim {

// The place of this pod in its gang, as its environment says.
struct CommPlace {
  std::string comm_id{};
  int rank = 0;
  int world_size = 1;
};

// The sim-node's answer to a join. Chips are counted through all pods.
struct CommJoined {
  int ranks = 0;  // logical cores of all pods
  int chips = 0;  // of all pods
  int first_chip = 0;
  int own_chips = 0;
  std::vector<int> pool{};  // chips whose memory the pod's own reach, itself among them
};

class CommCall {
 public:
  CommCall(std::string address, std::string token)
      : client_(std::move(address)), token_(std::move(token)) {}

  // Joins and waits for the other pods, at most as long as the sim-node does. `cores` = 0 means all
  // of the claim.
  absl::StatusOr<CommJoined> Join(const CommPlace& place, int cores);
  // Calls for this rank. `params` is an object; token, commId and rank are added to it.
  absl::StatusOr<wire::Reply> OfRank(std::string_view method, const CommPlace& place, Json params,
                                     std::chrono::seconds timeout, std::string payload = "");
  // Calls for the claim alone: only the token is added to `params`.
  absl::StatusOr<wire::Reply> OfClaim(std::string_view method, Json params,
                                      std::chrono::seconds timeout, std::string payload = "");
  // The host's access to the memory of the claim's own chip of that number, from 0.
  absl::Status Store(int chip, std::uint64_t address, const std::string& bytes);
  absl::StatusOr<std::string> Load(int chip, std::uint64_t address, std::uint64_t bytes);
  // Leaves. A failure is ignored: the node notices when the claim is released.
  void Leave(const CommPlace& place);

 private:
  wire::Client client_;
  const std::string token_;
};

}  // namespace tahoma::sim
