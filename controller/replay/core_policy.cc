#include "controller/replay/core_policy.h"

#include <absl/container/flat_hash_map.h>
#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <variant>

#include "controller/core/core.h"
#include "controller/plan/planner.h"
#include "lib/base/check.h"

namespace tahoma::controller {
namespace {

// As DeviceClass neuron.aws.com selects them; the replay's nodes publish chips alone.
constexpr const char* kAllChips = "device.driver == \"neuron.aws.com\"";

// The most steps at a moment: a core without rest is a fault of ours.
constexpr int kStepsMost = 1'000'000;

// Returns the spec of a claim for so many chips.
std::shared_ptr<const kube::ResourceClaimSpec> ChipRequest(std::int64_t count) {
  kube::ResourceClaimSpec spec;
  ClaimRequest request;
  request.name = "chips";
  request.alternatives.resize(1);
  request.alternatives[0].device_class = std::string(kNeuronDriver);
  request.alternatives[0].count = count;
  spec.requests.push_back(std::move(request));
  return std::make_shared<const kube::ResourceClaimSpec>(std::move(spec));
}

}  // namespace

// The API of the replay: objects of waiting and running jobs, and the core's news of them.
class CorePolicy::World {
 public:
  World(const std::vector<QueueSpec>& queues, const ReplayJobs& jobs, std::vector<NodeFacts> nodes)
      : jobs_(jobs),
        has_queues_(!queues.empty()),
        core_([this](const ClusterState& view, const Queue& gangs, WallTime now,
                     Explaining explaining) { return planner_.Plan(view, gangs, now, explaining); },
              {.journal_beside_api = true}) {
    auto chips = std::make_shared<ClassFact>();
    chips->name = std::string(kNeuronDriver);
    chips->selectors.emplace_back(kAllChips);
    news_.emplace_back(ClassSeen{std::move(chips)});
    for (NodeFacts& node : nodes) {
      news_.emplace_back(NodeSeen{inventory_.Intern(node)});
      nodes_.emplace(node.name, std::move(node));
    }
    for (const QueueSpec& queue : queues) {
      news_.emplace_back(QueueSeen{std::make_shared<const QueueSpec>(queue)});
    }
    news_.emplace_back(WatchesSynced{});
  }

  void Submit(JobIndex index, WallTime now) {
    const ReplayJob& job = jobs_[index];
    const auto [known, is_new] = live_.try_emplace(index);
    LiveJob& live = known->second;
    ++live.run;
    live.bound = 0;
    live.nodes.clear();
    live.pods.clear();
    PutGang(job, is_new);
    const GangSpec& spec = *job.spec;
    for (std::size_t i = 0; i < spec.members.size(); ++i) {
      const std::string name = fmt::format("{}-{}-{}", spec.key.name, live.run, i);
      AddClaim(name, spec.members[i].claims.front().requests.front().alternatives.front().count);
      AddPod(name, index, job, now);
      live.pods.push_back(name);
    }
  }

  void Finish(JobIndex index) {
    RemovePods(index, /*finished=*/true);
    const GangKey& key = jobs_[index].spec->key;
    news_.emplace_back(GangGone{key, key.name});
    live_.erase(index);
  }

  void Lose(JobIndex index) { RemovePods(index, /*finished=*/false); }

  void SetNode(const std::string& name, bool works) {
    NodeFacts& node = nodes_.at(name);
    node.ready = works;
    news_.emplace_back(NodeSeen{inventory_.Intern(node)});
  }

  PolicyNews Decide(WallTime now) {
    decided_ = {};
    now_ = now;
    const Now moment{.wall = now, .monotonic = MonotonicTime(now.time_since_epoch())};
    for (int steps = 0;; ++steps) {
      TAHOMA_CHECK(steps < kStepsMost);
      const std::vector<Command> news = std::exchange(news_, {});
      StepOutput out = core_.Step(news, moment);
      for (const ApiWrite& write : out.writes) Execute(write);
      for (const JobIndex job : std::exchange(deleted_, {})) End(job);
      wake_.reset();
      if (out.wake) wake_ = WallTime(out.wake->time_since_epoch());
      if (!news_.empty()) continue;
      // A core without news and writes has nothing left to do at this moment.
      if (!wake_ || *wake_ > now || (news.empty() && out.writes.empty())) break;
    }
    if (wake_) wake_ = std::max(*wake_, now + kWakeLeast);
    return std::exchange(decided_, {});
  }

  std::optional<WallTime> wake() const { return wake_; }

