// Tells whether a history of concurrent operations is linearizable: whether the operations could
// have run in sequence, each at a moment between its call and its answer.
//
//   std::vector<Operation<Call, Answer>> history;          // call and answered: any clock
//   IsLinearizable<Model>(history);
//
// A model is a sequential object with a default State. Apply returns the state after an operation,
// or nullopt when the state does not allow the answer. MayFollow is false when neither the state
// nor any later state allows the answer.
//
// The search is the search of Wing and Gong: every operation called before the first answer may be
// next. A set of operations with a state is tried once (Lowe). An operation that changes nothing
// runs as soon as the state allows its answer.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace tahoma::testing {

template <typename Call, typename Answer>
struct Operation {
  std::uint64_t called = 0;
  std::uint64_t answered = 0;
  Call call = {};
  Answer answer = {};
};

template <typename Model, typename Call, typename Answer>
class LinearizationSearch {
 public:
  explicit LinearizationSearch(const std::vector<Operation<Call, Answer>>& history)
      : history_(history), done_(history.size(), false) {}

  // An explicit stack: a history is longer than a stack of calls may be deep.
  bool Run() {
    std::vector<Frame> stack;
    stack.push_back({.state = {}, .candidates = Candidates(), .carried_out = kNone});
    while (!stack.empty()) {
      if (stack.size() == history_.size() + 1) return true;
      Frame& top = stack.back();
      if (top.next == top.candidates.size()) {
        if (top.carried_out != kNone) done_[top.carried_out] = false;
        stack.pop_back();
        continue;
      }
      const std::size_t chosen = top.candidates[top.next++];
      std::optional<typename Model::State> after =
          Model::Apply(top.state, history_[chosen].call, history_[chosen].answer);
      if (!after) continue;
      const bool changes = *after != top.state;
      if (!changes) top.next = top.candidates.size();
      done_[chosen] = true;
      if ((changes && !AllMayFollow(*after)) || !tried_.emplace(done_, *after).second) {
        done_[chosen] = false;
        continue;
      }
      stack.push_back(
          {.state = *std::move(after), .candidates = Candidates(), .carried_out = chosen});
    }
    return false;
  }

 private:
  static constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();
  struct Frame {
    typename Model::State state;
    std::vector<std::size_t> candidates;
    std::size_t carried_out = kNone;
    std::size_t next = 0;
  };

  bool AllMayFollow(const typename Model::State& state) const {
    for (std::size_t i = 0; i < history_.size(); ++i) {
      if (!done_[i] && !Model::MayFollow(state, history_[i].call, history_[i].answer)) return false;
    }
    return true;
  }

  // Returns the operations that may be next, in order of their answers.
  std::vector<std::size_t> Candidates() const {
    std::uint64_t first_answer = std::numeric_limits<std::uint64_t>::max();
    for (std::size_t i = 0; i < history_.size(); ++i) {
      if (!done_[i]) first_answer = std::min(first_answer, history_[i].answered);
    }
    std::vector<std::size_t> candidates;
    for (std::size_t i = 0; i < history_.size(); ++i) {
      if (!done_[i] && history_[i].called < first_answer) candidates.push_back(i);
    }
    std::sort(candidates.begin(), candidates.end(), [this](std::size_t a, std::size_t b) {
      return history_[a].answered < history_[b].answered;
    });
    return candidates;
  }

  const std::vector<Operation<Call, Answer>>& history_;
  std::vector<bool> done_;
  std::set<std::pair<std::vector<bool>, typename Model::State>> tried_;
};

template <typename Model, typename Call, typename Answer>
bool IsLinearizable(const std::vector<Operation<Call, Answer>>& history) {
  return LinearizationSearch<Model, Call, Answer>(history).Run();
}

}  // namespace tahoma::testing
