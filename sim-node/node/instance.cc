#include "sim-node/node/instance.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "lib/base/check.h"
#include "lib/base/status.h"

namespace tahoma::sim {
namespace {

struct FaultNames {
  ChipFault fault;
  std::string_view name;
  std::string_view error_class;
  std::string_view status;  // nrt/nrt_status.h of aws-neuron-sdk; which fault has which: D
                            // nrt-troubleshoot.rst
};
constexpr std::array kFaults = {
    FaultNames{ChipFault::kSramUncorrectable, "sram-uncorrectable", "SRAM_UNCORRECTABLE_ERROR",
               "NRT_EXEC_HW_ERR_NC_UE (1202)"},
    FaultNames{ChipFault::kNcUncorrectable, "nc-uncorrectable", "NC_UNCORRECTABLE_ERROR",
               "NRT_EXEC_HW_ERR_NC_UE (1202)"},
    FaultNames{ChipFault::kHbmUncorrectable, "hbm-uncorrectable", "HBM_UNCORRECTABLE_ERROR",
               "NRT_EXEC_HW_ERR_HBM_UE (1201)"},
    FaultNames{ChipFault::kDma, "dma", "DMA_ERROR", "NRT_EXEC_HW_ERR_DMA_ABORT (1203)"},
    FaultNames{ChipFault::kDead, "dead", "", "NRT_TIMEOUT (5)"},
};

bool SameContent(const HeldClaim& a, const HeldClaim& b) {
  const auto same_cores = [](const CoresOfChip& x, const CoresOfChip& y) {
    return x.chip == y.chip && x.cores == y.cores;
  };
  return a.lnc == b.lnc && a.chips == b.chips && a.ultra_server_mode == b.ultra_server_mode &&
         std::equal(a.cores.begin(), a.cores.end(), b.cores.begin(), b.cores.end(), same_cores);
}

}  // namespace

std::string_view FaultName(ChipFault fault) {
  return kFaults[static_cast<std::size_t>(fault)].name;
}

std::string_view FaultClass(ChipFault fault) {
  return kFaults[static_cast<std::size_t>(fault)].error_class;
}

std::string_view FaultStatus(ChipFault fault) {
  return kFaults[static_cast<std::size_t>(fault)].status;
}

absl::StatusOr<ChipFault> ParseFault(std::string_view text) {
  for (const FaultNames& names : kFaults) {
    if (text.empty()) break;
    if (names.name == text || names.error_class == text) return names.fault;
  }
  return InvalidArgument(
      "reason \"{}\" is unknown; expected sram-uncorrectable, nc-uncorrectable, "
      "hbm-uncorrectable, dma or dead",
      text);
}

std::vector<int> HeldClaim::TouchedChips() const {
  std::vector<int> touched = chips;
  for (const CoresOfChip& part : cores) touched.push_back(part.chip);
  std::sort(touched.begin(), touched.end());
  touched.erase(std::unique(touched.begin(), touched.end()), touched.end());
  return touched;
}

std::vector<int> HeldClaim::CoresOn(int chip, int all) const {
  const auto part = std::ranges::find(cores, chip, &CoresOfChip::chip);
  std::vector<int> on(static_cast<std::size_t>(all));
  std::iota(on.begin(), on.end(), 0);
  if (part != cores.end()) on = part->cores;
  std::ranges::sort(on);
  return on;
}

Instance::Instance(Options options, TokenSource tokens)
    : options_(std::move(options)),
      tokens_(std::move(tokens)),
      chips_(static_cast<std::size_t>(options_.type->chip_count())) {}

absl::StatusOr<Instance> Instance::Create(Options options, TokenSource tokens) {
  if (options.type == nullptr) {
    return InvalidArgument("instanceType is missing or unknown; known are {}",
                           hw::InstanceTypeNames());
  }
  if (options.ultra_server) {
    if (!options.type->ultra_server) {
      return InvalidArgument("ultraServer is set, but {} does not form UltraServers",
                             options.type->name);
    }
    const int node_id = options.ultra_server->node_id;
    if (node_id < 0 || node_id >= hw::kUltraServerNodes) {
      return InvalidArgument("ultraServer.nodeId is {}; expected 0 to {}", node_id,
                             hw::kUltraServerNodes - 1);
    }
  }
  if (!options.network_layers.empty() && options.network_layers.size() != 3) {
    return InvalidArgument("networkLayers has {} entries; expected three, top first, or none",
                           options.network_layers.size());
  }
  return Instance(std::move(options), std::move(tokens));
}

absl::Status Instance::CheckChip(int chip) const {
  if (chip >= 0 && chip < chip_count()) return absl::OkStatus();
  return InvalidArgument("chip {} does not exist: {} has chips 0 to {}", chip, type().name,
                         chip_count() - 1);
}

absl::StatusOr<std::vector<Instance::CoreMask>> Instance::MasksOf(const HeldClaim& claim) const {
  if (claim.claim_uid.empty()) return InvalidArgument("claimUid is empty");
  if (!hw::HasLnc(*type().chip, claim.lnc)) {
    return InvalidArgument("lnc is {}; expected {}", claim.lnc,
                           type().chip->lnc_max == 1 ? "1" : "1 or 2");
  }
  if (claim.chips.empty() && claim.cores.empty()) {
    return InvalidArgument("claim {} names neither chips nor cores", claim.name);
  }
  std::vector<CoreMask> masks(chips_.size(), 0);
  for (const int chip : claim.chips) {
    TAHOMA_RETURN_IF_ERROR(CheckChip(chip));
    masks[static_cast<std::size_t>(chip)] = 0xff;
  }
  const int cores = hw::LogicalCores(*type().chip, claim.lnc);
  for (const CoresOfChip& part : claim.cores) {
    TAHOMA_RETURN_IF_ERROR(CheckChip(part.chip));
    CoreMask& mask = masks[static_cast<std::size_t>(part.chip)];
    if (mask == 0xff) return InvalidArgument("chip {} is named whole and in part", part.chip);
    for (const int core : part.cores) {
      if (core < 0 || core >= cores) {
        return InvalidArgument("core {} of chip {} does not exist: with LNC {} a chip has 0 to {}",
                               core, part.chip, claim.lnc, cores - 1);
      }
      const unsigned width = static_cast<unsigned>(claim.lnc);
      const unsigned bits = ((1U << width) - 1) << (static_cast<unsigned>(core) * width);
      mask = static_cast<CoreMask>(mask | bits);
    }
  }
  return masks;
}

absl::Status Instance::CheckFree(const HeldClaim& claim, const std::vector<CoreMask>& masks) const {
  for (std::size_t i = 0; i < masks.size(); ++i) {
    if (masks[i] == 0) continue;
    if (chips_[i].fault) {
      return FailedPrecondition("chip {} is broken ({})", i, FaultName(*chips_[i].fault));
    }
    for (const auto& [uid, held] : held_) {
      if (uid == claim.claim_uid || held.masks[i] == 0) continue;
      if ((held.masks[i] & masks[i]) != 0) {
        return AlreadyExists("chip {}: cores are held by claim {}/{} ({})", i,
                             held.claim.name_space, held.claim.name, uid);
      }
      if (held.claim.lnc != claim.lnc) {
        return AlreadyExists("chip {} runs with LNC {} for claim {}/{}; LNC {} needs a free chip",
                             i, held.claim.lnc, held.claim.name_space, held.claim.name, claim.lnc);
      }
    }
  }
  return absl::OkStatus();
}

absl::Status Instance::CheckMode(const HeldClaim& claim) const {
  if (claim.ultra_server_mode == 0 || !election_) return absl::OkStatus();
  const std::string asks = fmt::format("claim {}/{} asks for an UltraServer of {}",
                                       claim.name_space, claim.name, claim.ultra_server_mode);
  if (election_->running()) {
    return FailedPrecondition("{}, but the election runs: {}", asks, election_->reason);
  }
  const UltraServerMode wanted = hw::ModeFor(claim.ultra_server_mode, election_->modes);
  if (wanted == UltraServerMode::kUnset) {
    return FailedPrecondition("{}; elected are {}{}", asks, hw::SizesLabel(election_->modes),
                              election_->reason.empty() ? "" : ": " + election_->reason);
  }
  if (!held_.empty() && election_->mode != wanted) {
    return FailedPrecondition("{}, but cores are in use; the mode stays {} until all are released",
                              asks, hw::ModeName(election_->mode));
  }
  return absl::OkStatus();
}

absl::Status Instance::CheckToken(const std::string& token) const {
  if (token.size() != 32 || token.find_first_not_of("0123456789abcdef") != std::string::npos) {
    return InvalidArgument("token must be 32 lower-case hex digits");
  }
  if (by_token_.contains(token)) return InvalidArgument("token belongs to another claim");
  return absl::OkStatus();
}

absl::StatusOr<std::string> Instance::ApplyClaim(HeldClaim claim, std::string token) {
  TAHOMA_ASSIGN_OR_RETURN(std::vector<CoreMask> masks, MasksOf(claim));
  const auto found = held_.find(claim.claim_uid);
  if (found != held_.end()) {
    if (SameContent(found->second.claim, claim)) return found->second.token;
    return AlreadyExists("claim {}/{} ({}) is held with other devices; release it first",
                         claim.name_space, claim.name, claim.claim_uid);
  }
  TAHOMA_RETURN_IF_ERROR(CheckFree(claim, masks));
  if (token.empty()) TAHOMA_RETURN_IF_ERROR(CheckMode(claim));
  // Disjoint claims cannot be more than there are cores.
  TAHOMA_CHECK(held_.size() < kMaxHeldClaims);
  if (token.empty()) {
    const std::array<std::uint64_t, 2> bits = tokens_();
    token = fmt::format("{:016x}{:016x}", bits[0], bits[1]);
  }
  TAHOMA_RETURN_IF_ERROR(CheckToken(token));
  by_token_[token] = claim.claim_uid;
  std::string uid = claim.claim_uid;
  held_[std::move(uid)] = Held{std::move(claim), token, std::move(masks)};
  ++generation_;
  return token;
}

void Instance::ReleaseClaim(std::string_view claim_uid) {
  const auto found = held_.find(std::string(claim_uid));
  if (found == held_.end()) return;
  by_token_.erase(found->second.token);
  held_.erase(found);
  ++generation_;
}

absl::StatusOr<const HeldClaim*> Instance::FindClaim(std::string_view token) const {
  const auto uid = by_token_.find(std::string(token));
  if (uid == by_token_.end()) {
    return PermissionDenied("the token opens no claim on node {}", options_.name);
  }
  return &held_.find(uid->second)->second.claim;
}

std::vector<const HeldClaim*> Instance::claims() const {
  std::vector<const HeldClaim*> list;
  for (const auto& [uid, held] : held_) list.push_back(&held.claim);
  std::sort(list.begin(), list.end(),
            [](const HeldClaim* a, const HeldClaim* b) { return a->claim_uid < b->claim_uid; });
  return list;
}

absl::Status Instance::BreakChip(int chip, ChipFault fault) {
  TAHOMA_RETURN_IF_ERROR(CheckChip(chip));
  std::optional<ChipFault>& now = chips_[static_cast<std::size_t>(chip)].fault;
  if (now == fault) return absl::OkStatus();
  now = fault;
  ++generation_;
  return absl::OkStatus();
}

absl::Status Instance::RepairChip(int chip) {
  TAHOMA_RETURN_IF_ERROR(CheckChip(chip));
  std::optional<ChipFault>& now = chips_[static_cast<std::size_t>(chip)].fault;
  if (!now) return absl::OkStatus();
  now.reset();
  ++generation_;
  return absl::OkStatus();
}

bool Instance::HasLink(Port port) const {
  if (port.axis == torus::Axis::kZ) return options_.ultra_server.has_value();
  return type().fabric != hw::FabricKind::kSwitch && type().torus.extent(port.axis) > 1;
}

std::optional<int> Instance::Behind(int chip, Port port) const {
  if (port.axis == torus::Axis::kZ) return std::nullopt;
  const torus::Coord from = type().torus.CoordOf(torus::ChipIndex(chip));
  const auto to = type().torus.Neighbour(from, port.axis, port.direction);
  if (!to) return std::nullopt;
  return type().torus.IndexOf(*to).value();
}

absl::Status Instance::ChangeLink(int chip, Port port,
                                  const std::function<void(ChipState&, std::size_t port)>& change) {
  TAHOMA_RETURN_IF_ERROR(CheckChip(chip));
  if (!HasLink(port)) {
    return InvalidArgument(
        "chip {} has no link {}: {}", chip, PortName(port),
        port.axis == torus::Axis::kZ
            ? "the node is in no UltraServer"
            : fmt::format("the fabric of {} is {} of {}", type().name,
                          hw::FabricName(type().fabric), type().torus.ToString()));
  }
  bool changed = false;
  const auto at = [&](int end, Port end_port) {
    ChipState& state = chips_[static_cast<std::size_t>(end)];
    const ChipState before = state;
    change(state, PortIndex(end_port));
    changed = changed || state != before;
  };
  at(chip, port);
  if (const std::optional<int> far = Behind(chip, port)) {
    at(*far, {port.axis, torus::Opposite(port.direction)});
  }
  generation_ += changed ? 1 : 0;
  return absl::OkStatus();
}

absl::Status Instance::SetLink(int chip, Port port, std::uint16_t permille) {
  if (permille > 1000) {
    return InvalidArgument("a link cannot run at {} thousandths of its rate; at most 1000",
                           permille);
  }
  return ChangeLink(chip, port, [permille](ChipState& state, std::size_t at) {
    state.link_permille.at(at) = permille;
  });
}

absl::Status Instance::SetLinkLoss(int chip, Port port, std::uint32_t loss_ppm) {
  if (loss_ppm > kMaxLossPpm) {
    return InvalidArgument("a link loses {} of a million packets; expected 0 to {}", loss_ppm,
                           kMaxLossPpm);
  }
  return ChangeLink(chip, port, [loss_ppm](ChipState& state, std::size_t at) {
    state.link_loss_ppm.at(at) = loss_ppm;
  });
}

absl::Status Instance::SetLinkFlapping(int chip, Port port, const Flapping& flapping) {
  TAHOMA_RETURN_IF_ERROR(CheckFlapping(flapping));
  return ChangeLink(chip, port, [&flapping](ChipState& state, std::size_t at) {
    state.link_flapping.at(at) = flapping;
  });
}

absl::Status Instance::RepairLink(int chip, Port port) {
  return ChangeLink(chip, port, [](ChipState& state, std::size_t at) {
    state.link_permille.at(at) = 1000;
    state.link_loss_ppm.at(at) = 0;
    state.link_flapping.at(at) = {};
  });
}

absl::Status Instance::SetEfa(int chip, bool up) {
  TAHOMA_RETURN_IF_ERROR(CheckChip(chip));
  bool& now = chips_[static_cast<std::size_t>(chip)].efa_up;
  generation_ += now != up ? 1 : 0;
  now = up;
  return absl::OkStatus();
}

std::uint16_t Instance::LinkPermille(int chip_index, Port port) const {
  const auto dead = [&](int index) { return chip(index).fault == ChipFault::kDead; };
  const std::optional<int> far = Behind(chip_index, port);
  if (HasLink(port) && (dead(chip_index) || (far && dead(*far)))) return 0;
  return chip(chip_index).link_permille.at(PortIndex(port));
}

bool Instance::IsLinkDependable(int chip_index, Port port) const {
  return LinkPermille(chip_index, port) != 0 &&
         chip(chip_index).link_flapping.at(PortIndex(port)) == Flapping{};
}

void Instance::SetElection(ElectionResult result) {
  const auto published = [](ElectionResult of) {
    of.reason.clear();
    return of;
  };
  if (!election_ || published(*election_) != published(result)) ++generation_;
  election_ = std::move(result);
}

int Instance::lnc(int chip) const {
  for (const auto& [uid, held] : held_) {
    if (held.masks[static_cast<std::size_t>(chip)] != 0) return held.claim.lnc;
  }
  return 0;
}

}  // namespace tahoma::sim
