// The sim-node of this pod, over its workload socket, for trn-run.
//
//   SocketCoreNode node("unix:/run/tahoma/node.sock", token);
//   node.Run(options, ranks, program);
//
// Scope: the calls coreCounters, memStore, memLoad and coreRun of docs/formats/wire.md.
//
// Thread safety: none.

#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sim-node/workload/comm_call.h"
#include "sim-node/workload/trn_run.h"
#include "sim-node/workload/usage_node.h"

namespace tahoma::sim {

class SocketCoreNode final : public CoreNode {
 public:
  SocketCoreNode(std::string address, std::string token)
      : call_(address, token), usage_(std::move(address), std::move(token)) {}

  absl::StatusOr<CoreReading> Counters() override { return usage_.Read(); }

  absl::Status Store(int chip, std::uint64_t address, const std::string& bytes) override {
    return call_.Store(chip, address, bytes);
  }
  absl::StatusOr<std::string> Load(int chip, std::uint64_t address, std::uint64_t bytes) override {
    return call_.Load(chip, address, bytes);
  }
  absl::StatusOr<CoreReport> Run(const TrnRunOptions& options, const std::vector<RankPlace>& ranks,
                                 const std::string& program) override;

 private:
  CommCall call_;
  UsageNode usage_;
};

}  // namespace tahoma::sim
