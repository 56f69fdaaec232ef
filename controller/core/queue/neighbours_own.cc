// Makes rules of a gang of what its pods say about each other.

#include <algorithm>
#include <iterator>
#include <utility>

#include "controller/core/queue/neighbours.h"

namespace tahoma::controller {
namespace {

bool SelectedByAll(const PodFact& pod, const std::vector<kube::PodAffinityTerm>& terms,
                   const PodFact& other) {
  return std::ranges::all_of(terms, [&](const auto& term) {
    return term.Selects(pod.key.ns, other.key.ns, other.labels);
  });
}

bool SameText(const std::string* a, const std::string* b) {
  return a == nullptr || b == nullptr ? a == b : *a == *b;
}

// Returns whether the constraints of spread mean the same for both pods, which have the same ones.
bool SpreadAlike(const PodFact& a, const PodFact& b) {
  const auto& spread = a.affinity->spread;
  const bool same_nodes = a.demand.all == b.demand.all && a.demand.any_term == b.demand.any_term &&
                          a.demand.tolerations == b.demand.tolerations;
  return spread.empty() ||
         (same_nodes && std::ranges::all_of(spread, [&](const auto& one) {
            return std::ranges::all_of(one.same_labels, [&](const std::string& label) {
              return SameText(kube::FindLabel(a.labels, label), kube::FindLabel(b.labels, label));
            });
          }));
}

// Returns the ranks of the pods that `selects` accepts.
template <typename Selects>
std::vector<std::size_t> RanksOf(const std::vector<std::shared_ptr<const PodFact>>& pods,
                                 const Selects& selects) {
  std::vector<std::size_t> ranks;
  for (std::size_t i = 0; i < pods.size(); ++i) {
    if (pods[i] != nullptr && selects(*pods[i])) ranks.push_back(i);
  }
  return ranks;
}

// Returns whether some asker has a selected pod other than itself.
bool ConcernsOthers(const std::vector<std::size_t>& askers,
                    const std::vector<std::size_t>& selected) {
  return !selected.empty() && !(askers.size() == 1 && selected == askers);
}

}  // namespace

std::vector<Neighbours::Group> Neighbours::GroupsOf(const Members& pods) {
  std::vector<Group> groups;
  for (std::size_t i = 0; i < pods.size(); ++i) {
    if (pods[i] == nullptr || pods[i]->affinity == nullptr) continue;
    const PodFact& pod = *pods[i];
    const bool itself = SelectedByAll(pod, pod.affinity->beside, pod);
    const auto is_like = [&](const Group& group) {
      return group.selects_itself == itself && *group.first->affinity == *pod.affinity &&
             SpreadAlike(*group.first, pod);
    };
    auto found = std::ranges::find_if(groups, is_like);
    if (found == groups.end()) {
      groups.push_back({.first = pods[i], .selects_itself = itself});
      groups.back().spreads.assign(pod.affinity->spread.size(), false);
      found = std::prev(groups.end());
    }
    found->members.push_back(i);
  }
  return groups;
}

void Neighbours::AddApart(const Members& pods, const Group& group,
                          std::vector<PlaceRule>& rules) const {
  const PodFact& first = *group.first;
  for (const auto& term : first.affinity->apart) {
    PlaceRule rule{.kind = PlaceRule::Kind::kApart, .key = term.topology_key};
    rule.askers = group.members;
    rule.selected = RanksOf(pods, [&](const PodFact& other) {
      return term.Selects(first.key.ns, other.key.ns, other.labels);
    });
    if (ConcernsOthers(rule.askers, rule.selected)) rules.push_back(std::move(rule));
  }
}

void Neighbours::AddBeside(const Members& pods, Group& group, std::vector<PlaceRule>& rules) const {
  const PodFact& first = *group.first;
  const auto& terms = first.affinity->beside;
  if (terms.empty()) return;
  const std::vector<std::size_t> selected =
      RanksOf(pods, [&](const PodFact& other) { return SelectedByAll(first, terms, other); });
  if (!ConcernsOthers(group.members, selected)) return;
  std::vector<Places> outside;
  for (const auto& term : terms) outside.push_back(PlacesOf(first, terms, term));
  const bool first_of_all =
      group.selects_itself &&
      std::ranges::all_of(outside, [](const auto& one) { return one.empty(); });
  std::vector<std::size_t> others;
  std::ranges::set_difference(selected, group.members, std::back_inserter(others));
  // Pods that look for their own like only join those outside.
  if (group.selects_itself && !first_of_all && others.empty()) return;
  for (std::size_t i = 0; i < terms.size(); ++i) {
    PlaceRule rule{.kind = PlaceRule::Kind::kBeside, .key = terms[i].topology_key};
    rule.askers = group.members;
    rule.selected = others;
    rule.places.assign(outside[i].begin(), outside[i].end());
    std::ranges::sort(rule.places);
    rule.one_place = first_of_all;
    rules.push_back(std::move(rule));
  }
  group.joins = true;
}

void Neighbours::AddSpread(const Members& pods, const NodeDemand& demand, Group& group,
                           std::vector<PlaceRule>& rules) const {
  const PodFact& first = *group.first;
  for (std::size_t i = 0; i < first.affinity->spread.size(); ++i) {
    const kube::SpreadConstraint& constraint = first.affinity->spread[i];
    PlaceRule rule{.kind = PlaceRule::Kind::kSpread, .key = constraint.of.topology_key};
    rule.askers = group.members;
    rule.selected = RanksOf(pods, [&](const PodFact& other) {
      return SpreadSelects(first, constraint, other.key.ns, other.labels);
    });
    if (!ConcernsOthers(rule.askers, rule.selected)) continue;
    rule.max_skew = constraint.max_skew;
    rule.min_places = constraint.min_domains;
    for (const auto& [place, count] : CountOf(first, demand, constraint)) {
      rule.counts.emplace(place, count);
    }
    Places places;
    ForEachPlace(first, demand, constraint, [&](const std::string& place) {
      places.insert(place);
      return true;
    });
    rule.place_count = static_cast<std::int64_t>(places.size());
    rules.push_back(std::move(rule));
    group.spreads[i] = true;
  }
}

std::vector<PlaceRule> Neighbours::RulesOf(const GangSpec& gang, const Members& pods,
                                           std::vector<Group>& groups) const {
  std::vector<PlaceRule> rules;
  if (gang.single_pod) return rules;
  groups = GroupsOf(pods);
  for (Group& group : groups) {
    AddApart(pods, group, rules);
    AddBeside(pods, group, rules);
    AddSpread(pods, gang.members[group.members.front()].node, group, rules);
  }
  return rules;
}

}  // namespace tahoma::controller
