// The real controller on a disk without room, and its backups: nothing acknowledged is lost, it
// goes on when there is room again, and a restored store has every gang whole.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>

#include <array>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "lib/base/clock.h"
#include "lib/base/files.h"
#include "lib/base/json.h"
#include "lib/base/status.h"
#include "tests/integration/buyer.h"
#include "tests/integration/standalone.h"
#include "tests/support/child_program.h"
#include "tests/support/temp_dir.h"

namespace tahoma {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::AnyOf;
using testing::Bin;
using testing::Buyer;
using testing::ChildProgram;
using ::testing::HasSubstr;
using testing::Standalone;
using testing::TempDir;

constexpr const char* kMaps = "/api/v1/namespaces/default/configmaps";

int PutMap(kube::Transport& api, const std::string& name, std::size_t bytes = 10) {
  return testing::Send(api, "POST", kMaps,
                       Json{{"apiVersion", "v1"},
                            {"kind", "ConfigMap"},
                            {"metadata", {{"name", name}}},
                            {"data", {{"text", std::string(bytes, 'x')}}}});
}
std::string Ask(kube::Transport& api, const std::string& target) {
  const auto answer = api.Send({.method = "GET", .target = target});
  return answer.ok() ? fmt::format("{} {}", answer->status, answer->body)
                     : answer.status().ToString();
}

struct End {
  std::optional<int> status;
  std::string said;
};
End RunToEnd(const std::vector<std::string>& command) {
  const TempDir own;
  ChildProgram program(command, own.path() + "/log");
  const std::optional<int> status = program.Wait();
  return {status, program.log()};
}

// A data folder on a file system of its own, which only root can make.
class SmallDisk : public ::testing::Test {
 protected:
  void SetUp() override {
    fs::create_directories(data());
    mounted_ = ::mount("tahoma", data().c_str(), "tmpfs", 0, "size=128m") == 0;
    if (!mounted_) GTEST_SKIP() << "only root can mount a small disk";
  }
  ~SmallDisk() override {
    if (mounted_) ::umount2(data().c_str(), MNT_DETACH);
  }
  std::string data() const { return dir_.path() + "/data"; }
  std::string filler() const { return data() + "/filler"; }
  void FillUp() const {
    std::ofstream out(filler(), std::ios::binary);
    const std::string piece(4096, 'f');
    while (out.write(piece.data(), static_cast<std::streamsize>(piece.size())).flush()) {
    }
  }

