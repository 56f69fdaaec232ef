#include "controller/apiserver/schema/fields.h"

#include <string>

#include "lib/base/json.h"

namespace tahoma::controller::apiserver {

const Json& ValueAt(const Json& object, std::initializer_list<std::string_view> path) {
  static const Json kNull;
  const Json* value = &object;
  for (const std::string_view name : path) {
    value = FindMember(*value, name);
    if (value == nullptr) return kNull;
  }
  return *value;
}

std::string TextAt(const Json& object, std::initializer_list<std::string_view> path) {
  const Json& value = ValueAt(object, path);
  return value.is_string() ? value.get<std::string>() : "";
}

std::size_t SizeAt(const Json& object, std::initializer_list<std::string_view> path) {
  const Json& value = ValueAt(object, path);
  return value.is_array() || value.is_object() ? value.size() : 0;
}

const Json& PartOf(const Json& object, std::string_view name) {
  static const Json kNone = Json::object();
  const Json* found = FindMember(object, name);
  return found != nullptr && found->is_object() ? *found : kNone;
}

const Json& MetadataOf(const Json& object) { return PartOf(object, "metadata"); }

std::string TextAt(const Json& object, std::string_view field) {
  const Json* found = FindMember(object, field);
  return found != nullptr && found->is_string() ? found->get_ref<const std::string&>() : "";
}

}  // namespace tahoma::controller::apiserver
