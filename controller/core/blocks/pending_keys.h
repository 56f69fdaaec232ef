// Keys with which something is to be done: noted in any order, taken in theirs, each once.
//
//   PendingKeys<BlockKey> to_publish;
//   to_publish.Add(key);
//   for (const BlockKey& next : to_publish.Take()) Publish(next);
//
// They are sorted when they are taken: a controller that starts notes 100,000, and a set would look
// for the place of each.
//
// Thread safety: belongs to one thread.

#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace tahoma::controller {

template <typename Key>
class PendingKeys {
 public:
  void Add(const Key& key) {
    keys_.push_back(key);
    if (keys_.size() >= sort_at_) Sort();
  }
  bool empty() const { return keys_.empty(); }

  std::vector<Key> Take() {
    Sort();
    return TakeUnsorted();
  }
  // For whom neither order nor repetition matters.
  std::vector<Key> TakeUnsorted() {
    sort_at_ = kSortAtLeast;
    return std::exchange(keys_, {});
  }

 private:
  static constexpr std::size_t kSortAtLeast = 1 << 18;

  // Keys that are noted again and again do not take memory without a bound.
  void Sort() {
    if (!std::is_sorted(keys_.begin(), keys_.end())) std::sort(keys_.begin(), keys_.end());
    keys_.erase(std::unique(keys_.begin(), keys_.end()), keys_.end());
    sort_at_ = std::max(kSortAtLeast, 2 * keys_.size());
  }

  std::vector<Key> keys_;
  std::size_t sort_at_ = kSortAtLeast;
};

}  // namespace tahoma::controller
