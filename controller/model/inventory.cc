#include "controller/model/inventory.h"

#include <absl/container/flat_hash_set.h>
#include <absl/hash/hash.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <utility>

#include "lib/base/check.h"
#include "lib/driver/device_name.h"

namespace tahoma::controller {
namespace {

constexpr std::uint16_t kNone = NodeTemplate::kNone;
constexpr std::size_t kSlotsMax = 60000;  // an index has 16 bits; beyond, devices keep their own

std::optional<int> IntOf(const Device& device, std::string_view domain, std::string_view id,
                         int below) {
  const AttributeValue* value = device.Find(domain, id);
  if (value == nullptr) return std::nullopt;
  const auto* number = std::get_if<std::int64_t>(value);
  if (number == nullptr || *number < 0 || *number >= below) return std::nullopt;
  return static_cast<int>(*number);
}

std::string TextOf(const Device& device, std::string_view domain, std::string_view id) {
  const AttributeValue* value = device.Find(domain, id);
  const auto* text = value == nullptr ? nullptr : std::get_if<std::string>(value);
  return text == nullptr ? "" : *text;
}

const std::string* LabelOf(const Labels& labels, std::string_view key) {
  for (const auto& [name, value] : labels) {
    if (name == key) return &value;
  }
  return nullptr;
}

DeviceRole RoleOfCore(int chip, int lnc, int core) {
  const int cores = ((1 << lnc) - 1) << (core * lnc);
  return {.kind = DeviceKind::kCore,
          .chip = static_cast<std::uint8_t>(chip),
          .lnc = static_cast<std::uint8_t>(lnc),
          .core = static_cast<std::uint8_t>(core),
          .cores = static_cast<std::uint8_t>(cores)};
}

// Returns the role that a name of the driver spells; kOther for any other name.
DeviceRole RoleSpelt(std::string_view name) {
  const auto spelt = hw::ParseDeviceName(name);
  if (!spelt.ok()) return {};
  switch (spelt->kind) {
    case hw::DeviceKind::kChip:
      return {.kind = DeviceKind::kChip, .chip = static_cast<std::uint8_t>(spelt->chip)};
    case hw::DeviceKind::kNode:
      return {.kind = DeviceKind::kNode};
    case hw::DeviceKind::kCore:
      break;
  }
  return RoleOfCore(spelt->chip, spelt->lnc, spelt->core);
}

DeviceRole CoreRole(const Device& device) {
  const auto chip = IntOf(device, kTahomaDomain, "chip", kChipsPerNode);
  const auto lnc = IntOf(device, kTahomaDomain, "lnc", 3);
  if (!chip || !lnc || *lnc == 0) return {};
  const auto core = IntOf(device, kTahomaDomain, "core", kCoresPerChip / *lnc);
  return core ? RoleOfCore(*chip, *lnc, *core) : DeviceRole{};
}

DeviceRole RoleByAttributes(const Device& device) {
  const std::string type = TextOf(device, kNeuronDriver, "resourceType");
  if (type == "neuron_node") return {.kind = DeviceKind::kNode};
  if (type == "neuron_core") return CoreRole(device);
  // Drivers before resourceType existed published chips only.
  if (type != "neuron_device" && !type.empty()) return {};
  const auto chip = IntOf(device, kNeuronDriver, "deviceId", kChipsPerNode);
  if (!chip) return {};
  return {.kind = DeviceKind::kChip, .chip = static_cast<std::uint8_t>(*chip)};
}

bool KeepsWorkAway(const Taint& taint) {
  return taint.effect != TaintEffect::kNone && !Tolerates(ManagedToleration(), taint);
}

// Reads `linksDown` of one chip, "x+,z-" (docs/design/0001-seams.md), into the node's masks. Skips
// unknown words: an unknown link cannot be in a box.
void AddLinksDown(std::string_view text, const torus::Shape& shape, int chip, NodeTemplate& into) {
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    const std::string_view word = text.substr(0, comma);
    text = comma == std::string_view::npos ? std::string_view() : text.substr(comma + 1);
    if (word.size() != 2 || (word[1] != '+' && word[1] != '-')) continue;
    const auto direction = word[1] == '+' ? torus::Direction::kPlus : torus::Direction::kMinus;
    const auto bit = static_cast<std::uint16_t>(1U << chip);
    if (word[0] == 'z') {
      if (direction == torus::Direction::kPlus) into.down.along(torus::Axis::kZ) |= bit;
      if (direction == torus::Direction::kMinus) into.down_z_minus |= bit;
      continue;
    }
    if (word[0] != 'x' && word[0] != 'y') continue;
    const auto axis = word[0] == 'x' ? torus::Axis::kX : torus::Axis::kY;
    if (shape.extent(axis) > 1 && chip < shape.chip_count()) {
      const torus::LinkMask link = torus::LinkOf(shape, torus::ChipIndex(chip), axis, direction);
      for (const torus::Axis a : torus::kAxes) into.down.along(a) |= link.along(a);
    }
  }
}

// Returns whether two devices have the same name. An allocation names a device: with a repeated
// name the pool is invalid as a whole (resource/v1).
bool RepeatsAName(const std::vector<Device>& devices) {
  absl::flat_hash_set<std::string_view> names;
  return !std::all_of(devices.begin(), devices.end(),
                      [&](const Device& device) { return names.insert(device.name).second; });
}

// Returns the role of each device. When two devices represent the same hardware, only the first is
// placed.
std::vector<DeviceRole> RolesOf(const std::vector<Device>& devices) {
  std::vector<DeviceRole> roles;
  absl::flat_hash_set<std::array<std::uint8_t, 4>> seen;
  for (const Device& device : devices) {
    DeviceRole role = RoleOf(device);
    const std::array<std::uint8_t, 4> piece = {static_cast<std::uint8_t>(role.kind), role.chip,
                                               role.lnc, role.core};
    if (!seen.insert(piece).second) role = {};
    roles.push_back(role);
  }
  return roles;
}

// Chips that some devices represent, and the chips that a healthy device represents.
struct ChipsSeen {
  std::uint16_t all = 0;
  std::uint16_t healthy = 0;

