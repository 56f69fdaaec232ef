// The log files of a node's containers, and the logs that still grow.
//
// Scope: files under <state>/pods/<pod uid>/<container>/<attempt>.log, readable by this program
// alone; the container's own folders beside them; and the kubelet's log endpoint
// (kubernetes/kubernetes pkg/kubelet/server: follow, previous, tailLines, limitBytes, sinceSeconds,
// sinceTime, timestamps).
//
// Thread safety: every member may be called from any thread.

#pragma once

#include <absl/status/statusor.h>
#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "lib/base/clock.h"
#include "lib/base/mutex.h"
#include "lib/rest/server.h"
#include "sim-node/podrunner/node_pods.h"

namespace tahoma::sim {

class LogFolder {
 public:
  enum class Which { kCurrent, kPrevious };

  explicit LogFolder(std::filesystem::path state) : state_(std::move(state)) {}

  // Adds a pod of this node, whether or not a container has started. For containers that will run
  // again (`awaited`) the last attempt is the previous attempt (kubelet
  // validateContainerLogStatus).
  void AddPod(const PodRef& pod, const std::set<std::string>& awaited = {});
  // Makes the container's folder and returns the log file of an attempt; the log grows from now on.
  // Logs older than the previous attempt are removed. The container's own folders, WorkFolder and
  // TemporaryFolder, with all their contents, are given to `user`; without a user to this program.
  absl::StatusOr<std::filesystem::path> Begin(const PodRef& pod, const std::string& container,
                                              int attempt, std::optional<uid_t> user = {});
  void End(const std::filesystem::path& log);
  // Removes all logs of the pod.
  void RemovePod(const PodRef& pod);
  // Removes the logs of pods outside `known` (uids): a former run has left such logs.
  void RemoveOthers(const std::function<bool(const std::string& uid)>& known);

  // kNotFound names the pod or the container without a log.
  absl::StatusOr<std::filesystem::path> Find(const std::string& name_space, const std::string& pod,
                                             const std::string& container, Which which) const;
  // The uid of the pod of that name; empty when the pod is not on this node.
  std::string UidOf(const std::string& name_space, const std::string& pod) const;
  // Namespace and name of the node's pods, by uid.
  std::map<std::string, std::pair<std::string, std::string>> Names() const;
  bool Grows(const std::filesystem::path& log) const;
  // Returns when some log has ended, or after `wait`.
  void WaitForEnd(std::chrono::milliseconds wait) const;

  std::filesystem::path ContainerFolder(const PodRef& pod, const std::string& container) const;
  std::filesystem::path WorkFolder(const PodRef& pod, const std::string& container) const {
    return ContainerFolder(pod, container) / "work";
  }
  // The volumes of the pod that end with it; no container's name has an underscore.
  std::filesystem::path VolumeFolder(const PodRef& pod) const {
    return state_ / "pods" / pod.uid / "_volumes";
  }
  std::filesystem::path TemporaryFolder(const PodRef& pod, const std::string& container) const {
    return ContainerFolder(pod, container) / "tmp";
  }

 private:
  absl::Status MakeFolders(const PodRef& pod, const std::string& container,
                           std::optional<uid_t> user) const;

  const std::filesystem::path state_;
  mutable Mutex mutex_;
  mutable CondVar ended_;
  // By namespace and name.
  std::map<std::pair<std::string, std::string>, std::string> uids_ ABSL_GUARDED_BY(mutex_);
  std::set<std::string> growing_ ABSL_GUARDED_BY(mutex_);
  // Containers by uid.
  std::map<std::string, std::set<std::string>> awaited_ ABSL_GUARDED_BY(mutex_);
};

// `logs` and `clock` must outlive the server.
void InstallLogRoutes(rest::Server& server, const LogFolder& logs, const Clock& clock);

}  // namespace tahoma::sim
