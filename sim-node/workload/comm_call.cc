#include "sim-node/workload/comm_call.h"

#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/wire/fields.h"

namespace tahoma::sim {
namespace {

// Longer than sim-node's own wait for the other ranks, so sim-node's message is printed.
constexpr std::chrono::seconds kJoinTimeout{300};
constexpr std::chrono::seconds kLeaveTimeout{10};
constexpr std::chrono::seconds kHostTimeout{60};
constexpr std::int64_t kMaxChips = 131'072;  // of 2,048 pods in UltraServers of their own
constexpr std::size_t kMaxPool = 64;         // of an UltraServer

}  // namespace

absl::StatusOr<CommJoined> CommCall::Join(const CommPlace& place, int cores) {
  Json params = {{"worldSize", place.world_size}};
  if (cores != 0) params["cores"] = cores;
  TAHOMA_ASSIGN_OR_RETURN(const wire::Reply reply,
                          OfRank("commJoin", place, std::move(params), kJoinTimeout));
  TAHOMA_ASSIGN_OR_RETURN(const Json json, wire::ReadJson(reply.result, "commJoin"));
  wire::Fields fields(json, "commJoin");
  CommJoined joined;
  joined.ranks = static_cast<int>(fields.Int("ranks", 1, 8 * kMaxChips));
  joined.chips = static_cast<int>(fields.Int("chips", 1, kMaxChips));
  joined.first_chip = static_cast<int>(fields.Int("firstChip", 0, kMaxChips - 1));
  joined.own_chips = static_cast<int>(fields.Int("ownChips", 1, joined.chips));
  for (const Json& chip : fields.Array("pool", kMaxPool)) {
    if (!chip.is_number_integer() || chip < 0 || chip >= joined.chips) {
      fields.Fail(InvalidArgument("{} must hold chips from 0 to {}", fields.Path("pool"),
                                  joined.chips - 1));
      break;
    }
    joined.pool.push_back(chip.get<int>());
  }
  TAHOMA_RETURN_IF_ERROR(fields.status());
  return joined;
}

absl::StatusOr<wire::Reply> CommCall::OfRank(std::string_view method, const CommPlace& place,
                                             Json params, std::chrono::seconds timeout,
                                             std::string payload) {
  params["commId"] = place.comm_id;
  params["rank"] = place.rank;
  return OfClaim(method, std::move(params), timeout, std::move(payload));
}

absl::StatusOr<wire::Reply> CommCall::OfClaim(std::string_view method, Json params,
                                              std::chrono::seconds timeout, std::string payload) {
  params["token"] = token_;
  return client_.Call(
      {.method = std::string(method), .params = params.dump(), .payload = std::move(payload)},
      timeout);
}

absl::Status CommCall::Store(int chip, std::uint64_t address, const std::string& bytes) {
  return OfClaim("memStore", {{"chip", chip}, {"address", address}}, kHostTimeout, bytes).status();
}

absl::StatusOr<std::string> CommCall::Load(int chip, std::uint64_t address, std::uint64_t bytes) {
  TAHOMA_ASSIGN_OR_RETURN(
      wire::Reply reply,
      OfClaim("memLoad", {{"chip", chip}, {"address", address}, {"bytes", bytes}}, kHostTimeout));
  return std::move(reply.payload);
}

void CommCall::Leave(const CommPlace& place) {
  (void)OfRank("commLeave", place, Json::object(), kLeaveTimeout);
}

}  // namespace tahoma::sim
