#include "sim-node/emulator/collective/schedule/blocks.h"

#include <algorithm>
#include <string_view>

#include "lib/base/check.h"
#include "lib/base/status.h"

namespace tahoma::sim {
namespace {

absl::Status CheckLength(const std::vector<std::uint64_t>& list, std::string_view name,
                         std::size_t rank, std::size_t ranks, bool may_be_empty) {
  if (list.size() == ranks || (may_be_empty && list.empty())) return absl::OkStatus();
  return InvalidArgument("{} of rank {} has {} numbers; expected {}, one for each rank", name, rank,
                         list.size(), ranks);
}

absl::Status CheckLengths(const VariableCounts& own, std::size_t rank, std::size_t ranks) {
  TAHOMA_RETURN_IF_ERROR(CheckLength(own.send_counts, "send_counts", rank, ranks, false));
  TAHOMA_RETURN_IF_ERROR(CheckLength(own.send_displacements, "send_displs", rank, ranks, true));
  TAHOMA_RETURN_IF_ERROR(CheckLength(own.receive_counts, "recv_counts", rank, ranks, true));
  return CheckLength(own.receive_displacements, "recv_displs", rank, ranks, true);
}

// Whether [begin, begin + count) is within `elements`, whatever the numbers.
bool Fits(std::uint64_t begin, std::uint64_t count, std::uint64_t elements) {
  return count <= elements && begin <= elements - count;
}

// The blocks for rank `to`: one for each rank that sends it anything.
class Receiver {
 public:
  Receiver(const std::vector<VariableCounts>& counts, std::span<const std::size_t> entries,
           std::uint64_t elements)
      : counts_(counts), entries_(entries), elements_(elements) {
    // The begin of each rank's next block when it gave no displacements.
    packed_.resize(entries.size());
  }

  absl::Status Append(std::size_t to, std::vector<RankBlock>& blocks) {
    const VariableCounts& own = Of(to);
    std::uint64_t next = 0;
    for (std::size_t from = 0; from < entries_.size(); ++from) {
      const VariableCounts& other = Of(from);
      const std::uint64_t count = other.send_counts[to];
      if (!own.receive_counts.empty() && own.receive_counts[from] != count) {
        return InvalidArgument("rank {} sends {} elements to rank {}, which expects {}", from,
                               count, to, own.receive_counts[from]);
      }
      const std::uint64_t begin =
          other.send_displacements.empty() ? packed_[from] : other.send_displacements[to];
      const std::uint64_t at =
          own.receive_displacements.empty() ? next : own.receive_displacements[from];
      if (count == 0) continue;
      TAHOMA_RETURN_IF_ERROR(CheckPlaces(from, to, {.count = count, .begin = begin, .at = at}));
      packed_[from] += count;
      next += count;
      blocks.push_back({.from = static_cast<int>(from),
                        .to = static_cast<int>(to),
                        .count = count,
                        .begin = begin,
                        .at = at});
    }
    return absl::OkStatus();
  }

 private:
  const VariableCounts& Of(std::size_t rank) const { return counts_.at(entries_[rank]); }

  absl::Status CheckPlaces(std::size_t from, std::size_t to, const RankBlock& place) const {
    if (!Fits(place.begin, place.count, elements_)) {
      return InvalidArgument(
          "rank {} sends {} elements from {} on to rank {}; its buffer has {} elements", from,
          place.count, place.begin, to, elements_);
    }
    if (!Fits(place.at, place.count, elements_)) {
      return InvalidArgument(
          "rank {} puts {} elements of rank {} at {}; its result has {} elements", to, place.count,
          from, place.at, elements_);
    }
    return absl::OkStatus();
  }

  const std::vector<VariableCounts>& counts_;
  const std::span<const std::size_t> entries_;
  const std::uint64_t elements_;
  std::vector<std::uint64_t> packed_;
};

// `got` is what one rank gets.
absl::Status CheckApart(std::span<const RankBlock> got) {
  std::vector<RankBlock> sorted(got.begin(), got.end());
  std::ranges::sort(sorted, {}, &RankBlock::at);
  for (std::size_t i = 1; i < sorted.size(); ++i) {
    const RankBlock& before = sorted[i - 1];
    if (before.at + before.count <= sorted[i].at) continue;
    return InvalidArgument("what rank {} gets of ranks {} and {} overlaps at element {}",
                           sorted[i].to, std::min(before.from, sorted[i].from),
                           std::max(before.from, sorted[i].from), sorted[i].at);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<RankBlock>> BlocksOf(const std::vector<VariableCounts>& counts,
                                                std::span<const std::size_t> entries,
                                                std::uint64_t elements) {
  if (entries.size() > kMaxCountedRanks) {
    return InvalidArgument("counts for {} ranks; expected at most {} ranks in a group",
                           entries.size(), kMaxCountedRanks);
  }
  for (std::size_t rank = 0; rank < entries.size(); ++rank) {
    TAHOMA_RETURN_IF_ERROR(CheckLengths(counts.at(entries[rank]), rank, entries.size()));
  }
  Receiver receiver(counts, entries, elements);
  std::vector<RankBlock> blocks;
  for (std::size_t to = 0; to < entries.size(); ++to) {
    const std::size_t first = blocks.size();
    TAHOMA_RETURN_IF_ERROR(receiver.Append(to, blocks));
    TAHOMA_RETURN_IF_ERROR(CheckApart(std::span(blocks).subspan(first)));
  }
  return blocks;
}

absl::StatusOr<std::vector<RankBlock>> BlocksOf(std::span<const std::pair<int, int>> pairs,
                                                int ranks, std::uint64_t elements) {
  std::vector<bool> sends(static_cast<std::size_t>(ranks));
  std::vector<bool> gets(static_cast<std::size_t>(ranks));
  std::vector<RankBlock> blocks;
  for (const auto& [from, to] : pairs) {
    for (const int rank : {from, to}) {
      if (rank >= 0 && rank < ranks) continue;
      return InvalidArgument("the pair [{}, {}] names rank {}; expected 0 to {}", from, to, rank,
                             ranks - 1);
    }
    if (sends[static_cast<std::size_t>(from)]) {
      return InvalidArgument("rank {} is the source of two pairs", from);
    }
    if (gets[static_cast<std::size_t>(to)]) {
      return InvalidArgument("rank {} is the target of two pairs", to);
    }
    sends[static_cast<std::size_t>(from)] = true;
    gets[static_cast<std::size_t>(to)] = true;
    blocks.push_back({.from = from, .to = to, .count = elements, .begin = 0, .at = 0});
  }
  std::ranges::sort(blocks, {}, &RankBlock::to);
  return blocks;
}

}  // namespace tahoma::sim
