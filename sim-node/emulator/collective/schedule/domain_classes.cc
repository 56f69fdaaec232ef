#include "sim-node/emulator/collective/schedule/domain_classes.h"

#include <algorithm>
#include <optional>
#include <set>

namespace tahoma::sim {
namespace {

constexpr int kLayers = static_cast<int>(kNetworkLayers);
constexpr NicDirection kBothDirections[] = {NicDirection::kOut, NicDirection::kIn};

// What tells domains, or nodes of the network, apart.
using Traits = std::vector<std::uint64_t>;

// Numbers traits in the order in which they are first met.
class Numbers {
 public:
  std::uint64_t Of(const Traits& traits) {
    return numbers_.try_emplace(traits, numbers_.size()).first->second;
  }

 private:
  std::map<Traits, std::uint64_t> numbers_;
};

std::size_t IndexOf(int layer) { return static_cast<std::size_t>(layer - 1); }

// Returns the traits of the domains that are in lists: which lists, and the rates of their NICs.
std::map<int, Traits> TraitsOf(const std::vector<const MeshDomains*>& lists, const Fabric& fabric) {
  std::map<int, Traits> traits;
  for (std::size_t list = 0; list < lists.size(); ++list) {
    for (const MeshDomain& one : *lists[list]) traits[one.domain].push_back(list);
  }
  if (!fabric.efa().damaged()) return traits;
  for (auto& [domain, known] : traits) {
    known.push_back(lists.size());  // so that lists end here
    for (int chip = 0; chip < fabric.domain(domain).torus().chip_count(); ++chip) {
      for (const NicDirection direction : kBothDirections) {
        known.push_back(fabric.efa().permille(fabric.efa().NicOf({domain, chip}, direction)));
      }
    }
  }
  return traits;
}

// The nodes of the network above domains, told apart by their uplinks and by what is below them.
class NodeKinds {
 public:
  // The traits of domains, by domain. Of other domains nothing is sent or received.
  NodeKinds(const EfaNetwork& network, std::map<int, std::uint64_t> domains)
      : network_(network), domains_(std::move(domains)) {
    for (int layer = kLayers; layer > 0; --layer) AddLayer(layer);
    for (const auto& [domain, number] : domains_) {
      Traits above;  // from layer 1 on
      for (int layer = 1; layer <= kLayers; ++layer) {
        above.push_back(kinds_.at({layer, UplinkOf(domain, layer)}));
        standing_.try_emplace(above, domain);
      }
    }
  }

  // Returns the numbers of the nodes above a domain and its own: equal for domains that are alike.
  Traits PathTo(int domain) const {
    Traits path = Above(domain, kLayers);
    path.push_back(domains_.at(domain));
    return path;
  }

  // Returns a domain below the node that stands for those that are like the one above the domain.
  int StandingFor(int domain, int layer) const { return standing_.at(Above(domain, layer)); }

 private:
  LinkId UplinkOf(int domain, int layer) const {
    return network_.UplinkOf(domain, layer, NicDirection::kOut);
  }

  Traits Above(int domain, int last_layer) const {
    Traits above;
    for (int layer = 1; layer <= last_layer; ++layer) {
      above.push_back(kinds_.at({layer, UplinkOf(domain, layer)}));
    }
    return above;
  }

  // Numbers the nodes of a layer; those of the layer below have their numbers.
  void AddLayer(int layer) {
    std::map<LinkId, std::map<std::uint64_t, std::uint64_t>> below;  // by kind of the child
    std::map<LinkId, int> example;
    std::set<LinkId> counted;
    for (const auto& [domain, number] : domains_) {
      const LinkId node = UplinkOf(domain, layer);
      example.try_emplace(node, domain);
      if (layer == kLayers) {
        ++below[node][number];
      } else if (const LinkId child = UplinkOf(domain, layer + 1); counted.insert(child).second) {
        ++below[node][kinds_.at({layer + 1, child})];
      }
    }
    Numbers numbers;
    for (const auto& [node, children] : below) {
      Traits traits;
      for (const NicDirection direction : kBothDirections) {
        const LinkId link = network_.UplinkOf(example.at(node), layer, direction);
        traits.push_back(network_.CanLimit(link) ? network_.capacity(link) + 1 : 0);
      }
      for (const auto& [kind, count] : children) {
        traits.push_back(kind);
        traits.push_back(count);
      }
      kinds_[{layer, node}] = numbers.Of(traits);
    }
  }

