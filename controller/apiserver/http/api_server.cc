#include "controller/apiserver/http/api_server.h"

#include <algorithm>
#include <utility>

#include "controller/apiserver/discovery/discovery.h"
#include "controller/apiserver/http/request_access.h"
#include "controller/apiserver/http/token_request.h"
#include "controller/apiserver/request/api_request.h"
#include "controller/apiserver/request/decode_body.h"
#include "controller/apiserver/request/representation.h"
#include "controller/apiserver/request/status_error.h"
#include "controller/apiserver/schema/fields.h"
#include "controller/apiserver/schema/priority_classes.h"
#include "controller/apiserver/verbs/delete_verbs.h"
#include "controller/apiserver/verbs/priority.h"
#include "controller/apiserver/verbs/read_verbs.h"
#include "controller/apiserver/verbs/subresources.h"
#include "controller/apiserver/verbs/write_verbs.h"
#include "lib/base/json.h"
#include "lib/base/processor_budget.h"
#include "lib/base/status.h"
#include "lib/base/utf8.h"
#include "lib/kube/json_writer.h"

namespace tahoma::controller::apiserver {
namespace {

using json = Json;

constexpr std::string_view kCrdPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

const ResourceName kCrds = {"apiextensions.k8s.io", "customresourcedefinitions"};

// A definition whose scope or kind was changed, which earlier versions of this program allowed,
// hides its objects: the repair treats such a definition like a definition that was never
// established.
absl::Status Disestablish(ObjectStore& objects, const json& wanted) {
  const auto edit = [&](const ObjectPtr& current) -> absl::StatusOr<Edit> {
    if (current == nullptr) return Edit::None();
    const auto same = [&](std::initializer_list<std::string_view> path) {
      return ValueAt(*current->body, path) == ValueAt(wanted, path);
    };
    if (same({"spec", "scope"}) && same({"spec", "names", "kind"})) return Edit::None();
    json body = *current->body;
    body["status"].erase("conditions");
    return Edit::Put(std::move(body));
  };
  return objects.Change(kCrds, ObjectKey("", TextAt(MetadataOf(wanted), "name")), edit).status();
}

json VersionBody() {
  return {{"major", "1"},    {"minor", "36"},      {"gitVersion", "v1.36.0+tahoma"},
          {"gitCommit", ""}, {"gitTreeState", ""}, {"buildDate", "1970-01-01T00:00:00Z"},
          {"goVersion", ""}, {"compiler", "g++"},  {"platform", "linux/amd64"}};
}

// Answers openapi/v2 with a document without definitions. kubectl asks for kinds that /openapi/v3
// does not have, such as List, and then leaves the checks to the server; kubectl asks for protobuf.
rest::Response OpenApiV2(std::string_view accept) {
  constexpr std::string_view kTitle = "Kubernetes";
  constexpr std::string_view kVersion = "v1.36.0";
  if (accept.find("protobuf") == std::string_view::npos) {
    return rest::Response::Json(200, json{{"swagger", "2.0"},
                                          {"info", {{"title", kTitle}, {"version", kVersion}}},
                                          {"paths", json::object()},
                                          {"definitions", json::object()}}
                                         .dump());
  }
  const auto field = [](char tag, std::string_view text) {
    return std::string{tag, static_cast<char>(text.size())} + std::string(text);
  };
  constexpr char kField1 = 0x0A;
  constexpr char kField2 = 0x12;
  rest::Response response = rest::Response::Text(
      200,
      field(kField1, "2.0") + field(kField2, field(kField1, kTitle) + field(kField2, kVersion)));
  response.content_type = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
  return response;
}

rest::Response JsonBody(const json& body) {
  rest::Response response = rest::Response::Json(200, kube::JsonText(body));
  response.headers.emplace_back("Cache-Control", "no-cache, private");
  return response;
}

constexpr std::string_view kKeysPath = "/openid/v1/jwks";

// OpenID Connect Discovery 1.0, as far as kube-apiserver serves it.
json IssuerOf(const rest::Request& request) {
  return {{"issuer", kAccountIssuer},
          {"jwks_uri", fmt::format("{}://{}{}", request.tls ? "https" : "http",
                                   request.header("Host"), kKeysPath)},
          {"response_types_supported", {"id_token"}},
          {"subject_types_supported", {"public"}},
          {"id_token_signing_alg_values_supported", {"ES256"}}};
}

rest::Response IssuerBody(std::string_view type, const json& body) {
  rest::Response response = rest::Response::Json(200, body.dump());
  response.content_type = type;
  response.headers.emplace_back("Cache-Control", "public, max-age=3600");
  return response;
}

// A real server knows its built-in groups by their routes and answers in the API's form there; Go's
// own handler answers every other path.
bool IsUnknownGroup(std::string_view path, const KindTable& kinds) {
  if (path == "/api" || path.starts_with("/api/")) return false;
  if (!path.starts_with("/apis/")) return true;
  path.remove_prefix(6);
  const std::string_view group = path.substr(0, path.find('/'));
  const auto is_of_it = [&](const auto& kind) { return kind->built_in && kind->group == group; };
  return std::ranges::none_of(kinds.kinds(), is_of_it) &&
         std::ranges::none_of(ReviewKinds(), is_of_it);
}

// Groups of Kubernetes itself have no dot or end so; who asks for one meant a whole cluster.
bool IsGroupOfKubernetes(std::string_view path) {
  if (!path.starts_with("/apis/")) return false;
  path.remove_prefix(6);
  const std::string_view group = path.substr(0, path.find('/'));
  return !group.empty() &&
         (group.find('.') == std::string_view::npos || group.ends_with(".k8s.io"));
}

absl::Status NotServedHere(std::string_view path) {
  path.remove_prefix(6);
  return GenericError(
      404, "NotFound",
      fmt::format("the server could not find the requested resource: {} is not served by Tahoma's "
                  "standalone API server; examples/kind/up.sh starts a cluster with all kinds of "
                  "Kubernetes",
                  path.substr(0, path.find('/'))));
}

absl::StatusOr<rest::Response> ServeCollection(const ApiContext& context,
                                               const ApiRequest& request) {
  const std::string& method = request.http->method;
  const Kind& kind = *request.kind;
  const bool everywhere = kind.namespaced && request.name_space.empty();
  if (method == "GET" && (request.watch_path || request.flag("watch")) && kind.Allows("watch")) {
    return Watch(context, request);
  }
  if (method == "GET" && kind.Allows("list")) return ListMany(context, request);
  if (method == "POST" && kind.Allows("create") && !everywhere) return Create(context, request);
  if (method == "DELETE" && kind.Allows("deletecollection") && !everywhere) {
    return DeleteMany(context, request);
  }
  return MethodNotAllowedError();
}

absl::StatusOr<rest::Response> ServeObject(const ApiContext& context, const ApiRequest& request) {
  const std::string& method = request.http->method;
  const Kind& kind = *request.kind;
  if (method == "GET" && request.watch_path && kind.Allows("watch")) return Watch(context, request);
  if (method == "GET" && kind.Allows("get")) return GetOne(context, request);
  if (method == "PUT" && kind.Allows("update")) return Update(context, request);
  if (method == "PATCH" && kind.Allows("patch")) return Patch(context, request);
  if (method == "DELETE" && kind.Allows("delete")) return DeleteOne(context, request);
  return MethodNotAllowedError();
}

}  // namespace

ApiServer::ApiServer(std::unique_ptr<ObjectStore> objects, const Clock& clock, Options options)
    : objects_(std::move(objects)),
      ids_(options.seed),
      webhooks_(*objects_, ids_, std::move(options.webhook_call)),
      account_tokens_(std::move(options.account_tokens)),
      log_(std::move(options.log)),
      answers_(options.answer_bytes),
      context_{*objects_,
               kinds_,
               clock,
               ids_,
               std::move(options.node_fetch),
               std::move(options.node_tunnel),
               *probes_,
               guard_,
               webhooks_,
               CheckChange} {}

absl::StatusOr<std::unique_ptr<ApiServer>> ApiServer::Open(Store& store, const Clock& clock,
                                                           Options options) {
  TAHOMA_ASSIGN_OR_RETURN(auto objects, ObjectStore::Open(store, options.objects));
  std::unique_ptr<ApiServer> server(new ApiServer(std::move(objects), clock, std::move(options)));
  TAHOMA_RETURN_IF_ERROR(server->LoadKinds());
  server->webhooks_.Refresh();
  TAHOMA_RETURN_IF_ERROR(server->CreateFirstObjects());
  return server;
}

absl::Status ApiServer::LoadKinds() {
  const ObjectList crds = objects_->List(kCrds, "");
  for (const ObjectPtr& crd : crds.objects) {
    const absl::Status applied = kinds_.ApplyCrd(*crd->body);
    if (applied.ok() || !log_) continue;
    // An earlier version of this program accepted the CRD: it stays stored, and can be mended or
    // deleted.
    log_(fmt::format("api server: the stored CustomResourceDefinition {} is not served: {}",
                     TextAt(MetadataOf(*crd->body), "name"), Message(applied)));
  }
  return absl::OkStatus();
}

// Creates the object unless there is such an object.
absl::Status ApiServer::CreateFirst(std::string_view path, const json& object) {
  rest::Request request;
  request.method = "POST";
  request.target = request.path = path;
  request.body = object.dump();
  const rest::Response response = Answer(request, {.own = true});
  if (response.status == 201 || response.status == 409) return absl::OkStatus();
  return Unavailable("cannot create {} {}: {}", path, TextAt(MetadataOf(object), "name"),
                     response.body);
}

absl::Status ApiServer::CreateFirstObjects() {
  for (const char* name : {"default", "kube-system", "kube-public", "kube-node-lease"}) {
    if (objects_->Get({"", "namespaces"}, ObjectKey("", name)) != nullptr) continue;
    TAHOMA_RETURN_IF_ERROR(CreateFirst("/api/v1/namespaces", {{"metadata", {{"name", name}}}}));
  }
  for (const SystemPriorityClass& known : kSystemPriorityClasses) {
    if (objects_->Get(kPriorityClasses, ObjectKey("", known.name)) != nullptr) continue;
    TAHOMA_RETURN_IF_ERROR(CreateFirst("/apis/scheduling.k8s.io/v1/priorityclasses",
                                       {{"metadata", {{"name", known.name}}},
                                        {"value", known.value},
                                        {"description", known.description}}));
  }
  return absl::OkStatus();
}

rest::Response ApiServer::Handle(const rest::Request& request, CommitsInFlight* flight) {
  return Answer(request, {.flight = flight});
}

rest::Response ApiServer::HandleFromOutside(const rest::Request& request) {
  return Answer(request, {.answers = &answers_});
}

rest::Response ApiServer::Answer(const rest::Request& request, const Terms& terms) {
  try {
    absl::StatusOr<rest::Response> response = Dispatch(request, terms);
    if (IsNoSuchPath(response.status()) && IsUnknownGroup(request.path, *kinds_.Snapshot())) {
      if (IsGroupOfKubernetes(request.path)) {
        return AsAccepted(request, ResponseOf(NotServedHere(request.path)));
      }
      return rest::Response::Text(404, "404 page not found\n");
    }
    if (!response.ok()) return AsAccepted(request, ResponseOf(response.status()));
    if (response->source) response->source = Guarded(request, std::move(response->source));
    return *std::move(response);
  } catch (const ProcessorBudget::Exceeded& exceeded) {
    LogFailure(request, exceeded.what());
    return AsAccepted(request, ResponseOf(TooCostlyError(exceeded.limit())));
  } catch (const std::exception& error) {
    return Failed(request, error.what());
  } catch (...) {
    return Failed(request, "something that is no std::exception was thrown");
  }
}

void ApiServer::LogFailure(const rest::Request& request, std::string_view what) const {
  constexpr std::size_t kTargetMost = 200;
  if (!log_) return;
  log_(fmt::format("api server: {} {} from {} failed: {}", request.method,
                   CutUtf8(request.target, kTargetMost), request.peer, what));
}

rest::Response ApiServer::Failed(const rest::Request& request, std::string_view what) const {
  LogFailure(request, what);
  return ResponseOf(Internal("{}", what));
}

rest::StreamSource ApiServer::Guarded(const rest::Request& request,
                                      rest::StreamSource source) const {
  rest::Request head;  // of the request, without its body: a stream may be open for hours
  head.method = request.method;
  head.target = request.target;
  head.peer = request.peer;
  return [this, head = std::move(head), source = std::move(source)](
             std::string& out, std::chrono::milliseconds wait) {
    try {
      return source(out, wait);
    } catch (const std::exception& error) {
      static_cast<void>(Failed(head, error.what()));
      return false;
    }
  };
}

absl::StatusOr<std::shared_ptr<WatchStream>> ApiServer::OpenWatch(const rest::Request& request) {
  try {
    TAHOMA_ASSIGN_OR_RETURN(ApiRequest parsed, ApiRequest::Parse(request, kinds_.Snapshot()));
    if (!parsed.kind->Allows("watch")) return MethodNotAllowedError();
    return apiserver::OpenWatch(context_, std::move(parsed));
  } catch (const std::exception& error) {
    static_cast<void>(Failed(request, error.what()));
    return Internal("{}", error.what());
  }
}

absl::StatusOr<AccountCaller> ApiServer::AccountOf(
    std::string_view token, const std::vector<std::string>& audiences) const {
  if (account_tokens_ == nullptr) return Unauthenticated("invalid bearer token");
  return CallerOf(token, audiences, *account_tokens_, *objects_, context_.clock.WallNow());
}

absl::StatusOr<rest::Response> ApiServer::Dispatch(const rest::Request& request,
                                                   const Terms& terms) {
  std::shared_ptr<const KindTable> kinds = kinds_.Snapshot();
  if (!ResourcePath::Is(request.path)) return ServeRoot(request, *kinds, terms.answers != nullptr);
  TAHOMA_ASSIGN_OR_RETURN(ApiRequest parsed, ApiRequest::Parse(request, std::move(kinds)));
  parsed.flight = terms.flight;
  parsed.answers = terms.answers;
  parsed.own = terms.own;
  if (IsTokenRequest(parsed)) {
    if (account_tokens_ == nullptr) return Internal("this server has no key for tokens");
    return ServeTokenRequest(context_, parsed, *account_tokens_);
  }
  if (!parsed.subresource.empty()) return ServeSubresource(context_, parsed);
  if (parsed.kind->group != "admissionregistration.k8s.io" || request.method == "GET") {
    return parsed.name.empty() ? ServeCollection(context_, parsed) : ServeObject(context_, parsed);
  }
  parsed.flight = nullptr;  // the webhooks are read when the change is visible
  auto response =
      parsed.name.empty() ? ServeCollection(context_, parsed) : ServeObject(context_, parsed);
  webhooks_.Refresh();
  return response;
}

absl::StatusOr<rest::Response> ApiServer::ServeRoot(const rest::Request& request,
                                                    const KindTable& kinds, bool from_outside) {
  std::string_view path = request.path;
  while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  if (auto probe = probes_->Answer(request)) return *std::move(probe);
  if (request.method != "GET") return MethodNotAllowedError();
  if (path == "/version") return JsonBody(VersionBody());
  if (path == "/openapi/v2") return OpenApiV2(request.header("Accept"));
  if (path.starts_with("/openapi/v3")) return ServeOpenApi(request, kinds, from_outside);
  if (account_tokens_ != nullptr && path == kKeysPath) {
    return IssuerBody("application/jwk-set+json", account_tokens_->PublicKeys());
  }
  if (account_tokens_ != nullptr && path == "/.well-known/openid-configuration") {
    return IssuerBody("application/json", IssuerOf(request));
  }
  const bool aggregated = WantsAggregated(request.header("Accept"));
  if (path == "/api" || path == "/apis") {
    if (aggregated) {
      rest::Response response =
          JsonBody(path == "/api" ? AggregatedCore(kinds) : AggregatedGroups(kinds));
      response.content_type = kAggregatedContentType;
      response.headers.emplace_back("Vary", "Accept");
      return response;
    }
    return JsonBody(path == "/api" ? ApiVersions(request.header("Host")) : ApiGroupList(kinds));
  }
  std::optional<json> body;
  if (path.starts_with("/api/")) {
    body = ApiResourceList(kinds, "", path.substr(5));
  } else if (path.starts_with("/apis/")) {
    const std::string_view rest = path.substr(6);
    const std::size_t slash = rest.find('/');
    body = slash == std::string_view::npos
               ? ApiGroup(kinds, rest)
               : ApiResourceList(kinds, rest.substr(0, slash), rest.substr(slash + 1));
  } else if (path == "/") {
    body = json{{"paths",
                 {"/.well-known/openid-configuration", "/api", "/apis", "/healthz", "/livez",
                  "/openapi/v3", "/openid/v1/jwks", "/readyz", "/version"}}};
  }
  if (!body) return NoSuchPathError();
  return JsonBody(*body);
}

absl::StatusOr<rest::Response> ApiServer::ServeOpenApi(const rest::Request& request,
                                                       const KindTable& kinds, bool from_outside) {
  constexpr std::string_view kRoot = "/openapi/v3";
  std::string_view path = std::string_view(request.path).substr(kRoot.size());
  if (path.empty() || path == "/") return rest::Response::Json(200, open_api_.Index(kinds));
  path.remove_prefix(1);
  const std::shared_ptr<const OpenApiDocument> document = open_api_.Document(kinds, path);
  if (document == nullptr) return NoSuchPathError();
  TAHOMA_ASSIGN_OR_RETURN(const auto query, ParseQuery(request.query));
  const auto hash = query.find("hash");
  if (hash != query.end() && hash->second != document->hash) {
    rest::Response moved = rest::Response::Text(301, "");
    moved.headers.emplace_back("Location",
                               fmt::format("{}/{}?hash={}", kRoot, path, document->hash));
    return moved;
  }
  const std::string etag = fmt::format("\"{}\"", document->hash);
  Pieces body;
  body.Share(document, document->body);
  rest::Response response =
      request.header("If-None-Match") == etag
          ? rest::Response::Text(304, "")
          : WithBody(rest::Response::Json(200, ""), std::move(body), from_outside);
  response.headers.emplace_back("Etag", etag);
  response.headers.emplace_back("Vary", "Accept");
  if (hash != query.end()) {
    response.headers.emplace_back("Cache-Control", "public, immutable");
    response.headers.emplace_back("Expires", "Thu, 31 Dec 2037 23:55:55 GMT");
  }
  return response;
}

absl::Status ApiServer::InstallCrd(std::string_view text) {
  TAHOMA_ASSIGN_OR_RETURN(json crd, ParseYamlText(text));
  const std::string name = TextAt(MetadataOf(crd), "name");
  if (TextAt(crd, "kind") != "CustomResourceDefinition" || name.empty()) {
    return InvalidArgument("not a CustomResourceDefinition with a name");
  }
  rest::Request request;
  request.method = "POST";
  request.headers = {{"User-Agent", "tahoma-controller"}};
  request.path = kCrdPath;
  TAHOMA_RETURN_IF_ERROR(Disestablish(*objects_, crd));
  const ObjectPtr current = objects_->Get(kCrds, ObjectKey("", name));
  if (current != nullptr) {
    crd["metadata"] = MetadataOf(*current->body);
    request.method = "PUT";
    request.path += "/" + name;
  }
  request.target = request.path;
  request.body = crd.dump();
  const rest::Response response = Answer(request, {.own = true});
  if (response.status < 300) return absl::OkStatus();
  return InvalidArgument("the CustomResourceDefinition {}: {}", name, response.body);
}

}  // namespace tahoma::controller::apiserver
