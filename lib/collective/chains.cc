#include "lib/collective/chains.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <queue>
#include <utility>

namespace tahoma::collective {
namespace {

Picoseconds TimeOfOne(const Chain& chain) {
  Picoseconds sum(0);
  for (const ChainStep& step : chain) {
    const Picoseconds once = step.start + std::max(step.links + step.hops, step.memory);
    sum += once * static_cast<Picoseconds::rep>(step.count);
  }
  return sum;
}

// Chains in progress. Times are picoseconds. While chains send, `served_` grows by what each of
// them gets, so that a chain ends when it has grown by the chain's time on the links alone.
class Run {
 public:
  explicit Run(const std::vector<Chain>& chains) {
    states_.reserve(chains.size());
    for (const Chain& chain : chains) {
      states_.push_back({.chain = &chain});
      Begin(states_.size() - 1, 0);
    }
  }

  Picoseconds ToEnd() {
    while (!waiting_.empty() || !sending_.empty()) {
      const double others = static_cast<double>(sending_.size());
      const double ended =
          sending_.empty() ? kNever : now_ + std::max(0.0, sending_.top().first - served_) * others;
      const double left = waiting_.empty() ? kNever : waiting_.top().first;
      const double next = std::max(now_, std::min(ended, left));
      if (!sending_.empty()) served_ += (next - now_) / others;
      now_ = next;
      if (ended <= left) {
        const std::size_t chain = sending_.top().second;
        served_ = std::max(served_, sending_.top().first);
        sending_.pop();
        End(chain);
      } else {
        const std::size_t chain = waiting_.top().second;
        waiting_.pop();
        Depart(chain);
      }
    }
    return Picoseconds(std::llround(end_));
  }

 private:
  static constexpr double kNever = std::numeric_limits<double>::infinity();
  struct State {
    const Chain* chain;
    std::size_t step = 0;
    std::uint64_t repeat = 0;  // of the step
    double memory_done = 0;    // of the step
  };
  // The first to happen is on top; of several at once, that of the first chain.
  using Event = std::pair<double, std::size_t>;  // when, chain
  using Events = std::priority_queue<Event, std::vector<Event>, std::greater<>>;

  static double Of(Picoseconds time) { return static_cast<double>(time.count()); }
  const ChainStep& StepOf(std::size_t chain) const {
    return (*states_[chain].chain)[states_[chain].step];
  }

  // Begins the step at which the chain is, if there is one left.
  void Begin(std::size_t chain, double at) {
    State& state = states_[chain];
    end_ = std::max(end_, at);
    if (state.step == state.chain->size()) return;
    waiting_.emplace(at + Of(StepOf(chain).start), chain);
  }
  void Depart(std::size_t chain) {
    const ChainStep& step = StepOf(chain);
    if (step.memory > Picoseconds(0)) {
      memory_free_ = std::max(memory_free_, now_) + Of(step.memory);
      states_[chain].memory_done = memory_free_;
    } else {
      states_[chain].memory_done = now_;
    }
    if (step.links > Picoseconds(0)) {
      sending_.emplace(served_ + Of(step.links), chain);
    } else {
      End(chain);
    }
  }
  void End(std::size_t chain) {
    State& state = states_[chain];
    const ChainStep& step = StepOf(chain);
    const double at = std::max(now_ + Of(step.hops), state.memory_done);
    if (++state.repeat == step.count) {
      ++state.step;
      state.repeat = 0;
    }
    Begin(chain, at);
  }

  std::vector<State> states_;
  Events waiting_;  // for their departures
  Events sending_;  // by what `served_` is when they have sent
  double served_ = 0;
  double now_ = 0;
  double memory_free_ = 0;
  double end_ = 0;
};

}  // namespace

Picoseconds ChainsTime(const std::vector<Chain>& chains) {
  if (chains.size() == 1) return TimeOfOne(chains.front());
  return Run(chains).ToEnd();
}

}  // namespace tahoma::collective
