#include "dra-plugin/claims/checkpoint.h"

#include "lib/base/check.h"
#include "lib/base/digest.h"
#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/wire/fields.h"

namespace tahoma::dra {
namespace {

using json = Json;
using wire::Fields;

constexpr std::string_view kFormat = "tahoma-dra-checkpoint";
constexpr std::size_t kNameBytesMost = 253;
constexpr std::size_t kMaxBootId = 64;   // Linux writes a UUID, 36 characters
constexpr std::size_t kMaxDevices = 32;  // resource/v1: AllocationResultsMaxSize

std::string Dump(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

json ToJson(const PreparedClaim& claim) {
  json devices = json::array();
  for (const PreparedDevice& device : claim.devices) {
    devices.push_back(
        {{"request", device.request}, {"pool", device.pool}, {"device", device.device}});
  }
  json out = {{"grant", ParseJson(wire::EncodeClaimGrant(claim.grant))},
              {"token", claim.token},
              {"coresPerChip", claim.cores_per_chip},
              {"workloadSocket", claim.workload_socket},
              {"ultraServerId", claim.ultra_server_id},
              {"ultraServerNodeId", claim.ultra_server_node_id},
              {"devices", std::move(devices)}};
  // A plugin of before, in a rolling update, refuses what it does not know.
  if (claim.reclaim_timestamp != 0) out["reclaimTimestamp"] = claim.reclaim_timestamp;
  if (!claim.boot_id.empty()) out["bootId"] = claim.boot_id;
  return out;
}

absl::StatusOr<PreparedClaim> FromJson(const json& object) {
  Fields fields(object, "claims[]");
  PreparedClaim claim;
  const json* grant = fields.Object("grant");
  if (grant == nullptr) return InvalidArgument("claims[].grant is missing");
  TAHOMA_ASSIGN_OR_RETURN(claim.grant, wire::DecodeClaimGrant(grant->dump()));
  claim.token = fields.String("token", wire::kTokenBytes, wire::kTokenBytes);
  claim.cores_per_chip =
      static_cast<int>(fields.IntOr("coresPerChip", 1, wire::kCoresPerChip, wire::kCoresPerChip));
  claim.workload_socket = fields.String("workloadSocket", 0, kNameBytesMost);
  claim.ultra_server_id = fields.String("ultraServerId", 0, kNameBytesMost);
  claim.ultra_server_node_id = static_cast<int>(fields.Int("ultraServerNodeId", 0, 3));
  claim.reclaim_timestamp = fields.IntOr("reclaimTimestamp", 0, INT64_MAX, 0);
  if (object.contains("bootId")) claim.boot_id = fields.String("bootId", 1, kMaxBootId);
  for (const json& element : fields.Array("devices", kMaxDevices)) {
    Fields device(element, fields.Path("devices[]"));
    claim.devices.push_back({.request = device.String("request", 1, kNameBytesMost),
                             .pool = device.String("pool", 1, kNameBytesMost),
                             .device = device.String("device", 1, kNameBytesMost)});
    fields.Fail(device.status());
  }
  fields.OnlyKnown();
  TAHOMA_RETURN_IF_ERROR(fields.status());
  return claim;
}

absl::StatusOr<Checkpoint> DecodeClaims(const json& claims) {
  Checkpoint out;
  for (const json& element : claims) {
    TAHOMA_ASSIGN_OR_RETURN(PreparedClaim claim, FromJson(element));
    const std::string uid = claim.grant.claim_uid;
    if (!out.claims.emplace(uid, std::move(claim)).second) {
      return InvalidArgument("claim {} is there twice", uid);
    }
  }
  return out;
}

absl::StatusOr<Checkpoint> DecodeDocument(std::string_view bytes) {
  TAHOMA_ASSIGN_OR_RETURN(const json document, wire::ReadJson(bytes, "the file"));
  Fields fields(document, "checkpoint");
  const std::string format = fields.String("format", 1, 64);
  const std::int64_t version = fields.Int("version", 0, INT32_MAX);
  TAHOMA_RETURN_IF_ERROR(fields.status());
  if (format != kFormat)
    return InvalidArgument("format is \"{}\"; expected \"{}\"", format, kFormat);
  if (version != kCheckpointVersion) {
    return InvalidArgument("version is {}; this program reads version {}", version,
                           kCheckpointVersion);
  }
  const std::string checksum = fields.String("sha256", 64, 64);
  const json& claims = fields.Array("claims", wire::kMaxClaims);
  fields.OnlyKnown();
  TAHOMA_RETURN_IF_ERROR(fields.status());
  if (!document.contains("claims")) return InvalidArgument("checkpoint.claims is missing");
  if (const std::string actual = Sha256Hex(Dump(claims)); actual != checksum) {
    return InvalidArgument("the checksum of the claims is {}; the file says {}", actual, checksum);
  }
  return DecodeClaims(claims);
}

}  // namespace

std::string EncodeCheckpoint(const Checkpoint& checkpoint) {
  json claims = json::array();
  for (const auto& [uid, claim] : checkpoint.claims) {
    TAHOMA_CHECK(uid == claim.grant.claim_uid);  // it is read back under the grant's uid
    // No program could read a checkpoint with another token.
    TAHOMA_CHECK(claim.token.size() == wire::kTokenBytes);
    claims.push_back(ToJson(claim));
  }
  json document = {{"format", kFormat}, {"version", kCheckpointVersion}};
  document["sha256"] = Sha256Hex(Dump(claims));
  document["claims"] = std::move(claims);
  return Dump(document) + "\n";
}

absl::StatusOr<Checkpoint> DecodeCheckpoint(std::string_view bytes) {
  absl::StatusOr<Checkpoint> decoded = DecodeDocument(bytes);
  if (decoded.ok()) return decoded;
  return DataLoss("{}", Message(decoded.status()));
}

}  // namespace tahoma::dra
