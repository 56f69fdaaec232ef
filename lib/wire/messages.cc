#include "lib/wire/messages.h"

#include <algorithm>

#include "lib/base/status.h"
#include "lib/wire/field_list.h"
#include "lib/wire/fields.h"

namespace tahoma::wire {
namespace {

constexpr std::size_t kMaxNameBytes = 253;  // Kubernetes object names
constexpr std::size_t kMaxUidBytes = 64;
constexpr std::size_t kMaxTextBytes = 63;  // taint values are labels
constexpr std::int64_t kMaxWatchMs = 60'000;

bool IsHexDigit(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); }

bool IsUid(std::string_view text) {
  return !text.empty() && text.size() <= kMaxUidBytes &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return IsHexDigit(c) || (c >= 'g' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-';
         });
}

// A claim's UID becomes part of file names, so only harmless characters are allowed.
constexpr auto kUidFields = [](auto& list, auto& uid) {
  list.String("claimUid", uid, 1, kMaxUidBytes);
  list.Check([&](Fields& fields) {
    if (IsUid(uid)) return;
    fields.Fail(InvalidArgument("{} is \"{}\"; expected letters, digits and hyphens",
                                fields.Path("claimUid"), uid));
  });
};

void CheckToken(Fields& fields, std::string_view token) {
  if (std::all_of(token.begin(), token.end(), IsHexDigit)) return;
  fields.Fail(
      InvalidArgument("{} must be {} lower-case hex digits", fields.Path("token"), kTokenBytes));
}

constexpr auto kTokenFields = [](auto& list, auto& token) {
  list.String("token", token, kTokenBytes, kTokenBytes);
  list.Check([&](Fields& fields) { CheckToken(fields, token); });
};

constexpr auto kChipFields = [](auto& list, auto& chip) {
  list.Int("index", chip.index, 0, kMaxChips - 1);
  list.Bool("healthy", chip.healthy, kOptional);
  list.String("reason", chip.reason, 0, kMaxTextBytes, kOptional);
  list.Strings("linksDown", chip.links_down, 6, 2);
  list.Int("lnc", chip.lnc, 0, 2, kOptional);
  list.String("bdf", chip.bdf, 0, kMaxTextBytes, kOptional);
  list.Bool("efaDown", chip.efa_down, kOptional);
  list.Check([&](Fields& fields) {
    for (const std::string& link : chip.links_down) {
      if (link.size() == 2 && link[0] >= 'x' && link[0] <= 'z' &&
          (link[1] == '+' || link[1] == '-')) {
        continue;
      }
      fields.Fail(InvalidArgument("{} holds \"{}\"; expected x+, x-, y+, y-, z+ or z-",
                                  fields.Path("linksDown"), link));
    }
  });
};

// Returns a mode's name, "" for none.
std::string TextOf(hw::UltraServerMode mode) {
  return mode == hw::UltraServerMode::kUnset ? "" : std::string(hw::ModeName(mode));
}

hw::UltraServerMode ReadMode(Fields& fields, std::string_view key, const std::string& text) {
  const absl::StatusOr<hw::UltraServerMode> mode = hw::ParseMode(text);
  if (!mode.ok()) fields.Fail(Annotate(mode.status(), fields.Path(key)));
  return mode.value_or(hw::UltraServerMode::kUnset);
}

constexpr auto kElectionFields = [](auto& list, auto& election) {
  std::vector<std::string> modes;
  for (const hw::UltraServerMode mode : election.modes) modes.push_back(TextOf(mode));
  std::string chosen = TextOf(election.mode);
  list.Bool("running", election.running, kOptional);
  list.Strings("modes", modes, hw::kUltraServerModes.size(), kMaxTextBytes);
  list.String("mode", chosen, 0, kMaxTextBytes, kOptional);
  list.String("serverId2", election.server_id_2, 0, kMaxTextBytes, kOptional);
  list.Int("nodeId2", election.node_id_2, -1, 1, kOptional);
  list.String("serverId4", election.server_id_4, 0, kMaxTextBytes, kOptional);
  list.Int("nodeId4", election.node_id_4, -1, 3, kOptional);
  list.Check([&](auto& fields) {
    for (const std::string& mode : modes) {
      election.modes.push_back(ReadMode(fields, "modes", mode));
    }
    if (!chosen.empty()) election.mode = ReadMode(fields, "mode", chosen);
  });
};

constexpr auto kUltraServerFields = [](auto& list, auto& ultra_server) {
  list.String("id", ultra_server.id, 1, kMaxTextBytes);
  list.Int("nodeId", ultra_server.node_id, 0, 3);
  list.Int("mode", ultra_server.mode, 1, 4, kOptional);
  list.Object("election", ultra_server.election, kElectionFields);
  list.Check([&](Fields& fields) {
    if (ultra_server.mode == 3) {
      fields.Fail(InvalidArgument("{} is 3; expected 1, 2 or 4", fields.Path("mode")));
    }
  });
};

