#include "sim-node/collective/domains/twin_broadcast.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "lib/base/check.h"
#include "lib/base/status.h"
#include "lib/collective/twin_trees.h"
#include "sim-node/collective/algorithms/chip_set.h"
#include "sim-node/collective/domains/domain_meshes.h"
#include "sim-node/collective/domains/padded_steps.h"
#include "sim-node/collective/domains/region.h"
#include "sim-node/collective/plan/bound.h"
#include "sim-node/collective/plan/question.h"

namespace tahoma::sim {
namespace {

using collective::Branch;
using collective::kOutside;
using collective::TwinTree;

// Numbers of scheduled steps that must have ended.
using Ends = std::vector<std::uint32_t>;

// How the buffer is cut. Chunk c is elements [c * length, (c + 1) * length); the last one is
// shorter, or longer by what a chunk is too short for.
struct Chunks {
  std::uint64_t count = 1;
  std::uint64_t length = 0;  // in elements
  std::uint64_t stripes = 1;
};

// What goes over links or NICs.
enum class Leg : std::uint8_t { kOwn, kHandOver, kTwins, kBack };

// A branch of a tree, and by how many steps of its leg it is later than the root's.
struct Move {
  std::size_t tree = 0;
  const Branch* branch = nullptr;
  std::uint64_t late = 0;
};

class TwinComposer {
 public:
  TwinComposer(const Question& asked, const std::vector<TwinTree>& trees, const Chunks& chunks,
               int first, int domains)
      : asked_(asked),
        trees_(trees),
        chunks_(chunks),
        first_(first),
        domains_(domains),
        meshes_(asked.request, first, domains),
        last_own_(chunks.stripes),
        last_twins_(chunks.stripes) {
    for (std::size_t tree = 0; tree < trees.size(); ++tree) AddMoves(tree);
    for (int domain = 1; domain < domains; ++domain) {
      others_.push_back({.chips = Fabric::ChipOf(first + domain, 0).value()});
    }
    rates_before_.push_back(0);
    for (const TwinTree& tree : trees) rates_before_.push_back(rates_before_.back() + tree.rate);
  }

  Schedule Compose() {
    const std::uint64_t each = (chunks_.count + chunks_.stripes - 1) / chunks_.stripes;
    const std::uint64_t steps = each + collective::HeightOf(trees_) + 1;
    for (std::uint64_t step = 0; step < steps; ++step) {
      for (std::uint64_t stripe = 0; stripe < chunks_.stripes; ++stripe) {
        SendBack(step, stripe);
        HandOver(step, stripe);
        SendToTwins(step, stripe);
        SendOwn(step, stripe);
      }
    }
    return std::move(schedule_);
  }

 private:
  void AddMoves(std::size_t tree) {
    const auto add = [&](Leg leg, const Branch& branch, std::uint64_t late) {
      moves_[leg].push_back({.tree = tree, .branch = &branch, .late = late});
    };
    for (const Branch& branch : trees_[tree].own) add(Leg::kOwn, branch, branch.depth - 1);
    for (const Branch& branch : trees_[tree].twins) {
      const bool enters = branch.parent == kOutside;
      add(enters ? Leg::kHandOver : Leg::kTwins, branch, branch.depth - (enters ? 0 : 1));
      if (trees_[tree].own.empty() && !enters) add(Leg::kBack, branch, branch.depth);
    }
  }

  // Returns the tree's part of a chunk. All but the last tree's can be cut evenly for the homes.
  Extent PieceOf(std::uint64_t chunk, std::size_t tree) const {
    const std::uint64_t begin = chunk * chunks_.length;
    const bool last = chunk + 1 == chunks_.count;
    const std::uint64_t elements = (last ? Elements() : begin + chunks_.length) - begin;
    const auto before = [&](std::size_t i) {
      if (i == trees_.size()) return begin + elements;
      const Wide share = static_cast<Wide>(elements) * rates_before_[i] / rates_before_.back();
      return begin + static_cast<std::uint64_t>(share) / meshes_.grain() * meshes_.grain();
    };
    return {.begin = before(tree), .end = before(tree + 1)};
  }
  std::uint64_t Elements() const { return asked_.request.bytes / Size(asked_.request.type); }

  // Calls visit(branch, piece) for what a stripe moves in a step.
  template <typename Visit>
  void ForEach(Leg leg, std::uint64_t step, std::uint64_t stripe, const Visit& visit) const {
    for (const Move& move : moves_.at(leg)) {
      if (move.late > step) continue;
      const std::uint64_t chunk = (step - move.late) * chunks_.stripes + stripe;
      if (chunk >= chunks_.count) continue;
      const Extent piece = PieceOf(chunk, move.tree);
      if (piece.size() > 0) visit(*move.branch, piece);
    }
  }

  Step StepOf(Leg leg, std::uint64_t step, std::uint64_t stripe) const {
    Step sends;
    ForEach(leg, step, stripe, [&](const Branch& branch, const Extent& piece) {
      sends.push_back(MakeSend(asked_.request, torus::ChipIndex(branch.parent),
                               torus::ChipIndex(branch.chip), piece, Action::kCopy));
    });
    return sends;
  }
  std::vector<TwinPiece> PiecesOf(Leg leg, std::uint64_t step, std::uint64_t stripe) const {
    std::vector<TwinPiece> pieces;
    ForEach(leg, step, stripe, [&](const Branch& branch, const Extent& piece) {
      pieces.push_back({.chip = torus::ChipIndex(branch.chip), .elements = piece});
    });
    return pieces;
  }

