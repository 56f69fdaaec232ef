// A map from texts to values whose copies may share all members: the members of a JSON object
// (lib/base/json.h), the fields of a schema, a set of fields.
//
//   SharedMap<std::string, int> first;
//   first["a"] = 1;
//   first.Share();
//   auto second = first;                    // nothing is copied
//   if (second == first) …                  // nothing is compared
//   second["b"] = 2;                        // copies the table of members; `first` is as it was
//
// Sorted by the bytes of the texts, as std::map is. Members do not move when other members come or
// go, so references stay good; iterators do not outlive a change.
//
// Shared members are read-only. [], emplace, insert, erase and clear first make the members this
// map's own. A member from find(), at() or a loop may be changed only after Own(). (nlohmann finds
// and walks in the same way for reading and writing, so find() cannot tell.)
//
// Scope: the members that nlohmann::basic_json needs of its ObjectType.
//
// Thread safety: as a value; shared members may be read, shared and left by several threads.

#pragma once

#include <algorithm>
#include <atomic>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <iterator>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "lib/base/text_order.h"

namespace tahoma {

// nlohmann passes an order and an allocator, too; both are always the same.
template <typename Key, typename Value, typename...>
class SharedMap {
 public:
  using key_type = Key;
  using mapped_type = Value;
  using value_type = std::pair<const Key, Value>;
  using key_compare = std::less<>;
  using size_type = std::size_t;
  using difference_type = std::ptrdiff_t;
  using reference = value_type&;
  using const_reference = const value_type&;

 private:
  struct Node {
    template <typename... Arguments>
    explicit Node(Arguments&&... arguments) : member(std::forward<Arguments>(arguments)...) {}

    value_type member;
    std::atomic<std::uint32_t> owners = 1;  // blocks with this node
  };
  // A name's first bytes decide nearly every comparison, without a look at the name.
  struct Slot {
    std::uint64_t first;
    Node* node;
  };

 public:
  template <typename Member>
  class Cursor {
   public:
    using iterator_category = std::random_access_iterator_tag;
    using value_type = std::remove_const_t<Member>;
    using difference_type = std::ptrdiff_t;
    using pointer = Member*;
    using reference = Member&;

    Cursor() = default;
    explicit Cursor(const Slot* at) : at_(at) {}
    // An iterator is a const_iterator, too.
    template <
        typename Other,
        std::enable_if_t<std::is_same_v<const Other, Member> && !std::is_const_v<Other>, int> = 0>
    Cursor(const Cursor<Other>& other) : at_(other.at_) {}  // NOLINT(google-explicit-constructor)

    reference operator*() const { return at_->node->member; }
    pointer operator->() const { return &at_->node->member; }
    reference operator[](difference_type by) const { return at_[by].node->member; }
    Cursor& operator++() { return *this += 1; }
    Cursor& operator--() { return *this += -1; }
    Cursor operator++(int) { return std::exchange(*this, *this + 1); }
    Cursor operator--(int) { return std::exchange(*this, *this - 1); }
    Cursor& operator+=(difference_type by) {
      at_ += by;
      return *this;
    }
    Cursor& operator-=(difference_type by) { return *this += -by; }
    friend Cursor operator+(Cursor at, difference_type by) { return at += by; }
    friend Cursor operator-(Cursor at, difference_type by) { return at -= by; }
    friend difference_type operator-(Cursor a, Cursor b) { return a.at_ - b.at_; }
    friend auto operator<=>(Cursor a, Cursor b) { return a.at_ <=> b.at_; }
    friend bool operator==(Cursor a, Cursor b) { return a.at_ == b.at_; }

   private:
    friend class SharedMap;
    template <typename Other>
    friend class Cursor;
    const Slot* at_ = nullptr;
  };
  using iterator = Cursor<value_type>;
  using const_iterator = Cursor<const value_type>;

  SharedMap() = default;
  SharedMap(const SharedMap& other) : block_(Copy(other.block_)) {}
  SharedMap(SharedMap&& other) noexcept : block_(std::exchange(other.block_, nullptr)) {}
  template <typename It>
  SharedMap(It first, It last) {
    insert(first, last);
  }
  ~SharedMap() { Leave(block_); }
  SharedMap& operator=(SharedMap other) noexcept {
    std::swap(block_, other.block_);
    return *this;
  }

  bool empty() const { return size() == 0; }
  size_type size() const { return block_ == nullptr ? 0 : block_->size; }
  size_type max_size() const { return UINT32_MAX; }
  iterator begin() { return iterator(Slots()); }
  iterator end() { return iterator(Slots() + size()); }
  const_iterator begin() const { return const_iterator(Slots()); }
  const_iterator end() const { return const_iterator(Slots() + size()); }
  const_iterator cbegin() const { return begin(); }
  const_iterator cend() const { return end(); }

