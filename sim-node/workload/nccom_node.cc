#include "sim-node/workload/nccom_node.h"

#include <limits>

#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/wire/fields.h"

namespace tahoma::sim {
namespace {

constexpr std::chrono::seconds kRunTimeout{1800};
constexpr std::int64_t kMaxInt = std::numeric_limits<std::int64_t>::max();

// Returns the division as JSON; empty when all ranks do the same in one group.
std::string DivisionText(const NccomDivision& division) {
  if (division.groups.empty() && division.pairs.empty() && division.counts.empty()) return "";
  Json counts = Json::array();
  for (const CountsEntry& entry : division.counts) {
    counts.push_back({{"sendCounts", entry.send_counts},
                      {"sendDispls", entry.send_displs},
                      {"recvCounts", entry.recv_counts},
                      {"recvDispls", entry.recv_displs}});
  }
  const Json json = {
      {"replicaGroups", division.groups}, {"pairs", division.pairs}, {"counts", std::move(counts)}};
  return json.dump();
}

}  // namespace

absl::StatusOr<NccomRun> SocketNode::Run(const CommPlace& place, const NccomOptions& options,
                                         const NccomDivision& division, std::uint64_t bytes) {
  Json params = {{"op", options.operation}};
  params["dtype"] = options.type;
  params["redOp"] = options.redop;
  params["bytes"] = bytes;
  params["iterations"] = options.iterations * options.MeasuredRuns();
  params["warmup"] = options.WarmupOperations();
  params["check"] = options.check;
  if (options.ones) params["pattern"] = "all_ones";
  params["seed"] = options.seed < 0 ? static_cast<std::int64_t>(bytes) : options.seed;
  TAHOMA_ASSIGN_OR_RETURN(
      const wire::Reply reply,
      call_.OfRank("commRun", place, std::move(params), kRunTimeout, DivisionText(division)));
  TAHOMA_ASSIGN_OR_RETURN(const Json json, wire::ReadJson(reply.result, "commRun"));
  wire::Fields fields(json, "commRun");
  NccomRun run;
  run.algorithm = fields.String("algorithm", 1, 32);
  run.time_ps = fields.Int("timePs", 0, kMaxInt);
  // Absent in answers of earlier nodes, too.
  if (fields.Has("boundPs")) run.bound_ps = fields.Int("boundPs", 0, kMaxInt);
  run.wrong_elements = static_cast<std::uint64_t>(fields.Int("wrongElements", 0, kMaxInt));
  TAHOMA_RETURN_IF_ERROR(fields.status());
  return run;
}

}  // namespace tahoma::sim
