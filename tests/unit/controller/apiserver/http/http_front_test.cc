// The API over real sockets: a request, a watch, authentication, and where it refuses to listen.

#include "controller/apiserver/http/http_front.h"

#include <gmock/gmock.h>
#include <httplib.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "controller/access/identity_file.h"
#include "lib/base/status.h"
#include "tests/support/api_fixture.h"
#include "tests/unit/lib/rest/raw_client.h"

namespace tahoma::controller::apiserver {
namespace {

using json = Json;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class HttpFrontTest : public testing::ApiFixture {
 protected:
  void Serve(HttpFrontOptions options) {
    front_ = std::make_unique<HttpFront>(*server_, std::move(options), metrics_);
    const absl::Status started = front_->Start();
    ASSERT_TRUE(started.ok()) << started;
    client_ = std::make_unique<httplib::Client>(front_->url());
    client_->set_read_timeout(10);
  }
  static std::shared_ptr<const AccessControl> OneToken() {
    return std::make_shared<const AccessControl>(
        *AccessTable::Make({AdminOfToken("secret")}, false));
  }
  rest::Metrics metrics_;
  std::unique_ptr<HttpFront> front_;
  std::unique_ptr<httplib::Client> client_;
};

TEST_F(HttpFrontTest, ServesRequestsAndErrorsAsTheyAre) {
  Serve({});
  const auto made = client_->Post("/api/v1/namespaces/default/configmaps",
                                  ConfigMapOf("c", "1").dump(), "application/json");
  ASSERT_TRUE(made);
  EXPECT_EQ(made->status, 201);
  const auto got = client_->Get("/api/v1/namespaces/default/configmaps/c");
  EXPECT_EQ(ParseJson(got->body).at("data").at("key"), "1");
  EXPECT_EQ(got->get_header_value("Content-Type"), "application/json");
  EXPECT_EQ(client_->Get("/api/v1/namespaces/default/configmaps/d")->status, 404);
  EXPECT_EQ(client_->Get("/healthz")->body, "ok");
}

// The controller's own writes go on, whatever they cost.
TEST_F(HttpFrontTest, ARequestThatTakesTooMuchOfTheProcessorEndsAndOnlyOneFromOutside) {
  HttpFrontOptions options;
  options.processor_limit = std::chrono::seconds(3);
  std::atomic<int> time = 0;
  options.processor_time = [&] { return std::chrono::seconds(2 * time++); };
  Serve(std::move(options));
  json data = json::object();
  for (int i = 0; i < 3000; ++i) data[fmt::format("key-{}", i)] = "v";
  const std::string maps = "/api/v1/namespaces/default/configmaps";
  const json map = {{"metadata", {{"name", "m"}}}, {"data", data}};
  const auto refused = client_->Post(maps, map.dump(), "application/json");
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->status, 413) << refused->body.substr(0, 300);
  EXPECT_THAT(ParseJson(refused->body).at("message"), HasSubstr("more than 3 s of the processor"));
  EXPECT_EQ(client_->Post(maps, ConfigMapOf("small", "1").dump(), "application/json")->status, 201);
  EXPECT_EQ(Call("POST", maps, map).status, 201);
}

// As a caller in this process gets it at once.
TEST_F(HttpFrontTest, LargeAnswersAreTheSameTextFromWhatIsStored) {
  Serve({});
  const std::string maps = "/api/v1/namespaces/default/configmaps";
  const std::string gangs = "/apis/tahoma.dev/v1alpha1/namespaces/default/gangs";
  for (int i = 0; i < 30; ++i) {
    const std::string name = fmt::format("m-{:02}", i);
    ASSERT_EQ(Call("POST", maps, ConfigMapOf(name, std::string(10'000, 'x'))).status, 201);
    json gang = GangOf(name);
    gang["metadata"]["annotations"] = {{"text", std::string(10'000, 'y')}};
    ASSERT_EQ(Call("POST", gangs, gang).status, 201);
  }
  ASSERT_EQ(Call("POST", maps, ConfigMapOf("one", std::string(200'000, 'z'))).status, 201);
  const std::string table = "application/json;as=Table;v=v1;g=meta.k8s.io";
  const std::string partial = ";as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";
  const std::string protobuf = "application/vnd.kubernetes.protobuf";
  for (const std::string& accept : {std::string("application/json"), protobuf, table,
                                    "application/json" + partial, protobuf + partial}) {
    for (const std::string& path : {maps, maps + "?limit=20", maps + "/one", gangs}) {
      const rest::Headers headers = {{"Accept", accept}};
      const auto got = client_->Get(path, {{"Accept", accept}});
      ASSERT_TRUE(got) << accept << path;
      const testing::Answer whole = Call("GET", path, "", headers);
      EXPECT_EQ(got->status, whole.status) << accept << path;
      EXPECT_EQ(got->get_header_value("Content-Type"), whole.header("Content-Type"));
      EXPECT_TRUE(got->body == whole.text) << accept << path;
    }
  }
  const auto document = client_->Get("/openapi/v3/api/v1");
  EXPECT_TRUE(document->body == Call("GET", "/openapi/v3/api/v1").text);
}

TEST_F(HttpFrontTest, ReadersOfNothingHoldNoCopiesAndTheirListsAreBounded) {
  Restart({}, 40'000);
  Serve({});
  const std::string maps = "/api/v1/namespaces/default/configmaps";
  for (int i = 0; i < 100; ++i) {
    const std::string name = fmt::format("m-{}", i);
    ASSERT_EQ(Call("POST", maps, ConfigMapOf(name, std::string(50'000, 'x'))).status, 201);
  }
  std::vector<std::unique_ptr<testing::RawClient>> crowd;
  const std::string list = "GET " + maps + " HTTP/1.1\r\nHost: localhost\r\n\r\n";
  std::string refused;
  for (int i = 0; i < 20 && refused.empty(); ++i) {
    crowd.push_back(std::make_unique<testing::RawClient>(front_->port(), 4096));
    crowd.back()->Send(list);
    const std::string head = crowd.back()->ReadUntil("\r\n\r\n");
    if (!head.starts_with("HTTP/1.1 200 ")) refused = head;
  }
  EXPECT_THAT(refused, StartsWith("HTTP/1.1 429 "));
  EXPECT_THAT(refused, HasSubstr("Retry-After: 1\r\n"));
  EXPECT_GT(crowd.size(), 3U) << "each list of 5 MB takes some 10 kB";
  EXPECT_EQ(Call("GET", maps).status, 200) << "the controller's own lists have no such bound";
  EXPECT_EQ(client_->Get(maps + "/m-1")->status, 200);
}

TEST_F(HttpFrontTest, BodiesShareABudgetAndTheNextComesLater) {
  HttpFrontOptions options;
  options.decoded_bytes = 2 << 20;
  std::atomic<int> looks = 0;
  std::atomic<bool> go_on = false;
  options.processor_time = [&] {
    if (++looks == 2) {  // the first request works on its body
      looks.notify_all();
      go_on.wait(false);
    }
    return std::chrono::seconds(0);
  };
  Serve(std::move(options));
  json data = json::object();
  for (int i = 0; i < 9000; ++i) data[fmt::format("key-{}", i)] = std::string(40, 'v');
  const std::string maps = "/api/v1/namespaces/default/configmaps";
  const std::string large = json({{"metadata", {{"name", "m"}}}, {"data", data}}).dump();
  std::jthread first([&] {
    EXPECT_EQ(httplib::Client(front_->url()).Post(maps, large, "application/json")->status, 201);
  });
  for (int seen = looks; seen < 2; seen = looks) looks.wait(seen);
  const auto refused = client_->Post(maps, large, "application/json");
  EXPECT_EQ(refused->status, 429);
  EXPECT_EQ(refused->get_header_value("Retry-After"), "1");
  EXPECT_EQ(ParseJson(refused->body).at("reason"), "TooManyRequests");
  EXPECT_EQ(client_->Post(maps, "{}", "application/json")->status, 422) << "there is room for it";
  go_on = true;
  go_on.notify_all();
  first.join();
}

TEST_F(HttpFrontTest, AnAccessReviewWhichEverybodyMaySendIsSmall) {
  Serve({.access = OneToken()});
  client_->set_bearer_token_auth("secret");
  const std::string path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
  json review = {{"spec", {{"resourceAttributes", {{"verb", "get"}, {"resource", "pods"}}}}}};
  EXPECT_EQ(client_->Post(path, review.dump(), "application/json")->status, 201);
  review["spec"]["extra"] = std::string(kReviewBytesMost, 'x');
  EXPECT_EQ(client_->Post(path, review.dump(), "application/json")->status, 413);
}

TEST_F(HttpFrontTest, AWatchStaysOpenAndBringsEventsAsTheyHappen) {
  Serve({});
  std::atomic<int> events = 0;
  std::jthread watcher([&] {
    httplib::Client client(front_->url());
    client.set_read_timeout(10);
    client.Get("/api/v1/namespaces/default/configmaps?watch=true",
               [&](const char* bytes, std::size_t size) {
                 for (std::size_t i = 0; i < size; ++i) events += bytes[i] == '\n' ? 1 : 0;
                 events.notify_all();
                 return events < 2;
               });
    events = 2;
    events.notify_all();
  });
  for (const char* name : {"a", "b"}) {
    client_->Post("/api/v1/namespaces/default/configmaps", ConfigMapOf(name, "1").dump(),
                  "application/json");
  }
  for (int seen = events; seen < 2; seen = events) events.wait(seen);
  EXPECT_EQ(events, 2);
}

TEST_F(HttpFrontTest, ProbesAndComponentsAreTheSameChecks) {
  Serve({});
  server_->probes()->Add(rest::Probes::Kind::kReadyz, "store", [] { return "no room"; });
  EXPECT_EQ(client_->Get("/readyz")->status, 503);
  EXPECT_EQ(client_->Get("/livez")->status, 200);
  const auto component = client_->Get("/api/v1/componentstatuses/store");
  EXPECT_EQ(ParseJson(component->body).at("conditions").at(0).at("message"), "no room");
}

TEST_F(HttpFrontTest, WithATokenOnlyItsBearerMayCall) {
  Serve({.access = OneToken()});
  const auto refused = client_->Get("/api/v1/nodes");
  EXPECT_EQ(refused->status, 401);
  EXPECT_EQ(ParseJson(refused->body).at("reason"), "Unauthorized");
  // RFC 9110, 15.5.2: a 401 says how to come back. The admin API did, this one did not.
  EXPECT_EQ(refused->get_header_value("WWW-Authenticate"), "Bearer");
  client_->set_bearer_token_auth("secreT");
  EXPECT_EQ(client_->Get("/api/v1/nodes")->status, 401);
  EXPECT_EQ(client_->Get("/healthz")->status, 200);
  client_->set_bearer_token_auth("secret");
  EXPECT_EQ(client_->Get("/api/v1/nodes")->status, 200);
  // The scheme's name has no case (RFC 9110, 11.1).
  const httplib::Headers lower = {{"Authorization", "bearer secret"}};
  EXPECT_EQ(httplib::Client(front_->url()).Get("/api/v1/nodes", lower)->status, 200);
}

// Returns the Status, in JSON, that kubectl makes its error of (k8s.io/client-go rest/request.go,
// transformResponse); its code is that of the answer.
json StatusOf(const std::string& answer) {
  const std::size_t end = answer.find("\r\n\r\n");
  if (end == std::string::npos) return {};
  EXPECT_THAT(answer.substr(0, end), HasSubstr("Content-Type: application/json"));
  const json status = TryParseJson(answer.substr(end + 4));
  if (!status.is_object()) return {};
  EXPECT_EQ(status.value("apiVersion", ""), "v1");
  EXPECT_EQ(status.value("kind", ""), "Status");
  EXPECT_EQ(status.value("status", ""), "Failure");
  EXPECT_EQ(std::to_string(status.value("code", 0)), answer.substr(9, 3));
  return status;
}

TEST_F(HttpFrontTest, AnswersToItsAllowedHostsAndRefusesOthersAsKubernetesWordsIt) {
  Serve({.allowed_hosts = {"tahoma.example"}});
  const auto ask = [&](const std::string& host) {
    return testing::RawClient(front_->port())
        .Ask(fmt::format("GET /api/v1/nodes HTTP/1.1\r\nHost: {}:8001\r\n\r\n", host));
  };
  EXPECT_THAT(ask("tahoma.example"), StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(ask("localhost"), StartsWith("HTTP/1.1 200 "));
  const std::string refused = ask("evil.example");
  EXPECT_THAT(refused, StartsWith("HTTP/1.1 403 "));
  const json status = StatusOf(refused);
  EXPECT_EQ(status.value("reason", ""), "Forbidden");
  EXPECT_THAT(status.value("message", ""), HasSubstr("the host \"evil.example\" is not one of"));
}

TEST_F(HttpFrontTest, AMalformedRequestIsRefusedWithAStatus) {
  Serve({});
  struct Case {
    std::string request;
    std::string code;
    std::string reason;
    std::string says;
  };
  const std::string post = "POST /api/v1/namespaces HTTP/1.1\r\nHost: localhost\r\n";
  for (const Case& c : std::vector<Case>{
           {"nonsense\r\n\r\n", "400", "BadRequest", "HTTP"},
           {"GET http://a/api HTTP/1.1\r\nHost: a\r\n\r\n", "400", "BadRequest", "slash"},
           {"GET /api HTTP/1.1\r\nHost: a b:c\r\n\r\n", "400", "BadRequest", "Host must be"},
           {"GET /" + std::string(70'000, 'a') + " HTTP/1.1\r\n\r\n", "414", "", "request line"},
           {"GET /api HTTP/1.1\r\nA: " + std::string(70'000, 'a') + "\r\n\r\n", "431", "", "head"},
           {post + "Content-Length: 99999999\r\n\r\n", "413", "RequestEntityTooLarge", "too large"},
           {post + "Transfer-Encoding: gzip\r\n\r\n", "501", "", "chunked"},
           {post + "Origin: http://localhost\r\nContent-Length: 2\r\n\r\n{}", "415",
            "UnsupportedMediaType", "Content-Type"}}) {
    const std::string answer = testing::RawClient(front_->port()).Ask(c.request);
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 " + c.code + " ")) << c.request.substr(0, 60);
    const json status = StatusOf(answer);
    EXPECT_EQ(status.value("reason", ""), c.reason) << c.request.substr(0, 60);
    EXPECT_THAT(status.value("message", ""), HasSubstr(c.says));
  }
}

TEST_F(HttpFrontTest, AnExceptionIsAStatusForTheCallerAndALineInTheLog) {
  std::mutex mutex;
  std::vector<std::string> lines;
  Serve({.audit = {.append = [](const std::string&) { throw std::runtime_error("no audit"); }},
         .log = [&](const std::string& line) {
           const std::lock_guard lock(mutex);
           lines.push_back(line);
         }});
  const std::string body = ConfigMapOf("c", "1").dump();
  const std::string answer =
      testing::RawClient(front_->port())
          .Ask(fmt::format("POST /api/v1/namespaces/default/configmaps "
                           "HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
                           "application/json\r\nContent-Length: {}\r\n\r\n{}",
                           body.size(), body));
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 500 "));
  EXPECT_EQ(StatusOf(answer).value("reason", ""), "InternalError");
  const std::lock_guard lock(mutex);
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_THAT(lines[0], StartsWith("POST /api/v1/namespaces/default/configmaps from 127.0.0.1:"));
  EXPECT_THAT(lines[0], EndsWith("failed inside the server: no audit"));
}

TEST_F(HttpFrontTest, RefusesToListenToTheWorldWithoutKnowingItsCallers) {
  for (const HttpFrontOptions& options :
       std::vector<HttpFrontOptions>{{.address = "0.0.0.0:0"},
                                     {.address = "0.0.0.0:0", .access = OneToken()},
                                     {.address = "[::]:0", .access = OneToken()},
                                     {.address = "10.0.0.1:8001"}}) {
    HttpFront front(*server_, options, metrics_);
    const absl::Status started = front.Start();
    EXPECT_EQ(started.code(), absl::StatusCode::kPermissionDenied) << options.address;
    EXPECT_THAT(started.ToString(), HasSubstr("listen on 127.0.0.1"));
  }
}

}  // namespace
}  // namespace tahoma::controller::apiserver
