#include "sim-node/workload/core_node.h"

#include <limits>

#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/wire/fields.h"

namespace tahoma::sim {
namespace {

constexpr std::chrono::seconds kRunTimeout{600};
constexpr std::int64_t kMaxInt = std::numeric_limits<std::int64_t>::max();
constexpr std::size_t kMaxName = 64;
constexpr std::size_t kMaxResources = 256;

absl::StatusOr<CoreReport> ReadReport(wire::Reply reply) {
  TAHOMA_ASSIGN_OR_RETURN(const Json json, wire::ReadJson(reply.result, "coreRun"));
  wire::Fields fields(json, "coreRun");
  CoreReport report{.profile = fields.String("profile", 1, kMaxName),
                    .chip = static_cast<int>(fields.Int("chip", 0, 127)),
                    .core = static_cast<int>(fields.Int("core", 0, 127)),
                    .instructions = fields.Int("instructions", 0, kMaxInt),
                    .time_ps = fields.Int("timePs", 0, kMaxInt),
                    .bound_ps = fields.Int("boundPs", 0, kMaxInt),
                    .bound = fields.String("bound", 1, kMaxName),
                    .left_out = fields.Int("leftOut", 0, kMaxInt)};
  for (const Json& item : fields.Array("resources", kMaxResources)) {
    wire::Fields one(item, fields.Path("resources"));
    report.resources.push_back({.name = one.String("name", 1, kMaxName),
                                .busy_ps = one.Int("busyPs", 0, kMaxInt),
                                .instructions = one.Int("instructions", 0, kMaxInt)});
    fields.Fail(one.status());
  }
  TAHOMA_RETURN_IF_ERROR(fields.status());
  report.timeline = std::move(reply.payload);
  return report;
}

}  // namespace

absl::StatusOr<CoreReport> SocketCoreNode::Run(const TrnRunOptions& options,
                                               const std::string& program) {
  TAHOMA_ASSIGN_OR_RETURN(wire::Reply reply,
                          call_.OfClaim("coreRun",
                                        {{"chip", options.chip},
                                         {"core", options.core},
                                         {"data", options.data},
                                         {"timeline", !options.timeline.empty()}},
                                        kRunTimeout, program));
  return ReadReport(std::move(reply));
}

}  // namespace tahoma::sim
