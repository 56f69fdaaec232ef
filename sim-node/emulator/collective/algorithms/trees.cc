#include "sim-node/emulator/collective/algorithms/trees.h"

namespace tahoma::sim {
namespace {

// The place of a piece in a buffer, in elements: one of `pieces` of equal size in [begin, end).
struct TreePlace {
  std::uint64_t begin;
  std::uint64_t end;
  std::uint64_t piece;
  std::uint64_t pieces;

  // Where one of the piece's parts begins.
  std::uint64_t At(std::uint64_t part, std::uint64_t parts) const {
    const Wide whole = static_cast<Wide>(end - begin) * (piece * parts + part);
    return begin + static_cast<std::uint64_t>(whole / (static_cast<Wide>(pieces) * parts));
  }
};

std::vector<TreePlace> PlacesOf(const collective::TreeCut& cut, const Layout& layout) {
  std::vector<TreePlace> places;
  const std::uint64_t all = cut.piece_count();
  for (std::size_t chip = 0; chip < cut.pieces.size(); ++chip) {
    for (std::uint64_t piece = 0; piece < cut.pieces[chip]; ++piece) {
      places.push_back(layout.fixed ? TreePlace{layout.bounds[chip], layout.bounds[chip + 1], piece,
                                                cut.pieces[chip]}
                                    : TreePlace{0, layout.bounds.back(), places.size(), all});
    }
  }
  return places;
}

}  // namespace

std::vector<Step> TreeSteps(Phase phase, const ChipSet& set, const collective::Trees& trees,
                            const Layout& layout) {
  const bool reduces = phase == Phase::kReduceScatter;
  const std::vector<TreePlace> places = PlacesOf(trees.cut(), layout);
  std::vector<Step> steps(trees.step_count());
  for (const collective::PieceSend& one : trees.sends()) {
    const collective::Edge& edge = trees.edges()[one.edge];
    for (std::size_t part = 0; part < edge.steps; ++part) {
      const std::uint64_t first = places[one.piece].At(part, edge.steps);
      const std::uint64_t last = places[one.piece].At(part + 1, edge.steps);
      if (first == last) continue;
      const std::size_t step = one.begin + part;
      steps[reduces ? steps.size() - 1 - step : step].push_back(
          {.from = set.chips()[reduces ? edge.to : edge.from],
           .to = set.chips()[reduces ? edge.from : edge.to],
           .offset = first * layout.element_bytes,
           .to_offset = first * layout.element_bytes,
           .bytes = (last - first) * layout.element_bytes,
           .action = reduces ? Action::kReduce : Action::kCopy});
    }
  }
  return steps;
}

}  // namespace tahoma::sim
