// The controller is killed with SIGKILL at every write of a gang's commit, and of a sale of a
// Capacity Block, and started again on its folder: the gang is bound as a whole or not at all, no
// chip stays allocated to nobody, and the block is sold once, to the acknowledged buyer.
//
// In half of the cases a pod goes while no controller runs: then a gang that was not whole must be
// taken back. The undoing is killed at every write, too.
//
// Two nodes of 16 chips; the gang takes all chips: with a leaked claim the next gang would never be
// bound.

#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "controller/apiserver/http/api_server.h"
#include "controller/apiserver/http/in_process_transport.h"
#include "controller/app/offering_key.h"
#include "controller/core/journal/block_record.h"
#include "controller/core/journal/record.h"
#include "controller/core/journal/usage_record.h"
#include "controller/reserve/offering.h"
#include "controller/store/rocks_journal.h"
#include "controller/store/store.h"
#include "lib/base/check.h"
#include "lib/base/clock.h"
#include "lib/base/json.h"
#include "lib/base/rng.h"
#include "lib/base/status.h"
#include "tests/integration/standalone.h"
#include "tests/support/temp_dir.h"

namespace tahoma::testing {
namespace {

constexpr int kMembers = 2;

void CopyFolder(const std::string& from, const std::string& to) {
  std::filesystem::copy(from, to, std::filesystem::copy_options::recursive);
}

// A fleet without gangs, in a folder that tests copy.
class Fleet {
 public:
  explicit Fleet(int nodes) {
    Standalone controller(dir_.path(), RealController);
    TAHOMA_CHECK(controller.started());
    for (int i = 0; i < nodes; ++i) MakeNode(controller.api(), fmt::format("node-{}", i));
    for (const int chips : {8, 16}) MakeTemplate(controller.api(), chips);
    controller.program().Kill(SIGTERM);
    TAHOMA_CHECK(controller.program().Wait() == 0);
  }
  void CopyTo(const std::string& folder) const {
    CopyFolder(dir_.path() + "/data", folder + "/data");
  }
  // The key of the offerings of the fleet's controller, and of all copies.
  controller::OfferingKey key() const {
    TempDir copy;
    CopyTo(copy.path());
    const auto store = controller::Store::Open({.dir = copy.path() + "/data"});
    TAHOMA_CHECK_OK(store.status());
    const auto key = controller::OfferingKeyOf(**store);
    TAHOMA_CHECK_OK(key.status());
    return *key;
  }

 private:
  TempDir dir_;
};

// The folder of a dead controller, opened without a controller.
class Remains {
 public:
  explicit Remains(const std::string& data) {
    auto store = controller::Store::Open({.dir = data});
    TAHOMA_CHECK_OK(store.status());
    store_ = *std::move(store);
    auto server = controller::apiserver::ApiServer::Open(*store_, clock_, {.seed = 7});
    TAHOMA_CHECK_OK(server.status());
    server_ = *std::move(server);
    transport_ =
        std::make_unique<controller::apiserver::InProcessTransport>(*server_, clock_, "crash-test");
  }

  kube::Transport& api() { return *transport_; }

  template <typename Record>
  bool HasRecord() {
    bool found = false;
    controller::RocksJournal journal(*store_);
    TAHOMA_CHECK_OK(journal.Load([&](controller::Sequence, std::string_view bytes) {
      if (controller::IsBlockEntry(bytes) || controller::IsUsageEntry(bytes)) {
        return absl::OkStatus();
      }
      const auto record = controller::DecodeRecord(bytes);
      found = found || (record.ok() && std::holds_alternative<Record>(*record));
      return record.status();
    }));
    return found;
  }

