// A collective as data: who sends which bytes to whom, step by step.
//
//   Schedule schedule = ...;                           // algorithms.h builds it
//   Execute(schedule, type, op, buffers);              // really moves and reduces
//   TimeSchedules({&schedule}, links);                 // what it costs on the links
//
// A send takes bytes [offset, offset + bytes) of the sender's buffer to to_offset of the
// receiver's; the two differ only in exchanges (moves.h), elsewhere all buffers are laid out alike.
// A chip may send to itself: ranks that share it. Within a step all sends leave from what the
// buffers held before it: no chip sends bytes that the same step writes. Receipts are applied in
// the order of the list, which fixes the order of floating-point additions for every run and every
// way of distributing the work.
//
// Thread safety: values.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lib/torus/box.h"
#include "lib/torus/shape.h"
#include "sim-node/collective/element.h"
#include "sim-node/engine/virtual_time.h"

namespace tahoma::sim {

enum class Action : std::uint8_t { kReduce, kCopy };

struct Send {
  torus::ChipIndex from;
  torus::ChipIndex to;
  std::uint64_t offset = 0;
  std::uint64_t to_offset = 0;
  std::uint64_t bytes = 0;
  Action action = Action::kCopy;
  friend bool operator==(const Send&, const Send&) = default;
};

using Step = std::vector<Send>;

// Where a step is made besides where it is written: both numbers are added to those of its sends.
struct Copy {
  int chips = 0;
  std::uint64_t bytes = 0;
  friend bool operator==(const Copy&, const Copy&) = default;
};

// A step that is made in several places of a fabric and on several parts of the buffers at once,
// and when. What many units, chips or parts have in common is kept once.
struct Turn {
  std::uint32_t step = 0;                 // of Schedule::steps
  std::vector<std::uint32_t> after = {};  // turns that must have ended first; all stand earlier
  std::vector<Copy> copies = {{}};
  torus::ChipMask through = ~torus::ChipMask{0};  // chips of each unit that routes may use
};

struct Schedule {
  std::vector<Step> steps;
  // Empty: every step once, each after the one before it. Turns that may run at the same time touch
  // different bytes.
  std::vector<Turn> turns;
  // On-chip work of the ranks that share a chip, before the first and after the last step.
  VirtualDuration before{};
  VirtualDuration after{};
  // Chips that routes may use, unless there are turns.
  torus::ChipMask through = ~torus::ChipMask{0};

  std::size_t turn_count() const { return turns.empty() ? steps.size() : turns.size(); }
};

// Calls visit(send) for every send of a turn, in the order in which receipts are applied.
template <typename Visit>
void ForEachSend(const Schedule& schedule, std::size_t turn, const Visit& visit) {
  if (schedule.turns.empty()) {
    for (const Send& send : schedule.steps[turn]) visit(send);
    return;
  }
  const Turn& made = schedule.turns[turn];
  for (const Copy& copy : made.copies) {
    for (Send send : schedule.steps[made.step]) {
      send.from = torus::ChipIndex(send.from.value() + copy.chips);
      send.to = torus::ChipIndex(send.to.value() + copy.chips);
      send.offset += copy.bytes;
      send.to_offset += copy.bytes;
      visit(send);
    }
  }
}

// A chip's memory for one collective.
struct ChipBuffer {
  torus::ChipIndex chip;
  std::span<std::byte> bytes;
};

// Runs the schedule on buffers in this process; every chip of it must have one that is large
// enough.
void Execute(const Schedule& schedule, ElementType type, ReduceOp op,
             std::span<const ChipBuffer> buffers);

// Applies one received send to the receiver's bytes.
void Receive(const Send& send, ElementType type, ReduceOp op, std::span<std::byte> buffer,
             std::span<const std::byte> received);

}  // namespace tahoma::sim
