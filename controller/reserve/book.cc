#include "controller/reserve/book.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "controller/reserve/ec2_id.h"
#include "controller/reserve/extension.h"
#include "controller/reserve/refusal.h"
#include "controller/reserve/search.h"
#include "lib/base/check.h"
#include "lib/base/digest.h"
#include "lib/base/status.h"

namespace tahoma::controller {
namespace {

// docs/reference/capacity-blocks.md#limits
constexpr std::array<std::string_view, 5> kPlatforms = {"Linux/UNIX", "Red Hat Enterprise Linux",
                                                        "RHEL with HA", "SUSE Linux", "Ubuntu Pro"};
// docs/reference/capacity-blocks.md#payment
constexpr std::chrono::hours kPaymentMost{12};
constexpr std::chrono::minutes kPaymentLead{5};
constexpr std::chrono::minutes kExtensionPaymentLead{35};
// More attempts than SDKs make of one call.
constexpr std::size_t kSignaturesMost = 16;

// Returns whether an offering of this form could have been made at `now`.
bool IsLegal(const Offering& offering, WallTime now) {
  if (offering.count > kHostsMost || offering.start > now + kHorizon) return false;
  if (IsBoundary(offering.start)) return IsLegalDuration(offering.duration_hours());
  if (offering.end - offering.start - offering.product->reclaim < kLeastUse) return false;
  if (offering.start > now + kEarliestStart + std::chrono::minutes(1)) return false;
  const std::int64_t slots = offering.slots().size();
  return slots <= kDaysMost && (IsLegalDuration(slots * 24) || IsLegalDuration((slots - 1) * 24));
}

Payment PaymentOf(const PaymentOptions& options, const Tags& tags, WallTime now, WallTime latest) {
  const bool fails =
      std::find(tags.begin(), tags.end(),
                std::pair<std::string, std::string>(options.failure_tag, "fail")) != tags.end();
  return {.settles = now + options.delay,
          .succeeds = !fails,
          .deadline = std::min(now + kPaymentMost, latest)};
}

}  // namespace

std::string_view NewsName(BlockNews news) {
  switch (news) {
    case BlockNews::kPurchased:
      return "CapacityBlockPurchased";
    case BlockNews::kPaid:
      return "CapacityBlockScheduled";
    case BlockNews::kPaymentFailed:
      return "CapacityBlockPaymentFailed";
    case BlockNews::kBound:
      return "CapacityBlockHardwareBound";
    case BlockNews::kDelivered:
      return "CapacityBlockDelivered";
    case BlockNews::kWarned:
      return "CapacityBlockExpirationWarning";
    case BlockNews::kReclaimed:
      return "CapacityBlockReclaimed";
    case BlockNews::kExpired:
      return "CapacityBlockExpired";
    case BlockNews::kFailed:
      return "CapacityBlockFailed";
    case BlockNews::kUndelivered:
      return "CapacityBlockUndelivered";
    case BlockNews::kDegraded:
      return "CapacityBlockDegraded";
    case BlockNews::kRecovered:
      return "CapacityBlockRecovered";
    case BlockNews::kReplaced:
      return "CapacityBlockHostReplaced";
    case BlockNews::kExtended:
      return "CapacityBlockExtended";
    case BlockNews::kExtensionFailed:
      return "CapacityBlockExtensionFailed";
    case BlockNews::kChanged:
      return "CapacityBlockChanged";
  }
  return "";
}

std::string BlockBook::TokenKey(std::string_view owner, std::string_view token) {
  std::string key(owner);
  key += '\n';
  key += token;
  return key;
}

// A host that was chosen at the purchase is bound to this block alone until it begins.
SlotRange BlockBook::BookedSlots(const Block& block) {
  SlotRange slots = block.slots();
  if (block.terms.binding == BindingMode::kAtPurchase) slots.first = SlotOf(block.created);
  return slots;
}

HostBinding BlockBook::BindingOf(const Block& block) {
  const bool early = block.terms.binding == BindingMode::kAtPurchase;
  return {.reservation = block.reservation,
          .owner = block.key.ns,
          .start = early ? block.created : block.start(),
          .end = block.end};
}

std::shared_ptr<const QuotaTable> BlockBook::quotas() const {
  if (shown_quotas_ == nullptr) shown_quotas_ = std::make_shared<const QuotaTable>(quotas_);
  return shown_quotas_;
}

BlockBook::BlockBook(BookOptions options, WallTime now)
    : options_(std::move(options)),
      now_(now),
      profile_(SlotOf(now)),
      hosts_(profile_, options_.hosts),
      quotas_(SlotOf(now), options_.quota) {}

absl::StatusOr<std::shared_ptr<const Block>> BlockBook::Restore(Block block) {
  TAHOMA_RETURN_IF_ERROR(CheckConsistency(block));
  const HostBinding binding = BindingOf(block);
  for (const std::string& host : block.hosts) {
    for (const HostBinding& other : hosts_.BindingsOf(host)) {
      if (other.Overlaps(binding)) {
        return DataLoss("host {} is bound to the Capacity Blocks {} and {} at the same time", host,
                        other.reservation, block.reservation);
      }
    }
  }
  auto restored = std::make_shared<const Block>(std::move(block));
  if (!KeepNew(restored)) {
    return DataLoss("Capacity Block {} of {} is there twice", restored->reservation,
                    ToString(restored->key));
  }
  // The clock may have been set back meanwhile.
  MoveTimeTo(LatestMoment(*restored));
  version_ = std::max(version_, restored->version);
  // A host may have gone while no process ran: no news will tell.
  if (!restored->hosts.empty()) touched_.insert(restored->reservation);
  Count(*restored, 1);
  return restored;
}

void BlockBook::PutHost(HostState host, WallTime now) {
  const HostState* before = hosts_.Find(host.name);
  if (before != nullptr && *before == host) return;
  const std::string name = host.name;
  if (before != nullptr) changed_pools_.insert(profile_.IdOf(before->pool));
  changed_pools_.insert(profile_.IdOf(host.pool));
  unplanned_.insert(profile_.IdOf(host.pool));
  hosts_.Put(std::move(host), std::max(now, now_));
  for (const HostBinding& binding : hosts_.BindingsOf(name)) touched_.insert(binding.reservation);
}

void BlockBook::RemoveHost(const std::string& name, WallTime now) {
  for (const HostBinding& binding : hosts_.BindingsOf(name)) touched_.insert(binding.reservation);
  if (const HostState* host = hosts_.Find(name)) {
    changed_pools_.insert(profile_.IdOf(host->pool));
  }
  hosts_.Remove(name, std::max(now, now_));
}

void BlockBook::PlanUsesAgain(const std::string& host) {
  if (const HostState* state = hosts_.Find(host)) unplanned_.insert(profile_.IdOf(state->pool));
}

std::shared_ptr<const Block> BlockBook::Find(const std::string& reservation) const {
  const auto* found = blocks_.Find(reservation);
  return found == nullptr ? nullptr : *found;
}

std::shared_ptr<const Block> BlockBook::FindByKey(const BlockKey& key) const {
  const auto found = by_key_.find(key);
  return found == by_key_.end() ? nullptr : found->second;
}

void BlockBook::CountDue(const Block& block, int sign) {
  const auto due = NextDue(block);
  if (!due) return;
  if (sign > 0) dues_.Add(*due, block.reservation);
  if (sign < 0) dues_.Remove(*due, block.reservation);
  if (due->kind != DueKind::kBind || due->when != block.start() - kBindingLead) return;
  if (!IsBoundary(block.start())) return;  // no block ends then
  const std::pair<std::string, Slot> place{block.key.ns, SlotOf(block.start())};
  std::set<std::string>& here = to_bind_[place];
  if (sign > 0) here.insert(block.reservation);
  if (sign < 0) here.erase(block.reservation);
  if (here.empty()) to_bind_.erase(place);
}

// Adds (sign 1) or takes away (sign -1) everything derived from the block. blocks_ has the block,
// or is about to have it.
void BlockBook::Count(const Block& block, int sign) {
  CountDue(block, sign);
  if (!HoldsCapacity(block.state)) return;
  for (const CellShare& share : block.cells) {
    const PoolId pool = profile_.IdOf(PoolOf(block, share.cell));
    profile_.Book(pool, BookedSlots(block), sign * share.hosts);
    unplanned_.insert(pool);
    if (sign > 0) in_pool_[pool].insert(&block);
    if (sign < 0) in_pool_[pool].erase(&block);
    if (!block.wants_hosts()) continue;
    if (sign > 0) waiting_[pool].insert(block.reservation);
    if (sign < 0) waiting_[pool].erase(block.reservation);
  }
  ChangeQuotas().Add(block.key.ns, block.slots(), sign * block.bought.instances());
  for (const std::string& host : block.hosts) {
    if (sign > 0) hosts_.Bind(host, BindingOf(block), now_);
    if (sign < 0) hosts_.Unbind(host, block.reservation, now_);
  }
}

void BlockBook::Put(const std::shared_ptr<const Block>& block) {
  if (const auto before = Find(block->reservation)) Count(*before, -1);
  Count(*block, 1);
  Keep(block);
}

void BlockBook::Keep(const std::shared_ptr<const Block>& block) {
  by_key_[block->key] = block;
  if (!block->token.empty()) by_token_[TokenKey(block->key.ns, block->token)] = block;
  KeepSignatures(*block);
  blocks_.Put(block->reservation, block);
}

void BlockBook::KeepSignatures(const Block& block) {
  for (const std::string& signature : block.signatures) {
    reservation_of_signature_[TokenKey(block.key.ns, signature)] = block.reservation;
  }
}

// Keeps a block unless its id, name or token is taken. Returns whether the block was kept.
bool BlockBook::KeepNew(const std::shared_ptr<const Block>& block) {
  if (Find(block->reservation) != nullptr) return false;
  if (!by_key_.try_emplace(block->key, block).second) return false;
  if (!block->token.empty() &&
      !by_token_.try_emplace(TokenKey(block->key.ns, block->token), block).second) {
    by_key_.erase(block->key);
    return false;
  }
  KeepSignatures(*block);
  blocks_.Put(block->reservation, block);
  return true;
}

void BlockBook::Change(Block block, BlockNews news, std::string message, WallTime when) {
  ++version_.number;
  block.version = version_;
  auto changed = std::make_shared<const Block>(std::move(block));
  Put(changed);
  changes_.push_back({std::move(changed), news, std::move(message), when});
}

void BlockBook::Withdraw(const std::string& reservation) {
  const auto block = Find(reservation);
  TAHOMA_CHECK(block != nullptr && block->uid.empty());  // else somebody was promised the block
  Block withdrawn = *block;
  withdrawn.state = BlockState::kFailed;
  withdrawn.hosts.clear();
  NotePools(withdrawn);
  Put(std::make_shared<const Block>(std::move(withdrawn)));
}

bool BlockBook::Forget(const std::string& reservation) {
  const auto block = Find(reservation);
  if (block == nullptr || HoldsCapacity(block->state)) return false;
  Erase(*block);
  return true;
}

void BlockBook::Erase(const Block& block) {
  Count(block, -1);
  by_key_.erase(block.key);
  by_token_.erase(TokenKey(block.key.ns, block.token));
  for (const std::string& signature : block.signatures) {
    reservation_of_signature_.erase(TokenKey(block.key.ns, signature));
  }
  blocks_.Erase(std::string(block.reservation));
}

std::vector<BlockChange> BlockBook::TakeChanges() { return std::exchange(changes_, {}); }

absl::StatusOr<Offering> BlockBook::CheckOffering(const PurchaseOrder& order, WallTime now) const {
  TAHOMA_ASSIGN_OR_RETURN(Offering offering,
                          ReadOfferingId(order.offering_id, options_.offering_key));
  if (offering.start < now + kPaymentLead) {
    return Refuse(kOfferingExpired, "the start of the offering, {}, is too near; search again",
                  FormatTime(offering.start));
  }
  if (!IsLegal(offering, now)) {
    return Refuse(kOfferingNotFound, "offering {} was never made here; search again",
                  order.offering_id);
  }
  if (offering.rate != prices().RateOf(*offering.product)) {
    return Refuse(kOfferingExpired, "the price has changed since the offering; search again");
  }
  if (std::find(kPlatforms.begin(), kPlatforms.end(), order.platform) == kPlatforms.end()) {
    return Refuse(kInvalidParameterValue, "InstancePlatform {}: must be one of {}", order.platform,
                  fmt::join(kPlatforms, ", "));
  }
  return offering;
}

// Returns the block that the order bought earlier; nullptr when there is none.
absl::StatusOr<std::shared_ptr<const Block>> BlockBook::FindRepeated(
    const PurchaseOrder& order) const {
  std::shared_ptr<const Block> block;
  if (!order.token.empty()) {
    const auto found = by_token_.find(TokenKey(order.key.ns, order.token));
    if (found != by_token_.end()) block = found->second;
  }
  if (block != nullptr) {
    const bool same_name = order.key.name.empty() || order.key == block->key;
    if (same_name && block->offering_id == order.offering_id && block->platform == order.platform) {
      return block;
    }
    return Refuse(kIdempotentMismatch,
                  "the token \"{}\" has bought something else before: Capacity Block {}",
                  order.token, block->reservation);
  }
  const auto signed_for = reservation_of_signature_.find(TokenKey(order.key.ns, order.signature));
  if (!order.signature.empty() && signed_for != reservation_of_signature_.end()) {
    return Refuse(kIdempotentMismatch,
                  "this signed request has bought the Capacity Block {} under another token; "
                  "a request that is signed at another second, or has another tag, buys anew",
                  signed_for->second);
  }
  if (order.key.name.empty()) return block;
  if (const auto named = FindByKey(order.key)) {
    return Refuse(kIdempotentMismatch, "the name {} is that of the Capacity Block {}",
                  ToString(order.key), named->reservation);
  }
  return block;
}

// Returns the block with the signature of this further attempt.
std::shared_ptr<const Block> BlockBook::NoteSignature(const std::shared_ptr<const Block>& block,
                                                      const PurchaseOrder& order) {
  const auto& known = block->signatures;
  if (order.dry_run || order.signature.empty() ||
      std::find(known.begin(), known.end(), order.signature) != known.end()) {
    return block;
  }
  Block noted = *block;
  noted.signatures.push_back(order.signature);
  if (noted.signatures.size() > kSignaturesMost) {
    reservation_of_signature_.erase(TokenKey(block->key.ns, known.front()));
    noted.signatures.erase(noted.signatures.begin());
  }
  Change(std::move(noted), BlockNews::kChanged, "", now_);
  return changes_.back().block;
}

Block BlockBook::MakeBlock(const PurchaseOrder& order, const Offering& offering,
                           std::vector<CellShare> cells, WallTime now) const {
  Block block{.key = order.key,
              .uid = order.uid,
              .token = order.token,
              .offering_id = order.offering_id,
              .platform = order.platform,
              .tags = order.tags,
              .terms = order.terms,
              .bought = offering,
              .cells = std::move(cells),
              .created = now,
              .end = offering.end,
              .usage = {.chip_ms = {}, .as_of = offering.start}};
  if (!order.signature.empty()) block.signatures = {order.signature};
  // An id is a digest of the order and the time; `number` makes an id that is not taken.
  for (int number = 0; block.reservation.empty() || Find(block.reservation) != nullptr; ++number) {
    block.reservation =
        "cr-" + Sha256Hex(fmt::format("{}\n{}\n{}\n{}\n{}", ToString(order.key), order.token,
                                      order.offering_id, now.time_since_epoch().count(), number))
                    .substr(0, kIdDigits);
  }
  if (block.key.name.empty()) block.key.name = block.reservation;
  const int blocks = offering.product->ultra_server ? offering.count : 1;
  for (int i = 0; i < blocks; ++i) {
    block.block_ids.push_back(
        "cb-" + Sha256Hex(fmt::format("{}\n{}", block.reservation, i)).substr(0, kIdDigits));
  }
  block.payment = PaymentOf(options_.payment, block.tags, now, offering.start - kPaymentLead);
  return block;
}

absl::StatusOr<std::shared_ptr<const Block>> BlockBook::Purchase(const PurchaseOrder& order,
                                                                 WallTime now) {
  MoveTimeTo(now);
  now = now_;
  TAHOMA_ASSIGN_OR_RETURN(std::shared_ptr<const Block> repeated, FindRepeated(order));
  if (repeated != nullptr) return NoteSignature(repeated, order);
  TAHOMA_ASSIGN_OR_RETURN(const Offering offering, CheckOffering(order, now));
  TAHOMA_RETURN_IF_ERROR(quotas_.Check(order.key.ns, offering.slots(), offering.instances()));
  SlotRange slots = offering.slots();
  if (order.terms.binding == BindingMode::kAtPurchase) slots.first = SlotOf(now);
  if (!order.terms.access.empty() &&
      Allowed(order.terms, *offering.product).access != order.terms.access) {
    return Refuse(kUnsupportedInstanceType,
                  "access: UltraServer blocks cannot be shared with other namespaces; only gangs "
                  "of {} may run in it",
                  order.key.ns);
  }
  std::vector<CellShare> cells = ChooseCells(profile_, *offering.product, offering.zone, slots,
                                             offering.count, offering.any_cell);
  if (cells.empty()) {
    return Refuse(kOfferingExpired,
                  "the capacity of the offering was sold or failed meanwhile; search again");
  }
  Block block = MakeBlock(order, offering, std::move(cells), now);
  if (block.terms.binding == BindingMode::kAtPurchase) {
    block.hosts = AddHosts(block, {}, now, now);
    if (block.hosts.size() != static_cast<std::size_t>(offering.count)) {
      return Refuse(kInsufficientCapacity,
                    "{} of {} hosts can be chosen now; without bindingMode AtPurchase they are "
                    "chosen before the start",
                    block.hosts.size(), offering.count);
    }
    block.bound = now;
  }
  if (order.dry_run) return std::make_shared<const Block>(std::move(block));
  std::string message =
      fmt::format("{} {} from {} to {} for {} USD", offering.count, offering.product->name,
                  FormatTime(offering.start), FormatTime(offering.end), block.fee().ToString());
  Change(std::move(block), BlockNews::kPurchased, std::move(message), now);
  return changes_.back().block;
}

absl::Status BlockBook::AllOrNothing(absl::FunctionRef<absl::Status()> purchases) {
  const std::size_t before = changes_.size();
  absl::Status status = purchases();
  if (status.ok()) return status;
  while (changes_.size() > before) {
    TAHOMA_CHECK(changes_.back().news == BlockNews::kPurchased);
    const std::string reservation = changes_.back().block->reservation;
    changes_.pop_back();
    Withdraw(reservation);
    Forget(reservation);
  }
  return status;
}

absl::Status BlockBook::CheckExtension(const Block& block, WallTime end, WallTime now) const {
  TAHOMA_RETURN_IF_ERROR(controller::CheckExtension(profile_, block, end, now));
  if (!MayKeepHosts(block, end)) {
    return Refuse(kInsufficientCapacity,
                  "hosts of {} were chosen for another block that begins before {}",
                  block.reservation, FormatTime(end));
  }
  return quotas_.Check(block.key.ns, SlotsOf(block.end, end), block.bought.instances());
}

bool BlockBook::MayKeepHosts(const Block& block, WallTime end) const {
  for (const std::string& host : block.hosts) {
    for (const HostBinding& binding : hosts_.BindingsOf(host)) {
      if (binding.reservation != block.reservation && binding.start < end &&
          binding.end > block.end) {
        return false;
      }
    }
  }
  return true;
}

absl::StatusOr<ExtensionOffering> BlockBook::OfferExtension(const std::string& reservation,
                                                            std::int64_t hours,
                                                            WallTime now) const {
  now = std::max(now, now_);
  const auto block = Find(reservation);
  if (block == nullptr) {
    return Refuse(kReservationNotFound, "there is no Capacity Block {}", reservation);
  }
  auto offering = controller::OfferExtension(profile_, prices(), *block, hours, now);
  if (!offering.ok()) return offering.status();
  TAHOMA_RETURN_IF_ERROR(CheckExtension(*block, offering->end, now));
  return offering;
}

absl::StatusOr<std::shared_ptr<const Block>> BlockBook::Extend(const ExtensionOrder& order,
                                                               WallTime now) {
  MoveTimeTo(now);
  now = now_;
  TAHOMA_ASSIGN_OR_RETURN(const ExtensionOffering offering,
                          ReadExtensionOfferingId(order.offering_id, options_.offering_key));
  const auto before = Find(order.reservation);
  if (before == nullptr) {
    return Refuse(kReservationNotFound, "there is no Capacity Block {}", order.reservation);
  }
  for (const Extension& extension : before->extensions) {
    if (order.token.empty() || extension.token != order.token) continue;
    if (extension.offering_id == order.offering_id) return before;
    return Refuse(kIdempotentMismatch, "the token \"{}\" has bought another extension before",
                  order.token);
  }
  if (offering.reservation != order.reservation || offering.start != before->end ||
      offering.count != before->bought.count ||
      offering.rate != prices().RateOf(before->product())) {
    return Refuse(kOfferingExpired,
                  "the extension offering is not one for {} as it is now; search again",
                  order.reservation);
  }
  if (!IsBoundary(offering.end) || !IsLegalDuration(offering.duration_hours())) {
    return Refuse(kOfferingNotFound, "extension offering {} was never made here",
                  order.offering_id);
  }
  TAHOMA_RETURN_IF_ERROR(CheckExtension(*before, offering.end, now));
  Block block = *before;
  block.extensions.push_back(
      {.offering_id = order.offering_id,
       .token = order.token,
       .purchased = now,
       .start = offering.start,
       .end = offering.end,
       .fee = offering.fee(),
       .payment = PaymentOf(options_.payment, block.tags, now, block.end - kExtensionPaymentLead)});
  if (order.dry_run) return std::make_shared<const Block>(std::move(block));
  Change(std::move(block), BlockNews::kChanged,
         fmt::format("an extension to {} for {} USD waits for its payment",
                     FormatTime(offering.end), offering.fee().ToString()),
         now);
  return changes_.back().block;
}

void BlockBook::SetUid(const std::string& reservation, const std::string& uid) {
  const auto before = Find(reservation);
  if (before == nullptr || before->uid == uid) return;
  Block block = *before;
  block.uid = uid;
  Change(std::move(block), BlockNews::kChanged, "", now_);
}

void BlockBook::AskReplacement(const std::string& reservation, const std::string& request,
                               WallTime now) {
  if (request.empty()) return;
  const auto before = Find(reservation);
  if (before == nullptr || before->replace_request == request) return;
  Block block = *before;
  block.replace_request = request;
  const bool allowed = block.terms.replace != ReplacePolicy::kNone;
  block.replacing = allowed && IsDelivered(block.state) && !block.trouble.empty();
  std::string message =
      block.replacing ? fmt::format("replacement \"{}\" of failed hosts was asked for", request)
      : !allowed      ? fmt::format(
                            "replacement \"{}\" is not done: its "
                                 "replacePolicy is None",
                            request)
                 : fmt::format("replacement \"{}\": no host of it has failed", request);
  Change(std::move(block), BlockNews::kChanged, std::move(message), std::max(now, now_));
  touched_.insert(reservation);
}

void BlockBook::SetUsage(const std::string& reservation, const BlockUsage& usage) {
  const auto before = Find(reservation);
  if (before == nullptr || before->usage == usage) return;
  auto block = std::make_shared<Block>(*before);
  block->usage = usage;
  // No count depends on the usage.
  if (HoldsCapacity(block->state)) {
    for (const CellShare& share : block->cells) {
      auto& here = in_pool_.at(profile_.IdOf(PoolOf(*block, share.cell)));
      here.erase(before.get());
      here.insert(block.get());
    }
  }
  Keep(block);
  changes_.push_back({std::move(block), BlockNews::kChanged, "", now_});
}

// Returns the terms without those that are not allowed: hardware of UltraServers is not shared.
BlockTerms BlockBook::Allowed(BlockTerms terms, const Product& product) const {
  if (product.ultra_server && !options_.share_ultra_servers) terms.access.clear();
  return terms;
}

void BlockBook::SetTerms(const Block& block, const BlockTerms& terms, const Tags& tags,
                         WallTime now) {
  BlockTerms allowed = Allowed(terms, block.product());
  allowed.binding = block.terms.binding;  // was carried out at the purchase
  if (allowed == block.terms && tags == block.tags) return;
  Block changed = block;
  changed.terms = std::move(allowed);
  changed.tags = tags;
  touched_.insert(changed.reservation);
  Change(std::move(changed), BlockNews::kChanged, "its terms or tags were changed",
         std::max(now, now_));
}

}  // namespace tahoma::controller
