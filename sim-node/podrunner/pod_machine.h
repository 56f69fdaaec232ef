// The life of one pod on a node: a deterministic state machine from events to actions.
//
// The order of a pod: its claims are prepared; init containers run one after the other; then all
// containers; at the end (all of them done, deadline, deletion) the claims are unprepared, and a
// pod under deletion is removed. Restarts, back-off and phases follow the kubelet
// (kubernetes/kubernetes pkg/kubelet: kubelet_pods.go getPhase, kuberuntime_manager.go doBackOff,
// images/image_manager.go). Ephemeral containers start once, as soon as the claims are prepared,
// and end with the pod's other containers; phase and readiness do not depend on ephemeral
// containers.
//
// Scope: decisions. It starts nothing and knows no clock: the pod runner and the simulator carry
// the actions out and report back. Events about a former attempt of a container are ignored.
//
// Thread safety: none; one PodMachine belongs to one thread.

#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "lib/base/clock.h"
#include "lib/base/json_fwd.h"
#include "sim-node/podrunner/pod_spec.h"

namespace tahoma::sim {

// Kubernetes' restart back-off: 10 s doubling to 5 min, forgotten after 10 min without a crash
// (kubelet MaxContainerBackOff and flowcontrol.Backoff, which forgets after twice the maximum).
inline constexpr std::chrono::seconds kFirstBackOff{10};
inline constexpr std::chrono::seconds kMaxBackOff{300};
inline constexpr std::chrono::seconds kBackOffReset{600};
// Claims that cannot be prepared yet are tried again sooner: mostly the claim's reservation is
// just a few milliseconds behind the binding.
inline constexpr std::chrono::seconds kFirstPrepareRetry{1};
inline constexpr std::chrono::seconds kMaxPrepareRetry{30};

struct Exit {
  int code = 0;    // as a shell sees it: 128 + signal when a signal ended it
  int signal = 0;  // 0 when it exited by itself
};

// Reasons as a kubelet writes them into state.waiting.reason.
struct StartFailure {
  std::string reason{};  // ErrImagePull, CreateContainerConfigError, CreateContainerError, …
  std::string message{};
};

struct PrepareClaims {};
struct UnprepareClaims {};
struct RemovePod {};
struct StartContainer {
  std::string container{};
  int attempt = 0;
};
struct SignalContainer {
  std::string container{};
  int attempt = 0;
  bool kill = false;  // SIGKILL, otherwise SIGTERM
};
struct RecordEvent {
  bool warning = false;
  std::string reason{};
  std::string message{};
};
using PodAction = std::variant<PrepareClaims, UnprepareClaims, RemovePod, StartContainer,
                               SignalContainer, RecordEvent>;
using PodActions = std::vector<PodAction>;

struct Termination {
  Exit exit{};
  std::string reason{};
  std::string message{};
  WallTime started{};
  WallTime finished{};
  std::string container_id{};
};

// The state of a pod from before this runner started, as the API server has it.
struct PodHistory {
  struct Container {
    int restarts = 0;
    bool was_running = false;
    WallTime started{};
    std::string container_id{};
    std::optional<Termination> terminated{};
  };
  struct Condition {
    bool met = false;
    WallTime since{};
  };
  std::string phase{};  // empty: never seen before
  std::string reason{};
  std::string message{};
  std::optional<WallTime> start_time{};
  std::map<std::string, Container> containers{};
  std::map<std::string, Condition> conditions{};  // by type, those with a time
  bool holds_claims = false;  // a former runner prepared claims and nobody unprepared them
};

// Reads the status a former runner wrote; what it cannot read it leaves out.
PodHistory ParseHistory(const Json& pod);
// Whether the pod, as the API server shows it, has the status that was written: whatever others
// have added to it, and what a server leaves out because it is empty.
bool ShowsStatus(const Json& pod, const Json& written);

class PodMachine {
 public:
  struct Addresses {
    std::string host_ip{};
    std::string pod_ip{};
  };

  PodMachine(PodSpec spec, const PodHistory& history, Addresses addresses);

  PodActions Start(WallTime now);
  PodActions OnPrepared(WallTime now);
  PodActions OnPrepareFailed(std::string_view message, WallTime now);
  PodActions OnUnprepared(WallTime now);
  PodActions OnUnprepareFailed(std::string_view message, WallTime now);
  PodActions OnStarted(std::string_view container, int attempt, std::string_view container_id,
                       WallTime now);
  PodActions OnStartFailed(std::string_view container, int attempt, StartFailure failure,
                           WallTime now);
  PodActions OnExited(std::string_view container, int attempt, Exit exit, WallTime now);
  // A user or a controller deletes the pod; called again when the grace shrinks.
  PodActions OnDeletion(std::chrono::seconds grace, WallTime now);
  // A complete list of the API server has the pod, although it was to be removed, or no longer has
  // its deletion: the server was restored from a backup. The removal is asked for again. Without
  // the deletion the pod ends as it was about to and stays there (a kubelet never takes a
  // termination back, and removes only what is being deleted).
  PodActions OnListed(bool deleting, WallTime now);
  // The object is gone from the API server: everything ends at once, nothing is removed there.
  PodActions OnGone(WallTime now);
  // The node goes away in order; the pod fails as with a kubelet's graceful node shutdown.
  PodActions OnNodeShutdown(std::chrono::seconds grace, WallTime now);
  // Takes the new spec.activeDeadlineSeconds: it may be set or shortened while the pod runs.
  PodActions OnActiveDeadline(std::optional<std::chrono::seconds> deadline, WallTime now);
  // Takes the ephemeral containers that were added to the pod as the API server shows it.
  PodActions OnEphemeralContainers(const PodSpec& shown, WallTime now);
  // To be called at NextDeadline() or later.
  PodActions OnTick(WallTime now);
  // The claims of templates became known.
  void SetClaims(std::vector<PodClaim> claims) { spec_.claims = std::move(claims); }

