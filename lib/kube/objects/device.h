// Devices as ResourceSlices publish them, read once, without JSON.
//
//   Device chip{.name = "gpu-3"};
//   chip.attributes.push_back({{"gpu.example.com", "index"}, std::int64_t{3}});
//
// Names without a domain belong to the driver's domain; whoever fills a Device writes the domain
// out, so that equal names are equal here.

#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "lib/base/json_fwd.h"
#include "lib/kube/field.h"
#include "lib/kube/objects/taint.h"

namespace tahoma::kube {

struct QualifiedName {
  std::string domain;
  std::string id;

  friend auto operator<=>(const QualifiedName&, const QualifiedName&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const QualifiedName& name) {
    return H::combine(std::move(h), name.domain, name.id);
  }
};

// "domain/id" apart; without a slash the domain is `default_domain`.
QualifiedName ParseQualifiedName(std::string_view text, std::string_view default_domain);

// A `version` attribute: semantic versioning, kept as text.
struct Version {
  std::string text;
  friend auto operator<=>(const Version&, const Version&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const Version& version) {
    return H::combine(std::move(h), version.text);
  }
};

using AttributeValue = std::variant<bool, std::int64_t, std::string, Version>;

// As in a message: `true`, `3`, `"trn2.48xlarge"`.
std::string ToString(const AttributeValue& value);

// abseil as Debian builds it does not hash std::variant.
std::size_t HashOf(const AttributeValue& value);

struct Attribute {
  QualifiedName name;
  AttributeValue value;

  friend bool operator==(const Attribute&, const Attribute&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const Attribute& attribute) {
    return H::combine(std::move(h), attribute.name, HashOf(attribute.value));
  }
};

struct Capacity {
  QualifiedName name;
  std::string quantity;

  friend bool operator==(const Capacity&, const Capacity&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const Capacity& capacity) {
    return H::combine(std::move(h), capacity.name, capacity.quantity);
  }
};

struct Device {
  std::string name;
  std::vector<Attribute> attributes;
  std::vector<Capacity> capacities;
  std::vector<Taint> taints;
  bool allow_multiple_allocations = false;

  // nullptr when absent.
  const AttributeValue* Find(std::string_view domain, std::string_view id) const;
};

// Leaves out attributes that are lists: selectors that read one find nothing.
Device ParseDevice(Field field, std::string_view driver);

}  // namespace tahoma::kube
