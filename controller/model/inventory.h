// Node inventory, interned: nodes that publish the same devices share one description of them.
//
//   Inventory inventory;
//   std::shared_ptr<const Node> node = inventory.Intern(std::move(facts));
//   const NodeTemplate& devices = *node->family->devices;
//   devices.chips[3];                            // index of the device that is chip 3, or kNone
//   node->Lookup(devices.chips[3], "neuron.aws.com", "instanceType");
//
// A device is kept once for all nodes that publish the same device (DeviceTemplate), and so is the
// list of a node's devices (NodeTemplate). An attribute with the same value on all its devices of a
// node is kept once per node (a slot), not per device. An attribute that differs from node to node
// is kept with the node, in slots of its own. Some attributes differ by nature (UltraServer,
// network layers, capacity block); others turn out to differ (serial numbers, ids of groups: more
// than kSharedValuesMax values in the fleet). Everything else makes up the NodeFamily. With this,
// 13 million devices on 62,500 nodes of one kind cost a few hundred bytes per node, whatever a
// driver publishes. A selector that reads no node's own slot is evaluated once per family.
//
// Scope: published inventory. cluster.h knows the free devices.
//
// Thread safety: Inventory belongs to one thread; returned values are immutable.

#pragma once

#include <absl/container/flat_hash_map.h>

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "controller/model/device.h"
#include "lib/driver/ultraserver_mode.h"
#include "lib/hw/catalogue.h"
#include "lib/kube/objects/pod_needs.h"
#include "lib/torus/box.h"

namespace tahoma::controller {

inline constexpr int kChipsPerNode = 16;
inline constexpr int kCoresPerChip = 8;

enum class DeviceKind : std::uint8_t {
  kChip,   // resourceType neuron_device
  kNode,   // neuron_node: all chips of a member of an UltraServer
  kCore,   // neuron_core: a logical core
  kOther,  // not placed by us
};

// The hardware that a device represents, read from its attributes (docs/design/0001-seams.md; AWS's
// own slices have no tahoma.dev attributes and are read by deviceId).
struct DeviceRole {
  DeviceKind kind = DeviceKind::kOther;
  std::uint8_t chip = 0;   // kChip, kCore
  std::uint8_t lnc = 0;    // kCore: 1 or 2
  std::uint8_t core = 0;   // kCore: logical index in its chip
  std::uint8_t cores = 0;  // kCore: the physical cores, as bits of the chip's

  friend bool operator==(const DeviceRole&, const DeviceRole&) = default;
};

DeviceRole RoleOf(const Device& device);

struct DeviceTemplate {
  // An attribute that the node keeps for its devices.
  struct Slot {
    std::uint16_t slot = 0;
    std::uint16_t position = 0;  // in the slot's values

    friend auto operator<=>(const Slot&, const Slot&) = default;
    template <typename H>
    friend H AbslHashValue(H h, const Slot& s) {
      return H::combine(std::move(h), s.slot, s.position);
    }
  };

  Device device;            // without the attributes that are slots of the node
  std::vector<Slot> slots;  // the node's slots that the device has
  DeviceRole role;
};

struct NodeTemplate {
  static constexpr std::uint16_t kNone = 0xffff;

  std::vector<QualifiedName> slot_names;
  std::vector<bool> own_slot;  // by slot: each node, not its family, keeps the values
  std::vector<std::shared_ptr<const DeviceTemplate>> devices;
  absl::flat_hash_map<std::string, std::uint16_t> by_name;
  std::array<std::uint16_t, kChipsPerNode> chips;
  std::uint16_t whole_node = kNone;
  // Devices by chip, lnc - 1 and logical core.
  std::array<std::array<std::array<std::uint16_t, kCoresPerChip>, 2>, kChipsPerNode> cores;
  std::uint16_t chip_mask = 0;  // chips that a device represents: their own, a core, the whole node
  std::uint16_t healthy_mask =
      0;                 // those without a taint that keeps work away, except tahoma.dev/managed
  torus::LinkMask down;  // from linksDown, in the node's own 4x4 (z: both directions apart)
  std::uint16_t down_z_minus = 0;  // chips whose link towards the previous node is down
};

struct NodeFamily {
  std::shared_ptr<const NodeTemplate> devices;
  std::vector<AttributeValue> values;      // by slot; unused for nodes' own slots
  std::string instance_type;               // empty when not published
  const hw::InstanceType* type = nullptr;  // nullptr when not in the catalogue
};

// The values of an attribute: one value for all its devices or, where they differ, one per device.
using SlotValues = std::vector<AttributeValue>;

// The attributes that name the network layers above a node, the top first.
inline constexpr std::array<std::string_view, 3> kNetworkLayers = {
    "networkNodeLayer1", "networkNodeLayer2", "networkNodeLayer3"};
// The label with the availability zone of a node.
inline constexpr std::string_view kZoneLabel = "topology.kubernetes.io/zone";

using Labels = std::vector<std::pair<std::string, std::string>>;  // sorted by key

// The modes that a member of an UltraServer has elected with the others, from
// tahoma.dev/ultraserverModes and /ultraserverMode.
struct ElectedModes {
  bool running = false;  // "busy": an election has no result yet
  std::vector<hw::UltraServerMode> offered;
  hw::UltraServerMode chosen = hw::UltraServerMode::kUnset;  // kept until all cores are released

