#include "dra-plugin/claims/claims.h"

#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <sstream>
#include <utility>

#include "dra-plugin/claims/cdi.h"
#include "lib/base/rng.h"
#include "tests/unit/dra-plugin/claims/fakes.h"

namespace tahoma::dra {
namespace {

// A node with its surroundings; Restart() is a new program over the same disks.
struct World {
  World() {
    node.inventory = TestInventory();
    Restart();
  }
  void Restart() {
    plan.Never();
    claims = std::make_unique<Claims>(
        Claims::Options{
            .node_name = "node-a", .node_socket = "unix:/run/tahoma/node.sock", .boot_id = boot_id},
        state, cdi, node, source, clock);
  }
  // The machine starts again: folders in memory and sim-node's claims are gone.
  void Reboot() {
    boot_id += "+";
    cdi.files.clear();
    node.held.clear();
    Restart();
    EXPECT_EQ(claims->Start(), absl::OkStatus());
    EXPECT_EQ(*claims->Reconcile(), 0u);
  }
  std::vector<std::string> Stale() {
    std::vector<std::string> names;
    const auto stale = claims->FindStale(*claims->Load());
    for (const PreparedClaim& claim : *stale) names.push_back(claim.grant.name);
    return names;
  }
  ClaimRef Add(const std::string& name, const std::vector<std::string>& devices) {
    const ClaimRef ref = {.name_space = "default", .name = name, .uid = "uid-" + name};
    source.objects["default/" + name] = ClaimObject(name, ref.uid, devices).dump();
    return ref;
  }
  CrashPlan plan;
  MemoryFiles state{plan};
  MemoryFiles cdi{plan};
  FakeNode node{plan};
  FakeSource source;
  ManualClock clock{WallTime(std::chrono::seconds(1'000'000))};
  std::string boot_id = "boot";
  std::unique_ptr<Claims> claims;
};

TEST(ClaimsTest, PrepareTellsNodeDiskAndKubelet) {
  World world;
  const ClaimRef claim = world.Add("a", {"neuron-device-0", "neuron-device-1"});
  const auto devices = world.claims->Prepare(claim);
  ASSERT_TRUE(devices.ok()) << devices.status();
  EXPECT_EQ(*devices, (std::vector<PreparedDevice>{
                          {.request = "r", .pool = "node-a", .device = "neuron-device-0"},
                          {.request = "r", .pool = "node-a", .device = "neuron-device-1"}}));
  EXPECT_EQ(world.node.held.at("uid-a").grant.chips, (std::vector<int>{0, 1}));
  const std::string spec = world.cdi.files.at("neuron.aws.com-device_uid-a.json");
  EXPECT_NE(spec.find(world.node.held.at("uid-a").token), std::string::npos);
  EXPECT_NE(spec.find("TAHOMA_NODE_SOCKET=/run/tahoma/pods/workload.sock"), std::string::npos);
  EXPECT_EQ(world.claims->Load()->claims.size(), 1u);
}

TEST(ClaimsTest, ChipsOfTwoCoresAreCountedByTwo) {
  World world;
  world.node.inventory.instance_type = "trn1.32xlarge";
  world.node.inventory.ultra_server.reset();
  ASSERT_TRUE(world.claims->Prepare(world.Add("a", {"neuron-device-1", "neuron-device-2"})).ok());
  const auto spec = [&] { return world.cdi.files.at("neuron.aws.com-device_uid-a.json"); };
  EXPECT_NE(spec().find("NEURON_RT_VISIBLE_CORES=2-5\""), std::string::npos) << spec();
  EXPECT_NE(spec().find("NEURON_LOGICAL_NC_CONFIG=1\""), std::string::npos) << spec();
  // The checkpoint remembers the cores.
  world.Restart();
  world.cdi.files.clear();
  ASSERT_TRUE(world.claims->Prepare(world.Add("a", {"neuron-device-1", "neuron-device-2"})).ok());
  EXPECT_NE(spec().find("NEURON_RT_VISIBLE_CORES=2-5\""), std::string::npos) << spec();
}

TEST(ClaimsTest, TheInventorySaysWhereContainersConnect) {
  World world;
  world.node.inventory.workload_socket = "unix:/run/pods/s";
  ASSERT_TRUE(world.claims->Prepare(world.Add("a", {"neuron-device-0"})).ok());
  EXPECT_NE(world.cdi.files.begin()->second.find("TAHOMA_NODE_SOCKET=/run/pods/s"),
            std::string::npos);
}

// The defect: without a socket for containers, containers got the folder of the plugin's socket,
// where claims are given away.
TEST(ClaimsTest, NoContainerGetsTheFolderOfThePluginsSocket) {
  World world;
  const ClaimRef claim = world.Add("a", {"neuron-device-0"});
  for (const auto& [socket, says] : std::vector<std::pair<std::string, std::string>>{
           {"", "sim-node has no socket for containers: set its workloadSocket"},
           {"unix:/run/tahoma/pods.sock", "are in one folder, which containers would get"},
           {"/run/pods.sock", "are in one folder, which containers would get"}}) {
    world.node.inventory.workload_socket = socket;
    const auto refused = world.claims->Prepare(claim);
    EXPECT_TRUE(absl::IsFailedPrecondition(refused.status())) << refused.status();
    EXPECT_NE(Message(refused.status()).find(says), std::string_view::npos) << refused.status();
  }
  EXPECT_TRUE(world.cdi.files.empty());
  EXPECT_TRUE(world.node.held.empty());
  world.node.inventory.workload_socket = "unix:/run/tahoma/node.sock.pods/workload.sock";
  ASSERT_TRUE(world.claims->Prepare(claim).ok());
  const std::string spec = world.cdi.files.begin()->second;
  EXPECT_NE(spec.find("\"hostPath\": \"/run/tahoma/node.sock.pods\""), std::string::npos) << spec;
}

TEST(ClaimsTest, ARepeatedPrepareGivesTheStoredAnswerWithoutTheApi) {
  World world;
  const ClaimRef claim = world.Add("a", {"neuron-device-0"});
  const auto first = world.claims->Prepare(claim);
  world.Restart();
  world.source.objects.clear();
  world.cdi.files.clear();
  const auto second = world.claims->Prepare(claim);
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(*first, *second);
  EXPECT_EQ(world.source.reads, 1);
  EXPECT_EQ(world.cdi.files.size(), 1u) << "a lost CDI file is written again";
}

TEST(ClaimsTest, UnprepareWorksWhenTheClaimIsGoneFromTheApi) {
  World world;
  const ClaimRef claim = world.Add("a", {"neuron-device-0"});
  ASSERT_TRUE(world.claims->Prepare(claim).ok());
  world.source.objects.clear();
  EXPECT_TRUE(world.claims->Unprepare(claim).ok());
  EXPECT_TRUE(world.claims->Unprepare(claim).ok()) << "and again";
  EXPECT_TRUE(world.node.held.empty());
  EXPECT_TRUE(world.cdi.files.empty());
  EXPECT_TRUE(world.claims->Load()->claims.empty());
}

// Captures the program's log.
class Log {
 public:
  Log() : before_(spdlog::default_logger()) {
    auto sink = std::make_shared<spdlog::sinks::ostream_sink_mt>(text_);
    sink->set_pattern("%v");
    spdlog::set_default_logger(std::make_shared<spdlog::logger>("", std::move(sink)));
  }
  ~Log() { spdlog::set_default_logger(before_); }
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  // The lines since the last call.
  std::string Take() {
    std::string text = text_.str();
    text_.str("");
    return text;
  }

