// The whole admin API over HTTP, on a snapshot made by the test, and on a real API server.
//
//   class CordonTest : public AdminFixture {};
//   TEST_F(CordonTest, ANodeIsCordoned) {
//     fleet_.PutNode(NodeFactsOf({.name = "a"}));
//     EXPECT_EQ(Post("/v1/nodes/a/cordon").status, 200);
//   }
//
// OpenApiTest's Python (tests/integration/admin_api_test.py) checks the form of every answer
// against the API's document; tests here check the meaning.

#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "controller/access/identity_file.h"
#include "controller/admin/admin_access.h"
#include "controller/admin/admin_api.h"
#include "controller/apiserver/http/in_process_transport.h"
#include "lib/base/json.h"
#include "lib/rest/server.h"
#include "tests/support/api_fixture.h"
#include "tests/support/fleet.h"
#include "tests/unit/lib/rest/raw_client.h"

namespace tahoma::controller {

class AdminFixture : public tahoma::testing::ApiFixture {
 protected:
  struct Outcome {
    int status = 0;
    std::string head = {};
    Json body = {};

    std::string detail() const { return body.is_object() ? body.value("detail", "") : ""; }
    std::string code() const { return body.is_object() ? body.value("code", "") : ""; }
    // Returns the value of a header; empty without one.
    std::string header(const std::string& name) const {
      const std::size_t at = head.find("\r\n" + name + ": ");
      if (at == std::string::npos) return "";
      const std::size_t from = at + name.size() + 4;
      return head.substr(from, head.find("\r\n", from) - from);
    }
  };

  AdminFixture() : transport_(*server_, clock_, "test") {
    snapshot_.synced = true;
    Identities({});
  }
  ~AdminFixture() override {
    if (http_ != nullptr) http_->Stop();
  }

  // Sets the callers; before the first request.
  void Identities(const std::vector<IdentityEntry>& entries) {
    access_ = std::make_unique<AdminAccess>(
        std::make_shared<const AccessControl>(*AccessTable::Make(entries, false)),
        AuditSink{.append = [this](const std::string& line) { audit_.push_back(line); }}, clock_, 1,
        admin_.routes());
  }

  Outcome Ask(const std::string& method, const std::string& target, const std::string& body = "",
              const std::string& more = "Content-Type: application/json\r\n") {
    if (http_ == nullptr) Serve();
    snapshot_.cluster = std::make_shared<const ClusterState>(fleet_);
    std::string request = method + " " + target + " HTTP/1.1\r\nHost: localhost\r\n" + more;
    if (!token_.empty()) request += "Authorization: Bearer " + token_ + "\r\n";
    request += "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
    const std::string text = tahoma::testing::RawClient(http_->port()).Ask(request);
    const std::size_t end = text.find("\r\n\r\n");
    if (end == std::string::npos || text.size() < 12) return {};
    return {.status = std::stoi(text.substr(9, 3)),
            .head = text.substr(0, end + 2),
            .body = TryParseJson(text.substr(end + 4))};
  }
  Outcome Get(const std::string& target) { return Ask("GET", target); }
  Outcome Post(const std::string& target, const Json& body = Json::object()) {
    return Ask("POST", target, body.dump());
  }

  void Serve() {
    http_ = std::make_unique<rest::Server>(rest::ServerOptions{}, metrics_);
    http_->SetGate([this](rest::Request& head) { return access_->Admit(head); });
    admin_.AddTo(*http_, *access_);
    TAHOMA_CHECK_OK(http_->Start());
  }

  ClusterState fleet_;
  Snapshot snapshot_;
  // Orders that arrived, and the answer to all orders.
  std::vector<std::variant<PurchaseOrder, ExtensionOrder>> orders_;
  absl::StatusOr<std::shared_ptr<const Block>> answer_ = absl::UnavailableError("not set");
  std::vector<std::string> audit_;
  std::string token_;

  apiserver::InProcessTransport transport_;
  AdminApi admin_{{.snapshot = [this] { return std::make_shared<const Snapshot>(snapshot_); },
                   .order =
                       [this](auto order) {
                         orders_.push_back(std::move(order));
                         return answer_;
                       },
                   .objects = transport_},
                  clock_};
  std::unique_ptr<AdminAccess> access_;
  rest::Metrics metrics_;
  std::unique_ptr<rest::Server> http_;
};

}  // namespace tahoma::controller
