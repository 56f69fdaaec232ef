#include "controller/core/blocks/block_series.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "controller/core/journal/block_record.h"
#include "controller/reserve/refusal.h"
#include "controller/reserve/search.h"
#include "lib/base/hex.h"
#include "lib/base/status.h"

namespace tahoma::controller {
namespace {

constexpr std::string_view kCommitted = "committed";
constexpr std::string_view kPurchased = "purchased";
constexpr int kDaysOfWeek = 7;

BlockKey KeyOf(const RequestFact& fact, int number) {
  return {fact.key.ns, fmt::format("{}-{}", fact.key.name, number)};
}

std::string TokenOf(const RequestFact& fact, int number) {
  return fmt::format("{}/{}", fact.uid, number);
}

// Returns the first start that a series may have: a boundary, and none that begins at once.
WallTime FirstStart(const OfferingQuery& query, WallTime now) {
  const WallTime earliest = std::max(query.start_date_range.value_or(now), now + kEarliestStart);
  const WallTime boundary = StartOf(SlotOf(earliest));
  return boundary == earliest ? boundary : boundary + kSlotLength;
}

// Returns what lies between two starts.
std::chrono::hours StepOf(const SeriesRequest& request) {
  return kSlotLength * (kDaysOfWeek * request.every_weeks);
}

// Refused when the last occurrence would begin later than blocks are sold.
absl::Status CheckStarts(const SeriesRequest& request, WallTime first, WallTime now) {
  const auto step = StepOf(request);
  const WallTime last = first + step * (request.occurrences - 1);
  if (last <= now + kHorizon) return absl::OkStatus();
  const std::int64_t most = first > now + kHorizon ? 0 : 1 + (now + kHorizon - first) / step;
  return Refuse(kInvalidParameterValue,
                "occurrences {}: the last would begin {}, and blocks begin at most 8 weeks ahead; "
                "{} would be possible",
                request.occurrences, FormatTime(last), most);
}

}  // namespace

const RequestKey* BlockSeries::OfBlock(const BlockKey& key) const {
  const auto found = of_block_.find(key);
  return found == of_block_.end() ? nullptr : &found->second;
}

void BlockSeries::OnFact(const RequestFact& fact, bool settled) {
  if (settled || !fact.spec_error.empty()) return;
  const auto& request = std::get<SeriesRequest>(fact.spec);
  for (int number = 1; number <= request.occurrences; ++number) {
    const BlockKey key = KeyOf(fact, number);
    if (!blocks_.HasObject(key)) blocks_.Hold(key);
  }
}

void BlockSeries::Forget(const RequestKey& key) {
  for (int number = 1; number <= kOccurrencesMost; ++number) {
    const BlockKey block{key.ns, fmt::format("{}-{}", key.name, number)};
    blocks_.Release(block);
    of_block_.erase(block);
  }
}

RequestAnswer BlockSeries::Look(const RequestFact& fact, bool settled, WallTime now) {
  if (!fact.spec_error.empty()) {
    if (settled) return {};
    return {.status = RefusedStatus(Refuse(kInvalidParameterValue, "{}", fact.spec_error))};
  }
  Adopt(fact, now);
  Blocks bought = FindAll(fact);
  const auto& request = std::get<SeriesRequest>(fact.spec);
  if (bought.size() == static_cast<std::size_t>(request.occurrences)) {
    return AnswerCommitted(fact, bought);
  }
  if (settled) return WithoutRecords(fact);
  if (fact.deleting) return {};
  bought.clear();
  const absl::Status status = blocks_.AllOrNothing([&] { return BuyAll(fact, now, bought); });
  if (!status.ok()) {
    Forget(fact.key);
    return {.status = RefusedStatus(status)};
  }
  return AnswerCommitted(fact, bought);
}

BlockSeries::Blocks BlockSeries::FindAll(const RequestFact& fact) const {
  Blocks found;
  for (int number = 1; number <= std::get<SeriesRequest>(fact.spec).occurrences; ++number) {
    auto block = blocks_.book().FindByKey(KeyOf(fact, number));
    if (block == nullptr || block->token != TokenOf(fact, number)) break;
    found.push_back(std::move(block));
  }
  return found;
}

absl::Status BlockSeries::BuyAll(const RequestFact& fact, WallTime now, Blocks& bought) {
  const auto& request = std::get<SeriesRequest>(fact.spec);
  const bool named = !request.offering_ids.empty();
  const WallTime first = FirstStart(request.query, now);
  if (!named) TAHOMA_RETURN_IF_ERROR(CheckStarts(request, first, now));
  for (int number = 1; number <= request.occurrences; ++number) {
    TAHOMA_ASSIGN_OR_RETURN(auto block, FindBought(fact, number));
    if (block != nullptr) {
      bought.push_back(std::move(block));
      continue;
    }
    const auto place = static_cast<std::size_t>(number - 1);
    TAHOMA_ASSIGN_OR_RETURN(
        const std::string offering,
        named ? absl::StatusOr<std::string>(request.offering_ids[place])
              : FindOffering(request, number, first + StepOf(request) * (number - 1), now));
    const absl::Status status = BuyOne(fact, number, offering, now, bought);
    if (status.ok()) continue;
    if (!named) return status;
    const std::string code = Ec2CodeOf(status);
    return RefuseWith({.name = code, .status = status.code()},
                      fmt::format("offering {} of {}: {}; none was bought", number,
                                  request.occurrences, Message(status)));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const Block>> BlockSeries::FindBought(const RequestFact& fact,
                                                                     int number) const {
  const BlockKey key = KeyOf(fact, number);
  auto named = blocks_.book().FindByKey(key);
  if (named != nullptr && named->token == TokenOf(fact, number)) return named;
  if (named != nullptr || blocks_.HasObject(key)) {
    return Refuse(kIdempotentMismatch, "there is a CapacityBlock {} already", ToString(key));
  }
  return nullptr;
}

absl::StatusOr<std::string> BlockSeries::FindOffering(const SeriesRequest& request, int number,
                                                      WallTime start, WallTime now) const {
  OfferingQuery query = request.query;
  query.start_date_range = start;
  query.end_date_range = start + std::chrono::hours(query.duration_hours.value_or(0));
  TAHOMA_ASSIGN_OR_RETURN(const OfferingSearch search, CheckQuery(query, now));
  const SearchAnswer answer =
      SearchOfferings(blocks_.book().profile(), blocks_.book().prices(), search, now);
  if (!answer.offerings.empty()) {
    return OfferingId(answer.offerings.front(), blocks_.book().offering_key());
  }
  return Refuse(kInsufficientCapacity, "occurrence {} from {}: {}; none was bought", number,
                FormatTime(start),
                answer.shortages.empty() ? "no capacity" : answer.shortages.front().message);
}

absl::Status BlockSeries::BuyOne(const RequestFact& fact, int number,
                                 const std::string& offering_id, WallTime now, Blocks& bought) {
  const auto& request = std::get<SeriesRequest>(fact.spec);
  auto block = blocks_.Purchase({.offering_id = offering_id,
                                 .platform = request.platform,
                                 .key = KeyOf(fact, number),
                                 .token = TokenOf(fact, number),
                                 .tags = request.tags},
                                now);
  if (!block.ok()) return block.status();
  bought.push_back(*std::move(block));
  return absl::OkStatus();
}

// Shows the blocks with their records until their own objects have these.
RequestAnswer BlockSeries::AnswerCommitted(const RequestFact& fact, const Blocks& bought) {
  const bool shown = fact.status && IsSettled(*fact.status);
  RequestStatus status{.state = std::string(kPurchased)};
  SeriesResult result;
  const bool published = std::ranges::all_of(
      bought, [&](const auto& block) { return blocks_.IsPublished(block->key); });
  for (const auto& block : bought) {
    of_block_[block->key] = fact.key;
    if (shown) blocks_.Release(block->key);
    if (!shown) blocks_.Hold(block->key);
    result.blocks.push_back(BoughtBlockOf(*block));
    if (!published) result.blocks.back().record = Hex(EncodeBlock(*block));
    result.fee += block->fee();
  }
  result.fee = InCents(result.fee);
  if (!published) status.state = kCommitted;
  status.message = fmt::format("{} blocks for {} USD", bought.size(), result.fee.ToString());
  status.result = std::move(result);
  return {.status = std::move(status)};
}

// A block of the series has ended and was forgotten since: it must not come back.
RequestAnswer BlockSeries::WithoutRecords(const RequestFact& fact) {
  if (!fact.status || fact.status->state != kCommitted) return {};
  RequestStatus status = *fact.status;
  status.state = kPurchased;
  if (auto* result = std::get_if<SeriesResult>(&status.result)) {
    for (BoughtBlock& block : result->blocks) block.record.clear();
  }
  return {.status = std::move(status)};
}

// Takes blocks that only this status knows: the journal was lost before they were published.
void BlockSeries::Adopt(const RequestFact& fact, WallTime now) {
  if (!fact.status) return;
  const auto* result = std::get_if<SeriesResult>(&fact.status->result);
  if (result == nullptr) return;
  for (const BoughtBlock& bought : result->blocks) {
    if (bought.record.empty() || bought.end <= now) continue;
    if (blocks_.book().Find(bought.reservation) != nullptr) continue;
    const auto bytes = Unhex(bought.record);
    if (!bytes) continue;
    auto block = DecodeBlock(*bytes);
    if (!block.ok() || block->key.ns != fact.key.ns || !HoldsCapacity(block->state)) continue;
    (void)blocks_.Adopt(*std::move(block));  // what contradicts other blocks is none
  }
}

}  // namespace tahoma::controller
