// Makes a node's ResourceSlices in the API server equal to the node's pool.
//
//   SlicePublisher publisher(transport, "node-a");
//   absl::Status status = publisher.Publish(*pool);     // again after every change, now and then
//
// A single changed slice is updated in place. More changes get a new pool generation: nobody
// allocates from a mixture. Obsolete slices are deleted first; then slices are updated, then
// created. A server may drop fields (a disabled feature gate); ServerSupport remembers the dropped
// fields until the server is seen to have changed. On a server with no or few counters, overlapping
// devices are left out (ShownPool); on a server without taints, unhealthy devices; completeness.h
// reports both. Such a server is looked at with every publication, and after an upgrade the missing
// devices appear.
//
// A publisher for thousands of nodes names the slices itself. A slice is then found by its name,
// without a list for which the server reads all nodes' slices, and no slice can be made twice.
//
//   SlicePublisher quiet(transport, name, {.fixed_names = true, .log_writes = false});
//   absl::Status published = quiet.PublishFor(node_uid, *pool, SlicePublisher::Known::kNone);
//
// Scope: the slices of one node and one driver. Nothing is deleted when the plugin ends: the
// kubelet removes the slices of a driver that stays away.
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
  std::string driver = std::string(kDriver);
  bool fixed_names = false;  // SliceName; slices of this node with other names are not looked at
  bool log_writes = true;    // logs a line per written or deleted slice
  // The server's support, as another publisher found it; the counters are then not looked at again.
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
  // otherwise the server's refusal with its message.
  absl::Status Publish(const DevicePool& pool);

  // kNone: the server has no slices of the node, a hint that saves reading.
  enum class Known : std::uint8_t { kNothing, kNone };
  // As Publish, for a caller who knows the Node's uid.
  absl::Status PublishFor(const std::string& node_uid, const DevicePool& pool, Known known);

  // Gives away the Node that Publish read last; null when already given away, or never read.
  std::shared_ptr<const Json> HandOverNode() { return std::exchange(node_, nullptr); }

  // The server's support as last found; nothing before the first publication.
  const std::optional<ServerSupport>& server() const { return server_; }
  // The devices of the pool that this server is shown.
  DevicePool Shown(const DevicePool& pool) const;
  // How many slices the node has, as published last.
  std::size_t slices() const { return slices_; }

 private:
  // Finds out how the server keeps counters. kAborted when the server has changed.
  absl::Status LookAtCounters(const SliceOwner& owner);
  // Calls LookAtCounters when the server is known to lack something; also looks for taints.
  absl::Status LookForMore(const SliceOwner& owner);
  bool DropsTaints() const;
  SliceOwner OwnerOf(const std::string& node_uid) const;
  absl::Status PublishOnce(const std::string& node_uid, const DevicePool& pool, Known known);
  absl::StatusOr<std::string> ReadNode();  // the Node's uid
  absl::StatusOr<std::vector<Json>> List();
  absl::StatusOr<std::vector<Json>> ReadByName(std::size_t wanted);
  absl::Status Delete(const Json& slice);
  // kAborted when the server drops counters that it was known to keep, as while one of several API
  // servers is upgraded; overlapping devices must not be shown then.
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
