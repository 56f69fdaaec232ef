// Changes the tags of Capacity Blocks, which their objects' spec.tags are.
//
// A change is made to the object as it is, whoever has changed it before: what the watch shows may
// be older. The core takes the tags from there, as those that kubectl sets.
//
// Scope: one object. Whose blocks they are was checked before.
//
// Thread safety: any thread.

#pragma once

#include <absl/status/status.h>

#include <chrono>
#include <functional>
#include <memory>

#include "controller/core/snapshot.h"
#include "controller/ec2/tag_change.h"
#include "lib/kube/sleeper.h"
#include "lib/kube/transport.h"

namespace tahoma::controller {

class BlockTags {
 public:
  // The core shows a change as soon as it has heard of it. A change is durable without that.
  static constexpr std::chrono::seconds kShownWithin{5};

  using TakeSnapshot = std::function<std::shared_ptr<const Snapshot>()>;

  // `api` must outlive it.
  BlockTags(kube::Transport& api, TakeSnapshot take) : api_(api), take_(std::move(take)) {}

  // Answers when the change is stored and snapshots show it, or kShownWithin has passed. Refused
  // with EC2's codes.
  absl::Status Change(const Block& block, const ec2::TagChange& change);

 private:
  absl::StatusOr<Tags> Store(const Block& block, const ec2::TagChange& change);
  bool IsShown(const Block& block, const Tags& tags) const;

  kube::Transport& api_;
  const TakeSnapshot take_;
  kube::InterruptibleSleeper sleeper_;
};

}  // namespace tahoma::controller
