// One version of one API object, and the events that lead from one version to the next.
//
//   ObjectPtr pod = objects.Get(pods, "default/web");
//   pod->body->at("spec");          // parsed
//   pod->bytes;                     // the body as JSON text, made once
//   pod->message.Find();            // the body as protobuf, once asked for
//
// Thread safety: immutable, except the caches of messages and lines, which guard themselves.

#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/base/json_fwd.h"
#include "lib/base/mutex.h"

namespace tahoma::controller::apiserver {

// The protobuf message of an object, made at the first use. A copy of the object starts without a
// message, because the copy may be changed before it is shared.
class MessageCache {
 public:
  MessageCache() = default;
  MessageCache(const MessageCache&) {}
  MessageCache& operator=(const MessageCache&) = delete;
  ~MessageCache() { delete made_.load(); }

  // Null: no message yet.
  const std::string* Find() const { return made_.load(std::memory_order_acquire); }
  // Keeps the message, unless another thread was faster; returns the kept message.
  const std::string& Keep(std::string message) const;

 private:
  mutable std::atomic<const std::string*> made_ = nullptr;
};

struct Object {
  std::string key;           // "<namespace>/<name>"; a cluster-scoped object has no namespace
  std::int64_t version = 0;  // metadata.resourceVersion
  std::shared_ptr<const Json> body;
  std::string bytes;  // *body as compact JSON
  MessageCache message = {};
};
using ObjectPtr = std::shared_ptr<const Object>;

class Event {
 public:
  enum class Type : std::uint8_t { kAdded, kModified, kDeleted };

  Event(Type type_in, ObjectPtr object_in, ObjectPtr previous_in)
      : type(type_in), object(std::move(object_in)), previous(std::move(previous_in)) {}

  const Type type;
  const ObjectPtr object;    // kDeleted: the last state, with the version of the deletion
  const ObjectPtr previous;  // null for kAdded

  std::int64_t version() const { return object->version; }

  // The text of this event in a representation. The first caller makes the text, all others share
  // it; `form` names the representation and is the cache's key.
  std::shared_ptr<const std::string> Line(std::string_view form,
                                          const std::function<std::string()>& make) const;

 private:
  mutable Mutex mutex_;
  mutable std::vector<std::pair<std::string, std::shared_ptr<const std::string>>> lines_
      ABSL_GUARDED_BY(mutex_);
};
using EventPtr = std::shared_ptr<const Event>;

}  // namespace tahoma::controller::apiserver
