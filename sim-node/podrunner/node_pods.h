// All pods of one node and the claims they share: PodMachines, and the state of each claim's
// preparation.
//
// A claim is prepared once for a node and unprepared after the last pod that uses it has ended; a
// pod is let in only when the claim is allocated and reserved for it (kubelet pkg/kubelet/cm/dra
// manager.go). The same core serves the pod runner with real programs and the simulator with none.
//
// Scope: decisions, in text and plain values. Carrying actions out, in any order between pods but
// in the order given for one pod, and reporting back is the caller's part.
//
// Thread safety: none; one thread owns it.

#pragma once

#include <absl/status/statusor.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "lib/base/clock.h"
#include "lib/base/json_fwd.h"
#include "sim-node/podrunner/pod_machine.h"

namespace tahoma::sim {

// The facts of one ResourceClaim, as the API server has it.
struct ClaimFacts {
  std::string uid{};
  std::string name_space{};
  std::string name{};
  bool allocated = false;
  std::vector<std::string> drivers{};       // of the allocation, each once
  std::set<std::string> devices{};          // of the allocation, with what they are for
  std::vector<std::string> reserved_for{};  // pod uids
};
absl::StatusOr<ClaimFacts> ParseClaimFacts(const Json& claim);

// One device that a plugin prepared (kubelet dra/v1 Device).
struct PreparedDevice {
  std::vector<std::string> requests{};  // empty: all of the claim's
  std::vector<std::string> cdi_ids{};
};

struct PodRef {
  std::string name_space{};
  std::string name{};
  std::string uid{};
};

struct ReadClaims {
  PodRef pod{};
  std::vector<std::string> names{};
};
struct PrepareClaim {
  ClaimFacts claim{};
};
struct UnprepareClaim {
  ClaimFacts claim{};
};
struct RunContainer {
  PodRef pod{};
  std::string container{};
  int attempt = 0;
  std::vector<std::string> cdi_ids{};  // of the claims listed for this container, and of no other
};
struct StopContainer {
  PodRef pod{};
  std::string container{};
  int attempt = 0;
  bool kill = false;
};
// A write to a pod.
enum class PodWrite { kStatus, kRemoval };
// Whether this node may, by the pod as the API server shows it now: kAborted when there is nothing
// to write to, because another pod has its name or it is bound to another node; kFailedPrecondition
// for the removal of a pod that nobody deletes. A server that was restored from a backup has such
// pods. A kubelet reads a pod before it writes, too (pkg/kubelet/status status_manager.go syncPod).
absl::Status CheckWrite(const Json& shown, const PodRef& pod, std::string_view node,
                        PodWrite write);

struct WriteStatus {
  PodRef pod{};
  std::string status{};  // JSON
};
struct DeletePod {
  PodRef pod{};
};
struct WriteEvent {
  PodRef pod{};
  RecordEvent event{};
};
// The claims that are or may be prepared changed: store Checkpoint() before the next action. Until
// that has succeeded, a PrepareClaim or UnprepareClaim is answered with the failure instead of
// being carried out; it is asked for again.
struct SaveCheckpoint {};
using NodeAction = std::variant<ReadClaims, PrepareClaim, UnprepareClaim, RunContainer,
                                StopContainer, WriteStatus, DeletePod, WriteEvent, SaveCheckpoint>;
using NodeActions = std::vector<NodeAction>;

class NodePods {
 public:
  explicit NodePods(PodMachine::Addresses addresses);

  // Claims a former runner had prepared; before anything else.
  absl::Status Restore(std::string_view checkpoint);
  std::string Checkpoint() const;

  // A pod was added or changed, or is in a list. Pods of other nodes are the caller's to leave out.
  NodeActions OnPod(const Json& pod, WallTime now);
  NodeActions OnPodGone(const std::string& uid, WallTime now);
  // A complete list was told by OnPod and OnPodGone. It shows what the API server has: statuses and
  // removals that it lost are asked for again, and claims that nobody uses any more are unprepared.
  NodeActions OnPodsSynced(WallTime now);
  NodeActions OnClaimsRead(const std::string& pod_uid,
                           const absl::StatusOr<std::vector<ClaimFacts>>& claims, WallTime now);
  NodeActions OnClaimPrepared(const std::string& claim_uid,
                              absl::StatusOr<std::vector<PreparedDevice>> devices, WallTime now);
  NodeActions OnClaimUnprepared(const std::string& claim_uid, const absl::Status& status,
                                WallTime now);
  NodeActions OnStarted(const std::string& pod_uid, const std::string& container, int attempt,
                        const std::string& container_id, WallTime now);
  NodeActions OnStartFailed(const std::string& pod_uid, const std::string& container, int attempt,
                            StartFailure failure, WallTime now);
  NodeActions OnExited(const std::string& pod_uid, const std::string& container, int attempt,
                       Exit exit, WallTime now);
  NodeActions OnShutdown(std::chrono::seconds grace, WallTime now);
  NodeActions OnTick(WallTime now);