constexpr auto kInventoryFields = [](auto& list, auto& inventory) {
  list.Int("generation", inventory.generation, 0, INT64_MAX);
  list.String("nodeName", inventory.node_name, 1, kMaxNameBytes);
  list.String("instanceType", inventory.instance_type, 1, kMaxTextBytes);
  list.Strings("networkLayers", inventory.network_layers, 3, kMaxTextBytes);
  list.String("capacityBlockId", inventory.capacity_block_id, 0, kMaxTextBytes, kOptional);
  list.String("driverVersion", inventory.driver_version, 0, kMaxTextBytes, kOptional);
  list.String("workloadSocket", inventory.workload_socket, 0, kMaxNameBytes, kOptional);
  list.Object("ultraServer", inventory.ultra_server, kUltraServerFields);
  list.Objects("chips", inventory.chips, kMaxChips, kChipFields);
  list.Check([&](Fields& fields) {
    const std::size_t layers = inventory.network_layers.size();
    if (layers == 1 || layers == 2) {
      fields.Fail(InvalidArgument("{} has {} elements; expected 3 or none",
                                  fields.Path("networkLayers"), layers));
    }
    for (std::size_t i = 1; i < inventory.chips.size(); ++i) {
      if (inventory.chips[i].index > inventory.chips[i - 1].index) continue;
      fields.Fail(InvalidArgument("{} must be in ascending order of index", fields.Path("chips")));
    }
  });
};

void CheckCores(Fields& fields, const ClaimGrant& grant) {
  int last = -1;
  for (const ChipCores& part : grant.cores) {
    if (part.chip <= last || part.cores.empty() ||
        std::find(grant.chips.begin(), grant.chips.end(), part.chip) != grant.chips.end()) {
      fields.Fail(
          InvalidArgument("{} must name chips in ascending order, none of \"chips\", each with a "
                          "core",
                          fields.Path("cores")));
    }
    last = part.chip;
  }
}

constexpr auto kGrantFields = [](auto& list, auto& grant) {
  kUidFields(list, grant.claim_uid);
  list.String("namespace", grant.name_space, 1, kMaxTextBytes);
  list.String("name", grant.name, 1, kMaxNameBytes);
  list.Int("lnc", grant.lnc, 1, 2);
  list.Ascending("chips", grant.chips, kMaxChips - 1);
  list.Int("ultraServerMode", grant.ultra_server_mode, 0, 4, kOptional);
  list.Objects("cores", grant.cores, kMaxChips, [&](auto& cores, auto& part) {
    cores.Int("chip", part.chip, 0, kMaxChips - 1);
    cores.Ascending("cores", part.cores, kCoresPerChip / grant.lnc - 1);
  });
  list.Check([&](Fields& fields) {
    if (grant.ultra_server_mode == 3) {
      fields.Fail(
          InvalidArgument("{} is 3; expected 0, 1, 2 or 4", fields.Path("ultraServerMode")));
    }
    CheckCores(fields, grant);
  });
};

constexpr auto kApplyFields = [](auto& list, auto& params) {
  kGrantFields(list, params.grant);
  list.String("token", params.token, kTokenBytes, kTokenBytes, kOptional);
  list.Check([&](Fields& fields) { CheckToken(fields, params.token); });
};

constexpr auto kListFields = [](auto& list, auto& grants) {
  list.Objects("claims", grants, kMaxClaims, kGrantFields);
};

constexpr auto kWatchFields = [](auto& list, auto& params) {
  list.Int("generation", params.generation, 0, INT64_MAX, kOptional);
  list.Int("timeoutMs", params.timeout, 0, kMaxWatchMs, kOptional);
};

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
  return WriteMessage(inventory, kInventoryFields);
}
absl::StatusOr<Inventory> DecodeInventory(std::string_view text) {
  return ReadMessage<Inventory>(text, "inventory", kInventoryFields);
}

std::string EncodeClaimGrant(const ClaimGrant& grant) { return WriteMessage(grant, kGrantFields); }
absl::StatusOr<ClaimGrant> DecodeClaimGrant(std::string_view text) {
  return ReadMessage<ClaimGrant>(text, "claim", kGrantFields);
}

std::string EncodeClaimList(const std::vector<ClaimGrant>& grants) {
  return WriteMessage(grants, kListFields);
}
absl::StatusOr<std::vector<ClaimGrant>> DecodeClaimList(std::string_view text) {
  return ReadMessage<std::vector<ClaimGrant>>(text, "list", kListFields);
}

std::string EncodeApplyParams(const ApplyParams& params) {
  return WriteMessage(params, kApplyFields);
}
absl::StatusOr<ApplyParams> DecodeApplyParams(std::string_view text) {
  return ReadMessage<ApplyParams>(text, "claim", kApplyFields);
}

std::string EncodeToken(std::string_view token) { return WriteMessage(token, kTokenFields); }
absl::StatusOr<std::string> DecodeToken(std::string_view text) {
  return ReadMessage<std::string>(text, "reply", kTokenFields);
}

std::string EncodeClaimUid(std::string_view claim_uid) {
  return WriteMessage(claim_uid, kUidFields);
}
absl::StatusOr<std::string> DecodeClaimUid(std::string_view text) {
  return ReadMessage<std::string>(text, "claim", kUidFields);
}

std::string EncodeWatchParams(const WatchParams& params) {
  return WriteMessage(params, kWatchFields);
}
absl::StatusOr<WatchParams> DecodeWatchParams(std::string_view text) {
  return ReadMessage<WatchParams>(text, "watch", kWatchFields,
                                  {.timeout = std::chrono::milliseconds(kMaxWatchMs)});
}

}  // namespace tahoma::wire
