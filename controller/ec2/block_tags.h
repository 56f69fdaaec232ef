// Changes the tags of Capacity Blocks: the spec.tags of their objects.
//
// A change is made to the stored object, whoever changed the object before: the watch may show an
// older object. The core reads the tags from the object, as it reads tags that kubectl sets.
//
// Scope: one object. The caller has checked the owner.
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
  // How long Change waits until the core shows the tags. A change is durable even if the core is
  // late.
  static constexpr std::chrono::seconds kShownWithin{5};

  using TakeSnapshot = std::function<std::shared_ptr<const Snapshot>()>;

  // `api` must outlive the BlockTags.
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
