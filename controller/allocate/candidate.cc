#include "controller/allocate/candidate.h"

#include <algorithm>
#include <cstdint>
#include <limits>

#include "lib/base/check.h"

namespace tahoma::controller::allocate {
namespace {

// A count that other claims have overdrawn stays at the lowest number.
std::int64_t Less(std::int64_t left, std::int64_t amount) {
  std::int64_t result = 0;
  return __builtin_sub_overflow(left, amount, &result) ? std::numeric_limits<std::int64_t>::min()
                                                       : result;
}

std::vector<CapacityState> CapacitiesOf(const Candidate& candidate, const InUse& in_use) {
  std::vector<CapacityState> states;
  const auto shares = in_use.shares.find(candidate.id());
  for (const kube::Capacity& capacity : candidate.device().capacities) {
    CapacityState& state = states.emplace_back();
    // The API server admits only quantities of 0 or more; any other text counts as nothing.
    const auto total = kube::Quantity::Parse(capacity.quantity);
    if (total.ok() && total->Sign() > 0) state.total = *total;
    for (const kube::RequestPolicy& policy : candidate.details().policies) {
      if (policy.capacity == capacity.name) state.policy = &policy;
    }
    if (shares == in_use.shares.end()) continue;
    for (const auto& [name, amount] : shares->second) {
      if (name == capacity.name) state.used = state.used + amount;
    }
  }
  return states;
}

}  // namespace

void CounterBook::Open(const Pool& pool, const InUse& in_use) {
  numbers_.clear();
  for (const kube::ResourceSlice* slice : pool.counter_sets) {
    for (const kube::CounterSet& set : slice->shared_counters) {
      for (const kube::Counter& counter : set.counters) {
        numbers_.try_emplace({set.name, counter.name}, left_.size());
        left_.push_back(counter.value);
      }
    }
  }
  if (numbers_.empty()) return;
  for (const auto* slices : {&pool.devices, &pool.elsewhere}) {
    for (const kube::ResourceSlice* slice : *slices) {
      for (std::size_t i = 0; i < slice->devices.size(); ++i) {
        if (slice->consumes[i].empty()) continue;
        if (!in_use.Holds({slice->driver, slice->pool, slice->devices[i].name})) continue;
        for (const CounterPart& part : PartsOf(*slice, i)) {
          left_[part.counter] = Less(left_[part.counter], part.amount);
        }
      }
    }
  }
}

std::vector<CounterPart> CounterBook::PartsOf(const kube::ResourceSlice& slice,
                                              std::size_t index) const {
  std::vector<CounterPart> parts;
  for (const kube::CounterSet& set : slice.consumes[index]) {
    for (const kube::Counter& counter : set.counters) {
      const auto found = numbers_.find({set.name, counter.name});
      TAHOMA_CHECK(found != numbers_.end());  // else the pool is invalid
      parts.push_back({.counter = found->second, .amount = counter.value});
    }
  }
  return parts;
}

bool CounterBook::Take(const std::vector<CounterPart>& parts) {
  for (std::size_t i = 0; i < parts.size(); ++i) {
    std::int64_t& left = left_[parts[i].counter];
    if (left < parts[i].amount) {
      GiveBack({parts.begin(), parts.begin() + static_cast<std::ptrdiff_t>(i)});
      return false;
    }
    left -= parts[i].amount;
  }
  return true;
}

void CounterBook::GiveBack(const std::vector<CounterPart>& parts) {
  for (const CounterPart& part : parts) left_[part.counter] += part.amount;
}

std::vector<Candidate> CandidatesOf(std::span<const Pool> pools, const InUse& in_use,
                                    const Features& features, CounterBook& counters) {
  std::vector<Candidate> candidates;
  for (const Pool& pool : pools) {
    if (pool.state != PoolState::kUsable) continue;
    counters.Open(pool, in_use);
    for (const kube::ResourceSlice* slice : pool.devices) {
      for (std::size_t i = 0; i < slice->devices.size(); ++i) {
        Candidate made;
        made.slice = slice;
        made.index = i;
        const bool counts = !slice->consumes[i].empty();
        made.shared = features.consumable_capacity && made.device().allow_multiple_allocations;
        const DeviceId id = made.id();
        made.in_use = in_use.devices.contains(id);
        made.barred = counts && !features.partitionable_devices;
        made.shares = in_use.shares.contains(id) ? 1 : 0;
        if (counts && features.partitionable_devices) made.counters = counters.PartsOf(*slice, i);
        if (features.consumable_capacity) made.capacities = CapacitiesOf(made, in_use);
        candidates.push_back(std::move(made));
      }
    }
  }
  return candidates;
}

}  // namespace tahoma::controller::allocate
