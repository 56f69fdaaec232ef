// A vector and a hash map whose copies are cheap, because copies share all unchanged parts.
//
//   PersistentVector<int> a;
//   a.PushBack(1);
//   PersistentVector<int> b = a;    // copies one pointer per 512 elements
//   b.Mutable(0) = 2;               // copies eight elements and one table; a[0] is still 1
//   ForEachDifference(a, b, [&](std::size_t first, std::size_t last) { Look(first, last); });
//
// The controller publishes an immutable view of a fleet of 62,500 nodes per decision; a full copy
// would cost milliseconds.
//
// Thread safety: a copy may be read by any thread while another copy is written.

#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/hash/hash.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "lib/base/check.h"

namespace tahoma::controller {

// Marks the parts that a container may change in place: the parts made since the container was last
// copied. A copy takes the right from both sides. (A use_count() of one is no substitute: the count
// is read without ordering, and cannot show that another thread's last read is over.)
class EditRight {
 public:
  EditRight() : id_(Next()) {}
  EditRight(const EditRight& other) : id_(Next()) { other.id_.store(Next(), kRelaxed); }
  EditRight& operator=(const EditRight& other) {
    id_.store(Next(), kRelaxed);
    other.id_.store(Next(), kRelaxed);
    return *this;
  }
  std::uint64_t id() const { return id_.load(kRelaxed); }

 private:
  static constexpr auto kRelaxed = std::memory_order_relaxed;
  static std::uint64_t Next() {
    static std::atomic<std::uint64_t> last = 0;
    return last.fetch_add(1, kRelaxed) + 1;
  }
  mutable std::atomic<std::uint64_t> id_;
};

template <typename T>
class PersistentVector {
 public:
  static constexpr std::size_t kLeaf = 8;
  static constexpr std::size_t kBranch = 64;
  static constexpr std::size_t kSpan = kLeaf * kBranch;

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

  const T& operator[](std::size_t index) const {
    return root_[index / kSpan]->leaves[index % kSpan / kLeaf]->items[index % kLeaf];
  }

  // Returns an element for writing; copies the part that another vector shares.
  T& Mutable(std::size_t index) {
    TAHOMA_CHECK(index < size_);
    return Own(Own(root_[index / kSpan]).leaves[index % kSpan / kLeaf]).items[index % kLeaf];
  }

  void PushBack(T value) {
    if (size_ % kSpan == 0) root_.emplace_back();
    ++size_;
    Mutable(size_ - 1) = std::move(value);
  }

  // Calls f(first, last) for each range of at most kLeaf elements that the two do not share, in
  // ascending order. Elements of the longer vector alone are in such ranges too.
  template <typename F>
  friend void ForEachDifference(const PersistentVector& a, const PersistentVector& b, F&& f) {
    const std::size_t size = std::max(a.size_, b.size_);
    for (std::size_t first = 0; first < size;) {
      const std::size_t at = first / kSpan;
      const Branch* left = at < a.root_.size() ? a.root_[at].get() : nullptr;
      const Branch* right = at < b.root_.size() ? b.root_[at].get() : nullptr;
      const std::size_t branch_end = std::min(size, (at + 1) * kSpan);
      if (left == right) {
        first = branch_end;
        continue;
      }
      for (std::size_t i = 0; first < branch_end; ++i, first += kLeaf) {
        const Leaf* l = left != nullptr ? left->leaves[i].get() : nullptr;
        const Leaf* r = right != nullptr ? right->leaves[i].get() : nullptr;
        if (l != r) f(first, std::min(size, first + kLeaf));
      }
      first = branch_end;
    }
  }

 private:
  struct Leaf {
    std::uint64_t owner = 0;
    std::array<T, kLeaf> items;
  };
  struct Branch {
    std::uint64_t owner = 0;
    std::array<std::shared_ptr<Leaf>, kBranch> leaves;
  };

