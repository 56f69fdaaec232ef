#include "controller/ctl/app/block_commands.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <utility>

#include "controller/ctl/booking.h"
#include "controller/ctl/calendar.h"
#include "controller/ctl/calendar_reader.h"
#include "controller/ctl/calendar_svg.h"
#include "controller/ctl/fleet_reader.h"
#include "controller/ctl/gang_list.h"
#include "controller/ctl/gang_usage.h"
#include "controller/ctl/offerings.h"
#include "controller/ctl/usage_report.h"
#include "lib/base/clock.h"
#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/kube/http_transport.h"

namespace tahoma::controller {
namespace {

constexpr int kWrongLine = 2;
constexpr int kRefused = 3;
constexpr int kNotYet = 4;
constexpr int kWidthUsual = 100;
using Need = config::Spec::Need;

int RunOfferings(const BlockCommandOptions& options, const CommandTarget& target) {
  auto access = AdminAccess(options.admin, target);
  if (!access.ok()) return Fail(access.status());
  const std::string ns = target.ns.empty() ? access->default_namespace : target.ns;
  const auto transport = kube::HttpTransport::Create(*std::move(access), {}, Warn);
  if (!transport.ok()) return Fail(transport.status());
  const absl::StatusOr<Json> answer =
      AskForOfferings(**transport, {.type = options.type,
                                    .count = options.count,
                                    .hours = options.hours,
                                    .hours_most = options.flexible_hours,
                                    .segments = options.segments,
                                    .from = options.from,
                                    .to = options.to,
                                    .zone = options.zone,
                                    .any_cell = options.any_cell,
                                    .order = options.order,
                                    .most = options.most,
                                    .ns = ns});
  if (!answer.ok()) return Fail(answer.status());
  const int printed = options.output.empty() ? PrintText(target, OfferingsText(*answer))
                                             : PrintValue(*answer, options.output);
  if (printed != 0) return printed;
  return HasOfferings(*answer) ? 0 : kRefused;
}

BookingWait WaitOf(const std::string& word) {
  return word == "none"     ? BookingWait::kNone
         : word == "active" ? BookingWait::kActive
                            : BookingWait::kBought;
}

int RunBook(const BlockCommandOptions& options, const CommandTarget& target) {
  auto access = AccessOf(target);
  if (!access.ok()) return Fail(access.status());
  const Booking booking{.offering_id = options.offering,
                        .ns = target.ns.empty() ? access->default_namespace : target.ns,
                        .name = options.name,
                        .platform = options.platform,
                        .replace = options.replace,
                        .binding = options.binding,
                        .tags = options.tags};
  const auto transport = kube::HttpTransport::Create(*std::move(access), {}, Warn);
  if (!transport.ok()) return Fail(transport.status());
  const absl::StatusOr<Json> made = MakeBlock(**transport, booking);
  if (!made.ok()) return Fail(made.status());
  kube::InterruptibleSleeper sleeper;
  int printed = 0;  // a purchase whose progress cannot be shown is still waited for
  const auto outcome = WaitForBooking(**transport, sleeper, SystemClock(), booking,
                                      {.wait = WaitOf(options.wait),
                                       .timeout = options.timeout,
                                       .tell = [&](const std::string& line) {
                                         if (printed == 0) printed = PrintText(target, line + "\n");
                                       }});
  if (!outcome.ok()) return Fail(outcome.status());
  switch (*outcome) {
    case BookingOutcome::kDone:
      return printed;
    case BookingOutcome::kRefused:
    case BookingOutcome::kLost:
      return kRefused;
    case BookingOutcome::kPending:
      break;
  }
  Warn("it is not known yet; the same command goes on waiting");
  return kNotYet;
}

// The width of the terminal; where there is none that of COLUMNS.
int WidthOf(std::int64_t given) {
  if (given != 0) return static_cast<int>(given);
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col != 0) return size.ws_col;
  return kWidthUsual;
}

// The time of blocks that live by a test's clock; the machine's where nobody tells.
WallTime TestTime(const BlockCommandOptions& options, const CommandTarget& target) {
  auto access = AdminAccess(options.admin, target);
  if (access.ok()) {
    const auto transport = kube::HttpTransport::Create(*std::move(access), {}, Warn);
    const auto time = transport.ok() ? ReadBlockTime(**transport) : transport.status();
    if (time.ok()) return *time;
  }
  Warn("the blocks live by the clock of a test, and the admin API does not tell its time");
  return SystemClock().WallNow();
}

int RunCalendar(const BlockCommandOptions& options, const CommandTarget& target) {
  const auto transport = Connect(target);
  if (!transport.ok()) return Fail(transport.status());
  const std::string ns = options.all_namespaces ? "" : target.ns;
  auto read = ReadCalendarBlocks(**transport, ns);
  if (!read.ok()) return Fail(read.status());
  if (read->blocks.empty()) {
    if (const absl::Status there = CheckNamespace(**transport, ns); !there.ok()) return Fail(there);
  }
  if (options.output == "json" || options.output == "yaml") {
    return PrintValue(CalendarJson(read->blocks), options.output);
  }
  const bool svg = options.output == "svg";
  const Calendar calendar = MakeCalendar(
      std::move(read->blocks),
      {.now = read->test_clock ? TestTime(options, target) : SystemClock().WallNow(),
       .from = options.from.empty() ? WallTime{} : ParseTime(options.from).value_or(WallTime{}),
       .days = static_cast<int>(options.days),
       .by = options.by == "host"   ? CalendarBy::kHost
             : options.by == "cell" ? CalendarBy::kCell
                                    : CalendarBy::kBlock,
       .rows_most = svg ? 1000U : 200U});
  if (!svg) return PrintText(target, DrawCalendarText(calendar, WidthOf(options.width)));
  const absl::Status printed = Print(DrawCalendarSvg(calendar));
  return printed.ok() ? 0 : Fail(printed);
}

absl::StatusOr<std::vector<UsageLine>> ReadBlockUsage(const CommandTarget& target,
                                                      const std::string& ns) {
  TAHOMA_ASSIGN_OR_RETURN(const auto transport, Connect(target));
  std::vector<UsageLine> lines;
  const auto add = [&](const Json& object) {
    if (auto line = UsageLineOf(object)) lines.push_back(*std::move(line));
  };
  TAHOMA_RETURN_IF_ERROR(ReadAll(*transport, kCapacityBlocks, add, {.ns = ns}));
  if (lines.empty()) TAHOMA_RETURN_IF_ERROR(CheckNamespace(*transport, ns));
  return lines;
}

// Blocks are objects of the cluster, the use by gangs is the admin API's.
int RunUsage(const BlockCommandOptions& options, const CommandTarget& target) {
  const std::string ns = options.all_namespaces ? "" : target.ns;
  auto blocks = ReadBlockUsage(target, ns);
  if (!blocks.ok()) return Fail(blocks.status());
  if (options.output == "csv") {
    const absl::Status printed = Print(UsageCsv(*std::move(blocks)));
    return printed.ok() ? 0 : Fail(printed);
  }
  auto access = AdminAccess(options.admin, target);
  if (!access.ok()) return Fail(access.status());
  const auto admin = kube::HttpTransport::Create(*std::move(access), {}, Warn);
  if (!admin.ok()) return Fail(admin.status());
  const auto gangs = ReadGangUsage(**admin, ns);
  if (!gangs.ok()) return Fail(gangs.status());
  const UsageBy by = options.usage_by == "namespace" ? UsageBy::kNamespace
                     : options.usage_by == "queue"   ? UsageBy::kQueue
                                                     : UsageBy::kBoth;
  if (options.output == "json" || options.output == "yaml") {
    Json value = UsageJson(*std::move(blocks));
    value["asOf"] = gangs->as_of;
    value["gangs"] = GangUsageJson(gangs->lines, by);
    return PrintValue(value, options.output);
  }
  std::string text = GangUsageTable(gangs->lines, by, options.output == "wide");
  if (!blocks->empty()) text += "\n" + UsageTable(*std::move(blocks));
  return PrintText(target, text);
}

void DeclareOutput(config::Spec& spec, BlockCommandOptions& options,
                   std::vector<std::string> forms) {
  spec.String("output", &options.output, "another form; empty: text", std::move(forms));
  spec.Alias("-o", "output");
}

void DeclareAllNamespaces(config::Spec& spec, BlockCommandOptions& options) {
  spec.Bool("allNamespaces", &options.all_namespaces,
            "of all namespaces, as when no --namespace is given");
  spec.Alias("-A", "allNamespaces");
}

void DeclareOfferings(config::Spec& spec, BlockCommandOptions& options) {
  spec.String("type", &options.type, "instance or UltraServer type, such as u-trn2x64");
  spec.Int("count", &options.count, {.min = 1}, "how many of them");
  spec.Int("hours", &options.hours, {.min = 1}, "the duration, whole days");
  spec.Int("flexibleHours", &options.flexible_hours, {},
           "the longest duration that will do as well; 0: only --hours");
  spec.Int("segments", &options.segments, {.min = 1}, "so many pieces of time, with gaps, will do");
  spec.String("from", &options.from, "the earliest start, such as 2026-12-01T00:00:00Z");
  spec.String("to", &options.to, "the latest end");
  spec.String("zone", &options.zone, "the availability zone");
  spec.Bool("anyCell", &options.any_cell, "hosts of several cells will do");
  spec.String("orderBy", &options.order, "the order", {"", "Price", "Start", "End"});
  spec.Int("maxResults", &options.most, {.min = 1, .max = 1000}, "at most so many");
  DeclareOutput(spec, options, {"", "json", "yaml"});
  DeclareAdmin(spec, options.admin);
}

void DeclareBook(config::Spec& spec, BlockCommandOptions& options) {
  spec.Word("OFFERING", &options.offering,
            "its id, cb-…, as `offerings` shows it; of several, all or none, with commas between",
            Need::kRequired);
  spec.String("name", &options.name, "the object's name; empty: by the offering");
  spec.String("platform", &options.platform, "the operating system that is paid for");
  spec.String("replacePolicy", &options.replace, "as of the CapacityBlock");
  spec.String("bindingMode", &options.binding, "as of the CapacityBlock");
  spec.Map("tag", &options.tags, "tags of the purchase, key=value");
  spec.String("wait", &options.wait, "until it is bought, active, or none",
              {"none", "bought", "active"});
  spec.Duration("timeout", &options.timeout, {}, "wait at most so long");
}

void DeclareCalendar(config::Spec& spec, BlockCommandOptions& options) {
  spec.String("by", &options.by, "a row for each block, host or cell", {"block", "host", "cell"});
  spec.String("from", &options.from, "the first day, such as 2026-12-01T00:00:00Z");
  spec.Int("days", &options.days, {.min = 0, .max = 366},
           "days to show; 0: as many as are booked, up to 56");
  spec.Int("width", &options.width, {.min = 0, .max = 1000},
           "columns of the text; 0: the terminal's");
  DeclareOutput(spec, options, {"", "json", "yaml", "svg"});
  DeclareAllNamespaces(spec, options);
  DeclareAdmin(spec, options.admin);
}

void DeclareUsage(config::Spec& spec, BlockCommandOptions& options) {
  spec.String("by", &options.usage_by, "a line for each queue of each namespace, or sums",
              {"both", "namespace", "queue"});
  DeclareOutput(spec, options, {"", "wide", "json", "yaml", "csv"});
  DeclareAllNamespaces(spec, options);
  DeclareAdmin(spec, options.admin);
}

}  // namespace

