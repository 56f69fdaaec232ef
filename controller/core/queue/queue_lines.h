// The gangs to be planned, in one line for each queue, and the gangs that wait for their queue.
//
// Gangs of Capacity Blocks come first, and no queue binds them. Then queues take turns
// (queue_turns.h), and inside a queue the order is that of ServicePlace. Without objects of the
// kind Queue there is a single line.
//
// A gang whose queue denies a start waits beside the line, with all gangs of the queue and of equal
// needs. When a denying queue holds less, a single question answers for all of equal needs, and
// kLetInMost of them come back at a time, in the order of service.
//
// Scope: who is next. scheduling_queue.h plans the gangs.
//
// Thread safety: belongs to one thread.

#pragma once

#include <absl/container/flat_hash_map.h>

#include <chrono>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "controller/core/queue/service_place.h"
#include "controller/model/cluster.h"
#include "controller/model/gang.h"
#include "controller/share/queue_shares.h"
#include "controller/share/queue_turns.h"
#include "lib/base/clock.h"

namespace tahoma::controller {

// The part of a queue that a gang needs.
struct QueueNeed {
  // As far as the claims tell before a plan: not more than the gang will hold.
  std::int64_t least = 0;  // eighths of chips of one type, any
  Eighths exact = {};      // once a plan has told
  bool grows = false;      // the gang runs: it is no gang more
  // How long the gang cannot be ended for others; 0: it can be at once, max(): as long as it runs.
  std::chrono::seconds unending{0};

  std::int64_t gangs() const { return grows ? 0 : 1; }
  // Returns the end of that time for a start now.
  WallTime UnendingUntil(WallTime now) const;
  friend auto operator<=>(const QueueNeed&, const QueueNeed&) = default;
};

// Returns how long the gang, once it runs, cannot be ended, as QueueNeed::unending.
std::chrono::seconds UnendingOf(const GangSpec& gang);
// Returns the eighths of chips that the gang's claims ask for at least.
std::int64_t LeastEighthsOf(const GangSpec& gang);
// Adds what the holding occupies of nodes that are there.
void AddEighths(const Holding& holding, const ClusterState& cluster, Eighths& sum);
// Returns the chips of the holdings, by instance type.
Eighths EighthsOf(const std::vector<std::shared_ptr<const Holding>>& holdings,
                  const ClusterState& cluster);

// The chips of a domain that nobody uses, and that queues may share.
struct FreeChips {
  std::string type;  // of the instances
  std::int64_t chips = 0;
};
// Returns the free chips of the domain; nullopt for a domain of a Capacity Block, and for a domain
// without nodes.
std::optional<FreeChips> FreeIn(const ClusterState& cluster, DomainId id);

// Whose turn it is among lines: those of Capacity Blocks, then queues as they take turns.
class LineTurns {
 public:
  // Lines of queues are only added where there are shares. `names` has the queue of each line.
  LineTurns(QueueShares* shares, const std::vector<std::string>& names, WallTime now);
  LineTurns(const LineTurns&) = delete;
  LineTurns& operator=(const LineTurns&) = delete;
  // Takes the charges back.
  ~LineTurns();

  void Add(std::size_t line);
  void Drop(std::size_t line);
  std::optional<std::size_t> First() const;
  // Charges the line's queue for a gang that is about to be planned.
  void Charge(std::size_t line, const QueueNeed& need);

 private:
  QueueShares* const shares_;
  const std::vector<std::string>& names_;
  const WallTime now_;
  std::map<std::string, std::size_t> line_of_;
  std::set<std::size_t> before_;  // lines of no queue
  std::optional<QueueTurns> turns_;
};

class QueueLines {
 public:
  // How many gangs that waited for a queue come back to its line at a time.
  static constexpr std::size_t kLetInMost = 16;
  // The most gangs that one round denies a start.
  static constexpr std::size_t kDeniedMost = 256;

  struct Denied {
    GangRef gang;
    QueueDenial why;
  };

  // `shares`, which may be nullptr, outlives it.
  explicit QueueLines(QueueShares* shares) : shares_(shares) {}

  // Puts a gang, which is in no line, into its queue's.
  void Put(const ServicePlace& place, const GangSpec& gang, const QueueNeed& need);
  // Lets a gang, which is in no line, wait for its queue.
  void Deny(const ServicePlace& place, const GangSpec& gang, const QueueNeed& need,
            const QueueDenial& why);
  // Removes the gang from its line, or from beside the line.
  void Remove(const GangRef& ref);
  // Returns whether some gang is to be planned, or may be let in.
  bool has_next() const;
  // Counts the free chips of a changed domain. Those of Capacity Blocks do not count.
  void CountFree(const ClusterState& before, const ClusterState& now, DomainId id);

  // Begins a round of turns. `now` is the time of the whole round.
  void Begin(WallTime now);
  // Returns the place of the next gang to be planned. Gangs whose queue denies a start wait from
  // now on.
  std::optional<ServicePlace> Next();
  // Takes that gang out of its line, and charges its queue until End.
  void Take(const ServicePlace& next);
  void End() { turns_.reset(); }
  std::vector<Denied> DrainDenied() { return std::exchange(denied_, {}); }

  // The line of the gang, as a number: 0 for gangs of Capacity Blocks. Stays while the gang's queue
  // and the tree do.
  std::size_t LineOf(const GangSpec& gang);
  // Returns the queue of a line.
  const std::string& QueueOf(std::size_t line) const { return names_[line]; }
  // Returns the queue whose bounds count for the gang; nullptr when none do.
  const std::string* BoundBy(const GangSpec& gang) const;
  QueueShares* shares() const { return shares_; }
  // Returns turns of lines, for a round of another kind.
  LineTurns TurnsAt(WallTime now) const { return {shares_, names_, now}; }

 private:
  struct Waiter {
    ServicePlace place;
    std::size_t line = 0;
    QueueNeed need;
    bool denied = false;
  };
  using Places = std::set<ServicePlace>;

  bool ordered() const { return shares_ != nullptr && shares_->tree().any(); }
  std::size_t LineNamed(const std::string& queue);
  std::optional<QueueDenial> WhyNot(std::size_t line, const QueueNeed& need) const;
  void LetIn();
  void LetInOf(std::size_t line);
  void Empty(std::size_t line);

  QueueShares* const shares_;
  // The queues of the lines; the first line is for Capacity Blocks, the second for all without
  // queues.
  std::vector<std::string> names_{"", ""};
  absl::flat_hash_map<std::string, std::size_t> line_of_;
  absl::flat_hash_map<GangRef, Waiter> gangs_;
  std::map<std::size_t, Places> lines_;  // none is empty
  // By line, then by what the gangs need.
  std::map<std::size_t, std::map<QueueNeed, Places>> denied_in_;
  std::map<std::string, std::set<std::size_t>> lines_waiting_for_;  // by QueueDenial::by
  std::set<std::size_t> to_let_in_;
  std::map<std::string, std::int64_t> free_;  // chips, by instance type
  bool free_changed_ = false;
  std::vector<Denied> denied_;
  WallTime now_;  // of the round
  std::optional<LineTurns> turns_;
};

}  // namespace tahoma::controller
