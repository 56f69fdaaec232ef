// Jobs, with the texts of Kubernetes' pkg/apis/batch/validation.

#include <absl/strings/str_join.h>
#include <absl/strings/str_split.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "controller/apiserver/validation/parts.h"
#include "controller/apiserver/validation/workloads.h"
#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/kube/object.h"

namespace tahoma::controller::apiserver {
namespace {

constexpr std::int64_t kIndexedMost = 100000;        // parallelism, failed indexes
constexpr std::int64_t kManyCompletions = 100000;    // above it there are further limits
constexpr std::int64_t kMostWithMany = 10000;        // parallelism, failed indexes
constexpr std::size_t kRulesMax = 20;                // of a policy, and patterns of a rule
constexpr std::size_t kExitCodesMax = 255;           // of a rule
constexpr std::size_t kManagedByMax = 63;            // bytes
constexpr std::size_t kIndexesBytesMax = 64 * 1024;  // of succeededIndexes

const std::string kTemplateLabels = "spec.template.metadata.labels";

std::optional<std::int64_t> NumberAt(const Json& object, std::string_view field) {
  const Json& value = ValueAt(object, {field});
  if (!value.is_number_integer()) return std::nullopt;
  return value.get<std::int64_t>();
}

bool IsIndexed(const Json& spec) { return TextAt(spec, {"completionMode"}) == "Indexed"; }

void CheckHasLabel(const Json& labels, const char* key, const std::string& wanted, Causes& causes) {
  const std::string path = fmt::format("{}[{}]", kTemplateLabels, key);
  const Json* found = FindMember(labels, key);
  if (found == nullptr) {
    causes.push_back(Required(path, fmt::format("must be '{}'", wanted)));
  } else if (*found != wanted) {
    causes.push_back(Invalid(path, labels, fmt::format("must be '{}'", wanted)));
  }
}

// Refuses labels of the user that contradict the generated selector.
void CheckGenerated(const Json& job, Causes& causes) {
  const Json& spec = ValueAt(job, {"spec"});
  const Json& selector = ValueAt(spec, {"selector"});
  if (ValueAt(spec, {"manualSelector"}) == true || selector.is_null()) return;
  const std::string uid = TextAt(job, {"metadata", "uid"});
  const std::string name = TextAt(job, {"metadata", "name"});
  const Json& labels = ValueAt(spec, {"template", "metadata", "labels"});
  CheckHasLabel(labels, "controller-uid", uid, causes);
  CheckHasLabel(labels, "job-name", name, causes);
  CheckHasLabel(labels, "batch.kubernetes.io/controller-uid", uid, causes);
  CheckHasLabel(labels, "batch.kubernetes.io/job-name", name, causes);
  const Json expected = {{"batch.kubernetes.io/controller-uid", uid},
                         {"batch.kubernetes.io/job-name", name},
                         {"controller-uid", uid},
                         {"job-name", name}};
  if (ReadSelector(selector).ok() && !SelectorMatches(selector, expected)) {
    causes.push_back(Invalid("spec.selector", selector, "`selector` not auto-generated"));
  }
}

void CheckManagedBy(const Json& value, Causes& causes) {
  if (!value.is_string()) return;
  const std::string path = "spec.managedBy";
  const auto& text = value.get_ref<const std::string&>();
  const auto slash = text.find('/');
  if (text.empty()) {
    causes.push_back(Required(path));
  } else if (slash == std::string::npos || slash == 0 || slash + 1 == text.size()) {
    causes.push_back(
        Invalid(path, text, "must be a domain-prefixed path (such as \"acme.io/foo\")"));
  } else {
    AddInvalid(path, text.substr(0, slash), CheckDnsSubdomain(text.substr(0, slash)), causes);
  }
  if (text.size() > kManagedByMax) causes.push_back(TooLong(path, kManagedByMax));
}

void CheckManyCompletions(const Json& spec, Causes& causes) {
  const auto failed = NumberAt(spec, "maxFailedIndexes");
  const auto parallelism = NumberAt(spec, "parallelism");
  if (NumberAt(spec, "completions").value_or(0) <= kManyCompletions ||
      !NumberAt(spec, "backoffLimitPerIndex")) {
    return;
  }
  if (!failed) {
    causes.push_back(
        Required("spec.maxFailedIndexes",
                 fmt::format("must be specified when completions is above {}", kManyCompletions)));
  }
  const std::string why = fmt::format(
      "must be less than or equal to {} when completions are above {} and used with backoff limit "
      "per index",
      kMostWithMany, kManyCompletions);
  if (parallelism.value_or(0) > kMostWithMany) {
    causes.push_back(Invalid("spec.parallelism", *parallelism, why));
  }
  if (failed.value_or(0) > kMostWithMany) {
    causes.push_back(Invalid("spec.maxFailedIndexes", *failed, why));
  }
}

void CheckIndexed(const Json& spec, Causes& causes) {
  const auto completions = NumberAt(spec, "completions");
  const auto parallelism = NumberAt(spec, "parallelism");
  const auto failed = NumberAt(spec, "maxFailedIndexes");
  if (!completions) {
    causes.push_back(Required("spec.completions", "when completion mode is Indexed"));
  }
  if (parallelism.value_or(0) > kIndexedMost) {
    causes.push_back(
        Invalid("spec.parallelism", *parallelism,
                fmt::format("must be less than or equal to {} when completion mode is Indexed",
                            kIndexedMost)));
  }
  if (completions && failed && *failed > *completions) {
    causes.push_back(
        Invalid("spec.maxFailedIndexes", *failed, "must be less than or equal to completions"));
  }
  if (failed.value_or(0) > kIndexedMost) {
    causes.push_back(Invalid("spec.maxFailedIndexes", *failed,
                             fmt::format("must be less than or equal to {}", kIndexedMost)));
  }
  CheckManyCompletions(spec, causes);
}

void CheckCompletionMode(const Json& spec, Causes& causes) {
  const std::string mode = TextAt(spec, {"completionMode"});
  if (mode != "NonIndexed" && mode != "Indexed") {
    causes.push_back(NotSupported("spec.completionMode", mode, {"NonIndexed", "Indexed"}));
  }
  if (mode == "Indexed") CheckIndexed(spec, causes);
  for (const char* field : {"backoffLimitPerIndex", "maxFailedIndexes"}) {
    const auto value = NumberAt(spec, field);
    if (mode != "NonIndexed" || !value) continue;
    causes.push_back(
        Invalid(fmt::format("spec.{}", field), *value, "requires indexed completion mode"));
  }
}

// Leaves the value out, as Kubernetes does: the value is the whole rule.
Cause InvalidRule(std::string path, std::string_view why) {
  return {"FieldValueInvalid", fmt::format("Invalid value: {}", why), std::move(path)};
}

std::string QuotedList(const std::vector<std::string>& words) {
  return fmt::format("valid values: [{}]",
                     absl::StrJoin(words, " ", [](std::string* out, const std::string& word) {
                       *out += Json(word).dump();
                     }));
}

void CheckWord(const std::string& word, const std::string& path,
               const std::vector<std::string>& known, Causes& causes) {
  if (word.empty()) {
    causes.push_back(Required(path, QuotedList(known)));
  } else if (std::ranges::find(known, word) == known.end()) {
    causes.push_back(NotSupported(path, word, known));
  }
}

void CheckExitCodes(const Json& rule, const std::set<std::string>& containers,
                    const std::string& path, Causes& causes) {
  const std::string op = TextAt(rule, {"operator"});
  CheckWord(op, path + ".operator", {"In", "NotIn"}, causes);
  const Json& container = ValueAt(rule, {"containerName"});
  if (container.is_string() && !containers.contains(container.get<std::string>())) {
    causes.push_back(Invalid(path + ".containerName", container,
                             "must be one of the container or initContainer names in the pod "
                             "template"));
  }
  const Json& values = ValueAt(rule, {"values"});
  if (values.empty()) {
    causes.push_back(Invalid(path + ".values", values, "at least one value is required"));
  } else if (values.size() > kExitCodesMax) {
    causes.push_back(TooMany(path + ".values", values.size(), kExitCodesMax));
  }
  std::set<Json> seen;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::string at = fmt::format("{}.values[{}]", path, i);
    if (op == "In" && values[i] == 0) {
      causes.push_back(Invalid(at, values[i], "must not be 0 for the In operator"));
    }
    if (!seen.insert(values[i]).second) causes.push_back(Duplicate(at, values[i]));
  }
  if (!std::ranges::is_sorted(values)) {
    causes.push_back(Invalid(path + ".values", values, "must be ordered"));
  }
}

void CheckPodConditions(const Json& patterns, const std::string& path, Causes& causes) {
  if (patterns.size() > kRulesMax) causes.push_back(TooMany(path, patterns.size(), kRulesMax));
  for (std::size_t i = 0; i < patterns.size(); ++i) {
    const std::string at = fmt::format("{}[{}]", path, i);
    const std::string type = TextAt(patterns[i], {"type"});
    AddInvalid(at + ".type", type, CheckQualifiedName(type), causes);
    CheckWord(TextAt(patterns[i], {"status"}), at + ".status", {"False", "True", "Unknown"},
              causes);
  }
}

void CheckFailureRule(const Json& spec, const Json& rule, const std::set<std::string>& containers,
                      const std::string& path, Causes& causes) {
  const std::string action = TextAt(rule, {"action"});
  if (action == "FailIndex" && !NumberAt(spec, "backoffLimitPerIndex")) {
    causes.push_back(
        Invalid(path + ".action", action, "requires the backoffLimitPerIndex to be set"));
  } else {
    CheckWord(action, path + ".action", {"Count", "FailIndex", "FailJob", "Ignore"}, causes);
  }
  const Json& codes = ValueAt(rule, {"onExitCodes"});
  const Json& conditions = ValueAt(rule, {"onPodConditions"});
  if (!codes.is_null()) CheckExitCodes(codes, containers, path + ".onExitCodes", causes);
  CheckPodConditions(conditions, path + ".onPodConditions", causes);
  if (!codes.is_null() && !conditions.empty()) {
    causes.push_back(
        InvalidRule(path, "specifying both OnExitCodes and OnPodConditions is not supported"));
  }
  if (codes.is_null() && conditions.empty()) {
    causes.push_back(
        InvalidRule(path, "specifying one of OnExitCodes and OnPodConditions is required"));
  }
}

void CheckFailurePolicy(const Json& spec, Causes& causes) {
  const Json& rules = ValueAt(spec, {"podFailurePolicy", "rules"});
  const std::string path = "spec.podFailurePolicy.rules";
  if (rules.size() > kRulesMax) causes.push_back(TooMany(path, rules.size(), kRulesMax));
  std::set<std::string> containers;
  for (const char* list : {"containers", "initContainers"}) {
    for (const Json& one : ValueAt(spec, {"template", "spec", list})) {
      containers.insert(TextAt(one, {"name"}));
    }
  }
  for (std::size_t i = 0; i < rules.size(); ++i) {
    CheckFailureRule(spec, rules[i], containers, fmt::format("{}[{}]", path, i), causes);
  }
}

absl::StatusOr<std::int64_t> ReadIndex(std::string_view text, std::int64_t completions) {
  std::int64_t index = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), index);
  if (text.empty() || parsed.ec != std::errc() || parsed.ptr != text.data() + text.size()) {
    return InvalidArgument("cannot convert string to integer for index: {}",
                           Json(std::string(text)).dump());
  }
  if (index >= completions) {
    return InvalidArgument("too large index: {}", Json(std::string(text)).dump());
  }
  return index;
}

