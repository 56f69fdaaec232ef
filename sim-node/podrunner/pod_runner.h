// The kubelet's place on an emulated node: runs the node's pods as local processes.
//
//   PodRunner runner(options, {.api = client, .api_once = client_once, .plugins = find,
//                              .clock = clock, .logs = logs, .log = log});
//   TAHOMA_RETURN_IF_ERROR(runner.Start());       // registers the Node, renews its Lease
//   runner.OnPod(object);  runner.OnPodsSynced(); // from whoever watches pods of this node
//   runner.Stop();                                // ends the pods with their grace
//
// Threads: the deciding thread owns NodePods; `kCallers` threads wait for the API server (claims,
// ConfigMaps, starts of programs); another `kCallers` wait for plugins, so a plugin that hangs
// delays no pod without claims; one thread writes to the API in order; one renews the Lease.
//
// Scope: carries out NodePods' actions on a machine. Watching pods and finding plugins are
// functions, because tests have neither.
//
// Thread safety: OnPod, OnPodGone, OnPodsSynced from any thread; Start and Stop from one thread,
// which must live until Stop has returned.

#pragma once

#include <absl/status/statusor.h>

#include <atomic>
#include <chrono>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "lib/base/bounded_queue.h"
#include "lib/base/clock.h"
#include "lib/base/files.h"
#include "lib/base/json_fwd.h"
#include "lib/base/mutex.h"
#include "lib/kube/client.h"
#include "sim-node/podrunner/cdi.h"
#include "sim-node/podrunner/images.h"
#include "sim-node/podrunner/log_folder.h"
#include "sim-node/podrunner/node_object.h"
#include "sim-node/podrunner/node_pods.h"
#include "sim-node/podrunner/plugin_client.h"
#include "sim-node/podrunner/pod_sessions.h"
#include "sim-node/podrunner/pod_users.h"
#include "sim-node/podrunner/pod_volumes.h"
#include "sim-node/podrunner/spawner.h"

namespace tahoma::sim {

class PodRunner {
 public:
  struct Options {
    NodeFacts node{};
    ImageMap images{};
    std::filesystem::path cdi_dir{};
    std::filesystem::path state_dir{};
    std::filesystem::path tools_dir{};     // of MakeToolFolders, which the pods' users can enter
    std::filesystem::path driver_files{};  // of DriverFolder (sim-node/serve/driver_files.h)
    // Null: pods run as this program's user, with all rights of this program.
    std::shared_ptr<PodUsers> users = nullptr;
    int processes_most = 4096;  // processes and threads of a pod with its own user
    // The time for pods to end when the node shuts down (kubelet shutdownGracePeriod).
    std::chrono::seconds shutdown_grace{10};
    std::chrono::seconds lease_period{10};
    std::chrono::seconds node_status_period{300};
    std::chrono::milliseconds write_retry{1000};  // after a failed write
  };
  struct Ports {
    kube::Client& api;
    kube::Client& api_once;  // repeats nothing: each write to a pod first reads the pod
    std::function<absl::StatusOr<std::shared_ptr<PluginClient>>(const std::string& driver)> plugins;
    const Clock& clock;
    std::shared_ptr<LogFolder> logs;  // of the same state folder
    // For exec, attach and port-forward; null: there are none.
    std::shared_ptr<PodSessions> sessions = nullptr;
    std::uint64_t seed = 0;  // of event names
    std::function<void(std::string_view line)> log;
    BeforeStep before_write = nullptr;  // of the checkpoint; for tests
  };

  PodRunner(Options options, Ports ports);
  ~PodRunner();
  PodRunner(const PodRunner&) = delete;
  PodRunner& operator=(const PodRunner&) = delete;

  // Clears the remains of a former run, reads its checkpoint and registers the node. An unreadable
  // checkpoint is an error, because the checkpoint names the claims to unprepare.
  absl::Status Start();
  // Ends the pods, writes their last status, and returns; does nothing the second time.
  void Stop();

  void OnPod(const Json& pod);
  void OnPodGone(const std::string& uid);
  // Called after each complete list: writes again what the API server has lost since the last list.
  void OnPodsSynced();
  // Changes the labels of the node as soon as the API server takes them.
  void OnElection(wire::UltraServerElection election);

 private:
  // A call made by the deciding thread.
  using Step = std::function<NodeActions(NodePods& pods, WallTime now)>;
  struct Write {
    PodRef pod{};
    enum class Kind { kStatus, kDelete, kEvent } kind = Kind::kStatus;
    RecordEvent event{};
  };

