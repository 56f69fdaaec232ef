#include "controller/apiserver/verbs/admission.h"

#include <set>
#include <utility>

#include "controller/apiserver/merge/apply.h"
#include "controller/apiserver/protobuf/protobuf.h"
#include "controller/apiserver/request/decode_body.h"
#include "controller/apiserver/request/status_error.h"
#include "controller/apiserver/schema/api_approval.h"
#include "controller/apiserver/schema/causes.h"
#include "controller/apiserver/schema/crd.h"
#include "controller/apiserver/schema/fields.h"
#include "controller/apiserver/schema/schema.h"
#include "controller/apiserver/validation/defaults.h"
#include "controller/apiserver/validation/validation.h"
#include "controller/apiserver/verbs/priority.h"
#include "controller/apiserver/verbs/volume_admission.h"
#include "controller/apiserver/verbs/webhook_steps.h"
#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/base/utf8.h"
#include "lib/kube/json_writer.h"

namespace tahoma::controller::apiserver {
namespace {

using json = Json;

constexpr std::size_t kWarningsMax = 50;

absl::Status CheckType(const WriteRequest& write, json& object) {
  const Kind& kind = write.kind();
  static const Parts kNames = std::set<std::string, std::less<>>{"apiVersion", "kind"};
  if (const auto wrong = DecodeError(*kind.schema, object, kNames)) {
    return BadRequestError(fmt::format("couldn't get version/kind; json parse error: {}", *wrong));
  }
  const std::string api_version = TextAt(object, "apiVersion");
  const std::string name = TextAt(object, "kind");
  if (kind.built_in && api_version.empty() && name.empty()) {
    object["apiVersion"] = kind.api_version();
    object["kind"] = kind.kind;
    return absl::OkStatus();
  }
  if (name.empty()) {
    return BadRequestError(
        fmt::format("Object 'Kind' is missing in '{}'", CutUtf8(kube::JsonText(object), 512)));
  }
  if (api_version != kind.api_version()) {
    return BadRequestError(
        fmt::format("the API version in the data ({}) does not match the expected API version ({})",
                    api_version, kind.api_version()));
  }
  if (name != kind.kind) {
    return BadRequestError(
        fmt::format("{} in version \"{}\" cannot be handled as a {}: the kind "
                    "does not match the resource",
                    name, kind.version, kind.kind));
  }
  return absl::OkStatus();
}

// Kinds whose generation stays 1 after every change.
bool KeepsGeneration(const Kind& kind) {
  return kind.resource() == "priorityclasses.scheduling.k8s.io";
}

bool IsPatch(const WriteRequest& write) {
  return write.request.http->method == "PATCH" && !write.apply;
}

// The patch made an object that is not legal.
absl::Status PatchError(const WriteRequest& write, std::string_view name, std::string_view why) {
  const std::string patch = BodyText(*write.request.http);
  return InvalidError(write.kind().group, write.kind().kind, name,
                      {Invalid("patch", std::string(CutUtf8(patch, 4096)), why)});
}

// Reports `unknown field "spec.foo"` as an error (strict) or as warnings.
absl::Status ReportFields(WriteRequest& write, const std::vector<std::string>& problems,
                          std::string_view name) {
  if (problems.empty() || write.validation == FieldValidation::kIgnore) return absl::OkStatus();
  if (write.validation == FieldValidation::kWarn) {
    for (const std::string& problem : problems) {
      if (write.warnings.size() < kWarningsMax) write.warnings.push_back(problem);
    }
    return absl::OkStatus();
  }
  const Kind& kind = write.kind();
  const std::string text = fmt::format("strict decoding error: {}", fmt::join(problems, ", "));
  if (IsPatch(write)) return PatchError(write, name, text);
  return UndecodableError(kind.kind, kind.version, text);
}

// Go clients send `creationTimestamp: null` and the like.
void DropNulls(json& map) {
  for (auto at = map.begin(); at != map.end();) {
    at = at->is_null() ? map.erase(at) : std::next(at);
  }
}

// Returns the first field whose type is wrong, in the words of Go's decoder. The metadata of every
// kind is decoded; the schema checks the other fields of a custom kind later. A built-in object
// passes only if it has a protobuf form: readers may ask for protobuf.
std::optional<std::string> WrongType(const Kind& kind, const json& object, const Parts& parts) {
  if (!kind.built_in) return DecodeError(*kind.schema->Field("metadata"), object.at("metadata"));
  if (auto wrong = DecodeError(*kind.schema, object, parts)) return wrong;
  const auto message = EncodeMessage(kind.api_version(), kind.kind, object);
  if (message.ok()) return std::nullopt;
  return std::string(Message(message.status()));
}

absl::Status CheckTypes(const WriteRequest& write, const json& object, const Parts& parts) {
  const Kind& kind = write.kind();
  const auto wrong = WrongType(kind, object, parts);
  if (!wrong) return absl::OkStatus();
  if (IsPatch(write)) return PatchError(write, "", *wrong);
  return UndecodableError(kind.kind, kind.version, *wrong);
}

absl::Status CheckNamespaceField(const ApiRequest& request, json& metadata) {
  if (!request.kind->namespaced) {
    metadata.erase("namespace");
    return absl::OkStatus();
  }
  const std::string given = TextAt(metadata, "namespace");
  if (!given.empty() && given != request.name_space) {
    return BadRequestError(
        fmt::format("the namespace of the provided object does not match the namespace sent on the "
                    "request"));
  }
  metadata["namespace"] = request.name_space;
  return absl::OkStatus();
}

// Applies the schema's defaults, then defaults that no schema can state. The server itself writes a
// CRD's status.
void Complete(const WriteRequest& write, json& object, const Parts& parts = {}) {
  ApplyDefaults(*write.kind().schema, object, parts);
  ApplyKindDefaults(write.kind(), write.now, object);
  // An empty map equals no map, as in Go's types.
  json& metadata = object["metadata"];
  for (const char* map : {"labels", "annotations", "finalizers", "ownerReferences"}) {
    const auto found = metadata.find(map);
    if (found != metadata.end() && found->empty()) metadata.erase(found);
  }
}

// Asks the mutating webhooks; ServeScale asks about a Scale.
absl::StatusOr<json> Mutated(const ApiContext& context, WriteRequest& write, json object,
                             const json& old_object) {
  if (!context.webhooks.any() || write.request.subresource == "scale") return object;
  const auto normalize = [&](json& changed) -> absl::Status {
    TAHOMA_RETURN_IF_ERROR(CheckTypes(write, changed, {}));
    Prune(*write.kind().schema, changed);
    Complete(write, changed);
    return absl::OkStatus();
  };
  return AskMutating(context, write, std::move(object), old_object, normalize);
}

absl::Status CheckCrd(const WriteRequest& write, const json& object) {
  if (!write.kind().IsCrd()) return absl::OkStatus();
  const auto kinds = KindsOfCrd(object);
  if (kinds.ok()) return absl::OkStatus();
  return InvalidError(write.kind().group, write.kind().kind, TextAt(MetadataOf(object), "name"),
                      {Invalid("spec", json(nullptr), Message(kinds.status()))});
}

// The fields that the server gives to a new object.
void SetIdentity(const ApiContext& context, const WriteRequest& write, json& metadata) {
  metadata["uid"] = context.ids.Uid();
  metadata["creationTimestamp"] = write.now;
  if (write.kind().has_generation) {
    metadata["generation"] = 1;
  } else {
    metadata.erase("generation");
  }
}

absl::Status CheckPreconditions(const WriteRequest& write, const json& old_metadata,
                                const json& metadata) {
  const Kind& kind = write.kind();
  const std::string name = TextAt(old_metadata, "name");
  const std::string version = TextAt(metadata, "resourceVersion");
  const std::string uid = TextAt(metadata, "uid");
  if (!uid.empty() && uid != TextAt(old_metadata, "uid")) {
    return ConflictError(kind, name,
                         fmt::format("Precondition failed: UID in precondition: {}, UID in object "
                                     "meta: {}",
                                     uid, TextAt(old_metadata, "uid")));
  }
  if (!version.empty() && version != "0" && version != TextAt(old_metadata, "resourceVersion")) {
    return ConflictError(kind, name,
                         "the object has been modified; please apply your changes to the latest "
                         "version and try again");
  }
  return absl::OkStatus();
}

// A patch may not change uid and times. In a PUT the uid is a precondition, and times are ignored.
std::vector<Cause> CheckPatchedIdentity(const WriteRequest& write, const json& old_metadata,
                                        const json& metadata) {
  if (write.request.http->method != "PATCH") return {};
  const auto uid = metadata.find("uid");
  if (uid == metadata.end() || *uid == old_metadata.value("uid", json())) return {};
  return {Invalid("metadata.uid", *uid, "field is immutable")};
}

void KeepServerFields(const json& old_metadata, json& metadata) {
  for (const char* field : {"name", "namespace", "uid", "creationTimestamp", "deletionTimestamp",
                            "deletionGracePeriodSeconds", "generation", "resourceVersion",
                            "generateName", "selfLink"}) {
    CopyField(old_metadata, field, metadata);
  }
}

absl::Status CheckFinalizers(const Kind& kind, const json& old_metadata, const json& metadata) {
  if (!old_metadata.contains("deletionTimestamp")) return absl::OkStatus();
  const json known = old_metadata.value("finalizers", json::array());
  const std::set<json> before(known.begin(), known.end());
  std::vector<std::string> added;
  const json wanted = metadata.value("finalizers", json::array());
  for (const json& finalizer : wanted) {
    if (finalizer.is_string() && !before.contains(finalizer)) {
      added.push_back(fmt::format("\"{}\"", finalizer.get<std::string>()));
    }
  }
  if (added.empty()) return absl::OkStatus();
  return InvalidError(
      kind.group, kind.kind, TextAt(old_metadata, "name"),
      {Forbidden("metadata.finalizers",
                 fmt::format("no new finalizers can be added if the object is being "
                             "deleted, found new finalizers []string{{{}}}",
                             fmt::join(added, ", ")))});
}

}  // namespace

absl::StatusOr<WriteRequest> WriteRequest::Of(const ApiContext& context,
                                              const ApiRequest& request) {
  TAHOMA_RETURN_IF_ERROR(request.CheckManager());
  TAHOMA_ASSIGN_OR_RETURN(const bool dry_run, request.dry_run());
  TAHOMA_ASSIGN_OR_RETURN(const FieldValidation validation, request.field_validation());
  return WriteRequest{.request = request,
                      .dry_run = dry_run,
                      .validation = validation,
                      .field_manager = request.field_manager(),
                      .now = FormatTime(context.clock.WallNow()),
                      .apply = false,
                      .warnings = {}};
}

absl::Status CheckNameOfUrl(const ApiRequest& request, const json& metadata) {
  const std::string name = TextAt(metadata, "name");
  if (name == request.name) return absl::OkStatus();
  if (name.empty()) {
    return BadRequestError(
        fmt::format("the name of the object ({} based on URL) was undeterminable: name must be "
                    "provided",
                    request.name));
  }
  return BadRequestError(fmt::format(
      "the name of the object ({}) does not match the name on the URL ({})", name, request.name));
}

absl::Status CheckBody(WriteRequest& write, json& object,
                       const std::vector<std::string>& duplicates, const Parts& parts) {
  TAHOMA_RETURN_IF_ERROR(CheckType(write, object));
  json& metadata = object["metadata"];
  if (metadata.is_null()) metadata = json::object();
  if (metadata.is_object()) DropNulls(metadata);
  const Kind& kind = write.kind();
  const bool is_clean = IsClean(*kind.schema, object, kind.built_in, parts);
  if (!is_clean || !kind.built_in) TAHOMA_RETURN_IF_ERROR(CheckTypes(write, object, parts));
  if (is_clean && duplicates.empty()) return absl::OkStatus();
  std::vector<std::string> problems;
  for (const std::string& field : duplicates) {
    problems.push_back(fmt::format("duplicate field \"{}\"", field));
  }
  for (const std::string& field : Prune(*kind.schema, object, parts)) {
    problems.push_back(fmt::format("unknown field \"{}\"", field));
  }
  return ReportFields(write, problems, TextAt(object["metadata"], "name"));
}

absl::StatusOr<json> AdmitCreate(const ApiContext& context, WriteRequest& write, json object) {
  const Kind& kind = write.kind();
  json& metadata = object["metadata"];
  TAHOMA_RETURN_IF_ERROR(CheckNamespaceField(write.request, metadata));
  for (const char* field :
       {"resourceVersion", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"}) {
    metadata.erase(field);
  }
  TAHOMA_RETURN_IF_ERROR(AdmitPriority(context, kind, object));
  AdmitVolumes(context, kind, object);
  Complete(write, object);
  TAHOMA_ASSIGN_OR_RETURN(object, Mutated(context, write, std::move(object), nullptr));
  SetIdentity(context, write, object["metadata"]);
  PrepareCreate(kind, write.now, object);
  const std::vector<Cause> causes = ValidateCreate(kind, object);
  if (!causes.empty()) {
    return InvalidError(kind.group, kind.kind, TextAt(object["metadata"], "name"), causes);
  }
  TAHOMA_RETURN_IF_ERROR(CheckCrd(write, object));
  TAHOMA_RETURN_IF_ERROR(CheckDefaultClass(context, kind, object));
  if (kind.IsCrd()) {
    object["status"] = EstablishedStatus(object, write.now);
    SetApprovalCondition(write.now, object);
  }
  if (!write.apply) {
    TrackUpdate(kind, json(nullptr), object,
                {.field_manager = write.field_manager,
                 .force = false,
                 .subresource = write.request.subresource,
                 .time = write.now});
  }
  return object;
}

absl::StatusOr<json> AdmitUpdate(const ApiContext& context, WriteRequest& write,
                                 const json& old_object, json object) {
  const Kind& kind = write.kind();
  const json& old_metadata = MetadataOf(old_object);
  json& metadata = object["metadata"];
  if (const std::string name = TextAt(metadata, "name");
      name != write.request.name && !name.empty()) {
    return BadRequestError(
        fmt::format("the name of the object ({}) does not match the name on the URL ({})", name,
                    write.request.name));
  }
  TAHOMA_RETURN_IF_ERROR(CheckNamespaceField(write.request, metadata));
  if (auto causes = CheckPatchedIdentity(write, old_metadata, metadata); !causes.empty()) {
    return InvalidError(kind.group, kind.kind, TextAt(old_metadata, "name"), causes);
  }
  TAHOMA_RETURN_IF_ERROR(CheckPreconditions(write, old_metadata, metadata));
  KeepServerFields(old_metadata, metadata);  // as webhooks see the object
  Complete(write, object, PartsToCheck(kind, old_object, object));
  TAHOMA_ASSIGN_OR_RETURN(object, Mutated(context, write, std::move(object), old_object));
  KeepServerFields(old_metadata, object["metadata"]);
  // A write of a scale is one of the object.
  const std::string_view subresource =
      write.request.subresource == "scale" ? std::string_view() : write.request.subresource;
  PrepareUpdate(kind, old_object, object, subresource);
  TAHOMA_RETURN_IF_ERROR(CheckFinalizers(kind, old_metadata, MetadataOf(object)));
  const bool spec_changed = kind.has_generation && subresource != "status" &&
                            !KeepsGeneration(kind) && SpecChanged(kind, old_object, object);
  if (spec_changed) {
    object["metadata"]["generation"] = old_metadata.value("generation", std::int64_t{0}) + 1;
  }
  const std::vector<Cause> causes = ValidateUpdate(kind, old_object, object, subresource);
  if (!causes.empty()) {
    return InvalidError(kind.group, kind.kind, TextAt(old_metadata, "name"), causes);
  }
  TAHOMA_RETURN_IF_ERROR(CheckDefaultClass(context, kind, object));
  if (kind.IsCrd() && spec_changed) {
    TAHOMA_RETURN_IF_ERROR(CheckCrd(write, object));
    object["status"] = EstablishedStatus(object, write.now);
  }
  if (kind.IsCrd() && subresource.empty()) SetApprovalCondition(write.now, object);
  if (!write.apply) {
    TrackUpdate(kind, old_object, object,
                {.field_manager = write.field_manager,
                 .force = false,
                 .subresource = write.request.subresource,
                 .time = write.now});
  }
  return object;
}

absl::Status CheckNamespace(const ApiContext& context, const ApiRequest& request,
                            std::string_view name) {
  if (!request.kind->namespaced) return absl::OkStatus();
  const Kind* namespaces = request.kinds->Find("", "v1", "namespaces");
  if (namespaces == nullptr) return absl::OkStatus();
  const ObjectPtr found =
      context.objects.Get({"", "namespaces"}, ObjectKey("", request.name_space));
  if (found == nullptr) return NotFoundError(*namespaces, request.name_space);
  if (!MetadataOf(*found->body).contains("deletionTimestamp")) return absl::OkStatus();
  return ForbiddenError(
      *request.kind, name,
      fmt::format("unable to create new content in namespace {} because it is being terminated",
                  request.name_space),
      {{"NamespaceTerminating", fmt::format("namespace {} is being terminated", request.name_space),
        "metadata.namespace"}});
}

bool DeletedByUpdate(const Kind& kind, const json& object) {
  const json& metadata = MetadataOf(object);
  if (!metadata.contains("deletionTimestamp")) return false;
  if (!metadata.value("finalizers", json::array()).empty()) return false;
  if (metadata.value("deletionGracePeriodSeconds", std::int64_t{0}) != 0) return false;
  if (kind.group.empty() && kind.plural == "namespaces") {
    const auto spec = object.find("spec");
    return spec == object.end() || spec->value("finalizers", json::array()).empty();
  }
  return true;
}

}  // namespace tahoma::controller::apiserver