  void Add(std::uint16_t chips, bool are_healthy) {
    all |= chips;
    if (are_healthy) healthy |= chips;
  }
  // Adds the chips of `other` that these devices do not represent.
  void AddMissing(const ChipsSeen& other) {
    healthy |= static_cast<std::uint16_t>(other.healthy & ~all);
    all |= other.all;
  }
};

std::uint16_t ChipsOfType(const hw::InstanceType* type) {
  const int count = type == nullptr ? kChipsPerNode : type->chip_count();
  return static_cast<std::uint16_t>((1U << count) - 1U);
}

// Indexes the devices by chip, core and whole node. A chip is present when a device represents the
// chip, one of its cores, or, where neither is published, its whole node.
void IndexDevices(const std::vector<Device>& devices, const hw::InstanceType* type,
                  NodeTemplate& into) {
  const torus::Shape& torus = type == nullptr ? torus::kInstanceShape : type->torus;
  into.chips.fill(kNone);
  for (auto& chip : into.cores) {
    for (auto& lnc : chip) lnc.fill(kNone);
  }
  ChipsSeen chips;
  ChipsSeen by_cores;
  ChipsSeen by_node;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const auto index = static_cast<std::uint16_t>(i);
    const Device& device = devices[i];
    const DeviceRole& role = into.devices[i]->role;
    const auto bit = static_cast<std::uint16_t>(1U << role.chip);
    into.by_name.emplace(device.name, index);
    const bool healthy = std::none_of(device.taints.begin(), device.taints.end(), KeepsWorkAway);
    if (role.kind == DeviceKind::kNode) {
      into.whole_node = index;
      by_node.Add(ChipsOfType(type), healthy);
    }
    if (role.kind == DeviceKind::kCore) {
      into.cores[role.chip][role.lnc - 1U][role.core] = index;
      by_cores.Add(bit, healthy);
    }
    if (role.kind != DeviceKind::kChip) continue;
    into.chips[role.chip] = index;
    chips.Add(bit, healthy);
    AddLinksDown(TextOf(device, kTahomaDomain, "linksDown"), torus, role.chip, into);
  }
  chips.AddMissing(by_cores);
  if (chips.all == 0) chips = by_node;
  into.chip_mask = chips.all;
  into.healthy_mask = chips.healthy;
}

