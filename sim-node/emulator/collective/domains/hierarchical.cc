#include "sim-node/emulator/collective/domains/hierarchical.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "lib/base/check.h"
#include "lib/base/status.h"
#include "lib/collective/predict_domains.h"
#include "sim-node/emulator/collective/algorithms/moves.h"
#include "sim-node/emulator/collective/domains/all_to_all.h"
#include "sim-node/emulator/collective/domains/bound_over_domains.h"
#include "sim-node/emulator/collective/domains/composition.h"
#include "sim-node/emulator/collective/domains/domain_meshes.h"
#include "sim-node/emulator/collective/domains/domains.h"
#include "sim-node/emulator/collective/domains/flow_over_domains.h"
#include "sim-node/emulator/collective/domains/level_meshes.h"
#include "sim-node/emulator/collective/domains/nic_relay.h"
#include "sim-node/emulator/collective/domains/twin_broadcast.h"
#include "sim-node/emulator/collective/plan/chip_cost.h"

namespace tahoma::sim {
namespace {

// A chunk has no less: smaller ones take as long as a packet.
constexpr std::uint64_t kChunkBytesMin = std::uint64_t{1} << 15U;
// The most chips of a domain for which all algorithms inside are tried: those of more take long to
// plan.
constexpr std::size_t kTryAllMost = 16;
// Chunks of what goes over other chips' NICs: enough that handing over and on hides behind them.
constexpr std::uint64_t kRelayChunks = 8;

// The most domains through which an all-reduce flows, and the shortest buffer that does, over two
// and over more: each piece has to go through as many trees, and over EFA, twice.
constexpr std::size_t kFlowDomainsMost = 4;
constexpr std::uint64_t kFlowBytesOverTwo = std::uint64_t{2} << 20U;
constexpr std::uint64_t kFlowBytesOverMore = std::uint64_t{32} << 20U;

// More are planned only if one message stands for those of all: N domains have N^2 of them.
constexpr std::size_t kListedDomainsMost = 512;
// So many are always listed.
constexpr std::size_t kListedAlwaysMost = 32;
// The most kinds of domains between which messages are in meshes, and the fewest domains for each:
// messages, and flows to time, grow with the square of the kinds.
constexpr std::size_t kMeshKindsMost = 32;
constexpr std::size_t kLikeEachLeast = 2;
// The same of an all-to-all, where each two chips of two kinds have a message.
constexpr std::size_t kAllToAllKindsMost = 8;
// The most blocks of an all-to-all that are listed one by one.
constexpr std::uint64_t kListedBlocksMost = std::uint64_t{1} << 24U;

// The plan of the chip with the most ranks, as if it were alone: refuses what cannot be asked.
absl::StatusOr<Plan> PlanAlone(const Request& request, const std::vector<Member>& members,
                               const Fabric& fabric, const HierarchyChoice& choice) {
  const Member& fullest = *std::ranges::max_element(members, {}, &Member::ranks);
  const Member alone{.chip = Fabric::LocalOf(fullest.chip), .ranks = fullest.ranks};
  Request own = request;
  own.blocks = nullptr;  // they name the ranks of other chips
  return PlanCollective(own, {alone}, fabric.domain(Fabric::DomainOf(fullest.chip)),
                        choice.options);
}

absl::StatusOr<Plan> Timed(Plan plan, const Fabric& fabric) {
  TAHOMA_ASSIGN_OR_RETURN(auto times, TimeSchedules({&plan.schedule}, fabric));
  plan.times = std::move(times[0]);
  return plan;
}

// The facts that all plans of one request over several topology domains share.
struct Question {
  const Request& request;
  const std::vector<Member>& members;
  const Fabric& fabric;
  const HierarchyChoice& choice;
  const DomainSet& set;
  const Layout& layout;
  // One message stands for those of many domains: of kMesh, of kLevels.
  bool meshes = false;
  bool level_meshes = false;

