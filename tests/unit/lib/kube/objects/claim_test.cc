// ResourceClaims and DeviceClasses.

#include "lib/kube/objects/claim.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/kube/objects/claim_spec.h"
#include "lib/kube/objects/device_class.h"

namespace tahoma::kube {
namespace {

using json = Json;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

json ClaimObject() {
  return ParseJson(R"({"metadata": {"name": "c", "namespace": "ns", "uid": "u",
      "resourceVersion": "9", "generation": 2, "creationTimestamp": "1970-01-01T00:00:05Z",
      "deletionTimestamp": "1970-01-01T00:00:09Z",
      "finalizers": ["other", "resource.kubernetes.io/delete-protection"]},
    "spec": {"devices": {
      "requests": [
        {"name": "all", "exactly": {"deviceClassName": "chips", "allocationMode": "All",
          "adminAccess": true, "selectors": [{"cel": {"expression": "true"}}],
          "tolerations": [{"key": "k", "operator": "Exists"}],
          "capacity": {"requests": {"memory": "1Gi"}}}},
        {"name": "any", "firstAvailable": [{"name": "a", "deviceClassName": "x", "count": 4},
                                           {"name": "b", "deviceClassName": "y"}]}],
      "constraints": [{"requests": ["all"], "matchAttribute": "d.com/x"},
                      {"distinctAttribute": "d.com/y"}],
      "config": [{"requests": ["any/a"], "opaque": {"driver": "d.com", "parameters": {"a": 1}}}]}},
    "status": {"reservedFor": [{"resource": "pods", "name": "p", "uid": "pu"},
                               {"apiGroup": "batch", "resource": "jobs", "name": "j", "uid": "ju"}],
      "allocation": {
        "devices": {
          "results": [{"request": "all", "driver": "d.com", "pool": "n", "device": "chip-0",
                       "adminAccess": true,
                       "tolerations": [{"key": "k", "operator": "Equal", "value": "v",
                                        "effect": "NoExecute", "tolerationSeconds": 30}]},
                      {"request": "any/a", "driver": "d.com", "pool": "n", "device": "chip-1"}],
          "config": [{"source": "FromClass", "opaque": {"driver": "d.com", "parameters": {}}},
                     {"source": "FromClaim", "requests": ["any/a"],
                      "opaque": {"driver": "d.com", "parameters": {"a": 1}}}]},
        "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name",
          "operator": "In", "values": ["n"]}]}]}}}})");
}

ResourceClaimSpec SpecOf(const json& object) {
  Reading reading(object);
  ResourceClaimSpec spec = ParseClaimSpec(reading.root().At("spec"));
  EXPECT_TRUE(reading.status().ok()) << reading.status();
  return spec;
}

std::string WhyNotSpec(const json& spec) {
  const json object = {{"spec", spec}};
  Reading reading(object);
  ParseClaimSpec(reading.root().At("spec"));
  return std::string(Message(reading.status()));
}

TEST(ResourceClaimTest, ReadsReservationsAndAllocation) {
  const auto claim = ParseResourceClaim(ClaimObject());
  ASSERT_TRUE(claim.ok()) << claim.status();
  EXPECT_EQ(claim->metadata.ns, "ns");
  EXPECT_EQ(claim->metadata.name, "c");
  EXPECT_EQ(claim->metadata.uid, "u");
  EXPECT_EQ(claim->metadata.resource_version, "9");
  EXPECT_EQ(claim->metadata.generation, 2);
  EXPECT_EQ(claim->metadata.created, WallTime(std::chrono::seconds(5)));
  EXPECT_TRUE(claim->metadata.deleting);
  EXPECT_TRUE(claim->protected_by_finalizer);
  EXPECT_THAT(claim->other_finalizers, ElementsAre("other"));
  EXPECT_THAT(claim->reserved_for, ElementsAre(Reservation{"", "pods", "p", "pu"},
                                               Reservation{"batch", "jobs", "j", "ju"}));
  ASSERT_TRUE(claim->allocation);
  EXPECT_EQ(claim->allocation->node, "n");
  ASSERT_EQ(claim->allocation->results.size(), 2U);
  EXPECT_TRUE(claim->allocation->results[0].admin_access);
  EXPECT_EQ(claim->allocation->results[1].device, "chip-1");
  EXPECT_EQ(claim->allocation->configs.at(0).source, ConfigSource::kClass);
  EXPECT_EQ(claim->allocation->configs.at(1).parameters, R"({"a":1})");
}