std::vector<config::Command> BlockCommands(BlockCommandOptions& options) {
  const auto with = [&options](void (*declare)(config::Spec&, BlockCommandOptions&)) {
    return [&options, declare](config::Spec& spec) { declare(spec, options); };
  };
  return {
      {.name = "offerings",
       .summary = "Searches for Capacity Blocks that can be bought.",
       .declare = with(DeclareOfferings),
       .examples = "kubectl tahoma offerings --type u-trn2x64 --hours 168\n"
                   "kubectl tahoma offerings --type trn2.48xlarge --count 4 --hours 24 -o json",
       .exits = {{kRefused, "there is nothing: it says why, and what is nearest"}}},
      {.name = "book",
       .summary = "Buys a Capacity Block, and waits until it is bought.",
       .declare = with(DeclareBook),
       .examples = "kubectl tahoma book cb-… --name pretrain\n"
                   "kubectl tahoma book cb-… --wait active --timeout 2h",
       .exits = {{kRefused, "the purchase was refused, or the block was lost"},
                 {kNotYet, "the outcome was not known in time; the same command goes on waiting"}}},
      {.name = "calendar",
       .summary = "Shows who has which Capacity Block when.",
       .declare = with(DeclareCalendar),
       .examples = "kubectl tahoma calendar --by host --days 14\n"
                   "kubectl tahoma calendar -o svg > calendar.svg"},
      {.name = "usage",
       .summary = "Shows chip-hours by namespace and queue, and what Capacity Blocks cost.",
       .declare = with(DeclareUsage),
       .examples = "kubectl tahoma usage -n team\n"
                   "kubectl tahoma usage --by queue -o wide\n"
                   "kubectl tahoma usage -o csv > usage.csv"}};
}

int RunBlockCommand(std::string_view command, const BlockCommandOptions& options,
                    const CommandTarget& target) {
  if (command == "usage") return RunUsage(options, target);
  if (command == "book") return RunBook(options, target);
  if (command == "offerings") {
    if (!options.type.empty()) return RunOfferings(options, target);
    Warn("offerings needs a --type, such as u-trn2x64");
    return kWrongLine;
  }
  if (!options.from.empty() && !ParseTime(options.from).ok()) {
    Warn(fmt::format("--from {}: must be a time in UTC, such as 2026-12-01T00:00:00Z",
                     options.from));
    return kWrongLine;
  }
  return RunCalendar(options, target);
}

}  // namespace tahoma::controller