// Returns how many indexes "0,2-4" names. kInvalidArgument with Kubernetes' message.
absl::StatusOr<std::int64_t> CountIndexes(std::string_view text, std::int64_t completions) {
  std::int64_t total = 0;
  std::optional<std::int64_t> last;
  if (text.empty()) return total;
  const std::vector<std::string> intervals = absl::StrSplit(std::string(text), ',');
  for (const std::string& interval : intervals) {
    const std::vector<std::string> limits = absl::StrSplit(interval, '-');
    if (limits.size() > 2) {
      return InvalidArgument(
          "the fragment {} violates the requirement that an index interval can have at most two "
          "parts separated by '-'",
          Json(interval).dump());
    }
    TAHOMA_ASSIGN_OR_RETURN(const std::int64_t first, ReadIndex(limits.front(), completions));
    TAHOMA_ASSIGN_OR_RETURN(const std::int64_t end, ReadIndex(limits.back(), completions));
    if (limits.size() == 2 && first >= end) {
      return InvalidArgument("non-increasing order, previous: {}, current: {}", first, end);
    }
    if (last && *last >= first) {
      return InvalidArgument("non-increasing order, previous: {}, current: {}", *last, first);
    }
    total += end - first + 1;
    last = end;
  }
  return total;
}

void CheckSuccessRule(const Json& rule, std::int64_t completions, const std::string& path,
                      Causes& causes) {
  const Json& indexes = ValueAt(rule, {"succeededIndexes"});
  const auto count = NumberAt(rule, "succeededCount");
  if (!indexes.is_string() && !count) {
    causes.push_back(
        Required(path, "at least one of succeededCount or succeededIndexes must be specified"));
  }
  std::int64_t named = 0;
  if (indexes.is_string()) {
    const auto& text = indexes.get_ref<const std::string&>();
    const std::string at = path + ".succeededIndexes";
    if (text.size() > kIndexesBytesMax) causes.push_back(TooLong(at, kIndexesBytesMax));
    const auto total = CountIndexes(text, completions);
    named = total.value_or(0);
    if (!total.ok()) {
      causes.push_back(Invalid(
          at, text, fmt::format("error parsing succeededIndexes: {}", Message(total.status()))));
    }
  }
  if (!count) return;
  const std::string at = path + ".succeededCount";
  CheckNotNegative(*count, at, causes);
  if (*count > completions) {
    causes.push_back(Invalid(
        at, *count,
        fmt::format("must be less than or equal to {} (the number of specified completions)",
                    completions)));
  }
  if (indexes.is_string() && *count > named) {
    causes.push_back(Invalid(at, *count,
                             fmt::format("must be less than or equal to {} (the number of indexes "
                                         "in the specified succeededIndexes field)",
                                         named)));
  }
}

