#include "sim-node/workload/nccom_test.h"

#include <getopt.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <ostream>
#include <tuple>
#include <utility>

#include "lib/base/status.h"

namespace tahoma::sim {
namespace {

using Json = nlohmann::json;

constexpr int kMaxRepeats = 1'000'000;
constexpr int kMaxWorkers = 512;  // logical cores of an UltraServer under LNC 1
constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;

constexpr int kRedopOption = 256;
constexpr int kReportOption = 257;
constexpr int kShowAlgorithmOption = 258;
constexpr int kShowSizesOption = 259;
constexpr int kSeedOption = 260;
constexpr int kNonInteractiveOption = 261;
constexpr std::array kLongOptions = {
    option{"nworkers", required_argument, nullptr, 'r'},
    option{"nnodes", required_argument, nullptr, 'N'},
    option{"minbytes", required_argument, nullptr, 'b'},
    option{"maxbytes", required_argument, nullptr, 'e'},
    option{"stepbytes", required_argument, nullptr, 'i'},
    option{"stepfactor", required_argument, nullptr, 'f'},
    option{"iters", required_argument, nullptr, 'n'},
    option{"warmup_iters", required_argument, nullptr, 'w'},
    option{"datatype", required_argument, nullptr, 'd'},
    option{"check", no_argument, nullptr, 'c'},
    option{"redop", required_argument, nullptr, kRedopOption},
    option{"seed", required_argument, nullptr, kSeedOption},
    option{"stats", required_argument, nullptr, 't'},
    option{"show-algorithm", no_argument, nullptr, kShowAlgorithmOption},
    option{"show-input-output-size", no_argument, nullptr, kShowSizesOption},
    option{"non-interactive", no_argument, nullptr, kNonInteractiveOption},
    option{"report-to-json-file", required_argument, nullptr, kReportOption},
    option{"help", no_argument, nullptr, 'h'},
    option{nullptr, 0, nullptr, 0},
};

absl::StatusOr<int> ParseCount(std::string_view name, std::string_view text, int min, int max) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < min || value > max) {
    return InvalidArgument("{} is \"{}\"; expected {} to {}", name, text, min, max);
  }
  return value;
}

absl::StatusOr<std::uint64_t> ParseSize(std::string_view name, std::string_view text) {
  const auto bytes = ParseBytes(text);
  return bytes.ok() ? bytes : Annotate(bytes.status(), name);
}

// "avg", "p0" to "p100".
bool IsStat(std::string_view text) {
  if (text == "avg") return true;
  return text.starts_with('p') && ParseCount("", text.substr(1), 0, 100).ok();
}

// "avg,p50".
absl::StatusOr<std::vector<std::string>> ParseStats(std::string_view text) {
  std::vector<std::string> stats;
  while (true) {
    const std::size_t comma = std::min(text.find(','), text.size());
    stats.emplace_back(text.substr(0, comma));
    if (!IsStat(stats.back())) {
      return InvalidArgument("--stats is \"{}\"; expected avg or percentiles, p0 to p100",
                             stats.back());
    }
    if (comma == text.size()) return stats;
    text.remove_prefix(comma + 1);
  }
}

// AWS's tool takes several words after --stats: they become one, joined by commas.
std::vector<std::string> WithStatsJoined(const std::vector<std::string>& arguments) {
  std::vector<std::string> joined;
  for (const std::string& word : arguments) {
    const std::size_t size = joined.size();
    const bool goes_on = size >= 2 && (joined[size - 2] == "-t" || joined[size - 2] == "--stats");
    if (goes_on && IsStat(word)) {
      joined.back() += "," + word;
    } else {
      joined.push_back(word);
    }
  }
  return joined;
}

