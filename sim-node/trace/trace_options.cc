#include "sim-node/trace/trace_options.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "lib/base/status.h"
#include "lib/hw/catalogue.h"
#include "sim-node/collective/bound.h"
#include "sim-node/fidelity/fidelity.h"

namespace tahoma::sim {
namespace {

using torus::ChipIndex;

absl::StatusOr<torus::Box> BoxOf(const TraceOptions& options) {
  TAHOMA_ASSIGN_OR_RETURN(const torus::Shape shape, torus::Shape::Parse(options.box));
  TAHOMA_RETURN_IF_ERROR(torus::CheckOffered(shape));
  for (const torus::Box& box : torus::BoxTable::Of(torus::kUltraServerShape).Rotations(shape)) {
    if (box.size == shape && torus::ToString(box.origin) == options.at) return box;
  }
  return InvalidArgument("no box of {} begins at {} in a torus of {}; expected for example 0,0,0",
                         options.box, options.at, torus::kUltraServerShape.ToString());
}

// "5:x+": the cable on chip 5's x+ port.
absl::StatusOr<LinkId> ParseCable(std::string_view text) {
  const std::size_t colon = std::min(text.find(':'), text.size());
  int chip = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + colon, chip);
  const auto port = ParsePort(text.substr(std::min(colon + 1, text.size())));
  if (error != std::errc() || end != text.data() + colon || chip < 0 ||
      chip >= torus::kUltraServerShape.chip_count() || !port.ok()) {
    return InvalidArgument("down: \"{}\" is no cable; expected a chip and a port, for example 5:x+",
                           text);
  }
  return TorusLinks::IdOf(ChipIndex(chip), port->axis, port->direction);
}

absl::StatusOr<PlanOptions> PlanOptionsOf(const TraceOptions& options) {
  PlanOptions plan{
      .mode = PlanMode::kBest, .costs = {}, .slices = static_cast<int>(options.slices)};
  TAHOMA_ASSIGN_OR_RETURN(plan.mode, ParsePlanMode(options.mode));
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
                            const std::vector<Member>& members, const TorusLinks& links,
                            Request& request) {
  TAHOMA_ASSIGN_OR_RETURN(request.operation, ParseOperation(options.operation));
  TAHOMA_ASSIGN_OR_RETURN(request.type, ParseElementType(options.type));
  request.bytes = static_cast<std::uint64_t>(options.bytes);
  if (options.algorithm == "auto") return PlanCollective(request, members, links, plan);
  TAHOMA_ASSIGN_OR_RETURN(const Algorithm algorithm, ParseAlgorithm(options.algorithm));
  return PlanWith(algorithm, request, members, links, plan);
}

}  // namespace

config::Spec DeclareTraceOptions(TraceOptions& options) {
  config::Spec spec({.program = "trn-trace",
                     .kind = "TraceConfig",
                     .version = "0.1.0",
                     .summary = "Shows which links of an UltraServer a collective keeps busy."});
  spec.String("operation", &options.operation, "as nccom-test names it");
  spec.Int("bytes", &options.bytes, {.min = 1, .max = std::int64_t{8} << 30}, "of a rank's buffer");
  spec.String("type", &options.type, "of the elements, as nccom-test names it");
  spec.String("level", &options.level, "what tells the time: closed-form, flows or flits");
  spec.String("algorithm", &options.algorithm, "auto, mesh, rdh, ring, kangaring, bucket or tree");
  spec.String("mode", &options.mode, "best, or aws: as Neuron's documents describe its algorithms");
  spec.Int("slices", &options.slices, {.max = kMaxSlices},
           "of the buffers, of which one starts up while the other's messages fly; 0: the faster");
  spec.Strings("without", &options.without,
               "costs of the chips not to count: memory, dma-start, cc-cores");
  spec.String("box", &options.box, "chips, \"AxBxC\" with sides 1, 2 and 4, as placed");
  spec.String("at", &options.at, "its first corner, \"x,y,z\"");
  spec.Int("ranks", &options.ranks, {.min = 1, .max = 8}, "logical cores of each chip");
  spec.Strings("down", &options.down, "broken cables, each a chip and a port, \"5:x+\"");
  spec.String("traceFile", &options.trace_file, "timeline to write, for Perfetto or Chrome");
  spec.String("svgFile", &options.svg_file, "picture of the links' utilisation to write");
  return spec;
}

absl::StatusOr<Traced> TraceOf(const TraceOptions& options) {
  TAHOMA_ASSIGN_OR_RETURN(const torus::Box box, BoxOf(options));
  TorusLinks links(torus::kUltraServerShape, hw::kTrainium2.links);
  for (const std::string& cable : options.down) {
    TAHOMA_ASSIGN_OR_RETURN(const LinkId link, ParseCable(cable));
    TAHOMA_RETURN_IF_ERROR(links.SetCablePermille(link, 0));
  }
  const std::vector<Member> members = MembersOf(box.mask, static_cast<int>(options.ranks));
  Request request;
  TAHOMA_ASSIGN_OR_RETURN(const PlanOptions how, PlanOptionsOf(options));
  TAHOMA_ASSIGN_OR_RETURN(const Plan plan, PlanOf(options, how, members, links, request));
  TAHOMA_ASSIGN_OR_RETURN(Occupancy use, OccupancyOf(plan, links));
  TAHOMA_ASSIGN_OR_RETURN(const Fidelity level, ParseFidelity(options.level));
  TAHOMA_ASSIGN_OR_RETURN(const VirtualDuration at_level,
                          TimeOf(level, plan, request, members, links, how));
  const double time = Nanoseconds(at_level) / 1e3;
  const double bound =
      Nanoseconds(LowerBound(request.operation, SetOf(members, links), request.bytes, links)) / 1e3;
  std::string title = fmt::format(
      "{} of {} bytes {} on {}, {}: {:.2f} us by {}, {} steps; the links allow {:.2f} us",
      Name(request.operation), request.bytes, Name(request.type), box.ToString(),
      Name(plan.algorithm), time, Name(level), plan.schedule.steps.size(), bound);
  return Traced{.title = std::move(title), .links = std::move(links), .use = std::move(use)};
}

}  // namespace tahoma::sim
