// Jobs. A pod of a Job has a finalizer until the Job's stored status counts the pod's end: first
// the pod's uid is in uncountedTerminatedPods (or the pod's index in completedIndexes), then the
// finalizer goes, then the uid becomes one of `succeeded` or `failed`. After a crash at any write
// each end is counted once.

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "controller/apiserver/controllers/workloads/job_rules.h"
#include "controller/apiserver/controllers/workloads/parts.h"
#include "controller/apiserver/schema/fields.h"
#include "lib/base/json.h"
#include "lib/kube/object.h"

namespace tahoma::controller::apiserver {
namespace {

constexpr std::chrono::seconds kFirstDelay{10};
constexpr std::chrono::seconds kLongestDelay{600};
constexpr char kIndexName[] = "batch.kubernetes.io/job-completion-index";
constexpr char kFailureCount[] = "batch.kubernetes.io/job-index-failure-count";

// Why the Job ends: the condition that says so before the last pod has ended.
struct Ending {
  const char* type;  // SuccessCriteriaMet or FailureTarget
  std::string reason;
  std::string message;
};

struct JobPod {
  const Json* body = nullptr;
  std::string uid = {};
  std::optional<std::int64_t> index = {};  // below spec.completions
  bool tracked = false;                    // has the finalizer
  bool succeeded = false;
  bool failed = false;
  Judgement judgement = {};  // of a failed pod
  bool counts() const { return failed && judgement.verdict != Verdict::kIgnore; }
};

// Ends that the stored status counts by number.
struct Counts {
  std::int64_t succeeded = 0;
  std::int64_t failed = 0;
  std::int64_t delayed = 0;  // failed pods that wait for their successors
};

class JobSync {
 public:
  JobSync(const Json& job, WallTime now)
      : job_(job),
        spec_(PartOf(job, "spec")),
        status_(PartOf(job, "status")),
        now_(now),
        is_indexed_(TextAt(spec_, {"completionMode"}) == "Indexed"),
        is_suspended_(kube::BoolAt(spec_, {"suspend"})),
        completions_(IntOr(spec_, "completions", -1)),
        limit_per_index_(IntOr(spec_, "backoffLimitPerIndex", -1)) {}

  Decision Run(const Bodies& children) {
    const std::string manager = TextOr(spec_, {"managedBy"}, "kubernetes.io/job-controller");
    if (manager != "kubernetes.io/job-controller") return {};
    const Bodies pods = Claimed(job_, "batch/v1", "Job", ValueAt(spec_, {"selector"}), children,
                                kube::kPods, decision_.writes);
    for (const auto& pod : pods) Add(*pod);
    if (IsTrue(job_, "Complete") || IsTrue(job_, "Failed")) {
      AfterTheEnd();
      return std::move(decision_);
    }
    FindDelayed();
    CountEnds();
    std::optional<Ending> ending = FindEnding();
    if (ending) {
      for (const JobPod* pod : Active()) DeletePod(*pod->body, decision_);
    } else if (!kube::IsBeingDeleted(job_)) {
      Manage();
      ending = FindCompletion();
    }
    Conclude(ending);
    return std::move(decision_);
  }

 private:
  void Add(const Json& body) {
    JobPod pod{.body = &body, .uid = std::string(kube::UidOf(body))};
    if (is_indexed_) pod.index = CompletionIndexOf(body);
    if (pod.index && *pod.index >= completions_) pod.index.reset();
    pod.tracked = kube::HasFinalizer(body, kJobTracking);
    pod.succeeded = HasPhase(body, "Succeeded");
    // A deleted pod that is bound to no node has nobody who would say that it failed.
    const bool is_lost = kube::IsBeingDeleted(body) &&
                         (!ReplacesFailedOnly() || TextAt(body, {"spec", "nodeName"}).empty());
    // The controller deleted a pod that is not tracked: the pod was one too many, and did not fail.
    const bool is_dismissed = kube::IsBeingDeleted(body) && !pod.tracked;
    pod.failed = !pod.succeeded && !is_dismissed && (HasPhase(body, "Failed") || is_lost);
    if (pod.failed) pod.judgement = JudgeFailure(job_, body);
    pods_.push_back(std::move(pod));
  }

