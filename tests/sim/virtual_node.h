// A node without processes: the emulated instance, the plugin's state machine and the pod runner's,
// each the real code, run in virtual time.
//
// Containers are numbers: a pod's annotations say how long it runs and how it ends.
//
// Thread safety: one thread.

#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "dra-plugin/claims/claims.h"
#include "dra-plugin/slices/claim_source.h"
#include "dra-plugin/slices/slice_publisher.h"
#include "lib/kube/reflector.h"
#include "sim-node/node/instance.h"
#include "sim-node/podrunner/node_pods.h"
#include "tests/sim/api_host.h"
#include "tests/sim/world.h"

namespace tahoma::simulation {

inline constexpr char kRunsFor[] = "sim/seconds";      // annotation; absent: until stopped
inline constexpr char kExitsWith[] = "sim/exit-code";  // annotation; absent: 0

// A folder that survives the node's power.
class MemoryFiles final : public dra::Files {
 public:
  absl::StatusOr<std::optional<std::string>> Read(std::string_view name) override;
  absl::Status Write(std::string_view name, std::string_view bytes) override;
  absl::Status Remove(std::string_view name) override;
  absl::StatusOr<std::vector<std::string>> List() override;
  std::string PathOf(std::string_view name) const override { return std::string(name); }

 private:
  std::map<std::string, std::string, std::less<>> files_;
};

// The instance, as the plugin sees it over the wire.
class InstancePort final : public dra::NodePort {
 public:
  explicit InstancePort(sim::Instance& instance) : instance_(instance) {}
  absl::StatusOr<wire::Inventory> GetInventory() override;
  absl::StatusOr<std::string> Apply(const wire::ClaimGrant& grant,
                                    const std::string& token) override;
  absl::Status Release(const std::string& claim_uid) override;
  absl::StatusOr<std::vector<wire::ClaimGrant>> List() override;

 private:
  sim::Instance& instance_;
};

struct NodePlan {
  std::string name;
  std::string type;
  std::string ultra_server;  // empty without one
  int z = 0;
  bool cores = false;  // publish partitions
};

class VirtualNode {
 public:
  VirtualNode(World& world, ApiHost& api, NodePlan plan);

  void PowerOn();
  // The whole node stops at once; its disk stays.
  void PowerOff();
  bool powered() const { return instance_ != nullptr; }
  void WakeWatch();

  // Publishes a lie, perhaps about the other node: chips of other kinds, another place, fewer
  // devices, or additional slices in its own or the other's pool. The next publication is true
  // again.
  void Lie(const NodePlan& other);
  bool lied() const { return lied_; }

  void BreakChip(int chip);
  void RepairChip(int chip);
  void SetLink(int chip, sim::Port port, bool up);

  const NodePlan& plan() const { return plan_; }
  int chip_count() const;
  bool broken(int chip) const { return broken_.contains(chip); }
  bool has_broken_chip() const { return !broken_.empty(); }
  bool has_broken_link() const { return !links_down_.empty(); }
  // Undirected ends of links that are down: chip and port.
  const std::set<std::pair<int, std::size_t>>& links_down() const { return links_down_; }
  // Claims that the plugin holds, by uid.
  std::set<std::string> PreparedClaims();
  std::set<std::string> HeldByInstance() const;

 private:
  struct Write {
    sim::PodRef pod;
    std::string status;  // empty: delete the pod
  };

  void After(Duration delay, Urgency urgency, std::function<void()> action);
  void Register();
  void Reconcile();
  void Beat();
  void PublishNics();
  void Resync();
  void Publish();
  void Forge(dra::DevicePool pool, const std::string& of, std::uint64_t number);
  void StepWatch();
  void Carry(const sim::NodeActions& actions);
  void Read(const sim::ReadClaims& read);
  void Prepare(const sim::ClaimFacts& claim);
  void OnPrepared(const sim::ClaimFacts& claim);
  void Unprepare(const sim::ClaimFacts& claim);
  void Run(const sim::RunContainer& run);
  void Stop(const sim::StopContainer& stop);
  void Exit(const std::string& pod_uid, const std::string& container, int attempt, int code);
  void WriteNext();
  int SendWrite(const Write& write);
  void WakeTick();
  WallTime now() const { return world_.clock.WallNow(); }

  World& world_;
  ApiHost& api_;
  const NodePlan plan_;
  Link link_;
  dra::ApiClaimSource claim_source_;

  // These survive the loss of power:
  MemoryFiles state_files_;
  MemoryFiles cdi_files_;
  std::string checkpoint_;
  std::map<std::string, std::set<int>> prepared_cores_;  // by claim uid
  std::set<int> broken_;
  bool lied_ = false;
  std::set<std::pair<int, std::size_t>> links_down_;

  // These do not:
  std::uint64_t life_ = 0;
  std::unique_ptr<sim::Instance> instance_;
  std::unique_ptr<InstancePort> port_;
  std::unique_ptr<dra::Claims> claims_;
  std::unique_ptr<dra::SlicePublisher> slices_;
  std::unique_ptr<sim::NodePods> pods_;
  kube::InterruptibleSleeper no_sleep_;  // never used: the watch is stepped
  std::unique_ptr<kube::Reflector> watch_;
  bool watch_waits_ = false;
  bool publish_waits_ = false;
  bool synced_ = false;
  int api_life_ = 0;  // the API server's life when its watch began
  bool beating_ = false;
  std::optional<WallTime> tick_at_;
  std::deque<Write> writes_;
  bool writing_ = false;
};

}  // namespace tahoma::simulation
