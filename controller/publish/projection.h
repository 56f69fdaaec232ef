// Objects of one kind that show what the controller knows: which of them have to be written.
//
//   Projection projection;
//   projection.Want({"", "us-0"}, status);               // as it should be
//   projection.OnSeen({"", "us-0"}, object);             // as a watch saw it
//   projection.OnListed();                               // all that there are have been seen
//   for (const Projection::Write& write : projection.Take(50)) Send(write);
//   projection.OnAnswer({"", "us-0"}, /*done=*/true);
//
// Objects are compared by the bytes of their status: what somebody else wrote there, an object that
// was deleted, and one that should not be are put right. Nothing is written before the first list
// is complete, and one write for each object is under way at a time.
//
// A projection has no Outbox (core/writes/outbox.h): a thread of its own sends so many writes a round
// and waits for their answers, so the pace of the rounds and the order of the queue, in which a
// failed write comes last, take the place of times and attempts.
//
// Scope: a state machine. It keeps the status of each object as text, about half a kilobyte.
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
  // Sets what the object's status should be. Members that are null are absent.
  void Want(const kube::ObjectKey& key, const Json& status);
  // The object should not be there.
  void Unwant(const kube::ObjectKey& key);

  void OnSeen(const kube::ObjectKey& key, const Json& object);
  void OnGone(const kube::ObjectKey& key);
  void OnListed() { listed_ = true; }

  enum class Kind : std::uint8_t { kCreate, kReplace, kDelete };
  struct Write {
    Kind kind = Kind::kCreate;
    kube::ObjectKey key;
    std::string status = {};  // JSON text
  };
  // Takes at most so many writes that are due, the longest due first.
  std::vector<Write> Take(std::size_t most);
  // Tells the answer to a write. One that was not done is due again, after the others.
  void OnAnswer(const kube::ObjectKey& key, bool done);

  std::size_t due() const { return queue_.size(); }

 private:
  struct Entry {
    std::optional<std::string> wanted;
    std::optional<std::string> seen;
    std::optional<std::string> sent;
    bool queued = false;
    bool in_flight = false;
    bool news = false;  // a watch told of it while a write was under way
  };

  void Queue(const kube::ObjectKey& key, Entry& entry);

  std::map<kube::ObjectKey, Entry> entries_;
  std::deque<kube::ObjectKey> queue_;
  bool listed_ = false;
};

}  // namespace tahoma::controller
