#include "controller/ingest/ingest.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "controller/core/facts/read_facts.h"
#include "controller/ingest/fleet_join.h"
#include "lib/base/json.h"
#include "lib/base/rng.h"
#include "lib/base/status.h"
#include "tests/support/thread_state.h"

namespace tahoma::controller {
namespace {

using json = Json;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Ends every wait at once.
class NeverWaits final : public kube::Sleeper {
 public:
  bool Sleep(std::chrono::nanoseconds) override { return false; }
};

json PodJson() {
  return ParseJson(R"({"metadata": {"name": "p", "namespace": "ns", "uid": "u",
      "resourceVersion": "7", "creationTimestamp": "2026-11-21T10:00:00Z",
      "labels": {"tahoma.dev/gang": "train"},
      "annotations": {"tahoma.dev/rank": "3", "tahoma.dev/placement": "us-0 4x4x4+0,0,0"}},
    "spec": {"schedulerName": "tahoma", "nodeSelector": {"a": "b"},
      "tolerations": [{"key": "k", "operator": "Exists"}],
      "resourceClaims": [{"name": "own", "resourceClaimName": "c1"},
        {"name": "made", "resourceClaimTemplateName": "t"},
        {"name": "later", "resourceClaimTemplateName": "t"}]},
    "status": {"phase": "Pending",
      "resourceClaimStatuses": [{"name": "made", "resourceClaimName": "p-made-x"}]}})");
}

TEST(ParsePodTest, ReadsWhatTheCoreNeeds) {
  const auto pod = ParsePod(PodJson());
  ASSERT_TRUE(pod.ok()) << pod.status();
  EXPECT_EQ((*pod)->key, (PodKey{"ns", "p"}));
  EXPECT_EQ((*pod)->gang, "train");
  EXPECT_EQ((*pod)->bound_rank, 3U);
  ASSERT_EQ((*pod)->claims.size(), 3U);
  EXPECT_EQ((*pod)->claims[0].claim, "c1");
  EXPECT_EQ((*pod)->claims[1].claim, "p-made-x");
  EXPECT_EQ((*pod)->claims[2].claim, "");
  EXPECT_FALSE((*pod)->claims[2].none);
  EXPECT_EQ((*pod)->demand.all.at(0).key, "a");
  EXPECT_TRUE(IsFor({"other", "tahoma"}, PodJson()));
  EXPECT_FALSE(IsFor({"other"}, PodJson()));
}

TEST(ParsePodTest, KnowsHowLongThePodMayTakeToEndAndWhatItWasTold) {
  json object = PodJson();
  EXPECT_EQ((*ParsePod(object))->grace_seconds, 30);
  EXPECT_EQ((*ParsePod(object))->bound_reclaim, std::nullopt);
  object["spec"]["terminationGracePeriodSeconds"] = 600;
  EXPECT_EQ((*ParsePod(object))->grace_seconds, 600);
  json& told = object["metadata"]["annotations"]["tahoma.dev/reclaim-timestamp"];
  told = "1764095485123";
  EXPECT_EQ((*ParsePod(object))->bound_reclaim, WallTime(std::chrono::milliseconds(1764095485123)));
  for (const char* forged :
       {"", "soon", "-1", "12x", "9223372036854775807", "99999999999999999999"}) {
    told = forged;
    EXPECT_EQ((*ParsePod(object))->bound_reclaim, std::nullopt) << forged;
  }
}

TEST(ParsePodTest, AnnotationsOfAPodWithoutAGangSayWhatAGangsSpecSays) {
  json object = PodJson();
  object["metadata"]["annotations"] = {{"tahoma.dev/preemptible", "true"},
                                       {"tahoma.dev/checkpointable", "false"},
                                       {"tahoma.dev/max-runtime", "1h30m"},
                                       {"tahoma.dev/min-runtime", "20m"},
                                       {"tahoma.dev/last-checkpoint", "2026-11-30T10:00:00Z"},
                                       {"tahoma.dev/capacity-block", "team-a/train"}};
  object["spec"]["terminationGracePeriodSeconds"] = 90;
  EXPECT_FALSE((*ParsePod(object))->preemptible) << "its Gang says it";
  object["metadata"]["labels"].erase("tahoma.dev/gang");
  const auto pod = *ParsePod(object);
  EXPECT_TRUE(pod->preemptible);
  EXPECT_FALSE(pod->checkpointable);
  EXPECT_EQ(pod->max_runtime, std::chrono::minutes(90));
  EXPECT_EQ(pod->min_runtime, std::chrono::minutes(20));
  EXPECT_EQ(pod->checkpoint, *ParseTime("2026-11-30T10:00:00Z"));
  EXPECT_EQ(pod->block, "team-a/train");
  EXPECT_EQ(pod->grace(), std::chrono::seconds(90));
  EXPECT_EQ(pod->spec_error, "");
  object["metadata"]["annotations"]["tahoma.dev/max-runtime"] = "soon";
  EXPECT_EQ((*ParsePod(object))->spec_error,
            "annotation tahoma.dev/max-runtime soon: must be numbers of at most nine digits, each "
            "with h, m or s, such as 90m or 1h30m");
  object["metadata"]["annotations"] = {{"tahoma.dev/min-runtime", "1d"},
                                       {"tahoma.dev/last-checkpoint", "just now"}};
  EXPECT_THAT((*ParsePod(object))->spec_error, HasSubstr("tahoma.dev/min-runtime 1d: must be"));
  EXPECT_EQ((*ParsePod(object))->checkpoint, std::nullopt);
  object["metadata"]["annotations"] = {{"tahoma.dev/preemptible", "yes"}};
  EXPECT_EQ((*ParsePod(object))->spec_error,
            "annotation tahoma.dev/preemptible is yes, must be true or false");
}

TEST(ParsePodTest, APodThatAsksForNeuronCoresByNameIsKnownToAsk) {
  json object = PodJson();
  object["spec"]["containers"] =
      ParseJson(R"([{"name": "main", "resources": {"limits": {"memory": "1Gi"}}}])");
  EXPECT_EQ((*ParsePod(object))->extended_asks, nullptr);
  object["spec"]["containers"][0]["resources"]["limits"]["aws.amazon.com/neuroncore"] = "2";
  const auto pod = *ParsePod(object);
  EXPECT_EQ(pod->spec_error, "");
  ASSERT_NE(pod->extended_asks, nullptr);
  EXPECT_EQ(pod->extended_asks->at(0).resource, "aws.amazon.com/neuroncore");
  EXPECT_EQ(pod->extended_asks->at(0).count, 2);
  EXPECT_FALSE(pod->extended_claim.has_value());
}

