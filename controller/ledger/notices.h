// What people are told: the status of Gangs, the condition of waiting pods, events.
//
//   Notices notices;
//   notices.SetGang(*gang, status, now);           // as often as one likes
//   notices.Flush(now, attempts, writes);          // writes only what changed, when it is time
//   notices.OnResult(result, now);
//
// A notice that will be replaced soon is not worth a write: bad news waits a moment, because a gang
// whose last pod is just being created is not waiting for anything; changing messages are written
// at most every few seconds. One write per object is under way at a time.
//
// Scope: nothing in the commit protocol depends on a notice.
//
// Thread safety: belongs to one thread.

#pragma once

#include <absl/container/flat_hash_map.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "controller/ledger/api_write.h"
#include "controller/ledger/facts.h"
#include "controller/ledger/roster.h"
#include "lib/base/clock.h"

namespace tahoma::controller {

// Both times of one moment.
struct Now {
  WallTime wall;
  MonotonicTime monotonic;
};

class Notices {
 public:
  // Bad news younger than this is not told.
  static constexpr std::chrono::milliseconds kGrace{500};
  // The least time between two messages about the same object that say no.
  static constexpr std::chrono::seconds kRepeat{5};
  static constexpr std::chrono::seconds kRetry{2};

  // `status` without the times of its conditions: they are kept while a condition stays.
  void SetGang(const GangFact& gang, GangStatus status, const Now& now);
  void ForgetGang(const GangKey& gang);
  // What was set last; nullptr when nothing was.
  std::shared_ptr<const GangStatus> GangStatusOf(const GangKey& gang) const;

  // Why the pod waits; "" when it waits no more.
  void SetPod(const PodFact& pod, const std::string& message, const Now& now);
  void ForgetPod(const PodKey& pod);

  void Tell(EventNote event);

  void OnResult(const ApiResult& result, const Now& now);
  void Flush(const Now& now, std::uint64_t& attempts, std::vector<ApiWrite>& writes);
  // When Flush has something to do without any news.
  std::optional<MonotonicTime> wake() const;

 private:
  struct Entry {
    std::string uid;
    std::uint64_t in_flight = 0;
    MonotonicTime due{};
    bool scheduled = false;  // is in due_
    std::optional<MonotonicTime> told;
  };
  struct GangEntry : Entry {
    std::shared_ptr<const GangStatus> wanted;
    std::shared_ptr<const GangStatus> written;
    std::shared_ptr<const GangStatus> sent;
  };
  struct PodEntry : Entry {
    std::string wanted;
    std::string written;
    std::string sent;
    WallTime since;
  };
  using Due = std::pair<MonotonicTime, std::pair<bool, GangKey>>;  // true: a gang

  void Schedule(Entry& entry, bool gang, const GangKey& key, MonotonicTime when);
  template <typename OneEntry>
  ApiWrite Begin(WriteKind kind, const GangKey& key, OneEntry& entry, const Now& now,
                 std::uint64_t& attempts);
  void FlushGang(const GangKey& key, GangEntry& entry, const Now& now, std::uint64_t& attempts,
                 std::vector<ApiWrite>& writes);
  void FlushPod(const GangKey& key, PodEntry& entry, const Now& now, std::uint64_t& attempts,
                std::vector<ApiWrite>& writes);

  absl::flat_hash_map<GangKey, GangEntry> gangs_;
  absl::flat_hash_map<GangKey, PodEntry> pods_;  // by the pod's own name
  std::set<Due> due_;
  std::vector<EventNote> events_;
};

}  // namespace tahoma::controller
