// People who buy Capacity Blocks, by objects and by orders with and without tokens; extend, change
// and delete them; and whoever sets the clock.
//
// Thread safety: one thread.

#pragma once

#include <functional>
#include <string>
#include <vector>

#include "controller/core/blocks/capacity_blocks.h"
#include "tests/sim/block_checks.h"
#include "tests/sim/controller_host.h"

namespace tahoma::simulation {

class Buyers {
 public:
  using FindLeader = std::function<ControllerHost*()>;

  Buyers(World& world, ApiHost& api, BlockChecks& checks, FindLeader leader)
      : world_(world), api_(api), checks_(checks), leader_(std::move(leader)) {}

  void Buy();
  void Extend();
  void DeleteSomething();
  void MoveClock();
  void Look();
  // Returns whether every order with a token has had its answer.
  bool AllAnswered() const { return unanswered_ == 0; }

 private:
  using Order = std::variant<controller::PurchaseOrder, controller::ExtensionOrder>;

  std::string FindOffering(const controller::Snapshot& snapshot);
  void Apply(const std::string& name, const std::string& offering);
  void PostOne(const Json& object);
  void Send(const Order& order, bool again);
  std::shared_ptr<const controller::Block> Pick(const controller::Snapshot& snapshot);

  World& world_;
  ApiHost& api_;
  BlockChecks& checks_;
  const FindLeader leader_;
  std::string last_offering_;
  int bought_ = 0;
  int extended_ = 0;
  int unanswered_ = 0;
};

}  // namespace tahoma::simulation
