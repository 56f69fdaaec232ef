#include "lib/wire/messages.h"

#include <algorithm>

#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/wire/fields.h"

namespace tahoma::wire {
namespace {

using json = Json;

constexpr std::size_t kMaxNameBytes = 253;  // Kubernetes object names
constexpr std::size_t kMaxUidBytes = 64;
constexpr std::size_t kMaxTextBytes = 63;  // taint values are labels
constexpr std::int64_t kMaxWatchMs = 60'000;

std::string Dump(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

bool IsHexDigit(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); }

bool IsUid(std::string_view text) {
  return !text.empty() && text.size() <= kMaxUidBytes &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return IsHexDigit(c) || (c >= 'g' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-';
         });
}

// A claim's UID becomes part of file names, so its characters matter.
std::string ReadUid(Fields& fields) {
  std::string uid = fields.String("claimUid", 1, kMaxUidBytes);
  if (fields.status().ok() && !IsUid(uid)) {
    fields.Fail(InvalidArgument("{} is \"{}\"; expected letters, digits and hyphens",
                                fields.Path("claimUid"), uid));
  }
  return uid;
}

std::string ReadToken(Fields& fields) {
  std::string token = fields.String("token", kTokenBytes, kTokenBytes);
  if (fields.status().ok() && !std::all_of(token.begin(), token.end(), IsHexDigit)) {
    fields.Fail(
        InvalidArgument("{} must be {} lower-case hex digits", fields.Path("token"), kTokenBytes));
  }
  return token;
}

// Ascending whole numbers from 0 to `max`, each once.
std::vector<int> ReadAscending(Fields& fields, std::string_view key, int max) {
  std::vector<int> out;
  for (const json& element : fields.Array(key, static_cast<std::size_t>(max) + 1)) {
    const std::int64_t value = element.is_number_integer() ? element.get<std::int64_t>() : -1;
    if (value < 0 || value > max || (!out.empty() && value <= out.back())) {
      fields.Fail(InvalidArgument("{} must hold ascending whole numbers from 0 to {}",
                                  fields.Path(key), max));
      return {};
    }
    out.push_back(static_cast<int>(value));
  }
  return out;
}

std::vector<std::string> ReadStrings(Fields& fields, std::string_view key, std::size_t max_count,
                                     std::size_t max_bytes) {
  std::vector<std::string> out;
  for (const json& element : fields.Array(key, max_count)) {
    if (!element.is_string() || element.get_ref<const std::string&>().size() > max_bytes) {
      fields.Fail(
          InvalidArgument("{} must hold strings of at most {} bytes", fields.Path(key), max_bytes));
      return {};
    }
    out.push_back(element.get<std::string>());
  }
  return out;
}

absl::StatusOr<Chip> ReadChip(const json& object, int index) {
  Fields fields(object, fmt::format("inventory.chips[{}]", index));
  Chip chip;
  chip.index = static_cast<int>(fields.Int("index", 0, kMaxChips - 1));
  chip.healthy = fields.BoolOr("healthy", true);
  chip.reason = fields.StringOr("reason", kMaxTextBytes, "");
  chip.links_down = ReadStrings(fields, "linksDown", 6, 2);
  chip.lnc = static_cast<int>(fields.IntOr("lnc", 0, 2, 0));
  chip.bdf = fields.StringOr("bdf", kMaxTextBytes, "");
  for (const std::string& link : chip.links_down) {
    if (link.size() != 2 || link[0] < 'x' || link[0] > 'z' || (link[1] != '+' && link[1] != '-')) {
      fields.Fail(InvalidArgument("{} holds \"{}\"; expected x+, x-, y+, y-, z+ or z-",
                                  fields.Path("linksDown"), link));
    }
  }
  TAHOMA_RETURN_IF_ERROR(fields.status());
  return chip;
}

hw::UltraServerMode ReadMode(Fields& fields, std::string_view path, const std::string& text) {
  const absl::StatusOr<hw::UltraServerMode> mode = hw::ParseMode(text);
  if (!mode.ok()) fields.Fail(Annotate(mode.status(), path));
  return mode.value_or(hw::UltraServerMode::kUnset);
}

absl::StatusOr<UltraServerElection> ReadElection(const json& object) {
  Fields fields(object, "inventory.ultraServer.election");
  UltraServerElection out;
  out.running = fields.BoolOr("running", false);
  for (const std::string& text :
       ReadStrings(fields, "modes", hw::kUltraServerModes.size(), kMaxTextBytes)) {
    out.modes.push_back(ReadMode(fields, fields.Path("modes"), text));
  }
  if (const std::string text = fields.StringOr("mode", kMaxTextBytes, ""); !text.empty()) {
    out.mode = ReadMode(fields, fields.Path("mode"), text);
  }
  out.server_id_2 = fields.StringOr("serverId2", kMaxTextBytes, "");
  out.node_id_2 = static_cast<int>(fields.IntOr("nodeId2", -1, 1, -1));
  out.server_id_4 = fields.StringOr("serverId4", kMaxTextBytes, "");
  out.node_id_4 = static_cast<int>(fields.IntOr("nodeId4", -1, 3, -1));
  TAHOMA_RETURN_IF_ERROR(fields.status());
  return out;
}

absl::StatusOr<UltraServer> ReadUltraServer(const json& object) {
  Fields fields(object, "inventory.ultraServer");
  UltraServer out;
  out.id = fields.String("id", 1, kMaxTextBytes);
  out.node_id = static_cast<int>(fields.Int("nodeId", 0, 3));
  out.mode = static_cast<int>(fields.IntOr("mode", 1, 4, 4));
  if (out.mode == 3) {
    fields.Fail(InvalidArgument("{} is 3; expected 1, 2 or 4", fields.Path("mode")));
  }
  if (const json* election = fields.Object("election"); election != nullptr) {
    TAHOMA_ASSIGN_OR_RETURN(out.election, ReadElection(*election));
  }
  TAHOMA_RETURN_IF_ERROR(fields.status());
  return out;
}

json ElectionJson(const UltraServerElection& election) {
  json modes = json::array();
  for (const hw::UltraServerMode mode : election.modes) modes.push_back(hw::ModeName(mode));
  const bool chosen = election.mode != hw::UltraServerMode::kUnset;
  return {{"running", election.running},
          {"modes", std::move(modes)},
          {"mode", chosen ? hw::ModeName(election.mode) : ""},
          {"serverId2", election.server_id_2},
          {"nodeId2", election.node_id_2},
          {"serverId4", election.server_id_4},
          {"nodeId4", election.node_id_4}};
}

json UltraServerJson(const UltraServer& ultra_server) {
  json out = {
      {"id", ultra_server.id}, {"nodeId", ultra_server.node_id}, {"mode", ultra_server.mode}};
  if (ultra_server.election) out["election"] = ElectionJson(*ultra_server.election);
  return out;
}

json ClaimGrantJson(const ClaimGrant& grant) {
  json cores = json::array();
  for (const ChipCores& part : grant.cores) {
    cores.push_back({{"chip", part.chip}, {"cores", part.cores}});
  }
  return {{"claimUid", grant.claim_uid},
          {"namespace", grant.name_space},
          {"name", grant.name},
          {"lnc", grant.lnc},
          {"chips", grant.chips},
          {"cores", cores},
          {"ultraServerMode", grant.ultra_server_mode}};
}

absl::StatusOr<ClaimGrant> ReadClaimGrant(const json& object, std::string where) {
  Fields fields(object, std::move(where));
  ClaimGrant grant;
  grant.claim_uid = ReadUid(fields);
  grant.name_space = fields.String("namespace", 1, kMaxTextBytes);
  grant.name = fields.String("name", 1, kMaxNameBytes);
  grant.lnc = static_cast<int>(fields.Int("lnc", 1, 2));
  grant.chips = ReadAscending(fields, "chips", kMaxChips - 1);
  grant.ultra_server_mode = static_cast<int>(fields.IntOr("ultraServerMode", 0, 4, 0));
  if (grant.ultra_server_mode == 3) {
    fields.Fail(InvalidArgument("{} is 3; expected 0, 1, 2 or 4", fields.Path("ultraServerMode")));
  }
  for (const json& element : fields.Array("cores", kMaxChips)) {
    Fields part(element, fields.Path("cores[]"));
    ChipCores cores;
    cores.chip = static_cast<int>(part.Int("chip", 0, kMaxChips - 1));
    cores.cores = ReadAscending(part, "cores", kCoresPerChip / grant.lnc - 1);
    const bool again =
        (!grant.cores.empty() && cores.chip <= grant.cores.back().chip) ||
        std::find(grant.chips.begin(), grant.chips.end(), cores.chip) != grant.chips.end();
    if (again || cores.cores.empty()) {
      part.Fail(
          InvalidArgument("{} must name chips in ascending order, none of \"chips\", each "
                          "with a core",
                          fields.Path("cores")));
    }
    fields.Fail(part.status());
    grant.cores.push_back(std::move(cores));
  }
  TAHOMA_RETURN_IF_ERROR(fields.status());
  return grant;
}

}  // namespace

