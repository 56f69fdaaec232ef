// Follows all objects of one kind: list, watch, and list again when the watch cannot go on.
//
//   ObjectWatch watch(transport, {.path = "/api/v1/pods", .field_selector = "…"}, handlers);
//   watch.Run(wait);        // on a thread of its own, until Stop
//
// Every object that exists is given to `seen` after each list, and every change after that.
// Objects that a new list no longer has are given to `gone`, and so is an object that was deleted
// and made again between two lists, before its successor is given to `seen`. Only names, uids and
// versions are kept; objects that are not `wanted` are passed over as if they did not exist.
//
// An object that cannot be read harms no other: it is left out and told to `unreadable`, once for
// each reason and not with every list. What was told of it before stays, until it is gone.
//
// Time goes back only when the server lost its history, as when it was restored from a backup: its
// lists stay older than what was seen (lib/kube/resource_version.h), or have objects that are. Then
// `history_lost` is told, and the list is the truth, whatever was seen before. No watch tells that:
// after one that ends without having brought anything, not even a bookmark, comes a list.
//
// Thread safety: Stop from any thread; handlers are called from Run's thread.

#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>
#include <absl/status/status.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "lib/base/json_fwd.h"
#include "lib/kube/resource_version.h"
#include "lib/kube/transport.h"

namespace tahoma::controller {

class ObjectWatch {
 public:
  struct Target {
    std::string path;            // of the collection, all namespaces
    std::string field_selector;  // empty: all
  };
  struct Handlers {
    std::function<bool(const Json& object)> wanted = nullptr;  // empty: all are
    // What cannot be read of the object, if anything.
    std::function<absl::Status(const Json& object)> seen;
    std::function<void(const std::string& ns, const std::string& name, const std::string& uid)>
        gone;
    std::function<void()> listed;  // after each list
    // `name` is "ns/name", or "" when that cannot be read either.
    std::function<void(const std::string& name, const absl::Status& why)> unreadable;
    // Before the first object of a list that shows it. Empty: nobody wants to know.
    std::function<void(const std::string& why)> history_lost = nullptr;
    std::function<void(const absl::Status&)> failed;
  };
  // Waits; false when the program ends.
  using Wait = std::function<bool(std::chrono::milliseconds)>;

  // `transport` must outlive it.
  ObjectWatch(kube::Transport& transport, Target target, Handlers handlers);

  void Run(const Wait& wait);
  // One turn of Run, for callers with a loop of their own: lists when there is nothing to go on
  // from, otherwise follows the watch until it ends. After a failure the next turn lists.
  absl::Status Step();
  void Stop() { stopping_ = true; }

 private:
  struct Known {
    std::string uid;
    std::string version;
    std::uint64_t list = 0;  // the list that saw it last
  };
  // What the watch itself reads of an object.
  struct Head {
    std::string key;  // "ns/name"; empty when it cannot be read
    std::string uid;
    std::string version;
    absl::Status status;  // kInvalidArgument: there is no name, or something is not a text
  };
  static Head HeadOf(const Json& object);

  absl::Status List();
  // kUnavailable for a list whose version is older than what was seen.
  absl::Status Admit(const Json& page, const std::string& version);
  // Of the first item that is older than what was seen of it.
  std::optional<Head> FirstOlder(const Json& items) const;
  void LoseHistory(const std::string& why);
  // OK when the watch ended in order and can go on from version_.
  absl::Status Watch();
  bool OnEvent(std::string_view type, const Json& object, absl::Status& failure);
  bool IsOutdated(const std::string& key, const std::string& version,
                  const std::string& deleted_uid) const;
  // An object of a list is the truth; an event may have been overtaken.
  void See(const Json& object, bool listed);
  void Tell(const std::string& key, const absl::Status& why);
  // Tells `gone` of the object of that key, if it is known.
  void Forget(const std::string& key);
  std::string Query(std::string_view more) const;

  kube::Transport& transport_;
  const Target target_;
  const Handlers handlers_;
  std::atomic<bool> stopping_ = false;
  std::string version_;  // where the watch goes on; empty: list first
  kube::NewestVersion newest_;
  bool in_pages_ = true;      // false: the next list comes whole
  std::uint64_t events_ = 0;  // that a watch brought, in this turn of Run
  std::uint64_t lists_ = 0;
  absl::flat_hash_map<std::string, Known> known_;  // by "ns/name"
  // Why, of the objects that could not be read when they were last seen; by "ns/name".
  absl::flat_hash_map<std::string, absl::Status> unreadable_;
};

}  // namespace tahoma::controller
