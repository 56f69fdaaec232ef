// The writes of a PodRunner to the API server: pod statuses, deletions, events, its Node and Lease.

#include <algorithm>
#include <set>

#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/kube/lease.h"
#include "sim-node/podrunner/pod_runner.h"

namespace tahoma::sim {
namespace {

using json = Json;

constexpr std::size_t kMaxTold = 4096;
constexpr std::size_t kMaxEventMessage = 1024;  // the API server refuses longer messages

// Whether a retry can help: the request was good, but the server or the connection failed.
bool IsPassing(const absl::Status& status) {
  return kube::OutcomeOf(status) == kube::Outcome::kRetryLater;
}

// Returns the time since which the API server shows the node as Ready; nothing when not Ready.
std::optional<WallTime> ReadySince(const json& node) {
  const json* conditions = kube::ValueAt(node, {"status", "conditions"});
  if (conditions == nullptr || !conditions->is_array()) return std::nullopt;
  for (const json& condition : *conditions) {
    if (kube::StringAt(condition, {"type"}) != "Ready") continue;
    if (kube::StringAt(condition, {"status"}) != "True") continue;
    return ParseTime(kube::StringAt(condition, {"lastTransitionTime"})).value_or(WallTime{});
  }
  return std::nullopt;
}

}  // namespace

std::deque<PodRunner::Write>::iterator PodRunner::NextWrite(const std::set<std::string>& put_off) {
  return std::find_if(writes_.begin(), writes_.end(),
                      [&](const Write& write) { return !put_off.contains(write.pod.uid); });
}

// The writes of a pod keep their order: a later write must not overtake a failed write. Writes of
// other pods do not wait.
void PodRunner::WriteLoop() {
  std::set<std::string> put_off;  // uids of pods with a failed write
  MonotonicTime retry_at;
  MutexLock lock(write_mutex_);
  while (true) {
    if (ports_.clock.MonotonicNow() >= retry_at) put_off.clear();
    auto at = NextWrite(put_off);
    const auto deadline = CondVar::In(retry_at - ports_.clock.MonotonicNow());
    while (!stopping_ && at == writes_.end()) {
      if (put_off.empty()) {
        write_wake_.Wait(write_mutex_);
      } else if (!write_wake_.WaitUntil(write_mutex_, deadline)) {
        put_off.clear();
      }
      at = NextWrite(put_off);
    }
    if (stopping_) return;
    const Write write = *at;
    writes_.erase(at);
    writing_ = true;
    lock.Unlock();
    const bool done = WriteOne(write);
    lock.Lock();
    writing_ = false;
    if (!done) {
      writes_.push_front(write);  // before later writes of the same pod
      if (put_off.empty()) retry_at = ports_.clock.MonotonicNow() + options_.write_retry;
      put_off.insert(write.pod.uid);
    }
    if (writes_.empty()) write_idle_.NotifyAll();
  }
}

// A status leaves `statuses_` when its write begins. A request during the write, even with the same
// text, becomes another write, because the API server's answer may be older than the request.
// Returns false when the write must be tried again later.
bool PodRunner::WriteOne(const Write& write) {
  std::string text;
  if (write.kind == Write::Kind::kStatus) {
    const MutexLock lock(write_mutex_);
    const auto waiting = statuses_.extract(write.pod.uid);
    if (waiting.empty()) return true;  // the write of a newer status was enough
    text = waiting.mapped();
  }
  absl::Status status;
  if (write.kind != Write::Kind::kEvent) status = CheckPod(write);
  switch (write.kind) {
    case Write::Kind::kStatus: {
      if (status.ok()) status = PatchStatus(write.pod, text);
      if (!IsPassing(status)) break;
      const MutexLock lock(write_mutex_);
      statuses_.try_emplace(write.pod.uid, std::move(text));  // unless a newer status waits
      break;
    }
    case Write::Kind::kDelete:
      if (status.ok()) {
        status = ports_.api_once
                     .Delete(kube::kPods, {write.pod.name_space, write.pod.name},
                             {.uid = write.pod.uid, .grace_period_seconds = 0})
                     .status();
      }
      if (!IsPassing(status) && !absl::IsFailedPrecondition(status)) Forget(write.pod);
      break;
    case Write::Kind::kEvent:
      status = PostEvent(write.pod, write.event);
      break;
  }
  if (IsPassing(status)) {
    ports_.log(fmt::format("pod {}/{}: {}; trying again", write.pod.name_space, write.pod.name,
                           Message(status)));
    return false;
  }
  // The pod is gone, or another pod has its name: the write is no longer needed.
  const bool over = absl::IsNotFound(status) || absl::IsAborted(status);
  if (!status.ok() && !over) {
    ports_.log(fmt::format("pod {}/{}: {}", write.pod.name_space, write.pod.name, Message(status)));
  }
  return true;
}

absl::Status PodRunner::CheckPod(const Write& write) {
  const auto shown = ports_.api_once.Get(kube::kPods, {write.pod.name_space, write.pod.name});
  if (!shown.ok()) return shown.status();
  return CheckWrite(*shown, write.pod, node_.name,
                    write.kind == Write::Kind::kDelete ? PodWrite::kRemoval : PodWrite::kStatus);
}

absl::Status PodRunner::PatchStatus(const PodRef& pod, const std::string& status) {
  json patch = {{"metadata", {{"uid", pod.uid}}}, {"status", ParseJson(status)}};
  const absl::Status written =
      ports_.api_once
          .Patch(kube::kPods, {pod.name_space, pod.name}, kube::PatchType::kStrategicMerge, patch,
                 {.field_manager = "tahoma-podrunner", .subresource = "status"})
          .status();
  // Another writer changed the pod, or another pod has the name: the next look tells.
  if (absl::IsAborted(written)) {
    return Unavailable("the pod was written at the same moment ({})", Message(written));
  }
  return written;
}

absl::Status PodRunner::PostEvent(const PodRef& pod, const RecordEvent& event) {
  // A container that fails for days gives the same event every time; once is enough to read.
  if (told_.size() > kMaxTold) told_.clear();
  if (!told_.insert(fmt::format("{}|{}|{}", pod.uid, event.reason, event.message)).second) {
    return absl::OkStatus();
  }
  const WallTime now = ports_.clock.WallNow();
  const json object = {
      {"apiVersion", "v1"},
      {"kind", "Event"},
      {"metadata",
       {{"name", fmt::format("{}.{:016x}", pod.name, rng_.Next())}, {"namespace", pod.name_space}}},
      {"involvedObject",
       {{"apiVersion", "v1"},
        {"kind", "Pod"},
        {"namespace", pod.name_space},
        {"name", pod.name},
        {"uid", pod.uid}}},
      {"type", event.warning ? "Warning" : "Normal"},
      {"reason", event.reason},
      {"message", event.message.substr(0, kMaxEventMessage)},
      {"source", {{"component", "tahoma-podrunner"}, {"host", node_.name}}},
      {"reportingComponent", "tahoma-podrunner"},
      {"reportingInstance", node_.name},
      {"firstTimestamp", FormatTime(now)},
      {"lastTimestamp", FormatTime(now)},
      {"count", 1}};
  return ports_.api.Create(kube::kEvents, pod.name_space, object).status();
}

void PodRunner::OnElection(wire::UltraServerElection election) {
  {
    const MutexLock lock(write_mutex_);
    if (election_ == election) return;
    election_ = std::move(election);
    relabel_ = true;
  }
  write_wake_.NotifyAll();
}

// A new list follows a broken watch: a restored API server may have an older Node, or none.
void PodRunner::ReportNode() {
  {
    const MutexLock lock(write_mutex_);
    report_ = true;
  }
  write_wake_.NotifyAll();
}

NodeFacts PodRunner::Facts() {
  NodeFacts facts = node_;
  const MutexLock lock(write_mutex_);
  facts.election = election_;
  return facts;
}

absl::Status PodRunner::Relabel() {
  const json labels = {{"metadata", {{"labels", LabelPatch(Facts())}}}};
  return ports_.api.Patch(kube::kNodes, {"", node_.name}, kube::PatchType::kMerge, labels).status();
}

absl::Status PodRunner::RegisterNode() {
  const WallTime now = ports_.clock.WallNow();
  NodeFacts facts = Facts();
  const absl::Status created = ports_.api.Create(kube::kNodes, "", MakeNode(facts, now)).status();
  if (!created.ok() && !absl::IsAlreadyExists(created)) return created;
  if (!created.ok()) {
    const json labels = {{"metadata", {{"labels", LabelPatch(facts)}}}};
    const auto node =
        ports_.api.Patch(kube::kNodes, {"", facts.name}, kube::PatchType::kMerge, labels);
    TAHOMA_RETURN_IF_ERROR(node.status());
    facts.ready_since = ReadySince(*node).value_or(now);
  }
  const json status = {{"status", MakeNodeStatus(facts, now)}};
  TAHOMA_RETURN_IF_ERROR(ports_.api
                             .Patch(kube::kNodes, {"", facts.name},
                                    kube::PatchType::kStrategicMerge, status,
                                    {.subresource = "status"})
                             .status());
  return RenewLease();
}

// When this program hangs for a while, Kubernetes takes the node for lost, and only a new status
// takes the verdict back. So the node is read as often as a kubelet reports (10 s,
// nodeStatusUpdateFrequency), and written when the status is wrong.
absl::Status PodRunner::KeepNode(bool report) {
  if (report) return RegisterNode();
  TAHOMA_RETURN_IF_ERROR(RenewLease());
  const auto node = ports_.api.Get(kube::kNodes, {"", node_.name});
  // Somebody deleted the node. The next report makes the node again, not this look, against their
  // will.
  if (absl::IsNotFound(node.status())) return absl::OkStatus();
  TAHOMA_RETURN_IF_ERROR(node.status());
  return ReadySince(*node) ? absl::OkStatus() : RegisterNode();
}

absl::Status PodRunner::RenewLease() {
  const WallTime now = ports_.clock.WallNow();
  const absl::Status renewed =
      ports_.api
          .Patch(kube::kLeases, {"kube-node-lease", node_.name}, kube::PatchType::kMerge,
                 kube::NodeLeaseRenewal(node_.name, now))
          .status();
  if (!absl::IsNotFound(renewed)) return renewed;
  return ports_.api
      .Create(kube::kLeases, "kube-node-lease", kube::MakeNodeLease(node_.name, "", now))
      .status();
}

void PodRunner::LeaseLoop() {
  std::chrono::seconds since_status{0};
  bool labelled = true;
  bool report = false;
  while (true) {
    bool relabel = false;
    {
      const auto deadline = CondVar::In(options_.lease_period);
      const MutexLock lock(write_mutex_);
      while (!stopping_ && !relabel_ && !report_ && write_wake_.WaitUntil(write_mutex_, deadline)) {
      }
      if (stopping_) return;
      relabel = std::exchange(relabel_, false);
      report = std::exchange(report_, false) || report;
    }
    if (relabel || !labelled) {
      const absl::Status written = Relabel();
      labelled = written.ok();
      if (!labelled) ports_.log(fmt::format("node {}: labels: {}", node_.name, Message(written)));
    }
    if (!relabel) since_status += options_.lease_period;
    report = report || since_status >= options_.node_status_period;
    if (report) since_status = std::chrono::seconds(0);
    const absl::Status kept = KeepNode(report);
    report = report && !kept.ok();
    if (!kept.ok()) ports_.log(fmt::format("node {}: {}", node_.name, Message(kept)));
  }
}

}  // namespace tahoma::sim
