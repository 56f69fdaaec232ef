#include "controller/apiserver/schema/fields.h"

#include <string>

#include "lib/base/json.h"
#include "lib/kube/object.h"

namespace tahoma::controller::apiserver {

const Json& ValueAt(const Json& object, std::initializer_list<std::string_view> path) {
  static const Json kNull;
  const Json* value = kube::ValueAt(object, path);
  return value == nullptr ? kNull : *value;
}

std::string TextAt(const Json& object, std::initializer_list<std::string_view> path) {
  return std::string(kube::StringAt(object, path));
}

std::string TextOr(const Json& object, std::initializer_list<std::string_view> path,
                   std::string_view otherwise) {
  const std::string_view text = kube::StringAt(object, path);
  return std::string(text.empty() ? otherwise : text);
}

std::size_t SizeAt(const Json& object, std::initializer_list<std::string_view> path) {
  const Json& value = ValueAt(object, path);
  return value.is_array() || value.is_object() ? value.size() : 0;
}

const Json& PartOf(const Json& object, std::string_view name) {
  static const Json kNone = Json::object();
  const Json& part = ValueAt(object, {name});
  return part.is_object() ? part : kNone;
}

const Json& MetadataOf(const Json& object) { return PartOf(object, "metadata"); }

std::string TextAt(const Json& object, std::string_view field) { return TextAt(object, {field}); }

}  // namespace tahoma::controller::apiserver
