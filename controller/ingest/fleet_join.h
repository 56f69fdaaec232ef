// Joins Node objects with the ResourceSlices of our driver into one fact per node.
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
// A driver, a pool and a name are one device, wherever a slice says that the device is: the pool of
// a node has the node's name, and a slice that says otherwise is not believed.
//
// Thread safety: one thread at a time. A caller with several threads must hand the commands on in
// the order of the calls.

#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/status/status.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "controller/core/command.h"
#include "lib/kube/objects/node.h"
#include "lib/kube/objects/slice.h"

namespace tahoma::controller {

class FleetJoin {
 public:
  // `node` was read with the annotation kCordonedChips.
  std::optional<Command> OnNode(kube::Node node);
  std::optional<Command> OnNodeGone(const std::string& name);
  // Returns why a slice of our driver is not believed: its pool is not its node's, or a slice of
  // that name is another node's. Slices of other drivers, and slices that are not of a single node,
  // are nobody's concern here.
  absl::Status Check(const kube::ResourceSlice& slice) const;
  // Ignores slices that are no concern of ours, or not believed.
  std::optional<Command> OnSlice(kube::ResourceSlice slice);
  std::optional<Command> OnSliceGone(const std::string& name);

 private:
  struct Entry {
    std::optional<kube::Node> node;
    // By name, which is the order of their devices.
    std::map<std::string, kube::ResourceSlice> slices;
    // Devices of the newest complete generation, kept only while slices of a newer generation
    // replace its slices: a fleet's devices are kept once.
    std::optional<std::vector<Device>> earlier = std::nullopt;
  };

  // Changes the slices of a node, and keeps or drops the devices of the generation before.
  template <typename Change>
  static void ChangeSlices(Entry& entry, const Change& change);
  // The slices of the newest generation, when they are all there.
  static std::optional<std::vector<const kube::ResourceSlice*>> Complete(const Entry& entry);
  static std::vector<Device> DevicesOf(const Entry& entry);
  std::optional<Command> CommandFor(const std::string& name, Entry& entry) const;

  absl::flat_hash_map<std::string, Entry> nodes_;
  absl::flat_hash_map<std::string, std::string> node_of_slice_;
};

}  // namespace tahoma::controller
