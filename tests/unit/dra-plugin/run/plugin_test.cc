#include "dra-plugin/run/plugin.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "controller/apiserver/http/in_process_transport.h"
#include "dra_v1.grpc.pb.h"
#include "lib/base/status.h"
#include "lib/wire/server.h"
#include "pluginregistration.grpc.pb.h"
#include "tests/support/api_fixture.h"
#include "tests/unit/dra-plugin/claims/fakes.h"

namespace tahoma::dra {
namespace {

namespace dra_v1 = k8s::io::kubelet::pkg::apis::dra::v1;
using std::chrono::milliseconds;
constexpr std::chrono::seconds kSoon(20);

// sim-node's socket, served from a FakeNode.
class NodeProgram {
 public:
  explicit NodeProgram(const std::string& address) : address_(address) {
    node_.inventory = TestInventory();
    Start();
  }
  ~NodeProgram() { Kill(); }

  void Start() {
    stopping_ = false;
    server_ = *wire::Server::Start(address_, {},
                                   [this](const wire::Request& request) { return Serve(request); });
  }
  // Dies and forgets its claims.
  void Kill() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
      node_.held.clear();
    }
    changed_.notify_all();
    server_.reset();
  }
  void TakeEfaDown(int chip) {
    {
      const std::lock_guard lock(mutex_);
      node_.inventory.chips.at(static_cast<std::size_t>(chip)).efa_down = true;
      ++node_.inventory.generation;
    }
    changed_.notify_all();
  }
  void Break(int chip, std::string reason) {
    {
      const std::lock_guard lock(mutex_);
      wire::Chip& broken = node_.inventory.chips.at(static_cast<std::size_t>(chip));
      broken.healthy = reason.empty();
      broken.reason = std::move(reason);
      ++node_.inventory.generation;
    }
    changed_.notify_all();
  }
  std::map<std::string, wire::ApplyParams> held() {
    const std::lock_guard lock(mutex_);
    return node_.held;
  }
  bool WaitForHeld(std::size_t count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kSoon, [&] { return node_.held.size() == count; });
  }

 private:
  absl::StatusOr<wire::Reply> Serve(const wire::Request& request) {
    std::unique_lock lock(mutex_);
    if (request.method == wire::kWatchInventory) {
      TAHOMA_ASSIGN_OR_RETURN(const auto params, wire::DecodeWatchParams(request.params));
      changed_.wait_for(lock, params.timeout, [&] {
        return stopping_ || node_.inventory.generation != params.generation;
      });
    }
    if (request.method.ends_with("nventory")) {
      return wire::Reply{.result = wire::EncodeInventory(node_.inventory)};
    }
    if (request.method == wire::kListClaims) {
      return wire::Reply{.result = wire::EncodeClaimList(*node_.List())};
    }
    if (request.method == wire::kReleaseClaim) {
      TAHOMA_RETURN_IF_ERROR(node_.Release(*wire::DecodeClaimUid(request.params)));
      changed_.notify_all();
      return wire::Reply{};
    }
    TAHOMA_ASSIGN_OR_RETURN(const auto params, wire::DecodeApplyParams(request.params));
    TAHOMA_ASSIGN_OR_RETURN(const std::string token, node_.Apply(params.grant, params.token));
    changed_.notify_all();
    return wire::Reply{.result = wire::EncodeToken(token)};
  }

  const std::string address_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;
  CrashPlan plan_;
  FakeNode node_{plan_};
  std::unique_ptr<wire::Server> server_;
};

const std::string kSlices = "/apis/resource.k8s.io/v1/resourceslices";
const std::string kClaims = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims/";

