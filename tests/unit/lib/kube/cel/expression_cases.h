// One device with values of every type, and what an expression answers over it.
//
//   Check({{"device.driver == 'neuron.aws.com'", "true"}});
//
// Scope: tests of the CEL evaluator.
//
// Thread safety: none needed.

#pragma once

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/base/status.h"
#include "lib/kube/cel/device_selector.h"

namespace tahoma::kube {

class FakeDevice final : public DeviceView {
 public:
  using Values = std::map<std::pair<std::string, std::string>, CelValue>;

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

  const Values attributes_ = {
      {{"neuron.aws.com", "deviceId"}, CelValue(std::int64_t{6})},
      {{"neuron.aws.com", "instanceType"}, CelValue(std::string("trn2.48xlarge"))},
      {{"neuron.aws.com", "neuronDriverVersion"}, CelValue(std::string("2.26.10.0"))},
      {{"neuron.aws.com", "draDriverVersion"}, CelValue(*Semver::Parse("1.2.0"))},
      {{"neuron.aws.com", "resourceType"}, CelValue(std::string("neuron_device"))},
      {{"resource.aws.com", "devicegroup4_id"}, CelValue(std::string("671622785349fddf"))},
      {{"tahoma.dev", "x"}, CelValue(std::int64_t{2})},
      {{"tahoma.dev", "spare"}, CelValue(false)},
  };
  const Values capacities_ = {
      {{"tahoma.dev", "hbm"}, CelValue(*Quantity::Parse("96Gi"))},
  };
};

struct Case {
  std::string expression;
  std::string expected;  // "true", "false", "compile: message", "error: message"
};

inline std::string Answer(const std::string& expression) {
  const auto selector = DeviceSelector::Compile(expression);
  if (!selector.ok()) return "compile: " + std::string(Message(selector.status()));
  const auto matches = selector->Matches(FakeDevice());
  if (!matches.ok()) return "error: " + std::string(Message(matches.status()));
  return *matches ? "true" : "false";
}

inline void Check(const std::vector<Case>& cases) {
  for (const Case& c : cases) EXPECT_EQ(Answer(c.expression), c.expected) << c.expression;
}

// Each of them is true.
inline void CheckTrue(const std::vector<std::string>& expressions) {
  for (const std::string& expression : expressions) {
    EXPECT_EQ(Answer(expression), "true") << expression;
  }
}

inline const std::string kAws = "device.attributes['neuron.aws.com']";

}  // namespace tahoma::kube