  bool ReplacesFailedOnly() const {
    const char* usual = spec_.contains("podFailurePolicy") ? "Failed" : "TerminatingOrFailed";
    return TextOr(spec_, {"podReplacementPolicy"}, usual) == "Failed";
  }

  void DropTracking(const JobPod& pod) {
    Json body = *pod.body;
    Json kept = Json::array();
    for (const Json& one : kube::ListAt(body, {"metadata", "finalizers"})) {
      if (one != Json(kJobTracking)) kept.push_back(one);
    }
    body["metadata"]["finalizers"] = std::move(kept);
    decision_.writes.push_back(
        {.verb = Write::Verb::kUpdate, .resource = kube::kPods, .object = Shared(std::move(body))});
  }

  void AfterTheEnd() {
    for (const JobPod& pod : pods_) {
      if (pod.tracked) DropTracking(pod);
    }
    const Json& ttl = ValueAt(spec_, {"ttlSecondsAfterFinished"});
    if (!ttl.is_number_integer() || kube::IsBeingDeleted(job_)) return;
    const Json& condition = ConditionOf(job_, IsTrue(job_, "Complete") ? "Complete" : "Failed");
    const WallTime due = TimeOf(condition, "lastTransitionTime", now_) +
                         std::chrono::seconds(ttl.get<std::int64_t>());
    if (due > now_) return Wake(decision_, due);
    decision_.writes.push_back({.verb = Write::Verb::kDelete,
                                .resource = kJobs,
                                .object = Shared(job_),
                                .propagation = "Foreground"});
  }

  // With a limit per index, the last failed pod of an index stays until its successor, which
  // carries the number of failures, is there.
  void FindDelayed() {
    if (limit_per_index_ < 0) return;
    std::map<std::int64_t, const JobPod*> last;
    for (const JobPod& pod : pods_) {
      if (!pod.index) continue;
      const JobPod*& known = last[*pod.index];
      const auto age = [](const JobPod& one) {
        return std::pair(FailuresBefore(*one.body) + (one.counts() ? 1 : 0), !one.failed);
      };
      if (known == nullptr || age(*known) <= age(pod)) known = &pod;
    }
    for (const auto& [index, pod] : last) {
      if (!pod->failed) continue;
      const bool fails = pod->judgement.verdict == Verdict::kFailIndex ||
                         (pod->counts() && FailuresBefore(*pod->body) >= limit_per_index_);
      if (fails) {
        newly_failed_.insert(index);
      } else {
        last_failed_[index] = pod;
      }
    }
  }

  bool IsDelayed(const JobPod& pod) const {
    if (!pod.index || !pod.failed) return false;
    const auto at = last_failed_.find(*pod.index);
    return at != last_failed_.end() && at->second == &pod && !StoredEnding();
  }

  bool StoredEnding() const {
    return IsTrue(job_, "FailureTarget") || IsTrue(job_, "SuccessCriteriaMet");
  }

  void CountEnds() {
    counts_.succeeded = IntOr(status_, "succeeded", 0);
    counts_.failed = IntOr(status_, "failed", 0);
    const std::int64_t bound = std::max<std::int64_t>(completions_, 0);
    stored_done_ = ParseIndexes(TextAt(status_, {"completedIndexes"}), bound);
    done_ = stored_done_;
    failed_indexes_ = ParseIndexes(TextAt(status_, {"failedIndexes"}), bound);
    std::set<std::string> tracked;
    for (const JobPod& pod : pods_) {
      if (pod.tracked) tracked.insert(pod.uid);
    }
    const auto stored = [&](const char* list, std::int64_t& counter) {
      std::set<std::string> kept;
      for (std::string& uid : kube::StringsAt(status_, {"uncountedTerminatedPods", list})) {
        if (tracked.contains(uid)) {
          kept.insert(std::move(uid));
        } else {
          ++counter;
        }
      }
      return kept;
    };
    uncounted_succeeded_ = stored("succeeded", counts_.succeeded);
    uncounted_failed_ = stored("failed", counts_.failed);
    for (const JobPod& pod : pods_) {
      if (pod.tracked && pod.succeeded) CountSuccess(pod);
      if (pod.tracked && pod.failed) CountFailure(pod);
    }
    for (const std::int64_t index : newly_failed_) {
      if (!done_.contains(index)) failed_indexes_.insert(index);
    }
    if (is_indexed_) counts_.succeeded = static_cast<std::int64_t>(done_.size());
  }