// The API server, for several threads. SharedApi itself answers reads of claims: the tests choose
// the uids of claims, and a server gives out its own.
class SharedApi final : public kube::Transport {
 public:
  explicit SharedApi(kube::Transport& api) : api_(api) {}
  absl::StatusOr<kube::Response> Send(const kube::Request& request) override {
    const std::lock_guard lock(mutex_);
    if (request.target.find("/status") != std::string::npos && statuses_refused_ != 0) {
      ++refusals_;
      changed_.notify_all();
      return kube::Response{.status = statuses_refused_, .headers = {}, .body = "{}"};
    }
    if (nics_refused_ && request.method == "POST" &&
        request.body.find("dra.net") != std::string::npos) {
      return kube::Response{.status = 403, .headers = {}, .body = "{}"};
    }
    const auto claim = claims_.find(request.target);
    absl::StatusOr<kube::Response> response =
        claim == claims_.end()
            ? api_.Send(request)
            : kube::Response{.status = 200, .headers = {}, .body = claim->second};
    changed_.notify_all();
    return response;
  }
  absl::StatusOr<kube::Response> Stream(const kube::Request&, const kube::LineSink&,
                                        milliseconds) override {
    return Unavailable("no watches here");
  }
  // Waits until `right` accepts the published devices.
  bool WaitFor(const std::function<bool(const std::map<std::string, Json>&)>& right) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kSoon, [&] { return right(Devices()); });
  }
  void Clear() {
    const std::lock_guard lock(mutex_);
    for (const Json& slice : Slices()) {
      const std::string name = slice.at("metadata").at("name");
      EXPECT_EQ(api_.Send({.method = "DELETE", .target = kSlices + "/" + name})->status, 200);
    }
  }
  void AddClaim(const std::string& name, std::string object) {
    const std::lock_guard lock(mutex_);
    claims_[kClaims + name] = std::move(object);
  }
  // Answers writes of any status with this HTTP status; 0: as the server does.
  void RefuseStatuses(int status) {
    const std::lock_guard lock(mutex_);
    statuses_refused_ = status;
  }
  // As a policy that knows the driver of the chips alone.
  void RefuseNics() { nics_refused_ = true; }
  int refusals() const { return refusals_; }
  void Forget(const std::string& name) {
    const std::lock_guard lock(mutex_);
    claims_.erase(kClaims + name);
  }

 private:
  Json Slices() {
    const absl::StatusOr<kube::Response> listed = api_.Send({.target = kSlices});
    return listed->Json()->at("items");
  }
  std::map<std::string, Json> Devices() {
    std::map<std::string, Json> out;
    for (const Json& slice : Slices()) {
      if (!slice["spec"].contains("devices")) continue;
      for (const Json& device : slice["spec"]["devices"]) {
        out[device["name"].get<std::string>()] = device;
      }
    }
    return out;
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  kube::Transport& api_;
  std::map<std::string, std::string> claims_;  // by request target
  int statuses_refused_ = 0;
  std::atomic<int> refusals_ = 0;
  bool nics_refused_ = false;
};

std::string Unhealthy(const Json& device) {
  for (const Json& taint : kube::ListAt(device, {"taints"})) {
    if (taint["key"] == "tahoma.dev/unhealthy") return taint["value"].get<std::string>();
  }
  return "";
}