TEST(ResourceClaimTest, AFreshClaimHasNothing) {
  const auto claim = ParseResourceClaim(ParseJson(R"({"metadata": {"name": "c"},
      "status": {"reservedFor": null, "allocation": null}})"));
  ASSERT_TRUE(claim.ok()) << claim.status();
  EXPECT_FALSE(claim->allocation);
  EXPECT_FALSE(claim->metadata.deleting);
  EXPECT_FALSE(claim->protected_by_finalizer);
  EXPECT_THAT(claim->reserved_for, IsEmpty());
}

TEST(ResourceClaimTest, AWrittenObjectReadsBackEqual) {
  const json object = ClaimObject();
  const auto claim = ParseResourceClaim(object);
  ASSERT_TRUE(claim.ok()) << claim.status();
  EXPECT_EQ(RenderAllocation(*claim->allocation), object["status"]["allocation"]);
  json reserved = json::array();
  for (const Reservation& held : claim->reserved_for) reserved.push_back(RenderReservation(held));
  EXPECT_EQ(reserved, object["status"]["reservedFor"]);
}

TEST(ResourceClaimTest, AnAllocationOfSharedDevicesOfSeveralNodesReadsBackEqual) {
  const json written = ParseJson(R"({
      "devices": {"results": [
          {"request": "a", "driver": "d.com", "pool": "p", "device": "x"},
          {"request": "b", "driver": "d.com", "pool": "p", "device": "y",
           "shareID": "0d1ff1ce-0000-8000-8000-000000000001",
           "consumedCapacity": {"memory": "1Gi", "rate": "100"},
           "bindingConditions": ["Ready"], "bindingFailureConditions": ["Broken"]}]},
      "nodeSelector": {"nodeSelectorTerms": [{
          "matchExpressions": [{"key": "zone", "operator": "In", "values": ["a", "b"]},
                               {"key": "gpu", "operator": "Exists"}],
          "matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["n"]}]}]}})");
  Reading reading(written);
  const Allocation allocation = ParseAllocation(reading.root());
  EXPECT_TRUE(reading.status().ok()) << reading.status();
  EXPECT_EQ(allocation.node, "") << "the allocation is of no single node";
  ASSERT_EQ(allocation.details.size(), 1U) << "most results have no details";
  EXPECT_EQ(allocation.details[0].result, 1U);
  EXPECT_EQ(RenderAllocation(allocation), written);
}

TEST(ResourceClaimTest, AnUnreadableFieldIsNamedWithItsPath) {
  json object = ClaimObject();
  object["status"]["allocation"]["devices"]["results"][1]["pool"] = 3;
  EXPECT_EQ(Message(ParseResourceClaim(object).status()),
            "claim c: status.allocation.devices.results[1].pool: is a number, must be a string");
  object = ClaimObject();
  object["metadata"]["finalizers"] = "other";
  EXPECT_EQ(Message(ParseResourceClaim(object).status()),
            "claim c: metadata.finalizers: is a string, must be a list");
  object["metadata"].erase("name");
  EXPECT_EQ(Message(ParseResourceClaim(object).status()),
            "claim without a name: metadata.name: is missing");
}

TEST(ClaimSpecTest, ReadsRequestsConstraintsAndConfigurations) {
  const ResourceClaimSpec spec = SpecOf(ClaimObject());
  ASSERT_EQ(spec.requests.size(), 2U);
  const ClaimRequest& all = spec.requests[0];
  EXPECT_FALSE(all.first_available);
  ASSERT_EQ(all.alternatives.size(), 1U);
  EXPECT_EQ(all.alternatives[0].name, "");
  EXPECT_EQ(all.alternatives[0].device_class, "chips");
  EXPECT_EQ(all.alternatives[0].mode, AllocationMode::kAll);
  EXPECT_TRUE(all.alternatives[0].admin_access);
  EXPECT_THAT(all.alternatives[0].capacities,
              ElementsAre(CapacityRequest{"memory", *Quantity::Parse("1Gi")}));
  EXPECT_THAT(all.alternatives[0].selectors, ElementsAre("true"));
  EXPECT_EQ(all.alternatives[0].tolerations.at(0).op, TolerationOperator::kExists);
  const ClaimRequest& any = spec.requests[1];
  EXPECT_TRUE(any.first_available);
  ASSERT_EQ(any.alternatives.size(), 2U);
  EXPECT_EQ(any.alternatives[0].count, 4);
  EXPECT_EQ(any.alternatives[1].count, 1);
  EXPECT_EQ(any.alternatives[1].name, "b");
  EXPECT_EQ(any.alternatives[1].mode, AllocationMode::kExactCount);
  ASSERT_EQ(spec.constraints.size(), 2U);
  EXPECT_EQ(spec.constraints[0].attribute, "d.com/x");
  EXPECT_FALSE(spec.constraints[0].distinct);
  EXPECT_EQ(spec.constraints[1].attribute, "d.com/y");
  EXPECT_TRUE(spec.constraints[1].distinct);
  EXPECT_EQ(spec.configs.at(0).source, ConfigSource::kClaim);
  EXPECT_THAT(spec.configs.at(0).requests, ElementsAre("any/a"));
}

TEST(ClaimSpecTest, ARequestThatCannotBeAllocatedIsAnErrorWithItsPath) {
  struct Case {
    const char* devices;
    const char* says;
  };
  for (const Case& c : std::vector<Case>{
           {R"({"requests": [{"name": "r"}]})",
            "spec.devices.requests[0]: request r has neither exactly nor firstAvailable"},
           {R"({"requests": [{"name": "r", "firstAvailable": []}]})",
            "spec.devices.requests[0]: request r has neither exactly nor firstAvailable"},
           {R"({"requests": [{"exactly": {"allocationMode": "Some"}}]})",
            "spec.devices.requests[0].exactly.allocationMode: is Some, must be ExactCount or All"},
           {R"({"requests": [{"exactly": {"count": "4"}}]})",
            "spec.devices.requests[0].exactly.count: is a string, must be an integer"},
           {R"({"requests": [{"exactly": {"selectors": [{"regex": {}}]}}]})",
            "spec.devices.requests[0].exactly.selectors[0]: is not of kind \"cel\""},
           {R"({"constraints": [{"requests": []}]})",
            "spec.devices.constraints[0]: is neither matchAttribute nor distinctAttribute"},
           {R"({"requests": [{"exactly": {"capacity": {"requests": {"memory": "big"}}}}]})",
            "spec.devices.requests[0].exactly.capacity.requests.memory: 'big' is not a quantity: a "
            "number with an optional suffix such as 100m, 1.5, 2k, 96Gi or 3e6"},
           {R"({"requests": [{"exactly": {"bandwidth": "1G"}}]})",
            "spec.devices.requests[0].exactly.bandwidth: is not known to this scheduler, which "
            "cannot follow it"},
           {R"({"requests": [{"anyOf": [], "exactly": {}}]})",
            "spec.devices.requests[0].anyOf: is not known to this scheduler, which cannot follow "
            "it"},
           {R"({"constraints": [{"matchAttribute": "a/b", "nearAttribute": "a/c"}]})",
            "spec.devices.constraints[0].nearAttribute: is not known to this scheduler, which "
            "cannot follow it"},
           {R"({"config": {}})", "spec.devices.config: is an object, must be a list"}}) {
    EXPECT_EQ(WhyNotSpec({{"devices", ParseJson(c.devices)}}), c.says);
  }
}

TEST(DeviceClassTest, ReadsSelectorsAndConfigurations) {
  const auto read = ParseDeviceClass(ParseJson(R"({"metadata": {"name": "chips"},
      "spec": {"selectors": [{"cel": {"expression": "true"}}],
               "config": [{"opaque": {"driver": "d.com"}}]}})"));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->name, "chips");
  EXPECT_EQ(read->extended_resource, "");
  EXPECT_THAT(read->selectors, ElementsAre("true"));
  EXPECT_EQ(read->configs.at(0).source, ConfigSource::kClass);
  EXPECT_EQ(read->configs.at(0).parameters, "null");
  EXPECT_EQ(Message(ParseDeviceClass(ParseJson(R"({"metadata": {"name": "chips"},
                "spec": {"selectors": [{"cel": 1}]}})"))
                        .status()),
            "device class chips: spec.selectors[0].cel: is a number, must be an object");
}

TEST(DeviceClassTest, ReadsTheResourceThatPodsMayAskBy) {
  const auto read = ParseDeviceClass(ParseJson(R"({"metadata": {"name": "chips",
      "creationTimestamp": "1970-01-01T00:00:09Z"},
      "spec": {"extendedResourceName": "aws.amazon.com/neuron"}})"));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->extended_resource, "aws.amazon.com/neuron");
  EXPECT_EQ(read->created, WallTime(std::chrono::seconds(9)));
}

}  // namespace
}  // namespace tahoma::kube
