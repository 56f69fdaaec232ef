// Objects of the API server as the pod runner reads and writes them: pods, their history, the node.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "lib/base/json.h"
#include "lib/base/status.h"
#include "sim-node/podrunner/node_object.h"
#include "sim-node/podrunner/pod_machine.h"
#include "sim-node/podrunner/pod_spec.h"

namespace tahoma::sim {
namespace {

using json = Json;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

json SmallPod() {
  return ParseJson(R"({"metadata": {"name": "p", "namespace": "ns", "uid": "u-1"},
                         "spec": {"nodeName": "n", "containers": [{"name": "main"}]}})");
}

// ---- Pods --------------------------------------------------------------------------------------

TEST(PodSpecTest, WhatIsLeftOutHasKubernetesDefaults) {
  const PodSpec pod = *ParsePod(SmallPod());
  EXPECT_EQ(pod.full_name(), "ns/p");
  EXPECT_EQ(pod.restart_policy, RestartPolicy::kAlways);
  EXPECT_EQ(pod.grace, seconds(30));
  EXPECT_EQ(pod.active_deadline, std::nullopt);
  EXPECT_EQ(pod.deletion_grace, std::nullopt);
  EXPECT_TRUE(pod.claims.empty() && pod.init_containers.empty() && pod.ignored.empty());
}

TEST(PodSpecTest, EveryFieldThatIsHonouredIsRead) {
  json object = SmallPod();
  object["metadata"]["labels"] = {{"app", "web"}, {"bad", 3}};
  object["spec"].update(ParseJson(R"({
    "restartPolicy": "OnFailure", "terminationGracePeriodSeconds": 5, "activeDeadlineSeconds": 60,
    "serviceAccountName": "sa", "initContainers": [{"name": "init", "image": "i"}],
    "containers": [{"name": "main", "image": "tools:1", "command": ["sh"], "args": ["-c", "true"],
      "workingDir": "/tmp", "resources": {"claims": [{"name": "c", "request": "r"}, {"name": "c"}]},
      "env": [{"name": "A", "value": "1"},
              {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
              {"name": "C", "valueFrom": {"configMapKeyRef": {"name": "m", "key": "k"}}},
              {"name": "D", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k",
                                                           "optional": true}}},
              {"name": "E", "valueFrom": {"resourceFieldRef": {}}}],
      "envFrom": [{"configMapRef": {"name": "all"}, "prefix": "P_"},
                  {"secretRef": {"name": "hidden", "optional": true}}]}]})"));
  const PodSpec pod = *ParsePod(object);
  EXPECT_EQ(pod.restart_policy, RestartPolicy::kOnFailure);
  EXPECT_EQ(pod.grace, seconds(5));
  EXPECT_EQ(pod.active_deadline, seconds(60));
  EXPECT_EQ(pod.labels, (std::map<std::string, std::string>{{"app", "web"}}));
  ASSERT_NE(pod.FindContainer("init"), nullptr);
  EXPECT_EQ(pod.FindContainer("none"), nullptr);
  const ContainerSpec& main = pod.containers[0];
  EXPECT_THAT(main.args, ElementsAre("-c", "true"));
  ASSERT_EQ(main.env.size(), 5U);
  using Source = EnvVar::Source;
  const std::vector<Source> sources = {Source::kValue, Source::kField, Source::kConfigMapKey,
                                       Source::kSecretKey, Source::kUnsupported};
  for (std::size_t i = 0; i < sources.size(); ++i) EXPECT_EQ(main.env[i].source, sources[i]) << i;
  EXPECT_TRUE(main.env[3].optional);
  EXPECT_EQ(main.env[4].value, "resourceFieldRef");
  EXPECT_EQ(main.env_from[0].prefix, "P_");
  EXPECT_EQ(main.env_from[1].source, EnvFrom::Source::kSecret);
  EXPECT_EQ(main.claims[0].request, "r");
  EXPECT_EQ(main.claims[1].request, "");
}

