#include "sim-node/collective/schedule.h"

#include <algorithm>
#include <cstring>

#include "lib/base/check.h"

namespace tahoma::sim {

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
  for (std::size_t turn = 0; turn < schedule.turn_count(); ++turn) {
    ForEachSend(schedule, turn, [&](const Send& send) {
      const auto& from = of_chip.at(static_cast<std::size_t>(send.from.value()));
      TAHOMA_CHECK(send.offset + send.bytes <= from.size());
      Receive(send, type, op, of_chip.at(static_cast<std::size_t>(send.to.value())),
              from.subspan(send.offset, send.bytes));
    });
  }
}

}  // namespace tahoma::sim
