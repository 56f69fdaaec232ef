#include "controller/allocate/pools.h"

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "lib/base/check.h"

namespace tahoma::controller::allocate {
namespace {

using kube::ResourceSlice;
using SliceList = std::vector<const ResourceSlice*>;

bool HasDeviceForNode(const ResourceSlice& slice, NodeView node) {
  return std::ranges::any_of(slice.details, [&](const kube::DeviceDetails& device) {
    return IsFor(node, device.node, device.all_nodes, device.node_terms);
  });
}

// Slices of counters are for every node: without them no device of the pool can be used.
bool IsRelevant(const ResourceSlice& slice, NodeView node, const Features& features) {
  TAHOMA_CHECK(slice.details.size() == slice.devices.size());
  const bool partitions = slice.per_device_nodes || !slice.shared_counters.empty();
  if (partitions && !features.partitionable_devices) return false;
  if (!slice.shared_counters.empty()) return true;
  if (slice.per_device_nodes) return HasDeviceForNode(slice, node);
  return IsFor(node, slice.node, slice.all_nodes, slice.node_terms);
}

// The slices of one pool, as far as they were published.
struct Published {
  SliceList all;
  SliceList relevant;  // of the newest generation that has a slice for the node
};

void Add(const ResourceSlice& slice, bool relevant, Published& pool) {
  pool.all.push_back(&slice);
  if (!relevant) return;
  const std::int64_t newest =
      pool.relevant.empty() ? slice.generation : pool.relevant.front()->generation;
  if (slice.generation < newest) return;
  if (slice.generation > newest) pool.relevant.clear();
  pool.relevant.push_back(&slice);
}

std::string WhyNamesContradict(const SliceList& slices) {
  absl::flat_hash_set<std::string_view> names;
  for (const ResourceSlice* slice : slices) {
    for (const kube::Device& device : slice->devices) {
      if (!names.insert(device.name).second) {
        return fmt::format("two devices have the name {}", device.name);
      }
    }
  }
  return "";
}

using CounterNames = absl::flat_hash_map<std::string_view, absl::flat_hash_set<std::string_view>>;

std::string WhySetsContradict(const SliceList& slices, CounterNames& names) {
  for (const ResourceSlice* slice : slices) {
    for (const kube::CounterSet& set : slice->shared_counters) {
      const auto [at, added] = names.try_emplace(set.name);
      if (!added) return fmt::format("two sets of counters have the name {}", set.name);
      for (const kube::Counter& counter : set.counters) at->second.insert(counter.name);
    }
  }
  return "";
}

std::string WhyCountersAreMissing(const SliceList& slices, const CounterNames& names) {
  for (const ResourceSlice* slice : slices) {
    for (const auto& consumed : slice->consumes) {
      for (const kube::CounterSet& set : consumed) {
        const auto found = names.find(set.name);
        if (found == names.end()) {
          return fmt::format("a device consumes of the counters {}, which no slice shares",
                             set.name);
        }
        for (const kube::Counter& counter : set.counters) {
          if (found->second.contains(counter.name)) continue;
          return fmt::format("a device consumes of the counter {}, which {} does not have",
                             counter.name, set.name);
        }
      }
    }
  }
  return "";
}

std::string WhyInvalid(const Pool& pool, const Features& features) {
  std::string why = WhyNamesContradict(pool.devices);
  if (!why.empty() || !features.partitionable_devices) return why;
  CounterNames names;
  why = WhySetsContradict(pool.counter_sets, names);
  for (const SliceList* slices : {&pool.counter_sets, &pool.devices, &pool.elsewhere}) {
    if (why.empty()) why = WhyCountersAreMissing(*slices, names);
  }
  return why;
}

// Sorts out the slices of a complete pool; `whole` are all slices of the same generation.
void Fill(const SliceList& relevant, const SliceList& whole, const Features& features, Pool& pool) {
  const absl::flat_hash_set<const ResourceSlice*> here(relevant.begin(), relevant.end());
  for (const ResourceSlice* slice : whole) {
    if (!here.contains(slice)) pool.elsewhere.push_back(slice);
  }
  for (const ResourceSlice* slice : relevant) {
    const bool counters = features.partitionable_devices && !slice->shared_counters.empty();
    (counters ? pool.counter_sets : pool.devices).push_back(slice);
  }
  pool.why = WhyInvalid(pool, features);
  if (!pool.why.empty()) pool.state = PoolState::kInvalid;
}

bool HasBindingConditions(const Pool& pool) {
  return std::ranges::any_of(pool.devices, [](const ResourceSlice* slice) {
    return std::ranges::any_of(slice->details, [](const kube::DeviceDetails& device) {
      return !device.binding_conditions.empty();
    });
  });
}

}  // namespace

bool IsFor(NodeView node, std::string_view name, bool all, const kube::NodeTerms& terms) {
  if (!name.empty()) return name == node.name;
  return all || kube::MeetsOne(terms, node.name, node.labels);
}

std::vector<Pool> GatherPools(Slices slices, NodeView node, const Features& features) {
  std::map<std::pair<std::string_view, std::string_view>, Published> published;
  for (const ResourceSlice* slice : slices) {
    Add(*slice, IsRelevant(*slice, node, features), published[{slice->driver, slice->pool}]);
  }
  std::vector<Pool> pools;
  for (auto& [key, found] : published) {
    if (found.relevant.empty()) continue;
    for (SliceList* list : {&found.all, &found.relevant}) {
      std::ranges::stable_sort(*list, {}, &ResourceSlice::name);
    }
    const ResourceSlice& first = *found.relevant.front();
    const auto wanted = static_cast<std::size_t>(std::max<std::int64_t>(first.slices_in_pool, 0));
    SliceList whole = found.relevant;
    if (whole.size() != wanted) {
      // The newest generation may have no slice for the node: then the pool has nothing for it.
      const auto newer = [&](const ResourceSlice* s) { return s->generation > first.generation; };
      if (std::ranges::any_of(found.all, newer)) continue;
      whole = std::move(found.all);
      std::erase_if(whole,
                    [&](const ResourceSlice* s) { return s->generation < first.generation; });
    }
    Pool& pool = pools.emplace_back();
    pool.driver = key.first;
    pool.name = key.second;
    if (whole.size() == wanted) {
      Fill(found.relevant, whole, features, pool);
    } else {
      pool.state = PoolState::kIncomplete;
    }
  }
  std::stable_partition(pools.begin(), pools.end(),
                        [](const Pool& p) { return !HasBindingConditions(p); });
  return pools;
}

}  // namespace tahoma::controller::allocate
