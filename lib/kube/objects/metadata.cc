#include "lib/kube/objects/metadata.h"

#include <algorithm>

namespace tahoma::kube {

ObjectMeta ParseMetadata(Field object) {
  const Field metadata = object.Required("metadata");
  ObjectMeta parsed;
  parsed.ns = metadata.At("namespace").Text();
  parsed.name = metadata.Required("name").Text();
  parsed.uid = metadata.At("uid").Text();
  parsed.resource_version = metadata.At("resourceVersion").Text();
  parsed.generation = metadata.At("generation").Int();
  const auto created = ParseTime(metadata.At("creationTimestamp").Text());
  if (created.ok()) parsed.created = *created;
  parsed.deleting = metadata.At("deletionTimestamp").has_value();
  return parsed;
}

Labels ParseLabels(Field metadata) {
  Labels labels;
  metadata.At("labels").Entries(
      [&](const std::string& key, Field value) { labels.emplace_back(key, value.Text()); });
  return labels;
}

const std::string* FindLabel(const Labels& labels, std::string_view key) {
  const auto at = std::ranges::lower_bound(labels, key, {}, &Labels::value_type::first);
  return at == labels.end() || at->first != key ? nullptr : &at->second;
}

}  // namespace tahoma::kube
