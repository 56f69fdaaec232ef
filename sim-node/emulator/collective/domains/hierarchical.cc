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
#include "sim-node/emulator/collective/domains/composition.h"
#include "sim-node/emulator/collective/domains/domain_meshes.h"
#include "sim-node/emulator/collective/domains/domains.h"
#include "sim-node/emulator/collective/domains/nic_relay.h"
#include "sim-node/emulator/collective/plan/chip_cost.h"

namespace tahoma::sim {
namespace {

// A chunk has no less: smaller ones take as long as a packet.
constexpr std::uint64_t kChunkBytesMin = std::uint64_t{1} << 15U;
// Chunks of what goes over other chips' NICs: enough that handing over and on hides behind them.
constexpr std::uint64_t kRelayChunks = 8;

// The most domains whose messages are listed one by one: N domains exchange N^2 messages. Above the
// limit one message stands for the messages of all domains.
constexpr std::size_t kListedDomainsMost = 512;
// The most messages between domains that are listed in all chunks together: more take longer than
// a second to time.
constexpr std::uint64_t kListedMessagesMost = std::uint64_t{1} << 17U;
// All-to-alls of so many are always listed.
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
  Member alone = fullest;
  alone.chip = Fabric::LocalOf(fullest.chip);
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
struct FabricPlanInput {
  const Request& request;
  const std::vector<Member>& members;
  const Fabric& fabric;
  const HierarchyChoice& choice;
  const DomainSet& set;
  const Layout& layout;
  // Of kMesh one message stands for those of many domains.
  bool meshes = false;

  std::size_t ChipsOfADomain() const {
    std::size_t most = 0;
    for (const DomainSet::Group& group : set.groups()) most = std::max(most, group.local.size());
    return most;
  }

  absl::StatusOr<Plan> PlanOf(const HierarchyChoice& chosen) const {
    Plan plan{.algorithm = Algorithm::kHier, .schedule = {}, .times = {}};
    const bool in_meshes = meshes && chosen.between == InterAlgorithm::kMesh;
    TAHOMA_ASSIGN_OR_RETURN(plan.schedule,
                            ComposePhases({request, layout, set, fabric, chosen, in_meshes}));
    return Timed(std::move(plan), fabric);
  }
};

// Returns the algorithms to try. On a network that only NICs can limit, mesh, ring and rdh send the
// same bytes through each NIC: the fewest steps win. Where uplinks limit, all are tried.
std::vector<InterAlgorithm> Candidates(const FabricPlanInput& input) {
  if (input.choice.between) return {*input.choice.between};
  std::vector<InterAlgorithm> candidates = {InterAlgorithm::kMesh};
  // Only meshes are not listed.
  if (input.set.size() > kListedDomainsMost) return candidates;
  if (!input.fabric.efa().UplinksLimit()) return candidates;
  candidates.push_back(InterAlgorithm::kRing);
  if (Serves(InterAlgorithm::kRdh, static_cast<int>(input.set.size()))) {
    candidates.push_back(InterAlgorithm::kRdh);
  }
  return candidates;
}

// Tries choices, and keeps the fastest plan. The algorithms and the number of chunks are searched
// together: what is best in one chunk need not be in several.
class HierarchySearch {
 public:
  explicit HierarchySearch(const FabricPlanInput& input) : input_(input) {
    counts_.assign(std::begin(collective::kChunkCounts), std::end(collective::kChunkCounts));
    std::erase_if(counts_, [&](int chunks) {
      return chunks > 1 &&
             input.request.bytes / static_cast<std::uint64_t>(chunks) < kChunkBytesMin;
    });
    const std::uint64_t listed = input.set.size() * input.set.size() * input.ChipsOfADomain();
    std::erase_if(counts_, [&](int chunks) {
      return chunks > 1 && !input.meshes &&
             listed * static_cast<std::uint64_t>(chunks) > kListedMessagesMost;
    });
    if (input.choice.chunks) counts_ = {*input.choice.chunks};
  }

