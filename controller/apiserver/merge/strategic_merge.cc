#include "controller/apiserver/merge/strategic_merge.h"

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/json.h"
#include "lib/base/processor_budget.h"
#include "lib/base/status.h"
#include "lib/kube/json_writer.h"

namespace tahoma::controller::apiserver {
namespace {

constexpr std::string_view kPatch = "$patch";
constexpr std::string_view kRetainKeys = "$retainKeys";
constexpr std::string_view kSetElementOrder = "$setElementOrder/";
constexpr std::string_view kDeleteFromPrimitiveList = "$deleteFromPrimitiveList/";

const Json& KeyOf(const Json& item, const std::string& merge_key) {
  static const Json kNull;
  if (merge_key.empty()) return item;
  const Json* found = FindMember(item, merge_key);
  return found == nullptr ? kNull : *found;
}

// The places of items in a list by their keys: the first of several items with one key.
class Places {
 public:
  Places(const Json& list, std::string merge_key)
      : merge_key_(std::move(merge_key)), none_(list.size()) {
    if (!list.is_array()) return;
    for (const Json& item : list) places_.emplace(TextOf(item), places_seen_++);
  }

  // The size of the list when there is none with the item's key.
  std::size_t Of(const Json& item) const {
    const auto found = places_.find(TextOf(item));
    return found == places_.end() ? none_ : found->second;
  }
  bool Has(const Json& item) const { return Of(item) != none_; }

 private:
  std::string TextOf(const Json& item) const {
    std::string text = kube::JsonText(KeyOf(item, merge_key_));
    ProcessorBudget::SpendBytes(text.size());
    return text;
  }

  const std::string merge_key_;
  const std::size_t none_;
  std::size_t places_seen_ = 0;
  absl::flat_hash_map<std::string, std::size_t> places_;
};

// Returns a value without directives and nulls: nothing in the object meets it.
Json Plain(const Json& patch) {
  ProcessorBudget::Spend();
  if (patch.is_array()) {
    Json plain = Json::array();
    for (const Json& item : patch) {
      if (!item.is_object() || !item.contains(kPatch)) plain.push_back(Plain(item));
    }
    return plain;
  }
  if (!patch.is_object()) return patch;
  Json plain = Json::object();
  for (const auto& [name, value] : patch.items()) {
    if (!std::string_view(name).starts_with('$') && !value.is_null()) plain[name] = Plain(value);
  }
  return plain;
}

// Puts the items named in `order` in that order; all other items keep their places among them, as
// in `server`.
Json Reordered(Json merged, const Json& order, const Json& server, const std::string& merge_key) {
  struct Placed {
    Json item;
    std::size_t in_order;
    std::size_t in_server;
  };
  const Places ordered(order, merge_key);
  const Places served(server, merge_key);
  std::vector<Placed> mine;
  std::vector<Placed> others;
  for (Json& item : merged) {
    const std::size_t in_order = ordered.Of(item);
    const std::size_t in_server = served.Of(item);
    (in_order < order.size() ? mine : others).push_back({std::move(item), in_order, in_server});
  }
  std::ranges::stable_sort(mine, {}, &Placed::in_order);
  std::ranges::stable_sort(others, {}, &Placed::in_server);
  Json sorted = Json::array();
  std::size_t i = 0;
  std::size_t j = 0;
  while (i < others.size() || j < mine.size()) {
    bool take_other = j >= mine.size();
    if (i < others.size() && j < mine.size()) {
      take_other = mine[j].in_server < server.size() && others[i].in_server < mine[j].in_server;
    }
    sorted.push_back(std::move(take_other ? others[i++].item : mine[j++].item));
  }
  return sorted;
}

class Merger {
 public:
  // Merges `patch` into `object`; both are objects.
  absl::Status Objects(const Schema& schema, Json& object, const Json& patch, int depth);

