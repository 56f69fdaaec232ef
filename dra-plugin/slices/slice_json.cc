#include "dra-plugin/slices/slice_json.h"

#include <fmt/format.h>

#include <map>
#include <tuple>

#include "lib/base/json.h"

namespace tahoma::dra {
namespace {

using json = Json;

json CountersJson(const std::vector<Counter>& counters) {
  json out = json::object();
  for (const Counter& counter : counters) {
    out[counter.name] = {{"value", std::to_string(counter.value)}};
  }
  return out;
}

json AttributeJson(const AttributeValue& value) {
  if (const auto* number = std::get_if<std::int64_t>(&value)) return {{"int", *number}};
  if (const auto* text = std::get_if<std::string>(&value)) return {{"string", *text}};
  return {{"version", std::get<Version>(value).text}};
}

json DeviceJson(const Device& device) {
  json out = {{"name", device.name}, {"attributes", json::object()}};
  for (const Attribute& attribute : device.attributes) {
    out["attributes"][attribute.name] = AttributeJson(attribute.value);
  }
  for (const CounterSet& set : device.consumes) {
    out["consumesCounters"].push_back(
        {{"counterSet", set.name}, {"counters", CountersJson(set.counters)}});
  }
  for (const Taint& taint : device.taints) {
    json& made = out["taints"].emplace_back(json{{"key", taint.key}, {"effect", taint.effect}});
    if (!taint.value.empty()) made["value"] = taint.value;
  }
  return out;
}

void CollectDropped(const json& sent, const json& kept, const std::string& path,
                    std::set<std::string>& out) {
  if (sent.is_object() && kept.is_object()) {
    for (const auto& [key, value] : sent.items()) {
      const std::string below = path.empty() ? key : fmt::format("{}.{}", path, key);
      const auto found = kept.find(key);
      if (found == kept.end()) {
        out.insert(below);
      } else {
        CollectDropped(value, *found, below, out);
      }
    }
  } else if (sent.is_array() && kept.is_array() && sent.size() == kept.size()) {
    for (std::size_t i = 0; i < sent.size(); ++i) {
      CollectDropped(sent[i], kept[i], path + "[]", out);
    }
  }
}

void RemoveField(std::string_view path, json& object) {
  const std::size_t dot = path.find('.');
  std::string key(path.substr(0, dot));
  const bool array = key.ends_with("[]");
  if (array) key.resize(key.size() - 2);
  const auto found = object.is_object() ? object.find(key) : object.end();
  if (found == object.end()) return;
  if (dot == std::string_view::npos) {
    object.erase(found);
  } else if (!array) {
    RemoveField(path.substr(dot + 1), *found);
  } else if (found->is_array()) {
    for (json& element : *found) RemoveField(path.substr(dot + 1), element);
  }
}

const json& DevicesOf(const json& object) {
  static const json none = json::array();
  const auto spec = object.find("spec");
  if (spec == object.end() || !spec->is_object()) return none;
  const auto devices = spec->find("devices");
  return devices == spec->end() || !devices->is_array() ? none : *devices;
}

// Two taints of one device are the same when their keys agree.
using TaintKey = std::tuple<std::string, std::string, std::string, std::string>;
TaintKey KeyOf(const json& device, const json& taint) {
  return {device.value("name", ""), taint.value("key", ""), taint.value("value", ""),
          taint.value("effect", "")};
}

}  // namespace

std::string SliceGenerateName(const SliceOwner& owner, std::size_t index) {
  return fmt::format("{:02x}-{}-{}-", index, kDriver, owner.node_name);
}

json SliceObject(const SliceOwner& owner, const PoolMark& mark, const SliceContent& content,
                 std::size_t index) {
  json spec = {{"driver", kDriver},
               {"nodeName", owner.node_name},
               {"pool",
                {{"name", owner.node_name},
                 {"generation", mark.generation},
                 {"resourceSliceCount", mark.slice_count}}}};
  for (const CounterSet& set : content.counter_sets) {
    spec["sharedCounters"].push_back(
        {{"name", set.name}, {"counters", CountersJson(set.counters)}});
  }
  for (const Device& device : content.devices) spec["devices"].push_back(DeviceJson(device));
  const json owner_reference = {{"apiVersion", "v1"},
                                {"kind", "Node"},
                                {"name", owner.node_name},
                                {"uid", owner.node_uid},
                                {"controller", true}};
  return {{"apiVersion", "resource.k8s.io/v1"},
          {"kind", "ResourceSlice"},
          {"metadata",
           {{"generateName", SliceGenerateName(owner, index)},
            {"ownerReferences", json::array({owner_reference})}}},
          {"spec", std::move(spec)}};
}

std::set<std::string> DroppedFields(const json& sent, const json& kept) {
  std::set<std::string> out;
  CollectDropped(sent, kept, "", out);
  return out;
}

void RemoveFields(const std::set<std::string>& paths, json& object) {
  for (const std::string& path : paths) RemoveField(path, object);
}

void KeepTaintTimes(const json& existing, json& wanted) {
  std::map<TaintKey, json> times;
  for (const json& device : DevicesOf(existing)) {
    if (!device.contains("taints")) continue;
    for (const json& taint : device["taints"]) {
      if (taint.contains("timeAdded")) times.emplace(KeyOf(device, taint), taint["timeAdded"]);
    }
  }
  if (!wanted["spec"].contains("devices")) return;
  for (json& device : wanted["spec"]["devices"]) {
    if (!device.contains("taints")) continue;
    for (json& taint : device["taints"]) {
      const auto found = times.find(KeyOf(device, taint));
      if (found != times.end()) taint["timeAdded"] = found->second;
    }
  }
}

}  // namespace tahoma::dra
