// A mistake of our own in one request is that request's alone.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "controller/apiserver/http/api_server.h"
#include "controller/apiserver/http/in_process_transport.h"
#include "lib/base/check.h"
#include "lib/base/json.h"
#include "tests/support/temp_dir.h"
#include "tests/unit/controller/apiserver/paths.h"

namespace tahoma::controller::apiserver {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class FailureTest : public ::testing::Test {
 protected:
  FailureTest() {
    auto store = Store::Open({.dir = dir_.path()});
    TAHOMA_CHECK_OK(store.status());
    store_ = *std::move(store);
    ApiServer::Options options;
    options.log = [this](const std::string& line) { lines_.push_back(line); };
    options.node_fetch = [this](const NodeEndpoint&, const std::string&) -> rest::Response {
      if (throws_at_once_) throw std::runtime_error("the node is odd");
      return rest::Response::Stream("text/plain", [](std::string& out, auto) -> bool {
        out += "first ";
        throw std::runtime_error("the stream is odd");
      });
    };
    auto server = ApiServer::Open(*store_, clock_, std::move(options));
    TAHOMA_CHECK_OK(server.status());
    server_ = *std::move(server);
    transport_ = std::make_unique<InProcessTransport>(*server_, clock_, "test");
    Call("POST", "/api/v1/nodes",
         {{"metadata", {{"name", "n"}}},
          {"status",
           {{"addresses", {{{"type", "InternalIP"}, {"address", "10.0.0.7"}}}},
            {"daemonEndpoints", {{"kubeletEndpoint", {{"Port", 10250}}}}}}}});
    Call("POST", kPods,
         {{"metadata", {{"name", "p"}}},
          {"spec", {{"nodeName", "n"}, {"containers", {{{"name", "main"}, {"image", "train"}}}}}}});
  }

  kube::Response Call(const char* method, const std::string& target, const Json& body = nullptr) {
    const auto answer = transport_->Send({.method = method,
                                          .target = target,
                                          .headers = {{"Content-Type", "application/json"}},
                                          .body = body.is_null() ? "" : body.dump()});
    TAHOMA_CHECK_OK(answer.status());
    return *answer;
  }

  testing::TempDir dir_;
  SystemClock clock_;
  std::vector<std::string> lines_;
  bool throws_at_once_ = true;
  std::unique_ptr<Store> store_;
  std::unique_ptr<ApiServer> server_;
  std::unique_ptr<InProcessTransport> transport_;
};

TEST_F(FailureTest, AnExceptionIsAnInternalErrorAndALineOfTheLog) {
  const kube::Response answer = Call("GET", kPods + "/p/log");
  EXPECT_EQ(answer.status, 500);
  const Json status = ParseJson(answer.body);
  EXPECT_EQ(status.at("kind"), "Status");
  EXPECT_EQ(status.at("reason"), "InternalError");
  EXPECT_EQ(status.at("message"), "Internal error occurred: the node is odd");
  EXPECT_THAT(lines_, ElementsAre("api server: GET " + kPods +
                                  "/p/log from in-process failed: the node is odd"));
  EXPECT_EQ(Call("GET", kPods + "/p").status, 200);
  EXPECT_EQ(Call("DELETE", kPods + "/p").status, 200);
}

TEST_F(FailureTest, AStreamThatThrowsEndsAfterWhatItHasSaid) {
  throws_at_once_ = false;
  EXPECT_EQ(Call("GET", kPods + "/p/log").body, "first ");
  EXPECT_THAT(lines_, ElementsAre(HasSubstr("failed: the stream is odd")));
}

}  // namespace
}  // namespace tahoma::controller::apiserver
