#include "controller/apiserver/verbs/delete_verbs.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "controller/apiserver/request/decode_body.h"
#include "controller/apiserver/request/representation.h"
#include "controller/apiserver/request/selection.h"
#include "controller/apiserver/request/status_error.h"
#include "controller/apiserver/request/typed_body.h"
#include "controller/apiserver/schema/causes.h"
#include "controller/apiserver/schema/fields.h"
#include "controller/apiserver/validation/validation.h"
#include "controller/apiserver/verbs/admission.h"
#include "controller/apiserver/verbs/webhook_steps.h"
#include "controller/apiserver/verbs/write_verbs.h"
#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/kube/json_writer.h"

namespace tahoma::controller::apiserver {
namespace {

using json = Json;

constexpr std::int64_t kPodGraceDefault = 30;
// Seconds beyond which a time would leave the range of the clock.
constexpr std::int64_t kForEver = std::int64_t{100} * 365 * 24 * 3600;
constexpr const char* kForeground = "foregroundDeletion";
constexpr const char* kOrphan = "orphan";

bool IsPod(const Kind& kind) { return kind.group.empty() && kind.plural == "pods"; }
bool IsNamespace(const Kind& kind) { return kind.group.empty() && kind.plural == "namespaces"; }

// Namespaces that a cluster cannot be without (Kubernetes' NamespaceLifecycle admission).
bool IsImmortal(std::string_view name) {
  return name == "default" || name == "kube-system" || name == "kube-public";
}

// Kinds whose DELETE answers with the object instead of a Status (their ReturnDeletedObject).
bool ReturnsObject(const Kind& kind) {
  return IsPod(kind) || kind.group == "resource.k8s.io" || kind.plural == "serviceaccounts";
}

// Seconds that a pod may still live: what was asked for, or its own wish; 0 where nothing runs.
std::int64_t PodGrace(const json& pod, const DeleteOptions& options) {
  const std::string phase = TextAt(PartOf(pod, "status"), "phase");
  if (TextAt(PartOf(pod, "spec"), "nodeName").empty() || phase == "Succeeded" ||
      phase == "Failed") {
    return 0;
  }
  // As in Kubernetes, a negative wish means "at once", but not without telling the node.
  if (options.grace_seconds) return *options.grace_seconds < 0 ? 1 : *options.grace_seconds;
  return PartOf(pod, "spec").value("terminationGracePeriodSeconds", kPodGraceDefault);
}

// The policy of the request replaces that of the object's own finalizers.
void SetPropagation(std::string_view policy, json& metadata) {
  if (policy.empty()) return;
  json kept = json::array();
  for (json& one : metadata["finalizers"]) {
    if (one != kOrphan && one != kForeground) kept.push_back(std::move(one));
  }
  if (policy == "Orphan") kept.push_back(kOrphan);
  if (policy == "Foreground") kept.push_back(kForeground);
  metadata["finalizers"] = std::move(kept);
  if (metadata["finalizers"].empty()) metadata.erase("finalizers");
}

bool HasFinalizers(const Kind& kind, const json& object) {
  if (!MetadataOf(object).value("finalizers", json::array()).empty()) return true;
  if (!IsNamespace(kind)) return false;
  const auto spec = object.find("spec");
  return spec != object.end() && !spec->value("finalizers", json::array()).empty();
}

void Mark(const Kind& kind, WallTime now, std::int64_t grace, json& object) {
  json& metadata = object["metadata"];
  metadata["deletionTimestamp"] = FormatTime(now + std::chrono::seconds(std::min(grace, kForEver)));
  if (!IsNamespace(kind)) metadata["deletionGracePeriodSeconds"] = grace;
  if (metadata.value("generation", std::int64_t{0}) > 0) {
    metadata["generation"] = metadata["generation"].get<std::int64_t>() + 1;
  }
  if (IsNamespace(kind)) object["status"]["phase"] = "Terminating";
}

// As in Kubernetes, a Job leaves its pods behind unless the request says otherwise.
bool OrphansByDefault(const Kind& kind) { return kind.resource() == "jobs.batch"; }

std::string_view PropagationOf(const Kind& kind, const json& metadata,
                               const DeleteOptions& options) {
  if (!options.propagation.empty() || !OrphansByDefault(kind)) return options.propagation;
  const json finalizers = metadata.value("finalizers", json::array());
  const bool chosen = std::any_of(finalizers.begin(), finalizers.end(), [](const json& one) {
    return one == kOrphan || one == kForeground;
  });
  return chosen ? "" : "Orphan";
}

void WarnOfOrphans(const Kind& kind, const DeleteOptions& options, rest::Response& response) {
  if (!OrphansByDefault(kind) || !options.propagation.empty()) return;
  response.headers.emplace_back(
      "Warning",
      "299 - \"child pods are preserved by default when jobs are deleted; set "
      "propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress "
      "this warning\"");
}

// Returns the edit that deletes `object` now: it may only be marked, or wait for finalizers.
Edit DeletionOf(const Kind& kind, const json& object, const DeleteOptions& options, WallTime now) {
  json next = object;
  json& metadata = next["metadata"];
  const bool marked = metadata.contains("deletionTimestamp");
  SetPropagation(PropagationOf(kind, metadata, options), metadata);
  const std::int64_t grace = IsPod(kind) ? std::max<std::int64_t>(PodGrace(object, options), 0) : 0;
  const std::int64_t before = metadata.value("deletionGracePeriodSeconds", std::int64_t{0});
  if (marked && grace >= before && before > 0) return Edit::None();
  if (grace > 0 || HasFinalizers(kind, next)) {
    if (!marked || grace < before) Mark(kind, now, grace, next);
    return next == object ? Edit::None() : Edit::Put(std::move(next));
  }
  // The last state of a pod says that and when it was deleted.
  if (IsPod(kind) && (!marked || before > 0)) Mark(kind, now, 0, next);
  return Edit::Delete(std::move(next));
}

// The objects of a kind go before the kind does.
absl::Status DeleteInstances(const ApiContext& context, const json& crd) {
  const ResourceName resource = {TextAt(crd.at("spec"), "group"),
                                 TextAt(crd.at("spec").at("names"), "plural")};
  // A CRD that was accepted by mistake must not take the objects of a built-in kind with it.
  for (const auto& kind : BuiltInKinds()) {
    if (kind->plural == resource.plural &&
        (kind->group == resource.group || resource.group == "core")) {
      return absl::OkStatus();
    }
  }
  for (const ObjectPtr& object : context.objects.List(resource, "").objects) {
    TAHOMA_RETURN_IF_ERROR(context.objects
                               .Change(resource, object->key,
                                       [](const ObjectPtr& current) -> absl::StatusOr<Edit> {
                                         if (current == nullptr) return Edit::None();
                                         return Edit::Delete(*current->body);
                                       })
                               .status());
  }
  return absl::OkStatus();
}

absl::Status ReadOptions(const json& body, DeleteOptions& options) {
  TAHOMA_RETURN_IF_ERROR(CheckTyped("io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions", body));
  const auto grace = body.find("gracePeriodSeconds");
  if (grace != body.end() && !grace->is_null()) {
    options.grace_seconds = grace->get<std::int64_t>();
  }
  options.propagation = TextAt(body, "propagationPolicy");
  if (const json orphan = body.value("orphanDependents", json()); orphan.is_boolean()) {
    if (!options.propagation.empty()) {
      return InvalidError("meta.k8s.io", "DeleteOptions", "",
                          {Invalid("propagationPolicy", options.propagation,
                                   "orphanDependents and deletionPropagation cannot be both set")});
    }
    options.propagation = orphan.get<bool>() ? "Orphan" : "Background";
  }
  if (const auto conditions = body.find("preconditions"); conditions != body.end()) {
    options.precondition_uid = TextAt(*conditions, "uid");
    options.precondition_version = TextAt(*conditions, "resourceVersion");
  }
  const auto dry_run = body.find("dryRun");
  if (dry_run == body.end() || dry_run->is_null() || dry_run->empty()) return absl::OkStatus();
  if (*dry_run != json::array({"All"})) {
    return InvalidError("meta.k8s.io", "DeleteOptions", "",
                        {NotSupported("dryRun", *dry_run, {"All"})});
  }
  options.dry_run = true;
  return absl::OkStatus();
}

// Returns why the object may not be deleted now: a Capacity Block by the journal, which its status
// may contradict.
std::string WhyKept(const ApiContext& context, const Kind& kind, const json& object) {
  if (kind.resource() == "capacityblocks.tahoma.dev") {
    const json& metadata = MetadataOf(object);
    auto known = context.guard.WhyKept(TextAt(metadata, "namespace"), TextAt(metadata, "name"));
    if (known) return *std::move(known);
  }
  return WhyNotDeletable(kind, object);
}

// Deletes an object after the webhooks were asked, as it was when they were asked.
absl::StatusOr<Deletion> DeleteAsked(const ApiContext& context, const ApiRequest& request,
                                     const std::string& key, const DeleteOptions& options,
                                     std::vector<std::string>& warnings) {
  const Kind& kind = *request.kind;
  if (!AsksWebhooks(context, request, {"DELETE"})) {
    return DeleteObject(context, kind, key, options);
  }
  constexpr int kAttempts = 5;
  for (int attempt = 1;; ++attempt) {
    const ObjectPtr current = context.objects.Get(request.resource(), key);
    if (current == nullptr) return NotFoundError(kind, key.substr(key.find('/') + 1));
    const json& metadata = MetadataOf(*current->body);
    TAHOMA_RETURN_IF_ERROR(CheckPreconditions(kind, metadata, options));
    TAHOMA_RETURN_IF_ERROR(
        AskAboutDeletion(context, request, options.dry_run, *current->body, warnings));
    DeleteOptions as_asked = options;
    as_asked.precondition_uid = TextAt(metadata, "uid");
    as_asked.precondition_version = TextAt(metadata, "resourceVersion");
    auto deletion = DeleteObject(context, kind, key, as_asked);
    const bool stale = absl::IsAborted(deletion.status()) && options.precondition_version.empty();
    if (!stale || attempt == kAttempts) return deletion;
  }
}

}  // namespace

absl::Status CheckPreconditions(const Kind& kind, const json& metadata,
                                const DeleteOptions& options) {
  // A real server names the kind here, not the resource (pkg/registry/rest/delete.go).
  Kind named;
  named.group = kind.group;
  named.plural = kind.kind;
  const auto mismatch = [&](std::string_view what, const std::string& wanted, const std::string& is,
                            std::string_view why) {
    return ConflictError(named, TextAt(metadata, "name"),
                         fmt::format("the {0} in the precondition ({1}) does not match the {0} in "
                                     "record ({2}). The object might have been {3}",
                                     what, wanted, is, why));
  };
  const std::string uid = TextAt(metadata, "uid");
  const std::string version = TextAt(metadata, "resourceVersion");
  if (!options.precondition_uid.empty() && options.precondition_uid != uid) {
    return mismatch("UID", options.precondition_uid, uid, "deleted and then recreated");
  }
  if (!options.precondition_version.empty() && options.precondition_version != version) {
    return mismatch("ResourceVersion", options.precondition_version, version, "modified");
  }
  return absl::OkStatus();
}

absl::StatusOr<DeleteOptions> DeleteOptions::Of(const ApiRequest& request) {
  DeleteOptions options;
  TAHOMA_ASSIGN_OR_RETURN(options.dry_run, request.dry_run());
  TAHOMA_ASSIGN_OR_RETURN(options.grace_seconds, request.number("gracePeriodSeconds"));
  options.propagation = request.parameter("propagationPolicy");
  if (request.http->parsed || !request.http->body.empty()) {
    TAHOMA_ASSIGN_OR_RETURN(const DecodedBody body, DecodeBody(*request.http));
    const std::string kind = TextAt(*body.object, "kind");
    if (!kind.empty() && kind != "DeleteOptions") {
      return BadRequestError(
          fmt::format("the body of a delete must be DeleteOptions, not {}", kind));
    }
    TAHOMA_RETURN_IF_ERROR(ReadOptions(*body.object, options));
  }
  for (const std::string_view known : {"", "Background", "Foreground", "Orphan"}) {
    if (options.propagation == known) return options;
  }
  return InvalidError("meta.k8s.io", "DeleteOptions", "",
                      {NotSupported("propagationPolicy", options.propagation,
                                    {"Foreground", "Background", "Orphan", "nil"})});
}

absl::StatusOr<Deletion> DeleteObject(const ApiContext& context, const Kind& kind,
                                      const std::string& key, const DeleteOptions& options) {
  Deletion deletion;
  std::shared_ptr<json> would_be;  // of a dry run
  const std::string name = key.substr(key.find('/') + 1);
  TAHOMA_ASSIGN_OR_RETURN(
      const ObjectPtr result,
      context.objects.Change(
          {kind.group, kind.plural}, key, [&](const ObjectPtr& current) -> absl::StatusOr<Edit> {
            if (current == nullptr) return NotFoundError(kind, name);
            TAHOMA_RETURN_IF_ERROR(CheckPreconditions(kind, MetadataOf(*current->body), options));
            if (IsNamespace(kind) && IsImmortal(name)) {
              return ForbiddenError(kind, name, "this namespace may not be deleted");
            }
            if (const std::string why = WhyKept(context, kind, *current->body); !why.empty()) {
              return ForbiddenError(kind, name, why);
            }
            Edit edit = DeletionOf(kind, *current->body, options, context.clock.WallNow());
            deletion.gone = edit.kind == Edit::Kind::kDelete;
            if (options.dry_run) {
              if (edit.kind == Edit::Kind::kPut || ReturnsObject(kind)) would_be = edit.body;
              return Edit::None();
            }
            if (deletion.gone && kind.IsCrd()) {
              TAHOMA_RETURN_IF_ERROR(DeleteInstances(context, *current->body));
              context.kinds.RemoveCrd(name);
            }
            return edit;
          }));
  deletion.object = result;
  if (would_be != nullptr) {
    auto object = std::make_shared<Object>(*result);
    object->bytes = kube::JsonText(*would_be);
    object->body = would_be;
    deletion.object = std::move(object);
  }
  return deletion;
}

absl::StatusOr<rest::Response> DeleteOne(const ApiContext& context, const ApiRequest& request) {
  TAHOMA_ASSIGN_OR_RETURN(const DeleteOptions options, DeleteOptions::Of(request));
  TAHOMA_ASSIGN_OR_RETURN(const Representation form, Representation::Negotiate(request));
  const Kind& kind = *request.kind;
  std::vector<std::string> warnings;
  TAHOMA_ASSIGN_OR_RETURN(const Deletion deletion,
                          DeleteAsked(context, request, request.key(), options, warnings));
  rest::Response response;
  if (deletion.gone && !ReturnsObject(kind)) {
    const std::string uid = TextAt(MetadataOf(*deletion.object->body), "uid");
    response = AsAccepted(*request.http,
                          rest::Response::Json(200, DeletedStatus(kind, request.name, uid).dump()));
  } else {
    TAHOMA_ASSIGN_OR_RETURN(std::string body,
                            form.One(kind, *deletion.object, context.clock.WallNow()));
    response = form.Answer(200, std::move(body));
  }
  AddWarnings(warnings, response);
  WarnOfOrphans(kind, options, response);
  return response;
}

absl::StatusOr<rest::Response> DeleteMany(const ApiContext& context, const ApiRequest& request) {
  TAHOMA_ASSIGN_OR_RETURN(const DeleteOptions options, DeleteOptions::Of(request));
  TAHOMA_ASSIGN_OR_RETURN(const Representation form, Representation::Negotiate(request));
  TAHOMA_ASSIGN_OR_RETURN(const Selection selection,
                          Selection::Parse(*request.kind, request.parameter("labelSelector"),
                                           request.parameter("fieldSelector")));
  ObjectList list = context.objects.List(request.resource(), request.key_prefix());
  // All before the first is deleted: nothing is, when selecting takes too long.
  std::erase_if(list.objects,
                [&](const ObjectPtr& object) { return !selection.Matches(*object->body); });
  std::vector<ObjectPtr> deleted;
  std::vector<std::string> warnings;
  for (const ObjectPtr& object : list.objects) {
    auto deletion = DeleteAsked(context, request, object->key, options, warnings);
    if (absl::IsNotFound(deletion.status())) continue;  // somebody else was faster
    TAHOMA_RETURN_IF_ERROR(deletion.status());
    deleted.push_back(deletion->object);
  }
  TAHOMA_ASSIGN_OR_RETURN(Pieces body,
                          form.List(*request.kind, deleted, {context.objects.version(), "", {}},
                                    context.clock.WallNow()));
  rest::Response response = form.Answer(request, 200, std::move(body));
  AddWarnings(warnings, response);
  WarnOfOrphans(*request.kind, options, response);
  return response;
}

}  // namespace tahoma::controller::apiserver