class PluginTest : public testing::ApiFixture {
 protected:
  PluginTest() {
    std::string pattern = std::filesystem::temp_directory_path() / "dra-XXXXXX";
    folder_ = mkdtemp(pattern.data());
    node_ = std::make_unique<NodeProgram>("unix:" + (folder_ / "node.sock").string());
    EXPECT_EQ(Call("POST", "/api/v1/nodes", {{"metadata", {{"name", "node-a"}}}}).status, 201);
  }
  ~PluginTest() override {
    plugin_.reset();
    std::filesystem::remove_all(folder_);
  }
  PluginOptions Options() {
    return {.node_name = "node-a",
            .node_socket = folder_ / "node.sock",
            .plugin_dir = folder_ / "plugins",
            .registry_dir = folder_ / "registry",
            .cdi_dir = folder_ / "cdi",
            .pod_uid = "",
            .boot_id = boot_id_,
            .damping = damping_,
            .efa = efa_,
            .node_lost_after = milliseconds(1),
            .retry_after_max = milliseconds(20),
            .resync_period = resync_period_,
            .repeat_for = repeat_for_,
            .on_refused = [this](const std::string& error) { refused_ = error; }};
  }
  void Start() {
    auto started = Plugin::Start(Options(), api_, system_clock_, counters_);
    ASSERT_TRUE(started.ok()) << started.status();
    plugin_ = *std::move(started);
  }
  std::unique_ptr<dra_v1::DRAPlugin::Stub> Kubelet(const std::string& driver = "neuron.aws.com") {
    const std::string path = folder_ / "plugins" / driver / "dra.sock";
    return dra_v1::DRAPlugin::NewStub(
        grpc::CreateChannel("unix:" + path, grpc::InsecureChannelCredentials()));
  }
  void AddClaim(const std::string& name, const std::vector<std::string>& devices) {
    api_.AddClaim(name, ClaimObject(name, "uid-" + name, devices).dump());
  }
  dra_v1::NodePrepareResourceResponse Prepare(const std::string& name,
                                              const std::string& driver = "neuron.aws.com") {
    dra_v1::NodePrepareResourcesRequest request;
    dra_v1::Claim& claim = *request.add_claims();
    claim.set_namespace_("default");
    claim.set_name(name);
    claim.set_uid("uid-" + name);
    grpc::ClientContext context;
    dra_v1::NodePrepareResourcesResponse response;
    EXPECT_TRUE(Kubelet(driver)->NodePrepareResources(&context, request, &response).ok());
    return response.claims().at("uid-" + name);
  }
  std::string Unprepare(const std::string& name) {
    dra_v1::NodeUnprepareResourcesRequest request;
    request.add_claims()->set_uid("uid-" + name);
    grpc::ClientContext context;
    dra_v1::NodeUnprepareResourcesResponse response;
    EXPECT_TRUE(Kubelet()->NodeUnprepareResources(&context, request, &response).ok());
    return response.claims().at("uid-" + name).error();
  }
  bool PublishedHealthy() {
    return api_.WaitFor([](const auto& devices) {
      return devices.size() == 209 && Unhealthy(devices.at("neuron-node")).empty();
    });
  }
  bool PublishedLost() {
    return api_.WaitFor([](const auto& devices) {
      return !devices.empty() && Unhealthy(devices.begin()->second) == "node-lost";
    });
  }
  // Waits until the Node has the condition tahoma.dev/DevicesComplete.
  bool SaysWhetherAllIsShown(const std::string& status) {
    return api_.WaitFor([&](const auto&) {
      const auto node = in_process_.Send({.target = "/api/v1/nodes/node-a"})->Json();
      for (const Json& condition : kube::ListAt(*node, {"status", "conditions"})) {
        if (condition.at("type") == kDevicesComplete) return condition.at("status") == status;
      }
      return false;
    });
  }
  // Why the plugin is not ready, check by check.
  std::string NotReady() {
    std::string reasons;
    for (const auto& [name, check] : probes_.Checks(rest::Probes::Kind::kReadyz)) {
      if (const std::string reason = check(); !reason.empty())
        reasons += name + ": " + reason + "\n";
    }
    return reasons;
  }
  bool NotifyRegistered(bool registered) {
    const auto stub = pluginregistration::Registration::NewStub(grpc::CreateChannel(
        "unix:" + plugin_->registration_socket(), grpc::InsecureChannelCredentials()));
    grpc::ClientContext context;
    pluginregistration::RegistrationStatus status;
    status.set_plugin_registered(registered);
    status.set_error(registered ? "" : "no");
    pluginregistration::RegistrationStatusResponse response;
    return stub->NotifyRegistrationStatus(&context, status, &response).ok();
  }

  std::filesystem::path folder_;
  std::string boot_id_ = "boot";
  DampingOptions damping_;
  bool efa_ = false;
  milliseconds resync_period_ = std::chrono::minutes(5);
  milliseconds repeat_for_ = std::chrono::seconds(15);
  std::unique_ptr<NodeProgram> node_;
  controller::apiserver::InProcessTransport in_process_{*server_, clock_, "dra-plugin"};
  SharedApi api_{in_process_};
  SystemClock system_clock_;
  rest::Metrics metrics_;
  rest::Probes probes_;
  PluginMetrics counters_{metrics_, probes_};
  std::string refused_;
  std::unique_ptr<Plugin> plugin_;
};

