// A device with attributes and capacities of every type, for tests of device selectors.
//
//   EXPECT_TRUE(*DeviceSelector::Compile("device.driver == 'x'")->Matches(FakeDevice()));
//
// Thread safety: const.

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "lib/kube/cel/device_selector.h"

namespace tahoma::kube {

class FakeDevice final : public DeviceView {
 public:
  using Values = std::map<std::pair<std::string, std::string>, CelValue>;

  FakeDevice() = default;
  // Without the attributes and capacities of one id.
  explicit FakeDevice(std::string_view without) {
    std::erase_if(attributes_, [&](const auto& value) { return value.first.second == without; });
    std::erase_if(capacities_, [&](const auto& value) { return value.first.second == without; });
  }

  std::string_view Driver() const override { return "neuron.aws.com"; }
  bool AllowsMultipleAllocations() const override { return true; }
  std::optional<CelValue> Attribute(std::string_view domain, std::string_view id) const override {
    return Get(attributes_, domain, id);
  }
  std::optional<CelValue> Capacity(std::string_view domain, std::string_view id) const override {
    return Get(capacities_, domain, id);
  }
  Names AttributeNames() const override { return NamesOf(attributes_); }
  Names CapacityNames() const override { return NamesOf(capacities_); }

 private:
  static std::optional<CelValue> Get(const Values& values, std::string_view domain,
                                     std::string_view id) {
    const auto found = values.find({std::string(domain), std::string(id)});
    return found == values.end() ? std::nullopt : std::optional(found->second);
  }
  static Names NamesOf(const Values& values) {
    Names names;
    for (const auto& [name, value] : values) names.push_back(name);
    return names;
  }

  Values attributes_ = {
      {{"neuron.aws.com", "deviceId"}, CelValue(std::int64_t{6})},
      {{"neuron.aws.com", "instanceType"}, CelValue(std::string("trn2.48xlarge"))},
      {{"neuron.aws.com", "neuronDriverVersion"}, CelValue(std::string("2.26.10.0"))},
      {{"neuron.aws.com", "draDriverVersion"}, CelValue(*Semver::Parse("1.2.0"))},
      {{"neuron.aws.com", "resourceType"}, CelValue(std::string("neuron_device"))},
      {{"resource.aws.com", "devicegroup4_id"}, CelValue(std::string("671622785349fddf"))},
      {{"tahoma.dev", "x"}, CelValue(std::int64_t{2})},
      {{"tahoma.dev", "spare"}, CelValue(false)},
  };
  Values capacities_ = {
      {{"tahoma.dev", "hbm"}, CelValue(*Quantity::Parse("96Gi"))},
  };
};

}  // namespace tahoma::kube
