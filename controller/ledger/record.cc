#include "controller/ledger/record.h"

#include <array>
#include <cstddef>
#include <stdexcept>
#include <utility>
#include <vector>

#include "lib/base/check.h"
#include "lib/base/json.h"
#include "lib/base/status.h"

namespace tahoma::controller {
namespace {

using json = Json;

// The header of docs/formats/ledger.md: 'T' 'J' version type, CRC-32C little endian, then a CBOR
// body.
constexpr std::size_t kHeaderBytes = 8;
constexpr char kVersion = 1;

enum class Type : char {
  kGangPrepared = 1,
  kGangAllocated = 2,
  kGangBound = 3,
  kClaimReleased = 4,
  kGangUndoing = 5,
};

// The deepest record that is written nests about a dozen arrays and maps.
constexpr std::size_t kDepthMax = 64;

// The head of one data item in CBOR: RFC 8949, section 3.
struct CborHead {
  unsigned major = 0;
  unsigned info = 0;
  std::uint64_t argument = 0;  // a number, a length in bytes, or a count of items
};

// Takes a head from the front of `bytes`, or returns false when they end in its midst.
bool TakeHead(std::string_view& bytes, CborHead& head) {
  if (bytes.empty()) return false;
  const unsigned first = static_cast<unsigned char>(bytes[0]);
  head = {.major = first >> 5U, .info = first & 31U, .argument = first & 31U};
  const std::size_t extra =
      head.info >= 24 && head.info <= 27 ? std::size_t{1} << (head.info - 24) : 0;
  if (bytes.size() < 1 + extra) return false;
  if (extra > 0) head.argument = 0;
  for (std::size_t i = 1; i <= extra; ++i) {
    head.argument = head.argument << 8U | static_cast<unsigned char>(bytes[i]);
  }
  bytes.remove_prefix(1 + extra);
  return true;
}

// Returns whether `body` can be given to the CBOR reader, whose stack grows with every array, map
// and string of indefinite length that contains another. The reader detects damage of other kinds.
bool NestsLikeARecord(std::string_view body) {
  constexpr unsigned kBytes = 2, kText = 3, kArray = 4, kMap = 5, kIndefinite = 31;
  std::vector<std::uint64_t> items_left;  // of each array and map that is open
  do {
    while (!items_left.empty() && items_left.back() == 0) items_left.pop_back();
    CborHead head;
    if (!TakeHead(body, head)) return true;
    if (!items_left.empty()) --items_left.back();
    if (head.major < kBytes || head.major > kMap) continue;
    if (head.info == kIndefinite) return false;
    if (head.argument > body.size()) return true;
    if (head.major == kBytes || head.major == kText) {
      body.remove_prefix(head.argument);
    } else {
      if (items_left.size() == kDepthMax) return false;
      items_left.push_back(head.major == kArray ? head.argument : 2 * head.argument);
    }
  } while (!items_left.empty());
  return true;
}

constexpr std::array<std::uint32_t, 256> MakeCrcTable() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1U) ^ ((crc & 1U) != 0 ? 0x82f63b78U : 0U);
    table[byte] = crc;
  }
  return table;
}
constexpr std::array<std::uint32_t, 256> kCrcTable = MakeCrcTable();

// The numbers under which enumerators are stored (docs/formats/ledger.md), independent of the
// compiler's.
template <typename Enum, std::size_t n>
using Numbers = std::array<std::pair<int, Enum>, n>;

constexpr Numbers<TolerationOperator, 2> kOperators = {
    {{0, TolerationOperator::kEqual}, {1, TolerationOperator::kExists}}};
constexpr Numbers<TaintEffect, 3> kEffects = {
    {{0, TaintEffect::kNone}, {1, TaintEffect::kNoSchedule}, {2, TaintEffect::kNoExecute}}};
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

template <typename Enum, std::size_t n>
Enum ValueOf(const Numbers<Enum, n>& numbers, const json& body) {
  const int value = body.get<int>();
  for (const auto& [number, enumerator] : numbers) {
    if (number == value) return enumerator;
  }
  throw std::out_of_range(
      fmt::format("enumerator {} is not among 0..{}", value, numbers.back().first));
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
  return {std::move(results), std::move(configs), allocation.node};
}

json Encode(const DecidedClaim& claim) {
  return {claim.name, claim.uid, claim.consumers, Encode(claim.allocation), claim.allocated_before};
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
    slices.push_back({slice.domain, slice.shape, slice.origin, slice.nodes});
  }
  return {{"ns", decision.key.ns},
          {"name", decision.key.name},
          {"uid", decision.uid},
          {"single", decision.single},
          {"end", decision.end ? json(decision.end->time_since_epoch().count()) : json()},
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
  if (!body.at(4).is_null()) toleration.seconds = body.at(4).get<std::int64_t>();
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
  return allocation;
}

DecidedClaim DecodeClaim(const json& body, std::size_t pods) {
  DecidedClaim claim;
  body.at(0).get_to(claim.name);
  body.at(1).get_to(claim.uid);
  body.at(2).get_to(claim.consumers);
  claim.allocation = DecodeAllocation(body.at(3));
  body.at(4).get_to(claim.allocated_before);
  for (const std::uint32_t pod : claim.consumers) {
    if (pod >= pods) throw std::out_of_range("a claim's consumer is no pod of the gang");
  }
  return claim;
}