void CheckSuccessPolicy(const Json& spec, Causes& causes) {
  const Json& policy = ValueAt(spec, {"successPolicy"});
  if (policy.is_null()) return;
  if (!IsIndexed(spec)) {
    causes.push_back(Invalid("spec.successPolicy", policy, "requires indexed completion mode"));
    return;
  }
  const Json& rules = ValueAt(policy, {"rules"});
  const std::string path = "spec.successPolicy.rules";
  if (rules.empty()) {
    causes.push_back(
        Required(path, "at least one rules must be specified when the successPolicy is specified"));
  }
  if (rules.size() > kRulesMax) causes.push_back(TooMany(path, rules.size(), kRulesMax));
  for (std::size_t i = 0; i < rules.size(); ++i) {
    CheckSuccessRule(rules[i], NumberAt(spec, "completions").value_or(0),
                     fmt::format("{}[{}]", path, i), causes);
  }
}

void CheckReplacement(const Json& spec, Causes& causes) {
  const std::string policy = TextAt(spec, {"podReplacementPolicy"});
  const std::string path = "spec.podReplacementPolicy";
  if (policy.empty()) return;
  if (!ValueAt(spec, {"podFailurePolicy"}).is_null()) {
    if (policy != "Failed") causes.push_back(NotSupported(path, policy, {"Failed"}));
  } else if (policy != "Failed" && policy != "TerminatingOrFailed") {
    causes.push_back(NotSupported(path, policy, {"Failed", "TerminatingOrFailed"}));
  }
}

