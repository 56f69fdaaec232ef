// The content of NeuronUltraServers of AWS: the hardware of an UltraServer, and the nodes that
// NeuronUltraServerWorkloads have there.
//
// Fields and words are AWS's (docs/reference/aws-dra-driver.md#ultraserver-workloads). A look costs
// what has changed since the last look: domains of the fleet, and gangs.
//
// Scope: a state machine without I/O. status.observedGeneration is left to the writer.
//
// Thread safety: belongs to one thread.

#pragma once

#include <absl/container/flat_hash_map.h>

#include <array>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "controller/core/snapshot.h"
#include "controller/model/cluster.h"
#include "controller/model/persistent.h"
#include "lib/base/clock.h"
#include "lib/base/json_fwd.h"
#include "lib/kube/resource.h"

namespace tahoma::controller {

inline const kube::Resource kNeuronUltraServers{
    .group = "neuron.aws.com", .version = "v1beta1", .plural = "neuronultraservers"};

class NeuronUltraServers {
 public:
  // The name of an object, and its content; null: the object should not exist.
  using Change = std::pair<std::string, Json>;

  // Takes the times of an object's conditions, which stay while the conditions do. Objects that are
  // seen after the first look are ours.
  void OnSeen(const std::string& name, const Json& object);

  // Returns what may have changed since the last look; `now.cluster` must be set. Conditions that
  // change do so at `time`.
  std::vector<Change> Look(const Snapshot& now, WallTime time);

 private:
  static constexpr std::array<std::string_view, 3> kConditions = {"Ready", "Degraded", "Allocated"};
  struct Standing {
    bool holds = false;
    std::string since;
  };
  using Standings = std::array<Standing, kConditions.size()>;
  using ViewPointer = std::shared_ptr<const GangView>;

  void NoteGang(const ViewPointer* before, const ViewPointer* after);
  Json ContentOf(const Snapshot& now, const DomainState& domain, WallTime time);
  Json AllocationsOf(const Snapshot& now, const std::string& server) const;
  Json ConditionsOf(const std::string& server, std::string_view health, bool allocated,
                    WallTime time);

  // The state at the last look.
  ClusterState cluster_;
  PersistentMap<GangRef, ViewPointer> gangs_;
  std::vector<std::string> servers_;  // the ids of UltraServers with an object, by domain
  absl::flat_hash_map<std::string, std::set<GangRef>> gangs_of_;  // of workloads, by UltraServer
  absl::flat_hash_map<std::string, Standings> standings_;         // by UltraServer

  std::set<std::string> touched_;                     // UltraServers whose gangs have changed
  absl::flat_hash_map<std::string, Standings> seen_;  // by the names of objects
  bool looked_ = false;
};

}  // namespace tahoma::controller
