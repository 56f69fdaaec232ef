// Bounds the connections of a server's clients, and the bytes that wait in the connections.
//
//   Budget budget({.connections = 100, .connections_per_client = 75,
//                  .bytes = 1 << 30, .bytes_per_client = 768 << 20});
//   std::unique_ptr<Budget::Share> share = budget.Admit("10.0.0.7");
//   if (budget.Room("10.0.0.7") != Budget::Over::kNobody) …        // who is over its bound?
//   if (!share->HoldAnswer(54 << 20)) …                            // refused: too many wait
//
// Scope: numbers. Requests and small answers are counted as held, and the server chooses the
// connections to close; until then the bound is exceeded. Large answers are counted apart, with
// bounds of the same size, before they wait. A client may always hold an answer when no other
// answer waits.
//
// Thread safety: every member from any thread; a share belongs to one thread at a time.

#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <unordered_map>

#include "lib/base/mutex.h"

namespace tahoma::rest {

class Budget {
 public:
  struct Limits {
    int connections = 0;
    int connections_per_client = 0;
    std::size_t bytes = 0;
    std::size_t bytes_per_client = 0;
  };
  // The exceeded limit: the limit of a client, or the limit of all clients together.
  enum class Over { kNobody, kClient, kAll };

  // A connection's part of the budget; returned when the share ends.
  class Share {
   public:
    Share(Budget& budget, std::string client) : budget_(budget), client_(std::move(client)) {}
    ~Share();
    Share(const Share&) = delete;
    Share& operator=(const Share&) = delete;

    // Sets how many bytes the connection holds. Cheap when nothing changes.
    void Hold(std::size_t bytes);
    // Sets how many bytes of a large answer the connection holds. False, with nothing changed, when
    // `bytes` is more than before and does not fit.
    bool HoldAnswer(std::size_t bytes);
    const std::string& client() const { return client_; }

   private:
    Budget& budget_;
    const std::string client_;
    std::size_t bytes_ = 0;
    std::size_t answer_bytes_ = 0;
  };

  explicit Budget(Limits limits) : limits_(limits) {}

  std::unique_ptr<Share> Admit(std::string client);
  // Whether a further connection of the client would exceed a limit.
  Over Room(const std::string& client) const;
  // Whether the client, or all together, hold too many bytes.
  Over Weight(const std::string& client) const;

  const Limits& limits() const { return limits_; }

 private:
  struct Use {
    int connections = 0;
    std::size_t bytes = 0;
    std::size_t answer_bytes = 0;
  };

  const Limits limits_;
  mutable Mutex mutex_;
  std::unordered_map<std::string, Use> clients_ ABSL_GUARDED_BY(mutex_);
  Use all_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tahoma::rest
