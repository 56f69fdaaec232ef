#include "tests/sim/world.h"

namespace tahoma::simulation {
namespace {

using std::chrono::seconds;

// 2027-01-15T08:00:00Z.
constexpr WallTime kStart{seconds(1'800'000'000)};

// A fault that half of all worlds know, up to `most` thousandths.
int Maybe(Rng& rng, int most) {
  if (rng.Chance(1, 2)) return 0;
  return 1 + static_cast<int>(rng.Below(static_cast<std::uint64_t>(most)));
}

int UpTo(Rng& rng, int most) {
  return static_cast<int>(rng.Below(static_cast<std::uint64_t>(most) + 1));
}

}  // namespace

std::string_view PlantName(Plant plant) {
  switch (plant) {
    case Plant::kNone:
      return "none";
    case Plant::kNeverDeallocate:
      return "never-deallocate";
    case Plant::kForgetHolding:
      return "forget-holding";
    case Plant::kSkipAllocation:
      return "skip-allocation";
    case Plant::kForgetJournal:
      return "forget-journal";
  }
  return "";
}

Swarm Swarm::Draw(Rng& rng) {
  Swarm swarm;
  swarm.ultra_servers = UpTo(rng, 1) + (rng.Chance(1, 4) ? 1 : 0);
  swarm.lone_instances = UpTo(rng, 2);
  swarm.small_nodes = UpTo(rng, 2);
  if (swarm.ultra_servers + swarm.lone_instances + swarm.small_nodes == 0) swarm.ultra_servers = 1;
  swarm.cores = rng.Chance(1, 8);
  swarm.one_process = rng.Chance(1, 2);
  swarm.submissions = 4 + UpTo(rng, 12);
  swarm.chaos = seconds(60 + UpTo(rng, 180));
  swarm.lose_request = Maybe(rng, 60);
  swarm.lose_answer = Maybe(rng, 60);
  swarm.late_request = Maybe(rng, 40);
  swarm.repeat_answer = Maybe(rng, 60);
  swarm.touch_object = Maybe(rng, 60);
  swarm.break_watch = Maybe(rng, 60);
  swarm.repeat_event = Maybe(rng, 60);
  swarm.crash = Maybe(rng, 40);
  swarm.disk_fault = Maybe(rng, 400);
  swarm.lost_disk = rng.Chance(1, 8) ? 150 : 0;
  swarm.break_chip = Maybe(rng, 400);
  swarm.break_link = Maybe(rng, 400);
  swarm.node_away = Maybe(rng, 300);
  swarm.node_removed = Maybe(rng, 200);
  swarm.delete_pod = Maybe(rng, 400);
  swarm.force_pod = Maybe(rng, 200);
  swarm.delete_gang = Maybe(rng, 300);
  swarm.delete_claim = Maybe(rng, 300);
  return swarm;
}

World::World(std::uint64_t seed, Plant planted)
    : plant(planted), rng(seed), clock(kStart), swarm(Swarm::Draw(rng)) {}

void World::Mix(std::string_view text) {
  for (const char c : text) trace = (trace ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  trace = (trace ^ 0x1fU) * 1099511628211ULL;
}

}  // namespace tahoma::simulation
