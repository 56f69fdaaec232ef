#include "controller/core/blocks/block_extensions.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "controller/reserve/extension.h"
#include "controller/reserve/refusal.h"
#include "lib/base/status.h"

namespace tahoma::controller {
namespace {

const std::string& TokenOf(const RequestFact& fact, const ExtensionRequest& request) {
  return request.token.empty() ? fact.uid : request.token;
}

std::int64_t HoursOf(const Extension& extension) {
  return std::chrono::duration_cast<std::chrono::hours>(extension.end - extension.start).count();
}

// Returns whether the extension is one that the request could have bought.
bool Answers(const Extension& extension, const ExtensionRequest& request) {
  if (request.hours) return HoursOf(extension) == *request.hours;
  return extension.offering_id == request.offering_id;
}

RequestStatus StatusOf(const Block& block, const Extension& extension) {
  RequestStatus status{
      .state = std::string(StateName(extension.state)),
      .result = ExtensionResult{.block = block.key.name,
                                .reservation = block.reservation,
                                .offering_id = extension.offering_id,
                                .instance_type = std::string(block.product().instance_type),
                                .instances = block.bought.instances(),
                                .zone = block.bought.zone,
                                .hours = HoursOf(extension),
                                .purchased = InSeconds(extension.purchased),
                                .start = extension.start,
                                .end = extension.end,
                                .fee = InCents(extension.fee)}};
  switch (extension.state) {
    case ExtensionState::kPaymentPending:
      status.message = fmt::format("must be paid by {}; until then the block ends {}",
                                   FormatTime(extension.payment.deadline), FormatTime(block.end));
      break;
    case ExtensionState::kPaymentFailed:
      status.message =
          fmt::format("was not paid; the block ends {} as before", FormatTime(extension.start));
      break;
    case ExtensionState::kPaymentSucceeded:
      status.message = fmt::format("the block ends {}", FormatTime(extension.end));
      break;
  }
  return status;
}

}  // namespace

const std::set<RequestKey>& BlockExtensions::OfBlock(const BlockKey& key) const {
  static const std::set<RequestKey> kNone;
  const auto found = of_block_.find(key);
  return found == of_block_.end() ? kNone : found->second;
}

void BlockExtensions::Forget(const RequestKey& key) {
  const auto found = block_of_.find(key);
  if (found == block_of_.end()) return;
  const auto others = of_block_.find(found->second);
  others->second.erase(key);
  if (others->second.empty()) of_block_.erase(others);
  block_of_.erase(found);
}

void BlockExtensions::Note(const RequestKey& key, const BlockKey& block) {
  const auto [found, added] = block_of_.emplace(key, block);
  if (!added && found->second == block) return;
  if (!added) {
    Forget(key);
    block_of_.emplace(key, block);
  }
  of_block_[block].insert(key);
}

RequestAnswer BlockExtensions::Look(const RequestFact& fact, bool settled, WallTime now) {
  const auto& request = std::get<ExtensionRequest>(fact.spec);
  if (!fact.spec_error.empty()) {
    return settled ? RequestAnswer{}
                   : RequestAnswer{.status = RefusedStatus(
                                       Refuse(kInvalidParameterValue, "{}", fact.spec_error))};
  }
  if (!request.block.empty()) Note(fact.key, {fact.key.ns, request.block});
  const auto block = request.block.empty() ? blocks_.book().Find(request.reservation)
                                           : blocks_.book().FindByKey({fact.key.ns, request.block});
  // A block of another namespace is none: whose it is is nobody else's business.
  if (block == nullptr || block->key.ns != fact.key.ns) {
    return settled || fact.deleting ? RequestAnswer{} : LookAtMissing(fact, now);
  }
  Note(fact.key, block->key);
  const auto bought = std::ranges::find_if(block->extensions, [&](const Extension& extension) {
    return extension.token == TokenOf(fact, request);
  });
  if (bought != block->extensions.end()) {
    if (!Answers(*bought, request)) {
      return {
          .status = RefusedStatus(Refuse(
              kIdempotentMismatch, "the token \"{}\" has bought another extension before: to {}",
              TokenOf(fact, request), FormatTime(bought->end)))};
    }
    if (!blocks_.IsPublished(block->key)) return {};
    return {.status = StatusOf(*block, *bought)};
  }
  if (settled || fact.deleting) return {};
  return Buy(fact, *block, now);
}

RequestAnswer BlockExtensions::LookAtMissing(const RequestFact& fact, WallTime now) const {
  const auto& request = std::get<ExtensionRequest>(fact.spec);
  if (request.block.empty()) {
    return {.status = RefusedStatus(Refuse(kReservationNotFound,
                                           "there is no Capacity Block {} of namespace {}",
                                           request.reservation, fact.key.ns))};
  }
  const WallTime latest = blocks_.time().ToBlock(fact.created + kBlockSeenWithin);
  if (now < latest) return {.look_again = latest};
  return {.status = RefusedStatus(Refuse(kReservationNotFound,
                                         "there is no CapacityBlock {} that was bought in "
                                         "namespace {}",
                                         request.block, fact.key.ns))};
}

RequestAnswer BlockExtensions::Buy(const RequestFact& fact, const Block& block, WallTime now) {
  const auto& request = std::get<ExtensionRequest>(fact.spec);
  ExtensionOrder order{.reservation = block.reservation,
                       .offering_id = request.offering_id,
                       .token = TokenOf(fact, request)};
  if (request.hours) {
    const auto offering = blocks_.book().OfferExtension(block.reservation, *request.hours, now);
    if (!offering.ok()) return {.status = RefusedStatus(offering.status())};
    order.offering_id = ExtensionOfferingId(*offering, blocks_.book().offering_key());
  }
  const auto extended = blocks_.Extend(order, now);
  if (!extended.ok()) return {.status = RefusedStatus(extended.status())};
  return {};  // it is looked at again when the block is published
}

}  // namespace tahoma::controller
