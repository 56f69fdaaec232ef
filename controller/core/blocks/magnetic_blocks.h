// The Capacity Blocks that draw gangs without a named block.
//
// A block draws while it is active, magnetic and not being taken back: gangs of its owner's
// namespace and of the namespaces with access to the block. The block with the earliest end comes
// first: the remaining blocks last longest.
//
// Scope: which blocks. Whether a gang fits is the planner's to say.
//
// Thread safety: belongs to one thread.

#pragma once

#include <absl/container/flat_hash_map.h>

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "controller/core/facts/gang_membership.h"
#include "controller/reserve/block.h"
#include "lib/base/clock.h"

namespace tahoma::controller {

class MagneticBlocks {
 public:
  // The most blocks to which a gang is offered.
  static constexpr std::size_t kOffersMost = 8;

  void OnChange(const Block& block);
  void Forget(const std::string& reservation);
  // Returns the reservations of blocks that draw gangs of the namespace, at most kOffersMost.
  std::vector<std::string> DrawingFor(const std::string& ns) const;
  // Remembers a gang that was asked for; the gang is touched when the answer may change.
  void NoteAsked(const GangRef& ref) { asked_[ref.key.ns].insert(ref); }
  // Forgets a gang that waits no more.
  void ForgetAsked(const GangRef& ref);
  std::vector<GangRef> DrainTouched() { return std::exchange(touched_, {}); }

 private:
  struct Drawing {
    WallTime end;
    std::vector<std::string> namespaces;
    std::vector<std::string> hosts;

    friend bool operator==(const Drawing&, const Drawing&) = default;
  };

  void Touch(const Drawing& drawing);

  absl::flat_hash_map<std::string, Drawing> drawing_;  // by reservation
  absl::flat_hash_map<std::string, std::set<std::pair<WallTime, std::string>>> by_namespace_;
  absl::flat_hash_map<std::string, std::set<GangRef>> asked_;  // by namespace
  std::vector<GangRef> touched_;
};

}  // namespace tahoma::controller
