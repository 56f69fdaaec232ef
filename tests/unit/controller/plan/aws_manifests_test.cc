// The claims that AWS publishes for its driver, from the text of the manifest to the devices.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "controller/core/facts/read_facts.h"
#include "controller/plan/planner.h"
#include "lib/base/json.h"
#include "lib/kube/yaml.h"
#include "tests/support/fleet.h"

namespace tahoma::controller {
namespace {

using json = Json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string ReadExample(const std::string& name) {
  std::ifstream in("examples/aws/" + name);
  EXPECT_TRUE(in) << name;
  return std::string(std::istreambuf_iterator<char>(in), {});
}

// The claim that kube-controller-manager makes from the manifest's claim template, with the class
// selectors that GangMembership adds.
ClaimSpec ClaimOf(const std::string& manifest, const std::string& pod) {
  const auto documents = kube::YamlDocuments(manifest);
  EXPECT_TRUE(documents.ok()) << documents.status();
  ClaimSpec spec;
  for (const json& document : *documents) {
    if (document["kind"] != "ResourceClaimTemplate") continue;
    const json claim = {
        {"apiVersion", "resource.k8s.io/v1"},
        {"kind", "ResourceClaim"},
        {"metadata", {{"name", pod}, {"namespace", "default"}, {"uid", "uid-" + pod}}},
        {"spec", document["spec"]["spec"]}};
    const auto fact = ParseClaim(claim);
    EXPECT_TRUE(fact.ok()) << fact.status();
    EXPECT_EQ((*fact)->spec_error, "");
    spec = {*(*fact)->spec, {}, {}, {}};
  }
  for (ClaimRequest& request : spec.requests) {
    for (DeviceRequest& alternative : request.alternatives) {
      EXPECT_EQ(alternative.device_class, "neuron.aws.com");
      alternative.class_selectors = {kNeuronClassSelector};
    }
  }
  spec.key = {"default", pod};
  spec.uid = "uid-" + pod;
  return spec;
}

class AwsManifestsTest : public ::testing::Test {
 protected:
  AwsManifestsTest() {
    AddUltraServer(state_, "us-0");
    state_.PutNode(NodeFactsOf({.name = "lone"}));
    state_.PutNode(NodeFactsOf({.name = "small", .type = "trn2.3xlarge"}));
  }
  Decision Run(const std::string& manifest, int pods = 1) {
    const GangSpec gang =
        GangOf("g", pods, [&](const std::string& pod) { return ClaimOf(manifest, pod); });
    return planner_.Plan(state_, {std::make_shared<const GangSpec>(gang)}, WallTime{})[0];
  }
  static std::vector<std::string> Devices(const Decision& decision, std::size_t member = 0) {
    std::vector<std::string> devices;
    for (const auto& result : decision.placement->members[member].claims[0].allocation.results) {
      devices.push_back(result.device);
    }
    return devices;
  }
  ClusterState state_;
  Planner planner_;
};

TEST_F(AwsManifestsTest, FourConnectedChipsAreARowOfATrn2) {
  const Decision decision = Run(ReadExample("connected-chips.yaml"));
  ASSERT_TRUE(decision.placement) << decision.blocked->message;
  EXPECT_EQ(decision.placement->members[0].node, "lone") << "instanceType == 'trn2.48xlarge'";
  EXPECT_THAT(Devices(decision), ElementsAre("neuron-device-0", "neuron-device-1",
                                             "neuron-device-2", "neuron-device-3"));
}

TEST_F(AwsManifestsTest, AllChipsWithLncOneKeepTheirConfiguration) {
  const Decision decision = Run(ReadExample("all-chips-lnc-1.yaml"));
  ASSERT_TRUE(decision.placement) << decision.blocked->message;
  EXPECT_EQ(decision.placement->members[0].node, "lone");
  EXPECT_EQ(Devices(decision).size(), 16U);
  const auto& configs = decision.placement->members[0].claims[0].allocation.configs;
  ASSERT_EQ(configs.size(), 1U);
  EXPECT_EQ(configs[0].driver, "neuron.aws.com");
  EXPECT_EQ(ParseJson(configs[0].parameters)["logicalNeuronCore"], 1);
}

TEST_F(AwsManifestsTest, AWholeNodeIsAMemberOfTheUltraServer) {
  const Decision decision = Run(ReadExample("whole-node.yaml"));
  ASSERT_TRUE(decision.placement) << decision.blocked->message;
  EXPECT_THAT(decision.placement->members[0].node, ::testing::StartsWith("us-0-n"));
  EXPECT_THAT(Devices(decision), ElementsAre("neuron-node"));
}

TEST_F(AwsManifestsTest, FourPodsWithAWholeNodeEachGetTheFourMembers) {
  std::string manifest = ReadExample("whole-node.yaml");
  const std::size_t mode = manifest.find("ultraserverMode: 2");
  ASSERT_NE(mode, std::string::npos);
  manifest.replace(mode, 18, "ultraserverMode: 4");
  const Decision decision = Run(manifest, 4);
  ASSERT_TRUE(decision.placement) << decision.blocked->message;
  std::set<std::string> nodes;
  for (const MemberPlacement& member : decision.placement->members) nodes.insert(member.node);
  EXPECT_THAT(nodes, ElementsAre("us-0-n0", "us-0-n1", "us-0-n2", "us-0-n3"));
  EXPECT_TRUE(Run(manifest, 5).blocked) << "there are no five";
}

TEST_F(AwsManifestsTest, ADriverVersionThatNoNodeHasNeverFits) {
  std::string manifest = ReadExample("all-chips-lnc-1.yaml");
  const std::string type = "instanceType == 'trn2.48xlarge'";
  const auto with_version = [&](const std::string& version) {
    std::string changed = manifest;
    changed.replace(changed.find(type), type.size(), "neuronDriverVersion == '" + version + "'");
    return changed;
  };
  EXPECT_EQ(Run(with_version("2.25.4.0")).blocked->reason, BlockedReason::kNeverFits);
  const Decision decision = Run(with_version("2.26.10.0"));
  ASSERT_TRUE(decision.placement) << decision.blocked->message;
}

TEST_F(AwsManifestsTest, AMisspelledFieldOfTheConfigurationIsNamed) {
  std::string manifest = ReadExample("all-chips-lnc-1.yaml");
  const std::string field = "logicalNeuronCore:";
  manifest.replace(manifest.find(field), field.size(), "logicalNeuronCoreCount:");
  const Decision decision = Run(manifest);
  ASSERT_TRUE(decision.blocked);
  EXPECT_EQ(decision.blocked->reason, BlockedReason::kInvalid);
  EXPECT_THAT(decision.blocked->message, HasSubstr("\"logicalNeuronCoreCount\""));
  EXPECT_THAT(decision.blocked->message, HasSubstr("\"logicalNeuronCore\""));
}

TEST_F(AwsManifestsTest, TheyRunOnNodesOfAwsOwnDriverToo) {
  ClusterState aws;
  aws.PutNode(NodeFactsOf({.name = "real", .aws_only = true}));
  const GangSpec gang = GangOf("g", 1, [&](const std::string& pod) {
    return ClaimOf(ReadExample("connected-chips.yaml"), pod);
  });
  const Decision decision =
      planner_.Plan(aws, {std::make_shared<const GangSpec>(gang)}, WallTime{})[0];
  ASSERT_TRUE(decision.placement) << decision.blocked->message;
  EXPECT_EQ(Devices(decision).size(), 4U);
}

}  // namespace
}  // namespace tahoma::controller