 private:
  const SystemClock clock_;
  std::unique_ptr<controller::Store> store_;
  std::unique_ptr<controller::apiserver::ApiServer> server_;
  std::unique_ptr<controller::apiserver::InProcessTransport> transport_;
};

// Returns the kind of write at which crash-controller died, by its log.
std::string KindOfWrite(const std::string& log) {
  const std::size_t begin = log.rfind("crash: ");  // an earlier life may have logged another
  if (begin == std::string::npos) return "nothing";
  const std::string line = log.substr(begin + 7, log.find('\n', begin) - begin - 7);
  const auto has = [&](const char* text) { return line.find(text) != std::string::npos; };
  if (has("journal")) return line;
  if (has("/binding")) return "bind";
  if (has("/resourceclaims/")) return has("/status") ? "allocate" : "finalizer";
  if (has("/gangs/")) return "gang status";
  if (has("/capacityblocks/")) return has("/status") ? "block status" : "block finalizer";
  if (has("/events")) return "event";
  return line;
}

// Returns the command of a controller that is killed at its n-th write.
Standalone::CommandLine CrashingController(int n, const std::string& when,
                                           const std::string& purpose) {
  return [=](const std::string& data, const std::string& port_file) {
    return std::vector<std::string>{Bin("crash-controller"), data, kCrdFolder, port_file,
                                    std::to_string(n),       when, purpose};
  };
}

class CrashFixture : public ::testing::Test {
 protected:
  // docs/design/0013-decisions.md#a-gang-is-bound-whole
  static bool ExpectOrder(const std::string& data) {
    TempDir copy;
    CopyFolder(data, copy.path() + "/data");
    Remains remains(copy.path() + "/data");
    const int held = HeldClaims(remains.api(), "train");
    const int bound = BoundPods(remains.api(), "train");
    EXPECT_TRUE(held == 0 || remains.HasRecord<controller::GangPrepared>());
    EXPECT_TRUE(bound == 0 || held == kMembers) << bound << " bound with " << held << " claims";
    EXPECT_TRUE(bound == 0 || remains.HasRecord<controller::GangAllocated>());
    const bool whole = remains.HasRecord<controller::GangBound>();
    EXPECT_TRUE(!whole || bound == kMembers);
    return whole;
  }

  // After the restart every pod is there: the gang becomes whole, from any state.
  static void ExpectWhole(Standalone& controller) {
    EXPECT_TRUE(controller.Eventually([&] {
      return BoundPods(controller.api(), "train") == kMembers &&
             HeldClaims(controller.api(), "train") == kMembers;
    })) << controller.program().log();
    EXPECT_EQ(EventsOf(controller.api(), "GangUndone"), 0) << controller.program().log();
  }

  // A pod went while no controller ran: a gang that was not whole is taken back.
  static void ExpectNothing(Standalone& controller) {
    EXPECT_TRUE(controller.Eventually([&] {
      EndDeletedPods(controller.api());
      return BoundPods(controller.api(), "train") == 0 && AllocatedClaims(controller.api()) == 0;
    })) << controller.program().log();
  }

