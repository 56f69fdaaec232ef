// Tests that a claim, a template or a class with a configuration that the driver would refuse is
// refused when it is made, and that an older one can still be changed elsewhere.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "controller/apiserver/schema/causes.h"
#include "controller/apiserver/schema/schema.h"
#include "controller/apiserver/validation/defaults.h"
#include "controller/apiserver/validation/validation.h"
#include "lib/base/json.h"

namespace tahoma::controller::apiserver {
namespace {

const Kind& KindNamed(std::string_view plural) {
  for (const auto& kind : BuiltInKinds()) {
    if (kind->plural == plural) return *kind;
  }
  ADD_FAILURE() << plural;
  return *BuiltInKinds().front();
}

Json Configs(std::string_view driver, std::string_view parameters) {
  return Json::array({{{"opaque", {{"driver", driver}, {"parameters", ParseJson(parameters)}}}}});
}

Json Object(std::string_view plural, const Json& configs) {
  const Json devices = {
      {"requests",
       ParseJson(R"([{"name": "r", "exactly": {"deviceClassName": "neuron.aws.com"}}])")},
      {"config", configs}};
  Json object = {{"metadata", {{"name", "x"}}}};
  if (plural == "deviceclasses") {
    object["spec"] = {{"config", configs}};
  } else if (plural == "resourceclaims") {
    object["spec"] = {{"devices", devices}};
  } else {
    object["spec"] = {{"spec", {{"devices", devices}}}};
  }
  const Kind& kind = KindNamed(plural);
  if (kind.namespaced) object["metadata"]["namespace"] = "default";
  ApplyDefaults(*kind.schema, object);
  ApplyKindDefaults(kind, "2026-11-21T10:00:00Z", object);
  return object;
}

std::vector<std::string> Fields(const std::vector<Cause>& causes) {
  std::vector<std::string> fields;
  for (const Cause& cause : causes) fields.push_back(cause.field);
  return fields;
}

struct KindCase {
  const char* plural;
  const char* field;
};

class DeviceConfigs : public ::testing::TestWithParam<KindCase> {
 protected:
  std::vector<Cause> Create(std::string_view driver, std::string_view parameters) const {
    return ValidateCreate(KindNamed(GetParam().plural),
                          Object(GetParam().plural, Configs(driver, parameters)));
  }
};

INSTANTIATE_TEST_SUITE_P(
    Kinds, DeviceConfigs,
    ::testing::Values(KindCase{"resourceclaims", "spec.devices.config[0].opaque.parameters"},
                      KindCase{"resourceclaimtemplates",
                               "spec.spec.devices.config[0].opaque.parameters"},
                      KindCase{"deviceclasses", "spec.config[0].opaque.parameters"}),
    [](const auto& one) { return std::string(one.param.plural); });

TEST_P(DeviceConfigs, AGoodOneIsTaken) {
  for (const char* good :
       {R"({"apiVersion": "neuron.aws.com/v1", "kind": "NeuronConfig", "logicalNeuronCore": 1})",
        R"({"apiVersion": "neuron.aws.com/v1", "kind": "NeuronConfig"})",
        R"({"apiVersion": "neuron.aws.com/v1", "kind": "UltraServerConfig",
            "ultraserverMode": 4})"}) {
    EXPECT_EQ(Fields(Create("neuron.aws.com", good)), std::vector<std::string>()) << good;
  }
}

TEST_P(DeviceConfigs, AnotherDriversIsNotOurs) {
  EXPECT_EQ(Fields(Create("gpu.example.com", R"({"kind": "Anything"})")),
            std::vector<std::string>());
}

TEST_P(DeviceConfigs, ABadOneIsRefusedWithItsPlaceAndWhatWouldBeRight) {
  const std::vector<Cause> causes = Create("neuron.aws.com", R"({"apiVersion": "neuron.aws.com/v1",
      "kind": "NeuronConfig", "logicalNeuronCoreCount": 1})");
  ASSERT_EQ(Fields(causes), std::vector<std::string>{GetParam().field});
  EXPECT_TRUE(
      causes[0].message.ends_with("unknown field \"logicalNeuronCoreCount\" in "
                                  "NeuronConfig; its only field is \"logicalNeuronCore\""))
      << causes[0].message;
}

TEST_P(DeviceConfigs, EveryOtherMistakeIsRefused) {
  for (const char* bad :
       {R"({})", R"({"apiVersion": "neuron.aws.com/v2", "kind": "NeuronConfig"})",
        R"({"apiVersion": "neuron.aws.com/v1", "kind": "Neuron"})",
        R"({"apiVersion": "neuron.aws.com/v1", "kind": "NeuronConfig", "logicalNeuronCore": 3})",
        R"({"apiVersion": "neuron.aws.com/v1", "kind": "NeuronConfig",
               "logicalNeuronCore": "1"})",
        R"({"apiVersion": "neuron.aws.com/v1", "kind": "UltraServerConfig"})",
        R"({"apiVersion": "neuron.aws.com/v1", "kind": "UltraServerConfig",
               "ultraserverMode": 3})"}) {
    EXPECT_EQ(Fields(Create("neuron.aws.com", bad)), std::vector<std::string>{GetParam().field})
        << bad;
  }
}

TEST(DeviceConfigsTest, AClaimFromBeforeTheRuleCanLoseItsFinalizer) {
  const Kind& kind = KindNamed("resourceclaims");
  Json before = Object("resourceclaims", Configs("neuron.aws.com", R"({"kind": "Old"})"));
  before["metadata"]["finalizers"] = {"resource.kubernetes.io/delete-protection"};
  Json after = before;
  after["metadata"].erase("finalizers");
  EXPECT_EQ(Fields(ValidateUpdate(kind, before, after, "")), std::vector<std::string>());
}

}  // namespace
}  // namespace tahoma::controller::apiserver
