#include "controller/apiserver/webhooks/webhooks.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "controller/apiserver/merge/field_text.h"
#include "controller/apiserver/request/status_error.h"
#include "controller/apiserver/schema/fields.h"
#include "controller/apiserver/webhooks/endpoint.h"
#include "controller/apiserver/webhooks/review.h"
#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/kube/json_writer.h"
#include "lib/kube/patch.h"

namespace tahoma::controller::apiserver {
namespace {

constexpr std::string_view kGroup = "admissionregistration.k8s.io";
constexpr std::size_t kWarningsMax = 50;

std::vector<Webhook> ReadAll(const ObjectStore& objects, const char* plural) {
  std::vector<Webhook> all;
  // Objects of cluster scope are listed by name.
  for (const ObjectPtr& configuration : objects.List({std::string(kGroup), plural}, "").objects) {
    for (Webhook& webhook : WebhooksOf(*configuration->body)) all.push_back(std::move(webhook));
  }
  return all;
}

// The object in that version, as clients see it.
Json Shown(const Json& object, const GroupVersionKind& kind, std::string_view version) {
  if (object.is_null()) return object;
  Json shown = object;
  ExpandFields(shown);
  shown["kind"] = kind.kind;
  shown["apiVersion"] = GroupVersionKind{kind.group, std::string(version), kind.kind}.api_version();
  return shown;
}

absl::Status Failed(const Webhook& webhook, std::string_view why) {
  return Internal("failed calling webhook \"{}\": {}", webhook.name, why);
}

}  // namespace

struct Webhooks::Round {
  const Subject& subject;
  const std::vector<std::string>& versions;
  bool mutating;
  Json object;
  const Json& old_object;
  const Normalize& normalize;
  Warnings& warnings;

