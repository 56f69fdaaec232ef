#include "controller/apiserver/merge/apply_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "controller/apiserver/schema/json_text.h"
#include "lib/base/json.h"
#include "lib/base/processor_budget.h"
#include "lib/kube/json_writer.h"

namespace tahoma::controller::apiserver {
namespace {

const Schema& UnknownSchema() {
  static const Schema* const schema = new Schema;
  return *schema;
}

// A key of a map with free keys is a field in its own right, besides the fields below.
bool IsChosenKey(const Schema& schema, const std::string& name) {
  return !schema.properties.contains(name);
}

void AddSubtree(const Schema& schema, const Json& value, FieldSet& set) {
  ProcessorBudget::Spend();
  set.member = true;
  if (MergesAsMap(schema, value)) {
    for (const auto& [name, child] : value.items()) {
      AddSubtree(FieldOf(schema, name), child, set.children["f:" + name]);
    }
  } else if (MergesAsList(schema, value)) {
    for (const Json& item : value) {
      AddSubtree(ItemOf(schema), item, set.children[ItemEdge(schema, item)]);
    }
  }
}

// Drops branches that lead to no member.
void Trim(FieldSet& set) {
  for (auto it = set.children.begin(); it != set.children.end();) {
    Trim(it->second);
    it = it->second.empty() ? set.children.erase(it) : std::next(it);
  }
}

struct Sets {
  FieldSet& added;
  FieldSet& modified;
  FieldSet& removed;

