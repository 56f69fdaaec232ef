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

// What the chips add to a step beside its software and its links (chip_cost.h).
struct StepWork {
  VirtualDuration start{};   // before the departure
  VirtualDuration memory{};  // from the departure on, beside the links
  friend bool operator==(const StepWork&, const StepWork&) = default;
};

struct Schedule {
  std::vector<Step> steps;
  // Of each step; empty = none.
  std::vector<StepWork> work;
  // A step needs what the step `slices` before it has brought. With 2, even and odd steps move
  // different parts of the buffers: one starts up while the other's messages fly. They leave in
  // order, each as soon as the links are free of the one before.
  std::size_t slices = 1;
  // On-chip work of the ranks that share a chip, before the first and after the last step.
  VirtualDuration before{};
  VirtualDuration after{};
  // Chips that routes may use.
  torus::ChipMask through = ~torus::ChipMask{0};
};

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
