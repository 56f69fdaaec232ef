// Names and numbers of the things that the controller decides about, each its own type.
//
//   GangKey gang{"default", "train"};      // never confused with a PodKey
//   NodeId node(17);                       // dense, from 0: an index into ClusterState's nodes
//   ToString(gang);                        // "default/train"
//
// Scope: identity only. NodeId and DomainId mean something only inside one ClusterState and its
// copies; they are never stored or sent.
//
// Thread safety: values.

#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <utility>

namespace tahoma::controller {

template <typename Tag>
class Index {
 public:
  constexpr Index() = default;
  explicit constexpr Index(std::size_t value) : value_(static_cast<std::uint32_t>(value)) {}
  constexpr std::uint32_t value() const { return value_; }
  constexpr bool valid() const { return value_ != kNone; }
  friend constexpr auto operator<=>(Index, Index) = default;

  template <typename H>
  friend H AbslHashValue(H h, Index index) {
    return H::combine(std::move(h), index.value_);
  }

 private:
  static constexpr std::uint32_t kNone = 0xffffffffU;
  std::uint32_t value_ = kNone;
};

using NodeId = Index<struct NodeTag>;
using DomainId = Index<struct DomainTag>;

// A namespaced Kubernetes name.
template <typename Tag>
struct Key {
  std::string ns;
  std::string name;

  friend auto operator<=>(const Key&, const Key&) = default;

  template <typename H>
  friend H AbslHashValue(H h, const Key& key) {
    return H::combine(std::move(h), key.ns, key.name);
  }
};

using GangKey = Key<struct GangTag>;
using PodKey = Key<struct PodTag>;
using ClaimKey = Key<struct ClaimTag>;

template <typename Tag>
std::string ToString(const Key<Tag>& key) {
  return key.ns + "/" + key.name;
}

}  // namespace tahoma::controller
