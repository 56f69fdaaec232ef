#include "sim-node/workload/mem_node.h"

#include <limits>
#include <nlohmann/json.hpp>

#include "lib/base/status.h"
#include "lib/wire/fields.h"

namespace tahoma::sim {
namespace {

using Json = nlohmann::json;

// Longer than sim-node itself waits for the other ranks, so that its message is the one we print.
constexpr std::chrono::seconds kJoinTimeout{300};
constexpr std::chrono::seconds kAccessTimeout{600};
constexpr std::chrono::seconds kHostTimeout{60};
constexpr std::chrono::seconds kLeaveTimeout{10};
constexpr std::int64_t kMaxInt = std::numeric_limits<std::int64_t>::max();

Json Place(const NccomPlace& place, const std::string& token) {
  return {{"token", token}, {"commId", place.comm_id}, {"rank", place.rank}};
}

}  // namespace

absl::StatusOr<MemJoined> SocketMemNode::Join(const NccomPlace& place) {
  Json params = Place(place, token_);
  params["worldSize"] = place.world_size;
  TAHOMA_ASSIGN_OR_RETURN(
      const wire::Reply reply,
      client_.Call({.method = "commJoin", .params = params.dump()}, kJoinTimeout));
  TAHOMA_ASSIGN_OR_RETURN(const Json json, wire::ParseJson(reply.result, "commJoin"));
  wire::Fields fields(json, "commJoin");
  MemJoined joined;
  joined.first_chip = static_cast<int>(fields.Int("firstChip", 0, 63));
  joined.own_chips = static_cast<int>(fields.Int("ownChips", 1, 64));
  joined.chips = static_cast<int>(fields.Int("chips", 1, 64));
  TAHOMA_RETURN_IF_ERROR(fields.status());
  return joined;
}

absl::Status SocketMemNode::Store(int chip, std::uint64_t address, const std::string& bytes) {
  const Json params = {{"token", token_}, {"chip", chip}, {"address", address}};
  return client_
      .Call({.method = "memStore", .params = params.dump(), .payload = bytes}, kHostTimeout)
      .status();
}

absl::StatusOr<std::string> SocketMemNode::Load(int chip, std::uint64_t address,
                                                std::uint64_t bytes) {
  const Json params = {{"token", token_}, {"chip", chip}, {"address", address}, {"bytes", bytes}};
  TAHOMA_ASSIGN_OR_RETURN(
      wire::Reply reply,
      client_.Call({.method = "memLoad", .params = params.dump()}, kHostTimeout));
  return std::move(reply.payload);
}

absl::StatusOr<std::vector<MemTaken>> SocketMemNode::Access(const NccomPlace& place,
                                                            const std::vector<MemAccess>& accesses,
                                                            bool move) {
  Json params = Place(place, token_);
  params["move"] = move;
  params["accesses"] = Json::array();
  for (const MemAccess& access : accesses) {
    params["accesses"].push_back({{"kind", access.write ? "write" : "read"},
                                  {"chip", access.chip},
                                  {"address", access.address},
                                  {"remoteChip", access.remote_chip},
                                  {"remoteAddress", access.remote_address},
                                  {"bytes", access.bytes}});
  }
  TAHOMA_ASSIGN_OR_RETURN(
      const wire::Reply reply,
      client_.Call({.method = "commAccess", .params = params.dump()}, kAccessTimeout));
  TAHOMA_ASSIGN_OR_RETURN(const Json json, wire::ParseJson(reply.result, "commAccess"));
  wire::Fields fields(json, "commAccess");
  std::vector<MemTaken> taken;
  for (const Json& item : fields.Array("accesses", accesses.size())) {
    wire::Fields one(item, fields.Path("accesses"));
    taken.push_back({.time_ps = one.Int("timePs", 0, kMaxInt),
                     .hops = static_cast<int>(one.Int("hops", 0, 64))});
    fields.Fail(one.status());
  }
  TAHOMA_RETURN_IF_ERROR(fields.status());
  return taken;
}

void SocketMemNode::Leave(const NccomPlace& place) {
  // When it fails the node notices that the claim is released.
  (void)client_.Call({.method = "commLeave", .params = Place(place, token_).dump()}, kLeaveTimeout);
}

}  // namespace tahoma::sim
