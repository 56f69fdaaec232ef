#include "sim-node/emulator/collective/domains/bound_over_domains.h"

#include <algorithm>
#include <cstdint>
#include <map>

#include "lib/base/check.h"
#include "lib/collective/domain_links.h"

namespace tahoma::sim {
namespace {

// A chip, a topology domain or a node of the network: what it has of the ranks, and how fast bytes
// leave and enter it.
struct Side {
  std::uint64_t ranks = 0;
  std::uint64_t out = 0;
  std::uint64_t in = 0;
};

// Adds the rates of the NeuronLinks of a domain to its chips.
void AddLinks(const TorusLinks& links, int domain, std::map<int, Side>& chips) {
  const auto find = [&](torus::ChipIndex local) {
    return chips.find(Fabric::ChipOf(domain, local.value()).value());
  };
  for (LinkId link = 0; link < links.id_count(); ++link) {
    if (!links.Exists(link)) continue;
    const torus::Hop hop = links.HopOf(link);
    const auto from = find(hop.from);
    const auto to = find(hop.to);
    if (from != chips.end()) from->second.out += links.capacity(link);
    if (to != chips.end()) to->second.in += links.capacity(link);
  }
}

// Returns the nodes of a layer of the network, by uplink, with what the domains below have.
std::map<int, Side> NodesOf(const EfaNetwork& network, const std::map<int, Side>& domains,
                            int layer) {
  std::map<int, Side> nodes;
  for (const auto& [domain, side] : domains) {
    const LinkId up = network.UplinkOf(domain, layer, NicDirection::kOut);
    const LinkId down = network.UplinkOf(domain, layer, NicDirection::kIn);
    Side& node = nodes[static_cast<int>(up)];
    node.ranks += side.ranks;
    node.out = network.capacity(up);
    node.in = network.capacity(down);
  }
  return nodes;
}

VirtualDuration TimeOf(Wide bytes, std::uint64_t rate) {
  if (bytes == 0) return VirtualDuration(0);
  return rate == 0 ? VirtualDuration::max() : collective::TimeAtLeast(bytes, 1, rate);
}

// The time that the sides need, all of one kind; the root is in the first.
class Sides {
 public:
  Sides(const Request& request, std::uint64_t ranks) : request_(request), ranks_(ranks) {
    TAHOMA_CHECK(ranks > 0);
  }

  VirtualDuration Need(const std::vector<Side>& sides) const {
    VirtualDuration most{};
    Wide out = 0;
    for (std::size_t i = 0; i < sides.size(); ++i) {
      most = std::max(most, Need(sides[i], i == 0));
      out += sides[i].out;
    }
    if (request_.operation != Operation::kAllReduce || out == 0) return most;
    const Wide crossings = 2 * static_cast<Wide>(sides.size() - 1);
    return std::max(most, TimeOf(crossings * request_.bytes, static_cast<std::uint64_t>(out)));
  }

 private:
  VirtualDuration Need(const Side& side, bool root) const {
    const Wide whole = request_.bytes;
    const Wide others = whole * (ranks_ - side.ranks) / ranks_;
    switch (request_.operation) {
      case Operation::kAllGather:
        return std::max(TimeOf(others, side.in), TimeOf(whole - others, side.out));
      case Operation::kReduceScatter:
        return std::max(TimeOf(others, side.out), TimeOf(whole - others, side.in));
      case Operation::kBroadcast:
        return root ? TimeOf(whole, side.out) : TimeOf(whole, side.in);
      case Operation::kAllToAll:
        return std::max(TimeOf(others * side.ranks, side.out),
                        TimeOf(others * side.ranks, side.in));
      default:  // an all-reduce
        return TimeOf(whole, std::min(side.out, side.in));
    }
  }

  const Request& request_;
  const std::uint64_t ranks_;
};

}  // namespace

std::optional<VirtualDuration> LowerBoundOnFabric(const Request& request,
                                                  const std::vector<Member>& members,
                                                  const Fabric& fabric) {
  TAHOMA_CHECK(fabric.domain_count() > 1);
  if (request.operation == Operation::kSendReceive || request.operation == Operation::kPermute ||
      request.blocks != nullptr) {
    return std::nullopt;
  }
  std::uint64_t ranks = 0;
  std::map<int, Side> chips;
  std::map<int, Side> domains;
  for (const Member& member : members) {
    const std::uint64_t out = fabric.capacity(fabric.NicOf(member.chip, NicDirection::kOut));
    const std::uint64_t in = fabric.capacity(fabric.NicOf(member.chip, NicDirection::kIn));
    Side& chip = chips[member.chip.value()];
    Side& domain = domains[Fabric::DomainOf(member.chip)];
    for (Side* side : {&chip, &domain}) {
      side->ranks += static_cast<std::uint64_t>(member.ranks);
      side->out += out;
      side->in += in;
    }
    ranks += static_cast<std::uint64_t>(member.ranks);
  }
  for (const auto& domain : domains) AddLinks(fabric.domain(domain.first), domain.first, chips);
  const auto root_first = [](const std::map<int, Side>& sides, int root) {
    std::vector<Side> listed = {sides.at(root)};
    for (const auto& [number, side] : sides) {
      if (number != root) listed.push_back(side);
    }
    return listed;
  };
  const torus::ChipIndex root = members[0].chip;
  const Sides need(request, ranks);
  VirtualDuration most = std::max(need.Need(root_first(chips, root.value())),
                                  need.Need(root_first(domains, Fabric::DomainOf(root))));
  for (int layer = 1; layer <= static_cast<int>(kNetworkLayers); ++layer) {
    const auto nodes = NodesOf(fabric.efa(), domains, layer);
    if (nodes.size() < 2) continue;
    const LinkId up = fabric.efa().UplinkOf(Fabric::DomainOf(root), layer, NicDirection::kOut);
    most = std::max(most, need.Need(root_first(nodes, static_cast<int>(up))));
  }
  return most;
}

}  // namespace tahoma::sim
