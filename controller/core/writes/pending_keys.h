// Keys with which something is to be done: added in any order, drained in theirs, each once.
//
//   PendingKeys<BlockKey> to_publish;
//   to_publish.Add(key);
//   for (const BlockKey& next : to_publish.DrainSorted()) Publish(next);
//
// The keys are sorted when they are drained: a controller that starts adds 100,000 keys, and a set
// would look for the place of each.
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

  std::vector<Key> DrainSorted() {
    Sort();
    return DrainUnsorted();
  }
  // Returns the keys in any order, perhaps more than once.
  std::vector<Key> DrainUnsorted() {
    sort_at_ = kSortAtLeast;
    return std::exchange(keys_, {});
  }

 private:
  static constexpr std::size_t kSortAtLeast = 1 << 18;

  // Keys that are added again and again do not take memory without a bound.
  void Sort() {
    if (!std::is_sorted(keys_.begin(), keys_.end())) std::sort(keys_.begin(), keys_.end());
    keys_.erase(std::unique(keys_.begin(), keys_.end()), keys_.end());
    sort_at_ = std::max(kSortAtLeast, 2 * keys_.size());
  }

  std::vector<Key> keys_;
  std::size_t sort_at_ = kSortAtLeast;
};

}  // namespace tahoma::controller
