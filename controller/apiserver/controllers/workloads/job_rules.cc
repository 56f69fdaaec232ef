#include "controller/apiserver/controllers/workloads/job_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <ranges>
#include <vector>

#include "controller/apiserver/controllers/workloads/parts.h"
#include "controller/apiserver/schema/fields.h"
#include "lib/base/json.h"
#include "lib/kube/object.h"

namespace tahoma::controller::apiserver {
namespace {

std::optional<std::int64_t> NumberOf(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 0) return std::nullopt;
  return number;
}

std::optional<std::int64_t> NumberOf(std::optional<std::string_view> text) {
  return text ? NumberOf(*text) : std::nullopt;
}

// Returns the first container, or init container, whose exit code the requirement matches.
const Json* ContainerOf(const Json& requirement, const Json& pod) {
  const std::string name = TextAt(requirement, {"containerName"});
  const bool in = TextAt(requirement, {"operator"}) == "In";
  const Json& values = ValueAt(requirement, {"values"});
  for (const char* list : {"containerStatuses", "initContainerStatuses"}) {
    for (const Json& container : kube::ListAt(pod, {"status", list})) {
      if (!name.empty() && TextAt(container, {"name"}) != name) continue;
      const Json& code = ValueAt(container, {"state", "terminated", "exitCode"});
      if (!code.is_number_integer() || code == Json(0)) continue;
      if ((std::ranges::find(values, code) != values.end()) == in) return &container;
    }
  }
  return nullptr;
}

const Json* MatchedCondition(const Json& patterns, const Json& pod) {
  for (const Json& pattern : patterns) {
    const Json& condition = ConditionOf(pod, kube::StringAt(pattern, {"type"}));
    if (condition.is_null()) continue;
    if (TextOr(pattern, {"status"}, "True") == TextAt(condition, {"status"})) return &condition;
  }
  return nullptr;
}

// Returns how the rule explains its match; nullopt when the rule does not match.
std::optional<std::string> MatchOf(const Json& rule, std::size_t number, const Json& pod) {
  const std::string action = TextAt(rule, {"action"});
  const std::string pod_name = kube::KeyOf(pod).ToString();
  if (const Json& codes = ValueAt(rule, {"onExitCodes"}); codes.is_object()) {
    const Json* container = ContainerOf(codes, pod);
    if (container == nullptr) return std::nullopt;
    return fmt::format(
        "Container {} for pod {} failed with exit code {} matching {} rule at index {}",
        TextAt(*container, {"name"}), pod_name,
        ValueAt(*container, {"state", "terminated", "exitCode"}).dump(), action, number);
  }
  const Json* condition = MatchedCondition(kube::ListAt(rule, {"onPodConditions"}), pod);
  if (condition == nullptr) return std::nullopt;
  return fmt::format("Pod {} has condition {} matching {} rule at index {}", pod_name,
                     TextAt(*condition, {"type"}), action, number);
}

}  // namespace

IndexSet ParseIndexes(std::string_view text, std::int64_t bound) {
  IndexSet indexes;
  for (const auto part : std::views::split(text, ',')) {
    const std::string_view range(part.begin(), part.end());
    const std::size_t dash = range.find('-');
    const auto first = NumberOf(range.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : NumberOf(range.substr(dash + 1));
    if (!first || !last) continue;
    for (std::int64_t i = *first; i <= *last && i < bound; ++i) indexes.insert(indexes.end(), i);
  }
  return indexes;
}

std::string FormatIndexes(const IndexSet& indexes) {
  std::string text;
  for (auto at = indexes.begin(); at != indexes.end();) {
    const std::int64_t first = *at;
    std::int64_t last = first;
    while (++at != indexes.end() && *at == last + 1) last = *at;
    if (!text.empty()) text += ',';
    text += fmt::format("{}", first);
    if (last > first) text += fmt::format("{}{}", last == first + 1 ? ',' : '-', last);
  }
  return text;
}

std::optional<std::int64_t> CompletionIndexOf(const Json& pod) {
  return NumberOf(kube::AnnotationOf(pod, "batch.kubernetes.io/job-completion-index"));
}

std::int64_t FailuresBefore(const Json& pod) {
  return NumberOf(kube::AnnotationOf(pod, "batch.kubernetes.io/job-index-failure-count"))
      .value_or(0);
}

Judgement JudgeFailure(const Json& job, const Json& pod) {
  std::size_t number = 0;
  for (const Json& rule : kube::ListAt(job, {"spec", "podFailurePolicy", "rules"})) {
    const auto match = MatchOf(rule, number++, pod);
    if (!match) continue;
    const std::string action = TextAt(rule, {"action"});
    if (action == "FailJob") return {.verdict = Verdict::kFailJob, .message = *match};
    if (action == "FailIndex") return {.verdict = Verdict::kFailIndex};
    return {.verdict = action == "Ignore" ? Verdict::kIgnore : Verdict::kCount};
  }
  return {};
}

std::optional<std::string> MetSuccessRule(const Json& job, const IndexSet& succeeded) {
  std::size_t number = 0;
  for (const Json& rule : kube::ListAt(job, {"spec", "successPolicy", "rules"})) {
    IndexSet counted = succeeded;
    std::int64_t wanted = 0;
    if (const Json& text = ValueAt(rule, {"succeededIndexes"}); text.is_string()) {
      const IndexSet named = ParseIndexes(text.get_ref<const std::string&>(),
                                          kube::IntAt(job, {"spec", "completions"}));
      std::erase_if(counted, [&](std::int64_t index) { return !named.contains(index); });
      wanted = static_cast<std::int64_t>(named.size());
    }
    wanted = IntOr(rule, "succeededCount", wanted);
    if (static_cast<std::int64_t>(counted.size()) >= wanted) {
      return fmt::format("Matched rules at index {}", number);
    }
    ++number;
  }
  return std::nullopt;
}

}  // namespace tahoma::controller::apiserver