absl::Status Apply(int choice, std::string_view text, NccomOptions& options) {
  const auto set = [](auto& field, auto parsed) -> absl::Status {
    if (parsed.ok()) field = *parsed;
    return parsed.status();
  };
  switch (choice) {
    case 'r':
      return set(options.workers, ParseCount("--nworkers", text, 1, kMaxWorkers));
    case 'N':
      return set(options.nodes, ParseCount("--nnodes", text, 1, 64));
    case 'b':
      return set(options.min_bytes, ParseSize("--minbytes", text));
    case 'e':
      return set(options.max_bytes, ParseSize("--maxbytes", text));
    case 'i':
      return set(options.step_bytes, ParseSize("--stepbytes", text));
    case 'f':
      return set(options.step_factor, ParseSize("--stepfactor", text));
    case 'n':
      return set(options.iterations, ParseCount("--iters", text, 1, kMaxRepeats));
    case 'w':
      return set(options.warmup, ParseCount("--warmup_iters", text, 0, kMaxRepeats));
    case 'd':
      options.type = text;
      return absl::OkStatus();
    case 'c':
      options.check = true;
      return absl::OkStatus();
    case kRedopOption:
      options.redop = text;
      return absl::OkStatus();
    case 't':
      return set(options.stats, ParseStats(text));
    case kSeedOption:
      return set(options.seed, ParseCount("--seed", text, 0, std::numeric_limits<int>::max()));
    case kShowAlgorithmOption:
      options.show_algorithm = true;
      return absl::OkStatus();
    case kShowSizesOption:
      options.show_sizes = true;
      return absl::OkStatus();
    case kNonInteractiveOption:  // there is no progress indicator anyway
      return absl::OkStatus();
    case kReportOption:
      options.json_report = text;
      return absl::OkStatus();
    default:
      options.help = true;
      return absl::OkStatus();
  }
}

std::size_t ElementBytes(std::string_view type) {
  if (type.ends_with("8") || type.starts_with("fp8")) return 1;
  return type.ends_with("16") ? 2 : 4;
}

// Bytes on the busiest rank's wire per byte of the buffer (NCCL tests' "bus bandwidth", which
// nccom-test takes over).
double BusFactor(std::string_view operation, int ranks) {
  for (const std::string_view whole : {"sendrecv", "permute", "broadcast"}) {
    if (operation == whole) return 1;
  }
  const double share = static_cast<double>(ranks - 1) / ranks;
  return operation.starts_with("allr") || operation.starts_with("all_r") ? 2 * share : share;
}

struct Row {
  std::uint64_t bytes = 0;
  std::uint64_t count = 0;
  std::uint64_t input_bytes = 0;   // of a rank
  std::uint64_t output_bytes = 0;  // of a rank
  double time_us = 0;
  double algorithm_bandwidth = 0;  // GiB/s
  double bus_bandwidth = 0;        // GiB/s
  std::string algorithm;
  std::uint64_t wrong = 0;
};

// What a rank puts into an operation on `bytes` and gets out of it.
std::pair<std::uint64_t, std::uint64_t> InAndOut(std::string_view operation, std::uint64_t bytes,
                                                 int ranks) {
  const std::uint64_t share = bytes / static_cast<std::uint64_t>(ranks);
  if (operation.starts_with("allg") || operation.starts_with("all_g")) return {share, bytes};
  if (operation.starts_with("red")) return {bytes, share};
  return {bytes, bytes};
}

Row MakeRow(const NccomOptions& options, std::uint64_t bytes, int ranks, const NccomRun& run) {
  Row row{.bytes = bytes,
          .count = bytes / ElementBytes(options.type),
          .time_us = static_cast<double>(run.time_ps) / 1e6,
          .algorithm = run.algorithm,
          .wrong = run.wrong_elements};
  std::tie(row.input_bytes, row.output_bytes) = InAndOut(options.operation, bytes, ranks);
  if (run.time_ps > 0) {
    row.algorithm_bandwidth = static_cast<double>(bytes) / kGiB / (row.time_us / 1e6);
    row.bus_bandwidth = row.algorithm_bandwidth * BusFactor(options.operation, ranks);
  }
  return row;
}

struct Column {
  std::string title;
  int width;
  Json value;  // a number with a fraction is printed with two digits of it
};

// Of AWS's tool, in its order.
std::vector<Column> ColumnsOf(const NccomOptions& options, const Row& row) {
  std::vector<Column> columns = {{"size(B)", 16, row.bytes}, {"count(elems)", 16, row.count}};
  if (options.show_sizes) {
    columns.push_back({"total_input_size(B)", 23, row.input_bytes});
    columns.push_back({"total_output_size(B)", 24, row.output_bytes});
  }
  columns.push_back({"type", 9, options.type});
  for (const std::string& stat : options.stats) {
    columns.push_back({fmt::format("time:{}(us)", stat), 16, row.time_us});
  }
  columns.push_back({"algbw(GB/s)", 15, row.algorithm_bandwidth});
  columns.push_back({"busbw(GB/s)", 15, row.bus_bandwidth});
  if (options.show_algorithm) columns.push_back({"algorithm", 13, row.algorithm});
  return columns;
}

void PrintHeader(const NccomOptions& options, std::ostream& out) {
  for (const Column& column : ColumnsOf(options, {})) {
    out << fmt::format("{:>{}}", column.title, column.width);
  }
  out << "\n";
}

