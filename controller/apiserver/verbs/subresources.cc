#include "controller/apiserver/verbs/subresources.h"

#include <algorithm>
#include <utility>

#include "controller/apiserver/request/representation.h"
#include "controller/apiserver/request/status_error.h"
#include "controller/apiserver/request/typed_body.h"
#include "controller/apiserver/schema/causes.h"
#include "controller/apiserver/schema/fields.h"
#include "controller/apiserver/schema/selector_text.h"
#include "controller/apiserver/verbs/delete_verbs.h"
#include "controller/apiserver/verbs/eviction.h"
#include "controller/apiserver/verbs/pod_connect.h"
#include "controller/apiserver/verbs/pod_log.h"
#include "controller/apiserver/verbs/read_verbs.h"
#include "controller/apiserver/verbs/webhook_steps.h"
#include "controller/apiserver/verbs/write_verbs.h"
#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/kube/object.h"
#include "lib/kube/patch.h"

namespace tahoma::controller::apiserver {
namespace {

using json = Json;

const json* At(const json& object, const std::vector<std::string>& path) {
  const json* at = &object;
  for (const std::string& part : path) {
    at = FindMember(*at, part);
    if (at == nullptr) return nullptr;
  }
  return path.empty() ? nullptr : at;
}

void Put(json& object, const std::vector<std::string>& path, json value) {
  json* at = &object;
  for (const std::string& part : path) {
    if (!at->is_object()) *at = json::object();
    at = &(*at)[part];
  }
  *at = std::move(value);
}

// Returns the answer to a Binding or an Eviction.
rest::Response CreatedStatus(const rest::Request& request) {
  static constexpr char kText[] =
      R"({"apiVersion":"v1","code":201,"kind":"Status","metadata":{},"status":"Success"})";
  return AsAccepted(request, rest::Response::Json(201, kText));
}

// autoscaling/v1 Scale of an object.
json ScaleOf(const ScalePaths& paths, const json& object) {
  const json& from = MetadataOf(object);
  json metadata = json::object();
  for (const char* field : {"name", "namespace", "uid", "resourceVersion", "creationTimestamp"}) {
    if (from.contains(field)) metadata[field] = from.at(field);
  }
  const auto number = [&](const std::vector<std::string>& path) {
    const json* found = At(object, path);
    return found != nullptr && found->is_number_integer() ? found->get<std::int64_t>() : 0;
  };
  json scale = {{"kind", "Scale"},
                {"apiVersion", "autoscaling/v1"},
                {"metadata", std::move(metadata)},
                {"spec", json::object()},
                {"status", {{"replicas", number(paths.status_replicas)}}}};
  if (const auto wanted = number(paths.spec_replicas); wanted != 0) {
    scale["spec"]["replicas"] = wanted;
  }
  const json* selector = At(object, paths.selector);
  if (selector != nullptr && selector->is_string()) scale["status"]["selector"] = *selector;
  if (selector != nullptr && selector->is_object()) {
    const std::string text = SelectorText(*selector).value_or("");
    if (!text.empty()) scale["status"]["selector"] = text;
  }
  return scale;
}

// The Scale that the request wants, from a PUT's body or a PATCH of the current one.
absl::StatusOr<json> WantedScale(const ApiRequest& request, const json& current) {
  if (request.http->method == "PATCH") return ApplyPatchTo(request, current);
  TAHOMA_ASSIGN_OR_RETURN(const DecodedBody body, DecodeBody(*request.http));
  return *body.object;
}

// Asks the webhooks about an object that is not of the request's kind: a Scale, a Binding, an
// Eviction. Returns the object as they leave it.
absl::StatusOr<json> Asked(const ApiContext& context, WriteRequest& write,
                           const GroupVersionKind& kind, std::string_view type, json object,
                           const json& old_object) {
  if (!context.webhooks.any()) return object;
  const auto normalize = [&](json& changed) { return CheckTyped(type, changed); };
  TAHOMA_ASSIGN_OR_RETURN(
      object, AskMutating(context, write, std::move(object), old_object, normalize, &kind));
  TAHOMA_RETURN_IF_ERROR(AskValidating(context, write, object, old_object, &kind));
  return object;
}

absl::StatusOr<Edit> ScaleEdit(const ApiContext& context, WriteRequest& write,
                               const ObjectPtr& current, ObjectPtr& outcome) {
  const ApiRequest& request = write.request;
  const Kind& kind = *request.kind;
  if (current == nullptr) return NotFoundError(kind, request.name);
  const json scale = ScaleOf(*kind.scale, *current->body);
  constexpr std::string_view kType = "io.k8s.api.autoscaling.v1.Scale";
  TAHOMA_ASSIGN_OR_RETURN(json wanted, WantedScale(request, scale));
  TAHOMA_RETURN_IF_ERROR(CheckTyped(kType, wanted));
  TAHOMA_RETURN_IF_ERROR(CheckNameOfUrl(request, MetadataOf(wanted)));
  TAHOMA_ASSIGN_OR_RETURN(wanted, Asked(context, write, {"autoscaling", "v1", "Scale"}, kType,
                                        std::move(wanted), scale));
  const json* replicas = kube::ValueAt(wanted, {"spec", "replicas"});
  const json zero = 0;
  if (replicas == nullptr || replicas->is_null()) replicas = &zero;
  json body = *current->body;
  body["apiVersion"] = kind.api_version();
  const json& metadata = MetadataOf(wanted);
  for (const char* field : {"resourceVersion", "uid"}) {
    if (!TextAt(metadata, field).empty()) body["metadata"][field] = metadata.at(field);
  }
  Put(body, kind.scale->spec_replicas, *replicas);
  TAHOMA_ASSIGN_OR_RETURN(json next, AdmitUpdate(context, write, *current->body, std::move(body)));
  return EditOf(context, write, current, std::move(next), outcome);
}

// The kind of a Scale, with the columns of its Table.
const Kind& ScaleKind() {
  static const Kind* const kKind = [] {
    auto* kind = new Kind;
    kind->group = "autoscaling";
    kind->version = "v1";
    kind->kind = "Scale";
    kind->columns = {
        {.name = "Name", .type = "string", .format = "name", .description = "The object's name."},
        {.name = "Desired",
         .type = "integer",
         .description = "Replicas that are wanted.",
         .json_path = ".spec.replicas"},
        {.name = "Available",
         .type = "integer",
         .description = "Replicas that there are.",
         .json_path = ".status.replicas"},
        {.name = "Age",
         .type = "date",
         .description = "Time since it was created.",
         .json_path = ".metadata.creationTimestamp"}};
    return kind;
  }();
  return *kKind;
}

absl::StatusOr<rest::Response> ServeScale(const ApiContext& context, const ApiRequest& request) {
  const Kind& kind = *request.kind;
  TAHOMA_ASSIGN_OR_RETURN(const Representation form,
                          Representation::Negotiate(request, ScaleKind()));
  ObjectPtr object;
  if (request.http->method == "GET") {
    object = context.objects.Get(request.resource(), request.key());
    if (object == nullptr) return NotFoundError(kind, request.name);
  } else if (request.http->method == "PUT" || request.http->method == "PATCH") {
    TAHOMA_ASSIGN_OR_RETURN(WriteRequest write, WriteRequest::Of(context, request));
    ObjectPtr outcome;
    TAHOMA_ASSIGN_OR_RETURN(
        object,
        ChangeAdmitted(context, request, request.key(), {"UPDATE"}, [&](const ObjectPtr& current) {
          return ScaleEdit(context, write, current, outcome);
        }));
    if (outcome) object = outcome;
  } else {
    return MethodNotAllowedError();
  }
  Object scale;
  scale.body = std::make_shared<const json>(ScaleOf(*kind.scale, *object->body));
  scale.bytes = scale.body->dump();
  TAHOMA_ASSIGN_OR_RETURN(std::string body, form.One(ScaleKind(), scale, context.clock.WallNow()));
  return form.Answer(200, std::move(body));
}

// Serves a subresource with the form of the object; a write changes a part of the object.
absl::StatusOr<rest::Response> ServePart(const ApiContext& context, const ApiRequest& request) {
  if (request.http->method == "GET") return GetOne(context, request);
  if (request.http->method == "PUT") return Update(context, request);
  if (request.http->method == "PATCH") return Patch(context, request);
  return MethodNotAllowedError();
}

absl::Status BindingConflict(std::string_view pod, std::string_view why) {
  Kind binding;
  binding.plural = "pods/binding";
  return ConflictError(binding, pod, why);
}

void SetScheduled(json& pod, std::string_view now) {
  json& conditions = pod["status"]["conditions"];
  if (!conditions.is_array()) conditions = json::array();
  auto at = std::find_if(conditions.begin(), conditions.end(), [](const json& condition) {
    return TextAt(condition, "type") == "PodScheduled";
  });
  if (at == conditions.end()) {
    conditions.push_back({{"type", "PodScheduled"}});
    at = std::prev(conditions.end());
  }
  if (TextAt(*at, "status") != "True") (*at)["lastTransitionTime"] = now;
  (*at)["status"] = "True";
  (*at)["lastProbeTime"] = nullptr;
  at->erase("reason");
  at->erase("message");
}

absl::Status CheckBindable(const ApiRequest& request, const json& pod, const json& binding) {
  const json& metadata = MetadataOf(pod);
  const json& wanted = MetadataOf(binding);
  for (const char* field : {"uid", "resourceVersion"}) {
    const std::string value = TextAt(wanted, field);
    if (!value.empty() && value != TextAt(metadata, field)) {
      return BindingConflict(
          request.name, fmt::format("Precondition failed: {} in precondition: {}, {} in object "
                                    "meta: {}",
                                    field, value, field, TextAt(metadata, field)));
    }
  }
  if (metadata.contains("deletionTimestamp")) {
    return BindingConflict(
        request.name,
        fmt::format("pod {} is being deleted, cannot be assigned to a host", request.name));
  }
  const json* node = kube::ValueAt(pod, {"spec", "nodeName"});
  if (node != nullptr && node->is_string() && !node->get_ref<const std::string&>().empty()) {
    return BindingConflict(request.name, fmt::format("pod {} is already assigned to node \"{}\"",
                                                     request.name, node->get<std::string>()));
  }
  const json* gates = kube::ValueAt(pod, {"spec", "schedulingGates"});
  if (gates != nullptr && !gates->empty()) {
    return BindingConflict(request.name,
                           fmt::format("pod {} has non-empty .spec.schedulingGates", request.name));
  }
  return absl::OkStatus();
}

// The labels and annotations that a Binding brought along.
std::vector<Cause> CheckMerged(const json& pod) {
  constexpr std::size_t kAnnotationBytesMax = 256UL << 10U;
  std::vector<Cause> causes;
  std::size_t bytes = 0;
  for (const char* map : {"annotations", "labels"}) {
    const std::string field = fmt::format("metadata.{}", map);
    const json entries = MetadataOf(pod).value(map, json::object());
    for (const auto& [key, value] : entries.items()) {
      if (const std::string why = CheckQualifiedName(key); !why.empty()) {
        causes.push_back(Invalid(field, key, why));
      }
      if (!value.is_string()) {
        causes.push_back(Invalid(field, value, "must be a string"));
      } else if (map == std::string_view("annotations")) {
        bytes += key.size() + value.get_ref<const std::string&>().size();
      } else if (const std::string why = CheckLabelValue(value.get_ref<const std::string&>());
                 !why.empty()) {
        causes.push_back(Invalid(field, value, why));
      }
    }
  }
  if (bytes > kAnnotationBytesMax) {
    causes.push_back(TooLong("metadata.annotations", kAnnotationBytesMax));
  }
  return causes;
}

absl::StatusOr<Edit> BindEdit(const ApiRequest& request, const json& binding, bool dry_run,
                              std::string_view now, const ObjectPtr& current) {
  if (current == nullptr) return NotFoundError(*request.kind, request.name);
  TAHOMA_RETURN_IF_ERROR(CheckBindable(request, *current->body, binding));
  json pod = *current->body;
  pod["spec"]["nodeName"] = binding.at("target").at("name");
  for (const char* map : {"annotations", "labels"}) {
    const auto added = MetadataOf(binding).find(map);
    if (added == MetadataOf(binding).end() || !added->is_object()) continue;
    json& into = pod["metadata"][map];
    into = kube::MergePatch(std::move(into), *added);
  }
  SetScheduled(pod, now);
  const std::vector<Cause> causes = CheckMerged(pod);
  if (!causes.empty()) return InvalidError("", "Pod", request.name, causes);
  return dry_run ? Edit::None() : Edit::Put(std::move(pod));
}

// Rules and texts: kubernetes/kubernetes pkg/registry/core/pod/storage/storage.go.
absl::StatusOr<rest::Response> Bind(const ApiContext& context, const ApiRequest& request) {
  if (request.http->method != "POST") return MethodNotAllowedError();
  TAHOMA_ASSIGN_OR_RETURN(WriteRequest write, WriteRequest::Of(context, request));
  const bool dry_run = write.dry_run;
  TAHOMA_ASSIGN_OR_RETURN(const DecodedBody body, DecodeBody(*request.http));
  json& binding = *body.object;
  TAHOMA_RETURN_IF_ERROR(CheckTyped("io.k8s.api.core.v1.Binding", binding));
  const std::string name = TextAt(MetadataOf(binding), "name");
  if (!name.empty() && name != request.name) {
    return BadRequestError("name in URL does not match name in Binding object");
  }
  const auto target = binding.find("target");
  const std::string kind = target != binding.end() ? TextAt(*target, "kind") : std::string();
  if (!kind.empty() && kind != "Node") {
    return InvalidError("", "Binding", request.name,
                        {NotSupported("target.kind", kind, {"Node", "<empty>"})});
  }
  if (target == binding.end() || TextAt(*target, "name").empty()) {
    return InvalidError("", "Binding", request.name, {Required("target.name")});
  }
  if (context.webhooks.any()) {
    TAHOMA_ASSIGN_OR_RETURN(binding, Asked(context, write, {"", "v1", "Binding"},
                                           "io.k8s.api.core.v1.Binding", binding, nullptr));
  }
  const std::string now = FormatTime(context.clock.WallNow());
  TAHOMA_RETURN_IF_ERROR(context.objects
                             .Change(
                                 request.resource(), request.key(),
                                 [&](const ObjectPtr& current) {
                                   return BindEdit(request, binding, dry_run, now, current);
                                 },
                                 request.flight)
                             .status());
  return CreatedStatus(*request.http);
}

absl::StatusOr<rest::Response> Evict(const ApiContext& context, const ApiRequest& request) {
  if (request.http->method != "POST") return MethodNotAllowedError();
  DeleteOptions options;
  TAHOMA_ASSIGN_OR_RETURN(options.dry_run, request.dry_run());
  TAHOMA_ASSIGN_OR_RETURN(const DecodedBody body, DecodeBody(*request.http));
  constexpr std::string_view kType = "io.k8s.api.policy.v1.Eviction";
  if (const std::string kind = TextAt(*body.object, "kind"); !kind.empty() && kind != "Eviction") {
    return BadRequestError(fmt::format("{} in version \"{}\" cannot be handled as a Eviction", kind,
                                       TextAt(*body.object, "apiVersion")));
  }
  TAHOMA_RETURN_IF_ERROR(CheckTyped(kType, *body.object));
  if (TextAt(MetadataOf(*body.object), "name") != request.name) {
    return BadRequestError("name in URL does not match name in Eviction object");
  }
  TAHOMA_ASSIGN_OR_RETURN(WriteRequest write, WriteRequest::Of(context, request));
  TAHOMA_RETURN_IF_ERROR(
      Asked(context, write, {"policy", "v1", "Eviction"}, kType, *body.object, nullptr).status());
  if (const json* wanted = kube::ValueAt(*body.object, {"deleteOptions"}); wanted != nullptr) {
    options.dry_run = options.dry_run || SizeAt(*wanted, {"dryRun"}) > 0;
    options.propagation = TextAt(*wanted, "propagationPolicy");
    const json* grace = kube::ValueAt(*wanted, {"gracePeriodSeconds"});
    if (grace != nullptr && grace->is_number_integer()) {
      options.grace_seconds = grace->get<std::int64_t>();
    }
    if (const json* conditions = kube::ValueAt(*wanted, {"preconditions"}); conditions != nullptr) {
      options.precondition_uid = TextAt(*conditions, "uid");
      options.precondition_version = TextAt(*conditions, "resourceVersion");
    }
  }
  TAHOMA_RETURN_IF_ERROR(EvictPod(context, *request.kind, request.key(), options));
  return CreatedStatus(*request.http);
}

// PUT namespaces/<n>/finalize: the only verb that changes spec.finalizers.
absl::StatusOr<rest::Response> Finalize(const ApiContext& context, const ApiRequest& request) {
  if (request.http->method != "PUT") return MethodNotAllowedError();
  TAHOMA_ASSIGN_OR_RETURN(WriteRequest write, WriteRequest::Of(context, request));
  TAHOMA_ASSIGN_OR_RETURN(const DecodedBody body, DecodeBody(*request.http));
  TAHOMA_RETURN_IF_ERROR(CheckBody(write, *body.object, body.duplicates));
  const json* finalizers = kube::ValueAt(*body.object, {"spec", "finalizers"});
  const json wanted = finalizers != nullptr && finalizers->is_array() ? *finalizers : json::array();
  ObjectPtr outcome;
  TAHOMA_ASSIGN_OR_RETURN(
      const ObjectPtr stored,
      ChangeAdmitted(
          context, request, request.key(), {"UPDATE"},
          [&](const ObjectPtr& current) -> absl::StatusOr<Edit> {
            if (current == nullptr) return NotFoundError(*request.kind, request.name);
            const std::string version = TextAt(MetadataOf(*body.object), "resourceVersion");
            if (!version.empty() &&
                version != TextAt(MetadataOf(*current->body), "resourceVersion")) {
              return ConflictError(*request.kind, request.name,
                                   "the object has been modified; please apply your changes to "
                                   "the latest version and try again");
            }
            json next = *current->body;
            if (wanted.empty()) {
              if (next.contains("spec")) next["spec"].erase("finalizers");
            } else {
              next["spec"]["finalizers"] = wanted;
            }
            return EditOf(context, write, current, std::move(next), outcome);
          }));
  return Answer(context, write, 200, outcome ? *outcome : *stored);
}

}  // namespace

absl::StatusOr<rest::Response> ServeSubresource(const ApiContext& context,
                                                const ApiRequest& request) {
  const Kind& kind = *request.kind;
  const std::string& name = request.subresource;
  if (name == "status" && kind.has_status) return ServePart(context, request);
  if (name == "scale" && kind.scale) return ServeScale(context, request);
  const bool pod = kind.group.empty() && kind.plural == "pods";
  if (pod && name == "binding") return Bind(context, request);
  if (pod && name == "eviction") return Evict(context, request);
  if (pod && name == "ephemeralcontainers") return ServePart(context, request);
  if (pod && name == "log") return PodLog(context, request);
  if (pod && IsPodConnect(name)) return ConnectPod(context, request);
  if (kind.group.empty() && kind.plural == "namespaces" && name == "finalize") {
    return Finalize(context, request);
  }
  if (!kind.built_in) return NotFoundError(kind, request.name);
  return NoSuchPathError();
}

}  // namespace tahoma::controller::apiserver
