// Decides whether a gang has any place, by trying every way up to a bound of steps.
//
// Search takes one place after the other and is fast, and may miss a place where the pods of a gang
// differ. ExactSearch comes after Search, and proves the reasons of why.h.
//
// Pods with at least as many nodes as the gang has pods need no search and are placed last; so are
// boxes with as many domains. For the rest, a flow of pods to nodes by their least chips decides
// most cases; other cases are tried in every way, where equal nodes and equal pods count once.
//
// Scope: gangs none of whose claims is allocated already.
//
// Thread safety: one thread.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "controller/plan/decision.h"
#include "controller/plan/fleet_index.h"
#include "controller/plan/fleet_view.h"
#include "controller/plan/member_fit.h"
#include "controller/plan/request.h"

namespace tahoma::controller {

struct ExactAnswer {
  enum class Kind : std::uint8_t {
    kPlaced,
    kNone,          // proven: there is no place
    kBoundReached,  // not found within the bound of steps
  };
  Kind kind = Kind::kNone;
  std::optional<Placement> placement;  // of kPlaced, where it was asked for
  std::optional<std::size_t> alone;    // of kNone: the first pod that has no place even alone
  std::string cause;                   // of kNone: a clause for people
};

class ExactSearch {
 public:
  // How many times pods are tried on a node, or on the layers of a box, for one answer.
  static constexpr int kStepsMax = 20000;

  ExactSearch(const FleetIndex& index, MemberFitter& fitter, const FleetView& view)
      : index_(index), fitter_(fitter), view_(view) {}

  // `members` are the gang's, as Search::members() returns them. Without `write` the answer is the
  // proof alone, which is faster.
  ExactAnswer Find(const CompiledGang& gang, const std::vector<CompiledMember>& members,
                   WallTime now, bool write);

 private:
  ExactAnswer FindNodes(const CompiledGang& gang, const std::vector<CompiledMember>& members,
                        WallTime now, bool write);  // exact_nodes.cc
  ExactAnswer FindBoxes(const CompiledGang& gang, const std::vector<CompiledMember>& members,
                        WallTime now, bool write);  // exact_boxes.cc

  const FleetIndex& index_;
  MemberFitter& fitter_;
  const FleetView view_;
};

// "rank 1", "ranks 0, 1 and 4", "ranks 0, 1, 2, 3, 4 and 7 more".
std::string RanksText(const std::vector<std::size_t>& ranks);

}  // namespace tahoma::controller
