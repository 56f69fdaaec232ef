#include "dra-plugin/claims/cdi.h"

#include <fmt/ranges.h>

#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/wire/messages.h"

namespace tahoma::dra {
namespace {

using json = Json;

constexpr std::string_view kKind = "neuron.aws.com/device";
constexpr std::string_view kFilePrefix = "neuron.aws.com-device_";
constexpr std::string_view kFileSuffix = ".json";
constexpr std::string_view kUnix = "unix:";

// The path of a unix socket's address; empty for another.
std::string_view PathOf(std::string_view address) {
  if (address.starts_with('/')) return address;
  return address.starts_with(kUnix) ? address.substr(kUnix.size()) : std::string_view();
}

// The folder of a unix socket, without the last slash; empty for another address.
std::string_view FolderOf(std::string_view address) {
  const std::string_view path = PathOf(address);
  return path.substr(0, path.empty() ? 0 : path.rfind('/'));
}

json Bind(std::string_view host_path, std::string_view container_path) {
  return {{"hostPath", host_path},
          {"containerPath", container_path},
          {"options", {"bind", "ro", "nosuid", "nodev"}}};
}

std::vector<int> ChipsOf(const wire::ClaimGrant& grant) {
  const wire::CoreMasks masks = wire::HeldCores(grant);
  std::vector<int> chips;
  for (int chip = 0; chip < wire::kMaxChips; ++chip) {
    if (masks.at(static_cast<std::size_t>(chip)) != 0) chips.push_back(chip);
  }
  return chips;
}

// Programs reach the socket by its folder, because a sim-node that starts again makes a new file.
// The socket itself stands for each chip's device node.
json Mounts(const PreparedClaim& claim) {
  json mounts = json::array();
  const std::string_view folder = FolderOf(claim.workload_socket);
  if (folder.empty()) return mounts;
  mounts.push_back(Bind(folder, folder));
  for (const int chip : ChipsOf(claim.grant)) {
    mounts.push_back(Bind(PathOf(claim.workload_socket), fmt::format("/dev/neuron{}", chip)));
  }
  return mounts;
}

std::string NodeNameVariable(std::string_view node_name) {
  return fmt::format("TAHOMA_NODE_NAME={}", node_name);
}

}  // namespace

std::string CdiFileName(std::string_view claim_uid) {
  return fmt::format("{}{}{}", kFilePrefix, claim_uid, kFileSuffix);
}

std::string_view ClaimUidOfCdiFile(std::string_view file_name) {
  if (!file_name.starts_with(kFilePrefix) || !file_name.ends_with(kFileSuffix) ||
      file_name.size() <= kFilePrefix.size() + kFileSuffix.size()) {
    return {};
  }
  file_name.remove_prefix(kFilePrefix.size());
  file_name.remove_suffix(kFileSuffix.size());
  return file_name;
}

std::string CdiDeviceId(std::string_view driver, std::string_view claim_uid,
                        std::string_view device) {
  return fmt::format("{}/device={}-{}", driver, claim_uid, device);
}

std::string Ranges(const std::vector<int>& ascending) {
  std::string out;
  for (std::size_t begin = 0; begin < ascending.size();) {
    std::size_t end = begin + 1;
    while (end < ascending.size() && ascending[end] == ascending[end - 1] + 1) ++end;
    if (!out.empty()) out += ',';
    out += fmt::format("{}", ascending[begin]);
    if (end - begin > 1) out += fmt::format("-{}", ascending[end - 1]);
    begin = end;
  }
  return out;
}

std::vector<std::string> ClaimEnvironment(const PreparedClaim& claim) {
  const wire::ClaimGrant& grant = claim.grant;
  const wire::CoreMasks masks = wire::HeldCores(grant);
  const int cores_per_chip = claim.cores_per_chip / grant.lnc;
  const std::vector<int> chips = ChipsOf(grant);
  std::vector<int> cores;
  for (const int chip : chips) {
    const unsigned mask = masks.at(static_cast<std::size_t>(chip));
    for (int core = 0; core < cores_per_chip; ++core) {
      const bool held = (mask >> static_cast<unsigned>(core * grant.lnc) & 1U) != 0;
      if (held) cores.push_back(chip * cores_per_chip + core);
    }
  }
  std::vector<std::string> out = {
      fmt::format("AWS_NEURON_VISIBLE_DEVICES={}", fmt::join(chips, ",")),
      fmt::format("NEURON_RT_VISIBLE_CORES={}", Ranges(cores)),
      fmt::format("NEURON_LOGICAL_NC_CONFIG={}", grant.lnc)};
  if (grant.ultra_server_mode != 0) {
    out.push_back(fmt::format("NEURON_RT_ULTRASERVER_MODE={}", grant.ultra_server_mode));
    out.push_back(fmt::format("NEURON_RT_ULTRASERVER_SERVER_ID={}", claim.ultra_server_id));
    out.push_back(fmt::format("NEURON_RT_ULTRASERVER_NODE_ID={}", claim.ultra_server_node_id));
  }
  const std::string_view path = PathOf(claim.workload_socket);
  out.push_back(fmt::format("TAHOMA_NODE_SOCKET={}",
                            path.empty() ? std::string_view(claim.workload_socket) : path));
  out.push_back(fmt::format("TAHOMA_CLAIM_TOKEN={}", claim.token));
  if (claim.reclaim_timestamp != 0) {
    out.push_back(
        fmt::format("TAHOMA_CAPACITY_BLOCK_RECLAIM_TIMESTAMP={}", claim.reclaim_timestamp));
  }
  if (!claim.devices.empty()) out.push_back(NodeNameVariable(claim.devices.front().pool));
  return out;
}

std::string CdiSpec(const PreparedClaim& claim) {
  // Edits of a device must not be empty (CDI SPEC.md), and a container may name some requests of
  // the claim only: so every device carries the whole claim's edits.
  const json edits = {{"env", ClaimEnvironment(claim)}, {"mounts", Mounts(claim)}};
  json devices = json::array();
  for (const PreparedDevice& device : claim.devices) {
    devices.push_back({{"name", fmt::format("{}-{}", claim.grant.claim_uid, device.device)},
                       {"containerEdits", edits}});
  }
  const json spec = {{"cdiVersion", "0.5.0"}, {"kind", kKind}, {"devices", std::move(devices)}};
  return spec.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

std::string EfaCdiFileName(std::string_view claim_uid) {
  return fmt::format("{}-device_{}{}", hw::kEfaDriver, claim_uid, kFileSuffix);
}

std::string EfaCdiSpec(std::string_view claim_uid, const std::vector<hw::EfaNic>& nics,
                       std::string_view workload_socket) {
  std::vector<std::string> names;
  for (const hw::EfaNic& nic : nics) names.push_back(nic.rdma);
  const std::string_view socket = PathOf(workload_socket);
  json devices = json::array();
  for (const hw::EfaNic& nic : nics) {
    json edits = {{"env", {fmt::format("TAHOMA_EFA_DEVICES={}", fmt::join(names, ","))}}};
    if (!socket.empty()) {
      edits["mounts"] =
          json::array({Bind(socket, fmt::format("/dev/infiniband/uverbs{}", nic.number))});
    }
    devices.push_back({{"name", fmt::format("{}-{}", claim_uid, nic.device)},
                       {"containerEdits", std::move(edits)}});
  }
  const json spec = {{"cdiVersion", "0.5.0"},
                     {"kind", fmt::format("{}/device", hw::kEfaDriver)},
                     {"devices", std::move(devices)}};
  return spec.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

absl::Status CheckWorkloadSocket(std::string_view workload_socket, std::string_view node_socket) {
  if (workload_socket.empty()) {
    return FailedPrecondition("sim-node has no socket for containers: set its workloadSocket");
  }
  const std::string_view folder = FolderOf(workload_socket);
  const std::string_view private_path = PathOf(node_socket);
  const bool inside = private_path.size() > folder.size() && private_path.starts_with(folder) &&
                      private_path[folder.size()] == '/';
  if (PathOf(workload_socket).empty() || private_path.empty() || !inside) return absl::OkStatus();
  return FailedPrecondition(
      "sim-node's workloadSocket {} and its nodeSocket {} are in one folder, which containers "
      "would "
      "get: give the workloadSocket a folder of its own",
      PathOf(workload_socket), private_path);
}

bool IsCdiSpecOfNode(std::string_view text, std::string_view node_name) {
  return text.find(fmt::format("\"{}\"", NodeNameVariable(node_name))) != std::string_view::npos;
}

}  // namespace tahoma::dra
