#include "dra-plugin/slices/slice_publisher.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "controller/apiserver/http/in_process_transport.h"
#include "dra-plugin/slices/claim_source.h"
#include "lib/base/rng.h"
#include "lib/base/status.h"
#include "tests/support/api_fixture.h"
#include "tests/support/intercepted_transport.h"

namespace tahoma::dra {
namespace {

using json = Json;

wire::Inventory TestNode() {
  wire::Inventory inventory = {.generation = 1,
                               .node_name = "node-a",
                               .instance_type = "trn2.48xlarge",
                               .driver_version = "2.26.10.0"};
  for (int i = 0; i < 16; ++i) inventory.chips.push_back({.index = i});
  return inventory;
}

// A TestNode whose chip 3 is unhealthy.
wire::Inventory BrokenNode() {
  wire::Inventory node = TestNode();
  node.chips[3] = {.index = 3, .healthy = false, .reason = "dma"};
  return node;
}

constexpr Publish kChipsOnly = {.chips = true, .lnc1 = false, .lnc2 = false, .node = false};

DevicePool Build(const wire::Inventory& inventory, Publish publish = {}) {
  return *BuildPool(inventory, {.publish = publish});
}

const std::string kSlices = "/apis/resource.k8s.io/v1/resourceslices";

class SlicePublisherTest : public testing::ApiFixture {
 protected:
  SlicePublisherTest() {
    const testing::Answer made = Call("POST", kNode, {{"metadata", {{"name", "node-a"}}}});
    EXPECT_EQ(made.status, 201) << made.text;
    node_uid_ = made.body.at("metadata").at("uid");
  }

  std::map<std::string, json> Slices() {
    std::map<std::string, json> slices;
    const json list = Call("GET", kSlices).body;
    for (const json& slice : list.at("items")) {
      slices[slice.at("metadata").at("name")] = slice;
    }
    return slices;
  }
  void Create(json slice) {
    for (const char* field : {"uid", "resourceVersion", "creationTimestamp", "managedFields"}) {
      slice["metadata"].erase(field);
    }
    const testing::Answer made = Call("POST", kSlices, slice);
    ASSERT_EQ(made.status, 201) << made.text;
  }
  // Makes `slices` the only slices, under their old names.
  void Restore(const std::map<std::string, json>& slices) {
    for (const auto& [name, slice] : Slices()) Call("DELETE", kSlices + "/" + name);
    for (const auto& [name, slice] : slices) Create(slice);
    ASSERT_EQ(Slices().size(), slices.size());
  }
  // Another client writes every slice, and so changes the resource versions.
  void Touch() {
    const json label = {{"touched", std::to_string(++touches_)}};
    for (const auto& [name, slice] : Slices()) {
      const auto touched =
          Patch(kSlices + "/" + name, "merge-patch+json", {{"metadata", {{"labels", label}}}});
      ASSERT_EQ(touched.status, 200) << touched.text;
    }
  }
  // Expects a pool that an allocator can use: complete, of one generation, with every device once.
  void ExpectWhole(const DevicePool& pool) {
    const std::map<std::string, json> slices = Slices();
    std::set<std::string> wanted;
    for (const auto& group : pool.groups) {
      for (const Device& device : group) wanted.insert(device.name);
    }
    std::set<std::string> seen;
    std::set<std::int64_t> generations;
    for (const auto& [name, slice] : slices) {
      generations.insert(slice["spec"]["pool"]["generation"].get<std::int64_t>());
      EXPECT_EQ(slice["spec"]["pool"]["resourceSliceCount"], slices.size());
      EXPECT_EQ(slice["spec"]["pool"]["name"], "node-a");
      if (!slice["spec"].contains("devices")) continue;
      for (const json& device : slice["spec"]["devices"]) {
        EXPECT_TRUE(seen.insert(device["name"].get<std::string>()).second) << device["name"];
      }
    }
    EXPECT_EQ(generations.size(), 1u);
    EXPECT_EQ(seen, wanted);
  }