void CheckEnds(const Json& spec, Causes& causes) {
  const std::string path = "spec.template.spec.restartPolicy";
  const std::string policy = TextAt(spec, {"template", "spec", "restartPolicy"});
  if (policy.empty() || policy == "Always") {
    causes.push_back(Required(path, "valid values: \"OnFailure\", \"Never\""));
  } else if (policy != "OnFailure" && policy != "Never") {
    causes.push_back(NotSupported(path, policy, {"OnFailure", "Never"}));
  } else if (policy != "Never" && !ValueAt(spec, {"podFailurePolicy"}).is_null()) {
    causes.push_back(
        Invalid(path, policy, "only \"Never\" is supported when podFailurePolicy is specified"));
  }
}

// The names of pods end with their index and must have room for the index.
void CheckPodNames(const Json& job, Causes& causes) {
  const Json& spec = ValueAt(job, {"spec"});
  const std::int64_t completions = NumberAt(spec, "completions").value_or(0);
  if (!IsIndexed(spec) || completions <= 0) return;
  const std::string name = TextAt(job, {"metadata", "name"});
  const std::string longest = fmt::format("{}-{}", name, completions - 1);
  if (CheckDnsLabel(longest).empty()) return;
  causes.push_back(
      Invalid("metadata.name", name,
              fmt::format("will not able to create pod with invalid DNS label: {}", longest)));
}

