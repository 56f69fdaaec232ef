#include "controller/apiserver/verbs/write_verbs.h"

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "controller/apiserver/merge/apply.h"
#include "controller/apiserver/merge/field_text.h"
#include "controller/apiserver/merge/strategic_merge.h"
#include "controller/apiserver/request/decode_body.h"
#include "controller/apiserver/request/representation.h"
#include "controller/apiserver/request/status_error.h"
#include "controller/apiserver/schema/causes.h"
#include "controller/apiserver/schema/fields.h"
#include "controller/apiserver/schema/schema.h"
#include "controller/apiserver/verbs/webhook_steps.h"
#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/kube/json_writer.h"
#include "lib/kube/patch.h"

namespace tahoma::controller::apiserver {
namespace {

using json = Json;

constexpr std::size_t kGeneratedBaseMax = 58;
constexpr int kGenerateAttempts = 8;

ObjectPtr Unstored(const std::string& key, json body) {
  auto object = std::make_shared<Object>();
  object->key = key;
  object->bytes = kube::JsonText(body);
  object->body = std::make_shared<const json>(std::move(body));
  return object;
}

// 300 characters in a header are enough; quotes and backslashes are escaped (RFC 7234 5.5).
std::string WarningHeader(std::string_view text) {
  std::string escaped;
  for (const char c : text.substr(0, 300)) {
    if (c == '"' || c == '\\') escaped += '\\';
    escaped += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return fmt::format("299 - \"{}\"", escaped);
}

// Kinds whose PUT creates a missing object (their strategies' AllowCreateOnUpdate).
bool CreatesOnUpdate(const Kind& kind) {
  return kind.built_in &&
         (kind.plural == "leases" || kind.plural == "events" || kind.plural == "endpoints");
}

// Kinds whose PUT must name the version to replace (AllowUnconditionalUpdate).
bool NeedsVersion(const Kind& kind) {
  return !kind.built_in || kind.plural == "leases" || kind.plural == "poddisruptionbudgets";
}

// Creates `body`, whose name is known.
absl::StatusOr<ObjectPtr> CreateNamed(const ApiContext& context, WriteRequest& write, json body) {
  const Kind& kind = write.kind();
  const std::string name = TextAt(body["metadata"], "name");
  TAHOMA_RETURN_IF_ERROR(CheckNamespace(context, write.request, name));
  TAHOMA_ASSIGN_OR_RETURN(json admitted, AdmitCreate(context, write, std::move(body)));
  ObjectPtr outcome;
  const std::string key = ObjectKey(write.request.name_space, name);
  const bool asks = AsksWebhooks(context, write.request, {"CREATE"});
  TAHOMA_ASSIGN_OR_RETURN(const ObjectPtr stored,
                          ChangeAdmitted(context, write.request, key, {"CREATE"},
                                         [&](const ObjectPtr& current) -> absl::StatusOr<Edit> {
                                           if (current != nullptr)
                                             return AlreadyExistsError(kind, name);
                                           // Where webhooks are asked there may be another attempt.
                                           return EditOf(context, write, nullptr,
                                                         asks ? admitted : std::move(admitted),
                                                         outcome);
                                         }));
  return outcome ? outcome : stored;
}

absl::StatusOr<ObjectPtr> CreateAny(const ApiContext& context, WriteRequest& write, json body) {
  const json& metadata = MetadataOf(body);
  const std::string base = TextAt(metadata, "generateName");
  if (!TextAt(metadata, "name").empty() || base.empty()) {
    return CreateNamed(context, write, std::move(body));
  }
  absl::StatusOr<ObjectPtr> created = nullptr;
  ShareJson(body);
  for (int attempt = 0; attempt < kGenerateAttempts; ++attempt) {
    json named = body;
    named["metadata"]["name"] = base.substr(0, kGeneratedBaseMax) + context.ids.Suffix();
    created = CreateNamed(context, write, std::move(named));
    if (created.status().code() != absl::StatusCode::kAborted) break;
  }
  return created;
}

absl::StatusOr<json> JsonPatched(const ApiRequest& request, const json& document) {
  TAHOMA_ASSIGN_OR_RETURN(const auto decoded, DecodePatch(*request.http));
  const json& patch = *decoded;
  absl::StatusOr<json> patched = kube::JsonPatch(document, patch);
  if (patched.ok()) return patched;
  switch (patched.status().code()) {
    case absl::StatusCode::kResourceExhausted:
      return GenericError(413, "RequestEntityTooLarge", Message(patched.status()));
    case absl::StatusCode::kFailedPrecondition:
      return UnprocessableError();
    default:
      break;
  }
  // Operations are checked one by one while they are applied.
  const bool decodes =
      patch.is_array() && std::all_of(patch.begin(), patch.end(),
                                      [](const json& operation) { return operation.is_object(); });
  return decodes ? UnprocessableError() : BadRequestError(Message(patched.status()));
}

// Returns the patched object; `live` is the current object.
absl::StatusOr<json> Patched(const ApiRequest& request, const json& live) {
  const std::string type = MediaType(request.http->header("Content-Type"));
  if (type != "application/strategic-merge-patch+json") return ApplyPatchTo(request, live);
  if (!request.kind->built_in) {
    return UnsupportedMediaTypeError(
        "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml");
  }
  TAHOMA_ASSIGN_OR_RETURN(const auto decoded, DecodePatch(*request.http));
  const json& patch = *decoded;
  if (!patch.is_object()) return BadRequestError("a merge patch must be an object");
  absl::StatusOr<json> merged = StrategicMerge(*request.kind->schema, live, patch);
  if (!merged.ok()) return GenericError(422, "Invalid", Message(merged.status()));
  return merged;
}

// Whether a patch may be about metadata.managedFields.
bool NamesOwners(const rest::Request& http) {
  if (http.parsed && http.parsed->is_object()) {
    return MetadataOf(*http.parsed).contains("managedFields");
  }
  return BodyText(http).find("managedFields") != std::string::npos;
}

absl::Status CheckPatchType(const ApiRequest& request) {
  const std::string type = MediaType(request.http->header("Content-Type"));
  for (const std::string_view known :
       {std::string_view("application/json-patch+json"),
        std::string_view("application/merge-patch+json"),
        std::string_view("application/strategic-merge-patch+json"), kApplyType}) {
    if (type == known) return absl::OkStatus();
  }
  if (request.kind->built_in) return UnsupportedPatchTypeError();
  return UnsupportedMediaTypeError(
      "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml");
}

// The schema types an apply: nobody can own a field that does not exist. (A real server answers
// 500, as if the mistake were its own.)
absl::Status CheckDeclared(const ApiRequest& request, const json& applied) {
  const Kind& kind = *request.kind;
  json copy = applied;
  const std::vector<std::string> unknown = Prune(*kind.schema, copy);
  if (unknown.empty()) return absl::OkStatus();
  std::string text = unknown.size() == 1 ? "" : "errors:";
  for (const std::string& field : unknown) {
    text += fmt::format("{}.{}: field not declared in schema", unknown.size() == 1 ? "" : "\n  ",
                        field);
  }
  const json& metadata = MetadataOf(applied);
  return GenericError(422, "Invalid",
                      fmt::format("failed to create typed patch object ({}/{}; {}/{}, Kind={}): {}",
                                  TextAt(metadata, "namespace"), TextAt(metadata, "name"),
                                  kind.group, kind.version, kind.kind, text));
}

// The applied configuration, checked.
absl::StatusOr<json> AppliedBody(WriteRequest& write) {
  const ApiRequest& request = write.request;
  if (request.parameter("fieldManager").empty()) {
    return InvalidError("meta.k8s.io", "PatchOptions", "",
                        {Required("fieldManager", "is required for apply patch")});
  }
  TAHOMA_ASSIGN_OR_RETURN(json applied, ParseYamlText(BodyText(*request.http)));
  if (!applied.is_object()) return BadRequestError("the applied configuration must be an object");
  TAHOMA_RETURN_IF_ERROR(CheckDeclared(request, applied));
  TAHOMA_RETURN_IF_ERROR(CheckBody(write, applied, DuplicatesInPatch(*request.http)));
  json& metadata = applied["metadata"];
  if (!TextAt(metadata, "name").empty()) {
    TAHOMA_RETURN_IF_ERROR(CheckNameOfUrl(request, metadata));
  }
  metadata["name"] = request.name;
  if (request.kind->namespaced) metadata["namespace"] = request.name_space;
  return applied;
}

absl::StatusOr<Edit> ApplyEdit(const ApiContext& context, WriteRequest& write, const json& applied,
                               const ObjectPtr& current, ObjectPtr& outcome) {
  const ApiRequest& request = write.request;
  const Kind& kind = write.kind();
  const json live = current ? *current->body : json(nullptr);
  if (current == nullptr && !request.subresource.empty()) return NotFoundError(kind, request.name);
  if (current == nullptr) TAHOMA_RETURN_IF_ERROR(CheckNamespace(context, request, request.name));
  absl::StatusOr<ApplyOutcome> merged = Apply(kind, live, applied,
                                              {.field_manager = write.field_manager,
                                               .force = request.flag("force"),
                                               .subresource = request.subresource,
                                               .time = write.now});
  if (!merged.ok()) return BadRequestError(Message(merged.status()));
  if (!merged->conflicts.empty()) {
    return ApplyConflictError(ConflictMessage(merged->conflicts), merged->conflicts);
  }
  json next;
  if (current == nullptr) {
    TAHOMA_ASSIGN_OR_RETURN(next, AdmitCreate(context, write, std::move(*merged->object)));
  } else {
    TAHOMA_ASSIGN_OR_RETURN(next, AdmitUpdate(context, write, live, std::move(*merged->object)));
  }
  return EditOf(context, write, current, std::move(next), outcome);
}

absl::StatusOr<rest::Response> ServerSideApply(const ApiContext& context, WriteRequest& write) {
  write.apply = true;
  const ApiRequest& request = write.request;
  TAHOMA_ASSIGN_OR_RETURN(const json applied, AppliedBody(write));
  bool created = false;
  ObjectPtr outcome;
  TAHOMA_ASSIGN_OR_RETURN(const ObjectPtr stored,
                          ChangeAdmitted(context, request, request.key(), {"CREATE", "UPDATE"},
                                         [&](const ObjectPtr& current) {
                                           created = current == nullptr;
                                           return ApplyEdit(context, write, applied, current,
                                                            outcome);
                                         }));
  return Answer(context, write, created ? 201 : 200, outcome ? *outcome : *stored);
}

}  // namespace

absl::StatusOr<Edit> EditOf(const ApiContext& context, WriteRequest& write,
                            const ObjectPtr& current, json admitted, ObjectPtr& dry_run_outcome) {
  static const json none;
  const json& before = current ? *current->body : none;
  if (context.admit) TAHOMA_RETURN_IF_ERROR(context.admit(write.request, before, admitted));
  // ServeScale asks about a Scale.
  if (context.webhooks.any() && write.request.subresource != "scale") {
    TAHOMA_RETURN_IF_ERROR(AskValidating(context, write, admitted, before));
  }
  if (write.dry_run) {
    dry_run_outcome = Unstored(
        current ? current->key
                : ObjectKey(write.request.name_space, TextAt(admitted["metadata"], "name")),
        std::move(admitted));
    return Edit::None();
  }
  if (current != nullptr && admitted == *current->body) return Edit::None();
  // The stored form carries the storage version's name; fields do not differ between versions.
  const Kind& kind = write.kind();
  if (const Kind* storage = write.request.kinds->FindStorage(kind.group, kind.plural)) {
    admitted["apiVersion"] = storage->api_version();
  }
  if (current != nullptr && DeletedByUpdate(kind, admitted))
    return Edit::Delete(std::move(admitted));
  return Edit::Put(std::move(admitted));
}

absl::StatusOr<rest::Response> Answer(const ApiContext& context, const WriteRequest& write,
                                      int status, const Object& object) {
  TAHOMA_ASSIGN_OR_RETURN(const Representation form, Representation::Negotiate(write.request));
  const bool as_stored =
      form.whole() && TextAt(*object.body, "apiVersion") == write.kind().api_version();
  // A caller that sends many requests at once is in this process and takes the value.
  const bool needs_text = !as_stored || write.request.flight == nullptr;
  std::string body;
  if (needs_text) {
    TAHOMA_ASSIGN_OR_RETURN(body, form.One(write.kind(), object, context.clock.WallNow()));
  }
  rest::Response response = form.Answer(status, std::move(body));
  if (as_stored) response.parsed = object.body;
  response.object_name = TextAt(MetadataOf(*object.body), "name");
  response.headers.emplace_back("Cache-Control", "no-cache, private");
  AddWarnings(write.warnings, response);
  return response;
}

void AddWarnings(const std::vector<std::string>& warnings, rest::Response& response) {
  std::set<std::string_view> told;
  for (const std::string& warning : warnings) {
    if (!told.insert(warning).second) continue;  // of an attempt before
    response.headers.emplace_back("Warning", WarningHeader(warning));
  }
}

absl::StatusOr<json> ApplyPatchTo(const ApiRequest& request, const json& document) {
  const std::string type = MediaType(request.http->header("Content-Type"));
  if (type == "application/json-patch+json") return JsonPatched(request, document);
  if (type != "application/merge-patch+json") {
    return UnsupportedMediaTypeError("application/json-patch+json, application/merge-patch+json");
  }
  TAHOMA_ASSIGN_OR_RETURN(const auto decoded, DecodePatch(*request.http));
  const json& patch = *decoded;
  if (!patch.is_object()) return BadRequestError("a merge patch must be an object");
  return MergePatch(document, patch);
}

absl::StatusOr<rest::Response> Create(const ApiContext& context, const ApiRequest& request) {
  TAHOMA_ASSIGN_OR_RETURN(WriteRequest write, WriteRequest::Of(context, request));
  TAHOMA_ASSIGN_OR_RETURN(DecodedBody body, DecodeBody(*request.http));
  TAHOMA_RETURN_IF_ERROR(CheckBody(write, *body.object, body.duplicates));
  if (!TextAt(MetadataOf(*body.object), "resourceVersion").empty()) {
    return BadRequestError("resourceVersion should not be set on objects to be created");
  }
  TAHOMA_ASSIGN_OR_RETURN(const ObjectPtr created,
                          CreateAny(context, write, std::move(*body.object)));
  return Answer(context, write, 201, *created);
}

absl::StatusOr<rest::Response> Update(const ApiContext& context, const ApiRequest& request) {
  const Kind& kind = *request.kind;
  TAHOMA_ASSIGN_OR_RETURN(WriteRequest write, WriteRequest::Of(context, request));
  TAHOMA_ASSIGN_OR_RETURN(DecodedBody body, DecodeBody(*request.http));
  TAHOMA_RETURN_IF_ERROR(CheckBody(write, *body.object, body.duplicates));
  const json& metadata = MetadataOf(*body.object);
  TAHOMA_RETURN_IF_ERROR(CheckNameOfUrl(request, metadata));
  if (NeedsVersion(kind) && TextAt(metadata, "resourceVersion").empty() &&
      (!CreatesOnUpdate(kind) || context.objects.Get(request.resource(), request.key()))) {
    return InvalidError(kind.group, kind.plural, request.name,
                        {{"FieldValueInvalid", "Invalid value: 0: must be specified for an update",
                          "metadata.resourceVersion"}});
  }
  bool created = false;
  ObjectPtr outcome;
  TAHOMA_ASSIGN_OR_RETURN(
      const ObjectPtr stored,
      ChangeAdmitted(context, request, request.key(), {"CREATE", "UPDATE"},
                     [&](const ObjectPtr& current) -> absl::StatusOr<Edit> {
                       if (current == nullptr) {
                         if (!CreatesOnUpdate(kind)) return NotFoundError(kind, request.name);
                         created = true;
                         TAHOMA_RETURN_IF_ERROR(CheckNamespace(context, request, request.name));
                         TAHOMA_ASSIGN_OR_RETURN(json fresh,
                                                 AdmitCreate(context, write, *body.object));
                         return EditOf(context, write, nullptr, std::move(fresh), outcome);
                       }
                       TAHOMA_ASSIGN_OR_RETURN(
                           json next, AdmitUpdate(context, write, *current->body, *body.object));
                       return EditOf(context, write, current, std::move(next), outcome);
                     }));
  return Answer(context, write, created ? 201 : 200, outcome ? *outcome : *stored);
}

absl::StatusOr<rest::Response> Patch(const ApiContext& context, const ApiRequest& request) {
  if (request.http->body.size() > kBodyBytesMax) return TooLargeError(kBodyBytesMax);
  TAHOMA_RETURN_IF_ERROR(CheckPatchType(request));
  TAHOMA_ASSIGN_OR_RETURN(WriteRequest write, WriteRequest::Of(context, request));
  if (MediaType(request.http->header("Content-Type")) == kApplyType) {
    return ServerSideApply(context, write);
  }
  const std::vector<std::string> duplicates = DuplicatesInPatch(*request.http);
  ObjectPtr outcome;
  TAHOMA_ASSIGN_OR_RETURN(
      const ObjectPtr stored,
      ChangeAdmitted(context, request, request.key(), {"UPDATE"},
                     [&](const ObjectPtr& current) -> absl::StatusOr<Edit> {
                       if (current == nullptr) return NotFoundError(*request.kind, request.name);
                       // The live object gets the name of the requested version, and its owners
                       // in the client's form.
                       const json* live = current->body.get();
                       json shown;
                       if (TextAt(*live, "apiVersion") != request.kind->api_version() ||
                           NamesOwners(*request.http)) {
                         shown = *live;
                         shown["apiVersion"] = request.kind->api_version();
                         ExpandFields(shown);
                         live = &shown;
                       }
                       TAHOMA_ASSIGN_OR_RETURN(json patched, Patched(request, *live));
                       CompactFields(shown);
                       if (!patched.is_object())
                         return BadRequestError("the patch leaves no object");
                       TAHOMA_RETURN_IF_ERROR(CheckBody(
                           write, patched, duplicates, PartsToCheck(write.kind(), *live, patched)));
                       TAHOMA_ASSIGN_OR_RETURN(
                           json next, AdmitUpdate(context, write, *live, std::move(patched)));
                       return EditOf(context, write, current, std::move(next), outcome);
                     }));
  return Answer(context, write, 200, outcome ? *outcome : *stored);
}

}  // namespace tahoma::controller::apiserver
