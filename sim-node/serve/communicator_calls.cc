#include "sim-node/serve/communicator_calls.h"

#include <algorithm>

#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/wire/fields.h"

namespace tahoma::sim {
namespace {

constexpr int kMaxCores = 512;  // logical cores of an UltraServer under LNC 1

// Returns the first `count` logical cores of `cores`.
absl::StatusOr<std::vector<Member>> FirstCores(const std::vector<Member>& cores, int count) {
  std::vector<Member> members;
  int left = count;
  for (const Member& member : cores) {
    if (left == 0) break;
    members.push_back(PartOf(member, std::min(member.ranks, left)));
    left -= members.back().ranks;
  }
  if (left != 0) {
    return InvalidArgument("{} logical cores are asked for, the claim has {}", count, count - left);
  }
  return members;
}

// An alltoallv of 512 ranks, the most that may have counts, says them in 10 MiB; as a value they
// are several times that.
constexpr std::size_t kMaxDivisionBytes = std::size_t{12} << 20U;
// From here on one is read after the other.
constexpr std::size_t kLargeDivisionBytes = std::size_t{64} << 10U;
constexpr std::size_t kMaxRanks = 8 * kMaxWorldSize * Fabric::kChipsPerDomain;

template <typename Number>
std::vector<Number> ReadNumbers(wire::Fields& fields, std::string_view where, const Json& list,
                                std::int64_t max) {
  std::vector<Number> numbers;
  for (const Json& item : list) {
    if (!item.is_number_integer() || item < 0 || item > max) {
      fields.Fail(InvalidArgument("{} must hold whole numbers from 0 to {}", where, max));
      return {};
    }
    numbers.push_back(item.get<Number>());
  }
  return numbers;
}

// Reads a list of lists of ranks.
std::vector<std::vector<int>> ReadLists(wire::Fields& fields, std::string_view key) {
  std::vector<std::vector<int>> lists;
  for (const Json& item : fields.Array(key, kMaxRanks)) {
    if (!item.is_array()) {
      fields.Fail(InvalidArgument("{} must hold lists of ranks", fields.Path(key)));
      return {};
    }
    lists.push_back(ReadNumbers<int>(fields, fields.Path(key), item, kMaxRanks - 1));
  }
  return lists;
}

VariableCounts ReadCounts(wire::Fields& fields, const Json& item) {
  constexpr auto kMaxElements = static_cast<std::int64_t>(kMaxRequestBytes);
  wire::Fields entry(item, fields.Path("counts"));
  const auto read = [&](std::string_view key) {
    return ReadNumbers<std::uint64_t>(entry, entry.Path(key), entry.Array(key, kMaxCountedRanks),
                                      kMaxElements);
  };
  VariableCounts counts{.send_counts = read("sendCounts"),
                        .send_displacements = read("sendDispls"),
                        .receive_counts = read("recvCounts"),
                        .receive_displacements = read("recvDispls")};
  fields.Fail(entry.status());
  return counts;
}

// Reads the payload of commRun: replica groups, pairs of ranks, and the counts of an alltoallv.
absl::StatusOr<Division> ReadDivision(const std::string& text) {
  Division division;
  if (text.empty()) return division;
  TAHOMA_ASSIGN_OR_RETURN(const Json json, wire::ReadJson(text, "commRun's payload"));
  wire::Fields fields(json, "commRun's payload");
  division.groups = ReadLists(fields, "replicaGroups");
  for (const std::vector<int>& pair : ReadLists(fields, "pairs")) {
    if (pair.size() != 2) {
      fields.Fail(InvalidArgument("{} must hold pairs of ranks", fields.Path("pairs")));
      break;
    }
    division.pairs.emplace_back(pair[0], pair[1]);
  }
  for (const Json& item : fields.Array("counts", kMaxRanks)) {
    division.counts.push_back(ReadCounts(fields, item));
    if (!fields.status().ok()) break;
  }
  TAHOMA_RETURN_IF_ERROR(fields.status());
  return division;
}

absl::StatusOr<RunSpec> ReadSpec(wire::Fields& fields) {
  RunSpec spec;
  const std::string operation = fields.String("op", 1, 32);
  const std::string type = fields.String("dtype", 1, 16);
  const std::string reduce = fields.StringOr("redOp", 16, "sum");
  const std::string pattern = fields.StringOr("pattern", 16, "random");
  spec.request.bytes = static_cast<std::uint64_t>(
      fields.Int("bytes", 1, static_cast<std::int64_t>(kMaxRequestBytes)));
  spec.warmup = static_cast<int>(fields.IntOr("warmup", 0, kMaxRepeats, 0));
  spec.iterations = static_cast<int>(fields.IntOr("iterations", 1, kMaxRepeats, 1));
  spec.check = fields.BoolOr("check", false);
  spec.seed = static_cast<std::uint64_t>(fields.IntOr("seed", 0, (std::int64_t{1} << 62), 0));
  TAHOMA_RETURN_IF_ERROR(fields.status());
  if (pattern != "random" && pattern != "all_ones") {
    return InvalidArgument("{} is \"{}\"; expected random or all_ones", fields.Path("pattern"),
                           pattern);
  }
  spec.ones = pattern == "all_ones";
  if (operation == "alltoallv" || operation == "all_to_all_v") {
    spec.request.operation = Operation::kAllToAll;  // with counts, or even blocks
  } else {
    TAHOMA_ASSIGN_OR_RETURN(spec.request.operation, ParseOperation(operation));
  }
  TAHOMA_ASSIGN_OR_RETURN(spec.request.type, ParseElementType(type));
  TAHOMA_ASSIGN_OR_RETURN(spec.op, ParseReduceOp(reduce));
  return spec;
}

}  // namespace

absl::StatusOr<Division> CommunicatorCalls::ReadLargeDivision(const std::string& text) {
  const MutexLock alone(large_mutex_);
  return ReadDivision(text);
}

bool CommunicatorCalls::Serves(std::string_view method) {
  return method == kCommJoin || method == kCommRun || method == kCommLeave;
}

absl::StatusOr<wire::Reply> CommunicatorCalls::Call(const wire::Request& request,
                                                    const std::string& claim,
                                                    const std::vector<Member>& cores) {
  if (request.method == kCommJoin) return Join(request, claim, cores);
  if (request.method == kCommRun) return Run(request, claim);
  if (request.method == kCommLeave) return Leave(request, claim);
  return Unimplemented("unknown method \"{}\"", request.method);
}

absl::StatusOr<wire::Reply> CommunicatorCalls::Join(const wire::Request& request,
                                                    const std::string& claim,
                                                    const std::vector<Member>& cores) {
  TAHOMA_ASSIGN_OR_RETURN(const Json json, wire::ReadJson(request.params, kCommJoin));
  wire::Fields fields(json, std::string(kCommJoin));
  Communicators::JoinRequest join{
      .comm_id = fields.String("commId", 1, kMaxFullCommIdBytes),
      .rank = static_cast<int>(fields.Int("rank", 0, kMaxWorldSize - 1)),
      .world_size = static_cast<int>(fields.Int("worldSize", 1, kMaxWorldSize)),
      .members = cores};
  const auto count = static_cast<int>(fields.IntOr("cores", 1, kMaxCores, 0));
  TAHOMA_RETURN_IF_ERROR(fields.status());
  if (count != 0) {
    TAHOMA_ASSIGN_OR_RETURN(join.members, FirstCores(cores, count));
  }
  const Key key(join.comm_id, join.rank);
  {
    const MutexLock lock(mutex_);
    const auto [holder, added] = holders_.try_emplace(key, claim);
    if (!added && holder->second != claim) {
      return AlreadyExists("rank {} of communicator \"{}\" belongs to another claim", join.rank,
                           join.comm_id);
    }
  }
  join.wanted = [&] {
    const MutexLock lock(mutex_);
    return Holds(key, claim);
  };
  const auto joined = communicators_.Join(std::move(join));
  if (!joined.ok()) {
    const MutexLock lock(mutex_);
    // After the claim was released another claim may have joined as this rank.
    if (!absl::IsAlreadyExists(joined.status()) && Holds(key, claim)) holders_.erase(key);
    return joined.status();
  }
  const Json result = {{"firstRank", joined->first_rank}, {"ranks", joined->ranks},
                       {"chips", joined->chips},          {"firstChip", joined->first_chip},
                       {"ownChips", joined->own_chips},   {"pool", joined->pool}};
  return wire::Reply{.result = result.dump()};
}

bool CommunicatorCalls::Holds(const Key& key, const std::string& claim) const {
  const auto holder = holders_.find(key);
  return holder != holders_.end() && holder->second == claim;
}

absl::Status CommunicatorCalls::CheckHolder(const Key& key, const std::string& claim) {
  const MutexLock lock(mutex_);
  const auto holder = holders_.find(key);
  if (holder == holders_.end()) {
    return FailedPrecondition("rank {} has not joined communicator \"{}\"", key.second, key.first);
  }
  if (holder->second != claim) {
    return PermissionDenied("rank {} of communicator \"{}\" belongs to another claim", key.second,
                            key.first);
  }
  return absl::OkStatus();
}

absl::StatusOr<wire::Reply> CommunicatorCalls::Run(const wire::Request& request,
                                                   const std::string& claim) {
  TAHOMA_ASSIGN_OR_RETURN(const Json json, wire::ReadJson(request.params, kCommRun));
  wire::Fields fields(json, std::string(kCommRun));
  const Key key(fields.String("commId", 1, kMaxFullCommIdBytes),
                static_cast<int>(fields.Int("rank", 0, kMaxWorldSize - 1)));
  TAHOMA_ASSIGN_OR_RETURN(RunSpec spec, ReadSpec(fields));
  TAHOMA_RETURN_IF_ERROR(CheckHolder(key, claim));
  if (request.payload.size() > kMaxDivisionBytes) {
    return InvalidArgument("commRun's payload has {} bytes; expected at most {}",
                           request.payload.size(), kMaxDivisionBytes);
  }
  TAHOMA_ASSIGN_OR_RETURN(spec.division, request.payload.size() > kLargeDivisionBytes
                                             ? ReadLargeDivision(request.payload)
                                             : ReadDivision(request.payload));
  TAHOMA_ASSIGN_OR_RETURN(const RunResult run, communicators_.Run(key.first, key.second, spec));
  Json result = {{"algorithm", Name(run.algorithm)},
                 {"timePs", run.time.count()},
                 {"clockPs", run.end.time_since_epoch().count()},
                 {"ranks", run.ranks},
                 {"chips", run.chips},
                 {"wrongElements", run.wrong_elements}};
  if (run.bound) result["boundPs"] = run.bound->count();
  return wire::Reply{.result = result.dump()};
}

absl::StatusOr<wire::Reply> CommunicatorCalls::Leave(const wire::Request& request,
                                                     const std::string& claim) {
  TAHOMA_ASSIGN_OR_RETURN(const Json json, wire::ReadJson(request.params, kCommLeave));
  wire::Fields fields(json, std::string(kCommLeave));
  const Key key(fields.String("commId", 1, kMaxFullCommIdBytes),
                static_cast<int>(fields.Int("rank", 0, kMaxWorldSize - 1)));
  TAHOMA_RETURN_IF_ERROR(fields.status());
  TAHOMA_RETURN_IF_ERROR(CheckHolder(key, claim));
  communicators_.Leave(key.first, key.second);
  const MutexLock lock(mutex_);
  holders_.erase(key);
  return wire::Reply{};
}

void CommunicatorCalls::LeaveAll(const std::string& claim) {
  std::vector<Key> keys;
  {
    const MutexLock lock(mutex_);
    std::erase_if(holders_, [&](const auto& entry) {
      if (entry.second != claim) return false;
      keys.push_back(entry.first);
      return true;
    });
  }
  for (const auto& [comm_id, rank] : keys) communicators_.Leave(comm_id, rank);
}

}  // namespace tahoma::sim