// Returns the values of each attribute: one value where all its devices agree, else one per device
// in the order of the devices.
std::map<QualifiedName, SlotValues> ValuesByName(const std::vector<Device>& devices) {
  std::map<QualifiedName, SlotValues> by_name;
  for (const Device& device : devices) {
    for (const Attribute& attribute : device.attributes) {
      by_name[attribute.name].push_back(attribute.value);
    }
  }
  for (auto& entry : by_name) {
    SlotValues& values = entry.second;
    const bool same = std::all_of(values.begin(), values.end(),
                                  [&](const AttributeValue& one) { return one == values.front(); });
    if (same) values.resize(1);
  }
  return by_name;
}

std::size_t HashValues(const SlotValues& values) {
  std::size_t hash = values.size();
  for (const AttributeValue& value : values) hash = absl::HashOf(hash, HashOf(value));
  return hash;
}

void FindUltraServer(const NodeFacts& facts, Node& node) {
  for (const Device& device : facts.devices) {
    std::string id = TextOf(device, kTahomaDomain, "ultraserverId");
    auto z = IntOf(device, kTahomaDomain, "z", hw::kUltraServerNodes);
    if (id.empty()) id = TextOf(device, kNeuronDriver, "ultraserverId");
    if (!z) z = IntOf(device, kNeuronDriver, "ultraserverNodeId", hw::kUltraServerNodes);
    if (id.empty() || !z) continue;
    node.ultraserver_id = std::move(id);
    node.z = static_cast<std::uint8_t>(*z);
    return;
  }
  const std::string* id = LabelOf(facts.labels, "neuron.amazonaws.com/ultraserver-server-id-4");
  const std::string* z = LabelOf(facts.labels, "neuron.amazonaws.com/ultraserver-node-id-4");
  if (id == nullptr || z == nullptr || id->empty() || z->size() != 1) return;
  if ((*z)[0] < '0' || (*z)[0] >= '0' + hw::kUltraServerNodes) return;
  node.ultraserver_id = *id;
  node.z = static_cast<std::uint8_t>((*z)[0] - '0');
}

// Reads "X4,X2V,X1" or "busy". Unknown words are modes that nobody asks for.
void FindElected(const NodeFacts& facts, Node& node) {
  for (const Device& device : facts.devices) {
    const std::string text = TextOf(device, kTahomaDomain, "ultraserverModes");
    if (text.empty()) continue;
    ElectedModes elected;
    elected.running = text == "busy";
    for (const hw::UltraServerMode mode : hw::kUltraServerModes) {
      const std::string words = "," + text + ",";
      if (words.find(fmt::format(",{},", hw::ModeName(mode))) != std::string::npos) {
        elected.offered.push_back(mode);
      }
    }
    const auto chosen = hw::ParseMode(TextOf(device, kTahomaDomain, "ultraserverMode"));
    elected.chosen = chosen.value_or(hw::UltraServerMode::kUnset);
    node.elected = std::move(elected);
    return;
  }
}

std::size_t HashDevice(const DeviceTemplate& device) {
  return absl::HashOf(device.device.name, device.device.attributes, device.device.capacities,
                      device.device.taints, device.slots);
}

bool SameDevice(const DeviceTemplate& a, const DeviceTemplate& b) {
  return a.device.name == b.device.name && a.device.attributes == b.device.attributes &&
         a.device.capacities == b.device.capacities && a.device.taints == b.device.taints &&
         a.device.allow_multiple_allocations == b.device.allow_multiple_allocations &&
         a.slots == b.slots && a.role == b.role;
}

bool SameNode(const NodeTemplate& a, const NodeTemplate& b) {
  return a.slot_names == b.slot_names && a.own_slot == b.own_slot && a.devices == b.devices &&
         a.down_z_minus == b.down_z_minus && a.down == b.down;
}

bool SameFamily(const NodeFamily& a, const NodeFamily& b) {
  return a.devices == b.devices && a.values == b.values && a.instance_type == b.instance_type;
}

