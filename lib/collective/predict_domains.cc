#include "lib/collective/predict_domains.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "lib/base/check.h"
#include "lib/base/status.h"
#include "lib/collective/exchange_domains.h"
#include "lib/collective/inside_domains.h"
#include "lib/collective/masks.h"
#include "lib/collective/nic_run.h"

namespace tahoma::collective {
namespace {

// The rules by which the emulator (sim-node/emulator/collective/domains) tries numbers of chunks:
// where few domains are alike, messages between domains are listed one by one.
constexpr std::uint64_t kListedMessagesMost = std::uint64_t{1} << 17U;
constexpr std::size_t kMeshKindsMost = 32;
constexpr std::size_t kLikeEachLeast = 2;
// The emulator refuses more domains with blocks of unlike lengths; here such blocks count as
// equal.
constexpr std::size_t kListedDomainsMost = 512;
// More kinds of parts than that count as so many.
constexpr std::size_t kPartsMost = 64;
constexpr int kWorseMost = 2;  // counts of chunks that are slower, one after the other

bool HasHomes(Operation operation) {
  return operation == Operation::kAllGather || operation == Operation::kReduceScatter;
}

// The chunks of a buffer. The first chunks of an all-gather are small and so are the last chunks of
// a reduce-scatter, for one of the networks is idle there.
class ChunkSizes {
 public:
  ChunkSizes(Operation operation, int count) {
    constexpr std::uint64_t kWhole = 6;
    for (int chunk = 0; chunk < count; ++chunk) {
      const auto left = static_cast<std::uint64_t>(count - 1 - chunk);
      std::uint64_t weight = kWhole;
      if (operation == Operation::kAllGather && chunk < 2) {
        weight = 2 * (static_cast<std::uint64_t>(chunk) + 1);
      }
      if (operation == Operation::kReduceScatter && chunk == 0) weight = kWhole / 2;
      if (operation == Operation::kReduceScatter && left < 2) weight = 2 * (left + 1);
      before_.push_back(before_.back() + weight);
    }
  }
  // Returns how many of so many elements are in the chunk.
  std::uint64_t Of(std::size_t chunk, std::uint64_t elements) const {
    return Before(chunk + 1, elements) - Before(chunk, elements);
  }
  std::uint64_t Before(std::size_t chunk, std::uint64_t elements) const {
    return static_cast<std::uint64_t>(static_cast<Wide>(elements) * before_[chunk] /
                                      before_.back());
  }
  std::size_t count() const { return before_.size() - 1; }

 private:
  std::vector<std::uint64_t> before_ = {0};  // weights
};

// Domains whose chips have blocks of the same lengths.
struct BlockKind {
  std::uint64_t chips = 0;
  torus::ChipMask longer = 0;  // by place: a block has an element more
  std::uint64_t count = 0;     // of domains
};

// The domains with what they have of a buffer.
class Domains {
 public:
  Domains(std::span<const DomainPart> domains, std::uint64_t elements, bool homes)
      : count_(domains.size()), root_(CountOf(domains[0].chips)) {
    chips_.fewest = kChipsMax;
    for (std::size_t i = 0; i < domains.size(); ++i) {
      const std::uint64_t chips = CountOf(domains[i].chips);
      chips_.all += chips;
      chips_.fewest = std::min(chips_.fewest, chips);
      most_ = std::max(most_, chips);
      if (i > 0) fewest_but_root_ = std::min(fewest_but_root_, chips);
    }
    block_ = elements / chips_.all;
    std::uint64_t before = 0;
    for (const DomainPart& domain : domains) {
      BlockKind kind{.chips = CountOf(domain.chips)};
      for (std::uint64_t place = 0; homes && place < kind.chips; ++place, ++before) {
        const auto bound = [&](std::uint64_t chip) {
          return static_cast<std::uint64_t>(static_cast<Wide>(elements) * chip / chips_.all);
        };
        if (elements % chips_.all == 0) break;
        if (bound(before + 1) - bound(before) > block_) kind.longer |= torus::ChipMask{1} << place;
      }
      const auto known = std::ranges::find_if(kinds_, [&](const BlockKind& other) {
        return other.chips == kind.chips && other.longer == kind.longer;
      });
      ++(known != kinds_.end() ? *known : kinds_.emplace_back(kind)).count;
      traits_.insert({domain.chips, kind.longer});
    }
  }