TEST(ParsePodTest, AnObjectOfAnotherShapeIsAnErrorThatNamesIt) {
  json bad = PodJson();
  bad["spec"]["nodeName"] = 7;
  const auto pod = ParsePod(bad);
  EXPECT_EQ(pod.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(Message(pod.status())), HasSubstr("pod p"));
  for (const char* text : {"null", "[]", "{}", "3", R"({"metadata": []})"}) {
    EXPECT_FALSE(ParsePod(ParseJson(text)).ok()) << text;
    EXPECT_FALSE(kube::ParseResourceSlice(ParseJson(text)).ok()) << text;
    EXPECT_FALSE(ParseClaim(ParseJson(text)).ok()) << text;
    EXPECT_FALSE(kube::ParseNode(ParseJson(text)).ok()) << text;
  }
}

TEST(ParseNodeTest, ANodeIsReadyUnlessItsConditionSaysOtherwise) {
  json object = ParseJson(R"({"metadata": {"name": "n"}})");
  EXPECT_TRUE(kube::ParseNode(object)->ready) << "it has no condition yet";
  for (const auto& [status, ready] :
       {std::pair{"True", true}, std::pair{"False", false}, std::pair{"Unknown", false}}) {
    object["status"]["conditions"] = {{{"type", "DiskPressure"}, {"status", "False"}},
                                      {{"type", "Ready"}, {"status", status}}};
    EXPECT_EQ(kube::ParseNode(object)->ready, ready) << status;
    EXPECT_TRUE(kube::ParseNode(object)->schedulable) << "not cordoned, " << status;
  }
  object["spec"]["unschedulable"] = true;
  EXPECT_FALSE(kube::ParseNode(object)->schedulable);
}

TEST(ParseVolumeClaimTest, KeepsWhatTheCoreUses) {
  const auto claim = ParseVolumeClaim(ParseJson(R"({"metadata": {"name": "data",
      "namespace": "ns", "uid": "u", "resourceVersion": "9", "deletionTimestamp": "2026-11-21",
      "annotations": {"volume.kubernetes.io/selected-node": "n"},
      "ownerReferences": [{"uid": "pod", "controller": true}]},
    "spec": {"storageClassName": "ssd", "volumeName": "pv"}, "status": {"phase": "Bound"}})"));
  ASSERT_TRUE(claim.ok()) << claim.status();
  EXPECT_EQ((*claim)->key, (VolumeClaimKey{"ns", "data"}));
  EXPECT_EQ((*claim)->uid, "u");
  EXPECT_EQ((*claim)->resource_version, "9");
  EXPECT_TRUE((*claim)->deleting && (*claim)->bound && !(*claim)->lost);
  EXPECT_EQ((*claim)->volume, "pv");
  EXPECT_EQ((*claim)->storage_class, "ssd");
  EXPECT_EQ((*claim)->selected_node, "n");
  EXPECT_EQ((*claim)->owner, "pod");
  json pod = PodJson();
  pod["spec"]["volumes"] = {{{"name", "v"}, {"persistentVolumeClaim", {{"claimName", "data"}}}}};
  EXPECT_EQ((*ParsePod(pod))->volumes.at(0).claim, "data");
}

TEST(ParseClaimTest, ReadsRequestsAndAllocation) {
  const auto claim = ParseClaim(ParseJson(R"({"metadata": {"name": "c", "namespace": "ns",
      "uid": "u", "resourceVersion": "9", "finalizers":
      ["other", "resource.kubernetes.io/delete-protection"]},
    "spec": {"devices": {
      "requests": [{"name": "chips", "exactly": {"deviceClassName": "neuron.aws.com", "count": 4,
        "selectors": [{"cel": {"expression": "true"}}]}}],
      "constraints": [{"requests": ["chips"], "matchAttribute": "neuron.aws.com/x"}],
      "config": [{"opaque": {"driver": "neuron.aws.com", "parameters": {"a": 1}}}]}},
    "status": {"reservedFor": [{"resource": "pods", "name": "p", "uid": "pu"}],
      "allocation": {"devices": {"results": [{"request": "chips", "driver": "neuron.aws.com",
        "pool": "n", "device": "neuron-device-0"}]},
        "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name",
          "operator": "In", "values": ["n"]}]}]}}}})"));
  ASSERT_TRUE(claim.ok()) << claim.status();
  EXPECT_TRUE((*claim)->protected_by_finalizer);
  EXPECT_THAT((*claim)->other_finalizers, ElementsAre("other"));
  EXPECT_TRUE((*claim)->ReservedFor("pu"));
  EXPECT_EQ((*claim)->allocation->node, "n");
  EXPECT_EQ((*claim)->spec->requests.at(0).alternatives.at(0).count, 4);
  EXPECT_EQ((*claim)->spec->configs.at(0).parameters, R"({"a":1})");
  EXPECT_EQ((*claim)->spec->constraints.at(0).attribute, "neuron.aws.com/x");
}

TEST(ParseClaimTest, AnUnknownModeIsAReasonNotAnError) {
  const auto claim = ParseClaim(ParseJson(R"({"metadata": {"name": "c", "namespace": "ns"},
    "spec": {"devices": {"requests": [{"name": "r", "exactly": {"allocationMode": "Some"}}]}}})"));
  ASSERT_TRUE(claim.ok());
  EXPECT_THAT((*claim)->spec_error, HasSubstr("Some"));
}

TEST(ParseGangTest, MaxRuntimeIsASumOfParts) {
  json gang = ParseJson(R"({"metadata": {"name": "g", "namespace": "ns", "generation": 2},
    "spec": {"members": 4, "shape": "4x4x4", "maxRuntime": "1h30m"}})");
  EXPECT_EQ((*ParseGang(gang))->max_runtime, std::chrono::minutes(90));
  EXPECT_EQ((*ParseGang(gang))->members, 4);
  gang["spec"]["maxRuntime"] = "soon";
  EXPECT_THAT((*ParseGang(gang))->spec_error, HasSubstr("soon"));
  gang["spec"]["shape"] = "3x5x2";
  gang["spec"]["slices"] = 3;
  EXPECT_EQ((*ParseGang(gang))->spec_error,
            "shape 3x5x2: each side must be 1, 2 or 4; 3 and 5 are not; slices 3: must divide "
            "spec.members (4): every slice has the same number of pods; maxRuntime soon: must be "
            "numbers of at most nine digits, each with h, m or s, such as 90m or 1h30m");
}

TEST(ParseGangTest, WhomItEndsAndWhenItMayBeEndedAreSaid) {
  json gang = ParseJson(R"({"metadata": {"name": "g", "namespace": "ns",
      "annotations": {"tahoma.dev/last-checkpoint": "2026-11-30T10:00:00Z"}},
    "spec": {"members": 1, "minRuntime": "30m", "preemptionPolicy": "Never"}})");
  EXPECT_EQ((*ParseGang(gang))->min_runtime, std::chrono::minutes(30));
  EXPECT_EQ((*ParseGang(gang))->preempts, false);
  EXPECT_EQ((*ParseGang(gang))->checkpoint, *ParseTime("2026-11-30T10:00:00Z"));
  gang["spec"].erase("preemptionPolicy");
  EXPECT_EQ((*ParseGang(gang))->preempts, std::nullopt) << "its pods say it";
  json pod = PodJson();
  EXPECT_TRUE((*ParsePod(pod))->preempts);
  pod["spec"]["preemptionPolicy"] = "Never";
  EXPECT_FALSE((*ParsePod(pod))->preempts);
}

