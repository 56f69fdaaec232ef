#include "lib/driver/device_config.h"

#include <gtest/gtest.h>

#include <string>

#include "lib/base/status.h"

namespace tahoma::hw {
namespace {

TEST(DeviceConfigTest, ReadsTheTwoKindsThatAwsPublishes) {
  const auto lnc = ParseDeviceConfig(
      R"({"apiVersion":"neuron.aws.com/v1","kind":"NeuronConfig","logicalNeuronCore":1})");
  ASSERT_TRUE(lnc.ok()) << lnc.status();
  EXPECT_EQ(std::get<NeuronConfig>(*lnc).logical_neuron_core, 1);
  for (const int mode : {1, 2, 4}) {
    const auto ultra = ParseDeviceConfig(
        R"({"apiVersion":"neuron.aws.com/v1","kind":"UltraServerConfig","ultraserverMode":)" +
        std::to_string(mode) + "}");
    ASSERT_TRUE(ultra.ok()) << ultra.status();
    EXPECT_EQ(std::get<UltraServerConfig>(*ultra).ultraserver_mode, mode);
  }
}

TEST(DeviceConfigTest, LogicalCoresAreOfTwoUnlessSaid) {
  const auto config =
      ParseDeviceConfig(R"({"apiVersion":"neuron.aws.com/v1","kind":"NeuronConfig"})");
  ASSERT_TRUE(config.ok());
  EXPECT_EQ(std::get<NeuronConfig>(*config).logical_neuron_core, 2);
}

TEST(DeviceConfigTest, RefusesEverythingElseAndSaysWhatWouldBeRight) {
  struct Case {
    std::string json;
    std::string message;
  };
  const std::string v = R"("apiVersion":"neuron.aws.com/v1")";
  for (const Case& c : std::vector<Case>{
           {"", "the configuration is not a JSON object"},
           {"[]", "the configuration is not a JSON object"},
           {"{\"a\":", "the configuration is not a JSON object"},
           {"{}", "apiVersion is \"\"; it must be \"neuron.aws.com/v1\""},
           {"{" + v + "}", "kind is \"\"; it must be NeuronConfig or UltraServerConfig"},
           {"{" + v + R"(,"kind":"GpuConfig"})",
            "kind is \"GpuConfig\"; it must be NeuronConfig or UltraServerConfig"},
           {"{" + v + R"(,"kind":"NeuronConfig","logicalNeuronCoreCount":1})",
            "unknown field \"logicalNeuronCoreCount\" in NeuronConfig; its only field is "
            "\"logicalNeuronCore\""},
           {"{" + v + R"(,"kind":"NeuronConfig","logicalNeuronCore":4})",
            "NeuronConfig.logicalNeuronCore is 4; it must be 1 or 2"},
           {"{" + v + R"(,"kind":"NeuronConfig","logicalNeuronCore":"1"})",
            "NeuronConfig.logicalNeuronCore is \"1\"; it must be 1 or 2"},
           {"{" + v + R"(,"kind":"NeuronConfig","logicalNeuronCore":1.0})",
            "NeuronConfig.logicalNeuronCore is 1.0; it must be 1 or 2"},
           {"{" + v + R"(,"kind":"UltraServerConfig","ultraserverMode":3})",
            "UltraServerConfig.ultraserverMode is 3; it must be 1, 2 or 4"},
           {"{" + v + R"(,"kind":"UltraServerConfig"})",
            "UltraServerConfig.ultraserverMode is missing; it must be 1, 2 or 4"},
           {std::string(10241, ' '),
            "the configuration has 10241 bytes; at most 10240 are allowed"}}) {
    SCOPED_TRACE(c.json.substr(0, 100));
    const auto config = ParseDeviceConfig(c.json);
    ASSERT_FALSE(config.ok());
    EXPECT_EQ(Message(config.status()), c.message);
  }
}

}  // namespace
}  // namespace tahoma::hw
