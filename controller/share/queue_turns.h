// Whose turn it is among the queues with a gang to be planned, at one moment.
//
//   QueueTurns turns(shares, now);
//   turns.Add("research");                     // each queue with a gang to be planned
//   while (auto queue = turns.First()) {
//     shares.Charge(*queue, PlanNext(*queue), 1, now);
//     turns.Update(*queue);                    // it holds more, and may come later
//     if (IsEmpty(*queue)) turns.Drop(*queue);
//   }
//
// From the top at each level: first the queues that hold less than their guarantee, then the least
// use in proportion to the weight, then by name. Use is the recent average as it will be soon if
// all that is held goes on, so a burst of gangs at one moment wins nothing. A queue's own gangs
// stand beside the queues below, as a queue of weight 1.
//
// Thread safety: belongs to one thread. Meanwhile `shares` changes by Charge alone, each followed
// by Update.

#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>

#include "controller/share/queue_shares.h"

namespace tahoma::controller {

class QueueTurns {
 public:
  // `shares` must outlive it, and keep its tree.
  QueueTurns(const QueueShares& shares, WallTime now) : shares_(shares), now_(now) {}

  // Add and drop a queue that exists.
  void Add(const std::string& queue);
  void Drop(const std::string& queue);
  // Returns the queue whose turn it is; nullptr when there is none.
  const std::string* First() const;
  // Takes what the queue holds by now; the queue was added.
  void Update(const std::string& queue);

 private:
  struct Place {
    bool guaranteed = false;
    double use = 0;
    bool below = false;  // own gangs come first where all else is equal
    std::string_view name;
    std::size_t node = 0;

    auto key() const { return std::tie(guaranteed, use, below, name); }
    friend bool operator<(const Place& a, const Place& b) { return a.key() < b.key(); }
  };
  struct Level {
    std::set<Place> places;
    absl::flat_hash_map<std::size_t, Place> of;  // by node, for removal
  };

  Place PlaceOf(std::size_t node, bool own) const;
  static void Put(Level& level, const Place& place);
  static void Remove(Level& level, std::size_t node);

  const QueueShares& shares_;
  const WallTime now_;
  absl::flat_hash_map<std::size_t, Level> levels_;  // by the queue above, kNoParent at the top
};

}  // namespace tahoma::controller