 private:
  std::ostringstream text_;
  const std::shared_ptr<spdlog::logger> before_;
};

TEST(ClaimsTest, EachDecisionIsOneLineWithTheClaimItsDevicesAndItsTime) {
  World world;
  Log log;
  const ClaimRef claim = world.Add("a", {"neuron-device-0", "neuron-device-1"});
  ASSERT_TRUE(world.claims->Prepare(claim).ok());
  EXPECT_EQ(
      log.Take(),
      "prepared claim default/a (uid-a) in 0.0 ms: neuron-device-0, neuron-device-1; LNC 2\n");
  ASSERT_TRUE(world.claims->Prepare(claim).ok());
  EXPECT_EQ(log.Take(),
            "claim default/a (uid-a) is prepared already, confirmed in 0.0 ms: neuron-device-0, "
            "neuron-device-1\n");
  world.Reboot();
  log.Take();
  ASSERT_TRUE(world.claims->Prepare(claim).ok());
  EXPECT_EQ(
      log.Take(),
      "claim default/a (uid-a) is prepared already from before the machine's start, confirmed "
      "in 0.0 ms: neuron-device-0, neuron-device-1\n");
  ASSERT_TRUE(world.claims->Unprepare(claim).ok());
  EXPECT_EQ(log.Take(),
            "unprepared claim default/a (uid-a) in 0.0 ms: neuron-device-0, neuron-device-1\n");
  ASSERT_TRUE(world.claims->Unprepare(claim).ok());
  EXPECT_EQ(log.Take(), "claim default/a (uid-a) is not prepared: nothing to unprepare\n");
  ASSERT_TRUE(world.claims->Prepare(world.Add("n", {"neuron-node"})).ok());
  EXPECT_EQ(log.Take(),
            "prepared claim default/n (uid-n) in 0.0 ms: neuron-node; LNC 2, UltraServer mode 4\n");
}

TEST(ClaimsTest, CountsPreparedClaimsAndDevicesByKind) {
  World world;
  ASSERT_TRUE(world.claims->Prepare(world.Add("a", {"neuron-device-0", "neuron-device-1"})).ok());
  const ClaimRef cores = world.Add("b", {"neuron-core-3-lnc2-1"});
  ASSERT_TRUE(world.claims->Prepare(cores).ok());
  EXPECT_EQ(world.claims->prepared(), (PreparedCount{.claims = 2, .chips = 2, .cores = 1}));
  ASSERT_TRUE(world.claims->Unprepare(cores).ok());
  EXPECT_EQ(world.claims->prepared(), (PreparedCount{.claims = 1, .chips = 2}));
  world.Restart();
  ASSERT_TRUE(world.claims->Start().ok());
  EXPECT_EQ(world.claims->prepared(), (PreparedCount{.claims = 1, .chips = 2}));
}

// The kubelet's event shows the message to the pod's author.
TEST(ClaimsTest, ABadConfigurationIsToldWithTheClaimTheRequestAndTheField) {
  World world;
  const ClaimRef claim = world.Add("a", {"neuron-device-0"});
  Json object = ClaimObject("a", claim.uid, {"neuron-device-0"});
  Json entry = NeuronConfigEntry(4);
  entry["requests"] = {"r"};
  object["status"]["allocation"]["devices"]["config"] = {entry};
  world.source.objects["default/a"] = object.dump();
  EXPECT_EQ(Message(world.claims->Prepare(claim).status()),
            "claim default/a (uid-a): the claim's configuration for request \"r\": "
            "NeuronConfig.logicalNeuronCore is 4; it must be 1 or 2");
  EXPECT_TRUE(world.node.held.empty() && world.cdi.files.empty() && world.state.files.empty())
      << "and nothing is changed";
}

TEST(ClaimsTest, OverlapIsRefusedAndChangesNothing) {
  World world;
  ASSERT_TRUE(world.claims->Prepare(world.Add("a", {"neuron-core-3-lnc2-1"})).ok());
  const std::string before = world.state.files.at("claims.json");
  for (const auto& devices : std::vector<std::vector<std::string>>{
           {"neuron-device-3"}, {"neuron-core-3-lnc2-1"}, {"neuron-node"}}) {
    const auto refused = world.claims->Prepare(world.Add("b", devices));
    EXPECT_EQ(Message(refused.status()),
              "claim default/b (uid-b): chip 3 has cores that claim default/a (uid-a) holds");
  }
  const auto other_lnc = world.claims->Prepare(world.Add("b", {"neuron-core-3-lnc1-0"}));
  EXPECT_EQ(Message(other_lnc.status()),
            "claim default/b (uid-b): chip 3 runs with LNC 2 for claim default/a (uid-a); LNC 1 is "
            "not possible beside it");
  EXPECT_EQ(world.state.files.at("claims.json"), before);
  EXPECT_EQ(world.node.held.size(), 1u);
  EXPECT_EQ(world.cdi.files.size(), 1u);
  EXPECT_TRUE(world.claims->Prepare(world.Add("c", {"neuron-core-3-lnc2-0"})).ok());
}

TEST(ClaimsTest, OverlapIsRefusedEvenWhenSimNodeHasForgottenItsClaims) {
  World world;
  ASSERT_TRUE(world.claims->Prepare(world.Add("a", {"neuron-device-3"})).ok());
  world.node.held.clear();
  EXPECT_TRUE(absl::IsAlreadyExists(
      world.claims->Prepare(world.Add("b", {"neuron-core-3-lnc2-1"})).status()));
  EXPECT_TRUE(world.node.held.empty());
}

TEST(ClaimsTest, AClaimThatIsNotThereIsAnError) {
  World world;
  const auto prepared = world.claims->Prepare({.name_space = "default", .name = "x", .uid = "u"});
  EXPECT_EQ(Message(prepared.status()), "claim default/x (u): resourceclaims \"x\" not found");
}

// Found by fuzzing: such names led to other paths of the API server.
TEST(ClaimsTest, ATextThatIsNoNameIsNotRequested) {
  World world;
  for (const ClaimRef& claim : {ClaimRef{.name_space = "..", .name = "a", .uid = "u"},
                                ClaimRef{.name_space = "default", .name = "", .uid = "u"},
                                ClaimRef{.name_space = "default", .name = "a/b", .uid = "u"},
                                ClaimRef{.name_space = "default", .name = "a", .uid = ""}}) {
    const absl::Status refused = world.claims->Prepare(claim).status();
    EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
    EXPECT_TRUE(Message(refused).starts_with(claim.ToString())) << refused;
  }
  EXPECT_EQ(world.source.reads, 0);
}

TEST(ClaimsTest, AFullDiskUndoesThePreparation) {
  World world;
  world.state.full = true;
  const auto prepared = world.claims->Prepare(world.Add("a", {"neuron-device-0"}));
  EXPECT_EQ(Message(prepared.status()), "claim default/a (uid-a): the disk is full");
  EXPECT_TRUE(world.node.held.empty());
  EXPECT_TRUE(world.cdi.files.empty());
}

TEST(ClaimsTest, ADamagedCheckpointStopsTheStartAndNothingIsChanged) {
  World world;
  ASSERT_TRUE(world.claims->Prepare(world.Add("a", {"neuron-device-0"})).ok());
  world.state.files.at("claims.json").resize(20);
  world.Restart();
  const auto cdi_before = world.cdi.files;
  const absl::Status status = world.claims->Start();
  EXPECT_EQ(Message(status),
            "the checkpoint /dir/claims.json is damaged: the file is not valid JSON. Nothing was "
            "changed. Restore the file, or drain this node's pods that use neuron.aws.com devices "
            "and then delete it");
  EXPECT_EQ(world.cdi.files, cdi_before);
  EXPECT_FALSE(
      world.claims->Unprepare({.name_space = "default", .name = "a", .uid = "uid-a"}).ok());
  EXPECT_EQ(world.node.held.size(), 1u);
}

TEST(ClaimsTest, StartRemovesOrphanCdiFilesOfThisNodeOnly) {
  World world;
  ASSERT_TRUE(world.claims->Prepare(world.Add("a", {"neuron-device-0"})).ok());
  const std::string ours = world.cdi.files.begin()->second;
  std::string theirs = ours;
  theirs.replace(theirs.find("NODE_NAME=node-a"), 16, "NODE_NAME=node-b");
  world.cdi.files[CdiFileName("gone")] = ours;
  world.cdi.files[CdiFileName("of-node-b")] = theirs;
  world.cdi.files["nvidia.com-gpu_x.json"] = "{}";
  world.Restart();
  ASSERT_TRUE(world.claims->Start().ok());
  EXPECT_EQ(world.cdi.files.size(), 3u);
  EXPECT_FALSE(world.cdi.files.contains(CdiFileName("gone")));
}

TEST(ClaimsTest, ANodeThatStartedAgainGetsItsClaimsWithTheirTokens) {
  World world;
  ASSERT_TRUE(world.claims->Prepare(world.Add("a", {"neuron-device-0"})).ok());
  const auto before = world.node.held;
  world.node.held.clear();
  ASSERT_TRUE(world.claims->Reconcile().ok());
  EXPECT_EQ(world.node.held, before);
}

// The defect: the other claims got nothing, and the plugin never followed its node again.
TEST(ClaimsTest, AClaimOnABrokenChipDoesNotKeepOtherClaimsFromTheirChips) {
  World world;
  for (const char* name : {"a", "b", "c"}) {
    const std::string device = fmt::format("neuron-device-{}", name[0] - 'a');
    ASSERT_TRUE(world.claims->Prepare(world.Add(name, {device})).ok());
  }
  const auto before = world.node.held;
  world.node.held.clear();
  world.node.inventory.chips[0].healthy = false;
  world.node.inventory.chips[0].reason = "dma-error";
  EXPECT_EQ(*world.claims->Reconcile(), 1U);
  EXPECT_EQ(world.node.held.size(), 2U);
  EXPECT_FALSE(world.node.held.contains("uid-a"));
  world.node.inventory.chips[0].healthy = true;
  EXPECT_EQ(*world.claims->Reconcile(), 0U);
  EXPECT_EQ(world.node.held, before) << "with the tokens their containers have";
}

TEST(ClaimsTest, UnprepareWhileTheNodeIsAwayIsReleasedLater) {
  World world;
  const ClaimRef claim = world.Add("a", {"neuron-device-0"});
  ASSERT_TRUE(world.claims->Prepare(claim).ok());
  world.node.away = true;
  EXPECT_TRUE(world.claims->Unprepare(claim).ok()) << "a pod's deletion must not wait for it";
  EXPECT_EQ(world.node.held.size(), 1u);
  world.node.away = false;
  EXPECT_TRUE(world.claims->Reconcile().ok());
  EXPECT_TRUE(world.node.held.empty());
}

// Random prepares, unprepares and crashes at any port call. The oracle is the plain list of claims
// with an answered prepare and no answered unprepare.
class RandomRun {
 public:
  explicit RandomRun(std::uint64_t seed) : rng_(seed) {
    for (int i = 0; i < 12; ++i) refs_.push_back(world_.Add(fmt::format("c{}", i), Devices()));
  }

