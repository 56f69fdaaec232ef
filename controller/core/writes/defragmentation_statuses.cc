#include "controller/core/writes/defragmentation_statuses.h"

#include <utility>

namespace tahoma::controller {

void DefragmentationStatuses::OnObject(const DefragmentationFact& fact, const Now& now) {
  if (const auto found = entries_.find(fact.name);
      found != entries_.end() && found->second.uid != fact.uid) {
    OnObjectGone(fact.name, found->second.uid);  // it was deleted and made again between two looks
  }
  Entry& entry = entries_[fact.name];
  entry.uid = fact.uid;
  entry.version = fact.resource_version;
  entry.digest = fact.shown;
  const bool others_wrote = entry.shown.OnSeen(fact.resource_version, fact.shown);
  if (others_wrote && !outbox_.IsInFlight(fact.name)) outbox_.AddAt(fact.name, now.monotonic);
}

void DefragmentationStatuses::OnObjectGone(const std::string& name, const std::string& uid) {
  const auto found = entries_.find(name);
  if (found == entries_.end() || found->second.uid != uid) return;
  entries_.erase(found);
  outbox_.Forget(name);
}

void DefragmentationStatuses::Show(const std::string& name, Status status, const Now& now) {
  const auto found = entries_.find(name);
  if (found == entries_.end()) return;
  found->second.wanted = std::move(status);
  outbox_.AddAt(name, now.monotonic);
}

DefragmentationStatuses::Status DefragmentationStatuses::OnResult(const ApiResult& result,
                                                                  const Now& now) {
  const std::string& name = result.name;
  if (!outbox_.OnAnswer(name, result.attempt)) return nullptr;
  Entry& entry = entries_.at(name);
  if (result.outcome != WriteOutcome::kDone && result.outcome != WriteOutcome::kGone) {
    outbox_.OnFailure(name, now.monotonic);
    return nullptr;
  }
  outbox_.OnDone(name);
  const bool others_wrote = result.outcome == WriteOutcome::kDone &&
                            entry.shown.OnWritten(result.resource_version, result.shown);
  if (others_wrote || entry.sent != entry.wanted) outbox_.AddAt(name, now.monotonic);
  return entry.sent;
}

void DefragmentationStatuses::Flush(const Now& now) {
  for (const std::string& name : outbox_.DrainDue(now.monotonic)) {
    Entry& entry = entries_.at(name);
    if (entry.wanted == nullptr) continue;
    entry.sent = entry.wanted;
    outbox_.NoteSent(name, writes_.Add(DefragmentationStatusWrite{.name = name,
                                                                  .uid = entry.uid,
                                                                  .base_version = entry.version,
                                                                  .shown = entry.digest,
                                                                  .status = entry.sent}));
  }
}

}  // namespace tahoma::controller
