#include "lib/isa/waits.h"

#include <algorithm>
#include <functional>

#include "lib/isa/instruction.h"

namespace tahoma::isa {
namespace {

constexpr std::uint8_t kAsynchronousBit = 8;

std::size_t EngineAt(std::uint8_t engine) { return engine & 7U; }
constexpr std::uint32_t Begun(std::uint32_t instruction) { return 2 * instruction + 2; }
constexpr std::uint32_t Ended(std::uint32_t instruction) { return 2 * instruction + 3; }

}  // namespace

Waits::Waits(std::size_t instructions)
    : known_(instructions), first_waits_(instructions), engines_(instructions) {
  for (auto& waits : first_waits_) waits.fill(kNever);
}

bool Waits::HasEnded(std::uint32_t earlier, const Known& known) const {
  const std::uint8_t engine = engines_[earlier];
  if ((engine & kAsynchronousBit) == 0) return known[EngineAt(engine)] >= Ended(earlier);
  for (std::size_t at = 0; at < known.size(); ++at) {
    const std::uint32_t waiter = first_waits_[earlier][at];
    if (waiter != kNever && known[at] >= Begun(waiter)) return true;
  }
  return false;
}

std::vector<std::uint32_t> Waits::Next(std::uint32_t self, const Instruction& instruction,
                                       std::vector<std::uint32_t>& earlier) {
  const auto engine = static_cast<std::size_t>(instruction.engine);
  engines_[self] = static_cast<std::uint8_t>(instruction.engine);
  if (IsAsynchronous(instruction.opcode)) engines_[self] |= kAsynchronousBit;
  Known& known = known_[self];
  // `before` has begun, and has ended if the engine itself does the work.
  const auto learn = [&](std::uint32_t before) {
    const std::uint8_t by = engines_[before];
    for (std::size_t at = 0; at < known.size(); ++at) {
      known[at] = std::max(known[at], known_[before][at]);
    }
    std::uint32_t& there = known[EngineAt(by)];
    there = std::max(there, (by & kAsynchronousBit) == 0 ? Ended(before) : Begun(before));
  };
  if (last_[engine] != kNever) learn(last_[engine]);
  last_[engine] = self;
  // From the latest: a wait never implies a later one.
  std::ranges::sort(earlier, std::greater<>());
  std::vector<std::uint32_t> waits;
  for (const std::uint32_t before : earlier) {
    if (HasEnded(before, known) || (!waits.empty() && waits.back() == before)) continue;
    waits.push_back(before);
    learn(before);
    std::uint32_t& first = first_waits_[before][engine];
    if (first == kNever) first = self;
  }
  std::ranges::reverse(waits);
  return waits;
}

}  // namespace tahoma::isa
