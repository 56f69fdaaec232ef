#include "sim-node/emulator/link/efa_network.h"

#include <algorithm>
#include <map>
#include <utility>

#include "lib/base/check.h"
#include "lib/base/status.h"

namespace tahoma::sim {
namespace {

constexpr LinkId kDirections = 2;  // ids of a NIC or an uplink: out and in

constexpr LinkId Offset(NicDirection direction) { return static_cast<LinkId>(direction); }

}  // namespace

std::vector<NetworkPlace> RegularPlaces(int domains, const LayerSizes& sizes) {
  TAHOMA_CHECK(sizes.domains_under_layer3 > 0 && sizes.layer3_under_layer2 > 0 &&
               sizes.layer2_under_layer1 > 0);
  std::vector<NetworkPlace> places;
  for (int domain = 0; domain < domains; ++domain) {
    const int layer3 = domain / sizes.domains_under_layer3;
    const int layer2 = layer3 / sizes.layer3_under_layer2;
    places.push_back({.node = {layer2 / sizes.layer2_under_layer1, layer2, layer3}});
  }
  return places;
}

absl::Status CheckPlaces(std::span<const NetworkPlace> places) {
  std::map<std::pair<std::size_t, int>, int> parents;
  for (const NetworkPlace& place : places) {
    for (std::size_t below = 1; below < kNetworkLayers; ++below) {
      const int parent = place.node.at(below - 1);
      const auto [entry, added] = parents.try_emplace({below, place.node.at(below)}, parent);
      if (entry->second == parent) continue;
      return InvalidArgument("node {} of network layer {} is under nodes {} and {} of layer {}",
                             place.node.at(below), below + 1, entry->second, parent, below);
    }
  }
  return absl::OkStatus();
}

EfaNetwork::EfaNetwork(std::vector<int> chips, const std::vector<NetworkPlace>& places,
                       std::uint64_t nic_rate, const EfaTiming& timing)
    : timing_(timing), places_(places), first_chip_({0}) {
  TAHOMA_CHECK(chips.size() == places.size() && CheckPlaces(places).ok() && nic_rate > 0);
  std::map<std::pair<int, int>, std::uint32_t> known;  // by layer and number
  for (std::size_t domain = 0; domain < chips.size(); ++domain) {
    TAHOMA_CHECK(chips[domain] > 0);
    first_chip_.push_back(first_chip_.back() + static_cast<LinkId>(chips[domain]));
    auto& above = node_of_domain_.emplace_back();
    for (std::size_t i = 0; i < kNetworkLayers; ++i) {
      const int layer = static_cast<int>(i) + 1;
      const int number = places[domain].node.at(i);
      const auto [entry, added] =
          known.try_emplace({layer, number}, static_cast<std::uint32_t>(nodes_.size()));
      if (added) nodes_.push_back({.layer = layer, .number = number});
      above.at(i) = entry->second;
      nodes_[entry->second].nic_rate += nic_rate * static_cast<std::uint64_t>(chips[domain]);
    }
  }
  rate_.assign(std::size_t{first_chip_.back()} * kDirections, nic_rate);
  for (const Node& node : nodes_) {
    const std::uint32_t over =
        timing.oversubscription_permille.at(static_cast<std::size_t>(node.layer - 1));
    TAHOMA_CHECK(over > 0);
    rate_.insert(rate_.end(), kDirections,
                 static_cast<std::uint64_t>(static_cast<Wide>(node.nic_rate) * 1000 / over));
  }
  permille_.assign(rate_.size(), TorusLinks::kHealthy);
  capacity_ = rate_;
}

LinkId EfaNetwork::NicOf(DomainChip chip, NicDirection direction) const {
  const auto domain = static_cast<std::size_t>(chip.domain);
  const LinkId number = first_chip_.at(domain) + static_cast<LinkId>(chip.chip);
  TAHOMA_CHECK(number < first_chip_.at(domain + 1));
  return number * kDirections + Offset(direction);
}

LinkId EfaNetwork::UplinkOf(int domain, int layer, NicDirection direction) const {
  const std::uint32_t node =
      node_of_domain_.at(static_cast<std::size_t>(domain)).at(static_cast<std::size_t>(layer - 1));
  return (first_chip_.back() + node) * kDirections + Offset(direction);
}

std::string EfaNetwork::Name(LinkId link) const {
  const LinkId owner = link / kDirections;
  const bool out = link % kDirections == Offset(NicDirection::kOut);
  if (owner >= first_chip_.back()) {
    const Node& node = nodes_.at(owner - first_chip_.back());
    return fmt::format("layer {} node {} {}", node.layer, node.number, out ? "up" : "down");
  }
  const auto after = std::upper_bound(first_chip_.begin(), first_chip_.end(), owner);
  const auto domain = after - first_chip_.begin() - 1;
  return fmt::format("domain {} chip {} EFA {}", domain, owner - *(after - 1), out ? "out" : "in");
}

absl::Status EfaNetwork::SetPermille(LinkId link, std::uint16_t permille) {
  if (link >= id_count()) {
    return InvalidArgument("link {} does not exist in an EFA network of {} links", link,
                           id_count());
  }
  if (permille > TorusLinks::kHealthy) {
    return InvalidArgument("a link's rate is {} thousandths; expected 0 to 1000", permille);
  }
  permille_[link] = permille;
  capacity_[link] = static_cast<std::uint64_t>(static_cast<Wide>(rate_[link]) * permille / 1000);
  return absl::OkStatus();
}

bool EfaNetwork::damaged() const {
  return std::any_of(permille_.begin(), permille_.end(),
                     [](std::uint16_t permille) { return permille != TorusLinks::kHealthy; });
}

int EfaNetwork::LayersClimbed(int domain, int other) const {
  const auto& above = node_of_domain_.at(static_cast<std::size_t>(domain));
  const auto& others = node_of_domain_.at(static_cast<std::size_t>(other));
  int climbed = 0;
  while (climbed < static_cast<int>(kNetworkLayers)) {
    const std::size_t layer = kNetworkLayers - 1 - static_cast<std::size_t>(climbed);
    if (above.at(layer) == others.at(layer)) break;
    ++climbed;
  }
  return climbed;
}

// Returns whether an uplink can limit flows. An uplink with at least the sum of the NICs below is
// never full before a NIC is: routes without such an uplink have the same rates, and unrelated
// flows stay apart.
bool EfaNetwork::CanLimit(LinkId uplink) const {
  return capacity_[uplink] < nodes_.at(uplink / kDirections - first_chip_.back()).nic_rate;
}

bool EfaNetwork::UplinksLimit() const {
  return UplinksLimit(1) || UplinksLimit(2) || UplinksLimit(3);
}

bool EfaNetwork::UplinksLimit(int layer) const {
  const LinkId first = first_chip_.back() * kDirections;
  for (LinkId link = first; link < id_count(); ++link) {
    if (nodes_.at((link - first) / kDirections).layer == layer && CanLimit(link)) return true;
  }
  return false;
}

absl::StatusOr<std::vector<LinkId>> EfaNetwork::FindRoute(DomainChip from, DomainChip to) const {
  TAHOMA_CHECK(from.domain != to.domain);
  std::vector<LinkId> route = {NicOf(from, NicDirection::kOut)};
  const int climbed = LayersClimbed(from.domain, to.domain);
  for (int i = 0; i < climbed; ++i) {
    const int layer = static_cast<int>(kNetworkLayers) - i;
    for (const LinkId uplink : {UplinkOf(from.domain, layer, NicDirection::kOut),
                                UplinkOf(to.domain, layer, NicDirection::kIn)}) {
      if (CanLimit(uplink)) route.push_back(uplink);
    }
  }
  route.push_back(NicOf(to, NicDirection::kIn));
  for (const LinkId link : route) {
    if (capacity_[link] != 0) continue;
    return FailedPrecondition(
        "no EFA route from domain {} chip {} to domain {} chip {}: {} is down", from.domain,
        from.chip, to.domain, to.chip, Name(link));
  }
  return route;
}

VirtualDuration EfaNetwork::Latency(int layers, VirtualDuration step) const {
  const VirtualDuration packet = std::max(timing_.packet - step, VirtualDuration(0));
  return packet + timing_.layer * layers;
}

}  // namespace tahoma::sim