  absl::StatusOr<Plan> Answer(const HierarchyChoice& chosen, HierarchyVariant variant) const {
    variant.meshes = (chosen.between == InterAlgorithm::kMesh && meshes) ||
                     (chosen.between == InterAlgorithm::kLevels && level_meshes);
    Plan plan{.algorithm = Algorithm::kHier, .schedule = {}, .times = {}};
    TAHOMA_ASSIGN_OR_RETURN(plan.schedule,
                            ComposePhases({request, layout, set, fabric, chosen, variant}));
    return Timed(std::move(plan), fabric);
  }
};

// Whether one step in place of two can be worth it for an all-reduce or a broadcast: a packet's
// time saved against N - 1 times a chip's block in place of 2 (N - 1)/N of it, or in place of one
// block from the root's domain and (N - 2)/(N - 1) of it from others.
bool MaySaveAStep(const Question& asked) {
  const Operation operation = asked.request.operation;
  if (operation != Operation::kAllReduce && operation != Operation::kBroadcast) return false;
  const std::uint64_t block = asked.request.bytes / asked.set.groups()[0].local.size();
  const std::uint64_t domains = asked.set.size();
  const std::uint64_t more = operation == Operation::kAllReduce
                                 ? block * (domains - 1) * (domains - 2) / domains
                                 : block * (domains - 2) * (domains - 2) / (domains - 1);
  const auto nic = asked.fabric.efa().capacity(0);
  return nic > 0 && TransferTime(more, nic) < asked.fabric.efa().timing().packet;
}

// Returns the algorithms to try. On a network that only NICs can limit, mesh, ring and rdh send the
// same bytes through each NIC: the fewest steps win. Where uplinks limit, levels send as much and
// cross them least; if there are none, the loads of the uplinks decide, and all are tried.
std::vector<InterAlgorithm> Candidates(const Question& asked) {
  if (asked.choice.between) return {*asked.choice.between};
  // Only meshes are not listed.
  if (asked.set.size() > kListedDomainsMost) {
    if (asked.level_meshes) return {InterAlgorithm::kLevels, InterAlgorithm::kMesh};
    return {InterAlgorithm::kMesh};
  }
  const bool levels = !asked.set.levels().empty();
  std::vector<InterAlgorithm> candidates;
  if (levels) candidates.push_back(InterAlgorithm::kLevels);
  candidates.push_back(InterAlgorithm::kMesh);
  // A single step is written out: all sum up in the order of the domains.
  if (MaySaveAStep(asked)) candidates.push_back(InterAlgorithm::kSingleStep);
  if (levels || !asked.fabric.efa().UplinksLimit()) return candidates;
  candidates.push_back(InterAlgorithm::kRing);
  if (Serves(InterAlgorithm::kRdh, static_cast<int>(asked.set.size()))) {
    candidates.push_back(InterAlgorithm::kRdh);
  }
  return candidates;
}

// Returns the time that the fullest uplink needs when every domain sends to every other: each phase
// crosses it with the share of each domain below for each that is not. A broadcast's root sends
// less; then homes send as much.
VirtualDuration UplinksNeedForMesh(const Question& asked) {
  const EfaNetwork& network = asked.fabric.efa();
  const auto domains = static_cast<std::uint64_t>(asked.set.size());
  const bool rooted = asked.request.operation == Operation::kBroadcast;
  const std::uint64_t phases = asked.request.operation == Operation::kAllReduce ? 2 : 1;
  VirtualDuration most{};
  for (int layer = 1; layer <= static_cast<int>(kNetworkLayers); ++layer) {
    std::map<LinkId, std::uint64_t> below;
    for (const DomainSet::Group& group : asked.set.groups()) {
      ++below[network.UplinkOf(group.domain, layer, NicDirection::kOut)];
    }
    for (const auto& [uplink, count] : below) {
      const std::uint64_t rate = network.capacity(uplink);
      const std::uint64_t senders = rooted ? count - 1 : count;
      const std::uint64_t others =
          rooted && count < domains ? domains - count - 1 : domains - count;
      if (rate == 0) continue;
      most = std::max(
          most, TransferTime(phases * senders * others * (asked.request.bytes / domains), rate));
    }
  }
  return most;
}

// Returns the algorithms inside the domains that are worth trying: what PlanCollective chooses for
// each chunk, and where another may be better beside the network between, one for all chunks. On
// boxes only trees may: they share the links with what is gathered better than larger messages.
std::vector<std::optional<Algorithm>> InsideCandidates(const Question& asked) {
  if (asked.choice.inside) return {asked.choice.inside};
  std::vector<std::optional<Algorithm>> candidates = {std::nullopt};
  bool regular = asked.choice.options.mode == PlanMode::kBest;
  bool few = true;
  for (const DomainSet::Kind& kind : asked.set.kinds()) {
    const DomainSet::Group& group = asked.set.groups()[kind.front()];
    const TorusLinks& links = asked.fabric.domain(group.domain);
    regular =
        regular && SetOf(group.local, links).box() != nullptr && !links.IsDamaged(group.through);
    few = few && group.local.size() <= kTryAllMost;
  }
  if (!few) return candidates;
  if (regular) {
    candidates.emplace_back(Algorithm::kTree);
    return candidates;
  }
  for (const Algorithm algorithm : kAllAlgorithms) {
    if (algorithm != Algorithm::kHier && algorithm != Algorithm::kBucket) {
      candidates.emplace_back(algorithm);
    }
  }
  return candidates;
}

// Tries choices, and keeps the fastest plan. The algorithms and the number of chunks are searched
// together: what is best in one chunk need not be in several.
class Search {
 public:
  explicit Search(const Question& asked) : asked_(asked) {
    counts_.assign(std::begin(collective::kChunkCounts), std::end(collective::kChunkCounts));
    std::erase_if(counts_, [&](int chunks) {
      return chunks > 1 &&
             asked.request.bytes / static_cast<std::uint64_t>(chunks) < kChunkBytesMin;
    });
    if (asked.choice.chunks) counts_ = {*asked.choice.chunks};
  }

