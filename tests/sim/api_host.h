// The API server's machine: a disk that fails, the store on it, the server, its controllers; and
// the network to it, which loses, repeats and delays.
//
// Thread safety: one thread.

#pragma once

#include <absl/status/status.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "controller/apiserver/controllers/controllers.h"
#include "controller/apiserver/http/api_server.h"
#include "controller/store/store.h"
#include "lib/base/json.h"
#include "lib/kube/transport.h"
#include "tests/sim/world.h"
#include "tests/support/fault_file_system.h"
#include "tests/support/temp_dir.h"

namespace tahoma::simulation {

// A folder, its faults, and the store in it.
class Disk {
 public:
  explicit Disk(World& world);

  absl::Status Open();
  // Power may be cut: then what was not synced is lost in part.
  void Close(bool power_cut);
  // A new disk in the place of this one; must be closed.
  void Replace();
  // Returns the number of times that it was replaced.
  int number() const { return number_; }

  // A copy of what is on it now, and a disk with that copy in the place of this one, which must be
  // closed.
  void Save();
  bool has_backup() const { return has_backup_; }
  void Restore();

  controller::Store* store() { return store_.get(); }
  testing::FaultFileSystem& faults() { return *faults_; }
  // The store has met an error and stopped.
  bool failed() const { return store_ != nullptr && !store_->health().ok(); }

 private:
  World& world_;
  testing::TempDir folder_;
  std::string Folder() const { return fmt::format("{}/{}", folder_.path(), number_); }
  std::string Backup() const { return folder_.path() + "/backup"; }

  int number_ = 0;
  bool has_backup_ = false;
  std::shared_ptr<testing::FaultFileSystem> faults_;
  std::unique_ptr<controller::Store> store_;
};

struct Answer {
  int status = 0;  // 0: no answer
  Json body;
};

class ApiHost {
 public:
  ApiHost(World& world, Disk& disk) : world_(world), disk_(disk) {}

  // Opens the disk and serves. Watches of before are over.
  absl::Status Start();
  void Stop(bool power_cut);
  bool up() const { return server_ != nullptr; }
  Disk& disk() { return disk_; }

  // Straight to the server, for users and for checks.
  Answer Call(const std::string& method, const std::string& target, const Json& body = nullptr,
              const std::string& type = "application/json");
  rest::Response Handle(const kube::Request& request, const std::string& client);

  const controller::apiserver::ObjectStore& objects() const { return server_->objects(); }
  std::int64_t version() const { return up() ? objects().version() : 0; }
  // Returns the number of times that the server has been started.
  int life() const { return life_; }
  // In the place of Stop: it will start with its disk as it was in the backup. Requests that are in
  // transit do not arrive: their connections have ended.
  void RollBack();
  int rollbacks() const { return rollbacks_; }

  // Arranges for the controllers to be done soon, and again when more is due.
  void WakeControllers();

 private:
  absl::Status Install();
  void StepControllers();
  void WakeControllersAfter(Duration delay);

  World& world_;
  Disk& disk_;
  int life_ = 0;
  int rollbacks_ = 0;
  std::optional<Duration> controllers_at_;  // when they are looked at next
  std::unique_ptr<controller::apiserver::ApiServer> server_;
  std::unique_ptr<kube::Transport> controllers_link_;
  std::unique_ptr<controller::apiserver::Controllers> controllers_;
};

// The fate of one request.
enum class Fate : std::uint8_t { kGood, kRequestLost, kAnswerLost };

class Link final : public kube::Transport {
 public:
  Link(World& world, ApiHost& host, std::string client)
      : world_(world), host_(host), client_(std::move(client)) {}

  absl::StatusOr<kube::Response> Send(const kube::Request& request) override;
  // Gives what there is now and ends; breaks off, repeats and expires by chance.
  absl::StatusOr<kube::Response> Stream(const kube::Request& request, const kube::LineSink& sink,
                                        std::chrono::milliseconds idle_timeout) override;
  // The stream that is open breaks off: the next one, which would go on from it, fails.
  void BreakStream() { stream_broken_ = true; }
  // The same request with a fate that somebody has chosen already.
  absl::StatusOr<kube::Response> SendWith(const kube::Request& request, Fate fate);
  // An error of a server in trouble, which may have carried the request out.
  kube::Response OddAnswer();

 private:
  World& world_;
  ApiHost& host_;
  const std::string client_;
  bool stream_broken_ = false;
};

}  // namespace tahoma::simulation