CoreMasks HeldCores(const ClaimGrant& grant) {
  CoreMasks masks = {};
  for (const int chip : grant.chips) masks.at(static_cast<std::size_t>(chip)) = 0xff;
  for (const ChipCores& part : grant.cores) {
    std::uint8_t& mask = masks.at(static_cast<std::size_t>(part.chip));
    for (const int core : part.cores) {
      const unsigned width = grant.lnc == 2 ? 0b11U : 0b1U;
      mask = static_cast<std::uint8_t>(mask | width << static_cast<unsigned>(core * grant.lnc));
    }
  }
  return masks;
}

absl::Status CheckDisjoint(const ClaimGrant& held, const ClaimGrant& wanted) {
  const CoreMasks a = HeldCores(held);
  const CoreMasks b = HeldCores(wanted);
  for (std::size_t chip = 0; chip < a.size(); ++chip) {
    if ((a[chip] & b[chip]) != 0) {
      return AlreadyExists("chip {} has cores that claim {}/{} ({}) holds", chip, held.name_space,
                           held.name, held.claim_uid);
    }
    if (a[chip] != 0 && b[chip] != 0 && held.lnc != wanted.lnc) {
      return AlreadyExists(
          "chip {} runs with LNC {} for claim {}/{} ({}); LNC {} is not possible "
          "beside it",
          chip, held.lnc, held.name_space, held.name, held.claim_uid, wanted.lnc);
    }
  }
  return absl::OkStatus();
}

