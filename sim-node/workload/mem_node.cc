#include "sim-node/workload/mem_node.h"

#include <limits>

#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/wire/fields.h"

namespace tahoma::sim {
namespace {

constexpr std::chrono::seconds kAccessTimeout{600};
constexpr std::int64_t kMaxInt = std::numeric_limits<std::int64_t>::max();

}  // namespace

absl::StatusOr<std::vector<MemTaken>> SocketMemNode::Access(const CommPlace& place,
                                                            const std::vector<MemAccess>& accesses,
                                                            bool move) {
  Json params = {{"move", move}, {"accesses", Json::array()}};
  for (const MemAccess& access : accesses) {
    params["accesses"].push_back({{"kind", access.write ? "write" : "read"},
                                  {"chip", access.chip},
                                  {"address", access.address},
                                  {"remoteChip", access.remote_chip},
                                  {"remoteAddress", access.remote_address},
                                  {"bytes", access.bytes}});
  }
  TAHOMA_ASSIGN_OR_RETURN(const wire::Reply reply,
                          call_.OfRank("commAccess", place, std::move(params), kAccessTimeout));
  TAHOMA_ASSIGN_OR_RETURN(const Json json, wire::ReadJson(reply.result, "commAccess"));
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

}  // namespace tahoma::sim
