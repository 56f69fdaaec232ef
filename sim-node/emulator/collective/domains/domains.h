// The topology domains of a fabric (UltraServers or lone instances) that take part in a
// collective.
//
// Thread safety: immutable after construction.

#pragma once

#include <absl/status/status.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "lib/torus/box.h"
#include "lib/torus/shape.h"
#include "sim-node/emulator/collective/schedule/request.h"
#include "sim-node/emulator/link/fabric.h"

namespace tahoma::sim {

class DomainSet {
 public:
  // The members of one domain. Places are their numbers in the group, in order of members.
  struct Group {
    int domain = 0;
    std::vector<std::size_t> members;  // by place: numbers in the list of members
    std::vector<Member> local;         // by place: by number in the domain, as the fullest chip
    std::vector<int> nics;             // by place: thousandths of its NIC's rate, the worse one's
    std::vector<std::size_t> proxies;  // by place: the place whose NIC serves it (nic_proxies.h)
    torus::ChipMask through = 0;       // chips that messages inside may cross
  };
  // Groups with the same chips in the same places and alike links: such groups do the same inside.
  using Kind = std::vector<std::size_t>;

  // Members must be different chips of the fabric.
  DomainSet(const std::vector<Member>& members, const Fabric& fabric);

  const std::vector<Group>& groups() const { return groups_; }
  const std::vector<Kind>& kinds() const { return kinds_; }
  std::size_t size() const { return groups_.size(); }
  // The HBM banks of the fullest chip, which count for all.
  int banks() const { return banks_; }
  // All groups have as many chips and all NICs serve their own: places of one group answer to the
  // same places of the others.
  bool even() const { return even_; }
  torus::ChipIndex ChipOf(std::size_t group, std::size_t place) const;
  // Returns the member whose NIC serves this one.
  torus::ChipIndex ProxyOf(torus::ChipIndex chip) const;
  // Returns the group of a member's domain.
  std::size_t GroupOf(torus::ChipIndex chip) const;

 private:
  std::vector<Group> groups_;
  std::map<int, std::size_t> group_of_;  // by domain
  std::vector<Kind> kinds_;
  bool even_ = true;
  int banks_ = collective::kHbmBanksMax;
};

// Whether a place's NIC does not serve it.
bool HasProxies(const DomainSet::Group& group);

// kFailedPrecondition when no chip of the group has a NIC that is up.
absl::Status CheckNics(const DomainSet::Group& group);

}  // namespace tahoma::sim
