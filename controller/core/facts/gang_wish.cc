#include "controller/core/facts/gang_wish.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <string_view>
#include <utility>

#include "lib/base/json.h"
#include "lib/base/utf8.h"
#include "lib/kube/name.h"

namespace tahoma::controller {
namespace {

constexpr std::string_view kMembers = "tahoma.dev/gang-members";
constexpr std::string_view kMinMembers = "tahoma.dev/gang-min-members";
constexpr std::string_view kShape = "tahoma.dev/gang-shape";
constexpr std::string_view kChips = "tahoma.dev/gang-chips";
constexpr std::string_view kSlices = "tahoma.dev/gang-slices";
constexpr std::string_view kFailurePolicy = "tahoma.dev/gang-failure-policy";
constexpr std::string_view kStartWithinAnnotation = "tahoma.dev/gang-start-within";
constexpr std::string_view kGroupLabel = "tahoma.dev/gang-group-label";

// LeaderWorkerSet (sigs.k8s.io/lws api/leaderworkerset/v1): a gang for each group.
constexpr std::string_view kLwsName = "leaderworkerset.sigs.k8s.io/name";
constexpr std::string_view kLwsGroup = "leaderworkerset.sigs.k8s.io/group-index";
constexpr std::string_view kLwsSize = "leaderworkerset.sigs.k8s.io/size";

// The labels by which controllers mark the pods of one workload, the outer one first: a JobSet's
// pods have a Job's label, too (k8s.io/api batch/v1, sigs.k8s.io/jobset api/jobset/v1alpha2,
// kubeflow/training-operator pkg/apis/kubeflow.org/v1, ray-project/kuberay ray/v1).
constexpr std::string_view kJobSetName = "jobset.sigs.k8s.io/jobset-name";
constexpr std::string_view kJobSetUid = "jobset.sigs.k8s.io/jobset-uid";
constexpr std::array<std::string_view, 4> kGroupLabels = {
    kJobSetName, "training.kubeflow.org/job-name", "ray.io/cluster",
    "batch.kubernetes.io/job-name"};

std::string_view TextAt(const Json& pod, const char* map, std::string_view key) {
  const Json* metadata = FindMember(pod, "metadata");
  const Json* texts = metadata == nullptr ? nullptr : FindMember(*metadata, map);
  const Json* value = texts == nullptr ? nullptr : FindMember(*texts, key);
  return value != nullptr && value->is_string()
             ? std::string_view(value->get_ref<const std::string&>())
             : std::string_view();
}

// Reads a number; keeps `otherwise` for an absent annotation.
std::optional<std::int64_t> NumberAt(const Json& pod, std::string_view key, GangWish& wish) {
  const std::string_view text = TextAt(pod, "annotations", key);
  if (text.empty()) return std::nullopt;
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc() && end == text.data() + text.size()) return number;
  wish.fault = fmt::format("annotation {} is {}, must be a number", key, CutUtf8(text, 64));
  return std::nullopt;
}

bool FlagAt(const Json& pod, std::string_view key, bool usual, std::string& fault) {
  const std::string_view text = TextAt(pod, "annotations", key);
  if (!text.empty() && text != "true" && text != "false") {
    fault = fmt::format("annotation {} is {}, must be true or false", key, CutUtf8(text, 64));
  }
  return text.empty() ? usual : text == "true";
}

// Finds the group of the pod, which gives the Gang its name.
void FindGroup(const Json& pod, GangWish& wish) {
  if (const std::string_view label = TextAt(pod, "annotations", kGroupLabel); !label.empty()) {
    wish.gang = TextAt(pod, "labels", label);
    if (wish.gang.empty()) {
      wish.fault = fmt::format("annotation {} names label {}, which the pod does not have",
                               kGroupLabel, CutUtf8(label, 317));
    }
    return;
  }
  const std::string_view group = TextAt(pod, "labels", kLwsGroup);
  if (!group.empty()) {
    wish.gang = fmt::format("{}-{}", TextAt(pod, "labels", kLwsName), group);
    return;
  }
  for (const std::string_view label : kGroupLabels) {
    wish.gang = TextAt(pod, "labels", label);
    if (!wish.gang.empty()) return;
  }
  wish.fault = fmt::format(
      "no label tells the pod's group: pods of a Job, JobSet, LeaderWorkerSet, PyTorchJob or "
      "RayJob "
      "have one; else name a label in the annotation {}",
      kGroupLabel);
}

// Returns whom the Gang goes with: the pod's controller, or the JobSet, because a JobSet that
// restarts deletes the Jobs that control its pods.
std::optional<kube::OwnerReference> FindOwner(const Json& pod) {
  const std::string_view job_set = TextAt(pod, "labels", kJobSetUid);
  if (job_set.empty()) return kube::ControllerOf(pod);
  return kube::OwnerReference{.api_version = "jobset.x-k8s.io/v1alpha2",
                              .kind = "JobSet",
                              .name = std::string(TextAt(pod, "labels", kJobSetName)),
                              .uid = std::string(job_set),
                              .controller = true};
}

// Returns the wish of a pod that joins a PodGroup, without the number of members.
std::optional<GangWish> WishOfGroup(const Json& pod) {
  if (!TextAt(pod, "labels", "tahoma.dev/gang").empty()) return std::nullopt;
  std::optional<GroupMark> mark = ReadGroupMark(pod);
  if (!mark) return std::nullopt;
  GangWish wish;
  wish.gang = mark->GangName();
  wish.group = *std::move(mark);
  wish.terms = ReadGangTerms(pod, wish.fault);
  if (const auto wrong = kube::WrongDns1123Subdomain(wish.gang); wrong && wish.fault.empty()) {
    wish.fault = fmt::format("no Gang can be named {}, after {}: {}", CutUtf8(wish.gang, 253),
                             CutUtf8(wish.group.ToString(), 317), *wrong);
  }
  return wish;
}

}  // namespace