  // Returns whether the stored status may grow by one more uid (Kubernetes' MaxUncountedPods).
  bool HasRoom() const { return uncounted_succeeded_.size() + uncounted_failed_.size() < kBurst; }

  void CountSuccess(const JobPod& pod) {
    if (is_indexed_) {
      if (!pod.index || stored_done_.contains(*pod.index)) return DropTracking(pod);
      done_.insert(*pod.index);
      has_uncounted_ = true;
      return;
    }
    if (uncounted_succeeded_.contains(pod.uid)) return DropTracking(pod);
    has_uncounted_ = true;
    if (HasRoom()) uncounted_succeeded_.insert(pod.uid);
  }

  void CountFailure(const JobPod& pod) {
    if (uncounted_failed_.contains(pod.uid)) return DropTracking(pod);
    if (IsDelayed(pod)) {
      if (pod.counts()) ++counts_.delayed;
      return;
    }
    if (!pod.counts() || (is_indexed_ && !pod.index)) return DropTracking(pod);
    has_uncounted_ = true;
    if (HasRoom()) uncounted_failed_.insert(pod.uid);
  }

  std::int64_t AllSucceeded() const {
    return counts_.succeeded + static_cast<std::int64_t>(uncounted_succeeded_.size());
  }
  std::int64_t AllFailed() const {
    return counts_.failed + counts_.delayed + static_cast<std::int64_t>(uncounted_failed_.size());
  }

  std::optional<Ending> FindEnding() {
    for (const char* type : {"FailureTarget", "SuccessCriteriaMet"}) {
      const Json& condition = ConditionOf(job_, type);
      if (TextAt(condition, {"status"}) != "True") continue;
      return Ending{type, TextAt(condition, {"reason"}), TextAt(condition, {"message"})};
    }
    for (const JobPod& pod : pods_) {
      if (pod.failed && pod.judgement.verdict == Verdict::kFailJob) {
        return Ending{"FailureTarget", "PodFailurePolicy", pod.judgement.message};
      }
    }
    if (AllFailed() > IntOr(spec_, "backoffLimit", 6) || RestartsExceedLimit()) {
      return Ending{"FailureTarget", "BackoffLimitExceeded",
                    "Job has reached the specified backoff limit"};
    }
    if (IsPastDeadline()) {
      return Ending{"FailureTarget", "DeadlineExceeded",
                    "Job was active longer than specified deadline"};
    }
    if (limit_per_index_ >= 0) {
      if (auto ending = FindFailedIndexes()) return ending;
    }
    if (const auto met = MetSuccessRule(job_, done_)) {
      return Ending{"SuccessCriteriaMet", "SuccessPolicy", *met};
    }
    return std::nullopt;
  }

  std::optional<Ending> FindFailedIndexes() const {
    const auto failed = static_cast<std::int64_t>(failed_indexes_.size());
    if (failed > IntOr(spec_, "maxFailedIndexes", std::numeric_limits<std::int64_t>::max())) {
      return Ending{"FailureTarget", "MaxFailedIndexesExceeded",
                    "Job has exceeded the specified maximal number of failed indexes"};
    }
    if (failed > 0 && failed + static_cast<std::int64_t>(done_.size()) >= completions_) {
      return Ending{"FailureTarget", "FailedIndexes", "Job has failed indexes"};
    }
    return std::nullopt;
  }

  // Containers that the kubelet restarts fail without their pods.
  bool RestartsExceedLimit() const {
    if (TextAt(spec_, {"template", "spec", "restartPolicy"}) != "OnFailure") return false;
    std::int64_t restarts = 0;
    for (const JobPod& pod : pods_) {
      if (!HasPhase(*pod.body, "Running") && !HasPhase(*pod.body, "Pending")) continue;
      for (const char* list : {"initContainerStatuses", "containerStatuses"}) {
        for (const Json& container : kube::ListAt(*pod.body, {"status", list})) {
          restarts += IntOr(container, "restartCount", 0);
        }
      }
    }
    const std::int64_t limit = IntOr(spec_, "backoffLimit", 6);
    return limit == 0 ? restarts > 0 : restarts >= limit;
  }

