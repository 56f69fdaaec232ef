// The controller's machine: its journal, its core, its watches and its writes, which die and start
// again.
//
// The core takes steps as in controller/run/core_loop.cc: drain, step, journal, then write. The
// controller may die before the journal is written, after the journal, or after any write. Requests
// sent before the death still arrive, if the API server is in another process. In that case the
// controller also waits for the lease before it decides, as controller/app/program.cc does, may
// stand still at any moment and go on, and reads everything anew when the API lost its history.
//
// Thread safety: one thread.

#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "controller/core/core.h"
#include "controller/ingest/ingest.h"
#include "controller/plan/planner.h"
#include "controller/publish/render.h"
#include "controller/store/rocks_journal.h"
#include "lib/kube/client.h"
#include "lib/kube/lease.h"
#include "lib/kube/sleeper.h"
#include "tests/sim/api_host.h"
#include "tests/sim/world.h"

namespace tahoma::simulation {

// Hears of the controller's decisions and writes.
class DecisionWatcher {
 public:
  virtual ~DecisionWatcher() = default;
  virtual void OnDecided(const controller::GangDecision& decision,
                         const controller::ClusterState& view) = 0;
  // A core begins; a core that may write has taken a step, and the step's journal is written.
  virtual void OnBegin(const std::string& controller) = 0;
  virtual void OnStep(const std::string& controller, const controller::Snapshot& snapshot) = 0;
  virtual void OnPlaced(const controller::GangDecision& decision,
                        const controller::Snapshot& snapshot) = 0;
  virtual void OnUndoing(const controller::GangUndoing& undoing) = 0;
  // A deletion of a CapacityBlock was accepted.
  virtual void OnBlockDeleted(const std::string& name) = 0;
  virtual void OnBound(const controller::GangDecision& decision, std::size_t pod) = 0;
};

class ControllerHost {
 public:
  // In one process with the API server, `disk` is the server's disk.
  ControllerHost(World& world, ApiHost& api, Disk& disk, DecisionWatcher& watcher,
                 const std::string& name)
      : world_(world),
        api_(api),
        disk_(disk),
        watcher_(watcher),
        name_(name),
        link_(world, api, name),
        client_(link_, no_sleep_, Rng(0), {.attempts = 1}) {}

  void Start();
  void Die(std::string_view why);
  // Stands still for `duration`.
  void Stall(Duration duration) { stalled_until_ = world_.events.elapsed() + duration; }
  bool running() const { return running_; }
  // Returns whether the controller decides: it leads, or there is no lease.
  bool up() const { return core_ != nullptr; }
  // Returns whether the controller leads by its own clock, even before it looks at the clock.
  bool Leads() const;

  // Sends an order of Capacity Blocks, as the REST and EC2 APIs do. No answer when the controller
  // dies.
  using OnAnswer =
      std::function<void(const absl::StatusOr<std::shared_ptr<const controller::Block>>& answer)>;
  void Order(std::variant<controller::PurchaseOrder, controller::ExtensionOrder> order,
             OnAnswer answer);
  // Its clock was set: the core looks at the clock within a second.
  void Wake() { WakeCore(std::chrono::milliseconds(1)); }

  // Something changed in the API: the watches see it soon.
  void WakeWatches();
  // nullptr while the controller is down.
  std::shared_ptr<const controller::Snapshot> snapshot() const {
    return core_ == nullptr ? nullptr : core_->snapshot();
  }
  // Called at a death: programs in the same process must die as well.
  std::function<void()> on_death;

  Disk& disk() { return disk_; }

 private:
  // The point in a step at which the controller dies.
  enum class Death : std::uint8_t { kNo, kBeforeJournal, kAfterJournal, kAmongWrites };

  class NoSleep final : public kube::Sleeper {
    bool Sleep(std::chrono::nanoseconds) override { return false; }
  };
  using Era = std::uint64_t ControllerHost::*;

  // Runs `action` unless the era is over by then; not before the end of a stall.
  void After(Era era, Duration delay, std::function<void()> action);
  void Run(Era era, std::uint64_t number, const std::function<void()>& action);
  void StepElection();
  bool Begin();
  void End();
  void LoseHistory(std::string_view why);
  void WakeCore(Duration delay);
  void StepCore();
  void Give(const std::vector<controller::OrderAnswer>& answers);
  void StepWatch(std::size_t watch);
  std::vector<controller::Decision> Plan(const controller::ClusterState& view,
                                         const controller::Queue& queue, WallTime now,
                                         controller::Explaining explaining);
  // Returns the view with the hardware of promises free (Plant::kForgetPromise).
  static controller::ClusterState WithoutPromises(const controller::ClusterState& view);
  std::string Counted(std::string_view bytes) const;
  void ShowDecisions(const controller::JournalBatch& batch);
  void Issue(const std::shared_ptr<const controller::ApiWrite>& write);
  void Send(const std::shared_ptr<const controller::ApiWrite>& write);
  void Fake(const controller::ApiWrite& write);
  void BindEarly(const controller::ClaimWrite& allocate);
  void Carry(const controller::ApiWrite& write, Fate fate, bool tell);
  void Touch(const controller::ApiWrite& write, bool to_delete);
  // `block` names it.
  void TouchBlock(const controller::ApiResult& block, bool to_delete);
  void Tell(controller::ApiResult result);
  bool Faked(const controller::ApiWrite& write);
  bool MaySend() const;

  World& world_;
  ApiHost& api_;
  Disk& disk_;
  DecisionWatcher& watcher_;
  const std::string name_;
  Link link_;
  NoSleep no_sleep_;
  kube::Client client_;
  bool running_ = false;
  std::uint64_t process_ = 0;
  std::uint64_t life_ = 0;  // of the core; events of an earlier core are ignored
  Duration stalled_until_{0};
  bool history_lost_ = false;  // the core takes no further step
  std::unique_ptr<kube::LeaderElection> election_;
  std::unique_ptr<controller::RocksJournal> journal_;
  std::unique_ptr<controller::Planner> planner_;
  std::unique_ptr<controller::Core> core_;
  std::unique_ptr<controller::Ingest> ingest_;
  std::vector<bool> watch_waits_;
  std::vector<controller::Command> commands_;
  std::uint64_t last_ticket_ = 0;
  std::map<std::uint64_t, OnAnswer> orders_;
  std::optional<Duration> core_at_;
};

}  // namespace tahoma::simulation