 private:
  static constexpr std::chrono::seconds kWakeLeast{1};

  struct LiveJob {
    int run = 0;  // numbers the sets of pods
    std::size_t bound = 0;
    std::vector<std::string> pods;
    std::vector<std::string> nodes;
  };
  struct LivePod {
    PodFact fact;
    JobIndex job = 0;
  };

  std::string NextVersion() { return std::to_string(++version_); }

  void PutGang(const ReplayJob& job, bool is_new) {
    const GangSpec& spec = *job.spec;
    GangFact gang;
    gang.key = spec.key;
    gang.uid = spec.key.name;
    gang.resource_version = NextVersion();
    gang.generation = is_new ? 1 : 2;
    gang.members = static_cast<std::int32_t>(spec.members.size());
    gang.shape = spec.shape_text;
    gang.chips = spec.chips;
    gang.slices = spec.slices;
    if (has_queues_) gang.queue = spec.queue;
    gang.priority = spec.priority;
    gang.max_runtime = job.limit;
    gang.preemptible = spec.preemptible;
    gang.checkpointable = spec.checkpointable;
    gang.created = job.submitted;
    news_.emplace_back(GangSeen{std::make_shared<const GangFact>(std::move(gang))});
  }

  void AddClaim(const std::string& name, std::int64_t chips) {
    ClaimFact claim;
    claim.key = {kNamespace, name};
    claim.uid = name;
    claim.protected_by_finalizer = true;
    auto& request = requests_[chips];
    if (request == nullptr) request = ChipRequest(chips);
    claim.spec = request;
    Show(claims_[name] = std::move(claim));
  }

  void AddPod(const std::string& name, JobIndex index, const ReplayJob& job, WallTime now) {
    PodFact pod;
    pod.key = {kNamespace, name};
    pod.uid = name;
    pod.gang = job.spec->key.name;
    pod.created = now;
    pod.controlled = true;
    pod.claims.push_back({"chips", name, false});
    Show((pods_[name] = {.fact = std::move(pod), .job = index}).fact);
  }

  void Show(PodFact& pod) {
    pod.resource_version = NextVersion();
    news_.emplace_back(PodSeen{std::make_shared<const PodFact>(pod)});
  }
  void Show(ClaimFact& claim) {
    claim.resource_version = NextVersion();
    news_.emplace_back(ClaimSeen{std::make_shared<const ClaimFact>(claim)});
  }

  // Removes the job's pods and their claims, as kube-controller-manager does after the pods' end.
  void RemovePods(JobIndex index, bool finished) {
    for (const std::string& name : live_.at(index).pods) {
      const auto pod = pods_.find(name);
      if (pod == pods_.end()) continue;
      PodFact& fact = pod->second.fact;
      fact.finished = finished;
      fact.succeeded = finished;
      fact.running = fact.ready = false;
      if (finished) Show(fact);
      ClaimFact& claim = claims_.at(name);
      claim.reserved_for.clear();
      claim.allocation = nullptr;
      claim.protected_by_finalizer = false;
      Show(claim);
      news_.emplace_back(PodGone{fact.key, fact.uid});
      news_.emplace_back(ClaimGone{claim.key, claim.uid});
      claims_.erase(name);
      pods_.erase(pod);
    }
  }

  // The core has deleted pods of the job.
  void End(JobIndex index) {
    const LiveJob& live = live_.at(index);
    if (live.bound == live.pods.size()) {
      decided_.ended.push_back(index);
      std::erase_if(decided_.started, [&](const StartedJob& one) { return one.job == index; });
    }
    RemovePods(index, /*finished=*/false);
  }

  void Execute(const ApiWrite& write) {
    ApiResult result = ResultOf(write);
    if (const auto* claim = std::get_if<ClaimWrite>(&write.what)) {
      CarryOut(*claim, result);
    } else if (const auto* pod = std::get_if<PodWrite>(&write.what)) {
      CarryOut(*pod, result);
    } else if (const auto* deletion = std::get_if<PodDeletion>(&write.what)) {
      const auto found = pods_.find(deletion->pod().name);
      if (found == pods_.end()) {
        result.outcome = WriteOutcome::kGone;
      } else if (std::ranges::find(deleted_, found->second.job) == deleted_.end()) {
        deleted_.push_back(found->second.job);
      }
    }
    news_.emplace_back(std::move(result));
  }