std::string EncodeInventory(const Inventory& inventory) {
  json chips = json::array();
  for (const Chip& chip : inventory.chips) {
    chips.push_back({{"index", chip.index},
                     {"healthy", chip.healthy},
                     {"reason", chip.reason},
                     {"linksDown", chip.links_down},
                     {"lnc", chip.lnc},
                     {"bdf", chip.bdf}});
  }
  json out = {{"generation", inventory.generation},
              {"nodeName", inventory.node_name},
              {"instanceType", inventory.instance_type},
              {"networkLayers", inventory.network_layers},
              {"capacityBlockId", inventory.capacity_block_id},
              {"driverVersion", inventory.driver_version},
              {"workloadSocket", inventory.workload_socket},
              {"chips", std::move(chips)}};
  if (inventory.ultra_server.has_value()) {
    out["ultraServer"] = UltraServerJson(*inventory.ultra_server);
  }
  return Dump(out);
}

absl::StatusOr<Inventory> DecodeInventory(std::string_view text) {
  TAHOMA_ASSIGN_OR_RETURN(const json object, ParseJson(text, "inventory"));
  Fields fields(object, "inventory");
  Inventory out;
  out.generation = static_cast<std::uint64_t>(fields.Int("generation", 0, INT64_MAX));
  out.node_name = fields.String("nodeName", 1, kMaxNameBytes);
  out.instance_type = fields.String("instanceType", 1, kMaxTextBytes);
  out.network_layers = ReadStrings(fields, "networkLayers", 3, kMaxTextBytes);
  out.capacity_block_id = fields.StringOr("capacityBlockId", kMaxTextBytes, "");
  out.driver_version = fields.StringOr("driverVersion", kMaxTextBytes, "");
  out.workload_socket = fields.StringOr("workloadSocket", kMaxNameBytes, "");
  if (out.network_layers.size() == 1 || out.network_layers.size() == 2) {
    fields.Fail(InvalidArgument("{} has {} elements; expected 3 or none",
                                fields.Path("networkLayers"), out.network_layers.size()));
  }
  if (const json* ultra_server = fields.Object("ultraServer"); ultra_server != nullptr) {
    TAHOMA_ASSIGN_OR_RETURN(out.ultra_server, ReadUltraServer(*ultra_server));
  }
  for (const json& element : fields.Array("chips", kMaxChips)) {
    TAHOMA_ASSIGN_OR_RETURN(Chip chip, ReadChip(element, static_cast<int>(out.chips.size())));
    if (!out.chips.empty() && chip.index <= out.chips.back().index) {
      return InvalidArgument("inventory.chips must be in ascending order of index");
    }
    out.chips.push_back(std::move(chip));
  }
  TAHOMA_RETURN_IF_ERROR(fields.status());
  return out;
}

