#include "lib/kube/lease.h"

#include <algorithm>
#include <cstdint>
#include <limits>

#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/kube/object.h"
#include "lib/kube/resource_version.h"

namespace tahoma::kube {

using json = Json;

namespace {
// A mistyped duration must not lock the lease for years.
constexpr std::int64_t kLongestSeconds = 3600;

// The field has 32 bits in the API; an absurd number must not keep us from leading.
std::int64_t TransitionsOf(const json& lease) {
  const json* transitions = ValueAt(lease, {"spec", "leaseTransitions"});
  if (transitions == nullptr || !transitions->is_number_integer()) return 0;
  const auto number = transitions->get<std::int64_t>();
  return number >= 0 && number < std::numeric_limits<std::int32_t>::max() ? number : 0;
}
}  // namespace

std::string LeaderElection::Desired(WallTime wall) const {
  json lease = TryParseJson(observed_);
  if (!lease.is_object()) {
    lease = {{"apiVersion", "coordination.k8s.io/v1"},
             {"kind", "Lease"},
             {"metadata", {{"namespace", options_.ns}, {"name", options_.name}}}};
  }
  json& spec = lease["spec"];
  if (!spec.is_object()) spec = json::object();
  if (holder_ != options_.identity) {
    spec["leaseTransitions"] = exists_ ? term_ + 1 : 0;
    spec["acquireTime"] = FormatMicroTime(wall);
  }
  spec["holderIdentity"] = options_.identity;
  spec["leaseDurationSeconds"] = options_.duration.count();
  spec["renewTime"] = FormatMicroTime(wall);
  return lease.dump(-1, ' ', false, json::error_handler_t::replace);
}

LeaderElection::Step LeaderElection::Next(MonotonicTime now, WallTime wall) {
  if (now < next_try_) return {.action = Action::kWait, .until = next_try_, .lease = {}};
  if (!known_ || (!IsLeader(now) && PausedTooLong(now))) {
    look_began_ = now;
    return {.action = Action::kRead, .until = now, .lease = {}};
  }
  const bool is_ours = own_ && holder_ == options_.identity;
  const bool is_free = !exists_ || holder_.empty() || is_ours || now >= changed_ + their_duration_;
  if (!is_free || now < quiet_until_) {
    // Only another read shows the holder's next renewal.
    known_ = false;
    next_try_ = now + options_.retry;
    return {.action = Action::kWait, .until = next_try_, .lease = {}};
  }
  write_began_ = now;
  own_ = true;  // also when no answer comes
  return {
      .action = exists_ ? Action::kUpdate : Action::kCreate, .until = now, .lease = Desired(wall)};
}

bool LeaderElection::PausedTooLong(MonotonicTime now) const {
  return looked_ && now > *looked_ + options_.longest_pause;
}

bool LeaderElection::MayHideRenewals(const json& lease, MonotonicTime now) const {
  if (IsLeader(now)) return false;  // nobody else led meanwhile
  const bool went_back =
      exists_ && (lease.is_null() || IsOlderVersion(ResourceVersionOf(lease), version_));
  return went_back || PausedTooLong(look_began_);
}

void LeaderElection::Observe(const json& lease, MonotonicTime now) {
  if (MayHideRenewals(lease, now)) quiet_until_ = now + options_.duration;
  const bool first_look = !looked_.has_value();
  looked_ = now;
  if (lease.is_null()) {
    known_ = true;
    exists_ = false;
    observed_.clear();
    holder_.clear();
    term_ = 0;
    renewed_.reset();
    return;
  }
  const std::string version(ResourceVersionOf(lease));
  if (!exists_ || version != version_) changed_ = now;
  exists_ = true;
  known_ = true;
  version_ = version;
  observed_ = lease.dump(-1, ' ', false, json::error_handler_t::replace);
  holder_ = std::string(StringAt(lease, {"spec", "holderIdentity"}));
  term_ = TransitionsOf(lease);
  const json* seconds = ValueAt(lease, {"spec", "leaseDurationSeconds"});
  const bool is_number = seconds != nullptr && seconds->is_number_integer();
  their_duration_ = is_number ? std::chrono::seconds(std::clamp<std::int64_t>(
                                    seconds->get<std::int64_t>(), 1, kLongestSeconds))
                              : options_.duration;
  const bool in_our_name = holder_ == options_.identity;
  if (!in_our_name) renewed_.reset();
  own_ = in_our_name && (own_ || first_look);
}

bool LeaderElection::IsBeforeRenewal(const json& lease) const {
  if (!renewed_) return false;  // we do not lead, so another program may have written the lease
  if (lease.is_null() || IsOlderVersion(ResourceVersionOf(lease), acknowledged_version_)) {
    return true;
  }
  return StringAt(lease, {"spec", "holderIdentity"}) == options_.identity &&
         StringAt(lease, {"spec", "renewTime"}) < acknowledged_time_;
}

// A leader with a failed renewal has little time left, and only the leader tries.
void LeaderElection::TryAgain(MonotonicTime now) {
  next_try_ = now + (IsLeader(now) ? options_.leader_retry : options_.retry);
}

void LeaderElection::OnRead(const absl::StatusOr<json>& lease, MonotonicTime now) {
  if (lease.ok()) {
    history_lost_ |= IsBeforeRenewal(*lease);
    Observe(*lease, now);
  } else if (absl::IsNotFound(lease.status())) {
    history_lost_ |= IsBeforeRenewal(nullptr);
    Observe(nullptr, now);
  } else {
    TryAgain(now);
  }
}

void LeaderElection::OnWritten(const absl::StatusOr<json>& lease, MonotonicTime now) {
  if (!lease.ok()) {
    known_ = false;
    return TryAgain(now);
  }
  next_try_ = now + options_.retry;
  Observe(*lease, now);
  // The time before the request counts: stand-bys count from the moment they see the renewal,
  // later.
  if (holder_ != options_.identity) return;
  renewed_ = write_began_;
  acknowledged_version_ = version_;
  acknowledged_time_ = std::string(StringAt(*lease, {"spec", "renewTime"}));
}

bool LeaderElection::IsLeader(MonotonicTime now) const {
  return renewed_.has_value() && now < *renewed_ + options_.renew_deadline;
}

std::optional<MonotonicTime> LeaderElection::leads_until() const {
  if (!renewed_) return std::nullopt;
  return *renewed_ + options_.renew_deadline;
}

std::optional<std::string> LeaderElection::Release(MonotonicTime now, WallTime wall) const {
  if (!IsLeader(now)) return std::nullopt;
  json lease = TryParseJson(Desired(wall));
  lease["spec"]["holderIdentity"] = "";
  lease["spec"]["leaseDurationSeconds"] = 1;
  return lease.dump(-1, ' ', false, json::error_handler_t::replace);
}

json MakeNodeLease(const std::string& node, const std::string& node_uid, WallTime wall) {
  json lease{{"apiVersion", "coordination.k8s.io/v1"},
             {"kind", "Lease"},
             {"metadata", {{"namespace", "kube-node-lease"}, {"name", node}}},
             {"spec",
              {{"holderIdentity", node},
               {"leaseDurationSeconds", kNodeLeaseDuration.count()},
               {"renewTime", FormatMicroTime(wall)}}}};
  if (!node_uid.empty()) {
    lease["metadata"]["ownerReferences"] = {
        {{"apiVersion", "v1"}, {"kind", "Node"}, {"name", node}, {"uid", node_uid}}};
  }
  return lease;
}

json NodeLeaseRenewal(const std::string& node, WallTime wall) {
  return {{"spec",
           {{"holderIdentity", node},
            {"leaseDurationSeconds", kNodeLeaseDuration.count()},
            {"renewTime", FormatMicroTime(wall)}}}};
}

}  // namespace tahoma::kube