std::vector<Attribute> AttributesOf(const NodeFamily& family,
                                    const std::vector<std::shared_ptr<const SlotValues>>& own,
                                    const DeviceTemplate& device) {
  const NodeTemplate& all = *family.devices;
  std::vector<Attribute> attributes;
  attributes.reserve(device.device.attributes.size() + device.slots.size());
  attributes = device.device.attributes;
  for (const auto [slot, position] : device.slots) {
    attributes.push_back(
        {all.slot_names[slot], all.own_slot[slot] ? (*own[slot])[position] : family.values[slot]});
  }
  return attributes;
}

bool RepeatsAnAttribute(const Device& device) {
  absl::flat_hash_set<QualifiedName> names;
  return !std::all_of(
      device.attributes.begin(), device.attributes.end(),
      [&](const Attribute& attribute) { return names.insert(attribute.name).second; });
}

// Returns whether two devices differ in attributes alone.
bool AreAlikeButAttributes(const Device& a, const Device& b) {
  return a.name == b.name && a.taints == b.taints && a.capacities == b.capacities &&
         a.attributes.size() == b.attributes.size() &&
         a.allow_multiple_allocations == b.allow_multiple_allocations;
}

// Returns whether a NodeTemplate or the type of a NodeFamily follows from the attribute's values
// (RoleOf, IndexDevices), also where the attribute is the nodes' own.
bool ShapesTemplate(const QualifiedName& name) {
  constexpr std::array<std::string_view, 3> kNeuron = {"resourceType", "deviceId", "instanceType"};
  constexpr std::array<std::string_view, 4> kTahoma = {"chip", "lnc", "core", "linksDown"};
  return (name.domain == kNeuronDriver && std::ranges::find(kNeuron, name.id) != kNeuron.end()) ||
         (name.domain == kTahomaDomain && std::ranges::find(kTahoma, name.id) != kTahoma.end());
}

constexpr std::size_t kDevicesMax = 4096;  // far above a node's 209; an index has 16 bits

// Returns whether the interned list can give the devices back.
bool CanPack(const std::vector<Device>& devices) {
  return devices.size() <= kDevicesMax && !RepeatsAName(devices) &&
         std::none_of(devices.begin(), devices.end(), RepeatsAnAttribute);
}

}  // namespace

bool IsPlaceName(const QualifiedName& name) {
  if (name.domain != kTahomaDomain && name.domain != kNeuronDriver) return false;
  return std::find(kPlaceIds.begin(), kPlaceIds.end(), name.id) != kPlaceIds.end();
}

bool ElectedModes::Offers(hw::UltraServerMode mode) const {
  return std::find(offered.begin(), offered.end(), mode) != offered.end();
}

// A held device is known by its name alone. A device whose attributes contradict its name gets no
// role; otherwise two names could give away the same hardware.
DeviceRole RoleOf(const Device& device) {
  const DeviceRole role = RoleByAttributes(device);
  const DeviceRole spelt = RoleSpelt(device.name);
  return spelt.kind == DeviceKind::kOther || spelt == role ? role : DeviceRole{};
}

std::uint16_t Node::ChipsNamed(const std::string& device) const {
  const DeviceRole role = RoleNamed(device);
  switch (role.kind) {
    case DeviceKind::kChip:
    case DeviceKind::kCore:
      return static_cast<std::uint16_t>(1U << role.chip);
    case DeviceKind::kNode:
      return family->devices->chip_mask;
    case DeviceKind::kOther:
      break;
  }
  return 0;
}

DeviceRole Node::RoleNamed(const std::string& device) const {
  const auto& by_name = family->devices->by_name;
  const auto found = by_name.find(device);
  const DeviceRole published = found == by_name.end() ? DeviceRole{} : role(found->second);
  return published.kind == DeviceKind::kOther ? RoleSpelt(device) : published;
}

std::string_view Node::label(std::string_view key) const {
  const auto at =
      std::lower_bound(labels.begin(), labels.end(), key,
                       [](const auto& one, std::string_view k) { return one.first < k; });
  return at == labels.end() || at->first != key ? std::string_view() : at->second;
}

std::vector<std::string> Node::NetworkLayers() const {
  std::vector<std::string> layers;
  for (const std::string_view layer : kNetworkLayers) {
    const AttributeValue* value = Lookup(0, kNeuronDriver, layer);
    const auto* text = value == nullptr ? nullptr : std::get_if<std::string>(value);
    if (text == nullptr) break;
    layers.push_back(*text);
  }
  return layers;
}