TEST(PodSpecTest, ClaimsComeFromTheSpecOrFromTheStatus) {
  json object = SmallPod();
  object["spec"]["resourceClaims"] = ParseJson(
      R"([{"name": "given", "resourceClaimName": "g"},
          {"name": "made", "resourceClaimTemplateName": "t"},
          {"name": "not-yet", "resourceClaimTemplateName": "t"},
          {"name": "none", "resourceClaimTemplateName": "t"}])");
  object["status"]["resourceClaimStatuses"] = ParseJson(
      R"([{"name": "made", "resourceClaimName": "p-made-x"}, {"name": "none"},
          {"name": "given", "resourceClaimName": "another"}])");
  const PodSpec pod = *ParsePod(object);
  std::vector<std::string> objects;
  for (const PodClaim& claim : pod.claims) objects.push_back(claim.claim);
  EXPECT_THAT(objects, ElementsAre("g", "p-made-x", "", ""));
  EXPECT_FALSE(pod.claims[2].none);
  EXPECT_TRUE(pod.claims[3].none);
}

TEST(PodSpecTest, ADeletedPodHasTheGraceOfItsDeletionOrItsOwn) {
  json object = SmallPod();
  object["spec"]["terminationGracePeriodSeconds"] = 7;
  object["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z";
  EXPECT_EQ(ParsePod(object)->deletion_grace, seconds(7));
  object["metadata"]["deletionGracePeriodSeconds"] = 0;
  EXPECT_EQ(ParsePod(object)->deletion_grace, seconds(0));
  object["metadata"]["deletionGracePeriodSeconds"] = -5;
  EXPECT_EQ(ParsePod(object)->deletion_grace, seconds(0));
  object["metadata"]["deletionGracePeriodSeconds"] = std::int64_t{1} << 62;
  EXPECT_EQ(ParsePod(object)->deletion_grace, seconds(365 * 24 * 3600)) << "bounded";
}

TEST(PodSpecTest, WhatALocalProcessCannotHonourIsListed) {
  json object = SmallPod();
  object["spec"]["containers"][0]["livenessProbe"] = json::object();
  object["spec"]["initContainers"] = ParseJson(R"([{"name": "i", "lifecycle": {}}])");
  object["spec"]["volumes"] =
      ParseJson(R"([{"name": "data", "nfs": {"server": "s"}}, {"name": "tmp"},
      {"name": "kube-api-access-abc", "projected": {"sources": []}}])");
  EXPECT_THAT(ParsePod(object)->ignored,
              ElementsAre("initContainers[i].lifecycle", "containers[main].livenessProbe",
                          "volumes[data].nfs"));
}

TEST(PodSpecTest, VolumesAndTheirMountsAreRead) {
  json object = SmallPod();
  object["spec"]["volumes"] = ParseJson(R"([
    {"name": "a", "emptyDir": {"medium": "Memory"}},
    {"name": "b", "hostPath": {"path": "/x", "type": "File"}},
    {"name": "c", "persistentVolumeClaim": {"claimName": "data", "readOnly": true}},
    {"name": "d", "ephemeral": {"volumeClaimTemplate": {}}},
    {"name": "e", "secret": {"secretName": "s", "defaultMode": 256,
      "items": [{"key": "k", "path": "p", "mode": 292}]}},
    {"name": "f", "projected": {"sources": [
      {"serviceAccountToken": {"path": "token", "audience": "x"}},
      {"downwardAPI": {"items": [{"path": "n", "fieldRef": {"fieldPath": "metadata.name"}}]}},
      {"clusterTrustBundle": {}}]}}])");
  object["spec"]["containers"][0]["volumeMounts"] = ParseJson(R"([
    {"name": "a", "mountPath": "/a", "subPath": "s", "readOnly": true},
    {"name": "b", "mountPath": "/b", "subPathExpr": "$(N)/x"}])");
  const PodSpec pod = *ParsePod(object);
  ASSERT_EQ(pod.volumes.size(), 6U);
  EXPECT_TRUE(pod.volumes[0].in_memory);
  EXPECT_EQ(pod.volumes[1].path_type, "File");
  EXPECT_TRUE(pod.volumes[2].read_only);
  EXPECT_EQ(pod.volumes[3].what, "p-d");
  EXPECT_EQ(pod.volumes[4].mode, 0400);
  EXPECT_EQ(pod.volumes[4].sources[0].files[0].mode, 0444);
  EXPECT_EQ(pod.volumes[5].sources[0].audience, "x");
  EXPECT_EQ(pod.volumes[5].sources[1].files[0].key, "metadata.name");
  EXPECT_EQ(pod.volumes[5].sources[2].object, "clusterTrustBundle");
  const std::vector<MountSpec>& mounts = pod.mounts.at("main");
  EXPECT_EQ(mounts[0].sub_path, "s");
  EXPECT_TRUE(mounts[0].read_only);
  EXPECT_TRUE(mounts[1].expands);
}

