#include "dra-plugin/claims/claims.h"

#include <spdlog/spdlog.h>

#include <set>

#include "dra-plugin/claims/cdi.h"
#include "lib/base/check.h"
#include "lib/base/status.h"
#include "lib/driver/device_name.h"
#include "lib/hw/catalogue.h"

namespace tahoma::dra {
namespace {

ClaimRef RefOf(const wire::ClaimGrant& grant) {
  return {.name_space = grant.name_space, .name = grant.name, .uid = grant.claim_uid};
}

std::vector<PreparedDevice> DevicesOf(const DriverAllocation& allocation) {
  std::vector<PreparedDevice> devices;
  for (const AllocatedDevice& device : allocation.devices) {
    devices.push_back({.request = std::string(BaseRequest(device.request)),
                       .pool = device.pool,
                       .device = hw::ToString(device.device)});
  }
  return devices;
}

// Sets the elected server of the claim's nodes and this node's place; as wired while none is
// elected.
void SetUltraServer(const wire::UltraServer& from, PreparedClaim& claim) {
  const int nodes = claim.grant.ultra_server_mode;
  claim.ultra_server_id = from.id;
  claim.ultra_server_node_id = from.node_id;
  if (!from.election || nodes < 2) return;
  claim.ultra_server_id = nodes == 4 ? from.election->server_id_4 : from.election->server_id_2;
  claim.ultra_server_node_id = nodes == 4 ? from.election->node_id_4 : from.election->node_id_2;
}

PreparedCount CountOf(const Checkpoint& checkpoint) {
  PreparedCount count = {.claims = checkpoint.claims.size()};
  for (const auto& [uid, claim] : checkpoint.claims) {
    for (const PreparedDevice& device : claim.devices) {
      const auto name = hw::ParseDeviceName(device.device);
      if (!name.ok()) continue;
      ++(name->kind == hw::DeviceKind::kNode   ? count.nodes
         : name->kind == hw::DeviceKind::kChip ? count.chips
                                               : count.cores);
    }
  }
  return count;
}

// "neuron-device-0, neuron-device-1", for the log.
std::string NamesOf(const std::vector<PreparedDevice>& devices) {
  std::string names;
  for (const PreparedDevice& device : devices) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", device.device);
  }
  return names;
}

std::string ModeOf(const wire::ClaimGrant& grant) {
  return grant.ultra_server_mode == 0
             ? ""
             : fmt::format(", UltraServer mode {}", grant.ultra_server_mode);
}

}  // namespace

bool IsAway(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
}

absl::StatusOr<Checkpoint> Claims::Load() {
  TAHOMA_ASSIGN_OR_RETURN(const std::optional<std::string> bytes, state_.Read(kCheckpointFile));
  absl::StatusOr<Checkpoint> checkpoint =
      bytes.has_value() ? DecodeCheckpoint(*bytes) : Checkpoint{};
  if (checkpoint.ok()) {
    prepared_ = CountOf(*checkpoint);
    return checkpoint;
  }
  return DataLoss(
      "the checkpoint {} is damaged: {}. Nothing was changed. Restore the file, or drain this "
      "node's "
      "pods that use {} devices and then delete it",
      state_.PathOf(kCheckpointFile), Message(checkpoint.status()), kDriverName);
}

absl::Status Claims::Save(const Checkpoint& checkpoint) {
  TAHOMA_RETURN_IF_ERROR(state_.Write(kCheckpointFile, EncodeCheckpoint(checkpoint)));
  prepared_ = CountOf(checkpoint);
  return absl::OkStatus();
}

absl::Status Claims::WriteMissingCdi(const Checkpoint& checkpoint) {
  for (const auto& [uid, claim] : checkpoint.claims) {
    const std::string spec = CdiSpec(claim);
    TAHOMA_ASSIGN_OR_RETURN(const std::optional<std::string> found, cdi_.Read(CdiFileName(uid)));
    if (found != spec) TAHOMA_RETURN_IF_ERROR(cdi_.Write(CdiFileName(uid), spec));
  }
  return absl::OkStatus();
}

absl::Status Claims::RemoveOrphanCdi(const Checkpoint& checkpoint) {
  TAHOMA_ASSIGN_OR_RETURN(const std::vector<std::string> names, cdi_.List());
  for (const std::string& name : names) {
    const std::string uid(ClaimUidOfCdiFile(name));
    if (uid.empty() || checkpoint.claims.contains(uid)) continue;
    TAHOMA_ASSIGN_OR_RETURN(const std::optional<std::string> text, cdi_.Read(name));
    if (!text.has_value() || !IsCdiSpecOfNode(*text, options_.node_name)) continue;
    spdlog::info("removing {}: no prepared claim has it", cdi_.PathOf(name));
    TAHOMA_RETURN_IF_ERROR(cdi_.Remove(name));
  }
  return absl::OkStatus();
}