const AttributeValue* Node::Lookup(std::uint16_t device, std::string_view domain,
                                   std::string_view id) const {
  const NodeTemplate& all = *family->devices;
  if (device >= all.devices.size()) return nullptr;
  const DeviceTemplate& one = *all.devices[device];
  for (const auto [slot, position] : one.slots) {
    const QualifiedName& slot_name = all.slot_names[slot];
    if (slot_name.id != id || slot_name.domain != domain) continue;
    return all.own_slot[slot] ? &(*own[slot])[position] : &family->values[slot];
  }
  return one.device.Find(domain, id);
}

std::vector<Attribute> Node::Attributes(std::uint16_t device) const {
  return AttributesOf(*family, own, *family->devices->devices[device]);
}

void PackedDevices::AppendTo(std::vector<Device>& devices) const {
  devices.reserve(devices.size() + family->devices->devices.size());
  for (const auto& one : family->devices->devices) {
    Device& device = devices.emplace_back();
    device.name = one->device.name;
    device.attributes = AttributesOf(*family, own, *one);
    device.capacities = one->device.capacities;
    device.taints = one->device.taints;
    device.allow_multiple_allocations = one->device.allow_multiple_allocations;
  }
}

template <typename T>
std::size_t Inventory::Alive(const Interned<T>& values) {
  std::size_t alive = 0;
  for (const auto& [hash, entries] : values) {
    for (const auto& entry : entries) {
      if (!entry.expired()) ++alive;
    }
  }
  return alive;
}

std::size_t Inventory::device_templates() const { return Alive(devices_); }
std::size_t Inventory::node_templates() const { return Alive(nodes_); }
std::size_t Inventory::families() const { return Alive(families_); }

template <typename T, typename Equal>
std::shared_ptr<const T> Inventory::Share(Interned<T>& values, std::size_t hash, T value,
                                          const Equal& equal) {
  auto& entries = values[hash];
  std::erase_if(entries, [](const auto& entry) { return entry.expired(); });
  for (const auto& entry : entries) {
    if (auto existing = entry.lock(); existing != nullptr && equal(*existing, value)) {
      return existing;
    }
  }
  auto made = std::make_shared<const T>(std::move(value));
  entries.push_back(made);
  return made;
}

void Inventory::SweepSometimes() {
  // Forgets hashes of values that no live family has.
  constexpr std::size_t kSweepEvery = 4096;
  if (++interned_ % kSweepEvery != 0) return;
  const auto sweep = [](auto& values) {
    for (auto at = values.begin(); at != values.end();) {
      std::erase_if(at->second, [](const auto& entry) { return entry.expired(); });
      const auto here = at++;
      if (here->second.empty()) values.erase(here);
    }
  };
  sweep(devices_);
  sweep(nodes_);
  sweep(families_);
  sweep(own_values_);
  for (auto& [name, seen] : seen_) {
    absl::erase_if(seen.values, [](const auto& one) { return one.second.expired(); });
  }
  absl::erase_if(seen_,
                 [](const auto& one) { return !one.second.own && one.second.values.empty(); });
}

bool Inventory::IsOwn(const QualifiedName& name) const {
  if (IsPlaceName(name)) return true;
  const auto found = seen_.find(name);
  return found != seen_.end() && found->second.own;
}

void Inventory::Count(const Published& published, const std::shared_ptr<const NodeFamily>& family) {
  for (const auto& [name, hash] : published) {
    Seen& seen = seen_[name];
    if (seen.own) continue;
    std::weak_ptr<const NodeFamily>& having = seen.values[hash];
    if (having.expired()) having = family;
    if (seen.values.size() <= kSharedValuesMax) continue;
    absl::erase_if(seen.values, [](const auto& one) { return one.second.expired(); });
    seen.own = seen.values.size() > kSharedValuesMax;
    if (!seen.own) continue;
    seen.values.clear();
    ++own_names_;
  }
}

