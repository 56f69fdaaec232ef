// An API server on a store in a temporary folder, called without sockets.
//
//   class PodsTest : public testing::ApiFixture {};
//   TEST_F(PodsTest, Creates) {
//     const Answer made = Call("POST", "/api/v1/namespaces/default/pods", PodOf("a"));
//     EXPECT_EQ(made.status, 201) << made.text;
//     EXPECT_EQ(made.body.at("metadata").at("name"), "a");
//   }
//
// Everything happens in one thread and by a ManualClock, so tests repeat exactly.

#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "controller/access/account_tokens.h"
#include "controller/apiserver/http/api_server.h"
#include "controller/store/store.h"
#include "lib/base/check.h"
#include "lib/base/clock.h"
#include "lib/base/json.h"
#include "tests/support/temp_dir.h"

namespace tahoma::testing {

struct Answer {
  int status = 0;
  Json body;
  std::string text;
  rest::Headers headers;
  rest::StreamSource source;

  std::string reason() const { return body.is_object() ? body.value("reason", "") : ""; }
  std::string message() const { return body.is_object() ? body.value("message", "") : text; }
  std::string name() const { return body.at("metadata").at("name"); }
  std::string version() const { return body.at("metadata").at("resourceVersion"); }
  std::string header(std::string_view wanted) const {
    for (const auto& [key, value] : headers) {
      if (key == wanted) return value;
    }
    return "";
  }
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const auto& item : body.at("items")) all.push_back(item.at("metadata").at("name"));
    return all;
  }
  // The events that a watch has now, as "ADDED a", "BOOKMARK ".
  std::vector<std::string> Events() {
    std::vector<std::string> events;
    for (const auto& event : Read()) {
      const auto metadata = event.at("object").value("metadata", Json::object());
      events.push_back(event.at("type").get<std::string>() + " " + metadata.value("name", ""));
    }
    return events;
  }
  std::vector<Json> Read() {
    std::vector<Json> events;
    // Twice: what is there at the start and what came after it are read separately.
    for (int i = 0; i < 2; ++i) {
      std::string out;
      open = source(out, std::chrono::milliseconds(0));
      for (std::size_t at = 0; at < out.size();) {
        const std::size_t end = out.find('\n', at);
        events.push_back(ParseJson(out.substr(at, end - at)));
        at = end + 1;
      }
      if (!open) break;
    }
    return events;
  }
  bool open = true;
};

class ApiFixture : public ::testing::Test {
 protected:
  ApiFixture() { Restart(); }

  void Restart(controller::apiserver::ObjectStore::Options objects = {},
               std::size_t answer_bytes = controller::apiserver::kAnswerBytesMost) {
    server_.reset();
    store_.reset();
    auto store = controller::Store::Open({.dir = dir_.path(), .single_threaded = true});
    TAHOMA_CHECK_OK(store.status());
    store_ = *std::move(store);
    controller::apiserver::ApiServer::Options options;
    options.seed = 5;
    options.node_fetch = [](const controller::apiserver::NodeEndpoint& node,
                            const std::string& target) {
      return rest::Response::Text(200, node.host + ":" + std::to_string(node.port) + target);
    };
    options.account_tokens = tokens_;
    options.objects = objects;
    options.answer_bytes = answer_bytes;
    auto server = controller::apiserver::ApiServer::Open(*store_, clock_, std::move(options));
    TAHOMA_CHECK_OK(server.status());
    server_ = *std::move(server);
    std::ifstream crd("charts/tahoma/crds/tahoma.dev_gangs.yaml");
    TAHOMA_CHECK_OK(server_->InstallCrd(std::string((std::istreambuf_iterator<char>(crd)), {})));
  }

  Answer Call(const std::string& method, const std::string& target, const std::string& body = "",
              const rest::Headers& headers = {}) {
    rest::Request request;
    request.method = method;
    request.target = target;
    request.path = target.substr(0, target.find('?'));
    if (target.find('?') != std::string::npos) request.query = target.substr(target.find('?') + 1);
    request.headers = headers;
    request.headers.emplace_back("User-Agent", "test/1");
    request.body = body;
    rest::Response response = server_->Handle(request);
    Answer answer{.status = response.status,
                  .body = TryParseJson(response.body),
                  .text = response.body,
                  .headers = response.headers,
                  .source = response.source};
    answer.headers.emplace_back("Content-Type", response.content_type);
    return answer;
  }
  Answer Call(const std::string& method, const std::string& target, const char* body,
              const rest::Headers& headers = {}) {
    return Call(method, target, std::string(body), headers);
  }
  Answer Call(const std::string& method, const std::string& target, const Json& body,
              const rest::Headers& headers = {}) {
    return Call(method, target, body.dump(), headers);
  }
  Answer Patch(const std::string& target, const std::string& type, const Json& body) {
    return Call("PATCH", target, body, {{"Content-Type", "application/" + type}});
  }

  static Json PodOf(const std::string& name, const Json& labels = nullptr) {
    Json pod = {{"metadata", {{"name", name}}},
                {"spec", {{"containers", {{{"name", "main"}, {"image", "train"}}}}}}};
    if (!labels.is_null()) pod["metadata"]["labels"] = labels;
    return pod;
  }
  static Json GangOf(const std::string& name, int members = 4) {
    return {{"apiVersion", "tahoma.dev/v1alpha1"},
            {"kind", "Gang"},
            {"metadata", {{"name", name}}},
            {"spec", {{"members", members}, {"shape", "4x4x4"}}}};
  }
  static Json ConfigMapOf(const std::string& name, const std::string& value) {
    return {{"metadata", {{"name", name}}}, {"data", {{"key", value}}}};
  }

  static std::shared_ptr<const controller::AccountTokens> NewTokens() {
    return std::make_shared<const controller::AccountTokens>(
        *controller::AccountTokens::Of(controller::NewAccountKey()));
  }

  TempDir dir_;
  const std::shared_ptr<const controller::AccountTokens> tokens_ = NewTokens();
  ManualClock clock_{WallTime(std::chrono::seconds(1'800'000'000))};
  std::unique_ptr<controller::Store> store_;
  std::unique_ptr<controller::apiserver::ApiServer> server_;
};

}  // namespace tahoma::testing