TEST(PodSpecTest, APodThatCannotRunIsRefusedWithThePath) {
  struct Case {
    const char* patch;  // merged into the pod
    const char* says;
  };
  for (const Case& c :
       std::vector<Case>{{R"({"metadata": {"uid": "../x"}})", "metadata.uid \"../x\" is no uid"},
                         {R"({"metadata": {"uid": ".x"}})", "is no uid"},
                         {R"({"metadata": {"name": null}})", "metadata.name or uid is missing"},
                         {R"({"spec": {"containers": [{"name": "a/b"}]}})",
                          "containers[0]: name \"a/b\" is not a DNS label"},
                         {R"({"spec": {"containers": [{"name": "a"}, {"name": "a"}]}})",
                          "containers has two containers named a"},
                         {R"({"spec": {"containers": [{"name": "a", "command": "sh"}]}})",
                          "pod ns/p: spec.containers[0].command: is a string, must be a list"},
                         {R"({"spec": {"containers": [{"name": "a", "args": [1]}]}})",
                          "pod ns/p: spec.containers[0].args[0]: is a number, must be a string"},
                         {R"({"spec": {"containers": [{"name": "a", "env": [{"value": "x"}]}]}})",
                          "pod ns/p: spec.containers[0].env[0].name: is missing"},
                         {R"({"spec": {"restartPolicy": "Maybe"}})",
                          "spec.restartPolicy: is Maybe; expected Always, OnFailure or Never"}}) {
    json object = SmallPod();
    object.merge_patch(ParseJson(c.patch));
    const auto pod = ParsePod(object);
    ASSERT_FALSE(pod.ok()) << c.patch;
    EXPECT_THAT(Message(pod.status()), HasSubstr(c.says));
  }
  json many = SmallPod();
  for (int i = 0; i < 65; ++i) {
    many["spec"]["containers"][static_cast<std::size_t>(i)] = {{"name", fmt::format("c{}", i)}};
  }
  EXPECT_THAT(Message(ParsePod(many).status()),
              HasSubstr("spec.containers: has 65 entries; at most 64 are taken"));
}

// ---- What a former runner wrote ----------------------------------------------------------------

TEST(PodHistoryTest, AStatusIsReadBackAsItWasWritten) {
  constexpr WallTime kStart{std::chrono::hours(24 * 365 * 50)};
  json object = SmallPod();
  object["spec"]["restartPolicy"] = "OnFailure";
  PodMachine pod(*ParsePod(object), {}, {.host_ip = "h", .pod_ip = "p"});
  pod.Start(kStart);
  pod.OnStarted("main", 0, "tahoma://1", kStart + seconds(1));
  pod.OnExited("main", 0, {.code = 3}, kStart + seconds(2));
  pod.OnStarted("main", 1, "tahoma://2", kStart + seconds(3));
  object["status"] = pod.Status();
  const PodHistory history = ParseHistory(object);
  EXPECT_EQ(history.phase, "Running");
  EXPECT_EQ(history.start_time, kStart);
  const PodHistory::Container& main = history.containers.at("main");
  EXPECT_EQ(main.restarts, 1);
  EXPECT_TRUE(main.was_running);
  EXPECT_EQ(main.started, kStart + seconds(3));
  EXPECT_EQ(main.container_id, "tahoma://2");
  ASSERT_TRUE(main.terminated);
  EXPECT_EQ(main.terminated->exit.code, 3);
  EXPECT_EQ(main.terminated->finished, kStart + seconds(2));
}

