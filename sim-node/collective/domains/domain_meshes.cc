#include "sim-node/collective/domains/domain_meshes.h"

#include <utility>

#include "lib/base/check.h"
#include "sim-node/collective/domains/padded_steps.h"
#include "sim-node/link/fabric.h"

namespace tahoma::sim {
namespace {

// Topology domains in a row, counted from the first of all.
struct Domains {
  int first = 0;
  int count = 0;
};

class Mesher {
 public:
  Mesher(const Request& request, torus::ChipIndex chip) : request_(request), chip_(chip) {}

  // Bytes move on by the strides, in elements, for each domain further that sends or receives.
  MeshStep Make(const Domains& from, const Domains& to, const Extent& elements, Action action,
                std::uint64_t by_sender, std::uint64_t by_receiver) const {
    const auto stride = [&](std::uint64_t count) {
      const std::uint64_t bytes = BytesOf(request_, count);
      return DomainMesh::Stride{.offset = bytes, .to_offset = bytes};
    };
    return {.step = {MakeSend(request_, ChipIn(from), ChipIn(to), elements, action)},
            .mesh = {.senders = from.count,
                     .receivers = to.count,
                     .by_sender = stride(by_sender),
                     .by_receiver = stride(by_receiver)}};
  }

 private:
  torus::ChipIndex ChipIn(const Domains& domains) const {
    return torus::ChipIndex(chip_.value() + domains.first * Fabric::kChipsPerDomain);
  }

