// Reads fields of API objects whose types the schema has checked, or that may be of any form.
//
//   TextAt(pod, {"spec", "nodeName"});    // "" when it is absent or no string
//   SizeAt(gang, {"spec", "members"});    // 0 when it is absent or no list
//
// Thread safety: pure functions.

#pragma once

#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>

#include "lib/base/json_fwd.h"

namespace tahoma::controller::apiserver {

// The value at a path of field names; null when a part of the path is missing.
const Json& ValueAt(const Json& object, std::initializer_list<std::string_view> path);
std::string TextAt(const Json& object, std::initializer_list<std::string_view> path);
// `otherwise` for the empty text, too.
std::string TextOr(const Json& object, std::initializer_list<std::string_view> path,
                   std::string_view otherwise);
std::size_t SizeAt(const Json& object, std::initializer_list<std::string_view> path);

// A member that is an object; an empty one when there is none.
const Json& PartOf(const Json& object, std::string_view name);
const Json& MetadataOf(const Json& object);
std::string TextAt(const Json& object, std::string_view field);  // "" when absent

}  // namespace tahoma::controller::apiserver