  Sets Child(const std::string& edge) const {
    return {added.children[edge], modified.children[edge], removed.children[edge]};
  }
};

// Compares two values that differ.
void CompareAt(const Schema& schema, const Json& before, const Json& after, const FieldSet* ignored,
               const Sets& sets);

void CompareMaps(const Schema& schema, const Json& before, const Json& after,
                 const FieldSet* ignored, const Sets& sets) {
  // Both are in the order of their names.
  const Json::object_t& old_members = MembersOf(before);
  const Json::object_t& new_members = MembersOf(after);
  auto old_at = old_members.begin();
  auto new_at = new_members.begin();
  while (old_at != old_members.end() || new_at != new_members.end()) {
    ProcessorBudget::Spend();
    const int order = old_at == old_members.end()   ? 1
                      : new_at == new_members.end() ? -1
                                                    : old_at->first.compare(new_at->first);
    const std::string& name = order <= 0 ? old_at->first : new_at->first;
    const FieldSet* below = ChildOf(ignored, name);
    if (below == nullptr || !below->member) {
      if (order < 0) {
        AddSubtree(FieldOf(schema, name), old_at->second, sets.removed.children["f:" + name]);
      } else if (order > 0) {
        AddSubtree(FieldOf(schema, name), new_at->second, sets.added.children["f:" + name]);
      } else if (old_at->second != new_at->second) {
        CompareAt(FieldOf(schema, name), old_at->second, new_at->second, below,
                  sets.Child("f:" + name));
      }
    }
    if (order <= 0) ++old_at;
    if (order >= 0) ++new_at;
  }
}

std::map<std::string, const Json*> ByEdge(const Schema& list, const Json& value) {
  std::map<std::string, const Json*> items;
  for (const Json& item : value) items.emplace(ItemEdge(list, item), &item);
  return items;
}

void CompareLists(const Schema& schema, const Json& before, const Json& after, const Sets& sets) {
  const auto old_items = ByEdge(schema, before);
  const auto new_items = ByEdge(schema, after);
  for (const auto& [edge, item] : old_items) {
    const auto other = new_items.find(edge);
    if (other == new_items.end()) {
      AddSubtree(ItemOf(schema), *item, sets.removed.children[edge]);
    } else if (*other->second != *item) {
      CompareAt(ItemOf(schema), *item, *other->second, nullptr, sets.Child(edge));
    }
  }
  for (const auto& [edge, item] : new_items) {
    if (!old_items.contains(edge)) AddSubtree(ItemOf(schema), *item, sets.added.children[edge]);
  }
}

void CompareAt(const Schema& schema, const Json& before, const Json& after, const FieldSet* ignored,
               const Sets& sets) {
  if (MergesAsMap(schema, before) && MergesAsMap(schema, after)) {
    CompareMaps(schema, before, after, ignored, sets);
  } else if (MergesAsList(schema, before) && MergesAsList(schema, after)) {
    CompareLists(schema, before, after, sets);
  } else {
    sets.modified.member = true;
  }
}

// Shared items stand in the order of `config`; items only in `live` keep their place before the
// next shared item, and stand before items only in `config`.
Json MergeLists(const Schema& schema, const Json& live, const Json& config) {
  const auto live_items = ByEdge(schema, live);
  const auto config_items = ByEdge(schema, config);
  std::vector<std::string> shared;  // for each item of config, the next one that live has, too
  for (std::size_t i = config.size(); i-- > 0;) {
    const std::string edge = ItemEdge(schema, config[i]);
    shared.push_back(live_items.contains(edge) || shared.empty() ? edge : shared.back());
    if (!live_items.contains(shared.back())) shared.back().clear();
  }
  std::ranges::reverse(shared);
  Json merged = Json::array();
  std::size_t next = 0;  // of live
  std::set<std::string> done;
  for (std::size_t i = 0; i < config.size(); ++i) {
    const std::string edge = ItemEdge(schema, config[i]);
    if (!done.insert(edge).second) continue;
    for (; next < live.size(); ++next) {
      const std::string old_edge = ItemEdge(schema, live[next]);
      if (!config_items.contains(old_edge)) {
        merged.push_back(live[next]);
      } else if (shared[i].empty() || old_edge == shared[i]) {
        if (shared[i].empty() || old_edge == edge) ++next;
        break;
      }
    }
    const auto existing = live_items.find(edge);
    merged.push_back(existing == live_items.end()
                         ? config[i]
                         : MergeFields(ItemOf(schema), *existing->second, config[i]));
  }
  for (; next < live.size(); ++next) {
    if (!config_items.contains(ItemEdge(schema, live[next]))) merged.push_back(live[next]);
  }
  return merged;
}

void AppendPaths(const FieldSet& set, const std::string& path, std::vector<std::string>& paths) {
  ProcessorBudget::Spend();
  if (set.member) paths.push_back(path);
  for (const auto& [edge, child] : set.children) {
    const std::string rest = edge.substr(2);
    std::string step;
    if (edge.starts_with("f:")) {
      step = "." + rest;
    } else if (edge.starts_with("v:")) {
      step = fmt::format("[={}]", rest);
    } else {
      const Json keys = ParseJson(rest);
      for (const auto& [key, value] : keys.items()) {
        step += fmt::format("{}{}={}", step.empty() ? "[" : ",", key, value.dump());
      }
      step += "]";
    }
    AppendPaths(child, path + step, paths);
  }
}

// Returns the same text for the same keys, whatever their order and spacing; nullopt for text that
// is no edge. Clients may send any text here.
std::optional<std::string> CanonicalEdge(const std::string& edge) {
  if (edge.starts_with("f:")) return edge;
  if (!edge.starts_with("v:") && !edge.starts_with("k:")) return std::nullopt;
  const absl::StatusOr<JsonRead> read = ReadJson(std::string_view(edge).substr(2));
  if (!read.ok()) return std::nullopt;
  const Json& keys = *read->value;
  if (edge.front() == 'k' && (!keys.is_object() || keys.empty())) return std::nullopt;
  return edge.substr(0, 2) + kube::JsonText(keys);
}

FieldSet FromJsonAt(const Json& fields, int depth) {
  ProcessorBudget::Spend();
  FieldSet set;
  if (!fields.is_object() || depth > kMaxDepth) return set;
  set.member = fields.contains(".") || fields.empty();
  for (const auto& [edge, child] : fields.items()) {
    if (edge == ".") continue;
    if (const std::optional<std::string> canonical = CanonicalEdge(edge)) {
      set.children[*canonical] = FromJsonAt(child, depth + 1);
    }
  }
  return set;
}

}  // namespace

FieldSet FieldSet::FromJson(const Json& fields) {
  if (!fields.is_object() || fields.empty()) return {};
  return FromJsonAt(fields, 0);
}

void FieldSet::Add(const FieldSet& other) {
  ProcessorBudget::Spend();
  member |= other.member;
  for (const auto& [edge, child] : other.children) {
    const auto [at, is_new] = children.emplace(edge, child);
    if (!is_new) at->second.Add(child);
  }
}

FieldSet FieldSet::Union(const FieldSet& other) const {
  FieldSet result = *this;
  result.Add(other);
  return result;
}

void FieldSet::Remove(const FieldSet& other) {
  ProcessorBudget::Spend();
  member = member && !other.member;
  for (const auto& [edge, below] : other.children) {
    const auto it = children.find(edge);
    if (it == children.end()) continue;
    it->second.Remove(below);
    if (it->second.empty()) children.erase(it);
  }
}

FieldSet FieldSet::Difference(const FieldSet& other) const {
  FieldSet result = *this;
  result.Remove(other);
  return result;
}

FieldSet FieldSet::Intersection(const FieldSet& other) const {
  ProcessorBudget::Spend();
  FieldSet result;
  result.member = member && other.member;
  for (const auto& [edge, child] : children) {
    const auto it = other.children.find(edge);
    if (it == other.children.end()) continue;
    FieldSet both = child.Intersection(it->second);
    if (!both.empty()) result.children.emplace(edge, std::move(both));
  }
  return result;
}

FieldSet FieldSet::WithNamedParents() const {
  ProcessorBudget::Spend();
  FieldSet result;
  result.member = member;
  for (const auto& [edge, child] : children) {
    FieldSet grown = child.WithNamedParents();
    grown.member |= edge.starts_with("f:");
    result.children.emplace(edge, std::move(grown));
  }
  return result;
}

std::vector<std::string> FieldSet::Paths() const {
  std::vector<std::string> paths;
  AppendPaths(*this, "", paths);
  return paths;
}

const FieldSet* ChildOf(const FieldSet* set, const std::string& name) {
  if (set == nullptr) return nullptr;
  const auto found = set->children.find("f:" + name);
  return found == set->children.end() ? nullptr : &found->second;
}

bool MergesAsMap(const Schema& schema, const Json& value) {
  return value.is_object() && !schema.atomic;
}

bool MergesAsList(const Schema& schema, const Json& value) {
  return value.is_array() && schema.list_type != Schema::ListType::kAtomic;
}

const Schema& FieldOf(const Schema& schema, const std::string& name) {
  const Schema* field = schema.Field(name);
  return field == nullptr ? UnknownSchema() : *field;
}

const Schema& ItemOf(const Schema& list) { return list.items ? *list.items : UnknownSchema(); }

std::string ItemEdge(const Schema& list, const Json& item) {
  ProcessorBudget::Spend();
  if (list.list_type == Schema::ListType::kSet || !item.is_object()) {
    return "v:" + kube::JsonText(item);
  }
  Json keys = Json::object();
  for (const std::string& name : list.list_map_keys) {
    const Schema& field = FieldOf(ItemOf(list), name);
    if (const Json* value = FindMember(item, name)) {
      keys[name] = *value;
    } else if (field.default_value) {
      keys[name] = *field.default_value;
    }
  }
  return "k:" + kube::JsonText(keys);
}

FieldSet FieldsOf(const Schema& schema, const Json& value) {
  ProcessorBudget::Spend();
  FieldSet set;
  if (MergesAsMap(schema, value) && !value.empty()) {
    for (const auto& [name, child] : value.items()) {
      FieldSet below = FieldsOf(FieldOf(schema, name), child);
      below.member |= IsChosenKey(schema, name);
      if (!below.empty()) set.children.emplace("f:" + name, std::move(below));
    }
  } else if (MergesAsList(schema, value)) {
    for (const Json& item : value) {
      FieldSet below = FieldsOf(ItemOf(schema), item);
      below.member = true;
      set.children[ItemEdge(schema, item)] = std::move(below);
    }
  } else {
    set.member = true;
  }
  return set;
}

Comparison Compare(const Schema& schema, const Json& before, const Json& after,
                   const FieldSet& ignored) {
  Comparison comparison;
  if (before != after) {
    CompareAt(schema, before, after, &ignored,
              {comparison.added, comparison.modified, comparison.removed});
  }
  Trim(comparison.added);
  Trim(comparison.modified);
  Trim(comparison.removed);
  return comparison;
}

Json MergeFields(const Schema& schema, const Json& live, const Json& config) {
  ProcessorBudget::Spend();
  if (MergesAsMap(schema, config) && live.is_object()) {
    Json merged = live;
    for (const auto& [name, value] : config.items()) {
      const auto existing = live.find(name);
      merged[name] =
          existing == live.end() ? value : MergeFields(FieldOf(schema, name), *existing, value);
    }
    return merged;
  }
  if (MergesAsList(schema, config) && live.is_array()) return MergeLists(schema, live, config);
  return config;
}

Json WithoutFields(const Schema& schema, const Json& value, const FieldSet& fields) {
  ProcessorBudget::Spend();
  if (fields.children.empty()) return value;
  if (MergesAsMap(schema, value)) {
    Json kept = Json::object();
    for (const auto& [name, child] : value.items()) {
      const auto it = fields.children.find("f:" + name);
      if (it == fields.children.end()) {
        kept[name] = child;
      } else if (!it->second.member) {
        kept[name] = WithoutFields(FieldOf(schema, name), child, it->second);
      }
    }
    return kept;
  }
  if (!MergesAsList(schema, value)) return value;
  Json kept = Json::array();
  for (const Json& item : value) {
    const auto it = fields.children.find(ItemEdge(schema, item));
    if (it == fields.children.end()) {
      kept.push_back(item);
    } else if (!it->second.member) {
      kept.push_back(WithoutFields(ItemOf(schema), item, it->second));
    }
  }
  return kept;
}

}  // namespace tahoma::controller::apiserver