  absl::StatusOr<Plan> Fastest() {
    TAHOMA_RETURN_IF_ERROR(TryTwins());
    if (IsNearBound()) return *std::move(best_);
    const std::vector<std::optional<Algorithm>> insides = InsideCandidates(asked_);
    const std::vector<HierarchyVariant> variants = Variants();
    for (const InterAlgorithm between : Candidates(asked_)) {
      if (best_ && between == InterAlgorithm::kMesh &&
          UplinksNeedForMesh(asked_) >= best_->times.end - best_->times.start) {
        continue;
      }
      for (const std::optional<Algorithm>& inside : insides) {
        HierarchyChoice choice = asked_.choice;
        choice.between = between;
        choice.inside = inside;
        const absl::Status status = TryCounts(choice, {});
        // Algorithms that the members do not allow are left out, unless they were asked for.
        if (!status.ok() && inside == asked_.choice.inside) return status;
        if (!status.ok()) continue;
        for (const HierarchyVariant& variant : variants) {
          // Most of a broadcast is not gathering, and parts that are dealt take trees.
          if (inside != insides.front() && !variant.weighted) continue;
          const absl::Status tried = TryCounts(choice, variant);
          if (!tried.ok() && !absl::IsFailedPrecondition(tried)) return tried;
        }
      }
    }
    return *std::move(best_);
  }

 private:
  // More chunks cost more starts than they save, but one count may be unlucky.
  static constexpr int kWorseMost = 2;

