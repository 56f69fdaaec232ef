#include "controller/apiserver/webhooks/review.h"

#include <absl/strings/escaping.h>
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "controller/apiserver/request/status_error.h"
#include "controller/apiserver/schema/fields.h"
#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/kube/object.h"

namespace tahoma::controller::apiserver {
namespace {

constexpr std::string_view kReview = "AdmissionReview";
constexpr std::size_t kWarningsOfAnswerMax = 50;
constexpr int kCodeLeast = 400;
constexpr int kCodeMost = 599;

std::string ApiVersion(std::string_view version) {
  return fmt::format("admission.k8s.io/{}", version);
}

Json KindOf(const GroupVersionKind& kind) {
  return {{"group", kind.group}, {"version", kind.version}, {"kind", kind.kind}};
}

Json ResourceOf(const GroupVersionResource& resource) {
  return {
      {"group", resource.group}, {"version", resource.version}, {"resource", resource.resource}};
}

// A refusal has a code of an error, whatever the webhook says.
absl::Status RefusalOf(const std::string& webhook, const Json& status) {
  std::int64_t code = kube::IntAt(status, {"code"});
  if (code < kCodeLeast || code > kCodeMost) code = kCodeLeast;
  const std::string reason = TextAt(status, "reason");
  std::string message = TextAt(status, "message");
  if (message.empty()) message = reason;
  const std::string denied = fmt::format("admission webhook \"{}\" denied the request", webhook);
  return WebhookDeniedError(
      static_cast<int>(code), reason,
      message.empty() ? denied + " without explanation" : fmt::format("{}: {}", denied, message),
      ValueAt(status, {"details"}));
}

absl::Status CheckEnvelope(const Json& review, const Webhook& webhook, std::string_view uid) {
  const Json& response = ValueAt(review, {"response"});
  if (!response.is_object()) return InvalidArgument("webhook response was absent");
  // Kubernetes checks neither in v1beta1.
  if (webhook.review_version != "v1") return absl::OkStatus();
  if (const std::string given = TextAt(response, "uid"); given != uid) {
    return InvalidArgument("expected response.uid=\"{}\", got \"{}\"", uid, given);
  }
  const std::string api_version = TextAt(review, "apiVersion");
  const std::string kind = TextAt(review, "kind");
  if (api_version == ApiVersion("v1") && kind == kReview) return absl::OkStatus();
  return InvalidArgument("expected webhook response of {}, Kind={}, got {}, Kind={}",
                         ApiVersion("v1"), kReview, api_version, kind);
}

// Returns the operations of the patch; null when there is none.
absl::StatusOr<std::shared_ptr<const Json>> PatchOf(const Json& response, bool mutating,
                                                    bool is_v1) {
  const std::string encoded = TextAt(response, "patch");
  const std::string type = TextAt(response, "patchType");
  const bool has_type = !ValueAt(response, {"patchType"}).is_null();
  if (!mutating && is_v1 && !encoded.empty()) {
    return InvalidArgument("validating webhook may not return response.patch");
  }
  if (!mutating && is_v1 && has_type) {
    return InvalidArgument("validating webhook may not return response.patchType");
  }
  if (!mutating) return nullptr;
  if (is_v1 && !encoded.empty() && !has_type) {
    return InvalidArgument("webhook returned response.patch but not response.patchType");
  }
  if (is_v1 && encoded.empty() && has_type) {
    return InvalidArgument("webhook returned response.patchType but not response.patch");
  }
  if (encoded.empty()) return nullptr;
  if (is_v1 && type != "JSONPatch") return InvalidArgument("unsupported patch type \"{}\"", type);
  std::string text;
  if (!absl::Base64Unescape({encoded.data(), encoded.size()}, &text)) {
    return InvalidArgument("response.patch is no base64");
  }
  auto patch = std::make_shared<const Json>(TryParseJson(text));
  if (!patch->is_array()) {
    return InvalidArgument("received undecodable patch in webhook response: not a JSON array");
  }
  return patch->empty() ? nullptr : patch;
}

}  // namespace

Json ReviewOf(const Webhook& webhook, const Subject& subject, std::string_view version,
              std::string_view uid, const Json& object, const Json& old_object) {
  GroupVersionResource resource = subject.resource;
  GroupVersionKind kind = subject.kind;
  // A subresource with a kind of its own, a Scale, has one version only.
  if (kind.version == resource.version && kind.group == resource.group) kind.version = version;
  resource.version = version;
  Json request = {{"uid", uid},
                  {"kind", KindOf(kind)},
                  {"resource", ResourceOf(resource)},
                  {"requestKind", KindOf(subject.kind)},
                  {"requestResource", ResourceOf(subject.resource)},
                  {"operation", subject.operation},
                  {"userInfo", subject.user ? *subject.user : Json()},
                  {"object", object},
                  {"oldObject", old_object},
                  {"dryRun", subject.dry_run},
                  {"options", subject.options ? *subject.options : Json()}};
  if (!subject.name.empty()) request["name"] = subject.name;
  if (!subject.name_space.empty()) request["namespace"] = subject.name_space;
  if (!subject.subresource.empty()) {
    request["subResource"] = request["requestSubResource"] = subject.subresource;
  }
  return {{"kind", kReview},
          {"apiVersion", ApiVersion(webhook.review_version)},
          {"request", std::move(request)}};
}

absl::StatusOr<ReviewVerdict> ReadVerdict(std::string_view text, const Webhook& webhook,
                                          bool mutating, std::string_view uid) {
  const Json review = TryParseJson(text);
  if (!review.is_object()) return InvalidArgument("the answer is no JSON object");
  TAHOMA_RETURN_IF_ERROR(CheckEnvelope(review, webhook, uid));
  const Json& response = ValueAt(review, {"response"});
  ReviewVerdict verdict;
  TAHOMA_ASSIGN_OR_RETURN(verdict.patch,
                          PatchOf(response, mutating, webhook.review_version == "v1"));
  for (const Json& warning : ValueAt(response, {"warnings"})) {
    if (verdict.warnings.size() == kWarningsOfAnswerMax) break;
    if (warning.is_string()) verdict.warnings.push_back(warning.get<std::string>());
  }
  verdict.allowed = ValueAt(response, {"allowed"}) == true;
  if (!verdict.allowed) verdict.refusal = RefusalOf(webhook.name, ValueAt(response, {"status"}));
  return verdict;
}

}  // namespace tahoma::controller::apiserver
