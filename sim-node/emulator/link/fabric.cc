#include "sim-node/emulator/link/fabric.h"

#include <algorithm>
#include <utility>

#include "lib/base/check.h"
#include "lib/base/status.h"

namespace tahoma::sim {
namespace {

bool SameLinks(const TorusLinks& a, const TorusLinks& b) {
  return a.torus() == b.torus() && a.timing() == b.timing() &&
         std::ranges::equal(a.capacities(), b.capacities()) &&
         a.Unhealthy(kAllChips) == b.Unhealthy(kAllChips);
}

}  // namespace

Fabric::Fabric(TorusLinks domain)
    : domains_({std::make_shared<const TorusLinks>(std::move(domain))}),
      first_link_({0, domains_[0]->id_count()}) {}

Fabric::Fabric(std::vector<TorusLinks> domains, std::int64_t nic_rate, const EfaTiming& efa,
               std::vector<NetworkPlace> places)
    : first_link_({0}) {
  TAHOMA_CHECK(!domains.empty() && nic_rate > 0);
  std::vector<int> chips;
  for (TorusLinks& domain : domains) {
    TAHOMA_CHECK(domain.timing() == domains.front().timing());
    chips.push_back(domain.torus().chip_count());
    first_link_.push_back(first_link_.back() + domain.id_count());
  }
  for (TorusLinks& domain : domains) {
    // Equal domains share an object until one of them changes.
    const bool shared = !domains_.empty() && SameLinks(*domains_.back(), domain);
    domains_.push_back(shared ? domains_.back() : std::make_shared<const TorusLinks>(domain));
  }
  if (places.empty()) places.resize(domains_.size());
  efa_ = EfaNetwork(std::move(chips), places, static_cast<std::uint64_t>(nic_rate), efa);
}

bool Fabric::Contains(torus::ChipIndex chip) const {
  return chip.value() >= 0 && DomainOf(chip) < domain_count() &&
         LocalOf(chip).value() < domain(DomainOf(chip)).torus().chip_count();
}

bool Fabric::Alike(int domain, int other) const {
  const auto& a = domains_.at(static_cast<std::size_t>(domain));
  const auto& b = domains_.at(static_cast<std::size_t>(other));
  return a == b || SameLinks(*a, *b);
}

LinkId Fabric::LinkOf(torus::ChipIndex from, torus::Axis axis, torus::Direction direction) const {
  return LinkOf(DomainOf(from), TorusLinks::IdOf(LocalOf(from), axis, direction));
}

LinkId Fabric::LinkOf(int domain, LinkId link) const {
  return first_link_.at(static_cast<std::size_t>(domain)) + link;
}

LinkId Fabric::NicOf(torus::ChipIndex chip, NicDirection direction) const {
  return first_link_.back() + efa_.NicOf(Split(chip), direction);
}

LinkId Fabric::UplinkOf(int domain, int layer, NicDirection direction) const {
  return first_link_.back() + efa_.UplinkOf(domain, layer, direction);
}

absl::StatusOr<Fabric::Place> Fabric::Find(LinkId link) const {
  if (link >= id_count() && id_count() == domains_.front()->id_count()) {
    return InvalidArgument("link {} does not exist in a torus of {}", link,
                           domains_.front()->torus().ToString());
  }
  if (link >= id_count()) {
    return InvalidArgument("link {} does not exist in a fabric of {} links", link, id_count());
  }
  const auto after = std::upper_bound(first_link_.begin(), first_link_.end(), link);
  return Place{.island = static_cast<int>(after - first_link_.begin()) - 1,
               .link = link - *(after - 1)};
}

std::string Fabric::Name(LinkId link) const {
  const auto place = Find(link);
  TAHOMA_CHECK(place.ok());
  if (place->island == domain_count()) return efa_.Name(place->link);
  const std::string name = TorusLinks::Name(place->link);
  return domain_count() == 1 ? name : fmt::format("domain {} {}", place->island, name);
}

bool Fabric::Exists(LinkId link) const {
  const auto place = Find(link);
  if (!place.ok()) return false;
  return place->island == domain_count() || domain(place->island).Exists(place->link);
}

std::uint16_t Fabric::permille(LinkId link) const {
  const auto place = Find(link);
  TAHOMA_CHECK(place.ok());
  return place->island == domain_count() ? efa_.permille(place->link)
                                         : domain(place->island).permille(place->link);
}

std::uint64_t Fabric::capacity(LinkId link) const {
  const auto place = Find(link);
  TAHOMA_CHECK(place.ok());
  return place->island == domain_count() ? efa_.capacity(place->link)
                                         : domain(place->island).capacity(place->link);
}

// Calls change(links) on a copy of the domain's links; on success the copy replaces the links.
template <typename Change>
absl::Status Fabric::ChangeDomain(int domain, const Change& change) {
  auto& links = domains_.at(static_cast<std::size_t>(domain));
  auto changed = std::make_shared<TorusLinks>(*links);
  TAHOMA_RETURN_IF_ERROR(change(*changed));
  links = std::move(changed);
  return absl::OkStatus();
}

absl::Status Fabric::SetPermille(LinkId link, std::uint16_t permille) {
  TAHOMA_ASSIGN_OR_RETURN(const Place place, Find(link));
  if (place.island == domain_count()) return efa_.SetPermille(place.link, permille);
  return ChangeDomain(place.island,
                      [&](TorusLinks& links) { return links.SetPermille(place.link, permille); });
}

absl::Status Fabric::SetLoss(LinkId link, std::uint32_t loss_ppm) {
  TAHOMA_ASSIGN_OR_RETURN(const Place place, Find(link));
  if (place.island == domain_count()) {
    return InvalidArgument("{} cannot lose packets: EFA hides losses", efa_.Name(place.link));
  }
  return ChangeDomain(place.island,
                      [&](TorusLinks& links) { return links.SetLoss(place.link, loss_ppm); });
}

absl::Status Fabric::SetChipPermille(torus::ChipIndex chip, std::uint16_t permille) {
  if (!Contains(chip)) return InvalidArgument("chip {} is not in the fabric", chip.value());
  const auto change = [&](TorusLinks& links) -> absl::Status {
    for (const Port port : kAllPorts) {
      const LinkId link = TorusLinks::IdOf(LocalOf(chip), port.axis, port.direction);
      if (!links.Exists(link)) continue;
      TAHOMA_RETURN_IF_ERROR(links.SetCablePermille(link, permille));
    }
    return absl::OkStatus();
  };
  TAHOMA_RETURN_IF_ERROR(ChangeDomain(DomainOf(chip), change));
  return SetNicPermille(chip, permille);
}

absl::Status Fabric::SetNicPermille(torus::ChipIndex chip, std::uint16_t permille) {
  if (!Contains(chip)) return InvalidArgument("chip {} is not in the fabric", chip.value());
  if (efa_.id_count() == 0) return absl::OkStatus();
  TAHOMA_RETURN_IF_ERROR(SetPermille(NicOf(chip, NicDirection::kOut), permille));
  return SetPermille(NicOf(chip, NicDirection::kIn), permille);
}

}  // namespace tahoma::sim