  void Step() {
    const ClaimRef& claim = refs_[rng_.Below(refs_.size())];
    const bool crash = rng_.Chance(1, 3);
    if (crash) world_.plan.CrashAfter(static_cast<int>(rng_.Below(8)));
    if (rng_.Chance(1, 2)) {
      const bool ok = world_.claims->Prepare(claim).ok();
      if (ok) answered_.insert(claim.uid);
    } else if (world_.claims->Unprepare(claim).ok()) {
      answered_.erase(claim.uid);
    } else {
      doubtful_.insert(claim.uid);
    }
    if (crash || rng_.Chance(1, 20)) Crash();
    Check();
  }

 private:
  std::vector<std::string> Devices() {
    std::vector<std::string> out;
    const std::uint64_t kind = rng_.Below(8);
    if (kind == 0) return {"neuron-node"};
    const std::uint64_t chip = rng_.Below(4);
    if (kind < 3) return {fmt::format("neuron-device-{}", chip)};
    const std::uint64_t lnc = 1 + rng_.Below(2);
    return {fmt::format("neuron-core-{}-lnc{}-{}", chip, lnc, rng_.Below(8 / lnc))};
  }

  void Crash() {
    world_.Restart();
    ASSERT_TRUE(world_.claims->Start().ok());
    if (rng_.Chance(1, 3)) world_.node.held.clear();  // sim-node started again too
    ASSERT_TRUE(world_.claims->Reconcile().ok());
  }

