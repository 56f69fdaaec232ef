#include "controller/replay/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <iterator>

namespace tahoma::controller {
namespace {

std::string ValueText(const MeasureRow& row) {
  return row.value ? fmt::format("{:.{}f}", *row.value, row.digits) : "-";
}

// Quotes a cell where CSV needs it.
std::string Cell(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) {
    quoted += c;
    if (c == '"') quoted += c;
  }
  return quoted + "\"";
}

std::string TimeText(const std::optional<WallTime>& time) { return time ? FormatTime(*time) : ""; }

std::size_t WidthOf(const std::string& text) {
  return static_cast<std::size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xc0U) != 0x80U; }));
}

}  // namespace

std::string TextReport(const std::vector<ReplayMeasures>& policies) {
  std::vector<std::vector<std::string>> rows = {{""}};
  for (const ReplayMeasures& policy : policies) {
    rows.front().push_back(policy.policy);
    const std::vector<MeasureRow> measured = RowsOf(policy);
    rows.resize(measured.size() + 1);
    for (std::size_t i = 0; i < measured.size(); ++i) {
      if (rows[i + 1].empty()) rows[i + 1].push_back(measured[i].label);
      rows[i + 1].push_back(ValueText(measured[i]));
    }
  }
  std::vector<std::size_t> widths(rows.front().size());
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], WidthOf(row[i]));
  }
  std::string text;
  for (const auto& row : rows) {
    text += row[0] + std::string(widths[0] - WidthOf(row[0]), ' ');
    for (std::size_t i = 1; i < row.size(); ++i) {
      text += std::string(widths[i] - WidthOf(row[i]) + 3, ' ') + row[i];
    }
    text += '\n';
  }
  return text;
}

std::string CsvReport(const std::vector<ReplayMeasures>& policies) {
  std::string header = "measure";
  std::vector<std::string> lines;
  for (const ReplayMeasures& policy : policies) {
    header += "," + policy.policy;
    const std::vector<MeasureRow> measured = RowsOf(policy);
    lines.resize(measured.size());
    for (std::size_t i = 0; i < measured.size(); ++i) {
      if (lines[i].empty()) lines[i] = measured[i].name;
      lines[i] += "," + (measured[i].value ? ValueText(measured[i]) : "");
    }
  }
  return fmt::format("{}\n{}\n", header, fmt::join(lines, "\n"));
}

std::string JsonReport(const std::vector<ReplayMeasures>& policies) {
  std::string text = "[";
  for (const ReplayMeasures& policy : policies) {
    text += fmt::format("{}\n  {{\"policy\": \"{}\"", text.size() == 1 ? "" : ",", policy.policy);
    for (const MeasureRow& row : RowsOf(policy)) {
      text += fmt::format(", \"{}\": {}", row.name, row.value ? ValueText(row) : "null");
    }
    text += "}";
  }
  return text + "\n]\n";
}

std::string CsvOfJobs(const Workload& workload, const std::vector<ReplayRun>& runs) {
  std::string text = "policy,job,queue,chips,submit,start,end,waitSeconds,lost,ended\n";
  for (const ReplayRun& run : runs) {
    for (std::size_t i = 0; i < run.outcomes.size(); ++i) {
      const JobOutcome& outcome = run.outcomes[i];
      const ReplayJob& job = workload.requests[i];
      const std::string wait =
          !outcome.end ? ""
                       : fmt::format("{}", std::chrono::floor<std::chrono::seconds>(
                                               *outcome.end - job.submitted - outcome.ran)
                                               .count());
      fmt::format_to(std::back_inserter(text), "{},{},{},{},{},{},{},{},{},{}\n",
                     NameOf(run.policy), Cell(workload.jobs[i].name), Cell(job.spec->queue),
                     job.chips, FormatTime(job.submitted), TimeText(outcome.first_start),
                     TimeText(outcome.end), wait, outcome.lost, outcome.ended);
    }
  }
  return text;
}

}  // namespace tahoma::controller
