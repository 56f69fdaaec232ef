// The topology domains of a fabric (UltraServers or lone instances) that take part in a
// collective.
//
//   const DomainSet set(members, fabric);
//   set.groups()[1].domain;            // the second domain in order of members
//   set.kinds()[0];                  // groups that can do the same steps
//
// Thread safety: immutable after construction.

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "lib/torus/box.h"
#include "lib/torus/shape.h"
#include "sim-node/emulator/collective/domains/between_domains.h"
#include "sim-node/emulator/collective/schedule/request.h"
#include "sim-node/emulator/link/fabric.h"

namespace tahoma::sim {

class DomainSet {
 public:
  // The members of one domain. Places are their numbers in the group, in order of members.
  struct Group {
    int domain = 0;
    std::vector<std::size_t> members;  // by place: numbers in the list of members
    std::vector<Member> local;         // by place: by number in the domain, the most ranks each
    std::vector<int> nics;             // by place: thousandths of its NIC's rate, the worse one's
    torus::ChipMask through = 0;       // chips that messages inside may cross
  };
  // Groups with the same chips in the same places and alike links: they do the same inside.
  using Kind = std::vector<std::size_t>;

  // Members must be different chips of the fabric.
  DomainSet(const std::vector<Member>& members, const Fabric& fabric);

  const std::vector<Group>& groups() const { return groups_; }
  const std::vector<Kind>& kinds() const { return kinds_; }
  // Kinds of which also the NICs of the same places have the same rates.
  std::vector<Kind> KindsWithNics() const;
  std::size_t size() const { return groups_.size(); }
  // All groups have as many chips and all NICs have their rate: places of one group answer to the
  // same places of the others.
  bool even() const { return even_; }
  // The nodes of each layer whose uplinks can limit, above the groups, from the nearest on; layers
  // that keep no groups together, or all, are left out.
  const NetworkLevels& levels() const { return levels_; }
  torus::ChipIndex ChipOf(std::size_t group, std::size_t place) const;
  // Returns the group of a member's domain.
  std::size_t GroupOf(torus::ChipIndex chip) const;

 private:
  std::vector<Group> groups_;
  std::map<int, std::size_t> group_of_;  // by domain
  std::vector<Kind> kinds_;
  bool even_ = true;
  NetworkLevels levels_;
};

bool HasUnequalNics(const DomainSet::Group& group);

// The rates of all NICs of each group together, in thousandths of one.
std::vector<std::uint64_t> NicRates(const DomainSet& set);

}  // namespace tahoma::sim
