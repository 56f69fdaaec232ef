#include "dra-plugin/slices/health_reporter.h"

#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

#include <cctype>
#include <vector>

#include "dra-plugin/claims/claims.h"
#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/driver/device_name.h"
#include "lib/kube/object.h"
#include "lib/kube/resource.h"

namespace tahoma::dra {
namespace {

constexpr std::string_view kCondition = "Healthy";
constexpr std::string_view kClaimApi = "resource.k8s.io/v1";

// "HbmUncorrectable" of "hbm-uncorrectable": conditions' reasons are words without dashes.
std::string ReasonWord(std::string_view reason) {
  std::string out;
  bool upper = true;
  for (const char c : reason) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) {
      upper = true;
      continue;
    }
    out += upper ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
    upper = false;
  }
  return out.empty() || std::isdigit(static_cast<unsigned char>(out[0])) != 0 ? "Unknown" : out;
}

// The condition that the claim's object shows of a device; null when it shows none.
const Json* ConditionOf(const Json& claim, const PreparedDevice& device) {
  for (const Json& entry : kube::ListAt(claim, {"status", "devices"})) {
    if (kube::StringAt(entry, {"driver"}) != kDriver ||
        kube::StringAt(entry, {"pool"}) != device.pool ||
        kube::StringAt(entry, {"device"}) != device.device) {
      continue;
    }
    for (const Json& condition : kube::ListAt(entry, {"conditions"})) {
      if (kube::StringAt(condition, {"type"}) == kCondition) return &condition;
    }
  }
  return nullptr;
}

Json Condition(const std::string& reason, const Json* shown, WallTime now) {
  const std::string status = reason.empty() ? "True" : "False";
  const bool same = shown != nullptr && kube::StringAt(*shown, {"status"}) == status;
  const std::string_view since =
      same ? kube::StringAt(*shown, {"lastTransitionTime"}) : std::string_view();
  return {{"type", kCondition},
          {"status", status},
          {"reason", reason.empty() ? "Working" : ReasonWord(reason)},
          {"message", reason.empty() ? "the device works" : "the device has the fault " + reason},
          {"lastTransitionTime", since.empty() ? FormatTime(now) : std::string(since)}};
}

// The devices' entries of a claim's status; empty when there is nothing to show.
Json EntriesOf(const Json& object, const PreparedClaim& claim,
               const std::map<std::string, std::string>& reasons, WallTime now) {
  Json entries = Json::array();
  bool any = !reasons.empty();
  for (const PreparedDevice& device : claim.devices) {
    const Json* shown = ConditionOf(object, device);
    any = any || shown != nullptr;
    const auto reason = reasons.find(device.device);
    entries.push_back(
        {{"driver", kDriver},
         {"pool", device.pool},
         {"device", device.device},
         {"conditions",
          Json::array({Condition(reason == reasons.end() ? "" : reason->second, shown, now)})}});
  }
  return any ? entries : Json::array();
}

bool Shows(const Json& object, const PreparedClaim& claim, const Json& entries) {
  for (std::size_t i = 0; i < claim.devices.size(); ++i) {
    const Json* shown = ConditionOf(object, claim.devices[i]);
    const Json& wanted = entries[i]["conditions"][0];
    if (shown == nullptr || kube::StringAt(*shown, {"status"}) != wanted["status"] ||
        kube::StringAt(*shown, {"reason"}) != wanted["reason"]) {
      return false;
    }
  }
  return true;
}