  // All chips can be allocated again.
  static void ExpectNoLeak(Standalone& controller) {
    DeleteGang(controller.api(), "train");
    ASSERT_TRUE(MakeGang(controller.api(), "next"));
    EXPECT_TRUE(controller.Eventually([&] {
      return BoundPods(controller.api(), "next") == kMembers &&
             HeldClaims(controller.api(), "next") == kMembers &&
             AllocatedClaims(controller.api()) == kMembers;
    })) << controller.program().log()
        << List(controller.api(), kClaims).dump(1);
  }
};

class CrashTest : public CrashFixture,
                  public ::testing::WithParamInterface<std::tuple<const char*, const char*, bool>> {
 protected:
  // No kubelet makes the pods of this test ready.
  static bool IsBound(const Json& gang) {
    const Json conditions = gang.value("/status/conditions"_json_pointer, Json::array());
    return std::any_of(conditions.begin(), conditions.end(), [](const Json& condition) {
      return condition.at("type") == "Bound" && condition.at("status") == "True";
    });
  }
  // Runs a commit that ends at the n-th write; returns the write's kind, or nothing when the commit
  // was complete before.
  std::optional<std::string> CrashAt(const Fleet& fleet, int n, bool own_claims) const {
    const auto& [when, purpose, pod_goes] = GetParam();
    TempDir dir;
    fleet.CopyTo(dir.path());
    std::string last;
    {
      Standalone crashing(dir.path(), CrashingController(n, when, purpose));
      EXPECT_TRUE(crashing.started()) << crashing.program().log();
      if (!crashing.started()) return std::nullopt;
      MakeGang(crashing.api(), "train", {.own_claims = own_claims});
      const bool whole = crashing.Eventually([&] {
        const Json gangs = List(crashing.api(), kGangs);
        return gangs.size() == 1 && IsBound(gangs[0]);
      });
      if (whole) return std::nullopt;
      if (!crashing.program().WaitEnd(std::chrono::milliseconds(0))) {
        ADD_FAILURE() << "write " << n << " " << when << " (" << purpose
                      << ") neither comes nor is the "
                      << "gang whole: " << List(crashing.api(), kGangs).dump(1)
                      << List(crashing.api(), kPods).dump(1)
                      << List(crashing.api(), kClaims).dump(1) << crashing.program().log();
        return std::nullopt;
      }
      EXPECT_EQ(crashing.program().Wait(), std::nullopt) << crashing.program().log();
      last = KindOfWrite(crashing.program().log());
    }
    SCOPED_TRACE(fmt::format("killed {} write {}: {}", when, n, last));
    const bool whole = ExpectOrder(dir.path() + "/data");
    if (pod_goes) {
      Remains remains(dir.path() + "/data");
      Send(remains.api(), "DELETE", std::string(kPods) + "/train-0?gracePeriodSeconds=0", nullptr);
    }
    Standalone controller(dir.path(), RealController);
    EXPECT_TRUE(controller.started()) << controller.program().log();
    if (!controller.started()) return std::nullopt;
    if (!pod_goes) {
      ExpectWhole(controller);
    } else if (!whole) {
      ExpectNothing(controller);
    }
    ExpectNoLeak(controller);
    return last;
  }
};

// Claims made by hand have no finalizer yet; claims of templates have the finalizer from the start.
TEST_P(CrashTest, GangIsWholeOrAbsentAfterAKillAtAnyWrite) {
  const bool notices = std::get<1>(GetParam()) == std::string("notice");
  const Fleet fleet(kMembers);
  for (const bool own_claims : {true, false}) {
    if (notices && own_claims) continue;
    SCOPED_TRACE(own_claims ? "own claims" : "claims of a template");
    std::multiset<std::string> seen;
    for (int n = 1; !HasFailure(); ++n) {
      const std::optional<std::string> last = CrashAt(fleet, n, own_claims);
      if (!last) break;
      fmt::print("killed {} write {}: {}\n", std::get<0>(GetParam()), n, *last);
      seen.insert(*last);
      ASSERT_LT(n, 40) << "the commit does not end";
    }
    if (notices) continue;
    // On a loaded machine an answer may be late and its write repeated. All later writes then have
    // other numbers: a record may be met twice.
    EXPECT_TRUE(seen.contains("journal GangPrepared"));
    EXPECT_TRUE(seen.contains("journal GangAllocated"));
    EXPECT_TRUE(seen.contains("journal GangBound"));
    EXPECT_EQ(seen.contains("finalizer"), own_claims);
    EXPECT_GE(seen.count("allocate"), 1U);
    EXPECT_GE(seen.count("bind"), 1U);
  }
}

std::string NameOfCase(const ::testing::TestParamInfo<CrashTest::ParamType>& info) {
  const auto& [when, purpose, pod_goes] = info.param;
  return fmt::format("{}_{}{}", when, purpose, pod_goes ? "_pod_goes" : "");
}

INSTANTIATE_TEST_SUITE_P(All, CrashTest,
                         ::testing::Combine(::testing::Values("before", "after"),
                                            ::testing::Values("commit", "notice"),
                                            ::testing::Bool()),
                         NameOfCase);

class CrashInUndoTest : public CrashFixture, public ::testing::WithParamInterface<const char*> {
 protected:
  // Leaves a gang whose claims are all held in the folder of a dead controller; one of its nodes is
  // gone.
  static void LeaveHalfAGang(const std::string& folder) {
    constexpr int kAllHeld = 4;  // after GangPrepared and an allocation for each of two pods
    {
      Standalone crashing(folder, CrashingController(kAllHeld, "before", "commit"));
      ASSERT_TRUE(crashing.started()) << crashing.program().log();
      MakeGang(crashing.api(), "train");
      ASSERT_EQ(crashing.program().Wait(), std::nullopt) << crashing.program().log();
    }
    Remains remains(folder + "/data");
    ASSERT_EQ(HeldClaims(remains.api(), "train"), kMembers);
    const std::string node =
        List(remains.api(), kClaims)[0]["status"]["allocation"]["devices"]["results"][0]["pool"];
    ASSERT_EQ(Send(remains.api(), "DELETE", "/api/v1/nodes/" + node, nullptr), 200);
  }

