// The use of a claim's cores in a period: as numbers, as AWS's JSON and as a table.

#include "sim-node/workload/core_usage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lib/base/json.h"
#include "lib/base/status.h"
#include "sim-node/workload/neuron_monitor.h"
#include "sim-node/workload/neuron_top.h"

namespace tahoma::sim {
namespace {

using ::testing::HasSubstr;

// The counts of a physical core after so many equal programs: each took 100 us, of which the tensor
// engine worked 40.
Json Physical(int programs, std::int64_t in_use_ns) {
  return {{"completed", programs},
          {"programErrors", 0},
          {"hardwareErrors", 1},
          {"inUseNs", in_use_ns},
          {"timePs", programs * 100'000'000},
          {"enginesPs",
           {{"tensor", programs * 40'000'000},
            {"vector", 0},
            {"scalar", programs * 10'000'000},
            {"gpsimd", 0},
            {"sync", 0}}},
          {"hbmBytes", programs * 20'000'000},
          {"flops", programs * 3'000'000'000}};
}

// Logical core 1 of chip 3, whose programs use both physical cores, and an idle core 2.
Json Reading(std::int64_t clock_ns, int programs, std::int64_t in_use_ns) {
  const Json both = {Physical(programs, in_use_ns), Physical(programs, in_use_ns)};
  const Json idle = {Physical(0, 0), Physical(0, 0)};
  return {{"clockNs", clock_ns},
          {"chips",
           {{{"chip", 3},
             {"capacityBytes", std::int64_t{48} << 30},
             {"usedBytes", (5 << 20) + 1},
             {"cores",
              {{{"core", 1}, {"id", 13}, {"physical", both}},
               {{"core", 2}, {"id", 14}, {"physical", idle}}}}}}}};
}

constexpr std::string_view kDevices =
    R"({"nodeName":"node-0","instanceType":"trn2.48xlarge","lnc":2,
  "devices":[{"index":3,"bdf":"0000:cc:00.0","cpuAffinity":"0-1","numaNode":1,"connectedTo":[],
    "coreIds":[13,14],"memoryBytes":103079215104,"healthy":false,"reason":"hbm-uncorrectable"}]})";

// Two seconds, of which a program ran for half of one; five programs completed.
UsagePeriod Period() {
  const auto before = ParseCoreReading(Reading(1'000'000'000, 2, 250'000'000).dump());
  const auto after = ParseCoreReading(Reading(3'000'000'000, 7, 750'000'000).dump());
  EXPECT_TRUE(before.ok() && after.ok()) << before.status() << after.status();
  return {.devices = *ParseDevices(kDevices), .before = *before, .after = *after};
}

TEST(CoreUsageTest, UtilizationIsThePartOfThePeriodWithAProgram) {
  const UsagePeriod period = Period();
  const std::vector<CoreUse> uses = UsesBetween(period.before, period.after);
  ASSERT_EQ(uses.size(), 2U);
  EXPECT_EQ(uses[0].of.id, 13);
  EXPECT_DOUBLE_EQ(uses[0].utilization, 0.25);
  EXPECT_EQ(uses[0].of.physical[1].completed, 5);
  EXPECT_EQ(uses[0].Sum().flops, 2 * 5 * 3'000'000'000);
  EXPECT_EQ(uses[0].Sum().hardware_errors, 0);
  EXPECT_EQ(uses[1].utilization, 0);
}

TEST(CoreUsageTest, WithoutTimeThereIsNoUtilization) {
  const UsagePeriod period = Period();
  for (const CoreUse& use : UsesBetween(period.after, period.after)) {
    EXPECT_EQ(use.utilization, 0);
  }
  EXPECT_TRUE(UsesBetween({}, period.after).empty());
}

TEST(CoreUsageTest, AnAnswerThatIsNoneIsNamed) {
  EXPECT_FALSE(ParseCoreReading("hello").ok());
  Json reading = Reading(1, 1, 1);
  reading["chips"][0]["cores"][0]["physical"][0]["flops"] = -1;
  EXPECT_THAT(std::string(Message(ParseCoreReading(reading.dump()).status())), HasSubstr("flops"));
}

TEST(NeuronMonitorTest, TheDocumentHasAwsKeys) {
  const std::string line = MonitorDocument(Period(), *ParseMonitorArguments({}));
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  const Json document = ParseJson(line);
  const Json& runtime = document["neuron_runtime_data"][0];
  EXPECT_EQ(runtime["error"], "");
  const Json& report = runtime["report"];
  EXPECT_EQ(report["neuroncore_counters"],
            ParseJson(R"({"period":2.0,"error":"","neuroncores_in_use":{
    "13":{"neuroncore_utilization":25.0,"flops":15000000000.0,"v3d":{
      "nc_v3.26":{"neuroncore_utilization":25.0},"nc_v3.27":{"neuroncore_utilization":25.0}}},
    "14":{"neuroncore_utilization":0.0,"flops":0.0,"v3d":{
      "nc_v3.28":{"neuroncore_utilization":0.0},"nc_v3.29":{"neuroncore_utilization":0.0}}}}})"));
  EXPECT_EQ(report["execution_stats"]["execution_summary"]["completed"], 5);
  EXPECT_EQ(report["execution_stats"]["error_summary"]["hardware"], 0);
  const Json& memory = report["memory_used"]["neuron_runtime_used_bytes"];
  EXPECT_EQ(memory["neuron_device"], (5 << 20) + 1);
  const Json& by_core = memory["usage_breakdown"]["neuroncore_memory_usage"];
  EXPECT_EQ(by_core["13"]["tensors"], (5 << 19) + 1);
  EXPECT_EQ(by_core["14"]["tensors"], 5 << 19);
  EXPECT_NE(report["neuron_runtime_vcpu_usage"]["error"], "");
  EXPECT_EQ(document["system_data"]["neuron_hw_counters"]["neuron_devices"], ParseJson(R"([{
    "neuron_device_index":3,"mem_ecc_corrected":0,"mem_ecc_uncorrected":1,"sram_ecc_corrected":0,
    "sram_ecc_uncorrected":0}])"));
  EXPECT_EQ(document["neuron_hardware_info"], ParseJson(R"({"neuron_device_type":"trainium2",
    "neuroncore_version":"v3d","neuron_device_count":1,"neuron_device_memory_size":103079215104,
    "neuroncore_per_device_count":4,"logical_neuroncore_config":2,"error":""})"));
  EXPECT_EQ(document["instance_info"]["instance_type"], "trn2.48xlarge");
}

TEST(NeuronMonitorTest, AConfigurationChoosesPeriodAndGroups) {
  const auto options = ParseMonitorConfig(R"({"period":"1.5s","neuron_runtimes":[{"tag_filter":".*",
    "metrics":[{"type":"execution_stats","period":"2s"}]}],"system_metrics":[]})");
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->period, std::chrono::milliseconds(1500));
  const Json document = ParseJson(MonitorDocument(Period(), *options));
  EXPECT_EQ(document["neuron_runtime_data"][0]["report"].size(), 1U);
  EXPECT_EQ(document["system_data"], Json::object());
}

TEST(NeuronMonitorTest, AWrongConfigurationIsNamed) {
  const auto complaint = [](std::string_view text) {
    return std::string(Message(ParseMonitorConfig(text).status()));
  };
  EXPECT_THAT(complaint("[]"), HasSubstr("config"));
  EXPECT_THAT(complaint(R"({"period":"5"})"), HasSubstr("config.period"));
  EXPECT_EQ(complaint(R"({"period":"1ms"})"), "config.period is 1ms; expected at least 100ms");
  EXPECT_EQ(complaint(R"({"system_metrics":[{"type":"weather"}]})"),
            "config.system_metrics.type is \"weather\"; expected one of vcpu_usage, memory_info, "
            "neuron_hw_counters");
  EXPECT_FALSE(ParseMonitorArguments({"-c", "/nonexistent"}).ok());
  EXPECT_FALSE(ParseMonitorArguments({"more"}).ok());
  EXPECT_TRUE(ParseMonitorArguments({"--help"})->help);
}

TEST(NeuronTopTest, TheTableIsOfThePeriod) {
  EXPECT_EQ(TopTable(Period()),
            "neuron-top: node-0, trn2.48xlarge, LNC 2, 2.00 s\n"
            "\n"
            " chip  core  util(%)  programs  failed    time(us)   tensor   vector   scalar   gpsimd"
            "     sync HBM(GB/s)   TFLOPS\n"
            "    3     1     25.0         5       0       500.0     40.0      0.0     10.0      0.0"
            "      0.0     400.0    60.00\n"
            "    3     2      0.0         0       0         0.0      0.0      0.0      0.0      0.0"
            "      0.0       0.0     0.00\n"
            "\n"
            " chip    memory used(MiB)   of the claim(MiB)\n"
            "    3                 5.0               49152\n");
}

TEST(NeuronTopTest, OptionsAreRead) {
  EXPECT_TRUE(ParseTopArguments({"--once"})->once);
  EXPECT_FALSE(ParseTopArguments({})->once);
  EXPECT_TRUE(ParseTopArguments({"-h"})->help);
  EXPECT_FALSE(ParseTopArguments({"5"}).ok());
}

}  // namespace
}  // namespace tahoma::sim