TEST_F(PluginTest, PublishesPreparesAndUnprepares) {
  Start();
  ASSERT_TRUE(PublishedHealthy());
  AddClaim("a", {"neuron-device-0", "neuron-device-1"});
  const auto prepared = Prepare("a");
  EXPECT_EQ(prepared.error(), "");
  ASSERT_EQ(prepared.devices_size(), 2);
  EXPECT_EQ(prepared.devices(0).cdi_device_ids(0), "neuron.aws.com/device=uid-a-neuron-device-0");
  EXPECT_EQ(node_->held().at("uid-a").grant.chips, (std::vector<int>{0, 1}));
  EXPECT_TRUE(std::filesystem::exists(folder_ / "cdi/neuron.aws.com-device_uid-a.json"));
  AddClaim("b", {"neuron-core-1-lnc2-0"});
  EXPECT_EQ(Prepare("b").error(),
            "claim default/b (uid-b): chip 1 has cores that claim default/a (uid-a) holds");
  EXPECT_EQ(Unprepare("a"), "");
  EXPECT_EQ(Prepare("b").error(), "");
  EXPECT_EQ(Unprepare("unknown"), "");
}

TEST_F(PluginTest, NicsArePublishedAndPreparedByASecondDriver) {
  efa_ = true;
  Start();
  ASSERT_TRUE(api_.WaitFor([](const auto& devices) { return devices.size() == 209 + 16; }));
  EXPECT_TRUE(std::filesystem::exists(folder_ / "registry/dra.net-reg.sock"));
  Json claim = ClaimObject("a", "uid-a", {"neuron-device-0"});
  claim["status"]["allocation"]["devices"]["results"].push_back({{"request", "e"},
                                                                 {"driver", "dra.net"},
                                                                 {"pool", "node-a"},
                                                                 {"device", "pci-0000-c9-00-0"}});
  api_.AddClaim("a", claim.dump());
  EXPECT_EQ(Prepare("a").devices_size(), 1);
  const auto prepared = Prepare("a", "dra.net");
  EXPECT_EQ(prepared.error(), "");
  ASSERT_EQ(prepared.devices_size(), 1);
  EXPECT_EQ(prepared.devices(0).cdi_device_ids(0), "dra.net/device=uid-a-pci-0000-c9-00-0");
  EXPECT_TRUE(std::filesystem::exists(folder_ / "cdi/dra.net-device_uid-a.json"));
  node_->TakeEfaDown(1);
  EXPECT_TRUE(api_.WaitFor([](const auto& devices) {
    return Unhealthy(devices.at("pci-0000-b4-00-0")) == "efa-down" &&
           Unhealthy(devices.at("pci-0000-c9-00-0")).empty() &&
           Unhealthy(devices.at("neuron-device-1")).empty();
  }));
  plugin_->Stop();
  EXPECT_FALSE(std::filesystem::exists(folder_ / "registry/dra.net-reg.sock"));
}

// As under a chart before the driver of the NICs.
TEST_F(PluginTest, WhereAPolicyRefusesNicsTheChipsArePublishedAndTheProgramIsReady) {
  efa_ = true;
  api_.RefuseNics();
  Start();
  ASSERT_TRUE(api_.WaitFor([](const auto& devices) { return devices.size() == 209; }));
  node_->Break(3, "dma-error");
  EXPECT_TRUE(api_.WaitFor(
      [](const auto& devices) { return Unhealthy(devices.at("neuron-device-3")) == "dma-error"; }));
  EXPECT_EQ(NotReady(), "kubelet: no kubelet has registered the plugin\n");
}

TEST_F(PluginTest, ABrokenChipIsPublishedAndItsRepairToo) {
  Start();
  ASSERT_TRUE(PublishedHealthy());
  node_->Break(3, "dma-error");
  EXPECT_TRUE(api_.WaitFor([](const auto& devices) {
    return Unhealthy(devices.at("neuron-device-3")) == "dma-error" &&
           Unhealthy(devices.at("neuron-device-2")).empty();
  }));
  node_->Break(3, "");
  EXPECT_TRUE(PublishedHealthy());
}

TEST_F(PluginTest, TheNodeSaysThatAllIsShown) {
  Start();
  EXPECT_TRUE(SaysWhetherAllIsShown("True"));
}