// Objects are compared here before the validation of the new one.
void Drop(Json& from, const char* field) {
  if (from.is_object()) from.erase(field);
}

// Returns the template without the fields that may change while the job is suspended.
Json FixedTemplate(const Json& job) {
  Json fixed = ValueAt(job, {"spec", "template"});
  if (!ValueAt(fixed, {"spec"}).is_object()) return fixed;
  for (const char* field : {"labels", "annotations"}) Drop(fixed["metadata"], field);
  Json& spec = fixed["spec"];
  for (const char* field : {"nodeSelector", "tolerations", "schedulingGates"}) spec.erase(field);
  if (ValueAt(spec, {"affinity"}).is_object()) {
    spec["affinity"].erase("nodeAffinity");
    if (spec["affinity"].empty()) spec.erase("affinity");
  }
  for (const char* list : {"containers", "initContainers"}) {
    if (!ValueAt(spec, {list}).is_array()) continue;
    for (Json& container : spec[list]) Drop(container, "resources");
  }
  return fixed;
}

bool HasTrue(const Json& job, std::string_view type) {
  const Json& conditions = ValueAt(job, {"status", "conditions"});
  return std::any_of(conditions.begin(), conditions.end(), [&](const Json& one) {
    return TextAt(one, {"type"}) == type && TextAt(one, {"status"}) == "True";
  });
}

bool IsFinished(const Json& job) { return HasTrue(job, "Complete") || HasTrue(job, "Failed"); }

void CheckTemplateUpdate(const Json& before, const Json& after, Causes& causes) {
  const bool suspended = ValueAt(before, {"spec", "suspend"}) == true;
  const bool idle =
      ValueAt(before, {"status", "startTime"}).is_null() || HasTrue(before, "Suspended");
  const bool may_change = suspended && idle && kube::IntAt(before, {"status", "active"}) == 0;
  const Json& old_template = ValueAt(before, {"spec", "template"});
  const Json& new_template = ValueAt(after, {"spec", "template"});
  if (may_change && FixedTemplate(before) == FixedTemplate(after)) return;
  CheckImmutable("spec.template", old_template, new_template, causes);
}

Cause OfConditions(std::string_view why) { return InvalidRule("status.conditions", why); }

void CheckEndTimes(const Json& before, const Json& after, Causes& causes) {
  const std::string start = TextAt(after, {"status", "startTime"});
  const std::string end = TextAt(after, {"status", "completionTime"});
  const bool complete = HasTrue(after, "Complete");
  if (!end.empty() && !complete) {
    causes.push_back(Invalid("status.completionTime", end,
                             "cannot set completionTime when there is no Complete=True condition"));
  }
  if (end.empty() && complete) {
    causes.push_back(
        Required("status.completionTime", "completionTime is required for Complete jobs"));
  }
  if (!start.empty() && !end.empty() && end < start) {
    causes.push_back(
        Invalid("status.completionTime", end, "must be equal to or after `startTime`"));
  }
  const std::string old_end = TextAt(before, {"status", "completionTime"});
  if (!end.empty() && !old_end.empty() && end != old_end) {
    causes.push_back(Invalid("status.completionTime", end, "field is immutable"));
  }
}

