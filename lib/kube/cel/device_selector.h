// CEL expressions that select devices: DeviceClass and ResourceClaim selectors.
//
//   auto selector = DeviceSelector::Compile(
//       "device.attributes['neuron.aws.com'].instanceType == 'trn2.48xlarge'");
//   absl::StatusOr<bool> matches = selector->Matches(device);
//
// Variables: device.driver, device.attributes[domain].id, device.capacity[domain].id,
// device.allowMultipleAllocations. An unknown domain is an empty map; an unknown id is the run-time
// error "no such key: id", which Kubernetes lets abort the whole allocation
// (docs/reference/kubernetes-dra.md#device-selectors).
//
// Supported: all operators, has(), optionals (a.?b, a[?b], orValue, or, value, hasValue, optMap,
// optional.of/none/ofNonZeroValue), macros all, exists, exists_one, filter, map, cel.bind; strings
// (size, contains, startsWith, endsWith, matches, find, lowerAscii, upperAscii, trim, split, join,
// replace, substring, indexOf, lastIndexOf, charAt), lists (min, max, sum, isSorted, indexOf,
// includes), sets.contains/intersects/equivalent, int, uint, double, string, bool, dyn, quantity,
// semver with their comparisons. Anything else is a compile error that names it and where it is.
//
// Scope: matching a device. The caller caches by attribute set; MayRead tells the attributes that
// an expression depends on, Required and RequiredDriver the devices that the expression may
// select.
//
// Thread safety: immutable; Matches may be called from any thread.

#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lib/kube/cel/value.h"

namespace tahoma::kube {

// resource/v1 types.go: CELSelectorExpressionMaxLength and CELSelectorExpressionMaxCost. Our cost
// of an evaluation is an upper bound on its steps (copied texts, compared nested entries and
// compiled patterns count too); the API server has estimated the cost before. When the cost is used
// up the evaluation fails, even inside || or exists().
inline constexpr std::size_t kSelectorBytesMax = 10 * 1024;
inline constexpr std::uint64_t kSelectorCostMax = 1'000'000;

// An attribute with one of these values on every device that an expression selects.
struct RequiredAttribute {
  std::string domain;
  std::string id;
  std::vector<CelValue> values;  // strings, ints and bools
};

class DeviceSelector {
 public:
  // Compiles an expression. kInvalidArgument: "1:8: undeclared reference to 'foo'".
  static absl::StatusOr<DeviceSelector> Compile(std::string_view source);

  ~DeviceSelector();
  DeviceSelector(DeviceSelector&&) noexcept;
  DeviceSelector& operator=(DeviceSelector&&) noexcept;

  // Returns whether the device is selected, or the run-time error.
  absl::StatusOr<bool> Matches(const DeviceView& device) const;

  // Returns false when the answer cannot depend on an attribute or capacity with this id (in any
  // domain).
  bool MayRead(std::string_view id) const;

  // Returns the requirements among the terms joined by && of the form `attribute == literal` or
  // `attribute in [literal, …]`; other terms may require more.
  const std::vector<RequiredAttribute>& Required() const;
  // Returns the driver of every device that the expression may select, from a term of the form
  // `device.driver == "x"` among those joined by &&; empty when no such term says the driver.
  const std::string& RequiredDriver() const;

  const std::string& source() const;

 private:
  struct Compiled;
  explicit DeviceSelector(std::unique_ptr<Compiled> compiled);
  std::unique_ptr<Compiled> compiled_;
};

}  // namespace tahoma::kube
