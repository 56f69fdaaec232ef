#include "controller/apiserver/storage/component_status.h"

#include <utility>

#include "controller/apiserver/storage/object_store.h"
#include "lib/base/json.h"
#include "lib/kube/json_writer.h"

namespace tahoma::controller::apiserver {
namespace {

ObjectPtr ObjectOf(const std::string& name, const std::string& trouble) {
  const bool healthy = trouble.empty();
  auto object = std::make_shared<Object>();
  object->key = ObjectKey("", name);
  object->body = std::make_shared<const Json>(
      Json{{"apiVersion", "v1"},
           {"kind", "ComponentStatus"},
           {"metadata", {{"name", name}}},
           {"conditions", Json::array({{{"type", "Healthy"},
                                        {"status", healthy ? "True" : "False"},
                                        {"message", healthy ? "ok" : trouble}}})}});
  object->bytes = kube::JsonText(*object->body);
  return object;
}

}  // namespace

void ComponentStatuses::Add(std::string name, Check check) {
  const std::lock_guard lock(mutex_);
  checks_[std::move(name)] = std::move(check);
}

std::vector<ObjectPtr> ComponentStatuses::Objects() const {
  std::map<std::string, Check> checks;
  {
    const std::lock_guard lock(mutex_);
    checks = checks_;
  }
  std::vector<ObjectPtr> objects;
  objects.reserve(checks.size());
  for (const auto& [name, check] : checks) objects.push_back(ObjectOf(name, check()));
  return objects;
}

}  // namespace tahoma::controller::apiserver