absl::Status Claims::Start() {
  TAHOMA_ASSIGN_OR_RETURN(const Checkpoint checkpoint, Load());
  TAHOMA_RETURN_IF_ERROR(WriteMissingCdi(checkpoint));
  return RemoveOrphanCdi(checkpoint);
}

absl::StatusOr<std::size_t> Claims::Reconcile() {
  TAHOMA_ASSIGN_OR_RETURN(const Checkpoint checkpoint, Load());
  TAHOMA_ASSIGN_OR_RETURN(const std::vector<wire::ClaimGrant> held, node_.List());
  // Releases first, because prepared claims may need the released cores.
  for (const wire::ClaimGrant& grant : held) {
    const auto found = checkpoint.claims.find(grant.claim_uid);
    if (found != checkpoint.claims.end() && found->second.grant == grant) continue;
    spdlog::info("sim-node holds claim {}/{} ({}), which is not prepared: releasing it",
                 grant.name_space, grant.name, grant.claim_uid);
    TAHOMA_RETURN_IF_ERROR(node_.Release(grant.claim_uid));
  }
  std::size_t refused = 0;
  for (const auto& [uid, claim] : checkpoint.claims) {
    const absl::StatusOr<std::string> token = node_.Apply(claim.grant, claim.token);
    if (absl::IsFailedPrecondition(token.status())) {
      spdlog::warn("sim-node does not take claim {}/{} ({}): {}", claim.grant.name_space,
                   claim.grant.name, uid, Message(token.status()));
      ++refused;  // the claim's chip is broken; other claims must get their chips
      continue;
    }
    if (!token.ok()) return token.status();
    if (*token != claim.token) {
      return Internal("sim-node gave claim {} another token than its containers have", uid);
    }
  }
  return refused;
}

absl::StatusOr<PreparedClaim> Claims::PrepareNew(const ClaimRef& claim,
                                                 const Checkpoint& checkpoint) {
  TAHOMA_RETURN_IF_ERROR(CheckNames(claim));
  TAHOMA_ASSIGN_OR_RETURN(const std::string object, source_.Get(claim.name_space, claim.name));
  TAHOMA_ASSIGN_OR_RETURN(const DriverAllocation allocation, ReadAllocation(object, claim));
  TAHOMA_ASSIGN_OR_RETURN(const wire::Inventory inventory, node_.GetInventory());
  PreparedClaim prepared;
  TAHOMA_ASSIGN_OR_RETURN(prepared.grant, BuildGrant(claim, allocation, inventory));
  // Names become parts of files and of other programs' records: the wire's bounds hold here too.
  TAHOMA_RETURN_IF_ERROR(wire::DecodeClaimGrant(wire::EncodeClaimGrant(prepared.grant)).status());
  prepared.cores_per_chip = hw::FindInstanceType(inventory.instance_type)->chip->physical_cores;
  for (const auto& [uid, other] : checkpoint.claims) {
    TAHOMA_RETURN_IF_ERROR(wire::CheckDisjoint(other.grant, prepared.grant));
  }
  if (checkpoint.claims.size() >= wire::kMaxClaims) {
    return ResourceExhausted("{} claims are prepared on this node already", wire::kMaxClaims);
  }
  TAHOMA_RETURN_IF_ERROR(CheckWorkloadSocket(inventory.workload_socket, options_.node_socket));
  prepared.workload_socket = inventory.workload_socket;
  prepared.reclaim_timestamp = allocation.reclaim_timestamp.value_or(0);
  if (inventory.ultra_server.has_value()) {
    SetUltraServer(*inventory.ultra_server, prepared);
  }
  prepared.devices = DevicesOf(allocation);
  prepared.boot_id = options_.boot_id;
  TAHOMA_ASSIGN_OR_RETURN(prepared.token, node_.Apply(prepared.grant, ""));
  return prepared;
}

absl::Status Claims::Commit(const PreparedClaim& claim, Checkpoint& checkpoint) {
  const std::string& uid = claim.grant.claim_uid;
  // The checkpoint decides who has a core: never two claims.
  for (const auto& [other_uid, other] : checkpoint.claims) {
    TAHOMA_CHECK_OK(wire::CheckDisjoint(other.grant, claim.grant));
  }
  absl::Status status = cdi_.Write(CdiFileName(uid), CdiSpec(claim));
  if (status.ok()) {
    const bool is_new = checkpoint.claims.emplace(uid, claim).second;
    TAHOMA_CHECK(is_new);  // else the new token would be stored nowhere
    status = Save(checkpoint);
  }
  if (status.ok()) return status;
  // Start and Reconcile undo the rest if this fails.
  for (const absl::Status& undone : {cdi_.Remove(CdiFileName(uid)), node_.Release(uid)}) {
    if (!undone.ok()) spdlog::warn("undoing claim {}: {}", uid, Message(undone));
  }
  return status;
}

