#include "controller/apiserver/schema/api_approval.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include <array>

#include "controller/apiserver/schema/fields.h"
#include "lib/base/json.h"

namespace tahoma::controller::apiserver {
namespace {

constexpr const char* kAnnotation = "api-approved.kubernetes.io";
constexpr const char* kField = "metadata.annotations[api-approved.kubernetes.io]";
constexpr const char* kCondition = "KubernetesAPIApprovalPolicyConformant";
constexpr const char* kMissingText =
    "protected groups must have approval annotation \"api-approved.kubernetes.io\", see "
    "https://github.com/kubernetes/enhancements/pull/1111";
constexpr const char* kInvalidText =
    "protected groups must have approval annotation \"api-approved.kubernetes.io\" with either a "
    "URL or a reason starting with \"unapproved\", see "
    "https://github.com/kubernetes/enhancements/pull/1111";

bool IsProtected(std::string_view group) {
  return group == "k8s.io" || group.ends_with(".k8s.io") || group == "kubernetes.io" ||
         group.ends_with(".kubernetes.io");
}

// Whether Go's url.ParseRequestURI finds a scheme and a host.
bool IsUrlWithHost(const std::string& text) {
  static const RE2* const kUrl =
      new RE2(R"([A-Za-z][A-Za-z0-9+.-]*://(?:[A-Za-z0-9._~!$&'()*+,;=:%-]*@)?)"
              R"(((?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._~!$&'()*+,;=\x80-\xff-]*)(?::[0-9]*)?))"
              R"((?:/(?:[^%?[:cntrl:]]|%[0-9A-Fa-f]{2})*)?(?:\?[^[:cntrl:]]*)?)",
              RE2::Latin1);
  std::string host;
  return RE2::FullMatch(text, *kUrl, &host) && !host.empty();
}

// The condition's status and reason.
std::pair<const char*, const char*> ShownAs(ApiApproval::State state) {
  switch (state) {
    case ApiApproval::State::kMissing:
      return {"False", "MissingAnnotation"};
    case ApiApproval::State::kInvalid:
      return {"False", "InvalidAnnotation"};
    case ApiApproval::State::kUnapproved:
      return {"False", "UnapprovedAnnotation"};
    case ApiApproval::State::kApproved:
      break;
  }
  return {"True", "ApprovedAnnotation"};
}

}  // namespace

std::optional<ApiApproval> ApprovalOf(const Json& crd) {
  using State = ApiApproval::State;
  if (!IsProtected(TextAt(crd, {"spec", "group"}))) return std::nullopt;
  const std::string text = TextAt(crd, {"metadata", "annotations", kAnnotation});
  if (text.empty()) return ApiApproval{State::kMissing, text, kMissingText};
  if (text.starts_with("unapproved")) {
    return ApiApproval{State::kUnapproved, text, fmt::format("not approved: \"{}\"", text)};
  }
  if (IsUrlWithHost(text)) {
    return ApiApproval{State::kApproved, text, fmt::format("approved in {}", text)};
  }
  return ApiApproval{State::kInvalid, text, kInvalidText};
}

void CheckApproval(const Json& old_crd, const Json& crd, Causes& causes) {
  const std::optional<ApiApproval> approval = ApprovalOf(crd);
  if (!approval) return;
  const std::optional<ApiApproval> before = ApprovalOf(old_crd);
  if (before && before->state == approval->state) return;
  if (approval->state == ApiApproval::State::kMissing) {
    causes.push_back(Required(kField, approval->reason));
  }
  if (approval->state == ApiApproval::State::kInvalid) {
    causes.push_back(Invalid(kField, approval->annotation, approval->reason));
  }
}

void SetApprovalCondition(std::string_view now, Json& crd) {
  const std::optional<ApiApproval> approval = ApprovalOf(crd);
  if (!approval) return;
  const auto [status, reason] = ShownAs(approval->state);
  Json next = {{"type", kCondition},
               {"status", status},
               {"lastTransitionTime", now},
               {"reason", reason},
               {"message", approval->reason}};
  Json& conditions = crd["status"]["conditions"];
  if (!conditions.is_array()) conditions = Json::array();
  for (std::size_t i = 0; i < conditions.size(); ++i) {
    if (TextAt(conditions[i], "type") != kCondition) continue;
    const std::string since = TextAt(conditions[i], "lastTransitionTime");
    if (TextAt(conditions[i], "status") == status && !since.empty()) {
      next["lastTransitionTime"] = since;
    }
    conditions[i] = std::move(next);
    return;
  }
  conditions.push_back(std::move(next));
}

}  // namespace tahoma::controller::apiserver