TEST(ParseGangTest, ThePastIsThatOfAGangThatHasStarted) {
  json gang = ParseJson(R"({"metadata": {"name": "g", "namespace": "ns"}, "spec": {"members": 1},
    "status": {"placement": "us-0 1x1x1+0,0,0", "completionTime": "2026-11-26T09:00:00Z",
      "slices": [{"domain": "us-0", "shape": "1x1x1", "origin": "0,0,0", "nodes": ["n"]}]}})");
  EXPECT_EQ((*ParseGang(gang))->past, nullptr);
  for (const char* text : {"", "yesterday"}) {
    gang["status"]["startTime"] = text;
    EXPECT_EQ((*ParseGang(gang))->past, nullptr) << text;
  }
  gang["status"]["startTime"] = "2026-11-26T08:00:00Z";
  EXPECT_EQ(
      *(*ParseGang(gang))->past,
      (GangPast{.placement = "us-0 1x1x1+0,0,0",
                .slices = {{.domain = "us-0", .shape = "1x1x1", .origin = "0,0,0", .nodes = {"n"}}},
                .start_time = *ParseTime("2026-11-26T08:00:00Z"),
                .completion_time = *ParseTime("2026-11-26T09:00:00Z")}));
}

kube::ResourceSlice Slice(const std::string& name, std::int64_t generation, std::int64_t count,
                          std::vector<std::string> devices) {
  kube::ResourceSlice slice;
  slice.name = name;
  slice.driver = std::string(kNeuronDriver);
  slice.pool = "n";
  slice.node = "n";
  slice.generation = generation;
  slice.slices_in_pool = count;
  for (std::string& device : devices) {
    slice.devices.emplace_back();
    slice.devices.back().name = std::move(device);
  }
  return slice;
}

std::vector<std::string> DevicesOf(const std::optional<Command>& command) {
  std::vector<std::string> names;
  for (const auto& device : std::get<NodeSeen>(*command).node->family->devices->devices) {
    names.push_back(device->device.name);
  }
  return names;
}

TEST(FleetJoinTest, ANodeHasTheDevicesOfItsNewestCompletePool) {
  FleetJoin join;
  EXPECT_FALSE(join.OnSlice(Slice("b", 1, 2, {"d1"})));  // no Node object yet
  kube::Node node;
  node.name = "n";
  EXPECT_THAT(DevicesOf(join.OnNode(node)), ElementsAre());  // the pool is not complete
  EXPECT_FALSE(join.OnNode(node));                           // the same again
  EXPECT_THAT(DevicesOf(join.OnSlice(Slice("a", 1, 2, {"d0"}))), ElementsAre("d0", "d1"));
  EXPECT_THAT(DevicesOf(join.OnSlice(Slice("c", 2, 2, {"e0"}))), ElementsAre("d0", "d1"));
  EXPECT_THAT(DevicesOf(join.OnSlice(Slice("d", 2, 2, {"e1"}))), ElementsAre("e0", "e1"));
  join.OnSliceGone("a");
  join.OnSliceGone("b");
  join.OnSliceGone("c");
  EXPECT_THAT(DevicesOf(join.OnSliceGone("d")), ElementsAre());
  EXPECT_TRUE(std::holds_alternative<NodeGone>(*join.OnNodeGone("n")));
}

// The rule of fleet_join.h with a copy of all devices: the slow oracle.
class JoinOracle {
 public:
  void Put(const kube::ResourceSlice& slice) {
    slices_[slice.name] = slice;
    Refresh();
  }
  void Remove(const std::string& name) {
    slices_.erase(name);
    Refresh();
  }
  const std::vector<std::string>& devices() const { return devices_; }

 private:
  void Refresh() {
    std::int64_t newest = -1;
    for (const auto& [name, slice] : slices_) newest = std::max(newest, slice.generation);
    std::vector<std::string> found;
    std::int64_t count = 0;
    std::int64_t wanted = 0;
    for (const auto& [name, slice] : slices_) {
      if (slice.generation != newest) continue;
      ++count;
      wanted = slice.slices_in_pool;
      for (const Device& device : slice.devices) found.push_back(device.name);
    }
    if (count == wanted) devices_ = found;
  }

  std::map<std::string, kube::ResourceSlice> slices_;
  std::vector<std::string> devices_;
};

TEST(FleetJoinTest, SlicesThatComeAndGoInAnyOrderGiveTheDevicesOfTheNewestCompletePool) {
  Rng rng(7);
  for (int world = 0; world < 300; ++world) {
    FleetJoin join;
    kube::Node node;
    node.name = "n";
    join.OnNode(node);
    JoinOracle oracle;
    for (int step = 0; step < 40; ++step) {
      const std::string name(1, static_cast<char>('a' + rng.Below(4)));
      std::optional<Command> command;
      if (rng.Chance(1, 4)) {
        command = join.OnSliceGone(name);
        oracle.Remove(name);
      } else {
        const auto generation = static_cast<std::int64_t>(1 + rng.Below(3));
        const auto count = static_cast<std::int64_t>(1 + rng.Below(3));
        const auto slice = Slice(name, generation, count, {fmt::format("{}{}", name, step)});
        command = join.OnSlice(slice);
        oracle.Put(slice);
      }
      if (!command) continue;
      ASSERT_EQ(DevicesOf(command), oracle.devices()) << world << " " << step;
    }
  }
}

// A device whose attributes differ from step to step, some of them by its node.
Device RichDevice(const std::string& name, Rng& rng) {
  Device device;
  device.name = name;
  const auto put = [&](const char* domain, const char* id, AttributeValue value) {
    device.attributes.push_back({{domain, id}, std::move(value)});
  };
  const auto digit = [&] { return std::string(1, static_cast<char>('0' + rng.Below(3))); };
  put("neuron.aws.com", "deviceId", static_cast<std::int64_t>(rng.Below(3)));
  put("neuron.aws.com", "networkNodeLayer1", "nn-" + digit());
  if (rng.Chance(1, 2)) put("neuron.aws.com", "resourceType", std::string("neuron_device"));
  if (rng.Chance(1, 2)) put("example.com", "serial", std::to_string(rng.Below(1000)));
  if (rng.Chance(1, 8)) put("neuron.aws.com", "deviceId", std::int64_t{7});  // comes twice
  if (rng.Chance(1, 4)) device.taints.push_back({.key = "t", .value = digit()});
  if (rng.Chance(1, 4)) device.capacities.push_back({{"example.com", "memory"}, digit()});
  device.allow_multiple_allocations = rng.Chance(1, 8);
  return device;
}

