// An API server is restored from a backup behind a running controller: the controller publishes its
// journal again, without a restart.

#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>

#include "lib/base/check.h"
#include "lib/base/json.h"
#include "tests/integration/standalone.h"
#include "tests/support/child_program.h"
#include "tests/support/patience.h"
#include "tests/support/temp_dir.h"

namespace tahoma::testing {
namespace {

constexpr std::chrono::seconds kPatience = Patience(60);

// `tahoma-api-server` on a folder that can be copied and put back, always at the same address.
class ApiServer {
 public:
  explicit ApiServer(const std::string& folder) : folder_(folder) { Start("127.0.0.1:0"); }

  kube::Transport& api() { return *api_; }
  const std::string& url() const { return url_; }

  void Save(const std::string& name) {
    Stop();
    std::filesystem::copy(folder_ + "/data", folder_ + "/" + name,
                          std::filesystem::copy_options::recursive);
    Start(Address());
  }
  // With `older` the restored server takes writes at another address before it comes back: its
  // versions pass the versions seen before.
  void Restore(const std::string& name, bool older) {
    Stop();
    std::filesystem::remove_all(folder_ + "/data");
    std::filesystem::copy(folder_ + "/" + name, folder_ + "/data",
                          std::filesystem::copy_options::recursive);
    const std::string address = Address();
    if (!older) {
      Start("127.0.0.1:0");
      for (int i = 0; i < 400; ++i) {
        const std::string config_map = "filler-" + std::to_string(i);
        TAHOMA_CHECK(Send(*api_, "POST", "/api/v1/namespaces/default/configmaps",
                          {{"apiVersion", "v1"},
                           {"kind", "ConfigMap"},
                           {"metadata", {{"name", config_map}}}}) == 201);
      }
      Stop();
    }
    Start(address);
  }

 private:
  std::string Address() const { return url_.substr(std::string("http://").size()); }
  void Stop() {
    program_->Kill(SIGTERM);
    TAHOMA_CHECK(program_->Wait() == 0);
  }
  void Start(const std::string& address) {
    const std::string port_file = folder_ + "/port";
    std::filesystem::remove(port_file);
    program_ = std::make_unique<ChildProgram>(
        std::vector<std::string>{Bin("tahoma-api-server"), "--data", folder_ + "/data", "--crds",
                                 kCrdFolder, "--port-file", port_file, "--address", address},
        folder_ + "/api.log");
    TAHOMA_CHECK(
        program_->WaitUntil([&] { return std::filesystem::exists(port_file); }, kPatience));
    std::ifstream in(port_file);
    in >> url_;
    auto api = kube::HttpTransport::Create({.server = url_});
    TAHOMA_CHECK_OK(api.status());
    api_ = *std::move(api);
  }

  const std::string folder_;
  std::unique_ptr<ChildProgram> program_;
  std::string url_;
  std::unique_ptr<kube::HttpTransport> api_;
};

// Returns the allocated devices and the reservations of each claim in the API.
std::map<std::string, std::string> Published(kube::Transport& api) {
  std::map<std::string, std::string> published;
  for (const Json& claim : List(api, kClaims)) {
    const Json status = claim.value("status", Json::object());
    if (!status.contains("allocation")) continue;
    published[claim["metadata"]["name"]] =
        status["allocation"]["devices"]["results"].dump() + status["reservedFor"].dump();
  }
  return published;
}

class RestoredApiTest : public ::testing::TestWithParam<bool> {
 protected:
  RestoredApiTest() {
    Json name_class = {
        {"apiVersion", "resource.k8s.io/v1"},
        {"kind", "DeviceClass"},
        {"metadata", {{"name", "neuron.aws.com"}}},
        {"spec",
         {{"selectors", {{{"cel", {{"expression", "device.driver == \"neuron.aws.com\""}}}}}}}}};
    TAHOMA_CHECK(
        Send(server_.api(), "POST", "/apis/resource.k8s.io/v1/deviceclasses", name_class) == 201);
    for (const char* node : {"node-0", "node-1"}) MakeNode(server_.api(), node);
  }

