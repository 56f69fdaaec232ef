// An admission webhook: whether it is asked about a request, and how it is reached.
//
// Configurations were checked when they were stored (validation/webhooks.cc). A match condition
// that does not compile here is an error whenever it is asked.
//
// Scope: a webhook by itself. The order of webhooks and their answers are in webhooks.h.
//
// Thread safety: values; matching is const.

#pragma once

#include <absl/status/statusor.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "controller/apiserver/schema/kind.h"
#include "lib/base/json_fwd.h"
#include "lib/kube/cel/named_expression.h"
#include "lib/kube/selector.h"

namespace tahoma::controller::apiserver {

struct GroupVersionResource {
  std::string group;
  std::string version;
  std::string resource;
};

// A request that webhooks are asked about, without the object.
struct Subject {
  std::string operation;  // CREATE, UPDATE, DELETE
  GroupVersionResource resource;
  GroupVersionKind kind;  // of the object: a Scale for …/scale
  std::string subresource = {};
  std::string name = {};
  std::string name_space = {};  // of a Namespace: its own name
  bool dry_run = false;
  std::shared_ptr<const Json> user = {};     // userInfo
  std::shared_ptr<const Json> options = {};  // CreateOptions and the like
};

// Where a webhook is.
struct WebhookTarget {
  std::string url = {};  // https://…; empty: a service
  std::string service = {};
  std::string service_namespace = {};
  std::int64_t service_port = 0;
  std::string path = {};    // of the service; begins with "/" or is empty
  std::string ca_pem = {};  // empty: the machine's authorities

  // The URL for people: of a service by its name in DNS.
  std::string Text() const;
};

struct WebhookRule {
  std::vector<std::string> operations;
  std::vector<std::string> groups;
  std::vector<std::string> versions;
  std::vector<std::string> resources;  // "pods", "pods/status", "*/scale", "*/*"
  std::string scope;                   // "*", Namespaced, Cluster

  // Whether the rule is about the resource in that version.
  bool Matches(const Subject& subject, std::string_view version) const;
};

struct MatchCondition {
  std::string name;
  std::string text;
  std::shared_ptr<const absl::StatusOr<kube::NamedExpression>> expression;
};

struct Webhook {
  std::string configuration;
  std::string name;
  WebhookTarget target = {};
  std::vector<WebhookRule> rules = {};
  kube::LabelSelector namespaces = {};
  kube::LabelSelector objects = {};
  std::vector<MatchCondition> conditions = {};
  bool ignores_failures = false;
  bool equivalent = true;           // matchPolicy
  bool reinvoked = false;           // reinvocationPolicy IfNeeded
  std::string review_version = {};  // v1, v1beta1
  std::chrono::seconds timeout = std::chrono::seconds(10);

  // Returns the version of the resource in which the webhook wants the object; nullopt when no rule
  // is about the request. `versions` are all in which the resource is served.
  std::optional<std::string> Matches(const Subject& subject,
                                     const std::vector<std::string>& versions) const;
  // Whether the selector of objects takes the object as it is or as it was; null: there is none.
  bool TakesObject(const Json& object, const Json& old_object) const;
  // Whether all match conditions hold. A condition that cannot be evaluated counts as one that does
  // not hold where failures are ignored; otherwise its error is returned.
  absl::StatusOr<bool> ConditionsHold(const Json& object, const Json& old_object,
                                      const Json& request) const;
};

// The webhooks of a MutatingWebhookConfiguration or ValidatingWebhookConfiguration, in their order.
std::vector<Webhook> WebhooksOf(const Json& configuration);

// Whether a selector takes the labels of the object's metadata.
bool TakesLabels(const kube::LabelSelector& selector, const Json& object);

}  // namespace tahoma::controller::apiserver
