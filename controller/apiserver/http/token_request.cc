#include "controller/apiserver/http/token_request.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "controller/access/access_table.h"
#include "controller/apiserver/http/account_callers.h"
#include "controller/apiserver/request/decode_body.h"
#include "controller/apiserver/request/representation.h"
#include "controller/apiserver/request/status_error.h"
#include "controller/apiserver/request/typed_body.h"
#include "controller/apiserver/schema/causes.h"
#include "controller/apiserver/schema/fields.h"
#include "controller/apiserver/verbs/admission.h"
#include "controller/apiserver/verbs/webhook_steps.h"
#include "controller/apiserver/verbs/write_verbs.h"
#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/kube/json_writer.h"
#include "lib/kube/object.h"

namespace tahoma::controller::apiserver {
namespace {

constexpr std::string_view kType = "io.k8s.api.authentication.v1.TokenRequest";
constexpr std::string_view kGroup = "authentication.k8s.io";
constexpr std::int64_t kSecondsLeast = 600;
constexpr std::int64_t kSecondsMost = std::int64_t{1} << 32;
constexpr std::int64_t kSecondsUsual = 3600;

// A TokenRequest with nothing left out.
struct Wish {
  Json object;  // the TokenRequest
  std::vector<std::string> audiences;
  std::int64_t seconds = 0;