 private:
  absl::Status Fields(const Schema& schema, Json& object, const Json& patch, int depth);
  absl::Status Field(const Schema& schema, Json& object, const std::string& name, const Json& value,
                     int depth);
  absl::Status Lists(const Schema& schema, Json& list, const Json& patch, int depth);
  absl::Status KeyedLists(const Schema& schema, Json& list, const Json& patch, int depth);
  // Merges items of `schema` into a list by their keys.
  absl::Status MergeItems(const Schema& schema, const std::string& key,
                          const std::vector<const Json*>& items, Json& list, int depth);
  absl::Status RetainKeys(Json& object, const Json& patch);
  absl::Status DeleteFromList(Json& object, std::string_view name, const Json& values);
  absl::Status SetOrder(const Schema& schema, Json& object, const Json& before, const Json& patch,
                        std::string_view name, const Json& order);
};

absl::Status Merger::Objects(const Schema& schema, Json& object, const Json& patch, int depth) {
  if (depth > kMaxDepth) return InvalidArgument("the patch is nested deeper than {}", kMaxDepth);
  const auto directive = patch.find(kPatch);
  if (directive == patch.end()) return Fields(schema, object, patch, depth);
  if (*directive == "replace") {
    object = Plain(patch);
    return absl::OkStatus();
  }
  if (*directive == "delete") {
    object = Json::object();
    return absl::OkStatus();
  }
  if (*directive == "merge") return Fields(schema, object, patch, depth);
  return InvalidArgument("unknown patch type: {} in map: {}", directive->dump(), patch.dump());
}

absl::Status Merger::Fields(const Schema& schema, Json& object, const Json& patch, int depth) {
  TAHOMA_RETURN_IF_ERROR(RetainKeys(object, patch));
  // The lists to be ordered, before the merge.
  Json before = Json::object();
  for (const auto& [name, value] : patch.items()) {
    if (!std::string_view(name).starts_with(kSetElementOrder)) continue;
    const std::string list = name.substr(kSetElementOrder.size());
    if (const auto found = object.find(list); found != object.end()) before[list] = *found;
  }
  for (const auto& [name, value] : patch.items()) {
    if (std::string_view(name).starts_with(kDeleteFromPrimitiveList)) {
      TAHOMA_RETURN_IF_ERROR(DeleteFromList(
          object, std::string_view(name).substr(kDeleteFromPrimitiveList.size()), value));
    }
  }
  for (const auto& [name, value] : patch.items()) {
    if (std::string_view(name).starts_with('$')) continue;
    TAHOMA_RETURN_IF_ERROR(Field(schema, object, name, value, depth));
  }
  for (const auto& [name, value] : patch.items()) {
    if (std::string_view(name).starts_with(kSetElementOrder)) {
      TAHOMA_RETURN_IF_ERROR(SetOrder(schema, object, before, patch,
                                      std::string_view(name).substr(kSetElementOrder.size()),
                                      value));
    }
  }
  return absl::OkStatus();
}

absl::Status Merger::Field(const Schema& schema, Json& object, const std::string& name,
                           const Json& value, int depth) {
  ProcessorBudget::Spend();
  static const Schema kUnknown;
  if (value.is_null()) {
    object.erase(name);
    return absl::OkStatus();
  }
  if (!object.contains(name)) {
    object[name] = Plain(value);
    return absl::OkStatus();
  }
  Json& current = object[name];
  const Schema* field = schema.Field(name);
  if (field == nullptr) field = &kUnknown;
  const bool whole = field->patch_strategy == Schema::PatchStrategy::kReplaceObject;
  if (value.is_object() && current.is_object() && !whole)
    return Objects(*field, current, value, depth + 1);
  if (value.is_array() && current.is_array() &&
      field->patch_strategy == Schema::PatchStrategy::kMerge) {
    return Lists(*field, current, value, depth + 1);
  }
  current = Plain(value);
  return absl::OkStatus();
}

absl::Status Merger::Lists(const Schema& schema, Json& list, const Json& patch, int depth) {
  const Json before = list;
  if (!schema.merge_key.empty()) {
    TAHOMA_RETURN_IF_ERROR(KeyedLists(schema, list, patch, depth));
  } else {
    Json merged = Json::array();
    absl::flat_hash_set<std::string> seen;
    for (const Json* from : {&before, &patch}) {
      for (const Json& item : *from) {
        if (seen.insert(kube::JsonText(item)).second) merged.push_back(item);
      }
    }
    list = std::move(merged);
  }
  list = Reordered(std::move(list), patch, before, schema.merge_key);
  return absl::OkStatus();
}

absl::Status Merger::KeyedLists(const Schema& schema, Json& list, const Json& patch, int depth) {
  static const Schema kUnknown;
  const std::string& key = schema.merge_key;
  std::vector<const Json*> items;
  bool replace = false;
  for (const Json& item : patch) {
    const auto directive = item.is_object() ? item.find(kPatch) : item.end();
    if (directive == item.end()) {
      items.push_back(&item);
    } else if (*directive == "replace") {
      replace = true;
    } else if (*directive != "delete") {
      return InvalidArgument("unknown patch type: {} in map: {}", directive->dump(), item.dump());
    }
    if (KeyOf(item, key).is_null() && (directive == item.end() || *directive == "delete")) {
      return InvalidArgument("map: {} does not contain declared merge key: {}", item.dump(), key);
    }
  }
  if (replace) list = Json::array();
  Json deleted = Json::array();
  for (const Json& item : patch) {
    if (item.contains(kPatch) && !replace) deleted.push_back(item);
  }
  const Places gone(deleted, key);
  if (!deleted.empty()) {
    Json kept = Json::array();
    for (Json& item : list) {
      if (!gone.Has(item)) kept.push_back(std::move(item));
    }
    list = std::move(kept);
  }
  return MergeItems(schema.items ? *schema.items : kUnknown, key, items, list, depth);
}

absl::Status Merger::MergeItems(const Schema& schema, const std::string& key,
                                const std::vector<const Json*>& items, Json& list, int depth) {
  const Places places(list, key);
  const std::size_t known = list.size();
  absl::flat_hash_map<std::string, std::size_t> added;  // keys that come with the patch
  for (const Json* item : items) {
    std::size_t at = places.Of(*item);
    if (at == known) {
      const auto [place, is_new] = added.emplace(kube::JsonText(KeyOf(*item, key)), list.size());
      at = place->second;
      if (is_new) {
        list.push_back(Plain(*item));
        continue;
      }
    }
    TAHOMA_RETURN_IF_ERROR(Objects(schema, list[at], *item, depth + 1));
  }
  return absl::OkStatus();
}

absl::Status Merger::RetainKeys(Json& object, const Json& patch) {
  const auto retain = patch.find(kRetainKeys);
  if (retain == patch.end()) return absl::OkStatus();
  if (!retain->is_array()) return InvalidArgument("invalid patch format of $retainKeys");
  const std::set<Json> keys(retain->begin(), retain->end());
  for (const auto& [name, value] : patch.items()) {
    if (!value.is_null() && !std::string_view(name).starts_with('$') && !keys.contains(name)) {
      return InvalidArgument("invalid patch format of $retainKeys: \"{}\" is not in the list",
                             name);
    }
  }
  for (auto it = object.begin(); it != object.end();) {
    it = keys.contains(it.key()) ? std::next(it) : object.erase(it);
  }
  return absl::OkStatus();
}

absl::Status Merger::DeleteFromList(Json& object, std::string_view name, const Json& values) {
  const auto list = object.find(name);
  if (list == object.end()) return absl::OkStatus();
  if (!list->is_array() || !values.is_array()) {
    return InvalidArgument("$deleteFromPrimitiveList/{}: expected two lists", name);
  }
  const Places gone(values, "");
  Json kept = Json::array();
  for (const Json& item : *list) {
    if (!gone.Has(item)) kept.push_back(item);
  }
  object[std::string(name)] = std::move(kept);
  return absl::OkStatus();
}

absl::Status Merger::SetOrder(const Schema& schema, Json& object, const Json& before,
                              const Json& patch, std::string_view name, const Json& order) {
  const auto list = object.find(name);
  if (list == object.end()) return absl::OkStatus();
  const Schema* field = schema.Field(name);
  if (!list->is_array() || !order.is_array() || field == nullptr) {
    return InvalidArgument("$setElementOrder/{}: expected two lists", name);
  }
  const Places ordered(order, field->merge_key);
  if (const auto patched = patch.find(name); patched != patch.end() && patched->is_array()) {
    for (const Json& item : *patched) {
      const bool is_directive = item.is_object() && item.contains(kPatch);
      if (!is_directive && !ordered.Has(item)) {
        return InvalidArgument("The order in patch list:\n{}\n doesn't match {} list:\n{}\n",
                               patched->dump(), kSetElementOrder, order.dump());
      }
    }
  }
  const auto server = before.find(name);
  object[std::string(name)] =
      Reordered(*list, order, server == before.end() ? Json::array() : *server, field->merge_key);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Json> StrategicMerge(const Schema& schema, const Json& object, const Json& patch) {
  if (!patch.is_object() || !object.is_object()) {
    return InvalidArgument("a strategic merge patch must be a JSON object");
  }
  Json merged = object;
  TAHOMA_RETURN_IF_ERROR(Merger().Objects(schema, merged, patch, 0));
  return merged;
}

Json MergePatch(const Json& object, const Json& patch) {
  Json merged = object;
  merged.merge_patch(patch);
  return merged;
}

}  // namespace tahoma::controller::apiserver
