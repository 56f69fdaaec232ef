#include "controller/admin/admin_access.h"

#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "controller/access/impersonation.h"
#include "lib/rest/bearer.h"
#include "lib/rest/listener.h"

namespace tahoma::controller {
namespace {

// Returns whether the audit records the request: changes, and reads for admins only, because a
// backup holds every Secret.
bool LeavesALine(const Attributes& wanted) {
  return IsAudited(wanted) || (!wanted.is_resource() && wanted.path != "/metrics");
}

// A node's rights are rules of the Kubernetes API, which checks each change of the Node. Here the
// right to patch its Node would let a node cordon and drain itself.
AccessDecision Decide(const AccessTable& table, const rest::Identity& user,
                      const Attributes& wanted) {
  return NodeOf(user) ? AccessDecision{} : table.Authorize(user, wanted, NoObjects());
}

}  // namespace

std::optional<rest::Response> AdminAccess::Admit(rest::Request& head) {
  const auto other = ImpersonationOf(head.headers);
  if (!other.ok() || *other) {
    return rest::Response::Problem(
        400, "nobody acts as another user on the admin API; leave out the headers Impersonate-*");
  }
  const auto table = access_->table();
  const bool open = table->open();
  // An open table knows every caller, and hides the callers that the cluster knows.
  if (!open || cluster_ == nullptr) head.identity = table->Authenticate(head);
  if (head.identity == nullptr) {
    return cluster_ == nullptr ? rest::TokenRefusal(head) : AdmitByCluster(head);
  }
  if (open) return std::nullopt;
  const Attributes wanted = routes_.AttributesOf(head);
  if (Decide(*table, *head.identity, wanted).allowed) return std::nullopt;
  return Forbid(head, wanted);
}

std::optional<rest::Response> AdminAccess::AdmitByCluster(rest::Request& head) {
  const std::optional<std::string_view> token = rest::BearerToken(head.header("Authorization"));
  if (!token || token->empty()) return rest::TokenRefusal(head);
  const Attributes wanted = PathAttributes(head.method, head.path);
  ClusterAccess::Verdict verdict = cluster_->Ask(*token, rest::ClientOfPeer(head.peer), wanted);
  head.identity = std::move(verdict.identity);
  switch (verdict.answer) {
    case ClusterAccess::Answer::kAllowed:
      return std::nullopt;
    case ClusterAccess::Answer::kForbidden:
      return Forbid(head, wanted);
    case ClusterAccess::Answer::kUnknownToken:
      return rest::TokenRefusal(head);
    case ClusterAccess::Answer::kNoAnswer:
      break;
  }
  return rest::Response::Problem(503, verdict.reason).With("Retry-After", "1");
}

rest::Response AdminAccess::Forbid(const rest::Request& head, const Attributes& denied) {
  rest::Response refusal = rest::Response::Problem(403, DenialOf(*head.identity, denied));
  const Attributes wanted = routes_.AttributesOf(head);
  if (LeavesALine(wanted)) auditor_.Record(head, wanted, {}, refusal, auditor_.Now());
  return refusal;
}

AccessDecision AdminAccess::Authorize(const rest::Request& request, const Attributes& wanted) {
  const auto table = access_->table();
  if (cluster_ == nullptr || (!table->open() && table->Authenticate(request) != nullptr)) {
    return Decide(*table, *request.identity, wanted);
  }
  const std::optional<std::string_view> token = rest::BearerToken(request.header("Authorization"));
  if (!token || token->empty()) return {};
  const auto verdict = cluster_->Ask(*token, rest::ClientOfPeer(request.peer),
                                     PathAttributes(request.method, request.path));
  if (verdict.answer != ClusterAccess::Answer::kAllowed) return {};
  return {.allowed = true, .reason = "the cluster allows it"};
}

rest::Handler AdminAccess::Audited(rest::Handler handler) {
  return [this, handler = std::move(handler)](const rest::Request& request) {
    const WallTime received = auditor_.Now();
    const Attributes wanted = routes_.AttributesOf(request);
    const AccessDecision decision = Authorize(request, wanted);
    if (!auditor_.MayChange()) {
      return rest::Response::Problem(503, "the audit file cannot be written; nothing is done");
    }
    // The permission was checked again above: it may have been withdrawn since the gate.
    rest::Response answer = decision.allowed
                                ? handler(request)
                                : rest::Response::Problem(403, DenialOf(*request.identity, wanted));
    const std::string id = auditor_.Record(request, wanted, decision, answer, received);
    if (!id.empty()) answer.headers.emplace_back("Audit-Id", id);
    return answer;
  };
}

}  // namespace tahoma::controller
