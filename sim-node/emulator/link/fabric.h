// Many tori joined by EFA: the links of an UltraCluster, or of any number of them.
//
//   const TorusLinks ultra(torus::kUltraServerShape, hw::kTrainium2.links);
//   Fabric fabric(std::vector<TorusLinks>(32, ultra), hw::kTrainium2.links.efa);   // 2,048 chips
//   fabric.SetPermille(fabric.NicOf(Fabric::ChipOf(3, 5), NicDirection::kOut), 0);
//   const Fabric one(ultra);                       // one torus is a fabric without EFA
//
// A topology domain has a torus of its own: an UltraServer or a lone instance. Chips are
// numbered domain * 64 + number in the torus, so a fabric of one domain numbers chips as the domain
// does; links are numbered through the domains, then come NICs and uplinks. Messages within a
// domain take NeuronLinks, between domains EFA: the two share nothing but the chips' memory.
//
// Scope: states and names. Routes are the parts' (torus_links.h, efa_network.h), sharing and times
// transfer.h.
//
// Thread safety: const members may run together; SetPermille needs the object alone. Copies are
// cheap: they share domains that neither has changed since.

#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lib/torus/shape.h"
#include "sim-node/emulator/engine/virtual_time.h"
#include "sim-node/emulator/link/efa_network.h"
#include "sim-node/emulator/link/torus_links.h"

namespace tahoma::sim {

class Fabric {
 public:
  // The chip numbers that a domain takes up, whatever its size.
  static constexpr int kChipsPerDomain = 64;

  explicit Fabric(TorusLinks domain);
  // `nic_rate` as in EfaNetwork. Domains must agree in timing(). Without places all domains are
  // attached to one node of layer 3.
  Fabric(std::vector<TorusLinks> domains, std::int64_t nic_rate, const EfaTiming& efa = {},
         std::vector<NetworkPlace> places = {});

  static torus::ChipIndex ChipOf(int domain, int chip) {
    return torus::ChipIndex(domain * kChipsPerDomain + chip);
  }
  static int DomainOf(torus::ChipIndex chip) { return chip.value() / kChipsPerDomain; }
  static torus::ChipIndex LocalOf(torus::ChipIndex chip) {
    return torus::ChipIndex(chip.value() % kChipsPerDomain);
  }
  static DomainChip Split(torus::ChipIndex chip) {
    return {.domain = DomainOf(chip), .chip = LocalOf(chip).value()};
  }

  int domain_count() const { return static_cast<int>(domains_.size()); }
  const TorusLinks& domain(int domain) const {
    return *domains_.at(static_cast<std::size_t>(domain));
  }
  const EfaNetwork& efa() const { return efa_; }
  // Whether EFA joins the domains.
  bool has_efa() const { return efa_.id_count() > 0; }
  const LinkTiming& timing() const { return domains_.front()->timing(); }
  bool Contains(torus::ChipIndex chip) const;
  // Whether the tori of both have the same shape and their links the same rates now.
  bool Alike(int domain, int other) const;

  LinkId id_count() const { return first_link_.back() + efa_.id_count(); }
  LinkId LinkOf(torus::ChipIndex from, torus::Axis axis, torus::Direction direction) const;
  // The id of a NeuronLink with this number in the domain.
  LinkId LinkOf(int domain, LinkId link) const;
  LinkId NicOf(torus::ChipIndex chip, NicDirection direction) const;
  // The uplink of the node of `layer` (1 to 3) above the domain.
  LinkId UplinkOf(int domain, int layer, NicDirection direction) const;
  // Names the link as its torus or network does; with several domains "domain 2 chip 5 x+".
  std::string Name(LinkId link) const;

  // The place of a link: a domain, or domain_count() for the EFA network, and its id there.
  struct Place {
    int island = 0;
    LinkId link = 0;
  };
  // kInvalidArgument for an id beyond id_count().
  absl::StatusOr<Place> Find(LinkId link) const;

  bool Exists(LinkId link) const;
  std::uint16_t permille(LinkId link) const;
  std::uint64_t capacity(LinkId link) const;
  // kInvalidArgument for an id that names no link or more than 1000 thousandths.
  absl::Status SetPermille(LinkId link, std::uint16_t permille);
  // Sets the loss of a link as TorusLinks::SetLoss does; kInvalidArgument also for a link of the
  // EFA network, whose protocol hides losses.
  absl::Status SetLoss(LinkId link, std::uint32_t loss_ppm);
  // SetPermille for all links of a chip, in both directions, and its NIC.
  absl::Status SetChipPermille(torus::ChipIndex chip, std::uint16_t permille);
  // Sets the rate of a chip's NIC in both directions; does nothing in a fabric without EFA.
  absl::Status SetNicPermille(torus::ChipIndex chip, std::uint16_t permille);

 private:
  template <typename Change>
  absl::Status ChangeDomain(int domain, const Change& change);

  std::vector<std::shared_ptr<const TorusLinks>> domains_;
  std::vector<LinkId> first_link_;  // of each domain; one more at the end
  EfaNetwork efa_;
};

}  // namespace tahoma::sim
