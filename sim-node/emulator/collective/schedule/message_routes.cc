#include "sim-node/emulator/collective/schedule/message_routes.h"

#include "lib/base/status.h"

namespace tahoma::sim {

using torus::ChipIndex;

absl::StatusOr<const std::vector<LinkId>*> MessageRoutes::Of(const Send& send,
                                                             torus::ChipMask through) {
  const auto [route, added] = routes_.try_emplace({send.from, send.to, through});
  if (!added) return &route->second;
  TAHOMA_ASSIGN_OR_RETURN(route->second, Fabric::DomainOf(send.from) == Fabric::DomainOf(send.to)
                                             ? Inside(send, through)
                                             : Between(send.from, send.to));
  return &route->second;
}

absl::StatusOr<std::vector<LinkId>> MessageRoutes::Inside(const Send& send,
                                                          torus::ChipMask through) const {
  const int domain = Fabric::DomainOf(send.from);
  TAHOMA_ASSIGN_OR_RETURN(std::vector<LinkId> route,
                          fabric_.domain(domain).FindRoute(Fabric::LocalOf(send.from),
                                                           Fabric::LocalOf(send.to), through));
  for (LinkId& link : route) link = fabric_.LinkOf(domain, link);
  return route;
}

absl::StatusOr<std::vector<LinkId>> MessageRoutes::Between(ChipIndex from, ChipIndex to) const {
  TAHOMA_RETURN_IF_ERROR(fabric_.efa().FindRoute(Fabric::Split(from), Fabric::Split(to)).status());
  const int sender = Fabric::DomainOf(from);
  const int receiver = Fabric::DomainOf(to);
  std::vector<LinkId> route = {fabric_.NicOf(from, NicDirection::kOut),
                               fabric_.NicOf(to, NicDirection::kIn)};
  for (int layer = static_cast<int>(kNetworkLayers); layer > 0; --layer) {
    const LinkId up = fabric_.UplinkOf(sender, layer, NicDirection::kOut);
    if (up == fabric_.UplinkOf(receiver, layer, NicDirection::kOut)) break;
    route.push_back(up);
    route.push_back(fabric_.UplinkOf(receiver, layer, NicDirection::kIn));
  }
  return route;
}

}  // namespace tahoma::sim
