#include "controller/admin/admin_access.h"

#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "lib/rest/bearer.h"

namespace tahoma::controller {
namespace {

constexpr std::string_view kGroup = "tahoma.dev";
constexpr std::string_view kBlocksPath = "/v1/capacityblocks/";

// The namespace and name after `prefix`, as /v1/gangs/a/b has them.
std::optional<std::pair<std::string, std::string>> NamesAfter(std::string_view prefix,
                                                              std::string_view path) {
  if (!path.starts_with(prefix)) return std::nullopt;
  path.remove_prefix(prefix.size());
  const std::size_t slash = path.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  auto name_space = rest::PercentDecode(path.substr(0, slash));
  auto name = rest::PercentDecode(path.substr(slash + 1));
  if (!name_space || !name || name_space->empty()) return std::nullopt;
  return std::pair(*std::move(name_space), *std::move(name));
}

// Whether the audit records the request: it records changes, and reads that only admins may make,
// since a backup holds every Secret.
bool LeavesALine(const Attributes& wanted) {
  return IsAudited(wanted) || (!wanted.is_resource() && wanted.path != "/metrics");
}

}  // namespace

Attributes AdminAttributes(const rest::Request& head) {
  const std::string_view path = head.path;
  if (head.method == "GET" || head.method == "HEAD") {
    if (path == "/v1/topology" || path == "/v1/nodes") return {.verb = "list", .resource = "nodes"};
    if (path == "/v1/gangs") {
      return {.verb = "list", .group = std::string(kGroup), .resource = "gangs"};
    }
    if (path == "/v1/capacityblocks" || path == "/v1/clock") {
      return {.verb = "list", .group = std::string(kGroup), .resource = "capacityblocks"};
    }
    if (path == "/v1/capacityblockofferings") {
      // Whoever may see the blocks of some namespace may see what is for sale; he names it.
      return {.verb = "get",
              .group = std::string(kGroup),
              .resource = "capacityblockofferings",
              .name_space = head.query_value("namespace").value_or("")};
    }
    if (auto names = NamesAfter(kBlocksPath, path)) {
      return {.verb = "get",
              .group = std::string(kGroup),
              .resource = "capacityblocks",
              .name_space = std::move(names->first),
              .name = std::move(names->second)};
    }
    for (const std::string_view prefix : {"/v1/gangs/", "/v1/why/"}) {
      if (auto names = NamesAfter(prefix, path)) {
        return {.verb = "get",
                .group = std::string(kGroup),
                .resource = "gangs",
                .name_space = std::move(names->first),
                .name = std::move(names->second)};
      }
    }
  }
  if (head.method == "POST" && path.starts_with(kBlocksPath)) {
    // To buy is to create a CapacityBlock, and so is to extend one.
    const std::string_view after = path.substr(kBlocksPath.size());
    return {.verb = "create",
            .group = std::string(kGroup),
            .resource = "capacityblocks",
            .name_space = rest::PercentDecode(after.substr(0, after.find('/'))).value_or("")};
  }
  return PathAttributes(head.method, head.path);
}

std::optional<rest::Response> AdminAccess::Admit(rest::Request& head) {
  const auto table = access_->table();
  const bool open = table->open();
  // An open table knows everybody, and says nothing about those that the cluster knows.
  if (!open || cluster_ == nullptr) head.identity = table->Authenticate(head);
  if (head.identity == nullptr) {
    return cluster_ == nullptr ? rest::TokenRefusal(head) : AdmitByCluster(head);
  }
  if (open) return std::nullopt;
  const Attributes wanted = AdminAttributes(head);
  if (table->Authorize(*head.identity, wanted, NoObjects()).allowed) return std::nullopt;
  return Forbid(head, wanted);
}

std::optional<rest::Response> AdminAccess::AdmitByCluster(rest::Request& head) {
  const std::optional<std::string_view> token = rest::BearerToken(head.header("Authorization"));
  if (!token || token->empty()) return rest::TokenRefusal(head);
  const Attributes wanted = PathAttributes(head.method, head.path);
  ClusterAccess::Verdict verdict = cluster_->Ask(*token, wanted);
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
  return rest::Response::Problem(503, verdict.reason);
}

rest::Response AdminAccess::Forbid(const rest::Request& head, const Attributes& denied) {
  rest::Response refusal = rest::Response::Problem(403, DenialOf(*head.identity, denied));
  const Attributes wanted = AdminAttributes(head);
  if (LeavesALine(wanted)) auditor_.Record(head, wanted, {}, refusal, auditor_.Now());
  return refusal;
}

rest::Handler AdminAccess::Audited(rest::Handler handler) {
  return [this, handler = std::move(handler)](const rest::Request& request) {
    const WallTime received = auditor_.Now();
    const Attributes wanted = AdminAttributes(request);
    const AccessDecision decision =
        access_->table()->Authorize(*request.identity, wanted, NoObjects());
    if (!auditor_.MayChange()) {
      return rest::Response::Problem(503, "the audit file cannot be written; nothing is done");
    }
    // The permission is checked again: it may have been withdrawn since the gate checked it.
    rest::Response answer = decision.allowed
                                ? handler(request)
                                : rest::Response::Problem(403, DenialOf(*request.identity, wanted));
    const std::string id = auditor_.Record(request, wanted, decision, answer, received);
    if (!id.empty()) answer.headers.emplace_back("Audit-Id", id);
    return answer;
  };
}

}  // namespace tahoma::controller
