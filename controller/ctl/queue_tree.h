// Queues for people: the tree of `kubectl tahoma queues`, and the queue with its gangs of `kubectl
// tahoma queue NAME`.
//
//   TAHOMA_ASSIGN_OR_RETURN(const Json list, ListQueues(transport));
//   fmt::print("{}", QueueTreeText(list, QueueColumns::kUsual));
//   TAHOMA_ASSIGN_OR_RETURN(const QueueRead read, ReadQueue(admin, "research"));
//   fmt::print("{}", QueueText(read));
//
// Scope: reading and text. Queues are objects of the cluster; the order of service is known to the
// controller, whose admin API gives a queue's gangs.
//
// Thread safety: any thread.

#pragma once

#include <absl/status/statusor.h>

#include <memory>
#include <set>
#include <string>

#include "lib/base/json_fwd.h"
#include "lib/kube/transport.h"

namespace tahoma::controller {

enum class QueueColumns { kUsual, kWide };

// Returns a List as kubectl's -o json shows one.
absl::StatusOr<Json> ListQueues(kube::Transport& transport);

// Returns a table in which each queue stands below its parent, and siblings by name. A queue whose
// parent does not exist stands at the top, and so does one queue of a circle.
std::string QueueTreeText(const Json& list, QueueColumns columns);

// A queue and the gangs that wait for a place there, in the order of service, as the admin API
// gives them.
struct QueueRead {
  std::shared_ptr<const Json> queue;
  std::shared_ptr<const Json> gangs;
};
absl::StatusOr<QueueRead> ReadQueue(kube::Transport& admin, const std::string& name);

// Returns the instance types of which a queue of the admin API has a number.
std::set<std::string> QueueTypesOf(const Json& queue);

std::string QueueText(const QueueRead& read);
// {"queue": …, "gangs": […]}
Json QueueJson(const QueueRead& read);

}  // namespace tahoma::controller
