// Defragmentations for people: the plan, the objects, and how far their moves have come.
//
//   TAHOMA_ASSIGN_OR_RETURN(const auto plan, PlanDefragmentation(admin, wish));
//   fmt::print("{}", MovePlanText(*plan));
//   TAHOMA_ASSIGN_OR_RETURN(const Json list, ListDefragmentations(transport));
//   fmt::print("{}", DefragmentationsText(list));
//
// Scope: requests and text. A plan is the admin API's answer; objects are those of the cluster,
// which the user's own rights read and write.
//
// Thread safety: any thread.

#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <memory>
#include <string>

#include "lib/base/json_fwd.h"
#include "lib/kube/transport.h"

namespace tahoma::controller {

// The flags of `kubectl tahoma defragment`; empty texts and 0: not given.
struct DefragmentWish {
  std::string shape = {};
  std::string for_gang = {};  // "NAME" or "NAMESPACE/NAME"
  std::int64_t ultra_servers = 0;
  std::int64_t slices = 0;
  std::int64_t moves = 0;
  std::int64_t per_hour = 0;

  bool any() const { return !shape.empty() || !for_gang.empty() || ultra_servers != 0; }
};

// Returns the fields of a Defragmentation's spec. A gang without a namespace is in `ns`.
Json SpecOfWish(const DefragmentWish& wish, const std::string& ns);

// Asks for the plan of that spec: nothing moves.
absl::StatusOr<std::shared_ptr<const Json>> PlanDefragmentation(kube::Transport& admin,
                                                                const Json& spec);
std::string MovePlanText(const Json& plan);

// Makes a Defragmentation whose gangs move, and returns its name.
absl::StatusOr<std::string> ApplyDefragmentation(kube::Transport& transport, Json spec);
absl::Status AbortDefragmentation(kube::Transport& transport, const std::string& name);

// Returns a List as kubectl's -o json shows one.
absl::StatusOr<Json> ListDefragmentations(kube::Transport& transport);
std::string DefragmentationsText(const Json& list);

}  // namespace tahoma::controller
