#include "controller/ledger/lending.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "controller/plan/decision.h"
#include "controller/plan/loan_choice.h"

namespace tahoma::controller {
namespace {

std::int64_t DevicesOf(const GangDecision& decision) {
  std::int64_t count = 0;
  for (const DecidedClaim& claim : decision.claims) {
    count += std::ssize(claim.allocation.results);
  }
  return count;
}

std::int64_t WorkLost(const GangRun& run, std::int64_t devices, WallTime now) {
  const auto since = run.bound_at() ? run.bound_at() : run.decision().placed;
  if (!since || *since >= now) return 0;
  return devices * std::chrono::duration_cast<std::chrono::seconds>(now - *since).count();
}

}  // namespace

void Lending::EndDue(const ClusterState& cluster, WallTime now) {
  borrowers_.Update(cluster);
  for (const LoanOver& over : borrowers_.TakeOver(now)) {
    runs_.EndHolder(over.claim, EndCause::kPreempted, over.why);
  }
}

std::vector<Lending::Borrower> Lending::BorrowersIn(const std::vector<DomainId>& domains,
                                                    const ClusterState& cluster) const {
  std::map<RunId, Borrower> found;
  for (const DomainId domain : domains) {
    for (const auto& holding : BorrowersOf(cluster, domain)) {
      const GangRun* run = runs_.FindHolder(holding->claim);
      if (run != nullptr) found[run->id()] = {run, DevicesOf(run->decision())};
    }
  }
  std::vector<Borrower> borrowers;
  for (const auto& [id, borrower] : found) borrowers.push_back(borrower);
  return borrowers;
}

bool Lending::FitsWithout(const GangSpec& gang, const std::vector<const GangRun*>& ended,
                          const ClusterState& cluster, WallTime now) const {
  ClusterState without = cluster;
  for (const GangRun* run : ended) {
    for (const DecidedClaim& claim : run->decision().claims) {
      if (!claim.allocated_before) without.Release(claim.uid);
    }
  }
  const auto spec = std::make_shared<GangSpec>(gang);
  return plan_(without, {spec}, now).front().placement.has_value();
}

void Lending::OnBlocked(const GangSpec& gang, ClusterState& cluster, WallTime now) {
  const GangRef ref{gang.key, gang.single_pod};
  const auto domains = DomainsOfBlock(cluster, gang);
  if (!domains) return;
  std::vector<const GangRun*> ending;
  std::vector<Borrower> borrowers = BorrowersIn(*domains, cluster);
  std::erase_if(borrowers, [&](const Borrower& borrower) {
    if (borrower.run->ending()) ending.push_back(borrower.run);
    return borrower.run->ending();
  });
  if (borrowers.empty() && ending.empty()) return OnSettled(ref, cluster);
  std::vector<Loan> loans;
  for (const Borrower& borrower : borrowers) {
    loans.push_back(
        {.chips = borrower.chips, .work = WorkLost(*borrower.run, borrower.chips, now)});
  }
  const auto chosen = ChooseLoans(loans, [&](const std::vector<std::size_t>& ended) {
    std::vector<const GangRun*> runs = ending;
    for (const std::size_t loan : ended) runs.push_back(borrowers[loan].run);
    return FitsWithout(gang, runs, cluster, now);
  });
  if (!chosen) return OnSettled(ref, cluster);
  for (const std::size_t loan : *chosen) {
    runs_.End(
        borrowers[loan].run->id(), EndCause::kPreempted,
        fmt::format("{} needs hardware of its Capacity Block {}", Describe(ref), gang.reservation));
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