  void CarryOut(const ClaimWrite& write, ApiResult& result) {
    const DecidedClaim& decided = write.claim();
    const auto found = claims_.find(decided.name);
    if (found == claims_.end()) {
      result.outcome = WriteOutcome::kGone;
      return;
    }
    ClaimFact& claim = found->second;
    if (write.kind != WriteKind::kReadClaim &&
        (write.base->resource_version != claim.resource_version || write.base->uid != claim.uid)) {
      result.outcome = WriteOutcome::kConflict;
      return;
    }
    if (write.kind == WriteKind::kAllocate) {
      claim.allocation = std::make_shared<const Allocation>(decided.allocation);
      for (const std::uint32_t pod : decided.consumers) {
        const DecidedPod& consumer = write.decision->pods[pod];
        claim.reserved_for.push_back({"", "pods", consumer.name, consumer.uid});
      }
    } else if (write.kind == WriteKind::kDeallocate) {
      claim.reserved_for.clear();
      claim.allocation = nullptr;
    } else if (write.kind != WriteKind::kReadClaim) {
      claim.protected_by_finalizer = write.kind == WriteKind::kAddFinalizer;
    }
    if (write.kind != WriteKind::kReadClaim) Show(claim);
    auto answer = std::make_shared<ClaimFact>(claim);
    answer->spec = nullptr;
    result.claim = std::move(answer);
  }

  void CarryOut(const PodWrite& write, ApiResult& result) {
    const DecidedPod& decided = write.pod();
    const auto found = pods_.find(decided.name);
    if (found == pods_.end()) {
      result.outcome = WriteOutcome::kGone;
      return;
    }
    PodFact& pod = found->second.fact;
    if (write.kind == WriteKind::kReadPod) {
      result.pod = std::make_shared<const PodFact>(pod);
    } else if (pod.uid != decided.uid || !pod.node.empty()) {
      result.outcome = WriteOutcome::kConflict;
    } else {
      pod.node = decided.node;
      pod.bound_gang_uid = write.decision->uid;
      pod.bound_rank = decided.rank;
      pod.bound_slice = decided.slice;
      pod.bound_reservation = write.decision->reservation;
      pod.scheduled_at = now_;
      pod.running = pod.ready = true;
      if (decided.slice < write.decision->slices.size()) {
        pod.bound_placement = PlacementText(write.decision->slices[decided.slice]);
      }
      Show(pod);
      NoteBound(found->second.job, decided.node);
    }
  }

  void NoteBound(JobIndex index, const std::string& node) {
    LiveJob& live = live_.at(index);
    live.nodes.push_back(node);
    if (++live.bound < live.pods.size()) return;
    std::ranges::sort(live.nodes);
    live.nodes.erase(std::unique(live.nodes.begin(), live.nodes.end()), live.nodes.end());
    decided_.started.push_back({.job = index, .nodes = live.nodes});
  }

  static constexpr const char* kNamespace = "replay";

  const ReplayJobs& jobs_;
  const bool has_queues_;
  Planner planner_;
  Core core_;
  Inventory inventory_;
  absl::flat_hash_map<std::string, NodeFacts> nodes_;
  absl::flat_hash_map<JobIndex, LiveJob> live_;
  absl::flat_hash_map<std::string, LivePod> pods_;
  absl::flat_hash_map<std::string, ClaimFact> claims_;
  absl::flat_hash_map<std::int64_t, std::shared_ptr<const kube::ResourceClaimSpec>> requests_;
  std::vector<Command> news_;      // for the core's next step
  std::vector<JobIndex> deleted_;  // jobs that the core has ended in this step
  PolicyNews decided_;
  std::uint64_t version_ = 0;
  WallTime now_;
  std::optional<WallTime> wake_;
};

CorePolicy::CorePolicy(const std::vector<QueueSpec>& queues, const ReplayJobs& jobs,
                       std::vector<NodeFacts> nodes)
    : world_(std::make_unique<World>(queues, jobs, std::move(nodes))) {}
CorePolicy::~CorePolicy() = default;

void CorePolicy::Submit(JobIndex job, WallTime now) { world_->Submit(job, now); }
void CorePolicy::Finish(JobIndex job) { world_->Finish(job); }
void CorePolicy::Lose(JobIndex job) { world_->Lose(job); }
void CorePolicy::SetNode(const std::string& node, bool works) { world_->SetNode(node, works); }
PolicyNews CorePolicy::Decide(WallTime now) { return world_->Decide(now); }
std::optional<WallTime> CorePolicy::wake() const { return world_->wake(); }

}  // namespace tahoma::controller
