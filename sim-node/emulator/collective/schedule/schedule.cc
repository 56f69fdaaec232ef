#include "sim-node/emulator/collective/schedule/schedule.h"

#include <algorithm>
#include <cstring>

#include "lib/base/check.h"

namespace tahoma::sim {

std::uint32_t Schedule::Add(Step step, const StepWork& of_step) {
  steps.push_back(std::move(step));
  work.push_back(of_step);
  return static_cast<std::uint32_t>(steps.size() - 1);
}

std::uint32_t Schedule::Append(Step step, const StepWork& of_step, ScheduledStep one) {
  one.step = Add(std::move(step), of_step);
  scheduled.push_back(std::move(one));
  return static_cast<std::uint32_t>(scheduled.size() - 1);
}

void Receive(const Send& send, ElementType type, ReduceOp op, std::span<std::byte> buffer,
             std::span<const std::byte> received) {
  TAHOMA_CHECK(received.size() == send.bytes && send.to_offset + send.bytes <= buffer.size());
  const std::span<std::byte> place = buffer.subspan(send.to_offset, send.bytes);
  if (send.action == Action::kReduce) {
    Combine(op, type, place, received);
  } else if (!received.empty()) {
    std::memcpy(place.data(), received.data(), received.size());
  }
}

void Execute(const Schedule& schedule, ElementType type, ReduceOp op,
             std::span<const ChipBuffer> buffers) {
  std::vector<std::span<std::byte>> of_chip;
  for (const ChipBuffer& buffer : buffers) {
    const auto chip = static_cast<std::size_t>(buffer.chip.value());
    of_chip.resize(std::max(of_chip.size(), chip + 1));
    of_chip[chip] = buffer.bytes;
  }
  const auto sent_by = [&](const Send& send) -> std::span<const std::byte> {
    const auto& from = of_chip.at(static_cast<std::size_t>(send.from.value()));
    TAHOMA_CHECK(send.offset + send.bytes <= from.size());
    return from.subspan(send.offset, send.bytes);
  };
  for (std::size_t index = 0; index < schedule.scheduled_count(); ++index) {
    std::vector<std::byte> snapshot;
    if (schedule.TakesSnapshot(index)) {
      ForEachSend(schedule, index, [&](const Send& send) {
        const auto sent = sent_by(send);
        snapshot.insert(snapshot.end(), sent.begin(), sent.end());
      });
    }
    std::size_t used = 0;
    ForEachSend(schedule, index, [&](const Send& send) {
      auto sent = sent_by(send);
      if (schedule.TakesSnapshot(index)) sent = std::span(snapshot).subspan(used, send.bytes);
      used += send.bytes;
      Receive(send, type, op, of_chip.at(static_cast<std::size_t>(send.to.value())), sent);
    });
  }
}

}  // namespace tahoma::sim
