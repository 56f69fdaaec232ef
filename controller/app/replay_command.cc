#include "controller/app/replay_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "controller/replay/plots.h"
#include "controller/replay/report.h"
#include "lib/base/clock.h"
#include "lib/base/files.h"
#include "lib/base/status.h"
#include "lib/config/parse.h"

namespace tahoma::controller {
namespace {

using std::chrono::seconds;

struct ReplayFlags {
  std::string trace;
  std::string fleet = "2-UltraServers";
  std::vector<std::string> policies = {kPolicyNames.begin(), kPolicyNames.end()};
  std::int64_t seed = 1;
  std::chrono::nanoseconds failures{0};
  std::chrono::nanoseconds repair = std::chrono::hours(4);
  double chips_per_processor = 1;
  double load = 1;
  std::string out;
  std::string format = "text";
};

config::Spec DeclareReplay(ReplayFlags& flags) {
  config::Spec spec({.program = "controller --replay",
                     .kind = "",
                     .summary = "Says how long the jobs of a trace would have waited."});
  spec.Word("TRACE", &flags.trace, "SWF, also compressed by gzip, or YAML (docs/tasks/replay.md)",
            config::Spec::Need::kRequired);
  spec.String("fleet", &flags.fleet, "such as 2-UltraServers, or 2-UltraServers+8-trn2.48xlarge");
  spec.Strings("policy", &flags.policies, "which policies place the jobs, each alone",
               {kPolicyNames.begin(), kPolicyNames.end()});
  spec.Int("seed", &flags.seed, {}, "of the failures");
  spec.Duration("failures", &flags.failures, {.max = std::chrono::hours(24 * 366 * 100)},
                "the mean time until a node fails; 0s: no node fails");
  spec.Duration("repair", &flags.repair, {.min = seconds(1)}, "how long a failed node is away");
  spec.Number("chipsPerProcessor", &flags.chips_per_processor, {.min = 1e-6, .max = 1e6},
              "SWF: the chips that stand for a processor of the trace");
  spec.Number("load", &flags.load, {.min = 1e-3, .max = 1e3},
              "jobs come so many times as fast as in the trace");
  spec.String("out", &flags.out, "folder that receives measures, jobs and pictures; empty: none");
  spec.String("format", &flags.format, "of the measures on stdout", {"text", "csv", "json"});
  return spec;
}

// Writes a line to stderr when a while has passed since the last one.
class Progress {
 public:
  explicit Progress(std::string_view policy) : policy_(policy), told_(clock_.MonotonicNow()) {}

  void Tell(const ReplayProgress& done) {
    if (++calls_ % kCallsBetween != 0) return;
    const MonotonicTime now = clock_.MonotonicNow();
    if (now - told_ < kPause) return;
    told_ = now;
    fmt::print(stderr, "{}: {} of {} jobs have ended, it is {}\n", policy_, done.ended, done.jobs,
               FormatTime(done.now));
  }

 private:
  static constexpr std::chrono::seconds kPause{5};
  static constexpr int kCallsBetween = 64;

  SystemClock clock_;
  std::string_view policy_;
  MonotonicTime told_;
  int calls_ = 0;
};

PolicyKind PolicyOf(const std::string& name) {
  return static_cast<PolicyKind>(std::ranges::find(kPolicyNames, name) - kPolicyNames.begin());
}

std::string AboutTrace(const Trace& trace, const Workload& workload, const ReplayFleet& fleet) {
  std::string text = fmt::format("{} jobs on {}\n", workload.jobs.size(), fleet.Describe());
  const auto add = [&](std::size_t count, std::string_view what) {
    if (count != 0) text += fmt::format("{} jobs {}\n", count, what);
  };
  add(workload.too_large, "left out: larger than the fleet");
  add(trace.without_size, "left out: their size is not known");
  add(trace.without_run_time, "left out: their run time is not known");
  add(trace.rounded_up, "get more chips than they ask for, which form boxes");
  add(trace.cut_off, "ran longer than asked, and end when that time is over");
  return text;
}

std::string InFormat(const std::string& format, const std::vector<ReplayMeasures>& measures) {
  if (format == "csv") return CsvReport(measures);
  if (format == "json") return JsonReport(measures);
  return TextReport(measures);
}

absl::Status WriteOut(const std::string& folder, const Workload& workload,
                      const std::vector<ReplayRun>& runs,
                      const std::vector<ReplayMeasures>& measures) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return Unavailable("{}: {}", folder, error.message());
  constexpr mode_t kMode = 0644;
  const std::array<std::pair<const char*, std::string>, 5> files = {{
      {"measures.csv", CsvReport(measures)},
      {"measures.json", JsonReport(measures)},
      {"jobs.csv", CsvOfJobs(workload, runs)},
      {"use.svg", DrawUse(workload, runs)},
      {"waits.svg", DrawWaits(workload, runs)},
  }};
  for (const auto& [name, text] : files) {
    TAHOMA_RETURN_IF_ERROR(WriteAtomically(fmt::format("{}/{}", folder, name), text, kMode));
  }
  return absl::OkStatus();
}

absl::Status ReplayTrace(const ReplayFlags& flags, const ReplayFleet& fleet) {
  TAHOMA_ASSIGN_OR_RETURN(const std::string text, ReadFile(flags.trace, kTraceBytesMost));
  TAHOMA_ASSIGN_OR_RETURN(
      const Trace trace,
      ReadTrace(text, flags.trace,
                {.chips_per_processor = flags.chips_per_processor, .load = flags.load}));
  TAHOMA_ASSIGN_OR_RETURN(const Workload workload, MakeWorkload(trace, fleet));
  fmt::print(stderr, "{}", AboutTrace(trace, workload, fleet));
  std::vector<ReplayRun> runs;
  std::vector<ReplayMeasures> measures;
  for (const std::string& name : flags.policies) {
    ReplayOptions options{.policy = PolicyOf(name),
                          .seed = static_cast<std::uint64_t>(flags.seed),
                          .failures = std::nullopt,
                          .repair = std::chrono::ceil<seconds>(flags.repair)};
    if (flags.failures > std::chrono::nanoseconds(0)) {
      options.failures = std::chrono::ceil<seconds>(flags.failures);
    }
    Progress progress(name);
    runs.push_back(
        Replay(workload, fleet, options, [&](const ReplayProgress& done) { progress.Tell(done); }));
    measures.push_back(Measure(workload, runs.back()));
  }
  fmt::print("{}", InFormat(flags.format, measures));
  return flags.out.empty() ? absl::OkStatus() : WriteOut(flags.out, workload, runs, measures);
}

}  // namespace

std::optional<int> RunReplayCommand(int argc, const char* const* argv) {
  if (argc < 2 || std::string_view(argv[1]) != "--replay") return std::nullopt;
  ReplayFlags flags;
  if (const std::optional<int> exit = config::Parse(argc - 1, argv + 1, DeclareReplay(flags))) {
    return exit;
  }
  const auto fail = [](const absl::Status& status, int code) {
    fmt::print(stderr, "controller --replay: {}\n", Message(status));
    return code;
  };
  const auto fleet = ParseFleet(flags.fleet);
  if (!fleet.ok()) return fail(Annotate(fleet.status(), "--fleet"), 2);
  if (flags.policies.empty()) {
    return fail(InvalidArgument("--policy: name a policy, such as tahoma"), 2);
  }
  const absl::Status status = ReplayTrace(flags, *fleet);
  return status.ok() ? 0 : fail(status, 1);
}

}  // namespace tahoma::controller
