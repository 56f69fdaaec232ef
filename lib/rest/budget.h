// Bounds how many connections, and how many bytes that wait in them, clients may hold of a server.
//
//   Budget budget({.connections = 100, .connections_per_client = 75,
//                  .bytes = 1 << 30, .bytes_per_client = 768 << 20});
//   std::unique_ptr<Budget::Share> share = budget.Admit("10.0.0.7");
//   if (budget.Room("10.0.0.7") != Budget::Over::kNobody) …        // who is over its bound?
//   if (!share->HoldAnswer(54 << 20)) …                            // refused: too many wait
//
// Scope: numbers. Requests and small answers are counted as they are, and the server decides which
// connection it closes; until then the bound is exceeded. Large answers are counted apart, with
// bounds of the same size, before they wait: who finds none waiting may always hold one.
//
// Thread safety: every member may be called from any thread; a share belongs to one at a time.

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
  // The limit that is exceeded: one client's, or that of all together.
  enum class Over { kNobody, kClient, kAll };

  // One connection's part. Ends with it.
  class Share {
   public:
    Share(Budget& budget, std::string client) : budget_(budget), client_(std::move(client)) {}
    ~Share();
    Share(const Share&) = delete;
    Share& operator=(const Share&) = delete;

    // Sets how many bytes the connection holds. Cheap when nothing changes.
    void Hold(std::size_t bytes);
    // Sets how many bytes of a large answer the connection holds. False, with nothing changed, when
    // that is more than before and there is no room for it.
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
  // Whether a further connection of the client would be one too many.
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
