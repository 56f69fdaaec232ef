// The rules that a valid NeuronUltraServerWorkload of AWS meets, and the Gang that it asks for.
//
//   const auto needs = NeedsOf({.instance_type = "trn2u.48xlarge",
//                               .topology_size = 2,  // nodes of one UltraServer
//                               .server_count = 3});
//   if (!needs.ok()) return Message(needs.status());
//   needs->gang.members;                              // 6, in 3 slices of 4x4x2
//
// The CustomResourceDefinition (charts/tahoma/aws-crds) states the bounds, too; AWS's own may not.
//
// Thread safety: pure functions.

#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <optional>
#include <string>

#include "controller/model/gang_rules.h"

namespace tahoma::controller {

// The fields of spec, as the user wrote them.
struct WorkloadRequest {
  std::string instance_type = {};
  std::int64_t topology_size = 0;
  std::int64_t server_count = 0;
  std::string failure_strategy = {};  // empty: NoOp
  std::optional<std::int64_t> logical_neuron_core = {};
};

struct WorkloadNeeds {
  GangRequest gang;
  int lnc = 0;  // physical cores of a logical core
};

// Fails with kInvalidArgument, which names the field, the value and the right values.
absl::StatusOr<WorkloadNeeds> NeedsOf(const WorkloadRequest& request);

}  // namespace tahoma::controller
