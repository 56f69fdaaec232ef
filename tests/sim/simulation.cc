#include "tests/sim/simulation.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "lib/base/check.h"
#include "tests/sim/api_host.h"
#include "tests/sim/buyers.h"
#include "tests/sim/checks.h"
#include "tests/sim/controller_host.h"
#include "tests/sim/users.h"
#include "tests/sim/virtual_node.h"

namespace tahoma::simulation {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Longer than every time-out, retry and grace period of the parts, one after the other.
constexpr seconds kSettle{300};

// A world is quiet when no pod changes for this time: longer than the longest grace of a pod.
constexpr seconds kQuiet{25};
constexpr int kLooksMost = 60;

class Simulation {
 public:
  Simulation(std::uint64_t seed, const RunOptions& options) : world_(seed, options.plant) {
    world_.verbose = options.verbose;
    for (int i = 0; i < world_.swarm.controllers; ++i) {
      seats_.push_back(std::make_unique<Seat>(*this, fmt::format("controller-{}", i)));
    }
  }

  void Run() {
    SetUp();
    RunUntil(world_.events.elapsed() + world_.swarm.chaos);
    Repair();
    RunUntil(world_.events.elapsed() + kSettle);
    WaitForQuiet();
    if (world_.failure) return;
    if (Leader() == nullptr) return world_.Fail("no controller decides any more");
    if (!buyers_.AllAnswered()) return world_.Fail("an order with a token has no answer");
    buyers_.Look();
    checks_.AtRest(*Leader()->host.snapshot(), Journal());
    for (int i = 0; i < 3 && !world_.failure && !users_.DeleteAll(); ++i) {
      RunUntil(world_.events.elapsed() + kSettle / 3);
    }
    if (!world_.failure && !users_.DeleteAll()) return world_.Fail("{}", Remains());
    RunUntil(world_.events.elapsed() + kSettle / 3);
    if (world_.failure) return;
    if (Leader() == nullptr) return world_.Fail("no controller decides any more");
    checks_.AtEnd(*Leader()->host.snapshot(), Journal());
  }

  Report ReportOf(std::uint64_t seed) {
    if (api_.up()) {
      for (const char* plural : {"pods", "nodes"}) Digest({"", plural});
      for (const char* plural : {"resourceclaims", "resourceslices"}) {
        Digest({"resource.k8s.io", plural});
      }
    }
    return {.seed = seed,
            .steps = world_.steps,
            .hash = world_.trace,
            .failure = world_.failure,
            .failed_at = world_.events.elapsed(),
            .met = world_.met};
  }

 private:
  // A controller and its folder.
  struct Seat {
    Seat(Simulation& simulation, const std::string& name)
        : own_disk(simulation.world_),
          host(simulation.world_, simulation.api_,
               simulation.world_.swarm.one_process ? simulation.api_disk_ : own_disk,
               simulation.checks_, name) {
      host.on_death = [this, &simulation] { simulation.OnDeath(*this); };
    }
    Disk own_disk;
    ControllerHost host;
    bool restarting = false;
  };

  // Returns the seat whose controller decides; nullptr without one.
  Seat* Leader() {
    for (const auto& seat : seats_) {
      if (seat->host.up()) return seat.get();
    }
    return nullptr;
  }
  Seat& AnySeat() { return *seats_[world_.rng.Below(seats_.size())]; }

  controller::Journal& Journal() {
    journal_ = std::make_unique<controller::RocksJournal>(*Leader()->host.disk().store());
    return *journal_;
  }

  void Digest(const controller::apiserver::ResourceName& resource) {
    for (const auto& object : api_.objects().List(resource, "").objects) {
      world_.Mix(object->bytes);
    }
  }

  std::string Remains() {
    for (const char* plural : {"pods"}) {
      for (const auto& object : api_.objects().List({"", plural}, "").objects) {
        return fmt::format("{} {} cannot be deleted: {}", plural, object->key, object->bytes);
      }
    }
    for (const auto& object :
         api_.objects().List({"resource.k8s.io", "resourceclaims"}, "").objects) {
      return fmt::format("claim {} cannot be deleted: {}", object->key, object->bytes);
    }
    return "some objects cannot be deleted";
  }

