// Keeps the rules of a gang about the places of its own pods while the pods are placed, one by one.
//
// MayPut says no only where no places of the other members can keep the rules, and AllKept says
// whether the places of all do. So a search may leave out each node that MayPut refuses.
//
// Thread safety: one thread.

#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "controller/model/inventory.h"
#include "controller/model/place_rule.h"

namespace tahoma::controller {

class PlaceKeeper {
 public:
  // `rules` must outlive the keeper, and so must each node that is put.
  PlaceKeeper(const std::vector<PlaceRule>& rules, std::size_t members);

  bool empty() const { return rules_.empty(); }
  bool MayPut(std::size_t member, const Node& node) const;
  void Put(std::size_t member, const Node& node) { Count(member, node, 1); }
  // Undoes Put.
  void Take(std::size_t member, const Node& node) { Count(member, node, -1); }
  // Returns whether the places of all members keep all rules.
  bool AllKept() const;

  // Returns a text that is equal for members with the same part in every rule.
  std::string PartOf(std::size_t member) const;
  // Returns a text that is equal for places that no rule tells apart before a member is put there;
  // `shared` tells whether more nodes are in the node's place of that key.
  template <typename Shared>
  std::string ClassOf(const Node& node, const Shared& shared) const {
    std::string text;
    for (std::size_t i = 0; i < rules_.size(); ++i) {
      const std::string* place = PlaceOf(i, node);
      if (place == nullptr) text += "/-";
      if (place != nullptr) text += shared(rule(i).key, *place) ? "/" + *place : Lone(i, *place);
    }
    return text;
  }

 private:
  struct Here {  // in one place
    std::int64_t askers = 0;
    std::int64_t selected = 0;
  };
  struct Tracked {
    const PlaceRule* rule = nullptr;
    std::vector<bool> asks;      // by member
    std::vector<bool> selected;  // by member
    absl::flat_hash_map<std::string_view, Here> here;
    std::int64_t askers_put = 0;
    std::int64_t selected_put = 0;
    std::int64_t fewest_most = 0;  // of kSpread: the fewest of any place is never more
  };

  const PlaceRule& rule(std::size_t i) const { return *rules_[i].rule; }
  const std::string* PlaceOf(std::size_t rule, const Node& node) const;
  std::string Lone(std::size_t rule, const std::string& place) const;
  static bool MayPutBeside(const Tracked& one, const std::string* place);
  static bool MayPutSpread(const Tracked& one, std::size_t member, const std::string* place);
  static bool IsKept(const Tracked& one);
  static std::int64_t Fewest(const Tracked& one);
  void Count(std::size_t member, const Node& node, int by);

  std::vector<Tracked> rules_;
};

// Returns the end of a sentence about places: "" or " and keeps podAffinity on rack".
std::string RulesText(const std::vector<PlaceRule>& rules);

}  // namespace tahoma::controller
