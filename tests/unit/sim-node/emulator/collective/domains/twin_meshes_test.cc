// Meshes between twins: that every piece comes to every other domain once, from who has it, and
// back once, and that NICs of all domains carry as much as the trees were packed for.

#include "sim-node/emulator/collective/domains/twin_meshes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "lib/base/rng.h"

namespace tahoma::sim {
namespace {

constexpr std::uint64_t kElement = 4;  // bytes

Request Broadcast() {
  return {.operation = Operation::kBroadcast, .bytes = 1 << 20, .type = ElementType::kInt32};
}

// Random domains without one's own.
std::vector<int> RandomOthers(Rng& rng, int own) {
  std::set<int> others;
  const std::uint64_t count = 1 + rng.Below(6);
  while (others.size() < count) {
    const auto domain = static_cast<int>(rng.Below(9));
    if (domain != own) others.insert(domain);
  }
  return {others.begin(), others.end()};
}

// Pieces of some chips, one after the other in the buffer.
std::vector<TwinPiece> RandomPieces(Rng& rng, std::uint64_t multiple_of) {
  std::vector<TwinPiece> pieces;
  std::uint64_t begin = rng.Below(100);
  for (std::uint64_t i = 1 + rng.Below(5); i > 0; --i) {
    const std::uint64_t size = rng.Below(20) * multiple_of;
    pieces.push_back({.chip = torus::ChipIndex(static_cast<std::uint16_t>(rng.Below(16))),
                      .elements = {.begin = begin, .end = begin + size}});
    begin += size + rng.Below(3);
  }
  return pieces;
}

// An element of a piece at one chip.
using Held = std::pair<int, std::uint64_t>;  // chip in the fabric, element

// Makes the phase. Each sender must have what it sends; returns how often each element came.
std::map<Held, int> Make(const std::vector<MeshSend>& sends, const std::set<Held>& held) {
  std::map<Held, int> came;
  for (const MeshSend& made : sends) {
    ForEachPair(made.mesh, made.send, [&](const Send& send) {
      EXPECT_EQ(send.offset, send.to_offset);
      EXPECT_EQ(Fabric::LocalOf(send.from), Fabric::LocalOf(send.to));
      for (std::uint64_t at = send.offset / kElement; at < (send.offset + send.bytes) / kElement;
           ++at) {
        EXPECT_TRUE(held.contains({send.from.value(), at}));
        ++came[{send.to.value(), at}];
      }
    });
  }
  return came;
}

std::set<Held> HeldIn(const std::vector<int>& domains, const std::vector<TwinPiece>& pieces) {
  std::set<Held> held;
  for (const int domain : domains) {
    for (const TwinPiece& piece : pieces) {
      for (std::uint64_t at = piece.elements.begin; at < piece.elements.end; ++at) {
        held.insert({Fabric::ChipOf(domain, piece.chip.value()).value(), at});
      }
    }
  }
  return held;
}

void ExpectOnce(const std::map<Held, int>& came, const std::set<Held>& wanted) {
  EXPECT_EQ(came.size(), wanted.size());
  for (const auto& [held, times] : came) {
    EXPECT_TRUE(wanted.contains(held));
    EXPECT_EQ(times, 1);
  }
}

TEST(TwinMeshesTest, EveryPieceComesToEveryOtherDomainOnceAndBackOnce) {
  const Request request = Broadcast();
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    const auto own = static_cast<int>(rng.Below(9));
    const std::vector<int> others = RandomOthers(rng, own);
    const TwinMeshes meshes(request, own, others);
    const std::vector<TwinPiece> pieces = RandomPieces(rng, /*multiple_of=*/1);
    const std::map<Held, int> first = Make(meshes.ToHomes(pieces), HeldIn({own}, pieces));
    std::set<Held> at_homes;
    for (const auto& [held, times] : first) at_homes.insert(held);
    std::map<Held, int> all = Make(meshes.BetweenHomes(pieces), at_homes);
    for (const auto& [held, times] : first) all[held] += times;
    ExpectOnce(all, HeldIn(others, pieces));
    const std::vector<TwinPiece> even = RandomPieces(rng, meshes.grain());
    ExpectOnce(Make(meshes.FromHomes(even), HeldIn(others, even)), HeldIn({own}, even));
    if (HasFailure()) break;
  }
}

// Bytes that NICs of a chip send and receive in the phase, by domain.
std::map<int, std::pair<std::uint64_t, std::uint64_t>> LoadsOf(const std::vector<MeshSend>& sends) {
  std::map<int, std::pair<std::uint64_t, std::uint64_t>> loads;
  for (const MeshSend& made : sends) {
    ForEachPair(made.mesh, made.send, [&](const Send& send) {
      loads[Fabric::DomainOf(send.from)].first += send.bytes;
      loads[Fabric::DomainOf(send.to)].second += send.bytes;
    });
  }
  return loads;
}

TEST(TwinMeshesTest, NicsCarryAPieceOnceAndThoseOfHomesShareTheRest) {
  const Request request = Broadcast();
  for (const std::vector<int>& others : {std::vector{1}, {1, 2, 3}, {0, 1, 4, 6}}) {
    const TwinMeshes meshes(request, /*own=*/5, others);
    const std::uint64_t bytes = 12 * 7 * kElement;
    const std::vector<TwinPiece> pieces = {
        {.chip = torus::ChipIndex(3), .elements = {.begin = 0, .end = bytes / kElement}}};
    const std::uint64_t count = others.size();
    auto to_homes = LoadsOf(meshes.ToHomes(pieces));
    auto between = LoadsOf(meshes.BetweenHomes(pieces));
    auto back = LoadsOf(meshes.FromHomes(pieces));
    EXPECT_EQ(to_homes[5], (std::pair{bytes, std::uint64_t{0}}));
    EXPECT_EQ(back[5], (std::pair{std::uint64_t{0}, bytes}));
    for (const int domain : others) {
      EXPECT_EQ(to_homes[domain].second, bytes / count);
      EXPECT_EQ(between[domain].first, bytes / count * (count - 1));
      EXPECT_EQ(between[domain].second, bytes / count * (count - 1));
      EXPECT_EQ(back[domain].first, bytes / count);
    }
  }
}

TEST(TwinMeshesTest, APieceIsOneMeshHoweverManyHomesThereAre) {
  const Request request = Broadcast();
  std::vector<int> others;
  for (int domain = 1; domain < 800; domain += 2) others.push_back(domain);
  const TwinMeshes meshes(request, 0, others);
  const std::vector<TwinPiece> pieces = {
      {.chip = torus::ChipIndex(0), .elements = {.begin = 0, .end = 10 * meshes.grain()}}};
  EXPECT_EQ(meshes.ToHomes(pieces).size(), 1U);
  EXPECT_EQ(meshes.BetweenHomes(pieces).size(), 1U);
  EXPECT_EQ(meshes.FromHomes(pieces).size(), 1U);
}

}  // namespace
}  // namespace tahoma::sim
