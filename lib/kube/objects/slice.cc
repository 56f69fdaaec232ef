#include "lib/kube/objects/slice.h"

#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/kube/object.h"
#include "lib/kube/objects/device_text.h"

namespace tahoma::kube {
namespace {

std::vector<CounterSet> ParseCounterSets(Field list, std::string_view name) {
  std::vector<CounterSet> sets;
  for (const Field field : list.Items()) {
    CounterSet& set = sets.emplace_back();
    set.name = field.At(name).Text();
    field.At("counters").Entries([&](const std::string& counter, Field entry) {
      const Field value = entry.At("value");
      const std::string_view text = value.Text();
      std::int64_t number = 0;
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
      if (error != std::errc() || end != text.data() + text.size()) {
        value.Fail("must be a whole number");
      }
      set.counters.push_back({counter, number});
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

Json RenderValue(const AttributeValue& value) {
  struct Renderer {
    Json operator()(bool flag) const { return {{"bool", flag}}; }
    Json operator()(std::int64_t number) const { return {{"int", number}}; }
    Json operator()(const std::string& text) const { return {{"string", text}}; }
    Json operator()(const Version& version) const { return {{"version", version.text}}; }
  };
  return std::visit(Renderer{}, value);
}

std::string RenderName(const QualifiedName& name, std::string_view driver) {
  return name.domain == driver ? name.id : name.domain + "/" + name.id;
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

}  // namespace

absl::StatusOr<ResourceSlice> ParseResourceSlice(const Json& object, SliceCounters counters) {
  const Json* const text = ValueAt(object, {"spec", "devices"});
  const bool is_text = text != nullptr && text->is_binary();
  std::optional<std::vector<Device>> read;
  if (is_text && counters == SliceCounters::kLeaveOut) {
    read = ReadDevices(TextOf(*text), StringAt(object, {"spec", "driver"}));
  }
  if (is_text && !read) {
    Json devices = TryParseJson(TextOf(*text));
    if (devices.is_discarded()) return InvalidArgument("spec.devices is not JSON");
    Json whole = object;
    whole["spec"]["devices"] = std::move(devices);
    return ParseResourceSlice(whole, counters);
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
  if (counters == SliceCounters::kRead) {
    slice.shared_counters = ParseCounterSets(spec.At("sharedCounters"), "name");
    for (const Field device : devices) {
      slice.consumes.push_back(ParseCounterSets(device.At("consumesCounters"), "counterSet"));
    }
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
    spec["devices"].push_back(std::move(device));
  }
  return spec;
}

}  // namespace tahoma::kube
