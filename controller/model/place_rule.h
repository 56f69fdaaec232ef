// A gang's rule about the places of its own pods: some must be apart from others, beside others, or
// spread. A place is all nodes with one value of a label.
//
//   for (const PlaceRule& rule : gang.rules) {
//     Say(rule.Describe());                      // "podAntiAffinity on kubernetes.io/hostname"
//   }
//
// Rules about pods outside of the gang are requirements on nodes already (NodeDemand::all). Members
// are given by their ranks, in ascending order.
//
// Scope: values. controller/plan/place_keeper.h decides whether places keep the rules.
//
// Thread safety: values.

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace tahoma::controller {

struct PlaceRule {
  enum class Kind : std::uint8_t { kApart, kBeside, kSpread };

  Kind kind = Kind::kApart;
  std::string key = {};                    // the label whose values are the places
  std::vector<std::size_t> askers = {};    // members with the rule
  std::vector<std::size_t> selected = {};  // members that the rule is about

  // For kBeside: an asker's place has a selected member, or is in `places`, sorted: pods outside of
  // the gang are there. `one_place`: the askers look for their own like and are the first, so
  // one place has them all.
  std::vector<std::string> places = {};
  bool one_place = false;

  // For kSpread: an asker's place has at most `max_skew` more selected pods than the place with the
  // fewest; with fewer places than `min_places` the fewest is 0. `counts` has the selected pods
  // outside of the gang, by place, where there are any; `place_count` places count.
  std::int64_t max_skew = 1;
  std::int64_t min_places = 1;
  std::int64_t place_count = 0;
  std::map<std::string, std::int64_t> counts = {};

  // Returns the field of the pod's spec and the key.
  std::string Describe() const;
};

}  // namespace tahoma::controller
