// All API objects: in memory for reading, in the store for keeping, as events for watching.
//
//   TAHOMA_ASSIGN_OR_RETURN(auto objects, ObjectStore::Open(store, {}));
//   const ResourceName pods = {"", "pods"};
//   objects->Change(pods, "default/web", [&](const ObjectPtr& current) -> absl::StatusOr<Edit> {
//     if (current == nullptr) return NotFound("…");
//     Json body = *current->body;
//     …
//     return Edit::Put(std::move(body));
//   });
//
//   CommitsInFlight flight;                          // many changes, one wait for the disk
//   objects->Change(pods, "default/a", edit, &flight);
//   objects->Change(pods, "default/b", edit, &flight);
//   TAHOMA_RETURN_IF_ERROR(flight.Land());
//
// One resourceVersion counts all changes of all resources. A change becomes visible (to Get, List
// and watches, in the order of versions) only when it is on disk. Changes of one object happen one
// after the other; changes of different objects share the store's syncs.
//
// Scope: versions, durability, order. The request pipeline knows the meaning of objects.
//
// Thread safety: every member may be called from any thread.

#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>
#include <absl/status/statusor.h>

#include <atomic>
#include <chrono>
#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "controller/apiserver/storage/event_log.h"
#include "controller/apiserver/storage/object.h"
#include "controller/store/commits_in_flight.h"
#include "controller/store/store.h"
#include "lib/base/json_fwd.h"
#include "lib/base/mutex.h"

namespace tahoma::controller::apiserver {

// A resource, whatever its version: {"tahoma.dev", "gangs"}, {"", "pods"}.
struct ResourceName {
  std::string group;
  std::string plural;

  friend auto operator<=>(const ResourceName&, const ResourceName&) = default;
};

std::string ObjectKey(std::string_view name_space, std::string_view name);

// The result of a change: keep the object as it is, store a body, or delete it with a last state.
struct Edit {
  enum class Kind : std::uint8_t { kNone, kPut, kDelete };
  Kind kind = Kind::kNone;
  std::shared_ptr<Json> body;

  static Edit None() { return {}; }
  static Edit Put(Json body);
  static Edit Delete(Json last_state);
};

struct ObjectList {
  std::vector<ObjectPtr> objects;  // by key, in byte order
  std::int64_t version = 0;        // of which the list is the state
};

class ObjectStore {
 public:
  struct Options {
    // History for watches and pages, per resource.
    std::size_t log_count_max = 32768;
    std::size_t log_bytes_max = 64UL << 20U;
    // The time that a change waits for an earlier change of the same object.
    std::chrono::milliseconds change_wait = std::chrono::seconds(30);
  };

  // Raises the version in a store that may hold less than was given out (a restored backup,
  // Store::unmarked), so far that none is given out twice; watchers of before are told to list
  // again. Before Open. A store without versions stays as it is.
  static absl::Status RaiseVersion(Store& store);

  // The largest version that was ever given out, in Keyspace::kApi; objects are the keys that begin
  // with kObjectPrefix.
  static constexpr std::string_view kVersionKey = "rv";
  static constexpr std::string_view kObjectPrefix = "o/";
  // Reads a stored object. kDataLoss when it is none, or of a version above `newest`.
  struct Stored {
    ResourceName resource;
    ObjectPtr object;
  };
  static absl::StatusOr<Stored> ReadStored(std::string_view key, std::string_view value,
                                           std::int64_t newest);

  // Reads everything. kDataLoss when an object cannot be read. `store` must outlive the result.
  static absl::StatusOr<std::unique_ptr<ObjectStore>> Open(Store& store, Options options);
  ~ObjectStore();

  // nullptr when there is none.
  ObjectPtr Get(const ResourceName& resource, std::string_view key) const;
  // Objects whose key begins with `prefix` ("" or "<namespace>/").
  ObjectList List(const ResourceName& resource, std::string_view prefix) const;
  // Lists the objects as of `version`. kOutOfRange when that is forgotten, kUnavailable when it has
  // not been reached.
  absl::StatusOr<ObjectList> ListAt(const ResourceName& resource, std::string_view prefix,
                                    std::int64_t version) const;

  // The largest visible version.
  std::int64_t version() const { return visible_.load(); }

  // Runs `edit` on the current object (nullptr: none) and makes the change that it returns, with no
  // other change of that object in between; `edit` may be slow but must not change the same object.
  // Returns the stored object, or for kNone the current one, or for kDelete the last state with the
  // deletion's version. Fails as `edit` does, or with kUnavailable when the store has stopped or
  // the change before does not end (Options::change_wait). If `edit` throws, the object stays as it
  // was, ready for the next change. With a flight it returns when the commit is queued: whether the
  // result is stored, and visible, is known when the flight has landed.
  using EditFunction = std::function<absl::StatusOr<Edit>(const ObjectPtr& current)>;
  absl::StatusOr<ObjectPtr> Change(const ResourceName& resource, const std::string& key,
                                   const EditFunction& edit, CommitsInFlight* flight = nullptr);

  // Events of a resource after `version`, at most `limit`; when there are none, waits up to `wait`
  // for one. Afterwards nothing up to Batch::version is missing. kOutOfRange: `version` is
  // forgotten; the watcher must list again.
  struct Batch {
    std::vector<EventPtr> events;
    std::int64_t version = 0;
  };
  absl::StatusOr<Batch> Next(const ResourceName& resource, std::int64_t version, std::size_t limit,
                             std::chrono::milliseconds wait) const;

  // Waits up to `wait` for a version above `version`.
  void WaitForChange(std::int64_t version, std::chrono::milliseconds wait) const;

  // Ends all waiting in Next, now and later; for shutdown.
  void StopWaiting();

 private:
  struct Resource;
  class ChangeLock;
  struct Underway;

  ObjectStore(Store& store, Options options);
  absl::Status Load();
  Resource& Of(const ResourceName& resource) const;
  // Gives the edit the next version and hands it to the store, which ends the change.
  ObjectPtr Commit(std::unique_ptr<ChangeLock> change_lock, ObjectPtr current, const Edit& edit,
                   CommitsInFlight& flight);
  void Publish(Resource& resource, Edit::Kind kind, const ObjectPtr& object,
               const ObjectPtr& previous);
  // Wakes who waits for what was published: once for all commits that shared a sync.
  void Announce();

  Store& store_;
  const Options options_;
  mutable Mutex resources_mutex_;
  mutable std::map<ResourceName, std::unique_ptr<Resource>> resources_
      ABSL_GUARDED_BY(resources_mutex_);
  std::int64_t loaded_version_ ABSL_GUARDED_BY(resources_mutex_) = 0;
  std::atomic<bool> stopping_ = false;
  std::atomic<std::int64_t> visible_ = 0;
  mutable Mutex announce_mutex_;
  mutable CondVar announced_;
  // Versions are given out in the order in which commits are handed to the store.
  Mutex order_mutex_;
  std::int64_t last_version_ ABSL_GUARDED_BY(order_mutex_) = 0;
};

}  // namespace tahoma::controller::apiserver
