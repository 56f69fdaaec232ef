// The fields of metadata that scheduling depends on.
//
//   const ObjectMeta metadata = ParseMetadata(reading.root());    // of the whole object
//
// Labels and annotations stay in the object, because most readers want few: LabelOf and
// AnnotationOf of lib/kube/object.h.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/base/clock.h"
#include "lib/kube/field.h"

namespace tahoma::kube {

struct ObjectMeta {
  std::string ns;  // empty for cluster-scoped kinds
  std::string name;
  std::string uid;
  std::string resource_version;
  std::int64_t generation = 0;
  WallTime created;       // the epoch for an unreadable time
  bool deleting = false;  // has a deletionTimestamp
};

// An object without a name is an error.
ObjectMeta ParseMetadata(Field object);

using Labels = std::vector<std::pair<std::string, std::string>>;  // sorted by key

// Returns all labels of an object, for a reader that selects by labels.
Labels ParseLabels(Field metadata);

// Returns the label's value; nullptr when there is no such label.
const std::string* FindLabel(const Labels& labels, std::string_view key);

}  // namespace tahoma::kube
