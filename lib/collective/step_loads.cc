#include "lib/collective/step_loads.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "lib/base/check.h"
#include "lib/collective/channels.h"
#include "lib/collective/masks.h"
#include "lib/collective/routes.h"
#include "lib/torus/path.h"

namespace tahoma::collective {
namespace {

using torus::ChipIndex;
using torus::ChipMask;

// Returns the picoseconds on that link for each byte of the buffer, of which a message has a part.
double OnLink(const MessageLoad::Fullest& link, double part) {
  return static_cast<double>(link.messages) * part * 1e12 / static_cast<double>(link.rate);
}

// Returns the load of a step in which each message has this part of the buffer.
StepLoad LoadOf(const MessageLoad& load, double part) {
  return {.link = OnLink(load.fullest(), part), .hops = load.longest()};
}

// The same of few messages, whose hops are looked at.
StepLoad LoadOfShifts(MessageLoad& load, const std::vector<std::vector<std::uint8_t>>& orders) {
  std::vector<std::pair<std::uint8_t, std::uint8_t>> messages;
  for (const std::vector<std::uint8_t>& order : orders) {
    for (std::size_t i = 0; i < order.size(); ++i) {
      const std::uint8_t next = order[(i + 1) % order.size()];
      if (next != order[i]) messages.emplace_back(order[i], next);
    }
  }
  const MessageLoad::Ends ends = load.LastOf(messages);
  return {.link = OnLink(ends.fullest, 1),
          .hops = ends.hops,
          .far_link = OnLink(ends.of_longest, 1),
          .far_hops = load.longest()};
}

std::vector<std::uint8_t> OrderOf(const Ring& ring) {
  std::vector<std::uint8_t> order;
  for (const ChipIndex chip : ring) order.push_back(static_cast<std::uint8_t>(chip.value()));
  return order;
}

std::vector<std::uint8_t> Ascending(ChipMask chips) {
  std::vector<std::uint8_t> order;
  for (ChipMask left = chips; left != 0; left &= left - 1) {
    order.push_back(static_cast<std::uint8_t>(Lowest(left)));
  }
  return order;
}

// Whether some link between the chips is slower than the fastest of its axis.
bool HasDamage(ChipMask chips, const DomainLinks& links) {
  const DomainLinks whole = links.Repaired();
  for (ChipMask left = chips; left != 0; left &= left - 1) {
    for (int port = 0; port < kPortsPerChip; ++port) {
      const auto arc = static_cast<Arc>(Lowest(left) * kPortsPerChip + port);
      if (whole.rate(arc) == 0 || (chips & Bit(links.to(arc))) == 0) continue;
      if (links.rate(arc) != whole.rate(arc)) return true;
    }
  }
  return false;
}

}  // namespace

SetLoads::SetLoads(ChipMask chips, const DomainLinks& links, ChipIndex first)
    : chips_(chips),
      links_(links),
      first_(first),
      count_(CountOf(chips)),
      through_(ThroughOf(links, chips)),
      box_(BoxOf(links.torus(), chips)),
      damaged_(HasDamage(through_, links)) {}

const std::vector<Ring>& SetLoads::Rings() const {
  if (!rings_) rings_ = RingsOf(links_, chips_, first_);
  return *rings_;
}

SetLoads::Kept SetLoads::MakeMesh() const {
  MessageLoad load(links_, through_);
  if (!load.AddAllPairs(chips_)) return std::nullopt;
  const auto chips = static_cast<double>(count_);
  StepLoad step = LoadOf(load, 1 / chips);
  step.sent = step.received = (chips - 1) / chips;
  step.destinations = count_ - 1;
  return StepLoads{step};
}

StepLoads SetLoads::ThinMesh(bool gathers, std::uint64_t elements) const {
  TAHOMA_CHECK(elements < count_);
  ChipMask owners = 0;
  std::uint64_t place = 0;
  for (ChipMask left = chips_; left != 0; left &= left - 1) {
    const bool owns = elements * (place + 1) / count_ > elements * place / count_;
    if (owns) owners |= left & (~left + 1);
    ++place;
  }
  MessageLoad load(links_, through_);
  for (ChipMask left = gathers ? owners : chips_; left != 0; left &= left - 1) {
    const bool reached = load.Add(Lowest(left), gathers ? chips_ : owners);
    TAHOMA_CHECK(reached);  // as by the mesh of all
  }
  StepLoad step = LoadOf(load, 1 / static_cast<double>(std::max<std::uint64_t>(elements, 1)));
  step.sent = step.received = 1;
  step.destinations = gathers ? count_ - 1 : std::min(elements, count_ - 1);
  return {step};
}

SetLoads::Kept SetLoads::MakeHalving() const {
  if (box_ == nullptr) return std::nullopt;
  const std::vector<ChipIndex> chips = torus::BoxChips(*box_, links_.torus());
  const std::vector<Channel> channels = BalancedChannels(*box_, links_.torus());
  const auto steps = static_cast<std::size_t>(std::countr_zero(chips.size()));
  StepLoads loads;
  double part = 1;  // of the buffer, that a chip sends in a step
  for (std::size_t step = 0; step < steps; ++step) {
    part /= 2;
    MessageLoad load(links_, through_);
    ChipMask dimensions = 0;
    for (const Channel& channel : channels) {
      const std::size_t across = std::size_t{1} << channel[step];
      dimensions |= across;
      for (std::size_t from = 0; from < chips.size(); ++from) {
        if (!load.Add(chips[from].value(), MaskOf(chips[from ^ across]))) return std::nullopt;
      }
    }
    StepLoad& made = loads.emplace_back(LoadOf(load, part / static_cast<double>(channels.size())));
    made.sent = made.received = part;
    made.destinations = CountOf(dimensions);
  }
  return loads;
}

SetLoads::Kept SetLoads::MakeAlongRings() const {
  MessageLoad load(links_, through_);
  for (const Ring& ring : Rings()) {
    std::vector<std::uint8_t> order = OrderOf(ring);
    if (!load.AddShift(order)) return std::nullopt;
    std::reverse(order.begin(), order.end());
    if (!load.AddShift(order)) return std::nullopt;
  }
  const double block = 1 / static_cast<double>(count_);
  const auto channels = static_cast<double>(2 * Rings().size());
  StepLoad step = LoadOf(load, block / channels);
  step.count = count_ - 1;
  step.sent = step.received = block;
  step.destinations = std::min(count_ - 1, 2 * std::uint64_t{Rings().size()});
  return StepLoads{step};
}

const StepLoads* SetLoads::Mesh() const {
  if (!mesh_) mesh_ = MakeMesh();
  return *mesh_ ? &**mesh_ : nullptr;
}
const StepLoads* SetLoads::Halving() const {
  if (!halving_) halving_ = MakeHalving();
  return *halving_ ? &**halving_ : nullptr;
}
const StepLoads* SetLoads::AlongRings() const {
  if (!ring_) ring_ = MakeAlongRings();
  return *ring_ ? &**ring_ : nullptr;
}

const StepLoads* SetLoads::FromRoot(bool whole) const {
  std::optional<Kept>& kept = from_root_[whole ? 1 : 0];
  if (!kept) {
    MessageLoad load(links_, through_);
    const double part = whole ? 1 : 1 / static_cast<double>(count_);
    kept.emplace();
    if (load.Add(first_.value(), chips_)) {
      StepLoad step = LoadOf(load, part);
      step.sent = static_cast<double>(count_ - 1) * part;
      step.destinations = count_ - 1;
      *kept = StepLoads{step};
    }
  }
  return *kept ? &**kept : nullptr;
}

void SetLoads::ComputeAll() const {
  for (const StepLoads* const loads :
       {Mesh(), Halving(), AlongRings(), FromRoot(/*whole=*/false), FromRoot(/*whole=*/true)}) {
    TAHOMA_CHECK(loads != nullptr);  // of a healthy box
  }
  Rings();
}

std::optional<StepLoad> SetLoads::Permute(std::uint64_t ranks) const {
  MessageLoad load(links_, through_);
  const std::size_t rings = Rings().size();
  std::vector<std::vector<std::uint8_t>> orders;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    std::vector<std::uint8_t> order = OrderOf(Rings()[rank % rings]);
    if (rank / rings % 2 == 1) std::reverse(order.begin(), order.end());
    if (!load.AddShift(order)) return std::nullopt;
    orders.push_back(std::move(order));
  }
  return LoadOfShifts(load, orders);
}

std::optional<StepLoad> SetLoads::Exchange(Operation operation, int ranks) const {
  const auto all = static_cast<std::uint64_t>(ranks);
  StepLoad step;
  if (operation == Operation::kAllToAll) {
    const StepLoads* const mesh = Mesh();
    if (mesh == nullptr) return std::nullopt;
    step = mesh->front();
    step.link *= static_cast<double>(all);
    step.far_link *= static_cast<double>(all);
    step.destinations = count_ - 1;
  } else if (operation == Operation::kPermute) {
    auto permuted = Permute(all);
    if (!permuted) return std::nullopt;
    step = *permuted;
    step.destinations = std::min<std::uint64_t>(count_ - 1, std::min(all, 2 * Rings().size()));
  } else {
    MessageLoad load(links_, through_);
    const std::vector<std::uint8_t> order = Ascending(chips_);
    if (!load.AddShift(order)) return std::nullopt;
    step = LoadOfShifts(load, {order});
    step.destinations = count_ > 1 ? 1U : 0U;
  }
  // Ranks on one chip copy beside the messages.
  step.sent = static_cast<double>(all);
  step.received = static_cast<double>(all);
  return step;
}

}  // namespace tahoma::collective
