#include "sim-node/emulator/collective/algorithms/moves.h"

#include <algorithm>
#include <map>
#include <utility>

#include "lib/base/check.h"
#include "lib/base/status.h"

namespace tahoma::sim {
namespace {

using torus::ChipIndex;

// The places of a rank's two buffers in its chip's memory.
struct Place {
  ChipIndex chip;
  std::uint64_t buffer = 0;
  std::uint64_t result = 0;
};

std::vector<Place> PlacesOf(const Request& request, const std::vector<Member>& members) {
  std::vector<Place> places;
  for (const Member& member : members) {
    const std::uint64_t all = request.bytes * static_cast<std::uint64_t>(member.ranks);
    for (int rank = 0; rank < member.ranks; ++rank) {
      const std::uint64_t at = request.bytes * static_cast<std::uint64_t>(rank);
      places.push_back({.chip = member.chip, .buffer = at, .result = all + at});
    }
  }
  return places;
}

void Append(Exchange& exchange, const Place& from, std::uint64_t from_offset, const Place& to,
            std::uint64_t to_offset, std::uint64_t bytes) {
  exchange.step.push_back({.from = from.chip,
                           .to = to.chip,
                           .offset = from.buffer + from_offset,
                           .to_offset = to.result + to_offset,
                           .bytes = bytes,
                           .action = Action::kCopy});
}

Exchange AllToAll(const std::vector<Place>& places, std::uint64_t block) {
  Exchange exchange;
  for (std::size_t to = 0; to < places.size(); ++to) {
    for (std::size_t from = 0; from < places.size(); ++from) {
      Append(exchange, places[from], to * block, places[to], from * block, block);
    }
  }
  return exchange;
}

// Returns the exchange of the blocks that the request lists.
Exchange ByBlocks(const Request& request, const std::vector<Place>& places) {
  const std::uint64_t size = Size(request.type);
  Exchange exchange;
  for (const RankBlock& block : *request.blocks) {
    Append(exchange, places.at(static_cast<std::size_t>(block.from)), block.begin * size,
           places.at(static_cast<std::size_t>(block.to)), block.at * size, block.count * size);
  }
  return exchange;
}

absl::StatusOr<std::vector<int>> PermuteSources(const std::vector<Member>& members,
                                                const std::vector<std::vector<ChipIndex>>& paths) {
  std::map<ChipIndex, int> first_rank;
  int ranks = 0;
  for (const Member& member : members) {
    if (member.ranks != members[0].ranks) {
      return InvalidArgument(
          "permute needs as many ranks on every chip; chip {} has {}, chip {} {}",
          members[0].chip.value(), members[0].ranks, member.chip.value(), member.ranks);
    }
    first_rank.emplace(member.chip, ranks);
    ranks += member.ranks;
  }
  std::vector<std::map<ChipIndex, ChipIndex>> before(paths.size());
  for (std::size_t path = 0; path < paths.size(); ++path) {
    const std::vector<ChipIndex>& chips = paths[path];
    for (std::size_t i = 0; i < chips.size(); ++i) {
      before[path].emplace(chips[(i + 1) % chips.size()], chips[i]);
    }
  }
  std::vector<int> sources;
  for (const Member& member : members) {
    for (int rank = 0; rank < member.ranks; ++rank) {
      const auto path = static_cast<std::size_t>(rank);
      sources.push_back(first_rank.at(before[path].at(member.chip)) + rank);
    }
  }
  return sources;
}

// The first chip sends everybody its whole buffer, or each its block.
std::vector<Step> DirectSteps(const ChipSet& set, const Layout& layout, bool whole) {
  Step step;
  for (std::size_t to = 1; to < set.size(); ++to) {
    const std::uint64_t begin = whole ? 0 : layout.bounds[to] * layout.element_bytes;
    const std::uint64_t end =
        (whole ? layout.bounds.back() : layout.bounds[to + 1]) * layout.element_bytes;
    if (begin == end) continue;
    step.push_back({.from = set.chips()[0],
                    .to = set.chips()[to],
                    .offset = begin,
                    .to_offset = begin,
                    .bytes = end - begin,
                    .action = Action::kCopy});
  }
  return step.empty() ? std::vector<Step>() : std::vector<Step>{std::move(step)};
}

}  // namespace

std::vector<std::vector<ChipIndex>> PathsOf(const std::vector<std::vector<ChipIndex>>& rings,
                                            int ranks) {
  TAHOMA_CHECK(!rings.empty());
  std::vector<std::vector<ChipIndex>> paths;
  for (std::size_t rank = 0; rank < static_cast<std::size_t>(ranks); ++rank) {
    std::vector<ChipIndex>& path = paths.emplace_back(rings[rank % rings.size()]);
    if (rank / rings.size() % 2 == 1) std::reverse(path.begin(), path.end());
  }
  return paths;
}

absl::StatusOr<std::uint64_t> AllToAllBlock(const Request& request, std::size_t ranks) {
  const std::uint64_t elements = request.bytes / Size(request.type);
  if (elements < ranks) {
    return InvalidArgument("an all_to_all of {} elements among {} ranks; expected one for each",
                           elements, ranks);
  }
  return elements / ranks * Size(request.type);
}

Step AllToAllAmong(const Request& request, const std::vector<Member>& members,
                   std::uint64_t block) {
  return AllToAll(PlacesOf(request, members), block).step;
}

absl::StatusOr<Exchange> ExchangeOf(const Request& request, const std::vector<Member>& members,
                                    const ChipSet& set, const TorusLinks& links) {
  std::vector<std::vector<ChipIndex>> paths;
  if (request.operation == Operation::kPermute && request.blocks == nullptr) {
    paths = PathsOf(set.Rings(links), members[0].ranks);
  }
  return ExchangeAlong(request, members, paths);
}

absl::StatusOr<Exchange> ExchangeAlong(const Request& request, const std::vector<Member>& members,
                                       const std::vector<std::vector<ChipIndex>>& paths) {
  TAHOMA_CHECK(IsExchange(request.operation));
  const std::vector<Place> places = PlacesOf(request, members);
  if (request.blocks != nullptr) return ByBlocks(request, places);
  Exchange exchange;
  if (request.operation == Operation::kAllToAll) {
    TAHOMA_ASSIGN_OR_RETURN(const std::uint64_t block, AllToAllBlock(request, places.size()));
    exchange = AllToAll(places, block);
  } else {
    if (request.operation == Operation::kPermute) {
      TAHOMA_ASSIGN_OR_RETURN(exchange.sources, PermuteSources(members, paths));
    } else {
      const auto ranks = static_cast<int>(places.size());
      for (int rank = 0; rank < ranks; ++rank)
        exchange.sources.push_back((rank + ranks - 1) % ranks);
    }
    for (std::size_t rank = 0; rank < places.size(); ++rank) {
      const Place& from = places[static_cast<std::size_t>(exchange.sources[rank])];
      Append(exchange, from, 0, places[rank], 0, request.bytes);
    }
  }
  return exchange;
}

std::vector<Step> ScatterFromRoot(Algorithm algorithm, const ChipSet& set, const TorusLinks& links,
                                  const Layout& layout, bool whole) {
  if (set.size() == 1) return {};
  if (algorithm != Algorithm::kRdh || whole) return DirectSteps(set, layout, whole);
  return ScatterSteps(set, links.torus(), layout);
}

}  // namespace tahoma::sim
