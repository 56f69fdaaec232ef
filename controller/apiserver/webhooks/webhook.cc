#include "controller/apiserver/webhooks/webhook.h"

#include <absl/strings/escaping.h>
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "controller/apiserver/schema/fields.h"
#include "controller/apiserver/schema/selector_text.h"
#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/kube/object.h"

namespace tahoma::controller::apiserver {
namespace {

bool HasOrAll(const std::vector<std::string>& list, std::string_view wanted) {
  return std::ranges::any_of(list,
                             [&](const std::string& one) { return one == "*" || one == wanted; });
}

// Whether "pods/status", "pods/*", "*/scale" or "*" means the resource and its subresource.
bool MeansResource(std::string_view text, const Subject& subject) {
  const std::size_t slash = text.find('/');
  const std::string_view resource = text.substr(0, slash);
  const std::string_view sub = slash == std::string_view::npos ? "" : text.substr(slash + 1);
  return (resource == "*" || resource == subject.resource.resource) &&
         (sub == "*" || sub == subject.subresource);
}

bool IsNamespace(const GroupVersionResource& resource) {
  return resource.group.empty() && resource.resource == "namespaces";
}

// Validation has let through only selectors that can be read.
kube::LabelSelector SelectorOf(const Json& selector) {
  return LabelSelectorOf(selector).value_or(kube::LabelSelector());
}

WebhookTarget TargetOf(const Json& client) {
  WebhookTarget target;
  target.url = TextAt(client, "url");
  const Json& service = ValueAt(client, {"service"});
  target.service = TextAt(service, "name");
  target.service_namespace = TextAt(service, "namespace");
  target.service_port = kube::IntAt(service, {"port"});
  target.path = TextAt(service, "path");
  if (!target.path.empty() && !target.path.starts_with('/')) target.path.insert(0, 1, '/');
  const std::string bundle = TextAt(client, "caBundle");
  if (!absl::Base64Unescape({bundle.data(), bundle.size()}, &target.ca_pem)) target.ca_pem.clear();
  return target;
}

// The first version that the webhook knows and that this program knows, too.
std::string ReviewVersionOf(const Json& versions) {
  for (const Json& version : versions) {
    if (version == "v1" || version == "v1beta1") return version.get<std::string>();
  }
  return "";
}

Webhook WebhookOf(const std::string& configuration, const Json& made) {
  Webhook webhook{.configuration = configuration, .name = TextAt(made, "name")};
  webhook.target = TargetOf(ValueAt(made, {"clientConfig"}));
  for (const Json& rule : ValueAt(made, {"rules"})) {
    webhook.rules.push_back({.operations = kube::StringsAt(rule, {"operations"}),
                             .groups = kube::StringsAt(rule, {"apiGroups"}),
                             .versions = kube::StringsAt(rule, {"apiVersions"}),
                             .resources = kube::StringsAt(rule, {"resources"}),
                             .scope = TextAt(rule, "scope")});
  }
  webhook.namespaces = SelectorOf(ValueAt(made, {"namespaceSelector"}));
  webhook.objects = SelectorOf(ValueAt(made, {"objectSelector"}));
  for (const Json& condition : ValueAt(made, {"matchConditions"})) {
    const std::string text = TextAt(condition, "expression");
    webhook.conditions.push_back(
        {.name = TextAt(condition, "name"),
         .text = text,
         .expression = std::make_shared<const absl::StatusOr<kube::NamedExpression>>(
             kube::NamedExpression::Compile(text, {"object", "oldObject", "request"}))});
  }
  webhook.ignores_failures = TextAt(made, "failurePolicy") == "Ignore";
  webhook.equivalent = TextAt(made, "matchPolicy") != "Exact";
  webhook.reinvoked = TextAt(made, "reinvocationPolicy") == "IfNeeded";
  webhook.review_version = ReviewVersionOf(ValueAt(made, {"admissionReviewVersions"}));
  webhook.timeout = std::chrono::seconds(kube::IntAt(made, {"timeoutSeconds"}));
  return webhook;
}

}  // namespace

std::string WebhookTarget::Text() const {
  if (!url.empty()) return url;
  return fmt::format("https://{}.{}.svc:{}{}", service, service_namespace, service_port, path);
}

bool WebhookRule::Matches(const Subject& subject, std::string_view version) const {
  const bool clusters = IsNamespace(subject.resource) || subject.name_space.empty();
  if (scope == "Namespaced" && clusters) return false;
  if (scope == "Cluster" && !clusters) return false;
  return HasOrAll(operations, subject.operation) && HasOrAll(groups, subject.resource.group) &&
         HasOrAll(versions, version) &&
         std::ranges::any_of(resources,
                             [&](const std::string& text) { return MeansResource(text, subject); });
}

std::optional<std::string> Webhook::Matches(const Subject& subject,
                                            const std::vector<std::string>& versions) const {
  const auto has_rule = [&](std::string_view version) {
    return std::ranges::any_of(
        rules, [&](const WebhookRule& rule) { return rule.Matches(subject, version); });
  };
  if (has_rule(subject.resource.version)) return subject.resource.version;
  if (!equivalent) return std::nullopt;
  // Earlier rules count before earlier versions.
  for (const WebhookRule& rule : rules) {
    for (const std::string& version : versions) {
      if (rule.Matches(subject, version)) return version;
    }
  }
  return std::nullopt;
}

bool TakesLabels(const kube::LabelSelector& selector, const Json& object) {
  const Json& labels = ValueAt(object, {"metadata", "labels"});
  return selector.Matches([&](std::string_view key) -> std::optional<std::string_view> {
    const Json* value = FindMember(labels, key);
    if (value == nullptr || !value->is_string()) return std::nullopt;
    return value->get_ref<const std::string&>();
  });
}

bool Webhook::TakesObject(const Json& object, const Json& old_object) const {
  if (objects.empty()) return true;
  return (!object.is_null() && TakesLabels(objects, object)) ||
         (!old_object.is_null() && TakesLabels(objects, old_object));
}

absl::StatusOr<bool> Webhook::ConditionsHold(const Json& object, const Json& old_object,
                                             const Json& request) const {
  absl::Status failure;
  for (const MatchCondition& condition : conditions) {
    const absl::StatusOr<kube::NamedExpression>& expression = *condition.expression;
    const absl::StatusOr<bool> holds = expression.ok()
                                           ? expression->Evaluate({&object, &old_object, &request})
                                           : absl::StatusOr<bool>(expression.status());
    if (holds.ok() && !*holds) return false;
    if (!holds.ok() && failure.ok()) {
      failure = FailedPrecondition("expression '{}' resulted in error: {}", condition.text,
                                   Message(holds.status()));
    }
  }
  if (failure.ok()) return true;
  if (ignores_failures) return false;
  return failure;
}

std::vector<Webhook> WebhooksOf(const Json& configuration) {
  std::vector<Webhook> webhooks;
  const std::string name = TextAt(MetadataOf(configuration), "name");
  for (const Json& made : ValueAt(configuration, {"webhooks"})) {
    webhooks.push_back(WebhookOf(name, made));
  }
  return webhooks;
}

}  // namespace tahoma::controller::apiserver