GangDecision DecodeDecision(const json& body) {
  GangDecision decision;
  body.at("ns").get_to(decision.key.ns);
  body.at("name").get_to(decision.key.name);
  body.at("uid").get_to(decision.uid);
  body.at("single").get_to(decision.single);
  if (!body.at("end").is_null()) {
    decision.end = WallTime(std::chrono::nanoseconds(body.at("end").get<std::int64_t>()));
  }
  for (const json& pod : body.at("pods")) {
    decision.pods.push_back({pod.at(0), pod.at(1), pod.at(2), pod.at(3), pod.at(4)});
  }
  for (const json& claim : body.at("claims")) {
    decision.claims.push_back(DecodeClaim(claim, decision.pods.size()));
  }
  for (const json& slice : body.at("slices")) {
    decision.slices.push_back({slice.at(0), slice.at(1), slice.at(2), slice.at(3)});
  }
  return decision;
}

struct Encoder {
  std::pair<Type, json> operator()(const GangPrepared& record) const {
    return {Type::kGangPrepared, Encode(*record.decision)};
  }
  std::pair<Type, json> operator()(const GangAllocated& record) const {
    return {Type::kGangAllocated, {{"run", record.run}}};
  }
  std::pair<Type, json> operator()(const GangBound& record) const {
    return {Type::kGangBound, {{"run", record.run}}};
  }
  std::pair<Type, json> operator()(const ClaimReleased& record) const {
    return {Type::kClaimReleased, {{"run", record.run}, {"claim", record.claim}}};
  }
  std::pair<Type, json> operator()(const GangUndoing& record) const {
    return {Type::kGangUndoing, {{"run", record.run}, {"reason", record.reason}}};
  }
  std::pair<Type, json> operator()(const GangReleased&) const {
    TAHOMA_CHECK(false);
    return {};
  }
};

absl::StatusOr<Record> DecodeBody(Type type, const json& body) {
  switch (type) {
    case Type::kGangPrepared:
      return GangPrepared{std::make_shared<const GangDecision>(DecodeDecision(body))};
    case Type::kGangAllocated:
      return GangAllocated{body.at("run")};
    case Type::kGangBound:
      return GangBound{body.at("run")};
    case Type::kClaimReleased:
      return ClaimReleased{body.at("run"), body.at("claim")};
    case Type::kGangUndoing:
      return GangUndoing{body.at("run"), body.at("reason")};
  }
  return DataLoss("journal record of unknown type {}", static_cast<int>(type));
}

}  // namespace

std::uint32_t Crc32c(std::string_view bytes) {
  std::uint32_t crc = 0xffffffffU;
  for (const char c : bytes) {
    crc = kCrcTable[(crc ^ static_cast<unsigned char>(c)) & 0xffU] ^ (crc >> 8U);
  }
  return ~crc;
}

std::string EncodeRecord(const Record& record) {
  const auto [type, body] = std::visit(Encoder{}, record);
  std::string bytes = {'T', 'J', kVersion, static_cast<char>(type), 0, 0, 0, 0};
  json::to_cbor(body, bytes);
  // The checksum covers version and type too: a flipped type must not be read as another record.
  const std::uint32_t crc =
      Crc32c(bytes.substr(kHeaderBytes)) ^ Crc32c(std::string_view(bytes).substr(0, 4));
  for (std::size_t i = 0; i < 4; ++i) {
    bytes[4 + i] = static_cast<char>(static_cast<unsigned char>(crc >> (8U * i)));
  }
  return bytes;
}

absl::StatusOr<Record> DecodeRecord(std::string_view bytes) {
  if (bytes.size() < kHeaderBytes || !bytes.starts_with("TJ")) {
    return DataLoss("{} bytes that are no journal record: they do not start with \"TJ\"",
                    bytes.size());
  }
  if (bytes[2] != kVersion) {
    return DataLoss("journal record of version {}; this program reads version {}",
                    static_cast<int>(bytes[2]), static_cast<int>(kVersion));
  }
  std::uint32_t stored = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    stored |= static_cast<std::uint32_t>(static_cast<unsigned char>(bytes[4 + i])) << (8U * i);
  }
  const std::string_view body = bytes.substr(kHeaderBytes);
  const std::uint32_t computed = Crc32c(body) ^ Crc32c(bytes.substr(0, 4));
  if (stored != computed) {
    return DataLoss("journal record with checksum {:08x}, computed {:08x}", stored, computed);
  }
  if (!NestsLikeARecord(body)) {
    return DataLoss(
        "journal record of type {} with a bad body: CBOR nested deeper than {}, or of indefinite "
        "length",
        static_cast<int>(bytes[3]), kDepthMax);
  }
  try {
    return DecodeBody(static_cast<Type>(bytes[3]), json::from_cbor(body));
  } catch (const std::exception& e) {
    return DataLoss("journal record of type {} with a bad body: {}", static_cast<int>(bytes[3]),
                    e.what());
  }
}

}  // namespace tahoma::controller