  // Returns the variants that are worth trying beside the plain one.
  std::vector<HierarchyVariant> Variants() const {
    const Operation operation = asked_.request.operation;
    const std::vector<std::uint64_t> rates = NicRates(asked_.set);
    const bool unlike =
        rates.size() > 2 && std::ranges::count(rates, rates[0]) != std::ssize(rates);
    std::vector<HierarchyVariant> variants;
    const bool unequal = std::ranges::any_of(asked_.set.groups(), HasUnequalNics);
    if (operation == Operation::kAllReduce) {
      if (unlike) variants.push_back({.weighted = true});
      if (unequal) variants.push_back({.near = true});
      if (unlike && unequal) variants.push_back({.weighted = true, .near = true});
      return variants;
    }
    const bool blocks =
        operation == Operation::kAllGather || operation == Operation::kReduceScatter;
    if (blocks && MayDeal()) variants.push_back({.dealt = true});
    if (blocks && unequal) variants.push_back({.near = true});
    if (blocks) return variants;
    const DomainSet::Group& roots = asked_.set.groups()[0];
    const auto inside = asked_.choice.inside;
    const bool flows = operation == Operation::kBroadcast &&
                       asked_.choice.options.mode == PlanMode::kBest &&
                       (!inside || *inside == Algorithm::kTree) &&
                       SetOf(roots.local, asked_.fabric.domain(roots.domain)).hangs_together();
    if (flows) return {{.flows = true}};
    return {};
  }

  // Whether a domain whose chips are joined by links has unequal NICs. Trees of many chips take
  // long to plan, and gain little.
  bool MayDeal() const {
    const auto inside = asked_.choice.inside;
    if (asked_.choice.options.mode != PlanMode::kBest) return false;
    if (inside && *inside != Algorithm::kTree) return false;
    return std::ranges::any_of(asked_.set.groups(), [&](const DomainSet::Group& group) {
      return group.local.size() <= kTryAllMost && HasUnequalNics(group) &&
             SetOf(group.local, asked_.fabric.domain(group.domain)).hangs_together();
    });
  }

  absl::Status TryCounts(HierarchyChoice choice, const HierarchyVariant& variant) {
    VirtualTime least = VirtualTime::max();
    int worse = 0;  // one after the other
    for (const int chunks : counts_) {
      choice.chunks = chunks;
      TAHOMA_ASSIGN_OR_RETURN(const VirtualTime end, Try(choice, variant));
      worse = end >= least ? worse + 1 : 0;
      least = std::min(least, end);
      if (worse == kWorseMost || IsHopeless(end, variant)) break;
    }
    return absl::OkStatus();
  }

  // Tries trees through all domains, if nothing was asked for that they are not.
  absl::Status TryTwins() {
    const HierarchyChoice& choice = asked_.choice;
    const bool free = choice.options.mode == PlanMode::kBest && !choice.chunks &&
                      choice.between.value_or(InterAlgorithm::kMesh) == InterAlgorithm::kMesh &&
                      choice.inside.value_or(Algorithm::kTree) == Algorithm::kTree;
    if (asked_.request.operation != Operation::kBroadcast || !free ||
        !MayGoToTwins(asked_.request, asked_.set, asked_.fabric)) {
      return absl::OkStatus();
    }
    auto schedule = BroadcastToTwins(asked_.request, asked_.set, asked_.fabric, choice.options);
    if (absl::IsFailedPrecondition(schedule.status())) return absl::OkStatus();
    TAHOMA_RETURN_IF_ERROR(schedule.status());
    Plan plan{.algorithm = Algorithm::kHier, .schedule = *std::move(schedule), .times = {}};
    TAHOMA_ASSIGN_OR_RETURN(plan, Timed(std::move(plan), asked_.fabric));
    best_ = std::move(plan);
    return absl::OkStatus();
  }
  // Whether there is a plan so near to the bound that others would be tried in vain: none of them
  // comes much nearer on any fabric, and they take longer to plan.
  bool IsNearBound() const {
    if (!best_) return false;
    const auto bound = LowerBoundOnFabric(asked_.request, asked_.members, asked_.fabric);
    return bound && *bound != VirtualDuration::max() &&
           best_->times.end - best_->times.start <= *bound / 10 * 11;
  }

  // Chunks at best halve the time, for NeuronLink and EFA work at the same time; what flows is in
  // the root's domain, in two steps between domains and in all others at once; a domain whose parts
  // are dealt has those of its own before or after what is between domains, and all others.
  bool IsHopeless(VirtualTime end, const HierarchyVariant& variant) const {
    const int at_once = variant.flows ? 4 : variant.dealt ? 3 : 2;
    return end - VirtualTime() > at_once * (best_->times.end - VirtualTime());
  }

