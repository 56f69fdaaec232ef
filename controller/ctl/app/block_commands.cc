#include "controller/ctl/app/block_commands.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <utility>

#include "controller/ctl/booking.h"
#include "controller/ctl/calendar.h"
#include "controller/ctl/calendar_reader.h"
#include "controller/ctl/calendar_svg.h"
#include "controller/ctl/fleet_reader.h"
#include "controller/ctl/offerings.h"
#include "controller/ctl/table.h"
#include "controller/ctl/usage_report.h"
#include "controller/model/admin_address.h"
#include "lib/base/clock.h"
#include "lib/base/files.h"
#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/kube/http_transport.h"
#include "lib/kube/kubeconfig.h"

namespace tahoma::controller {
namespace {

constexpr int kUnknown = 1;
constexpr int kRefused = 3;
constexpr int kNotYet = 4;
constexpr int kWidthUsual = 100;
constexpr std::array<std::string_view, 4> kCommands = {"offerings", "book", "calendar", "usage"};

void Warn(const std::string& line) { fmt::print(stderr, "kubectl-tahoma: {}\n", line); }

int Fail(const absl::Status& status) {
  Warn(std::string(Message(status)));
  return kUnknown;
}

// The address of the admin API: as given, from TAHOMA_ADMIN, or as the kubeconfig has it.
absl::StatusOr<std::string> AdminOf(const BlockCommandOptions& options,
                                    const CommandTarget& target) {
  if (!options.admin.empty()) return options.admin;
  const char* environment = std::getenv("TAHOMA_ADMIN");
  if (environment != nullptr && *environment != '\0') return std::string(environment);
  TAHOMA_ASSIGN_OR_RETURN(std::string server,
                          kube::KubeconfigExtension(target.kubeconfig, target.context,
                                                    kAdminExtension, kAdminExtensionServer));
  if (!server.empty()) return server;
  return NotFound(
      "the address of the controller's admin API is not known: give --admin or TAHOMA_ADMIN, such "
      "as http://127.0.0.1:8081 of kubectl port-forward");
}

// The admin API with the credentials of the kubeconfig. Its certificate need not be of the
// cluster's authority.
absl::StatusOr<kube::ServerAccess> AdminAccess(const BlockCommandOptions& options,
                                               const CommandTarget& target) {
  TAHOMA_ASSIGN_OR_RETURN(kube::ServerAccess access,
                          kube::LoadKubeconfig(target.kubeconfig, target.context));
  TAHOMA_ASSIGN_OR_RETURN(access.server, AdminOf(options, target));
  const char* const environment = std::getenv("TAHOMA_ADMIN_CA_FILE");
  std::string file = options.admin_ca_file;
  if (file.empty() && environment != nullptr) file = environment;
  if (file.empty()) return access;
  TAHOMA_ASSIGN_OR_RETURN(access.ca_pem, ReadFile(file));
  access.tls_server_name.clear();
  access.insecure_skip_tls_verify = false;
  return access;
}

// Returns a connection to the cluster's API server.
absl::StatusOr<std::unique_ptr<kube::HttpTransport>> Connect(const CommandTarget& target) {
  TAHOMA_ASSIGN_OR_RETURN(kube::ServerAccess access,
                          kube::LoadKubeconfig(target.kubeconfig, target.context));
  return kube::HttpTransport::Create(std::move(access), {}, Warn);
}

int RunOfferings(const BlockCommandOptions& options, const CommandTarget& target) {
  auto access = AdminAccess(options, target);
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
  fmt::print("{}", options.output == "json"   ? answer->dump(2) + "\n"
                   : options.output == "yaml" ? YamlText(*answer)
                                              : OfferingsText(*answer));
  return HasOfferings(*answer) ? 0 : kRefused;
}

BookingWait WaitOf(const std::string& word) {
  return word == "none"     ? BookingWait::kNone
         : word == "active" ? BookingWait::kActive
                            : BookingWait::kBought;
}

int RunBook(const std::string& offering, const BlockCommandOptions& options,
            const CommandTarget& target) {
  auto access = kube::LoadKubeconfig(target.kubeconfig, target.context);
  if (!access.ok()) return Fail(access.status());
  const Booking booking{.offering_id = offering,
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
  const auto outcome = WaitForBooking(**transport, sleeper, SystemClock(), booking,
                                      {.wait = WaitOf(options.wait),
                                       .timeout = options.timeout,
                                       .tell = [](const std::string& line) {
                                         fmt::print("{}\n", line);
                                         std::fflush(stdout);
                                       }});
  if (!outcome.ok()) return Fail(outcome.status());
  switch (*outcome) {
    case BookingOutcome::kDone:
      return 0;
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
  auto access = AdminAccess(options, target);
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
  auto read = ReadCalendarBlocks(**transport, target.ns);
  if (!read.ok()) return Fail(read.status());
  if (options.output == "json" || options.output == "yaml") {
    const Json list = CalendarJson(read->blocks);
    fmt::print("{}", options.output == "json" ? list.dump(2) + "\n" : YamlText(list));
    return 0;
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
  fmt::print("{}",
             svg ? DrawCalendarSvg(calendar) : DrawCalendarText(calendar, WidthOf(options.width)));
  return 0;
}

int RunUsage(const BlockCommandOptions& options, const CommandTarget& target) {
  const auto transport = Connect(target);
  if (!transport.ok()) return Fail(transport.status());
  std::vector<UsageLine> lines;
  const auto add = [&](const Json& object) {
    if (auto line = UsageLineOf(object)) lines.push_back(*std::move(line));
  };
  const absl::Status read = ReadAll(**transport, kCapacityBlocks, add, {.ns = target.ns});
  if (!read.ok()) return Fail(read);
  fmt::print("{}", options.output == "csv"    ? UsageCsv(std::move(lines))
                   : options.output == "json" ? UsageJson(std::move(lines)).dump(2) + "\n"
                   : options.output == "yaml" ? YamlText(UsageJson(std::move(lines)))
                                              : UsageTable(std::move(lines)));
  return 0;
}

}  // namespace

void DeclareBlockOptions(config::Spec& spec, BlockCommandOptions& options) {
  using config::IntRange;
  spec.String("admin", &options.admin,
              "for offerings: URL of the controller's admin API; empty: TAHOMA_ADMIN, or as the "
              "kubeconfig says");
  spec.String(
      "adminCaFile", &options.admin_ca_file,
      "certificates that the admin API is trusted by; empty: TAHOMA_ADMIN_CA_FILE, or those "
      "of the kubeconfig");
  spec.String(
      "output", &options.output,
      "for offerings, calendar and usage: json, yaml, for calendar also svg, for usage csv; "
      "empty: text",
      {"", "json", "yaml", "svg", "csv"});
  spec.Alias("-o", "output");
  spec.String("type", &options.type, "for offerings: instance or UltraServer type: u-trn2x64");
  spec.Int("count", &options.count, {.min = 1}, "for offerings: how many of them");
  spec.Int("hours", &options.hours, {.min = 1}, "for offerings: the duration, whole days");
  spec.Int("flexibleHours", &options.flexible_hours, {},
           "for offerings: the longest duration that will do as well; 0: only --hours");
  spec.Int("segments", &options.segments, {.min = 1},
           "for offerings: so many pieces of time, with gaps, will do");
  spec.String("from", &options.from,
              "for offerings: the earliest start; for calendar: its first day; "
              "2026-12-01T00:00:00Z");
  spec.String("to", &options.to, "for offerings: the latest end");
  spec.String("zone", &options.zone, "for offerings: the availability zone");
  spec.Bool("anyCell", &options.any_cell, "for offerings: hosts of several cells will do");
  spec.String("orderBy", &options.order, "for offerings: Price, Start or End",
              {"", "Price", "Start", "End"});
  spec.Int("maxResults", &options.most, {.min = 1, .max = 1000}, "for offerings: at most so many");
  spec.String("name", &options.name, "for book: the object's name; empty: by the offering");
  spec.String("platform", &options.platform, "for book: the operating system that is paid for");
  spec.String("replacePolicy", &options.replace, "for book: as of the CapacityBlock");
  spec.String("bindingMode", &options.binding, "for book: as of the CapacityBlock");
  spec.Map("tag", &options.tags, "for book: tags of the purchase, key=value");
  spec.String("wait", &options.wait, "for book: until it is bought, active, or none",
              {"none", "bought", "active"});
  spec.Duration("timeout", &options.timeout, {}, "for book: wait at most so long");
  spec.String("by", &options.by, "for calendar: a row for each block, host or cell",
              {"block", "host", "cell"});
  spec.Int("days", &options.days, {.min = 0, .max = 366},
           "for calendar: days to show; 0: as many as are booked, up to 56");
  spec.Int("width", &options.width, {.min = 0, .max = 1000},
           "for calendar: columns of the text; 0: the terminal's");
}

bool IsBlockCommand(std::string_view command) {
  return std::ranges::find(kCommands, command) != kCommands.end();
}

std::string MistakeIn(std::string_view command, const std::string& word,
                      const BlockCommandOptions& options) {
  if (command == "book") {
    return word.empty()
               ? "book needs the id of an offering, cb-…, as offerings shows it; of several all "
                 "or none, with commas between them"
               : "";
  }
  if (!word.empty()) return fmt::format("{} takes no name", command);
  if (options.output == "svg" && command != "calendar") return "-o svg is for calendar";
  if (options.output == "csv" && command != "usage") return "-o csv is for usage";
  if (command == "offerings") {
    if (options.type.empty()) return "offerings needs a --type, such as u-trn2x64";
    return "";
  }
  if (!options.from.empty() && !ParseTime(options.from).ok()) {
    return fmt::format("--from {}: must be a time in UTC, such as 2026-12-01T00:00:00Z",
                       options.from);
  }
  return "";
}

int RunBlockCommand(std::string_view command, const std::string& word,
                    const BlockCommandOptions& options, const CommandTarget& target) {
  if (command == "offerings") return RunOfferings(options, target);
  if (command == "usage") return RunUsage(options, target);
  return command == "book" ? RunBook(word, options, target) : RunCalendar(options, target);
}

}  // namespace tahoma::controller
