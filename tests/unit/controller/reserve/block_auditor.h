// Follows a book of Capacity Blocks, keeps its journal, and reports forbidden changes.
//
//   BlockAuditor auditor;
//   auditor.OnHost(state);                      // as the book was told
//   book.Advance(now);
//   auditor.Follow(book);                       // each change, against the earlier state
//   auditor.Audit(book);                        // everything, counted again from the journal
//   EXPECT_THAT(auditor.violations(), IsEmpty());
//
// The auditor counts by rules of its own, from docs/reference/capacity-blocks.md.
//
// Scope: tests. Follow costs as much as the changes, Audit as much as all blocks and slots.
//
// Thread safety: belongs to one thread.

#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "controller/reserve/book.h"

namespace tahoma::controller {

class BlockAuditor {
 public:
  using Journal = std::map<std::string, std::shared_ptr<const Block>>;

  void OnHost(const HostState& state) { hosts_[state.name] = state; }
  void OnHostGone(const std::string& name) { hosts_.erase(name); }
  void OnQuota(const std::string& owner, const Quota& quota) { quotas_[owner] = quota; }
  // The owner of the book has forgotten a block.
  void OnForgotten(const std::string& reservation);

  // Takes the book's changes into the journal. Returns how many there were.
  std::size_t Follow(BlockBook& book);
  // Takes a single change.
  void Take(const BlockBook& book, const BlockChange& change);
  // Compares the whole book and its derived state with the journal, after Advance.
  void Audit(const BlockBook& book);

  const std::map<std::string, Quota>& quotas() const { return quotas_; }
  // Every block in its last recorded state: what a restart finds.
  const Journal& journal() const { return journal_; }
  const std::vector<std::string>& violations() const { return violations_; }
  std::size_t changes() const { return changes_; }
  // The cost of all blocks that were ever sold and paid.
  Money turnover() const { return turnover_; }

 private:
  using Table = std::vector<std::vector<int>>;  // hosts by pool and slot from today on
  struct Right {
    std::string reservation;
    WallTime start;
    WallTime end;
  };

  void Check(bool holds, const Block& block, const char* rule);
  void CheckFirst(const BlockBook& book, const Block& block);
  void CheckStep(const BlockBook& book, const Block& before, const Block& after);
  void CheckRoom(const BlockBook& book, const Block& block, SlotRange slots);
  void CheckQuota(const Block& block, SlotRange slots);
  void CheckFee(const Block& before, const Block& after);
  void CheckOnce(const BlockChange& change);
  void MoveHeld(const Block* before, const Block& after);
  void MoveRights(const Block* before, const Block& after);
  void CheckTimes(const Block& block, WallTime now);
  void CheckWake(const BlockBook& book);
  void CheckCounts(const BlockBook& book);
  void CountOccupied(const TimeProfile& profile, WallTime now, Table& table,
                     std::vector<int>& doubtful) const;

  Journal journal_;
  std::unordered_map<std::string, HostState> hosts_;
  std::map<std::string, Quota> quotas_;
  std::unordered_map<std::string, std::vector<Right>> rights_;   // by host
  std::unordered_map<std::string, std::set<std::string>> done_;  // milestones, by reservation
  std::map<std::string, std::map<Slot, int>> held_;              // instances by owner and slot
  Money turnover_;
  std::size_t changes_ = 0;
  std::vector<std::string> violations_;
};

}  // namespace tahoma::controller
