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

// nlohmann destroys a value by moving the members out of its objects, although other values may
// share the members; and through a list of all nested values, which costs more than the freeing.
template <>
inline void tahoma::Json::json_value::destroy(nlohmann::detail::value_t type);
// Stands in json.cc: nlohmann's writer takes long to compile, and every file would compile the
// writer.
template <>
tahoma::Json::string_t tahoma::Json::dump(int indent, char indent_char, bool ensure_ascii,
                                          error_handler_t error_handler) const;

namespace tahoma {
namespace json_internal {

// Moves the values of a container to `below` and empties the container, unless other values share
// it.
inline void DrainValues(Json::array_t& items, std::vector<Json>& below) {
  std::move(items.begin(), items.end(), std::back_inserter(below));
  items.clear();
}
inline void DrainValues(Json::object_t& members, std::vector<Json>& below) {
  if (!members.sole()) return;
  members.Own();
  for (auto& [name, value] : members) below.push_back(std::move(value));
  members.clear();
}

// Frees nested values by nested calls, and from some depth on by a list, because a text of brackets
// may be nested as deep as it is long.
template <typename Container>
void Free(Container* container) {
  constexpr int kDepthMost = 200;
  static thread_local constinit int depth = 0;
  if (depth >= kDepthMost) {
    std::vector<Json> below;
    DrainValues(*container, below);
    while (!below.empty()) {
      Json value = std::move(below.back());
      below.pop_back();
      if (value.is_array()) DrainValues(value.get_ref<Json::array_t&>(), below);
      if (value.is_object()) DrainValues(value.get_ref<Json::object_t&>(), below);
    }
  }
  ++depth;
  delete container;
  --depth;
}

}  // namespace json_internal

// Reads a text. Throws Json::parse_error when the text is no JSON.
Json ParseJson(std::string_view text);
// As ParseJson, but returns a value with is_discarded() when the text is no JSON.
Json TryParseJson(std::string_view text);

// From now on copies of `value` share its objects' members.
inline void ShareJson(Json& value) {
  if (value.is_object()) {
    auto& members = value.get_ref<Json::object_t&>();
    if (!members.Share()) return;
    for (auto& [name, member] : members) ShareJson(member);
  } else if (value.is_array()) {
    for (Json& item : value) ShareJson(item);
  }
}

// Returns the member of this name; null when absent, or when `value` is not an object.
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

// Makes the members of an object its own, free to be changed through find(), at() or a loop.
// Members of nested objects stay shared.
inline void OwnMembers(Json& object) { object.get_ref<Json::object_t&>().Own(); }

// Returns a copy that shares nothing.
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