  void Post(Step step);
  void DecideLoop();
  void Carry(NodeActions actions);
  using Calls = BoundedQueue<std::function<void()>>;
  void CallLoop(Calls& calls);
  void WriteLoop();
  // Returns the first write of a pod outside `put_off`.
  std::deque<Write>::iterator NextWrite(const std::set<std::string>& put_off)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mutex_);
  void LeaseLoop();

  void CallPlugin(std::function<void()> call, Step failed);
  void ReadClaimsOf(const ReadClaims& read);
  void PrepareOne(const ClaimFacts& claim);
  void UnprepareOne(const ClaimFacts& claim);
  void RunOne(const RunContainer& run, const PodSpec& spec);
  std::variant<Launch, StartFailure> MakeLaunch(const RunContainer& run, const PodSpec& spec);
  ContainerRoot RootOf(const std::string& image, const CdiEdits& edits) const;
  // Gives the container its volumes. The failure says why it cannot start.
  absl::Status AddVolumes(const RunContainer& run, const PodSpec& spec, const CdiEdits& edits,
                          Launch& launch);
  absl::StatusOr<std::optional<uid_t>> UserOf(const PodRef& pod, const PodSpec& spec);
  absl::StatusOr<std::vector<VolumeBind>> VolumesOf(const RunContainer& run, const PodSpec& spec,
                                                    const Environment& environment,
                                                    std::optional<uid_t> user);
  absl::StatusOr<HostVolume> FindVolume(const std::string& name_space, const std::string& claim);
  absl::StatusOr<std::string> RequestToken(const PodSpec& spec, const FileSource& token);
  void Warn(const PodRef& pod, const char* reason, std::string message);
  void Forget(const PodRef& pod);
  absl::StatusOr<std::map<std::string, std::string>> ReadKeyed(const std::string& name_space,
                                                               KeyedObject kind,
                                                               const std::string& name);
  void OnEnded(const Ended& ended);
  NodeActions Exited(NodePods& pods, const std::string& id, Exit exit, WallTime now);
  void SaveClaims();
  void RemoveLogs();

  bool WriteOne(const Write& write);
  absl::Status CheckPod(const Write& write);
  absl::Status PatchStatus(const PodRef& pod, const std::string& status);
  absl::Status PostEvent(const PodRef& pod, const RecordEvent& event);
  NodeFacts Facts();
  void ReportNode();
  absl::Status RegisterNode();
  absl::Status Relabel();
  absl::Status KeepNode(bool report);
  absl::Status RenewLease();

  const Options options_;
  const Ports ports_;
  const NodeFacts node_;  // with the election at the start
  LogFolder& logs_;
  std::unique_ptr<PosixSpawner> spawner_;

  BoundedQueue<Step> steps_;
  Calls calls_;
  Calls plugin_calls_;
  std::atomic<bool> ended_ = false;  // calls that have not begun are dropped
  NodePods pods_;                    // the deciding thread's own, after Start
  absl::Status saved_;               // the same: whether the checkpoint on disk is the newest
  // Containers by id: started containers, and containers whose end was seen before their start.
  std::set<std::string> started_;
  std::map<std::string, Exit> ended_early_;
  std::vector<PodRef> vanished_;  // the logs go once the pods have ended
  bool listed_ = false;           // once or more

  Mutex write_mutex_;
  CondVar write_wake_;
  std::optional<wire::UltraServerElection> election_ ABSL_GUARDED_BY(write_mutex_);
  std::deque<Write> writes_ ABSL_GUARDED_BY(write_mutex_);
  // By pod uid: the newest status without a begun write.
  std::map<std::string, std::string> statuses_ ABSL_GUARDED_BY(write_mutex_);
  bool writing_ ABSL_GUARDED_BY(write_mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(write_mutex_) = false;
  bool relabel_ ABSL_GUARDED_BY(write_mutex_) = false;
  // Reports the node soon, because the API server may have lost the Node.
  bool report_ ABSL_GUARDED_BY(write_mutex_) = false;
  CondVar write_idle_;

  Mutex stop_mutex_;
  CondVar stop_wake_;
  bool pods_stopped_ ABSL_GUARDED_BY(stop_mutex_) = false;
  bool started_once_ = false;

  // The writing thread's own.
  std::set<std::string> told_;  // events written lately
  Rng rng_;
  std::vector<std::thread> threads_;
  std::thread decider_;
  std::thread writer_;
};

}  // namespace tahoma::sim
