// Taints of nodes and devices, and tolerations.
//
//   const Toleration toleration = ParseToleration(field);
//   if (Tolerates(toleration, taint)) …
//
// Thread safety: values and pure functions.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "lib/base/json_fwd.h"
#include "lib/kube/field.h"

namespace tahoma::kube {

// PreferNoSchedule of nodes is kNone: such a taint refuses nothing.
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

// Kubernetes' rule for core/v1 Toleration
// (docs/reference/kubernetes-dra.md#taints-and-tolerations).
bool Tolerates(const Toleration& toleration, const Taint& taint);

// An unknown effect is read as NoSchedule: rather a device too few than a device too many.
Taint ParseTaint(Field field);
Json RenderTaint(const Taint& taint);
Toleration ParseToleration(Field field);
Json RenderToleration(const Toleration& toleration);

}  // namespace tahoma::kube
