#include "controller/core/queue/lending.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "controller/core/queue/end_terms.h"
#include "controller/plan/decision.h"
#include "controller/plan/loan_choice.h"

namespace tahoma::controller {

void Lending::EndDue(const ClusterState& cluster, WallTime now) {
  borrowers_.Update(cluster);
  for (const LoanOver& over : borrowers_.DrainOver(now)) {
    runs_.EndHolder(over.claim, EndCause::kPreempted, over.why);
  }
}

// Returns those that run on the domains and are no gangs of the reservation's block.
Lending::Guests Lending::GuestsIn(const std::vector<DomainId>& domains,
                                  const std::string& reservation,
                                  const ClusterState& cluster) const {
  std::map<RunId, Guest> found;
  const auto take = [&](const Holding& holding) {
    const bool occupies =
        std::ranges::any_of(holding.devices, [](const auto& held) { return !held.admin_access; });
    if (holding.reservation == reservation || !occupies) return;
    const GangRun* run = runs_.FindHolder(holding.claim);
    if (run != nullptr) found[run->id()] = {run, DevicesOf(run->decision()), holding.borrows()};
  };
  for (const DomainId domain : domains) {
    for (const NodeId node : cluster.domain(domain).nodes) {
      if (!node.valid()) continue;
      for (const auto& holding : cluster.node(node).holdings) take(*holding);
    }
  }
  Guests guests;
  for (const auto& [id, guest] : found) {
    if (guest.run->ending()) {
      guests.ending.push_back(guest.run);
    } else {
      guests.staying.push_back(guest);
    }
  }
  return guests;
}

std::vector<Decision> Lending::PlanWithout(const Queue& gangs,
                                           const std::vector<const GangRun*>& ended,
                                           const ClusterState& cluster, WallTime now) const {
  ClusterState without = cluster;
  if (promises_ != nullptr) {
    without = promises_->ViewOf(cluster, promises_->BindingFixed(*gangs.front(), now));
  }
  for (const GangRun* run : ended) ReleaseDecided(run->decision(), without);
  return plan_(without, gangs, now, Explaining::kNone);
}

// Chooses as few as let all of the gangs be placed, beside those that end anyway; nullopt when not
// even all would.
std::optional<std::vector<Lending::Guest>> Lending::Choose(const Queue& gangs,
                                                           const std::vector<Guest>& among,
                                                           const std::vector<const GangRun*>& ended,
                                                           const ClusterState& cluster,
                                                           WallTime now) const {
  std::vector<Loan> loans;
  for (const Guest& guest : among) {
    loans.push_back(
        {.chips = guest.chips, .work = EndTermsOf(*guest.run, runs_.facts(), now).work});
  }
  const auto chosen = ChooseLoans(loans, [&](const std::vector<std::size_t>& choice) {
    std::vector<const GangRun*> runs = ended;
    for (const std::size_t loan : choice) runs.push_back(among[loan].run);
    return std::ranges::all_of(PlanWithout(gangs, runs, cluster, now),
                               [](const Decision& one) { return one.placement.has_value(); });
  });
  if (!chosen) return std::nullopt;
  std::vector<Guest> guests;
  for (const std::size_t loan : *chosen) guests.push_back(among[loan]);
  return guests;
}

void Lending::MakeWay(const Heir& heir, Queue gangs, const ClusterState& cluster, WallTime now) {
  if (gangs.empty()) return;
  if (gangs.size() > kTogetherMost) gangs.resize(kTogetherMost);
  ClusterState begun = cluster;
  for (const std::string& host : heir.block->hosts) {
    begun.SetBlockUse(host, {.reservation = heir.block->reservation});
  }
  const auto domains = DomainsOfBlock(begun, *gangs.front());
  Guests guests = GuestsIn(*domains, heir.block->reservation, begun);
  // Loans have ended by the start without this.
  std::erase_if(guests.staying, [&](const Guest& guest) {
    if (guest.borrows) guests.ending.push_back(guest.run);
    return guest.borrows;
  });
  if (guests.staying.empty()) return;
  std::vector<const GangRun*> all = guests.ending;
  for (const Guest& guest : guests.staying) all.push_back(guest.run);
  Queue placed;
  for (const Decision& decision : PlanWithout(gangs, all, begun, now)) {
    if (decision.placement) placed.push_back(decision.gang);
  }
  if (placed.empty()) return;
  const auto chosen = Choose(placed, guests.staying, guests.ending, begun, now);
  for (const Guest& guest : chosen.value_or(std::vector<Guest>())) {
    runs_.End(guest.run->id(), EndCause::kReclaimed,
              fmt::format("Capacity Block {} begins {}, and gangs that name it have no place "
                          "beside this one, which does not",
                          ToString(heir.block->key), FormatTime(heir.block->start())),
              heir.by);
  }
}

void Lending::OnBlocked(const GangSpec& gang, ClusterState& cluster, WallTime now) {
  const GangRef ref{gang.key, gang.single_pod};
  const auto domains = DomainsOfBlock(cluster, gang);
  if (!domains) return;
  Guests guests = GuestsIn(*domains, gang.reservation, cluster);
  if (guests.staying.empty() && guests.ending.empty()) return OnSettled(ref, cluster);
  std::vector<Guest> borrowers = guests.staying;
  std::erase_if(borrowers, [](const Guest& guest) { return !guest.borrows; });
  const Queue alone = {std::make_shared<GangSpec>(gang)};
  auto chosen = Choose(alone, borrowers, guests.ending, cluster, now);
  if (!chosen && borrowers.size() < guests.staying.size()) {
    chosen = Choose(alone, guests.staying, guests.ending, cluster, now);
  }
  if (!chosen) return OnSettled(ref, cluster);
  for (const Guest& guest : *chosen) {
    runs_.End(guest.run->id(), guest.borrows ? EndCause::kPreempted : EndCause::kReclaimed,
              guest.borrows
                  ? fmt::format("{} needs hardware of its Capacity Block {}", Describe(ref),
                                gang.reservation)
                  : fmt::format("{} names Capacity Block {}, on whose hardware this gang only went "
                                "on, and has no place beside it",
                                Describe(ref), gang.reservation));
  }
  reservation_of_[ref] = gang.reservation;
  Wanting& wanting = wanting_[gang.reservation];
  wanting.gangs.insert(ref);
  for (const DomainId domain : *domains) {
    cluster.SetWanted(domain, true);
    wanting.domains.push_back(domain);
  }
  std::sort(wanting.domains.begin(), wanting.domains.end());
  wanting.domains.erase(std::unique(wanting.domains.begin(), wanting.domains.end()),
                        wanting.domains.end());
}

void Lending::OnSettled(const GangRef& ref, ClusterState& cluster) {
  const auto reservation = reservation_of_.find(ref);
  if (reservation == reservation_of_.end()) return;
  const auto wanting = wanting_.find(reservation->second);
  reservation_of_.erase(reservation);
  wanting->second.gangs.erase(ref);
  if (!wanting->second.gangs.empty()) return;
  for (const DomainId domain : wanting->second.domains) {
    if (domain.value() < cluster.domain_count()) cluster.SetWanted(domain, false);
  }
  wanting_.erase(wanting);
  capacity_freed_ = true;
}

}  // namespace tahoma::controller