TEST(FleetJoinTest, ANodeHasTheDevicesAsItsSlicesPublishThem) {
  Rng rng(11);
  FleetJoin join;
  Inventory anew;
  std::map<std::string, std::vector<Device>> published;  // by slice
  kube::Node node;
  node.name = "n";
  join.OnNode(node);
  for (int step = 0; step < 3'000; ++step) {
    const std::string name(1, static_cast<char>('a' + rng.Below(3)));
    std::vector<Device> devices;
    for (std::uint64_t i = rng.Below(4); i > 0; --i) {
      devices.push_back(RichDevice(name + std::to_string(devices.size()), rng));
    }
    if (published.size() == 3 && rng.Chance(1, 2)) devices = published[name];
    published[name] = devices;
    kube::ResourceSlice slice = Slice(name, 1, static_cast<std::int64_t>(published.size()), {});
    slice.devices = devices;
    const auto command = join.OnSlice(std::move(slice));
    if (published.size() < 3) continue;  // the slices do not agree on their number yet
    NodeFacts facts;
    facts.name = "n";
    for (const auto& [slice_name, list] : published) {
      facts.devices.insert(facts.devices.end(), list.begin(), list.end());
    }
    const auto wanted = anew.Intern(facts);
    const auto seen = std::get<NodeSeen>(*command).node;
    ASSERT_EQ(seen->family->devices->devices.size(), wanted->family->devices->devices.size());
    for (std::uint16_t i = 0; i < wanted->family->devices->devices.size(); ++i) {
      const Device& device = seen->device(i);
      ASSERT_EQ(device.name, facts.devices[i].name);
      EXPECT_EQ(device.taints, facts.devices[i].taints);
      EXPECT_EQ(device.capacities.size(), facts.devices[i].capacities.size());
      EXPECT_EQ(device.allow_multiple_allocations, facts.devices[i].allow_multiple_allocations);
      EXPECT_EQ(seen->role(i), wanted->role(i));
      const auto texts_of = [i](const Node& of) {
        std::vector<std::string> texts;
        for (const Attribute& one : of.Attributes(i)) {
          texts.push_back(one.name.domain + "/" + one.name.id + "=" + kube::ToString(one.value));
        }
        std::ranges::sort(texts);
        return texts;
      };
      ASSERT_EQ(texts_of(*seen), texts_of(*wanted)) << step;
    }
  }
}

TEST(FleetJoinTest, ASliceThatIsReplacedLeavesTheDevicesOfTheOthers) {
  Rng rng(13);
  FleetJoin join;
  kube::Node node;
  node.name = "n";
  join.OnNode(node);
  join.OnSlice(Slice("a", 1, 2, {"d0", "d1"}));
  join.OnSlice(Slice("b", 1, 2, {"d2"}));
  EXPECT_THAT(DevicesOf(join.OnSlice(Slice("b", 1, 2, {"d3", "d4"}))),
              ElementsAre("d0", "d1", "d3", "d4"));
  EXPECT_THAT(DevicesOf(join.OnSlice(Slice("a", 1, 2, {}))), ElementsAre("d3", "d4"));
}

TEST(FleetJoinTest, ChipsThatANodeCordonsAreTaintedUntilTheNodeSaysOtherwise) {
  FleetJoin join;
  kube::Node node;
  node.name = "n";
  node.annotation = "3";
  join.OnNode(node);
  const auto taints = [](const std::optional<Command>& command) {
    return std::get<NodeSeen>(*command).node->device(0).taints.size();
  };
  const auto slice = [](std::int64_t generation) {
    kube::ResourceSlice with_a_chip = Slice("a", generation, 1, {"neuron-device-3"});
    with_a_chip.devices[0].attributes = {
        {{std::string(kNeuronDriver), "deviceId"}, std::int64_t{3}}};
    return with_a_chip;
  };
  EXPECT_EQ(taints(join.OnSlice(slice(1))), 1U);
  EXPECT_EQ(taints(join.OnSlice(slice(2))), 1U);
  node.annotation = "";
  EXPECT_EQ(taints(join.OnNode(node)), 0U);
}

TEST(FleetJoinTest, ANodeThatIsNoLongerReadyIsSeenSo) {
  FleetJoin join;
  kube::Node node;
  node.name = "n";
  const auto facts = [](const std::optional<Command>& command) {
    return *std::get<NodeSeen>(*command).node;
  };
  EXPECT_TRUE(facts(join.OnNode(node)).ready);
  node.ready = false;
  EXPECT_FALSE(facts(join.OnNode(node)).ready);
  EXPECT_FALSE(join.OnNode(node)) << "the same again";
  node.schedulable = false;
  const Node cordoned = facts(join.OnNode(node));
  EXPECT_FALSE(cordoned.ready);
  EXPECT_TRUE(cordoned.cordoned);
}

TEST(FleetJoinTest, SlicesOfOtherDriversAreKeptBesideTheNodesOwnDevices) {
  FleetJoin join;
  kube::ResourceSlice other = Slice("nics", 7, 1, {"nic-0", "nic-1"});
  other.driver = "nics.example.com";
  other.pool = "any-name";
  other.shared_counters = {{.name = "lanes", .counters = {{.name = "free", .value = 4}}}};
  EXPECT_FALSE(join.OnSlice(other)) << "the Node has not come";
  kube::Node node;
  node.name = "n";
  const auto offers = [](const std::optional<Command>& command) {
    return std::get<NodeSeen>(*command).node->others;
  };
  EXPECT_EQ(offers(join.OnNode(node))->CountOf("nics.example.com"), 2U);
  const auto with_both = join.OnSlice(Slice("a", 1, 1, {"d"}));
  EXPECT_THAT(DevicesOf(with_both), ElementsAre("d"));
  const std::vector<kube::ResourceSlice> slices = offers(with_both)->Unpack();
  ASSERT_EQ(slices.size(), 1U);
  EXPECT_EQ(slices[0].generation, 7);
  EXPECT_EQ(slices[0].pool, "any-name");
  EXPECT_EQ(slices[0].devices.at(1).name, "nic-1");
  EXPECT_EQ(slices[0].details.size(), 2U);
  EXPECT_EQ(slices[0].shared_counters, other.shared_counters);
  const auto gone = join.OnSliceGone("nics");
  EXPECT_THAT(DevicesOf(gone), ElementsAre("d"));
  EXPECT_EQ(offers(gone), nullptr);
}

