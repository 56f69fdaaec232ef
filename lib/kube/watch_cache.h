// The state of all objects of a kind, built from the server's lists and watch events.
//
// `seen` gets every object of each list, also when unchanged (an owner that writes to objects
// learns so what a restored server has lost), and every later change, in the order of the server.
// `gone` gets objects missing from a new list. An object deleted and made again between two lists
// is first given to `gone`; then its successor is given to `seen`. Unwanted objects are skipped as
// if absent.
//
// An unreadable object harms no other object: the cache leaves it out and reports it to
// `unreadable`, once per reason and not with every list. The last readable state stays until the
// object is gone.
//
// Time goes back only when the server lost its history, as when restored from a backup: its lists
// stay older than the seen versions (resource_version.h), or contain objects older than the seen
// objects. Then `history_lost` is called, and the list is the truth, whatever was seen before.
//
// The cache keeps only key, uid and resourceVersion of an object: some 15 MB at 62,500 nodes, not
// gigabytes of JSON. The owner takes the rest in `seen`.
//
// Scope: a state machine without I/O. Reflector (reflector.h) drives it with a Transport.
//
// Thread safety: none.

#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "lib/base/json_fwd.h"
#include "lib/kube/object.h"
#include "lib/kube/resource_version.h"

namespace tahoma::kube {

struct WatchHandlers {
  // Chooses the objects to follow; empty: all objects.
  std::function<bool(const Json& object)> wanted = nullptr;
  // Takes an object. Fails with the reason when the object cannot be read.
  std::function<absl::Status(const Json& object)> seen;
  std::function<void(const ObjectKey& key, const std::string& uid)> gone;
  std::function<void()> listed;  // after each complete list
  // Called for an unreadable object; the key has no name when the name is unreadable, too. This
  // handler and the handlers below may be empty.
  std::function<void(const ObjectKey& key, const absl::Status& why)> unreadable = nullptr;
  // Called before the first object of a list that shows the loss.
  std::function<void(const std::string& why)> history_lost = nullptr;
  // Called when a list or a watch of a Reflector fails, except for a watch that was too old (410).
  std::function<void(const absl::Status& why)> failed = nullptr;
};

class WatchCache {
 public:
  explicit WatchCache(WatchHandlers handlers) : handlers_(std::move(handlers)) {}

  // Begins a new list; the known objects are kept for comparison.
  void BeginList() { ++list_; }
  // Adds a page and returns the token of the next page. After the last page (empty token), reports
  // the objects that are gone and calls `listed`. kUnavailable when the page is not a list, or is
  // older than the seen versions: begin again.
  absl::StatusOr<std::string> AddPage(const Json& page);

  // Adds an event of a watch. An error ends the watch: the error of an ERROR event (kOutOfRange for
  // 410), or kUnavailable for anything but an event. The place is forgotten unless the watch can go
  // on from there.
  absl::Status AddEvent(std::string_view type, const Json& object);

  // The place where a watch goes on; empty before the first complete list.
  const std::string& resource_version() const { return resource_version_; }
  void ForgetPlace() { resource_version_.clear(); }
  std::size_t size() const { return known_.size(); }

 private:
  struct Known {
    std::string uid;
    std::string version;
    std::uint64_t list = 0;  // the last list that showed the object
  };
  struct Unreadable {
    absl::Status why;
    std::uint64_t list = 0;
  };
  // The part of an object that the cache reads.
  struct Head {
    ObjectKey key;  // without a name when the name is unreadable
    std::string uid;
    std::string version;
    absl::Status status;  // kInvalidArgument: there is no name, or something is not a text
  };
  static Head HeadOf(const Json& object);

  absl::Status Admit(const Json& items, const std::string& version);
  // Returns the first item older than the known state of its object.
  std::optional<Head> FirstOlder(const Json& items) const;
  void LoseHistory(const std::string& why);
  // Takes a seen object. A listed object is the truth; an event may have been overtaken.
  void See(const Json& object, bool listed);
  void Remove(const Json& object);
  bool IsOutdated(const Head& head, const Known& known, bool listed) const;
  absl::Status Read(const Json& object) const;
  void Tell(const ObjectKey& key, const absl::Status& why);
  void RemoveUnlisted();
  // Gives the known object of this key to `gone`; does nothing for an unknown key.
  void Forget(const ObjectKey& key);

  const WatchHandlers handlers_;
  absl::flat_hash_map<ObjectKey, Known> known_;
  // Objects that were unreadable when last seen.
  absl::flat_hash_map<ObjectKey, Unreadable> unreadable_;
  std::uint64_t list_ = 0;
  std::string resource_version_;
  NewestVersion newest_;
};

}  // namespace tahoma::kube