  std::optional<WallTime> NextDeadline() const;
  // Whether the node has shut down after OnShutdown: no container runs and every pod's end has been
  // written, or its claims could not be unprepared (the plugin may have gone first), which is left
  // to the next runner.
  bool shut_down() const;
  std::size_t pod_count() const { return pods_.size(); }
  // nullptr when the pod is not known.
  const PodMachine* Find(const std::string& pod_uid) const;
  // The uid of the pod of that name; empty when there is none.
  std::string UidOf(std::string_view name_space, std::string_view name) const;

 private:
  enum class ClaimStage { kPreparing, kPrepared, kUnpreparing };
  struct Claim {
    ClaimFacts facts{};
    ClaimStage stage = ClaimStage::kPreparing;
    bool unprepare_next = false;  // asked for while kPreparing
    bool known_devices = false;   // false: prepared by a former runner, must be prepared again
    std::vector<PreparedDevice> devices{};
    std::set<std::string> users{};    // pod uids
    std::set<std::string> waiting{};  // pods that wait for it to be prepared or unprepared
    // The next attempt to unprepare, when that has failed and no pod uses the claim or waits for
    // it.
    std::optional<WallTime> retry_at{};
  };
  struct Pod {
    std::unique_ptr<PodMachine> machine;
    PodRef ref{};
    std::set<std::string> claims{};                   // claim uids in use
    std::map<std::string, std::string> claim_uids{};  // entry of spec.resourceClaims -> uid
    std::string written{};                            // the status written last
    bool status_lost = false;                         // the API server showed another one last
    bool removal_lost = false;  // the API server showed it although its removal was asked for
    std::shared_ptr<const Json> shown{};  // by the API server, last
    // Whether its claims are being read again: they may have been allocated anew since the status
    // was lost.
    bool checking = false;
    std::optional<WallTime> check_at{};  // again
    // It was gone and is there again while its containers are still being ended: as it came back.
    std::shared_ptr<const Json> back{};
    bool claims_reading = false;
    bool left_to_next = false;  // claims stay prepared when the node has shut down
  };

  struct Refusal {
    PodRef pod{};
    std::string status{};
    bool lost = false;  // the API server showed another one last
  };

  NodeActions DrainActions(WallTime now);
  void Add(const Json& object, WallTime now);
  void Update(Pod& pod, const Json& object, WallTime now);
  void WriteLost(WallTime now);
  void CheckClaimsOf(Pod& pod);
  void OnClaimsChecked(Pod& pod, const absl::StatusOr<std::vector<ClaimFacts>>& claims,
                       WallTime now);
  bool HasDevices(const Pod& pod, const std::vector<ClaimFacts>& claims) const;
  void Admit(Pod& pod, PodSpec spec, const Json& object, WallTime now);
  void Refuse(const Json& object, std::string_view reason, std::string_view message);
  bool HoldsClaims(const std::string& pod_uid) const;
  void Carry(Pod& pod, const PodActions& actions, WallTime now);
  void StartReading(Pod& pod, WallTime now);
  void StartUnpreparing(Pod& pod, WallTime now);
  void AskUnprepare(Claim& claim);
  void UnprepareUnused(WallTime now);
  void DropFormerClaims(Pod& pod, const std::vector<ClaimFacts>& claims);
  void FinishPreparing(Pod& pod, WallTime now);
  absl::Status CheckClaims(const Pod& pod, const std::vector<ClaimFacts>& claims) const;
  std::vector<std::string> DevicesFor(const Pod& pod, const std::string& container) const;
  void AfterStep(const std::string& uid);
  void MarkDirty();

  const PodMachine::Addresses addresses_;
  std::map<std::string, Pod> pods_;         // by uid
  std::map<std::string, Claim> claims_;     // by uid
  std::set<std::string> over_;              // pods to forget after this step, by uid
  std::map<std::string, Refusal> refused_;  // pods that were not let in, by uid
  bool shutting_down_ = false;
  NodeActions actions_;
};

}  // namespace tahoma::sim