void PrintRow(const NccomOptions& options, const Row& row, std::ostream& out) {
  for (const auto& [title, width, value] : ColumnsOf(options, row)) {
    if (value.is_number_float()) {
      out << fmt::format("{:>{}.2f}", value.get<double>(), width);
    } else if (value.is_string()) {
      out << fmt::format("{:>{}}", value.get<std::string>(), width);
    } else {
      out << fmt::format("{:>{}}", value.get<std::uint64_t>(), width);
    }
  }
  out << "\n" << std::flush;
  if (row.wrong != 0) out << fmt::format("{} elements are wrong\n", row.wrong) << std::flush;
}

double AverageBus(const std::vector<Row>& rows) {
  double sum = 0;
  for (const Row& row : rows) sum += row.bus_bandwidth;
  return rows.empty() ? 0 : sum / static_cast<double>(rows.size());
}

absl::Status WriteReport(const NccomOptions& options, const std::vector<Row>& rows) {
  Json results = Json::array();
  for (const Row& row : rows) {
    Json result = {{"wrong_elements", row.wrong}};
    for (const Column& column : ColumnsOf(options, row)) result[column.title] = column.value;
    results.push_back(std::move(result));
  }
  const Json report = {{"results", results}, {"avg_bus_bandwidth(GB/s)", AverageBus(rows)}};
  std::ofstream file(options.json_report);
  file << report.dump(2) << "\n";
  file.close();
  if (!file) return Unavailable("cannot write {}", options.json_report);
  return absl::OkStatus();
}

// Cores of this pod, when a total was asked for.
absl::StatusOr<int> CoresOfPod(const NccomOptions& options, const NccomPlace& place) {
  if (options.nodes != 0 && options.nodes != place.world_size) {
    return InvalidArgument("--nnodes is {}, but the gang has {} pods", options.nodes,
                           place.world_size);
  }
  if (options.workers % place.world_size != 0) {
    return InvalidArgument("--nworkers is {}; expected a multiple of the {} pods", options.workers,
                           place.world_size);
  }
  return options.workers / place.world_size;
}

absl::StatusOr<std::vector<Row>> RunSizes(const NccomOptions& options, const NccomPlace& place,
                                          NccomNode& node, std::ostream& out) {
  TAHOMA_ASSIGN_OR_RETURN(const std::vector<std::uint64_t> sizes, NccomSizes(options));
  TAHOMA_ASSIGN_OR_RETURN(const int cores, CoresOfPod(options, place));
  TAHOMA_ASSIGN_OR_RETURN(const NccomJoined joined, node.Join(place, cores));
  if (place.rank == 0) PrintHeader(options, out);
  std::vector<Row> rows;
  for (const std::uint64_t bytes : sizes) {
    const auto run = node.Run(place, options, bytes);
    if (!run.ok()) {
      node.Leave(place);
      return Annotate(run.status(), fmt::format("{} of {} bytes", options.operation, bytes));
    }
    rows.push_back(MakeRow(options, bytes, joined.ranks, *run));
    if (place.rank == 0) PrintRow(options, rows.back(), out);
  }
  node.Leave(place);
  if (place.rank == 0) {
    out << fmt::format("Avg bus bandwidth:      {:.4f}GB/s\n", AverageBus(rows));
  } else {
    out << fmt::format(
        "rank {} of {}: {} sizes over {} workers on {} chips; rank 0 prints the table\n",
        place.rank, place.world_size, rows.size(), joined.ranks, joined.chips);
  }
  return rows;
}

}  // namespace

absl::StatusOr<std::uint64_t> ParseBytes(std::string_view text) {
  std::uint64_t value = 0;
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, value);
  std::string unit(end, last);
  std::transform(unit.begin(), unit.end(), unit.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  const int shift = unit.empty() || unit == "b"   ? 0
                    : unit == "k" || unit == "kb" ? 10
                    : unit == "m" || unit == "mb" ? 20
                    : unit == "g" || unit == "gb" ? 30
                                                  : -1;
  if (error != std::errc{} || shift < 0 || value == 0 ||
      value > (std::uint64_t{1} << 40) >> shift) {
    return InvalidArgument("\"{}\" is no size; expected for example 8, 1K, 64MB or 1G", text);
  }
  return value << shift;
}

