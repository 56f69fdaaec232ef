// sim-node as the claims' state machine sees it, over the wire.
//
// Thread safety: every member may be called from any thread; calls wait for one another.

#pragma once

#include <string>
#include <vector>

#include "dra-plugin/claims/claims.h"
#include "lib/wire/call.h"

namespace tahoma::dra {

class NodeClient final : public NodePort {
 public:
  explicit NodeClient(std::string address) : client_(std::move(address)) {}

  absl::StatusOr<wire::Inventory> GetInventory() override;
  absl::StatusOr<std::string> Apply(const wire::ClaimGrant& grant,
                                    const std::string& token) override;
  absl::Status Release(const std::string& claim_uid) override;
  absl::StatusOr<std::vector<wire::ClaimGrant>> List() override;

  // Fails the running call and those to come.
  void Close() { client_.Close(); }

 private:
  absl::StatusOr<std::string> Call(std::string_view method, std::string params);

  wire::Client client_;
};

}  // namespace tahoma::dra