// A finished job stays finished, and the condition before the last announces the end.
void CheckEndConditions(const Json& before, const Json& after, Causes& causes) {
  const bool complete = HasTrue(after, "Complete");
  const bool failed = HasTrue(after, "Failed");
  const bool target = HasTrue(after, "FailureTarget");
  const bool met = HasTrue(after, "SuccessCriteriaMet");
  if (complete && failed) {
    causes.push_back(OfConditions("cannot set Complete=True and Failed=true conditions"));
  }
  if (complete && target) {
    causes.push_back(OfConditions("cannot set Complete=True and FailureTarget=true conditions"));
  }
  if (failed && !target && !HasTrue(before, "Failed")) {
    causes.push_back(
        OfConditions("cannot set Failed=True condition without the FailureTarget=true condition"));
  }
  if (complete && !met && !HasTrue(before, "Complete")) {
    causes.push_back(OfConditions(
        "cannot set Complete=True condition without the SuccessCriteriaMet=true condition"));
  }
  if (met && failed) {
    causes.push_back(OfConditions("cannot set SuccessCriteriaMet=True and Failed=true conditions"));
  }
  if (met && target) {
    causes.push_back(
        OfConditions("cannot set SuccessCriteriaMet=True and FailureTarget=true conditions"));
  }
  for (const char* type : {"Failed", "Complete", "FailureTarget"}) {
    if (HasTrue(before, type) && !HasTrue(after, type)) {
      causes.push_back(
          OfConditions(fmt::format("cannot disable the terminal {}=True condition", type)));
    }
  }
  if (HasTrue(before, "SuccessCriteriaMet") && !met) {
    causes.push_back(OfConditions("cannot disable the SuccessCriteriaMet=True condition"));
  }
}

void CheckFinished(const Json& after, Causes& causes) {
  if (!IsFinished(after)) return;
  const Json& status = ValueAt(after, {"status"});
  const std::int64_t active = kube::IntAt(status, {"active"});
  if (active > 0) {
    causes.push_back(Invalid("status.active", active, "active>0 is invalid for finished job"));
  }
  const bool never_ran =
      ValueAt(after, {"spec", "suspend"}) == true && ValueAt(after, {"spec", "completions"}) == 0;
  if (TextAt(status, {"startTime"}).empty() && !never_ran) {
    causes.push_back(Required("status.startTime", "startTime is required for finished job"));
  }
  const Json& uncounted = ValueAt(status, {"uncountedTerminatedPods"});
  if (SizeAt(uncounted, {"succeeded"}) + SizeAt(uncounted, {"failed"}) > 0) {
    causes.push_back(
        Invalid("status.uncountedTerminatedPods", uncounted, "must be empty for finished job"));
  }
  const std::int64_t terminating = kube::IntAt(status, {"terminating"});
  if (terminating > 0) {
    causes.push_back(
        Invalid("status.terminating", terminating, "terminating>0 is invalid for finished job"));
  }
}

// Adds when the text names indexes that the job does not have, or names them in a wrong form.
void CheckIndexes(const Json& text, std::string_view field, std::int64_t completions,
                  Causes& causes) {
  if (!text.is_string()) return;
  const auto read = CountIndexes(text.get_ref<const std::string&>(), completions);
  if (read.ok()) return;
  causes.push_back(Invalid(fmt::format("status.{}", field), text,
                           fmt::format("error parsing {}: {}", field, Message(read.status()))));
}

// Indexes that stay as they are may be beyond completions, which may have become fewer.
void CheckIndexStatus(const Json& before, const Json& after, Causes& causes) {
  const Json& spec = ValueAt(after, {"spec"});
  const auto completions = NumberAt(spec, "completions");
  const Json& done = ValueAt(after, {"status", "completedIndexes"});
  if (done != ValueAt(before, {"status", "completedIndexes"})) {
    if (completions) CheckIndexes(done, "completedIndexes", *completions, causes);
    if (done.is_string() && done != "" && !IsIndexed(spec)) {
      causes.push_back(Invalid("status.completedIndexes", done,
                               "cannot set non-empty completedIndexes when non-indexed completion "
                               "mode"));
    }
  }
  const Json& failed = ValueAt(after, {"status", "failedIndexes"});
  if (failed == ValueAt(before, {"status", "failedIndexes"})) return;
  const bool by_index = NumberAt(spec, "backoffLimitPerIndex").has_value();
  if (completions && by_index) CheckIndexes(failed, "failedIndexes", *completions, causes);
  if (failed.is_string() && !by_index) {
    causes.push_back(
        Invalid("status.failedIndexes", failed,
                "cannot set non-null failedIndexes when backoffLimitPerIndex is null"));
  }
}

