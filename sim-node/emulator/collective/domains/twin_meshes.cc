#include "sim-node/emulator/collective/domains/twin_meshes.h"

#include <utility>

#include "lib/base/check.h"
#include "sim-node/emulator/collective/domains/padded_steps.h"

namespace tahoma::sim {
namespace {

std::shared_ptr<const MeshDomains> Numbered(const std::vector<int>& domains) {
  MeshDomains numbered;
  for (const int domain : domains) {
    numbered.push_back({.domain = domain, .number = numbered.size()});
  }
  return std::make_shared<const MeshDomains>(std::move(numbered));
}

}  // namespace

TwinMeshes::TwinMeshes(const Request& request, int own, const std::vector<int>& others)
    : request_(request), own_(Numbered({own})), others_(Numbered(others)) {
  TAHOMA_CHECK(!others.empty());
}

MeshSend TwinMeshes::Make(const TwinPiece& piece, const Domains& from, const Domains& to,
                          const DomainMesh::Stride& by_sender,
                          const DomainMesh::Stride& by_receiver) const {
  return {
      .send = MakeSend(request_, Fabric::ChipOf(from->front().domain, piece.chip.value()),
                       Fabric::ChipOf(to->front().domain, piece.chip.value()), piece.elements,
                       Action::kCopy),
      .mesh = {
          .senders = from, .receivers = to, .by_sender = by_sender, .by_receiver = by_receiver}};
}

DomainMesh::Stride TwinMeshes::PartOf(const TwinPiece& piece) const {
  const std::uint64_t bytes = BytesOf(request_, piece.elements.size() / grain());
  return {.offset = bytes, .to_offset = bytes};
}

TwinPiece TwinMeshes::FirstOf(const TwinPiece& piece) const {
  const std::uint64_t begin = piece.elements.begin;
  return {.chip = piece.chip,
          .elements = {.begin = begin, .end = begin + piece.elements.size() / grain()}};
}

std::vector<MeshSend> TwinMeshes::ToHomes(const std::vector<TwinPiece>& pieces) const {
  std::vector<MeshSend> sends;
  for (const TwinPiece& piece : pieces) {
    const TwinPiece first = FirstOf(piece);
    if (first.elements.size() > 0) {
      sends.push_back(Make(first, own_, others_, {}, PartOf(piece)));
    }
    const std::uint64_t left = piece.elements.size() % grain();
    if (left == 0) continue;
    const TwinPiece rest{
        .chip = piece.chip,
        .elements = {.begin = piece.elements.end - left, .end = piece.elements.end}};
    sends.push_back(Make(rest, own_, others_, {}, {}));
  }
  return sends;
}

std::vector<MeshSend> TwinMeshes::BetweenHomes(const std::vector<TwinPiece>& pieces) const {
  std::vector<MeshSend> sends;
  if (grain() == 1) return sends;
  for (const TwinPiece& piece : pieces) {
    const TwinPiece first = FirstOf(piece);
    if (first.elements.size() > 0) {
      sends.push_back(Make(first, others_, others_, PartOf(piece), {}));
    }
  }
  return sends;
}

std::vector<MeshSend> TwinMeshes::FromHomes(const std::vector<TwinPiece>& pieces) const {
  std::vector<MeshSend> sends;
  for (const TwinPiece& piece : pieces) {
    TAHOMA_CHECK(piece.elements.size() % grain() == 0);
    const TwinPiece first = FirstOf(piece);
    if (first.elements.size() > 0) {
      sends.push_back(Make(first, others_, own_, PartOf(piece), {}));
    }
  }
  return sends;
}

}  // namespace tahoma::sim
