#include "controller/core/blocks/block_notices.h"

#include <utility>

namespace tahoma::controller {

void BlockNotices::Tell(const PodKey& pod, const std::string& uid, WallTime reclaim) {
  Notice& notice = notices_[pod];
  notice.uid = uid;
  notice.reclaim = std::chrono::floor<std::chrono::milliseconds>(reclaim);  // as it is written
  due_.insert(pod);
}

void BlockNotices::Flush(const Facts& facts, const Now& now) {
  while (!retries_.empty() && retries_.begin()->first <= now.monotonic) {
    const PodKey pod = retries_.begin()->second;
    StopRetry(notices_.find(pod));
    due_.insert(pod);
  }
  for (const PodKey& pod : std::exchange(due_, {})) {
    if (const auto notice = notices_.find(pod); notice != notices_.end()) {
      FlushOne(notice, facts, now);
    }
  }
}

void BlockNotices::FlushOne(Notices::iterator notice, const Facts& facts, const Now& now) {
  auto& [key, wanted] = *notice;
  if (wanted.in_flight != 0) return;
  const auto pod = facts.pods.Find(key);
  if (pod == nullptr || pod->uid != wanted.uid || !pod->alive() ||
      pod->bound_reclaim == wanted.reclaim) {
    StopRetry(notice);
    notices_.erase(notice);
    return;
  }
  // The binding would write over it.
  if (pod->node.empty()) return Retry(notice, now);
  wanted.in_flight = writes_.Add(PodReclaimWrite{key, wanted.uid, wanted.reclaim});
  wanted.sent = wanted.reclaim;
}

void BlockNotices::OnResult(const ApiResult& result, const Now& now) {
  const auto notice = notices_.find(PodKey{result.ns, result.name});
  if (notice == notices_.end() || notice->second.in_flight != result.attempt) return;
  notice->second.in_flight = 0;
  if (result.outcome == WriteOutcome::kUnavailable) return Retry(notice, now);
  if (result.outcome == WriteOutcome::kDone && notice->second.sent != notice->second.reclaim) {
    due_.insert(notice->first);
    return;
  }
  StopRetry(notice);
  notices_.erase(notice);
}

void BlockNotices::Retry(Notices::iterator notice, const Now& now) {
  StopRetry(notice);
  notice->second.retry = now.monotonic + kRetry;
  retries_.emplace(*notice->second.retry, notice->first);
}

void BlockNotices::StopRetry(Notices::iterator notice) {
  if (notice->second.retry) retries_.erase({*notice->second.retry, notice->first});
  notice->second.retry.reset();
}

std::optional<MonotonicTime> BlockNotices::wake() const {
  if (!due_.empty()) return MonotonicTime::min();
  return retries_.empty() ? std::nullopt : std::optional(retries_.begin()->first);
}

}  // namespace tahoma::controller
