// The context of every verb: the objects, the kinds, time, and identifiers.
//
// Thread safety: the parts are thread safe; the context itself is not changed once made.

#pragma once

#include <absl/status/status.h>

#include <functional>
#include <string>

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

// Asks a node's pod runner (kubelet) for `target`, "/containerLogs/default/web/main?follow=true".
// The answer may be a stream.
using NodeFetch =
    std::function<rest::Response(const std::string& host, int port, const std::string& target)>;

struct ApiRequest;

// Says whether the caller may make that change of an object, which is otherwise right; `before` is
// null for a create. Called under the object's lock, also for dry runs.
using AdmitChange =
    std::function<absl::Status(const ApiRequest& request, const Json& before, const Json& after)>;

struct ApiContext {
  ObjectStore& objects;
  KindRegistry& kinds;
  const Clock& clock;
  IdSource& ids;
  NodeFetch node_fetch;
  const rest::Probes& probes;
  AdmitChange admit = nullptr;  // null: whoever may try a change may make it
};

}  // namespace tahoma::controller::apiserver