  bool Offers(hw::UltraServerMode mode) const;

  friend bool operator==(const ElectedModes&, const ElectedModes&) = default;
};

class NodeOffers;

// The facts about a node: the Node object and the slices of our driver's pool.
struct NodeFacts {
  std::string name;
  Labels labels;
  std::vector<Taint> taints;  // taints of the Node, not of devices
  bool schedulable = true;    // not cordoned
  bool ready = true;          // false: its condition Ready is not True
  // What pods may use; nullopt when the node has not said: no pod lacks anything there.
  std::optional<kube::Amounts> allocatable = std::nullopt;
  std::vector<Device> devices;
  std::shared_ptr<const NodeOffers> others = nullptr;  // devices of other drivers; nullptr: none
};

struct Node {
  std::string name;  // also the name of our driver's pool
  std::shared_ptr<const NodeFamily> family;
  std::vector<std::shared_ptr<const SlotValues>> own;  // by slot; nullptr: the family has them
  Labels labels;
  std::vector<Taint> taints;
  bool cordoned = false;
  bool ready = true;
  // The UltraServer of the node, from tahoma.dev/ultraserverId and /z, else AWS's ultraserverId
  // with ultraserverNodeId, else the node labels neuron.amazonaws.com/ultraserver-server-id-4 and
  // -node-id-4 (docs/reference/aws-dra-driver.md#ultraserver-labels). Empty when the node is in no
  // UltraServer or its place is not known.
  std::string ultraserver_id;
  std::uint8_t z = 0;
  std::optional<ElectedModes> elected;  // nullopt: takes part in no election, or publishes none
  std::shared_ptr<const kube::Amounts> allocatable;  // nullptr: no pod lacks anything here
  std::shared_ptr<const NodeOffers> others;          // devices of other drivers; nullptr: none

  // Returns whether pods may be placed on the node, if its taints and labels admit them.
  bool schedulable() const { return ready && !cordoned; }
  const Device& device(std::uint16_t index) const {
    return family->devices->devices[index]->device;
  }
  const DeviceRole& role(std::uint16_t index) const {
    return family->devices->devices[index]->role;
  }

  // Returns the value of a label; empty when the node does not have the label.
  std::string_view label(std::string_view key) const;
  // Returns the names of the network layers above the node, the top first, as far as published.
  std::vector<std::string> NetworkLayers() const;

  // Returns the role of a device of that name, also when the node does not publish the device now:
  // a held device does not become free when its node publishes less.
  DeviceRole RoleNamed(const std::string& device) const;
  // Returns the node's chips that a device of that name represents; for a logical core, its chip.
  std::uint16_t ChipsNamed(const std::string& device) const;

  // Returns an attribute's value as published; nullptr when the device does not have the attribute,
  // or for kNone.
  const AttributeValue* Lookup(std::uint16_t device, std::string_view domain,
                               std::string_view id) const;
  // Returns all attributes of a device as published, in no particular order.
  std::vector<Attribute> Attributes(std::uint16_t device) const;
};

// Attributes that differ from node to node by nature, in AWS's domain or ours.
inline constexpr std::array<std::string_view, 12> kPlaceIds = {"z",
                                                               "ultraserverId",
                                                               "ultraserverNodeId",
                                                               "ultraserverModes",
                                                               "ultraserverMode",
                                                               "ultraserverServerId2",
                                                               "ultraserverServerId4",
                                                               "networkNodeLayer1",
                                                               "networkNodeLayer2",
                                                               "networkNodeLayer3",
                                                               "capacityBlockId",
                                                               "workloadId"};
bool IsPlaceName(const QualifiedName& name);

// An attribute with more values than this at one time becomes the nodes' own.
inline constexpr std::size_t kSharedValuesMax = 16;

// A list of devices, interned: those of a slice.
struct PackedDevices {
  std::shared_ptr<const NodeFamily> family;
  std::vector<std::shared_ptr<const SlotValues>> own;  // by slot, as in Node