// As without the right to write statuses: the devices matter more.
TEST_F(PluginTest, ANodeWithoutTheRightToReportIsPublishedAndReportsLater) {
  resync_period_ = milliseconds(20);
  for (const int refusal : {403, 500}) {
    api_.RefuseStatuses(refusal);
    Start();
    ASSERT_TRUE(PublishedHealthy());
    node_->Break(3, "dma-error");
    EXPECT_TRUE(api_.WaitFor([](const auto& devices) {
      return Unhealthy(devices.at("neuron-device-3")) == "dma-error";
    }));
    const int before = api_.refusals();
    EXPECT_TRUE(api_.WaitFor([&](const auto&) { return api_.refusals() >= before + 2; }));
    EXPECT_EQ(NotReady(), "kubelet: no kubelet has registered the plugin\n");
    api_.RefuseStatuses(0);
    EXPECT_TRUE(SaysWhetherAllIsShown("True"));
    plugin_.reset();
    node_->Break(3, "");
    ASSERT_EQ(Call("DELETE", "/api/v1/nodes/node-a").status, 200);
    ASSERT_EQ(Call("POST", "/api/v1/nodes", {{"metadata", {{"name", "node-a"}}}}).status, 201);
  }
}

TEST_F(PluginTest, ALostNodeIsUnhealthyAndComesBackWithItsClaims) {
  Start();
  ASSERT_TRUE(PublishedHealthy());
  AddClaim("a", {"neuron-device-0"});
  ASSERT_EQ(Prepare("a").error(), "");
  const auto before = node_->held();
  node_->Kill();
  EXPECT_TRUE(PublishedLost());
  node_->Start();
  EXPECT_TRUE(PublishedHealthy());
  EXPECT_TRUE(node_->WaitForHeld(1));
  EXPECT_EQ(node_->held(), before) << "with the token its containers have";
}

TEST_F(PluginTest, ANodeThatComesBackWithABrokenChipGetsTheChipsClaimAfterTheRepair) {
  Start();
  ASSERT_TRUE(PublishedHealthy());
  AddClaim("a", {"neuron-device-3"});
  AddClaim("b", {"neuron-device-4"});
  ASSERT_EQ(Prepare("a").error(), "");
  ASSERT_EQ(Prepare("b").error(), "");
  const auto before = node_->held();
  node_->Kill();
  node_->Break(3, "dma-error");
  node_->Start();
  EXPECT_TRUE(node_->WaitForHeld(1));
  EXPECT_TRUE(api_.WaitFor([](const auto& devices) {
    return !devices.empty() && Unhealthy(devices.at("neuron-device-3")) == "dma-error" &&
           Unhealthy(devices.at("neuron-device-4")).empty();
  }));
  node_->Break(3, "");
  EXPECT_TRUE(PublishedHealthy());
  EXPECT_TRUE(node_->WaitForHeld(2));
  EXPECT_EQ(node_->held(), before);
}

// After an error a kubelet asks again only after a minute and more.
TEST_F(PluginTest, APodThatStartsWhileSimNodeStartsAgainOnlyWaits) {
  Start();
  ASSERT_TRUE(PublishedHealthy());
  AddClaim("a", {"neuron-device-0"});
  node_->Kill();
  std::thread kubelet([&] { EXPECT_EQ(Prepare("a").error(), ""); });
  EXPECT_TRUE(PublishedLost());
  node_->Start();
  kubelet.join();
  EXPECT_TRUE(node_->WaitForHeld(1));
}

TEST_F(PluginTest, AClaimDeletedWhileTheMachineWasDownIsFreedAtTheNextStart) {
  Start();
  ASSERT_TRUE(PublishedHealthy());
  AddClaim("gone", {"neuron-device-0"});
  AddClaim("kept", {"neuron-device-1"});
  ASSERT_EQ(Prepare("gone").error(), "");
  ASSERT_EQ(Prepare("kept").error(), "");
  plugin_.reset();
  api_.Forget("gone");
  boot_id_ = "next boot";
  Start();
  EXPECT_TRUE(node_->WaitForHeld(1));
  EXPECT_TRUE(node_->held().contains("uid-kept"));
}

TEST_F(PluginTest, AClaimThatNoKubeletUnpreparesIsFreedAtTheSecondLook) {
  resync_period_ = milliseconds(10);
  Start();
  ASSERT_TRUE(PublishedHealthy());
  AddClaim("gone", {"neuron-device-0"});
  ASSERT_EQ(Prepare("gone").error(), "");
  api_.Forget("gone");
  EXPECT_TRUE(node_->WaitForHeld(0));
  plugin_.reset();
  EXPECT_FALSE(std::filesystem::exists(folder_ / "cdi/neuron.aws.com-device_uid-gone.json"));
}

