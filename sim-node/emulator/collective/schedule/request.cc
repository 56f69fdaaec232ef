#include "sim-node/emulator/collective/schedule/request.h"

#include <bit>

namespace tahoma::sim {

std::uint64_t RanksOf(const std::vector<Member>& members) {
  std::uint64_t ranks = 0;
  for (const Member& member : members) ranks += static_cast<std::uint64_t>(member.ranks);
  return ranks;
}

std::vector<Member> MembersOf(torus::ChipMask chips, int ranks) {
  std::vector<Member> members;
  for (; chips != 0; chips &= chips - 1) {
    members.push_back({.chip = torus::ChipIndex(std::countr_zero(chips)), .ranks = ranks});
  }
  return members;
}

std::uint64_t ChipBufferBytes(const Request& request, int ranks) {
  if (!IsExchange(request.operation)) return request.bytes;
  return 2 * request.bytes * static_cast<std::uint64_t>(ranks);
}

}  // namespace tahoma::sim
