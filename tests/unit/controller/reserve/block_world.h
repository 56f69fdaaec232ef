// A book of Capacity Blocks with hosts, a clock and the shortest ways to use them, for tests.
//
//   BlockWorld world({.hosts = 4});
//   const auto block = world.Buy({.days = 7, .count = 2});
//   world.MoveTo(block->start());
//   EXPECT_EQ(world.StateOf(*block), "active");
//
// It begins on Monday, 2026-11-23, at 09:00 UTC, two and a half hours before a boundary.
//
// Scope: tests.
//
// Thread safety: belongs to one thread.

#pragma once

#include <memory>
#include <string>
#include <vector>

#include "controller/reserve/book.h"
#include "controller/reserve/search.h"

namespace tahoma::controller {

inline constexpr std::chrono::minutes kMinute{1};
inline constexpr std::chrono::hours kHour{1};
inline constexpr std::chrono::hours kDay{24};

struct Wish {
  int days = 1;
  int count = 1;
  std::string owner = "team-a";
  int start_in_days = 0;  // not before so many days from now; 0: the earliest boundary
  bool at_once = false;   // the short form that begins at once
  bool any_cell = false;
  std::string token = {};
  Tags tags = {};
  BlockTerms terms = {};
};

struct BlockWorldSetup {
  int hosts = 4;
  int cells = 1;  // the hosts are spread over them evenly
  std::string product = "u-trn2x64";
  BookOptions book = {};
  int days_later = 0;  // than 2026-11-23
};

class BlockWorld {
 public:
  using Setup = BlockWorldSetup;

  explicit BlockWorld(Setup setup = {});

  WallTime now() const { return now_; }
  BlockBook& book() { return *book_; }
  // The first boundary from now on.
  WallTime next_boundary() const;
  const Product& product() const { return *product_; }

  // Returns the offering that suits the wish best; fails the test when there is none.
  Offering Find(const Wish& wish);
  SearchAnswer Search(const Wish& wish) const;
  absl::StatusOr<std::shared_ptr<const Block>> TryToBuy(const Offering& offering, const Wish& wish);
  std::shared_ptr<const Block> Buy(const Wish& wish);
  absl::StatusOr<std::shared_ptr<const Block>> TryToExtend(const Block& block, int days,
                                                           const std::string& token = "");

  // Advances the book to a time, minute by minute never: all that is due happens in one call.
  void MoveTo(WallTime time);
  void MoveBy(std::chrono::nanoseconds time) { MoveTo(now_ + time); }
  // Sets the clock, as an operator may, and advances.
  void SetClock(WallTime time);

  static std::string NameOf(int host);
  HostState& host(int number) { return hosts_[static_cast<std::size_t>(number)]; }
  // Tells the book how a host is, and lets no time pass.
  void Tell(int number) { book_->PutHost(host(number), now_); }
  void SetHealthy(int number, bool healthy);
  // Lets a gang of `owner` run on the host; an empty owner ends it.
  void SetHeld(int number, const std::string& owner, std::optional<WallTime> until = {});

  std::shared_ptr<const Block> Now(const Block& block) { return book_->Find(block.reservation); }
  std::string StateOf(const Block& block) { return std::string(StateName(Now(block)->state)); }
  // Returns "CapacityBlockPurchased, CapacityBlockScheduled": what became of the block since the
  // last call.
  std::string NewsOf(const Block& block);
  // Ends the book, and begins another with the blocks that it has written, after the clock was set.
  void Restart() { Restart(now_); }
  void Restart(WallTime clock);

  // Fails the test when the book promises more than it has, or gives a host to two.
  void Audit();

 private:
  BookOptions options_;
  const Product* product_;
  WallTime now_;
  std::vector<HostState> hosts_;
  std::unique_ptr<BlockBook> book_;
  std::vector<BlockChange> news_;
};

}  // namespace tahoma::controller
