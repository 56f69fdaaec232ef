// Follows all objects of one kind: list, watch, and list again when the watch lost its place.
//
//   Reflector reflector(transport, sleeper, Rng(seed), {.resource = kNodes},
//                       [&](const WatchEvent& event) { … event.type, event.key, *event.object … });
//   reflector.Start();                        // a thread of its own; ends with the object
//
// The owner hears every object added, modified and deleted, in the order of the server, every
// object of each list (kModified when it is known, also when it is as it was: whoever writes to it
// sees what a restored server has lost), and kSynced after each complete list. Deletes made
// while the watch was broken are found by comparing the next list with what was known, and are then
// told without an object.
//
// Time goes back only when the server lost its history, as when it was restored from a backup. A
// list that is older than what was seen is refused and asked for again until it stays so
// (resource_version.h); the objects of a list that is taken are the truth, also older ones. A watch
// tells nothing of that: after one that broke off, or brought nothing, not even a bookmark, comes a
// list.
//
// Nothing of an object is kept but its key, uid and resourceVersion: what the owner needs, it takes
// from the event. At 62,500 nodes that is some 15 MB, not gigabytes of JSON.
//
// Scope: WatchCache is a pure state machine without I/O; Reflector drives it with a Transport.
//
// Thread safety: WatchCache none. Reflector: Start, Stop, has_synced from any thread; events come
// on its own thread, one at a time.

#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/status/statusor.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <thread>

#include "lib/base/json_fwd.h"
#include "lib/base/rng.h"
#include "lib/kube/client.h"
#include "lib/kube/object.h"
#include "lib/kube/resource_version.h"
#include "lib/kube/sleeper.h"
#include "lib/kube/transport.h"

namespace tahoma::kube {

struct WatchEvent {
  enum class Type { kAdded, kModified, kDeleted, kSynced };
  Type type = Type::kSynced;
  ObjectKey key = {};  // empty for kSynced
  std::string uid = {};
  // Null for kSynced and for a delete that only a new list showed. Valid during the call.
  const Json* object = nullptr;
};
using WatchSink = std::function<void(const WatchEvent& event)>;

class WatchCache {
 public:
  enum class Next {
    kContinue,
    kWatchAgain,  // the server ended this watch with an error; the place is still good
    kListAgain    // the place is lost: 410, not yet known there, or a line that cannot be read
  };

  explicit WatchCache(WatchSink sink) : sink_(std::move(sink)) {}

  // A new list begins; what is known is kept for comparison.
  void BeginList() { ++generation_; }
  // One page. Returns the token of the next page; with the last one (empty token) deletes are
  // found and kSynced is told. kUnavailable for what is not a list, or is older than what was
  // seen: begin again.
  absl::StatusOr<std::string> AddPage(const Json& page);
  // One line of a watch.
  Next AddLine(std::string_view line);

  // Where a watch goes on; empty before the first complete list.
  const std::string& resource_version() const { return resource_version_; }
  void ForgetPlace() { resource_version_.clear(); }
  std::size_t size() const { return known_.size(); }

 private:
  struct Known {
    std::string uid;
    std::string resource_version;
    std::uint32_t generation = 0;
  };

  // An object of a list is the truth; an event may have been overtaken.
  bool Store(const Json& object, bool listed);
  bool Remove(const Json& object);
  void RemoveUnlisted();

  WatchSink sink_;
  absl::flat_hash_map<ObjectKey, Known> known_;
  std::uint32_t generation_ = 0;
  std::string resource_version_;
  NewestVersion newest_;
};

struct ReflectorOptions {
  Resource resource;
  std::string ns = {};  // empty: all namespaces
  std::string label_selector = {};
  std::string field_selector = {};
  int page_size = 500;
  // The server is asked to end each watch after this long, plus up to as much again.
  std::chrono::seconds watch_timeout = std::chrono::seconds(300);
  // No byte for so long means a dead peer: bookmarks come about every minute.
  std::chrono::milliseconds idle_timeout = std::chrono::seconds(150);
  RetryOptions backoff = {
      .attempts = 0, .first = std::chrono::milliseconds(100), .longest = std::chrono::seconds(30)};
};

class Reflector {
 public:
  // Transport and sleeper must outlive the reflector.
  Reflector(Transport& transport, Sleeper& sleeper, Rng rng, ReflectorOptions options,
            WatchSink sink);
  ~Reflector() { Stop(); }
  Reflector(const Reflector&) = delete;
  Reflector& operator=(const Reflector&) = delete;

  void Start();
  // Waits for the thread. A stream that is silent ends at its idle time-out; shut the transport
  // down and interrupt the sleeper first to end it at once.
  void Stop();

  // One list, if the place is lost, and one watch until it ends; for those who bring their own
  // thread or simulate. An error says what to wait for; call again.
  absl::Status RunOnce();

  bool has_synced() const { return synced_; }

 private:
  absl::Status ListAll();
  absl::Status WatchFrom();
  void Loop();

  Transport& transport_;
  Sleeper& sleeper_;
  Rng rng_;
  const ReflectorOptions options_;
  WatchCache cache_;
  bool in_pages_ = true;      // false: the next list comes whole
  std::uint64_t events_ = 0;  // that a watch brought, in this turn of Loop
  std::atomic<bool> synced_ = false;
  std::atomic<bool> stopping_ = false;
  std::thread thread_;
};

}  // namespace tahoma::kube