TEST_F(PluginTest, ARestartedPluginAnswersFromItsCheckpoint) {
  Start();
  ASSERT_TRUE(PublishedHealthy());
  AddClaim("a", {"neuron-device-0"});
  const auto first = Prepare("a").SerializeAsString();
  plugin_->Stop();
  plugin_.reset();
  EXPECT_FALSE(std::filesystem::exists(folder_ / "plugins/neuron.aws.com/dra.sock"));
  api_.Forget("a");
  Start();
  EXPECT_EQ(Prepare("a").SerializeAsString(), first);
  EXPECT_EQ(Unprepare("a"), "");
  EXPECT_TRUE(node_->WaitForHeld(0));
}

TEST_F(PluginTest, SlicesThatTheKubeletWipedComeBackWithItsRegistration) {
  Start();
  ASSERT_TRUE(PublishedHealthy());
  api_.Clear();
  ASSERT_TRUE(NotifyRegistered(true));
  EXPECT_TRUE(PublishedHealthy());
}

TEST_F(PluginTest, AChipThatFlapsStaysMarkedForAWhileAfterItsRepair) {
  damping_ = {.hold = std::chrono::hours(1), .longest = std::chrono::hours(1)};
  Start();
  ASSERT_TRUE(PublishedHealthy());
  const auto shows = [](const std::string& reason) {
    return [reason](const auto& devices) {
      return devices.contains("neuron-device-3") &&
             Unhealthy(devices.at("neuron-device-3")) == reason;
    };
  };
  node_->Break(3, "dma");
  EXPECT_TRUE(api_.WaitFor(shows("dma")));
  node_->Break(3, "");
  EXPECT_TRUE(api_.WaitFor(shows(""))) << "once is no flapping";
  node_->Break(3, "dma");
  EXPECT_TRUE(api_.WaitFor(shows("dma")));
  node_->Break(3, "");
  node_->Break(4, "dead");  // seen after the fault of chip 3
  EXPECT_TRUE(api_.WaitFor([&](const auto& devices) {
    return Unhealthy(devices.at("neuron-device-4")) == "dead" && shows("dma")(devices);
  }));
}

TEST_F(PluginTest, ARepairThatWasHeldBackIsShownWithoutFurtherNews) {
  damping_ = {.hold = milliseconds(50)};
  Start();
  ASSERT_TRUE(PublishedHealthy());
  for (int i = 0; i < 2; ++i) {
    node_->Break(3, "dma");
    EXPECT_TRUE(api_.WaitFor(
        [](const auto& devices) { return Unhealthy(devices.at("neuron-device-3")) == "dma"; }));
    node_->Break(3, "");
    EXPECT_TRUE(PublishedHealthy());
  }
}

TEST_F(PluginTest, WhatTheNodeShowsCanChangeUnderPreparedClaims) {
  Start();
  ASSERT_TRUE(PublishedHealthy());
  AddClaim("a", {"neuron-core-0-lnc2-0"});
  ASSERT_EQ(Prepare("a").error(), "");
  const auto held = node_->held();
  plugin_->SetPublish({.lnc1 = false, .lnc2 = false, .node = false});
  EXPECT_TRUE(api_.WaitFor([](const auto& devices) { return devices.size() == 16; }));
  EXPECT_EQ(node_->held(), held);
  EXPECT_EQ(Prepare("a").error(), "") << "asked again, as after a kubelet's start";
  AddClaim("b", {"neuron-device-0"});
  EXPECT_EQ(Prepare("b").error(),
            "claim default/b (uid-b): chip 0 has cores that claim default/a (uid-a) holds");
  node_->Break(5, "dma-error");
  EXPECT_TRUE(api_.WaitFor([](const auto& devices) {
    return devices.size() == 16 && Unhealthy(devices.at("neuron-device-5")) == "dma-error";
  }));
  node_->Break(5, "");
  plugin_->SetPublish({});
  EXPECT_TRUE(PublishedHealthy());
  EXPECT_EQ(Unprepare("a"), "");
  EXPECT_TRUE(node_->WaitForHeld(0));
}