  // Runs the next start, which ends at the n-th write; returns the write's kind, or nothing when
  // the gang was whole on other nodes before.
  static std::optional<std::string> CrashAt(const Fleet& fleet, int n) {
    TempDir dir;
    fleet.CopyTo(dir.path());
    LeaveHalfAGang(dir.path());
    if (HasFatalFailure()) return std::nullopt;
    std::string last;
    {
      Standalone crashing(dir.path(), CrashingController(n, GetParam(), "commit"));
      // The program may end before it says where it listens.
      const bool whole = crashing.started() && crashing.Eventually([&] {
        return BoundPods(crashing.api(), "train") == kMembers;
      });
      EXPECT_FALSE(whole) << "write " << n << " does not come";
      if (whole) return std::nullopt;
      EXPECT_EQ(crashing.program().Wait(), std::nullopt) << crashing.program().log();
      last = KindOfWrite(crashing.program().log());
    }
    SCOPED_TRACE(fmt::format("killed {} write {}: {}", GetParam(), n, last));
    Standalone controller(dir.path(), RealController);
    EXPECT_TRUE(controller.started()) << controller.program().log();
    if (!controller.started()) return std::nullopt;
    // Taken back; or whole on other nodes already, when the kill came after the undoing.
    EXPECT_TRUE(controller.Eventually([&] {
      return AllocatedClaims(controller.api()) == 0 ||
             BoundPods(controller.api(), "train") == kMembers;
    })) << controller.program().log();
    ExpectNoLeak(controller);
    return last;
  }
};

TEST_P(CrashInUndoTest, AGangThatIsTakenBackHoldsNothingAfterAKillAtAnyWrite) {
  const Fleet fleet(kMembers + 1);
  std::multiset<std::string> seen;
  for (int n = 1; !HasFailure() && !seen.contains("journal GangPrepared"); ++n) {
    const std::optional<std::string> last = CrashAt(fleet, n);
    if (!last) break;
    fmt::print("killed {} write {}: {}\n", GetParam(), n, *last);
    seen.insert(*last);
    ASSERT_LT(n, 20) << "the undoing does not end";
  }
  EXPECT_EQ(seen.count("journal GangUndoing"), 1U);
  // A claim may be done before the other is begun.
  EXPECT_EQ(seen.count("allocate") + seen.count("finalizer"), 4U) << "both claims are cleared";
  EXPECT_TRUE(seen.contains("allocate"));
  EXPECT_EQ(seen.count("journal"), 1U) << "the run's records are dropped";
}

INSTANTIATE_TEST_SUITE_P(All, CrashInUndoTest, ::testing::Values("before", "after"),
                         [](const auto& when) { return std::string(when.param); });

constexpr const char* kBlocks = "/apis/tahoma.dev/v1alpha1/namespaces/default/capacityblocks";

class CrashInSaleTest : public CrashFixture, public ::testing::WithParamInterface<const char*> {
 protected:
  // The only node of the fleet for a day.
  static int Buy(kube::Transport& api, const std::string& name,
                 const controller::OfferingKey& key) {
    using std::chrono::hours;
    const controller::Slot start = controller::SlotOf(SystemClock().WallNow() + hours(48));
    const controller::Product& product = *controller::FindProduct("trn2.48xlarge");
    const std::string offering = controller::OfferingId({.product = &product,
                                                         .count = 1,
                                                         .zone = "tahoma-1a",
                                                         .start = controller::StartOf(start),
                                                         .end = controller::StartOf(start + 1),
                                                         .rate = product.rate},
                                                        key);
    return Send(api, "POST", kBlocks,
                {{"apiVersion", "tahoma.dev/v1alpha1"},
                 {"kind", "CapacityBlock"},
                 {"metadata", {{"name", name}}},
                 {"spec", {{"capacityBlockOfferingId", offering}}}});
  }
  static Json StatusOf(kube::Transport& api, const std::string& name) {
    for (const Json& block : List(api, kBlocks)) {
      if (block.at("metadata").at("name") == name) return block.value("status", Json::object());
    }
    return Json::object();
  }
  static std::string Reservation(const Json& status) {
    return status.contains("state") ? status.at("capacityReservationIds").at(0).get<std::string>()
                                    : "";
  }