bool GangWish::IsLike(const GangWish& other) const {
  return gang == other.gang && group == other.group && priority == other.priority &&
         request.members == other.request.members &&
         request.min_members == other.request.min_members && request.shape == other.request.shape &&
         request.chips == other.request.chips && request.slices == other.request.slices &&
         request.failure_policy == other.request.failure_policy &&
         request.start_within == other.request.start_within && terms == other.terms;
}

std::string GangWish::ToString() const {
  std::string text = fmt::format("{} members", request.members);
  if (request.min_members) text += fmt::format(", minMembers {}", *request.min_members);
  if (!request.shape.empty()) text += fmt::format(", shape {}", request.shape);
  if (request.chips) text += fmt::format(", {} chips", *request.chips);
  if (request.slices != 1) text += fmt::format(", {} slices", request.slices);
  const GangRequest usual;
  const auto add = [&](const char* field, const std::string& value, const std::string& otherwise) {
    if (value != otherwise) text += fmt::format(", {} {}", field, value);
  };
  add("failurePolicy", request.failure_policy, usual.failure_policy);
  add("startWithin", request.start_within, usual.start_within);
  add("maxRuntime", terms.max_runtime, "");
  add("minRuntime", terms.min_runtime, "");
  add("capacityBlock", terms.block, "");
  if (terms.preemptible) text += ", preemptible";
  if (!terms.checkpointable) text += ", not checkpointable";
  if (priority) text += fmt::format(", priority {}", *priority);
  if (group.api != GroupApi::kNone) text += ", of " + group.ToString();
  return text;
}

GangTerms ReadGangTerms(const Json& pod, std::string& fault) {
  GangTerms terms;
  terms.max_runtime = TextAt(pod, "annotations", "tahoma.dev/max-runtime");
  terms.block = TextAt(pod, "annotations", "tahoma.dev/capacity-block");
  terms.preemptible = FlagAt(pod, "tahoma.dev/preemptible", false, fault);
  terms.checkpointable = FlagAt(pod, "tahoma.dev/checkpointable", true, fault);
  terms.min_runtime = TextAt(pod, "annotations", "tahoma.dev/min-runtime");
  for (const GangFault& one :
       FaultsOf({.max_runtime = terms.max_runtime, .min_runtime = terms.min_runtime})) {
    fault = fmt::format("annotation tahoma.dev/{} {}: {}",
                        one.field == "maxRuntime" ? "max-runtime" : "min-runtime",
                        CutUtf8(one.value, 64), one.why);
  }
  return terms;
}

std::optional<GangWish> ReadGangWish(const Json& pod) {
  const bool wishes = !TextAt(pod, "annotations", kMembers).empty() ||
                      !TextAt(pod, "annotations", kShape).empty() ||
                      !TextAt(pod, "annotations", kChips).empty();
  if (!wishes) return WishOfGroup(pod);
  GangWish wish;
  if (!TextAt(pod, "labels", "tahoma.dev/gang").empty()) {
    wish.fault =
        "it has the label tahoma.dev/gang and annotations that wish a Gang: give it one of both";
    return wish;
  }
  FindGroup(pod, wish);
  const std::string_view size = TextAt(pod, "annotations", kLwsSize);
  const auto members = NumberAt(pod, size.empty() ? kMembers : kLwsSize, wish);
  wish.request.members = members.value_or(0);
  wish.request.min_members = NumberAt(pod, kMinMembers, wish);
  wish.request.shape = TextAt(pod, "annotations", kShape);
  wish.request.chips = NumberAt(pod, kChips, wish);
  wish.request.slices = NumberAt(pod, kSlices, wish).value_or(1);
  const std::string_view policy = TextAt(pod, "annotations", kFailurePolicy);
  if (!policy.empty()) wish.request.failure_policy = policy;
  const std::string_view within = TextAt(pod, "annotations", kStartWithinAnnotation);
  if (!within.empty()) wish.request.start_within = within;
  wish.terms = ReadGangTerms(pod, wish.fault);
  wish.owner = FindOwner(pod);
  if (!wish.fault.empty()) return wish;
  // A label's value need not be a name of an object.
  if (const auto wrong = kube::WrongDns1123Subdomain(wish.gang)) {
    wish.fault = fmt::format("no Gang can be named after its group {}: {}", wish.gang, *wrong);
  } else if (!members) {
    wish.fault = fmt::format("annotation {} is missing: how many pods the group has", kMembers);
  } else if (const std::string faults = Describe(FaultsOf(wish.request)); !faults.empty()) {
    wish.fault = "the Gang that its annotations wish: " + faults;
  }
  return wish;
}

}  // namespace tahoma::controller
