// The waits of each instruction, without the waits that follow from other waits.
//
// An instruction begins after the engine's instruction before has ended (an asynchronous one: has
// begun), and after all instructions to wait for have ended.
//
// Thread safety: one thread per object.

#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "lib/isa/program.h"

namespace tahoma::isa {

class Waits {
 public:
  explicit Waits(std::size_t instructions);

  // Takes the instructions of a core in the order of the program; `self` is the number of each in
  // the program. All of `earlier` must have ended before the instruction begins. Returns the waits,
  // ascending: instructions of `earlier` whose end does not follow from the engine's order and from
  // the other waits.
  std::vector<std::uint32_t> Next(std::uint32_t self, const Instruction& instruction,
                                  std::vector<std::uint32_t>& earlier);

 private:
  static constexpr std::uint32_t kNever = UINT32_MAX;

  // By engine, the latest instruction i that is known to have begun, as 2i + 2, or ended, as
  // 2i + 3; 0 for none. When an instruction has begun, all before have ended, except
  // asynchronous ones.
  using Known = std::array<std::uint32_t, kEngines>;

  bool HasEnded(std::uint32_t earlier, const Known& known) const;

  std::vector<Known> known_;  // when the instruction begins
  // For an asynchronous one, by engine: the first instruction that waits for it.
  std::vector<std::array<std::uint32_t, kEngines>> first_waits_;
  std::vector<std::uint8_t> engines_;  // and whether the instruction is asynchronous: 8
  std::array<std::uint32_t, kEngines> last_ = {kNever, kNever, kNever, kNever, kNever};
};

}  // namespace tahoma::isa
