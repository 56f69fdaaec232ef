#include "sim-node/emulator/collective/domains/twin_broadcast.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "lib/base/check.h"
#include "lib/base/status.h"
#include "lib/collective/twin_trees.h"
#include "sim-node/emulator/collective/algorithms/chip_set.h"
#include "sim-node/emulator/collective/domains/domain_meshes.h"
#include "sim-node/emulator/collective/domains/padded_steps.h"
#include "sim-node/emulator/collective/domains/region.h"
#include "sim-node/emulator/collective/domains/twin_meshes.h"
#include "sim-node/emulator/collective/plan/bound.h"
#include "sim-node/emulator/collective/plan/question.h"

namespace tahoma::sim {
namespace {

using collective::Branch;
using collective::kOutside;
using collective::TwinTree;

// Numbers of scheduled steps that must have ended.
using Ends = std::vector<std::uint32_t>;

// The links or NICs that a step uses.
enum class Leg : std::uint8_t { kOwn, kToHomes, kBetweenHomes, kTwins, kBack };
constexpr std::size_t kLegs = 5;

// The cuts of the buffer: chunk c is elements [c * length, (c + 1) * length), and the last one is
// what is left.
struct Chunks {
  std::uint64_t count = 1;
  std::uint64_t length = 0;  // in elements
  std::uint64_t stripes = 1;
};

Chunks ChunksOf(const collective::TwinCourse& course, std::uint64_t elements, std::uint64_t grain) {
  const std::uint64_t wanted = course.chunks * grain;
  const std::uint64_t length = (elements + wanted - 1) / wanted * grain;
  return {.count = (elements + length - 1) / length, .length = length, .stripes = course.stripes};
}

// The pieces of a chunk: one for each tree, in proportion to the rates.
class Pieces {
 public:
  // All of them but the last tree's of the last chunk are multiples of the grain, as the length of
  // the chunks is.
  Pieces(const std::vector<TwinTree>& trees, const Chunks& chunks, std::uint64_t elements,
         std::uint64_t grain)
      : chunks_(chunks), elements_(elements), grain_(grain), rates_before_({0}) {
    for (const TwinTree& tree : trees) rates_before_.push_back(rates_before_.back() + tree.rate);
  }

  Extent Of(std::uint64_t chunk, std::size_t tree) const {
    const std::uint64_t begin = chunk * chunks_.length;
    const std::uint64_t end = chunk + 1 == chunks_.count ? elements_ : (chunk + 1) * chunks_.length;
    const auto cut = [&](std::size_t i) {
      if (i + 1 == rates_before_.size()) return end;
      const Wide share = static_cast<Wide>(end - begin) * rates_before_[i] / rates_before_.back();
      return begin + static_cast<std::uint64_t>(share) / grain_ * grain_;
    };
    return {.begin = cut(tree), .end = cut(tree + 1)};
  }

 private:
  const Chunks chunks_;
  const std::uint64_t elements_;
  const std::uint64_t grain_;
  std::vector<std::uint64_t> rates_before_;  // each tree's; one more at the end
};

// A branch of a tree, and by how many steps of its leg it is later than the first of a chunk.
struct Move {
  std::size_t tree = 0;
  const Branch* branch = nullptr;
  std::uint64_t late = 0;
};

torus::ChipMask MaskOf(const std::vector<Member>& chips) {
  torus::ChipMask mask = 0;
  for (const Member& member : chips) mask |= torus::MaskOf(member.chip);
  return mask;
}

// The domains but the root's, in ascending order.
std::vector<int> OthersOf(const DomainSet& set) {
  std::vector<int> others;
  for (const DomainSet::Group& group : set.groups()) others.push_back(group.domain);
  others.erase(others.begin());
  std::ranges::sort(others);
  return others;
}

// The moves of one leg, and what is scheduled of it.
struct Row {
  std::vector<Move> moves;
  std::uint64_t first_late = 0;
  std::uint64_t last_late = 0;
  std::optional<std::uint32_t> behind;  // the scheduled step that was the last to leave
  // Steps in which all moves have chunks of one length are the same but for where these begin.
  std::optional<std::uint32_t> known;
  std::uint64_t known_at = 0;  // the first of those chunks

  void Add(const Move& move) {
    first_late = moves.empty() ? move.late : std::min(first_late, move.late);
    last_late = std::max(last_late, move.late);
    moves.push_back(move);
  }
};

class TwinComposer {
 public:
  TwinComposer(const Question& asked, const std::vector<TwinTree>& trees, const Chunks& chunks,
               const TwinMeshes& meshes, const std::vector<int>& others)
      : asked_(asked),
        trees_(trees),
        chunks_(chunks),
        meshes_(meshes),
        others_(others),
        pieces_(trees, chunks, asked.request.bytes / Size(asked.request.type), meshes.grain()) {
    for (std::size_t tree = 0; tree < trees.size(); ++tree) AddMoves(tree);
  }

