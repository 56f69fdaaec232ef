#include "controller/core/blocks/capacity_blocks.h"

#include <algorithm>

#include "controller/core/journal/block_record.h"
#include "controller/plan/decision.h"
#include "controller/reserve/refusal.h"
#include "lib/base/check.h"
#include "lib/base/hex.h"
#include "lib/base/status.h"
#include "lib/kube/resource_version.h"

namespace tahoma::controller {
namespace {

bool IsWarning(BlockNews news) {
  switch (news) {
    case BlockNews::kPaymentFailed:
    case BlockNews::kWarned:
    case BlockNews::kFailed:
    case BlockNews::kUndelivered:
    case BlockNews::kDegraded:
    case BlockNews::kExtensionFailed:
      return true;
    default:
      return false;
  }
}

EventNote EventOf(const BlockChange& change, WallTime when) {
  return {.about = EventSubject::kCapacityBlock,
          .ns = change.block->key.ns,
          .name = change.block->key.name,
          .uid = change.block->uid,
          .warning = IsWarning(change.news),
          .reason = NewsName(change.news),
          .message = change.message,
          .when = when};
}

// Returns the block that a gang names as "name" or "owner/name".
BlockKey KeyOfBlock(const GangRef& ref, const std::string& named) {
  const std::size_t slash = named.find('/');
  if (slash == std::string::npos) return {ref.key.ns, named};
  return {named.substr(0, slash), named.substr(slash + 1)};
}

Readiness WaitsForBlock(std::string message) {
  Readiness waiting;
  waiting.reason = GangReason::kWaitingForBlock;
  waiting.message = std::move(message);
  return waiting;
}

}  // namespace

absl::Status CapacityBlocks::Restore(Sequence sequence, Block block) {
  const std::string reservation = block.reservation;
  const auto [entry, is_first] = entries_.try_emplace(reservation, sequence);
  if (!is_first) {
    return DataLoss("journal entry {} is of the Capacity Block {}, as entry {} is", sequence,
                    reservation, entry->second);
  }
  TAHOMA_ASSIGN_OR_RETURN(const auto restored, book_.Restore(std::move(block)));
  Follow(restored);
  return absl::OkStatus();
}

void CapacityBlocks::Follow(const std::shared_ptr<const Block>& block) {
  magnets_.OnChange(*block);
  meter_.Forget(block->reservation);
  meter_.Restore(*block);
  Keep(block->key, ViewOf(block, book_.hosts()));
}

void CapacityBlocks::OnBlock(std::shared_ptr<const BlockFact> fact) {
  const BlockKey key = fact->key;
  facts_.Put(std::move(fact));
  gone_.erase(key);
  changed_facts_.Add(key);
}

void CapacityBlocks::OnBlockGone(const BlockKey& key, const std::string& uid) {
  if (!facts_.Remove(key, uid)) return;
  gone_.insert(key);
}

void CapacityBlocks::OnSynced() {
  book_.blocks().ForEach([&](const std::string&, const auto& block) {
    if (facts_.Find(block->key) == nullptr) gone_.insert(block->key);
  });
}

void CapacityBlocks::Step(ClusterState& cluster, const Now& now) {
  const auto facts = DrainChangedFacts();
  AdoptPublished(facts);
  const WallTime at = time_.ToBlock(now.wall);
  for (const std::string& reservation : hosts_.Update(cluster, book_, at, time_)) {
    if (const auto block = book_.Find(reservation)) Show(block->key, ViewOf(block, book_.hosts()));
  }
  book_.Advance(at);
  for (const BlockKey& key : std::exchange(gone_, {})) OnObjectGone(key);
  for (const auto& fact : facts) OnFact(*fact, at);
  for (const BlockOrder& order : std::exchange(orders_, {})) ServeOrder(order, at);
  book_.Advance(at);
  OnChanges(MeterChanges(cluster, at));
  if (!std::exchange(resumed_, true)) Resume();
  for (auto& [host, use] : book_.TakeUses()) {
    use.scale = time_.scale();
    if (use.kept_from) use.kept_from = time_.ToWall(*use.kept_from);
    if (use.lent_until) use.lent_until = time_.ToWall(*use.lent_until);
    cluster.SetBlockUse(host, use);
    capacity_freed_ = true;
  }
  for (const BlockKey& key : outbox_.DrainDue(now.monotonic)) Publish(key);
}

// Returns the objects that have changed and are there: who asked first is answered first, also
// where many have waited for a controller.
std::vector<std::shared_ptr<const BlockFact>> CapacityBlocks::DrainChangedFacts() {
  std::vector<std::shared_ptr<const BlockFact>> facts;
  for (const BlockKey& key : changed_facts_.DrainSorted()) {
    if (auto fact = facts_.Find(key)) facts.push_back(std::move(fact));
  }
  std::ranges::stable_sort(facts, {}, [](const auto& fact) { return fact->created; });
  return facts;
}

// Takes what the book has changed, and lets each of these blocks, and those whose turn it is, say
// what it was used for.
std::vector<BlockChange> CapacityBlocks::MeterChanges(const ClusterState& cluster, WallTime now) {
  std::vector<BlockChange> changes = book_.TakeChanges();
  for (const BlockChange& change : changes) meter_.Follow(*change.block, cluster, change.when);
  meter_.Update(cluster, now);
  for (const auto& [reservation, usage] : meter_.DrainRecords(now)) {
    book_.SetUsage(reservation, usage);
  }
  for (BlockChange& change : book_.TakeChanges()) changes.push_back(std::move(change));
  return changes;
}

// Journals what the book has changed, and tells people.
void CapacityBlocks::OnChanges(const std::vector<BlockChange>& changes) {
  for (EventNote& refusal : std::exchange(refusals_, {})) writes_.Add(std::move(refusal));
  for (const BlockChange& change : changes) {
    if (!change.message.empty()) writes_.Add(EventOf(change, time_.ToWall(change.when)));
    if (change.news == BlockNews::kReclaimed) NoteReclaimed(*change.block);
    if (change.block->state != BlockState::kScheduled) heirs_.erase(change.block->key);
    NoteTime(*change.block, change.news);
    magnets_.OnChange(*change.block);
    if (const auto gangs = gangs_of_block_.find(change.block->key);
        gangs != gangs_of_block_.end()) {
      touched_gangs_.insert(touched_gangs_.end(), gangs->second.begin(), gangs->second.end());
      gangs_of_block_.erase(gangs);
    }
    // It was forgotten since, or a later change has all of this one.
    if (book_.Find(change.block->reservation) != change.block) continue;
    Store(*change.block);
    Show(change.block->key, ViewOf(change.block, book_.hosts()));
  }
}

void CapacityBlocks::Store(const Block& block) {
  Sequence& entry = entries_[block.reservation];
  if (entry != 0) journal_.Drop(entry);
  entry = journal_.Add(EncodeBlock(block));
}

void CapacityBlocks::Forget(const Block& block) {
  const BlockKey key = block.key;
  const std::string reservation = block.reservation;
  if (!book_.Forget(reservation)) return;
  const auto entry = entries_.find(reservation);
  if (entry != entries_.end()) {
    journal_.Drop(entry->second);
    entries_.erase(entry);
  }
  meter_.Forget(reservation);
  Unpublish(key);
}

// Lets gangs in the block know when it takes its hardware back, once that is known or another.
void CapacityBlocks::NoteTime(const Block& block, BlockNews news) {
  const bool news_of_time = news == BlockNews::kDelivered || news == BlockNews::kExtended ||
                            news == BlockNews::kReplaced || news == BlockNews::kWarned;
  if (!news_of_time || !IsDelivered(block.state)) return;
  BlockNotice notice{.hosts = block.hosts, .reclaim = time_.ToWall(block.reclaim()), .warning = {}};
  if (news == BlockNews::kWarned) {
    notice.warning = fmt::format(
        "Capacity Block {} takes its hardware back at {}; pods end then, unless its owner's next "
        "block goes on with them and no gang that names that block lacks its place",
        ToString(block.key), FormatTime(notice.reclaim));
  }
  notices_.push_back(std::move(notice));
}

// Says of every delivered block what an earlier controller may not have said to the end.
void CapacityBlocks::Resume() {
  book_.blocks().ForEach([&](const std::string&, const auto& block) {
    NoteTime(*block, BlockNews::kDelivered);
    if (block->reclaiming && IsDelivered(block->state)) NoteReclaimed(*block);
  });
}

// What the owner runs on a host that its next block has goes on. Others may have no place in that
// one, and it could not begin beside them.
void CapacityBlocks::NoteReclaimed(const Block& block) {
  const WallTime by = time_.ToWall(block.end);
  for (const std::string& host : block.hosts) {
    ReclaimedHost reclaimed{.host = host,
                            .reason = fmt::format("Capacity Block {} ends {}: {} is taken back",
                                                  ToString(block.key), FormatTime(block.end), host),
                            .by = by};
    for (const HostBinding& binding : book_.hosts().BindingsOf(host)) {
      if (binding.start != block.end || binding.owner != block.key.ns) continue;
      reclaimed.goes_on = binding.owner;
      const BlockKey heir = book_.Find(binding.reservation)->key;
      heirs_[heir] = by;
      contested_.insert(heir);
    }
    reclaimed_.push_back(std::move(reclaimed));
  }
}

std::vector<Heir> CapacityBlocks::DrainHeirs() {
  std::vector<Heir> heirs;
  for (const BlockKey& key : std::exchange(contested_, {})) {
    const auto entry = heirs_.find(key);
    if (entry == heirs_.end()) continue;
    const auto by = std::exchange(entry->second, std::nullopt);
    auto block = book_.FindByKey(key);
    const auto gangs = gangs_of_block_.find(key);
    if (block == nullptr || gangs == gangs_of_block_.end()) continue;
    heirs.push_back({.block = std::move(block),
                     .gangs = {gangs->second.begin(), gangs->second.end()},
                     .by = by});
  }
  return heirs;
}

std::vector<GangRef> CapacityBlocks::DrainTouched() {
  std::vector<GangRef> touched = magnets_.DrainTouched();
  touched.insert(touched.end(), touched_gangs_.begin(), touched_gangs_.end());
  touched_gangs_.clear();
  return touched;
}

Readiness CapacityBlocks::Admit(const GangRef& ref, Readiness ready, WallTime now) {
  if (!ready.spec->block.empty()) {
    const BlockKey key = KeyOfBlock(ref, ready.spec->block);
    gangs_of_block_[key].insert(ref);
    if (heirs_.contains(key)) contested_.insert(key);
    return AdmitTo(key, ref, std::move(ready), now);
  }
  magnets_.NoteAsked(ref);
  std::vector<std::shared_ptr<const GangSpec>> drawn;
  for (const std::string& reservation : magnets_.DrawingFor(ref.key.ns)) {
    Readiness admitted = AdmitTo(book_.Find(reservation)->key, ref, ready, now);
    if (admitted.spec != nullptr) drawn.push_back(std::move(admitted.spec));
  }
  if (drawn.empty()) return ready;
  auto spec = std::make_shared<GangSpec>(*ready.spec);
  spec->drawn = std::move(drawn);
  ready.spec = std::move(spec);
  return ready;
}

Readiness CapacityBlocks::AdmitTo(const BlockKey& key, const GangRef& ref, Readiness ready,
                                  WallTime now) const {
  const auto block = book_.FindByKey(key);
  const std::string name = fmt::format("Capacity Block {}", ToString(key));
  if (block == nullptr) return WaitsForBlock(name + " is not bought");
  if (!block->admits(ref.key.ns)) {
    return WaitsForBlock(fmt::format(
        "{} admits no gang of namespace {}: its spec.access does not name it", name, ref.key.ns));
  }
  if (!HoldsCapacity(block->state)) {
    return WaitsForBlock(name + " is " + std::string(StateName(block->state)));
  }
  if (block->state != BlockState::kActive) {
    return WaitsForBlock(fmt::format("{} is {} and begins {}{}{}", name, StateName(block->state),
                                     FormatTime(block->start()), block->trouble.empty() ? "" : ": ",
                                     block->trouble));
  }
  if (block->reclaiming) return WaitsForBlock(fmt::format("{} is being taken back", name));
  return AdmitWhile(*block, std::move(ready), now);
}

Readiness CapacityBlocks::AdmitAtStart(const Block& block, const GangRef& ref,
                                       Readiness ready) const {
  const bool names_it = KeyOfBlock(ref, ready.spec->block) == block.key;
  if (!names_it || !block.admits(ref.key.ns)) return {};
  return AdmitWhile(block, std::move(ready), time_.ToWall(block.start()));
}

// Returns the gang as it may be planned at `now`, when the block is active.
Readiness CapacityBlocks::AdmitWhile(const Block& active, Readiness ready, WallTime now) const {
  const std::string name = fmt::format("Capacity Block {}", ToString(active.key));
  const auto& runtime = ready.spec->max_runtime;
  const WallTime reclaim = time_.ToWall(active.reclaim());
  const std::string reclaimed = FormatTime(active.reclaim());
  if (runtime && EndOf(now, *runtime) > reclaim) {
    return WaitsForBlock(fmt::format(
        "{} is taken back from {} on, before the gang's maxRuntime is over", name, reclaimed));
  }
  if (!runtime && !ready.spec->checkpointable) {
    return WaitsForBlock(
        fmt::format("{} is taken back from {} on: a gang that is not checkpointable needs "
                    "a maxRuntime to run in it",
                    name, reclaimed));
  }
  if (!runtime && active.warned) {
    return WaitsForBlock(
        fmt::format("{} is taken back from {} on: only a gang whose maxRuntime is over before "
                    "begins now",
                    name, reclaimed));
  }
  auto spec = std::make_shared<GangSpec>(*ready.spec);
  spec->reservation = active.reservation;
  spec->block_hosts = active.hosts;
  spec->reclaim = reclaim;
  ready.spec = std::move(spec);
  return ready;
}

// ---- What the objects say ----------------------------------------------------------------------

void CapacityBlocks::OnFact(const BlockFact& fact, WallTime now) {
  auto block = book_.FindByKey(fact.key);
  if (block != nullptr && unseen_.contains(fact.key) &&
      block->offering_id != fact.order.offering_id) {
    // Somebody has made an object of that name meanwhile, which is not the one of the order.
    Withdraw(fact.key, publications_[fact.key], "there is another of that name");
    block = nullptr;
  }
  const bool made_here = unseen_.erase(fact.key) > 0;
  if (block != nullptr && !made_here && block->uid != fact.uid && !HoldsCapacity(block->state) &&
      fact.record.empty()) {
    Forget(*block);  // another object has the name now
    block = nullptr;
  }
  if (block == nullptr) return OnUnbought(fact, now);
  if (block->uid != fact.uid) {
    book_.SetUid(block->reservation, fact.uid);
    block = book_.Find(block->reservation);
  }
  if (fact.spec_error.empty()) {
    book_.SetTerms(*block, fact.order.terms, fact.order.tags, now);
    book_.AskReplacement(block->reservation, fact.replace, now);
  }
  outbox_.EndHold(fact.key);
  NoteShown(fact, block.get());
  outbox_.Add(fact.key);
}

// Takes the object of a block that the book does not have: buys it, unless that was refused, or a
// record says of which nobody could make use that it was bought.
void CapacityBlocks::OnUnbought(const BlockFact& fact, WallTime now) {
  if (fact.record.empty() && !fact.refused() && !fact.deleting) {
    Buy(fact, now);
  } else if (fact.refused() && views_.Find(fact.key) == nullptr) {
    // The object alone knows that, and is made to say no more.
    Keep(fact.key, {.refusal = fact.refusal,
                    .message = fact.message,
                    .refused_at = fact.refused_at.value_or(time_.ToBlock(fact.created))});
  }
  NoteShown(fact, nullptr);
  outbox_.Add(fact.key);
}

// Compares what is there with what should be; if it is something else, it is written.
void CapacityBlocks::NoteShown(const BlockFact& fact, const Block* block) {
  Publication& publication = publications_[fact.key];
  const auto* wanted = views_.Find(fact.key);
  if (wanted != nullptr && (*wanted)->generation != fact.generation) {
    Keep(fact.key, **wanted);  // a block of the journal knows none
    wanted = views_.Find(fact.key);
  }
  const bool same =
      block != nullptr && !fact.record.empty() && fact.record_version == block->version;
  const bool by_others = publication.shown.OnSeen(fact.resource_version, fact.shown);
  const bool of_backup = block != nullptr && !same &&
                         !kube::IsOlderVersion(fact.resource_version, publication.version);
  if (!by_others && same && publication.written == nullptr && wanted != nullptr &&
      fact.shown == 0) {
    publication.written = *wanted;
  } else if (by_others || of_backup) {
    publication.written = nullptr;
  }
}

// Returns whether the object shows its block as a later leader has left it, or one that the journal
// does not know.
bool CapacityBlocks::IsNewer(const BlockFact& fact) const {
  if (fact.record.empty()) return false;
  const auto known = book_.FindByKey(fact.key);
  return known == nullptr || known->version < fact.record_version;
}

// Takes what other leaders have published, before anything is decided.
void CapacityBlocks::AdoptPublished(const std::vector<std::shared_ptr<const BlockFact>>& facts) {
  std::vector<Block> newer;
  for (const auto& fact : facts) {
    if (!IsNewer(*fact)) continue;
    const auto bytes = Unhex(fact->record);
    auto block = bytes ? DecodeBlock(*bytes) : DataLoss("it is not hexadecimal");
    if (block.ok() && block->key != fact->key)
      block = DataLoss("it is of {}", ToString(block->key));
    if (!block.ok()) {
      RefuseRecord(*fact, block.status());
      continue;
    }
    if (leads_ && block->version.term < book_.term() && !book_.HasRoomFor(*block)) {
      OverruleLate(*fact);
      continue;
    }
    newer.push_back(*std::move(block));
  }
  if (!newer.empty()) {
    std::vector<std::pair<BlockKey, std::string>> taken;
    for (const Block& block : newer) taken.emplace_back(block.key, block.reservation);
    book_.Adopt(std::move(newer), [&](const Block& block, const absl::Status& why) {
      std::erase(taken, std::pair(block.key, block.reservation));
      RefuseRecord(*facts_.Find(block.key), why);
    });
    ForgetReplaced();
    for (const auto& [key, reservation] : taken) {
      const auto block = book_.Find(reservation);
      publications_[key].written = nullptr;
      Store(*block);
      Follow(block);
    }
  }
  if (!std::exchange(leads_, true)) book_.Lead(term_);
}

// A former leader has sent the record, which arrived after what it sells had been sold here. Nobody
// was told of it: its object is as if it had not come, and is written over.
void CapacityBlocks::OverruleLate(const BlockFact& fact) {
  if (book_.FindByKey(fact.key) != nullptr) return;
  BlockFact order = fact;
  order.record.clear();
  order.record_version = {};
  facts_.Put(std::make_shared<const BlockFact>(std::move(order)));
}

// Drops what the journal has of blocks in whose place others were taken.
void CapacityBlocks::ForgetReplaced() {
  absl::erase_if(entries_, [&](const auto& entry) {
    if (book_.Find(entry.first) != nullptr) return false;
    magnets_.Forget(entry.first);
    meter_.Forget(entry.first);
    journal_.Drop(entry.second);
    return true;
  });
}

void CapacityBlocks::RefuseRecord(const BlockFact& fact, const absl::Status& why) {
  if (book_.FindByKey(fact.key) != nullptr) return;  // it is written over
  Show(fact.key, {.keeps_record = true,
                  .generation = fact.generation,
                  .refusal = "InternalError",
                  .message = fmt::format("status.record cannot be used: {}", Message(why))});
}

void CapacityBlocks::Buy(const BlockFact& fact, WallTime now) {
  const absl::Status bought = fact.spec_error.empty()
                                  ? book_.Purchase(fact.order, now).status()
                                  : Refuse(kInvalidParameterValue, "{}", fact.spec_error);
  if (bought.ok()) return;
  const std::string code = Ec2CodeOf(bought);
  const std::string message(Message(bought));
  const auto* known = views_.Find(fact.key);
  const bool told = known != nullptr && (*known)->refusal == code && (*known)->message == message;
  if (told) return;
  refusals_.push_back({.about = EventSubject::kCapacityBlock,
                       .ns = fact.key.ns,
                       .name = fact.key.name,
                       .uid = fact.uid,
                       .warning = true,
                       .reason = "CapacityBlockRefused",
                       .message = fmt::format("{}: {}", code, message),
                       .when = time_.ToWall(now)});
  Show(fact.key, {.generation = fact.generation,
                  .refusal = code,
                  .message = message,
                  .refused_at = InSeconds(now)});
}

// The object is gone. A block that holds capacity gets another one: it cannot be cancelled.
void CapacityBlocks::OnObjectGone(const BlockKey& key) {
  const auto block = book_.FindByKey(key);
  if (block == nullptr) return Unpublish(key);
  if (!HoldsCapacity(block->state)) return Forget(*block);
  book_.SetUid(block->reservation, "");
  publications_[key].written = nullptr;
  outbox_.EndHold(key);
  outbox_.Add(key);
}

absl::StatusOr<std::shared_ptr<const Block>> CapacityBlocks::CarryOutOrder(const BlockOrder& order,
                                                                           WallTime now) {
  if (const auto* extension = std::get_if<ExtensionOrder>(&order.order)) {
    return book_.Extend(*extension, now);
  }
  const auto& purchase = std::get<PurchaseOrder>(order.order);
  if (book_.FindByKey(purchase.key) == nullptr && facts_.Find(purchase.key) != nullptr) {
    return Refuse(kIdempotentMismatch, "the name {} is that of another CapacityBlock",
                  ToString(purchase.key));
  }
  return book_.Purchase(purchase, now);
}

void CapacityBlocks::ServeOrder(const BlockOrder& order, WallTime now) {
  auto block = CarryOutOrder(order, now);
  const bool dry_run = std::visit([](const auto& one) { return one.dry_run; }, order.order);
  if (!block.ok() || dry_run) {
    answers_.push_back({order.ticket, std::move(block)});
    return;
  }
  if (!entries_.contains((*block)->reservation) && (*block)->uid.empty()) {
    unseen_.insert((*block)->key);
  }
  publications_[(*block)->key].tickets.push_back(order.ticket);
  outbox_.Add((*block)->key);
}

// ---- What is published -------------------------------------------------------------------------

void CapacityBlocks::Keep(const BlockKey& key, BlockView view) {
  if (const auto fact = facts_.Find(key)) view.generation = fact->generation;
  view.time_scale = time_.scale();
  views_.Put(key, std::make_shared<const BlockView>(std::move(view)));
}

void CapacityBlocks::Show(const BlockKey& key, BlockView view) {
  Keep(key, std::move(view));
  outbox_.Add(key);
  shown_.Add(key);
}

// Returns what is to be written next; nullopt when all is as it should be, or nothing can be done
// before the watch has told something.
std::optional<WriteKind> CapacityBlocks::NextWrite(const BlockKey& key,
                                                   const Publication& publication) const {
  const auto* view = views_.Find(key);
  return NextWrite(key, publication, view == nullptr ? nullptr : view->get(),
                   facts_.Find(key).get());
}

std::optional<WriteKind> CapacityBlocks::NextWrite(const BlockKey& key,
                                                   const Publication& publication,
                                                   const BlockView* view,
                                                   const BlockFact* fact) const {
  const Block* block = view == nullptr ? nullptr : view->block.get();
  if (fact == nullptr) {
    // Who has ordered one whose payment failed at once is told so, and must find it.
    const bool wanted = block != nullptr && (HoldsCapacity(block->state) || unseen_.contains(key));
    return wanted ? std::optional(WriteKind::kCreateBlock) : std::nullopt;
  }
  const bool holds = block != nullptr && HoldsCapacity(block->state);
  if (fact->protected_by_finalizer != holds && !(holds && fact->deleting)) {
    return WriteKind::kBlockFinalizer;
  }
  if (view == nullptr) return std::nullopt;
  if (publication.written != nullptr && *publication.written == *view) return std::nullopt;
  return WriteKind::kBlockStatus;
}

void CapacityBlocks::Publish(const BlockKey& key) {
  const auto fact = facts_.Find(key);
  const auto* view = views_.Find(key);
  if ((view == nullptr && fact == nullptr) || held_.contains(key)) return;
  Publication& publication = publications_[key];
  const std::optional<WriteKind> kind =
      NextWrite(key, publication, view == nullptr ? nullptr : view->get(), fact.get());
  if (!kind) {
    shown_.Add(key);
    return AnswerTickets(key, publication);
  }
  publication.base = fact == nullptr ? "" : fact->resource_version;
  publication.sent = view == nullptr ? nullptr : *view;
  outbox_.NoteSent(key, writes_.Add(WriteOf(*kind, publication, fact)));
}

Write CapacityBlocks::WriteOf(WriteKind kind, const Publication& publication,
                              const std::shared_ptr<const BlockFact>& fact) {
  const auto& view = publication.sent;
  if (kind == WriteKind::kCreateBlock) return BlockCreation{view->block};
  if (kind == WriteKind::kBlockFinalizer) {
    const bool holds =
        view != nullptr && view->block != nullptr && HoldsCapacity(view->block->state);
    return BlockFinalizerWrite{.add = holds, .base = fact};
  }
  const bool is_old = kube::IsOlderVersion(publication.base, publication.version);
  return BlockStatusWrite{.key = fact->key,
                          .uid = fact->uid,
                          .base_version = is_old ? publication.version : publication.base,
                          .shown = is_old ? 0 : fact->shown,
                          .view = view};
}

absl::Status CapacityBlocks::Adopt(Block block) {
  TAHOMA_ASSIGN_OR_RETURN(const auto taken, book_.Restore(std::move(block)));
  Store(*taken);
  Follow(taken);
  outbox_.Add(taken->key);
  shown_.Add(taken->key);
  return absl::OkStatus();
}

void CapacityBlocks::Release(const BlockKey& key) {
  if (held_.erase(key) != 0) outbox_.Add(key);
}

bool CapacityBlocks::IsPublished(const BlockKey& key) const {
  const auto publication = publications_.find(key);
  return publication != publications_.end() && !outbox_.IsInFlight(key) &&
         !outbox_.IsHeldBack(key) && !NextWrite(key, publication->second);
}

void CapacityBlocks::Unpublish(const BlockKey& key) {
  views_.Erase(key);
  shown_.Add(key);
  outbox_.Forget(key);
  publications_.erase(key);
}

void CapacityBlocks::OnResult(const ApiResult& result, const Now& now) {
  const BlockKey key{result.ns, result.name};
  const auto found = publications_.find(key);
  if (found == publications_.end() || !outbox_.OnAnswer(key, result.attempt)) return;
  Publication& publication = found->second;
  const bool done = result.outcome == WriteOutcome::kDone;
  if (result.kind == WriteKind::kBlockStatus && done) {
    publication.written = publication.sent;
    publication.version = result.resource_version;
    if (publication.shown.OnWritten(result.resource_version, result.shown)) {
      publication.written = nullptr;
    }
  }
  // The watch tells of an object that was made or changed, and may have done so already; the time
  // is for a watch that does not.
  const auto fact = facts_.Find(key);
  const std::string version = fact == nullptr ? "" : fact->resource_version;
  if (done && result.kind != WriteKind::kBlockStatus && version == publication.base) {
    outbox_.OnDone(key);
    return outbox_.HoldBack(key, now.monotonic + kSeenAfter);
  }
  const bool refused =
      result.outcome == WriteOutcome::kGone || result.outcome == WriteOutcome::kRefused;
  if (refused && result.kind == WriteKind::kCreateBlock && unseen_.contains(key)) {
    return Withdraw(key, publication, result.message);
  }
  // Of a conflict the watch tells what is there, and may have done so already.
  const bool seen = result.outcome == WriteOutcome::kConflict && version != publication.base;
  if (!done && !seen) return outbox_.OnFailure(key, now.monotonic);
  outbox_.OnDone(key);
  outbox_.Add(key);
}

// The object of a block cannot be made, as in a namespace that does not exist.
void CapacityBlocks::Withdraw(const BlockKey& key, Publication& publication,
                              const std::string& why) {
  unseen_.erase(key);
  for (const std::uint64_t ticket : std::exchange(publication.tickets, {})) {
    answers_.push_back(
        {ticket, Refuse(kInvalidParameterValue, "the CapacityBlock {} cannot be made: {}",
                        ToString(key), why)});
  }
  const auto block = book_.FindByKey(key);
  book_.Withdraw(block->reservation);
  Forget(*book_.FindByKey(key));
}

// Answers the orders that wait for the publication of a block, which is as it should be.
void CapacityBlocks::AnswerTickets(const BlockKey& key, Publication& publication) {
  if (publication.tickets.empty()) return;
  const auto block = book_.FindByKey(key);
  for (const std::uint64_t ticket : std::exchange(publication.tickets, {})) {
    if (block != nullptr) {
      answers_.push_back({ticket, block});
    } else {
      answers_.push_back({ticket, Internal("the block is gone")});
    }
  }
}

std::optional<MonotonicTime> CapacityBlocks::wake(const Now& now) const {
  std::optional<MonotonicTime> wake = outbox_.wake(now.monotonic);
  for (const auto& due : {book_.wake(), meter_.wake()}) {
    if (!due) continue;
    const MonotonicTime when = now.monotonic + UntilWall(time_.ToWall(*due), now);
    if (!wake || when < *wake) wake = when;
  }
  return wake;
}

}  // namespace tahoma::controller
