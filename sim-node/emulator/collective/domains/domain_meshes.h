// The messages between topology domains of which many are alike: one message for each two kinds of
// domains stands for the messages of all domains of the kinds (DomainMesh).
//
// Every domain is the home of a part of the reduced or spread buffer; homes of one kind have parts
// of one length, one after the other.
//
// Scope: internal to composition.h. The same bytes on every NIC as InterAlgorithm::kMesh.
//
// Thread safety: a DomainMeshes belongs to one thread; the rest are values and pure functions.

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "sim-node/emulator/collective/algorithms/algorithms.h"
#include "sim-node/emulator/collective/domains/domains.h"
#include "sim-node/emulator/collective/domains/hand_over.h"
#include "sim-node/emulator/collective/domains/region.h"
#include "sim-node/emulator/collective/schedule/request.h"
#include "sim-node/emulator/collective/schedule/schedule.h"

namespace tahoma::sim {

// Returns the groups in kinds that do the same between the domains: with the same chips and NICs,
// and blocks as far from each other if blocks have homes. The first group of a broadcast is a kind
// of its own. By first group.
std::vector<DomainSet::Kind> MeshKindsOf(const Request& request, const Layout& layout,
                                         const DomainSet& set);

// Parts of a buffer that have homes in domains of one kind.
struct MeshHome {
  Region region;         // of the domain with number 0
  std::size_t kind = 0;  // of the domains
  std::shared_ptr<const MeshDomains> domains;
  std::uint64_t stride = 0;  // elements between the regions of two numbers
  // By kind of domains: the chips that have the parts of the region inside, and that answer for
  // them outside.
  std::vector<std::vector<OutsidePart>> parts;
  // By piece of the region: the place that answers for it in all kinds; empty if there is none.
  std::vector<std::size_t> places;

  // The begins of the regions of all domains, counted from that of number 0, in elements.
  std::vector<std::uint64_t> Starts() const;
};

// A step inside all groups of a kind.
struct HandOverStep {
  Step step;
  torus::ChipMask through = 0;
  std::vector<Copy> copies;
  std::vector<std::uint64_t> parts;
};

struct MeshSend {
  Send send;
  DomainMesh mesh;
};
struct MeshStep {
  std::vector<MeshSend> sends;
  std::vector<Copy> copies;
  std::vector<std::uint64_t> parts = {0};
};
// Steps that are made at the same time.
using MeshPhase = std::vector<MeshStep>;

// Keeps each mesh of a schedule once.
class MeshNumbers {
 public:
  // Returns the number of the mesh among these, from 1, to which it is added if it is new.
  std::uint32_t Of(const DomainMesh& mesh, std::vector<DomainMesh>& meshes);

 private:
  std::map<std::tuple<const MeshDomains*, const MeshDomains*, std::uint64_t, std::uint64_t>,
           std::uint32_t>
      numbers_;
};

class DomainMeshes {
 public:
  // All outlive the object.
  DomainMeshes(const Request& request, const DomainSet& set, std::vector<DomainSet::Kind> kinds);

  const std::vector<DomainSet::Kind>& kinds() const { return kinds_; }
  // Whether the same place answers for the same block in all domains.
  bool even() const { return even_; }

  // Cuts what has no homes of its own among the domains, by their weights (of a group by itself,
  // which all of a kind have). Chips have equal parts inside their domains.
  std::vector<MeshHome> HomesIn(const Extent& elements, const std::vector<int>& weights);
  // The domains of the kind, numbered by these.
  std::shared_ptr<const MeshDomains> Numbered(std::size_t kind,
                                              const std::vector<std::uint64_t>& numbers);

  // What the domains of the kind hand over inside of the homes' parts: from chips that have them
  // to those that answer for them, or back: their own parts, the others' (then perhaps their own,
  // too), or both. All at the same time.
  std::vector<HandOverStep> HandOversOf(const std::vector<MeshHome>& homes, std::size_t kind,
                                        bool back, bool own, bool others) const;
  // The messages of the request between the domains, from phase to phase.
  std::vector<MeshPhase> PhasesOf(const std::vector<MeshHome>& homes);

 private:
  // Elements that each kind of domains has in one place.
  struct Segment {
    Extent elements;
    std::vector<std::size_t> owners;  // by kind
  };
  std::vector<Segment> SegmentsOf(const Extent& elements) const;
  std::shared_ptr<const MeshDomains> Some(std::size_t kind, std::size_t first, std::size_t count);
  MeshHome HomeOf(const std::vector<Segment>& segments, std::uint64_t begin, std::uint64_t length,
                  std::size_t kind);
  void CutAmong(const std::vector<Segment>& segments, const std::vector<int>& weights,
                std::vector<MeshHome>& homes);

  std::vector<HandOverStep> PlacesOf(const MeshHome& home, std::size_t kind, bool own,
                                     bool others) const;

  void Append(const MeshHome& home, std::size_t kind, bool to_home, Action action,
              MeshPhase& phase);
  void AppendSend(const MeshHome& home, std::size_t kind, bool to_home, Action action,
                  const Extent& elements, std::size_t place, std::size_t place_at_home,
                  MeshStep& step);

  const Request& request_;
  const DomainSet& set_;
  const std::vector<DomainSet::Kind> kinds_;
  bool even_ = true;
  // Lists of domains by kind, first and count.
  std::map<std::tuple<std::size_t, std::size_t, std::size_t>, std::shared_ptr<const MeshDomains>>
      some_;
  std::map<std::pair<std::size_t, std::vector<std::uint64_t>>, std::shared_ptr<const MeshDomains>>
      numbered_;
};

}  // namespace tahoma::sim