  bool IsPastDeadline() {
    const Json& seconds = ValueAt(spec_, {"activeDeadlineSeconds"});
    if (!seconds.is_number_integer() || is_suspended_) return false;
    const WallTime due =
        TimeOf(status_, "startTime", now_) + std::chrono::seconds(seconds.get<std::int64_t>());
    if (due > now_) Wake(decision_, due);
    return due <= now_;
  }

  std::optional<Ending> FindCompletion() const {
    if (!Active().empty() || has_created_) return std::nullopt;
    const std::int64_t succeeded = AllSucceeded();
    if (completions_ < 0 ? succeeded == 0 : succeeded < completions_) return std::nullopt;
    return Ending{"SuccessCriteriaMet", "CompletionsReached",
                  "Reached expected number of succeeded pods"};
  }

  std::vector<const JobPod*> Active() const {
    std::vector<const JobPod*> active;
    for (const JobPod& pod : pods_) {
      if (IsActive(*pod.body)) active.push_back(&pod);
    }
    return active;
  }

  void Manage() {
    std::vector<const JobPod*> active = Active();
    std::ranges::sort(
        active, [](const JobPod* a, const JobPod* b) { return GoesFirst(*b->body, *a->body); });
    std::int64_t wanted = WantedActive(active.size());
    std::set<std::int64_t> held;
    std::int64_t kept = 0;
    bool deletes = false;
    for (const JobPod* pod : active) {
      const bool is_surplus =
          kept >= wanted ||
          (is_indexed_ && (!pod->index || done_.contains(*pod->index) ||
                           failed_indexes_.contains(*pod->index) || held.contains(*pod->index)));
      if (is_surplus) {
        if (pod->tracked) DropTracking(*pod);
        DeletePod(*pod->body, decision_);
        deletes = true;
        continue;
      }
      ++kept;
      if (pod->index) held.insert(*pod->index);
    }
    // Pods that leave make room for their successors at the next look.
    if (is_suspended_ || deletes) return;
    if (ReplacesFailedOnly()) {
      for (const JobPod& pod : pods_) {
        if (!IsTerminating(*pod.body)) continue;
        ++kept;
        if (pod.index) held.insert(*pod.index);
      }
    }
    const std::int64_t lacks = std::min<std::int64_t>(wanted - kept, kBurst);
    if (lacks <= 0) return;
    if (limit_per_index_ < 0 && MustWait(LastFailures())) return;
    if (is_indexed_) {
      CreateIndexes(held, lacks);
    } else {
      for (std::int64_t i = 0; i < lacks; ++i) Create(std::nullopt);
    }
  }

  std::int64_t WantedActive(std::size_t active) const {
    if (is_suspended_) return 0;
    const std::int64_t parallelism = IntOr(spec_, "parallelism", 1);
    if (completions_ >= 0) {
      return std::clamp<std::int64_t>(completions_ - AllSucceeded(), 0, parallelism);
    }
    // A pod that has succeeded says that there is no more work.
    const auto count = static_cast<std::int64_t>(active);
    return AllSucceeded() > 0 ? std::min(count, parallelism) : parallelism;
  }

  struct Failures {
    std::int64_t count = 0;
    WallTime last = {};
  };

  // Returns the failures since the last success.
  Failures LastFailures() const {
    WallTime success = WallTime::min();
    for (const JobPod& pod : pods_) {
      if (pod.succeeded) success = std::max(success, EndOf(*pod.body, now_));
    }
    Failures failures;
    for (const JobPod& pod : pods_) {
      if (!pod.failed) continue;
      const WallTime end = EndOf(*pod.body, now_);
      if (end <= success) continue;
      ++failures.count;
      failures.last = std::max(failures.last, end);
    }
    return failures;
  }

