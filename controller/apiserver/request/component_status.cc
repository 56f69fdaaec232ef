#include "controller/apiserver/request/component_status.h"

#include <map>
#include <string>
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

std::vector<ObjectPtr> ComponentStatuses(const rest::Probes& probes) {
  std::map<std::string, rest::Probes::Check> checks;
  for (auto& [name, check] : probes.Checks(rest::Probes::Kind::kReadyz)) {
    checks[name] = std::move(check);
  }
  std::vector<ObjectPtr> objects;
  objects.reserve(checks.size());
  for (const auto& [name, check] : checks) objects.push_back(ObjectOf(name, check()));
  return objects;
}

}  // namespace tahoma::controller::apiserver
