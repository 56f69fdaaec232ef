// The fleet, or a part of it, from objects of the Kubernetes API.
//
// Objects of another kind are left out.
//
// Thread safety: one thread.

#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "controller/ctl/draw.h"
#include "controller/ingest/fleet_join.h"
#include "controller/model/cluster.h"
#include "lib/base/json_fwd.h"

namespace tahoma::controller {

struct Fleet {
  ClusterState cluster;
  HolderNotes notes;
};

class FleetBuilder {
 public:
  void AddNode(const Json& object);
  void AddSlice(const Json& object);
  void AddPod(const Json& object);
  // Add the pods first: they name the claim's holder.
  void AddClaim(const Json& object);

  const ClusterState& cluster() const { return fleet_.cluster; }
  Fleet Finish() &&;

 private:
  void Put(const std::optional<Command>& command);

  Fleet fleet_;
  FleetJoin join_;
  std::map<std::string, std::string> holder_of_pod_;  // by uid
  std::map<std::string, std::vector<std::string>> pods_of_holder_;
};

}  // namespace tahoma::controller
