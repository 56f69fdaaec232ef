#include "controller/core/facts/member_index.h"

#include <fmt/format.h>

#include <charconv>
#include <system_error>

namespace tahoma::controller {
namespace {

constexpr std::string_view kCompletionIndex = "batch.kubernetes.io/job-completion-index";
constexpr std::string_view kJobName = "batch.kubernetes.io/job-name";
constexpr std::string_view kJobSetJob = "jobset.sigs.k8s.io/job-index";
constexpr std::string_view kJobSetRole = "jobset.sigs.k8s.io/replicatedjob-name";
constexpr std::string_view kWorkerIndex = "leaderworkerset.sigs.k8s.io/worker-index";
constexpr std::string_view kWorkerGroup = "leaderworkerset.sigs.k8s.io/group-index";
constexpr std::string_view kWorkerSet = "leaderworkerset.sigs.k8s.io/name";
constexpr std::string_view kReplicaIndex = "training.kubeflow.org/replica-index";
constexpr std::string_view kReplicaType = "training.kubeflow.org/replica-type";
constexpr std::string_view kPodIndex = "apps.kubernetes.io/pod-index";

std::string_view LabelOf(const kube::Labels& labels, std::string_view key) {
  const std::string* value = kube::FindLabel(labels, key);
  return value == nullptr ? std::string_view() : *value;
}

std::optional<std::int64_t> NumberOf(const kube::Labels& labels, std::string_view key) {
  const std::string_view text = LabelOf(labels, key);
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) {
    return std::nullopt;
  }
  return number;
}

}  // namespace

std::optional<MemberIndex> IndexOf(const kube::Labels& labels, std::string_view name) {
  if (labels.empty()) return std::nullopt;
  MemberIndex index;
  const auto take = [&](std::string_view label) {
    const auto number = NumberOf(labels, label);
    index.inner = number.value_or(0);
    index.label = label;
    return number.has_value();
  };
  // Pods of a LeaderWorkerSet have the label of StatefulSets, too, which counts groups and workers
  // apart.
  if (take(kWorkerIndex)) {
    index.group = LabelOf(labels, kWorkerSet);
    index.outer = NumberOf(labels, kWorkerGroup).value_or(0);
  } else if (take(kCompletionIndex)) {
    const auto job = NumberOf(labels, kJobSetJob);
    index.group = LabelOf(labels, job ? kJobSetRole : kJobName);
    index.outer = job.value_or(0);
  } else if (take(kReplicaIndex)) {
    index.group = LabelOf(labels, kReplicaType);
  } else if (take(kPodIndex)) {
    index.group = name.substr(0, name.rfind('-'));
  } else {
    return std::nullopt;
  }
  return index;
}

std::string Describe(const MemberIndex& index) {
  return fmt::format("index {} ({})", index.inner, index.label);
}

}  // namespace tahoma::controller
