// The shared state of a simulated world: its time, its randomness, its trace and its verdict.
//
// All randomness comes from the one Rng of the seed. The parameters of a world (its Swarm) are
// drawn first: kinds and rates of faults differ from seed to seed, because a fault that is always
// present hides mistakes that need its absence.
//
// Thread safety: one thread.

#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "lib/base/clock.h"
#include "lib/base/rng.h"
#include "tests/sim/event_queue.h"

namespace tahoma::simulation {

// A mistake put into the harness on purpose: the simulation must find it.
enum class Plant : std::uint8_t {
  kNone,
  kNeverDeallocate,  // the undo of an allocation is lost for ever and reported as done
  kForgetHolding,    // the planner does not see the devices of one claim
  kSkipAllocation,   // an allocation is reported as done and never written
  kForgetJournal,    // the journal says OK and writes nothing
  kBindEarly,        // pods are bound together with the first allocation of their gang
  kNoFence,          // the fence of an undoing against late writes is not carried out
  kAcceptOverlap,    // the plugin prepares claims that it should refuse
  kIgnoreLease,      // a controller writes on after its lease
  kSkipBlockStatus,  // a block's status is reported as written and never is
  kForgetPromise,    // the planner sees promised hardware as free
  kForgetLimit,      // the core is told of queues without their limits
  kCountTwice,       // a start counts some use again that is in the journal
};
inline constexpr int kPlants = 13;
std::string_view PlantName(Plant plant);

// Each world begins 2027-01-15T08:00:00Z.
inline constexpr WallTime kWorldBegins{std::chrono::seconds(1'800'000'000)};

// Chances are in thousandths.
struct Swarm {
  int ultra_servers = 1;
  int lone_instances = 1;
  int small_nodes = 1;
  bool cores = false;       // large nodes publish partitions too
  bool needs = false;       // pods ask for cpu, some for more than a node can give beside others
  bool nics = false;        // large nodes offer interfaces of another driver, and some gangs ask
  bool one_process = true;  // controller and API server die together, on one disk
  int controllers = 1;      // more only when the API server is another process
  int submissions = 12;
  bool queues = false;       // gangs wait in queues with limits (queue_checks.h)
  bool calendars = false;    // … whose numbers move with the time
  bool windows = false;      // hardware is kept for maintenance for a while (window_checks.h)
  bool ends_known = false;   // most gangs have a maxRuntime (promise_checks.h)
  int purchases = 0;         // of Capacity Blocks; 0: nobody buys
  Duration payment_delay{};  // of simulated payments
  Duration chaos{};          // how long objects arrive and hardware breaks

  int lose_request = 0;   // never carried out, no answer
  int lose_answer = 0;    // carried out, no answer
  int late_request = 0;   // no answer; carried out long afterwards
  int repeat_answer = 0;  // the controller gets the answer twice
  int touch_object = 0;   // another client changes the object just before the write
  int delete_object = 0;  // another client deletes the object then
  int break_watch = 0;    // 410 in the middle
  int repeat_event = 0;
  int crash = 0;       // of the controller, at each of its steps
  int disk_fault = 0;  // per mishap
  int lost_disk = 0;   // the journal's disk is replaced by an empty one
  int odd_answer = 0;  // an error that does not say whether the request was carried out
  int stall = 0;       // per mishap: a controller stands still, and then goes on
  int rollback = 0;    // per mishap: the API server is restored from a backup
  int break_chip = 0;  // per mishap
  int break_link = 0;
  int node_away = 0;
  int node_removed = 0;
  int node_forgotten = 0;  // the running node's object is deleted; the node makes another
  int node_lies = 0;       // a node publishes lies; only without buyers
  int node_flicker = 0;    // a watch shows that a Node went and came back, with the same uid
  int label_pod = 0;       // a bound pod is labelled into another gang, and back
  int delete_pod = 0;
  int force_pod = 0;
  int delete_gang = 0;
  int delete_claim = 0;
  int delete_block = 0;
  int move_clock = 0;  // of the controllers: Capacity Blocks live by it

  static Swarm Draw(Rng& rng);
  void CrowdOut(Rng& rng);
  // Makes faults likely that show the mistake: a mistake in an undoing needs failures.
  void Provoke(Plant plant);
};

struct World {
  World(std::uint64_t seed, Plant planted);

  // Returns whether a fault of that chance happens now; never once the chaos is over.
  bool Happens(int thousandths) {
    return chaos && thousandths > 0 && rng.Below(1000) < static_cast<std::uint64_t>(thousandths);
  }
  Duration Between(Duration least, Duration most) {
    const auto span = static_cast<std::uint64_t>((most - least).count());
    return least + Duration(static_cast<std::int64_t>(rng.Below(span + 1)));
  }
  Duration Latency() {
    return Between(std::chrono::microseconds(200), std::chrono::milliseconds(20));
  }

  // The wall clock of the controllers, which is set forth and back. Nodes and API server use the
  // other clock: their leases are of seconds.
  WallTime ControllersNow() const { return clock.WallNow() + wall_offset; }

  // Part of the trace: equal runs have equal traces.
  void Mix(std::string_view text);
  // Counts how often a rare event was met.
  void Meet(const std::string& what) { ++met[what]; }

  template <typename... Args>
  void Fail(fmt::format_string<Args...> format, Args&&... args) {
    if (!failure) failure = fmt::format(format, std::forward<Args>(args)...);
  }

  const Plant plant;
  Rng rng;
  ManualClock clock;
  EventQueue events{clock};
  Swarm swarm;
  Duration wall_offset{0};
  bool chaos = true;
  std::uint64_t trace = 14695981039346656037ULL;
  std::uint64_t steps = 0;
  std::map<std::string, int> met;
  std::optional<std::string> failure;
  bool verbose = false;
};

}  // namespace tahoma::simulation
