// The API server's machine: a failing disk, the store, the server, its controllers; and a network
// that loses, repeats and delays.
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

// A folder, its faults, and its store.
class Disk {
 public:
  explicit Disk(World& world);

  absl::Status Open();
  // A cut of the power loses a part of the bytes that were not synced.
  void Close(bool power_cut);
  // Puts a new disk in the place of this disk; must be closed.
  void Replace();
  // Returns how often the disk was replaced.
  int number() const { return number_; }

  // Save copies the present content; Restore puts a disk with the copy in the place of this disk,
  // which must be closed.
  void Save();
  bool has_backup() const { return has_backup_; }
  void Restore();

  controller::Store* store() { return store_.get(); }
  testing::FaultFileSystem& faults() { return *faults_; }
  // Returns whether the store has met an error and stopped.
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

  // Opens the disk and serves. Earlier watches are over.
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
  // Returns how often the server has been started.
  int life() const { return life_; }
  // Replaces Stop: the next start has the disk of the backup. Requests in transit do not arrive:
  // their connections have ended.
  void RollBack();
  int rollbacks() const { return rollbacks_; }

  // Lets the controllers work soon, and again when more work is due.
  void WakeControllers();

 private:
  absl::Status Install();
  void StepControllers();
  void WakeControllersAfter(Duration delay);

  World& world_;
  Disk& disk_;
  int life_ = 0;
  int rollbacks_ = 0;
  std::optional<Duration> controllers_at_;  // of the next look
  std::unique_ptr<controller::apiserver::ApiServer> server_;
  std::unique_ptr<kube::Transport> controllers_link_;
  std::unique_ptr<controller::apiserver::Controllers> controllers_;
};

// The fate of a request.
enum class Fate : std::uint8_t { kGood, kRequestLost, kAnswerLost };

class Link final : public kube::Transport {
 public:
  Link(World& world, ApiHost& host, std::string client)
      : world_(world), host_(host), client_(std::move(client)) {}

  absl::StatusOr<kube::Response> Send(const kube::Request& request) override;
  // Gives the present events and ends; breaks off, repeats and expires by chance.
  absl::StatusOr<kube::Response> Stream(const kube::Request& request, const kube::LineSink& sink,
                                        std::chrono::milliseconds idle_timeout) override;
  // The open stream breaks off: the next stream, which would continue from it, fails.
  void BreakStream() { stream_broken_ = true; }
  // Sends the request with a fate that the caller has chosen.
  absl::StatusOr<kube::Response> SendWith(const kube::Request& request, Fate fate);
  // An error of a server in trouble; the server may have carried the request out.
  kube::Response OddAnswer();

 private:
  World& world_;
  ApiHost& host_;
  const std::string client_;
  bool stream_broken_ = false;
};

}  // namespace tahoma::simulation
