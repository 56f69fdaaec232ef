#include "tests/fuzz/api_under_test.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <utility>

#include "controller/apiserver/schema/kind.h"
#include "controller/apiserver/storage/object_store.h"
#include "lib/base/check.h"
#include "lib/base/json.h"
#include "lib/kube/url.h"
#include "tests/fuzz/light_file_system.h"

// RocksDB's threads end while libFuzzer looks for leaks: what such a thread noted to destroy at its
// end is then known to nobody for a moment.
// NOLINTNEXTLINE: the name that LeakSanitizer calls
extern "C" const char* __lsan_default_suppressions();
// NOLINTNEXTLINE
const char* __lsan_default_suppressions() { return "leak:__cxa_thread_atexit_impl\n"; }

namespace tahoma::fuzz {
namespace {

constexpr const char* kGangCrd = "charts/tahoma/crds/tahoma.dev_gangs.yaml";

// The objects that the first inputs patch and read: one of each kind of interest.
constexpr std::array<std::pair<const char*, const char*>, 8> kObjects = {{
    {"/api/v1/namespaces/default/configmaps",
     R"({"metadata":{"name":"c","labels":{"a":"b"},"finalizers":["x.y/z"]},"data":{"k":"v"}})"},
    {"/api/v1/namespaces/default/secrets", R"({"metadata":{"name":"s"},"data":{"k":"dg=="}})"},
    {"/api/v1/namespaces/default/pods",
     R"({"metadata":{"name":"p"},"spec":{"schedulerName":"tahoma","containers":[{"name":"m",)"
     R"("image":"i","env":[{"name":"A","value":"1"},{"name":"B","value":"2"}],)"
     R"("resources":{"claims":[{"name":"n"}]}},{"name":"o","image":"i:2"}],)"
     R"("tolerations":[{"key":"k","operator":"Exists"}],)"
     R"("resourceClaims":[{"name":"n","resourceClaimTemplateName":"t"}]}})"},
    {"/api/v1/nodes",
     R"({"metadata":{"name":"n"},"spec":{"taints":[{"key":"a","effect":"NoSchedule"}]}})"},
    {"/apis/resource.k8s.io/v1/namespaces/default/resourceclaims",
     R"({"metadata":{"name":"r"},"spec":{"devices":{"requests":[{"name":"n","exactly":)"
     R"({"deviceClassName":"neuron.aws.com","allocationMode":"ExactCount","count":4}}]}}})"},
    {"/apis/resource.k8s.io/v1/namespaces/default/resourceclaimtemplates",
     R"({"metadata":{"name":"t"},"spec":{"spec":{"devices":{"requests":[{"name":"n","exactly":)"
     R"({"deviceClassName":"neuron.aws.com"}}]}}}})"},
    {"/apis/coordination.k8s.io/v1/namespaces/default/leases",
     R"({"metadata":{"name":"l"},"spec":{"holderIdentity":"a","leaseDurationSeconds":15}})"},
    {"/apis/tahoma.dev/v1alpha1/namespaces/default/gangs",
     R"({"apiVersion":"tahoma.dev/v1alpha1","kind":"Gang","metadata":{"name":"g"},)"
     R"("spec":{"members":4,"shape":"4x4x4"}})"},
}};

std::string_view TakeLine(std::string_view& text) {
  const std::size_t end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return line;
}

// A request's part of a message about it.
[[noreturn]] void Fail(const rest::Request& request, const char* why, const std::string& answer) {
  std::fprintf(stderr, "%s\n%s %s\n%s\n-> %s\n", why, request.method.c_str(),
               request.target.c_str(), request.body.c_str(), answer.c_str());
  TAHOMA_CHECK(false);
  std::abort();
}

// The lines of a stream that are there already.
void CheckStream(const rest::Request& request, rest::Response& response) {
  std::string lines;
  for (int i = 0; i < 2 && response.source(lines, std::chrono::milliseconds(0)); ++i) {
  }
  if (response.closed) response.closed();
  if (request.path.ends_with("/log")) return;
  std::string_view rest = lines;
  while (!rest.empty()) {
    if (TryParseJson(TakeLine(rest)).is_discarded()) {
      Fail(request, "a watch's line is not JSON", lines);
    }
  }
}

}  // namespace

ApiUnderTest::ApiUnderTest() : clock_(WallTime(std::chrono::seconds(1'800'000'000))) {
  BeginInput();
}
ApiUnderTest::~ApiUnderTest() = default;

void ApiUnderTest::Open() {
  server_.reset();
  store_.reset();
  auto store = controller::Store::Open({.dir = folder_->path() + "/data",
                                        .file_system = std::make_shared<LightFileSystem>(),
                                        .single_threaded = true});
  TAHOMA_CHECK_OK(store.status());
  store_ = *std::move(store);
  auto server = controller::apiserver::ApiServer::Open(
      *store_, clock_,
      {.seed = 5,
       .node_fetch = [](const controller::apiserver::NodeEndpoint&, const std::string& target) {
         return rest::Response::Text(200, target);
       }});
  TAHOMA_CHECK_OK(server.status());
  server_ = *std::move(server);
}

void ApiUnderTest::MakeObjects() {
  std::ifstream crd(kGangCrd);
  TAHOMA_CHECK_OK(server_->InstallCrd(std::string((std::istreambuf_iterator<char>(crd)), {})));
  for (const auto& [path, body] : kObjects) {
    const Answered made = Ask("POST", path, body);
    if (made.status != 201) Fail(RequestOf("POST", path), "a first object is refused", made.text);
  }
}

void ApiUnderTest::BeginInput() {
  if (server_ && server_->objects().version() == first_version_) return;
  server_.reset();
  store_.reset();
  folder_ = std::make_unique<testing::TempDir>();
  Open();
  MakeObjects();
  first_version_ = server_->objects().version();
}

Answered ApiUnderTest::Ask(const rest::Request& request) {
  rest::Response response = server_->Handle(request);
  Answered answered{.status = response.status, .body = nullptr, .text = response.body};
  if (response.source) {
    CheckStream(request, response);
    return answered;
  }
  answered.body = std::make_shared<Json>(TryParseJson(response.body));
  const Json& body = *answered.body;
  if (response.content_type.find("json") != std::string::npos && body.is_discarded()) {
    Fail(request, "the answer is not JSON", response.body);
  }
  // Where a real server answers a client's mistake with 500, ours has a better code.
  if (response.status == 500 || response.status == 503 || response.status < 200 ||
      response.status > 599) {
    Fail(request, "no client may cause this answer", response.body);
  }
  return answered;
}

Answered ApiUnderTest::Ask(const std::string& method, const std::string& target,
                           const std::string& body, const std::string& content_type) {
  rest::Request request = RequestOf(method, target);
  request.headers = {{"Content-Type", content_type}, {"User-Agent", "fuzz/1"}};
  request.body = body;
  return Ask(request);
}

void ApiUnderTest::CheckObject(const controller::apiserver::Kind& kind,
                               const controller::apiserver::Object& object) {
  const std::size_t slash = object.key.find('/');
  std::string path = (kind.group.empty() ? "/api/" : "/apis/") + kind.api_version();
  if (slash > 0) path += "/namespaces/" + object.key.substr(0, slash);
  path += "/" + kind.plural + "/" + kube::PercentEncode(object.key.substr(slash + 1));
  const rest::Request read = RequestOf("GET", path);
  const Answered got = kind.Allows("get") ? Ask(read) : Answered{};
  if (!kind.Allows("get") || !kind.Allows("update") || !kind.Allows("patch")) return;
  if (got.status != 200) Fail(read, "a stored object cannot be read", got.text);
  const std::string version = (*got.body)["metadata"]["resourceVersion"];
  const Answered put = Ask("PUT", path, got.text);
  // A custom kind's schema may be another than the one that the object was stored with.
  if (put.status != 200 ||
      (kind.built_in && (*put.body)["metadata"]["resourceVersion"] != version)) {
    Fail(read, "an object written back as it was is refused or changed", got.text + put.text);
  }
  const Answered patched = Ask("PATCH", path, R"({"metadata":{"annotations":{"later":"write"}}})",
                               "application/merge-patch+json");
  if (patched.status != 200) {
    Fail(read, "a stored object cannot be annotated", got.text + patched.text);
  }
}

std::vector<std::string> ApiUnderTest::Texts() const {
  std::vector<std::string> texts;
  for (const auto& kind : server_->Kinds()->kinds()) {
    for (const auto& object : server_->objects().List({kind->group, kind->plural}, "").objects) {
      texts.push_back(object->bytes);
    }
  }
  return texts;
}

void ApiUnderTest::CheckObjects(bool again) {
  const auto kinds = server_->Kinds();
  for (const auto& kind : kinds->kinds()) {
    if (kinds->FindStorage(kind->group, kind->plural) != kind.get()) continue;
    for (const auto& object : server_->objects().List({kind->group, kind->plural}, "").objects) {
      if (object->version > first_version_) CheckObject(*kind, *object);
    }
  }
  if (!again) return;
  const std::vector<std::string> before = Texts();
  Open();
  TAHOMA_CHECK(Texts() == before);
}

}  // namespace tahoma::fuzz