  absl::StatusOr<Plan> Fastest() {
    for (const InterAlgorithm between : Candidates(input_)) {
      HierarchyChoice choice = input_.choice;
      choice.between = between;
      TAHOMA_RETURN_IF_ERROR(TryCounts(choice));
    }
    return *std::move(best_);
  }

 private:
  // More chunks cost more starts than they save, but one count may be unlucky.
  static constexpr int kWorseMost = 2;

  absl::Status TryCounts(HierarchyChoice choice) {
    VirtualTime least = VirtualTime::max();
    int worse = 0;  // one after the other
    for (const int chunks : counts_) {
      choice.chunks = chunks;
      TAHOMA_ASSIGN_OR_RETURN(Plan plan, input_.PlanOf(choice));
      const VirtualTime end = plan.times.end;
      if (!best_ || end < best_->times.end) best_ = std::move(plan);
      worse = end >= least ? worse + 1 : 0;
      least = std::min(least, end);
      // What is in meshes takes no time to speak of.
      if (!input_.meshes && (worse == kWorseMost || IsHopeless(end))) break;
    }
    return absl::OkStatus();
  }

  // Chunks at best halve the time, for NeuronLink and EFA work at the same time.
  bool IsHopeless(VirtualTime end) const {
    return end - VirtualTime() > 2 * (best_->times.end - VirtualTime());
  }

