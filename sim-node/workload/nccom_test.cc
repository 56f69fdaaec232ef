#include "sim-node/workload/nccom_test.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <ostream>
#include <tuple>
#include <utility>

#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/collective/operation.h"

namespace tahoma::sim {
namespace {

constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;

struct Row {
  std::uint64_t bytes = 0;
  std::uint64_t count = 0;
  std::uint64_t input_bytes = 0;   // of a rank
  std::uint64_t output_bytes = 0;  // of a rank
  double time_us = 0;
  double algorithm_bandwidth = 0;  // GiB/s
  double bus_bandwidth = 0;        // GiB/s
  double bound_us = 0;             // 0 where none is known
  std::string algorithm;
  std::uint64_t wrong = 0;
};

// Returns the bytes that a rank puts into an operation on `bytes`, and those that it gets out.
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
          .bound_us = static_cast<double>(run.bound_ps.value_or(0)) / 1e6,
          .algorithm = run.algorithm,
          .wrong = run.wrong_elements};
  std::tie(row.input_bytes, row.output_bytes) = InAndOut(options.operation, bytes, ranks);
  if (run.time_ps > 0) {
    row.algorithm_bandwidth = static_cast<double>(bytes) / kGiB / (row.time_us / 1e6);
    // Of what has no such name, alltoallv, ranks exchange as in an all-to-all.
    const auto operation = collective::ParseOperation(options.operation);
    row.bus_bandwidth =
        row.algorithm_bandwidth *
        collective::BusFactor(operation.value_or(collective::Operation::kAllToAll), ranks);
  }
  return row;
}

struct Column {
  std::string title;
  int width;
  Json value;  // a number with a fraction is printed with two digits of it
};

// Returns the columns of AWS's tool, in its order.
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
  if (options.show_bound) columns.push_back({"bound(us)", 13, row.bound_us});
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

// Returns this pod's share of the cores when a total was asked for.
absl::StatusOr<int> CoresOfPod(const NccomOptions& options, const CommPlace& place) {
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

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  if (!file) return Unavailable("cannot read {}", path);
  return text;
}

// Reads the file if one was asked for.
template <typename Parse, typename Into>
absl::Status ReadInto(const std::string& path, const Parse& parse, Into& into) {
  if (path.empty()) return absl::OkStatus();
  TAHOMA_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  auto parsed = parse(text);
  if (!parsed.ok()) return Annotate(parsed.status(), path);
  into = *std::move(parsed);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Row>> RunSizes(const NccomOptions& options, const CommPlace& place,
                                          NccomNode& node, std::ostream& out) {
  TAHOMA_ASSIGN_OR_RETURN(const std::vector<std::uint64_t> sizes, NccomSizes(options));
  TAHOMA_ASSIGN_OR_RETURN(const int cores, CoresOfPod(options, place));
  TAHOMA_ASSIGN_OR_RETURN(NccomDivision division, ReadDivision(options));
  TAHOMA_ASSIGN_OR_RETURN(const CommJoined joined, node.Join(place, cores));
  if (options.data_parallel != 0) {
    auto groups = DataParallelGroups(joined.ranks, options.data_parallel);
    if (!groups.ok()) {
      node.Leave(place);
      return groups.status();
    }
    division.groups = *std::move(groups);
  }
  const int ranks =
      division.groups.empty() ? joined.ranks : static_cast<int>(division.groups[0].size());
  if (place.rank == 0) PrintHeader(options, out);
  std::vector<Row> rows;
  for (const std::uint64_t bytes : sizes) {
    const auto run = node.Run(place, options, division, bytes);
    if (!run.ok()) {
      node.Leave(place);
      return Annotate(run.status(), fmt::format("{} of {} bytes", options.operation, bytes));
    }
    rows.push_back(MakeRow(options, bytes, ranks, *run));
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

absl::StatusOr<NccomDivision> ReadDivision(const NccomOptions& options) {
  NccomDivision division;
  TAHOMA_RETURN_IF_ERROR(ReadInto(options.groups_file, ParseReplicaGroups, division.groups));
  TAHOMA_RETURN_IF_ERROR(ReadInto(options.pairs_file, ParseSourceTargetPairs, division.pairs));
  TAHOMA_RETURN_IF_ERROR(ReadInto(options.counts_file, ParseCounts, division.counts));
  return division;
}

int RunNccomTest(const NccomOptions& options, const CommPlace& place, NccomNode& node,
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