TEST(FleetJoinTest, ANodeHasThePoolOfItsNameAndNoOther) {
  FleetJoin join;
  kube::Node node;
  node.name = "n";
  join.OnNode(node);
  join.OnSlice(Slice("a", 1, 1, {"d0"}));
  for (const auto& [pool, of_node] : {std::pair{"n", "liar"}, std::pair{"other", "n"}}) {
    kube::ResourceSlice foreign = Slice("b", 1'000'000'000, 1, {"forged"});
    foreign.pool = pool;
    foreign.node = of_node;
    EXPECT_EQ(join.Check(foreign).message(),
              fmt::format("its pool is {} and its node {}: the pool of a node has the node's name",
                          pool, of_node));
    EXPECT_FALSE(join.OnSlice(foreign));
  }
  kube::Node liar;
  liar.name = "liar";
  EXPECT_THAT(DevicesOf(join.OnNode(liar)), ElementsAre());
  node.schedulable = false;
  EXPECT_THAT(DevicesOf(join.OnNode(node)), ElementsAre("d0"));
}

// A claim names a device by driver, pool and name: two nodes' claims would have one device.
TEST(FleetJoinTest, ANodeShowsNoDevicesOfAnotherNodesPool) {
  FleetJoin join;
  for (const char* name : {"n", "victim"}) {
    kube::Node node;
    node.name = name;
    join.OnNode(node);
  }
  kube::ResourceSlice slice = Slice("a", 1, 1, {"nic-0"});
  slice.driver = "nics.example.com";
  slice.pool = "victim";
  EXPECT_EQ(join.Check(slice).message(),
            "its pool is victim, the name of another node, and its node n");
  EXPECT_FALSE(join.OnSlice(slice));
  slice.pool = "rack-7";
  EXPECT_TRUE(join.OnSlice(slice)) << "a pool of a name of its own";
}

TEST(FleetJoinTest, ASliceIsOfTheNodeThatHadItFirst) {
  FleetJoin join;
  for (const char* name : {"n", "m"}) {
    kube::Node node;
    node.name = name;
    join.OnNode(node);
  }
  join.OnSlice(Slice("a", 1, 1, {"d0"}));
  kube::ResourceSlice moved = Slice("a", 2, 1, {"d0"});
  moved.pool = moved.node = "m";
  EXPECT_EQ(join.Check(moved).message(), "it is of node m, and the slice of that name is node n's");
  EXPECT_FALSE(join.OnSlice(moved));
  EXPECT_THAT(DevicesOf(join.OnSliceGone("a")), ElementsAre()) << "of n";
  EXPECT_THAT(DevicesOf(join.OnSlice(moved)), ElementsAre("d0")) << "of m";
}

TEST(FleetJoinTest, SlicesThatAreNobodysConcernAreNoFault) {
  const FleetJoin join;
  kube::ResourceSlice shared = Slice("a", 1, 1, {"d"});
  shared.pool = "shared";
  shared.node = "";
  EXPECT_TRUE(join.Check(shared).ok()) << "of no single node";
  shared.node = "n";
  shared.driver = "gpu.example.com";
  EXPECT_TRUE(join.Check(shared).ok()) << "another driver's";
}

kube::Response List(const std::string& version, const std::vector<std::string>& names,
                    const std::string& token = "") {
  json items = json::array();
  for (const std::string& name : names) {
    items.push_back({{"metadata", {{"name", name}, {"namespace", "ns"}, {"uid", "u-" + name}}}});
  }
  kube::Response answer;
  answer.status = 200;
  answer.body = json{
      {"metadata", {{"resourceVersion", version}, {"continue", token}}},
      {"items",
       items}}.dump();
  return answer;
}

// Nodes and slices are one page each, everything else is empty; watches last until the end.
class FleetTransport final : public kube::Transport {
 public:
  absl::StatusOr<kube::Response> Send(const kube::Request& request) override {
    const auto has = [&](const char* text) {
      return request.target.find(text) != std::string::npos;
    };
    if (has("/nodes")) return Page(NodeItem());
    if (!has("/resourceslices") || has("driver%21%3D")) return List("1", {});
    // The join of the node is under way when the slices come.
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return node_told; });
    slices_thread = gettid();
    return Page(SliceItem());
  }
  absl::StatusOr<kube::Response> Stream(const kube::Request&, const kube::LineSink&,
                                        std::chrono::milliseconds) override {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return over; });
    return Unavailable("over");
  }

  std::mutex mutex;
  std::condition_variable changed;
  bool node_told = false;
  std::atomic<pid_t> slices_thread = 0;  // the thread with the slices, once it has them
  bool over = false;

 private:
  static kube::Response Page(const json& item) {
    kube::Response answer;
    answer.status = 200;
    answer.body = json{{"metadata", {{"resourceVersion", "1"}}}, {"items", {item}}}.dump();
    return answer;
  }
  static json NodeItem() { return {{"metadata", {{"name", "n"}, {"uid", "u-n"}}}}; }
  static json SliceItem() {
    return {{"metadata", {{"name", "n-neuron"}, {"uid", "u-s"}}},
            {"spec",
             {{"driver", kNeuronDriver},
              {"nodeName", "n"},
              {"pool", {{"name", "n"}, {"generation", 1}, {"resourceSliceCount", 1}}},
              {"devices", {{{"name", "neurondevice0"}}}}}}};
  }
};

// The defect: a node without its slices, joined first but handed on last, took its chips away. The
// sink keeps the node until the slices' thread has handed its news on, or cannot.
TEST(IngestTest, NewerNewsOfANodeIsNeverOvertakenByOlderNews) {
  FleetTransport transport;
  std::vector<std::vector<std::string>> told;
  bool synced = false;
  const auto sink = [&](const Command& command) {
    std::unique_lock lock(transport.mutex);
    if (std::holds_alternative<WatchesSynced>(command)) synced = true;
    if (std::holds_alternative<NodeSeen>(command)) {
      const bool first = !std::exchange(transport.node_told, true);
      transport.changed.notify_all();
      for (bool blocked = !first; !blocked && told.empty();) {
        lock.unlock();  // else this lock might block the other thread
        std::this_thread::yield();
        blocked = transport.slices_thread != 0 && testing::IsBlocked(transport.slices_thread);
        lock.lock();
      }
      told.push_back(DevicesOf(command));
    }
    transport.changed.notify_all();
  };
  NeverWaits sleeper;
  Ingest ingest(transport, {"tahoma"}, sink, sleeper, Rng(1), [](const std::string&) {});
  ingest.Start();
  {
    std::unique_lock lock(transport.mutex);
    transport.changed.wait(lock, [&] { return synced && told.size() == 2; });
    transport.over = true;
    transport.changed.notify_all();
  }
  ingest.Stop();
  EXPECT_THAT(told, ElementsAre(ElementsAre(), ElementsAre("neurondevice0")));
}

