#include "dra-plugin/slices/slice_json.h"

#include <fmt/format.h>

#include <map>
#include <tuple>

#include "lib/base/json.h"
#include "lib/kube/object.h"
#include "lib/kube/objects/slice.h"

namespace tahoma::dra {
namespace {

using json = Json;

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

// Two taints of one device are the same when their keys agree.
using TaintKey = std::tuple<std::string, std::string, std::string, std::string>;
TaintKey KeyOf(const json& device, const json& taint) {
  const auto text = [](const json& object, std::string_view field) {
    return std::string(kube::StringAt(object, {field}));
  };
  return {text(device, "name"), text(taint, "key"), text(taint, "value"), text(taint, "effect")};
}

}  // namespace

std::string SliceGenerateName(const SliceOwner& owner, std::size_t index) {
  return fmt::format("{:02x}-{}-{}-", index, owner.driver, owner.node_name);
}

std::string SliceName(const SliceOwner& owner, std::size_t index) {
  return SliceGenerateName(owner, index) + "0";
}

json SliceObject(const SliceOwner& owner, const PoolMark& mark, const SliceContent& content,
                 std::size_t index) {
  kube::ResourceSlice slice;
  slice.driver = owner.driver;
  slice.pool = owner.node_name;
  slice.node = owner.node_name;
  slice.generation = mark.generation;
  slice.slices_in_pool = static_cast<std::int64_t>(mark.slice_count);
  slice.shared_counters = content.counter_sets;
  for (const Device& device : content.devices) {
    slice.devices.push_back(device);
    slice.consumes.push_back(device.consumes);
  }
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
          {"spec", kube::RenderSliceSpec(slice)}};
}

std::set<std::string> DroppedFields(const json& sent, const json& kept) {
  std::set<std::string> out;
  CollectDropped(sent, kept, "", out);
  return out;
}

bool HasCounters(const std::set<std::string>& fields) {
  return fields.contains("spec.sharedCounters") ||
         fields.contains("spec.devices[].consumesCounters");
}

void RemoveFields(const std::set<std::string>& paths, json& object) {
  for (const std::string& path : paths) RemoveField(path, object);
}

void KeepTaintTimes(const json& existing, json& wanted) {
  std::map<TaintKey, json> times;
  for (const json& device : kube::ListAt(existing, {"spec", "devices"})) {
    for (const json& taint : kube::ListAt(device, {"taints"})) {
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
