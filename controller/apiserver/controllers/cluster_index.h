// An index of the references between objects: the controllers need not look at all objects.
//
// The index is updated by the difference between two versions of an object: the cost of an event
// depends on its changes, not on the size of the cluster.
//
// Thread safety: every member may be called from any thread.

#pragma once

#include <absl/container/flat_hash_map.h>

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "controller/apiserver/storage/object_store.h"
#include "lib/base/clock.h"
#include "lib/base/json_fwd.h"
#include "lib/base/mutex.h"

namespace tahoma::controller::apiserver {

// An object of any kind.
struct ObjectId {
  ResourceName resource;
  std::string key;  // "<namespace>/<name>"

  friend auto operator<=>(const ObjectId&, const ObjectId&) = default;
};

class ClusterIndex {
 public:
  void Apply(const ResourceName& resource, const std::string& key, const Json* previous,
             const Json* object, WallTime now);
  // Takes the links of `fresh`, an index that only the caller knows, in place of its own.
  // Heartbeats stay, except of leases that are gone.
  void AdoptLinks(ClusterIndex& fresh);

  std::vector<ObjectId> DependentsOf(const std::string& uid) const;
  // Returns the claims (keys) that are reserved for the pod with the uid, or owned by it.
  std::vector<std::string> ClaimsOf(const std::string& pod_uid) const;
  // Returns the pods (keys) that wait for the template "ns/name".
  std::vector<std::string> PodsUsingTemplate(const std::string& template_key) const;
  std::vector<std::string> PodsOn(const std::string& node) const;
  // Returns the slices (keys) that publish devices of the pool "driver/pool".
  std::vector<std::string> SlicesOfPool(const std::string& pool) const;
  // Returns the claims (keys) that have devices of the pool.
  std::vector<std::string> ClaimsOnPool(const std::string& pool) const;
  // Returns whether a device of any pool is tainted NoExecute.
  bool AnyPoolEvicts() const;
  // Returns the pods (keys), or the ReplicaSets, that `selector` may match: objects of the
  // namespace that have one of its labels.
  std::vector<std::string> Candidates(const ResourceName& resource, std::string_view name_space,
                                      const Json& selector) const;
  // Returns the objects whose spec.selector may match an object with the labels.
  std::vector<ObjectId> SelectorsOf(std::string_view name_space, const Json& labels) const;
  // Returns when we last saw a node's lease renewed; nullopt: never.
  std::optional<WallTime> LastHeartbeat(const std::string& node) const;

 private:
  using Links = absl::flat_hash_map<std::string, std::set<std::string>>;

  // A lease that is only read again is no sign of life.
  struct Heartbeat {
    std::string version;
    WallTime seen;
  };
  struct Edges;
  static Edges EdgesOf(const ResourceName& resource, const std::string& key, const Json* object);

  mutable Mutex mutex_;
  absl::flat_hash_map<std::string, std::set<ObjectId>> dependents_ ABSL_GUARDED_BY(mutex_);
  Links claims_ ABSL_GUARDED_BY(mutex_);
  Links template_pods_ ABSL_GUARDED_BY(mutex_);
  Links node_pods_ ABSL_GUARDED_BY(mutex_);
  Links labelled_ ABSL_GUARDED_BY(mutex_);  // pods and ReplicaSets, by each of their labels
  // Objects with a selector, by one label that the selector requires.
  absl::flat_hash_map<std::string, std::set<ObjectId>> selectors_ ABSL_GUARDED_BY(mutex_);
  Links pool_slices_ ABSL_GUARDED_BY(mutex_);
  Links pool_claims_ ABSL_GUARDED_BY(mutex_);
  std::set<std::string> evicting_slices_
      ABSL_GUARDED_BY(mutex_);  // with a device that is tainted NoExecute
  absl::flat_hash_map<std::string, Heartbeat> heartbeats_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tahoma::controller::apiserver