  std::uint64_t count() const { return count_; }
  const ChipCounts& chips() const { return chips_; }
  std::uint64_t most() const { return most_; }
  std::uint64_t root() const { return root_; }
  std::uint64_t fewest_but_root() const { return fewest_but_root_; }
  std::uint64_t block() const { return block_; }  // elements of a chip, or one less
  // In the order of their first domains.
  const std::vector<BlockKind>& kinds() const { return kinds_; }
  // Kinds of chips and blocks.
  std::size_t traits() const { return traits_.size(); }

 private:
  std::uint64_t count_;
  ChipCounts chips_;
  std::uint64_t most_ = 0;
  std::uint64_t root_;
  std::uint64_t fewest_but_root_ = kChipsMax;
  std::uint64_t block_ = 0;
  std::vector<BlockKind> kinds_;
  std::set<std::pair<torus::ChipMask, torus::ChipMask>> traits_;
};

// The times of one chunk. Those inside are of each distinct domain; empty: no time.
struct Chunk {
  std::vector<Picoseconds> before;  // reduced or scattered
  ChunkOnNics between;
  std::vector<Picoseconds> after;  // gathered
};

// The elements of a chunk. Where blocks have homes: the elements of a block, those of a block that
// is longer by an element, and whether the chunk begins an element later in the longer block.
struct Size {
  std::uint64_t elements = 0;
  std::uint64_t longer = 0;
  bool later = false;
  friend auto operator<=>(const Size&, const Size&) = default;
};

// An operation in phases.
class OverDomains {
 public:
  OverDomains(const InsideDomains& inside, const Domains& domains, const FormRequest& request,
              const hw::ChipModel& chip)
      : inside_(inside), domains_(domains), request_(request), chip_(chip) {}

  Picoseconds Time() {
    const bool meshes = MayMesh();
    const std::uint64_t listed = domains_.count() * domains_.count() * domains_.most();
    Picoseconds best = Picoseconds::max();
    int worse = 0;
    for (const int count : kChunkCounts) {
      const auto chunks = static_cast<std::uint64_t>(count);
      if (count > 1 && request_.bytes / chunks < kChunkBytesMin) break;
      if (count > 1 && !meshes && listed * chunks > kListedMessagesMost) break;
      const Picoseconds time = TimeIn(ChunkSizes(request_.operation, count));
      worse = time >= best ? worse + 1 : 0;
      best = std::min(best, time);
      if (!meshes && (worse == kWorseMost || time > 2 * best)) break;
    }
    return best;
  }

 private:
  // Whether messages between domains are not listed one by one.
  bool MayMesh() const {
    std::size_t kinds = domains_.traits();
    if (kinds == 1 && inside_.distinct().size() == 1) return true;
    kinds += request_.operation == Operation::kBroadcast ? 1U : 0U;
    return kinds <= kMeshKindsMost && kinds * kLikeEachLeast <= domains_.count();
  }