std::string EncodeClaimGrant(const ClaimGrant& grant) { return Dump(ClaimGrantJson(grant)); }

absl::StatusOr<ClaimGrant> DecodeClaimGrant(std::string_view text) {
  TAHOMA_ASSIGN_OR_RETURN(const json object, ParseJson(text, "claim"));
  return ReadClaimGrant(object, "claim");
}

std::string EncodeClaimList(const std::vector<ClaimGrant>& grants) {
  json claims = json::array();
  for (const ClaimGrant& grant : grants) claims.push_back(ClaimGrantJson(grant));
  return Dump({{"claims", std::move(claims)}});
}

absl::StatusOr<std::vector<ClaimGrant>> DecodeClaimList(std::string_view text) {
  TAHOMA_ASSIGN_OR_RETURN(const json object, ParseJson(text, "claim list"));
  Fields fields(object, "list");
  std::vector<ClaimGrant> out;
  for (const json& element : fields.Array("claims", kMaxClaims)) {
    TAHOMA_ASSIGN_OR_RETURN(ClaimGrant grant,
                            ReadClaimGrant(element, fmt::format("list.claims[{}]", out.size())));
    out.push_back(std::move(grant));
  }
  TAHOMA_RETURN_IF_ERROR(fields.status());
  return out;
}

std::string EncodeApplyParams(const ApplyParams& params) {
  json out = ClaimGrantJson(params.grant);
  if (!params.token.empty()) out["token"] = params.token;
  return Dump(out);
}

absl::StatusOr<ApplyParams> DecodeApplyParams(std::string_view text) {
  TAHOMA_ASSIGN_OR_RETURN(const json object, ParseJson(text, "claim"));
  ApplyParams out;
  TAHOMA_ASSIGN_OR_RETURN(out.grant, ReadClaimGrant(object, "claim"));
  if (const auto token = object.find("token"); token == object.end() || token->is_null()) {
    return out;
  }
  Fields fields(object, "claim");
  out.token = ReadToken(fields);
  TAHOMA_RETURN_IF_ERROR(fields.status());
  return out;
}

std::string EncodeToken(std::string_view token) { return Dump({{"token", token}}); }

absl::StatusOr<std::string> DecodeToken(std::string_view text) {
  TAHOMA_ASSIGN_OR_RETURN(const json object, ParseJson(text, "token"));
  Fields fields(object, "reply");
  std::string token = ReadToken(fields);
  TAHOMA_RETURN_IF_ERROR(fields.status());
  return token;
}

std::string EncodeClaimUid(std::string_view claim_uid) { return Dump({{"claimUid", claim_uid}}); }

absl::StatusOr<std::string> DecodeClaimUid(std::string_view text) {
  TAHOMA_ASSIGN_OR_RETURN(const json object, ParseJson(text, "claim"));
  Fields fields(object, "claim");
  std::string uid = ReadUid(fields);
  TAHOMA_RETURN_IF_ERROR(fields.status());
  return uid;
}

std::string EncodeWatchParams(const WatchParams& params) {
  return Dump({{"generation", params.generation}, {"timeoutMs", params.timeout.count()}});
}

absl::StatusOr<WatchParams> DecodeWatchParams(std::string_view text) {
  TAHOMA_ASSIGN_OR_RETURN(const json object, ParseJson(text, "watch"));
  Fields fields(object, "watch");
  WatchParams out;
  out.generation = static_cast<std::uint64_t>(fields.IntOr("generation", 0, INT64_MAX, 0));
  out.timeout = std::chrono::milliseconds(fields.IntOr("timeoutMs", 0, kMaxWatchMs, kMaxWatchMs));
  TAHOMA_RETURN_IF_ERROR(fields.status());
  return out;
}

}  // namespace tahoma::wire
