#include "dra-plugin/run/node_client.h"

#include <chrono>

#include "lib/base/status.h"

namespace tahoma::dra {
namespace {

// Well inside the kubelet's 45 s for a whole call.
constexpr std::chrono::seconds kCallTimeout(10);

}  // namespace

absl::StatusOr<std::string> NodeClient::Call(std::string_view method, std::string params) {
  absl::StatusOr<wire::Reply> reply =
      client_.Call({.method = std::string(method), .params = std::move(params)}, kCallTimeout);
  if (!reply.ok()) return Annotate(reply.status(), fmt::format("sim-node, {}", method));
  return std::move(reply->result);
}

absl::StatusOr<wire::Inventory> NodeClient::GetInventory() {
  TAHOMA_ASSIGN_OR_RETURN(const std::string result, Call(wire::kInventory, "{}"));
  return wire::DecodeInventory(result);
}

absl::StatusOr<std::string> NodeClient::Apply(const wire::ClaimGrant& grant,
                                              const std::string& token) {
  TAHOMA_ASSIGN_OR_RETURN(
      const std::string result,
      Call(wire::kApplyClaim, wire::EncodeApplyParams({.grant = grant, .token = token})));
  return wire::DecodeToken(result);
}

absl::Status NodeClient::Release(const std::string& claim_uid) {
  return Call(wire::kReleaseClaim, wire::EncodeClaimUid(claim_uid)).status();
}

absl::StatusOr<std::vector<wire::ClaimGrant>> NodeClient::List() {
  TAHOMA_ASSIGN_OR_RETURN(const std::string result, Call(wire::kListClaims, "{}"));
  return wire::DecodeClaimList(result);
}

}  // namespace tahoma::dra
