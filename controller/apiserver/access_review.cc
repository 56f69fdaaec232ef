#include "controller/apiserver/access_review.h"

#include <array>
#include <string_view>

#include "controller/apiserver/status_error.h"
#include "lib/base/json.h"

namespace tahoma::controller {
namespace {

using json = Json;

struct Review {
  std::string_view plural;
  std::string_view group;
  std::string_view kind;
};

constexpr std::array kReviews = {
    Review{"selfsubjectaccessreviews", "authorization.k8s.io", "SelfSubjectAccessReview"},
    Review{"subjectaccessreviews", "authorization.k8s.io", "SubjectAccessReview"},
    Review{"localsubjectaccessreviews", "authorization.k8s.io", "LocalSubjectAccessReview"},
    Review{"selfsubjectrulesreviews", "authorization.k8s.io", "SelfSubjectRulesReview"},
    Review{"selfsubjectreviews", "authentication.k8s.io", "SelfSubjectReview"},
};

json StatusOfReview(std::string_view kind) {
  if (kind == "SelfSubjectReview") {
    return {{"userInfo", {{"username", "system:admin"}, {"groups", {"system:masters"}}}}};
  }
  if (kind == "SelfSubjectRulesReview") {
    return {{"incomplete", false},
            {"resourceRules", {{{"verbs", {"*"}}, {"apiGroups", {"*"}}, {"resources", {"*"}}}}},
            {"nonResourceRules", {{{"verbs", {"*"}}, {"nonResourceURLs", {"*"}}}}}};
  }
  return {{"allowed", true}};
}

}  // namespace

std::optional<rest::Response> ServeAccessReview(const rest::Request& request) {
  const std::string_view path = request.path;
  for (const Review& review : kReviews) {
    if (!path.starts_with("/apis/") || !path.substr(6).starts_with(review.group) ||
        !path.ends_with(std::string("/") + std::string(review.plural))) {
      continue;
    }
    if (request.method != "POST") return ResponseOf(MethodNotAllowedError());
    // The question is echoed where it is JSON; the answer does not depend on it.
    const json asked = json::parse(request.body, nullptr, false);
    json body = {{"kind", review.kind},
                 {"apiVersion", std::string(review.group) + "/v1"},
                 {"metadata", json::object()},
                 {"spec", asked.is_object() ? asked.value("spec", json::object()) : json::object()},
                 {"status", StatusOfReview(review.kind)}};
    return rest::Response::Json(201, body.dump());
  }
  return std::nullopt;
}

}  // namespace tahoma::controller
