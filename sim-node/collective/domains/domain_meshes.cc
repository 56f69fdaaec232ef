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

Send TwinMeshes::MakeOne(const TwinPiece& piece, bool from_first, bool to_first) const {
  return MakeSend(request_, Fabric::ChipOf(first_ + (from_first ? 0 : 1), piece.chip.value()),
                  Fabric::ChipOf(first_ + (to_first ? 0 : 1), piece.chip.value()), piece.elements,
                  Action::kCopy);
}

MeshPhase TwinMeshes::Make(const std::vector<TwinPiece>& pieces, bool from_first,
                           bool to_first) const {
  const DomainMesh::Stride by_home{.lengths = 1};
  MeshStep made{.step = {},
                .mesh = {.senders = from_first ? 1 : others_,
                         .receivers = to_first ? 1 : others_,
                         .by_sender = from_first ? DomainMesh::Stride{} : by_home,
                         .by_receiver = from_first ? by_home : DomainMesh::Stride{}}};
  for (TwinPiece piece : pieces) {
    piece.elements.end = piece.elements.begin + piece.elements.size() / grain();
    if (piece.elements.size() > 0) made.step.push_back(MakeOne(piece, from_first, to_first));
  }
  if (made.step.empty()) return {};
  return {std::move(made)};
}

MeshPhase TwinMeshes::ToHomes(const std::vector<TwinPiece>& pieces) const {
  MeshPhase phase = Make(pieces, /*from_first=*/true, /*to_first=*/false);
  MeshStep rest{.step = {}, .mesh = {.senders = 1, .receivers = others_}};
  for (TwinPiece piece : pieces) {
    piece.elements.begin = piece.elements.end - piece.elements.size() % grain();
    if (piece.elements.size() > 0) rest.step.push_back(MakeOne(piece, true, false));
  }
  if (!rest.step.empty()) phase.push_back(std::move(rest));
  return phase;
}

MeshPhase TwinMeshes::BetweenHomes(const std::vector<TwinPiece>& pieces) const {
  return others_ == 1 ? MeshPhase{} : Make(pieces, /*from_first=*/false, /*to_first=*/false);
}

MeshPhase TwinMeshes::FromHomes(const std::vector<TwinPiece>& pieces) const {
  for (const TwinPiece& piece : pieces) TAHOMA_CHECK(piece.elements.size() % grain() == 0);
  return Make(pieces, /*from_first=*/false, /*to_first=*/true);
}

}  // namespace tahoma::sim
