// A core with its journal and an API server reduced to what it needs, for tests: writes fail and
// are late as the test says, the program dies at a chosen write.
//
//   World world;
//   AddGangOfTwo(world.api);
//   world.fate = [](int n) { return n == 3 ? Fate::kAnswerLost : Fate::kNormal; };
//   world.Settle();
//
// Thread safety: one thread.

#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "controller/core/core.h"
#include "lib/base/check.h"
#include "tests/support/fake_api.h"
#include "tests/support/memory_journal.h"

namespace tahoma::controller {

// The fate of the n-th write that the core asks for.
enum class Fate { kNormal, kConflict, kRefused, kNotDone, kAnswerLost, kLate };

class World {
 public:
  FakeApi api;
  MemoryJournal journal;
  // Called before each write with its number, from 1.
  std::function<Fate(int)> fate = [](int) { return Fate::kNormal; };
  // After this many journal writes and API writes together the program is gone; 0: never.
  int crash_after = 0;
  int writes = 0;
  // Whether the events of the claims' watch are held back. Afterwards they come one by one,
  // whenever nothing else is left to do.
  bool claims_lag = false;
  // How far the wall clock has been set forward; less than 0: back.
  std::chrono::nanoseconds set{0};
  // Sees the writes of each step.
  std::function<void(const std::vector<ApiWrite>&)> on_writes;

  World() { Start(); }
  // In standalone mode claims are made with their finalizer.
  explicit World(const CoreOptions& options, PlanFunction plan = FirstFit)
      : options_(options), plan_(std::move(plan)) {
    api.protects_claims = options.journal_beside_api;
    Start();
  }

  void Start() {
    core_ = std::make_unique<Core>(plan_, options_);
    results_.clear();
    TAHOMA_CHECK_OK(journal.Load([&](Sequence sequence, std::string_view bytes) {
      return core_->Restore(sequence, bytes);
    }));
    api.Relist();
  }

  // Runs until nothing moves, for at most `steps`. False when the program crashed.
  bool Settle(int steps = 3000, bool controllers = true) {
    int idle = 0;
    for (int i = 0; i < steps && idle < 3; ++i) {
      std::vector<Command> commands = Arrived(api.TakeEvents());
      for (ApiResult& result : results_) commands.emplace_back(std::move(result));
      results_.clear();
      if (commands.empty() && !claims_lag && !lagging_.empty()) {
        commands.push_back(lagging_.front());
        lagging_.pop_front();
      }
      const bool quiet = commands.empty();
      api.now = Time().wall;
      StepOutput out = core_->Step(commands, Time());
      if (!out.journal.empty()) {
        if (Crashes()) return false;
        TAHOMA_CHECK_OK(journal.Write(out.journal));
      }
      if (on_writes) on_writes(out.writes);
      for (const ApiWrite& write : out.writes) {
        if (Crashes()) return false;
        results_.push_back(Carry(write));
      }
      const bool late = DeliverLate(out.writes.empty() && quiet);
      if (controllers) api.RunControllers();
      const bool goes_on = out.wake && *out.wake <= Time().monotonic;
      idle = quiet && out.writes.empty() && !late && !goes_on ? idle + 1 : 0;
      clock_ += idle != 0 ? std::chrono::seconds(3) : std::chrono::milliseconds(20);
    }
    return true;
  }

  // Lets all of the time until then pass at once.
  void MoveTo(WallTime time) {
    clock_ = std::max(clock_, time - kBegin - set);
    Settle();
  }

  // Sets the wall clock, back or forward, while no time passes.
  void SetWallClock(WallTime time) { set += time - Time().wall; }

  Core& core() { return *core_; }
  // Counts journal writes and API writes, as crash_after does.
  int DoneSteps() const { return steps_; }
  Now Time() const { return {kBegin + set + clock_, MonotonicTime(clock_)}; }

 private:
  static constexpr WallTime kBegin{std::chrono::seconds(1'700'000'000)};  // 2023-11-14T22:13:20Z

  bool Crashes() {
    ++steps_;
    return crash_after != 0 && steps_ >= crash_after;
  }

  ApiResult Carry(const ApiWrite& write) {
    const Fate what = fate(++writes);
    if (what == Fate::kNormal) return api.Execute(write);
    ApiResult result = ResultOf(write);
    result.message = "injected";
    result.outcome = what == Fate::kConflict  ? WriteOutcome::kConflict
                     : what == Fate::kRefused ? WriteOutcome::kRefused
                                              : WriteOutcome::kUnavailable;
    if (what == Fate::kAnswerLost) api.Execute(write);
    if (what == Fate::kLate) late_.push_back(write);
    return result;
  }

  std::vector<Command> Arrived(std::vector<Command> events) {
    if (!claims_lag && lagging_.empty()) return events;
    std::vector<Command> arrived;
    for (Command& event : events) {
      const bool lags =
          std::holds_alternative<ClaimSeen>(event) || std::holds_alternative<ClaimGone>(event);
      if (lags) {
        lagging_.push_back(std::move(event));
      } else {
        arrived.push_back(std::move(event));
      }
    }
    return arrived;
  }

  // Writes that were given up long ago reach the API now.
  bool DeliverLate(bool quiet) {
    if (late_.empty() || (!quiet && ++waited_ < 4)) return false;
    waited_ = 0;
    api.Execute(late_.front());
    late_.pop_front();
    return true;
  }

  const CoreOptions options_;
  const PlanFunction plan_ = FirstFit;
  std::unique_ptr<Core> core_;
  std::deque<ApiWrite> late_;
  std::deque<Command> lagging_;
  std::vector<ApiResult> results_;
  std::chrono::nanoseconds clock_{0};
  int steps_ = 0;
  int waited_ = 0;
};

inline void AddGangOfTwo(FakeApi& api) {
  api.AddNode("node-a");
  api.AddNode("node-b");
  api.AddGang("train", 2);
  api.AddPodWithClaim("train-0", "train", 10);
  api.AddPodWithClaim("train-1", "train", 10);
}

inline int BoundPods(const FakeApi& api) {
  int bound = 0;
  for (const auto& [name, pod] : api.pods()) bound += pod.node.empty() ? 0 : 1;
  return bound;
}

inline std::ptrdiff_t EventsOf(const FakeApi& api, EventReason reason) {
  return std::count_if(api.events().begin(), api.events().end(),
                       [&](const EventNote& event) { return event.reason == ToString(reason); });
}

}  // namespace tahoma::controller