  static constexpr char kNode[] = "/api/v1/nodes";

  controller::apiserver::InProcessTransport in_process_{*server_, clock_, "dra-plugin"};
  testing::InterceptedTransport api_{in_process_};
  std::string node_uid_;
  int touches_ = 0;
};

TEST_F(SlicePublisherTest, PublishesAWholePoolAndThenNothing) {
  SlicePublisher publisher(api_, "node-a");
  const DevicePool pool = Build(TestNode());
  ASSERT_TRUE(publisher.Publish(pool).ok());
  ASSERT_EQ(Slices().size(), 5u);
  ExpectWhole(pool);
  const json first = Slices().begin()->second;
  EXPECT_EQ(first["metadata"]["ownerReferences"], json::array({{{"apiVersion", "v1"},
                                                                {"kind", "Node"},
                                                                {"name", "node-a"},
                                                                {"uid", node_uid_},
                                                                {"controller", true}}}));
  EXPECT_TRUE(first["spec"].contains("sharedCounters"));
  const int writes = api_.writes();
  ASSERT_TRUE(publisher.Publish(pool).ok());
  SlicePublisher restarted(api_, "node-a");
  ASSERT_TRUE(restarted.Publish(pool).ok());
  EXPECT_EQ(api_.writes(), writes) << "what is there already is not written again";
}

// Found by fuzzing: the next generation was below zero, and refused for ever.
TEST_F(SlicePublisherTest, AfterTheLastGenerationThePoolBeginsAnew) {
  SlicePublisher publisher(api_, "node-a");
  const DevicePool pool = Build(TestNode());
  ASSERT_TRUE(publisher.Publish(pool).ok());
  auto [name, slice] = *Slices().begin();
  slice["spec"]["pool"]["generation"] = INT64_MAX;
  ASSERT_EQ(Call("PUT", kSlices + "/" + name, slice).status, 200);
  const absl::Status published = publisher.Publish(pool);
  ASSERT_TRUE(published.ok()) << published;
  ExpectWhole(pool);
  EXPECT_EQ(Slices().begin()->second["spec"]["pool"]["generation"], 1);
}

TEST_F(SlicePublisherTest, OneChangedSliceIsUpdatedInPlace) {
  const std::string first = FormatTime(clock_.WallNow());
  SlicePublisher publisher(api_, "node-a");
  wire::Inventory inventory = TestNode();
  ASSERT_TRUE(publisher.Publish(Build(inventory, kChipsOnly)).ok());
  const std::string name = Slices().begin()->first;
  inventory.chips[3].healthy = false;
  inventory.chips[3].reason = "dma-error";
  clock_.Advance(std::chrono::hours(1));
  ASSERT_TRUE(publisher.Publish(Build(inventory, kChipsOnly)).ok());
  ASSERT_EQ(Slices().size(), 1u);
  const json slice = Slices().at(name);
  EXPECT_EQ(slice["spec"]["pool"]["generation"], 1);
  const json& taints = slice["spec"]["devices"][3]["taints"];
  EXPECT_EQ(taints[0]["timeAdded"], first) << "the old taint keeps its age";
  EXPECT_EQ(taints[1]["key"], "tahoma.dev/unhealthy");
  EXPECT_EQ(taints[1]["timeAdded"], FormatTime(clock_.WallNow()));
  inventory.chips[3].healthy = true;
  ASSERT_TRUE(publisher.Publish(Build(inventory, kChipsOnly)).ok());
  EXPECT_EQ(Slices().at(name)["spec"]["devices"][3]["taints"].size(), 1u) << "repaired";
}

TEST_F(SlicePublisherTest, SeveralChangedSlicesGetANewGeneration) {
  SlicePublisher publisher(api_, "node-a");
  wire::Inventory inventory = TestNode();
  ASSERT_TRUE(publisher.Publish(Build(inventory)).ok());
  inventory.chips[3].healthy = false;
  const DevicePool broken = Build(inventory);
  ASSERT_TRUE(publisher.Publish(broken).ok());
  ExpectWhole(broken);
  EXPECT_EQ(Slices().begin()->second["spec"]["pool"]["generation"], 2);
}

TEST_F(SlicePublisherTest, SlicesLostByARestoredServerArePublishedAgain) {
  SlicePublisher publisher(api_, "node-a");
  wire::Inventory inventory = TestNode();
  ASSERT_TRUE(publisher.Publish(Build(inventory)).ok());
  const auto backup = Slices();
  inventory.chips[3].healthy = false;
  const DevicePool broken = Build(inventory);
  ASSERT_TRUE(publisher.Publish(broken).ok());
  const auto said = [&] {
    std::multiset<std::string> all;
    for (const auto& [name, slice] : Slices()) {
      all.insert(slice["spec"].value("devices", json::array()).dump());
    }
    return all;
  };
  const std::multiset<std::string> wanted = said();
  for (const auto& restored : {backup, std::map<std::string, json>()}) {
    Restore(restored);
    ASSERT_TRUE(publisher.Publish(broken).ok());
    ExpectWhole(broken);
    EXPECT_EQ(said(), wanted);
  }
}

TEST_F(SlicePublisherTest, ObsoleteSlicesGoFirst) {
  SlicePublisher publisher(api_, "node-a");
  ASSERT_TRUE(publisher.Publish(Build(TestNode())).ok());
  api_.TakeLog();
  const DevicePool chips = Build(TestNode(), kChipsOnly);
  ASSERT_TRUE(publisher.Publish(chips).ok());
  ExpectWhole(chips);
  EXPECT_EQ(Slices().size(), 1u);
  bool wrote = false;
  for (const std::string& line : api_.TakeLog()) {
    wrote = wrote || line.starts_with("PUT") || line.starts_with("POST");
    EXPECT_FALSE(wrote && line.starts_with("DELETE")) << line;
  }
}

TEST_F(SlicePublisherTest, AnotherDriversSlicesAreLeftAlone) {
  Create({{"metadata", {{"name", "efa"}}},
          {"spec",
           {{"driver", "dra.net"},
            {"nodeName", "node-a"},
            {"pool", {{"name", "node-a"}, {"generation", 1}, {"resourceSliceCount", 1}}}}}});
  SlicePublisher publisher(api_, "node-a");
  ASSERT_TRUE(publisher.Publish(Build(TestNode(), kChipsOnly)).ok());
  EXPECT_TRUE(Slices().contains("efa"));
}

TEST_F(SlicePublisherTest, AServerThatDropsFieldsIsToldOfOnceAndNotWrittenForever) {
  const std::set<std::string> gate_off = {"spec.devices[].taints"};
  api_.edit = [&](json& slice) { RemoveFields(gate_off, slice); };
  SlicePublisher publisher(api_, "node-a");
  const DevicePool pool = Build(TestNode());
  ASSERT_TRUE(publisher.Publish(pool).ok());
  EXPECT_EQ(publisher.server()->dropped_fields, gate_off);
  const int writes = api_.writes();
  ASSERT_TRUE(publisher.Publish(pool).ok());
  EXPECT_EQ(api_.writes(), writes);
}

TEST_F(SlicePublisherTest, WhereNoTaintsAreKeptWhatIsBrokenIsNotShown) {
  const std::set<std::string> taints = {"spec.devices[].taints"};
  api_.edit = [&](json& slice) { RemoveFields(taints, slice); };
  wire::Inventory broken = TestNode();
  broken.chips[3] = {.index = 3, .healthy = false, .reason = "dma"};
  DevicePool without = Build(TestNode(), kChipsOnly);
  without.groups[0].erase(without.groups[0].begin() + 3);
  SlicePublisher publisher(api_, "node-a");
  ASSERT_TRUE(publisher.Publish(Build(broken, kChipsOnly)).ok());
  ExpectWhole(without);
  EXPECT_EQ(publisher.Shown(Build(broken, kChipsOnly)).groups[0].size(), 15U);

  ASSERT_TRUE(publisher.Publish(Build(TestNode(), kChipsOnly)).ok());
  ExpectWhole(Build(TestNode(), kChipsOnly));
  ASSERT_TRUE(publisher.Publish(Build(broken, kChipsOnly)).ok());
  ExpectWhole(without);
}

const std::set<std::string> kCounterFields = {"spec.devices[].consumesCounters",
                                              "spec.sharedCounters"};

TEST_F(SlicePublisherTest, WhereNoCountersAreKeptDevicesThatOverlapAreNeverShown) {
  api_.edit = [&](json& slice) { RemoveFields(kCounterFields, slice); };
  bool partition = false;
  api_.before = [&](const kube::Request& request) {
    partition = partition || request.Text().find("neuron-core") != std::string::npos;
  };
  SlicePublisher publisher(api_, "node-a");
  ASSERT_TRUE(publisher.Publish(Build(TestNode())).ok());
  EXPECT_FALSE(partition) << "not even for a moment";
  ExpectWhole(Build(TestNode(), kChipsOnly));

  api_.edit = nullptr;  // the server is upgraded
  ASSERT_TRUE(publisher.Publish(Build(TestNode())).ok());
  wire::Inventory changed = TestNode();
  changed.chips[0].links_down = {"x+"};
  ASSERT_TRUE(publisher.Publish(Build(changed)).ok());
  ExpectWhole(Build(changed));

  api_.edit = [&](json& slice) { RemoveFields(kCounterFields, slice); };
  ASSERT_TRUE(publisher.Publish(Build(TestNode())).ok());
  ExpectWhole(Build(TestNode(), kChipsOnly));
}

// As after an upgrade of the API server, or of a feature gate.
TEST_F(SlicePublisherTest, DevicesLeftOutAppearOnceTheServerIsUpgraded) {
  std::set<std::string> dropped = kCounterFields;
  dropped.insert(kTaintsField);
  api_.edit = [&](json& slice) { RemoveFields(dropped, slice); };
  const wire::Inventory broken = BrokenNode();
  SlicePublisher publisher(api_, "node-a");
  const auto support = [&] {
    return std::pair(publisher.server()->counters, publisher.server()->dropped_fields);
  };
  ASSERT_TRUE(publisher.Publish(Build(broken)).ok());
  EXPECT_EQ(support(), std::pair(CounterSupport::kNone, std::set<std::string>{kTaintsField}));

  dropped.erase(kTaintsField);
  ASSERT_TRUE(publisher.Publish(Build(broken)).ok());
  EXPECT_EQ(support(), std::pair(CounterSupport::kNone, std::set<std::string>()));
  ExpectWhole(Build(broken, kChipsOnly));

  dropped.clear();
  ASSERT_TRUE(publisher.Publish(Build(broken)).ok());
  EXPECT_EQ(support(), std::pair(CounterSupport::kApart, std::set<std::string>()));
  ExpectWhole(Build(broken));
  api_.TakeLog();
  ASSERT_TRUE(publisher.Publish(Build(broken)).ok());
  for (const std::string& line : api_.TakeLog()) {
    EXPECT_TRUE(line.starts_with("GET ") && line != "GET /version") << line << ": it lacks nothing";
  }
}

TEST_F(SlicePublisherTest, WhereTaintsAreStillDroppedWhatIsBrokenIsNotShownForAMoment) {
  std::set<std::string> dropped = kCounterFields;
  dropped.insert(kTaintsField);
  api_.edit = [&](json& slice) { RemoveFields(dropped, slice); };
  const wire::Inventory broken = BrokenNode();
  SlicePublisher publisher(api_, "node-a");
  ASSERT_TRUE(publisher.Publish(Build(broken)).ok());
  dropped = {kTaintsField};  // the gate of counters was turned on
  bool seen = false;
  api_.before = [&](const kube::Request& request) {
    seen = seen || request.Text().find("neuron-device-3\"") != std::string::npos;
  };
  ASSERT_TRUE(publisher.Publish(Build(broken)).ok());
  EXPECT_FALSE(seen);
  EXPECT_EQ(publisher.server()->counters, CounterSupport::kApart);
  EXPECT_EQ(publisher.server()->dropped_fields, std::set<std::string>{kTaintsField});
}

// As while several API servers behind an address are upgraded in turn.
TEST_F(SlicePublisherTest, NoCoresAreShownWhenOnlySomeServersKeepCounters) {
  bool dry_run = false;
  bool cores = false;
  api_.before = [&](const kube::Request& request) {
    dry_run = request.target.find("dryRun") != std::string::npos;
    cores = cores || request.Text().find("neuron-core") != std::string::npos;
  };
  api_.edit = [&](json& slice) {
    if (!dry_run) RemoveFields(kCounterFields, slice);
  };
  SlicePublisher publisher(api_, "node-a");
  for (int look = 0; look < 2; ++look) {
    ASSERT_TRUE(publisher.Publish(Build(TestNode())).ok());
    ExpectWhole(Build(TestNode(), kChipsOnly));
    EXPECT_EQ(publisher.server()->counters, CounterSupport::kNone);
    EXPECT_TRUE(publisher.server()->dropped_fields.empty());
  }
  EXPECT_FALSE(cores) << "not even for a moment";
  api_.edit = nullptr;
  ASSERT_TRUE(publisher.Publish(Build(TestNode())).ok());
  ExpectWhole(Build(TestNode()));
}

TEST_F(SlicePublisherTest, TheNodeThatWasReadIsGivenAwayOnce) {
  SlicePublisher publisher(api_, "node-a");
  EXPECT_EQ(publisher.HandOverNode(), nullptr);
  ASSERT_TRUE(publisher.Publish(Build(TestNode(), kChipsOnly)).ok());
  const std::shared_ptr<const json> node = publisher.HandOverNode();
  ASSERT_NE(node, nullptr);
  EXPECT_EQ(node->at("metadata").at("uid"), node_uid_);
  EXPECT_EQ(publisher.HandOverNode(), nullptr);
}

// A server of another version, which takes counters together with devices, as 1.34 does.
std::function<std::optional<kube::Response>(const kube::Request&)> Version(std::string minor) {
  return [body = json{{"major", "1"}, {"minor", std::move(minor)}}.dump()](
             const kube::Request& request) -> std::optional<kube::Response> {
    if (request.target == "/version") return kube::Response{.status = 200, .body = body};
    if (request.method != "POST" || request.target.find("dryRun") == std::string::npos) return {};
    return kube::Response{.status = 201, .body = request.Text()};
  };
}

TEST_F(SlicePublisherTest, Before135CountersAndDevicesAreInOneSlice) {
  api_.answer = Version("34+");
  std::vector<json> sent;
  api_.before = [&](const kube::Request& request) {
    if (request.method == "POST" && request.target == kSlices) {
      sent.push_back(ParseJson(request.Text()));
    }
  };
  SlicePublisher publisher(api_, "node-a");
  // Our server is newer and refuses slices in the form of 1.34.
  EXPECT_EQ(publisher.Publish(Build(TestNode())).code(), absl::StatusCode::kInvalidArgument);
  ASSERT_EQ(sent.size(), 1u);
  const json& spec = sent[0]["spec"];
  EXPECT_EQ(spec["pool"]["resourceSliceCount"], 1);
  EXPECT_EQ(spec["devices"].size(), 16u + 64u);
  ASSERT_EQ(spec["sharedCounters"].size(), 1u);
  EXPECT_EQ(spec["sharedCounters"][0]["counters"].size(), 16u) << "at most 32 in 1.34";
  for (const json& device : spec["devices"]) EXPECT_EQ(device["consumesCounters"].size(), 1u);
  EXPECT_EQ(publisher.server()->counters, CounterSupport::kTogether);
  EXPECT_EQ(publisher.server()->minor, 34);
}

TEST_F(SlicePublisherTest, AVersionThatCannotBeReadIsAnErrorAndNothingIsPublished) {
  api_.answer = Version("x");
  SlicePublisher publisher(api_, "node-a");
  const absl::Status status = publisher.Publish(Build(TestNode()));
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_EQ(Message(status), "GET /version: the version 1.x cannot be read");
  EXPECT_TRUE(Slices().empty());
}

TEST_F(SlicePublisherTest, AConflictIsLookedAtAgain) {
  SlicePublisher publisher(api_, "node-a");
  wire::Inventory inventory = TestNode();
  ASSERT_TRUE(publisher.Publish(Build(inventory)).ok());
  int conflicts = 2;
  api_.before = [&](const kube::Request& request) {
    if (request.method != "PUT" || conflicts-- <= 0) return;
    Touch();
  };
  inventory.chips[0].links_down = {"x+"};
  const DevicePool pool = Build(inventory);
  ASSERT_TRUE(publisher.Publish(pool).ok());
  ExpectWhole(pool);
}

TEST_F(SlicePublisherTest, EndlessConflictsAreGivenUp) {
  SlicePublisher publisher(api_, "node-a");
  wire::Inventory inventory = TestNode();
  ASSERT_TRUE(publisher.Publish(Build(inventory)).ok());
  api_.before = [&](const kube::Request& request) {
    if (request.method == "PUT") Touch();
  };
  inventory.chips[0].healthy = false;
  EXPECT_TRUE(absl::IsAborted(publisher.Publish(Build(inventory))));
}

TEST_F(SlicePublisherTest, ANodeThatIsNotThereYetIsNotFound) {
  ASSERT_EQ(Call("DELETE", "/api/v1/nodes/node-a").status, 200);
  SlicePublisher publisher(api_, "node-a");
  EXPECT_EQ(Message(publisher.Publish(Build(TestNode()))),
            "reading node node-a: nodes \"node-a\" not found");
  EXPECT_EQ(api_.writes(), 0);
}

const SlicePublisherOptions kFixedNames = {
    .fixed_names = true,
    .log_writes = false,
    .server = ServerSupport{.counters = CounterSupport::kApart}};

TEST_F(SlicePublisherTest, WhoNamesTheSlicesHimselfReadsNoList) {
  SlicePublisher publisher(api_, "node-a", kFixedNames);
  const DevicePool pool = Build(TestNode());
  ASSERT_TRUE(publisher.PublishFor(node_uid_, pool, SlicePublisher::Known::kNone).ok());
  EXPECT_EQ(api_.TakeLog(), std::vector<std::string>(5, "POST " + kSlices));
  ExpectWhole(pool);
  const auto slices = Slices();
  EXPECT_TRUE(slices.contains("00-neuron.aws.com-node-a-0"));
  EXPECT_TRUE(slices.contains("04-neuron.aws.com-node-a-0"));
  ASSERT_TRUE(publisher.PublishFor(node_uid_, pool, SlicePublisher::Known::kNothing).ok());
  const auto log = api_.TakeLog();
  ASSERT_EQ(log.size(), 5u) << "reads, and no writes";
  EXPECT_EQ(log[3], "GET " + kSlices + "/03-neuron.aws.com-node-a-0");
}

// As after a create with a lost answer.
TEST_F(SlicePublisherTest, AnUnexpectedExistingSliceIsNotMadeTwice) {
  const DevicePool pool = Build(TestNode());
  SlicePublisher first(api_, "node-a", kFixedNames);
  ASSERT_TRUE(first.PublishFor(node_uid_, pool, SlicePublisher::Known::kNone).ok());
  const auto before = Slices();
  SlicePublisher second(api_, "node-a", kFixedNames);
  ASSERT_TRUE(second.PublishFor(node_uid_, pool, SlicePublisher::Known::kNone).ok());
  EXPECT_EQ(Slices(), before);
}

TEST_F(SlicePublisherTest, SlicesOfALargerPoolAreFoundWhenTheSliceWithTheCountIsMissing) {
  SlicePublisher publisher(api_, "node-a", kFixedNames);
  ASSERT_TRUE(publisher.Publish(Build(TestNode())).ok());
  ASSERT_EQ(Call("DELETE", kSlices + "/00-neuron.aws.com-node-a-0").status, 200);
  const DevicePool chips = Build(TestNode(), kChipsOnly);
  ASSERT_TRUE(publisher.Publish(chips).ok());
  ExpectWhole(chips);
  EXPECT_EQ(Slices().size(), 1u);
}

TEST_F(SlicePublisherTest, APublisherTakesOverTheServerSupportThatAnotherFound) {
  const std::set<std::string> gates_off = {"spec.devices[].taints"};
  api_.edit = [&](json& slice) { RemoveFields(gates_off, slice); };
  const DevicePool chips = Build(TestNode(), kChipsOnly);
  SlicePublisher first(api_, "node-a", kFixedNames);
  ASSERT_TRUE(first.Publish(chips).ok());
  SlicePublisherOptions options = kFixedNames;
  options.server = first.server();
  const int writes = api_.writes();
  SlicePublisher second(api_, "node-a", options);
  ASSERT_TRUE(second.Publish(chips).ok());
  EXPECT_EQ(api_.writes(), writes);
}

class SlicePublisherPropertyTest : public SlicePublisherTest {};

// The next plugin completes the slices of a plugin that died after any number of writes.
TEST_F(SlicePublisherPropertyTest, WhereverAPublishStopsTheNextPublishCompletesThePool) {
  Rng rng(12);
  wire::Inventory inventory = TestNode();
  for (int round = 0; round < 30; ++round) {
    // From the middle on the slices of the server's names go, as before a fleet is published.
    const SlicePublisherOptions options = round < 15 ? SlicePublisherOptions{} : kFixedNames;
    if (round == 15) Restore({});
    inventory.chips[rng.Below(16)].healthy = rng.Chance(1, 2);
    const Publish publish = {.chips = true, .lnc1 = rng.Chance(1, 2), .lnc2 = rng.Chance(1, 2)};
    const DevicePool pool = Build(inventory, publish);
    int left = static_cast<int>(rng.Below(8));
    api_.refuse = [&](const kube::Request& request) {
      return request.method != "GET" && left-- <= 0;
    };
    SlicePublisher first(api_, "node-a", options);
    (void)first.Publish(pool);
    api_.refuse = nullptr;
    SlicePublisher second(api_, "node-a", options);
    ASSERT_TRUE(second.Publish(pool).ok());
    ExpectWhole(pool);
    const int writes = api_.writes();
    ASSERT_TRUE(second.Publish(pool).ok());
    ASSERT_EQ(api_.writes(), writes);
  }
}

class ApiClaimSourceTest : public SlicePublisherTest {};

TEST_F(ApiClaimSourceTest, ReadsAClaimOrSaysNotFound) {
  ApiClaimSource source(api_);
  EXPECT_TRUE(absl::IsNotFound(source.Get("default", "a-b").status()));
  EXPECT_FALSE(source.Get("default", "a/b").ok()) << "no name, and no subresource either";
  EXPECT_EQ(api_.TakeLog().back(),
            "GET /apis/resource.k8s.io/v1/namespaces/default/resourceclaims/a%2Fb");
}

}  // namespace
}  // namespace tahoma::dra