  // Returns the time of this choice.
  absl::StatusOr<VirtualTime> Try(const HierarchyChoice& choice, const HierarchyVariant& variant) {
    TAHOMA_ASSIGN_OR_RETURN(Plan plan, asked_.Answer(choice, variant));
    const VirtualTime end = plan.times.end;
    if (!best_ || end < best_->times.end) best_ = std::move(plan);
    return end;
  }

  const Question& asked_;
  std::vector<int> counts_;  // of chunks
  std::optional<Plan> best_;
};

// Whether an all-reduce may flow through few domains: it must be long enough. That is tried of
// healthy domains, too, or damage could make it faster.
bool MayFlow(const Question& asked) {
  const HierarchyChoice& choice = asked.choice;
  if (asked.request.operation != Operation::kAllReduce || choice.between || choice.chunks) {
    return false;
  }
  if (choice.options.mode != PlanMode::kBest) return false;
  if (choice.inside && *choice.inside != Algorithm::kTree) return false;
  const std::uint64_t least = asked.set.size() == 2 ? kFlowBytesOverTwo : kFlowBytesOverMore;
  return asked.set.size() <= kFlowDomainsMost && asked.request.bytes >= least;
}

// The plan, or one that flows and is faster.
Plan FasterFlow(const Question& asked, Plan best) {
  const FlowQuestion flows{asked.request, asked.set, asked.fabric, asked.choice.options};
  for (const DomainFlow& flow : FlowsWorthTrying(flows)) {
    absl::StatusOr<Schedule> schedule = FlowOverDomains(flows, flow);
    if (!schedule.ok()) break;  // no cables join the chips of a domain
    auto plan =
        Timed({.algorithm = Algorithm::kHier, .schedule = *std::move(schedule), .times = {}},
              asked.fabric);
    if (plan.ok() && plan->times.end < best.times.end) best = *std::move(plan);
  }
  return best;
}

// Turns the ring such that it begins and ends at chips where no other does, as long as there are
// some: then a NIC carries one ring.
void BeginApart(std::vector<torus::ChipIndex>& ring, std::set<torus::ChipIndex>& begins,
                std::set<torus::ChipIndex>& ends) {
  for (std::size_t i = 0; i < ring.size(); ++i) {
    if (!begins.contains(ring.front()) && !ends.contains(ring.back())) break;
    std::rotate(ring.begin(), ring.begin() + 1, ring.end());
  }
  begins.insert(ring.front());
  ends.insert(ring.back());
}

// Returns paths along the rings of the domains, one domain after the other: one for each rank of a
// chip.
std::vector<std::vector<torus::ChipIndex>> PathsOver(const DomainSet& set, const Fabric& fabric) {
  const int ranks = set.groups()[0].local[0].ranks;
  std::vector<std::vector<torus::ChipIndex>> all(static_cast<std::size_t>(ranks));
  for (const DomainSet::Group& group : set.groups()) {
    const TorusLinks& links = fabric.domain(group.domain);
    auto inside = PathsOf(SetOf(group.local, links).Rings(links), ranks);
    std::set<torus::ChipIndex> begins;
    std::set<torus::ChipIndex> ends;
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
      BeginApart(inside[rank], begins, ends);
      for (const torus::ChipIndex chip : inside[rank]) {
        all[rank].push_back(Fabric::ChipOf(group.domain, chip.value()));
      }
    }
  }
  return all;
}

// Schedules the messages inside each domain, all at once. Returns those between the domains.
Step ScheduleInsideMessages(const Step& all, const StepWork& work, const DomainSet& set,
                            Schedule& schedule) {
  std::vector<Step> steps(set.size() + 1);
  for (const Send& send : all) {
    const bool inside = Fabric::DomainOf(send.from) == Fabric::DomainOf(send.to);
    steps[inside ? set.GroupOf(send.from) : set.size()].push_back(send);
  }
  for (std::size_t i = 0; i < set.size(); ++i) {
    if (steps[i].empty()) continue;
    const StepWork of_group{.start = work.start,
                            .memory = i == 0 ? work.memory : VirtualDuration(0)};
    schedule.Append(std::move(steps[i]), of_group, {.through = set.groups()[i].through});
  }
  return std::move(steps.back());
}

// Plans an exchange: all messages at once, except those that other chips' NICs relay, which go in
// chunks.
absl::StatusOr<Plan> PlanExchangeIn(std::uint64_t chunks, const Question& asked,
                                    const Exchange& exchange) {
  Plan plan{.algorithm = Algorithm::kHier, .schedule = {}, .times = {}};
  const ChipCosts& costs = asked.choice.options.costs;
  // Ranks on one chip copy beside the messages; memory serves all of them at once.
  const StepWork work = WorkOf(exchange.step, {}, costs, asked.fabric.timing());
  const Step between = ScheduleInsideMessages(exchange.step, work, asked.set, plan.schedule);
  std::map<torus::ChipIndex, std::uint64_t> free;
  for (const Member& member : asked.members) {
    free.emplace(member.chip, ChipBufferBytes(asked.request, member.ranks));
  }
  TAHOMA_ASSIGN_OR_RETURN(Relay relay, RelayOf(between, asked.set, asked.fabric, free, chunks));
  plan.schedule.relay_bytes = relay.bytes;
  AppendRelay(std::move(relay), asked.set, work, costs, asked.fabric.timing(), plan.schedule);
  plan.sources = exchange.sources;
  return Timed(std::move(plan), asked.fabric);
}

std::uint64_t RanksOf(const std::vector<Member>& members) {
  std::uint64_t ranks = 0;
  for (const Member& member : members) ranks += static_cast<std::uint64_t>(member.ranks);
  return ranks;
}

// Plans an all-to-all between kinds of domains.
absl::StatusOr<Plan> PlanAllToAll(const Question& asked,
                                  const std::vector<DomainSet::Kind>& kinds) {
  const std::uint64_t ranks = RanksOf(asked.members);
  TAHOMA_ASSIGN_OR_RETURN(const std::uint64_t block, AllToAllBlock(asked.request, ranks));
  const auto most = static_cast<std::uint64_t>(
      std::ranges::max_element(asked.members, {}, &Member::ranks)->ranks);
  const std::uint64_t of_chip = 2 * most * ranks * block;  // read, written
  const StepWork work = WorkOf(of_chip, static_cast<int>(asked.members.size()) - 1, {},
                               asked.choice.options.costs, asked.fabric.timing());
  Plan plan{.algorithm = Algorithm::kHier, .schedule = {}, .times = {}};
  TAHOMA_ASSIGN_OR_RETURN(
      plan.schedule, AllToAllOver({asked.request, asked.members, asked.set, asked.fabric, kinds,
                                   block, work, asked.choice.options.costs}));
  return Timed(std::move(plan), asked.fabric);
}

// Returns the kinds of domains for an all-to-all in meshes, where these are worth it or needed.
std::optional<std::vector<DomainSet::Kind>> WorthMeshes(const Question& asked) {
  auto kinds = AllToAllKindsOf(asked.request, asked.members, asked.set, asked.fabric);
  if (!kinds) return std::nullopt;
  const bool many = asked.set.size() > kListedAlwaysMost && kinds->size() <= kAllToAllKindsMost;
  return many || AreAlikeInARow(asked.request, asked.layout, asked.set) ? kinds : std::nullopt;
}

absl::StatusOr<Plan> PlanExchange(const Question& asked) {
  if (const auto kinds = WorthMeshes(asked)) return PlanAllToAll(asked, *kinds);
  std::vector<std::vector<torus::ChipIndex>> paths;
  if (asked.request.operation == Operation::kPermute && asked.request.blocks == nullptr) {
    paths = PathsOver(asked.set, asked.fabric);
  }
  TAHOMA_ASSIGN_OR_RETURN(const Exchange exchange,
                          ExchangeAlong(asked.request, asked.members, paths));
  const int chunks = asked.choice.chunks.value_or(1);
  TAHOMA_ASSIGN_OR_RETURN(Plan plan,
                          PlanExchangeIn(static_cast<std::uint64_t>(chunks), asked, exchange));
  if (plan.schedule.relay_bytes == 0 || asked.choice.chunks) return plan;
  TAHOMA_ASSIGN_OR_RETURN(Plan cut, PlanExchangeIn(kRelayChunks, asked, exchange));
  return cut.times.end < plan.times.end ? std::move(cut) : std::move(plan);
}

absl::Status Check(const std::vector<Member>& members, const Fabric& fabric,
                   const HierarchyChoice& choice) {
  if (members.empty()) return InvalidArgument("a collective needs at least one chip");
  std::set<torus::ChipIndex> seen;
  for (const Member& member : members) {
    if (!fabric.Contains(member.chip)) {
      return InvalidArgument("chip {} is not in a fabric of {} domains", member.chip.value(),
                             fabric.domain_count());
    }
    if (!seen.insert(member.chip).second) {
      return InvalidArgument("chip {} takes part twice", member.chip.value());
    }
  }
  // The most ranks are checked with the request, on their chip alone.
  const Member& fewest = *std::ranges::min_element(members, {}, &Member::ranks);
  if (fewest.ranks < 1) {
    return InvalidArgument("chip {} has {} ranks; expected at least 1", fewest.chip.value(),
                           fewest.ranks);
  }
  if (choice.chunks && *choice.chunks < 1) {
    return InvalidArgument("{} chunks; expected at least 1", *choice.chunks);
  }
  return absl::OkStatus();
}

// Whether one message may stand for those between all domains of two kinds. Of a few domains it
// does only while all are alike: listed, what is handed over of their parts is cut finer.
bool MayMesh(const Question& asked) {
  if (IsExchange(asked.request.operation)) return false;
  if (AreAlikeInARow(asked.request, asked.layout, asked.set)) return true;
  if (asked.set.size() <= kListedAlwaysMost) return false;
  const std::size_t kinds =
      MeshKindsOf(asked.request, asked.layout, asked.set, /*by_links=*/false).size();
  return kinds <= kMeshKindsMost && kinds * kLikeEachLeast <= asked.set.size();
}

// The same of messages that are made level by level.
bool MayMeshLevels(const Question& asked) {
  const Operation operation = asked.request.operation;
  if (IsExchange(operation) || asked.set.size() <= kListedAlwaysMost) return false;
  auto tree = LevelTreeOf(asked.set);
  if (!tree) return false;
  if (operation != Operation::kAllGather && operation != Operation::kReduceScatter) return true;
  if (MeshKindsOf(asked.request, asked.layout, asked.set, /*by_links=*/false).size() > 1) {
    return false;
  }
  std::vector<std::uint64_t> starts;
  for (const DomainSet::Group& group : asked.set.groups()) {
    starts.push_back(asked.layout.bounds[group.members[0]] -
                     asked.layout.bounds[asked.set.groups()[0].members[0]]);
  }
  return LevelMeshes(asked.request, asked.set, *std::move(tree)).Serves(starts);
}

// Says on what condition so many domains are planned that the request does not meet; empty: none.
std::string ConditionOfMany(const Question& asked) {
  const Request& request = asked.request;
  const auto between = asked.choice.between;
  if (request.operation == Operation::kAllToAll) {
    if (WorthMeshes(asked)) return "";
    return fmt::format("with at most {} kinds of chips, ranks and NICs down", kAllToAllKindsMost);
  }
  if (between == InterAlgorithm::kLevels) {
    return asked.level_meshes ? "" : "by levels below nodes with as many domains that are alike";
  }
  if (between && *between != InterAlgorithm::kMesh) return "in a mesh or by levels";
  if (asked.meshes) return "";
  const bool blocks =
      request.operation == Operation::kAllGather || request.operation == Operation::kReduceScatter;
  const std::uint64_t even = RanksOf(asked.members) * Size(request.type);
  if (blocks && request.bytes % even != 0) {
    return fmt::format("with blocks of one length, here with a multiple of {} bytes", even);
  }
  return fmt::format("with at most {} kinds of chips, NICs and blocks", kMeshKindsMost);
}

// Refuses what would take a message for each two domains, or ranks, of too many.
absl::Status CheckSize(const Question& asked) {
  const bool all_to_all =
      asked.request.operation == Operation::kAllToAll && asked.request.blocks == nullptr;
  if (IsExchange(asked.request.operation) && !all_to_all) return absl::OkStatus();
  const std::uint64_t ranks = RanksOf(asked.members);
  const bool few =
      all_to_all ? ranks * ranks <= kListedBlocksMost : asked.set.size() <= kListedDomainsMost;
  if (few) return absl::OkStatus();
  const std::string condition = ConditionOfMany(asked);
  if (condition.empty()) return absl::OkStatus();
  return FailedPrecondition(
      "so many domains ({}) are planned only {}: otherwise each two of them have "
      "messages of their own",
      asked.set.size(), condition);
}

// Plans in one topology domain, with the chips' numbers in the fabric.
absl::StatusOr<Plan> PlanInDomain(const Request& request, const std::vector<Member>& members,
                                  const Fabric& fabric, const HierarchyChoice& choice) {
  const int domain = Fabric::DomainOf(members[0].chip);
  std::vector<Member> local = members;
  for (Member& member : local) member.chip = Fabric::LocalOf(member.chip);
  TAHOMA_ASSIGN_OR_RETURN(
      Plan plan,
      choice.inside
          ? PlanWith(*choice.inside, request, local, fabric.domain(domain), choice.options)
          : PlanCollective(request, local, fabric.domain(domain), choice.options));
  if (domain == 0) return plan;
  for (Step& step : plan.schedule.steps) {
    for (Send& send : step) {
      send.from = Fabric::ChipOf(domain, send.from.value());
      send.to = Fabric::ChipOf(domain, send.to.value());
    }
  }
  return plan;
}

}  // namespace