  // Returns whether the next pod must not be made yet; asks for a decision when it may be made.
  bool MustWait(const Failures& failures) {
    if (failures.count == 0) return false;
    const auto doublings = std::min<std::int64_t>(failures.count - 1, 10);
    const WallTime due =
        failures.last + std::min(kLongestDelay, kFirstDelay * (std::int64_t{1} << doublings));
    if (due <= now_) return false;
    Wake(decision_, due);
    return true;
  }

  void CreateIndexes(const std::set<std::int64_t>& held, std::int64_t lacks) {
    for (std::int64_t index = 0; index < completions_ && lacks > 0; ++index) {
      if (held.contains(index) || done_.contains(index) || failed_indexes_.contains(index))
        continue;
      if (const auto failed = last_failed_.find(index); failed != last_failed_.end()) {
        const JobPod& pod = *failed->second;
        if (MustWait({.count = FailuresBefore(*pod.body) + 1, .last = EndOf(*pod.body, now_)})) {
          continue;
        }
      }
      Create(index);
      --lacks;
    }
  }

  void Create(std::optional<std::int64_t> index) {
    Json pod = PodOf(job_, "batch/v1", "Job", ValueAt(spec_, {"template"}));
    Json& metadata = pod["metadata"];
    Json finalizers = kube::ListAt(pod, {"metadata", "finalizers"});
    finalizers.push_back(kJobTracking);
    metadata["finalizers"] = std::move(finalizers);
    std::string base = TextAt(job_, {"metadata", "name"});
    if (index) AddIndex(pod, base, *index);
    const std::string suffix = index ? fmt::format("-{}-", *index) : "-";
    // A generated name is at most 63 bytes, of which five are random.
    base.resize(std::min(base.size(), 58 - suffix.size()));
    metadata["generateName"] = base + suffix;
    CreatePod(std::move(pod), decision_);
    has_created_ = true;
  }

  void AddIndex(Json& pod, const std::string& job_name, std::int64_t index) const {
    const std::string text = fmt::format("{}", index);
    pod["metadata"]["annotations"][kIndexName] = text;
    pod["metadata"]["labels"][kIndexName] = text;
    if (limit_per_index_ >= 0) {
      std::int64_t failures = 0;
      if (const auto failed = last_failed_.find(index); failed != last_failed_.end()) {
        failures = FailuresBefore(*failed->second->body) + (failed->second->counts() ? 1 : 0);
      }
      pod["metadata"]["annotations"][kFailureCount] = fmt::format("{}", failures);
    }
    if (TextAt(pod, {"spec", "hostname"}).empty()) {
      pod["spec"]["hostname"] = fmt::format("{}-{}", job_name, index);
    }
    const Json variable = {
        {"name", "JOB_COMPLETION_INDEX"},
        {"valueFrom",
         {{"fieldRef",
           {{"fieldPath", "metadata.labels['batch.kubernetes.io/job-completion-index']"}}}}}};
    for (const char* list : {"initContainers", "containers"}) {
      if (!pod["spec"].contains(list)) continue;
      for (Json& container : pod["spec"][list]) {
        bool has = false;
        for (const Json& one : kube::ListAt(container, {"env"})) {
          has |= TextAt(one, {"name"}) == "JOB_COMPLETION_INDEX";
        }
        if (!has) container["env"].push_back(variable);
      }
    }
  }

