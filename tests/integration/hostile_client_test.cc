// Hostile clients against the real controller, while it schedules gangs: no answer is a mistake of
// ours, gangs are still bound, neither memory nor threads nor descriptors grow, the program ends
// when told to, and everything acknowledged is there afterwards.
//
//   hostile_client_test                          a minute from a fresh seed, which is printed
//   hostile_client_test --seconds 15 --seed 7    15 seconds of seed 7

#include "tests/integration/hostile_client.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "lib/base/clock.h"
#include "lib/base/json.h"
#include "lib/base/rng.h"
#include "tests/integration/standalone.h"
#include "tests/support/patience.h"
#include "tests/support/temp_dir.h"

namespace tahoma::testing {

// The options of the command line.
std::uint64_t seed_of_run = 0;
int seconds_of_run = 60;

namespace {

using std::chrono::steady_clock;

constexpr int kHostileClients = 3;
constexpr int kNodes = 4;       // for the gangs of this test alone
constexpr int kTheirNodes = 2;  // for whatever the hostile clients want to run
constexpr const char* kOurs = "tests.tahoma.dev/ours";
constexpr int kMaps = 8;
constexpr std::chrono::seconds kEndsWithin{10};
// The allowance for a sanitizer, which keeps freed memory and slows programs down.
constexpr std::size_t kMegabytesMore = kSanitized ? 1500 : 200;
constexpr std::size_t kThreadsMore = 64;
constexpr std::size_t kFilesMore = 64;

std::string MapPath(int index) {
  return fmt::format("/api/v1/namespaces/default/configmaps/book-{}", index);
}

// The resources that a process uses, from /proc.
struct Usage {
  std::size_t megabytes = 0;
  std::size_t threads = 0;
  std::size_t files = 0;
};
Usage UsageOf(pid_t pid) {
  const std::string folder = "/proc/" + std::to_string(pid);
  Usage usage;
  std::ifstream status(folder + "/status");
  for (std::string key; status >> key;) {
    if (key == "VmRSS:") status >> usage.megabytes;
    if (key == "Threads:") status >> usage.threads;
  }
  usage.megabytes /= 1024;
  for ([[maybe_unused]] const auto& file : std::filesystem::directory_iterator(folder + "/fd")) {
    ++usage.files;
  }
  return usage;
}

// Counts in ConfigMaps and remembers the acknowledged counts.
class Bookkeeper {
 public:
  explicit Bookkeeper(kube::Transport& api) : api_(api) {
    for (int i = 0; i < kMaps; ++i) {
      const Json map = {{"metadata", {{"name", fmt::format("book-{}", i)}}}};
      EXPECT_EQ(Send(api_, "POST", "/api/v1/namespaces/default/configmaps", map), 201);
    }
  }
  void Write() {
    const int map = static_cast<int>(++count_ % kMaps);
    const std::string value = std::to_string(count_);
    const Json patch = {{"data", {{"count", value}}}};
    if (Send(api_, "PATCH", MapPath(map), patch) == 200) acknowledged_[map] = value;
  }
  const std::map<int, std::string>& acknowledged() const { return acknowledged_; }

 private:
  kube::Transport& api_;
  std::uint64_t count_ = 0;
  std::map<int, std::string> acknowledged_;
};

// A controller whose watch history is full soon: later growth is no cache.
std::vector<std::string> ControllerOfShortHistory(const std::string& data,
                                                  const std::string& port_file) {
  std::vector<std::string> command = RealController(data, port_file);
  command.insert(command.end(), {"--watch-history-bytes", "2M"});
  return command;
}

class HostileClientTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::printf("repeat with: hostile_client_test --seconds %d --seed %llu\n", seconds_of_run,
                static_cast<unsigned long long>(seed_of_run));
    std::fflush(stdout);
    controller_ = std::make_unique<Standalone>(dir_.path(), ControllerOfShortHistory);
    ASSERT_TRUE(controller_->started()) << controller_->program().log();
    for (int i = 0; i < kNodes + kTheirNodes; ++i) {
      MakeNode(api(), NodeName(i));
      if (i < kNodes) Taint(api(), NodeName(i), kOurs);
    }
    RenewLeases();
    MakeTemplate(api(), kChipsPerNode);
    const Json own = {{"metadata", {{"name", kHostileNamespace}}}};
    ASSERT_EQ(Send(api(), "POST", "/api/v1/namespaces", own), 201);
    port_ = std::atoi(controller_->address().substr(controller_->address().rfind(':') + 1).c_str());
  }
  kube::Transport& api() { return controller_->api(); }
  static std::string NodeName(int index) { return fmt::format("node-{}", index); }
  void RenewLeases() {
    const WallTime now = SystemClock().WallNow();
    for (int i = 0; i < kNodes + kTheirNodes; ++i) RenewLease(api(), NodeName(i), now);
  }
  bool MakeOurGang(const std::string& name) { return MakeGang(api(), name, {.tolerates = kOurs}); }

