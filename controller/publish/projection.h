// Keeps objects of a kind as the controller wants them: finds the objects that must be written.
//
// Objects are compared by the bytes of their content, which is the status, or spec and status: Take
// repairs content that another client wrote, makes a deleted object again, and deletes an object
// that should not exist. Nothing is written before the first list is complete, and each object has
// at most one write under way.
//
// A projection has no Outbox (core/writes/outbox.h): a thread of its own sends some writes a round
// and waits for the answers. The pace of the rounds and the order of the queue, in which a failed
// write comes last, take the place of times and attempts.
//
// Scope: a state machine. Keeps the content of each object as text, about half a kilobyte.
//
// Thread safety: belongs to one thread.

#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/json_fwd.h"
#include "lib/kube/object.h"

namespace tahoma::controller {

class Projection {
 public:
  // Sets the object's wanted content. Null members count as absent.
  void Want(const kube::ObjectKey& key, const Json& content);
  // The object should not exist.
  void Unwant(const kube::ObjectKey& key);

  void OnSeen(const kube::ObjectKey& key, const Json& content);
  void OnGone(const kube::ObjectKey& key);
  void OnListed() { listed_ = true; }
  bool listed() const { return listed_; }

  enum class Kind : std::uint8_t { kCreate, kReplace, kDelete };
  struct Write {
    Kind kind = Kind::kCreate;
    kube::ObjectKey key;
    std::string content = {};  // JSON text
    std::string before = {};   // as the object was seen; empty: it was not
  };
  // Takes at most `most` due writes, the longest due first.
  std::vector<Write> PopDue(std::size_t most);
  // Takes the answer to a write. A write that was not done is due again, after all others.
  void OnAnswer(const kube::ObjectKey& key, bool done);

  std::size_t due() const { return queue_.size(); }

 private:
  struct Entry {
    std::optional<std::string> wanted;
    std::optional<std::string> seen;
    std::optional<std::string> sent;
    bool queued = false;
    bool in_flight = false;
    bool news = false;  // a watch saw a change while a write was under way
  };

  void Queue(const kube::ObjectKey& key, Entry& entry);

  std::map<kube::ObjectKey, Entry> entries_;
  std::deque<kube::ObjectKey> queue_;
  bool listed_ = false;
};

}  // namespace tahoma::controller
