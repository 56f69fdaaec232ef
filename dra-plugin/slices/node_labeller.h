// Keeps the labels of the plugin's Node that follow from its instance (lib/wire/node_labels.h).
//
//   NodeLabeller labeller(transport, "node-a");
//   absl::Status status = labeller.Publish(inventory);  // again after every change, now and then
//
// Other labels are left alone. Nothing is written when all are as they should be.
//
// Thread safety: one thread at a time.

#pragma once

#include <absl/status/status.h>

#include <string>
#include <utility>

#include "lib/kube/client.h"
#include "lib/kube/sleeper.h"
#include "lib/kube/transport.h"
#include "lib/wire/messages.h"

namespace tahoma::dra {

class NodeLabeller {
 public:
  // `transport` must outlive this object.
  NodeLabeller(kube::Transport& transport, std::string node_name)
      : node_name_(std::move(node_name)), api_(transport, no_sleep_, Rng(0), {.attempts = 1}) {}

  // kNotFound when there is no such Node.
  absl::Status Publish(const wire::Inventory& inventory);

 private:
  const std::string node_name_;
  kube::InterruptibleSleeper no_sleep_;  // nothing is repeated: the caller asks again
  kube::Client api_;
};

}  // namespace tahoma::dra
