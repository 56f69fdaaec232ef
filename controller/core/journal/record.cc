#include "controller/core/journal/record.h"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>
#include <vector>

#include "controller/core/journal/entry_form.h"
#include "lib/base/check.h"
#include "lib/base/json.h"
#include "lib/base/status.h"

namespace tahoma::controller {
namespace {

using json = Json;

// The numbers under which enumerators are stored (docs/formats/ledger.md), independent of the
// compiler's.
template <typename Enum, std::size_t n>
using Numbers = std::array<std::pair<int, Enum>, n>;

constexpr Numbers<TolerationOperator, 2> kOperators = {
    {{0, TolerationOperator::kEqual}, {1, TolerationOperator::kExists}}};
constexpr Numbers<TaintEffect, 3> kEffects = {
    {{0, TaintEffect::kNone}, {1, TaintEffect::kNoSchedule}, {2, TaintEffect::kNoExecute}}};
constexpr Numbers<EndCause, 8> kCauses = {{{0, EndCause::kFailed},
                                           {1, EndCause::kReclaimed},
                                           {2, EndCause::kPreempted},
                                           {3, EndCause::kRuntimeOver},
                                           {4, EndCause::kMemberLost},
                                           {5, EndCause::kGangFailed},
                                           {6, EndCause::kNotStarted},
                                           {7, EndCause::kMoved}}};
constexpr Numbers<ConfigSource, 2> kSources = {
    {{0, ConfigSource::kClass}, {1, ConfigSource::kClaim}}};

template <typename Enum, std::size_t n>
int NumberOf(const Numbers<Enum, n>& numbers, Enum value) {
  for (const auto& [number, enumerator] : numbers) {
    if (enumerator == value) return number;
  }
  TAHOMA_CHECK(false);
  return 0;
}

// Reads a number that the type can hold; the library would cut off what it cannot.
template <typename Whole>
Whole WholeOf(const json& body) {
  const bool fits = body.is_number_unsigned() ? std::in_range<Whole>(body.get<std::uint64_t>())
                                              : std::in_range<Whole>(body.get<std::int64_t>());
  if (!fits) throw std::out_of_range(fmt::format("{} is out of range", body.dump()));
  return body.get<Whole>();
}

template <typename Enum, std::size_t n>
Enum ValueOf(const Numbers<Enum, n>& numbers, const json& body) {
  const int value = WholeOf<int>(body);
  for (const auto& [number, enumerator] : numbers) {
    if (number == value) return enumerator;
  }
  throw std::out_of_range(
      fmt::format("enumerator {} is not among 0..{}", value, numbers.back().first));
}

json EncodeTime(const std::optional<WallTime>& time) {
  return time ? json(time->time_since_epoch().count()) : json();
}

std::optional<std::chrono::seconds> DecodeSeconds(const json& body) {
  if (body.is_null()) return std::nullopt;
  const auto seconds = WholeOf<std::int64_t>(body);
  if (seconds < 0) throw std::out_of_range(fmt::format("{} seconds", seconds));
  return std::chrono::seconds(seconds);
}

// Returns a member that records of earlier versions lack; null there.
json MemberOf(const json& body, const char* name) {
  const auto found = body.find(name);
  return found == body.end() ? json() : *found;
}

json Encode(const Toleration& toleration) {
  return {toleration.key, NumberOf(kOperators, toleration.op), toleration.value,
          toleration.effect ? json(NumberOf(kEffects, *toleration.effect)) : json(),
          toleration.seconds ? json(*toleration.seconds) : json()};
}

json Encode(const Allocation& allocation) {
  json results = json::array();
  for (const DeviceResult& result : allocation.results) {
    json tolerations = json::array();
    for (const Toleration& toleration : result.tolerations) {
      tolerations.push_back(Encode(toleration));
    }
    results.push_back({result.request, result.driver, result.pool, result.device,
                       result.admin_access, std::move(tolerations)});
  }
  json configs = json::array();
  for (const DeviceConfig& config : allocation.configs) {
    configs.push_back(
        {NumberOf(kSources, config.source), config.requests, config.driver, config.parameters});
  }
  json details = json::array();
  for (const kube::ResultDetails& one : allocation.details) {
    json consumed = json::array();
    for (const kube::ConsumedCapacity& part : one.consumed) {
      consumed.push_back({part.name, part.quantity});
    }
    details.push_back({one.result, one.share_id, std::move(consumed)});
  }
  json body = {std::move(results), std::move(configs), allocation.node};
  if (!details.empty()) body.push_back(std::move(details));
  return body;
}

json Encode(const DecidedClaim& claim) {
  return {claim.name, claim.uid, claim.consumers, Encode(claim.allocation), claim.allocated_before};
}

json Encode(const DecidedSlice& slice) {
  return {slice.domain, slice.shape, slice.origin, slice.nodes};
}

json Encode(const GangDecision& decision) {
  json pods = json::array();
  for (const DecidedPod& pod : decision.pods) {
    pods.push_back({pod.name, pod.uid, pod.node, pod.rank, pod.slice});
  }
  json claims = json::array();
  for (const DecidedClaim& claim : decision.claims) claims.push_back(Encode(claim));
  json slices = json::array();
  for (const DecidedSlice& slice : decision.slices) {
    slices.push_back(Encode(slice));
  }
  return {{"ns", decision.key.ns},
          {"name", decision.key.name},
          {"uid", decision.uid},
          {"single", decision.single},
          {"end", EncodeTime(decision.end)},
          {"reclaim", EncodeTime(decision.reclaim)},
          {"reservation", decision.reservation},
          {"queue", decision.queue},
          {"placed", EncodeTime(decision.placed)},
          {"runtime", decision.max_runtime ? json(decision.max_runtime->count()) : json()},
          {"preemptible", decision.preemptible},
          {"priority", decision.priority},
          {"grace", decision.grace.count()},
          {"pods", std::move(pods)},
          {"claims", std::move(claims)},
          {"slices", std::move(slices)}};
}

Toleration DecodeToleration(const json& body) {
  Toleration toleration;
  body.at(0).get_to(toleration.key);
  toleration.op = ValueOf(kOperators, body.at(1));
  body.at(2).get_to(toleration.value);
  if (!body.at(3).is_null()) {
    toleration.effect = ValueOf(kEffects, body.at(3));
  }
  if (!body.at(4).is_null()) toleration.seconds = WholeOf<std::int64_t>(body.at(4));
  return toleration;
}

Allocation DecodeAllocation(const json& body) {
  Allocation allocation;
  for (const json& result : body.at(0)) {
    DeviceResult& added = allocation.results.emplace_back();
    result.at(0).get_to(added.request);
    result.at(1).get_to(added.driver);
    result.at(2).get_to(added.pool);
    result.at(3).get_to(added.device);
    result.at(4).get_to(added.admin_access);
    for (const json& toleration : result.at(5)) {
      added.tolerations.push_back(DecodeToleration(toleration));
    }
  }
  for (const json& config : body.at(1)) {
    allocation.configs.push_back({.source = ValueOf(kSources, config.at(0)),
                                  .requests = config.at(1),
                                  .driver = config.at(2),
                                  .parameters = config.at(3)});
  }
  body.at(2).get_to(allocation.node);
  if (body.size() < 4) return allocation;
  for (const json& one : body.at(3)) {
    kube::ResultDetails& added = allocation.details.emplace_back();
    added.result = WholeOf<std::size_t>(one.at(0));
    one.at(1).get_to(added.share_id);
    for (const json& part : one.at(2)) {
      added.consumed.push_back({.name = part.at(0), .quantity = part.at(1)});
    }
  }
  return allocation;
}

DecidedClaim DecodeClaim(const json& body, std::size_t pods) {
  DecidedClaim claim;
  body.at(0).get_to(claim.name);
  body.at(1).get_to(claim.uid);
  for (const json& pod : body.at(2)) claim.consumers.push_back(WholeOf<std::uint32_t>(pod));
  claim.allocation = DecodeAllocation(body.at(3));
  body.at(4).get_to(claim.allocated_before);
  for (const std::uint32_t pod : claim.consumers) {
    if (pod >= pods) throw std::out_of_range("a claim's consumer is no pod of the gang");
  }
  return claim;
}

// Records of earlier versions have no such field.
std::optional<WallTime> TimeIfAny(const json& body, const char* field) {
  const auto time = body.find(field);
  if (time == body.end() || time->is_null()) return std::nullopt;
  return WallTime(std::chrono::nanoseconds(WholeOf<std::int64_t>(*time)));
}

DecidedSlice DecodeSlice(const json& body) {
  return {body.at(0), body.at(1), body.at(2), body.at(3)};
}

GangDecision DecodeDecision(const json& body) {
  GangDecision decision;
  body.at("ns").get_to(decision.key.ns);
  body.at("name").get_to(decision.key.name);
  body.at("uid").get_to(decision.uid);
  body.at("single").get_to(decision.single);
  if (!body.at("end").is_null()) {
    decision.end = WallTime(std::chrono::nanoseconds(WholeOf<std::int64_t>(body.at("end"))));
  }
  // Records of earlier versions have none.
  decision.reclaim = TimeIfAny(body, "reclaim");
  if (body.contains("reservation")) body.at("reservation").get_to(decision.reservation);
  if (body.contains("queue")) body.at("queue").get_to(decision.queue);
  decision.placed = TimeIfAny(body, "placed");
  decision.max_runtime = DecodeSeconds(MemberOf(body, "runtime"));
  if (body.contains("preemptible")) body.at("preemptible").get_to(decision.preemptible);
  if (body.contains("priority")) decision.priority = WholeOf<std::int32_t>(body.at("priority"));
  decision.grace = DecodeSeconds(MemberOf(body, "grace")).value_or(decision.grace);
  for (const json& pod : body.at("pods")) {
    decision.pods.push_back({.name = pod.at(0),
                             .uid = pod.at(1),
                             .node = pod.at(2),
                             .rank = WholeOf<std::uint32_t>(pod.at(3)),
                             .slice = WholeOf<std::uint32_t>(pod.at(4))});
  }
  for (const json& claim : body.at("claims")) {
    decision.claims.push_back(DecodeClaim(claim, decision.pods.size()));
  }
  for (const json& slice : body.at("slices")) {
    decision.slices.push_back(DecodeSlice(slice));
  }
  return decision;
}

json Encode(const std::vector<MemberReplaced::Claim>& claims) {
  json encoded = json::array();
  for (const MemberReplaced::Claim& claim : claims) {
    encoded.push_back({claim.index, claim.name, claim.uid, Encode(claim.allocation)});
  }
  return encoded;
}

std::vector<MemberReplaced::Claim> DecodeMemberClaims(const json& body) {
  std::vector<MemberReplaced::Claim> claims;
  for (const json& claim : body) {
    claims.push_back({.index = WholeOf<std::uint32_t>(claim.at(0)),
                      .name = claim.at(1),
                      .uid = claim.at(2),
                      .allocation = DecodeAllocation(claim.at(3))});
  }
  return claims;
}

MemberReplaced DecodeReplaced(const json& body) {
  MemberReplaced record{.run = WholeOf<RunId>(body.at("run")),
                        .pod = WholeOf<std::uint32_t>(body.at("pod")),
                        .name = body.at("name"),
                        .uid = body.at("uid"),
                        .node = body.value("node", std::string()),
                        .at = TimeIfAny(body, "at").value_or(WallTime()),
                        .claims = DecodeMemberClaims(body.at("claims"))};
  if (body.contains("slice")) record.slice = DecodeSlice(body.at("slice"));
  return record;
}

MemberAdded DecodeAdded(const json& body) {
  return {.run = WholeOf<RunId>(body.at("run")),
          .pod = WholeOf<std::uint32_t>(body.at("pod")),
          .name = body.at("name"),
          .uid = body.at("uid"),
          .node = body.at("node"),
          .rank = WholeOf<std::uint32_t>(body.at("rank")),
          .at = TimeIfAny(body, "at").value_or(WallTime()),
          .claims = DecodeMemberClaims(body.at("claims"))};
}

struct Encoder {
  std::pair<EntryType, json> operator()(const GangPrepared& record) const {
    return {EntryType::kGangPrepared, Encode(*record.decision)};
  }
  std::pair<EntryType, json> operator()(const GangAllocated& record) const {
    return {EntryType::kGangAllocated, {{"run", record.run}}};
  }
  std::pair<EntryType, json> operator()(const GangBound& record) const {
    return {EntryType::kGangBound, {{"run", record.run}, {"at", EncodeTime(record.at)}}};
  }
  std::pair<EntryType, json> operator()(const ClaimReleased& record) const {
    return {EntryType::kClaimReleased, {{"run", record.run}, {"claim", record.claim}}};
  }
  std::pair<EntryType, json> operator()(const MemberReplaced& record) const {
    json body = {{"run", record.run},           {"pod", record.pod},
                 {"name", record.name},         {"uid", record.uid},
                 {"at", EncodeTime(record.at)}, {"claims", Encode(record.claims)}};
    if (!record.node.empty()) body["node"] = record.node;
    if (record.slice) body["slice"] = Encode(*record.slice);
    return {EntryType::kMemberReplaced, std::move(body)};
  }
  std::pair<EntryType, json> operator()(const MemberAdded& record) const {
    return {EntryType::kMemberAdded,
            {{"run", record.run},
             {"pod", record.pod},
             {"name", record.name},
             {"uid", record.uid},
             {"node", record.node},
             {"rank", record.rank},
             {"at", EncodeTime(record.at)},
             {"claims", Encode(record.claims)}}};
  }
  std::pair<EntryType, json> operator()(const GangUndoing& record) const {
    return {EntryType::kGangUndoing,
            {{"run", record.run},
             {"reason", record.reason},
             {"by", EncodeTime(record.by)},
             {"cause", NumberOf(kCauses, record.cause)}}};
  }
  std::pair<EntryType, json> operator()(const GangReleased&) const {
    TAHOMA_CHECK(false);
    return {};
  }
};

absl::StatusOr<Record> DecodeBody(EntryType type, const json& body) {
  switch (type) {
    case EntryType::kGangPrepared:
      return GangPrepared{std::make_shared<const GangDecision>(DecodeDecision(body))};
    case EntryType::kGangAllocated:
      return GangAllocated{WholeOf<RunId>(body.at("run"))};
    case EntryType::kGangBound:
      return GangBound{WholeOf<RunId>(body.at("run")), TimeIfAny(body, "at")};
    case EntryType::kClaimReleased:
      return ClaimReleased{WholeOf<RunId>(body.at("run")),
                           WholeOf<std::uint32_t>(body.at("claim"))};
    case EntryType::kMemberReplaced:
      return DecodeReplaced(body);
    case EntryType::kMemberAdded:
      return DecodeAdded(body);
    case EntryType::kGangUndoing:
      return GangUndoing{
          WholeOf<RunId>(body.at("run")), body.at("reason"), TimeIfAny(body, "by"),
          body.contains("cause") ? ValueOf(kCauses, body.at("cause")) : EndCause::kFailed};
    case EntryType::kBlockChanged:
    case EntryType::kUsageCounted:
    case EntryType::kQueueUsed:
      break;
  }
  return DataLoss("journal record of unknown type {}", static_cast<int>(type));
}

}  // namespace

bool MayFollow(const MemberReplaced& record, const GangDecision& decision) {
  return record.pod < decision.pods.size() &&
         (!record.slice || decision.pods[record.pod].slice < decision.slices.size()) &&
         std::ranges::all_of(record.claims, [&](const MemberReplaced::Claim& claim) {
           return claim.index < decision.claims.size() &&
                  IsOwnClaim(decision.claims[claim.index], record.pod);
         });
}

GangDecision WithMember(GangDecision decision, const MemberReplaced& record) {
  TAHOMA_CHECK(MayFollow(record, decision));
  decision.pods[record.pod].name = record.name;
  decision.pods[record.pod].uid = record.uid;
  if (!record.node.empty()) decision.pods[record.pod].node = record.node;
  if (record.slice) decision.slices[decision.pods[record.pod].slice] = *record.slice;
  for (const MemberReplaced::Claim& claim : record.claims) {
    DecidedClaim& decided = decision.claims[claim.index];
    decided.name = claim.name;
    decided.uid = claim.uid;
    decided.allocation = claim.allocation;
  }
  return decision;
}

bool MayFollow(const MemberAdded& record, const GangDecision& decision) {
  if (record.pod > decision.pods.size()) return false;
  std::size_t next = 0;  // the least index that the next claim may have
  std::size_t count = decision.claims.size();
  for (const MemberReplaced::Claim& claim : record.claims) {
    if (claim.index < next || claim.index > count) return false;
    next = claim.index + std::size_t{1};
    if (claim.index == count) {
      ++count;
      continue;
    }
    if (!IsOwnClaim(decision.claims[claim.index], record.pod)) return false;
  }
  return true;
}

GangDecision WithMember(GangDecision decision, const MemberAdded& record) {
  TAHOMA_CHECK(MayFollow(record, decision));
  // The place's claims of before are nobody's, where the pod has fewer.
  for (DecidedClaim& claim : decision.claims) {
    if (claim.consumers == std::vector{record.pod}) claim.consumers.clear();
  }
  if (record.pod == decision.pods.size()) decision.pods.emplace_back();
  decision.pods[record.pod] = {
      .name = record.name, .uid = record.uid, .node = record.node, .rank = record.rank};
  for (const MemberReplaced::Claim& claim : record.claims) {
    if (claim.index == decision.claims.size()) decision.claims.emplace_back();
    DecidedClaim& decided = decision.claims[claim.index];
    decided.name = claim.name;
    decided.uid = claim.uid;
    decided.consumers = {record.pod};
    decided.allocation = claim.allocation;
  }
  return decision;
}

std::string EncodeRecord(const Record& record) {
  const auto [type, body] = std::visit(Encoder{}, record);
  return EncodeEntry(type, body);
}

absl::StatusOr<Record> DecodeRecord(std::string_view bytes) {
  Record record;
  TAHOMA_RETURN_IF_ERROR(DecodeEntry(bytes, [&](EntryType type, const json& body) -> absl::Status {
    TAHOMA_ASSIGN_OR_RETURN(record, DecodeBody(type, body));
    return absl::OkStatus();
  }));
  return record;
}

}  // namespace tahoma::controller
