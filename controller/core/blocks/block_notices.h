// Tells bound pods when their hardware is taken back, as the annotation
// tahoma.dev/reclaim-timestamp: by their Capacity Block, with every extension anew, by their queue
// when a calendar lowers the queue's guarantee, or by a maintenance window.
//
//   notices.Tell(pod, uid, reclaim);               // again whenever it may have changed
//   notices.Tell(pod, uid, std::nullopt);          // the pod may go on: the annotation is removed
//   notices.Flush(facts, now);                     // writes the annotations that are not so yet
//
// A binding carries the annotation as it was decided; this is for what changes afterwards. It works
// from what is, so that telling everything anew after a restart writes only what is missing.
//
// Scope: the writes. Which pods are told, and when the first of these reasons ends them: core.cc.
//
// Thread safety: belongs to one thread.

#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "controller/core/facts/facts.h"
#include "controller/core/writes/api_write.h"
#include "controller/core/writes/outbox.h"
#include "controller/core/writes/write_buffer.h"
#include "lib/base/clock.h"

namespace tahoma::controller {

class BlockNotices {
 public:
  // `writes` must outlive it.
  explicit BlockNotices(WriteBuffer& writes) : writes_(writes) {}

  // The annotation is to say the time; nullopt: there is to be none.
  void Tell(const PodKey& pod, const std::string& uid, std::optional<WallTime> reclaim);
  void Flush(const Facts& facts, const Now& now);
  void OnResult(const ApiResult& result, const Now& now);
  // The time at which Flush has something to do without any news.
  std::optional<MonotonicTime> wake(const Now& now) const { return outbox_.wake(now.monotonic); }
  // Returns how many pods have not been told yet.
  std::size_t open() const { return notices_.size(); }

 private:
  struct Notice {
    std::string uid;
    std::optional<WallTime> reclaim;
    std::optional<WallTime> sent = {};
  };

  // Writes the notice, or forgets one that is true or has no reader any more.
  void FlushOne(const PodKey& key, const Facts& facts, const Now& now);
  void Forget(const PodKey& key);

  WriteBuffer& writes_;
  std::map<PodKey, Notice> notices_;
  Outbox<PodKey> outbox_;
};

}  // namespace tahoma::controller