  const Json& bound() const { return ValueAt(object, {"spec", "boundObjectRef"}); }
};

absl::Status InvalidWish(std::string_view name, const std::vector<Cause>& causes) {
  return InvalidError(kGroup, "TokenRequest", name, causes);
}

absl::Status CheckNames(const ApiRequest& request, const Json& object) {
  const Json& metadata = MetadataOf(object);
  const std::string name = TextAt(metadata, "name");
  if (!name.empty() && name != request.name) {
    return InvalidWish(request.name, {Invalid("metadata.name", name,
                                              "must match the service account name if specified")});
  }
  const std::string name_space = TextAt(metadata, "namespace");
  if (!name_space.empty() && name_space != request.name_space) {
    return InvalidWish(request.name,
                       {Invalid("metadata.namespace", name_space,
                                "must match the service account namespace if specified")});
  }
  return absl::OkStatus();
}

// Fills in what is left out, and checks what a webhook may have changed.
absl::StatusOr<Wish> Complete(Json object) {
  if (!ValueAt(object, {"spec"}).is_object()) object["spec"] = Json::object();
  Json& spec = object["spec"];
  if (ValueAt(spec, {"audiences"}).empty()) spec["audiences"] = OwnAudiences();
  if (ValueAt(spec, {"expirationSeconds"}).is_null()) spec["expirationSeconds"] = kSecondsUsual;
  if (ValueAt(spec, {"boundObjectRef"}).is_null()) spec["boundObjectRef"] = nullptr;
  object.erase("status");
  TAHOMA_RETURN_IF_ERROR(CheckTyped(kType, object));
  Wish wish{.object = std::move(object), .audiences = {}};
  const Json& checked = ValueAt(wish.object, {"spec"});
  wish.audiences = kube::StringsAt(checked, {"audiences"});
  wish.seconds = kube::IntAt(checked, {"expirationSeconds"});
  if (wish.seconds < kSecondsLeast) {
    return InvalidWish("", {Invalid("spec.expirationSeconds", wish.seconds,
                                    "may not specify a duration less than 10 minutes")});
  }
  if (wish.seconds > kSecondsMost) {
    return InvalidWish("", {Invalid("spec.expirationSeconds", wish.seconds,
                                    "may not specify a duration larger than 2^32 seconds")});
  }
  return wish;
}

std::string UidOf(const ObjectPtr& object) { return TextAt(MetadataOf(*object->body), "uid"); }

std::string OtherUid(std::string_view uid) {
  return fmt::format(
      "the UID in the bound object reference ({}) does not match the UID in record. The object "
      "might have been deleted and then recreated",
      uid);
}

// Finds an object of the core group; 404 when there is none.
absl::StatusOr<ObjectPtr> Find(const ApiContext& context, const ApiRequest& request,
                               std::string_view plural, std::string_view name_space,
                               std::string_view name) {
  const Kind* const kind = request.kinds->Find("", "v1", plural);
  ObjectPtr object = context.objects.Get({"", std::string(plural)}, ObjectKey(name_space, name));
  if (object == nullptr) return NotFoundError(*kind, name);
  return object;
}

// The audiences of the tokens that the pod's volumes ask for; the empty one is the server's.
bool NamesAudience(const Json& pod, std::string_view audience) {
  const std::vector<std::string> own = OwnAudiences();
  if (std::ranges::find(own, audience) != own.end()) return true;
  for (const Json& volume : kube::ListAt(pod, {"spec", "volumes"})) {
    for (const Json& source : kube::ListAt(volume, {"projected", "sources"})) {
      if (TextAt(source, {"serviceAccountToken", "audience"}) == audience) return true;
    }
  }
  return false;
}

// NodeRestriction: a node gets only tokens that end with a pod that is bound to the node.
absl::Status CheckNode(const ApiContext& context, const ApiRequest& request, const Json& object) {
  if (request.http->identity == nullptr) return absl::OkStatus();
  const auto node = NodeOf(*request.http->identity);
  if (!node) return absl::OkStatus();
  const auto forbid = [&](std::string_view why) {
    return ForbiddenError(*request.kind, request.name, why);
  };
  const Json& bound = ValueAt(object, {"spec", "boundObjectRef"});
  if (TextAt(bound, "apiVersion") != "v1" || TextAt(bound, "kind") != "Pod" ||
      TextAt(bound, "name").empty()) {
    return forbid("node requested token not bound to a pod");
  }
  const std::string uid = TextAt(bound, "uid");
  if (uid.empty()) return forbid("node requested token with a pod binding without a uid");
  TAHOMA_ASSIGN_OR_RETURN(const ObjectPtr pod, Find(context, request, "pods", request.name_space,
                                                    TextAt(bound, "name")));
  if (UidOf(pod) != uid) return forbid(OtherUid(uid));
  if (TextAt(*pod->body, {"spec", "nodeName"}) != *node) {
    return forbid("node requested token bound to a pod scheduled on a different node");
  }
  for (const std::string& audience : kube::StringsAt(object, {"spec", "audiences"})) {
    if (NamesAudience(*pod->body, audience)) continue;
    return forbid(fmt::format(
        "audience \"{}\" not found in pod spec volume, {} is not authorized to request tokens for "
        "this audience",
        audience, request.http->identity->name));
  }
  return absl::OkStatus();
}

// Adds the object that the token ends with to the claims.
absl::Status Bind(const ApiContext& context, const ApiRequest& request, const Json& bound,
                  AccountClaims& claims) {
  if (!bound.is_object()) return absl::OkStatus();
  const std::string version = TextAt(bound, "apiVersion");
  const std::string kind = TextAt(bound, "kind");
  const std::string name = TextAt(bound, "name");
  const std::size_t slash = version.find('/');
  std::optional<ClaimedObject>* into = nullptr;
  std::string_view plural;
  if (kind == "Pod") std::tie(into, plural) = std::pair(&claims.pod, "pods");
  if (kind == "Secret") std::tie(into, plural) = std::pair(&claims.secret, "secrets");
  if (kind == "Node") std::tie(into, plural) = std::pair(&claims.node, "nodes");
  if (into == nullptr || slash != std::string::npos) {
    const std::string group = slash == std::string::npos ? "" : version.substr(0, slash);
    const std::string rest = slash == std::string::npos ? version : version.substr(slash + 1);
    return BadRequestError(
        fmt::format("cannot bind token to object of type {}/{}, Kind={}", group, rest, kind));
  }
  TAHOMA_ASSIGN_OR_RETURN(
      const ObjectPtr object,
      Find(context, request, plural, kind == "Node" ? "" : request.name_space, name));
  *into = ClaimedObject{.name = name, .uid = UidOf(object)};
  if (kind == "Pod") {
    if (TextAt(*object->body, {"spec", "serviceAccountName"}) != request.name) {
      return BadRequestError(
          fmt::format("cannot bind token for serviceaccount \"{}\" to pod running with different "
                      "serviceaccount name.",
                      request.name));
    }
    if (const std::string node = TextAt(*object->body, {"spec", "nodeName"}); !node.empty()) {
      const ObjectPtr known = context.objects.Get({"", "nodes"}, ObjectKey("", node));
      claims.node = ClaimedObject{.name = node, .uid = known == nullptr ? "" : UidOf(known)};
    }
  }
  const std::string uid = TextAt(bound, "uid");
  if (uid.empty() || uid == (*into)->uid) return absl::OkStatus();
  Kind named;
  named.plural = kind;
  return ConflictError(named, name, OtherUid(uid));
}

// The wish as the webhooks leave it, checked.
absl::StatusOr<Wish> Wished(const ApiContext& context, WriteRequest& write, Json object) {
  const GroupVersionKind shown{std::string(kGroup), "v1", "TokenRequest"};
  TAHOMA_ASSIGN_OR_RETURN(Wish wish, Complete(std::move(object)));
  const auto normalize = [](Json& changed) { return CheckTyped(kType, changed); };
  TAHOMA_ASSIGN_OR_RETURN(Json asked,
                          AskMutating(context, write, wish.object, nullptr, normalize, &shown));
  TAHOMA_ASSIGN_OR_RETURN(wish, Complete(std::move(asked)));
  TAHOMA_RETURN_IF_ERROR(AskValidating(context, write, wish.object, nullptr, &shown));
  return wish;
}

}  // namespace

bool IsTokenRequest(const ApiRequest& request) {
  return request.subresource == "token" && request.kind->group.empty() &&
         request.kind->plural == "serviceaccounts";
}

absl::StatusOr<rest::Response> ServeTokenRequest(const ApiContext& context,
                                                 const ApiRequest& request,
                                                 const AccountTokens& tokens) {
  if (request.http->method != "POST") return MethodNotAllowedError();
  TAHOMA_ASSIGN_OR_RETURN(WriteRequest write, WriteRequest::Of(context, request));
  TAHOMA_ASSIGN_OR_RETURN(const DecodedBody body, DecodeBody(*request.http));
  TAHOMA_RETURN_IF_ERROR(CheckTyped(kType, *body.object));
  TAHOMA_RETURN_IF_ERROR(CheckNode(context, request, *body.object));
  TAHOMA_RETURN_IF_ERROR(CheckNames(request, *body.object));
  TAHOMA_ASSIGN_OR_RETURN(const ObjectPtr account, Find(context, request, "serviceaccounts",
                                                        request.name_space, request.name));
  Json object = std::move(*body.object);
  object["apiVersion"] = fmt::format("{}/v1", kGroup);
  object["kind"] = "TokenRequest";
  object["metadata"]["name"] = request.name;
  object["metadata"]["namespace"] = request.name_space;
  object["metadata"]["creationTimestamp"] = write.now;
  TAHOMA_ASSIGN_OR_RETURN(Wish wish, Wished(context, write, std::move(object)));
  const std::int64_t now =
      std::chrono::duration_cast<std::chrono::seconds>(context.clock.WallNow().time_since_epoch())
          .count();
  AccountClaims claims{.name_space = request.name_space,
                       .account = {.name = request.name, .uid = UidOf(account)},
                       .audiences = wish.audiences,
                       .id = context.ids.Uid(),
                       .issued = now,
                       .expires = now + wish.seconds};
  TAHOMA_RETURN_IF_ERROR(Bind(context, request, wish.bound(), claims));
  std::string token = tokens.Sign(claims);
  if (token.size() > kAccountTokenBytesMost) {
    return InvalidWish("", {TooLong("spec.audiences", kAccountTokenBytesMost)});
  }
  wish.object["status"] = {
      {"token", std::move(token)},
      {"expirationTimestamp", FormatTime(WallTime(std::chrono::seconds(claims.expires)))}};
  rest::Response answer =
      AsAccepted(*request.http, rest::Response::Json(201, kube::JsonText(wish.object)));
  AddWarnings(write.warnings, answer);
  return answer;
}

}  // namespace tahoma::controller::apiserver
