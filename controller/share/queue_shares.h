// The chips that each queue holds and has used, and whether a gang may start in a queue.
//
//   QueueShares shares;
//   shares.SetTree(QueueTree(specs), now);
//   shares.SetFree("trn2.48xlarge", 4096);             // chips that nobody holds
//   const Eighths gang = {{"trn2.48xlarge", 64 * 8}};
//   if (auto denial = shares.MayStart("research", gang)) {
//     Say(denial->message);                        // "… queue research holds 192 of at most 200"
//   } else {
//     shares.Change("research", gang, 1, now, now);    // it starts
//   }
//   shares.UsedChips("research", now);                 // its recent use, as an average of chips
//
// With the gang, its queue and every queue above may hold `limit` at most, and `guaranteed` and
// `borrowing_limit` together at most. So many chips must stay free as other queues may take at any
// time: their guarantees beyond what they lend and hold. From the gang's queue upwards, the
// siblings of each queue that is beyond its own guarantee count; a queue within its guarantee takes
// from nobody.
//
// Calendars move bounds. A gang that cannot be ended starts only if the bounds of each coming
// moment of the gang's run allow the gang beside all others that cannot be ended before the moment.
//
// Use is an exponential average of the chips held, with the queue's half-life: exact at any time,
// without ticking. Charges of a call that plans many gangs are taken back by RollBack.
//
// Scope: numbers of queues that exist in the tree. Whose turn it is: queue_turns.h.
//
// Thread safety: belongs to one thread.

#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "controller/share/queue_spec.h"
#include "controller/share/queue_tree.h"
#include "controller/share/queue_view.h"
#include "lib/base/clock.h"

namespace tahoma::controller {

// Why a gang may not start.
struct QueueDenial {
  enum class Kind : std::uint8_t { kStopped, kLimit, kLent, kComing };
  Kind kind = Kind::kLimit;
  std::string by;  // the queue that must change, or hold less; kLent and kComing: it can be any
  std::string message;
};

// Bounds that will be in force from a moment on.
struct ComingBounds {
  WallTime at;
  std::string why;  // "period day of QueueCalendar day-and-night begins"
  QueueTree tree;
};
// The end of the time in which a gang cannot be ended, for a gang that can be ended at once.
inline constexpr WallTime kEndsAtOnce = WallTime::min();

// The recent use of a queue, as average numbers of eighths of chips.
struct QueueUse {
  WallTime as_of;
  double used = 0;  // here and below
  double own = 0;   // by gangs of this very queue

  friend bool operator==(const QueueUse&, const QueueUse&) = default;
};

class QueueShares {
 public:
  // The past use of queues that both trees have stays; what is held does, too, but for queues that
  // the new tree does not have.
  void SetTree(QueueTree tree, WallTime now);
  const QueueTree& tree() const { return tree_; }
  // Sets the bounds that come, by time, in place of those of before; nothing is held there yet.
  // SetTree forgets them.
  void SetComing(std::vector<ComingBounds> coming, WallTime now);
  // Counts chips as Change does, for the coming bounds: the gang cannot be ended before `until`.
  void ChangeComing(const std::string& queue, const Eighths& more, WallTime until, WallTime now);

  // Sets how many chips of the type are healthy and wholly unused.
  void SetFree(const std::string& type, std::int64_t chips);
  // Returns the types that the fleet has, or had.
  std::vector<std::string> FleetTypes() const;

  // Counts chips and gangs more, or less, in the queue and above. Chips that come have been held
  // since `since`. The queue exists.
  void Change(const std::string& queue, const Eighths& more, std::int64_t gangs, WallTime since,
              WallTime now);
  // Counts as Change and ChangeComing do, until RollBack.
  void Charge(const std::string& queue, const Eighths& more, std::int64_t gangs, WallTime now,
              WallTime until = kEndsAtOnce);
  void RollBack(WallTime now);
  // Returns the queues that hold less, or have other bounds, than at the last call.
  std::set<std::string> DrainFallen() { return std::exchange(fallen_, {}); }
  bool has_fallen() const { return !fallen_.empty(); }
  // Sets the past use of a queue, which exists, as journalled.
  void SetUse(const std::string& queue, const QueueUse& use);

