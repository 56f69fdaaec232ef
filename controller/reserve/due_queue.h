// The blocks in the order in which time changes them: by due, and at one moment by id.
//
// The blocks of a moment are sorted at the first look, not before: a controller that starts adds
// 100,000 blocks and looks at the first few.
//
// Thread safety: belongs to one thread.

#pragma once

#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "controller/reserve/block.h"
#include "lib/base/check.h"

namespace tahoma::controller {

class DueQueue {
 public:
  // A block may not be added twice with the same due.
  void Add(const Due& due, const std::string& id) { moments_[due].added.push_back(id); }

  void Remove(const Due& due, const std::string& id) {
    const auto moment = moments_.find(due);
    TAHOMA_CHECK(moment != moments_.end());
    std::set<std::string>& sorted = Sorted(moment->second);
    TAHOMA_CHECK(sorted.erase(id) == 1);
    if (sorted.empty()) moments_.erase(moment);
  }

  bool empty() const { return moments_.empty(); }
  // nullopt when nothing is due ever.
  std::optional<Due> FirstDue() const {
    return empty() ? std::nullopt : std::optional(moments_.begin()->first);
  }
  // The first by due and id. The queue may not be empty.
  std::pair<Due, std::string> First() {
    TAHOMA_CHECK(!empty());
    return {moments_.begin()->first, *Sorted(moments_.begin()->second).begin()};
  }
  bool Has(const Due& due, const std::string& id) {
    const auto moment = moments_.find(due);
    return moment != moments_.end() && Sorted(moment->second).contains(id);
  }

 private:
  struct Moment {
    std::set<std::string> sorted;
    std::vector<std::string> added;  // since the last look
  };

  static std::set<std::string>& Sorted(Moment& moment) {
    moment.sorted.insert(std::make_move_iterator(moment.added.begin()),
                         std::make_move_iterator(moment.added.end()));
    moment.added.clear();
    return moment.sorted;
  }

  std::map<Due, Moment> moments_;  // no moment is empty
};

}  // namespace tahoma::controller
