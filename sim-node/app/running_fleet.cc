#include "sim-node/app/running_fleet.h"

#include <spdlog/spdlog.h>

#include <string>
#include <string_view>
#include <utility>

#include "lib/base/clock.h"
#include "lib/base/environment.h"
#include "lib/base/rng.h"
#include "lib/base/status.h"
#include "lib/kube/http_transport.h"
#include "lib/kube/kubeconfig.h"
#include "sim-node/fleet/fleet.h"

namespace tahoma::sim {
namespace {

void LogOfFleet(std::string_view line) { spdlog::info("{}", line); }
void WarnOfFleet(std::string_view line) { spdlog::warn("{}", line); }

class RunningFleet final : public SimNode {
 public:
  RunningFleet(FleetOptions options, std::unique_ptr<kube::HttpTransport> transport)
      : name_(options.plan.name),
        transport_(std::move(transport)),
        fleet_(std::move(options), {.transport = *transport_,
                                    .clock = clock_,
                                    .seed = SeedFromMachine(),
                                    .log = LogOfFleet,
                                    .warn = WarnOfFleet,
                                    .interrupt = [this] { transport_->Shutdown(); }}) {
    fleet_.Start();
  }
  ~RunningFleet() override { Stop(); }

  void Stop() override {
    if (std::exchange(stopped_, true)) return;
    fleet_.Stop();
    spdlog::info(
        "{} nodes of the fleet stay in the API server with their leases and ResourceSlices, not "
        "ready from 40 s on; to remove them: kubectl delete nodes -l {}={}",
        fleet_.counts().nodes, kFleetLabel, name_);
  }

 private:
  const std::string name_;
  const SystemClock clock_;
  const std::unique_ptr<kube::HttpTransport> transport_;
  Fleet fleet_;
  bool stopped_ = false;
};

}  // namespace

absl::StatusOr<std::unique_ptr<SimNode>> StartFleet(const Options& options) {
  TAHOMA_ASSIGN_OR_RETURN(FleetOptions fleet, FleetOptionsOf(options));
  auto access = kube::FindAccess(options.fleet_nodes.kubeconfig, FromEnvironment);
  if (!access.ok()) return Annotate(access.status(), "fleetNodes.kubeconfig");
  const std::string server = access->server;
  kube::HttpLimits limits;
  limits.max_idle_connections = static_cast<std::size_t>(fleet.workers);
  TAHOMA_ASSIGN_OR_RETURN(auto transport,
                          kube::HttpTransport::Create(*std::move(access), limits, WarnOfFleet));
  spdlog::info("keeping {} virtual nodes, {}-00000 and so on, in {}", fleet.plan.nodes,
               fleet.plan.name, server);
  return std::make_unique<RunningFleet>(std::move(fleet), std::move(transport));
}

}  // namespace tahoma::sim