TEST_F(PluginTest, AChangeWhileSimNodeIsAwayIsPublishedToo) {
  Start();
  ASSERT_TRUE(PublishedHealthy());
  node_->Kill();
  EXPECT_TRUE(PublishedLost());
  plugin_->SetPublish({.lnc1 = false, .lnc2 = false, .node = false});
  EXPECT_TRUE(api_.WaitFor([](const auto& devices) {
    return devices.size() == 16 && Unhealthy(devices.begin()->second) == "node-lost";
  }));
}

TEST_F(PluginTest, IsReadyWhenPodsCanStartHere) {
  node_->Kill();
  Start();
  EXPECT_EQ(NotReady(),
            "sim-node: sim-node is not connected\n"
            "slices: the node's devices have not been published\n"
            "kubelet: no kubelet has registered the plugin\n");
  node_->Start();
  ASSERT_TRUE(PublishedHealthy());
  ASSERT_TRUE(NotifyRegistered(true));
  EXPECT_TRUE(api_.WaitFor([this](const auto&) { return NotReady().empty(); })) << NotReady();
  node_->Kill();
  EXPECT_TRUE(PublishedLost());
  EXPECT_EQ(NotReady(), "sim-node: sim-node is not connected\n");
}

TEST_F(PluginTest, CountsPreparesFailuresClaimsAndDevices) {
  Start();
  ASSERT_TRUE(PublishedHealthy());
  AddClaim("a", {"neuron-device-0"});
  AddClaim("b", {"neuron-device-0"});
  ASSERT_EQ(Prepare("a").error(), "");
  ASSERT_NE(Prepare("b").error(), "");
  node_->Break(3, "dma-error");
  // The chip, its 4 and 8 partitions, and the node.
  const std::string broken = "tahoma_dra_devices{health=\"unhealthy\"} 14\n";
  EXPECT_TRUE(
      api_.WaitFor([&](const auto&) { return metrics_.Text().find(broken) != std::string::npos; }));
  const std::string text = metrics_.Text();
  for (const std::string& line : std::vector<std::string>{
           "tahoma_dra_prepare_seconds_count{result=\"ok\"} 1\n",
           "tahoma_dra_prepare_seconds_count{result=\"error\"} 1\n",
           "tahoma_dra_prepared_claims 1\n",
           "tahoma_dra_prepare_failures_total{reason=\"overlap\"} 1\n",
           "tahoma_dra_prepare_failures_total{reason=\"refused\"} 0\n",
           "tahoma_dra_prepared_devices{kind=\"chip\"} 1\n",
           "tahoma_dra_prepared_devices{kind=\"core\"} 0\n", "tahoma_dra_requests_in_flight 0\n",
           "tahoma_dra_build_info{version=\"" + std::string(kVersion) + "\"} 1\n",
           "tahoma_dra_sim_node_connected 1\n", "tahoma_dra_registered 0\n",
           "tahoma_dra_devices{health=\"healthy\"} 195\n"}) {
    EXPECT_THAT(text, ::testing::HasSubstr(line));
  }
}

TEST_F(PluginTest, ARefusalReachesTheProgram) {
  Start();
  ASSERT_TRUE(NotifyRegistered(false));
  EXPECT_EQ(refused_, "no");
}

TEST_F(PluginTest, ADamagedCheckpointStopsTheStart) {
  std::filesystem::create_directories(folder_ / "plugins/neuron.aws.com");
  std::ofstream(folder_ / "plugins/neuron.aws.com/claims.json") << "{\"claims\":[";
  const auto started = Plugin::Start(Options(), api_, system_clock_, counters_);
  EXPECT_TRUE(absl::IsDataLoss(started.status()));
  EXPECT_NE(Message(started.status()).find("plugins/neuron.aws.com/claims.json is damaged"),
            std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "registry/neuron.aws.com-reg.sock"));
}

TEST_F(PluginTest, StartsWhileSimNodeIsAway) {
  node_->Kill();
  repeat_for_ = milliseconds(0);
  Start();
  AddClaim("a", {"neuron-device-0"});
  EXPECT_NE(Prepare("a").error().find("cannot connect"), std::string::npos);
  node_->Start();
  EXPECT_TRUE(PublishedHealthy());
  EXPECT_EQ(Prepare("a").error(), "");
}

}  // namespace
}  // namespace tahoma::dra
