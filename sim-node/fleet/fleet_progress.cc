#include "sim-node/fleet/fleet_progress.h"

#include <algorithm>

#include "lib/base/status.h"
#include "lib/kube/lease.h"

namespace tahoma::sim {
namespace {

using std::chrono::nanoseconds;

constexpr std::chrono::seconds kTellEvery{5};
constexpr std::chrono::seconds kWarnEvery{30};

double SecondsOf(nanoseconds duration) {
  return std::chrono::duration_cast<std::chrono::duration<double>>(duration).count();
}

}  // namespace

void FleetProgress::CountEnsured(bool first, std::size_t slices) {
  if (!first) return;
  ++counts_.nodes;
  counts_.slices += slices;
}

void FleetProgress::CountRenewal(nanoseconds late) {
  ++counts_.renewals;
  late_ = std::max(late_, late);
}

void FleetProgress::CountFailure(const absl::Status& why) {
  ++counts_.failures;
  problem_ = Message(why);
}

void FleetProgress::TellOfPublishing(MonotonicTime now, std::vector<Line>& lines) {
  if (told_complete_) return;
  if (is_complete()) {
    lines.push_back(
        {fmt::format("all {} nodes are published, with {} ResourceSlices, after {:.1f} s", nodes_,
                     counts_.slices, SecondsOf(now - start_))});
    told_complete_ = true;
    return;
  }
  if (now - told_ < kTellEvery) return;
  const double rate = static_cast<double>(counts_.slices - slices_told_) / SecondsOf(now - told_);
  lines.push_back({fmt::format("published {} of {} nodes, {:.0f} ResourceSlices/s", counts_.nodes,
                               nodes_, rate)});
  told_ = now;
  slices_told_ = counts_.slices;
}

void FleetProgress::TellOfProblems(MonotonicTime now, std::vector<Line>& lines) {
  if (warned_ && now - *warned_ < kWarnEvery) return;
  const bool failed = counts_.failures != failures_told_;
  const bool too_late = late_ > lease_period_;
  if (!failed && !too_late) return;
  if (failed) {
    lines.push_back({fmt::format("tasks that failed and are tried again: {}; the last: {}",
                                 counts_.failures - failures_told_, problem_),
                     true});
  }
  if (too_late && !failed) {  // else the failures are why
    lines.push_back(
        {fmt::format(
             "leases are renewed up to {:.0f} s late, and a node whose lease is not renewed "
             "for {} s counts as lost: the API server takes fewer than {} in {:.0f} s; give "
             "fleetNodes.leasePeriod more",
             SecondsOf(late_), kube::kNodeLeaseDuration.count(), nodes_, SecondsOf(lease_period_)),
         true});
  }
  warned_ = now;
  failures_told_ = counts_.failures;
  late_ = {};
}

std::vector<FleetProgress::Line> FleetProgress::Tell(MonotonicTime now) {
  std::vector<Line> lines;
  TellOfPublishing(now, lines);
  TellOfProblems(now, lines);
  return lines;
}

}  // namespace tahoma::sim
