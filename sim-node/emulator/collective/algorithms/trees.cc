#include "sim-node/emulator/collective/algorithms/trees.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace tahoma::sim {
namespace {

// The links between members in the direction of an all-gather; reversed for a reduce-scatter. One
// that carries several pieces in a step counts as so many.
std::vector<Edge> EdgesOf(Phase phase, const ChipSet& set, const TorusLinks& links,
                          std::uint64_t fastest, const TreeCut& cut) {
  std::vector<Edge> edges;
  for (LinkId link = 0; link < links.id_count(); ++link) {
    const std::uint64_t rate = links.capacity(link);
    if (rate == 0) continue;
    const torus::Hop hop = links.HopOf(link);
    if (!set.HasBothEnds(hop)) continue;
    Edge edge{.from = set.PlaceOf(hop.from), .to = set.PlaceOf(hop.to)};
    if (phase == Phase::kReduceScatter) std::swap(edge.from, edge.to);
    if ((fastest + rate - 1) / rate > cut.slowest) continue;
    const std::uint64_t carries = rate * cut.bundle;
    edge.steps = static_cast<std::size_t>((fastest * cut.grain + carries - 1) / carries);
    edges.insert(edges.end(), std::max<std::size_t>(carries / fastest, 1), edge);
  }
  return edges;
}

// By step, how many pieces the fastest link could carry while the fullest carries its own.
std::vector<double> LoadsOf(const std::vector<PieceSend>& sends, const std::vector<Edge>& edges,
                            std::size_t steps, std::size_t bundle) {
  // Edges of one link follow one another.
  struct Link {
    std::size_t edges = 0;
    std::vector<const PieceSend*> sends = {};
  };
  std::vector<Link> links;
  std::vector<std::size_t> link_of(edges.size());
  for (std::size_t i = 0; i < edges.size(); ++i) {
    const bool same = i > 0 && edges[i].from == edges[i - 1].from && edges[i].to == edges[i - 1].to;
    if (!same) links.emplace_back();
    link_of[i] = links.size() - 1;
    ++links.back().edges;
  }
  for (const PieceSend& one : sends) links[link_of[one.edge]].sends.push_back(&one);
  std::vector<double> loads(steps);
  std::vector<std::size_t> busy(steps);  // of one link at a time
  for (const Link& link : links) {
    const double part = static_cast<double>(bundle) / static_cast<double>(link.edges);
    for (const PieceSend* one : link.sends) {
      for (std::size_t i = 0; i < edges[one->edge].steps; ++i) ++busy[one->begin + i];
    }
    for (const PieceSend* one : link.sends) {
      for (std::size_t i = 0; i < edges[one->edge].steps; ++i) {
        const auto used = static_cast<double>(std::exchange(busy[one->begin + i], 0));
        loads[one->begin + i] = std::max(loads[one->begin + i], used * part);
      }
    }
  }
  return loads;
}

// The place of a piece in a buffer, in elements: one of `pieces` of equal size in [begin, end).
struct Place {
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

std::vector<Place> PlacesOf(const TreeCut& cut, const Layout& layout) {
  std::vector<Place> places;
  const std::uint64_t all = cut.piece_count();
  for (std::size_t chip = 0; chip < cut.pieces.size(); ++chip) {
    for (std::uint64_t piece = 0; piece < cut.pieces[chip]; ++piece) {
      places.push_back(layout.fixed ? Place{layout.bounds[chip], layout.bounds[chip + 1], piece,
                                            cut.pieces[chip]}
                                    : Place{0, layout.bounds.back(), places.size(), all});
    }
  }
  return places;
}

}  // namespace

std::size_t TreeCut::piece_count() const {
  return std::accumulate(pieces.begin(), pieces.end(), std::size_t{0});
}

std::uint64_t FastestLink(const ChipSet& set, const TorusLinks& links) {
  std::uint64_t fastest = 0;
  for (LinkId link = 0; link < links.id_count(); ++link) {
    if (links.capacity(link) <= fastest || !set.HasBothEnds(links.HopOf(link))) continue;
    fastest = links.capacity(link);
  }
  return fastest;
}

bool HasLikeDirections(const ChipSet& set, const TorusLinks& links) {
  for (LinkId link = 0; link < links.id_count(); ++link) {
    if (links.capacity(link) == 0) continue;
    const torus::Hop hop = links.HopOf(link);
    const LinkId back = TorusLinks::IdOf(hop.to, hop.axis, Opposite(hop.direction));
    if (set.HasBothEnds(hop) && links.capacity(link) != links.capacity(back)) return false;
  }
  return true;
}

std::optional<Trees> Trees::Of(Phase phase, const ChipSet& set, const TorusLinks& links,
                               TreeCut cut) {
  std::vector<std::size_t> owners;
  for (std::size_t chip = 0; chip < set.size(); ++chip) {
    owners.insert(owners.end(), cut.pieces[chip], chip);
  }
  Trees trees;
  trees.fastest_ = FastestLink(set, links);
  trees.edges_ = EdgesOf(phase, set, links, trees.fastest_, cut);
  auto sends = Spread(owners, trees.edges_, set.size());
  if (!sends) return std::nullopt;
  trees.cut_ = std::move(cut);
  trees.chips_ = set.chips();
  trees.sends_ = *std::move(sends);
  for (const PieceSend& one : trees.sends_) {
    trees.step_count_ = std::max(trees.step_count_, one.begin + trees.edges_[one.edge].steps);
  }
  trees.loads_ = LoadsOf(trees.sends_, trees.edges_, trees.step_count_, trees.cut_.bundle);
  return trees;
}

int Trees::degree() const {
  std::vector<int> links(chips_.size());
  for (const Edge& edge : edges_) ++links[edge.from];
  return *std::ranges::max_element(links);
}

std::vector<Step> Trees::Steps(Phase phase, const Layout& layout) const {
  const bool reduces = phase == Phase::kReduceScatter;
  const std::vector<Place> places = PlacesOf(cut_, layout);
  std::vector<Step> steps(step_count_);
  for (const PieceSend& one : sends_) {
    const Edge& edge = edges_[one.edge];
    for (std::size_t part = 0; part < edge.steps; ++part) {
      const std::uint64_t first = places[one.piece].At(part, edge.steps);
      const std::uint64_t last = places[one.piece].At(part + 1, edge.steps);
      if (first == last) continue;
      const std::size_t step = one.begin + part;
      steps[reduces ? step_count_ - 1 - step : step].push_back(
          {.from = chips_[reduces ? edge.to : edge.from],
           .to = chips_[reduces ? edge.from : edge.to],
           .offset = first * layout.element_bytes,
           .to_offset = first * layout.element_bytes,
           .bytes = (last - first) * layout.element_bytes,
           .action = reduces ? Action::kReduce : Action::kCopy});
    }
  }
  return steps;
}

}  // namespace tahoma::sim