  TempDir dir_;
  bool mounted_ = false;
};

TEST_F(SmallDisk, WritesGoOnWhenThereIsRoomAgainAndNothingAcknowledgedIsLost) {
  Standalone controller(dir_.path(), testing::RealController);
  ASSERT_TRUE(controller.started()) << controller.program().log();
  ASSERT_EQ(PutMap(controller.api(), "before"), 201);
  FillUp();
  int acknowledged = 0;
  int status = 0;
  while ((status = PutMap(controller.api(), fmt::format("m{}", acknowledged), 100'000)) == 201) {
    ++acknowledged;
  }
  EXPECT_EQ(status, 503);
  EXPECT_THAT(Ask(controller.api(), "/readyz"),
              AllOf(HasSubstr("503 "), HasSubstr("[-]store failed"), HasSubstr("[+]core ok")));
  EXPECT_THAT(Ask(controller.api(), "/livez"), HasSubstr("200 ok"));
  EXPECT_THAT(Ask(controller.api(), std::string(kMaps) + "/before"), HasSubstr("200 "));
  const std::string component = "/api/v1/componentstatuses/store";
  EXPECT_THAT(Ask(controller.api(), component),
              HasSubstr(R"("message":"no commit succeeds","status":"False","type":"Healthy")"));
  EXPECT_EQ(PutMap(controller.api(), "refused"), 503);
  fs::remove(filler());
  EXPECT_TRUE(controller.Eventually([&] { return PutMap(controller.api(), "after") == 201; }))
      << controller.program().log();
  EXPECT_THAT(Ask(controller.api(), "/readyz/store"), HasSubstr("200 ok"));
  EXPECT_THAT(Ask(controller.api(), component), HasSubstr(R"("status":"True")"));
  controller.program().Kill(SIGTERM);
  EXPECT_EQ(controller.program().Wait(), 0);
  Standalone again(dir_.path(), testing::RealController);
  ASSERT_TRUE(again.started()) << again.program().log();
  std::size_t found = 0;
  for (const Json& map : testing::List(again.api(), kMaps)) {
    EXPECT_NE(map.at("metadata").at("name"), "refused");
    found += map.at("metadata").at("name").get<std::string>().starts_with("m") ? 1U : 0U;
  }
  EXPECT_EQ(found, static_cast<std::size_t>(acknowledged));
}

// Little room is room, whatever the log holds: it need not be copied before anything is written.
TEST_F(SmallDisk, WritesGoOnWithLittleRoomAndAStartSucceeds) {
  constexpr std::uint64_t kLittle = 1U << 20U;
  const auto start = [&] {
    return std::make_unique<Standalone>(dir_.path(), testing::RealController);
  };
  auto controller = start();
  ASSERT_TRUE(controller->started()) << controller->program().log();
  for (int i = 0; i < 20; ++i) {
    ASSERT_EQ(PutMap(controller->api(), fmt::format("m{}", i), 500'000), 201);
  }
  FillUp();
  int written = 0;
  while (PutMap(controller->api(), fmt::format("n{}", written), 100'000) == 201) ++written;
  fs::resize_file(filler(), fs::file_size(filler()) - kLittle);
  EXPECT_TRUE(controller->Eventually([&] { return PutMap(controller->api(), "after") == 201; }))
      << controller->program().log();
  controller->program().Kill(SIGKILL);
  controller->program().Wait();
  controller.reset();
  const End check = RunToEnd({Bin("controller"), "--check", data()});
  EXPECT_EQ(check.status, 0) << check.said;
  EXPECT_THAT(check.said, HasSubstr(data() + " is whole: "));
  controller = start();
  ASSERT_TRUE(controller->started()) << controller->program().log();
  EXPECT_THAT(Ask(controller->api(), std::string(kMaps) + "/after"), HasSubstr("200 "));
  EXPECT_EQ(testing::List(controller->api(), kMaps).size(), static_cast<std::size_t>(21 + written));
}

TEST_F(SmallDisk, AStartWithoutRoomSaysSoAndTheNextOneWithRoomSucceeds) {
  {
    Standalone controller(dir_.path(), testing::RealController);
    ASSERT_TRUE(controller.started()) << controller.program().log();
    ASSERT_EQ(PutMap(controller.api(), "before"), 201);
    controller.program().Kill(SIGKILL);
    controller.program().Wait();
  }
  FillUp();
  const End end = RunToEnd(testing::RealController(data(), dir_.path() + "/second-ports"));
  EXPECT_EQ(end.status, 1) << end.said;
  EXPECT_THAT(end.said, AllOf(HasSubstr("the store in " + data()), HasSubstr("o space left")));
  fs::remove(filler());
  Standalone again(dir_.path(), testing::RealController);
  ASSERT_TRUE(again.started()) << again.program().log();
  EXPECT_THAT(Ask(again.api(), std::string(kMaps) + "/before"), HasSubstr("200 "));
}

class FullDisk : public SmallDisk, public ::testing::WithParamInterface<bool> {};

// A purchase that finds no room is answered at once, and carried out when there is; or its
// controller dies first. Who asks again with the same token buys once.
TEST_P(FullDisk, APurchaseFailsAtOnceAndARetryBuysOnce) {
  constexpr std::array kHosts = {"n0", "n1"};
  const bool killed = GetParam();
  std::string first;
  Standalone controller(dir_.path(), testing::RealController);
  ASSERT_TRUE(controller.started()) << controller.program().log();
  for (const char* node : kHosts) {
    testing::MakeNode(controller.api(), node);
    testing::RenewLease(controller.api(), node, SystemClock().WallNow());
  }
  Buyer buyer(dir_.path());
  std::string offering;
  ASSERT_TRUE(controller.Eventually([&] { return !(offering = buyer.Offering()).empty(); }));
  first = buyer.Buy(offering, "first").value("capacityReservationId", "");
  ASSERT_NE(first, "") << controller.program().log();
  FillUp();
  // Their agents' part: what RocksDB has reserved may last longer than a node may be silent.
  for (int i = 0; PutMap(controller.api(), fmt::format("m{}", i), 100'000) == 201; ++i) {
    for (const char* node : kHosts) {
      testing::TryRenewLease(controller.api(), node, SystemClock().WallNow());
    }
  }
  // The disk is full until both are answered.
  for (const char* token : {"second", "third"}) {
    const Json refused = buyer.Buy(offering, token);
    EXPECT_EQ(refused.value("status", 0), 503) << refused.dump();
    EXPECT_THAT(refused.value("detail", ""), HasSubstr("the journal cannot be written now"));
  }
  EXPECT_EQ(buyer.Blocks().size(), 1u) << "it is shown before it is durable";
  if (killed) {
    controller.program().Kill(SIGKILL);
    controller.program().Wait();
    fs::remove(filler());
  } else {
    fs::remove(filler());
    ASSERT_TRUE(controller.Eventually([&] {
      return buyer.Buy(offering, "second").contains("capacityReservationId");
    })) << controller.program().log();
    controller.program().Kill(SIGKILL);
    controller.program().Wait();
  }
  Standalone again(dir_.path(), testing::RealController);
  ASSERT_TRUE(again.started()) << again.program().log();
  // They have no agent, and on a slow machine have been silent for too long.
  for (const char* node : kHosts) {
    testing::RenewLease(again.api(), node, SystemClock().WallNow());
    testing::SayReady(again.api(), node);
  }
  Buyer returns(dir_.path());
  ASSERT_TRUE(again.Eventually([&] { return !returns.Blocks().empty(); }));
  const Json repeated = returns.Buy(offering, "second");
  EXPECT_NE(repeated.value("capacityReservationId", ""), "") << repeated.dump();
  EXPECT_EQ(returns.Buy(offering, "first").value("capacityReservationId", ""), first);
  EXPECT_EQ(returns.Blocks().size(), 2u);
  EXPECT_EQ(returns.Buy(offering, "third").value("code", ""),
            "InvalidCapacityBlockOfferingIdExpired");
  again.program().Kill(SIGTERM);
  EXPECT_EQ(again.program().Wait(), 0);
}
INSTANTIATE_TEST_SUITE_P(WithAndWithoutAKill, FullDisk, ::testing::Bool(), [](const auto& test) {
  return test.param ? "KilledWhileItWaits" : "ThereIsRoomAgain";
});

TEST(BackupOfARunningController, IsRestoredWithEveryGangWholeAndUnderNewVersions) {
  const TempDir dir;
  const TempDir other;
  const std::string file = other.path() + "/backup";
  {
    Standalone first(dir.path(), testing::RealController);
    ASSERT_TRUE(first.started()) << first.program().log();
    for (const char* node : {"a", "b", "c", "d"}) testing::MakeNode(first.api(), node);
    testing::MakeTemplate(first.api(), 16);
    const std::string ports = *ReadFile(dir.path() + "/ports");
    const std::size_t admin = ports.find("adminAddress: ") + 14;
    for (const char* gang : {"g0", "g1"}) testing::MakeGang(first.api(), gang);
    ASSERT_TRUE(first.Eventually([&] { return testing::BoundPods(first.api(), "g1") == 2; }));
    std::jthread load([&](const std::stop_token& ended) {
      for (int i = 2; !ended.stop_requested(); ++i) {
        testing::MakeGang(first.api(), fmt::format("g{}", i));
        PutMap(first.api(), fmt::format("m{}", i), 50'000);
      }
    });
    const End backup =
        RunToEnd({Bin("controller"), "backup", "--admin-url",
                  "http://" + ports.substr(admin, ports.find('\n', admin) - admin), file});
    load.request_stop();
    EXPECT_EQ(backup.status, 0) << backup.said;
    EXPECT_EQ(fs::status(file).permissions(), fs::perms(0600));
  }
  const std::string data = other.path() + "/data";
  const End restored = RunToEnd({Bin("controller"), "restore", file, "--data-dir", data});
  EXPECT_EQ(restored.status, 0) << restored.said;
  const End twice = RunToEnd({Bin("controller"), "restore", file, "--data-dir", data});
  EXPECT_EQ(twice.status, 1);
  EXPECT_THAT(twice.said, HasSubstr("is not empty"));
  Standalone second(other.path(), testing::RealController);
  ASSERT_TRUE(second.started()) << second.program().log();
  EXPECT_TRUE(second.Eventually([&] { return testing::BoundPods(second.api(), "g1") == 2; }));
  for (const Json& gang : testing::List(second.api(), testing::kGangs)) {
    const std::string name = gang.at("metadata").at("name");
    EXPECT_THAT(testing::BoundPods(second.api(), name), AnyOf(0, 2)) << name;
  }
  EXPECT_EQ(PutMap(second.api(), "after"), 201);
  const Json after = ParseJson(Ask(second.api(), std::string(kMaps) + "/after").substr(4));
  EXPECT_GT(std::stoll(after.at("metadata").at("resourceVersion").get<std::string>()),
            1'000'000'000'000);
}

}  // namespace
}  // namespace tahoma