  void SendOwn(std::uint64_t step, std::uint64_t stripe) {
    Step sends = StepOf(Leg::kOwn, step, stripe);
    if (sends.empty()) return;
    ScheduledStep scheduled{.after = last_own_[stripe], .behind = behind_[Leg::kOwn]};
    scheduled.copies = {{.chips = Fabric::ChipOf(first_, 0).value()}};
    last_own_[stripe] = Add(Leg::kOwn, std::move(sends), std::move(scheduled));
  }
  void SendToTwins(std::uint64_t step, std::uint64_t stripe) {
    Step sends = StepOf(Leg::kTwins, step, stripe);
    if (sends.empty()) return;
    ScheduledStep scheduled{.after = last_twins_[stripe], .behind = behind_[Leg::kTwins]};
    scheduled.copies = others_;
    last_twins_[stripe] = Add(Leg::kTwins, std::move(sends), std::move(scheduled));
  }
  void HandOver(std::uint64_t step, std::uint64_t stripe) {
    const std::vector<TwinPiece> pieces = PiecesOf(Leg::kHandOver, step, stripe);
    const Ends homes = AddMeshes(meshes_.ToHomes(pieces), last_own_[stripe], 0);
    const Ends all = AddMeshes(meshes_.BetweenHomes(pieces), homes, 1);
    for (const Ends& ends : {homes, all}) {
      last_twins_[stripe].insert(last_twins_[stripe].end(), ends.begin(), ends.end());
    }
  }
  void SendBack(std::uint64_t step, std::uint64_t stripe) {
    AddMeshes(meshes_.FromHomes(PiecesOf(Leg::kBack, step, stripe)), last_twins_[stripe], 2);
  }

  Ends Add(Leg leg, Step sends, ScheduledStep scheduled) {
    scheduled.through = asked_.set.through();
    const StepWork work = WorkOfStep(asked_, Algorithm::kTree, sends);
    scheduled.step = static_cast<std::uint32_t>(schedule_.steps.size());
    schedule_.steps.push_back(std::move(sends));
    schedule_.work.push_back(work);
    const auto index = static_cast<std::uint32_t>(schedule_.scheduled.size());
    schedule_.scheduled.push_back(std::move(scheduled));
    behind_[leg] = index;
    return {index};
  }

  Ends AddMeshes(MeshPhase phase, const Ends& after, std::size_t number) {
    Ends ends;
    for (MeshStep& made : phase) {
      ScheduledStep scheduled{.step = static_cast<std::uint32_t>(schedule_.steps.size()),
                              .after = after,
                              .behind = behind_mesh_[number],
                              .mesh = made.mesh};
      schedule_.steps.push_back(std::move(made.step));
      schedule_.work.emplace_back();
      ends.push_back(static_cast<std::uint32_t>(schedule_.scheduled.size()));
      schedule_.scheduled.push_back(std::move(scheduled));
    }
    if (!ends.empty()) behind_mesh_[number] = ends.front();
    return ends;
  }

  const Question& asked_;
  const std::vector<TwinTree>& trees_;
  const Chunks chunks_;
  const int first_;
  const int domains_;
  const TwinMeshes meshes_;
  std::vector<Ends> last_own_;
  std::vector<Ends> last_twins_;
  std::map<Leg, std::vector<Move>> moves_;
  std::vector<Copy> others_;
  std::vector<std::uint64_t> rates_before_;
  std::map<Leg, std::optional<std::uint32_t>> behind_;
  std::array<std::optional<std::uint32_t>, 3> behind_mesh_;
  Schedule schedule_;
};

int Env(const char* name, int otherwise) {
  const char* value = std::getenv(name);
  return value ? std::atoi(value) : otherwise;
}

}  // namespace

absl::StatusOr<Schedule> BroadcastToTwins(const Request& request, const DomainSet& set,
                                          const Fabric& fabric, const PlanOptions& options) {
  const DomainSet::Group& group = set.groups()[0];
  const TorusLinks& links = fabric.domain(group.domain);
  const ChipSet chips = SetOf(group.local, links);
  std::array<std::uint64_t, collective::kChipsMax> nics{};
  for (const Member& member : group.local) {
    nics[static_cast<std::size_t>(member.chip.value())] = fabric.efa().capacity(0);
  }
  const std::vector<TwinTree> trees = collective::PackTwinTrees(
      DomainLinksOf(links), chips.mask(), group.local[0].chip.value(), nics);
  if (trees.empty()) return FailedPrecondition("no links lead from the root to all chips");
  const auto domains = static_cast<int>(set.size());
  Chunks chunks{.count = static_cast<std::uint64_t>(Env("TN", 512)),
                .length = 0,
                .stripes = static_cast<std::uint64_t>(Env("TS", 2))};
  const std::uint64_t grain = set.size() - 1;
  const std::uint64_t elements = request.bytes / Size(request.type);
  chunks.length = std::max<std::uint64_t>(elements / chunks.count / grain, 1) * grain;
  const Question asked{request, group.local, chips, links, options};
  return TwinComposer(asked, trees, chunks, group.domain, domains).Compose();
}

}  // namespace tahoma::sim
