#include "controller/access/review_turns.h"

#include <algorithm>
#include <iterator>

#include "lib/base/status.h"

namespace tahoma::controller {

absl::StatusOr<ReviewTurns::Turn> ReviewTurns::Wait(const std::string& caller) {
  Waiter own{.caller = caller};
  {
    const MutexLock lock(mutex_);
    // Those who wait already have all the turns that they may have.
    if (Begin(caller)) {
      own.state = State::kHasTurn;
    } else if (!MakeRoom(caller)) {
      own.state = State::kRefused;
    } else {
      waiting_.push_back(&own);
      ++callers_[caller].waiting;
    }
    const auto deadline = CondVar::In(limits_.patience);
    while (own.state == State::kWaits && changed_.WaitUntil(mutex_, deadline)) {
    }
    if (own.state == State::kWaits) {
      waiting_.remove(&own);
      --callers_[caller].waiting;
      own.state = State::kRefused;
    }
    if (own.state == State::kRefused) {
      Forget(caller);
      return Unavailable("{} callers wait for its answer",
                         waiting_.size() + static_cast<std::size_t>(asking_));
    }
  }
  return Turn(this, [this, caller](const void*) { End(caller); });
}

bool ReviewTurns::Begin(const std::string& caller) {
  Use& use = callers_[caller];
  if (asking_ >= limits_.asking || use.asking >= limits_.asking_of_one) return false;
  ++use.asking;
  ++asking_;
  return true;
}

// Whether he may wait once more.
bool ReviewTurns::MakeRoom(const std::string& caller) {
  const int own = callers_[caller].waiting;
  if (own >= limits_.waiting_of_one) return false;
  if (static_cast<int>(waiting_.size()) < limits_.waiting) return true;
  const auto most = std::ranges::max_element(
      callers_, {}, [](const auto& entry) { return entry.second.waiting; });
  if (most->second.waiting <= own + 1) return false;
  const auto last = std::find_if(waiting_.rbegin(), waiting_.rend(), [&](const Waiter* waiter) {
    return waiter->caller == most->first;
  });
  (*last)->state = State::kRefused;
  waiting_.erase(std::next(last).base());
  --most->second.waiting;
  changed_.NotifyAll();
  return true;
}

void ReviewTurns::End(const std::string& caller) {
  const MutexLock lock(mutex_);
  --callers_[caller].asking;
  --asking_;
  Forget(caller);
  for (auto at = waiting_.begin(); at != waiting_.end();) {
    Waiter& waiter = **at;
    if (!Begin(waiter.caller)) {
      ++at;
      continue;
    }
    waiter.state = State::kHasTurn;
    --callers_[waiter.caller].waiting;
    at = waiting_.erase(at);
  }
  changed_.NotifyAll();
}

void ReviewTurns::Forget(const std::string& caller) {
  const auto found = callers_.find(caller);
  if (found != callers_.end() && found->second.asking == 0 && found->second.waiting == 0) {
    callers_.erase(found);
  }
}

}  // namespace tahoma::controller
