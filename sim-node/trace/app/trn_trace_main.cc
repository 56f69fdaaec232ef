// The program trn-trace: prints how busy each link is, and writes the timeline and the picture.

#include <fmt/format.h>

#include <fstream>
#include <iostream>
#include <string>

#include "lib/base/status.h"
#include "lib/config/parse.h"
#include "sim-node/trace/formats.h"
#include "sim-node/trace/summary.h"
#include "sim-node/trace/trace_options.h"

namespace {

using namespace tahoma;

absl::Status WriteFile(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << text;
  file.close();
  return file ? absl::OkStatus() : Unavailable("cannot write {}", path);
}

absl::Status Run(const sim::TraceOptions& options) {
  if (options.max_bytes != 0) {
    TAHOMA_ASSIGN_OR_RETURN(const std::string table, sim::SweepOf(options));
    std::cout << table;
    return absl::OkStatus();
  }
  TAHOMA_ASSIGN_OR_RETURN(const sim::Traced traced, sim::TraceOf(options));
  if (options.output == "json") {
    std::cout << sim::JsonSummary(traced);
  } else {
    std::cout << traced.title << "\n"
              << fmt::format("algbw {:.2f} GB/s, busbw {:.2f} GB/s\n\n",
                             traced.answer.AlgorithmBandwidth(), traced.answer.BusBandwidth())
              << sim::HeatMapText(traced.use, traced.fabric);
  }
  if (!options.trace_file.empty()) {
    TAHOMA_RETURN_IF_ERROR(
        WriteFile(options.trace_file, sim::ChromeTrace(traced.use, traced.fabric, traced.title)));
  }
  if (options.svg_file.empty()) return absl::OkStatus();
  return WriteFile(options.svg_file, sim::HeatMapSvg(traced.use, traced.fabric, traced.title));
}

}  // namespace

int main(int argc, char** argv) {
  sim::TraceOptions options;
  const config::Spec spec = sim::DeclareTraceOptions(options);
  if (const auto exit = config::Parse(argc, argv, spec)) return *exit;
  const absl::Status status = Run(options);
  if (status.ok()) return 0;
  std::cerr << "trn-trace: " << Message(status) << "\n";
  return status.code() == absl::StatusCode::kInvalidArgument ? 2 : 1;
}
