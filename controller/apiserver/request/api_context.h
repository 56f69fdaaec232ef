// The context of every verb: the objects, the kinds, time, and identifiers.
//
// Thread safety: the parts are thread safe; the context itself is not changed once made.

#pragma once

#include <absl/status/status.h>

#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "controller/apiserver/schema/kind.h"
#include "controller/apiserver/storage/object_store.h"
#include "lib/base/clock.h"
#include "lib/base/json_fwd.h"
#include "lib/base/mutex.h"
#include "lib/base/rng.h"
#include "lib/rest/message.h"
#include "lib/rest/probes.h"

namespace tahoma::controller::apiserver {

// uids and generated names. Thread safe.
class IdSource {
 public:
  explicit IdSource(std::uint64_t seed) : rng_(seed) {}

  std::string Uid() {
    const MutexLock lock(mutex_);
    return NewUuid(rng_);
  }
  std::string Suffix() {
    const MutexLock lock(mutex_);
    return NewNameSuffix(rng_);
  }

 private:
  Mutex mutex_;
  Rng rng_ ABSL_GUARDED_BY(mutex_);
};

// The address of a node's pod runner (kubelet), from the Node object.
struct NodeEndpoint {
  std::string node;  // the node's name
  std::string host;  // an IP address
  int port = 0;
};

// Asks a node's pod runner for `target`, "/containerLogs/default/web/main?follow=true". The answer
// may be a stream.
using NodeFetch =
    std::function<rest::Response(const NodeEndpoint& node, const std::string& target)>;

// Passes a client's request to leave HTTP on to a node's pod runner, as a request for `target`;
// with the node's 101 comes an answer whose upgrade moves the bytes of both sides.
using NodeTunnel = std::function<rest::Response(const NodeEndpoint& node, const std::string& target,
                                                const rest::Request& client)>;

// Says whether an object is kept for a reason outside the object: a sold Capacity Block cannot be
// cancelled, whatever its status has been changed to. Thread safe.
class DeletionGuard {
 public:
  // Returns why the CapacityBlock of that namespace and name may not be deleted; "": it may be.
  // nullopt: not known.
  using Ask =
      std::function<std::optional<std::string>(const std::string& ns, const std::string& name)>;

  // Waits for WhyKept calls in progress.
  void Set(Ask ask) {
    const MutexLock lock(mutex_);
    ask_ = std::move(ask);
  }
  std::optional<std::string> WhyKept(const std::string& ns, const std::string& name) {
    const MutexLock lock(mutex_);
    return ask_ ? ask_(ns, name) : std::nullopt;
  }

 private:
  Mutex mutex_;
  Ask ask_ ABSL_GUARDED_BY(mutex_);
};

struct ApiRequest;

// Returns whether the caller may make the change of an object, after all other checks; `before` is
// null for a create. Called under the object's lock, also for dry runs.
using AdmitChange =
    std::function<absl::Status(const ApiRequest& request, const Json& before, const Json& after)>;

class Webhooks;

struct ApiContext {
  ObjectStore& objects;
  KindRegistry& kinds;
  const Clock& clock;
  IdSource& ids;
  NodeFetch node_fetch;
  NodeTunnel node_tunnel;
  const rest::Probes& probes;
  DeletionGuard& guard;
  const Webhooks& webhooks;
  AdmitChange admit = nullptr;  // null: no further check
};

}  // namespace tahoma::controller::apiserver
