// The devices that a node can use, in the order in which they are tried.
//
// Thread safety: values. A candidate points into its slice.

#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "controller/allocate/pools.h"
#include "lib/kube/objects/device_details.h"
#include "lib/kube/quantity.h"

namespace tahoma::controller::allocate {

struct DeviceId {
  std::string driver;
  std::string pool;
  std::string device;

  friend auto operator<=>(const DeviceId&, const DeviceId&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const DeviceId& id) {
    return H::combine(std::move(h), id.driver, id.pool, id.device);
  }
};

// The devices that other claims have.
struct InUse {
  absl::flat_hash_set<DeviceId> devices;  // without those of admin access
  // Shared devices, with the capacity that all their shares consume.
  absl::flat_hash_map<DeviceId, std::vector<std::pair<kube::QualifiedName, kube::Quantity>>> shares;

  bool Holds(const DeviceId& id) const { return devices.contains(id) || shares.contains(id); }
};

struct CapacityState {
  kube::Quantity total;
  kube::Quantity used;
  const kube::RequestPolicy* policy = nullptr;
};

// Part of a pool's counter, as CounterBook numbers the counters.
struct CounterPart {
  std::size_t counter = 0;
  std::int64_t amount = 0;

  friend bool operator==(const CounterPart&, const CounterPart&) = default;
};

struct Candidate {
  const kube::ResourceSlice* slice = nullptr;
  std::size_t index = 0;   // in the slice
  bool shared = false;     // several claims may have the device
  bool in_use = false;     // another claim has the whole device
  bool barred = false;     // consumes counters, which are switched off
  std::size_t shares = 0;  // of other claims and of this search; counters are consumed by the first
  std::vector<std::size_t> taken_by;  // claims of this search, by their place
  std::vector<CounterPart> counters;
  std::vector<CapacityState> capacities;  // in the order of device().capacities

  const kube::Device& device() const { return slice->devices[index]; }
  const kube::DeviceDetails& details() const { return slice->details[index]; }
  DeviceId id() const { return {slice->driver, slice->pool, device().name}; }
};

// The counters that devices of usable pools share, less the parts of devices in use.
class CounterBook {
 public:
  // Reads the pool's counters, and of them subtracts the parts of the pool's devices in use.
  void Open(const Pool& pool, const InUse& in_use);
  // The parts that a device consumes of the pool that was opened last.
  std::vector<CounterPart> PartsOf(const kube::ResourceSlice& slice, std::size_t index) const;

  // Returns false, and takes nothing, where a counter has too little left.
  bool Take(const std::vector<CounterPart>& parts);
  void GiveBack(const std::vector<CounterPart>& parts);

 private:
  absl::flat_hash_map<std::pair<std::string_view, std::string_view>, std::size_t> numbers_;
  std::vector<std::int64_t> left_;
};

// The devices of the usable pools. `counters` then has the counters of all of them.
std::vector<Candidate> CandidatesOf(std::span<const Pool> pools, const InUse& in_use,
                                    const Features& features, CounterBook& counters);

}  // namespace tahoma::controller::allocate