  // Returns why the gang, which cannot be ended before `until`, may not start; nullopt when it may.
  // The queue exists.
  std::optional<QueueDenial> MayStart(const std::string& queue, const Eighths& gang,
                                      std::int64_t gangs = 1, WallTime until = kEndsAtOnce) const;
  // Returns whether a gang that needs so much may take hardware back from gangs of another queue:
  // where both queues part, the gang's side stays within its guarantee, and the other side holds
  // more than its own of some type. False where a queue does not exist.
  bool MayReclaim(const std::string& queue, const Eighths& need, const std::string& from) const;
  // Returns whether any queue has a limit, a stop or a guarantee that is not lent, or will: else
  // every gang may start.
  bool limits() const { return limits_ || !coming_.empty(); }

  // Return numbers of a queue that exists.
  QueueUse UseOf(const std::string& queue, WallTime now) const;
  double UsedChips(const std::string& queue, WallTime now) const;
  Eighths HeldOf(const std::string& queue) const;  // here and below
  std::int64_t RunningIn(const std::string& queue) const;

  // The order of service at a moment, for QueueTurns: least first.
  struct Rank {
    bool guaranteed = false;  // holds its guarantee
    double use = 0;           // the recent use, with what is held, in proportion to the weight
  };
  Rank RankOf(std::size_t node, WallTime now) const;
  // As if the queue's own gangs were a queue below, of weight 1.
  Rank RankOfOwn(std::size_t node, WallTime now) const;

 private:
  // A number for each instance type, by its index in types_; missing ones are absent.
  using ByType = std::vector<std::int64_t>;
  struct Account {
    ByType held;
    std::int64_t total = 0;  // of `held`
    std::int64_t running = 0;
    double average = 0;
    WallTime as_of = {};
    WallTime known = {};  // all use before is in the average
  };
  struct Row {
    Account all;  // here and below
    Account own;
    ByType guaranteed;
    ByType limit;
    ByType borrowing;
    ByType lending;
    ByType needs;        // what others must leave free for it and those below
    ByType child_needs;  // the sum of that of the children
  };
  struct Charged {
    std::string queue;
    Eighths amount;
    std::int64_t gangs = 0;
    WallTime until = kEndsAtOnce;
  };
  // A coming moment.
  struct Later {
    WallTime at;
    std::string why;
    Eighths leaving;                  // held now, by gangs that have ended then or can be ended
    std::vector<QueueShares> shares;  // one
  };
  struct Sibling {
    std::size_t node = 0;
    std::size_t type = 0;
  };

  std::size_t TypeOf(const std::string& type);
  std::size_t NodeOf(const std::string& queue) const;
  ByType BoundsOf(const ChipCounts& counts);
  void ReadBounds(const QueueTree::Node& node, Row& row);
  void AddAccounts(const Row& from, std::size_t node, WallTime now);
  static double AverageAt(const Account& account, const QueueTree::Node& node, WallTime now);
  static double ForeseenOf(const Account& account, const QueueTree::Node& node, WallTime now);
  void ChangeAccount(Account& account, const QueueTree::Node& node, const Eighths& more,
                     std::int64_t gangs, WallTime since, WallTime now);
  void Count(const std::string& queue, const Eighths& more, std::int64_t gangs, WallTime since,
             WallTime now);
  void TakeFree(const Eighths& amount, int sign);
  void UpdateNeeds(std::size_t node, std::size_t type);
  std::int64_t OthersNeed(const Sibling& of) const;
  std::optional<QueueDenial> Stopped(std::size_t node) const;
  std::optional<QueueDenial> TooMany(std::size_t node, std::int64_t gangs) const;
  std::optional<QueueDenial> Beyond(std::size_t queue, std::size_t type, std::int64_t more,
                                    std::int64_t free) const;
  std::optional<QueueDenial> BeyondLater(const std::string& queue, const Eighths& gang,
                                         WallTime until) const;

  QueueTree tree_;
  std::vector<Row> rows_ = std::vector<Row>(1);  // by the tree's indexes; `default` is there
  std::vector<std::string> types_;
  absl::flat_hash_map<std::string, std::size_t> type_index_;
  ByType free_;       // eighths
  ByType top_needs_;  // the sum of the needs of queues at the top
  std::vector<Charged> charged_;
  std::set<std::string> fallen_;
  std::vector<Later> coming_;  // by time
  bool limits_ = false;
};

}  // namespace tahoma::controller
