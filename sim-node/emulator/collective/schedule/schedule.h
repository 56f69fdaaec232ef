// A schedule is a collective as data: the sends of each step, with their bytes and chips.
//
//   Execute(schedule, type, op, buffers);              // really moves and reduces
//   TimeSchedules({&schedule}, links);                 // its time on the links
//
// A send takes bytes [offset, offset + bytes) of the sender's buffer to to_offset of the
// receiver's; the two differ only in exchanges (moves.h), elsewhere all buffers are laid out alike.
// A chip may send to itself: ranks that share it. Within a step all sends take what the buffers
// held before it: no chip sends bytes that the same step writes, except in scheduled steps with
// `snapshot`. Receipts are applied in the order of the list, which fixes the order of
// floating-point additions for every run and every distribution of the work.
//
// Thread safety: values.

#pragma once

#include <absl/status/statusor.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lib/numeric/element.h"
#include "lib/torus/box.h"
#include "lib/torus/shape.h"
#include "sim-node/emulator/engine/virtual_time.h"
#include "sim-node/emulator/link/fabric.h"
#include "sim-node/emulator/link/torus_links.h"

namespace tahoma::sim {

enum class Action : std::uint8_t { kReduce, kCopy };

struct Send {
  torus::ChipIndex from;
  torus::ChipIndex to;
  std::uint64_t offset = 0;
  std::uint64_t to_offset = 0;
  std::uint64_t bytes = 0;
  Action action = Action::kCopy;
  std::uint32_t mesh = 0;  // of Schedule::meshes, from 1; 0 = it is made between these chips only
  friend bool operator==(const Send&, const Send&) = default;
};

using Step = std::vector<Send>;

// The time that the chips add to a step beside its software and its links (chip_cost.h).
struct StepWork {
  VirtualDuration start{};   // before the departure
  VirtualDuration memory{};  // from the departure on, beside the links
  friend bool operator==(const StepWork&, const StepWork&) = default;
};

// Another place where a step is executed: both numbers are added to those of its sends.
struct Copy {
  int chips = 0;
  std::uint64_t bytes = 0;
  friend bool operator==(const Copy&, const Copy&) = default;
};

// Topology domains that make the same sends, each on bytes of its own.
struct MeshDomain {
  int domain = 0;
  std::uint64_t number = 0;  // by which strides are multiplied
  std::uint64_t among = 0;   // it sends to those only, and gets from those, that have the same
  friend bool operator==(const MeshDomain&, const MeshDomain&) = default;
};
using MeshDomains = std::vector<MeshDomain>;

// Whether one sends to the other in a mesh.
inline bool AreJoined(const MeshDomain& sender, const MeshDomain& receiver) {
  return sender.domain != receiver.domain && sender.among == receiver.among;
}

// The places of a send that many topology domains make to many others: each of the senders, between
// its own chip of the number in its domain and the receiver's, to each of the receivers but itself.
// For N domains that all send to each other this is one entry, not N^2.
struct DomainMesh {
  // Added to the places of a send in the buffers, for each of the number of the domain.
  struct Stride {
    std::uint64_t offset = 0;
    std::uint64_t to_offset = 0;
    friend bool operator==(const Stride&, const Stride&) = default;
  };
  std::shared_ptr<const MeshDomains> senders;
  std::shared_ptr<const MeshDomains> receivers;
  Stride by_sender{};
  Stride by_receiver{};
  friend bool operator==(const DomainMesh&, const DomainMesh&) = default;
};

// A scheduled step: a step that is executed in several places of a fabric and on several parts of
// the buffers at once, after the scheduled steps that it depends on. Work that many topology
// domains, chips or parts have in common is kept once.
struct ScheduledStep {
  std::uint32_t step = 0;                 // of Schedule::steps
  std::vector<std::uint32_t> after = {};  // scheduled steps that must end first; all stand earlier
  // An earlier one, too, for whose messages the links must be free again before this one leaves.
  std::optional<std::uint32_t> behind = std::nullopt;
  std::vector<Copy> copies = {{}};
  std::vector<std::uint64_t> parts = {0};  // each copy is made on each: bytes, added to its own
  torus::ChipMask through = ~torus::ChipMask{0};  // of each domain, for routes
  // Chips send bytes that the same scheduled step writes: all that is sent is taken before anything
  // is received.
  bool snapshot = false;
};

struct Schedule {
  std::vector<Step> steps;
  // The work of each step; empty = none.
  std::vector<StepWork> work;
  // Empty: every step once, each after the one before it. Scheduled steps that may run at the same
  // time touch different bytes.
  std::vector<ScheduledStep> scheduled;
  // On-chip work of the ranks that share a chip, before the first and after the last step.
  VirtualDuration before{};
  VirtualDuration after{};
  // Chips that routes may use, unless `scheduled` is given.
  torus::ChipMask through = ~torus::ChipMask{0};
  std::vector<DomainMesh> meshes = {};
  // The bytes of each chip's memory behind ChipBufferBytes in which it keeps data that it relays.
  std::uint64_t relay_bytes = 0;

  // Appends a step with its work, and returns its number.
  std::uint32_t Add(Step step, const StepWork& of_step);
  // Appends a step, and schedules it as `one` says but for its step. Returns the number of the
  // scheduled step.
  std::uint32_t Append(Step step, const StepWork& of_step, ScheduledStep one);

  bool TakesSnapshot(std::size_t index) const {
    return !scheduled.empty() && scheduled[index].snapshot;
  }
  const DomainMesh& MeshOf(const Send& send) const { return meshes[send.mesh - 1]; }
  std::size_t scheduled_count() const {
    return scheduled.empty() ? steps.size() : scheduled.size();
  }
};

// Calls visit(send) for every send that the mesh makes of one.
template <typename Visit>
void ForEachPair(const DomainMesh& mesh, const Send& one, const Visit& visit) {
  for (const MeshDomain& sender : *mesh.senders) {
    for (const MeshDomain& receiver : *mesh.receivers) {
      if (!AreJoined(sender, receiver)) continue;
      Send send = one;
      send.mesh = 0;
      send.from = Fabric::ChipOf(sender.domain, Fabric::LocalOf(one.from).value());
      send.to = Fabric::ChipOf(receiver.domain, Fabric::LocalOf(one.to).value());
      send.offset +=
          sender.number * mesh.by_sender.offset + receiver.number * mesh.by_receiver.offset;
      send.to_offset +=
          sender.number * mesh.by_sender.to_offset + receiver.number * mesh.by_receiver.to_offset;
      visit(send);
    }
  }
}

// Calls visit(send) for every send of a scheduled step, in the order in which receipts are applied.
template <typename Visit>
void ForEachSend(const Schedule& schedule, std::size_t index, const Visit& visit) {
  const auto visit_all = [&](const Send& send) {
    if (send.mesh == 0) {
      visit(send);
    } else {
      ForEachPair(schedule.MeshOf(send), send, visit);
    }
  };
  if (schedule.scheduled.empty()) {
    for (const Send& send : schedule.steps[index]) visit_all(send);
    return;
  }
  const ScheduledStep& scheduled = schedule.scheduled[index];
  for (const Copy& copy : scheduled.copies) {
    for (const std::uint64_t part : scheduled.parts) {
      for (Send send : schedule.steps[scheduled.step]) {
        send.from = torus::ChipIndex(send.from.value() + copy.chips);
        send.to = torus::ChipIndex(send.to.value() + copy.chips);
        send.offset += copy.bytes + part;
        send.to_offset += copy.bytes + part;
        visit_all(send);
      }
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
