// The sim-node of this pod, over its workload socket.
//
//   SocketNode node("unix:/run/tahoma/node.sock", token);
//   node.Join(place, 0);
//
// Scope: the calls commJoin, commRun and commLeave of docs/formats/wire.md.
//
// Thread safety: none.

#pragma once

#include <string>
#include <utility>

#include "sim-node/workload/comm_call.h"
#include "sim-node/workload/nccom_test.h"

namespace tahoma::sim {

class SocketNode final : public NccomNode {
 public:
  SocketNode(std::string address, std::string token)
      : call_(std::move(address), std::move(token)) {}

  absl::StatusOr<CommJoined> Join(const CommPlace& place, int cores) override {
    return call_.Join(place, cores);
  }
  absl::StatusOr<NccomRun> Run(const CommPlace& place, const NccomOptions& options,
                               const NccomDivision& division, std::uint64_t bytes) override;
  void Leave(const CommPlace& place) override { call_.Leave(place); }

 private:
  CommCall call_;
};

}  // namespace tahoma::sim