  // The version of the objects' kind where the resource is wanted in `version`: a Scale keeps its
  // own.
  std::string VersionOfKind(std::string_view version) const {
    const bool same = subject.kind.group == subject.resource.group &&
                      subject.kind.version == subject.resource.version;
    return same ? std::string(version) : subject.kind.version;
  }
};

void Webhooks::Refresh() {
  const MutexLock refreshing(refresh_mutex_);
  auto table = std::make_shared<Table>();
  table->mutating = ReadAll(objects_, "mutatingwebhookconfigurations");
  table->validating = ReadAll(objects_, "validatingwebhookconfigurations");
  const bool any = !table->mutating.empty() || !table->validating.empty();
  {
    const MutexLock lock(mutex_);
    table_ = std::move(table);
  }
  any_ = any;
}

std::shared_ptr<const Webhooks::Table> Webhooks::Snapshot() const {
  const MutexLock lock(mutex_);
  return table_;
}

bool Webhooks::Concern(const Subject& subject, const std::vector<std::string>& versions) const {
  if (!any_ || subject.resource.group == kGroup) return false;
  const auto table = Snapshot();
  const auto is_about = [&](const Webhook& webhook) {
    return webhook.Matches(subject, versions).has_value();
  };
  return std::ranges::any_of(table->mutating, is_about) ||
         std::ranges::any_of(table->validating, is_about);
}

absl::StatusOr<bool> Webhooks::NamespaceTaken(const Webhook& webhook, const Round& round) const {
  const Subject& subject = round.subject;
  const bool is_namespace =
      subject.resource.group.empty() && subject.resource.resource == "namespaces";
  if (webhook.namespaces.empty() || (subject.name_space.empty() && !is_namespace)) return true;
  // A namespace that is being made or changed has its new labels.
  if (is_namespace && subject.subresource.empty() && !round.object.is_null()) {
    return TakesLabels(webhook.namespaces, round.object);
  }
  const ObjectPtr space = objects_.Get({"", "namespaces"}, ObjectKey("", subject.name_space));
  if (space == nullptr) {
    return GenericError(404, "NotFound",
                        fmt::format("namespaces \"{}\" not found", subject.name_space));
  }
  return TakesLabels(webhook.namespaces, *space->body);
}

absl::StatusOr<std::optional<std::string>> Webhooks::Takes(const Webhook& webhook,
                                                           const Round& round) const {
  const auto version = webhook.Matches(round.subject, round.versions);
  if (!version || !webhook.TakesObject(round.object, round.old_object)) return std::nullopt;
  TAHOMA_ASSIGN_OR_RETURN(const bool in_namespace, NamespaceTaken(webhook, round));
  if (!in_namespace) return std::nullopt;
  if (webhook.conditions.empty()) return version;
  const Subject& subject = round.subject;
  const std::string shown = round.VersionOfKind(*version);
  const Json object = Shown(round.object, subject.kind, shown);
  const Json old_object = Shown(round.old_object, subject.kind, shown);
  const Json review = ReviewOf(webhook, subject, *version, "", nullptr, nullptr);
  const auto hold = webhook.ConditionsHold(object, old_object, review.at("request"));
  if (!hold.ok()) {
    return AccessDeniedError(subject.resource.group, subject.resource.resource, subject.name,
                             Message(hold.status()));
  }
  return *hold ? version : std::nullopt;
}

absl::StatusOr<std::string> Webhooks::Answer(const Webhook& webhook, const Json& review) const {
  const WebhookTarget& target = webhook.target;
  WebhookQuestion question{.server = {},
                           .server_name = {},
                           .target = {},
                           .ca_pem = target.ca_pem,
                           .body = kube::JsonText(review),
                           .timeout = webhook.timeout};
  const std::string url = fmt::format("{}?timeout={}s", target.Text(), webhook.timeout.count());
  const auto failed = [&](const absl::Status& status) {
    return InvalidArgument("failed to call webhook: Post \"{}\": {}", url, Message(status));
  };
  // "https://host:port" and the rest.
  constexpr std::size_t kScheme = std::string_view("https://").size();
  const std::size_t path = std::min(url.find_first_of("/?", kScheme), url.size());
  question.server = url.substr(0, path);
  question.target = url.substr(path);
  if (!question.target.starts_with('/')) question.target.insert(0, 1, '/');
  if (target.url.empty()) {
    const auto address = AddressOf(objects_, target);
    if (!address.ok()) return failed(address.status());
    question.server = fmt::format("https://{}", *address);
    question.server_name = fmt::format("{}.{}.svc", target.service, target.service_namespace);
  }
  if (!call_) return failed(Unavailable("this server calls no webhooks"));
  if (waiting_.fetch_add(1) >= kWebhookCallsMost) {
    waiting_.fetch_sub(1);
    return ResourceExhausted("too many requests wait for webhooks; try again");
  }
  auto answer = call_(question);
  waiting_.fetch_sub(1);
  if (!answer.ok()) return failed(answer.status());
  return answer;
}

absl::StatusOr<bool> Webhooks::Ask(const Webhook& webhook, std::string_view version,
                                   Round& round) const {
  const Subject& subject = round.subject;
  const std::string uid = ids_.Uid();
  const std::string shown = round.VersionOfKind(version);
  const Json before = Shown(round.object, subject.kind, shown);
  const Json review = ReviewOf(webhook, subject, version, uid, before,
                               Shown(round.old_object, subject.kind, shown));
  const auto answer = Answer(webhook, review);
  absl::StatusOr<ReviewVerdict> verdict = answer.ok()
                                              ? ReadVerdict(*answer, webhook, round.mutating, uid)
                                              : absl::StatusOr<ReviewVerdict>(answer.status());
  if (!verdict.ok()) {
    if (absl::IsResourceExhausted(verdict.status())) return verdict.status();
    if (webhook.ignores_failures) return false;
    return Failed(webhook, answer.ok() ? fmt::format("received invalid webhook response: {}",
                                                     Message(verdict.status()))
                                       : std::string(Message(verdict.status())));
  }
  for (std::string& warning : verdict->warnings) {
    if (round.warnings.size() < kWarningsMax) round.warnings.push_back(std::move(warning));
  }
  if (!verdict->allowed) return verdict->refusal;
  if (verdict->patch == nullptr) return false;
  if (before.is_null()) {
    return Internal(
        "admission webhook \"{}\" attempted to modify the object, which is not "
        "supported for this operation",
        webhook.name);
  }
  absl::StatusOr<Json> after = kube::JsonPatch(before, *verdict->patch);
  if (!after.ok() || !after->is_object()) {
    return Internal("the patch of admission webhook \"{}\" cannot be applied: {}", webhook.name,
                    after.ok() ? "it leaves no object" : Message(after.status()));
  }
  if (TextAt(*after, {"metadata", "name"}) != TextAt(before, {"metadata", "name"}) ||
      TextAt(*after, {"metadata", "namespace"}) != TextAt(before, {"metadata", "namespace"})) {
    return Internal("admission webhook \"{}\" changed the name of the object", webhook.name);
  }
  (*after)["kind"] = subject.kind.kind;
  (*after)["apiVersion"] = subject.kind.api_version();
  CompactFields(*after);
  TAHOMA_RETURN_IF_ERROR(round.normalize(*after));
  const bool changed = *after != round.object;
  round.object = *std::move(after);
  return changed;
}

absl::StatusOr<Json> Webhooks::Mutate(const Subject& subject,
                                      const std::vector<std::string>& versions, Json object,
                                      const Json& old_object, const Normalize& normalize,
                                      Warnings& warnings) const {
  const auto table = Snapshot();
  Round round{.subject = subject,
              .versions = versions,
              .mutating = true,
              .object = std::move(object),
              .old_object = old_object,
              .normalize = normalize,
              .warnings = warnings};
  std::set<const Webhook*> asked;  // those that want to be asked again after a change
  std::set<const Webhook*> again;
  for (const bool first : {true, false}) {
    for (const Webhook& webhook : table->mutating) {
      TAHOMA_ASSIGN_OR_RETURN(const auto version, Takes(webhook, round));
      if (!version || (!first && !again.contains(&webhook))) continue;
      TAHOMA_ASSIGN_OR_RETURN(const bool changed, Ask(webhook, *version, round));
      if (changed) again.insert(asked.begin(), asked.end());
      if (webhook.reinvoked) asked.insert(&webhook);
    }
    if (again.empty()) break;
  }
  return std::move(round.object);
}

absl::Status Webhooks::Validate(const Subject& subject, const std::vector<std::string>& versions,
                                const Json& object, const Json& old_object,
                                Warnings& warnings) const {
  const auto table = Snapshot();
  static const Normalize kNone;
  Round round{.subject = subject,
              .versions = versions,
              .mutating = false,
              .object = object,
              .old_object = old_object,
              .normalize = kNone,
              .warnings = warnings};
  for (const Webhook& webhook : table->validating) {
    TAHOMA_ASSIGN_OR_RETURN(const auto version, Takes(webhook, round));
    if (version) TAHOMA_RETURN_IF_ERROR(Ask(webhook, *version, round).status());
  }
  return absl::OkStatus();
}

}  // namespace tahoma::controller::apiserver