  void SetUp() {
    TAHOMA_CHECK_OK(api_.Start());
    const Swarm& swarm = world_.swarm;
    for (int i = 0; i < swarm.ultra_servers; ++i) {
      for (int z = 0; z < 4; ++z) {
        AddNode({.name = fmt::format("us{}-n{}", i, z),
                 .type = "trn2u.48xlarge",
                 .ultra_server = fmt::format("us-{:016x}", i + 1),
                 .z = z,
                 .cores = swarm.cores});
      }
    }
    for (int i = 0; i < swarm.lone_instances; ++i) {
      AddNode({.name = fmt::format("lone{}", i),
               .type = "trn2.48xlarge",
               .ultra_server = "",
               .z = 0,
               .cores = swarm.cores});
    }
    for (int i = 0; i < swarm.small_nodes; ++i) {
      AddNode({.name = fmt::format("small{}", i),
               .type = "trn2.3xlarge",
               .ultra_server = "",
               .z = 0,
               .cores = true});
    }
    for (const auto& seat : seats_) seat->host.Start();
    for (int i = 0; i < swarm.submissions; ++i) {
      world_.events.After(world_.Between(Duration(0), swarm.chaos * 9 / 10), Urgency::kNormal,
                          [this] { users_.Submit(); });
    }
    for (int i = 0; i < swarm.purchases; ++i) {
      world_.events.After(world_.Between(Duration(0), swarm.chaos * 9 / 10), Urgency::kNormal,
                          [this] { buyers_.Buy(); });
      world_.events.After(world_.Between(Duration(0), swarm.chaos * 9 / 10), Urgency::kNormal,
                          [this] { world_.rng.Chance(1, 2) ? buyers_.Extend() : buyers_.Look(); });
    }
    NextMishap();
  }

  void AddNode(NodePlan plan) {
    nodes_.push_back(std::make_unique<VirtualNode>(world_, api_, std::move(plan)));
    nodes_.back()->PowerOn();
  }

  void RunUntil(Duration end) {
    bool over = false;
    world_.events.After(end - world_.events.elapsed(), Urgency::kFirst, [&] { over = true; });
    while (!over && !world_.failure && world_.events.RunNext()) AfterStep();
  }

  void AfterStep() {
    ++world_.steps;
    if (api_.up() && api_.disk().failed()) {
      world_.Meet("API disk failed");
      if (world_.swarm.one_process && seats_[0]->host.running()) {
        seats_[0]->host.Die("the disk failed");
      } else {
        StopApi();
      }
    }
    if (api_.up() && (api_.version() != seen_ || api_.life() != life_)) {
      seen_ = api_.version();
      life_ = api_.life();
      for (const auto& seat : seats_) seat->host.WakeWatches();
      for (const auto& node : nodes_) node->WakeWatch();
      api_.WakeControllers();
    }
    const auto leads = [](const auto& seat) { return seat->host.Leads(); };
    if (std::count_if(seats_.begin(), seats_.end(), leads) > 1) {
      world_.Fail("two controllers lead");
    }
    checks_.AfterStep();
  }

  // Gangs with a maxRuntime end at any time: waits until no pod changes.
  void WaitForQuiet() {
    if (!world_.swarm.ends_known) return;
    const auto pods = [this] {
      std::string all;
      if (!api_.up()) return all;
      for (const auto& object : api_.objects().List({"", "pods"}, "").objects) all += object->bytes;
      return all;
    };
    for (int i = 0; i < kLooksMost && !world_.failure; ++i) {
      const std::string before = pods();
      RunUntil(world_.events.elapsed() + kQuiet);
      if (before == pods()) return;
    }
  }

  void StopApi() {
    world_.Mix("API server stops");
    api_.Stop(world_.rng.Chance(1, 2));
    RestartApi();
  }

  void RollBack() {
    world_.Meet("API rolled back");
    world_.Mix("API rolled back");
    if (world_.verbose) fmt::print("the API server is restored from a backup\n");
    api_.RollBack();
    rolled_back_at_ = world_.events.elapsed();
    RestartApi();
  }

  // A controller has died: with its process, its disk.
  void OnDeath(Seat& seat) {
    if (world_.swarm.one_process) {
      if (api_.up()) StopApi();
    } else {
      seat.own_disk.Close(world_.rng.Chance(1, 2));
      if (world_.Happens(world_.swarm.lost_disk)) {
        world_.Meet("disk lost");
        seat.own_disk.Replace();
      }
    }
    Restart(seat);
  }

  Duration RestartDelay() {
    return world_.chaos ? world_.Between(milliseconds(100), seconds(15)) : seconds(1);
  }

  void RestartApi() {
    if (std::exchange(api_restarting_, true)) return;
    world_.events.After(RestartDelay(), Urgency::kNormal, [this] {
      api_restarting_ = false;
      if (api_.up() || api_.Start().ok()) return;
      api_.Stop(false);
      RestartApi();
    });
  }

  void Restart(Seat& seat) {
    if (std::exchange(seat.restarting, true)) return;
    world_.events.After(RestartDelay(), Urgency::kNormal, [this, &seat] {
      seat.restarting = false;
      if (seat.host.running()) return;
      // The lease of a backup may name this controller, and the leader of now does not know:
      // docs/design/0011-restored-api.md. No two coincidences at once.
      const bool restored_lately =
          rolled_back_at_ > Duration(0) && world_.events.elapsed() < rolled_back_at_ + seconds(15);
      if (restored_lately) return Restart(seat);
      if (!api_.up()) {
        RestartApi();
        return Restart(seat);
      }
      seat.host.Start();
    });
  }

