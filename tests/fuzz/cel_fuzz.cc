// CEL expressions of device selectors: what compiles gives an answer at a bounded cost, the same
// each time, and does not depend on an attribute that it may not read.

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "lib/base/check.h"
#include "lib/base/status.h"
#include "lib/kube/cel/device_selector.h"
#include "tests/fuzz/fuzz_target.h"

namespace {

using namespace tahoma::kube;

// A device with values of every type.
class Device final : public DeviceView {
 public:
  using Values = std::map<std::pair<std::string, std::string>, CelValue>;

  // Without the attributes and capacities of one id.
  explicit Device(std::string_view without) {
    std::erase_if(attributes_, [&](const auto& value) { return value.first.second == without; });
    std::erase_if(capacities_, [&](const auto& value) { return value.first.second == without; });
  }

  std::string_view Driver() const override { return "neuron.aws.com"; }
  bool AllowsMultipleAllocations() const override { return false; }
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
      {{"neuron.aws.com", "draDriverVersion"}, CelValue(*Semver::Parse("1.2.0"))},
      {{"tahoma.dev", "x"}, CelValue(std::int64_t{2})},
      {{"tahoma.dev", "spare"}, CelValue(false)},
  };
  Values capacities_ = {{{"tahoma.dev", "hbm"}, CelValue(*Quantity::Parse("96Gi"))}};
};

bool Same(const absl::StatusOr<bool>& a, const absl::StatusOr<bool>& b) {
  return a.ok() == b.ok() && (!a.ok() || *a == *b);
}

}  // namespace

void FuzzOne(std::string_view input) {
  const auto selector = DeviceSelector::Compile(input);
  if (!selector.ok()) {
    // Every refusal says where: "line:column: reason".
    TAHOMA_CHECK(absl::IsInvalidArgument(selector.status()));
    TAHOMA_CHECK(!tahoma::Message(selector.status()).empty());
    return;
  }
  TAHOMA_CHECK(selector->source() == input && input.size() <= kSelectorBytesMax);
  const auto answer = selector->Matches(Device(""));
  TAHOMA_CHECK(Same(answer, selector->Matches(Device(""))));
  for (const char* id : {"deviceId", "instanceType", "draDriverVersion", "x", "spare", "hbm"}) {
    if (!selector->MayRead(id)) TAHOMA_CHECK(Same(answer, selector->Matches(Device(id))));
  }
}