  iterator find(std::string_view name) { return iterator(Find(name)); }
  const_iterator find(std::string_view name) const { return const_iterator(Find(name)); }
  bool contains(std::string_view name) const { return Find(name) != Slots() + size(); }
  size_type count(std::string_view name) const { return contains(name) ? 1 : 0; }

  mapped_type& operator[](const Key& name) { return emplace(name).first->second; }
  mapped_type& operator[](Key&& name) { return emplace(std::move(name)).first->second; }

  // Adds a member, made from `value`, unless the name has a member.
  template <typename Name, typename... Arguments>
  std::pair<iterator, bool> emplace(Name&& name, Arguments&&... value) {
    const std::string_view text = name;
    const std::uint64_t first = TextLess::FirstBytes(text);
    const size_type at = LowerBound(text, first);
    OwnBlock();
    if (at < size() && block_->slots()[at].first == first &&
        SameText(block_->slots()[at].node->member.first, text)) {
      OwnNode(block_->slots()[at]);
      return {iterator(block_->slots() + at), false};
    }
    Insert(at, {first,
                new Node(std::piecewise_construct, std::forward_as_tuple(std::forward<Name>(name)),
                         std::forward_as_tuple(std::forward<Arguments>(value)...))});
    return {iterator(block_->slots() + at), true};
  }
  std::pair<iterator, bool> insert(const value_type& member) {
    return emplace(member.first, member.second);
  }
  template <typename It>
  void insert(It first, It last) {
    for (; first != last; ++first) emplace(first->first, first->second);
  }

  size_type erase(std::string_view name) {
    const Slot* const found = Find(name);
    if (found == Slots() + size()) return 0;
    erase(iterator(found));
    return 1;
  }
  iterator erase(const_iterator at) { return erase(at, at + 1); }
  iterator erase(iterator at) { return erase(at, at + 1); }
  iterator erase(const_iterator from, const_iterator to) {
    const auto begin_at = static_cast<size_type>(from.at_ - Slots());
    const auto end_at = static_cast<size_type>(to.at_ - Slots());
    if (begin_at == end_at) return iterator(Slots() + begin_at);
    OwnBlock();
    for (size_type at = begin_at; at < end_at; ++at) Leave(block_->slots()[at].node);
    std::copy(block_->slots() + end_at, block_->slots() + block_->size, block_->slots() + begin_at);
    block_->size -= static_cast<std::uint32_t>(end_at - begin_at);
    return iterator(block_->slots() + begin_at);
  }
  void clear() { Leave(std::exchange(block_, nullptr)); }

  // From now on copies share the members. Returns whether the members were not shared before.
  bool Share() {
    if (block_ == nullptr || block_->shared) return false;
    block_->shared = true;
    return true;
  }
  // Whether a member may belong to another map, too.
  bool shares() const { return block_ != nullptr && (block_->shared || block_->mixed); }
  // Whether no other map has all of these members.
  bool sole() const {
    return block_ == nullptr || block_->owners.load(std::memory_order_acquire) == 1;
  }
  // Makes all members this map's own, free to be changed.
  void Own() {
    OwnBlock();
    if (block_ == nullptr || !block_->mixed) return;
    for (size_type at = 0; at < block_->size; ++at) OwnNode(block_->slots()[at]);
    block_->mixed = false;
  }

  friend bool operator==(const SharedMap& a, const SharedMap& b) {
    if (a.block_ == b.block_) return true;
    if (a.size() != b.size()) return false;
    const auto equal = [](const Slot& one, const Slot& other) {
      if (one.node == other.node) return true;
      return one.first == other.first &&
             SameText(one.node->member.first, other.node->member.first) &&
             one.node->member.second == other.node->member.second;
    };
    return std::equal(a.Slots(), a.Slots() + a.size(), b.Slots(), equal);
  }
  friend std::partial_ordering operator<=>(const SharedMap& a, const SharedMap& b) {
    return std::lexicographical_compare_three_way(
        a.begin(), a.end(), b.begin(), b.end(),
        [](const_reference one, const_reference other) -> std::partial_ordering {
          if (one.first != other.first) return one.first <=> other.first;
          return one.second <=> other.second;
        });
  }

 private:
  struct alignas(Slot) Block {
    std::atomic<std::uint32_t> owners = 1;
    bool shared = false;  // read-only; set while there is a single owner
    bool mixed = false;   // some nodes may belong to other blocks, too
    std::uint32_t size = 0;
    std::uint32_t capacity = 0;
    // As many slots as the capacity, behind the block.
    Slot* slots() { return reinterpret_cast<Slot*>(this + 1); }
    const Slot* slots() const { return reinterpret_cast<const Slot*>(this + 1); }
  };
  static constexpr std::uint32_t kCapacityLeast = 4;
  static constexpr size_type kFew = 16;  // up to so many members a linear search is faster

