// The standalone API around the core, and the core's loop on this API: the objects of a first
// start, the folder after a bad start, and a broken journal.

#include "controller/app/standalone.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>

#include "controller/reserve/search.h"
#include "controller/run/core_loop.h"
#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/kube/kubeconfig.h"
#include "tests/integration/standalone.h"
#include "tests/support/intercepted_transport.h"
#include "tests/support/memory_journal.h"
#include "tests/support/temp_dir.h"

namespace tahoma::controller {
namespace {

namespace fs = std::filesystem;
using json = Json;
using std::chrono::seconds;
using ::testing::HasSubstr;

constexpr const char* kChipClass = "/apis/resource.k8s.io/v1/deviceclasses/neuron.aws.com";

class StandaloneTest : public ::testing::Test {
 protected:
  StandaloneTest() {
    options_.standalone = true;
    options_.data_dir = dir_.path() + "/data";
    options_.listen_address = "127.0.0.1:0";
    options_.crd_dir = testing::kCrdFolder;
  }
  absl::Status Open() {
    auto opened = StandaloneApi::Open(options_, {}, clock_, metrics_);
    if (!opened.ok()) return opened.status();
    api_ = *std::move(opened);
    return absl::OkStatus();
  }
  json Get(const std::string& path) {
    const auto answer = api_->transport().Send({.target = path});
    return answer.ok() ? ParseJson(answer->body) : json();
  }

