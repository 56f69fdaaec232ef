// Makes the API server's ResourceSlices of a node what the node's pool is.
//
//   SlicePublisher publisher(transport, "node-a");
//   absl::Status status = publisher.Publish(*pool);     // again after every change, now and then
//
// One slice that changed is updated in place; more than that gets a new pool generation, so that
// nobody allocates from a mixture. Obsolete slices go first, then updates, then new ones. A server
// that drops fields (a disabled feature gate) is not asked for them again and again: what it
// dropped is remembered (ServerSupport) until it is seen to have changed. Where it keeps no
// counters, or only few, devices that overlap are left out (ShownPool), and where it keeps no
// taints, those that are unhealthy: completeness.h says it. Such a server is looked at again with
// every publication, so that what was left out appears when it has been upgraded.
//
// One that publishes thousands of nodes names the slices itself: then a slice is found by its name,
// without a list in which the server looks at all nodes' slices, and none can be made twice.
//
//   SlicePublisher quiet(transport, name, {.fixed_names = true, .log_writes = false});
//   absl::Status published = quiet.PublishFor(node_uid, *pool, SlicePublisher::Known::kNone);
//
// Scope: this node's slices of this driver. Nothing is deleted when the plugin ends: the kubelet
// removes the slices of a driver that stays away.
//
// Thread safety: one thread at a time.

#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "dra-plugin/inventory/pool.h"
#include "dra-plugin/inventory/shown_pool.h"
#include "dra-plugin/slices/completeness.h"
#include "dra-plugin/slices/slice_json.h"
#include "lib/base/json_fwd.h"
#include "lib/kube/client.h"
#include "lib/kube/sleeper.h"
#include "lib/kube/transport.h"

namespace tahoma::dra {

struct SlicePublisherOptions {
  bool fixed_names = false;  // SliceName; slices of this node with other names are not looked at
  bool log_writes = true;    // a line for each slice that is written or deleted
  // What this server keeps, as another publisher saw it: how it keeps counters is then not looked
  // at again.
  std::optional<ServerSupport> server = {};
};

class SlicePublisher {
 public:
  // `transport` must outlive this object.
  SlicePublisher(kube::Transport& transport, std::string node_name,
                 SlicePublisherOptions options = {})
      : api_(transport, no_sleep_, Rng(0), {.attempts = 1}),
        node_name_(std::move(node_name)),
        options_(std::move(options)),
        server_(options_.server) {}

  // kNotFound while the Node object does not exist; kAborted when others kept changing the slices;
  // the server's refusal with its message.
  absl::Status Publish(const Pool& pool);

  // Whether the server may have slices of the node already; kNone is a hint that saves reading.
  enum class Known : std::uint8_t { kNothing, kNone };
  // Does the same for a caller who knows the Node's uid.
  absl::Status PublishFor(const std::string& node_uid, const Pool& pool, Known known);

  // Gives away the Node as Publish read it last; null when it was given away, or never read.
  std::shared_ptr<const Json> TakeNode() { return std::exchange(node_, nullptr); }

  // What the server keeps, as found last; nothing before it was looked at, which the first
  // publication does.
  const std::optional<ServerSupport>& server() const { return server_; }
  // What is shown of the pool where fields and counters are so.
  Pool Shown(const Pool& pool) const;
  // How many slices the node has, as published last.
  std::size_t slices() const { return slices_; }

 private:
  // Finds out how the server keeps counters. kAborted when it is not as it was believed to be.
  absl::Status LookAtCounters(const SliceOwner& owner);
  // Does so where the server is known to lack something, and looks whether it keeps taints now.
  absl::Status LookForMore(const SliceOwner& owner);
  bool DropsTaints() const;
  absl::Status PublishOnce(const std::string& node_uid, const Pool& pool, Known known);
  absl::StatusOr<std::string> ReadNode();  // its uid
  absl::StatusOr<std::vector<Json>> List();
  absl::StatusOr<std::vector<Json>> ReadByName(std::size_t wanted);
  absl::Status Delete(const Json& slice);
  // kAborted when counters are dropped that were believed to be kept, as while one API server of
  // several is upgraded: then devices that overlap must not be shown.
  absl::Status Write(const Json& slice);

  kube::InterruptibleSleeper no_sleep_;  // nothing is repeated: the caller publishes again
  kube::Client api_;
  const std::string node_name_;
  const SlicePublisherOptions options_;
  std::optional<ServerSupport> server_;
  bool looked_ = false;  // at the counters, in this publication
  std::shared_ptr<const Json> node_;
  std::size_t slices_ = 0;
};

}  // namespace tahoma::dra
