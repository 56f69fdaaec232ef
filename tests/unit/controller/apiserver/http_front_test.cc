// The API over real sockets: a request, a watch, authentication, and where it refuses to listen.

#include "controller/apiserver/http_front.h"

#include <gmock/gmock.h>
#include <httplib.h>

#include <atomic>
#include <memory>
#include <thread>

#include "controller/access/identity_file.h"
#include "lib/base/status.h"
#include "tests/support/api_fixture.h"

namespace tahoma::controller {
namespace {

using json = Json;
using ::testing::HasSubstr;

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
  EXPECT_EQ(json::parse(got->body).at("data").at("key"), "1");
  EXPECT_EQ(got->get_header_value("Content-Type"), "application/json");
  EXPECT_EQ(client_->Get("/api/v1/namespaces/default/configmaps/d")->status, 404);
  EXPECT_EQ(client_->Get("/healthz")->body, "ok");
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

TEST_F(HttpFrontTest, WithATokenOnlyItsBearerMayCall) {
  Serve({.access = OneToken()});
  const auto refused = client_->Get("/api/v1/nodes");
  EXPECT_EQ(refused->status, 401);
  EXPECT_EQ(json::parse(refused->body).at("reason"), "Unauthorized");
  client_->set_bearer_token_auth("secreT");
  EXPECT_EQ(client_->Get("/api/v1/nodes")->status, 401);
  EXPECT_EQ(client_->Get("/healthz")->status, 200);
  client_->set_bearer_token_auth("secret");
  EXPECT_EQ(client_->Get("/api/v1/nodes")->status, 200);
  // The scheme's name has no case (RFC 9110, 11.1).
  const httplib::Headers lower = {{"Authorization", "bearer secret"}};
  EXPECT_EQ(httplib::Client(front_->url()).Get("/api/v1/nodes", lower)->status, 200);
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
}  // namespace tahoma::controller
