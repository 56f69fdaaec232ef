#include "controller/replay/trace.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include "controller/model/gang_rules.h"
#include "controller/replay/gunzip.h"
#include "lib/base/status.h"
#include "lib/config/parse.h"

namespace tahoma::controller {
namespace {

using std::chrono::seconds;

// The fields of an SWF line, by their numbers in the format's description less one.
enum SwfField : std::uint8_t {
  kJobNumber,
  kSubmitTime,
  kWaitTime,
  kRunTime,
  kAllocatedProcessors,
  kAverageCpu,
  kUsedMemory,
  kRequestedProcessors,
  kRequestedTime,
  kRequestedMemory,
  kStatus,
  kUser,
  kGroup,
  kExecutable,
  kQueueNumber,
  kPartition,
  kPrecedingJob,
  kThinkTime,
  kSwfFields,
};
constexpr std::array<std::string_view, kSwfFields> kSwfNames = {"job number",
                                                                "submit time",
                                                                "wait time",
                                                                "run time",
                                                                "allocated processors",
                                                                "average CPU time",
                                                                "used memory",
                                                                "requested processors",
                                                                "requested time",
                                                                "requested memory",
                                                                "status",
                                                                "user",
                                                                "group",
                                                                "executable",
                                                                "queue",
                                                                "partition",
                                                                "preceding job",
                                                                "think time"};

constexpr double kYear = 366.0 * 24 * 3600;  // in seconds
// A replay adds times up in nanoseconds since 1970.
constexpr double kSubmitMost = 50 * kYear;
constexpr double kRunMost = kYear;
constexpr double kStartMost = 130 * kYear;
constexpr double kProcessorsMost = 1e7;

using SwfLine = std::array<double, kSwfFields>;

std::string_view NextLine(std::string_view& text) {
  const std::size_t end = text.find('\n');
  std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

std::vector<std::string_view> Words(std::string_view line) {
  constexpr std::string_view kSpace = " \t";
  std::vector<std::string_view> words;
  for (;;) {
    const std::size_t begin = line.find_first_not_of(kSpace);
    if (begin == std::string_view::npos || words.size() > kSwfFields) return words;
    line.remove_prefix(begin);
    const std::size_t end = std::min(line.find_first_of(kSpace), line.size());
    words.push_back(line.substr(0, end));
    line.remove_prefix(end);
  }
}

absl::StatusOr<SwfLine> ParseSwfLine(std::string_view line) {
  const std::vector<std::string_view> words = Words(line);
  if (words.size() != kSwfFields) {
    return InvalidArgument("{}{} fields; a line of the Standard Workload Format has {}",
                           words.size() > kSwfFields ? "more than " : "",
                           std::min<std::size_t>(words.size(), kSwfFields), int{kSwfFields});
  }
  SwfLine fields{};
  for (std::size_t i = 0; i < kSwfFields; ++i) {
    const char* const end = words[i].data() + words[i].size();
    const auto [rest, error] = std::from_chars(words[i].data(), end, fields[i]);
    if (error != std::errc() || rest != end || !std::isfinite(fields[i])) {
      return InvalidArgument("field {} ({}) is \"{}\", no number; -1 says that it is not known",
                             i + 1, kSwfNames[i], words[i].substr(0, 64));
    }
  }
  for (const SwfField field : {kSubmitTime, kRunTime, kRequestedTime}) {
    const double value = fields[field];
    const double most = field == kSubmitTime ? kSubmitMost : kRunMost;
    const bool unknown = value == -1 && field != kSubmitTime;
    if (unknown || (value >= 0 && value <= most)) continue;
    return InvalidArgument("{} {}: must be 0 to {:.0f} seconds{}", kSwfNames[field], value, most,
                           field == kSubmitTime ? "" : ", or -1 when it is not known");
  }
  for (const SwfField field : {kAllocatedProcessors, kRequestedProcessors}) {
    const double value = fields[field];
    if (value == -1 || (value >= 0 && value <= kProcessorsMost)) continue;
    return InvalidArgument("{} {}: must be 0 to {:g}, or -1 when they are not known",
                           kSwfNames[field], value, kProcessorsMost);
  }
  return fields;
}

// Returns the least number of chips, `wanted` or more, that forms boxes.
std::int64_t RoundUpToBoxes(std::int64_t wanted) {
  constexpr std::int64_t kDomain = 64;
  if (wanted > kDomain) return (wanted + kDomain - 1) / kDomain * kDomain;
  std::int64_t chips = 1;
  while (chips < wanted) chips *= 2;
  return chips;
}

seconds WholeSeconds(double time) { return seconds(std::llround(std::ceil(time))); }

void AddSwfJob(const SwfLine& fields, const TraceOptions& options, Trace& trace) {
  const double processors = fields[kRequestedProcessors] > 0 ? fields[kRequestedProcessors]
                                                             : fields[kAllocatedProcessors];
  if (processors <= 0) {
    ++trace.without_size;
    return;
  }
  if (fields[kRunTime] < 0) {
    ++trace.without_run_time;
    return;
  }
  TraceJob job;
  job.name = fmt::format("{:.0f}", fields[kJobNumber]);
  job.submit = seconds(std::llround(std::floor(fields[kSubmitTime])));
  const auto wanted =
      static_cast<std::int64_t>(std::ceil(processors * options.chips_per_processor - 1e-9));
  job.chips = RoundUpToBoxes(std::max<std::int64_t>(wanted, 1));
  if (*job.chips != wanted) ++trace.rounded_up;
  job.run = WholeSeconds(fields[kRunTime]);
  if (fields[kRequestedTime] > 0) job.asked = WholeSeconds(fields[kRequestedTime]);
  trace.jobs.push_back(std::move(job));
}

// Reads a comment such as "; UnixStartTime: 749458803".
absl::Status ReadSwfHeader(std::string_view line, Trace& trace) {
  constexpr std::string_view kStart = "UnixStartTime:";
  const std::size_t at = line.find(kStart);
  if (at == std::string_view::npos) return absl::OkStatus();
  const std::vector<std::string_view> words = Words(line.substr(at + kStart.size()));
  if (words.empty()) return absl::OkStatus();
  std::int64_t start = 0;
  const char* const end = words[0].data() + words[0].size();
  const auto [rest, error] = std::from_chars(words[0].data(), end, start);
  if (error != std::errc() || rest != end || start < -1 ||
      static_cast<double>(start) > kStartMost) {
    return InvalidArgument("{} {}: must be seconds since 1970", kStart, words[0].substr(0, 64));
  }
  trace.start = WallTime(seconds(std::max<std::int64_t>(start, 0)));
  return absl::OkStatus();
}

// Brings jobs into their order, and their times into the bounds of a replay.
void Finish(Trace& trace) {
  for (TraceJob& job : trace.jobs) {
    job.run = std::max(job.run, seconds(1));
    if (job.asked && *job.asked < job.run) {
      job.run = std::max(*job.asked, seconds(1));
      ++trace.cut_off;
    }
    if (job.asked) job.asked = std::max(*job.asked, job.run);
  }
  std::ranges::stable_sort(trace.jobs, {}, &TraceJob::submit);
}

// A job and a queue as a YAML trace has them.
struct YamlJob {
  TraceJob job;
  std::int64_t chips = 0;
  std::chrono::nanoseconds submit{0};
  std::chrono::nanoseconds run{0};
  std::chrono::nanoseconds asked{0};
  std::int64_t count = 1;
  std::chrono::nanoseconds every{0};
};
struct YamlQueue {
  std::string name = {};
  std::string parent = {};
  std::int64_t weight = 1;
  std::map<std::string, std::string> guaranteed = {};
  std::map<std::string, std::string> limit = {};
  std::chrono::nanoseconds half_life{0};
};
struct YamlTrace {
  std::string start = "2026-01-01T00:00:00Z";
  std::vector<YamlJob> jobs;
  std::vector<YamlQueue> queues;
};

void DeclareJob(config::Fields& fields, YamlJob& job) {
  constexpr std::chrono::hours kLongest{24 * 366};
  fields.String("name", &job.job.name, "for people; empty: its place in the list");
  fields.Duration("submit", &job.submit, {.max = kLongest * 10}, "when, after the trace's start");
  fields.Int("count", &job.count, {.min = 1, .max = 1'000'000}, "so many equal jobs");
  fields.Duration("every", &job.every, {.max = kLongest}, "… each so long after the one before");
  fields.String("shape", &job.job.shape, "of a slice, such as 4x4x2");
  fields.Int("chips", &job.chips, {.min = 0, .max = 65536}, "of a slice, in the place of a shape");
  fields.Int("slices", &job.job.slices, {.min = 1, .max = 1024}, "equal boxes");
  fields.Duration("run", &job.run, {.max = kLongest}, "how long it runs");
  fields.Duration("maxRuntime", &job.asked, {.max = kLongest},
                  "the longest run that its user asks for; none: as long as it runs");
  fields.String("queue", &job.job.queue, "where it waits");
  fields.Int("priority", &job.job.priority, {.min = -1'000'000'000, .max = 1'000'000'000},
             "in its queue");
  fields.Bool("preemptible", &job.job.preemptible, "may be ended when others need its chips");
  fields.Bool("checkpointable", &job.job.checkpointable, "loses no work when it is preempted");
}

absl::StatusOr<TraceJob> JobOf(YamlJob yaml, std::size_t number) {
  TraceJob job = std::move(yaml.job);
  if (job.name.empty()) job.name = fmt::format("{}", number);
  if (yaml.run <= std::chrono::nanoseconds(0)) {
    return InvalidArgument("run: must say how long the job runs, such as 90m");
  }
  if (yaml.chips > 0) job.chips = yaml.chips;
  if (job.shape.empty() && !job.chips) {
    return InvalidArgument("shape or chips must say what the job asks for");
  }
  GangRequest request{.shape = job.shape, .chips = job.chips, .slices = job.slices};
  request.members = job.slices * std::max<std::int64_t>(1, job.chips.value_or(0) / 64);
  if (const auto faults = FaultsOf(request); !faults.empty()) {
    return InvalidArgument("{}", Describe(faults));
  }
  constexpr std::chrono::hours kStreamMost{24 * 366 * 50};
  if (yaml.every.count() > 0 && yaml.count > kStreamMost / yaml.every) {
    return InvalidArgument("every: the last of {} jobs would come after 50 years", yaml.count);
  }
  job.run = std::chrono::ceil<seconds>(yaml.run);
  if (yaml.asked > std::chrono::nanoseconds(0)) job.asked = std::chrono::ceil<seconds>(yaml.asked);
  return job;
}

void AddEqualJobs(const YamlJob& yaml, const TraceJob& first, Trace& trace) {
  for (std::int64_t n = 0; n < yaml.count; ++n) {
    TraceJob& job = trace.jobs.emplace_back(first);
    job.submit = std::chrono::floor<seconds>(yaml.submit + yaml.every * n);
    if (yaml.count > 1) job.name += fmt::format("-{}", n + 1);
  }
}

absl::StatusOr<ChipCounts> CountsOf(const std::map<std::string, std::string>& texts) {
  ChipCounts counts;
  for (const auto& [type, text] : texts) {
    std::int64_t chips = 0;
    const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), chips);
    if (error != std::errc() || rest != text.data() + text.size() || chips < 0) {
      return InvalidArgument("{}: \"{}\" must be a number of chips", type, text);
    }
    counts[type] = chips;
  }
  return counts;
}

absl::StatusOr<QueueSpec> QueueOf(const YamlQueue& yaml) {
  if (yaml.name.empty()) return InvalidArgument("name: must not be empty");
  QueueSpec queue;
  queue.name = yaml.name;
  queue.uid = "queue-" + yaml.name;
  queue.generation = 1;
  queue.parent = yaml.parent;
  queue.weight = yaml.weight;
  queue.namespaces = {kEveryNamespace};
  TAHOMA_ASSIGN_OR_RETURN(queue.guaranteed, CountsOf(yaml.guaranteed));
  TAHOMA_ASSIGN_OR_RETURN(queue.limit, CountsOf(yaml.limit));
  if (yaml.half_life > std::chrono::nanoseconds(0)) {
    queue.half_life = std::chrono::ceil<seconds>(yaml.half_life);
  }
  return queue;
}

// Checks that parents exist, and that no queue is above itself.
absl::Status CheckParents(const std::vector<QueueSpec>& queues) {
  std::map<std::string, std::string> parents;
  for (const QueueSpec& queue : queues) {
    if (!parents.emplace(queue.name, queue.parent).second) {
      return InvalidArgument("queue {}: is listed twice", queue.name);
    }
  }
  for (const QueueSpec& queue : queues) {
    std::string above = queue.parent;
    for (std::size_t steps = 0; !above.empty(); ++steps) {
      const auto found = parents.find(above);
      if (found == parents.end()) {
        return InvalidArgument("queue {}: parent {} must be one of queues", queue.name, above);
      }
      if (steps == queues.size()) {
        return InvalidArgument("queue {}: is above itself; break the circle", queue.name);
      }
      above = found->second;
    }
  }
  return absl::OkStatus();
}

// Jobs in no queue wait in `default`, beside the queues at the top.
void AddDefaultQueue(Trace& trace) {
  const auto is_default = [](const auto& queue) { return queue.name == kDefaultQueue; };
  if (trace.queues.empty() || std::ranges::any_of(trace.queues, is_default)) return;
  if (std::ranges::find(trace.jobs, kDefaultQueue, &TraceJob::queue) == trace.jobs.end()) return;
  trace.queues.push_back(*QueueOf({.name = kDefaultQueue}));
}

config::Spec SpecOf(YamlTrace& yaml) {
  config::Spec spec(
      {.program = "controller --replay", .kind = "ReplayTrace", .summary = "A trace."});
  spec.String("start", &yaml.start, "the time of the trace's first second");
  spec.List<YamlJob>("jobs", &yaml.jobs, "the jobs", DeclareJob);
  spec.List<YamlQueue>("queues", &yaml.queues, "the queues",
                       [](config::Fields& fields, YamlQueue& queue) {
                         fields.String("name", &queue.name, "as jobs name it");
                         fields.String("parent", &queue.parent, "the queue above");
                         fields.Int("weight", &queue.weight, {.min = 1, .max = 1'000'000},
                                    "its part of what siblings share");
                         fields.Map("guaranteed", &queue.guaranteed, "chips by instance type");
                         fields.Map("limit", &queue.limit, "chips by instance type");
                         fields.Duration("halfLife", &queue.half_life, {}, "of past use");
                       });
  return spec;
}

}  // namespace