// Only a suspended job, or a job that goes on, gets another start.
void CheckStart(const Json& before, const Json& after, Causes& causes) {
  const Json& old_start = ValueAt(before, {"status", "startTime"});
  const Json& start = ValueAt(after, {"status", "startTime"});
  const bool goes_on = HasTrue(before, "Suspended") && !HasTrue(after, "Suspended");
  if (old_start.is_null() || old_start == start || goes_on ||
      ValueAt(after, {"spec", "suspend"}) == true) {
    return;
  }
  causes.push_back(
      Invalid("status.startTime", start, "field is immutable for unsuspended job once set"));
}

}  // namespace

void CheckJob(const Json& job, Causes& causes) {
  const Json& spec = ValueAt(job, {"spec"});
  CheckGenerated(job, causes);
  for (const char* field :
       {"parallelism", "completions", "activeDeadlineSeconds", "backoffLimit",
        "ttlSecondsAfterFinished", "backoffLimitPerIndex", "maxFailedIndexes"}) {
    CheckNotNegative(ValueAt(spec, {field}), fmt::format("spec.{}", field), causes);
  }
  if (NumberAt(spec, "maxFailedIndexes") && !NumberAt(spec, "backoffLimitPerIndex")) {
    causes.push_back(Required("spec.backoffLimitPerIndex", "when maxFailedIndexes is specified"));
  }
  CheckManagedBy(ValueAt(spec, {"managedBy"}), causes);
  CheckCompletionMode(spec, causes);
  CheckFailurePolicy(spec, causes);
  CheckSuccessPolicy(spec, causes);
  CheckReplacement(spec, causes);
  CheckPodTemplate(ValueAt(spec, {"template"}), causes);
  CheckEnds(spec, causes);
  const Json& selector = ValueAt(spec, {"selector"});
  if (selector.is_null()) causes.push_back(Required("spec.selector"));
  CheckLabelSelector(selector, "spec.selector", causes);
  if (selector.is_null() || ReadSelector(selector).ok()) CheckSelectsTemplate(spec, causes);
  CheckPodNames(job, causes);
}

void CheckJobUpdate(const Json& before, const Json& after, Causes& causes) {
  const Json& old_spec = ValueAt(before, {"spec"});
  const Json& spec = ValueAt(after, {"spec"});
  const auto same = [&](std::string_view field) {
    CheckImmutable(fmt::format("spec.{}", field), ValueAt(old_spec, {field}),
                   ValueAt(spec, {field}), causes);
  };
  const auto completions = NumberAt(spec, "completions");
  if (!IsIndexed(spec)) {
    same("completions");
  } else if (completions && completions != NumberAt(old_spec, "completions") &&
             completions != NumberAt(spec, "parallelism")) {
    causes.push_back(Invalid("spec.completions", *completions,
                             "can only be modified in tandem with spec.parallelism"));
  }
  same("selector");
  CheckTemplateUpdate(before, after, causes);
  for (const char* field : {"completionMode", "podFailurePolicy", "backoffLimitPerIndex",
                            "managedBy", "successPolicy"}) {
    same(field);
  }
}

void CheckJobStatus(const Json& before, const Json& after, Causes& causes) {
  const Json& status = ValueAt(after, {"status"});
  for (const char* field : {"active", "succeeded", "failed", "ready", "terminating"}) {
    CheckNotNegative(ValueAt(status, {field}), fmt::format("status.{}", field), causes);
  }
  CheckStart(before, after, causes);
  CheckEndTimes(before, after, causes);
  CheckEndConditions(before, after, causes);
  CheckFinished(after, causes);
  CheckIndexStatus(before, after, causes);
  const auto ready = NumberAt(status, "ready");
  if (ready.value_or(0) > kube::IntAt(status, {"active"})) {
    causes.push_back(Invalid("status.ready", *ready, "cannot set more ready pods than active"));
  }
  const Json& spec = ValueAt(after, {"spec"});
  const bool may_shrink =
      IsIndexed(spec) && ValueAt(spec, {"completions"}) == ValueAt(spec, {"parallelism"});
  for (const char* count : {"failed", "succeeded"}) {
    if (may_shrink && count == std::string_view("succeeded")) continue;
    const std::int64_t now = kube::IntAt(status, {count});
    if (now < kube::IntAt(before, {"status", count})) {
      causes.push_back(Invalid(fmt::format("status.{}", count), now,
                               fmt::format("cannot decrease the {} counter", count)));
    }
  }
}

}  // namespace tahoma::controller::apiserver