  // Returns the part behind `pointer`, after making or copying it unless it is this vector's own.
  template <typename Part>
  Part& Own(std::shared_ptr<Part>& pointer) {
    if (pointer == nullptr || pointer->owner != right_.id()) {
      pointer = pointer == nullptr ? std::make_shared<Part>() : std::make_shared<Part>(*pointer);
      pointer->owner = right_.id();
    }
    return *pointer;
  }

  EditRight right_;
  std::vector<std::shared_ptr<Branch>> root_;
  std::size_t size_ = 0;
};

// A hash map without order. The map is sharded: a change copies about size/4096 entries.
template <typename K, typename V>
class PersistentMap {
 public:
  std::size_t size() const { return size_; }

  // Returns nullptr when absent. The pointer is valid until this map is changed.
  template <typename Q>
  const V* Find(const Q& key) const {
    if (shards_.empty()) return nullptr;
    const std::shared_ptr<Shard>& shard = shards_[ShardOf(key)];
    return shard == nullptr ? nullptr : shard->Find(key);
  }

  // Adds or replaces an entry.
  void Put(const K& key, V value) {
    auto& entries = Writable(ShardOf(key)).entries;
    if (entries.insert_or_assign(key, std::move(value)).second) ++size_;
  }

  // Removes an entry. Returns whether there was such an entry.
  template <typename Q>
  bool Erase(const Q& key) {
    if (Find(key) == nullptr) return false;
    Writable(ShardOf(key)).entries.erase(key);
    --size_;
    return true;
  }

  template <typename F>
  void ForEach(F&& f) const {
    for (std::size_t i = 0; i < shards_.size(); ++i) {
      if (shards_[i] == nullptr) continue;
      for (const auto& [key, value] : shards_[i]->entries) f(key, value);
    }
  }

  // Calls f(key, const V* before, const V* after) for each entry that differs; nullptr where a map
  // lacks the key. Shards that both maps share cost nothing.
  template <typename F>
  friend void ForEachDifference(const PersistentMap& a, const PersistentMap& b, F&& f) {
    ForEachDifference(a.shards_, b.shards_, [&](std::size_t first, std::size_t last) {
      for (std::size_t i = first; i < last; ++i) {
        const Shard* before = a.FindShard(i);
        const Shard* after = b.FindShard(i);
        if (before == after) continue;
        if (before != nullptr) {
          for (const auto& [key, value] : before->entries) {
            const V* now = after == nullptr ? nullptr : after->Find(key);
            if (now == nullptr || !(*now == value)) f(key, &value, now);
          }
        }
        if (after == nullptr) continue;
        for (const auto& [key, value] : after->entries) {
          const V* none = nullptr;
          if (before == nullptr || before->Find(key) == nullptr) f(key, none, &value);
        }
      }
    });
  }

 private:
  static constexpr std::size_t kShards = 4096;
  struct Shard {
    std::uint64_t owner = 0;
    absl::flat_hash_map<K, V> entries;

    template <typename Q>
    const V* Find(const Q& key) const {
      const auto found = entries.find(key);
      return found == entries.end() ? nullptr : &found->second;
    }
  };

  const Shard* FindShard(std::size_t index) const {
    return index < shards_.size() ? shards_[index].get() : nullptr;
  }

  template <typename Q>
  static std::size_t ShardOf(const Q& key) {
    return absl::Hash<Q>{}(key) % kShards;
  }

  Shard& Writable(std::size_t index) {
    // The shards are made with the first entry: an empty map is made once per step of the core.
    while (shards_.size() < kShards) shards_.PushBack(nullptr);
    std::shared_ptr<Shard>& shard = shards_.Mutable(index);
    if (shard == nullptr || shard->owner != right_.id()) {
      shard = shard == nullptr ? std::make_shared<Shard>() : std::make_shared<Shard>(*shard);
      shard->owner = right_.id();
    }
    return *shard;
  }

  EditRight right_;
  PersistentVector<std::shared_ptr<Shard>> shards_;
  std::size_t size_ = 0;
};

}  // namespace tahoma::controller