  // Returns when OnTick has something to do; nothing when only events can move the pod.
  std::optional<WallTime> NextDeadline() const;
  Json Status() const;
  const PodSpec& spec() const { return spec_; }
  std::string_view phase() const;
  // Whether nothing is left to do: no container runs, no claim is held, the pod is (being) removed.
  bool finished() const { return stage_ == Stage::kRemoved; }
  // All containers have ended and no claim is held, whether or not the pod is to be removed.
  bool ended() const { return stage_ == Stage::kEnded || stage_ == Stage::kRemoved; }
  // OnGone was called.
  bool gone() const { return gone_; }
  // No container of this pod runs or is about to.
  bool stopped() const;
  int restarts(std::string_view container) const;
  // Containers that have run and wait for their next start.
  std::set<std::string> awaited() const;

 private:
  enum class Stage {
    kPreparing,
    kInitializing,
    kRunning,
    kStopping,
    kUnpreparing,
    kEnded,
    kRemoved
  };
  enum class ContainerState { kWaiting, kStarting, kRunning, kTerminated };
  struct BackOff {
    std::chrono::nanoseconds delay{0};  // zero: no crash yet
    WallTime updated{};
  };
  struct Container {
    ContainerSpec spec{};
    bool init = false;
    bool ephemeral = false;
    ContainerState state = ContainerState::kWaiting;
    std::string waiting_reason{};
    std::string waiting_message{};
    // A failed start shows its own reason for a moment, then that it is waiting.
    std::optional<WallTime> reason_fades{};
    std::optional<WallTime> retry_at{};
    std::optional<Termination> last{};
    std::optional<Termination> current{};
    std::string container_id{};
    WallTime started{};
    int restarts = 0;
    bool again = false;      // the next start is a restart
    bool uncounted = false;  // the attempt of that number has not run yet
    bool term_sent = false;
    bool kill_sent = false;
    BackOff crashes{};
    BackOff failed_starts{};
  };
  struct Condition {
    bool met = false;
    WallTime since{};
    std::string reason{};
    std::string message{};
  };

  Container* Find(std::string_view name);
  const Container* Find(std::string_view name) const;
  void Restore(const PodHistory& history, Container& container);
  void Enter(Stage next);
  void Advance(WallTime now);
  void AdvancePreparing(WallTime now);
  void AdvanceInitializing(WallTime now);
  void AdvanceRunning(WallTime now);
  void AdvanceStopping(WallTime now);
  void BeginEphemeral(WallTime now);
  void Begin(Container& container);
  void BeginWhenDue(Container& container, WallTime now);
  bool MayRestart(const Container& container) const;
  static std::chrono::nanoseconds Lengthen(BackOff& back_off, WallTime event, WallTime now);
  void RetryClaims(std::string_view reason, std::string_view message, WallTime now);
  void WaitForBackOff(Container& container, WallTime until);
  bool active() const { return stage_ < Stage::kStopping; }
  void FadeReasons(WallTime now);
  void Stop(std::chrono::seconds grace, WallTime now);
  void RefreshPhase();
  std::string PhaseOfContainers() const;
  void RefreshConditions(WallTime now);
  void SetCondition(const std::string& type, bool met, std::string reason, std::string message,
                    WallTime now);
  std::vector<std::string> UnreadyContainers() const;
  PodActions DrainActions(WallTime now);
  Json ContainerStatus(const Container& container) const;

  PodSpec spec_;
  const Addresses addresses_;
  std::vector<Container> containers_;  // init containers first, in order, ephemeral ones last
  std::size_t init_count_ = 0;
  Stage stage_ = Stage::kPreparing;
  bool asked_ = false;  // a PrepareClaims or UnprepareClaims is in progress
  bool held_ = false;   // claims may be prepared on this node
  bool deleting_ = false;
  bool gone_ = false;
  bool restored_end_ = false;
  std::optional<WallTime> retry_at_;
  std::chrono::nanoseconds retry_delay_{0};
  std::optional<WallTime> kill_at_;
  std::optional<WallTime> start_time_;
  std::string phase_ = "Pending";
  std::string reason_;
  std::string message_;
  std::map<std::string, Condition> conditions_;
  const std::map<std::string, PodHistory::Condition> former_conditions_;
  PodActions actions_;
};

}  // namespace tahoma::sim