  Schedule Compose() {
    const std::uint64_t each = (chunks_.count + chunks_.stripes - 1) / chunks_.stripes;
    const std::uint64_t steps = each + collective::HeightOf(trees_) + 1;
    std::vector<Ends> own(chunks_.stripes);
    std::vector<Ends> twins(chunks_.stripes);
    for (std::uint64_t step = 0; step < steps; ++step) {
      for (std::uint64_t stripe = 0; stripe < chunks_.stripes; ++stripe) {
        const std::uint64_t first = step * chunks_.stripes + stripe;
        // Chips hand on what they got in the step before.
        Send(Leg::kBack, first, twins[stripe]);
        const Ends homes = Send(Leg::kToHomes, first, own[stripe]);
        const Ends others = Send(Leg::kBetweenHomes, first, homes);
        for (const Ends& ends : {homes, others}) {
          twins[stripe].insert(twins[stripe].end(), ends.begin(), ends.end());
        }
        Continue(Leg::kTwins, first, twins[stripe]);
        Continue(Leg::kOwn, first, own[stripe]);
      }
    }
    return std::move(schedule_);
  }

 private:
  Row& RowOf(Leg leg) { return rows_.at(static_cast<std::size_t>(leg)); }

  void AddMoves(std::size_t tree) {
    const auto add = [&](Leg leg, const Branch& branch, std::uint64_t late) {
      RowOf(leg).Add({.tree = tree, .branch = &branch, .late = late});
    };
    for (const Branch& branch : trees_[tree].own) add(Leg::kOwn, branch, branch.depth - 1);
    for (const Branch& branch : trees_[tree].twins) {
      if (branch.parent == kOutside) {
        add(Leg::kToHomes, branch, branch.depth);
        add(Leg::kBetweenHomes, branch, branch.depth);
        continue;
      }
      add(Leg::kTwins, branch, branch.depth - 1);
      if (trees_[tree].own.empty()) add(Leg::kBack, branch, branch.depth);
    }
  }

  // Schedules the step of the leg in which a chunk would make its first moves. Returns the ends.
  Ends Send(Leg leg, std::uint64_t chunk, const Ends& after) {
    Row& row = RowOf(leg);
    const std::uint64_t late = row.last_late * chunks_.stripes;
    const bool regular =
        chunk >= late && chunk - row.first_late * chunks_.stripes + 1 < chunks_.count;
    std::uint64_t further = 0;  // than the chunks for which the steps were made
    std::optional<std::uint32_t> step = row.known;
    if (!regular || !step) {
      step = Make(leg, chunk);
      if (regular) row.known = step;
      if (regular) row.known_at = chunk;
    } else {
      further = chunk - row.known_at;
    }
    if (!step) return {};
    const auto number = static_cast<std::uint32_t>(schedule_.scheduled.size());
    schedule_.scheduled.push_back(
        {.step = *step,
         .after = after,
         .behind = std::exchange(row.behind, number),
         .copies = CopiesOf(leg, BytesOf(asked_.request, further * chunks_.length)),
         .through = asked_.set.mask()});
    return {number};
  }
  // The same for steps each of which waits for the one before it.
  void Continue(Leg leg, std::uint64_t chunk, Ends& last) {
    Ends ends = Send(leg, chunk, last);
    if (!ends.empty()) last = std::move(ends);
  }

  // Makes a step, if anything moves then.
  std::optional<std::uint32_t> Make(Leg leg, std::uint64_t chunk) {
    const bool inside = leg == Leg::kOwn || leg == Leg::kTwins;
    Step step = inside ? StepOf(leg, chunk) : MeshStepOf(leg, chunk);
    if (step.empty()) return std::nullopt;
    // A NIC is far slower than memory, and the packet's time holds its start.
    const StepWork work = inside ? WorkOfStep(asked_, Algorithm::kTree, step) : StepWork{};
    return schedule_.Add(std::move(step), work);
  }

  // Calls visit(branch, piece) for all that moves then.
  template <typename Visit>
  void ForEach(Leg leg, std::uint64_t first, const Visit& visit) {
    for (const Move& move : RowOf(leg).moves) {
      const std::uint64_t late = move.late * chunks_.stripes;
      if (late > first || first - late >= chunks_.count) continue;
      const Extent piece = pieces_.Of(first - late, move.tree);
      if (piece.size() > 0) visit(*move.branch, piece);
    }
  }
  Step StepOf(Leg leg, std::uint64_t chunk) {
    Step step;
    ForEach(leg, chunk, [&](const Branch& branch, const Extent& piece) {
      step.push_back(MakeSend(asked_.request, torus::ChipIndex(branch.parent),
                              torus::ChipIndex(branch.chip), piece, Action::kCopy));
    });
    return step;
  }
  Step MeshStepOf(Leg leg, std::uint64_t chunk) {
    std::vector<TwinPiece> pieces;
    ForEach(leg, chunk, [&](const Branch& branch, const Extent& piece) {
      pieces.push_back({.chip = torus::ChipIndex(branch.chip), .elements = piece});
    });
    Step step;
    for (const MeshSend& made : SendsOf(leg, pieces)) {
      step.push_back(made.send);
      step.back().mesh = mesh_numbers_.Of(made.mesh, schedule_.meshes);
    }
    return step;
  }
  std::vector<MeshSend> SendsOf(Leg leg, const std::vector<TwinPiece>& pieces) const {
    if (leg == Leg::kToHomes) return meshes_.ToHomes(pieces);
    return leg == Leg::kBack ? meshes_.FromHomes(pieces) : meshes_.BetweenHomes(pieces);
  }