  // Appends the devices as they were published. The attributes of a device come in another order.
  void AppendTo(std::vector<Device>& devices) const;
};

class Inventory {
 public:
  std::shared_ptr<const Node> Intern(NodeFacts facts);
  // Returns nullopt for a list that could not be given back: a name of a device, or of an attribute
  // of a device, comes twice, or there are too many devices.
  std::optional<PackedDevices> Pack(const std::vector<Device>& devices);

  // Returns the number of distinct templates and families alive, for metrics and tests.
  std::size_t device_templates() const;
  std::size_t node_templates() const;
  std::size_t families() const;

 private:
  template <typename T>
  using Interned = absl::flat_hash_map<std::size_t, std::vector<std::weak_ptr<const T>>>;

  // The values of an attribute, by their hash, each with a family that has the value. A value that
  // no node publishes any more does not count. An attribute that has become the nodes' own remains
  // the nodes' own.
  struct Seen {
    bool own = false;
    absl::flat_hash_map<std::size_t, std::weak_ptr<const NodeFamily>> values;
  };
  // The attributes of one node, with the hash of their values.
  using Published = std::vector<std::pair<QualifiedName, std::size_t>>;

  using SlotsByName = std::map<QualifiedName, std::uint16_t>;
  using OwnValues = std::vector<std::shared_ptr<const SlotValues>>;

  // A list that was interned. A list that differs in values of own slots alone is interned by a
  // comparison with the pattern, many times as fast.
  struct Pattern {
    std::vector<Device> devices;
    std::vector<std::uint16_t> slots;  // by attribute, device by device: its own slot, or kNone
    std::vector<bool> each;            // by slot: one value per device
    std::vector<bool> fixed;           // by slot: the template is of these values
    Published shared;                  // the attributes that are not the nodes' own
    std::weak_ptr<const NodeFamily> family;
    std::size_t own_names = 0;  // own_names_ when the list was interned
  };
  static constexpr std::size_t kPatternsMost = 16;

  // Interns a list that is like a list before; nullopt when none is.
  std::optional<PackedDevices> InternByPattern(const std::vector<Device>& devices);
  std::optional<OwnValues> MatchOwn(const Pattern& pattern, const NodeTemplate& all,
                                    const std::vector<Device>& devices);
  void AddPattern(const std::vector<Device>& devices, const SlotsByName& slots,
                  const Published& published, const PackedDevices& packed);
  // Interns any list without a device's name twice. `can_pack`: Pack would take the list.
  PackedDevices InternAnew(const std::vector<Device>& devices, bool can_pack);

  SlotsByName MakeSlots(std::map<QualifiedName, SlotValues>&& by_name, NodeTemplate& all,
                        NodeFamily& family, OwnValues& own, Published& published);
  bool IsOwn(const QualifiedName& name) const;
  // Counts the node's values of attributes that are not the nodes' own yet.
  void Count(const Published& published, const std::shared_ptr<const NodeFamily>& family);

  // Every so often, forgets hashes of values that no live family has.
  void SweepSometimes();
  template <typename T>
  static std::size_t Alive(const Interned<T>& values);
  template <typename T, typename Equal>
  std::shared_ptr<const T> Share(Interned<T>& values, std::size_t hash, T value,
                                 const Equal& equal);

  Interned<DeviceTemplate> devices_;
  Interned<NodeTemplate> nodes_;
  Interned<NodeFamily> families_;
  Interned<SlotValues> own_values_;
  Interned<kube::Amounts> amounts_;
  absl::flat_hash_map<QualifiedName, Seen> seen_;
  std::vector<Pattern> patterns_;  // the last used first
  std::size_t own_names_ = 0;      // attributes of seen_ that are the nodes' own
  std::size_t interned_ = 0;
};

// Interns a node that shares nothing with another node, for tests.
std::shared_ptr<const Node> InternAlone(NodeFacts facts);

}  // namespace tahoma::controller