TEST(PodHistoryTest, WhatCannotBeReadIsLeftOut) {
  for (const char* status : {"null", "[]", "{}", R"({"startTime": "soon", "phase": 3})",
                             R"({"containerStatuses": [3, {"name": "a", "state": []}]})"}) {
    json object = SmallPod();
    object["status"] = ParseJson(status);
    const PodHistory history = ParseHistory(object);
    EXPECT_EQ(history.phase, "") << status;
    EXPECT_EQ(history.start_time, std::nullopt);
  }
  EXPECT_TRUE(ParseHistory(json()).containers.empty());
}

TEST(PodPhaseTest, APodIsPendingWhileSomeContainerHasNeverRun) {
  json object = SmallPod();
  object["spec"]["containers"].push_back({{"name", "side"}});
  PodMachine pod(*ParsePod(object), {}, {});
  pod.Start(WallTime{});
  pod.OnStarted("main", 0, "1", WallTime{});
  EXPECT_EQ(pod.phase(), "Pending") << "kubelet getPhase: waiting comes before running";
  pod.OnStartFailed("side", 0, {"ErrImagePull", "no"}, WallTime{});
  EXPECT_EQ(pod.phase(), "Pending");
}

// ---- The node ----------------------------------------------------------------------------------

TEST(NodeObjectTest, AMemberOfAnUltraServerHasTheLabelsOfAws) {
  const NodeFacts facts{.name = "n3",
                        .instance_type = "trn2u.48xlarge",
                        .ultra_server_id = "us-1",
                        .ultra_server_node = 3,
                        .network_layers = {"nn-1", "nn-2", "nn-3"},
                        .capacity_block_id = "cr-1"};
  const auto labels = NodeLabels(facts);
  EXPECT_EQ(labels.at("node.kubernetes.io/instance-type"), "trn2u.48xlarge");
  EXPECT_EQ(labels.at("topology.k8s.aws/network-node-layer-3"), "nn-3");
  EXPECT_EQ(labels.at("topology.k8s.aws/capacity-block-id"), "cr-1");
  EXPECT_EQ(labels.at("neuron.amazonaws.com/ultraserver-server-id-4"), "us-1");
  EXPECT_EQ(labels.at("neuron.amazonaws.com/ultraserver-node-id-4"), "3");
  EXPECT_EQ(labels.at("neuron.amazonaws.com/ultraserver-server-id-2"), "us-1-1") << "2 and 3";
  EXPECT_EQ(labels.at("neuron.amazonaws.com/ultraserver-node-id-2"), "1");
}

