// Small random fleets with a gang each, and whether the gang has a place: every way is tried.
//
// The oracle shares no code with the planner. Pods are divided among nodes in every way; whether
// some pods fit on one node together is Hall's condition, for each choice of alternatives and of
// values for matchAttribute. A box is every cuboid of the torus by its coordinates; the pods of a
// box fill its layers in the order of ranks, from any layer on where the box goes around the ring.
// Rules about places are looked at when all pods have their nodes.

#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "controller/model/cluster.h"
#include "controller/model/gang.h"
#include "controller/plan/decision.h"
#include "lib/base/rng.h"

namespace tahoma::controller {

struct OracleNode {
  std::string name;
  std::size_t domain = 0;
  int z = 0;
  std::uint16_t busy = 0;
  std::uint16_t broken = 0;
  std::string rack = {};  // the value of the label "rack"; empty: none
};

struct OracleDomain {
  bool ultra = false;
  std::array<int, 4> nodes = {-1, -1, -1, -1};  // by z
};

struct OracleAlternative {
  int count = 1;
  int first = 0, last = 15;  // chips
};

struct OracleRequest {
  std::vector<OracleAlternative> alternatives;
};

struct OracleMember {
  std::vector<OracleRequest> requests;  // of one claim; empty: the pod has no claim of its own
  char match = 0;                       // 'x' or 'y': all requests get chips with one such value
  unsigned nodes = ~0U;                 // bit n: node n admits the pod
  int shares = -1;                      // an earlier member whose claim the pod lists too
};

struct GangCase {
  std::vector<OracleNode> nodes;
  std::vector<OracleDomain> domains;
  std::vector<OracleMember> members;
  std::array<int, 3> shape = {0, 0, 0};  // zeros: no shape
  int slices = 1;
  std::vector<PlaceRule> rules = {};  // of a gang without a shape

  bool has_shape() const { return shape[0] != 0; }
  std::string ToString() const;
};

// kIdle: nothing is held. kRepaired: every chip works, too.
enum class OracleFleet : std::uint8_t { kNow, kIdle, kRepaired };

GangCase RandomGangCase(Rng& rng);
bool HasPlace(const GangCase& one, OracleFleet fleet);

ClusterState StateOf(const GangCase& one);
std::shared_ptr<const GangSpec> GangOf(const GangCase& one);
// Returns the first rule that the placement breaks; empty when it breaks none.
std::string FaultOf(const GangCase& one, const Placement& placement);

}  // namespace tahoma::controller
