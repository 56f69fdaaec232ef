#include "sim-node/collective/algorithms/trees.h"

#include <algorithm>

#include "sim-node/collective/algorithms/spread.h"

namespace tahoma::sim {
namespace {

constexpr std::size_t kStepsOfSlowestEdge = 8;

// The links between members in the direction of an all-gather; reversed for a reduce-scatter.
std::vector<Edge> EdgesOf(Phase phase, const ChipSet& set, const TorusLinks& links) {
  std::uint64_t fastest = 0;
  std::vector<std::pair<Edge, std::uint64_t>> found;
  for (LinkId link = 0; link < links.id_count(); ++link) {
    if (links.capacity(link) == 0) continue;
    const torus::Hop hop = links.HopOf(link);
    if (((MaskOf(hop.from) | MaskOf(hop.to)) & ~set.mask()) != 0) continue;
    Edge edge{.from = set.PlaceOf(hop.from), .to = set.PlaceOf(hop.to)};
    if (phase == Phase::kReduceScatter) std::swap(edge.from, edge.to);
    found.emplace_back(edge, links.capacity(link));
    fastest = std::max(fastest, links.capacity(link));
  }
  std::vector<Edge> edges;
  for (auto& [edge, rate] : found) {
    edge.steps = static_cast<std::size_t>((fastest + rate - 1) / rate);
    if (edge.steps <= kStepsOfSlowestEdge) edges.push_back(edge);
  }
  return edges;
}

// The places of the pieces in a buffer, in elements: `pieces` of equal size in [begin, end).
struct Ruler {
  std::uint64_t begin;
  std::uint64_t end;
  std::uint64_t pieces;

  std::uint64_t At(std::uint64_t piece, std::uint64_t part, std::uint64_t parts) const {
    const Wide whole = static_cast<Wide>(end - begin) * (piece * parts + part);
    return begin + static_cast<std::uint64_t>(whole / (pieces * parts));
  }
};

// Makes steps of the sends of pieces; `ruler_of(piece)` is the ruler and the number of the piece on
// it.
template <typename RulerOf>
std::vector<Step> StepsOf(Phase phase, const ChipSet& set, const std::vector<Edge>& edges,
                          const std::vector<PieceSend>& sends, std::uint64_t element_bytes,
                          const RulerOf& ruler_of) {
  std::size_t count = 0;
  for (const PieceSend& one : sends) {
    count = std::max(count, one.begin + edges[one.edge].steps);
  }
  const bool reduces = phase == Phase::kReduceScatter;
  std::vector<Step> steps(count);
  for (const PieceSend& one : sends) {
    const Edge& edge = edges[one.edge];
    const auto [ruler, number] = ruler_of(one.piece);
    for (std::size_t part = 0; part < edge.steps; ++part) {
      const std::uint64_t first = ruler.At(number, part, edge.steps);
      const std::uint64_t last = ruler.At(number, part + 1, edge.steps);
      if (first == last) continue;
      const std::size_t at = one.begin + part;
      steps[reduces ? count - 1 - at : at].push_back(
          {.from = set.chips()[reduces ? edge.to : edge.from],
           .to = set.chips()[reduces ? edge.from : edge.to],
           .offset = first * element_bytes,
           .to_offset = first * element_bytes,
           .bytes = (last - first) * element_bytes,
           .action = reduces ? Action::kReduce : Action::kCopy});
    }
  }
  std::erase_if(steps, [](const Step& step) { return step.empty(); });
  return steps;
}

}  // namespace

std::optional<std::vector<Step>> TreeSteps(Phase phase, const ChipSet& set, const TorusLinks& links,
                                           const Layout& layout, std::size_t parts) {
  std::vector<std::size_t> owners;
  for (std::size_t piece = 0; piece < set.size() * parts; ++piece) owners.push_back(piece / parts);
  const std::vector<Edge> edges = EdgesOf(phase, set, links);
  const auto sends = Spread(owners, edges, set.size());
  if (!sends) return std::nullopt;
  return StepsOf(phase, set, edges, *sends, layout.element_bytes, [&](std::size_t piece) {
    const std::size_t block = piece / parts;
    return std::pair(Ruler{layout.bounds[block], layout.bounds[block + 1], parts}, piece % parts);
  });
}

std::optional<std::vector<Step>> TreeBroadcastSteps(const ChipSet& set, const TorusLinks& links,
                                                    const Layout& layout, std::size_t parts) {
  const std::size_t pieces = set.size() * parts;
  const std::vector<Edge> edges = EdgesOf(Phase::kAllGather, set, links);
  const auto sends = Spread(std::vector<std::size_t>(pieces, 0), edges, set.size());
  if (!sends) return std::nullopt;
  const Ruler whole{0, layout.bounds.back(), pieces};
  return StepsOf(Phase::kAllGather, set, edges, *sends, layout.element_bytes,
                 [&](std::size_t piece) { return std::pair(whole, piece); });
}

}  // namespace tahoma::sim
