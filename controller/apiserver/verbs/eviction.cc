#include "controller/apiserver/verbs/eviction.h"

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "controller/apiserver/request/status_error.h"
#include "controller/apiserver/schema/fields.h"
#include "controller/apiserver/schema/selector_text.h"
#include "controller/apiserver/storage/object_store.h"
#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/kube/object.h"

namespace tahoma::controller::apiserver {
namespace {

const ResourceName kBudgetResource = {"policy", "poddisruptionbudgets"};
// How often an eviction is tried anew when the pod has changed meanwhile.
constexpr int kAttempts = 20;
constexpr std::size_t kDisruptedPodsMost = 2000;
constexpr int kAgainSoon = 10;  // seconds

bool Guards(const Json& budget, const Json& pod) {
  const Json& selector = ValueAt(budget, {"spec", "selector"});
  if (!selector.is_object()) return false;
  const auto matcher = LabelSelectorOf(selector);
  return matcher.ok() &&
         matcher->Matches([&](std::string_view key) { return kube::LabelOf(pod, key); });
}

const Json* ConditionIn(const Json& object, std::string_view type) {
  for (const Json& condition : kube::ListAt(object, {"status", "conditions"})) {
    if (TextAt(condition, {"type"}) == type) return &condition;
  }
  return nullptr;
}

// Returns the name in the key of an object with a namespace.
std::string NameIn(const std::string& key) { return key.substr(key.find('/') + 1); }

bool IsReady(const Json& pod) {
  const Json* ready = ConditionIn(pod, "Ready");
  return ready != nullptr && TextAt(*ready, {"status"}) == "True";
}

// Returns whether the budget is not asked: the pod does not count as healthy, and nobody misses it.
bool IsFree(const Json& budget, const Json& pod) {
  if (IsReady(pod)) return false;
  if (TextAt(budget, {"spec", "unhealthyPodEvictionPolicy"}) == "AlwaysAllow") return true;
  const std::int64_t wanted = kube::IntAt(budget, {"status", "desiredHealthy"});
  return wanted > 0 && kube::IntAt(budget, {"status", "currentHealthy"}) >= wanted;
}

absl::Status RefusedBy(std::string_view budget, const std::string& why, int again) {
  return TooManyRequestsError("Cannot evict pod as it would violate the pod's disruption budget.",
                              {{.reason = "DisruptionBudget",
                                .message = fmt::format("The disruption budget {} {}", budget, why),
                                .field = ""}},
                              again);
}

absl::Status StillProcessed(std::string_view budget) {
  return RefusedBy(budget, "is still being processed by the server.", kAgainSoon);
}

std::string WhyNone(const Json& budget) {
  const std::int64_t wanted = kube::IntAt(budget, {"status", "desiredHealthy"});
  const std::int64_t healthy = kube::IntAt(budget, {"status", "currentHealthy"});
  if (healthy <= wanted) {
    return fmt::format("needs {} healthy pods and has {} currently", wanted, healthy);
  }
  const Json* condition = ConditionIn(budget, "DisruptionAllowed");
  if (condition != nullptr && TextAt(*condition, {"status"}) == "False" &&
      !TextAt(*condition, {"message"}).empty()) {
    return fmt::format("does not allow evicting pods currently ({}): {}",
                       TextAt(*condition, {"reason"}), TextAt(*condition, {"message"}));
  }
  return "does not allow evicting pods currently";
}

// A removed budget allows the eviction.
absl::StatusOr<Edit> Taken(const ObjectPtr& current, const Json& pod, const std::string& time,
                           bool dry_run) {
  if (current == nullptr) return Edit::None();
  Json budget = *current->body;
  const std::string_view name = kube::NameOf(budget);
  if (kube::IntAt(budget, {"status", "observedGeneration"}) < kube::GenerationOf(budget)) {
    return StillProcessed(name);
  }
  if (SizeAt(budget, {"status", "disruptedPods"}) > kDisruptedPodsMost) {
    return RefusedBy(name, "has too many evictions that are not confirmed yet", kAgainSoon);
  }
  const std::int64_t allowed = kube::IntAt(budget, {"status", "disruptionsAllowed"});
  if (allowed <= 0) return RefusedBy(name, WhyNone(budget), 0);
  if (dry_run) return Edit::None();
  budget["status"]["disruptionsAllowed"] = allowed - 1;
  budget["status"]["disruptedPods"][std::string(kube::NameOf(pod))] = time;
  return Edit::Put(std::move(budget));
}

struct BudgetAnswer {
  std::string spared_by;  // the budget that lets the pod go because the pod is not ready
};

absl::StatusOr<BudgetAnswer> AskBudgets(const ApiContext& context, const Json& pod, bool dry_run) {
  std::vector<ObjectPtr> budgets;
  const std::string space = fmt::format("{}/", kube::NamespaceOf(pod));
  for (const ObjectPtr& budget : context.objects.List(kBudgetResource, space).objects) {
    if (Guards(*budget->body, pod)) budgets.push_back(budget);
  }
  if (budgets.empty()) return BudgetAnswer();
  if (budgets.size() > 1) {
    return GenericError(500, "",
                        "This pod has more than one PodDisruptionBudget, which the eviction "
                        "subresource does not support.");
  }
  const Object& budget = *budgets.front();
  if (IsFree(*budget.body, pod)) return BudgetAnswer{std::string(kube::NameOf(*budget.body))};
  const std::string time = FormatTime(context.clock.WallNow());
  TAHOMA_RETURN_IF_ERROR(
      context.objects
          .Change(kBudgetResource, budget.key,
                  [&](const ObjectPtr& current) { return Taken(current, pod, time, dry_run); })
          .status());
  return BudgetAnswer();
}

// Says in the pod's status why it ends: Jobs ask for that (podFailurePolicy).
absl::Status Mark(const ApiContext& context, const Kind& pods, const std::string& key,
                  DeleteOptions& options) {
  const ResourceName resource{pods.group, pods.plural};
  TAHOMA_ASSIGN_OR_RETURN(
      const ObjectPtr marked,
      context.objects.Change(resource, key, [&](const ObjectPtr& current) -> absl::StatusOr<Edit> {
        if (current == nullptr) return NotFoundError(pods, NameIn(key));
        TAHOMA_RETURN_IF_ERROR(CheckPreconditions(pods, MetadataOf(*current->body), options));
        Json pod = *current->body;
        const std::string now = FormatTime(context.clock.WallNow());
        Json condition = {{"type", "DisruptionTarget"},
                          {"status", "True"},
                          {"lastTransitionTime", now},
                          {"reason", "EvictionByEvictionAPI"},
                          {"message", "Eviction API: evicting"}};
        Json conditions = Json::array();
        for (const Json& one : kube::ListAt(pod, {"status", "conditions"})) {
          if (TextAt(one, {"type"}) != "DisruptionTarget") {
            conditions.push_back(one);
          } else if (TextAt(one, {"status"}) == "True") {
            condition["lastTransitionTime"] = TextAt(one, {"lastTransitionTime"});
          }
        }
        conditions.push_back(std::move(condition));
        pod["status"]["conditions"] = std::move(conditions);
        return Edit::Put(std::move(pod));
      }));
  if (options.precondition_version.empty()) return absl::OkStatus();
  options.precondition_version = TextAt(MetadataOf(*marked->body), "resourceVersion");
  return absl::OkStatus();
}

absl::Status MarkAndDelete(const ApiContext& context, const Kind& pods, const std::string& key,
                           DeleteOptions options) {
  if (!options.dry_run) TAHOMA_RETURN_IF_ERROR(Mark(context, pods, key, options));
  return DeleteObject(context, pods, key, options).status();
}

}  // namespace

absl::Status EvictPod(const ApiContext& context, const Kind& pods, const std::string& key,
                      const DeleteOptions& options) {
  const ResourceName resource{pods.group, pods.plural};
  for (int attempt = 1;; ++attempt) {
    const ObjectPtr found = context.objects.Get(resource, key);
    if (found == nullptr) return NotFoundError(pods, NameIn(key));
    const Json& pod = *found->body;
    TAHOMA_RETURN_IF_ERROR(CheckPreconditions(pods, MetadataOf(pod), options));
    DeleteOptions exact = options;
    const auto of_this_version = [&] {
      if (exact.precondition_version.empty()) {
        exact.precondition_version = TextAt(MetadataOf(pod), "resourceVersion");
      }
    };
    const std::string phase = TextAt(pod, {"status", "phase"});
    const bool has_ended = phase == "Succeeded" || phase == "Failed" || kube::IsBeingDeleted(pod);
    if (has_ended || phase == "Pending") {
      if (!has_ended) of_this_version();
      absl::Status done = MarkAndDelete(context, pods, key, exact);
      const bool again = absl::IsAborted(done) && options.precondition_version.empty();
      if (!again || attempt == kAttempts) return done;
      continue;
    }
    TAHOMA_ASSIGN_OR_RETURN(const BudgetAnswer answer, AskBudgets(context, pod, options.dry_run));
    if (!answer.spared_by.empty()) of_this_version();
    absl::Status done = MarkAndDelete(context, pods, key, exact);
    const bool has_changed = absl::IsAborted(done) && options.precondition_version.empty();
    return !answer.spared_by.empty() && has_changed ? StillProcessed(answer.spared_by) : done;
  }
}

}  // namespace tahoma::controller::apiserver
