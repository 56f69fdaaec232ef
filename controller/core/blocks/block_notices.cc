#include "controller/core/blocks/block_notices.h"

#include <chrono>

namespace tahoma::controller {

void BlockNotices::Tell(const PodKey& pod, const std::string& uid,
                        std::optional<WallTime> reclaim) {
  Notice& notice = notices_[pod];
  notice.uid = uid;
  if (reclaim) reclaim = std::chrono::floor<std::chrono::milliseconds>(*reclaim);  // as written
  notice.reclaim = reclaim;
  outbox_.Add(pod);
}

void BlockNotices::Flush(const Facts& facts, const Now& now) {
  for (const PodKey& pod : outbox_.DrainDue(now.monotonic)) FlushOne(pod, facts, now);
}

void BlockNotices::FlushOne(const PodKey& key, const Facts& facts, const Now& now) {
  const auto notice = notices_.find(key);
  if (notice == notices_.end()) return;
  Notice& wanted = notice->second;
  const auto pod = facts.pods.Find(key);
  if (pod == nullptr || pod->uid != wanted.uid || !pod->alive() ||
      pod->bound_reclaim == wanted.reclaim) {
    return Forget(key);
  }
  // The binding would write over the annotation.
  if (pod->node.empty()) return outbox_.OnFailure(key, now.monotonic);
  wanted.sent = wanted.reclaim;
  outbox_.NoteSent(key, writes_.Add(PodReclaimWrite{key, wanted.uid, wanted.reclaim}));
}

void BlockNotices::OnResult(const ApiResult& result, const Now& now) {
  const PodKey pod{result.ns, result.name};
  if (!outbox_.OnAnswer(pod, result.attempt)) return;
  if (result.outcome == WriteOutcome::kUnavailable) return outbox_.OnFailure(pod, now.monotonic);
  outbox_.OnDone(pod);
  const Notice& notice = notices_.at(pod);
  const bool is_newest = notice.sent == notice.reclaim;
  if (result.outcome != WriteOutcome::kDone || is_newest) return Forget(pod);
  outbox_.Add(pod);
}

void BlockNotices::Forget(const PodKey& key) {
  outbox_.Forget(key);
  notices_.erase(key);
}

}  // namespace tahoma::controller