  const FabricPlanInput& input_;
  std::vector<int> counts_;  // of chunks
  std::optional<Plan> best_;
};

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
absl::StatusOr<Plan> PlanExchangeIn(std::uint64_t chunks, const FabricPlanInput& input,
                                    const Exchange& exchange) {
  Plan plan{.algorithm = Algorithm::kHier, .schedule = {}, .times = {}};
  const ChipCosts& costs = input.choice.options.costs;
  // Ranks on one chip copy beside the messages; memory serves all of them at once.
  const StepWork work = WorkOf(exchange.step, {}, input.members, costs, input.fabric.timing());
  const Step between = ScheduleInsideMessages(exchange.step, work, input.set, plan.schedule);
  std::map<torus::ChipIndex, std::uint64_t> free;
  for (const Member& member : input.members) {
    free.emplace(member.chip, ChipBufferBytes(input.request, member.ranks));
  }
  Relay relay = RelayOf(between, input.set, free, chunks);
  plan.schedule.relay_bytes = relay.bytes;
  AppendRelay(std::move(relay), input.set, work, costs, input.fabric.timing(), plan.schedule);
  plan.sources = exchange.sources;
  return Timed(std::move(plan), input.fabric);
}

// Plans an all-to-all between kinds of domains.
absl::StatusOr<Plan> PlanAllToAll(const FabricPlanInput& input,
                                  const std::vector<DomainSet::Kind>& kinds) {
  const std::uint64_t ranks = RanksOf(input.members);
  TAHOMA_ASSIGN_OR_RETURN(const std::uint64_t block, AllToAllBlock(input.request, ranks));
  const auto most = static_cast<std::uint64_t>(
      std::ranges::max_element(input.members, {}, &Member::ranks)->ranks);
  const std::uint64_t of_chip = 2 * most * ranks * block;  // read, written
  const StepWork work =
      WorkOf(of_chip, static_cast<int>(input.members.size()) - 1, {.banks = input.set.banks()},
             input.choice.options.costs, input.fabric.timing());
  Plan plan{.algorithm = Algorithm::kHier, .schedule = {}, .times = {}};
  plan.schedule = AllToAllOver({input.request, input.members, input.set, input.fabric, kinds, block,
                                work, input.choice.options.costs});
  return Timed(std::move(plan), input.fabric);
}

// Returns the kinds of domains for an all-to-all in meshes, where these are worth it or needed.
std::optional<std::vector<DomainSet::Kind>> WorthMeshes(const FabricPlanInput& input) {
  auto kinds = AllToAllKindsOf(input.request, input.members, input.set);
  if (!kinds) return std::nullopt;
  const bool many = input.set.size() > kListedAlwaysMost && kinds->size() <= kAllToAllKindsMost;
  return many || AreAlikeInARow(input.request, input.layout, input.set) ? kinds : std::nullopt;
}

absl::StatusOr<Plan> PlanExchange(const FabricPlanInput& input) {
  if (const auto kinds = WorthMeshes(input)) return PlanAllToAll(input, *kinds);
  std::vector<std::vector<torus::ChipIndex>> paths;
  if (input.request.operation == Operation::kPermute && input.request.blocks == nullptr) {
    paths = PathsOver(input.set, input.fabric);
  }
  TAHOMA_ASSIGN_OR_RETURN(const Exchange exchange,
                          ExchangeAlong(input.request, input.members, paths));
  const int chunks = input.choice.chunks.value_or(1);
  TAHOMA_ASSIGN_OR_RETURN(Plan plan,
                          PlanExchangeIn(static_cast<std::uint64_t>(chunks), input, exchange));
  if (plan.schedule.relay_bytes == 0 || input.choice.chunks) return plan;
  TAHOMA_ASSIGN_OR_RETURN(Plan cut, PlanExchangeIn(kRelayChunks, input, exchange));
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

// Whether one message may stand for those between all domains of two kinds.
bool MayMesh(const FabricPlanInput& input) {
  if (IsExchange(input.request.operation)) return false;
  if (AreAlikeInARow(input.request, input.layout, input.set)) return true;
  const std::size_t kinds = MeshKindsOf(input.request, input.layout, input.set).size();
  return kinds <= kMeshKindsMost && kinds * kLikeEachLeast <= input.set.size();
}

// Says on what condition so many domains are planned that the request does not meet; empty: none.
std::string ConditionOfMany(const FabricPlanInput& input) {
  const Request& request = input.request;
  const auto between = input.choice.between;
  if (request.operation == Operation::kAllToAll) {
    if (WorthMeshes(input)) return "";
    return fmt::format("with at most {} kinds of chips, ranks and NICs", kAllToAllKindsMost);
  }
  if (between && *between != InterAlgorithm::kMesh) return "in a mesh";
  if (input.meshes) return "";
  const bool blocks =
      request.operation == Operation::kAllGather || request.operation == Operation::kReduceScatter;
  const std::uint64_t even = RanksOf(input.members) * Size(request.type);
  if (blocks && request.bytes % even != 0) {
    return fmt::format("with blocks of one length, here with a multiple of {} bytes", even);
  }
  return fmt::format("with at most {} kinds of chips, NICs and blocks", kMeshKindsMost);
}

// Refuses what would take a message for each two domains, or ranks, of too many.
absl::Status CheckSize(const FabricPlanInput& input) {
  const bool all_to_all =
      input.request.operation == Operation::kAllToAll && input.request.blocks == nullptr;
  if (IsExchange(input.request.operation) && !all_to_all) return absl::OkStatus();
  const std::uint64_t ranks = RanksOf(input.members);
  const bool few =
      all_to_all ? ranks * ranks <= kListedBlocksMost : input.set.size() <= kListedDomainsMost;
  if (few) return absl::OkStatus();
  const std::string condition = ConditionOfMany(input);
  if (condition.empty()) return absl::OkStatus();
  return FailedPrecondition(
      "so many domains ({}) are planned only {}: otherwise each two of them have "
      "messages of their own",
      input.set.size(), condition);
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
  FabricPlanInput input{request, members, fabric, choice, set, layout};
  input.meshes = MayMesh(input);
  TAHOMA_RETURN_IF_ERROR(CheckSize(input));
  for (const DomainSet::Group& group : set.groups()) TAHOMA_RETURN_IF_ERROR(CheckNics(group));
  if (IsExchange(request.operation)) return PlanExchange(input);
  const auto domains = static_cast<int>(set.size());
  if (choice.between && !Serves(*choice.between, domains)) {
    return InvalidArgument("rdh between domains needs a power of two of them; here are {}",
                           domains);
  }
  return HierarchySearch(input).Fastest();
}

}  // namespace tahoma::sim