  testing::TempDir dir_;
  SystemClock clock_;
  rest::Metrics metrics_;
  Options options_;
  std::unique_ptr<StandaloneApi> api_;
};

TEST_F(StandaloneTest, AStartInstallsTheCrdsAndTheDeviceClasses) {
  ASSERT_EQ(Open(), absl::OkStatus());
  EXPECT_THAT(Get(kChipClass)["spec"]["selectors"][0]["cel"]["expression"].get<std::string>(),
              HasSubstr("neuron_device"));
  EXPECT_EQ(Get("/apis/resource.k8s.io/v1/deviceclasses")["items"].size(), 5U);
  EXPECT_EQ(Get("/apis/resource.k8s.io/v1/deviceclasses/neuron.tahoma.dev")["spec"]
                                                                           ["extendedResourceName"],
            "aws.amazon.com/neuron");
  EXPECT_EQ(Get(testing::kGangs)["kind"], "GangList");
}

TEST_F(StandaloneTest, ADeviceClassThatSomebodyChangedStaysSo) {
  ASSERT_EQ(Open(), absl::OkStatus());
  const json labels = {{"metadata", {{"labels", {{"mine", "yes"}}}}}};
  ASSERT_EQ(testing::Send(api_->transport(), "PATCH", kChipClass, labels), 200);
  const std::string uid = Get(kChipClass)["metadata"]["uid"];
  api_.reset();
  ASSERT_EQ(Open(), absl::OkStatus());
  EXPECT_EQ(Get(kChipClass)["metadata"]["labels"]["mine"], "yes");
  EXPECT_EQ(Get(kChipClass)["metadata"]["uid"], uid);
}

TEST_F(StandaloneTest, WrongOptionsAreFoundBeforeAnythingIsWritten) {
  options_.listen_address = "0.0.0.0:0";
  EXPECT_THAT(Message(Open()), HasSubstr("would be open to everybody who can reach it"));
  options_.listen_address = "127.0.0.1";
  EXPECT_THAT(Message(Open()), HasSubstr("listenAddress: \"127.0.0.1\" is not an address"));
  options_.listen_address = "127.0.0.1:0";
  options_.crd_dir = dir_.path() + "/none";
  EXPECT_EQ(Message(Open()), "crdDir " + options_.crd_dir + ": No such file or directory");
  EXPECT_FALSE(fs::exists(options_.data_dir));
}

TEST_F(StandaloneTest, AFileThatIsNotACrdIsNamed) {
  options_.crd_dir = dir_.path() + "/crds";
  fs::create_directories(options_.crd_dir);
  std::ofstream(options_.crd_dir + "/x.yaml") << "kind: Pod\napiVersion: v1\n";
  EXPECT_THAT(Message(Open()), ::testing::StartsWith(options_.crd_dir + "/x.yaml: "));
}

TEST_F(StandaloneTest, TheAddressIsTheBoundOne) {
  ASSERT_EQ(Open(), absl::OkStatus());
  EXPECT_FALSE(api_->address().ends_with(":0"));
  EXPECT_EQ(api_->url(), "http://" + api_->address());
}

// ---- The kubeconfig of a standalone controller --------------------------------------------------

TEST(KubeconfigTextTest, IsReadAsWrittenByAnyClient) {
  const testing::TempDir dir;
  const auto write = [&](const std::string& name, const std::string& text) {
    std::ofstream(dir.path() + "/" + name) << text;
    return dir.path() + "/" + name;
  };
  const std::string token = write("token", "secret\n");
  const std::string ca = write("ca.pem", "not read here\n");
  const std::string text = KubeconfigText(
      {.url = "https://127.0.0.1:1", .ca_file = ca, .token_file = token, .token = "secret"});
  const json config = ParseJson(text);
  EXPECT_EQ(config["users"][0]["user"], json({{"tokenFile", token}, {"token", "secret"}}));
  EXPECT_EQ(config["current-context"], "tahoma");
  const json cluster = config["clusters"][0]["cluster"];
  EXPECT_EQ(cluster["certificate-authority"], ca);
  const auto access = kube::LoadKubeconfig(write("kubeconfig", text));
  ASSERT_TRUE(access.ok()) << access.status();
  EXPECT_EQ(access->server, "https://127.0.0.1:1");
  EXPECT_EQ(access->token_file, token);
  EXPECT_EQ(access->ca_pem, "not read here\n");
}

TEST(KubeconfigTextTest, WithoutFilesItNamesNone) {
  const json config =
      ParseJson(KubeconfigText({.url = "http://a:1", .ca_file = "", .token_file = ""}));
  EXPECT_FALSE(config["clusters"][0]["cluster"].contains("certificate-authority"));
  EXPECT_EQ(config["users"][0]["user"], json::object());
}

TEST(KubeconfigTextTest, PathsAreAbsoluteWhereverTheControllerWasStarted) {
  const json config =
      ParseJson(KubeconfigText({.url = "http://a:1", .ca_file = "ca.pem", .token_file = "token"}));
  EXPECT_EQ(config["clusters"][0]["cluster"]["certificate-authority"],
            fs::absolute("ca.pem").string());
  EXPECT_EQ(config["users"][0]["user"]["tokenFile"], fs::absolute("token").string());
}

// ---- The core's loop ---------------------------------------------------------------------------

class CoreLoopTest : public StandaloneTest {
 protected:
  void SetUp() override {
    ASSERT_EQ(Open(), absl::OkStatus());
    testing::MakeNode(api_->transport(), "node-0");
    testing::MakeTemplate(api_->transport(), testing::kChipsPerNode);
  }
  // Ends as the program does: streams first.
  void End(CoreLoop& loop) {
    api_->EndStreams();
    loop.Stop();
  }
  bool Eventually(const std::function<bool()>& holds) {
    const MonotonicTime end = clock_.MonotonicNow() + seconds(30);
    while (!holds()) {
      if (clock_.MonotonicNow() > end) return false;
      testing::List(api_->transport(), testing::kPods);  // takes a while
    }
    return true;
  }
  bool MakeGangOfOne() {
    return testing::MakeGang(api_->transport(), "train", {.members = 1, .slices = 1});
  }
  CoreLoopOptions Quiet() {
    CoreLoopOptions options = StandaloneApi::LoopOptions();
    options.log = [this](const std::string& line) {
      const std::lock_guard lock(mutex_);
      log_ += line + "\n";
    };
    return options;
  }
  // Returns an order of the loop's first offering, as soon as the loop has one.
  PurchaseOrder OrderOf(const CoreLoop& loop) {
    const auto query =
        CheckQuery({.instance_type = "trn2.48xlarge", .instance_count = 1, .duration_hours = 24},
                   clock_.WallNow());
    SearchAnswer found;
    EXPECT_TRUE(Eventually([&] {
      const auto seen = loop.snapshot();
      found = SearchOfferings(seen->profile, seen->prices, *query, clock_.WallNow());
      return !found.offerings.empty();
    }));
    return {.offering_id = OfferingId(found.offerings.front()),
            .key = {"default", "mine"},
            .token = "t"};
  }
  std::string log() {
    const std::lock_guard lock(mutex_);
    return log_;
  }