  void NextMishap() {
    world_.events.After(world_.Between(milliseconds(200), seconds(4)), Urgency::kNormal, [this] {
      if (!world_.chaos) return;
      Mishap();
      NextMishap();
    });
  }

  void Mishap() {
    const Swarm& swarm = world_.swarm;
    users_.DeleteSomething();
    if (world_.rng.Chance(1, 4)) users_.ReplacePods();
    if (world_.rng.Chance(1, 4)) users_.Scale();
    if (swarm.purchases > 0 && world_.Happens(swarm.delete_block)) buyers_.DeleteSomething();
    if (swarm.purchases > 0 && world_.Happens(swarm.move_clock)) buyers_.MoveClock();
    if (world_.Happens(swarm.disk_fault)) {
      const bool own = !swarm.one_process && world_.rng.Chance(1, 2);
      Disk& disk = own ? AnySeat().own_disk : api_disk_;
      disk.faults().FailAfter(world_.rng.Below(12),
                              static_cast<testing::FaultFileSystem::Failure>(world_.rng.Below(3)));
    }
    VirtualNode& node = *nodes_[world_.rng.Below(nodes_.size())];
    const int chip =
        static_cast<int>(world_.rng.Below(static_cast<std::uint64_t>(node.chip_count())));
    if (world_.Happens(swarm.break_chip)) {
      node.broken(chip) || world_.rng.Chance(1, 3) ? node.RepairChip(chip) : node.BreakChip(chip);
    }
    if (world_.Happens(swarm.break_link) && node.chip_count() == 16) {
      const bool ultra = !node.plan().ultra_server.empty();
      const sim::Port port{static_cast<torus::Axis>(world_.rng.Below(ultra ? 3 : 2)),
                           static_cast<torus::Direction>(world_.rng.Below(2))};
      node.SetLink(chip, port, node.links_down().contains({chip, PortIndex(port)}));
    }
    if (world_.Happens(swarm.node_away) && node.powered()) {
      world_.Meet("node away");
      node.PowerOff();
      Return(node, seconds(60));
    } else if (world_.Happens(swarm.node_removed) && node.powered()) {
      world_.Meet("node removed");
      node.PowerOff();
      (void)api_.Call("DELETE", "/api/v1/nodes/" + node.plan().name);
      Return(node, seconds(120));
    } else if (world_.Happens(swarm.node_forgotten) && node.powered()) {
      world_.Meet("node forgotten");
      (void)api_.Call("DELETE", "/api/v1/nodes/" + node.plan().name);
    }
    if (world_.Happens(swarm.node_lies)) {
      node.Lie(nodes_[world_.rng.Below(nodes_.size())]->plan());
    }
    if (world_.Happens(swarm.label_pod)) users_.Mislabel();
    MishapOfCluster();
  }

  void MishapOfCluster() {
    const Swarm& swarm = world_.swarm;
    if (world_.Happens(swarm.stall)) {
      world_.Meet("controller stalled");
      AnySeat().host.Stall(world_.Between(milliseconds(100), seconds(40)));
    }
    if (swarm.rollback == 0 || !api_.up() || api_disk_.failed()) return;
    if (world_.rng.Chance(1, 8)) api_disk_.Save();
    if (api_disk_.has_backup() && world_.Happens(swarm.rollback)) RollBack();
  }

  void Return(VirtualNode& node, Duration most) {
    world_.events.After(world_.Between(seconds(1), most), Urgency::kNormal,
                        [&node] { node.PowerOn(); });
  }

  void Repair() {
    world_.chaos = false;
    world_.Mix("the chaos is over");
    api_disk_.faults().Heal();
    if (!api_.up()) RestartApi();
    for (const auto& seat : seats_) {
      seat->own_disk.faults().Heal();
      if (!seat->host.running()) Restart(*seat);
    }
    for (const auto& node : nodes_) node->PowerOn();
    users_.LabelBack();
  }

  World world_;
  Disk api_disk_{world_};
  ApiHost api_{world_, api_disk_};
  Nodes nodes_;
  Checks checks_{world_, api_, nodes_};
  std::vector<std::unique_ptr<Seat>> seats_;
  Users users_{world_, api_};
  Buyers buyers_{world_, api_, checks_.blocks(), [this] {
                   Seat* leader = Leader();
                   return leader == nullptr ? nullptr : &leader->host;
                 }};
  std::unique_ptr<controller::RocksJournal> journal_;
  std::int64_t seen_ = 0;
  int life_ = 0;
  bool api_restarting_ = false;
  Duration rolled_back_at_{0};
};

}  // namespace

Report RunWorld(std::uint64_t seed, const RunOptions& options) {
  Simulation simulation(seed, options);
  simulation.Run();
  return simulation.ReportOf(seed);
}

}  // namespace tahoma::simulation
