// Whether a gang may wait in a queue, and the terms that a queue gives its gangs.
//
//   GangSpec asked = *gang;
//   if (const auto refusal = EnterQueue(tree, "research", asked)) Say(refusal->message);
//
// Scope: rules of a gang and a tree, for real gangs (queue_keeper.h) and for questions
// (core/forecast).
//
// Thread safety: pure functions.

#pragma once

#include <absl/functional/function_ref.h>

#include <cstdint>
#include <optional>
#include <string>

#include "controller/core/facts/gang_status.h"
#include "controller/model/gang.h"
#include "controller/share/queue_tree.h"

namespace tahoma::controller {

struct QueueRefusal {
  GangReason reason = GangReason::kQueueUnknown;
  std::string message;
};

// Gives the gang the queue of that name, and the run time and the patience of the queue or of the
// nearest queue above with them, where the gang has none. Returns why the gang may not wait there.
std::optional<QueueRefusal> EnterQueue(const QueueTree& tree, const std::string& queue,
                                       GangSpec& gang);

// Refuses one more gang where the queue, which exists, or a queue above has enough that wait.
// `waiting` returns how many gangs wait in a queue and below. `full` becomes the queue's name.
std::optional<QueueRefusal> RefuseWhereFull(
    const QueueTree& tree, const std::string& queue,
    absl::FunctionRef<std::int64_t(const std::string&)> waiting, std::string* full = nullptr);

}  // namespace tahoma::controller
