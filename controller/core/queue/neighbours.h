// Where pods may go that must, or must not, be where other pods are (podAffinity,
// podAntiAffinity, topologySpreadConstraints; docs/tasks/claims.md#beside-other-pods-or-apart).
//
//   Neighbours neighbours(facts, runs, cluster);
//   neighbours.OnPod(before, *pod);                           // the facts contain it already
//   const Narrowed narrowed = neighbours.Narrow(gang);
//   Plan(narrowed.gang);                                      // its pods have node selectors more
//
// All terms become requirements on labels of the node: not in the places of pods that the pod must
// avoid, nor in places with more than their share, but in the places of pods that the pod must be
// beside. As in Kubernetes, avoiding is mutual, and a pod that looks for its own like goes anywhere
// when there is none yet. Terms about pods of the same gang become rules of the gang, which the
// planner keeps (model/place_rule.h). Preferences become demands of copies of the gang, which are
// tried before: all preferences together, then each pod's heaviest alone.
//
// Pods whose labels no term asks about cost nothing; a gang with terms costs one look at each pod
// that has the label which its selector names, with one of the values where the selector names
// values. A pod that must be spread costs also a look at each node, until a node's place has none.
//
// Pods of other schedulers count as ours do. Their own required anti-affinity keeps pods of ours
// away, too; their other terms are their scheduler's concern.
//
// Thread safety: belongs to one thread.

#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>
#include <absl/functional/function_ref.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "controller/core/commit/gang_runs.h"
#include "controller/core/facts/facts.h"
#include "controller/core/queue/other_places.h"
#include "controller/model/cluster.h"
#include "controller/model/gang.h"

namespace tahoma::controller {

struct Narrowed {
  std::shared_ptr<const GangSpec> gang;
  // What its pods' node selectors were narrowed to, for people; empty when they were not.
  std::string why;
};

class Neighbours {
 public:
  // All outlive it.
  Neighbours(const Facts& facts, const GangRuns& runs, const ClusterState& cluster)
      : facts_(facts), runs_(runs), cluster_(cluster) {}

  // Take news. The facts contain it already. Return whether a gang that is blocked may fit now.
  // `before` is the same pod as it was; nullptr for a new one.
  bool OnPod(const PodFact* before, const PodFact& pod);
  bool OnPodGone(const PodFact& pod);
  // Take a pod of another scheduler that has come to the node, or has left the node.
  bool OnOtherPod(const OtherPlaces::Traits& traits, NodeId node) {
    return others_.Add(traits, node);
  }
  bool OnOtherPodGone(const OtherPlaces::Traits& traits, NodeId node) {
    return others_.Remove(traits, node);
  }

  // Returns whether where the gang goes depends on where others are: it must be planned alone, when
  // those before it have their places.
  bool Matters(const GangSpec& gang) const;
  Narrowed Narrow(const std::shared_ptr<const GangSpec>& gang) const;

 private:
  using Requirements = std::vector<NodeRequirement>;
  using Pods = absl::flat_hash_map<PodKey, std::shared_ptr<const PodFact>>;
  using Places = absl::flat_hash_set<std::string_view>;
  using Counts = absl::flat_hash_map<std::string_view, std::int64_t>;  // of pods, by place

  // Pods of a gang with equal terms, which all select themselves or all do not.
  struct Group {
    std::shared_ptr<const PodFact> first;
    bool selects_itself = false;            // by all terms of podAffinity
    std::vector<std::size_t> members = {};  // by rank
    bool joins = false;                     // a rule has the podAffinity
    std::vector<bool> spreads = {};         // by constraint: a rule has it
  };
  using Members = std::vector<std::shared_ptr<const PodFact>>;

  void Follow(const std::string& label);
  void Remember(const PodFact& pod);
  void ForEachOf(const kube::PodAffinityTerm& term,
                 absl::FunctionRef<void(const PodFact&)> visit) const;
  // A label of a node: it stays while the cluster does not change. nullptr: it has no place.
  const std::string* PlaceOf(const PodFact& pod, const std::string& topology_key) const;
  const std::string* NodeOf(const PodFact& pod) const;
  const Node* NodeUnder(const PodFact& pod) const;
  // Visits the nodes with the number of pods on each, but for names without a Node.
  void ForEachNode(const OtherPlaces::Nodes& nodes,
                   absl::FunctionRef<void(const Node& node, std::int64_t pods)> visit) const;
  Places PlacesOf(const PodFact& pod, const std::vector<kube::PodAffinityTerm>& all,
                  const kube::PodAffinityTerm& term) const;
  void Avoid(const PodFact& pod, Requirements& added) const;
  void AvoidThoseWhoAvoid(const PodFact& pod, Requirements& added) const;
  void Join(const PodFact& pod, Requirements& added) const;
  std::int64_t FewestOf(const PodFact& pod, const NodeDemand& demand,
                        const kube::SpreadConstraint& constraint, const Counts& counts) const;
  void SpreadOut(const PodFact& pod, const NodeDemand& demand, const Group* group,
                 Requirements& added) const;

  static std::vector<Group> GroupsOf(const Members& pods);
  void AddApart(const Members& pods, const Group& group, std::vector<PlaceRule>& rules) const;
  void AddBeside(const Members& pods, Group& group, std::vector<PlaceRule>& rules) const;
  void AddSpread(const Members& pods, const NodeDemand& demand, Group& group,
                 std::vector<PlaceRule>& rules) const;
  std::vector<PlaceRule> RulesOf(const GangSpec& gang, const Members& pods,
                                 std::vector<Group>& groups) const;
  static bool SpreadSelects(const PodFact& pod, const kube::SpreadConstraint& constraint,
                            const std::string& ns, const kube::Labels& labels);
  // Returns the selected pods of other gangs by their places.
  Counts CountOf(const PodFact& pod, const NodeDemand& demand,
                 const kube::SpreadConstraint& constraint) const;
  // Calls `visit` with the place of each node that counts, until `visit` returns false.
  void ForEachPlace(const PodFact& pod, const NodeDemand& demand,
                    const kube::SpreadConstraint& constraint,
                    absl::FunctionRef<bool(const std::string& place)> visit) const;
  Requirements Of(const PodFact& pod, const NodeDemand& demand, const Group* group) const;
  Narrowed NarrowFor(const std::shared_ptr<const GangSpec>& gang, const Members& pods) const;
  // Returns the gang with the pods' preferences as demands: all, or each pod's heaviest.
  std::shared_ptr<const GangSpec> Preferring(const GangSpec& gang, Members pods, bool all) const;

  const Facts& facts_;
  const GangRuns& runs_;
  const ClusterState& cluster_;
  // The pods with a label that some term has asked about, by that label and its value.
  absl::flat_hash_map<std::string, absl::flat_hash_map<std::string, Pods>> with_label_;
  // The pods that avoid others, by the label that all whom they avoid have; "" for none.
  absl::flat_hash_map<std::string, Pods> avoiding_;
  OtherPlaces others_;
};

}  // namespace tahoma::controller