  std::mutex mutex_;
  std::string log_;
};

TEST_F(CoreLoopTest, BindsAGangAndShowsItInItsSnapshot) {
  CoreLoop loop(api_->transport(), api_->journal(), clock_, Quiet());
  ASSERT_EQ(loop.Start(), absl::OkStatus());
  ASSERT_TRUE(MakeGangOfOne());
  EXPECT_TRUE(Eventually([&] { return testing::BoundPods(api_->transport(), "train") == 1; }));
  EXPECT_TRUE(Eventually([&] { return loop.snapshot()->counters.gangs_bound == 1; }));
  EXPECT_TRUE(loop.snapshot()->synced);
  EXPECT_EQ(loop.health(), absl::OkStatus());
  End(loop);
  loop.Stop();  // twice is once
}

TEST_F(CoreLoopTest, AJournalThatCannotBeWrittenEndsTheLoopBeforeAnythingIsPublished) {
  MemoryJournal journal;
  journal.FailWrite(1);
  CoreLoop loop(api_->transport(), journal, clock_, Quiet());
  ASSERT_EQ(loop.Start(), absl::OkStatus());
  ASSERT_TRUE(MakeGangOfOne());
  const absl::Status failure = loop.WaitForFailure(seconds(30));
  EXPECT_EQ(Message(failure), "the journal cannot be written: the disk is broken");
  EXPECT_EQ(loop.health(), failure);
  EXPECT_THAT(log(), HasSubstr("the journal cannot be written: the disk is broken"));
  EXPECT_EQ(testing::AllocatedClaims(api_->transport()), 0);
  EXPECT_EQ(testing::BoundPods(api_->transport(), "train"), 0);
  End(loop);
}

TEST_F(CoreLoopTest, AJournalThatBreaksInMidCommitBindsNothingAndTheNextStartFinishes) {
  MemoryJournal journal;
  journal.FailWrite(2);  // Prepared is written, Allocated is not
  {
    CoreLoop loop(api_->transport(), journal, clock_, Quiet());
    ASSERT_EQ(loop.Start(), absl::OkStatus());
    ASSERT_TRUE(MakeGangOfOne());
    EXPECT_FALSE(loop.WaitForFailure(seconds(30)).ok());
    EXPECT_EQ(testing::BoundPods(api_->transport(), "train"), 0) << "not before Allocated";
    End(loop);
  }
  ASSERT_GT(journal.size(), 0U);
  api_.reset();
  ASSERT_EQ(Open(), absl::OkStatus());
  CoreLoop loop(api_->transport(), journal, clock_, Quiet());
  ASSERT_EQ(loop.Start(), absl::OkStatus());
  EXPECT_TRUE(Eventually([&] { return testing::BoundPods(api_->transport(), "train") == 1; }));
  EXPECT_EQ(testing::AllocatedClaims(api_->transport()), 1);
  End(loop);
}

// A leader loses its lease when its purchase is published. It does not know what the new leader has
// made of the purchase, and tells the buyer.
TEST_F(CoreLoopTest, AFormerLeaderAcknowledgesNoPurchase) {
  std::atomic<bool> leads = true;
  testing::InterceptedTransport intercepted(api_->transport());
  intercepted.before = [&](const kube::Request& request) {
    if (request.target.find("/capacityblocks/") != std::string::npos &&
        request.target.find("/status") != std::string::npos) {
      leads = false;
    }
  };
  MemoryJournal journal;
  CoreLoopOptions options = Quiet();
  options.publisher.may_send = [&] { return leads.load(); };
  CoreLoop loop(intercepted, journal, clock_, std::move(options));
  ASSERT_EQ(loop.Start(), absl::OkStatus());
  const PurchaseOrder order = OrderOf(loop);
  const auto unknown = loop.Order(order);
  EXPECT_TRUE(absl::IsUnavailable(unknown.status())) << unknown.status();
  EXPECT_THAT(unknown.status().ToString(), HasSubstr("leads no more"));
  End(loop);
}

// A program that ends because another controller leads waits for its callers: no caller may wait
// for an answer that never comes.
TEST_F(CoreLoopTest, AWaitingOrderEndsWhenOrdersEnd) {
  std::atomic<bool> published = false;
  testing::InterceptedTransport intercepted(api_->transport());
  intercepted.refuse = [&](const kube::Request& request) {
    const bool block =
        request.method != "GET" && request.target.find("/capacityblocks") != std::string::npos;
    if (block) published = true;
    return block;
  };
  MemoryJournal journal;
  CoreLoop loop(intercepted, journal, clock_, Quiet());
  ASSERT_EQ(loop.Start(), absl::OkStatus());
  const PurchaseOrder order = OrderOf(loop);
  absl::Status ended;
  std::thread buyer([&] { ended = loop.Order(order).status(); });
  EXPECT_TRUE(Eventually([&] { return published.load(); }));
  loop.EndOrders();
  buyer.join();
  EXPECT_TRUE(absl::IsUnavailable(ended)) << ended;
  EXPECT_THAT(ended.ToString(), HasSubstr("leads no more"));
  EXPECT_THAT(loop.Order(order).status().ToString(), HasSubstr("is not leading"));
  End(loop);
}

TEST_F(CoreLoopTest, ADamagedJournalStopsTheStart) {
  MemoryJournal journal;
  ASSERT_TRUE(journal.Write({.put = {{.sequence = 1, .bytes = "no record"}}, .drop = {}}).ok());
  CoreLoop loop(api_->transport(), journal, clock_, Quiet());
  const absl::Status started = loop.Start();
  EXPECT_TRUE(absl::IsDataLoss(started)) << started;
}

TEST_F(CoreLoopTest, WaitingForAFailureEndsWithTheLoop) {
  CoreLoop loop(api_->transport(), api_->journal(), clock_, Quiet());
  ASSERT_EQ(loop.Start(), absl::OkStatus());
  EXPECT_EQ(loop.WaitForFailure(std::chrono::milliseconds(1)), absl::OkStatus());
  absl::Status ended = Internal("not yet");
  std::thread waiter([&] { ended = loop.WaitForFailure(seconds(60)); });
  End(loop);
  waiter.join();
  EXPECT_EQ(ended, absl::OkStatus());
}

}  // namespace
}  // namespace tahoma::controller
