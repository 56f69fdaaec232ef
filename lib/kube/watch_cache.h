// The state of all objects of one kind, made of the server's lists and watch events.
//
// Every object of each list is given to `seen`, also when it has not changed (an owner that writes
// to it learns so what a restored server has lost), and so is every later change, in the order of
// the server. Objects that a new list no longer has are given to `gone`, and so is an object that
// was deleted and made again between two lists, before its successor is given to `seen`. Objects
// that are not `wanted` are passed over as if they did not exist.
//
// An object that cannot be read harms no other: it is left out and reported to `unreadable`, once
// for each reason and not with every list. The state that was given before stays, until the object
// is gone.
//
// Time goes back only when the server lost its history, as when it was restored from a backup: its
// lists stay older than what was seen (resource_version.h), or contain objects that are. Then
// `history_lost` is called, and the list is the truth, whatever was seen before.
//
// Only key, uid and resourceVersion of an object are kept: the owner takes what it needs in `seen`.
// At 62,500 nodes that is some 15 MB, not gigabytes of JSON.
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
  // Chooses the objects that are followed; empty: all are.
  std::function<bool(const Json& object)> wanted = nullptr;
  // Takes an object. Returns why it cannot be read, if so.
  std::function<absl::Status(const Json& object)> seen;
  std::function<void(const ObjectKey& key, const std::string& uid)> gone;
  std::function<void()> listed;  // after each complete list
  // Called for an unreadable object; its key has no name when that cannot be read either. This
  // handler and those below may be empty.
  std::function<void(const ObjectKey& key, const absl::Status& why)> unreadable = nullptr;
  // Called before the first object of a list that shows the loss.
  std::function<void(const std::string& why)> history_lost = nullptr;
  // Called for a list or a watch of a Reflector that failed, except when a watch was too old (410).
  std::function<void(const absl::Status& why)> failed = nullptr;
};

class WatchCache {
 public:
  explicit WatchCache(WatchHandlers handlers) : handlers_(std::move(handlers)) {}

  // Begins a new list; the known objects are kept for comparison.
  void BeginList() { ++list_; }
  // Adds one page and returns the token of the next. After the last one (empty token) the objects
  // that are gone are reported, and then `listed` is called. kUnavailable when the page is not a
  // list, or is older than what was seen: begin again.
  absl::StatusOr<std::string> AddPage(const Json& page);

  // Adds one event of a watch. An error ends the watch: that of an ERROR event (kOutOfRange for
  // 410), or kUnavailable when it is not an event. The place is forgotten unless the watch can go
  // on from it.
  absl::Status AddEvent(std::string_view type, const Json& object);

  // The place where a watch goes on; empty before the first complete list.
  const std::string& resource_version() const { return resource_version_; }
  void ForgetPlace() { resource_version_.clear(); }
  std::size_t size() const { return known_.size(); }

 private:
  struct Known {
    std::string uid;
    std::string version;
    std::uint64_t list = 0;  // the list that showed it last
  };
  struct Unreadable {
    absl::Status why;
    std::uint64_t list = 0;
  };
  // The part of an object that the cache itself reads.
  struct Head {
    ObjectKey key;  // without a name when it cannot be read
    std::string uid;
    std::string version;
    absl::Status status;  // kInvalidArgument: there is no name, or something is not a text
  };
  static Head HeadOf(const Json& object);

  absl::Status Admit(const Json& items, const std::string& version);
  // Returns the first item that is older than the known state of its object.
  std::optional<Head> FirstOlder(const Json& items) const;
  void LoseHistory(const std::string& why);
  // Takes an object as it was seen. In a list it is the truth; an event may have been overtaken.
  void See(const Json& object, bool listed);
  void Remove(const Json& object);
  bool IsOutdated(const Head& head, const Known& known, bool listed) const;
  absl::Status Read(const Json& object) const;
  void Tell(const ObjectKey& key, const absl::Status& why);
  void RemoveUnlisted();
  // Gives the object of that key to `gone`, if it is known.
  void Forget(const ObjectKey& key);

  const WatchHandlers handlers_;
  absl::flat_hash_map<ObjectKey, Known> known_;
  // The objects that could not be read when they were last seen.
  absl::flat_hash_map<ObjectKey, Unreadable> unreadable_;
  std::uint64_t list_ = 0;
  std::string resource_version_;
  NewestVersion newest_;
};

}  // namespace tahoma::kube
