#include "lib/collective/predict_units.h"

#include <absl/container/flat_hash_set.h>

#include <algorithm>
#include <bit>
#include <optional>
#include <vector>

#include "lib/base/status.h"

namespace tahoma::collective {
namespace {

// The buffer is cut into 1, 2, 4, ... so many chunks where that hides one network behind the other.
constexpr std::uint64_t kChunksMax = 64;

// The slowest of the units.
class Inside {
 public:
  explicit Inside(std::span<const UnitPart> units) {
    absl::flat_hash_set<torus::ChipMask> healthy;
    for (std::size_t i = 0; i < units.size(); ++i) {
      const UnitPart& unit = units[i];
      const bool whole = unit.faults.dead == 0 && unit.faults.links.empty();
      if (whole && !healthy.insert(unit.chips).second) continue;
      distinct_.push_back({.number = i, .unit = &unit});
    }
  }

  absl::StatusOr<Picoseconds> Time(Operation operation, std::uint64_t bytes) const {
    Picoseconds slowest(0);
    for (const Numbered& one : distinct_) {
      const auto time = PredictCollective(one.unit->chips, one.unit->faults, operation, bytes);
      if (!time.ok()) return Annotate(time.status(), fmt::format("unit {}", one.number));
      slowest = std::max(slowest, *time);
    }
    return slowest;
  }

 private:
  struct Numbered {
    std::size_t number;
    const UnitPart* unit;
  };
  std::vector<Numbered> distinct_;
};

// Between the units, for the chip whose NIC carries most.
class Between {
 public:
  Between(std::uint64_t units, std::uint64_t chips, const EfaCosts& costs)
      : units_(units), chips_(chips), costs_(costs) {}

  // Each chip has the part of a buffer that its unit gathers with it, or scatters.
  Picoseconds Phase(std::uint64_t bytes) const {
    return Rounds() +
           TimeAtMost(static_cast<Wide>(bytes) * (units_ - 1), units_ * chips_, costs_.rate);
  }
  // Down a tree of units, or in two phases.
  Picoseconds Broadcast(std::uint64_t bytes) const {
    const Picoseconds whole = TimeAtMost(bytes, chips_, costs_.rate);
    const auto rounds = static_cast<Picoseconds::rep>(std::bit_width(units_ - 1));
    return std::min(Rounds() + whole * rounds, Phase(bytes) * 2);
  }
  // One message from each chip, of all that its buffer has for other units.
  Picoseconds Exchange(std::uint64_t bytes, bool all_units) const {
    const std::uint64_t share = all_units ? units_ : 1;
    return costs_.message +
           TimeAtMost(static_cast<Wide>(bytes) * (all_units ? units_ - 1 : 1), share, costs_.rate);
  }

 private:
  Picoseconds Rounds() const {
    return costs_.message * static_cast<Picoseconds::rep>(std::bit_width(units_ - 1));
  }

  std::uint64_t units_;
  std::uint64_t chips_;
  const EfaCosts& costs_;
};

// A buffer's way over both networks.
struct Stages {
  Picoseconds inside;
  Picoseconds between;
};

absl::StatusOr<Stages> StagesOf(const Inside& inside, const Between& between, Operation operation,
                                std::uint64_t bytes) {
  Operation part = operation;
  Picoseconds outside(0);
  switch (operation) {
    case Operation::kAllReduce:
      outside = between.Phase(bytes) * 2;
      break;
    case Operation::kAllGather:
    case Operation::kReduceScatter:
      outside = between.Phase(bytes);
      break;
    case Operation::kBroadcast:  // scattered in the root's unit, gathered in all
      part = Operation::kAllReduce;
      outside = between.Broadcast(bytes);
      break;
    case Operation::kAllToAll:
      outside = between.Exchange(bytes, /*all_units=*/true);
      break;
    case Operation::kSendReceive:
    case Operation::kPermute:
      part = Operation::kSendReceive;
      outside = between.Exchange(bytes, /*all_units=*/false);
      break;
  }
  TAHOMA_ASSIGN_OR_RETURN(const Picoseconds within, inside.Time(part, bytes));
  return Stages{.inside = within, .between = outside};
}

}  // namespace

absl::StatusOr<Picoseconds> PredictOverUnits(std::span<const UnitPart> units, Operation operation,
                                             std::uint64_t bytes, const EfaCosts& costs) {
  if (units.empty()) return InvalidArgument("a collective needs at least one unit");
  const Inside inside(units);
  if (units.size() == 1) return inside.Time(operation, bytes);
  std::uint64_t fewest = kChipsMax;
  for (const UnitPart& unit : units) {
    fewest = std::min(fewest, static_cast<std::uint64_t>(std::popcount(unit.chips)));
  }
  const Between between(units.size(), std::max<std::uint64_t>(fewest, 1), costs);
  if (IsExchange(operation)) {  // both networks at once
    TAHOMA_ASSIGN_OR_RETURN(const Stages stages, StagesOf(inside, between, operation, bytes));
    return std::max(stages.inside, stages.between);
  }
  std::optional<Picoseconds> best;
  for (std::uint64_t chunks = 1; chunks <= kChunksMax; chunks *= 2) {
    TAHOMA_ASSIGN_OR_RETURN(const Stages stages,
                            StagesOf(inside, between, operation, (bytes + chunks - 1) / chunks));
    const Picoseconds time =
        stages.inside + stages.between +
        std::max(stages.inside, stages.between) * static_cast<Picoseconds::rep>(chunks - 1);
    if (!best || time < *best) best = time;
  }
  return *best;
}

}  // namespace tahoma::collective
