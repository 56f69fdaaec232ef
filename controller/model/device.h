// Devices as ResourceSlices publish them, read once, without JSON.
//
//   Device chip{.name = "neuron-device-3"};
//   chip.attributes.push_back({{"neuron.aws.com", "deviceId"}, std::int64_t{3}});
//
// Names without a domain belong to the driver's domain; whoever fills a Device writes the domain
// out (docs/reference/kubernetes-dra.md#device-selectors).
//
// Scope: values as published. What a device *is* (which chip, which cores) is derived in
// inventory.h.
//
// Thread safety: values.

#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace tahoma::controller {

// The driver, device class and attribute domain of AWS, and our own domain.
inline constexpr std::string_view kNeuronDriver = "neuron.aws.com";
inline constexpr std::string_view kTahomaDomain = "tahoma.dev";

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

enum class TaintEffect : std::uint8_t { kNone, kNoSchedule, kNoExecute };

struct Taint {
  std::string key;
  std::string value;
  TaintEffect effect = TaintEffect::kNoSchedule;

  friend bool operator==(const Taint&, const Taint&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const Taint& taint) {
    return H::combine(std::move(h), taint.key, taint.value, taint.effect);
  }
};

enum class TolerationOperator : std::uint8_t { kEqual, kExists };

struct Toleration {
  std::string key;  // empty with kExists: every taint
  TolerationOperator op = TolerationOperator::kEqual;
  std::string value;
  std::optional<TaintEffect> effect;  // nullopt: every effect
  std::optional<std::int64_t> seconds;

  friend bool operator==(const Toleration&, const Toleration&) = default;
};

// Kubernetes' rule, that of core/v1 Toleration
// (docs/reference/kubernetes-dra.md#taints-and-tolerations).
bool Tolerates(const Toleration& toleration, const Taint& taint);

// The toleration that every allocation of ours carries (docs/design/0001-seams.md).
Toleration ManagedToleration();

struct Device {
  std::string name;
  std::vector<Attribute> attributes;
  std::vector<Capacity> capacities;
  std::vector<Taint> taints;
  bool allow_multiple_allocations = false;

  // nullptr when absent.
  const AttributeValue* Find(std::string_view domain, std::string_view id) const;
};

}  // namespace tahoma::controller