// Answers every list with nothing but two pods, one for each of two schedulers.
class PodsTransport final : public kube::Transport {
 public:
  std::vector<std::string> targets;

  absl::StatusOr<kube::Response> Send(const kube::Request& request) override {
    targets.push_back(request.target);
    kube::Response answer = List("1", {});
    if (request.target.starts_with("/api/v1/pods")) {
      answer = List("1", {"ours", "aws", "foreign"});
      json list = ParseJson(answer.body);
      const std::array names = {"tahoma", "default-scheduler", "volcano"};
      for (std::size_t i = 0; i < names.size(); ++i) {
        list["items"][i]["spec"] = {{"schedulerName", names[i]},
                                    {"nodeName", std::string("node-of-") + names[i]}};
      }
      answer.body = list.dump();
    }
    return answer;
  }
  absl::StatusOr<kube::Response> Stream(const kube::Request&, const kube::LineSink&,
                                        std::chrono::milliseconds) override {
    return Unavailable("no watches here");
  }
};

struct Followed {
  std::vector<std::string> pods;
  std::vector<std::string> others;   // the nodes of pods of other schedulers
  std::vector<std::string> targets;  // of the lists of pods
};

Followed PodsFollowed(const std::vector<std::string>& scheduler_names) {
  PodsTransport transport;
  Followed followed;
  NeverWaits sleeper;
  Ingest ingest(
      transport, scheduler_names,
      [&](const Command& command) {
        if (const auto* pod = std::get_if<PodSeen>(&command)) {
          followed.pods.push_back(pod->pod->key.name);
        }
        if (const auto* other = std::get_if<OtherPodMoved>(&command)) {
          followed.others.push_back(other->node);
        }
      },
      sleeper, Rng(1), [](const std::string&) {});
  const std::size_t watches = ingest.StartStepping();
  for (std::size_t i = 0; i < watches; ++i) EXPECT_TRUE(ingest.Step(i).ok());
  for (const std::string& target : transport.targets) {
    if (target.starts_with("/api/v1/pods")) followed.targets.push_back(target);
  }
  return followed;
}

// A node, a slice of its devices and a pod of another scheduler.
struct Objects {
  json node = ParseJson(R"({"metadata": {"name": "n", "uid": "u", "resourceVersion": "7",
      "generation": 3, "creationTimestamp": "2026-11-21T10:00:00Z",
      "labels": {"a/b": "c", "d": "\u00e9", "neuron.amazonaws.com/ultraserver-server-id-4": "us-1",
        "neuron.amazonaws.com/ultraserver-node-id-4": "2"},
      "annotations": {"tahoma.dev/cordoned-chips": "1", "other": "x"},
      "managedFields": [{"manager": "k", "fieldsV1": {"k:{\"type\":\"Ready\"}": {}}}]},
    "spec": {"taints": [{"key": "k", "value": "v", "effect": "NoExecute",
        "timeAdded": "2026-11-21T10:00:00Z"}], "unschedulable": true, "providerID": "aws:///i-1"},
    "status": {"conditions": [{"type": "Ready", "status": "False", "message": "m"},
        {"type": "DiskPressure", "status": "False"}], "capacity": {"cpu": "9"},
      "allocatable": {"cpu": "8", "memory": "1Gi", "pods": "110"},
      "images": [{"names": ["i"]}]}})");
  json slice = ParseJson(R"({"metadata": {"name": "s", "uid": "us", "resourceVersion": "8",
      "managedFields": [{"manager": "p"}]},
    "spec": {"driver": "neuron.aws.com", "nodeName": "n",
      "pool": {"name": "n", "generation": 4, "resourceSliceCount": 1},
      "sharedCounters": [{"name": "c", "counters": {"chip-0": {"value": "8"}}}],
      "devices": [{"name": "neuron-device-0", "attributes": {"deviceId": {"int": 0},
          "resourceType": {"string": "neuron_device"}, "instanceType": {"string": "trn2.48xlarge"},
          "driverVersion": {"version": "2.26.10"}, "tahoma.dev/linksDown": {"string": "x+"},
          "example.com/new": {"bool": true}}, "capacity": {"memory": {"value": "96Gi"}},
          "consumesCounters": [{"counterSet": "c", "counters": {"chip-0": {"value": "8"}}}],
          "taints": [{"key": "tahoma.dev/managed", "value": "w", "effect": "NoSchedule"}]},
        {"name": "neuron-device-1", "allowMultipleAllocations": true,
          "attributes": {"deviceId": {"int": 1},
            "resourceType": {"string": "neuron\u005fdevice"}}}]}})");
  json pod = ParseJson(R"({"metadata": {"name": "p", "namespace": "ns", "uid": "up",
      "resourceVersion": "8", "labels": {"a": "b"}, "ownerReferences": [{"kind": "Job"}],
      "deletionTimestamp": "2026-11-21T10:00:00Z"},
    "spec": {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
        [{"topologyKey": "zone", "labelSelector": {"matchLabels": {"a": "b"}}}],
        "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1}]}}, "nodeName": "n",
      "schedulerName": "default-scheduler", "hostNetwork": true, "overhead": {"cpu": "1"},
      "resources": {"requests": {"memory": "2Gi"}, "limits": {"cpu": "16"}},
      "containers": [{"name": "c", "image": "i", "ports": [{"name": "w", "containerPort": 80,
          "hostPort": 8080, "hostIP": "10.0.0.1", "protocol": "UDP"}],
        "resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "4", "example.com/g": "3"}}}],
      "initContainers": [{"name": "s", "restartPolicy": "Always", "ports": [{"containerPort": 81}],
        "resources": {"requests": {"cpu": "4"}}}, {"name": "i",
        "resources": {"requests": {"cpu": "40", "ephemeral-storage": "1Gi"}}}]},
    "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}})");
};

// Answers the lists of nodes, slices and other schedulers' pods, as a text or as a value.
class FullTransport final : public kube::Transport {
 public:
  FullTransport(const Objects& objects, bool as_text) : objects_(objects), as_text_(as_text) {}

  absl::StatusOr<kube::Response> Send(const kube::Request& request) override {
    const std::string& target = request.target;
    json items = json::array();
    if (target.starts_with("/api/v1/nodes")) items.push_back(objects_.node);
    if (target.find("/resourceslices") != std::string::npos) items.push_back(objects_.slice);
    if (target.find("spec.nodeName") != std::string::npos) items.push_back(objects_.pod);
    const json list = {{"metadata", {{"resourceVersion", "9"}}}, {"items", items}};
    kube::Response answer{.status = 200};
    if (as_text_) answer.body = list.dump(1);
    if (!as_text_) answer.parsed = std::make_shared<const json>(list);
    return answer;
  }
  absl::StatusOr<kube::Response> Stream(const kube::Request&, const kube::LineSink&,
                                        std::chrono::milliseconds) override {
    return Unavailable("no watches here");
  }

