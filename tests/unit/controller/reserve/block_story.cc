#include "tests/unit/controller/reserve/block_story.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "controller/reserve/search.h"
#include "lib/base/check.h"

namespace tahoma::controller {
namespace {

using std::chrono::hours;
using std::chrono::minutes;

std::string Owner(unsigned number) { return fmt::format("team-{}", number % 3); }

Pool PoolAt(const Product& product, int cell) {
  return {.product = &product, .zone = "tahoma-1a", .cell = fmt::format("nn-{}", cell)};
}

}  // namespace

BlockStory::BlockStory(const StorySetup& setup)
    : product_(FindProduct(setup.ultra_servers ? "u-trn2x64" : "trn2.48xlarge")),
      cells_(setup.cells),
      clock_(*ParseTime("2026-11-23T09:00:00Z")) {
  options_.payment.delay = setup.payment_delay;
  options_.hosts.one_spare_in = setup.one_spare_in;
  book_ = std::make_unique<BlockBook>(options_, clock_);
  for (int i = 0; i < setup.hosts; ++i) {
    hosts_.push_back({.name = fmt::format("us-{:02}", i),
                      .pool = PoolAt(*product_, i % cells_),
                      .healthy = true});
    Tell(hosts_.back());
  }
}

void BlockStory::Tell(const HostState& host) {
  book_->PutHost(host, clock_);
  auditor_.OnHost(host);
}

const Block* BlockStory::Pick(unsigned number) const {
  const BlockAuditor::Journal& journal = auditor_.journal();
  if (journal.empty()) return nullptr;
  return std::next(journal.begin(), static_cast<std::ptrdiff_t>(number % journal.size()))
      ->second.get();
}

void BlockStory::Do(const StoryStep& step) {
  using Action = void (BlockStory::*)(const StoryStep&);
  // Some happen more often than others.
  constexpr Action kActions[] = {
      &BlockStory::Buy,          &BlockStory::MoveClock,     &BlockStory::Buy,
      &BlockStory::Extend,       &BlockStory::MoveClock,     &BlockStory::BreakOrRepair,
      &BlockStory::Buy,          &BlockStory::BreakOrRepair, &BlockStory::MoveClock,
      &BlockStory::Hold,         &BlockStory::Extend,        &BlockStory::MoveClock,
      &BlockStory::Restart,      &BlockStory::SetTerms,      &BlockStory::SetQuota,
      &BlockStory::MoveOrRemove, &BlockStory::Forget};
  (this->*kActions[step.what % std::size(kActions)])(step);
  auditor_.Follow(*book_);
  book_->Advance(clock_);
  auditor_.Follow(*book_);
  auditor_.Audit(*book_);
  // Doing it again does nothing.
  book_->Advance(clock_);
  TAHOMA_CHECK(auditor_.Follow(*book_) == 0);
}

void BlockStory::Buy(const StoryStep& step) {
  PurchaseOrder order;
  order.key.ns = Owner(step.a);
  if (step.a / 3 % 8 == 7) order.tags = {{options_.payment.failure_tag, "fail"}};
  if (step.a / 24 % 4 == 3) order.terms.replace = ReplacePolicy::kAutomatic;
  if (step.a / 96 % 4 == 3) order.terms.binding = BindingMode::kAtPurchase;
  if (step.a / 384 % 4 == 3) order.token = fmt::format("t{}", tokens_++ / 2);
  const int days = LegalDays()[step.b % 9];
  OfferingQuery query{.duration_hours = days * 24, .any_cell = step.b / 9 % 4 == 3};
  const int count = 1 + static_cast<int>(step.b / 36 % 4);
  if (product_->ultra_server) {
    query.ultraserver_type = product_->name;
    query.ultraserver_count = count;
  } else {
    query.instance_type = product_->name;
    query.instance_count = count;
  }
  if (step.c % 3 != 0) query.start_date_range = clock_ + hours(24 * (step.c % 12));
  query.order = step.c / 12 % 2 == 0 ? OfferingOrder::kStart : OfferingOrder::kPrice;
  const auto search = CheckQuery(query, clock_);
  TAHOMA_CHECK(search.ok());
  const SearchAnswer answer = SearchOfferings(book_->profile(), book_->prices(), *search, clock_);
  std::string id = last_offering_;
  if (!answer.offerings.empty()) {
    last_offering_ = OfferingId(answer.offerings[step.c / 24 % answer.offerings.size()]);
  }
  order.offering_id = id.empty() || step.c / 96 % 4 != 3 ? last_offering_ : id;
  if (book_->Purchase(order, clock_).ok() && step.c / 384 % 2 == 1) {
    // The same again, in the same moment.
    (void)book_->Purchase(order, clock_);
  }
}

void BlockStory::Extend(const StoryStep& step) {
  const Block* block = Pick(step.a);
  if (block == nullptr) return;
  const auto offering =
      book_->OfferExtension(block->reservation, LegalDays()[step.b % 5] * 24, clock_);
  if (!offering.ok()) return;
  const auto extended = book_->Extend({.reservation = block->reservation,
                                       .offering_id = ExtensionOfferingId(*offering),
                                       .token = fmt::format("e{}", step.c % 4)},
                                      clock_);
  // An offered extension can be bought, unless the token has bought something else.
  if (!extended.ok() && absl::StatusCode::kInvalidArgument != extended.status().code()) {
    TAHOMA_CHECK(false);
  }
}

void BlockStory::MoveClock(const StoryStep& step) {
  constexpr minutes kSteps[] = {minutes(1),     minutes(7), minutes(29),    minutes(60),
                                hours(5),       hours(24),  hours(24),      hours(72),
                                hours(-1),      hours(-30), hours(24 * 30), hours(24 * 90),
                                hours(-24 * 90)};
  switch (step.a % 3) {
    case 0:  // to the very moment at which something is due, or almost
      if (const auto wake = book_->wake()) {
        clock_ = std::max(clock_, *wake - std::chrono::nanoseconds(step.b % 2));
      }
      return;
    case 1: {  // to a moment before the next boundary
      const WallTime boundary = StartOf(SlotOf(clock_) + 1);
      clock_ = std::max(clock_, boundary - minutes(step.b % 75));
      return;
    }
    default:
      clock_ += kSteps[step.b % std::size(kSteps)];
  }
}

void BlockStory::BreakOrRepair(const StoryStep& step) {
  HostState& host = hosts_[step.a % hosts_.size()];
  host.healthy = !host.healthy;
  Tell(host);
}

void BlockStory::Hold(const StoryStep& step) {
  HostState& host = hosts_[step.a % hosts_.size()];
  host.held = !host.held;
  host.held_by = host.held ? Owner(step.b) : "";
  host.held_until.reset();
  if (host.held && step.c % 2 == 1) host.held_until = clock_ + hours(step.c % 60);
  Tell(host);
}

// Ends the book, and begins another with what the journal has, perhaps after the clock was set.
void BlockStory::Restart(const StoryStep& step) {
  if (step.a % 4 == 2) clock_ -= hours(step.b % 800);
  if (step.a % 4 == 3) clock_ += hours(step.b % 100);
  book_ = std::make_unique<BlockBook>(options_, clock_);
  std::vector<std::shared_ptr<const Block>> blocks;
  for (const auto& [reservation, block] : auditor_.journal()) blocks.push_back(block);
  if (step.c % 2 == 1) std::reverse(blocks.begin(), blocks.end());
  for (const auto& block : blocks) {
    TAHOMA_CHECK_OK(book_->Restore(*block).status());
    TAHOMA_CHECK(*book_->Find(block->reservation) == *block);
  }
  for (const auto& [owner, quota] : auditor_.quotas()) book_->SetQuota(owner, quota);
  for (const HostState& host : hosts_) book_->PutHost(host, clock_);
}

void BlockStory::SetTerms(const StoryStep& step) {
  const Block* block = Pick(step.a);
  if (block == nullptr) return;
  book_->SetTerms(*block,
                  {.replace = static_cast<ReplacePolicy>(step.b % 3), .lend_idle = step.c % 2 == 1},
                  {}, clock_);
}

void BlockStory::SetQuota(const StoryStep& step) {
  const Quota quota{.instances = static_cast<int>(step.b % 64) + 1};
  book_->SetQuota(Owner(step.a), quota);
  auditor_.OnQuota(Owner(step.a), quota);
}

void BlockStory::MoveOrRemove(const StoryStep& step) {
  HostState& host = hosts_[step.a % hosts_.size()];
  if (step.b % 3 == 0) {
    book_->RemoveHost(host.name, clock_);
    auditor_.OnHostGone(host.name);
    Tell(host = {.name = host.name, .pool = host.pool, .healthy = step.c % 2 == 1});
    return;
  }
  host.pool = PoolAt(*product_, static_cast<int>(step.c % static_cast<unsigned>(cells_)));
  Tell(host);
}

void BlockStory::Forget(const StoryStep& step) {
  const Block* block = Pick(step.a);
  if (block == nullptr) return;
  const std::string reservation = block->reservation;
  if (book_->Forget(reservation)) auditor_.OnForgotten(reservation);
}

}  // namespace tahoma::controller
