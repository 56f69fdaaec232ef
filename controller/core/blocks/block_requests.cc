#include "controller/core/blocks/block_requests.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "controller/reserve/refusal.h"
#include "lib/base/check.h"

namespace tahoma::controller {
namespace {

constexpr std::string_view kWithinLimits = "WithinLimits";
constexpr std::string_view kExceeded = "Exceeded";

// The reason of the event that tells of a new state; empty when nobody needs to be told.
std::string_view EventReasonOf(RequestKind kind, const RequestStatus& status) {
  struct News {
    RequestKind kind;
    std::string_view state;
    std::string_view reason;
  };
  constexpr std::array<News, 8> kNews = {
      {{RequestKind::kQuota, kExceeded, "QuotaExceeded"},
       {RequestKind::kExtension, "payment-pending", "ExtensionPurchased"},
       {RequestKind::kExtension, "payment-succeeded", "ExtensionSucceeded"},
       {RequestKind::kExtension, "payment-failed", "ExtensionPaymentFailed"},
       {RequestKind::kSeries, "committed", "SeriesPurchased"},
       {RequestKind::kWaitlistEntry, "fulfilled", "WaitlistFulfilled"},
       {RequestKind::kWaitlistEntry, "found", "OfferingFound"},
       {RequestKind::kWaitlistEntry, "expired", "WaitlistExpired"}}};
  if (!status.reason.empty()) return "Refused";
  for (const News& news : kNews) {
    if (news.kind == kind && news.state == status.state) return news.reason;
  }
  return "";
}

bool IsBadNews(const RequestStatus& status) {
  return !status.reason.empty() || status.state == kExceeded || status.state == "payment-failed" ||
         status.state == "expired";
}

EventNote EventOf(const RequestFact& fact, const RequestStatus& status, std::string_view reason,
                  WallTime when) {
  return {.about = SubjectOf(fact.key.kind),
          .ns = fact.key.ns,
          .name = fact.key.name,
          .uid = fact.uid,
          .warning = IsBadNews(status),
          .reason = reason,
          .message = status.reason.empty() ? status.message
                                           : fmt::format("{}: {}", status.reason, status.message),
          .when = when};
}

}  // namespace

void BlockRequests::OnRequest(std::shared_ptr<const RequestFact> fact) {
  const RequestKey key = fact->key;
  Entry& entry = entries_[key];
  if (entry.fact != nullptr && entry.fact->uid != fact->uid) {
    OnRequestGone(key, entry.fact->uid);  // it was deleted and made again between two looks
    return OnRequest(std::move(fact));
  }
  if (key.kind == RequestKind::kQuota) {
    quotas_.insert(key);
    // At once: what is bought in the same step is checked against it. A quota that cannot be read
    // changes nothing.
    if (fact->spec_error.empty()) blocks_.SetQuota(key.name, std::get<QuotaRequest>(fact->spec));
  }
  entry.shown = fact->status;
  const bool others_wrote = entry.seen.OnSeen(fact->resource_version, fact->shown);
  entry.unsure = others_wrote || (fact->shown != 0 && !entry.seen.known());
  entry.fact = std::move(fact);
  outbox_.Add(key);
  const bool settled = IsSettledEntry(entry);
  if (key.kind == RequestKind::kSeries) series_.OnFact(*entry.fact, settled);
  // An entry that waits is looked at when its place in the waitlist is due.
  if (key.kind == RequestKind::kWaitlistEntry && !settled && entry.fact->spec_error.empty()) {
    return waitlist_.Put(*entry.fact);
  }
  touched_.insert(key);
}

void BlockRequests::OnRequestGone(const RequestKey& key, const std::string& uid) {
  const auto found = entries_.find(key);
  if (found == entries_.end() || (!uid.empty() && found->second.fact->uid != uid)) return;
  Wait(key, found->second, std::nullopt);
  entries_.erase(found);
  touched_.erase(key);
  outbox_.Forget(key);
  extensions_.Forget(key);
  if (key.kind == RequestKind::kSeries) series_.Forget(key);
  waitlist_.Forget(key);
  if (quotas_.erase(key) != 0) blocks_.SetQuota(key.name, std::nullopt);
}

void BlockRequests::OnResult(const ApiResult& result, const Now& now) {
  const RequestKey key{*result.request_kind, result.ns, result.name};
  const auto found = entries_.find(key);
  if (found == entries_.end() || !outbox_.OnAnswer(key, result.attempt)) return;
  if (result.outcome != WriteOutcome::kDone) return outbox_.OnFailure(key, now.monotonic);
  Entry& entry = found->second;
  entry.shown = *entry.sent;
  entry.unsure = entry.seen.OnWritten(result.resource_version, result.shown);
  outbox_.OnDone(key);
  outbox_.Add(key);
}

// A refusal may not be written yet, and must not be tried again.
bool BlockRequests::IsSettledEntry(const Entry& entry) {
  return (entry.wanted && IsSettled(*entry.wanted)) ||
         (entry.fact->status && IsSettled(*entry.fact->status));
}

void BlockRequests::TouchAfter(const BlockKey& block) {
  const std::set<RequestKey>& extensions = extensions_.OfBlock(block);
  touched_.insert(extensions.begin(), extensions.end());
  for (const RequestKey* key : {series_.OfBlock(block), waitlist_.OfBlock(block)}) {
    if (key != nullptr && entries_.contains(*key)) touched_.insert(*key);
  }
  const RequestKey quota{RequestKind::kQuota, "", block.ns};
  if (quotas_.contains(quota)) touched_.insert(quota);
}

// The use of a quota is that of today and later.
void BlockRequests::TouchOnNewDay() {
  const Slot today = blocks_.book().profile().today();
  if (day_ == today) return;
  day_ = today;
  touched_.insert(quotas_.begin(), quotas_.end());
}

bool BlockRequests::Step(const Now& now) {
  const std::vector<BlockKey> shown = blocks_.DrainShown();
  for (std::size_t i = 0; i < shown.size() && !entries_.empty(); ++i) TouchAfter(shown[i]);
  TouchOnNewDay();
  const WallTime at = blocks_.time().ToBlock(now.wall);
  while (!waiting_.empty() && waiting_.begin()->first <= at) {
    const RequestKey key = waiting_.begin()->second;
    Wait(key, entries_.at(key), std::nullopt);
    touched_.insert(key);
  }
  for (const RequestKey& key : std::exchange(touched_, {})) Look(key, entries_.at(key), now);
  waitlist_.NoteChanges();
  for (const RequestKey& key : waitlist_.DrainDue()) Look(key, entries_.at(key), now);
  for (const RequestKey& key : outbox_.DrainDue(now.monotonic)) {
    if (const auto found = entries_.find(key); found != entries_.end()) Send(key, found->second);
  }
  return blocks_.has_changes();
}

void BlockRequests::Look(const RequestKey& key, Entry& entry, const Now& now) {
  RequestAnswer answer = Decide(entry, blocks_.time().ToBlock(now.wall));
  Wait(key, entry, answer.look_again);
  if (answer.status) Want(entry, *std::move(answer.status), now);
  outbox_.Add(key);
}

RequestAnswer BlockRequests::Decide(const Entry& entry, WallTime now) {
  const RequestFact& fact = *entry.fact;
  const bool settled = IsSettledEntry(entry);
  switch (fact.key.kind) {
    case RequestKind::kExtension:
      return extensions_.Look(fact, settled, now);
    case RequestKind::kSeries:
      return series_.Look(fact, settled, now);
    case RequestKind::kWaitlistEntry:
      return waitlist_.Look(fact, settled, now);
    case RequestKind::kQuota:
      return DecideQuota(fact);
  }
  TAHOMA_CHECK(false);
  return {};
}

// What is sold stays sold whatever the quota says.
RequestAnswer BlockRequests::DecideQuota(const RequestFact& fact) const {
  if (!fact.spec_error.empty()) {
    return {.status = RefusedStatus(Refuse(kInvalidParameterValue, "{}", fact.spec_error))};
  }
  const std::string& owner = fact.key.name;
  const QuotaUse use = blocks_.book().UseOf(owner);
  RequestStatus status{
      .state = std::string(use.over() || use.over_average() ? kExceeded : kWithinLimits),
      .result = use};
  if (use.over()) {
    status.message = fmt::format(
        "the blocks of {} have {} instances on {}, more than the {} that are allowed now; they "
        "keep them, and nothing more is sold for such days",
        owner, use.peak, FormatTime(use.peak_at).substr(0, 10), use.limits.instances);
  } else if (use.over_average()) {
    status.message = fmt::format(
        "the blocks of {} have {} instance-days in {} days, more than an average of {} instances; "
        "they keep them, and nothing more is sold for such days",
        owner, use.instance_days, use.limits.window_days, *use.limits.average);
  }
  return {.status = std::move(status)};
}

void BlockRequests::Want(Entry& entry, RequestStatus status, const Now& now) {
  status.generation = entry.fact->generation;
  const std::optional<RequestStatus>& before = entry.wanted ? entry.wanted : entry.shown;
  const bool same = before && before->state == status.state && before->reason == status.reason;
  status.since = same ? before->since : InSeconds(blocks_.time().ToBlock(now.wall));
  const std::string_view news = EventReasonOf(entry.fact->key.kind, status);
  if (!same && !news.empty()) writes_.Add(EventOf(*entry.fact, status, news, now.wall));
  entry.wanted = std::move(status);
}

void BlockRequests::Send(const RequestKey& key, Entry& entry) {
  if (!entry.wanted || (entry.wanted == entry.shown && !entry.unsure)) return;
  entry.sent = std::make_shared<const RequestStatus>(*entry.wanted);
  outbox_.NoteSent(key, writes_.Add(RequestStatusWrite{.key = key,
                                                       .uid = entry.fact->uid,
                                                       .base_version = entry.fact->resource_version,
                                                       .shown = entry.fact->shown,
                                                       .status = entry.sent}));
}

void BlockRequests::Wait(const RequestKey& key, Entry& entry, std::optional<WallTime> until) {
  if (entry.look_again == until) return;
  if (entry.look_again) waiting_.erase({*entry.look_again, key});
  if (until) waiting_.emplace(*until, key);
  entry.look_again = until;
}

std::optional<MonotonicTime> BlockRequests::wake(const Now& now) const {
  std::optional<MonotonicTime> wake = outbox_.wake(now.monotonic);
  if (waitlist_.has_due()) wake = now.monotonic;
  if (!waiting_.empty()) {
    const auto due = now.monotonic + UntilWall(blocks_.time().ToWall(waiting_.begin()->first), now);
    if (!wake || due < *wake) wake = due;
  }
  return wake;
}

}  // namespace tahoma::controller