 private:
  const Objects& objects_;
  const bool as_text_;
};

// Everything that a node says, as a text.
std::string TextOf(const Node& node) {
  std::string text = fmt::format("{} {} {} {} {}", node.name, node.cordoned, node.ready,
                                 node.ultraserver_id, node.z);
  for (const auto& [key, value] : node.labels) text += fmt::format(" {}={}", key, value);
  const auto add_taints = [&](const std::vector<Taint>& taints) {
    for (const Taint& taint : taints) {
      text += fmt::format(" {}={}:{}", taint.key, taint.value, static_cast<int>(taint.effect));
    }
  };
  add_taints(node.taints);
  if (node.allocatable != nullptr) {
    for (const auto& [name, amount] : *node.allocatable)
      text += fmt::format(" {}={}", name, amount);
  }
  const NodeTemplate& devices = *node.family->devices;
  text += fmt::format(" {:x} {:x}", devices.chip_mask, devices.healthy_mask);
  for (std::uint16_t i = 0; i < devices.devices.size(); ++i) {
    const Device& device = node.device(i);
    text += fmt::format("\n{} {}", device.name, device.allow_multiple_allocations);
    for (const Attribute& one : node.Attributes(i)) {
      text += fmt::format(" {}/{}={}", one.name.domain, one.name.id, kube::ToString(one.value));
    }
    for (const auto& one : device.capacities) {
      text += fmt::format(" {}/{}={}", one.name.domain, one.name.id, one.quantity);
    }
    add_taints(device.taints);
  }
  return text;
}

std::string TextOf(const OtherPodMoved& moved) {
  std::string text = moved.node;
  for (const auto& [name, amount] : moved.added->needs.amounts)
    text += fmt::format(" {}={}", name, amount);
  for (const kube::HostPort& port : moved.added->needs.ports) {
    text += fmt::format(" {}:{}/{}", port.ip, port.port, port.protocol);
  }
  text += fmt::format(" in {}{}", moved.added->ns, moved.added->deleting ? ", deleting" : "");
  for (const auto& [key, value] : moved.added->labels) text += fmt::format(" {}={}", key, value);
  for (const auto& term : moved.added->apart) text += " apart by " + term.topology_key;
  return text;
}

// Returns the commands and the log lines that ingest makes of the objects.
std::vector<std::string> ToldOf(const Objects& objects, bool as_text) {
  FullTransport transport(objects, as_text);
  std::vector<std::string> told;
  NeverWaits sleeper;
  const auto sink = [&](const Command& command) {
    if (const auto* seen = std::get_if<NodeSeen>(&command)) told.push_back(TextOf(*seen->node));
    if (const auto* moved = std::get_if<OtherPodMoved>(&command)) told.push_back(TextOf(*moved));
  };
  Ingest ingest(transport, {"tahoma"}, sink, sleeper, Rng(1),
                [&](const std::string& line) { told.push_back(line); });
  const std::size_t watches = ingest.StartStepping();
  for (std::size_t i = 0; i < watches; ++i) EXPECT_TRUE(ingest.Step(i).ok());
  return told;
}

TEST(IngestTest, ListsThatComeAsTextAreReadAsListsThatComeAsValues) {
  const auto told = ToldOf({}, true);
  EXPECT_EQ(told, ToldOf({}, false));
  ASSERT_EQ(told.size(), 3U);
  EXPECT_THAT(told[0], HasSubstr("n true false us-1 2 a/b=c d=\xc3\xa9"));
  EXPECT_THAT(told[0], HasSubstr(" k=v:2 cpu=8000 memory=1073741824 pods=110 0 0"));
  EXPECT_THAT(told[1], HasSubstr(" 3 1\nneuron-device-0 false neuron.aws.com/deviceId=0"));
  EXPECT_EQ(told[2],
            "n cpu=17000 ephemeral-storage=1073741824 example.com/g=3 memory=2147483648 pods=1 "
            ":81/TCP 10.0.0.1:8080/UDP in ns, deleting a=b apart by zone");
}

// A field that is read of values and is missing in the parts of texts would show here, when the
// field changes or is away.
TEST(IngestTest, AChangeOfAnyFieldIsReadFromTextAsFromValues) {
  const auto pointers_of = [](const json& object) {
    std::vector<json::json_pointer> pointers;
    std::vector<json::json_pointer> open = {json::json_pointer()};
    while (!open.empty()) {
      const json::json_pointer at = open.back();
      open.pop_back();
      const json& value = object.at(at);
      if (!at.empty()) pointers.push_back(at);
      if (value.is_object()) {
        for (const auto& [name, member] : MembersOf(value)) open.push_back(at / name);
      }
      for (std::size_t i = 0; value.is_array() && i < value.size(); ++i) open.push_back(at / i);
    }
    return pointers;
  };
  const std::vector<std::string> before = ToldOf({}, false);
  int read = 0;
  for (json Objects::*kind : {&Objects::node, &Objects::slice, &Objects::pod}) {
    for (const json::json_pointer& at : pointers_of(Objects().*kind)) {
      for (const json& other : {json(), json("other"), json(7), json(true), json("NoSchedule"),
                                json::array({"other"}), json{{"other", "3"}}}) {
        Objects objects;
        (objects.*kind)[at] = other;
        const auto told = ToldOf(objects, false);
        ASSERT_EQ(ToldOf(objects, true), told) << at.to_string() << " " << other.dump();
        if (told != before) ++read;
      }
    }
  }
  EXPECT_GT(read, 300);
}

TEST(IngestTest, AListTextThatEndsEarlyIsNoList) {
  class CutTransport final : public kube::Transport {
   public:
    absl::StatusOr<kube::Response> Send(const kube::Request& request) override {
      absl::StatusOr<kube::Response> answer = whole_.Send(request);
      answer->body.resize(answer->body.size() * 2 / 3);
      return answer;
    }
    absl::StatusOr<kube::Response> Stream(const kube::Request& request, const kube::LineSink& sink,
                                          std::chrono::milliseconds quiet) override {
      return whole_.Stream(request, sink, quiet);
    }

   private:
    const Objects objects_;
    FullTransport whole_{objects_, true};
  };
  CutTransport transport;
  NeverWaits sleeper;
  Ingest ingest(
      transport, {"tahoma"}, [](const Command&) { ADD_FAILURE(); }, sleeper, Rng(1),
      [](const std::string&) {});
  const std::size_t watches = ingest.StartStepping();
  for (std::size_t i = 0; i < watches; ++i) EXPECT_FALSE(ingest.Step(i).ok());
}

