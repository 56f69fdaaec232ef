#include "controller/apiserver/http/access_review.h"

#include <absl/status/statusor.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "controller/apiserver/http/bounds.h"
#include "controller/apiserver/request/decode_body.h"
#include "controller/apiserver/request/status_error.h"
#include "controller/apiserver/request/typed_body.h"
#include "controller/apiserver/schema/causes.h"
#include "controller/apiserver/schema/fields.h"
#include "controller/apiserver/schema/kind.h"
#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/kube/object.h"

namespace tahoma::controller::apiserver {
namespace {

using json = Json;

struct AccessQuestion {
  const Kind& review;
  const Attributes& wanted;
  const json& spec;
  const rest::Identity& caller;
  const AccessTable& table;
  const NodeView& view;
  AskAccount account;
};

json UserInfo(const rest::Identity& user) {
  json info = {{"username", user.name}, {"groups", user.groups}};
  if (!user.uid.empty()) info["uid"] = user.uid;
  for (const auto& [key, values] : user.extra) info["extra"][key] = values;
  return info;
}

absl::Status Wrong(const AccessQuestion& question, const std::string& field, std::string_view why) {
  return InvalidError(question.review.group, question.review.kind, "",
                      {Invalid(field, "", std::string(why))});
}

absl::StatusOr<Attributes> AttributesIn(const AccessQuestion& question) {
  const json& resource = ValueAt(question.spec, {"resourceAttributes"});
  const json& path = ValueAt(question.spec, {"nonResourceAttributes"});
  if (resource.is_object() == path.is_object()) {
    return Wrong(question, "spec.resourceAttributes",
                 "exactly one of nonResourceAttributes or resourceAttributes must be specified");
  }
  if (path.is_object()) {
    Attributes asked{.verb = TextAt(path, "verb")};
    asked.path = TextAt(path, "path");
    return asked;
  }
  Attributes asked{.verb = TextAt(resource, "verb"),
                   .group = TextAt(resource, "group"),
                   .version = TextAt(resource, "version"),
                   .resource = TextAt(resource, "resource"),
                   .subresource = TextAt(resource, "subresource"),
                   .name_space = TextAt(resource, "namespace"),
                   .name = TextAt(resource, "name")};
  if (asked.resource.empty()) {
    return Wrong(question, "spec.resourceAttributes.resource", "a resource must be named");
  }
  return asked;
}

absl::StatusOr<rest::Identity> SubjectIn(const AccessQuestion& question) {
  rest::Identity subject{.name = TextAt(question.spec, "user"), .groups = {}};
  for (const json& group : ValueAt(question.spec, {"groups"})) {
    if (group.is_string()) subject.groups.push_back(group.get<std::string>());
  }
  if (subject.name.empty() && subject.groups.empty()) {
    return Wrong(question, "spec.user", "at least one of user or group must be specified");
  }
  return subject;
}

absl::StatusOr<json> MayCall(const AccessQuestion& question, const rest::Identity& subject) {
  TAHOMA_ASSIGN_OR_RETURN(const Attributes asked, AttributesIn(question));
  if (question.review.kind == "LocalSubjectAccessReview" &&
      (asked.name_space != question.wanted.name_space || asked.name_space.empty())) {
    return Wrong(question, "spec.resourceAttributes.namespace",
                 "must match the namespace of the request");
  }
  const AccessDecision decision = question.table.Authorize(subject, asked, question.view);
  json status = {{"allowed", decision.allowed}};
  if (decision.allowed) status["reason"] = fmt::format("the role {} allows it", decision.reason);
  return status;
}

json RulesOf(const AccessQuestion& question) {
  json resources = json::array();
  json paths = json::array();
  for (const Rule& rule :
       question.table.RulesFor(question.caller, TextAt(question.spec, "namespace"))) {
    if (rule.resources.empty()) {
      paths.push_back({{"verbs", rule.verbs}, {"nonResourceURLs", rule.paths}});
    } else {
      resources.push_back(
          {{"verbs", rule.verbs}, {"apiGroups", rule.groups}, {"resources", rule.resources}});
    }
  }
  return {{"incomplete", false},
          {"resourceRules", std::move(resources)},
          {"nonResourceRules", std::move(paths)}};
}

// Says whose the token is. A token of the identity file or of tokenFile is for this server, and so
// for whichever of its audiences are asked for.
absl::StatusOr<json> OwnerOfToken(const AccessQuestion& question) {
  const std::string token = TextAt(question.spec, "token");
  if (token.empty()) return BadRequestError("token is required for TokenReview in authentication");
  std::vector<std::string> audiences = kube::StringsAt(question.spec, {"audiences"});
  if (audiences.empty()) audiences = OwnAudiences();
  const auto known =
      question.table.open() ? nullptr : question.table.Authenticate(token, std::nullopt);
  if (known != nullptr) {
    const std::vector<std::string> own = OwnAudiences();
    std::erase_if(audiences, [&](const std::string& audience) {
      return std::ranges::find(own, audience) == own.end();
    });
    if (audiences.empty()) return json{{"user", json::object()}};
    return json{{"authenticated", true}, {"user", UserInfo(*known)}, {"audiences", audiences}};
  }
  const absl::StatusOr<AccountCaller> caller = question.account(token, audiences);
  if (!caller.ok()) {
    return json{{"user", json::object()}, {"error", Message(caller.status())}};
  }
  return json{
      {"authenticated", true}, {"user", UserInfo(caller->user)}, {"audiences", caller->audiences}};
}

absl::StatusOr<json> StatusOfReview(const AccessQuestion& question) {
  const std::string& kind = question.review.kind;
  if (kind == "SelfSubjectReview") return json{{"userInfo", UserInfo(question.caller)}};
  if (kind == "TokenReview") return OwnerOfToken(question);
  if (kind == "SelfSubjectRulesReview") return RulesOf(question);
  if (kind == "SelfSubjectAccessReview") return MayCall(question, question.caller);
  TAHOMA_ASSIGN_OR_RETURN(const rest::Identity subject, SubjectIn(question));
  return MayCall(question, subject);
}

absl::StatusOr<rest::Response> Answer(const Kind& review, const rest::Request& request,
                                      const Attributes& wanted, const AccessTable& table,
                                      const NodeView& view, AskAccount account) {
  if (request.body.size() > kReviewBytesMost) return TooLargeError(kReviewBytesMost);
  TAHOMA_ASSIGN_OR_RETURN(const DecodedBody body, DecodeBody(request));
  if (review.kind == "TokenReview") {
    TAHOMA_RETURN_IF_ERROR(CheckTyped("io.k8s.api.authentication.v1.TokenReview", *body.object));
  }
  const json& spec = ValueAt(*body.object, {"spec"});
  const AccessQuestion question{review, wanted, spec, *request.identity, table, view, account};
  TAHOMA_ASSIGN_OR_RETURN(json status, StatusOfReview(question));
  json answer = {{"kind", review.kind},
                 {"apiVersion", review.api_version()},
                 {"metadata", json::object()},
                 {"status", std::move(status)}};
  if (review.kind != "SelfSubjectReview") {
    answer["spec"] = spec.is_object() ? spec : json::object();
  }
  return rest::Response::Json(201, answer.dump());
}

}  // namespace

std::optional<rest::Response> ServeAccessReview(const rest::Request& request,
                                                const Attributes& wanted, const AccessTable& table,
                                                const NodeView& view, AskAccount account) {
  for (const auto& review : ReviewKinds()) {
    if (wanted.resource != review->plural || wanted.group != review->group ||
        wanted.version != review->version) {
      continue;
    }
    if (wanted.verb != "create" || !wanted.name.empty()) return ResponseOf(MethodNotAllowedError());
    absl::StatusOr<rest::Response> answer = Answer(*review, request, wanted, table, view, account);
    return answer.ok() ? *std::move(answer) : ResponseOf(answer.status());
  }
  return std::nullopt;
}

}  // namespace tahoma::controller::apiserver