  // One phase of one chunk at a time inside each domain.
  Picoseconds TimeIn(const ChunkSizes& sizes) {
    std::vector<const Chunk*> chunks;
    for (std::size_t chunk = 0; chunk < sizes.count(); ++chunk) {
      if (const Chunk* made = ChunkOf(sizes, chunk)) chunks.push_back(made);
    }
    if (chunks.empty()) return Picoseconds(0);
    std::vector<Picoseconds> ready;
    std::vector<ChunkOnNics> between;
    std::vector<Picoseconds> free(inside_.distinct().size(), Picoseconds(0));
    for (const Chunk* chunk : chunks) {
      for (std::size_t i = 0; i < chunk->before.size(); ++i) free[i] += chunk->before[i];
      ready.push_back(std::ranges::max(free));
      between.push_back(chunk->between);
    }
    const std::vector<Picoseconds> arrived =
        NicRun(std::move(between), SpeedsOf(*chunks.front()), chip_).Run(ready);
    for (std::size_t chunk = 0; chunk < chunks.size(); ++chunk) {
      const std::vector<Picoseconds>& after = chunks[chunk]->after;
      for (std::size_t i = 0; i < after.size(); ++i) {
        free[i] = std::max(free[i], arrived[chunk]) + after[i];
      }
    }
    return std::max(std::ranges::max(free), arrived.back());
  }

  // Chunks of one size are worked out once. Returns nullptr for one without elements.
  const Chunk* ChunkOf(const ChunkSizes& sizes, std::size_t chunk) {
    Size size;
    if (HasHomes(request_.operation)) {
      const std::uint64_t block = domains_.block();
      size = {.elements = sizes.Of(chunk, block),
              .longer = sizes.Of(chunk, block + 1),
              .later = sizes.Before(chunk, block) != sizes.Before(chunk, block + 1)};
    } else {
      size.elements = sizes.Of(chunk, request_.bytes / request_.element_bytes);
    }
    const auto [known, added] = known_.try_emplace(size);
    if (added) known->second = HasHomes(request_.operation) ? WithHomes(size) : Homeless(size);
    return known->second.between.on_nic[0] > 0 ? &known->second : nullptr;
  }

  // Picoseconds that a NIC takes for so many elements.
  double OnNic(std::uint64_t elements) const {
    return static_cast<double>(elements * request_.element_bytes) * 1e12 /
           static_cast<double>(chip_.links.efa);
  }

  // Returns the places of longer blocks that tell the kind's part from those of other kinds. Parts
  // are alike when their pieces are equally long and equally far from the first.
  static torus::ChipMask TraitsOf(const BlockKind& kind, const Size& size) {
    if (size.elements != size.longer) return kind.longer;
    const torus::ChipMask last = torus::ChipMask{1} << (kind.chips - 1);
    return kind.longer & ~(size.later ? torus::ChipMask{1} : last);
  }

  // Returns the part that stands for the kind: the known part, else the part of the fewest domains
  // with as many chips, else the last.
  static std::size_t Folded(const std::vector<InsidePart>& parts, std::size_t known,
                            const BlockKind& kind) {
    if (known < parts.size()) return known;
    std::size_t fewest = parts.size() - 1;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const bool alike = parts[i].chips_at_home == kind.chips;
      if (alike && parts[i].count < parts[fewest].count) fewest = i;
    }
    return fewest;
  }

  Chunk WithHomes(const Size& size) const {
    std::vector<InsidePart> parts;
    std::vector<std::pair<std::uint64_t, torus::ChipMask>> known;  // chips and traits of the parts
    std::uint64_t all = 0;
    std::uint64_t longest = 0;
    for (const BlockKind& kind : domains_.kinds()) {
      const std::uint64_t longer = CountOf(kind.longer);
      const std::uint64_t elements = (kind.chips - longer) * size.elements + longer * size.longer;
      if (elements == 0) continue;
      const std::uint64_t block = kind.longer != 0 ? size.longer : size.elements;
      all += elements * kind.count;
      longest = std::max(longest, block);
      const std::pair traits(kind.chips, TraitsOf(kind, size));
      const auto at = std::ranges::find(known, traits) - known.begin();
      if (at < std::ssize(known) || parts.size() == kPartsMost) {
        const std::size_t other = Folded(parts, static_cast<std::size_t>(at), kind);
        parts[other].count += kind.count;
        continue;
      }
      known.push_back(traits);
      parts.push_back(
          {.chips_at_home = kind.chips, .block = block, .elements = elements, .count = kind.count});
    }
    Chunk chunk;
    if (parts.empty()) return chunk;
    std::uint64_t on_nic = longest * (domains_.count() - 1);
    for (const InsidePart& part : parts) {
      on_nic = std::max(on_nic, CeilOf(all - part.elements, part.chips_at_home));
    }
    chunk.between.on_nic[0] = OnNic(on_nic);
    if (Combines(request_.operation)) {
      chunk.before = inside_.PhaseTimes(Phase::kReduceScatter, parts, request_);
    } else {
      chunk.after = inside_.PhaseTimes(Phase::kAllGather, parts, request_);
    }
    return chunk;
  }

