// Runs a checked expression over one device, or over values of an object.
//
// Thread safety: one CelEvaluator belongs to one thread; expressions are shared.

#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/kube/cel/expression.h"

namespace tahoma::kube::internal {

class CelEvaluator {
 public:
  CelEvaluator(const DeviceView& device, std::size_t slots, std::uint64_t cost_limit)
      : device_(&device), slots_(slots), cost_left_(cost_limit) {
    slots_[0] = CelValue(CelValue::DevicePart{CelType::kDevice, ""});
  }
  // `variables` are those that the parser was given, in their order.
  CelEvaluator(std::vector<CelValue> variables, std::size_t slots, std::uint64_t cost_limit)
      : slots_(std::move(variables)), cost_left_(cost_limit) {
    slots_.resize(slots);
  }

  absl::StatusOr<CelValue> Evaluate(const CelExpr& e);
  std::uint64_t cost_left() const { return cost_left_; }

 private:
  using Result = absl::StatusOr<CelValue>;

  // Spends steps, or a tenth of a step per byte looked at. Fails when the budget is used up, and
  // from then on always: && and || absorb errors, but not this one.
  absl::Status Spend(std::uint64_t steps);
  // Spends as much as looking at all of the value takes.
  absl::Status SpendOn(const CelValue& value);
  absl::Status SpendOnCall(const CelExpr& call, const std::vector<CelValue>& args);

  Result EvaluateNode(const CelExpr& e);

  Result Select(const CelExpr& e);
  Result Index(const CelExpr& e);
  // Returns the entry of a map, list or part of the device; none when absent, an error when `base`
  // cannot have entries.
  absl::StatusOr<CelValue::Optional> Find(const CelValue& base, const CelValue& key);
  Result AndOr(const CelExpr& e);
  Result Binary(const CelExpr& e);
  Result Arithmetic(const CelExpr& e, const CelValue& a, const CelValue& b);
  Result Contains(const CelValue& key, const CelValue& in);
  Result Aggregate(const CelExpr& e);
  Result Comprehension(const CelExpr& e);
  Result OptMap(const CelExpr& e);
  // Returns the entries of a list, or the keys of a map.
  absl::StatusOr<CelValue> RangeOf(const CelValue& value);
  // Is ==. Of lists inside of objects the order counts only where their schema says so.
  absl::StatusOr<bool> AreEqual(const CelValue& a, const CelValue& b);
  // Returns parts of the device or of the object as ordinary lists and maps, and other values as
  // they are.
  CelValue Materialized(const CelValue& value) const;
  CelValue IdsOf(const CelValue::DevicePart& part) const;

  const DeviceView* device_ = nullptr;
  std::vector<CelValue> slots_;
  std::uint64_t cost_left_;
};

// Calls one function. `pattern` is the compiled pattern of kMatches when it is a literal.
absl::StatusOr<CelValue> CallCelFunction(const CelExpr& call, const std::vector<CelValue>& args);

absl::Status NoSuchOverload(std::string_view what);

}  // namespace tahoma::kube::internal