  const Request& request_;
  const torus::ChipIndex chip_;
};

// A block in parts of one length with a home each, and a shorter one that is left.
struct Homes {
  Domains whole;
  std::uint64_t length = 0;  // of their parts
  Extent first;              // the part of the first
  Extent last;               // the short one, whose home is the next domain; may be empty
  Domains of_last() const { return {.first = whole.first + whole.count, .count = 1}; }
};

Homes HomesOf(const Domains& domains, const Extent& block) {
  const auto count = static_cast<std::uint64_t>(domains.count);
  const std::uint64_t length = (block.size() + count - 1) / count;
  const std::uint64_t whole = block.size() / length;
  return {.whole = {.first = domains.first, .count = static_cast<int>(whole)},
          .length = length,
          .first = {.begin = block.begin, .end = block.begin + length},
          .last = {.begin = block.begin + whole * length, .end = block.end}};
}

MeshPhase ToHomes(const Mesher& mesher, const Domains& from, const Homes& homes, Action action) {
  MeshPhase phase = {mesher.Make(from, homes.whole, homes.first, action, 0, homes.length)};
  if (homes.last.size() > 0) {
    phase.push_back(mesher.Make(from, homes.of_last(), homes.last, action, 0, 0));
  }
  return phase;
}

MeshPhase FromHomes(const Mesher& mesher, const Homes& homes, const Domains& to) {
  MeshPhase phase = {mesher.Make(homes.whole, to, homes.first, Action::kCopy, homes.length, 0)};
  if (homes.last.size() > 0) {
    phase.push_back(mesher.Make(homes.of_last(), to, homes.last, Action::kCopy, 0, 0));
  }
  return phase;
}

}  // namespace

std::vector<MeshPhase> MeshPhasesOf(const Request& request, torus::ChipIndex chip, int domains,
                                    const Extent& block, std::uint64_t stride) {
  TAHOMA_CHECK(domains > 1 && block.size() > 0);
  const Mesher mesher(request, chip);
  const Domains all{.first = 0, .count = domains};
  if (request.operation == Operation::kAllGather) {
    return {{mesher.Make(all, all, block, Action::kCopy, stride, 0)}};
  }
  if (request.operation == Operation::kReduceScatter) {
    return {{mesher.Make(all, all, block, Action::kReduce, 0, stride)}};
  }
  if (request.operation == Operation::kAllReduce) {
    const Homes homes = HomesOf(all, block);
    return {ToHomes(mesher, all, homes, Action::kReduce), FromHomes(mesher, homes, all)};
  }
  TAHOMA_CHECK(request.operation == Operation::kBroadcast);
  const Domains others{.first = 1, .count = domains - 1};
  const Homes homes = HomesOf(others, block);
  std::vector<MeshPhase> phases = {ToHomes(mesher, {.first = 0, .count = 1}, homes, Action::kCopy)};
  if (others.count > 1) phases.push_back(FromHomes(mesher, homes, others));
  return phases;
}

std::vector<DomainRun> RunsOf(const std::vector<int>& domains) {
  std::vector<DomainRun> runs;
  for (const int domain : domains) {
    if (runs.empty() || domain != runs.back().first + runs.back().count) {
      runs.push_back({.first = domain, .count = 0});
    }
    ++runs.back().count;
  }
  return runs;
}

TwinMeshes::TwinMeshes(const Request& request, int own, const std::vector<int>& others)
    : request_(request), own_(own), others_(others) {
  TAHOMA_CHECK(!others.empty());
  std::uint64_t before = 0;
  for (const DomainRun& run : RunsOf(others)) {
    homes_.push_back({.run = run, .number = before});
    before += static_cast<std::uint64_t>(run.count);
  }
}

// The parts of these homes, of which `from` or `to` are the domains.
MeshStep TwinMeshes::Make(const std::vector<TwinPiece>& pieces, const DomainRun& from,
                          const DomainRun& to, const Homes& homes) const {
  const DomainMesh::Stride by_home{.lengths = 1};
  const bool sent = from.first == homes.run.first;
  MeshStep made{.step = {}, .mesh = {.senders = from.count, .receivers = to.count}};
  (sent ? made.mesh.by_sender : made.mesh.by_receiver) = by_home;
  for (const TwinPiece& piece : pieces) {
    const std::uint64_t length = piece.elements.size() / grain();
    if (length == 0) continue;
    const std::uint64_t begin = piece.elements.begin + homes.number * length;
    made.step.push_back(MakeSend(request_, Fabric::ChipOf(from.first, piece.chip.value()),
                                 Fabric::ChipOf(to.first, piece.chip.value()),
                                 {.begin = begin, .end = begin + length}, Action::kCopy));
  }
  return made;
}

MeshPhase TwinMeshes::ToHomes(const std::vector<TwinPiece>& pieces) const {
  const DomainRun own{.first = own_, .count = 1};
  MeshPhase phase;
  for (const Homes& homes : homes_) phase.push_back(Make(pieces, own, homes.run, homes));
  for (const Homes& homes : homes_) {
    MeshStep& rest = phase.emplace_back();
    rest.mesh.receivers = homes.run.count;
    for (const TwinPiece& piece : pieces) {
      const std::uint64_t left = piece.elements.size() % grain();
      if (left == 0) continue;
      rest.step.push_back(MakeSend(request_, Fabric::ChipOf(own_, piece.chip.value()),
                                   Fabric::ChipOf(homes.run.first, piece.chip.value()),
                                   {.begin = piece.elements.end - left, .end = piece.elements.end},
                                   Action::kCopy));
    }
  }
  std::erase_if(phase, [](const MeshStep& made) { return made.step.empty(); });
  return phase;
}

MeshPhase TwinMeshes::BetweenHomes(const std::vector<TwinPiece>& pieces) const {
  MeshPhase phase;
  for (const Homes& from : homes_) {
    for (const Homes& to : homes_) {
      const bool itself = from.number == to.number && from.run.count == 1;
      if (!itself) phase.push_back(Make(pieces, from.run, to.run, from));
    }
  }
  std::erase_if(phase, [](const MeshStep& made) { return made.step.empty(); });
  return phase;
}

MeshPhase TwinMeshes::FromHomes(const std::vector<TwinPiece>& pieces) const {
  const DomainRun own{.first = own_, .count = 1};
  for (const TwinPiece& piece : pieces) TAHOMA_CHECK(piece.elements.size() % grain() == 0);
  MeshPhase phase;
  for (const Homes& homes : homes_) phase.push_back(Make(pieces, homes.run, own, homes));
  std::erase_if(phase, [](const MeshStep& made) { return made.step.empty(); });
  return phase;
}

}  // namespace tahoma::sim
