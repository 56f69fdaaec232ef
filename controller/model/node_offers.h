// The devices that other drivers offer on a node, kept small, and those that claims have.
//
//   const NodeOffers offers({packer.Pack(std::move(published))});
//   offers.CountOf("dra.net");            // devices
//   offers.Unpack();                      // the slices as published, for an allocator
//
// "Other" is every driver but AWS's driver of chips, whose devices are the Node's. Only slices of a
// single node are kept.
//
// Thread safety: immutable values.

#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "controller/model/inventory.h"
#include "lib/kube/objects/allocation.h"
#include "lib/kube/objects/slice.h"

namespace tahoma::controller {

struct OfferedSlice {
  // The slice without its devices, and without what follows.
  kube::ResourceSlice head;
  PackedDevices packed;
  std::vector<Device> plain;  // devices that cannot be packed
  // Counters and details, shared by slices with the same; nullptr: there are none.
  struct Rest {
    std::vector<kube::CounterSet> shared_counters;
    std::vector<std::vector<kube::CounterSet>> consumes;
    std::vector<kube::DeviceDetails> details;

    friend bool operator==(const Rest&, const Rest&) = default;
  };
  std::shared_ptr<const Rest> rest;

  std::size_t count = 0;  // devices
  bool shares = false;    // some device may be in several claims
};

using OfferedSlicePtr = std::shared_ptr<const OfferedSlice>;

// Packs slices of other drivers.
//
// Thread safety: one thread.
class SlicePacker {
 public:
  // `slice` was read with kube::SliceDetails::kRead.
  OfferedSlicePtr Pack(kube::ResourceSlice slice);

 private:
  // Lists of counters and details are few in a fleet: slices of one kind of instance have the same.
  static constexpr std::size_t kRestsMost = 64;

  Inventory inventory_;
  std::vector<std::weak_ptr<const OfferedSlice::Rest>> rests_;
};

class NodeOffers {
 public:
  // Not empty.
  explicit NodeOffers(std::vector<OfferedSlicePtr> slices) : slices_(std::move(slices)) {}

  const std::vector<OfferedSlicePtr>& slices() const { return slices_; }
  // Counts the driver's devices in its slices, whether or not the driver's pools are complete.
  std::size_t CountOf(std::string_view driver) const;
  // Returns whether several claims may have a device of the driver.
  bool Shares(std::string_view driver) const;
  std::vector<kube::ResourceSlice> Unpack() const;

 private:
  std::vector<OfferedSlicePtr> slices_;
};

// A device of another driver that a claim has, wholly or a share of.
struct HeldOther {
  std::string driver;
  std::string pool;
  std::string device;
  bool share = false;
  std::vector<kube::ConsumedCapacity> consumed = {};  // by a share

  friend bool operator==(const HeldOther&, const HeldOther&) = default;
};

// Returns whether both have the device whole.
bool IsSameDevice(const HeldOther& a, const HeldOther& b);

// Returns the devices of other drivers that an allocation gives, without those of admin access,
// which occupies nothing.
std::vector<HeldOther> HeldOthers(const kube::Allocation& allocation);

}  // namespace tahoma::controller
