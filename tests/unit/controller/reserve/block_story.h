// A small fleet in which every event of Capacity Blocks happens, in an order given by numbers, with
// an auditor that checks everything after each step.
//
//   BlockStory story({.hosts = 6, .cells = 2});
//   story.Do({.what = 0, .a = 2, .b = 1});       // buys a block
//   story.auditor().violations();
//
// All numbers are valid: each stands for an event that is possible at that moment. A sequence that
// finds a fault can therefore be made smaller: fewer steps, smaller numbers.
//
// Scope: tests.
//
// Thread safety: belongs to one thread.

#pragma once

#include <memory>
#include <string>
#include <vector>

#include "controller/reserve/book.h"
#include "tests/unit/controller/reserve/block_auditor.h"

namespace tahoma::controller {

struct StoryStep {
  unsigned what = 0;
  unsigned a = 0, b = 0, c = 0;
};

struct StorySetup {
  int hosts = 4;
  int cells = 1;
  bool ultra_servers = true;
  int one_spare_in = 32;
  std::chrono::minutes payment_delay{0};
};

class BlockStory {
 public:
  explicit BlockStory(const StorySetup& setup);

  // Does the step, advances the book and audits it.
  void Do(const StoryStep& step);

  const BlockAuditor& auditor() const { return auditor_; }
  const BlockBook& book() const { return *book_; }
  WallTime clock() const { return clock_; }

 private:
  void Buy(const StoryStep& step);
  void Extend(const StoryStep& step);
  void MoveClock(const StoryStep& step);
  void BreakOrRepair(const StoryStep& step);
  void Hold(const StoryStep& step);
  void Restart(const StoryStep& step);
  void SetTerms(const StoryStep& step);
  void SetQuota(const StoryStep& step);
  void MoveOrRemove(const StoryStep& step);
  void Forget(const StoryStep& step);

  void Tell(const HostState& host);
  const Block* Pick(unsigned number) const;  // nullptr when there are no blocks

  BookOptions options_;
  const Product* product_;
  int cells_;
  WallTime clock_;
  std::unique_ptr<BlockBook> book_;
  BlockAuditor auditor_;
  std::vector<HostState> hosts_;
  std::string last_offering_;  // a later order may name the offering again
  int tokens_ = 0;
};

}  // namespace tahoma::controller
