#include "controller/plan/score.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <utility>
#include <vector>

#include "lib/base/check.h"
#include "lib/collective/predict_domains.h"

namespace tahoma::controller {
namespace {

using collective::Operation;
using collective::Picoseconds;
using torus::Axis;

constexpr collective::FormRequest kScored = {.operation = Operation::kAllReduce,
                                             .bytes = kScoredBytes};

// A larger cache is emptied.
constexpr std::size_t kKnownMax = 1 << 16;

std::size_t LogOfSide(int side) {
  return static_cast<std::size_t>(std::countr_zero(static_cast<unsigned>(side)));
}

std::size_t SizeIndex(const torus::Shape& size) {
  return LogOfSide(size.extent(Axis::kX)) * 9 + LogOfSide(size.extent(Axis::kY)) * 3 +
         LogOfSide(size.extent(Axis::kZ));
}

// Returns both directions of the links that are down, in a torus of `shape`.
std::vector<collective::LinkFault> FaultsOf(const torus::LinkMask& down,
                                            const torus::Shape& shape) {
  std::vector<collective::LinkFault> faults;
  for (const Axis axis : torus::kAxes) {
    if (shape.extent(axis) == 1) continue;
    for (std::uint64_t left = down.along(axis); left != 0; left &= left - 1) {
      const torus::ChipIndex chip(std::countr_zero(left));
      if (chip.value() >= shape.chip_count()) continue;
      const auto next = shape.Neighbour(shape.CoordOf(chip), axis, torus::Direction::kPlus);
      faults.push_back({.chip = chip, .axis = axis, .direction = torus::Direction::kPlus});
      faults.push_back(
          {.chip = shape.IndexOf(*next), .axis = axis, .direction = torus::Direction::kMinus});
    }
  }
  return faults;
}

// Returns, as bits, the HBM banks of a device that is a core.
std::uint8_t BanksOf(const DeviceRole& core, const hw::ChipModel& model) {
  unsigned banks = 0;
  for (int physical = 0; physical < model.physical_cores; ++physical) {
    if ((core.cores >> physical & 1) != 0) banks |= 1U << hw::HbmBank(model, 1, physical);
  }
  return static_cast<std::uint8_t>(banks);
}

// The chips of a gang, by domain. Collectives need chips of one model.
struct GangChips {
  std::map<std::size_t, torus::ChipMask> of_domain;
  const hw::ChipModel* model = nullptr;
  // The banks of the gang's cores, by domain and chip.
  std::map<std::pair<std::size_t, int>, std::uint8_t> banks_of_cores;

  // False when the node's chips are of another model than those before. A type that is not in the
  // catalogue counts as Trainium2.
  bool Add(const NodeState& node, const std::string& device) {
    const hw::InstanceType* const type = node.node->family->type;
    const hw::ChipModel* const own = type == nullptr ? &hw::kTrainium2 : type->chip;
    if (model != nullptr && own != model) return false;
    model = own;
    of_domain[node.domain.value()] |= torus::ChipMask{node.node->ChipsNamed(device)}
                                      << (16 * node.z);
    const DeviceRole role = node.node->RoleNamed(device);
    if (role.kind == DeviceKind::kCore) {
      banks_of_cores[{node.domain.value(), 16 * node.z + role.chip}] |= BanksOf(role, *model);
    }
    return true;
  }

  // Returns the banks of the chip that has the fewest.
  int FewestBanks() const {
    int fewest = hw::kHbmBanksMax;
    for (const auto& [chip, banks] : banks_of_cores) {
      fewest = std::min(fewest, std::max(1, std::popcount(banks)));
    }
    return fewest;
  }
};

}  // namespace

Picoseconds AllReduceTime(const torus::Shape& size) {
  static const auto table = [] {
    std::array<Picoseconds, 27> made{};
    for (const torus::Box& box : torus::BoxTable::Of(torus::kUltraServerShape).all()) {
      made.at(SizeIndex(box.size)) = collective::PredictCollective(box, kScored);
    }
    return made;
  }();
  return table.at(SizeIndex(size));
}

Picoseconds PlaceScores::AllReduceTime(std::uint16_t chips, const torus::LinkMask& down,
                                       const hw::ChipModel& model) const {
  const auto in_instance = [&](Axis axis) { return static_cast<std::uint16_t>(down.along(axis)); };
  const Asked asked(&model, chips, {in_instance(Axis::kX), in_instance(Axis::kY)});
  if (const auto found = known_.find(asked); found != known_.end()) return found->second;
  if (known_.size() >= kKnownMax) known_.clear();
  torus::LinkMask inside = down;
  inside.along(Axis::kZ) = 0;
  collective::DomainLinks links(torus::kInstanceShape, model);
  for (const auto& fault : FaultsOf(inside, torus::kInstanceShape)) links.SetPermille(fault);
  const auto time = collective::PredictCollective(chips, links, kScored);
  return known_.emplace(asked, time.ok() ? *time : Picoseconds::max()).first->second;
}

std::optional<Picoseconds> PredictAllReduce(const ClusterState& state,
                                            std::span<const Holding* const> holdings) {
  GangChips gang;
  for (const Holding* holding : holdings) {
    for (const Holding::HeldDevice& device : holding->devices) {
      if (device.admin_access) continue;
      const auto id = state.FindNode(device.node);
      if (!id || state.node(*id).node == nullptr || !state.node(*id).domain.valid()) {
        return std::nullopt;
      }
      if (!gang.Add(state.node(*id), device.device)) return std::nullopt;
    }
  }
  std::vector<collective::DomainPart> parts;
  int count = 0;
  for (const auto& [domain, chips] : gang.of_domain) {
    if (chips == 0) continue;
    const DomainState& known = state.domain(DomainId(domain));
    if (!known.torus_known) return std::nullopt;
    count += torus::ChipCount(chips);
    // A lone instance is the first plane of an UltraServer without other planes.
    const torus::ChipMask dead = known.ultra ? 0 : ~torus::ChipMask{0xffff};
    parts.push_back(
        {.chips = chips, .faults = {.dead = dead, .links = FaultsOf(known.down, known.shape())}});
  }
  if (count < 2) return std::nullopt;
  collective::FormRequest request = kScored;
  request.banks = gang.FewestBanks();
  const auto time = collective::PredictOverDomains(parts, request, *gang.model);
  return time.ok() ? std::optional(*time) : std::nullopt;
}

std::string TimeText(Picoseconds time) {
  const auto nanoseconds = static_cast<double>(time.count()) / 1e3;
  if (nanoseconds < 1e6) return fmt::format("{:.1f}us", nanoseconds / 1e3);
  if (nanoseconds < 1e9) return fmt::format("{:.3f}ms", nanoseconds / 1e6);
  return fmt::format("{:.3f}s", nanoseconds / 1e9);
}

}  // namespace tahoma::controller