  // The places where steps of a leg are executed: those between domains as they are written, others
  // in each domain.
  std::vector<Copy> CopiesOf(Leg leg, std::uint64_t bytes) const {
    if (leg != Leg::kOwn && leg != Leg::kTwins) return {{.bytes = bytes}};
    std::vector<Copy> copies;
    const std::vector<int> own = {meshes_.own()};
    for (const int domain : leg == Leg::kOwn ? own : others_) {
      copies.push_back({.chips = Fabric::ChipOf(domain, 0).value(), .bytes = bytes});
    }
    return copies;
  }

  const Question& asked_;
  const std::vector<TwinTree>& trees_;
  const Chunks chunks_;
  const TwinMeshes& meshes_;
  const std::vector<int>& others_;
  MeshNumbers mesh_numbers_;
  const Pieces pieces_;
  std::array<Row, kLegs> rows_;
  Schedule schedule_;
};

// The links and NICs of the domains, the root's and the slowest of all others.
collective::TwinDomains TwinDomainsOf(const DomainSet& set, const Fabric& fabric) {
  const std::vector<DomainSet::Group>& groups = set.groups();
  const auto links_of = [&](std::size_t group) {
    return DomainLinksOf(fabric.domain(groups[group].domain));
  };
  collective::TwinDomains domains{.own = links_of(0),
                                  .others = links_of(1),
                                  .members = MaskOf(groups[0].local),
                                  .root = groups[0].local[0].chip.value(),
                                  .nics = {}};
  for (const DomainSet::Kind& kind : set.kinds()) {
    if (kind.back() != 0) domains.others = domains.others.SlowerOf(links_of(kind.back()));
  }
  domains.nics.fill(collective::kUnlimitedEntry);
  for (const DomainSet::Group& group : groups) {
    for (const Member& member : group.local) {
      std::uint64_t& nic = domains.nics[static_cast<std::size_t>(member.chip.value())];
      const torus::ChipIndex chip = Fabric::ChipOf(group.domain, member.chip.value());
      for (const NicDirection direction : {NicDirection::kOut, NicDirection::kIn}) {
        nic = std::min(nic, fabric.capacity(fabric.NicOf(chip, direction)));
      }
    }
  }
  return domains;
}

}  // namespace

bool MayGoToTwins(const Request& request, const DomainSet& set, const Fabric& fabric) {
  const std::vector<DomainSet::Group>& groups = set.groups();
  if (fabric.efa().UplinksLimit() || set.size() > collective::kTwinDomainsMost) return false;
  if (request.bytes / Size(request.type) < set.size()) return false;
  return std::ranges::all_of(groups, [&](const DomainSet::Group& group) {
    return MaskOf(group.local) == MaskOf(groups[0].local) &&
           fabric.domain(group.domain).torus() == fabric.domain(groups[0].domain).torus();
  });
}

absl::StatusOr<Schedule> BroadcastToTwins(const Request& request, const DomainSet& set,
                                          const Fabric& fabric, const PlanOptions& options) {
  const DomainSet::Group& group = set.groups()[0];
  const TorusLinks& links = fabric.domain(group.domain);
  const collective::TwinDomains domains = TwinDomainsOf(set, fabric);
  const std::uint64_t rate = collective::TwinRatesOf(domains).sum();
  if (rate == 0) return FailedPrecondition("no links lead from the root to all chips");
  const collective::TwinCourse course = collective::TwinCourseOf(
      request.bytes, rate, set.size(), DomainLinksOf(links, options.costs).costs());
  if (course.chunks < collective::kTwinChunksLeast) {
    return FailedPrecondition("{} bytes are {} chunks; expected at least {}", request.bytes,
                              course.chunks, collective::kTwinChunksLeast);
  }
  const std::vector<TwinTree> trees = collective::PackTwinTrees(domains);
  // The last one takes what cannot be cut evenly, which is not sent back.
  if (trees.empty() || trees.back().own.empty()) {
    return FailedPrecondition("no trees were found through the root's domain");
  }
  const std::vector<int> others = OthersOf(set);
  const TwinMeshes meshes(request, group.domain, others);
  const Chunks chunks = ChunksOf(course, request.bytes / Size(request.type), meshes.grain());
  const ChipSet chips = SetOf(group.local, links);
  const Question asked{request, group.local, chips, links, options};
  return TwinComposer(asked, trees, chunks, meshes, others).Compose();
}

}  // namespace tahoma::sim