  // A chunk without homes: each domain is home of as much, but for a
  // broadcast's root.
  Chunk Homeless(const Size& size) const {
    Chunk chunk;
    const std::uint64_t elements = size.elements;
    if (elements == 0) return chunk;
    const std::vector<InsidePart> parts = {{.elements = elements}};
    chunk.after = inside_.PhaseTimes(Phase::kAllGather, parts, request_);
    const std::uint64_t others = domains_.count() - 1;
    if (request_.operation == Operation::kBroadcast) {
      // To another domain each, and from there to all others but the root's.
      chunk.before = inside_.ScatterTimes(elements, request_);
      const std::uint64_t part = CeilOf(CeilOf(elements, domains_.fewest_but_root()), others);
      chunk.between.on_nic = {OnNic(std::max(part, CeilOf(elements, domains_.root()))),
                              OnNic(part * (others - 1))};
      return chunk;
    }
    chunk.before = inside_.PhaseTimes(Phase::kReduceScatter, parts, request_);
    const double phase =
        OnNic(CeilOf(CeilOf(elements, domains_.chips().fewest), domains_.count()) * others);
    chunk.between.on_nic = {phase, phase};
    return chunk;
  }

  // The steps of an all-reduce share all NICs. Those of a broadcast share the ones that receive: in
  // each of these the root's flow is one of as many as there are other domains.
  StepSpeeds SpeedsOf(const Chunk& chunk) const {
    if (request_.operation != Operation::kBroadcast || chunk.between.on_nic[1] == 0) return {};
    const auto others = static_cast<double>(domains_.count() - 1);
    const auto root = static_cast<double>(domains_.root());
    const auto fewest = static_cast<double>(domains_.fewest_but_root());
    const double flows = std::max(1.0, root / fewest);
    const double used = std::min(1.0, root / fewest / others);  // by the first step alone
    const double fair = flows / (flows + others - 1);
    StepSpeeds speeds;
    speeds.both[0] = std::min(1.0, fair / used);
    speeds.both[1] = 1 - speeds.both[0] * used;
    return speeds;
  }

  const InsideDomains& inside_;
  const Domains& domains_;
  const FormRequest& request_;
  const hw::ChipModel& chip_;
  std::map<Size, Chunk> known_;
};

}  // namespace

absl::StatusOr<Picoseconds> PredictOverDomains(std::span<const DomainPart> domains,
                                               const FormRequest& request,
                                               const hw::ChipModel& chip) {
  if (domains.empty()) return InvalidArgument("a collective needs at least one domain");
  if (domains.size() == 1) {
    const auto time = PredictCollective(domains[0].chips, domains[0].faults, request, chip);
    if (!time.ok()) return Annotate(time.status(), "domain 0");
    return *time;
  }
  TAHOMA_ASSIGN_OR_RETURN(const InsideDomains inside, InsideDomains::Of(domains, chip));
  const Domains known(domains, request.bytes / request.element_bytes, HasHomes(request.operation));
  if (IsExchange(request.operation)) return ExchangeTime(inside, known.chips(), request, chip);
  return OverDomains(inside, known, request, chip).Time();
}

}  // namespace tahoma::collective