// Makes slots of values on which the devices agree, and of values that differ from node to node;
// all other values stay with each device.
Inventory::SlotsByName Inventory::MakeSlots(std::map<QualifiedName, SlotValues>&& by_name,
                                            NodeTemplate& all, NodeFamily& family, OwnValues& own,
                                            Published& published) {
  SlotsByName slots;
  for (auto& [name, values] : by_name) {
    const std::size_t hash = HashValues(values);
    published.emplace_back(name, hash);
    const bool is_own = IsOwn(name);
    if ((!is_own && values.size() > 1) || slots.size() == kSlotsMax) continue;
    slots.emplace(name, static_cast<std::uint16_t>(all.slot_names.size()));
    all.slot_names.push_back(name);
    all.own_slot.push_back(is_own);
    family.values.push_back(is_own ? AttributeValue() : std::move(values.front()));
    own.push_back(is_own ? Share(own_values_, hash, std::move(values), std::equal_to<SlotValues>())
                         : nullptr);
  }
  return slots;
}

std::optional<Inventory::OwnValues> Inventory::MatchOwn(const Pattern& pattern,
                                                        const NodeTemplate& all,
                                                        const std::vector<Device>& devices) {
  if (pattern.devices.size() != devices.size()) return std::nullopt;
  std::vector<std::vector<const AttributeValue*>> found(all.slot_names.size());
  std::size_t at = 0;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const Device& device = devices[i];
    const Device& like = pattern.devices[i];
    if (!AreAlikeButAttributes(device, like)) return std::nullopt;
    for (std::size_t j = 0; j < device.attributes.size(); ++j) {
      const Attribute& attribute = device.attributes[j];
      if (attribute.name != like.attributes[j].name) return std::nullopt;
      const std::uint16_t slot = pattern.slots[at++];
      if (slot != kNone) found[slot].push_back(&attribute.value);
      const bool may_differ = slot != kNone && !pattern.fixed[slot];
      if (!may_differ && attribute.value != like.attributes[j].value) return std::nullopt;
    }
  }
  OwnValues own(found.size());
  for (std::size_t slot = 0; slot < found.size(); ++slot) {
    const auto& values = found[slot];
    if (values.empty()) continue;
    const bool each = !std::all_of(values.begin(), values.end(),
                                   [&](const auto* value) { return *value == *values.front(); });
    if (each != pattern.each[slot]) return std::nullopt;
    SlotValues kept;
    for (const AttributeValue* value : values) {
      if (each || kept.empty()) kept.push_back(*value);
    }
    const std::size_t hash = HashValues(kept);
    own[slot] = Share(own_values_, hash, std::move(kept), std::equal_to<SlotValues>());
  }
  return own;
}

std::optional<PackedDevices> Inventory::InternByPattern(const std::vector<Device>& devices) {
  std::erase_if(patterns_, [&](const Pattern& pattern) {
    return pattern.family.expired() || pattern.own_names != own_names_;
  });
  for (auto pattern = patterns_.begin(); pattern != patterns_.end(); ++pattern) {
    auto family = pattern->family.lock();
    if (family == nullptr) continue;
    auto own = MatchOwn(*pattern, *family->devices, devices);
    if (!own) continue;
    std::rotate(patterns_.begin(), pattern, pattern + 1);
    Count(patterns_.front().shared, family);
    return PackedDevices{.family = std::move(family), .own = *std::move(own)};
  }
  return std::nullopt;
}

void Inventory::AddPattern(const std::vector<Device>& devices, const SlotsByName& slots,
                           const Published& published, const PackedDevices& packed) {
  Pattern pattern;
  pattern.devices = devices;
  for (const auto& values : packed.own) {
    pattern.each.push_back(values != nullptr && values->size() > 1);
  }
  for (const QualifiedName& name : packed.family->devices->slot_names) {
    pattern.fixed.push_back(ShapesTemplate(name));
  }
  for (const Device& device : devices) {
    for (const Attribute& attribute : device.attributes) {
      const auto slot = slots.find(attribute.name);
      const bool is_own = slot != slots.end() && packed.own[slot->second] != nullptr;
      pattern.slots.push_back(is_own ? slot->second : kNone);
    }
  }
  for (const auto& [name, hash] : published) {
    if (!IsOwn(name)) pattern.shared.emplace_back(name, hash);
  }
  pattern.family = packed.family;
  pattern.own_names = own_names_;
  if (patterns_.size() == kPatternsMost) patterns_.pop_back();
  patterns_.insert(patterns_.begin(), std::move(pattern));
}

