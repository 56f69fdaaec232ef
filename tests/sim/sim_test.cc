// Runs simulated worlds and judges them.
//
//   sim_test                  # fixed seeds, two of them twice, and a few fresh ones
//   sim_test --seed=17 -v     # one world again, every request printed
//   sim_test --seeds=100..199
//   sim_test --fresh=20       # 20 seeds that nobody has tried before
//   sim_test --planted        # mistakes put in on purpose must be found
//   sim_test --plant=ignore-lease --seeds=1..400   # the worlds that find this mistake
//
// Run in the source tree.

#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/check.h"
#include "lib/base/rng.h"
#include "tests/sim/simulation.h"

namespace tahoma::simulation {
namespace {

constexpr std::uint64_t kFixedSeeds = 30;
constexpr std::uint64_t kTwice = 2;
constexpr int kFreshSeeds = 4;
constexpr std::uint64_t kSeedsPerPlant = 200;

std::string g_program;

bool RunOne(std::uint64_t seed, const RunOptions& options, std::map<std::string, int>& met) {
  fmt::print("seed={} ", seed);
  std::fflush(stdout);  // the seed is known even when the world ends the program
  const Report report = RunWorld(seed, options);
  fmt::print("steps={} hash={:016x}\n", report.steps, report.hash);
  for (const auto& [what, count] : report.met) met[what] += count;
  if (!report.failure) {
    std::fflush(stdout);
    return true;
  }
  const double at = std::chrono::duration<double>(report.failed_at).count();
  fmt::print("FAILED seed={} after {:.3f} s: {}\n  again: {} --seed={}\n", seed, at,
             *report.failure, g_program, seed);
  std::fflush(stdout);
  return false;
}

bool RunTwice(std::uint64_t seed) {
  const Report first = RunWorld(seed, {});
  const Report second = RunWorld(seed, {});
  if (first.hash == second.hash && first.steps == second.steps) return true;
  fmt::print("FAILED seed={} gives two different runs: {:016x} and {:016x}\n", seed, first.hash,
             second.hash);
  return false;
}

// A seed holds a whole world: a short number is enough to repeat the world, and easier to type.
bool RunFresh(std::uint64_t count, const RunOptions& options, std::map<std::string, int>& met) {
  Rng rng(SeedFromMachine());
  bool good = true;
  for (std::uint64_t i = 0; i < count; ++i) good &= RunOne(rng.Below(1ULL << 40U), options, met);
  return good;
}

int Conclude(bool good, const std::map<std::string, int>& met) {
  for (const auto& [what, count] : met) fmt::print("met {:6} x {}\n", count, what);
  fmt::print("{}\n", good ? "all worlds are sound" : "some worlds are not sound");
  return good ? 0 : 1;
}

int RunAll() {
  bool good = true;
  std::map<std::string, int> met;
  for (std::uint64_t seed = 1; seed <= kFixedSeeds; ++seed) good &= RunOne(seed, {}, met);
  for (std::uint64_t seed = 1; seed <= kTwice; ++seed) good &= RunTwice(seed);
  good &= RunFresh(kFreshSeeds, {}, met);
  return Conclude(good, met);
}

// A CHECK of the program may find the mistake before the checks of the world do, and ends the
// process.
bool DiesOf(std::uint64_t seed, Plant plant) {
  std::fflush(stdout);
  const pid_t child = fork();
  TAHOMA_CHECK(child >= 0);
  if (child == 0) {
    (void)RunWorld(seed, {.plant = plant, .verbose = false});
    _exit(0);
  }
  int status = 0;
  TAHOMA_CHECK(waitpid(child, &status, 0) == child);
  return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

int RunPlanted() {
  int missed = 0;
  for (int i = 1; i < kPlants; ++i) {
    const auto plant = static_cast<Plant>(i);
    bool caught = false;
    for (std::uint64_t seed = 1; seed <= kSeedsPerPlant && !caught; ++seed) {
      // GangRuns refuses a device that a claim holds already (core/commit/gang_runs.h).
      if (plant == Plant::kForgetHolding && DiesOf(seed, plant)) {
        caught = true;
        fmt::print("{}: found by seed {}: a CHECK\n", PlantName(plant), seed);
        break;
      }
      const Report report = RunWorld(seed, {.plant = plant, .verbose = false});
      caught = report.failure.has_value();
      if (caught) {
        fmt::print("{}: found by seed {}: {}\n", PlantName(plant), seed, *report.failure);
      }
    }
    if (!caught) fmt::print("{}: NOT FOUND in {} seeds\n", PlantName(plant), kSeedsPerPlant);
    std::fflush(stdout);
    missed += caught ? 0 : 1;
  }
  return missed == 0 ? 0 : 1;
}

int RunSome(std::uint64_t first, std::uint64_t last, const RunOptions& options) {
  bool good = true;
  std::map<std::string, int> met;
  for (std::uint64_t seed = first; seed <= last; ++seed) good &= RunOne(seed, options, met);
  return Conclude(good, met);
}

// Returns the mistake of this name, or none.
Plant PlantOf(std::string_view name) {
  for (int i = 1; i < kPlants; ++i) {
    if (PlantName(static_cast<Plant>(i)) == name) return static_cast<Plant>(i);
  }
  fmt::print(stderr, "there is no plant \"{}\"\n", name);
  return Plant::kNone;
}

std::uint64_t Number(const std::string& text) { return std::strtoull(text.c_str(), nullptr, 10); }

int Main(const std::vector<std::string>& arguments) {
  RunOptions options;
  for (const std::string& argument : arguments) {
    options.verbose |= argument == "-v";
    if (argument.rfind("--plant=", 0) == 0) options.plant = PlantOf(argument.substr(8));
  }
  for (const std::string& argument : arguments) {
    if (argument == "-v" || argument.rfind("--plant=", 0) == 0) continue;
    if (argument == "--planted") return RunPlanted();
    if (argument.rfind("--seed=", 0) == 0) {
      const std::uint64_t seed = Number(argument.substr(7));
      return RunSome(seed, seed, options);
    }
    if (argument.rfind("--fresh=", 0) == 0) {
      std::map<std::string, int> met;
      return Conclude(RunFresh(Number(argument.substr(8)), options, met), met);
    }
    const std::size_t dots = argument.find("..");
    if (argument.rfind("--seeds=", 0) == 0 && dots != std::string::npos) {
      return RunSome(Number(argument.substr(8, dots - 8)), Number(argument.substr(dots + 2)),
                     options);
    }
    fmt::print(stderr,
               "sim_test [-v] [--plant=NAME] [--seed=N | --seeds=A..B | --fresh=N | --planted], "
               "not \"{}\"\n",
               argument);
    return 2;
  }
  return RunAll();
}

}  // namespace
}  // namespace tahoma::simulation

int main(int argc, char** argv) {
  spdlog::set_level(spdlog::level::off);
  tahoma::simulation::g_program = argv[0];
  return tahoma::simulation::Main(std::vector<std::string>(argv + 1, argv + argc));
}
