#include "controller/core/blocks/waitlist.h"

#include <algorithm>
#include <memory>

#include "controller/reserve/refusal.h"
#include "lib/base/status.h"

namespace tahoma::controller {
namespace {

const std::string& ProductOf(const WaitlistRequest& request) {
  return request.query.ultraserver_type.empty() ? request.query.instance_type
                                                : request.query.ultraserver_type;
}

BlockKey BlockOf(const RequestFact& fact) {
  const auto& request = std::get<WaitlistRequest>(fact.spec);
  return {fact.key.ns, request.block.empty() ? fact.key.name : request.block};
}

std::string Wish(const WaitlistRequest& request) {
  const auto count = request.query.ultraserver_type.empty() ? request.query.instance_count
                                                            : request.query.ultraserver_count;
  return fmt::format("{} {} for {} hours", count.value_or(0), ProductOf(request),
                     request.query.duration_hours.value_or(0));
}

// Returns whether any slot has more room in `b` than in `a`.
bool HasMoreRoom(const TimeProfile& a, const TimeProfile& b, PoolId id) {
  const auto before = a.Find(b.pool(id));
  if (!before || a.today() != b.today()) return true;
  const SlotRange slots{b.today(), b.today() + kSlotsAhead};
  const std::vector<int> was = a.FreeIn(*before, slots);
  const std::vector<int> is = b.FreeIn(id, slots);
  for (std::size_t i = 0; i < is.size(); ++i) {
    if (is[i] > was[i]) return true;
  }
  return false;
}

}  // namespace

// Returns the last moment at which the entry may still find something.
WallTime Waitlist::EndOf(const RequestFact& fact) const {
  const auto& query = std::get<WaitlistRequest>(fact.spec).query;
  const WallTime created = blocks_.time().ToBlock(fact.created);
  return query.end_date_range.value_or(std::max(created, query.start_date_range.value_or(created)) +
                                       kHorizon);
}

void Waitlist::Put(const RequestFact& fact) {
  if (places_.contains(fact.key) || !fact.spec_error.empty()) return;
  const std::string& product = ProductOf(std::get<WaitlistRequest>(fact.spec));
  const Place place{fact.created, fact.key};
  Queue& queue = queues_[product];
  queue.entries.insert(place);
  if (!queue.next || place < *queue.next) queue.next = place;
  places_[fact.key] = {product, place};
}

void Waitlist::Forget(const RequestKey& key) {
  const auto found = places_.find(key);
  if (found == places_.end()) return;
  const auto queue = queues_.find(found->second.first);
  queue->second.entries.erase(found->second.second);
  if (queue->second.entries.empty()) queues_.erase(queue);
  places_.erase(found);
}

void Waitlist::NoteChanges() {
  const TimeProfile& now = blocks_.book().profile();
  if (queues_.empty()) {
    seen_ = now;
    return;
  }
  TimeProfile::ForEachChangedPool(seen_, now, [&](PoolId id) {
    const auto queue = queues_.find(std::string(now.pool(id).product->name));
    if (queue == queues_.end() || !HasMoreRoom(seen_, now, id)) return;
    queue->second.next = *queue->second.entries.begin();
  });
  seen_ = now;
}

std::vector<RequestKey> Waitlist::DrainDue() {
  std::vector<RequestKey> due;
  for (auto& [product, queue] : queues_) {
    if (!queue.next) continue;
    auto place = queue.entries.lower_bound(*queue.next);
    while (place != queue.entries.end() && due.size() < kLooksTogether) {
      due.push_back((place++)->second);
    }
    queue.next = place == queue.entries.end() ? std::nullopt : std::optional(*place);
  }
  return due;
}

bool Waitlist::has_due() const {
  return std::ranges::any_of(queues_,
                             [](const auto& queue) { return queue.second.next.has_value(); });
}

const RequestKey* Waitlist::OfBlock(const BlockKey& key) const {
  const auto found = of_block_.find(key);
  return found == of_block_.end() ? nullptr : &found->second;
}

RequestAnswer Waitlist::Look(const RequestFact& fact, bool settled, WallTime now) {
  if (!fact.spec_error.empty()) {
    if (settled) return {};
    return {.status = RefusedStatus(Refuse(kInvalidParameterValue, "{}", fact.spec_error))};
  }
  const BlockKey key = BlockOf(fact);
  const auto block = blocks_.book().FindByKey(key);
  if (block != nullptr && block->token == fact.uid) return AnswerBought(fact, *block);
  if (settled || fact.deleting) {
    Forget(fact.key);
    return {};
  }
  const auto& request = std::get<WaitlistRequest>(fact.spec);
  RequestAnswer answer;
  if (request.buy && (block != nullptr || blocks_.HasObject(key))) {
    answer.status = RefusedStatus(
        Refuse(kIdempotentMismatch, "there is a CapacityBlock {} already", ToString(key)));
  } else {
    answer = Search(fact, now);
  }
  if (answer.status && IsSettled(*answer.status)) Forget(fact.key);
  return answer;
}

RequestAnswer Waitlist::Search(const RequestFact& fact, WallTime now) {
  const auto& request = std::get<WaitlistRequest>(fact.spec);
  const WallTime end = EndOf(fact);
  const auto expired = [&] {
    return RequestAnswer{
        .status = RequestStatus{.state = "expired",
                                .message = fmt::format("nothing was found for {} until {}",
                                                       Wish(request), FormatTime(end))}};
  };
  if (now >= end) return expired();
  RequestAnswer answer{.status = RequestStatus{.state = std::string(kWaiting),
                                               .message = "waits for " + Wish(request)},
                       .look_again = end};
  OfferingQuery query = request.query;
  query.end_date_range = end;
  if (query.start_date_range && *query.start_date_range > now + kHorizon) {
    answer.look_again = *query.start_date_range - kHorizon;  // the first moment to sell it
    return answer;
  }
  const absl::StatusOr<OfferingSearch> search = CheckQuery(query, now);
  if (!search.ok()) {
    // The window has become too short for the duration, or never was long enough.
    if (fact.status && fact.status->state == kWaiting) return expired();
    return {.status = RefusedStatus(search.status())};
  }
  const SearchAnswer found =
      SearchOfferings(blocks_.book().profile(), blocks_.book().prices(), *search, now);
  for (const Offering& offering : found.offerings) {
    if (request.fee_most && offering.fee() > *request.fee_most) continue;
    return AnswerFound(fact, offering, now);
  }
  return answer;
}

RequestAnswer Waitlist::AnswerFound(const RequestFact& fact, const Offering& offering,
                                    WallTime now) {
  const auto& request = std::get<WaitlistRequest>(fact.spec);
  const std::string id = OfferingId(offering, blocks_.book().offering_key());
  if (!request.buy) {
    return {.status = RequestStatus{
                .state = "found",
                .message = fmt::format("{} from {} to {} for {} USD; buy it before others do",
                                       Wish(request), FormatTime(offering.start),
                                       FormatTime(offering.end), offering.fee().ToString()),
                .result = WaitlistResult{.offering_id = id}}};
  }
  const auto bought = blocks_.Purchase({.offering_id = id,
                                        .platform = request.platform,
                                        .key = BlockOf(fact),
                                        .token = fact.uid,
                                        .tags = request.tags},
                                       now);
  if (bought.ok()) return AnswerBought(fact, **bought);
  // A quota, as a rule: it may be found again when something has changed.
  return {.status = RequestStatus{.state = std::string(kWaiting),
                                  .message = fmt::format("{}: {}", Ec2CodeOf(bought.status()),
                                                         Message(bought.status()))},
          .look_again = EndOf(fact)};
}

// Shown when the block's own object has it, as for extensions.
RequestAnswer Waitlist::AnswerBought(const RequestFact& fact, const Block& block) {
  Forget(fact.key);
  of_block_[block.key] = fact.key;
  if (!blocks_.IsPublished(block.key)) return {};
  of_block_.erase(block.key);
  RequestStatus status{.state = "fulfilled",
                       .message = fmt::format("Capacity Block {} from {} to {} for {} USD",
                                              block.key.name, FormatTime(block.start()),
                                              FormatTime(block.end), block.fee().ToString())};
  status.result = WaitlistResult{.offering_id = block.offering_id, .block = BoughtBlockOf(block)};
  return {.status = std::move(status)};
}

}  // namespace tahoma::controller
