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
#include <string_view>

#include "lib/wire/call.h"
#include "sim-node/workload/nccom_test.h"

namespace tahoma::sim {

class SocketNode final : public NccomNode {
 public:
  SocketNode(std::string address, std::string token)
      : client_(std::move(address)), token_(std::move(token)) {}

  absl::StatusOr<NccomJoined> Join(const NccomPlace& place, int cores) override;
  absl::StatusOr<NccomRun> Run(const NccomPlace& place, const NccomOptions& options,
                               std::uint64_t bytes) override;
  void Leave(const NccomPlace& place) override;

 private:
  wire::Client client_;
  const std::string token_;
};

}  // namespace tahoma::sim
