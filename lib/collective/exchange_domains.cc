#include "lib/collective/exchange_domains.h"

#include <algorithm>
#include <array>
#include <utility>

#include "lib/base/check.h"
#include "lib/base/status.h"
#include "lib/collective/cuts.h"
#include "lib/collective/masks.h"
#include "lib/collective/neuron_work.h"
#include "lib/collective/rings.h"
#include "lib/collective/routes.h"

namespace tahoma::collective {
namespace {

using torus::ChipIndex;
using torus::ChipMask;

Picoseconds Hops(std::size_t hops, const LinkCosts& costs) {
  return costs.hop * static_cast<Picoseconds::rep>(hops);
}

Picoseconds OnLink(const MessageLoad::Fullest& link, std::uint64_t bytes) {
  return TimeAtMost(static_cast<Wide>(link.messages) * bytes, 1, link.rate);
}

// Messages of a chip's ranks along paths through all chips of a domain: a path leaves the domain at
// the last chip and enters the next domain at the first chip there.
class PathsInside {
 public:
  PathsInside(const InsideDomains::Domain& domain, const FormRequest& request)
      : links_(*domain.links),
        load_(links_, ThroughOf(links_, domain.chips)),
        bytes_(request.bytes) {
    if (request.operation == Operation::kSendReceive) {
      Ring ascending;
      for (ChipMask left = domain.chips; left != 0; left &= left - 1) {
        ascending.emplace_back(Lowest(left));
      }
      Add(ascending);
      return;
    }
    const std::vector<Ring> rings = RingsOf(links_, domain.chips, ChipIndex(Lowest(domain.chips)));
    for (std::size_t rank = 0; rank < static_cast<std::size_t>(request.ranks); ++rank) {
      Ring ring = rings[rank % rings.size()];
      if (rank / rings.size() % 2 == 1) std::reverse(ring.begin(), ring.end());
      BeginApart(ring);
      Add(ring);
    }
  }

  // Whether links that are down cut a chip off.
  bool cut_off() const { return cut_off_; }
  // The most paths that enter or leave the domain over one NIC.
  std::uint64_t OnNic() const {
    return std::max(*std::ranges::max_element(begins_), *std::ranges::max_element(ends_));
  }
  // The time from the departure to the last arrival inside.
  Picoseconds Time() {
    if (messages_.empty()) return Picoseconds(0);
    const MessageLoad::Ends last = load_.LastOf(messages_);
    const LinkCosts& costs = links_.costs();
    return std::max(OnLink(last.fullest, bytes_) + Hops(last.hops, costs),
                    OnLink(last.of_longest, bytes_) + Hops(load_.longest(), costs));
  }

 private:
  static std::size_t At(ChipIndex chip) { return static_cast<std::size_t>(chip.value()); }

  // Turns the ring such that no other path begins at the first chip or ends at the last, as long as
  // there are such chips.
  void BeginApart(Ring& ring) const {
    for (std::size_t i = 0; i < ring.size(); ++i) {
      if (begins_.at(At(ring.front())) == 0 && ends_.at(At(ring.back())) == 0) break;
      std::rotate(ring.begin(), ring.begin() + 1, ring.end());
    }
  }
  void Add(const Ring& path) {
    ++begins_.at(At(path.front()));
    ++ends_.at(At(path.back()));
    for (std::size_t i = 0; i + 1 < path.size(); ++i) {
      cut_off_ = cut_off_ || !load_.Add(path[i].value(), torus::MaskOf(path[i + 1]));
      messages_.emplace_back(static_cast<std::uint8_t>(path[i].value()),
                             static_cast<std::uint8_t>(path[i + 1].value()));
    }
  }

  const DomainLinks& links_;
  MessageLoad load_;
  const std::uint64_t bytes_;
  std::array<std::uint64_t, kChipsMax> begins_{};  // paths, by chip
  std::array<std::uint64_t, kChipsMax> ends_{};
  std::vector<std::pair<std::uint8_t, std::uint8_t>> messages_;
  bool cut_off_ = false;
};

// Returns the time on a NIC that sends so many bytes, from the departure to the last arrival.
Picoseconds OverEfa(Wide bytes, const hw::ChipModel& chip) {
  const auto rate = static_cast<std::uint64_t>(chip.links.efa);
  return TimeAtMost(bytes, 1, rate) + chip.costs.efa - chip.costs.step;
}

absl::StatusOr<Picoseconds> AlongPaths(const InsideDomains& inside, const FormRequest& request,
                                       const hw::ChipModel& chip) {
  std::uint64_t on_nic = 0;
  Picoseconds longest(0);
  for (const InsideDomains::Domain& domain : inside.distinct()) {
    PathsInside paths(domain, request);
    if (paths.cut_off()) {
      return FailedPrecondition("links that are down cut some of the {} chips off",
                                domain.loads->count());
    }
    on_nic = std::max(on_nic, paths.OnNic());
    longest = std::max(longest, paths.Time());
  }
  const LinkCosts costs = CostsOf(chip);
  // Ranks on one chip copy beside the messages.
  const Picoseconds memory = MemoryTime(
      2 * static_cast<std::uint64_t>(request.ranks) * request.bytes, request.banks, costs);
  return StepStart({}, 1, costs) +
         std::max({longest, memory, OverEfa(static_cast<Wide>(on_nic) * request.bytes, chip)});
}

Picoseconds AllToAll(const InsideDomains& inside, const ChipCounts& chips,
                     const FormRequest& request, std::uint64_t block, const hw::ChipModel& chip) {
  const auto ranks = static_cast<std::uint64_t>(request.ranks);
  const std::uint64_t message = ranks * ranks * block;  // between two chips
  const LinkCosts costs = CostsOf(chip);
  Picoseconds longest = MemoryTime(2 * ranks * ranks * chips.all * block, request.banks, costs);
  for (const InsideDomains::Domain& domain : inside.distinct()) {
    if (domain.loads->count() == 1) continue;
    const StepLoads* const mesh = domain.loads->Mesh();
    TAHOMA_CHECK(mesh != nullptr);  // InsideDomains has refused chips that are cut off
    const StepParts parts =
        PartsOf(mesh->front(), {}, message * domain.loads->count(), domain.links->costs());
    longest = std::max(longest, parts.links + parts.hops);
  }
  const Wide on_nic = static_cast<Wide>(message) * (chips.all - chips.fewest);
  return StepStart({}, chips.all - 1, costs) + std::max(longest, OverEfa(on_nic, chip));
}

}  // namespace

absl::StatusOr<Picoseconds> ExchangeTime(const InsideDomains& inside, const ChipCounts& chips,
                                         const FormRequest& request, const hw::ChipModel& chip) {
  if (request.operation != Operation::kAllToAll) return AlongPaths(inside, request, chip);
  const std::uint64_t ranks = chips.all * static_cast<std::uint64_t>(request.ranks);
  const std::uint64_t elements = request.bytes / request.element_bytes;
  if (elements < ranks) {
    return InvalidArgument("an all_to_all of {} elements among {} ranks; expected one for each",
                           elements, ranks);
  }
  return AllToAll(inside, chips, request, elements / ranks * request.element_bytes, chip);
}

}  // namespace tahoma::collective
