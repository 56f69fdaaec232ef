// The parts of a Job that are rules of their own: sets of completion indexes, the pod failure
// policy, the success policy.
//
// Thread safety: pure functions.

#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "lib/base/json_fwd.h"

namespace tahoma::controller::apiserver {

using IndexSet = std::set<std::int64_t>;

// Indexes that are not below `bound`, and text that is no list of indexes, are left out.
IndexSet ParseIndexes(std::string_view text, std::int64_t bound);
// Three or more in a row are written as a range, as Kubernetes does.
std::string FormatIndexes(const IndexSet& indexes);

// Returns a pod's completion index; nullopt without one.
std::optional<std::int64_t> CompletionIndexOf(const Json& pod);
// Returns how many pods of the index failed before the pod.
std::int64_t FailuresBefore(const Json& pod);

enum class Verdict : std::uint8_t { kCount, kIgnore, kFailIndex, kFailJob };

struct Judgement {
  Verdict verdict = Verdict::kCount;
  std::string message = {};  // kFailJob
};

// Judges a failed pod by spec.podFailurePolicy.
Judgement JudgeFailure(const Json& job, const Json& pod);

// Returns the sentence for the condition SuccessCriteriaMet when a rule of spec.successPolicy is
// met.
std::optional<std::string> MetSuccessRule(const Json& job, const IndexSet& succeeded);

}  // namespace tahoma::controller::apiserver
