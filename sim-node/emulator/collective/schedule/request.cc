#include "sim-node/emulator/collective/schedule/request.h"

#include <algorithm>
#include <bit>

#include "lib/base/check.h"

namespace tahoma::sim {

std::uint64_t RanksOf(const std::vector<Member>& members) {
  std::uint64_t ranks = 0;
  for (const Member& member : members) ranks += static_cast<std::uint64_t>(member.ranks);
  return ranks;
}

Member PartOf(const Member& member, int ranks) {
  TAHOMA_CHECK(ranks >= 1 && ranks <= member.ranks);
  Member part = member;
  part.ranks = ranks;
  part.banks = (ranks * member.banks + member.ranks - 1) / member.ranks;
  return part;
}

int FewestBanks(const std::vector<Member>& members) {
  return std::ranges::min_element(members, {}, &Member::banks)->banks;
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
