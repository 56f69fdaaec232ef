#include "controller/plan/exact_search.h"

#include <fmt/format.h>

#include <algorithm>

namespace tahoma::controller {

ExactAnswer ExactSearch::Find(const CompiledGang& gang, const std::vector<CompiledMember>& members,
                              WallTime now, bool write) {
  fitter_.StartDecision();
  ExactAnswer answer = gang.shapes.empty() ? FindNodes(gang, members, now, write)
                                           : FindBoxes(gang, members, now, write);
  // Where assignments were left untried, nothing is proven.
  if (answer.kind == ExactAnswer::Kind::kNone && fitter_.gave_up()) {
    answer = {.kind = ExactAnswer::Kind::kBoundReached, .placement = {}, .alone = {}, .cause = {}};
  }
  return answer;
}

std::string RanksText(const std::vector<std::size_t>& ranks) {
  constexpr std::size_t kMost = 5;
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  const std::size_t shown = std::min(ranks.size(), kMost);
  for (std::size_t i = 0; i < shown; ++i) {
    const bool last = i > 0 && i + 1 == ranks.size();
    text += fmt::format("{}{}", i == 0 ? "" : last ? " and " : ", ", ranks[i]);
  }
  if (ranks.size() > kMost) text += fmt::format(" and {} more", ranks.size() - kMost);
  return text;
}

}  // namespace tahoma::controller
