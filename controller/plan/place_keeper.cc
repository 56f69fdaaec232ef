#include "controller/plan/place_keeper.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "controller/model/gang.h"
#include "lib/base/check.h"

namespace tahoma::controller {
namespace {

using Kind = PlaceRule::Kind;

std::vector<bool> Marked(const std::vector<std::size_t>& some, std::size_t members) {
  std::vector<bool> marked(members, false);
  for (const std::size_t member : some) marked[member] = true;
  return marked;
}

std::int64_t OutsideIn(const PlaceRule& rule, std::string_view place) {
  const auto found = rule.counts.find(std::string(place));
  return found == rule.counts.end() ? 0 : found->second;
}

// All selected pods together, spread as evenly as can be.
std::int64_t MostOfTheFewest(const PlaceRule& rule) {
  if (rule.place_count < rule.min_places || rule.place_count == 0) return 0;
  std::int64_t all = static_cast<std::int64_t>(rule.selected.size());
  for (const auto& [place, count] : rule.counts) all += count;
  return all / rule.place_count;
}

}  // namespace

PlaceKeeper::PlaceKeeper(const std::vector<PlaceRule>& rules, std::size_t members) {
  for (const PlaceRule& rule : rules) {
    rules_.push_back({.rule = &rule,
                      .asks = Marked(rule.askers, members),
                      .selected = Marked(rule.selected, members),
                      .here = {},
                      .fewest_most = MostOfTheFewest(rule)});
  }
}

const std::string* PlaceKeeper::PlaceOf(std::size_t i, const Node& node) const {
  return kube::FindLabel(node.labels, rule(i).key);
}

std::string PlaceKeeper::PartOf(std::size_t member) const {
  std::string text;
  for (const Tracked& one : rules_) {
    text += one.asks[member] ? 'a' : '-';
    text += one.selected[member] ? 's' : '-';
  }
  return text;
}

std::string PlaceKeeper::Lone(std::size_t i, const std::string& place) const {
  const bool outside = std::ranges::binary_search(rule(i).places, place);
  return fmt::format("/{}{}", outside ? '+' : '-', OutsideIn(rule(i), place));
}

void PlaceKeeper::Count(std::size_t member, const Node& node, int by) {
  for (std::size_t i = 0; i < rules_.size(); ++i) {
    Tracked& one = rules_[i];
    if (!one.asks[member] && !one.selected[member]) continue;
    one.askers_put += one.asks[member] ? by : 0;
    one.selected_put += one.selected[member] ? by : 0;
    const std::string* place = PlaceOf(i, node);
    if (place == nullptr) continue;
    Here& here = one.here[*place];
    here.askers += one.asks[member] ? by : 0;
    here.selected += one.selected[member] ? by : 0;
    if (here.askers == 0 && here.selected == 0) one.here.erase(*place);
  }
}

bool PlaceKeeper::MayPut(std::size_t member, const Node& node) const {
  for (std::size_t i = 0; i < rules_.size(); ++i) {
    const Tracked& one = rules_[i];
    if (!one.asks[member] && !one.selected[member]) continue;
    const std::string* place = PlaceOf(i, node);
    if (one.rule->kind == Kind::kBeside) {
      if (one.asks[member] && !MayPutBeside(one, place)) return false;
    } else if (one.rule->kind == Kind::kSpread) {
      if (!MayPutSpread(one, member, place)) return false;
    } else if (place != nullptr) {
      const auto found = one.here.find(*place);
      if (found == one.here.end()) continue;
      if (one.asks[member] && found->second.selected > 0) return false;
      if (one.selected[member] && found->second.askers > 0) return false;
    }
  }
  return true;
}

bool PlaceKeeper::MayPutBeside(const Tracked& one, const std::string* place) {
  if (place == nullptr) return false;
  const auto found = one.here.find(*place);
  if (one.rule->one_place) {
    return one.askers_put == 0 || (found != one.here.end() && found->second.askers > 0);
  }
  if (found != one.here.end() && found->second.selected > 0) return true;
  const bool more = one.selected_put < static_cast<std::int64_t>(one.rule->selected.size());
  return more || std::ranges::binary_search(one.rule->places, *place);
}

bool PlaceKeeper::MayPutSpread(const Tracked& one, std::size_t member, const std::string* place) {
  if (place == nullptr) return !one.asks[member];
  const auto found = one.here.find(*place);
  const Here here = found == one.here.end() ? Here() : found->second;
  if (!one.asks[member] && here.askers == 0) return true;
  const std::int64_t count =
      OutsideIn(*one.rule, *place) + here.selected + (one.selected[member] ? 1 : 0);
  return count - one.fewest_most <= one.rule->max_skew;
}

// The fewest selected pods of any place.
std::int64_t PlaceKeeper::Fewest(const Tracked& one) {
  const PlaceRule& rule = *one.rule;
  if (rule.place_count < rule.min_places) return 0;
  std::map<std::string_view, std::int64_t> counts(rule.counts.begin(), rule.counts.end());
  for (const auto& [place, here] : one.here) {
    if (here.selected > 0) counts[place] += here.selected;
  }
  if (counts.empty() || static_cast<std::int64_t>(counts.size()) < rule.place_count) return 0;
  return std::ranges::min_element(counts, {}, [](const auto& some) { return some.second; })->second;
}

bool PlaceKeeper::IsKept(const Tracked& one) {
  const PlaceRule& rule = *one.rule;
  TAHOMA_CHECK(one.askers_put == static_cast<std::int64_t>(rule.askers.size()));
  if (rule.kind == Kind::kApart || rule.one_place) return true;  // MayPut has seen to it
  const std::int64_t fewest = rule.kind == Kind::kSpread ? Fewest(one) : 0;
  return std::ranges::all_of(one.here, [&](const auto& entry) {
    const auto& [place, here] = entry;
    if (here.askers == 0) return true;
    if (rule.kind == Kind::kBeside) {
      return here.selected > 0 || std::ranges::binary_search(rule.places, place);
    }
    return OutsideIn(rule, place) + here.selected - fewest <= rule.max_skew;
  });
}

std::string RulesText(const std::vector<PlaceRule>& rules) {
  std::set<std::string> said;
  for (const PlaceRule& rule : rules) said.insert(rule.Describe());
  return said.empty() ? "" : fmt::format(" and keeps {}", fmt::join(said, " and "));
}

bool PlaceKeeper::AllKept() const { return std::ranges::all_of(rules_, IsKept); }

}  // namespace tahoma::controller
