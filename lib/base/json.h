// JSON values: nlohmann's, whose objects may share their members.
//
//   Json pod = ParseJson(text);
//   ShareJson(pod);
//   Json bound = pod;                       // no copy
//   bound["spec"]["nodeName"] = "node-1";   // pod is as it was
//
// The rules for shared members are in lib/base/shared_map.h.
//
// Thread safety: as a value; a shared value may be copied and read by several threads.

#pragma once

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/base/json_fwd.h"
#include "lib/base/shared_map.h"

// nlohmann takes a value apart by moving the members out of its objects, which other values may
// share; and it does so with a list of all values below, which costs more than the freeing itself.
template <>
inline void tahoma::Json::json_value::destroy(nlohmann::detail::value_t type);
// In json.cc, for nlohmann's writer is much to compile and every file would do it.
template <>
tahoma::Json::string_t tahoma::Json::dump(int indent, char indent_char, bool ensure_ascii,
                                          error_handler_t error_handler) const;

namespace tahoma {
namespace json_internal {

// Moves the values of a container to `below` and leaves it empty, unless others share it.
inline void TakeValues(Json::array_t& items, std::vector<Json>& below) {
  std::move(items.begin(), items.end(), std::back_inserter(below));
  items.clear();
}
inline void TakeValues(Json::object_t& members, std::vector<Json>& below) {
  if (!members.sole()) return;
  members.Own();
  for (auto& [name, value] : members) below.push_back(std::move(value));
  members.clear();
}

// Values below values are freed by calls below calls; from some depth on by a list, as a text of
// brackets may be nested as deep as it is long.
template <typename Container>
void Free(Container* container) {
  constexpr int kDepthMost = 200;
  static thread_local constinit int depth = 0;
  if (depth >= kDepthMost) {
    std::vector<Json> below;
    TakeValues(*container, below);
    while (!below.empty()) {
      Json value = std::move(below.back());
      below.pop_back();
      if (value.is_array()) TakeValues(value.get_ref<Json::array_t&>(), below);
      if (value.is_object()) TakeValues(value.get_ref<Json::object_t&>(), below);
    }
  }
  ++depth;
  delete container;
  --depth;
}

}  // namespace json_internal

// Reads a text. Throws Json::parse_error when it is no JSON.
Json ParseJson(std::string_view text);
// The same; a value for which is_discarded() holds when it is no JSON.
Json TryParseJson(std::string_view text);

// From now on copies of `value` have its objects' members in common.
inline void ShareJson(Json& value) {
  if (value.is_object()) {
    auto& members = value.get_ref<Json::object_t&>();
    if (!members.Share()) return;
    for (auto& [name, member] : members) ShareJson(member);
  } else if (value.is_array()) {
    for (Json& item : value) ShareJson(item);
  }
}

// The member of that name; null when there is none, or `value` is not an object.
inline const Json* FindMember(const Json& value, std::string_view name) {
  if (!value.is_object()) return nullptr;
  const auto& members = value.get_ref<const Json::object_t&>();
  const auto found = members.find(name);
  return found == members.end() ? nullptr : &found->second;
}
// The members of an object, for a loop: nlohmann's own costs several times as much.
inline const Json::object_t& MembersOf(const Json& object) {
  return object.get_ref<const Json::object_t&>();
}

inline bool SharesMembers(const Json& value) {
  return value.is_object() && value.get_ref<const Json::object_t&>().shares();
}

// Makes the members of an object its own, so that they may be changed through find(), at() or a
// loop. What is below them stays shared.
inline void OwnMembers(Json& object) { object.get_ref<Json::object_t&>().Own(); }

// A copy that shares nothing.
inline Json Unshared(const Json& value) {
  Json copy = value;
  if (copy.is_object()) {
    OwnMembers(copy);
    for (auto& [name, member] : copy.get_ref<Json::object_t&>()) member = Unshared(member);
  } else if (copy.is_array()) {
    for (Json& item : copy) item = Unshared(item);
  }
  return copy;
}

}  // namespace tahoma

template <>
inline void tahoma::Json::json_value::destroy(nlohmann::detail::value_t type) {
  switch (type) {
    case nlohmann::detail::value_t::object:
      return tahoma::json_internal::Free(object);
    case nlohmann::detail::value_t::array:
      return tahoma::json_internal::Free(array);
    case nlohmann::detail::value_t::string:
      delete string;
      return;
    case nlohmann::detail::value_t::binary:
      delete binary;
      return;
    default:
      return;
  }
}
