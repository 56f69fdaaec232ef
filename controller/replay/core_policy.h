// The controller itself as a policy of a replay: the core, beside an API with immediate answers.
//
// A job is a Gang with its pods and claims, and its limit is the gang's maxRuntime. Pods run as
// soon as they are bound and end as soon as the core deletes them. A job after its end by the core,
// or after the loss of a node, comes back as new pods of the same Gang: a Job controller's work.
// The journal goes nowhere: a replay has no restart.
//
// Scope: virtual time, one thread; the same jobs give the same decisions.
//
// Thread safety: one thread.

#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "controller/model/inventory.h"
#include "controller/replay/replay_policy.h"
#include "controller/share/queue_spec.h"

namespace tahoma::controller {

class CorePolicy final : public ReplayPolicy {
 public:
  // `jobs` outlives the policy.
  CorePolicy(const std::vector<QueueSpec>& queues, const ReplayJobs& jobs,
             std::vector<NodeFacts> nodes);
  ~CorePolicy() override;

  void Submit(JobIndex job, WallTime now) override;
  void Finish(JobIndex job) override;
  void Lose(JobIndex job) override;
  void SetNode(const std::string& node, bool works) override;
  PolicyNews Decide(WallTime now) override;
  std::optional<WallTime> wake() const override;

 private:
  class World;
  std::unique_ptr<World> world_;
};

}  // namespace tahoma::controller
