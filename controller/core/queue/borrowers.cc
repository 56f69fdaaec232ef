#include "controller/core/queue/borrowers.h"

#include <fmt/format.h>

#include <algorithm>

namespace tahoma::controller {
namespace {

std::string WhyOver(const DomainState& domain) {
  const BlockUse& use = domain.block;
  if (use.kept_from) {
    return fmt::format("{} is kept for a Capacity Block that begins {}", domain.name,
                       FormatTime(*use.kept_from));
  }
  return use.lent_until ? fmt::format("{} is lent by Capacity Block {} until {}", domain.name,
                                      use.reservation, FormatTime(*use.lent_until))
                        : fmt::format("{} belongs to Capacity Block {}, which does not lend it",
                                      domain.name, use.reservation);
}

}  // namespace

std::vector<std::shared_ptr<const Holding>> BorrowersOf(const ClusterState& cluster, DomainId id) {
  std::vector<std::shared_ptr<const Holding>> found;
  for (const NodeId node : cluster.domain(id).nodes) {
    if (!node.valid()) continue;
    for (const auto& holding : cluster.node(node).holdings) {
      const bool known = std::find(found.begin(), found.end(), holding) != found.end();
      if (holding->borrows() && !known) found.push_back(holding);
    }
  }
  return found;
}

void Borrowers::Update(const ClusterState& cluster) {
  end_of_.resize(std::max(end_of_.size(), cluster.domain_count()));
  ClusterState::ForEachChangedDomain(seen_, cluster, [&](DomainId id) {
    if (id.value() >= cluster.domain_count()) return;
    std::optional<WallTime>& end = end_of_[id.value()];
    if (end) ends_.erase({*end, id});
    end.reset();
    for (const auto& holding : BorrowersOf(cluster, id)) {
      const auto over = LoanEnd(cluster.domain(id).block, holding->grace);
      if (over) end = std::min(end.value_or(*over), *over);
    }
    if (end) ends_.insert({*end, id});
  });
  seen_ = cluster;
}

std::vector<LoanOver> Borrowers::DrainOver(WallTime now) {
  std::vector<LoanOver> over;
  while (!ends_.empty() && ends_.begin()->first <= now) {
    const DomainId id = ends_.begin()->second;
    ends_.erase(ends_.begin());
    end_of_[id.value()].reset();
    const DomainState& domain = seen_.domain(id);
    for (const auto& holding : BorrowersOf(seen_, id)) {
      const auto end = LoanEnd(domain.block, holding->grace);
      if (!end) continue;
      if (*end <= now) {
        over.push_back({holding->claim, WhyOver(domain)});
      } else {
        end_of_[id.value()] = std::min(end_of_[id.value()].value_or(*end), *end);
      }
    }
    if (end_of_[id.value()]) ends_.insert({*end_of_[id.value()], id});
  }
  return over;
}

std::optional<WallTime> Borrowers::wake() const {
  if (ends_.empty()) return std::nullopt;
  return ends_.begin()->first;
}

}  // namespace tahoma::controller