  void Conclude(const std::optional<Ending>& ending) {
    Json status = status_;
    const auto count = [&](const char* field, std::int64_t value, bool shows_zero) {
      if (value > 0 || shows_zero) {
        status[field] = value;
      } else {
        status.erase(field);
      }
    };
    std::int64_t active = 0;
    std::int64_t ready = 0;
    std::int64_t terminating = 0;
    for (const JobPod& pod : pods_) {
      active += IsActive(*pod.body) ? 1 : 0;
      ready += IsActive(*pod.body) && IsTrue(*pod.body, "Ready") ? 1 : 0;
      terminating += IsTerminating(*pod.body) ? 1 : 0;
    }
    count("active", active, false);
    count("ready", ready, true);
    count("terminating", terminating, true);
    count("succeeded", counts_.succeeded, false);
    count("failed", counts_.failed, false);
    if (is_indexed_ && !done_.empty()) status["completedIndexes"] = FormatIndexes(done_);
    if (limit_per_index_ >= 0) status["failedIndexes"] = FormatIndexes(failed_indexes_);
    Json uncounted = Json::object();
    if (!uncounted_succeeded_.empty()) uncounted["succeeded"] = uncounted_succeeded_;
    if (!uncounted_failed_.empty()) uncounted["failed"] = uncounted_failed_;
    const bool all_counted = uncounted.empty() && !has_uncounted_;
    status["uncountedTerminatedPods"] = std::move(uncounted);
    Suspend(status, ending.has_value());
    if (ending) {
      SetJobCondition(status, ending->type, true, ending->reason, ending->message);
      if (all_counted && counts_.delayed == 0 && active == 0 && terminating == 0)
        Finish(status, *ending);
    }
    WriteStatus(kJobs, job_, std::move(status), decision_);
  }

  void Suspend(Json& status, bool ends) {
    if (!status.contains("startTime") && !is_suspended_) {
      status["startTime"] = FormatTime(now_);
      if (const std::int64_t seconds = IntOr(spec_, "activeDeadlineSeconds", -1); seconds >= 0) {
        Wake(decision_, now_ + std::chrono::seconds(seconds));
      }
    }
    if (ends) return;
    const bool was_suspended = IsTrue(job_, "Suspended");
    if (is_suspended_ && !was_suspended) {
      status.erase("startTime");
      SetJobCondition(status, "Suspended", true, "JobSuspended", "Job suspended");
      decision_.notes.push_back({.reason = "Suspended", .message = "Job suspended"});
    } else if (!is_suspended_ && was_suspended) {
      status["startTime"] = FormatTime(now_);
      SetJobCondition(status, "Suspended", false, "JobResumed", "Job resumed");
      decision_.notes.push_back({.reason = "Resumed", .message = "Job resumed"});
    }
  }

  void SetJobCondition(Json& status, const char* type, bool value, const std::string& reason,
                       const std::string& message) {
    const Json before = ValueAt(status, {"conditions"});
    SetCondition(status, type, value, reason, message, now_);
    if (ValueAt(status, {"conditions"}) == before) return;
    for (Json& condition : status["conditions"]) {
      if (TextAt(condition, {"type"}) == type) condition["lastProbeTime"] = FormatTime(now_);
    }
  }

  void Finish(Json& status, const Ending& ending) {
    if (ending.type == std::string_view("SuccessCriteriaMet")) {
      SetJobCondition(status, "Complete", true, ending.reason, ending.message);
      status["completionTime"] = FormatTime(now_);
      decision_.notes.push_back({.reason = "Completed", .message = "Job completed"});
    } else {
      SetJobCondition(status, "Failed", true, ending.reason, ending.message);
      decision_.notes.push_back(
          {.type = "Warning", .reason = ending.reason, .message = ending.message});
    }
    const Json& ttl = ValueAt(spec_, {"ttlSecondsAfterFinished"});
    if (ttl.is_number_integer()) {
      Wake(decision_, now_ + std::chrono::seconds(ttl.get<std::int64_t>()));
    }
  }

  const Json& job_;
  const Json& spec_;
  const Json& status_;
  const WallTime now_;
  const bool is_indexed_;
  const bool is_suspended_;
  const std::int64_t completions_;      // -1: a work queue
  const std::int64_t limit_per_index_;  // -1: none
  std::vector<JobPod> pods_;
  std::map<std::int64_t, const JobPod*> last_failed_;  // by index, where the index goes on
  IndexSet newly_failed_;
  Counts counts_;
  std::set<std::string> uncounted_succeeded_;
  std::set<std::string> uncounted_failed_;
  IndexSet stored_done_;
  IndexSet done_;
  IndexSet failed_indexes_;
  bool has_uncounted_ = false;  // an end is not in the stored status yet
  bool has_created_ = false;
  Decision decision_;
};

}  // namespace

Decision SyncJob(const Json& job, const Bodies& pods, WallTime now) {
  return JobSync(job, now).Run(pods);
}

}  // namespace tahoma::controller::apiserver
