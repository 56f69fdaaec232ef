#include "lib/kube/objects/slice.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/kube/object.h"
#include "lib/kube/objects/device_text.h"

namespace tahoma::kube {
namespace {

// Whether a fraction counts as a unit.
enum class Fraction : std::uint8_t { kDropped, kCounted };

std::int64_t WholeUnits(Field value, Fraction fraction) {
  const Quantity quantity = ParseQuantity(value);
  const bool drop = fraction == Fraction::kDropped && !quantity.IsInteger();
  return std::max<std::int64_t>(quantity.Value() - (drop ? 1 : 0), 0);
}

std::vector<CounterSet> ParseCounterSets(Field list, std::string_view name, Fraction fraction) {
  std::vector<CounterSet> sets;
  for (const Field field : list.Items()) {
    CounterSet& set = sets.emplace_back();
    set.name = field.At(name).Text();
    field.At("counters").Entries([&](const std::string& counter, Field entry) {
      set.counters.push_back({counter, WholeUnits(entry.At("value"), fraction)});
    });
  }
  return sets;
}

Json RenderCounterSet(const CounterSet& set, const char* name) {
  Json counters = Json::object();
  for (const Counter& counter : set.counters) {
    counters[counter.name] = {{"value", std::to_string(counter.value)}};
  }
  return {{name, set.name}, {"counters", std::move(counters)}};
}

Json RenderDevice(const Device& device, std::string_view driver) {
  Json out = {{"name", device.name}, {"attributes", Json::object()}};
  for (const Attribute& attribute : device.attributes) {
    out["attributes"][RenderName(attribute.name, driver)] = RenderValue(attribute.value);
  }
  for (const Capacity& capacity : device.capacities) {
    out["capacity"][RenderName(capacity.name, driver)] = {{"value", capacity.quantity}};
  }
  for (const Taint& taint : device.taints) out["taints"].push_back(RenderTaint(taint));
  if (device.allow_multiple_allocations) out["allowMultipleAllocations"] = true;
  return out;
}

std::string_view TextOf(const Json& text) {
  const Json::binary_t& bytes = text.get_binary();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void ReadDetails(Field spec, ResourceSlice& slice) {
  slice.all_nodes = spec.At("allNodes").Bool();
  slice.node_terms = ParseNodeTerms(spec.At("nodeSelector"));
  slice.per_device_nodes = spec.At("perDeviceNodeSelection").Bool();
  slice.shared_counters = ParseCounterSets(spec.At("sharedCounters"), "name", Fraction::kDropped);
  for (const Field device : spec.At("devices").Items()) {
    slice.consumes.push_back(
        ParseCounterSets(device.At("consumesCounters"), "counterSet", Fraction::kCounted));
    slice.details.push_back(ParseDeviceDetails(device, slice.driver));
  }
}

}  // namespace

absl::StatusOr<ResourceSlice> ParseResourceSlice(const Json& object, SliceDetails details) {
  const Json* const text = ValueAt(object, {"spec", "devices"});
  const bool is_text = text != nullptr && text->is_binary();
  std::optional<std::vector<Device>> read;
  if (is_text && details == SliceDetails::kLeaveOut) {
    read = ReadDevices(TextOf(*text), StringAt(object, {"spec", "driver"}));
  }
  if (is_text && !read) {
    Json devices = TryParseJson(TextOf(*text));
    if (devices.is_discarded()) return InvalidArgument("spec.devices is not JSON");
    Json whole = object;
    whole["spec"]["devices"] = std::move(devices);
    return ParseResourceSlice(whole, details);
  }
  Reading reading(object);
  ResourceSlice slice;
  slice.name = reading.root().Required("metadata").Required("name").Text();
  const Field spec = reading.root().Required("spec");
  slice.driver = spec.At("driver").Text();
  slice.node = spec.At("nodeName").Text();
  const Field pool = spec.At("pool");
  slice.pool = pool.At("name").Text();
  slice.generation = pool.At("generation").Int();
  slice.slices_in_pool = pool.At("resourceSliceCount").Int(1);
  if (read) {
    slice.devices = *std::move(read);
    TAHOMA_RETURN_IF_ERROR(reading.StatusOf("slice"));
    return slice;
  }
  const FieldItems devices = spec.At("devices").Items();
  slice.devices.reserve(devices.size());
  for (const Field device : devices) slice.devices.push_back(ParseDevice(device, slice.driver));
  if (details == SliceDetails::kRead) {
    ReadDetails(spec, slice);
  }
  TAHOMA_RETURN_IF_ERROR(reading.StatusOf("slice"));
  return slice;
}

Json RenderSliceSpec(const ResourceSlice& slice) {
  Json spec = {{"driver", slice.driver},
               {"pool",
                {{"name", slice.pool},
                 {"generation", slice.generation},
                 {"resourceSliceCount", slice.slices_in_pool}}}};
  if (!slice.node.empty()) spec["nodeName"] = slice.node;
  if (slice.all_nodes) spec["allNodes"] = true;
  if (!slice.node_terms.empty()) spec["nodeSelector"] = RenderNodeTerms(slice.node_terms);
  if (slice.per_device_nodes) spec["perDeviceNodeSelection"] = true;
  for (const CounterSet& set : slice.shared_counters) {
    spec["sharedCounters"].push_back(RenderCounterSet(set, "name"));
  }
  for (std::size_t i = 0; i < slice.devices.size(); ++i) {
    Json device = RenderDevice(slice.devices[i], slice.driver);
    if (i < slice.consumes.size()) {
      for (const CounterSet& set : slice.consumes[i]) {
        device["consumesCounters"].push_back(RenderCounterSet(set, "counterSet"));
      }
    }
    if (i < slice.details.size()) RenderDetails(slice.details[i], slice.driver, device);
    spec["devices"].push_back(std::move(device));
  }
  return spec;
}

}  // namespace tahoma::kube
