#include "controller/apiserver/verbs/webhook_steps.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "controller/apiserver/request/status_error.h"
#include "controller/apiserver/schema/fields.h"
#include "lib/base/json.h"
#include "lib/base/status.h"

namespace tahoma::controller::apiserver {
namespace {

// As often as Kubernetes repeats a patch.
constexpr int kAttempts = 5;

// Callers in this process are the controller itself.
Json UserOf(const ApiRequest& request) {
  const rest::Identity* identity = request.http->identity.get();
  if (identity == nullptr) {
    return {{"username", "system:tahoma-controller"},
            {"groups", {"system:masters", "system:authenticated"}}};
  }
  Json user = {{"username", identity->name}, {"groups", identity->groups}};
  if (!identity->uid.empty()) user["uid"] = identity->uid;
  for (const auto& [key, values] : identity->extra) user["extra"][key] = values;
  return user;
}

Json OptionsOf(const ApiRequest& request, std::string_view operation, bool dry_run) {
  std::string_view kind = request.options_kind();
  if (operation == "CREATE") kind = "CreateOptions";
  if (operation == "DELETE") kind = "DeleteOptions";
  Json options = {{"kind", kind}, {"apiVersion", "meta.k8s.io/v1"}};
  for (const char* field : {"fieldManager", "fieldValidation"}) {
    const std::string_view value = request.parameter(field);
    if (!value.empty() && operation != "DELETE") options[field] = value;
  }
  if (dry_run) options["dryRun"] = {"All"};
  return options;
}

Subject SubjectOf(const ApiRequest& request, std::string_view operation) {
  const Kind& kind = *request.kind;
  Subject subject{.operation = std::string(operation),
                  .resource = {kind.group, kind.version, kind.plural},
                  .kind = kind.gvk(),
                  .subresource = request.subresource,
                  .name = request.name,
                  .name_space = request.name_space};
  if (kind.group.empty() && kind.plural == "namespaces") subject.name_space = request.name;
  return subject;
}

// The versions in which the resource is served.
std::vector<std::string> VersionsOf(const ApiRequest& request) {
  std::vector<std::string> versions;
  for (const auto& kind : request.kinds->kinds()) {
    if (kind->served && kind->group == request.kind->group &&
        kind->plural == request.kind->plural) {
      versions.push_back(kind->version);
    }
  }
  return versions;
}

// The subject of a question about these objects.
Subject FullSubject(const ApiRequest& request, bool dry_run, const Json& object,
                    const Json& old_object, const GroupVersionKind* shown) {
  const char* operation = object.is_null() ? "DELETE" : "UPDATE";
  if (old_object.is_null()) operation = "CREATE";
  Subject subject = SubjectOf(request, operation);
  const Json& known = object.is_null() ? old_object : object;
  if (subject.name.empty()) subject.name = TextAt(MetadataOf(known), "name");
  if (request.kind->group.empty() && request.kind->plural == "namespaces") {
    subject.name_space = subject.name;
  }
  if (shown != nullptr) subject.kind = *shown;
  subject.dry_run = dry_run;
  subject.user = std::make_shared<const Json>(UserOf(request));
  subject.options = std::make_shared<const Json>(OptionsOf(request, operation, dry_run));
  return subject;
}

}  // namespace

bool AsksWebhooks(const ApiContext& context, const ApiRequest& request,
                  std::initializer_list<std::string_view> operations) {
  if (!context.webhooks.any() || request.own) return false;
  const std::vector<std::string> versions = VersionsOf(request);
  return std::ranges::any_of(operations, [&](std::string_view operation) {
    return context.webhooks.Concern(SubjectOf(request, operation), versions);
  });
}

absl::StatusOr<Json> AskMutating(const ApiContext& context, WriteRequest& write, Json object,
                                 const Json& old_object, const Webhooks::Normalize& normalize,
                                 const GroupVersionKind* shown) {
  const ApiRequest& request = write.request;
  if (!AsksWebhooks(context, request, {old_object.is_null() ? "CREATE" : "UPDATE"})) return object;
  const Subject subject = FullSubject(request, write.dry_run, object, old_object, shown);
  return context.webhooks.Mutate(subject, VersionsOf(request), std::move(object), old_object,
                                 normalize, write.warnings);
}

absl::Status AskValidating(const ApiContext& context, WriteRequest& write, const Json& object,
                           const Json& old_object, const GroupVersionKind* shown) {
  const ApiRequest& request = write.request;
  if (!AsksWebhooks(context, request, {old_object.is_null() ? "CREATE" : "UPDATE"})) {
    return absl::OkStatus();
  }
  const Subject subject = FullSubject(request, write.dry_run, object, old_object, shown);
  return context.webhooks.Validate(subject, VersionsOf(request), object, old_object,
                                   write.warnings);
}

absl::Status AskAboutDeletion(const ApiContext& context, const ApiRequest& request, bool dry_run,
                              const Json& old_object, Webhooks::Warnings& warnings) {
  const Subject subject = FullSubject(request, dry_run, nullptr, old_object, nullptr);
  const std::vector<std::string> versions = VersionsOf(request);
  TAHOMA_RETURN_IF_ERROR(
      context.webhooks.Mutate(subject, versions, nullptr, old_object, nullptr, warnings).status());
  return context.webhooks.Validate(subject, versions, nullptr, old_object, warnings);
}

absl::StatusOr<ObjectPtr> ChangeAdmitted(const ApiContext& context, const ApiRequest& request,
                                         const std::string& key,
                                         std::initializer_list<std::string_view> operations,
                                         const ObjectStore::EditFunction& edit) {
  // The kinds follow the order of the CRD's versions. CheckCrd has accepted the CRD; the status
  // shows a clash of names with another CRD, as a real server's does.
  const auto with_kinds = [&](absl::StatusOr<Edit> made) {
    if (made.ok() && made->kind == Edit::Kind::kPut && request.kind->IsCrd()) {
      context.kinds.ApplyCrd(*made->body).IgnoreError();
    }
    return made;
  };
  const ResourceName resource = request.resource();
  if (!AsksWebhooks(context, request, operations)) {
    return context.objects.Change(
        resource, key, [&](const ObjectPtr& current) { return with_kinds(edit(current)); },
        request.flight);
  }
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const ObjectPtr before = context.objects.Get(resource, key);
    TAHOMA_ASSIGN_OR_RETURN(Edit made, edit(before));
    bool stale = false;
    auto changed = context.objects.Change(
        resource, key,
        [&](const ObjectPtr& current) -> absl::StatusOr<Edit> {
          stale = current != before;
          return stale ? Edit::None() : with_kinds(std::move(made));
        },
        request.flight);
    if (!stale || !changed.ok()) return changed;
  }
  return ConflictError(*request.kind, key.substr(key.find('/') + 1),
                       "the object has been modified; please apply your changes to the latest "
                       "version and try again");
}

}  // namespace tahoma::controller::apiserver