  std::unique_ptr<HostileClient> Client(int index) const {
    std::vector<std::string> theirs = {"/api/v1/nodes/node-0"};
    for (int i = 0; i < kMaps; ++i) theirs.push_back(MapPath(i));
    for (int i = 0; i < 4; ++i) {
      theirs.push_back(fmt::format("{}/train-{}", kGangs, i));
      theirs.push_back(fmt::format("{}/train-{}-0", kPods, i));
    }
    return std::make_unique<HostileClient>(
        HostileClient::Options{.port = port_,
                               .seed = seed_of_run + static_cast<std::uint64_t>(index),
                               .theirs = std::move(theirs)});
  }

  // Makes gangs one after the other, and deletes each when bound. Returns their number.
  int BindGangs(steady_clock::time_point until) {
    int bound = 0;
    while (steady_clock::now() < until) {
      const std::string name = fmt::format("train-{}", bound % 4);
      RenewLeases();
      EXPECT_TRUE(MakeOurGang(name)) << controller_->program().log();
      EXPECT_TRUE(controller_->Eventually([&] { return BoundPods(api(), name) == 2; }))
          << "gang " << bound << " is not bound";
      if (::testing::Test::HasFailure()) return bound;
      ++bound;
      DeleteGang(api(), name);
      EXPECT_TRUE(controller_->Eventually([&] { return HeldClaims(api(), name) == 0; }));
    }
    return bound;
  }

  TempDir dir_;
  std::unique_ptr<Standalone> controller_;
  int port_ = 0;
};

TEST_F(HostileClientTest, HurtsNobodyButItself) {
  Bookkeeper books(api());
  std::vector<std::unique_ptr<HostileClient>> clients;
  for (int i = 0; i < kHostileClients; ++i) clients.push_back(Client(i));
  // Caches, pools and the history for watches have their first contents.
  for (auto& client : clients) {
    for (int i = 0; i < 50; ++i) client->Act();
  }
  const Usage before = UsageOf(controller_->program().pid());

  std::atomic<bool> done = false;
  std::vector<std::thread> threads;
  for (auto& client : clients) {
    threads.emplace_back([&] {
      constexpr int kActsBetween = 20;
      for (int i = 0; !done; ++i) {
        client->Act();
        if (i % kActsBetween == 0) client->AskPlainly();
      }
    });
  }
  threads.emplace_back([&] {
    while (!done) books.Write();
  });
  const int bound = BindGangs(steady_clock::now() + std::chrono::seconds(seconds_of_run));
  done = true;
  for (std::thread& thread : threads) thread.join();

  std::uint64_t acts = 0;
  for (const auto& client : clients) {
    acts += client->acts();
    for (const std::string& complaint : client->complaints()) ADD_FAILURE() << complaint;
  }
  std::printf("%llu hostile acts, %d gangs bound, %zu counts acknowledged\n",
              static_cast<unsigned long long>(acts), bound, books.acknowledged().size());
  EXPECT_GT(bound, 0);
  EXPECT_EQ(books.acknowledged().size(), static_cast<std::size_t>(kMaps));

  // Idle connections end by themselves.
  EXPECT_TRUE(controller_->Eventually([&] {
    const Usage now = UsageOf(controller_->program().pid());
    return now.threads <= before.threads + kThreadsMore && now.files <= before.files + kFilesMore;
  }));
  EXPECT_LE(UsageOf(controller_->program().pid()).megabytes, before.megabytes + kMegabytesMore);

  controller_->program().Kill(SIGTERM);
  ASSERT_TRUE(controller_->program().WaitEnd(kEndsWithin)) << controller_->program().log();
  EXPECT_EQ(controller_->program().Wait(), 0) << controller_->program().log();

  const auto acknowledged = books.acknowledged();
  controller_ = std::make_unique<Standalone>(dir_.path(), RealController);
  ASSERT_TRUE(controller_->started()) << controller_->program().log();
  for (const auto& [map, count] : acknowledged) {
    const auto answer = api().Send({.target = MapPath(map)});
    ASSERT_TRUE(answer.ok() && answer->status == 200);
    EXPECT_EQ(ParseJson(answer->body)["data"]["count"], count);
  }
  RenewLeases();
  EXPECT_TRUE(MakeOurGang("later"));
  EXPECT_TRUE(controller_->Eventually([&] { return BoundPods(api(), "later") == 2; }));
}

}  // namespace
}  // namespace tahoma::testing

int main(int argc, char** argv) {
  ::testing::InitGoogleMock(&argc, argv);
  tahoma::testing::seed_of_run = tahoma::SeedFromMachine() >> 1U;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string flag = argv[i];
    if (flag == "--seconds") tahoma::testing::seconds_of_run = std::atoi(argv[i + 1]);
    if (flag == "--seed") {
      tahoma::testing::seed_of_run = std::strtoull(argv[i + 1], nullptr, 10);
    }
  }
  return RUN_ALL_TESTS();
}
