#include "lib/collective/predict.h"

#include <absl/container/flat_hash_map.h>

#include <array>
#include <bit>
#include <memory>
#include <utility>

#include "lib/base/status.h"
#include "lib/collective/masks.h"

namespace tahoma::collective {
namespace {

using torus::Axis;
using torus::ChipIndex;
using torus::ChipMask;

std::size_t SizeIndex(const torus::Shape& size) {
  const auto side = [&](Axis axis) {
    return static_cast<std::size_t>(std::countr_zero(static_cast<unsigned>(size.extent(axis))));
  };
  return side(Axis::kX) * 9 + side(Axis::kY) * 3 + side(Axis::kZ);
}

// The loads of all subcubes of a torus in full health.
class BoxLoads {
 public:
  struct Known {
    const SetLoads* loads = nullptr;  // of a box of this size: only send-receive depends on more
    StepLoad shift;                   // send-receive of one rank on each chip
  };

  BoxLoads(const torus::Shape& torus, const hw::ChipModel& chip) : links_(torus, chip) {
    for (const torus::Box& box : torus::BoxTable::Of(torus).all()) {
      const SetLoads loads(box.mask, links_, ChipIndex(Lowest(box.mask)));
      std::unique_ptr<const SetLoads>& of_size = of_size_.at(SizeIndex(box.size));
      if (of_size == nullptr) {
        loads.ComputeAll();
        of_size = std::make_unique<const SetLoads>(loads);
      }
      known_[box.mask] = {.loads = of_size.get(),
                          .shift = *loads.Exchange(Operation::kSendReceive, /*ranks=*/1)};
    }
  }

  // nullptr unless the chips are a subcube.
  const Known* Find(ChipMask chips) const {
    const auto found = known_.find(chips);
    return found == known_.end() ? nullptr : &found->second;
  }

 private:
  const DomainLinks links_;
  std::array<std::unique_ptr<const SetLoads>, 27> of_size_;
  absl::flat_hash_map<ChipMask, Known> known_;
};

// Returns the loads of subcubes of these chips; nullptr of a model that forms no torus.
const BoxLoads* LoadsOf(const hw::ChipModel& chip) {
  if (&chip == &hw::kTrainium2) {
    static const BoxLoads loads(torus::kUltraServerShape, hw::kTrainium2);
    return &loads;
  }
  if (&chip == &hw::kTrainium1) {
    static const BoxLoads loads(torus::kInstanceShape, hw::kTrainium1);
    return &loads;
  }
  if (&chip == &hw::kTrainium1N) {
    static const BoxLoads loads(torus::kInstanceShape, hw::kTrainium1N);
    return &loads;
  }
  return nullptr;
}

Picoseconds Predict(const BoxLoads::Known& known, const FormRequest& request,
                    const LinkCosts& costs) {
  if (request.operation != Operation::kSendReceive) return FormTime(request, *known.loads, costs);
  StepLoad shift = known.shift;
  shift.sent = shift.received = request.ranks;
  return StepTime(shift, {.banks = request.banks}, request.bytes, costs);
}

const BoxLoads::Known* KnownOf(ChipMask chips, const hw::ChipModel& chip) {
  const BoxLoads* const loads = LoadsOf(chip);
  return loads == nullptr ? nullptr : loads->Find(chips);
}
const BoxLoads::Known* KnownOf(ChipMask chips, const DomainLinks& links) {
  const bool tabled =
      links.torus() == torus::kUltraServerShape || links.torus() == torus::kInstanceShape;
  if (!tabled || links.costs().efficiency_permille != 1000 || !links.IsHealthy(chips)) {
    return nullptr;
  }
  return KnownOf(chips, *links.costs().chip);
}

}  // namespace

const SetLoads* LoadsOfBox(ChipMask chips, const DomainLinks& links) {
  const BoxLoads::Known* const known = KnownOf(chips, links);
  return known == nullptr ? nullptr : known->loads;
}

DomainLinks LinksWith(const Faults& faults, const hw::ChipModel& chip) {
  DomainLinks links(torus::kUltraServerShape, chip);
  links.Kill(faults.dead);
  for (const LinkFault& fault : faults.links) links.SetPermille(fault);
  return links;
}

Picoseconds PredictCollective(const torus::Box& box, const FormRequest& request,
                              const hw::ChipModel& chip) {
  const BoxLoads::Known* const known = KnownOf(box.mask, chip);
  if (known != nullptr) return Predict(*known, request, CostsOf(chip));
  const DomainLinks links(torus::kUltraServerShape, chip);
  return FormTime(request, SetLoads(box.mask, links, ChipIndex(Lowest(box.mask))), links.costs());
}

absl::StatusOr<Picoseconds> PredictCollective(ChipMask chips, const DomainLinks& links,
                                              const FormRequest& request) {
  if (chips == 0) return InvalidArgument("a collective needs at least one chip");
  if ((chips & ~links.chips()) != 0) {
    return InvalidArgument("chip {} is not in a torus of {}", Lowest(chips & ~links.chips()),
                           links.torus().ToString());
  }
  const BoxLoads::Known* const known = KnownOf(chips, links);
  if (known != nullptr) return Predict(*known, request, links.costs());
  const Picoseconds time =
      FormTime(request, SetLoads(chips, links, ChipIndex(Lowest(chips))), links.costs());
  if (time == Picoseconds::max()) {
    return FailedPrecondition("links that are down cut some of the {} chips off", CountOf(chips));
  }
  return time;
}

absl::StatusOr<Picoseconds> PredictCollective(ChipMask chips, const Faults& faults,
                                              const FormRequest& request,
                                              const hw::ChipModel& chip) {
  if ((chips & faults.dead) != 0) {
    return FailedPrecondition("chip {} is dead", Lowest(chips & faults.dead));
  }
  return PredictCollective(chips, LinksWith(faults, chip), request);
}

}  // namespace tahoma::collective
