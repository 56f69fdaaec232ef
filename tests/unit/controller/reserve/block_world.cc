#include "tests/unit/controller/reserve/block_world.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <utility>

namespace tahoma::controller {
namespace {

constexpr std::string_view kZone = "tahoma-1a";

}  // namespace

BlockWorld::BlockWorld(Setup setup)
    : options_(std::move(setup.book)),
      product_(FindProduct(setup.product)),
      now_(*ParseTime("2026-11-23T09:00:00Z") + kDay * setup.days_later),
      book_(std::make_unique<BlockBook>(options_, now_)) {
  for (int host = 0; host < setup.hosts; ++host) {
    hosts_.push_back({.name = NameOf(host),
                      .pool = {.product = product_,
                               .zone = std::string(kZone),
                               .cell = fmt::format("nn-{}", host % setup.cells)},
                      .healthy = true});
    Tell(host);
  }
}

std::string BlockWorld::NameOf(int host) { return fmt::format("us-{:02}", host); }

WallTime BlockWorld::next_boundary() const {
  return IsBoundary(now_) ? now_ : StartOf(SlotOf(now_) + 1);
}

SearchAnswer BlockWorld::Search(const Wish& wish) const {
  OfferingQuery query{.duration_hours = wish.days * 24, .any_cell = wish.any_cell};
  query.order = wish.at_once ? OfferingOrder::kPrice : OfferingOrder::kStart;
  if (product_->ultra_server) {
    query.ultraserver_type = product_->name;
    query.ultraserver_count = wish.count;
  } else {
    query.instance_type = product_->name;
    query.instance_count = wish.count;
  }
  if (!wish.at_once) {
    query.start_date_range = next_boundary() + kDay * wish.start_in_days;
    // Nothing but the aligned form begins at such a time.
  }
  const auto search = CheckQuery(query, now_);
  EXPECT_TRUE(search.ok()) << search.status();
  return SearchOfferings(book_->profile(), book_->prices(), *search, now_);
}

Offering BlockWorld::Find(const Wish& wish) {
  const SearchAnswer answer = Search(wish);
  for (const Offering& offering : answer.offerings) {
    if (IsBoundary(offering.start) != wish.at_once) return offering;
  }
  ADD_FAILURE() << "no offering of " << wish.count << " for " << wish.days << " days";
  return {.product = product_, .start = now_, .end = next_boundary()};
}

absl::StatusOr<std::shared_ptr<const Block>> BlockWorld::TryToBuy(const Offering& offering,
                                                                  const Wish& wish) {
  auto block = book_->Purchase({.offering_id = OfferingId(offering),
                                .key = {wish.owner, ""},
                                .token = wish.token,
                                .tags = wish.tags,
                                .terms = wish.terms},
                               now_);
  book_->Advance(now_);
  Audit();
  return block;
}

std::shared_ptr<const Block> BlockWorld::Buy(const Wish& wish) {
  auto block = TryToBuy(Find(wish), wish);
  EXPECT_TRUE(block.ok()) << block.status();
  return block.ok() ? book_->Find((*block)->reservation) : std::make_shared<const Block>();
}

absl::StatusOr<std::shared_ptr<const Block>> BlockWorld::TryToExtend(const Block& block, int days,
                                                                     const std::string& token) {
  const auto offering = book_->OfferExtension(block.reservation, days * 24, now_);
  if (!offering.ok()) return offering.status();
  auto extended = book_->Extend({.reservation = block.reservation,
                                 .offering_id = ExtensionOfferingId(*offering),
                                 .token = token},
                                now_);
  book_->Advance(now_);
  Audit();
  return extended;
}

void BlockWorld::MoveTo(WallTime time) {
  ASSERT_GE(time, now_);
  SetClock(time);
}

void BlockWorld::SetClock(WallTime time) {
  now_ = time;
  book_->Advance(now_);
  Audit();
}

void BlockWorld::SetHealthy(int number, bool healthy) {
  host(number).healthy = healthy;
  Tell(number);
  SetClock(now_);
}

void BlockWorld::SetHeld(int number, const std::string& owner, std::optional<WallTime> until) {
  host(number).held = !owner.empty();
  host(number).held_by = owner;
  host(number).held_until = until;
  Tell(number);
  SetClock(now_);
}

std::string BlockWorld::NewsOf(const Block& block) {
  for (BlockChange& change : book_->TakeChanges()) news_.push_back(std::move(change));
  std::string words;
  std::erase_if(news_, [&](const BlockChange& change) {
    if (change.block->reservation != block.reservation) return false;
    words += (words.empty() ? "" : ", ") + std::string(NewsName(change.news));
    return true;
  });
  return words;
}

void BlockWorld::Restart(WallTime clock) {
  now_ = clock;
  std::vector<Block> blocks;
  book_->blocks().ForEach([&](const std::string&, const auto& block) { blocks.push_back(*block); });
  book_ = std::make_unique<BlockBook>(options_, now_);
  for (Block& block : blocks) {
    const auto restored = book_->Restore(std::move(block));
    EXPECT_TRUE(restored.ok()) << restored.status();
  }
  for (int host = 0; host < static_cast<int>(hosts_.size()); ++host) Tell(host);
  SetClock(now_);
}

// Counts everything again from the blocks alone.
void BlockWorld::Audit() {
  std::map<std::pair<std::string, Slot>, int> booked;
  std::map<std::string, std::vector<std::pair<WallTime, WallTime>>> bound;
  book_->blocks().ForEach([&](const std::string& reservation, const auto& block) {
    if (!HoldsCapacity(block->state)) return;
    SlotRange slots = block->slots();
    const bool early = block->terms.binding == BindingMode::kAtPurchase;
    if (early) slots.first = SlotOf(block->created);
    for (const CellShare& share : block->cells) {
      for (Slot slot = std::max(slots.first, book_->profile().today()); slot < slots.last; ++slot) {
        booked[{share.cell, slot}] += share.hosts;
      }
    }
    for (const std::string& host : block->hosts) {
      bound[host].emplace_back(early ? block->created : block->start(), block->end);
    }
    if (block->state == BlockState::kActive) {
      EXPECT_EQ(block->hosts.size(), static_cast<std::size_t>(block->bought.count)) << reservation;
      EXPECT_LE(block->start(), book_->now()) << reservation;
    }
    EXPECT_GT(block->end, book_->now()) << reservation;
  });
  for (const auto& [place, count] : booked) {
    const auto pool = book_->profile().Find(
        {.product = product_, .zone = std::string(kZone), .cell = place.first});
    ASSERT_TRUE(pool.has_value());
    EXPECT_EQ(book_->profile().Booked(*pool, place.second), count) << "slot " << place.second;
  }
  for (auto& [host, times] : bound) {
    std::sort(times.begin(), times.end());
    for (std::size_t i = 1; i < times.size(); ++i) {
      EXPECT_LE(times[i - 1].second, times[i].first) << host << " is bound to two blocks at once";
    }
  }
}

}  // namespace tahoma::controller