  static Block* Make(std::uint32_t capacity) {
    auto* const block = new (::operator new(sizeof(Block) + capacity * sizeof(Slot))) Block;
    block->capacity = capacity;
    return block;
  }
  static void Free(Block* block) {
    block->~Block();
    ::operator delete(block);
  }
  // Shares a shared block. Otherwise copies the nodes of this block alone, because these may
  // change.
  static Block* Copy(Block* from) {
    if (from == nullptr || from->size == 0) return nullptr;
    if (from->shared) {
      from->owners.fetch_add(1, std::memory_order_relaxed);
      return from;
    }
    Block* const block = Make(from->size);
    for (; block->size < from->size; ++block->size) {
      const Slot& slot = from->slots()[block->size];
      const bool both = from->mixed && slot.node->owners.load(std::memory_order_acquire) != 1;
      block->mixed = block->mixed || both;
      block->slots()[block->size] = {slot.first,
                                     both ? Join(slot.node) : new Node(slot.node->member)};
    }
    return block;
  }
  static Node* Join(Node* node) {
    node->owners.fetch_add(1, std::memory_order_relaxed);
    return node;
  }
  static void Leave(Node* node) {
    if (node->owners.load(std::memory_order_acquire) == 1 ||
        node->owners.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      delete node;
    }
  }
  static void Leave(Block* block) {
    if (block == nullptr) return;
    if (block->shared && block->owners.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    for (std::uint32_t at = 0; at < block->size; ++at) Leave(block->slots()[at].node);
    Free(block);
  }

  // Makes the block this map's own; its nodes may still belong to other blocks, too.
  void OwnBlock() {
    if (block_ == nullptr || !block_->shared) return;
    if (sole()) {
      block_->shared = false;
    } else {
      Block* const block = Make(block_->size + 1);
      for (; block->size < block_->size; ++block->size) {
        const Slot& slot = block_->slots()[block->size];
        block->slots()[block->size] = {slot.first, Join(slot.node)};
      }
      Leave(std::exchange(block_, block));
    }
    block_->mixed = true;
  }
  void OwnNode(Slot& slot) {
    if (!block_->mixed || slot.node->owners.load(std::memory_order_acquire) == 1) return;
    Leave(std::exchange(slot.node, new Node(slot.node->member)));
  }

  void Insert(size_type at, Slot slot) {
    if (block_ == nullptr) block_ = Make(kCapacityLeast);
    if (block_->size == block_->capacity) {
      Block* const larger = Make(std::max(kCapacityLeast, 2 * block_->capacity));
      std::copy(block_->slots(), block_->slots() + block_->size, larger->slots());
      larger->size = block_->size;
      larger->mixed = block_->mixed;
      Free(std::exchange(block_, larger));
    }
    Slot* const place = block_->slots() + at;
    std::copy_backward(place, block_->slots() + block_->size, block_->slots() + block_->size + 1);
    *place = slot;
    ++block_->size;
  }

  const Slot* Slots() const { return block_ == nullptr ? nullptr : block_->slots(); }
  // Returns the place of the name, or where to insert the name. All names may begin with the same
  // bytes, as the items of a keyed list do in managed fields, so first bytes alone do not find the
  // place.
  size_type LowerBound(std::string_view text, std::uint64_t first) const {
    const Slot* const slots = Slots();
    const auto is_before = [&](const Slot& slot) {
      return slot.first != first ? slot.first < first : TextLess()(slot.node->member.first, text);
    };
    size_type low = 0;
    size_type high = size();
    while (high - low > kFew) {
      const size_type middle = (low + high) / 2;
      (is_before(slots[middle]) ? low : high) = middle;
    }
    while (low < high && is_before(slots[low])) ++low;
    return low;
  }
  const Slot* Find(std::string_view text) const {
    const std::uint64_t first = TextLess::FirstBytes(text);
    const Slot* const end = Slots() + size();
    const auto is_there = [&](const Slot& slot) {
      return slot.first == first && SameText(slot.node->member.first, text);
    };
    if (size() > kFew) {
      const Slot* const at = Slots() + LowerBound(text, first);
      return at != end && is_there(*at) ? at : end;
    }
    for (const Slot* at = Slots(); at != end && at->first <= first; ++at) {
      if (is_there(*at)) return at;
    }
    return end;
  }
  // Compares texts with equal first bytes.
  static bool SameText(std::string_view a, std::string_view b) {
    constexpr size_type kFirst = sizeof(std::uint64_t);
    return a.size() == b.size() &&
           (a.size() <= kFirst ||
            std::memcmp(a.data() + kFirst, b.data() + kFirst, a.size() - kFirst) == 0);
  }

  Block* block_ = nullptr;  // null: no members
};

}  // namespace tahoma
