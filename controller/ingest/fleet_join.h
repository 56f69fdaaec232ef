// Joins Node objects with the ResourceSlices of their drivers into one fact per node.
//
//   FleetJoin join;
//   std::optional<Command> command = join.OnSlice(slice);    // NodeSeen, NodeGone or nothing
//
// A node is known when its Node object exists. Its devices are those of the newest complete
// generation of its pool. While a newer generation is being published the earlier devices stay,
// because devices that are prepared on the node do not vanish by publishing. Devices of chips that
// the Node says are cordoned get a taint (model/cordoned_chips.h). Seeing the same again gives
// nothing.
//
// Devices are kept interned: the devices of a slice as PackedDevices (model/inventory.h), the
// devices of a node in the node that the command carries. A command is a few hundred bytes beside
// the values that many nodes share, however many devices the node has.
//
// A driver, a pool and a name are one device, wherever a slice says that the device is: the pool of
// a node has the node's name, and a slice that says otherwise is not believed.
//
// Slices of other drivers are kept as published (model/node_offers.h): an allocator judges the
// slices when a claim asks for their devices.
//
// Thread safety: one thread at a time. A caller with several threads must hand the commands on in
// the order of the calls.

#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/status/status.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "controller/core/command.h"
#include "controller/model/inventory.h"
#include "controller/model/node_offers.h"
#include "lib/kube/objects/node.h"
#include "lib/kube/objects/slice.h"

namespace tahoma::controller {

class FleetJoin {
 public:
  // `node` was read with the annotation kCordonedChips.
  std::optional<Command> OnNode(kube::Node node);
  std::optional<Command> OnNodeGone(const std::string& name);
  // Returns why a slice of our driver is not believed: its pool is not its node's, or a slice of
  // that name is another node's. Slices that are not of a single node are nobody's concern here.
  absl::Status Check(const kube::ResourceSlice& slice) const;
  // Ignores slices that are no concern of ours, or not believed. A slice of another driver was read
  // with kube::SliceDetails::kRead.
  std::optional<Command> OnSlice(kube::ResourceSlice slice);
  std::optional<Command> OnSliceGone(const std::string& name);

 private:
  // The devices of a slice: packed, or as published where they cannot be packed.
  struct SliceDevices {
    std::optional<PackedDevices> packed;
    std::vector<Device> plain = {};
  };
  using DevicesPtr = std::shared_ptr<const SliceDevices>;
  struct Slice {
    std::int64_t generation = 0;
    std::int64_t slices_in_pool = 1;
    DevicesPtr devices;
  };
  struct Entry {
    std::shared_ptr<const Node> node;  // as told last; nullptr: there is no Node object
    std::string annotation = {};       // of the Node object
    // By name, which is the order of their devices.
    std::map<std::string, Slice> slices = {};
    // Other drivers' slices, by name.
    std::map<std::string, OfferedSlicePtr> others = {};
    // Devices of the newest complete generation, kept only while slices of a newer generation
    // replace its slices.
    std::optional<std::vector<DevicesPtr>> earlier = std::nullopt;
  };

  // Changes the slices of a node, and keeps or drops the devices of the generation before.
  template <typename Change>
  static void ChangeSlices(Entry& entry, const Change& change);
  // The devices of the newest generation, when its slices are all there.
  static std::optional<std::vector<DevicesPtr>> Complete(const Entry& entry);
  static std::vector<DevicesPtr> DevicesOf(const Entry& entry);
  // Tells the node of `facts`, whose devices are those of the entry. `unpacked` is a part of them
  // that is at hand as published.
  Command Tell(Entry& entry, NodeFacts facts, const SliceDevices* at_hand,
               std::vector<Device> unpacked);
  static std::shared_ptr<const NodeOffers> OffersOf(const Entry& entry);
  // Tells the node again, after its slices have changed.
  std::optional<Command> TellAgain(Entry& entry, const SliceDevices* at_hand = nullptr,
                                   std::vector<Device> unpacked = {});

  Inventory inventory_;
  // Apart from inventory_: devices that differ from slice to slice of a node are no devices that
  // differ from node to node.
  Inventory slice_inventory_;
  SlicePacker others_packer_;
  absl::flat_hash_map<std::string, Entry> nodes_;
  absl::flat_hash_map<std::string, std::string> node_of_slice_;
};

}  // namespace tahoma::controller