  const EfaNetwork& network_;
  const std::map<int, std::uint64_t> domains_;
  std::map<std::pair<int, LinkId>, std::uint64_t> kinds_;  // by layer and uplink
  std::map<Traits, int> standing_;                         // by the kinds from layer 1 on
};

}  // namespace

DomainClasses::DomainClasses(std::span<const DomainMesh* const> meshes, const Fabric& fabric,
                             bool reduce)
    : fabric_(fabric),
      reduce_(reduce && !meshes.empty()),
      by_layers_(reduce_ && fabric.efa().UplinksLimit()) {
  if (!reduce_) return;
  std::vector<const MeshDomains*> lists;
  for (const DomainMesh* mesh : meshes) {
    for (const MeshDomains* list : {mesh->senders.get(), mesh->receivers.get()}) {
      if (classes_in_.try_emplace(list).second) lists.push_back(list);
    }
    if (IsSplit(*mesh->senders) || IsSplit(*mesh->receivers)) {
      split_.insert({mesh->senders.get(), mesh->receivers.get()});
    }
  }
  std::map<int, std::uint64_t> numbers;
  Numbers known;
  for (const auto& [domain, traits] : TraitsOf(lists, fabric)) numbers[domain] = known.Of(traits);
  Classify(numbers);
  for (std::size_t classes = 0; classes < in_.size() && !split_.empty();) {
    classes = in_.size();
    Classify(Refined());
  }
  for (auto& [list, classes] : classes_in_) {
    std::set<std::size_t> found;
    for (const MeshDomain& one : *list) found.insert(class_of_.at(one.domain));
    classes.assign(found.begin(), found.end());
  }
  if (by_layers_) CountClimbs();
  for (const DomainMesh* mesh : meshes) {
    for (const std::size_t sender : classes_in_.at(mesh->senders.get())) {
      for (const std::size_t receiver : classes_in_.at(mesh->receivers.get())) {
        AddPair(*mesh, sender, receiver);
      }
    }
  }
}

bool DomainClasses::IsSplit(const MeshDomains& list) {
  return std::ranges::any_of(
      list, [&](const MeshDomain& one) { return one.among != list.front().among; });
}

// Makes classes of the domains with equal numbers, at equal places of the network.
void DomainClasses::Classify(const std::map<int, std::uint64_t>& numbers) {
  in_.clear();
  nodes_.clear();
  class_of_.clear();
  std::optional<NodeKinds> nodes;
  if (by_layers_) nodes.emplace(fabric_.efa(), numbers);
  std::map<Traits, std::size_t> class_of_path;
  for (const auto& [domain, number] : numbers) {
    const Traits path = nodes ? nodes->PathTo(domain) : Traits{number};
    const auto [entry, added] = class_of_path.try_emplace(path, in_.size());
    if (added) {
      in_.emplace_back();
      auto& standing = nodes_.emplace_back();
      for (int layer = 1; nodes && layer <= kLayers; ++layer) {
        standing.at(IndexOf(layer)) = nodes->StandingFor(domain, layer);
      }
    }
    in_[entry->second].push_back(domain);
    class_of_[domain] = entry->second;
  }
}

// Numbers the domains by their classes and by how many of each class meshes join them with.
std::map<int, std::uint64_t> DomainClasses::Refined() const {
  std::map<int, Traits> traits;
  for (const auto& [domain, number] : class_of_) traits[domain].push_back(number);
  const auto add = [&](const MeshDomains& list, const MeshDomains& others) {
    std::map<std::uint64_t, std::vector<int>> by_among;
    for (const MeshDomain& other : others) by_among[other.among].push_back(other.domain);
    for (const MeshDomain& one : list) {
      std::map<std::pair<std::size_t, int>, std::uint64_t> joined;  // by class and layers
      const auto among = by_among.find(one.among);
      for (const int other : among == by_among.end() ? std::vector<int>() : among->second) {
        if (other == one.domain) continue;
        const int layers = by_layers_ ? fabric_.efa().LayersClimbed(one.domain, other) : 0;
        ++joined[{class_of_.at(other), layers}];
      }
      Traits& own = traits[one.domain];
      own.push_back(joined.size());
      for (const auto& [with, count] : joined) {
        own.insert(own.end(), {with.first, static_cast<std::uint64_t>(with.second), count});
      }
    }
  };
  for (const auto& [senders, receivers] : split_) {
    add(*senders, *receivers);
    add(*receivers, *senders);
  }
  std::map<int, std::uint64_t> numbers;
  Numbers known;
  for (const auto& [domain, of_domain] : traits) numbers[domain] = known.Of(of_domain);
  return numbers;
}

void DomainClasses::CountClimbs() {
  climbs_.assign(in_.size(), std::vector<Climbs>(in_.size(), Climbs{}));
  for (std::size_t one = 0; one < in_.size(); ++one) {
    for (std::size_t other = 0; other < in_.size(); ++other) {
      for (const int domain : in_[other]) {
        const int layers = fabric_.efa().LayersClimbed(in_[one].front(), domain);
        ++climbs_[one][other].at(static_cast<std::size_t>(layers));
      }
    }
  }
}

// Returns the domains of another class with which a mesh joins one of the class that sends, or
// receives.
DomainClasses::Climbs DomainClasses::ClimbsIn(const DomainMesh& mesh, bool sends, std::size_t one,
                                              std::size_t other) const {
  const MeshDomains& list = sends ? *mesh.senders : *mesh.receivers;
  const MeshDomains& others = sends ? *mesh.receivers : *mesh.senders;
  const MeshDomain& first = *std::ranges::find(list, in_[one].front(), &MeshDomain::domain);
  Climbs climbs{};
  for (const MeshDomain& with : others) {
    if (!AreJoined(first, with) || class_of_.at(with.domain) != other) continue;
    const int layers = fabric_.efa().LayersClimbed(first.domain, with.domain);
    ++climbs.at(static_cast<std::size_t>(layers));
  }
  return climbs;
}

void DomainClasses::AddPair(const DomainMesh& mesh, std::size_t sender, std::size_t receiver) {
  const Pair pair = PairOf(mesh, sender, receiver);
  const auto [entry, added] = alike_.try_emplace(pair);
  if (!added) return;
  const bool split = std::get<0>(pair) != nullptr;
  const std::uint64_t itself = sender == receiver ? 1 : 0;
  if (!by_layers_ && !split) {
    if (in_[receiver].size() == itself) return;
    entry->second.push_back({.at_sender = in_[receiver].size() - itself,
                             .at_receiver = in_[sender].size() - itself,
                             .uplinks = {},
                             .layers = FarthestBetween(sender, receiver)});
    return;
  }
  Climbs out = split ? ClimbsIn(mesh, true, sender, receiver) : climbs_[sender][receiver];
  Climbs in = split ? ClimbsIn(mesh, false, receiver, sender) : climbs_[receiver][sender];
  if (!split) {
    out[0] -= itself;
    in[0] -= itself;
  }
  for (std::size_t layers = 0; layers <= kNetworkLayers; ++layers) {
    if (out.at(layers) == 0) continue;
    AlikeFlows flows{.at_sender = out.at(layers),
                     .at_receiver = in.at(layers),
                     .uplinks = {},
                     .layers = static_cast<int>(layers)};
    if (by_layers_) flows.uplinks = UplinksBetween(sender, receiver, flows);
    entry->second.push_back(std::move(flows));
  }
}

// Returns the uplinks that limit the flows, each with the flows over it.
std::vector<AlikeFlows::Uplink> DomainClasses::UplinksBetween(std::size_t sender,
                                                              std::size_t receiver,
                                                              const AlikeFlows& flows) const {
  const EfaNetwork& network = fabric_.efa();
  std::vector<AlikeFlows::Uplink> uplinks;
  for (int layer = kLayers; layer > kLayers - flows.layers; --layer) {
    const auto add = [&](std::size_t domains, NicDirection direction, std::uint64_t of_each) {
      const LinkId link = network.UplinkOf(nodes_[domains].at(IndexOf(layer)), layer, direction);
      if (!network.CanLimit(link)) return;
      uplinks.push_back({.link = link, .flows = CountBelow(domains, layer) * of_each});
    };
    add(sender, NicDirection::kOut, flows.at_sender);
    add(receiver, NicDirection::kIn, flows.at_receiver);
  }
  return uplinks;
}

// Returns how many domains of the class are below the node of the layer above one of them.
std::uint64_t DomainClasses::CountBelow(std::size_t domains, int layer) const {
  std::uint64_t count = 0;
  for (int layers = 0; layers <= kLayers - layer; ++layers) {
    count += climbs_[domains][domains].at(static_cast<std::size_t>(layers));
  }
  return count;
}

// Returns the layers that the longest of the messages between two classes climbs.
int DomainClasses::FarthestBetween(std::size_t one, std::size_t other) const {
  if (fabric_.efa().timing().layer == VirtualDuration(0)) return 0;
  // Below one node are all, or two of them that lie below different nodes are as far.
  int layers = 0;
  const int first = in_[one].front();
  for (const std::size_t domains : {one, other}) {
    for (const int domain : in_[domains]) {
      layers = std::max(layers, fabric_.efa().LayersClimbed(first, domain));
    }
  }
  return layers;
}

}  // namespace tahoma::sim
