#include "lib/collective/inside_domains.h"

#include <absl/container/flat_hash_set.h>

#include <utility>

#include "lib/base/check.h"
#include "lib/base/status.h"
#include "lib/collective/masks.h"
#include "lib/collective/neuron_work.h"
#include "lib/collective/predict.h"

namespace tahoma::collective {
namespace {

// The phase of one domain.
class PhaseInside {
 public:
  PhaseInside(Phase phase, const FormRequest& request, const InsideDomains::Domain& domain)
      : phase_(phase), request_(request), loads_(*domain.loads), costs_(domain.links->costs()) {}

  Picoseconds Time(const std::vector<InsidePart>& parts) {
    std::uint64_t count = 0;
    for (const InsidePart& part : parts) count += part.count;
    std::vector<Chain> chains;
    for (const InsidePart& part : parts) {
      chains.push_back(ChainOf(part, count));
      // The time of trees is known for all parts together, not for steps side by side.
      if (chosen_.algorithm == Algorithm::kTree && parts.size() > 1) {
        return Time({AllOf(parts)});
      }
    }
    return ChainsTime(chains);
  }

 private:
  // All parts as if they were alike.
  static InsidePart AllOf(const std::vector<InsidePart>& parts) {
    InsidePart all{.count = 0};
    for (const InsidePart& part : parts) {
      all.elements += part.elements * part.count;
      all.count += part.count;
    }
    all.elements = CeilOf(all.elements, all.count);
    return all;
  }
  FormRequest Sized(std::uint64_t bytes) const {
    FormRequest sized = request_;
    sized.bytes = bytes;
    return sized;
  }

  // The bytes of a part, every block as long as the longest.
  std::uint64_t PaddedBytes(const InsidePart& part) const {
    const std::uint64_t chips = loads_.count();
    const std::uint64_t block =
        part.chips_at_home == chips ? part.block : CeilOf(part.elements, chips);
    return block * chips * request_.element_bytes;
  }

  // Appends what the ranks of a chip do among themselves for each of the parts.
  void AppendStage(Picoseconds stage, const InsidePart& part, Chain& chain) const {
    if (stage == Picoseconds(0)) return;
    const Picoseconds software = costs_.chip->costs.step;
    chain.push_back({.start = software,
                     .memory = (stage - software) * static_cast<Picoseconds::rep>(part.count)});
  }

  // `count` parts of all chains decide on the algorithm.
  Chain ChainOf(const InsidePart& part, std::uint64_t count) {
    const std::uint64_t bytes = PaddedBytes(part);
    if (bytes != chosen_bytes_) {
      chosen_ = ChosenFor(phase_, Sized(bytes * count), loads_, costs_);
      chosen_bytes_ = bytes;
    }
    const std::uint64_t chips = loads_.count();
    const ChipStages stages = NeuronStages(chosen_.algorithm, phase_, bytes, chips, request_.ranks,
                                           request_.banks, costs_);
    Chain chain;
    AppendStage(stages.before, part, chain);
    if (chips > 1) AppendSteps(part, bytes, count, chain);
    AppendStage(stages.after, part, chain);
    return chain;
  }

  void AppendSteps(const InsidePart& part, std::uint64_t bytes, std::uint64_t count,
                   Chain& chain) const {
    const StepLoads* const steps = StepsOf(chosen_.algorithm, loads_);
    if (steps == nullptr) {
      const ChipStages stages =
          NeuronStages(chosen_.algorithm, phase_, bytes * count, loads_.count(), request_.ranks,
                       request_.banks, costs_);
      const Picoseconds all = chosen_.time - stages.before - stages.after;
      chain.push_back({.links = all});
      return;
    }
    const ChipUse use = NeuronUse(chosen_.algorithm, phase_, request_.ranks, request_.banks);
    const std::size_t first = chain.size();
    for (const StepLoad& step : *steps) {
      const StepParts takes = PartsOf(step, use, bytes * part.count, costs_);
      chain.push_back({.start = takes.start,
                       .links = takes.links,
                       .hops = takes.hops,
                       .memory = takes.memory,
                       .count = step.count});
    }
    if (phase_ == Phase::kAllGather) {
      std::reverse(chain.begin() + static_cast<std::ptrdiff_t>(first), chain.end());
    }
  }

  const Phase phase_;
  const FormRequest& request_;
  const SetLoads& loads_;
  const LinkCosts& costs_;
  std::uint64_t chosen_bytes_ = ~std::uint64_t{0};  // for which the choice has been made
  PhaseChoice chosen_;
};

}  // namespace

absl::StatusOr<InsideDomains> InsideDomains::Of(std::span<const DomainPart> domains,
                                                const hw::ChipModel& chip) {
  InsideDomains inside;
  absl::flat_hash_set<torus::ChipMask> healthy;
  for (std::size_t i = 0; i < domains.size(); ++i) {
    const DomainPart& domain = domains[i];
    auto links = std::make_unique<const DomainLinks>(LinksWith(domain.faults, chip));
    const bool whole = (domain.chips & domain.faults.dead) == 0 && links->IsHealthy(domain.chips);
    if (whole && !healthy.insert(domain.chips).second) continue;
    Domain& added = inside.distinct_.emplace_back();
    added.chips = domain.chips;
    added.links = std::move(links);
    if (whole) added.loads = LoadsOfBox(domain.chips, *added.links);
    if (added.loads != nullptr) continue;
    // Refuses what cannot be predicted: in an all-reduce every chip must reach every other.
    const auto time = PredictCollective(domain.chips, domain.faults, {.bytes = 1}, chip);
    if (!time.ok()) return Annotate(time.status(), fmt::format("domain {}", i));
    added.own = std::make_unique<const SetLoads>(domain.chips, *added.links,
                                                 torus::ChipIndex(Lowest(domain.chips)));
    added.loads = added.own.get();
  }
  return inside;
}

std::vector<Picoseconds> InsideDomains::PhaseTimes(Phase phase,
                                                   const std::vector<InsidePart>& parts,
                                                   const FormRequest& request) const {
  std::vector<Picoseconds> times;
  for (const Domain& domain : distinct_) {
    times.push_back(PhaseInside(phase, request, domain).Time(parts));
  }
  return times;
}

std::vector<Picoseconds> InsideDomains::ScatterTimes(std::uint64_t elements,
                                                     const FormRequest& request) const {
  std::vector<Picoseconds> times(distinct_.size(), Picoseconds(0));
  const Domain& root = distinct_.front();
  FormRequest sized = request;
  const std::uint64_t chips = root.loads->count();
  sized.bytes = CeilOf(elements, chips) * chips * request.element_bytes;
  times.front() = ScatterTime(sized, *root.loads, root.links->costs());
  return times;
}

}  // namespace tahoma::collective