absl::StatusOr<Plan> PlanOnFabric(const Request& request, const std::vector<Member>& members,
                                  const Fabric& fabric, const HierarchyChoice& choice) {
  TAHOMA_RETURN_IF_ERROR(Check(members, fabric, choice));
  const DomainSet set(members, fabric);
  if (set.size() == 1) return PlanInDomain(request, members, fabric, choice);
  // The rules for requests are the same everywhere, so a plan for one chip alone checks them.
  TAHOMA_RETURN_IF_ERROR(PlanAlone(request, members, fabric, choice).status());
  std::vector<int> weights;
  for (const Member& member : members) weights.push_back(member.ranks);
  const std::uint64_t size = Size(request.type);
  const Layout layout = Layout::Weighted(weights, request.bytes / size, size);
  Question asked{request, members, fabric, choice, set, layout};
  asked.meshes = MayMesh(asked);
  asked.level_meshes = MayMeshLevels(asked);
  TAHOMA_RETURN_IF_ERROR(CheckSize(asked));
  if (IsExchange(request.operation)) return PlanExchange(asked);
  for (const DomainSet::Group& group : set.groups()) {
    if (std::ranges::max(group.nics) == 0) {
      return FailedPrecondition("the EFA NICs of all {} chips of domain {} are down",
                                group.local.size(), group.domain);
    }
  }
  const auto domains = static_cast<int>(set.size());
  if (choice.between && !Serves(*choice.between, domains)) {
    return InvalidArgument("rdh between domains needs a power of two of them; here are {}",
                           domains);
  }
  TAHOMA_ASSIGN_OR_RETURN(Plan best, Search(asked).Fastest());
  return MayFlow(asked) ? FasterFlow(asked, std::move(best)) : std::move(best);
}

}  // namespace tahoma::sim