// Every list is a broken object and a right object; the gangs come once more.
class HalfBrokenTransport final : public kube::Transport {
 public:
  absl::StatusOr<kube::Response> Send(const kube::Request& request) override {
    kube::Response answer = List("1", {"broken", "right"});
    json list = ParseJson(answer.body);
    json& broken = list["items"][0];
    if (request.target.find("/nodes") != std::string::npos) {
      broken["spec"] = {{"taints", {{{"key", 7}}}}};
    } else if (request.target.find("/gangs") != std::string::npos) {
      broken["spec"] = {{"members", "four"}};
      list["items"][1]["spec"] = {{"members", 4}};
    } else if (request.target.find("spec.nodeName") != std::string::npos) {
      list["items"] = json::array();  // pods of other schedulers
    } else if (request.target.find("/pods") != std::string::npos) {
      broken["metadata"] = "none";
      list["items"][1]["spec"] = {{"schedulerName", "tahoma"}};
    } else if (request.target.find("/deviceclasses") != std::string::npos) {
      broken["spec"] = {{"selectors", {{{"cel", 1}}}}};
    } else if (request.target.find("/resourceclaims") != std::string::npos) {
      broken["metadata"]["finalizers"] = {1};
    } else if (request.target.find("/resourceslices") != std::string::npos) {
      broken["spec"] = {{"driver", kNeuronDriver}, {"nodeName", "liar"}, {"pool", {{"name", "n"}}}};
      list["items"].erase(1);
    } else {
      list["items"] = json::array();
    }
    answer.body = list.dump();
    return answer;
  }
  absl::StatusOr<kube::Response> Stream(const kube::Request&, const kube::LineSink&,
                                        std::chrono::milliseconds) override {
    return Unavailable("no watches here");
  }
};

// The defect: a client wrote an object, and the scheduler saw no object of its kind any more.
TEST(IngestTest, AnObjectThatCannotBeReadIsLeftOutWithOneLineAndTheRestGoesOn) {
  HalfBrokenTransport transport;
  std::vector<std::string> seen;
  std::vector<std::string> lines;
  int synced = 0;
  NeverWaits sleeper;
  Ingest ingest(
      transport, {"tahoma"},
      [&](const Command& command) {
        if (const auto* gang = std::get_if<GangSeen>(&command))
          seen.push_back(gang->gang->key.name);
        if (const auto* pod = std::get_if<PodSeen>(&command)) seen.push_back(pod->pod->key.name);
        if (const auto* claim = std::get_if<ClaimSeen>(&command)) {
          seen.push_back(claim->claim->key.name);
        }
        synced += std::holds_alternative<WatchesSynced>(command) ? 1 : 0;
      },
      sleeper, Rng(1), [&](const std::string& line) { lines.push_back(line); });
  const std::size_t watches = ingest.StartStepping();
  for (int round = 0; round < 2; ++round) {  // list, a watch that fails, list
    for (std::size_t i = 0; i < watches; ++i) EXPECT_TRUE(ingest.Step(i).ok());
    if (round == 0) {
      for (std::size_t i = 0; i < watches; ++i) EXPECT_FALSE(ingest.Step(i).ok());
    }
  }
  EXPECT_EQ(synced, 1);
  EXPECT_THAT(seen, ElementsAre("right", "right", "right", "right", "right", "right"));
  EXPECT_THAT(
      lines,
      ElementsAre(
          HasSubstr("watch: /api/v1/nodes: ns/broken is left out: node broken: "),
          HasSubstr("resourceslices: ns/broken is left out: its pool is n and its node liar: "),
          HasSubstr("watch: /apis/resource.k8s.io/v1/deviceclasses: ns/broken is left out: "),
          HasSubstr("watch: /apis/resource.k8s.io/v1/resourceclaims: ns/broken is left out: "),
          HasSubstr("watch: /apis/tahoma.dev/v1alpha1/gangs: ns/broken is left out: gang broken: "),
          HasSubstr("watch: /api/v1/pods: an object is left out: it has no name")));
}

// Answers every list with nothing, and does not know the kinds of Capacity Blocks.
// Knows no Capacity Blocks and no claims to volumes, and lets nobody read volumes.
class NoBlocksTransport final : public kube::Transport {
 public:
  absl::StatusOr<kube::Response> Send(const kube::Request& request) override {
    const auto has = [&](const char* text) {
      return request.target.find(text) != std::string::npos;
    };
    kube::Response answer;
    if (has("/capacityblock") || has("/persistentvolumeclaims")) {
      answer.status = 404;
      answer.body = R"({"kind": "Status", "status": "Failure", "reason": "NotFound", "code": 404})";
    } else if (has("/persistentvolumes") || has("/storageclasses")) {
      answer.status = 403;
      answer.body =
          R"({"kind": "Status", "status": "Failure", "reason": "Forbidden", "code": 403})";
    } else {
      return List("1", {});
    }
    return answer;
  }
  absl::StatusOr<kube::Response> Stream(const kube::Request&, const kube::LineSink&,
                                        std::chrono::milliseconds) override {
    return Unavailable("no watches here");
  }
};

// A program newer than its cluster's chart still places gangs.
TEST(IngestTest, AKindThatIsNotDefinedYetOrNotReadableHoldsUpNothing) {
  NoBlocksTransport transport;
  std::mutex mutex;
  std::condition_variable changed;
  bool synced = false;
  NeverWaits sleeper;
  Ingest ingest(
      transport, {"tahoma"},
      [&](const Command& command) {
        const std::lock_guard lock(mutex);
        synced = synced || std::holds_alternative<WatchesSynced>(command);
        changed.notify_all();
      },
      sleeper, Rng(1), [](const std::string&) {});
  ingest.Start();
  {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return synced; });
  }
  ingest.Stop();
}

TEST(IngestTest, OneSchedulerNameIsSelectedByTheServer) {
  const Followed followed = PodsFollowed({"tahoma"});
  EXPECT_THAT(followed.pods, ElementsAre("ours"));
  EXPECT_THAT(followed.targets, Contains(HasSubstr("fieldSelector=spec.schedulerName%3Dtahoma")));
}

TEST(IngestTest, SeveralSchedulerNamesAreFollowedOnOneWatch) {
  const Followed followed = PodsFollowed({"tahoma", "default-scheduler"});
  EXPECT_THAT(followed.pods, ElementsAre("ours", "aws"));
  EXPECT_THAT(followed.targets, Contains(::testing::Not(HasSubstr("fieldSelector"))));
}

TEST(IngestTest, PodsOfOtherSchedulersCountOnTheirNodes) {
  const Followed followed = PodsFollowed({"tahoma"});
  EXPECT_THAT(followed.others, ElementsAre("node-of-default-scheduler", "node-of-volcano"));
  EXPECT_THAT(followed.targets,
              Contains(AllOf(HasSubstr("spec.nodeName%21%3D%2C"), HasSubstr("status.phase%21%3D"),
                             HasSubstr("spec.schedulerName%21%3Dtahoma"))));
}

}  // namespace
}  // namespace tahoma::controller
