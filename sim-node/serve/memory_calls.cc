#include "sim-node/serve/memory_calls.h"

#include <limits>
#include <utility>

#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/wire/fields.h"
#include "sim-node/serve/communicator_of_instance.h"

namespace tahoma::sim {
namespace {

constexpr std::int64_t kMaxPlace = std::numeric_limits<std::int64_t>::max();

// Reads "chip" and "address", a place in the memory of the claim's own chips.
absl::StatusOr<MemoryPlace> OwnPlace(wire::Fields& fields,
                                     const std::vector<ClaimMemory::Share>& shares) {
  const std::int64_t chip = fields.Int("chip", 0, static_cast<std::int64_t>(shares.size()) - 1);
  const std::int64_t address = fields.Int("address", 0, kMaxPlace);
  TAHOMA_RETURN_IF_ERROR(fields.status());
  return MemoryPlace{.chip = shares[static_cast<std::size_t>(chip)].chip,
                     .address = static_cast<std::uint64_t>(address)};
}

// Reads an access of commAccess; its chips are indexes into `chips`, the communicator's chips.
absl::StatusOr<MemoryAccess> ReadAccess(const Json& item, const std::string& where,
                                        const std::vector<torus::ChipIndex>& chips) {
  wire::Fields fields(item, where);
  const auto last = static_cast<std::int64_t>(chips.size()) - 1;
  const std::string kind = fields.String("kind", 1, 8);
  const std::int64_t local = fields.Int("chip", 0, last);
  const std::int64_t address = fields.Int("address", 0, kMaxPlace);
  const std::int64_t remote = fields.Int("remoteChip", 0, last);
  const std::int64_t remote_address = fields.Int("remoteAddress", 0, kMaxPlace);
  const std::int64_t bytes = fields.Int("bytes", 1, kMaxPlace);
  if (kind != "read" && kind != "write") {
    fields.Fail(InvalidArgument("{} is \"{}\"; expected read or write", fields.Path("kind"), kind));
  }
  TAHOMA_RETURN_IF_ERROR(fields.status());
  return MemoryAccess{
      .kind = kind == "read" ? AccessKind::kRead : AccessKind::kWrite,
      .local = {chips[static_cast<std::size_t>(local)], static_cast<std::uint64_t>(address)},
      .remote = {chips[static_cast<std::size_t>(remote)],
                 static_cast<std::uint64_t>(remote_address)},
      .bytes = static_cast<std::uint64_t>(bytes)};
}

}  // namespace

absl::StatusOr<wire::Reply> MemoryCalls::Call(const wire::Request& request,
                                              const std::string& claim,
                                              const std::vector<ClaimMemory::Share>& shares) {
  const std::shared_ptr<ClaimMemory> memory = memory_.Of(claim, shares);
  if (request.method == kMemStore) return Store(request, *memory, shares);
  if (request.method == kMemLoad) return Load(request, *memory, shares);
  if (request.method == kCommAccess) return Access(request, claim, *memory);
  return Unimplemented("unknown method \"{}\"", request.method);
}

absl::StatusOr<wire::Reply> MemoryCalls::With(
    const LiveInstance& live, const Caller& caller,
    absl::FunctionRef<absl::StatusOr<wire::Reply>(ClaimMemory& memory,
                                                  const std::vector<ClaimMemory::Share>& shares)>
        use) {
  const std::vector<ClaimMemory::Share> shares =
      live.Read([&](const Instance& instance) { return MemoryOfClaim(instance, caller.claim); });
  auto reply = use(*memory_.Of(caller.token, shares), shares);
  // If the claim was released meanwhile, this call may have made the dropped memory again.
  const bool held =
      live.Read([&](const Instance& instance) { return instance.FindClaim(caller.token).ok(); });
  if (!held) Drop(caller.token);
  return reply;
}

absl::StatusOr<wire::Reply> MemoryCalls::Store(const wire::Request& request, ClaimMemory& memory,
                                               const std::vector<ClaimMemory::Share>& shares) {
  TAHOMA_ASSIGN_OR_RETURN(const Json json, wire::ReadJson(request.params, kMemStore));
  wire::Fields fields(json, std::string(kMemStore));
  TAHOMA_ASSIGN_OR_RETURN(const MemoryPlace place, OwnPlace(fields, shares));
  if (request.payload.size() > kMaxHostBytes) {
    return InvalidArgument("memStore carries {} bytes; expected at most {}", request.payload.size(),
                           kMaxHostBytes);
  }
  TAHOMA_RETURN_IF_ERROR(memory.Write(place, request.payload));
  return wire::Reply{};
}

absl::StatusOr<wire::Reply> MemoryCalls::Load(const wire::Request& request, ClaimMemory& memory,
                                              const std::vector<ClaimMemory::Share>& shares) {
  TAHOMA_ASSIGN_OR_RETURN(const Json json, wire::ReadJson(request.params, kMemLoad));
  wire::Fields fields(json, std::string(kMemLoad));
  const std::int64_t bytes = fields.Int("bytes", 1, kMaxHostBytes);
  TAHOMA_ASSIGN_OR_RETURN(const MemoryPlace place, OwnPlace(fields, shares));
  TAHOMA_ASSIGN_OR_RETURN(std::string loaded,
                          memory.Read({.at = place, .bytes = static_cast<std::uint64_t>(bytes)}));
  return wire::Reply{.payload = std::move(loaded)};
}

absl::StatusOr<wire::Reply> MemoryCalls::Access(const wire::Request& request,
                                                const std::string& claim, ClaimMemory& memory) {
  TAHOMA_ASSIGN_OR_RETURN(const Json json, wire::ReadJson(request.params, kCommAccess));
  wire::Fields fields(json, std::string(kCommAccess));
  const std::string comm_id = fields.String("commId", 1, kMaxFullCommIdBytes);
  const auto rank = static_cast<int>(fields.Int("rank", 0, kMaxWorldSize - 1));
  AccessSpec spec{.move = fields.BoolOr("move", true)};
  const Json& list = fields.Array("accesses", kMaxAccesses);
  TAHOMA_RETURN_IF_ERROR(fields.status());
  TAHOMA_RETURN_IF_ERROR(ranks_.CheckHolder({comm_id, rank}, claim));
  TAHOMA_ASSIGN_OR_RETURN(const std::vector<torus::ChipIndex> chips,
                          communicators_.Chips(comm_id, rank));
  for (const Json& item : list) {
    const std::string where = fmt::format("commAccess.accesses[{}]", spec.accesses.size());
    TAHOMA_ASSIGN_OR_RETURN(const MemoryAccess access, ReadAccess(item, where, chips));
    spec.accesses.push_back(access);
  }
  TAHOMA_ASSIGN_OR_RETURN(const AccessResult result,
                          communicators_.Access(comm_id, rank, spec, memory));
  Json accesses = Json::array();
  for (std::size_t i = 0; i < result.times.size(); ++i) {
    accesses.push_back({{"timePs", result.times[i].count()}, {"hops", result.hops[i]}});
  }
  const Json reply = {{"timePs", result.time.count()},
                      {"clockPs", result.end.time_since_epoch().count()},
                      {"accesses", std::move(accesses)}};
  return wire::Reply{.result = reply.dump()};
}

std::vector<ClaimMemory::Share> MemoryOfClaim(const Instance& instance, const HeldClaim& claim) {
  const auto all = static_cast<std::uint64_t>(hw::LogicalCores(*instance.type().chip, claim.lnc));
  const auto whole = static_cast<std::uint64_t>(instance.type().chip->hbm_bytes);
  std::vector<ClaimMemory::Share> shares;
  for (const Member& member : CoresOfClaim(instance, claim)) {
    shares.push_back(
        {.chip = member.chip, .bytes = whole / all * static_cast<std::uint64_t>(member.ranks)});
  }
  return shares;
}

void AddMemoryCalls(NodeServer& server, const LiveInstance& live, MemoryCalls& calls,
                    const std::function<void(const std::string& token)>& called) {
  const auto call = [&live, &calls, called](const Caller& caller, const wire::Request& request) {
    called(caller.token);
    return calls.With(live, caller, [&](ClaimMemory&, const auto& shares) {
      return calls.Call(request, caller.token, shares);
    });
  };
  server.AddWorkloadCall(std::string(kMemStore), call);
  server.AddWorkloadCall(std::string(kMemLoad), call, [](const Json& params) -> std::size_t {
    const Json* bytes = FindMember(params, "bytes");
    // Other values are refused by the call.
    const bool good = bytes != nullptr && bytes->is_number_unsigned() && *bytes <= kMaxHostBytes;
    return good ? bytes->get<std::size_t>() : 0;
  });
  server.AddWorkloadCall(
      std::string(kCommAccess),
      [call](const Caller& caller, const wire::Request& request) -> absl::StatusOr<wire::Reply> {
        TAHOMA_ASSIGN_OR_RETURN(const wire::Request own,
                                InNamespace(request, caller.claim.name_space));
        return call(caller, own);
      });
}

}  // namespace tahoma::sim