absl::StatusOr<Trace> ReadSwf(std::string_view text, std::string_view name,
                              const TraceOptions& options) {
  Trace trace;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::string_view line = NextLine(text);
    const std::size_t begin = line.find_first_not_of(" \t");
    if (begin == std::string_view::npos) continue;
    const std::string where = fmt::format("{}:{}", name, number);
    if (line[begin] == ';') {
      TAHOMA_RETURN_IF_ERROR(Annotate(ReadSwfHeader(line, trace), where));
      continue;
    }
    const auto fields = ParseSwfLine(line);
    if (!fields.ok()) return Annotate(fields.status(), where);
    if (trace.jobs.size() == kTraceJobsMost) {
      return InvalidArgument("{}: more than {} jobs; cut the trace", where, kTraceJobsMost);
    }
    AddSwfJob(*fields, options, trace);
  }
  Finish(trace);
  return trace;
}

absl::StatusOr<Trace> ReadYamlTrace(std::string_view text, std::string_view name) {
  YamlTrace yaml;
  TAHOMA_RETURN_IF_ERROR(config::ParseFile(text, name, SpecOf(yaml)));
  Trace trace;
  auto start = ParseTime(yaml.start);
  if (!start.ok()) return Annotate(start.status(), fmt::format("{}: start", name));
  if (*start < WallTime{} || *start > WallTime(seconds(std::llround(kStartMost)))) {
    return InvalidArgument("{}: start: must be from 1970 to 2100", name);
  }
  trace.start = *start;
  for (std::size_t i = 0; i < yaml.jobs.size(); ++i) {
    auto job = JobOf(yaml.jobs[i], i + 1);
    if (!job.ok()) return Annotate(job.status(), fmt::format("{}: jobs[{}]", name, i));
    if (trace.jobs.size() + static_cast<std::size_t>(yaml.jobs[i].count) > kTraceJobsMost) {
      return InvalidArgument("{}: more than {} jobs; cut the trace", name, kTraceJobsMost);
    }
    AddEqualJobs(yaml.jobs[i], *job, trace);
  }
  for (std::size_t i = 0; i < yaml.queues.size(); ++i) {
    auto queue = QueueOf(yaml.queues[i]);
    if (!queue.ok()) return Annotate(queue.status(), fmt::format("{}: queues[{}]", name, i));
    trace.queues.push_back(*std::move(queue));
  }
  TAHOMA_RETURN_IF_ERROR(Annotate(CheckParents(trace.queues), name));
  for (std::size_t i = 0; i < yaml.jobs.size() && !trace.queues.empty(); ++i) {
    const std::string& wanted = yaml.jobs[i].job.queue;
    if (wanted == kDefaultQueue ||
        std::ranges::find(trace.queues, wanted, &QueueSpec::name) != trace.queues.end()) {
      continue;
    }
    return InvalidArgument("{}: jobs[{}]: queue {}: must be one of queues, or default", name, i,
                           wanted);
  }
  AddDefaultQueue(trace);
  Finish(trace);
  return trace;
}

absl::StatusOr<Trace> ReadTrace(std::string_view text, std::string_view name,
                                const TraceOptions& options) {
  std::string plain;
  if (IsGzip(text)) {
    auto unpacked = Gunzip(text, kTraceBytesMost);
    if (!unpacked.ok()) return Annotate(unpacked.status(), name);
    plain = *std::move(unpacked);
    text = plain;
  }
  auto trace =
      text.find("ReplayTrace") < 4096 ? ReadYamlTrace(text, name) : ReadSwf(text, name, options);
  if (!trace.ok()) return trace;
  if (trace->jobs.empty()) {
    return InvalidArgument(
        "{}: no job that can be replayed ({} without a size, {} without a run time)", name,
        trace->without_size, trace->without_run_time);
  }
  for (TraceJob& job : trace->jobs) {
    job.submit =
        seconds(std::llround(std::floor(static_cast<double>(job.submit.count()) / options.load)));
  }
  return trace;
}

}  // namespace tahoma::controller
