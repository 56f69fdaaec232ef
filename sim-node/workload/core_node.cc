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
constexpr std::size_t kMaxResources = 256;  // of a rank

CoreReport::Rank ReadRank(const Json& item, wire::Fields& parent) {
  wire::Fields fields(item, parent.Path("ranks"));
  CoreReport::Rank rank{.chip = static_cast<int>(fields.Int("chip", 0, 127)),
                        .core = static_cast<int>(fields.Int("core", 0, 127)),
                        .time_ps = fields.Int("timePs", 0, kMaxInt),
                        .bound_ps = fields.Int("boundPs", 0, kMaxInt),
                        .bound = fields.String("bound", 1, kMaxName),
                        .left_out = fields.Int("leftOut", 0, kMaxInt)};
  for (const Json& resource : fields.Array("resources", kMaxResources)) {
    wire::Fields one(resource, fields.Path("resources"));
    rank.resources.push_back({.name = one.String("name", 1, kMaxName),
                              .busy_ps = one.Int("busyPs", 0, kMaxInt),
                              .instructions = one.Int("instructions", 0, kMaxInt)});
    fields.Fail(one.status());
  }
  parent.Fail(fields.status());
  return rank;
}

absl::StatusOr<CoreReport> ReadReport(wire::Reply reply, std::size_t ranks) {
  TAHOMA_ASSIGN_OR_RETURN(const Json json, wire::ReadJson(reply.result, "coreRun"));
  wire::Fields fields(json, "coreRun");
  CoreReport report{.profile = fields.String("profile", 1, kMaxName),
                    .instructions = fields.Int("instructions", 0, kMaxInt),
                    .time_ps = fields.Int("timePs", 0, kMaxInt)};
  for (const Json& item : fields.Array("ranks", ranks)) {
    report.ranks.push_back(ReadRank(item, fields));
  }
  TAHOMA_RETURN_IF_ERROR(fields.status());
  if (report.ranks.size() != ranks) {
    return InvalidArgument("coreRun.ranks has {} ranks; expected {}", report.ranks.size(), ranks);
  }
  report.timeline = std::move(reply.payload);
  return report;
}

}  // namespace

absl::StatusOr<CoreReport> SocketCoreNode::Run(const TrnRunOptions& options,
                                               const std::vector<RankPlace>& ranks,
                                               const std::string& program) {
  Json places = Json::array();
  for (const RankPlace& rank : ranks) {
    places.push_back({{"chip", rank.chip}, {"core", rank.core}, {"address", rank.address}});
  }
  Json params = {{"ranks", std::move(places)},
                 {"data", options.data},
                 {"timeline", !options.timeline.empty()}};
  if (options.rounding_seed) params["roundingSeed"] = *options.rounding_seed;
  TAHOMA_ASSIGN_OR_RETURN(wire::Reply reply,
                          call_.OfClaim("coreRun", std::move(params), kRunTimeout, program));
  return ReadReport(std::move(reply), ranks.size());
}

}  // namespace tahoma::sim
