// UltraServers, Capacity Blocks and gangs under a real core and planner, in virtual time.
//
//   LendingStory story(2);
//   story.Buy("train", {.lend_idle = true});
//   story.AddGang("guest", 1, [](GangFact& gang) { gang.preemptible = true; });
//   story.world().MoveTo(story.block("train").start());
//   story.HostsOf("guest");                        // {"us-0"}
//
// Thread safety: one thread.

#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>

#include "controller/core/journal/block_record.h"
#include "controller/plan/planner.h"
#include "controller/reserve/search.h"
#include "lib/base/hex.h"
#include "tests/support/fleet.h"
#include "tests/unit/controller/core/core_world.h"

namespace tahoma::controller {

// Returns the node as it is in a cell that all nodes share.
inline NodeFacts InOneCell(NodeFacts node) {
  for (Device& device : node.devices) {
    for (auto& attribute : device.attributes) {
      if (attribute.name.id == "networkNodeLayer1") attribute.value = std::string("nn-1");
    }
  }
  return node;
}

// Makes a gang name a block.
inline std::function<void(GangFact&)> InBlock(const std::string& name) {
  return [name](GangFact& gang) { gang.block = name; };
}

class LendingStory {
 public:
  explicit LendingStory(int hosts, CoreOptions options = {})
      : planner_(std::make_shared<Planner>()),
        world_(options, [planner = planner_](const ClusterState& view, const Queue& queue,
                                             WallTime now, Explaining explaining) {
          return planner->Plan(view, queue, now, explaining);
        }) {
    api().AddClass();
    for (int host = 0; host < hosts; ++host) {
      for (int z = 0; z < 4; ++z) {
        const std::string id = "us-" + std::to_string(host);
        api().AddNode(InOneCell(NodeFactsOf({.name = id + "-n" + std::to_string(z),
                                             .type = "trn2u.48xlarge",
                                             .ultra_server = id,
                                             .z = z})));
      }
    }
    world_.Settle();
  }

  World& world() { return world_; }
  FakeApi& api() { return world_.api; }
  WallTime now() const { return world_.Time().wall; }

  // Buys hosts from the next boundary on, or a later one, and lets it settle.
  void Buy(const std::string& name, const BlockTerms& terms, int hosts = 1, int days = 1,
           int from_day = 1, const std::string& owner = "default") {
    const auto seen = world_.core().snapshot();
    const auto query = CheckQuery({.ultraserver_type = "u-trn2x64",
                                   .ultraserver_count = hosts,
                                   .duration_hours = days * 24,
                                   .start_date_range = StartOf(SlotOf(now()) + from_day),
                                   .order = OfferingOrder::kStart},
                                  now());
    TAHOMA_CHECK_OK(query.status());
    const auto found = SearchOfferings(seen->profile, seen->prices, *query, now());
    TAHOMA_CHECK(!found.offerings.empty());
    api().AddBlock(name, OfferingId(found.offerings.front()), terms, owner);
    world_.Settle();
  }
  Block block(const std::string& name, const std::string& owner = "default") {
    const auto* view = world_.core().snapshot()->blocks.Find(BlockKey{owner, name});
    TAHOMA_CHECK(view != nullptr && (*view)->block != nullptr);
    return *(*view)->block;
  }

  // A gang of one pod for each instance, on whole UltraServers; its pods are made as well.
  void AddGang(const std::string& name, int ultra_servers,
               const std::function<void(GangFact&)>& change) {
    api().AddGang(name, ultra_servers * 4);
    api().ChangeGang(name, [&](GangFact& gang) {
      gang.chips = 64 * ultra_servers;
      change(gang);
    });
    AddPods(name, ultra_servers);
  }
  void AddPods(const std::string& name, int ultra_servers) {
    for (int i = 0; i < ultra_servers * 4; ++i) {
      const std::string pod = name + "-" + std::to_string(i);
      if (api().claims().contains(pod + "-chips")) {
        api().AddPod(pod, name, {pod + "-chips"});
      } else {
        api().AddPodWithClaim(pod, name, 16);
      }
    }
    world_.Settle();
  }

  // The UltraServers on which the gang's pods are bound.
  std::set<std::string> HostsOf(const std::string& gang) {
    std::set<std::string> hosts;
    for (const auto& [name, pod] : api().pods()) {
      if (pod.gang == gang && !pod.node.empty()) hosts.insert(pod.node.substr(0, 4));
    }
    return hosts;
  }
  std::string ReasonOf(const std::string& gang) {
    return std::string(ToString(api().statuses().at(gang).reason));
  }
  // The last event of that reason; empty when there is none.
  std::string EventOf(std::string_view reason) {
    std::string message;
    for (const EventNote& event : api().events()) {
      if (event.reason == reason) message = event.name + ": " + event.message;
    }
    return message;
  }
  // Another controller that finds only what is published.
  void LoseTheDisk() {
    world_.journal = MemoryJournal();
    world_.Start();
    world_.Settle();
  }
  void Restart() {
    world_.Start();
    world_.Settle();
  }

 private:
  std::shared_ptr<Planner> planner_;
  World world_;
};

}  // namespace tahoma::controller
