#include "tests/sim/window_checks.h"

#include <algorithm>
#include <chrono>
#include <string>

namespace tahoma::simulation {
namespace {

using controller::WindowSpec;
using std::chrono::seconds;

constexpr const char* kFirstUltraServer = "us-0000000000000001";

std::shared_ptr<WindowSpec> WindowFrom(const std::string& name, seconds from, seconds until) {
  auto spec = std::make_shared<WindowSpec>();
  spec->name = name;
  spec->uid = name;
  spec->from = kWorldBegins + from;
  spec->until = kWorldBegins + until;
  spec->warning = seconds(10);
  return spec;
}

bool IsOn(const WindowSpec& window, const controller::GangDecision& decision) {
  const bool by_slice = std::ranges::any_of(decision.slices, [&](const auto& slice) {
    return std::ranges::find(window.ultra_servers, slice.domain) != window.ultra_servers.end();
  });
  return by_slice || std::ranges::any_of(decision.pods, [&](const auto& pod) {
           return std::ranges::find(window.nodes, pod.node) != window.nodes.end();
         });
}

}  // namespace

std::vector<std::shared_ptr<const WindowSpec>> WindowsOfWorlds() {
  auto server = WindowFrom("server", seconds(20), seconds(45));
  server->ultra_servers = {kFirstUltraServer};
  server->drain = true;
  auto lone = WindowFrom("lone", seconds(30), seconds(50));
  lone->nodes = {"lone0", "lone1"};
  auto beside = WindowFrom("beside", seconds(40), seconds(50));
  beside->nodes = {"lone1"};
  return {server, lone, beside};
}

void CheckWindows(World& world, const controller::GangDecision& decision) {
  if (!decision.placed) return;  // taken over as published, where a journal was lost
  const WallTime now = *decision.placed;
  for (const auto& window : WindowsOfWorlds()) {
    if (now >= window->until) continue;
    world.Meet("decided before the end of a window");
    if (!IsOn(*window, decision)) continue;
    const bool lent = decision.preemptible && now + decision.grace < window->from;
    const bool short_run = decision.max_runtime && now + *decision.max_runtime <= window->from;
    if (lent || short_run) continue;
    world.Fail("{} begins on hardware of window {}", decision.key.name, window->name);
  }
}

}  // namespace tahoma::simulation