TEST(NodeObjectTest, AnElectedUltraServerHasTheLabelsOfItsElection) {
  using enum hw::UltraServerMode;
  NodeFacts facts{.name = "node-0", .ultra_server_id = "us-1", .ultra_server_node = 3};
  const auto labels = [&] {
    std::string all;
    for (const auto& [key, value] : NodeLabels(facts)) {
      const std::string prefix = "neuron.amazonaws.com/ultraserver-";
      if (key.starts_with(prefix)) all += key.substr(prefix.size()) + "=" + value + " ";
    }
    return all;
  };
  EXPECT_EQ(labels(), "mode=1_2_4 node-id-2=1 node-id-4=3 server-id-2=us-1-1 server-id-4=us-1 ")
      << "as wired, without an election";
  facts.election = wire::UltraServerElection{.running = true};
  EXPECT_EQ(labels(), "mode=busy ");
  facts.election = wire::UltraServerElection{.modes = {kX4, kX2V, kX1},
                                             .server_id_2 = "af",
                                             .node_id_2 = 1,
                                             .server_id_4 = "b0",
                                             .node_id_4 = 3};
  EXPECT_EQ(labels(), "mode=1_2_4 node-id-2=1 node-id-4=3 server-id-2=af server-id-4=b0 ");
  facts.election =
      wire::UltraServerElection{.modes = {kX2H, kX1}, .server_id_2 = "af", .node_id_2 = 1};
  EXPECT_EQ(labels(), "mode=1_2 node-id-2=1 server-id-2=af ");
  facts.election = wire::UltraServerElection{.modes = {kX1}};
  EXPECT_EQ(labels(), "mode=1 ");
  EXPECT_EQ(NodeLabels(facts).at("topology.k8s.aws/ultraserver-id"), "us-1") << "it stays wired";
}

TEST(NodeObjectTest, LabelsThatANodeNoLongerHasAreTakenAway) {
  NodeFacts facts{.name = "node-0", .ultra_server_id = "us-1"};
  facts.election = wire::UltraServerElection{.modes = {hw::UltraServerMode::kX1}};
  const Json patch = LabelPatch(facts);
  EXPECT_EQ(patch["neuron.amazonaws.com/ultraserver-mode"], "1");
  for (const char* gone : {"server-id-2", "node-id-2", "server-id-4", "node-id-4"}) {
    const std::string label = std::string("neuron.amazonaws.com/ultraserver-") + gone;
    ASSERT_TRUE(patch.contains(label)) << label;
    EXPECT_TRUE(patch[label].is_null()) << label;
  }
  const Json lone = LabelPatch({.name = "n", .instance_type = "trn2.48xlarge"});
  EXPECT_TRUE(lone["neuron.amazonaws.com/ultraserver-mode"].is_null());
  EXPECT_FALSE(lone.contains("topology.k8s.aws/ultraserver-id"));
}

TEST(NodeObjectTest, ALoneInstanceHasNoneOfThem) {
  for (const auto& [key, value] : NodeLabels({.name = "n", .instance_type = "trn2.3xlarge"})) {
    EXPECT_EQ(key.find("aws"), std::string::npos) << key;
  }
}

TEST(NodeObjectTest, EfaInterfacesAreCountedAsAwsDevicePluginCountsThem) {
  const json status = MakeNodeStatus({.name = "n", .efa_interfaces = 16}, {});
  EXPECT_EQ(status["capacity"]["vpc.amazonaws.com/efa"], "16");
  EXPECT_EQ(status["allocatable"]["vpc.amazonaws.com/efa"], "16");
  EXPECT_FALSE(MakeNodeStatus({.name = "n"}, {})["capacity"].contains("vpc.amazonaws.com/efa"));
}

TEST(NodeObjectTest, TheNodeIsReadySinceItsRunnerStarted) {
  const WallTime start = *ParseTime("2026-11-21T10:00:00Z");
  const json node = MakeNode({.name = "n",
                              .vcpus = 192,
                              .memory_bytes = std::int64_t{2} << 40,
                              .log_port = 10250,
                              .ready_since = start},
                             start + seconds(60));
  EXPECT_EQ(node["status"]["capacity"]["cpu"], "192");
  EXPECT_EQ(node["status"]["allocatable"]["memory"], "2147483648Ki");
  EXPECT_EQ(node["status"]["daemonEndpoints"]["kubeletEndpoint"]["Port"], 10250);
  const json& ready = node["status"]["conditions"][3];
  EXPECT_EQ(ready["type"], "Ready");
  EXPECT_EQ(ready["status"], "True");
  EXPECT_EQ(ready["lastTransitionTime"], "2026-11-21T10:00:00Z");
  EXPECT_EQ(ready["lastHeartbeatTime"], "2026-11-21T10:01:00Z");
}

}  // namespace
}  // namespace tahoma::sim