absl::Status Claims::Restore(const PreparedClaim& claim) {
  const std::string& uid = claim.grant.claim_uid;
  TAHOMA_RETURN_IF_ERROR(WriteMissingCdi({.claims = {{uid, claim}}}));
  const absl::StatusOr<std::string> token = node_.Apply(claim.grant, claim.token);
  if (token.ok() || IsAway(token.status())) return absl::OkStatus();
  return Annotate(token.status(), fmt::format("claim {}", uid));
}

bool Claims::IsOfEarlierBoot(const PreparedClaim& claim) const {
  return !claim.boot_id.empty() && !options_.boot_id.empty() && claim.boot_id != options_.boot_id;
}

absl::Status Claims::MarkBoot(const std::string& uid, Checkpoint& checkpoint) {
  checkpoint.claims.at(uid).boot_id = options_.boot_id;
  return Save(checkpoint);
}

double Claims::MsSince(MonotonicTime begin) const {
  return std::chrono::duration<double, std::milli>(clock_.MonotonicNow() - begin).count();
}

absl::StatusOr<std::vector<PreparedDevice>> Claims::Prepare(const ClaimRef& claim) {
  const MonotonicTime begin = clock_.MonotonicNow();
  TAHOMA_ASSIGN_OR_RETURN(Checkpoint checkpoint, Load());
  if (const auto found = checkpoint.claims.find(claim.uid); found != checkpoint.claims.end()) {
    TAHOMA_RETURN_IF_ERROR(Restore(found->second));
    const bool after_boot = IsOfEarlierBoot(found->second);
    if (after_boot) TAHOMA_RETURN_IF_ERROR(MarkBoot(claim.uid, checkpoint));
    spdlog::info("{} is prepared already{}, confirmed in {:.1f} ms: {}", claim.ToString(),
                 after_boot ? " from before the machine's start" : "", MsSince(begin),
                 NamesOf(found->second.devices));
    return found->second.devices;
  }
  const absl::StatusOr<PreparedClaim> prepared = PrepareNew(claim, checkpoint);
  if (!prepared.ok()) return Annotate(prepared.status(), claim.ToString());
  const absl::Status committed = Commit(*prepared, checkpoint);
  if (!committed.ok()) return Annotate(committed, claim.ToString());
  spdlog::info("prepared {} in {:.1f} ms: {}; LNC {}{}", claim.ToString(), MsSince(begin),
               NamesOf(prepared->devices), prepared->grant.lnc, ModeOf(prepared->grant));
  return prepared->devices;
}

absl::Status Claims::Unprepare(const ClaimRef& claim) {
  const MonotonicTime begin = clock_.MonotonicNow();
  TAHOMA_ASSIGN_OR_RETURN(Checkpoint checkpoint, Load());
  const auto held = checkpoint.claims.extract(claim.uid);
  if (held.empty()) {
    spdlog::info("{} is not prepared: nothing to unprepare", claim.ToString());
    return absl::OkStatus();
  }
  const absl::Status released = node_.Release(claim.uid);
  if (!released.ok() && !IsAway(released)) return Annotate(released, claim.ToString());
  if (!released.ok()) {
    spdlog::warn("{}: sim-node is away and will release it when it is back: {}", claim.ToString(),
                 Message(released));
  }
  TAHOMA_RETURN_IF_ERROR(cdi_.Remove(CdiFileName(claim.uid)));
  TAHOMA_RETURN_IF_ERROR(Save(checkpoint));
  spdlog::info("unprepared {} in {:.1f} ms: {}", claim.ToString(), MsSince(begin),
               NamesOf(held.mapped().devices));
  return absl::OkStatus();
}

bool Claims::IsStale(const PreparedClaim& claim, const absl::StatusOr<std::string>& object) {
  if (!object.ok()) return absl::IsNotFound(object.status());
  const absl::StatusOr<DriverAllocation> allocation = ReadAllocation(*object, RefOf(claim.grant));
  // Nothing is known about a claim that this program cannot read.
  if (!allocation.ok()) return absl::IsFailedPrecondition(allocation.status());
  return DevicesOf(*allocation) != claim.devices;
}

absl::StatusOr<std::vector<PreparedClaim>> Claims::FindStale(const Checkpoint& checkpoint) {
  std::vector<PreparedClaim> stale;
  for (const auto& [uid, claim] : checkpoint.claims) {
    const absl::StatusOr<std::string> object =
        source_.Get(claim.grant.name_space, claim.grant.name);
    if (!object.ok() && !absl::IsNotFound(object.status())) return object.status();
    if (IsStale(claim, object)) stale.push_back(claim);
  }
  return stale;
}

absl::Status Claims::Drop(const PreparedClaim& stale) {
  TAHOMA_ASSIGN_OR_RETURN(const Checkpoint checkpoint, Load());
  const auto found = checkpoint.claims.find(stale.grant.claim_uid);
  if (found == checkpoint.claims.end() || found->second != stale) return absl::OkStatus();
  spdlog::info("{} is not allocated here any more, and no kubelet has unprepared it",
               RefOf(stale.grant).ToString());
  return Unprepare(RefOf(stale.grant));
}

}  // namespace tahoma::dra
