// The EFA network between topology domains: a NIC for each chip, joined by three network
// layers.
//
//   const EfaNetwork network({64, 64}, {{.node = {0, 0, 0}}, {.node = {0, 0, 1}}},
//                            hw::kTrainium2.links.efa, {});
//   network.NicOf({1, 5}, NicDirection::kOut);   // the transmit side of chip 5 of domain 1
//   network.FindRoute({0, 5}, {1, 5});           // both NICs and the uplinks between
//
// A domain (an UltraServer or a lone instance) is attached to one node of layer 3, the nearest to
// it; a node of layer 3 under one of layer 2, that under one of layer 1, and all nodes of layer 1
// are joined. EC2 numbers networkNodeLayer1..3 in this order. Messages between domains take no
// NeuronLink.
//
// Scope: rates, states and routes by domain and chip. fabric.h joins this with the tori.
//
// Thread safety: const members may run together; SetPermille needs the object alone.

#pragma once

#include <absl/status/statusor.h>

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sim-node/emulator/engine/virtual_time.h"
#include "sim-node/emulator/link/torus_links.h"

namespace tahoma::sim {

inline constexpr std::size_t kNetworkLayers = 3;

// The nodes of layers 1, 2 and 3 above a domain. Their numbers are arbitrary; a node has one
// parent.
struct NetworkPlace {
  std::array<int, kNetworkLayers> node = {0, 0, 0};
  friend bool operator==(const NetworkPlace&, const NetworkPlace&) = default;
};

// The children of each node: domains under layer 3, nodes of layer 3 under layer 2, ... (all at
// least 1). AWS publishes no sizes of layers.
struct LayerSizes {
  int domains_under_layer3 = 1;
  int layer3_under_layer2 = 1;
  int layer2_under_layer1 = 1;
};
std::vector<NetworkPlace> RegularPlaces(int domains, const LayerSizes& sizes);

// kInvalidArgument naming the node when one would have two parents.
absl::Status CheckPlaces(std::span<const NetworkPlace> places);

struct EfaTiming {
  // HBM to HBM for a packet of no length, software included.
  VirtualDuration packet = hw::kMessageCosts.efa;
  // The additional latency for each layer that a message climbs above the nearest. AWS publishes
  // one number for all distances, so it is zero unless configured.
  VirtualDuration layer{};
  // Rates of the NICs below a node over the rate of its uplink, in thousandths, for layers 1, 2 and
  // 3; 1000 and less: no uplink can be full before a NIC is.
  std::array<std::uint32_t, kNetworkLayers> oversubscription_permille = {1000, 1000, 1000};
  friend bool operator==(const EfaTiming&, const EfaTiming&) = default;
};

enum class NicDirection : std::uint8_t { kOut, kIn };  // for uplinks: up and down

// A chip of a domain, by its number in the domain's torus.
struct DomainChip {
  int domain = 0;
  int chip = 0;
};

class EfaNetwork {
 public:
  // A network without domains.
  EfaNetwork() = default;
  // One entry for each domain in both lists; places must be right (CheckPlaces) and chip counts
  // positive. `nic_rate` is bytes per second of a NIC in one direction.
  EfaNetwork(std::vector<int> chips, const std::vector<NetworkPlace>& places,
             std::uint64_t nic_rate, const EfaTiming& timing);

  const EfaTiming& timing() const { return timing_; }
  // Ids of NICs and uplinks run from 0 to here: they are this network's own.
  LinkId id_count() const { return static_cast<LinkId>(rate_.size()); }
  LinkId NicOf(DomainChip chip, NicDirection direction) const;
  // The uplink of the node of `layer` (1 to 3) above the domain.
  LinkId UplinkOf(int domain, int layer, NicDirection direction) const;
  // "domain 1 chip 5 EFA out", "layer 2 node 7 up".
  std::string Name(LinkId link) const;

  // kInvalidArgument for an id that names no link or more than 1000 thousandths.
  absl::Status SetPermille(LinkId link, std::uint16_t permille);
  std::uint16_t permille(LinkId link) const { return permille_[link]; }
  bool damaged() const;
  // Whether any uplink can be full before a NIC is; any of this layer (1 to 3).
  bool UplinksLimit() const;
  bool UplinksLimit(int layer) const;
  std::uint64_t capacity(LinkId link) const { return capacity_[link]; }
  std::span<const std::uint64_t> capacities() const { return capacity_; }

  // Returns the links of a message between chips of different domains: both NICs, and those uplinks
  // between them that can limit it. kFailedPrecondition naming the first that is down.
  absl::StatusOr<std::vector<LinkId>> FindRoute(DomainChip from, DomainChip to) const;
  // Returns the time from the departure to the arrival of the first byte; `step` is the part of the
  // packet's time that is spent before departure.
  VirtualDuration Latency(int from_domain, int to_domain, VirtualDuration step) const {
    return Latency(LayersClimbed(from_domain, to_domain), step);
  }
  VirtualDuration Latency(int layers, VirtualDuration step) const;
  // Returns the number of layers below the first node that is above both domains, all three when
  // there is none: a message between them crosses their uplinks.
  int LayersClimbed(int domain, int other) const;
  // Whether an uplink can be full before the NICs below it are.
  bool CanLimit(LinkId uplink) const;

 private:
  struct Node {
    int layer = 1;
    int number = 0;
    std::uint64_t nic_rate = 0;  // of all NICs below
  };
  EfaTiming timing_;
  std::vector<NetworkPlace> places_;
  std::vector<LinkId> first_chip_;  // of each domain, counted through them; one more at the end
  std::vector<Node> nodes_;
  std::vector<std::array<std::uint32_t, kNetworkLayers>> node_of_domain_;  // into nodes_
  std::vector<std::uint64_t> rate_;
  std::vector<std::uint16_t> permille_;
  std::vector<std::uint64_t> capacity_;  // rate x permille
};

}  // namespace tahoma::sim
