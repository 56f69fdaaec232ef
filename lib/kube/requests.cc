#include "lib/kube/requests.h"

#include <memory>
#include <utility>

#include "lib/base/json.h"
#include "lib/kube/url.h"

namespace tahoma::kube {
namespace {

using json = Json;

std::string_view ContentType(PatchType type) {
  switch (type) {
    case PatchType::kMerge:
      return "application/merge-patch+json";
    case PatchType::kJson:
      return "application/json-patch+json";
    case PatchType::kStrategicMerge:
      return "application/strategic-merge-patch+json";
    case PatchType::kApply:
      return "application/apply-patch+yaml";
  }
  return "";
}

Request ReadRequest(std::string target) {
  return {
      .method = "GET", .target = std::move(target), .headers = {{"Accept", "application/json"}}};
}

Request WriteRequest(std::string_view method, std::string path, std::string_view content_type,
                     json body, const WriteOptions& options) {
  Query query;
  if (!options.field_manager.empty()) query.emplace_back("fieldManager", options.field_manager);
  if (options.dry_run) query.emplace_back("dryRun", "All");
  if (options.force) query.emplace_back("force", "true");
  if (!query.empty()) path += "?" + EncodeQuery(query);
  ShareJson(body);
  return {.method = std::string(method),
          .target = std::move(path),
          .headers = {{"Accept", "application/json"}, {"Content-Type", std::string(content_type)}},
          .parsed = std::make_shared<const json>(std::move(body))};
}

}  // namespace

Request GetRequest(const Resource& resource, const ObjectKey& key) {
  return ReadRequest(resource.ObjectPath(key));
}

Request ListRequest(const Resource& resource, const ListOptions& options) {
  Query query;
  const auto add = [&](const char* key, const std::string& value) {
    if (!value.empty()) query.emplace_back(key, value);
  };
  add("labelSelector", options.label_selector);
  add("fieldSelector", options.field_selector);
  add("continue", options.continue_token);
  if (options.continue_token.empty()) add("resourceVersion", options.resource_version);
  if (options.limit > 0) query.emplace_back("limit", std::to_string(options.limit));
  std::string target = resource.CollectionPath(options.ns);
  if (!query.empty()) target += "?" + EncodeQuery(query);
  return ReadRequest(std::move(target));
}

Request CreateRequest(const Resource& resource, std::string_view ns, json object,
                      const WriteOptions& options) {
  return WriteRequest("POST", resource.CollectionPath(ns), "application/json", std::move(object),
                      options);
}

Request UpdateRequest(const Resource& resource, const ObjectKey& key, json object,
                      const WriteOptions& options) {
  return WriteRequest("PUT", resource.ObjectPath(key, options.subresource), "application/json",
                      std::move(object), options);
}

Request PatchRequest(const Resource& resource, const ObjectKey& key, PatchType type, json patch,
                     const WriteOptions& options) {
  return WriteRequest("PATCH", resource.ObjectPath(key, options.subresource), ContentType(type),
                      std::move(patch), options);
}

Request DeleteRequest(const Resource& resource, const ObjectKey& key,
                      const DeleteOptions& options) {
  json body{{"kind", "DeleteOptions"}, {"apiVersion", "v1"}};
  if (!options.uid.empty()) body["preconditions"]["uid"] = options.uid;
  if (!options.resource_version.empty()) {
    body["preconditions"]["resourceVersion"] = options.resource_version;
  }
  if (options.grace_period_seconds) body["gracePeriodSeconds"] = *options.grace_period_seconds;
  if (!options.propagation_policy.empty()) body["propagationPolicy"] = options.propagation_policy;
  return WriteRequest("DELETE", resource.ObjectPath(key), "application/json", std::move(body), {});
}

Request BindRequest(const ObjectKey& pod, std::string_view uid, std::string_view node,
                    json annotations) {
  json binding{{"apiVersion", "v1"},
               {"kind", "Binding"},
               {"metadata", {{"name", pod.name}, {"namespace", pod.ns}}},
               {"target", {{"apiVersion", "v1"}, {"kind", "Node"}, {"name", node}}}};
  if (!uid.empty()) binding["metadata"]["uid"] = uid;
  if (annotations.is_object() && !annotations.empty()) {
    binding["metadata"]["annotations"] = std::move(annotations);
  }
  return WriteRequest("POST", kPods.ObjectPath(pod, "binding"), "application/json",
                      std::move(binding), {});
}

}  // namespace tahoma::kube