absl::StatusOr<NccomOptions> ParseNccomArguments(const std::vector<std::string>& arguments) {
  std::vector<std::string> words = {"nccom-test"};
  const std::vector<std::string> given = WithStatsJoined(arguments);
  words.insert(words.end(), given.begin(), given.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const int argc = static_cast<int>(words.size());
  NccomOptions options;
  optind = 0;  // glibc: start anew
  opterr = 0;  // we write the message
  int choice = 0;
  while ((choice = getopt_long(argc, argv.data(), ":r:N:b:e:i:f:n:w:d:t:ch", kLongOptions.data(),
                               nullptr)) != -1) {
    const std::string_view word = argv[static_cast<std::size_t>(optind - 1)];
    if (choice == '?') return InvalidArgument("unknown option {}; see --help", word);
    if (choice == ':') return InvalidArgument("{} needs a value", word);
    TAHOMA_RETURN_IF_ERROR(Apply(choice, optarg != nullptr ? optarg : "", options));
  }
  if (options.help) return options;
  if (optind != argc - 1) {
    return InvalidArgument("expected one operation (allr, allg, redsct, ...), got {}; see --help",
                           argc - optind);
  }
  options.operation = argv[static_cast<std::size_t>(optind)];
  return options;
}

std::string NccomHelp() {
  return R"(nccom-test OPERATION [options]

OPERATION: all_reduce (allr), all_gather (allg), reduce_scatter (redsct), all_to_all (alltoall),
           sendrecv (each rank to the next, the last to the first), permute (from chip to chip round
           a ring of links), broadcast (from rank 0)

  -r, --nworkers N        workers (logical cores) in all; default: all of the claim
  -N, --nnodes N          pods; must be the size of the gang
  -b, --minbytes SIZE     first size, default 32M
  -e, --maxbytes SIZE     last size, default 32M
  -i, --stepbytes SIZE    added from size to size; default: a tenth of the range
  -f, --stepfactor N      multiplies from size to size
  -n, --iters N           operations measured, default 20
  -w, --warmup_iters N    operations before, default 5
  -d, --datatype TYPE     uint8 int8 fp8_e3m4 fp8_e4m3 fp8_e5m2 uint16 int16 fp16 bf16 uint32 int32
                          fp32, default uint8
  -c, --check             move real data and compare every element
      --seed N            of the checked data; default: the size
      --redop OP          sum, max or min, default sum
  -t, --stats STATS       of the times: avg and percentiles, for example avg p50 p99. Virtual time
                          has no noise, so all of them are the same
      --show-algorithm    a column for it
      --show-input-output-size
                          columns for the bytes that a rank puts in and gets out
      --non-interactive   accepted; there is no progress indicator
      --report-to-json-file FILE

GB/s columns count 1073741824 bytes, as AWS's tool does. Environment: TAHOMA_NODE_SOCKET,
TAHOMA_CLAIM_TOKEN, TAHOMA_RANK, TAHOMA_WORLD_SIZE, TAHOMA_COMM_ID or NEURON_RT_ROOT_COMM_ID.
)";
}

absl::StatusOr<std::vector<std::uint64_t>> NccomSizes(const NccomOptions& options) {
  if (options.min_bytes > options.max_bytes) {
    return InvalidArgument("--minbytes {} is more than --maxbytes {}", options.min_bytes,
                           options.max_bytes);
  }
  if (options.step_factor == 1) return InvalidArgument("--stepfactor is 1; expected 2 or more");
  const std::uint64_t step =
      options.step_bytes != 0
          ? options.step_bytes
          : std::max<std::uint64_t>((options.max_bytes - options.min_bytes) / 10, 1);
  std::vector<std::uint64_t> sizes;
  const std::size_t element = ElementBytes(options.type);
  for (std::uint64_t bytes = options.min_bytes; bytes <= options.max_bytes;
       bytes = options.step_factor != 0 ? bytes * options.step_factor : bytes + step) {
    if (sizes.size() == kMaxSizes) {
      return InvalidArgument("more than {} sizes; take larger steps", kMaxSizes);
    }
    const std::uint64_t whole = std::max<std::uint64_t>(bytes / element, 1) * element;
    if (sizes.empty() || sizes.back() != whole) sizes.push_back(whole);
  }
  return sizes;
}

int RunNccomTest(const NccomOptions& options, const NccomPlace& place, NccomNode& node,
                 std::ostream& out, std::ostream& err) {
  const auto rows = RunSizes(options, place, node, out);
  absl::Status status = rows.status();
  if (status.ok() && !options.json_report.empty() && place.rank == 0) {
    status = WriteReport(options, *rows);
  }
  if (!status.ok()) {
    err << fmt::format("nccom-test: rank {}: {}\n", place.rank, Message(status));
    return 1;
  }
  const bool wrong =
      std::any_of(rows->begin(), rows->end(), [](const Row& row) { return row.wrong != 0; });
  if (wrong) err << "nccom-test: the check failed\n";
  return wrong ? 1 : 0;
}

}  // namespace tahoma::sim
