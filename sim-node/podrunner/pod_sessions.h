// The sessions of clients with the pods of a node, as a kubelet serves them to an API server:
//
//   GET /exec/<namespace>/<pod>/<container>?command=ls&command=-l&stdin=true&stdout=true&tty=true
//   GET /attach/<namespace>/<pod>/<container>?stdin=true&stdout=true&stderr=true
//   GET /portForward/<namespace>/<pod>?ports=8080
//
// by WebSocket, once they are installed.
//
// A session takes a thread of the server. When the client goes, the program of an
// exec is killed; an attached container runs on.
//
// Scope: finds the pod and starts the session; container_session.h and port_forward.h move the
// bytes.
//
// Thread safety: every member may be called from any thread. End waits for calls in progress;
// sessions go on without their container.

#pragma once

#include <absl/status/status.h>

#include <atomic>
#include <memory>
#include <string>

#include "lib/base/mutex.h"
#include "lib/rest/server.h"
#include "sim-node/podrunner/images.h"
#include "sim-node/podrunner/log_folder.h"
#include "sim-node/podrunner/spawner.h"

namespace tahoma::sim {

class ContainerSession;

class PodSessions : public std::enable_shared_from_this<PodSessions> {
 public:
  explicit PodSessions(std::shared_ptr<const LogFolder> pods) : pods_(std::move(pods)) {}

  // `spawner` must live until End.
  void Begin(PosixSpawner& spawner, ImageMap images);
  void End();

  // Refusals are plain text, as a kubelet's: 404 for a pod or container that is not here or does
  // not run, 429 for one session too many, 426 for a client without WebSocket.
  rest::Response Exec(const rest::Request& request);
  rest::Response Attach(const rest::Request& request);
  rest::Response Forward(const rest::Request& request);

 private:
  struct Wish;

  absl::StatusOr<std::string> Running(const rest::Request& request,
                                      std::string_view container) const;
  std::shared_ptr<ContainerSession> StartExec(const std::string& id, const Wish& wish)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::shared_ptr<ContainerSession> StartAttach(const std::string& id, const Wish& wish)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  rest::Response Answer(const rest::Request& request, const Wish& wish, bool exec);
  // Counts a session that `step` serves, or refuses one too many.
  rest::Response Serve(const rest::Request& request, const std::string& protocol,
                       const std::function<rest::UpgradeStep()>& start);
  void EndIn(const std::string& id);

  const std::shared_ptr<const LogFolder> pods_;
  std::atomic<int> open_ = 0;
  mutable Mutex mutex_;
  PosixSpawner* spawner_ ABSL_GUARDED_BY(mutex_) = nullptr;
  ImageMap images_ ABSL_GUARDED_BY(mutex_);
};

void InstallSessionRoutes(rest::Server& server, const std::shared_ptr<PodSessions>& sessions);

}  // namespace tahoma::sim