PackedDevices Inventory::InternAnew(const std::vector<Device>& devices, bool can_pack) {
  const std::size_t own_names = own_names_;
  const std::vector<DeviceRole> roles = RolesOf(devices);
  NodeTemplate all;
  NodeFamily family;
  PackedDevices packed;
  Published published;
  const SlotsByName slots = MakeSlots(ValuesByName(devices), all, family, packed.own, published);
  std::size_t hash = absl::HashOf(all.slot_names);
  std::vector<std::uint16_t> next(all.slot_names.size());  // position, by slot
  for (const Device& device : devices) {
    DeviceTemplate one;
    one.role = roles[all.devices.size()];
    one.device = device;
    std::erase_if(one.device.attributes, [&](const Attribute& attribute) {
      const auto at = slots.find(attribute.name);
      if (at == slots.end()) return false;
      const auto& values = packed.own[at->second];
      const bool each = values != nullptr && values->size() > 1;
      std::uint16_t& position = next[at->second];
      one.slots.push_back({.slot = at->second, .position = position});
      if (each) ++position;
      return true;
    });
    std::sort(one.slots.begin(), one.slots.end());
    std::sort(one.device.attributes.begin(), one.device.attributes.end(),
              [](const auto& a, const auto& b) { return a.name < b.name; });
    const std::size_t device_hash = HashDevice(one);
    all.devices.push_back(Share(devices_, device_hash, std::move(one), SameDevice));
    hash = absl::HashOf(hash, device_hash);
    if (family.instance_type.empty()) {
      family.instance_type = TextOf(device, kNeuronDriver, "instanceType");
    }
  }
  family.type = hw::FindInstanceType(family.instance_type);
  IndexDevices(devices, family.type, all);
  family.devices = Share(nodes_, hash, std::move(all), SameNode);
  std::size_t family_hash = absl::HashOf(family.devices.get(), family.instance_type);
  for (const AttributeValue& value : family.values) {
    family_hash = absl::HashOf(family_hash, HashOf(value));
  }
  packed.family = Share(families_, family_hash, std::move(family), SameFamily);
  Count(published, packed.family);
  // A list after an attribute has become the nodes' own is interned in another way.
  if (can_pack && own_names == own_names_) AddPattern(devices, slots, published, packed);
  return packed;
}

std::optional<PackedDevices> Inventory::Pack(const std::vector<Device>& devices) {
  SweepSometimes();
  if (auto packed = InternByPattern(devices)) return packed;
  if (!CanPack(devices)) return std::nullopt;
  return InternAnew(devices, true);
}

std::shared_ptr<const Node> Inventory::Intern(NodeFacts facts) {
  SweepSometimes();

  if (facts.devices.size() > kDevicesMax) facts.devices.resize(kDevicesMax);
  std::optional<PackedDevices> packed = InternByPattern(facts.devices);
  if (!packed) {
    if (RepeatsAName(facts.devices)) facts.devices.clear();
    packed = InternAnew(facts.devices, CanPack(facts.devices));
  }
  std::sort(facts.labels.begin(), facts.labels.end());

  Node node;
  node.family = std::move(packed->family);
  node.own = std::move(packed->own);
  FindUltraServer(facts, node);
  FindElected(facts, node);
  node.name = std::move(facts.name);
  node.labels = std::move(facts.labels);
  node.taints = std::move(facts.taints);
  node.cordoned = !facts.schedulable;
  node.ready = facts.ready;
  node.others = std::move(facts.others);
  if (facts.allocatable) {
    const std::size_t amounts_hash = absl::HashOf(*facts.allocatable);
    node.allocatable = Share(amounts_, amounts_hash, *std::move(facts.allocatable),
                             std::equal_to<kube::Amounts>());
  }
  return std::make_shared<const Node>(std::move(node));
}

std::shared_ptr<const Node> InternAlone(NodeFacts facts) {
  return Inventory().Intern(std::move(facts));
}

}  // namespace tahoma::controller
