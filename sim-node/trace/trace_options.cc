#include "sim-node/trace/trace_options.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/collective/operation.h"
#include "lib/hw/catalogue.h"
#include "sim-node/emulator/collective/domains/bound_over_domains.h"
#include "sim-node/emulator/collective/domains/hierarchical.h"
#include "sim-node/emulator/collective/plan/bound.h"
#include "sim-node/fidelity/fidelity.h"
#include "sim-node/trace/summary.h"

namespace tahoma::sim {
namespace {

using torus::ChipIndex;

// 262,144 chips of UltraServers; the table has a line for each.
constexpr std::int64_t kMaxDomains = 4096;

// Returns the torus of a topology domain: an UltraServer or a lone instance.
absl::StatusOr<torus::Shape> TorusOf(const TraceOptions& options) {
  for (const torus::Shape& shape : {torus::kUltraServerShape, torus::kInstanceShape}) {
    if (options.domain_torus == shape.ToString()) return shape;
  }
  if (options.domain_torus == "4x4") return torus::kInstanceShape;
  return InvalidArgument(
      "domain-torus: \"{}\" is no torus of a domain; expected 4x4x4 (UltraServer) or 4x4",
      options.domain_torus);
}

absl::StatusOr<torus::Box> BoxOf(const TraceOptions& options, const torus::Shape& torus) {
  const auto offered = torus::ParseOffered(options.box);
  if (!offered.ok()) return Annotate(offered.status(), fmt::format("box {}", options.box));
  const torus::Shape shape = *offered;
  for (const torus::Box& box : torus::BoxTable::Of(torus).Rotations(shape)) {
    if (box.size == shape && torus::ToString(box.origin) == options.at) return box;
  }
  return InvalidArgument("no box of {} begins at {} in a torus of {}; expected for example 0,0,0",
                         options.box, options.at, torus.ToString());
}

bool ReadNumber(std::string_view text, int limit, int& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && number >= 0 && number < limit;
}

// Returns "5" for a chip in the first domain, "2/5" in the third.
bool ReadChip(std::string_view text, const Fabric& fabric, ChipIndex& chip) {
  int domain = 0;
  int number = 0;
  const std::size_t slash = text.find('/');
  if (slash != std::string_view::npos) {
    if (!ReadNumber(text.substr(0, slash), fabric.domain_count(), domain)) return false;
    text.remove_prefix(slash + 1);
  }
  if (!ReadNumber(text, fabric.domain(domain).torus().chip_count(), number)) return false;
  chip = Fabric::ChipOf(domain, number);
  return true;
}

// "5:x+": the cable on chip 5's x+ port.
absl::Status BreakCable(std::string_view text, const torus::Box& box, Fabric& fabric) {
  const std::size_t colon = std::min(text.find(':'), text.size());
  const auto port = ParsePort(text.substr(std::min(colon + 1, text.size())));
  ChipIndex chip(0);
  if (!ReadChip(text.substr(0, colon), fabric, chip) || !port.ok()) {
    return InvalidArgument(
        "down: \"{}\" is no cable; expected a chip and a port, for example 5:x+{}", text,
        fabric.domain_count() > 1 ? ", or 1/5:x+ in domain 1" : "");
  }
  const int domain = Fabric::DomainOf(chip);
  const TorusLinks& links = fabric.domain(domain);
  const LinkId there = TorusLinks::IdOf(Fabric::LocalOf(chip), port->axis, port->direction);
  if (!links.Exists(there)) {
    return InvalidArgument("down: \"{}\" is no cable of a torus of {}", text,
                           links.torus().ToString());
  }
  const torus::Hop hop = links.HopOf(there);
  if ((box.mask & MaskOf(hop.from)) == 0 || (box.mask & MaskOf(hop.to)) == 0) {
    return InvalidArgument("down: \"{}\" is no cable between two chips of {}", text,
                           box.ToString());
  }
  TAHOMA_RETURN_IF_ERROR(fabric.SetPermille(fabric.LinkOf(chip, port->axis, port->direction), 0));
  return fabric.SetPermille(fabric.LinkOf(Fabric::ChipOf(domain, hop.to.value()), port->axis,
                                          torus::Opposite(port->direction)),
                            0);
}

absl::Status BreakNic(std::string_view text, Fabric& fabric) {
  ChipIndex chip(0);
  if (fabric.domain_count() == 1) {
    return InvalidArgument(
        "efa-down: \"{}\" is of no use in one domain; expected domains of 2 or more", text);
  }
  if (text.find('/') == std::string_view::npos || !ReadChip(text, fabric, chip)) {
    return InvalidArgument(
        "efa-down: \"{}\" is no chip of a domain; expected for example 1/5 in domain 1", text);
  }
  return fabric.SetNicPermille(chip, 0);
}

absl::StatusOr<Fabric> FabricOf(const TraceOptions& options, const torus::Shape& torus) {
  const TorusLinks domain(torus, hw::kTrainium2.links);
  if (options.domains == 1) return Fabric(domain);
  TAHOMA_ASSIGN_OR_RETURN(const EfaTiming timing, EfaTimingOf(options.efa));
  const auto domains = static_cast<int>(options.domains);
  return Fabric(
      std::vector<TorusLinks>(static_cast<std::size_t>(domains), domain), hw::kTrainium2.links.efa,
      timing,
      RegularPlaces(domains,
                    {.domains_under_layer3 = static_cast<int>(options.domains_under_layer3),
                     .layer3_under_layer2 = static_cast<int>(options.layer3_under_layer2),
                     .layer2_under_layer1 = static_cast<int>(options.layer2_under_layer1)}));
}

// Checks the options that exist for one topology domain only, or for several only.
absl::Status CheckDomains(const TraceOptions& options) {
  if (options.domains == 1) {
    if (options.between != "auto" || options.chunks != 0) {
      return InvalidArgument("between and chunks need several domains; here is one");
    }
    return absl::OkStatus();
  }
  if (options.level != "flows") {
    return InvalidArgument("level: several domains are timed by flows; \"{}\" is for one",
                           options.level);
  }
  return absl::OkStatus();
}

absl::StatusOr<InterAlgorithm> ParseBetween(std::string_view name) {
  for (const InterAlgorithm algorithm : kInterAlgorithms) {
    if (Name(algorithm) == name) return algorithm;
  }
  return InvalidArgument("between: unknown algorithm \"{}\"; expected auto, ring, mesh or rdh",
                         name);
}

absl::StatusOr<PlanOptions> PlanOptionsOf(const TraceOptions& options) {
  PlanOptions plan;
  for (const std::string& cost : options.without) {
    if (cost == "memory") {
      plan.costs.memory = false;
    } else if (cost == "dma-start") {
      plan.costs.dma_start = false;
    } else if (cost == "cc-cores") {
      plan.costs.cc_cores = false;
    } else {
      return InvalidArgument("without: \"{}\" is no cost; expected memory, dma-start or cc-cores",
                             cost);
    }
  }
  return plan;
}

absl::StatusOr<Plan> PlanOf(const TraceOptions& options, const PlanOptions& plan,
                            const std::vector<Member>& members, const Fabric& fabric,
                            Request& request) {
  TAHOMA_ASSIGN_OR_RETURN(request.operation, ParseOperation(options.operation));
  TAHOMA_ASSIGN_OR_RETURN(request.type, ParseElementType(options.type));
  request.bytes = static_cast<std::uint64_t>(options.bytes);
  HierarchyChoice choice{.options = plan};
  if (options.algorithm != "auto") {
    TAHOMA_ASSIGN_OR_RETURN(choice.inside, ParseAlgorithm(options.algorithm));
  }
  if (options.between != "auto") {
    TAHOMA_ASSIGN_OR_RETURN(choice.between, ParseBetween(options.between));
  }
  if (options.chunks != 0) choice.chunks = static_cast<int>(options.chunks);
  return PlanOnFabric(request, members, fabric, choice);
}

// Returns the time of the same collective with one element for each rank: bytes hardly count.
absl::StatusOr<VirtualDuration> StartUpOf(TraceOptions options, const PlanOptions& how,
                                          const std::vector<Member>& members, const Fabric& fabric,
                                          const Request& request) {
  const auto ranks = options.ranks * static_cast<std::int64_t>(members.size());
  options.bytes = std::min(options.bytes, ranks * static_cast<std::int64_t>(Size(request.type)));
  Request small;
  TAHOMA_ASSIGN_OR_RETURN(const Plan plan, PlanOf(options, how, members, fabric, small));
  return plan.times.end - plan.times.start;
}

absl::StatusOr<TraceAnswer> AnswerOf(const TraceOptions& options, const Plan& plan,
                                     const Request& request, const std::vector<Member>& members,
                                     const Fabric& fabric, const PlanOptions& how) {
  TraceAnswer answer{.request = request,
                     .box = "",
                     .algorithm = plan.algorithm,
                     .level = Fidelity::kFlows,
                     .steps = plan.schedule.scheduled_count(),
                     .time = plan.times.end - plan.times.start};
  TAHOMA_ASSIGN_OR_RETURN(answer.level, ParseFidelity(options.level));
  TAHOMA_ASSIGN_OR_RETURN(answer.start_up, StartUpOf(options, how, members, fabric, request));
  answer.ranks = static_cast<int>(options.ranks) * static_cast<int>(members.size());
  if (options.domains > 1) {
    answer.bound = LowerBoundOnFabric(request, members, fabric);
    return answer;
  }
  const TorusLinks& links = fabric.domain(0);
  TAHOMA_ASSIGN_OR_RETURN(answer.time, TimeOf(answer.level, plan, request, members, links, how));
  answer.bound = LowerBound(request, members, links);
  return answer;
}

}  // namespace

std::optional<double> OverBound(const TraceAnswer& answer) {
  if (!answer.bound || *answer.bound <= VirtualDuration(0)) return std::nullopt;
  return Nanoseconds(answer.time) / Nanoseconds(answer.start_up + *answer.bound);
}

double TraceAnswer::AlgorithmBandwidth() const {
  if (time <= VirtualDuration(0)) return 0;
  return static_cast<double>(request.bytes) / (1 << 30) / (Nanoseconds(time) / 1e9);
}

double TraceAnswer::BusBandwidth() const {
  return AlgorithmBandwidth() * collective::BusFactor(request.operation, ranks);
}

namespace {

std::string TitleOf(const TraceAnswer& answer, std::int64_t domains) {
  std::string title = fmt::format(
      "{} of {} bytes {} on {}{}, {}: {:.2f} us by {}, {} steps", Name(answer.request.operation),
      answer.request.bytes, Name(answer.request.type),
      domains == 1 ? "" : fmt::format("{} domains of ", domains), answer.box,
      Name(answer.algorithm), Nanoseconds(answer.time) / 1e3, Name(answer.level), answer.steps);
  if (answer.bound) {
    title += fmt::format("; the links allow {:.2f} us", Nanoseconds(*answer.bound) / 1e3);
    if (const auto over = OverBound(answer)) {
      title += fmt::format(" and start-up takes {:.2f} us, together {:.3f} times less",
                           Nanoseconds(answer.start_up) / 1e3, *over);
    }
  }
  return title;
}

void DeclareDomains(config::Spec& spec, TraceOptions& options) {
  constexpr config::IntRange kCount{.min = 1, .max = kMaxDomains};
  spec.Int("domains", &options.domains, kCount,
           "topology domains (UltraServers or instances) joined by EFA");
  spec.String("domainTorus", &options.domain_torus,
              "the torus of each: 4x4x4 (UltraServer) or 4x4");
  spec.String("between", &options.between, "algorithm between domains: auto, ring, mesh or rdh");
  spec.Int("chunks", &options.chunks, {.max = 1024},
           "chunks of a buffer: one is between domains while another is inside; 0: fastest");
  spec.Strings("efaDown", &options.efa_down, "chips without their NIC, each \"domain/chip\"");
  spec.Section("efa", "the EFA network between domains",
               [&](config::Fields& fields) { DeclareEfaLayers(fields, options.efa); });
  spec.Int("domainsUnderLayer3", &options.domains_under_layer3, kCount,
           "domains below each node of layer 3, the nearest");
  spec.Int("layer3UnderLayer2", &options.layer3_under_layer2, kCount,
           "nodes of layer 3 below each of layer 2");
  spec.Int("layer2UnderLayer1", &options.layer2_under_layer1, kCount,
           "nodes of layer 2 below each of layer 1");
}

}  // namespace

config::Spec DeclareTraceOptions(TraceOptions& options) {
  config::Spec spec({.program = "trn-trace",
                     .kind = "TraceConfig",
                     .summary = "Shows which links of UltraServers a collective keeps busy."});
  spec.String("operation", &options.operation, "the operation, as nccom-test names it");
  spec.Int("bytes", &options.bytes, {.min = 1, .max = std::int64_t{8} << 30},
           "size of a rank's buffer");
  constexpr config::IntRange kSize{.min = 1, .max = std::int64_t{8} << 30};
  spec.Int("minBytes", &options.min_bytes, kSize, "first size of a sweep");
  spec.Alias("-b", "minBytes");
  spec.Int("maxBytes", &options.max_bytes, {.max = kSize.max},
           "last size of a sweep, a line for each in the place of the links' shares; 0: none");
  spec.Alias("-e", "maxBytes");
  spec.Int("stepFactor", &options.step_factor, {.min = 2, .max = 1024},
           "what multiplies from size to size");
  spec.Alias("-f", "stepFactor");
  spec.String("type", &options.type, "type of the elements, as nccom-test names it");
  spec.String("level", &options.level, "level of detail: closed-form, flows or flits");
  spec.String("algorithm", &options.algorithm, "auto, mesh, rdh, ring, kangaring or tree");
  spec.Gone("mode", kOneMode);
  spec.Gone("slices", "Neuron's algorithms do not cut a buffer into slices");
  spec.Strings("without", &options.without,
               "costs of the chips not to count: memory, dma-start, cc-cores");
  spec.String("box", &options.box, "chips, \"AxBxC\" with sides 1, 2 and 4, as placed");
  spec.String("at", &options.at, "its first corner, \"x,y,z\"");
  spec.Int("ranks", &options.ranks, {.min = 1, .max = 8}, "logical cores of each chip");
  spec.Strings("down", &options.down,
               "broken cables, each a chip and a port, \"5:x+\"; in domain 1 \"1/5:x+\"");
  DeclareDomains(spec, options);
  spec.String("output", &options.output, "text, or json: a summary for other programs",
              {"text", "json"});
  spec.Alias("-o", "output");
  spec.String("traceFile", &options.trace_file, "timeline to write, for Perfetto or Chrome");
  spec.String("svgFile", &options.svg_file, "picture of the links' utilisation to write");
  return spec;
}

absl::StatusOr<Traced> TraceOf(const TraceOptions& options) {
  TAHOMA_RETURN_IF_ERROR(CheckDomains(options));
  TAHOMA_ASSIGN_OR_RETURN(const torus::Shape torus, TorusOf(options));
  TAHOMA_ASSIGN_OR_RETURN(const torus::Box box, BoxOf(options, torus));
  TAHOMA_ASSIGN_OR_RETURN(Fabric fabric, FabricOf(options, torus));
  for (const std::string& cable : options.down) {
    TAHOMA_RETURN_IF_ERROR(BreakCable(cable, box, fabric));
  }
  for (const std::string& chip : options.efa_down) {
    TAHOMA_RETURN_IF_ERROR(BreakNic(chip, fabric));
  }
  std::vector<Member> members;
  for (int domain = 0; domain < fabric.domain_count(); ++domain) {
    for (Member member : MembersOf(box.mask, static_cast<int>(options.ranks))) {
      member.chip = Fabric::ChipOf(domain, member.chip.value());
      members.push_back(member);
    }
  }
  Request request;
  TAHOMA_ASSIGN_OR_RETURN(const PlanOptions how, PlanOptionsOf(options));
  TAHOMA_ASSIGN_OR_RETURN(const Plan plan, PlanOf(options, how, members, fabric, request));
  TAHOMA_ASSIGN_OR_RETURN(Occupancy use, OccupancyOf(plan, fabric, !options.trace_file.empty()));
  TAHOMA_ASSIGN_OR_RETURN(TraceAnswer answer,
                          AnswerOf(options, plan, request, members, fabric, how));
  answer.box = box.ToString();
  std::string title = TitleOf(answer, options.domains);
  return Traced{.answer = std::move(answer),
                .title = std::move(title),
                .fabric = std::move(fabric),
                .use = std::move(use)};
}

absl::StatusOr<std::string> SweepOf(const TraceOptions& options) {
  if (options.min_bytes > options.max_bytes) {
    return InvalidArgument("minBytes {} is more than maxBytes {}", options.min_bytes,
                           options.max_bytes);
  }
  const bool json = options.output == "json";
  std::string text = fmt::format("{:>16}{:>16}{:>9}{:>16}{:>15}{:>15}{:>15}{:>15}{:>13}\n",
                                 "size(B)", "count(elems)", "type", "time(us)", "algbw(GB/s)",
                                 "busbw(GB/s)", "links(us)", "start-up(us)", "algorithm");
  Json summaries = Json::array();
  for (std::int64_t bytes = options.min_bytes; bytes <= options.max_bytes;
       bytes *= options.step_factor) {
    TraceOptions one = options;
    one.bytes = bytes;
    one.trace_file.clear();
    const auto traced = TraceOf(one);
    if (!traced.ok()) return Annotate(traced.status(), fmt::format("{} bytes", bytes));
    const TraceAnswer& answer = traced->answer;
    if (json) {
      summaries.push_back(ParseJson(JsonSummary(*traced)));
      continue;
    }
    const std::string bound =
        answer.bound ? fmt::format("{:.2f}", Nanoseconds(*answer.bound) / 1e3) : "";
    text += fmt::format("{:>16}{:>16}{:>9}{:>16.2f}{:>15.2f}{:>15.2f}{:>15}{:>15.2f}{:>13}\n",
                        bytes, answer.request.bytes / Size(answer.request.type),
                        Name(answer.request.type), Nanoseconds(answer.time) / 1e3,
                        answer.AlgorithmBandwidth(), answer.BusBandwidth(), bound,
                        Nanoseconds(answer.start_up) / 1e3, Name(answer.algorithm));
  }
  return json ? summaries.dump(2) + "\n" : text;
}

}  // namespace tahoma::sim