std::string Sentence(const std::map<std::string, std::string>& reasons) {
  std::vector<std::string> parts;
  for (const auto& [device, reason] : reasons) {
    parts.push_back(fmt::format("{} has the fault {}", device, reason));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace

absl::Status HealthReporter::SendEvent(const Json& about, bool good, const std::string& message,
                                       WallTime now) {
  const std::string ns = about.value("namespace", "default");
  const std::string time = FormatTime(now);
  const Json event = {
      {"apiVersion", "v1"},
      {"kind", "Event"},
      {"metadata",
       {{"generateName", about.at("name").get<std::string>() + "-"}, {"namespace", ns}}},
      {"involvedObject", about},
      {"reason", good ? "DeviceHealthy" : "DeviceUnhealthy"},
      {"message", message},
      {"type", good ? "Normal" : "Warning"},
      {"source", {{"component", kDriver}, {"host", node_name_}}},
      {"firstTimestamp", time},
      {"lastTimestamp", time},
      {"count", 1}};
  return Annotate(api_.Create(kube::kEvents, ns, event).status(), "sending an event");
}

absl::Status HealthReporter::ReportChips(const Reasons& reasons, WallTime now) {
  Reasons chips;
  for (const auto& [device, reason] : reasons) {
    const auto name = hw::ParseDeviceName(device);
    if (name.ok() && name->kind == hw::DeviceKind::kChip) chips.emplace(device, reason);
  }
  if (chips == chips_) return absl::OkStatus();
  const absl::StatusOr<Json> node = api_.Get(kube::kNodes, {"", node_name_});
  if (!node.ok()) return Annotate(node.status(), fmt::format("reading node {}", node_name_));
  const Json about = {
      {"apiVersion", "v1"}, {"kind", "Node"}, {"name", node_name_}, {"uid", kube::UidOf(*node)}};
  const std::string message = chips.empty() ? "all devices work" : Sentence(chips);
  TAHOMA_RETURN_IF_ERROR(SendEvent(about, chips.empty(), message, now));
  chips_ = std::move(chips);
  return absl::OkStatus();
}

absl::Status HealthReporter::ReportClaim(const PreparedClaim& claim, const Reasons& reasons,
                                         WallTime now) {
  const wire::ClaimGrant& grant = claim.grant;
  Reasons own;
  for (const PreparedDevice& device : claim.devices) {
    const auto found = reasons.find(device.device);
    if (found != reasons.end()) own.insert(*found);
  }
  const auto told = claims_.find(grant.claim_uid);
  if (told != claims_.end() && told->second == own) return absl::OkStatus();
  const kube::ObjectKey key{grant.name_space, grant.name};
  const absl::StatusOr<Json> object = api_.Get(kube::kResourceClaims, key);
  const bool gone =
      absl::IsNotFound(object.status()) || (object.ok() && kube::UidOf(*object) != grant.claim_uid);
  if (gone) return absl::OkStatus();
  if (!object.ok()) return Annotate(object.status(), fmt::format("claim {}", key.ToString()));
  Json entries = EntriesOf(*object, claim, own, now);
  if (!entries.empty() && !Shows(*object, claim, entries)) {
    const Json about = {{"apiVersion", kClaimApi},
                        {"kind", "ResourceClaim"},
                        {"namespace", grant.name_space},
                        {"name", grant.name},
                        {"uid", grant.claim_uid}};
    const Json patch = {
        {"apiVersion", kClaimApi},
        {"kind", "ResourceClaim"},
        {"metadata",
         {{"name", grant.name}, {"namespace", grant.name_space}, {"uid", grant.claim_uid}}},
        {"status", {{"devices", std::move(entries)}}}};
    const absl::Status written =
        api_.Patch(kube::kResourceClaims, key, kube::PatchType::kApply, patch,
                   {.field_manager = std::string(kDriver), .force = true, .subresource = "status"})
            .status();
    TAHOMA_RETURN_IF_ERROR(Annotate(written, fmt::format("claim {}", key.ToString())));
    const std::string message = own.empty() ? "all devices work" : Sentence(own);
    TAHOMA_RETURN_IF_ERROR(SendEvent(about, own.empty(), message, now));
    spdlog::info("claim {} ({}): {}", key.ToString(), grant.claim_uid, message);
  }
  claims_[grant.claim_uid] = std::move(own);
  return absl::OkStatus();
}

absl::Status HealthReporter::Report(const Checkpoint& claims, const DevicePool& pool,
                                    WallTime now) {
  Reasons reasons;
  for (const std::vector<Device>& group : pool.groups) {
    for (const Device& device : group) {
      if (const std::string_view reason = UnhealthyReason(device); !reason.empty()) {
        reasons.emplace(device.name, reason);
      }
    }
  }
  absl::Status first = ReportChips(reasons, now);
  std::erase_if(claims_, [&](const auto& told) { return !claims.claims.contains(told.first); });
  for (const auto& [uid, claim] : claims.claims) {
    // A server that does not answer holds up the next ResourceSlices long enough as it is.
    if (IsAway(first)) break;
    first.Update(ReportClaim(claim, reasons, now));
  }
  return first;
}

}  // namespace tahoma::dra
