#include "controller/ec2/ec2_front.h"

#include <optional>
#include <utility>

#include "controller/core/blocks/block_hosts.h"
#include "lib/base/rng.h"

namespace tahoma::controller {
namespace {

// Null until the core knows the fleet.
std::shared_ptr<const ec2::BookView> ViewOf(const std::shared_ptr<const Snapshot>& snapshot) {
  if (snapshot == nullptr || !snapshot->synced || snapshot->cluster == nullptr) return nullptr;
  const auto find_host = [snapshot](const std::string& name) -> std::optional<HostState> {
    const std::optional<DomainId> domain = snapshot->cluster->FindDomain(name);
    return domain ? HostOf(*snapshot->cluster, *domain) : std::nullopt;
  };
  return std::make_shared<const ec2::BookView>(ec2::BookView{.blocks = snapshot->block_list,
                                                             .now = snapshot->block_now,
                                                             .profile = snapshot->profile,
                                                             .prices = snapshot->prices,
                                                             .offering_key = snapshot->offering_key,
                                                             .quotas = snapshot->quotas,
                                                             .find_host = find_host,
                                                             .cluster = snapshot->cluster});
}

}  // namespace

Ec2Front::Ec2Front(const TakeSnapshot& take, const SendOrder& order, kube::Transport& objects,
                   ec2::Ec2Options options, const Clock& clock, const Clock& block_clock)
    : tags_(objects, take),
      seller_({.view = [take] { return ViewOf(take()); },
               .purchase = order,
               .extend = order,
               .change_tags = [this](const Block& block,
                                     const auto& change) { return tags_.Change(block, change); }},
              block_clock),
      api_(seller_, std::move(options), clock, SeedFromMachine()) {}

void Ec2Front::AddTo(rest::Server& server, rest::Gate other) {
  server.SetGate(api_.GateBefore(std::move(other)));
  api_.AddRoutes(server);
}

}  // namespace tahoma::controller
