#include "dra-plugin/kubelet/kubelet_server.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <thread>

#include "dra_health_v1.grpc.pb.h"
#include "dra_health_v1alpha1.grpc.pb.h"
#include "dra_v1.grpc.pb.h"
#include "dra_v1beta1.grpc.pb.h"
#include "lib/base/mutex.h"
#include "lib/base/status.h"
#include "lib/wire/socket.h"
#include "pluginregistration.grpc.pb.h"

namespace tahoma::dra {
namespace {

namespace dra_v1 = k8s::io::kubelet::pkg::apis::dra::v1;
namespace dra_v1beta1 = k8s::io::kubelet::pkg::apis::dra::v1beta1;

// A door, closed until Open.
class Gate {
 public:
  void Open() {
    {
      const MutexLock lock(mutex_);
      open_ = true;
    }
    changed_.NotifyAll();
  }
  void Wait() {
    const MutexLock lock(mutex_);
    while (!open_) changed_.Wait(mutex_);
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  bool open_ ABSL_GUARDED_BY(mutex_) = false;
};

// Prepares every claim but uid "bad", and notices overlapping calls.
class FakeDriver final : public DriverCalls {
 public:
  absl::StatusOr<std::vector<PreparedDevice>> Prepare(const ClaimRef& claim) override {
    EXPECT_EQ(++inside, 1) << "calls must be one at a time";
    absl::Status bad = claim.uid == "bad" ? NotFound("no such claim") : absl::OkStatus();
    if (claim.uid == "slow") free.Wait();
    if (during) during();
    if (claim.uid == "latin") bad = InvalidArgument("caf\xe9");
    if (claim.uid == "long") bad = InvalidArgument("{}", std::string(5'000, 'x'));
    last = claim;
    ++calls;
    if (away > 0 && away-- > 0) {
      --inside;
      return Unavailable("sim-node is away");
    }
    --inside;
    if (!bad.ok()) return bad;
    return std::vector<PreparedDevice>{
        {.request = "r", .pool = "node-a", .device = "neuron-device-3"}};
  }
  absl::Status Unprepare(const ClaimRef& claim) override {
    last = claim;
    return claim.uid == "bad" ? Unavailable("later") : absl::OkStatus();
  }
  ClaimRef last;
  std::function<void()> during;  // called in each
  std::atomic<int> inside = 0;
  std::atomic<int> calls = 0;
  std::atomic<int> away = 0;  // for so many calls
  Gate free;                  // lets "slow" go
};

class KubeletServerTest : public testing::Test {
 protected:
  KubeletServerTest() {
    std::string pattern = std::filesystem::temp_directory_path() / "kub-XXXXXX";
    folder_ = mkdtemp(pattern.data());
    lock_ = std::make_unique<CallLock>(folder_ / "serialize.lock");
  }
  ~KubeletServerTest() override { std::filesystem::remove_all(folder_); }

  KubeletOptions Options(std::string pod_uid = "") {
    return {.driver = "neuron.aws.com",
            .registry_dir = folder_ / "reg",
            .data_dir = folder_ / "plugins/neuron.aws.com",
            .pod_uid = pod_uid,
            .answer_within = answer_within_,
            .repeat_for = repeat_for_,
            .first_repeat = std::chrono::milliseconds(1),
            .health_period = std::chrono::milliseconds(20),
            .on_requests = [this](int change) { requests_ += change; },
            .on_registration =
                [this](bool ok, const std::string& error) {
                  registered_ = ok;
                  registration_error_ = error;
                }};
  }
  void Start(std::string pod_uid = "") {
    auto started = KubeletServer::Start(Options(pod_uid), driver_, *lock_, board_, clock_);
    ASSERT_TRUE(started.ok()) << started.status();
    server_ = *std::move(started);
  }
  std::shared_ptr<grpc::Channel> Channel(const std::string& path) {
    return grpc::CreateChannel("unix:" + path, grpc::InsecureChannelCredentials());
  }

  // The answers to the prepare of these claims, by uid: the error or the first device.
  std::map<std::string, std::string> Prepare(const std::vector<std::string>& uids) {
    const auto stub = dra_v1::DRAPlugin::NewStub(Channel(server_->driver_socket()));
    dra_v1::NodePrepareResourcesRequest request;
    for (const std::string& uid : uids) request.add_claims()->set_uid(uid);
    grpc::ClientContext context;
    dra_v1::NodePrepareResourcesResponse response;
    EXPECT_TRUE(stub->NodePrepareResources(&context, request, &response).ok());
    std::map<std::string, std::string> out;
    for (const auto& [uid, answer] : response.claims()) {
      out[uid] = answer.devices().empty() ? answer.error() : answer.devices(0).device_name();
    }
    return out;
  }

  std::filesystem::path folder_;
  std::chrono::milliseconds answer_within_ = std::chrono::seconds(40);
  std::chrono::milliseconds repeat_for_ = std::chrono::seconds(15);
  FakeDriver driver_;
  std::unique_ptr<CallLock> lock_;
  HealthBoard board_;
  ManualClock clock_{WallTime(std::chrono::seconds(1'000'000))};
  std::atomic<int> requests_ = 0;  // without an answer yet
  std::atomic<bool> registered_ = false;
  std::string registration_error_;
  std::unique_ptr<KubeletServer> server_;
};

TEST_F(KubeletServerTest, RegistersAsTheKubeletExpects) {
  Start();
  EXPECT_EQ(server_->registration_socket(), folder_ / "reg/neuron.aws.com-reg.sock");
  const auto stub =
      pluginregistration::Registration::NewStub(Channel(server_->registration_socket()));
  grpc::ClientContext context;
  pluginregistration::PluginInfo info;
  ASSERT_TRUE(stub->GetInfo(&context, {}, &info).ok());
  EXPECT_EQ(info.type(), "DRAPlugin");
  EXPECT_EQ(info.name(), "neuron.aws.com");
  EXPECT_EQ(info.endpoint(), folder_ / "plugins/neuron.aws.com/dra.sock");
  EXPECT_THAT(info.supported_versions(),
              testing::ElementsAre("v1.DRAPlugin", "v1beta1.DRAPlugin", "v1.DRAResourceHealth",
                                   "v1alpha1.DRAResourceHealth"));
  grpc::ClientContext second;
  pluginregistration::RegistrationStatus status;
  status.set_plugin_registered(true);
  pluginregistration::RegistrationStatusResponse response;
  ASSERT_TRUE(stub->NotifyRegistrationStatus(&second, status, &response).ok());
  EXPECT_TRUE(registered_);
}

TEST_F(KubeletServerTest, ARefusalIsPassedOn) {
  Start();
  const auto stub =
      pluginregistration::Registration::NewStub(Channel(server_->registration_socket()));
  grpc::ClientContext context;
  pluginregistration::RegistrationStatus status;
  status.set_error("already registered");
  pluginregistration::RegistrationStatusResponse response;
  ASSERT_TRUE(stub->NotifyRegistrationStatus(&context, status, &response).ok());
  EXPECT_FALSE(registered_);
  EXPECT_EQ(registration_error_, "already registered");
}

TEST_F(KubeletServerTest, EveryClaimOfARequestHasItsAnswer) {
  Start();
  const auto stub = dra_v1::DRAPlugin::NewStub(Channel(server_->driver_socket()));
  dra_v1::NodePrepareResourcesRequest request;
  for (const char* uid : {"good", "bad"}) {
    dra_v1::Claim& claim = *request.add_claims();
    claim.set_namespace_("default");
    claim.set_name("a");
    claim.set_uid(uid);
  }
  grpc::ClientContext context;
  dra_v1::NodePrepareResourcesResponse response;
  ASSERT_TRUE(stub->NodePrepareResources(&context, request, &response).ok());
  ASSERT_EQ(response.claims().size(), 2u);
  EXPECT_EQ(response.claims().at("bad").error(), "no such claim");
  const dra_v1::NodePrepareResourceResponse& good = response.claims().at("good");
  ASSERT_EQ(good.devices_size(), 1);
  EXPECT_EQ(good.devices(0).request_names(0), "r");
  EXPECT_EQ(good.devices(0).pool_name(), "node-a");
  EXPECT_EQ(good.devices(0).device_name(), "neuron-device-3");
  EXPECT_EQ(good.devices(0).cdi_device_ids(0), "neuron.aws.com/device=good-neuron-device-3");
  EXPECT_FALSE(good.devices(0).has_share_id());
}

// Go's protobuf drops a whole answer with a text that is not UTF-8, other claims' answers included.
TEST_F(KubeletServerTest, AReasonOfWhateverBytesReachesTheKubelet) {
  Start();
  EXPECT_THAT(
      Prepare({"latin", "long", "good"}),
      testing::ElementsAre(testing::Pair("good", "neuron-device-3"), testing::Pair("latin", "caf?"),
                           testing::Pair("long", std::string(4'096, 'x'))));
}

TEST_F(KubeletServerTest, AnOlderKubeletIsServedTheSame) {
  repeat_for_ = std::chrono::milliseconds(0);
  Start();
  const auto stub = dra_v1beta1::DRAPlugin::NewStub(Channel(server_->driver_socket()));
  dra_v1beta1::NodePrepareResourcesRequest request;
  request.add_claims()->set_uid("good");
  grpc::ClientContext context;
  dra_v1beta1::NodePrepareResourcesResponse response;
  ASSERT_TRUE(stub->NodePrepareResources(&context, request, &response).ok());
  EXPECT_EQ(response.claims().at("good").devices(0).device_name(), "neuron-device-3");
  dra_v1beta1::NodeUnprepareResourcesRequest unprepare;
  unprepare.add_claims()->set_uid("good");
  unprepare.add_claims()->set_uid("bad");
  grpc::ClientContext second;
  dra_v1beta1::NodeUnprepareResourcesResponse unprepared;
  ASSERT_TRUE(stub->NodeUnprepareResources(&second, unprepare, &unprepared).ok());
  EXPECT_EQ(unprepared.claims().at("good").error(), "");
  EXPECT_EQ(unprepared.claims().at("bad").error(), "later");
}

TEST_F(KubeletServerTest, ARequestIsInFlightUntilItIsAnswered) {
  int during = 0;
  driver_.during = [&] { during = requests_; };
  Start();
  Prepare({"a", "b"});
  EXPECT_EQ(during, 1) << "one request, with two claims";
  EXPECT_EQ(requests_, 0);
}

TEST_F(KubeletServerTest, CallsWaitForOneAnother) {
  Start();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      const auto stub = dra_v1::DRAPlugin::NewStub(Channel(server_->driver_socket()));
      for (int i = 0; i < 20; ++i) {
        dra_v1::NodePrepareResourcesRequest request;
        request.add_claims()->set_uid("good");
        grpc::ClientContext context;
        dra_v1::NodePrepareResourcesResponse response;
        EXPECT_TRUE(stub->NodePrepareResources(&context, request, &response).ok());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(KubeletServerTest, AServiceAwayForAMomentDelaysAPodWithoutAnError) {
  driver_.away = 3;
  Start();
  EXPECT_THAT(Prepare({"a", "b"}), testing::ElementsAre(testing::Pair("a", "neuron-device-3"),
                                                        testing::Pair("b", "neuron-device-3")));
  EXPECT_EQ(driver_.calls, 5);
}

TEST_F(KubeletServerTest, AServiceAwayForLongFailsTheCallWithItsReason) {
  driver_.away = 1'000'000;
  repeat_for_ = std::chrono::milliseconds(40);
  Start();
  EXPECT_THAT(Prepare({"a"}), testing::ElementsAre(testing::Pair("a", "sim-node is away")));
  EXPECT_GT(driver_.calls, 1);
}

TEST_F(KubeletServerTest, ARefusalIsNotRepeated) {
  Start();
  EXPECT_THAT(Prepare({"bad"}), testing::ElementsAre(testing::Pair("bad", "no such claim")));
  EXPECT_EQ(driver_.calls, 1);
}

// The kubelet waits 45 s; later answers are lost.
TEST_F(KubeletServerTest, AHangingCallIsAnsweredInTimeForAllClaimsOfItsRequest) {
  answer_within_ = std::chrono::milliseconds(30);
  Start();
  EXPECT_THAT(Prepare({"slow", "b"}),
              testing::ElementsAre(testing::Pair("b", "there was no time left for it; ask again"),
                                   testing::Pair("slow", "it has not ended in time; ask again")));
  EXPECT_THAT(Prepare({"b"}),
              testing::ElementsAre(testing::Pair("b", "it has not ended in time; ask again")));
  driver_.free.Open();
  answer_within_ = std::chrono::seconds(40);
  server_.reset();
  EXPECT_EQ(driver_.calls, 1) << "what nobody waits for any more is not begun";
  Start();
  EXPECT_THAT(Prepare({"slow", "b"}),
              testing::ElementsAre(testing::Pair("b", "neuron-device-3"),
                                   testing::Pair("slow", "neuron-device-3")));
}

TEST_F(KubeletServerTest, AnEndingServerDoesNotWaitForAServiceThatIsAway) {
  driver_.away = 1'000'000;
  Start();
  std::thread kubelet([&] { Prepare({"a"}); });
  while (driver_.calls == 0) std::this_thread::yield();
  server_->Stop();
  kubelet.join();
}

TEST_F(KubeletServerTest, HealthIsTheFullListNowAtChangesAndAgain) {
  Start();
  board_.Set({{.pool = "node-a", .device = "neuron-device-0"},
              {.pool = "node-a", .device = "neuron-device-1", .healthy = true, .message = ""}});
  const auto stub = v1::DRAResourceHealth::NewStub(Channel(server_->driver_socket()));
  grpc::ClientContext context;
  const auto reader = stub->NodeWatchResources(&context, {});
  v1::NodeWatchResourcesResponse response;
  ASSERT_TRUE(reader->Read(&response));
  ASSERT_EQ(response.devices_size(), 2);
  EXPECT_EQ(response.devices(0).health(), v1::HEALTHY);
  EXPECT_EQ(response.devices(0).last_updated_time(), 1'000'000);
  EXPECT_EQ(response.devices(0).health_check_timeout_seconds(), 30);
  ASSERT_TRUE(reader->Read(&response)) << "again after the period, without a change";
  board_.Set(
      {{.pool = "node-a", .device = "neuron-device-0"},
       {.pool = "node-a", .device = "neuron-device-1", .healthy = false, .message = "dma-error"}});
  do {
    ASSERT_TRUE(reader->Read(&response));
  } while (response.devices(1).health() == v1::HEALTHY);
  EXPECT_EQ(response.devices(1).health(), v1::UNHEALTHY);
  EXPECT_EQ(response.devices(1).message(), "dma-error");
  board_.Set({{.pool = "node-a",
               .device = "neuron-device-0",
               .healthy = false,
               .message = std::string(1023, 'x') + "\xc3\xa9"}});
  do {
    ASSERT_TRUE(reader->Read(&response));
  } while (response.devices_size() == 2);
  EXPECT_EQ(response.devices(0).message(), std::string(1023, 'x')) << "no half of a character";
  context.TryCancel();
}

TEST_F(KubeletServerTest, OlderKubeletsHaveTheAlphaStream) {
  Start();
  board_.Set({{.pool = "node-a", .device = "neuron-device-0"}});
  const auto stub = v1alpha1::DRAResourceHealth::NewStub(Channel(server_->driver_socket()));
  grpc::ClientContext context;
  const auto reader = stub->NodeWatchResources(&context, {});
  v1alpha1::NodeWatchResourcesResponse response;
  ASSERT_TRUE(reader->Read(&response));
  EXPECT_EQ(response.devices(0).device().device_name(), "neuron-device-0");
  EXPECT_EQ(response.devices(0).health(), v1alpha1::HEALTHY);
  context.TryCancel();
}

TEST_F(KubeletServerTest, StopRemovesTheSocketsEvenWithAStreamOpen) {
  Start();
  const auto stub = v1::DRAResourceHealth::NewStub(Channel(server_->driver_socket()));
  grpc::ClientContext context;
  const auto reader = stub->NodeWatchResources(&context, {});
  v1::NodeWatchResourcesResponse response;
  ASSERT_TRUE(reader->Read(&response));
  server_->Stop();
  EXPECT_FALSE(std::filesystem::exists(server_->registration_socket()));
  EXPECT_FALSE(std::filesystem::exists(server_->driver_socket()));
  while (reader->Read(&response)) {
  }
}

TEST_F(KubeletServerTest, TwoInstancesOfARollingUpdateServeSideBySide) {
  Start("pod-1");
  HealthBoard other_board;
  const auto other = KubeletServer::Start(Options("pod-2"), driver_, *lock_, other_board, clock_);
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_NE((*other)->driver_socket(), server_->driver_socket());
  server_->Stop();
  EXPECT_TRUE(std::filesystem::exists((*other)->driver_socket()));
}

TEST_F(KubeletServerTest, OnlyRootAndThePluginsOwnUserReachTheSockets) {
  const mode_t before = umask(0);
  Start();
  umask(before);
  for (const std::string& socket : {server_->driver_socket(), server_->registration_socket()}) {
    struct stat found = {};
    ASSERT_EQ(stat(socket.c_str(), &found), 0) << socket;
    EXPECT_EQ(found.st_mode & 0777U, 0600U) << socket;
  }
}

TEST_F(KubeletServerTest, ASecondPluginOnTheSameSocketsIsRefused) {
  Start();
  HealthBoard other_board;
  const auto other = KubeletServer::Start(Options(), driver_, *lock_, other_board, clock_);
  EXPECT_TRUE(absl::IsAlreadyExists(other.status())) << other.status();
  EXPECT_TRUE(wire::Connection::Dial(server_->driver_socket(), std::chrono::seconds(1)).ok());
}

TEST_F(KubeletServerTest, SocketsThatADeadPluginLeftAreReplaced) {
  std::filesystem::create_directories(folder_ / "plugins/neuron.aws.com");
  std::filesystem::create_directories(folder_ / "reg");
  const std::string path = folder_ / "live.sock";
  const auto listener = *wire::Listener::Open(path);
  std::filesystem::rename(path, folder_ / "plugins/neuron.aws.com/dra.sock");
  listener->Close();
  Start();
}

TEST_F(KubeletServerTest, AFileInTheWayIsLeftAlone) {
  std::filesystem::create_directories(folder_ / "reg");
  std::ofstream(folder_ / "reg/neuron.aws.com-reg.sock") << "precious";
  const auto started = KubeletServer::Start(Options(), driver_, *lock_, board_, clock_);
  EXPECT_TRUE(absl::IsFailedPrecondition(started.status())) << started.status();
  EXPECT_EQ(std::filesystem::file_size(folder_ / "reg/neuron.aws.com-reg.sock"), 8u);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "plugins/neuron.aws.com/dra.sock"));
}

TEST_F(KubeletServerTest, TheLockIsHeldAcrossProcessesToo) {
  CallLock same(folder_ / "serialize.lock");
  auto held = std::make_unique<CallLock::Held>(*lock_);
  ASSERT_TRUE(held->status().ok());
  std::atomic<bool> entered = false;
  std::thread waiter([&] {
    const CallLock::Held second(same);
    EXPECT_TRUE(second.status().ok());
    entered = true;
  });
  std::this_thread::yield();
  EXPECT_FALSE(entered);
  held.reset();
  waiter.join();
  EXPECT_TRUE(entered);
}

TEST(HealthOfTest, ATaintedDeviceIsUnhealthy) {
  DevicePool pool;
  pool.groups.emplace_back(2);
  pool.groups[0][0].name = "a";
  pool.groups[0][1].name = "b";
  pool.groups[0][0].taints = {{"tahoma.dev/managed", "", TaintEffect::kNoSchedule}};
  pool.groups[0][1].taints = {{"tahoma.dev/managed", "", TaintEffect::kNoSchedule},
                              {"tahoma.dev/unhealthy", "node-lost", TaintEffect::kNoExecute}};
  const std::vector<DeviceHealth> expected = {
      {.pool = "n", .device = "a"},
      {.pool = "n", .device = "b", .healthy = false, .message = "node-lost"}};
  EXPECT_EQ(HealthOf(pool, "n"), expected);
}

}  // namespace
}  // namespace tahoma::dra