  void Check() {
    const Checkpoint checkpoint = *world_.claims->Load();
    for (const std::string& uid : answered_) {
      // A crashed unprepare may have reached the checkpoint.
      ASSERT_TRUE(doubtful_.contains(uid) || checkpoint.claims.contains(uid)) << uid;
    }
    for (auto a = checkpoint.claims.begin(); a != checkpoint.claims.end(); ++a) {
      ASSERT_TRUE(world_.cdi.files.contains(CdiFileName(a->first)));
      ASSERT_EQ(world_.node.held.at(a->first).grant, a->second.grant);
      ASSERT_EQ(world_.node.held.at(a->first).token, a->second.token);
      for (auto b = std::next(a); b != checkpoint.claims.end(); ++b) {
        ASSERT_TRUE(wire::CheckDisjoint(a->second.grant, b->second.grant).ok());
      }
    }
    ASSERT_EQ(world_.node.held.size(), checkpoint.claims.size());
    ASSERT_EQ(world_.cdi.files.size(), checkpoint.claims.size());
    for (const std::string& uid : doubtful_) {
      if (checkpoint.claims.contains(uid)) continue;
      answered_.erase(uid);
    }
    doubtful_.clear();
  }

  Rng rng_;
  World world_;
  std::vector<ClaimRef> refs_;
  std::set<std::string> answered_;
  std::set<std::string> doubtful_;
};

TEST(ClaimsPropertyTest, NeverTwoClaimsOnACoreWhereverThePluginCrashes) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE(seed);
    RandomRun run(seed);
    for (int step = 0; step < 60; ++step) {
      run.Step();
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

TEST(ClaimsTest, AfterAMachinesStartAClaimIsPreparedAsItWas) {
  World world;
  const ClaimRef claim = world.Add("a", {"neuron-device-0"});
  const auto first = world.claims->Prepare(claim);
  const auto cdi = world.cdi.files;
  const auto held = world.node.held;
  ASSERT_TRUE(first.ok()) << first.status();
  world.Reboot();
  EXPECT_EQ(world.cdi.files, cdi) << "before the kubelet asks";
  EXPECT_EQ(world.node.held, held);
  EXPECT_TRUE(world.claims->IsOfEarlierBoot(world.claims->Load()->claims.at("uid-a")));
  world.source.objects.clear();
  const auto second = world.claims->Prepare(claim);
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(*second, *first);
  EXPECT_EQ(world.cdi.files, cdi);
  EXPECT_FALSE(world.claims->IsOfEarlierBoot(world.claims->Load()->claims.at("uid-a")));
}

TEST(ClaimsTest, WithoutABootIdNoClaimIsOfAnEarlierBoot) {
  World world;
  ASSERT_TRUE(world.claims->Prepare(world.Add("known", {"neuron-device-0"})).ok());
  world.boot_id.clear();
  world.Restart();
  ASSERT_TRUE(world.claims->Prepare(world.Add("unknown", {"neuron-device-1"})).ok());
  EXPECT_FALSE(world.claims->IsOfEarlierBoot(world.claims->Load()->claims.at("uid-known")));
  world.boot_id = "other";
  world.Restart();
  EXPECT_FALSE(world.claims->IsOfEarlierBoot(world.claims->Load()->claims.at("uid-unknown")));
}

TEST(ClaimsTest, ClaimsThatTheServerHasNotAreStale) {
  World world;
  for (int i = 0; i < 5; ++i) {
    const std::string device = fmt::format("neuron-device-{}", i);
    ASSERT_TRUE(world.claims->Prepare(world.Add(fmt::format("{}", i), {device})).ok());
  }
  EXPECT_EQ(world.Stale(), std::vector<std::string>{});
  world.source.objects.erase("default/1");
  world.source.objects["default/2"] = ClaimObject("2", "uid-other", {"neuron-device-2"}).dump();
  Json not_allocated = ParseJson(world.source.objects["default/3"]);
  not_allocated.erase("status");
  world.source.objects["default/3"] = not_allocated.dump();
  world.source.objects["default/4"] = ClaimObject("4", "uid-4", {"neuron-device-9"}).dump();
  EXPECT_EQ(world.Stale(), (std::vector<std::string>{"1", "2", "3", "4"}));
}

TEST(ClaimsTest, AServerThatDoesNotAnswerMakesNoClaimStale) {
  World world;
  ASSERT_TRUE(world.claims->Prepare(world.Add("a", {"neuron-device-0"})).ok());
  ASSERT_TRUE(world.claims->Prepare(world.Add("b", {"neuron-device-1"})).ok());
  world.source.objects.erase("default/a");
  world.source.away = true;
  EXPECT_TRUE(absl::IsUnavailable(world.claims->FindStale(*world.claims->Load()).status()));
  world.source.away = false;
  world.source.objects["default/b"] = "half an obj";
  EXPECT_EQ(world.Stale(), (std::vector<std::string>{"a"})) << "nor one that nobody understands";
}

TEST(ClaimsTest, ADroppedClaimLeavesNothingAndOneThatWasPreparedAnewStays) {
  World world;
  const ClaimRef claim = world.Add("a", {"neuron-device-0"});
  ASSERT_TRUE(world.claims->Prepare(claim).ok());
  const PreparedClaim stale = world.claims->Load()->claims.at("uid-a");
  ASSERT_TRUE(world.claims->Unprepare(claim).ok());
  ASSERT_TRUE(world.claims->Prepare(claim).ok());
  EXPECT_EQ(world.claims->Drop(stale), absl::OkStatus());
  EXPECT_EQ(world.node.held.size(), 1u);
  EXPECT_EQ(world.claims->Drop(world.claims->Load()->claims.at("uid-a")), absl::OkStatus());
  EXPECT_TRUE(world.node.held.empty());
  EXPECT_TRUE(world.cdi.files.empty());
  EXPECT_TRUE(world.claims->Load()->claims.empty());
}

}  // namespace
}  // namespace tahoma::dra
