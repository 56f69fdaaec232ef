#include "sim-node/serve/node_server.h"

#include <algorithm>

#include "lib/base/check.h"
#include "lib/base/json.h"
#include "lib/base/status.h"

namespace tahoma::sim {
namespace {

using json = Json;

wire::ClaimGrant GrantOf(const HeldClaim& claim) {
  wire::ClaimGrant grant;
  grant.claim_uid = claim.claim_uid;
  grant.name_space = claim.name_space;
  grant.name = claim.name;
  grant.lnc = claim.lnc;
  grant.chips = claim.chips;
  grant.ultra_server_mode = claim.ultra_server_mode;
  for (const CoresOfChip& part : claim.cores) {
    grant.cores.push_back({.chip = part.chip, .cores = part.cores});
  }
  return grant;
}

HeldClaim ClaimOf(const wire::ClaimGrant& grant) {
  HeldClaim claim{.claim_uid = grant.claim_uid,
                  .name_space = grant.name_space,
                  .name = grant.name,
                  .lnc = grant.lnc,
                  .chips = grant.chips,
                  .ultra_server_mode = grant.ultra_server_mode};
  for (const wire::ChipCores& part : grant.cores) {
    claim.cores.push_back({.chip = part.chip, .cores = part.cores});
  }
  return claim;
}

wire::Chip ChipOf(const Instance& node, int index) {
  wire::Chip chip;
  chip.index = index;
  const ChipState& state = node.chip(index);
  chip.healthy = !state.fault;
  if (state.fault) chip.reason = FaultName(*state.fault);
  for (const torus::Axis axis : torus::kAxes) {
    for (const torus::Direction direction : {torus::Direction::kPlus, torus::Direction::kMinus}) {
      const Port port{axis, direction};
      if (!node.IsLinkDependable(index, port)) chip.links_down.push_back(PortName(port));
    }
  }
  chip.lnc = node.lnc(index);
  chip.bdf = node.type().chips[static_cast<std::size_t>(index)].bdf;
  chip.efa_down = !state.efa_up;
  return chip;
}

wire::UltraServer UltraServerOf(const Instance& node) {
  wire::UltraServer out = {.id = node.options().ultra_server->id,
                           .node_id = node.options().ultra_server->node_id,
                           .mode = hw::kUltraServerNodes};
  if (!node.election()) return out;
  out.election = ElectionOf(*node.election());
  out.mode = 1;
  for (const UltraServerMode mode : out.election->modes) {
    out.mode = std::max(out.mode, hw::NodesOf(mode));
  }
  return out;
}

json Connected(const Instance& node, int chip) {
  json list = json::array();
  std::string text = hw::ConnectedDevices(node.type(), chip);
  std::replace(text.begin(), text.end(), ',', ' ');
  std::istringstream in(text);
  for (int device = 0; in >> device;) list.push_back(device);
  return list;
}

json DeviceOf(const Instance& node, const HeldClaim& claim, int chip) {
  const hw::ChipSite& site = node.type().chips[static_cast<std::size_t>(chip)];
  const int per_chip = hw::LogicalCores(*node.type().chip, claim.lnc);
  json ids = json::array();
  for (const int core : claim.CoresOn(chip, per_chip)) ids.push_back(chip * per_chip + core);
  const wire::Chip state = ChipOf(node, chip);
  return {{"index", chip},
          {"bdf", site.bdf},
          {"cpuAffinity", site.cpu_affinity},
          {"numaNode", site.numa_node},
          {"connectedTo", Connected(node, chip)},
          {"coreIds", std::move(ids)},
          {"memoryBytes", node.type().chip->hbm_bytes},
          {"healthy", state.healthy},
          {"reason", state.reason},
          {"linksDown", state.links_down}};
}

}  // namespace

wire::UltraServerElection ElectionOf(const ElectionResult& result) {
  wire::UltraServerElection out;
  out.running = result.running();
  if (out.running) return out;
  out.modes = result.modes;
  out.mode = result.mode;
  const ClassFiles files = ClassFilesOf(result);
  if (result.node_count >= 2) {
    out.server_id_2 = files.server_id_2;
    out.node_id_2 = std::stoi(files.node_id_2);
  }
  if (result.node_count == hw::kUltraServerNodes) {
    out.server_id_4 = files.server_id_4;
    out.node_id_4 = std::stoi(files.node_id_4);
  }
  return out;
}

std::string DevicesJson(const Instance& node, const HeldClaim& claim) {
  json devices = json::array();
  for (const int chip : claim.TouchedChips()) devices.push_back(DeviceOf(node, claim, chip));
  json reply = {{"nodeName", node.options().name},
                {"instanceType", node.type().name},
                {"lnc", claim.lnc},
                {"claim", {{"namespace", claim.name_space}, {"name", claim.name}}},
                {"devices", std::move(devices)}};
  if (node.options().ultra_server) {
    reply["ultraServer"] = {{"id", node.options().ultra_server->id},
                            {"nodeId", node.options().ultra_server->node_id}};
  }
  return reply.dump();
}

NodeServer::NodeServer(LiveInstance& live, Options options)
    : live_(live), options_(std::move(options)) {
  AddWorkloadCall(std::string(kDevices), [this](const Caller& caller, const wire::Request&) {
    wire::Reply reply;
    reply.result =
        live_.Read([&](const Instance& node) { return DevicesJson(node, caller.claim); });
    return reply;
  });
}

void NodeServer::AddWorkloadCall(std::string method, WorkloadCall call, ReplyBytes reply_bytes) {
  Served served{.call = std::move(call), .reply_bytes = std::move(reply_bytes)};
  TAHOMA_CHECK(calls_.emplace(std::move(method), std::move(served)).second);
}

wire::Inventory NodeServer::MakeInventory() const {
  return live_.Read([&](const Instance& node) {
    const Instance::Options& options = node.options();
    wire::Inventory inventory;
    inventory.generation = node.generation();
    inventory.node_name = options.name;
    inventory.instance_type = std::string(node.type().name);
    if (options.ultra_server) inventory.ultra_server = UltraServerOf(node);
    inventory.network_layers = options.network_layers;
    inventory.capacity_block_id = options.capacity_block_id;
    inventory.driver_version = options_.driver_version;
    inventory.workload_socket = options_.workload_socket;
    for (int chip = 0; chip < node.chip_count(); ++chip) {
      inventory.chips.push_back(ChipOf(node, chip));
    }
    return inventory;
  });
}

absl::StatusOr<wire::Reply> NodeServer::WatchInventory(const wire::Request& request) {
  TAHOMA_ASSIGN_OR_RETURN(const wire::WatchParams params, wire::DecodeWatchParams(request.params));
  live_.WaitForChange(params.generation, params.timeout);
  wire::Reply reply;
  reply.result = wire::EncodeInventory(MakeInventory());
  return reply;
}

absl::StatusOr<wire::Reply> NodeServer::ApplyClaim(const wire::Request& request) {
  TAHOMA_ASSIGN_OR_RETURN(const wire::ApplyParams params, wire::DecodeApplyParams(request.params));
  absl::StatusOr<std::string> token = live_.Change(
      [&](Instance& node) { return node.ApplyClaim(ClaimOf(params.grant), params.token); });
  if (!token.ok()) return token.status();
  wire::Reply reply;
  reply.result = wire::EncodeToken(*token);
  return reply;
}

absl::StatusOr<wire::Reply> NodeServer::ServePlugin(const wire::Request& request) {
  wire::Reply reply;
  if (request.method == wire::kInventory) {
    reply.result = wire::EncodeInventory(MakeInventory());
    return reply;
  }
  if (request.method == wire::kWatchInventory) return WatchInventory(request);
  if (request.method == wire::kApplyClaim) return ApplyClaim(request);
  if (request.method == wire::kReleaseClaim) {
    TAHOMA_ASSIGN_OR_RETURN(const std::string uid, wire::DecodeClaimUid(request.params));
    live_.Change([&](Instance& node) {
      node.ReleaseClaim(uid);
      return true;
    });
    return reply;
  }
  if (request.method == wire::kListClaims) {
    reply.result = wire::EncodeClaimList(live_.Read([](const Instance& node) {
      std::vector<wire::ClaimGrant> grants;
      for (const HeldClaim* claim : node.claims()) grants.push_back(GrantOf(*claim));
      return grants;
    }));
    return reply;
  }
  return Unimplemented("method \"{}\" is not served on the node socket", request.method);
}

absl::StatusOr<Caller> NodeServer::CallerOf(const Json& params) const {
  Caller caller;
  const Json* token = FindMember(params, "token");
  if (token != nullptr && token->is_string()) caller.token = token->get<std::string>();
  const absl::Status allowed = live_.Read([&](const Instance& node) {
    const absl::StatusOr<const HeldClaim*> claim = node.FindClaim(caller.token);
    if (claim.ok()) caller.claim = **claim;
    return claim.status();
  });
  TAHOMA_RETURN_IF_ERROR(allowed);
  return caller;
}

absl::StatusOr<wire::CallerOf> NodeServer::Introduce(const wire::Request& request) const {
  const json params = TryParseJson(request.params);
  TAHOMA_ASSIGN_OR_RETURN(Caller caller, CallerOf(params));
  const auto found = calls_.find(request.method);
  const bool replies = found != calls_.end() && found->second.reply_bytes != nullptr;
  return wire::CallerOf{.name = std::move(caller.claim.claim_uid),
                        .reply_bytes = replies ? found->second.reply_bytes(params) : 0};
}

wire::Server::Options NodeServer::WorkloadOptions() const {
  return {.frame = kWorkloadFrame,
          .introduce = [this](const wire::Request& request) { return Introduce(request); }};
}

absl::StatusOr<wire::Reply> NodeServer::ServeWorkload(const wire::Request& request) {
  // The token is checked first: a caller without a token must not even learn the names of methods.
  TAHOMA_ASSIGN_OR_RETURN(const Caller caller, CallerOf(TryParseJson(request.params)));
  const auto found = calls_.find(request.method);
  if (found == calls_.end()) {
    return Unimplemented("method \"{}\" is not served to workloads", request.method);
  }
  return found->second.call(caller, request);
}

}  // namespace tahoma::sim