  void StartController() {
    std::ofstream(dir_.path() + "/kubeconfig")
        << "apiVersion: v1\nkind: Config\ncurrent-context: a\n"
        << "clusters: [{name: a, cluster: {server: \"" << server_.url() << "\"}}]\n"
        << "users: [{name: a, user: {}}]\ncontexts: [{name: a, context: {cluster: a, user: a}}]\n";
    controller_ = std::make_unique<ChildProgram>(
        std::vector<std::string>{Bin("controller"), "--kubeconfig", dir_.path() + "/kubeconfig",
                                 "--data-dir", dir_.path() + "/journal", "--admin-address",
                                 "127.0.0.1:0"},
        dir_.path() + "/controller.log");
  }
  bool Eventually(const std::function<bool()>& holds) {
    return controller_->WaitUntil(holds, kPatience);
  }
  // A gang of two whole nodes.
  void AddGang(const std::string& name) {
    ASSERT_TRUE(MakeGang(server_.api(), name, {.own_claims = true}));
  }
  bool IsBound(const std::string& gang) { return BoundPods(server_.api(), gang) == 2; }
  // Ends claims that are being deleted and that nobody uses, as kube-controller-manager does.
  void EndDeletedClaims() {
    for (const Json& claim : List(server_.api(), kClaims)) {
      if (!claim["metadata"].contains("deletionTimestamp")) continue;
      const std::string path =
          std::string(kClaims) + "/" + claim["metadata"]["name"].get<std::string>();
      Send(server_.api(), "PATCH", path + "/status",
           {{"status", {{"allocation", nullptr}, {"reservedFor", nullptr}}}});
      Send(server_.api(), "PATCH", path, {{"metadata", {{"finalizers", nullptr}}}});
    }
  }
  void Restore(const std::string& backup) { server_.Restore(backup, GetParam()); }
  void ExpectItReadEverythingAnew() {
    // By the lease, if by nothing else.
    EXPECT_TRUE(Eventually(
        [&] { return controller_->log().find("reading everything anew") != std::string::npos; }));
  }
  // The controller has ended and begun again by itself as little as by the test.
  void ExpectItRanOn() {
    controller_->Kill(SIGTERM);
    EXPECT_EQ(controller_->Wait(), 0) << controller_->log();
  }

  TempDir dir_;
  ApiServer server_{dir_.path()};
  std::unique_ptr<ChildProgram> controller_;
};

TEST_P(RestoredApiTest, DecisionsInTheJournalArePublishedAgain) {
  AddGang("train");
  server_.Save("backup");
  StartController();
  ASSERT_TRUE(Eventually([&] { return IsBound("train"); })) << controller_->log();
  const auto published = Published(server_.api());
  ASSERT_EQ(published.size(), 2U);
  Restore("backup");
  EXPECT_TRUE(Eventually([&] { return IsBound("train"); })) << controller_->log();
  EXPECT_EQ(Published(server_.api()), published);
  ExpectItReadEverythingAnew();
  ExpectItRanOn();
}

TEST_P(RestoredApiTest, AGangThatTheBackupDoesNotKnowEndsAndItsChipsAreFree) {
  server_.Save("backup");
  StartController();
  AddGang("train");
  ASSERT_TRUE(Eventually([&] { return IsBound("train"); })) << controller_->log();
  Restore("backup");
  AddGang("next");
  EXPECT_TRUE(Eventually([&] { return IsBound("next"); })) << controller_->log();
  // A backup from before the lease shows no version older than those seen: fresh lists suffice.
  ExpectItRanOn();
}

// Another gang has got the chips since: the journal wins, and no chip is ever in two claims.
TEST_P(RestoredApiTest, AGangThatOnlyTheBackupKnowsMakesRoomForTheGangThatHasItsChipsNow) {
  StartController();
  AddGang("before");
  ASSERT_TRUE(Eventually([&] { return IsBound("before"); })) << controller_->log();
  AddGang("now");  // waits: both want all chips
  server_.Save("backup");
  DeleteGang(server_.api(), "before");
  ASSERT_TRUE(Eventually([&] {
    EndDeletedClaims();
    return IsBound("now");
  })) << controller_->log();
  const auto published = Published(server_.api());
  ASSERT_EQ(published.size(), 2U);
  Restore("backup");
  EXPECT_TRUE(Eventually([&] {
    EndDeletedPods(server_.api());
    EXPECT_LE(AllocatedClaims(server_.api()), 2) << "16 chips of each of two nodes";
    return IsBound("now");
  })) << controller_->log();
  EXPECT_EQ(Published(server_.api()), published);
  EXPECT_EQ(BoundPods(server_.api(), "before"), 0);
  ExpectItReadEverythingAnew();
  ExpectItRanOn();
}

INSTANTIATE_TEST_SUITE_P(OlderOrPastWhatWasSeen, RestoredApiTest, ::testing::Bool());

}  // namespace
}  // namespace tahoma::testing
