#include "sim-node/workload/nccom_node.h"

#include <limits>
#include <nlohmann/json.hpp>

#include "lib/base/status.h"
#include "lib/wire/fields.h"

namespace tahoma::sim {
namespace {

using Json = nlohmann::json;

// Longer than sim-node itself waits for the other ranks, so that its message is the one we print.
constexpr std::chrono::seconds kJoinTimeout{300};
constexpr std::chrono::seconds kRunTimeout{1800};
constexpr std::chrono::seconds kLeaveTimeout{10};
constexpr std::int64_t kMaxInt = std::numeric_limits<std::int64_t>::max();

Json Place(const NccomPlace& place, const std::string& token) {
  return {{"token", token}, {"commId", place.comm_id}, {"rank", place.rank}};
}

}  // namespace

absl::StatusOr<NccomJoined> SocketNode::Join(const NccomPlace& place, int cores) {
  Json params = Place(place, token_);
  params["worldSize"] = place.world_size;
  if (cores != 0) params["cores"] = cores;
  TAHOMA_ASSIGN_OR_RETURN(
      const wire::Reply reply,
      client_.Call({.method = "commJoin", .params = params.dump()}, kJoinTimeout));
  TAHOMA_ASSIGN_OR_RETURN(const Json json, wire::ParseJson(reply.result, "commJoin"));
  wire::Fields fields(json, "commJoin");
  NccomJoined joined;
  joined.ranks = static_cast<int>(fields.Int("ranks", 1, 512));
  joined.chips = static_cast<int>(fields.Int("chips", 1, 64));
  TAHOMA_RETURN_IF_ERROR(fields.status());
  return joined;
}

absl::StatusOr<NccomRun> SocketNode::Run(const NccomPlace& place, const NccomOptions& options,
                                         std::uint64_t bytes) {
  Json params = Place(place, token_);
  params["op"] = options.operation;
  params["dtype"] = options.type;
  params["redOp"] = options.redop;
  params["bytes"] = bytes;
  params["iterations"] = options.iterations;
  params["warmup"] = options.warmup;
  params["check"] = options.check;
  params["seed"] = options.seed < 0 ? static_cast<std::int64_t>(bytes) : options.seed;
  TAHOMA_ASSIGN_OR_RETURN(
      const wire::Reply reply,
      client_.Call({.method = "commRun", .params = params.dump()}, kRunTimeout));
  TAHOMA_ASSIGN_OR_RETURN(const Json json, wire::ParseJson(reply.result, "commRun"));
  wire::Fields fields(json, "commRun");
  NccomRun run;
  run.algorithm = fields.String("algorithm", 1, 32);
  run.time_ps = fields.Int("timePs", 0, kMaxInt);
  run.wrong_elements = static_cast<std::uint64_t>(fields.Int("wrongElements", 0, kMaxInt));
  TAHOMA_RETURN_IF_ERROR(fields.status());
  return run;
}

void SocketNode::Leave(const NccomPlace& place) {
  // When it fails the node notices that the claim is released.
  (void)client_.Call({.method = "commLeave", .params = Place(place, token_).dump()}, kLeaveTimeout);
}

}  // namespace tahoma::sim
