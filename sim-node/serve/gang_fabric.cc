#include "sim-node/serve/gang_fabric.h"

#include <algorithm>
#include <map>
#include <utility>

#include "lib/base/check.h"
#include "lib/base/status.h"

namespace tahoma::sim {
namespace {

// Assigns numbers to the names of network nodes, layer by layer.
class NetworkNames {
 public:
  NetworkPlace Of(const std::vector<std::string>& layers) {
    NetworkPlace place;
    for (std::size_t i = 0; i < layers.size() && i < kNetworkLayers; ++i) {
      const auto next = static_cast<int>(known_.size()) + 1;  // 0 is that of domains without names
      place.node.at(i) = known_.try_emplace({i, layers[i]}, next).first->second;
    }
    return place;
  }

 private:
  std::map<std::pair<std::size_t, std::string>, int> known_;
};

absl::Status CheckParents(const std::vector<NodePlace>& firsts) {
  std::map<std::pair<std::size_t, std::string>, std::string> parents;
  for (const NodePlace& place : firsts) {
    for (std::size_t i = 1; i < place.network_layers.size(); ++i) {
      const std::string& parent = place.network_layers[i - 1];
      const auto [entry, added] = parents.try_emplace({i, place.network_layers[i]}, parent);
      if (entry->second == parent) continue;
      return FailedPrecondition("network node \"{}\" is under \"{}\" and under \"{}\"",
                                place.network_layers[i], entry->second, parent);
    }
  }
  return absl::OkStatus();
}

std::string Text(VirtualDuration duration) {
  return fmt::format("{} us", Nanoseconds(duration) / 1e3);
}

// Checks that two nodes have the same EFA timings. kFailedPrecondition names the key of sim-node's
// configuration that differs.
absl::Status CheckSameEfa(const NodePlace& a, const NodePlace& b) {
  const auto differ = [&](std::string_view key, const std::string& of_a, const std::string& of_b) {
    return FailedPrecondition("node {} has efa.{} {}, node {} has {}; all nodes of a job need one",
                              a.name, key, of_a, b.name, of_b);
  };
  if (a.efa.packet != b.efa.packet) {
    return differ("packetLatency", Text(a.efa.packet), Text(b.efa.packet));
  }
  if (a.efa.layer != b.efa.layer) {
    return differ("layerLatency", Text(a.efa.layer), Text(b.efa.layer));
  }
  for (std::size_t i = 0; i < kNetworkLayers; ++i) {
    const std::uint32_t of_a = a.efa.oversubscription_permille.at(i);
    const std::uint32_t of_b = b.efa.oversubscription_permille.at(i);
    if (of_a == of_b) continue;
    return differ(fmt::format("layer{}Oversubscription", i + 1), fmt::format("{}", of_a / 1e3),
                  fmt::format("{}", of_b / 1e3));
  }
  return absl::OkStatus();
}

}  // namespace

std::string NodePlace::Domain() const {
  return ultra_server.empty() ? "node " + name : "ultraServer " + ultra_server;
}

const torus::Shape& NodePlace::torus() const {
  if (!ultra_server.empty()) return torus::kUltraServerShape;
  const hw::InstanceType* type = hw::FindInstanceType(instance_type);
  TAHOMA_CHECK(type != nullptr);
  return type->torus;
}

absl::StatusOr<GangFabric> GangFabric::Of(const std::vector<NodePlace>& ranks) {
  TAHOMA_CHECK(!ranks.empty());
  std::vector<NodePlace> firsts;  // the first rank's of each domain
  std::vector<int> domains;
  for (const NodePlace& place : ranks) {
    const auto known = std::ranges::find(firsts, place.Domain(), &NodePlace::Domain);
    domains.push_back(static_cast<int>(known - firsts.begin()));
    TAHOMA_RETURN_IF_ERROR(CheckSameEfa(ranks[0], place));
    if (known == firsts.end()) firsts.push_back(place);
  }
  std::vector<TorusLinks> tori;
  std::vector<NetworkPlace> places;
  NetworkNames names;
  const hw::ChipModel& model = *hw::FindInstanceType(firsts[0].instance_type)->chip;
  for (const NodePlace& place : firsts) {
    const hw::ChipModel& chip = *hw::FindInstanceType(place.instance_type)->chip;
    if (chip.name != model.name) {
      return FailedPrecondition("{} has chips of model {}, {} of model {}; a collective needs one",
                                firsts[0].Domain(), model.name, place.Domain(), chip.name);
    }
    tori.emplace_back(place.torus(), chip);
    places.push_back(names.Of(place.network_layers));
  }
  TAHOMA_RETURN_IF_ERROR(CheckParents(firsts));
  if (tori.size() == 1) return OneDomain(std::move(tori[0]), ranks.size());
  return GangFabric(Fabric(std::move(tori), model.links.efa, ranks[0].efa, std::move(places)),
                    std::move(domains));
}

std::vector<Member> GangFabric::ChipsOf(int rank, std::vector<Member> members) const {
  const int domain = domains_.at(static_cast<std::size_t>(rank));
  for (Member& member : members) member.chip = Fabric::ChipOf(domain, member.chip.value());
  return members;
}

NodeLinks GangFabric::ViewFrom(int rank, NodeLinks view) const {
  const int domain = domains_.at(static_cast<std::size_t>(rank));
  view.node += domain * hw::kUltraServerNodes;
  const LinkId torus_links = fabric_.domain(domain).id_count();
  const LinkId first = fabric_.LinkOf(domain, 0);
  std::vector<LinkState> known;
  for (LinkState state : view.unhealthy) {
    if (state.link < torus_links) {
      state.link += first;
    } else if (fabric_.efa().id_count() > 0) {
      state.link =
          fabric_.NicOf(Fabric::ChipOf(domain, 0), NicDirection::kOut) + (state.link - torus_links);
    } else {
      continue;  // the gang is in one domain and uses no NIC
    }
    known.push_back(state);
  }
  view.unhealthy = std::move(known);
  for (std::vector<torus::ChipIndex>* chips : {&view.dead, &view.efa_down}) {
    for (torus::ChipIndex& chip : *chips) chip = Fabric::ChipOf(domain, chip.value());
  }
  return view;
}

}  // namespace tahoma::sim
