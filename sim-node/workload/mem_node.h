// The sim-node of this pod, over its workload socket, for trn-mem.
//
//   SocketMemNode node("unix:/run/tahoma/node.sock", token);
//   node.Join(place);
//
// Scope: the calls commJoin, memStore, memLoad, commAccess and commLeave of docs/formats/wire.md.
//
// Thread safety: none.

#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sim-node/workload/comm_call.h"
#include "sim-node/workload/trn_mem.h"

namespace tahoma::sim {

class SocketMemNode final : public MemNode {
 public:
  SocketMemNode(std::string address, std::string token)
      : call_(std::move(address), std::move(token)) {}

  absl::StatusOr<CommJoined> Join(const CommPlace& place) override { return call_.Join(place, 0); }
  absl::Status Store(int chip, std::uint64_t address, const std::string& bytes) override {
    return call_.Store(chip, address, bytes);
  }
  absl::StatusOr<std::string> Load(int chip, std::uint64_t address, std::uint64_t bytes) override {
    return call_.Load(chip, address, bytes);
  }
  absl::StatusOr<std::vector<MemTaken>> Access(const CommPlace& place,
                                               const std::vector<MemAccess>& accesses,
                                               bool move) override;
  void Leave(const CommPlace& place) override { call_.Leave(place); }

 private:
  CommCall call_;
};

}  // namespace tahoma::sim
