#include "controller/allocate/consumption.h"

#include <algorithm>
#include <cstdint>

namespace tahoma::controller::allocate {
namespace {

using kube::Quantity;

// Returns how far an amount lies beyond the last step below it.
std::int64_t BeyondStep(const Quantity& amount, const kube::CapacityRange& range) {
  return (amount.Value() - range.min.Value()) % range.step->Value();
}

Quantity RoundedUp(const Quantity& amount, const kube::RequestPolicy& policy) {
  if (policy.range) {
    if (amount < policy.range->min) return policy.range->min;
    if (!policy.range->step) return amount;
    const std::int64_t beyond = BeyondStep(amount, *policy.range);
    const std::int64_t added = beyond == 0 ? 0 : policy.range->step->Value() - beyond;
    return Quantity::Of(amount.Value(), Quantity::Format::kBinarySi) + Quantity::Of(added);
  }
  const auto at =
      std::ranges::find_if(policy.values, [&](const Quantity& v) { return amount <= v; });
  return at == policy.values.end() ? amount : *at;
}

bool Admits(const kube::RequestPolicy& policy, const Quantity& amount) {
  if (policy.otherwise == amount) return true;
  if (policy.range) {
    if (policy.range->max && amount > *policy.range->max) return false;
    return !policy.range->step || BeyondStep(amount, *policy.range) == 0;
  }
  return policy.values.empty() || std::ranges::find(policy.values, amount) != policy.values.end();
}

Quantity AmountOf(const Quantity* requested, const CapacityState& state) {
  if (requested != nullptr) return state.policy ? RoundedUp(*requested, *state.policy) : *requested;
  return state.policy && state.policy->otherwise ? *state.policy->otherwise : state.total;
}

}  // namespace

std::optional<std::vector<Quantity>> ConsumptionOf(
    const std::vector<kube::CapacityRequest>& requests, const Candidate& candidate) {
  const std::vector<kube::Capacity>& capacities = candidate.device().capacities;
  std::vector<const Quantity*> requested(capacities.size(), nullptr);
  for (const kube::CapacityRequest& request : requests) {
    const auto name = kube::ParseQualifiedName(request.name, candidate.slice->driver);
    const auto at = std::ranges::find(capacities, name, &kube::Capacity::name);
    if (at == capacities.end()) return std::nullopt;
    requested[static_cast<std::size_t>(at - capacities.begin())] = &request.amount;
  }
  std::vector<Quantity> amounts;
  for (std::size_t i = 0; i < candidate.capacities.size(); ++i) {
    const CapacityState& state = candidate.capacities[i];
    const Quantity amount = AmountOf(requested[i], state);
    if (state.policy != nullptr && !Admits(*state.policy, amount)) return std::nullopt;
    if (state.used + amount > state.total) return std::nullopt;
    amounts.push_back(amount);
  }
  return amounts;
}

}  // namespace tahoma::controller::allocate
