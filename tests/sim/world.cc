#include "tests/sim/world.h"

#include <array>

namespace tahoma::simulation {
namespace {

using std::chrono::seconds;

// A fault that half of all worlds know, up to `most` thousandths.
int Maybe(Rng& rng, int most) {
  if (rng.Chance(1, 2)) return 0;
  return 1 + static_cast<int>(rng.Below(static_cast<std::uint64_t>(most)));
}

int UpTo(Rng& rng, int most) {
  return static_cast<int>(rng.Below(static_cast<std::uint64_t>(most) + 1));
}

// A fault that may happen in a world, and its highest probability, in thousandths.
struct Mishap {
  int Swarm::*odds;
  int most;
};
constexpr std::array kMessageMishaps = {
    Mishap{&Swarm::lose_request, 60}, Mishap{&Swarm::lose_answer, 60},
    Mishap{&Swarm::late_request, 40}, Mishap{&Swarm::repeat_answer, 60},
    Mishap{&Swarm::touch_object, 60}, Mishap{&Swarm::delete_object, 60},
    Mishap{&Swarm::break_watch, 60},  Mishap{&Swarm::repeat_event, 60},
    Mishap{&Swarm::crash, 40},        Mishap{&Swarm::disk_fault, 400},
    Mishap{&Swarm::odd_answer, 60},
};
constexpr std::array kWorldMishaps = {
    Mishap{&Swarm::break_chip, 400},     Mishap{&Swarm::break_link, 400},
    Mishap{&Swarm::node_away, 300},      Mishap{&Swarm::node_removed, 200},
    Mishap{&Swarm::delete_pod, 400},     Mishap{&Swarm::force_pod, 200},
    Mishap{&Swarm::delete_gang, 300},    Mishap{&Swarm::delete_claim, 300},
    Mishap{&Swarm::node_forgotten, 200}, Mishap{&Swarm::node_flicker, 60},
    Mishap{&Swarm::delete_block, 200},   Mishap{&Swarm::move_clock, 500},
    Mishap{&Swarm::node_lies, 400},      Mishap{&Swarm::label_pod, 400},
};
// The faults of worlds in which controller and API server are separate.
constexpr std::array kClusterMishaps = {Mishap{&Swarm::stall, 300}, Mishap{&Swarm::rollback, 150}};

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
    case Plant::kBindEarly:
      return "bind-early";
    case Plant::kNoFence:
      return "no-fence";
    case Plant::kAcceptOverlap:
      return "accept-overlap";
    case Plant::kIgnoreLease:
      return "ignore-lease";
    case Plant::kSkipBlockStatus:
      return "skip-block-status";
    case Plant::kForgetPromise:
      return "forget-promise";
    case Plant::kForgetLimit:
      return "forget-limit";
    case Plant::kCountTwice:
      return "count-twice";
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
  swarm.needs = rng.Chance(1, 3);
  swarm.nics = rng.Chance(1, 4);
  swarm.one_process = rng.Chance(1, 2);
  swarm.submissions = 4 + UpTo(rng, 12);
  swarm.chaos = seconds(60 + UpTo(rng, 180));
  for (const Mishap& mishap : kMessageMishaps) swarm.*mishap.odds = Maybe(rng, mishap.most);
  swarm.lost_disk = rng.Chance(1, 8) ? 150 : 0;
  if (rng.Chance(1, 2)) {
    swarm.purchases = 4 + UpTo(rng, 20);
    if (rng.Chance(1, 2)) swarm.payment_delay = std::chrono::minutes(UpTo(rng, 13 * 60));
  }
  for (const Mishap& mishap : kWorldMishaps) swarm.*mishap.odds = Maybe(rng, mishap.most);
  if (swarm.purchases > 0) {
    // Hosts that are in use or broken are not for sale.
    swarm.ultra_servers = 1 + UpTo(rng, 2);
    swarm.submissions = UpTo(rng, 6);
    swarm.break_chip /= 8;
    swarm.node_removed /= 4;
    swarm.node_lies = 0;  // a host that is nowhere is neither sold nor delivered
  }
  swarm.queues = rng.Chance(1, 3);
  swarm.calendars = swarm.queues && rng.Chance(1, 2);
  swarm.windows = swarm.one_process && swarm.purchases == 0;
  swarm.ends_known = swarm.purchases == 0 && rng.Chance(1, 2);
  if (swarm.ends_known) swarm.CrowdOut(rng);
  if (swarm.one_process) return swarm;
  swarm.controllers = 1 + static_cast<int>(rng.Below(2));
  for (const Mishap& mishap : kClusterMishaps) swarm.*mishap.odds = Maybe(rng, mishap.most);
  // After a restored backup only one journal has the lost objects: no second loss at the same time.
  if (swarm.purchases > 0 && swarm.rollback > 0) {
    swarm.controllers = 1;
    swarm.lost_disk = 0;
  }
  return swarm;
}

// Many gangs on little hardware, of which little fails: gangs wait for each other's ends.
void Swarm::CrowdOut(Rng& rng) {
  ultra_servers = UpTo(rng, 1);
  lone_instances = ultra_servers == 0 ? 1 + UpTo(rng, 1) : 0;
  small_nodes = 0;
  submissions = 16 + UpTo(rng, 24);
  needs = false;
  for (int Swarm::*odds : {&Swarm::break_chip, &Swarm::break_link, &Swarm::node_away,
                           &Swarm::node_removed, &Swarm::node_forgotten, &Swarm::node_lies}) {
    this->*odds /= 16;
  }
}

void Swarm::Provoke(Plant plant) {
  submissions = 16;
  if (plant == Plant::kNeverDeallocate || plant == Plant::kNoFence) {
    delete_object = 120;
    late_request = plant == Plant::kNoFence ? 300 : 120;
    lose_answer = 60;
    delete_pod = 400;
  } else if (plant == Plant::kAcceptOverlap) {
    force_pod = 600;
    node_away = 400;
  } else if (plant == Plant::kIgnoreLease) {
    one_process = false;
    controllers = 2;
    rollback = 0;       // the other waits for longer then
    stall = 120;        // often enough, and seldom enough for the other to take over
    lose_answer = 200;  // gangs are half committed when their controller stalls
    purchases = 24;     // and blocks are half sold
  } else if (plant == Plant::kSkipBlockStatus) {
    purchases = 24;
    one_process = false;
    rollback = 0;
    crash = 60;
    lost_disk = 600;
  } else if (plant == Plant::kForgetPromise) {
    purchases = 0;
    ends_known = true;
  } else if (plant == Plant::kForgetLimit || plant == Plant::kCountTwice) {
    queues = queues || plant == Plant::kForgetLimit;
    one_process = true;
    controllers = 1;
    rollback = stall = 0;  // of worlds in which the API server is another process
    purchases = 0;
    crash = 40;
    // Gangs of one queue run beside each other.
    ultra_servers = 2;
    submissions = 60;
  }
}

World::World(std::uint64_t seed, Plant planted)
    : plant(planted), rng(seed), clock(kWorldBegins), swarm(Swarm::Draw(rng)) {
  if (plant != Plant::kNone) swarm.Provoke(plant);
}

void World::Mix(std::string_view text) {
  for (const char c : text) trace = (trace ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  trace = (trace ^ 0x1fU) * 1099511628211ULL;
}

}  // namespace tahoma::simulation
