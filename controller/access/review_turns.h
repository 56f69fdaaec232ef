// Gives callers turns to ask the cluster, and bounds each caller's share. A caller is known by his
// name, or by the address that he calls from.
//
// Turns come in order of arrival; a caller with his full number of turns is passed over. When too
// many wait, a newcomer takes the last place of the caller with most waiting, if he has fewer
// himself.
//
// Scope: the order of turns.
//
// Thread safety: any thread; Wait blocks. A ReviewTurns must outlive its turns.

#pragma once

#include <absl/status/statusor.h>

#include <chrono>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <string>

#include "lib/base/mutex.h"

namespace tahoma::controller {

class ReviewTurns {
 public:
  struct Limits {
    int asking = 0;
    int asking_of_one = 0;
    int waiting = 0;
    int waiting_of_one = 0;
    std::chrono::milliseconds patience{};
  };
  // A turn ends when the last copy is destroyed.
  using Turn = std::shared_ptr<const void>;

  explicit ReviewTurns(Limits limits) : limits_(limits) {}

  // kUnavailable when too many wait already, or the turn does not come in time.
  absl::StatusOr<Turn> Wait(const std::string& caller);

 private:
  enum class State : std::uint8_t { kWaits, kHasTurn, kRefused };
  struct Waiter {
    const std::string& caller;
    State state = State::kWaits;
  };
  struct Use {
    int asking = 0;
    int waiting = 0;
  };

  bool Begin(const std::string& caller) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool MakeRoom(const std::string& caller) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void End(const std::string& caller);
  void Forget(const std::string& caller) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Limits limits_;
  Mutex mutex_;
  CondVar changed_;
  int asking_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<std::string, Use> callers_ ABSL_GUARDED_BY(mutex_);
  std::list<Waiter*> waiting_ ABSL_GUARDED_BY(mutex_);  // in order of arrival
};

}  // namespace tahoma::controller
