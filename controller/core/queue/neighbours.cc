#include "controller/core/queue/neighbours.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "controller/core/facts/gang_membership.h"

namespace tahoma::controller {
namespace {

constexpr std::size_t kPlacesShown = 4;

bool SameGang(const PodFact& a, const PodFact& b) {
  if (a.key.ns != b.key.ns || a.gang != b.gang) return false;
  return !a.gang.empty() || a.key == b.key;
}

std::vector<std::string> Sorted(const absl::flat_hash_set<std::string_view>& places) {
  std::vector<std::string> sorted(places.begin(), places.end());
  std::ranges::sort(sorted);
  return sorted;
}

void AddAvoided(const std::string& key, const absl::flat_hash_set<std::string_view>& places,
                std::vector<NodeRequirement>& added) {
  if (places.empty()) return;
  added.push_back(
      {.key = key, .op = NodeOperator::kNotIn, .values = Sorted(places), .field = false});
}

// Returns the node's place; nullptr where the policies of the constraint leave the node out.
const std::string* CountedPlace(const Node& node, const kube::SpreadConstraint& constraint,
                                const PodFact& pod, const NodeDemand& demand) {
  const bool in_all = std::ranges::all_of(pod.affinity->spread, [&](const auto& one) {
    return kube::FindLabel(node.labels, one.of.topology_key) != nullptr;
  });
  if (!in_all) return nullptr;
  if (constraint.honors_affinity && !(demand.SelectorAdmits(node) && demand.AffinityAdmits(node))) {
    return nullptr;
  }
  const bool kept_away =
      constraint.honors_taints && std::ranges::any_of(node.taints, [&](const Taint& taint) {
        return demand.IsKeptAwayBy(taint);
      });
  return kept_away ? nullptr : kube::FindLabel(node.labels, constraint.of.topology_key);
}

// Returns whether the pod has preferences beside the heaviest.
bool HasLighter(const std::shared_ptr<const PodFact>& pod) {
  if (pod == nullptr || pod->preferences == nullptr) return false;
  const kube::PodPreferences& all = *pod->preferences;
  const auto is_lighter = [heaviest = all.Heaviest()](const auto& one) {
    return one.weight < heaviest;
  };
  return std::ranges::any_of(all.nodes, is_lighter) || std::ranges::any_of(all.pods, is_lighter) ||
         (!all.spread.empty() && all.Heaviest() > 0);
}

std::string Describe(const NodeRequirement& requirement) {
  if (requirement.op == NodeOperator::kExists) return requirement.key + " exists";
  const std::size_t shown = std::min(requirement.values.size(), kPlacesShown);
  const std::vector<std::string> first(
      requirement.values.begin(), requirement.values.begin() + static_cast<std::ptrdiff_t>(shown));
  const std::size_t more = requirement.values.size() - shown;
  return fmt::format("{} {} ({}{})", requirement.key,
                     requirement.op == NodeOperator::kIn ? "in" : "not in", fmt::join(first, ", "),
                     more > 0 ? fmt::format(" and {} more", more) : "");
}

}  // namespace

void Neighbours::Follow(const std::string& label) {
  others_.Follow(label);
  const auto [found, added] = with_label_.try_emplace(label);
  if (!added || label.empty()) return;
  facts_.pods.ForEach([&](const PodFact& pod) {
    if (kube::FindLabel(pod.labels, label) != nullptr) Remember(pod);
  });
}

// Under each of its labels that is followed.
void Neighbours::Remember(const PodFact& pod) {
  std::shared_ptr<const PodFact> known;
  for (const auto& [label, value] : pod.labels) {
    const auto found = with_label_.find(label);
    if (found == with_label_.end()) continue;
    if (known == nullptr) known = facts_.pods.Find(pod.key);
    found->second[value][pod.key] = known;
  }
}

bool Neighbours::OnPod(const PodFact* before, const PodFact& pod) {
  if (before != nullptr) OnPodGone(*before);
  Remember(pod);
  const bool concerns =
      pod.affinity != nullptr || std::ranges::any_of(pod.labels, [&](const auto& one) {
        return with_label_.contains(one.first);
      });
  if (pod.affinity != nullptr) {
    for (const auto& term : pod.affinity->beside) Follow(term.label);
    for (const auto& one : pod.affinity->spread) Follow(one.of.label);
    for (const auto& term : pod.affinity->apart) {
      Follow(term.label);
      avoiding_[term.label][pod.key] = facts_.pods.Find(pod.key);
    }
  }
  if (pod.preferences != nullptr) {
    for (const auto& one : pod.preferences->pods) Follow(one.term.label);
    for (const auto& one : pod.preferences->spread) Follow(one.of.label);
  }
  const bool moved = before == nullptr ? !pod.node.empty()
                                       : before->node != pod.node || before->alive() != pod.alive();
  return concerns && moved;
}

bool Neighbours::OnPodGone(const PodFact& pod) {
  bool concerns = pod.affinity != nullptr;
  for (const auto& [label, value] : pod.labels) {
    const auto found = with_label_.find(label);
    if (found == with_label_.end()) continue;
    const auto pods = found->second.find(value);
    if (pods == found->second.end()) continue;
    concerns = pods->second.erase(pod.key) > 0 || concerns;
    if (pods->second.empty()) found->second.erase(pods);
  }
  if (pod.affinity != nullptr) {
    for (const auto& term : pod.affinity->apart) avoiding_[term.label].erase(pod.key);
  }
  return concerns;
}

bool Neighbours::Matters(const GangSpec& gang) const {
  return std::any_of(gang.members.begin(), gang.members.end(), [&](const MemberSpec& member) {
    const auto pod = facts_.pods.Find(member.pod);
    if (pod == nullptr) return false;
    const auto& preferences = pod->preferences;
    return pod->affinity != nullptr ||
           (preferences != nullptr && (!preferences->pods.empty() || !preferences->spread.empty()));
  });
}

// The node that the pod has, or is about to get.
const std::string* Neighbours::NodeOf(const PodFact& pod) const {
  if (pod.finished) return nullptr;
  if (!pod.node.empty()) return &pod.node;
  const GangRun* run = runs_.Find(GangOf(pod));
  if (run == nullptr) return nullptr;
  for (const DecidedPod& decided : run->decision().pods) {
    if (decided.uid == pod.uid) return &decided.node;
  }
  return nullptr;
}

const Node* Neighbours::NodeUnder(const PodFact& pod) const {
  const std::string* name = NodeOf(pod);
  const auto id = name == nullptr ? std::nullopt : cluster_.FindNode(*name);
  return id ? cluster_.node(*id).node.get() : nullptr;
}

const std::string* Neighbours::PlaceOf(const PodFact& pod, const std::string& topology_key) const {
  const Node* node = NodeUnder(pod);
  return node == nullptr ? nullptr : kube::FindLabel(node->labels, topology_key);
}

void Neighbours::ForEachNode(
    const OtherPlaces::Nodes& nodes,
    absl::FunctionRef<void(const Node& node, std::int64_t pods)> visit) const {
  for (const auto& [id, pods] : nodes) {
    const Node* node = cluster_.node(id).node.get();
    if (node != nullptr) visit(*node, pods);
  }
}

// At least the pods that the term selects.
void Neighbours::ForEachOf(const kube::PodAffinityTerm& term,
                           absl::FunctionRef<void(const PodFact&)> visit) const {
  if (term.label.empty()) return facts_.pods.ForEach(visit);
  const auto found = with_label_.find(term.label);
  if (found == with_label_.end()) return;
  const auto visit_all = [&](const Pods& pods) {
    for (const auto& [key, pod] : pods) visit(*pod);
  };
  if (term.label_values.empty()) {
    for (const auto& [value, pods] : found->second) visit_all(pods);
    return;
  }
  for (const std::string& value : term.label_values) {
    const auto pods = found->second.find(value);
    if (pods != found->second.end()) visit_all(pods->second);
  }
}

// The places, by the term's key, of the other pods that all of the terms select.
Neighbours::Places Neighbours::PlacesOf(const PodFact& pod,
                                        const std::vector<kube::PodAffinityTerm>& all,
                                        const kube::PodAffinityTerm& term) const {
  Places places;
  ForEachOf(term, [&](const PodFact& other) {
    const bool selected = std::all_of(all.begin(), all.end(), [&](const auto& one) {
      return one.Selects(pod.key.ns, other.key.ns, other.labels);
    });
    if (!selected || SameGang(pod, other)) return;
    if (const std::string* place = PlaceOf(other, term.topology_key)) places.insert(*place);
  });
  others_.ForEachOf(term, [&](const OtherPodTraits& other, const OtherPlaces::Nodes& nodes) {
    const bool selected = std::ranges::all_of(
        all, [&](const auto& one) { return one.Selects(pod.key.ns, other.ns, other.labels); });
    if (!selected) return;
    ForEachNode(nodes, [&](const Node& node, std::int64_t) {
      const std::string* place = kube::FindLabel(node.labels, term.topology_key);
      if (place != nullptr) places.insert(*place);
    });
  });
  return places;
}

void Neighbours::Avoid(const PodFact& pod, Requirements& added) const {
  for (const auto& term : pod.affinity->apart) {
    AddAvoided(term.topology_key, PlacesOf(pod, {term}, term), added);
  }
}

void Neighbours::Join(const PodFact& pod, Requirements& added) const {
  const auto& terms = pod.affinity->beside;
  std::vector<Places> places;
  for (const auto& term : terms) places.push_back(PlacesOf(pod, terms, term));
  // The first of pods that look for their own like would otherwise wait for ever.
  const bool first = std::ranges::all_of(places, [](const auto& some) { return some.empty(); }) &&
                     std::ranges::all_of(terms, [&](const auto& term) {
                       return term.Selects(pod.key.ns, pod.key.ns, pod.labels);
                     });
  for (std::size_t i = 0; i < terms.size(); ++i) {
    NodeRequirement& one = added.emplace_back();
    one.key = terms[i].topology_key;
    one.op = first ? NodeOperator::kExists : NodeOperator::kIn;
    one.values = Sorted(places[i]);
  }
}

void Neighbours::AvoidThoseWhoAvoid(const PodFact& pod, Requirements& added) const {
  std::map<std::string, Places> places;  // by topology key
  const auto look = [&](const std::string& label) {
    const auto found = avoiding_.find(label);
    if (found == avoiding_.end()) return;
    for (const auto& [key, other] : found->second) {
      if (SameGang(pod, *other)) continue;
      for (const auto& term : other->affinity->apart) {
        if (!term.Selects(key.ns, pod.key.ns, pod.labels)) continue;
        if (const std::string* place = PlaceOf(*other, term.topology_key)) {
          places[term.topology_key].insert(*place);
        }
      }
    }
  };
  look("");
  for (const auto& [label, value] : pod.labels) look(label);
  const auto look_at_others = [&](const OtherPodTraits& other, const OtherPlaces::Nodes& nodes) {
    for (const auto& term : other.apart) {
      if (!term.Selects(other.ns, pod.key.ns, pod.labels)) continue;
      ForEachNode(nodes, [&](const Node& node, std::int64_t) {
        const std::string* place = kube::FindLabel(node.labels, term.topology_key);
        if (place != nullptr) places[term.topology_key].insert(*place);
      });
    }
  };
  others_.ForEachAvoiding(pod.labels, look_at_others);
  for (const auto& [key, avoided] : places) AddAvoided(key, avoided, added);
}

bool Neighbours::SpreadSelects(const PodFact& pod, const kube::SpreadConstraint& constraint,
                               const std::string& ns, const kube::Labels& labels) {
  if (!constraint.of.Selects(pod.key.ns, ns, labels)) return false;
  return std::ranges::all_of(constraint.same_labels, [&](const std::string& label) {
    const std::string* own = kube::FindLabel(pod.labels, label);
    const std::string* its = kube::FindLabel(labels, label);
    return own == nullptr || (its != nullptr && *its == *own);
  });
}

Neighbours::Counts Neighbours::CountOf(const PodFact& pod, const NodeDemand& demand,
                                       const kube::SpreadConstraint& constraint) const {
  Counts counts;
  ForEachOf(constraint.of, [&](const PodFact& other) {
    if (other.deleting || SameGang(pod, other)) return;
    if (!SpreadSelects(pod, constraint, other.key.ns, other.labels)) return;
    const Node* node = NodeUnder(other);
    if (node == nullptr) return;
    if (const auto* place = CountedPlace(*node, constraint, pod, demand)) ++counts[*place];
  });
  others_.ForEachOf(constraint.of,
                    [&](const OtherPodTraits& other, const OtherPlaces::Nodes& nodes) {
                      if (other.deleting || !SpreadSelects(pod, constraint, other.ns, other.labels))
                        return;
                      ForEachNode(nodes, [&](const Node& node, std::int64_t pods) {
                        if (const auto* place = CountedPlace(node, constraint, pod, demand))
                          counts[*place] += pods;
                      });
                    });
  return counts;
}

void Neighbours::ForEachPlace(const PodFact& pod, const NodeDemand& demand,
                              const kube::SpreadConstraint& constraint,
                              absl::FunctionRef<bool(const std::string& place)> visit) const {
  for (std::size_t i = 0; i < cluster_.node_count(); ++i) {
    const Node* node = cluster_.node(NodeId(static_cast<std::uint32_t>(i))).node.get();
    const std::string* place =
        node == nullptr ? nullptr : CountedPlace(*node, constraint, pod, demand);
    if (place != nullptr && !visit(*place)) return;
  }
}

// How many pods that the constraint selects are in the place that has the fewest.
std::int64_t Neighbours::FewestOf(const PodFact& pod, const NodeDemand& demand,
                                  const kube::SpreadConstraint& constraint,
                                  const Counts& counts) const {
  Places places;
  std::int64_t fewest = std::numeric_limits<std::int64_t>::max();
  ForEachPlace(pod, demand, constraint, [&](const std::string& place) {
    const auto found = counts.find(place);
    fewest = found == counts.end() ? 0 : std::min(fewest, found->second);
    places.insert(place);
    return fewest > 0;
  });
  if (fewest == 0) return 0;
  const bool enough = static_cast<std::int64_t>(places.size()) >= constraint.min_domains;
  return enough && !places.empty() ? fewest : 0;
}

// Source: kubernetes pkg/scheduler/framework/plugins/podtopologyspread/filtering.go.
void Neighbours::SpreadOut(const PodFact& pod, const NodeDemand& demand, const Group* group,
                           Requirements& added) const {
  for (std::size_t i = 0; i < pod.affinity->spread.size(); ++i) {
    const kube::SpreadConstraint& constraint = pod.affinity->spread[i];
    const std::string& key = constraint.of.topology_key;
    if (group != nullptr && group->spreads[i]) {
      added.push_back({.key = key, .op = NodeOperator::kExists, .values = {}, .field = false});
      continue;
    }
    const Counts counts = CountOf(pod, demand, constraint);
    const std::int64_t itself = SpreadSelects(pod, constraint, pod.key.ns, pod.labels) ? 1 : 0;
    const std::int64_t most =
        FewestOf(pod, demand, constraint, counts) + constraint.max_skew - itself;
    Places full;
    for (const auto& [place, count] : counts) {
      if (count > most) full.insert(place);
    }
    added.push_back({.key = key, .op = NodeOperator::kExists, .values = {}, .field = false});
    AddAvoided(key, full, added);
  }
}

Neighbours::Requirements Neighbours::Of(const PodFact& pod, const NodeDemand& demand,
                                        const Group* group) const {
  Requirements added;
  if (pod.affinity != nullptr) {
    Avoid(pod, added);
    if (group == nullptr || !group->joins) Join(pod, added);
    SpreadOut(pod, demand, group, added);
  }
  AvoidThoseWhoAvoid(pod, added);
  return added;
}

Narrowed Neighbours::Narrow(const std::shared_ptr<const GangSpec>& gang) const {
  Members pods;
  for (const MemberSpec& member : gang->members) pods.push_back(facts_.pods.Find(member.pod));
  Narrowed narrowed = NarrowFor(gang, pods);
  const auto prefers = [](const auto& pod) {
    return pod != nullptr && pod->preferences != nullptr;
  };
  if (std::ranges::none_of(pods, prefers)) return narrowed;
  auto made = std::make_shared<GangSpec>(*narrowed.gang);
  made->preferred = {Preferring(*gang, pods, true)};
  if (std::ranges::any_of(pods, HasLighter)) {
    made->preferred.push_back(Preferring(*gang, pods, false));
  }
  narrowed.gang = std::move(made);
  return narrowed;
}

std::shared_ptr<const GangSpec> Neighbours::Preferring(const GangSpec& gang, Members pods,
                                                       bool all) const {
  auto preferring = std::make_shared<GangSpec>(gang);
  for (std::size_t i = 0; i < pods.size(); ++i) {
    if (pods[i] == nullptr || pods[i]->preferences == nullptr) continue;
    PodFact pod = *pods[i];
    kube::PodAffinity affinity = pod.affinity == nullptr ? kube::PodAffinity() : *pod.affinity;
    pod.preferences->AddTo(all ? 0 : std::max<std::int64_t>(pod.preferences->Heaviest(), 1),
                           affinity, preferring->members[i].node.all);
    if (!affinity.empty()) pod.affinity = std::make_shared<const kube::PodAffinity>(affinity);
    pods[i] = std::make_shared<const PodFact>(std::move(pod));
  }
  return NarrowFor(preferring, pods).gang;
}

Narrowed Neighbours::NarrowFor(const std::shared_ptr<const GangSpec>& gang,
                               const Members& pods) const {
  Narrowed narrowed{.gang = gang, .why = {}};
  std::vector<Group> groups;
  const std::vector<PlaceRule> rules = RulesOf(*gang, pods, groups);
  std::vector<const Group*> group_of(pods.size(), nullptr);
  for (const Group& group : groups) {
    for (const std::size_t member : group.members) group_of[member] = &group;
  }
  std::set<std::string> said;
  std::vector<Requirements> added(pods.size());
  for (std::size_t i = 0; i < pods.size(); ++i) {
    if (pods[i] == nullptr) continue;
    added[i] = Of(*pods[i], gang->members[i].node, group_of[i]);
    for (const NodeRequirement& one : added[i]) said.insert(Describe(one));
  }
  if (said.empty() && rules.empty()) return narrowed;
  const auto with = [&](const GangSpec& spec) {
    auto made = std::make_shared<GangSpec>(spec);
    made->rules = rules;
    for (std::size_t i = 0; i < made->members.size(); ++i) {
      auto& all = made->members[i].node.all;
      all.insert(all.end(), added[i].begin(), added[i].end());
    }
    return made;
  };
  auto made = with(*gang);
  for (auto& drawn : made->drawn) drawn = with(*drawn);
  narrowed.gang = std::move(made);
  if (!said.empty()) {
    narrowed.why = fmt::format("beside other pods it may run where {}", fmt::join(said, " and "));
  }
  for (const PlaceRule& rule : rules) {
    if (rule.counts.empty()) continue;
    narrowed.why += fmt::format("{}{} count pods outside of the gang, too",
                                narrowed.why.empty() ? "" : "; ", rule.Describe());
  }
  return narrowed;
}

}  // namespace tahoma::controller
