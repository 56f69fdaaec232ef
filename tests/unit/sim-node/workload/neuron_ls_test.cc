#include "sim-node/workload/neuron_ls.h"

#include <gtest/gtest.h>

#include "lib/base/json.h"
#include "lib/base/status.h"

namespace tahoma::sim {
namespace {

using json = Json;

constexpr std::string_view kReply = R"({"nodeName":"node-0","instanceType":"trn2.48xlarge","lnc":2,
  "devices":[
   {"index":0,"bdf":"0000:cc:00.0","cpuAffinity":"48-95,144-191","numaNode":1,
    "connectedTo":[12,3,4,1],"coreIds":[0,1,2,3],"memoryBytes":103079215104},
   {"index":1,"bdf":"0000:b5:00.0","cpuAffinity":"48-95,144-191","numaNode":1,
    "connectedTo":[13,0,5,2],"coreIds":[4,6,7],"memoryBytes":103079215104}]})";

TEST(NeuronLsTest, TheDefaultTableHasAwsColumns) {
  const std::string out = PrintDevices(*ParseDevices(kReply), NeuronLsView::kDefault);
  EXPECT_EQ(out, R"(instance-type: trn2.48xlarge
instance-id: node-0
logical-neuroncore-config: 2
+--------+--------+----------+--------+-------------+--------------+---------------+------+
| NEURON | NEURON |  NEURON  | NEURON |  CONNECTED  |     PCI      |      CPU      | NUMA |
| DEVICE | CORES  | CORE IDS | MEMORY |   DEVICES   |     BDF      |   AFFINITY    | NODE |
+--------+--------+----------+--------+-------------+--------------+---------------+------+
| 0      | 4      | 0-3      | 96 GB  | 12, 3, 4, 1 | 0000:cc:00.0 | 48-95,144-191 | 1    |
| 1      | 3      | 4,6-7    | 96 GB  | 13, 0, 5, 2 | 0000:b5:00.0 | 48-95,144-191 | 1    |
+--------+--------+----------+--------+-------------+--------------+---------------+------+
)");
}

TEST(NeuronLsTest, ATypeWithoutLogicalCoresSaysNothingOfThem) {
  DeviceList list = *ParseDevices(kReply);
  list.instance_type = "trn1.32xlarge";
  EXPECT_EQ(PrintDevices(list, NeuronLsView::kDefault).find("logical-neuroncore-config"),
            std::string::npos);
}

TEST(NeuronLsTest, JsonHasAwsKeys) {
  const json out = ParseJson(PrintDevices(*ParseDevices(kReply), NeuronLsView::kJson));
  ASSERT_EQ(out.size(), 2U);
  EXPECT_EQ(out[0], ParseJson(R"({"neuron_device":0,"bdf":"cc:00.0","numa_node":"1",
    "cpu_affinity":"48-95,144-191","connected_to":[12,3,4,1],"nc_count":4,
    "logical_neuroncore_config":2,"memory_size":103079215104,"neuroncore_ids":[0,1,2,3],
    "neuron_processes":[]})"));
}

TEST(NeuronLsTest, TopologyShowsOnlyHeldDevicesAndTheirLinks) {
  const std::string out = PrintDevices(*ParseDevices(kReply), NeuronLsView::kTopology);
  EXPECT_NE(out.find("[ 0  ]◄–►[ 1  ]   [    ]"), std::string::npos) << out;
  EXPECT_EQ(out.find("[ 2  ]"), std::string::npos) << out;
  EXPECT_EQ(out.find("▲▼"), std::string::npos) << out;
}

TEST(NeuronLsTest, AnInstanceOfOneChipHasNoGrid) {
  DeviceList one = *ParseDevices(kReply);
  one.devices.resize(1);
  one.devices[0].connected.clear();
  EXPECT_EQ(PrintDevices(one, NeuronLsView::kTopology).find("Topology"), std::string::npos);
}

TEST(NeuronLsTest, WideHasProcessColumns) {
  const std::string out = PrintDevices(*ParseDevices(kReply), NeuronLsView::kWide);
  EXPECT_NE(out.find("COMMAND"), std::string::npos);
  EXPECT_NE(out.find("| cc:00.0 |"), std::string::npos) << out;
}

TEST(NeuronLsTest, EachProcessHasARowOfEachDevice) {
  DeviceList list = *ParseDevices(kReply);
  list.processes = {{.pid = 71, .command = "nccom-test -r 2 allr"},
                    {.pid = 1234, .command = "python3 train.py --data /shared/a-very-long-path/x"}};
  const std::string out = PrintDevices(list, NeuronLsView::kWide);
  for (const char* row :
       {"| 0      | 4      | 96 GB  | 12, 3, 4, 1 | cc:00.0 | 71   | nccom-test -r 2 allr ",
        "|        |        |        |             |         | 1234 | python3 train.py --data /sh",
        "| 1      | 3      | 96 GB  | 13, 0, 5, 2 | b5:00.0 | 71   | nccom-test -r 2 allr ",
        "| python3 train.py --data /shared/a-ver... | NA      |\n"}) {
    EXPECT_NE(out.find(row), std::string::npos) << row << "\n" << out;
  }
  list.processes = {{.pid = 71, .command = "a \xff b"}};
  const json all = ParseJson(PrintDevices(list, NeuronLsView::kJson));
  EXPECT_EQ(all[1]["neuron_processes"][0]["pid"], 71);
}

TEST(NeuronLsTest, AnswersThatAreNoDevicesAreRefused) {
  for (const char* bad : {"", "[]", "{}", R"({"nodeName":1})", "nonsense"}) {
    EXPECT_EQ(ParseDevices(bad).status().code(), absl::StatusCode::kInvalidArgument) << bad;
  }
}

TEST(NeuronLsTest, OptionsAreAwsOwn) {
  EXPECT_EQ(ParseNeuronLsArguments({})->view, NeuronLsView::kDefault);
  EXPECT_EQ(ParseNeuronLsArguments({"--json-output"})->view, NeuronLsView::kJson);
  EXPECT_EQ(ParseNeuronLsArguments({"--output-format", "json"})->view, NeuronLsView::kJson);
  EXPECT_EQ(ParseNeuronLsArguments({"--output-format=json"})->view, NeuronLsView::kJson);
  EXPECT_EQ(Message(ParseNeuronLsArguments({"--output-format"}).status()),
            "--output-format needs a word");
  EXPECT_EQ(Message(ParseNeuronLsArguments({"--output-format=xml"}).status()),
            "--output-format is \"xml\"; expected json");
  EXPECT_EQ(ParseNeuronLsArguments({"-t"})->view, NeuronLsView::kTopology);
  EXPECT_EQ(ParseNeuronLsArguments({"--wide"})->view, NeuronLsView::kWide);
  EXPECT_FALSE(ParseNeuronLsArguments({"--wide"})->all_processes);
  EXPECT_TRUE(ParseNeuronLsArguments({"-a"})->all_processes);
  EXPECT_FALSE(ParseNeuronLsArguments({})->help);
  EXPECT_TRUE(ParseNeuronLsArguments({"--help"})->help);
  const absl::Status refused = ParseNeuronLsArguments({"--jason"}).status();
  EXPECT_NE(Message(refused).find("--jason"), std::string_view::npos);
}

}  // namespace
}  // namespace tahoma::sim
