#include "sim-node/workload/nccom_test.h"

#include <getopt.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <nlohmann/json.hpp>
#include <ostream>

#include "lib/base/status.h"

namespace tahoma::sim {
namespace {

using Json = nlohmann::json;

constexpr int kMaxRepeats = 1'000'000;
constexpr int kMaxWorkers = 512;  // logical cores of an UltraServer under LNC 1
constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;

constexpr int kRedopOption = 256;
constexpr int kReportOption = 257;
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
  double time_us = 0;
  double algorithm_bandwidth = 0;  // GiB/s
  double bus_bandwidth = 0;        // GiB/s
  std::string algorithm;
  std::uint64_t wrong = 0;
};

Row MakeRow(const NccomOptions& options, std::uint64_t bytes, int ranks, const NccomRun& run) {
  Row row{.bytes = bytes,
          .count = bytes / ElementBytes(options.type),
          .time_us = static_cast<double>(run.time_ps) / 1e6,
          .algorithm = run.algorithm,
          .wrong = run.wrong_elements};
  if (run.time_ps > 0) {
    row.algorithm_bandwidth = static_cast<double>(bytes) / kGiB / (row.time_us / 1e6);
    row.bus_bandwidth = row.algorithm_bandwidth * BusFactor(options.operation, ranks);
  }
  return row;
}

void PrintHeader(std::ostream& out) {
  out << fmt::format("{:>16}{:>16}{:>9}{:>16}{:>15}{:>15}{:>13}\n", "size(B)", "count(elems)",
                     "type", "time:avg(us)", "algbw(GB/s)", "busbw(GB/s)", "algorithm");
}

void PrintRow(const NccomOptions& options, const Row& row, std::ostream& out) {
  out << fmt::format("{:>16}{:>16}{:>9}{:>16.2f}{:>15.2f}{:>15.2f}{:>13}\n", row.bytes, row.count,
                     options.type, row.time_us, row.algorithm_bandwidth, row.bus_bandwidth,
                     row.algorithm)
      << std::flush;
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
    results.push_back({{"size(B)", row.bytes},
                       {"count(elems)", row.count},
                       {"type", options.type},
                       {"time:avg(us)", row.time_us},
                       {"algbw(GB/s)", row.algorithm_bandwidth},
                       {"busbw(GB/s)", row.bus_bandwidth},
                       {"algorithm", row.algorithm},
                       {"wrong_elements", row.wrong}});
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
  if (place.rank == 0) PrintHeader(out);
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
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const int argc = static_cast<int>(words.size());
  NccomOptions options;
  optind = 0;  // glibc: start anew
  opterr = 0;  // we write the message
  int choice = 0;
  while ((choice = getopt_long(argc, argv.data(), ":r:N:b:e:i:f:n:w:d:ch", kLongOptions.data(),
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
      --redop OP          sum, max or min, default sum
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