  // Runs a sale that ends at the n-th write; returns the write's kind, or nothing when the sale was
  // complete before.
  std::optional<std::string> CrashAt(const Fleet& fleet, int n) const {
    TempDir dir;
    fleet.CopyTo(dir.path());
    const controller::OfferingKey key = fleet.key();
    std::string last;
    {
      Standalone crashing(dir.path(), CrashingController(n, GetParam(), "commit"));
      EXPECT_TRUE(crashing.started()) << crashing.program().log();
      if (!crashing.started()) return std::nullopt;
      const int bought = Buy(crashing.api(), "mine", key);
      bool whole = false;
      crashing.Eventually([&] {
        if (Reservation(StatusOf(crashing.api(), "mine")).empty()) return false;
        // Late writes are written at once.
        whole = !crashing.program().WaitEnd(std::chrono::milliseconds(500));
        return true;
      });
      // The block is stored before the controller's own writes about it: the controller may be
      // killed before it has answered.
      EXPECT_TRUE(bought == 201 || (bought == 0 && !whole)) << bought;
      if (whole) return std::nullopt;
      EXPECT_EQ(crashing.program().Wait(), std::nullopt) << crashing.program().log();
      last = KindOfWrite(crashing.program().log());
    }
    SCOPED_TRACE(fmt::format("killed {} write {}: {}", GetParam(), n, last));
    const std::string shown = [&] {
      Remains remains(dir.path() + "/data");
      return Reservation(StatusOf(remains.api(), "mine"));
    }();
    Standalone controller(dir.path(), RealController);
    EXPECT_TRUE(controller.started()) << controller.program().log();
    if (!controller.started()) return std::nullopt;
    EXPECT_EQ(Buy(controller.api(), "others", key), 201);
    EXPECT_TRUE(controller.Eventually([&] {
      return !Reservation(StatusOf(controller.api(), "mine")).empty() &&
             StatusOf(controller.api(), "others").contains("reason");
    })) << controller.program().log()
        << List(controller.api(), kBlocks).dump(1);
    EXPECT_TRUE(shown.empty() || Reservation(StatusOf(controller.api(), "mine")) == shown);
    return last;
  }
};

TEST_P(CrashInSaleTest, ABlockIsSoldOnceAfterAKillAtAnyWrite) {
  const Fleet fleet(1);
  std::multiset<std::string> seen;
  for (int n = 1; !HasFailure(); ++n) {
    const std::optional<std::string> last = CrashAt(fleet, n);
    if (!last) break;
    fmt::print("killed {} write {}: {}\n", GetParam(), n, *last);
    seen.insert(*last);
    ASSERT_LT(n, 20) << "the sale does not end";
  }
  EXPECT_TRUE(seen.contains("journal BlockChanged"));
  EXPECT_TRUE(seen.contains("block finalizer"));
  EXPECT_TRUE(seen.contains("block status"));
}

INSTANTIATE_TEST_SUITE_P(All, CrashInSaleTest, ::testing::Values("before", "after"),
                         [](const auto& when) { return std::string(when.param); });

// Reads the pods' watch until `events` events have come, or no more come because all pods were
// bound in an earlier life; then kills.
void KillAfterEvents(Standalone& controller, std::uint64_t events) {
  std::uint64_t seen = 0;
  (void)controller.api().Stream(
      {.target = std::string(kPods) + "?watch=true&resourceVersion=0"},
      [&](std::string_view) { return ++seen < events; }, std::chrono::seconds(1));
  controller.program().Kill(SIGKILL);
  controller.program().Wait();
}

TEST(CrashAtRandomTest, EveryGangIsBoundAfterKillsFromOutside) {
  constexpr int kGangsMade = 20;
  const GangShape quarter{.members = 2, .slices = 2, .shape = "4x2", .chips_per_pod = 8};
  const Fleet fleet(kGangsMade);
  TempDir dir;
  fleet.CopyTo(dir.path());
  const std::uint64_t seed = SeedFromMachine();
  SCOPED_TRACE(fmt::format("seed {}", seed));
  Rng rng(seed);
  const auto make_all = [&](kube::Transport& api) {
    for (int i = 0; i < kGangsMade; ++i) {
      if (!MakeGang(api, fmt::format("g{}", i), quarter)) return false;
    }
    return true;
  };
  for (int round = 0; round < 4; ++round) {
    Standalone controller(dir.path(), RealController);
    ASSERT_TRUE(controller.started()) << controller.program().log();
    // Each gang has two pods; each is seen created and bound at least.
    const std::uint64_t events = 1 + rng.Below(4 * kGangsMade);
    std::jthread maker([&] { make_all(controller.api()); });
    KillAfterEvents(controller, events);
  }
  Standalone controller(dir.path(), RealController);
  ASSERT_TRUE(controller.started()) << controller.program().log();
  ASSERT_TRUE(make_all(controller.api()));
  EXPECT_TRUE(controller.Eventually([&] {
    int bound = 0;
    for (const Json& pod : List(controller.api(), kPods)) {
      bound += pod["spec"].contains("nodeName") ? 1 : 0;
    }
    return bound == 2 * kGangsMade && AllocatedClaims(controller.api()) == 2 * kGangsMade;
  })) << controller.program().log();
}

}  // namespace
}  // namespace tahoma::testing
