#include "lib/kube/objects/metadata.h"

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

}  // namespace tahoma::kube
