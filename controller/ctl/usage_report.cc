#include "controller/ctl/usage_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <string_view>
#include <tuple>
#include <utility>

#include "controller/ctl/table.h"
#include "controller/reserve/block.h"
#include "lib/base/json.h"
#include "lib/kube/object.h"

namespace tahoma::controller {
namespace {

// Chip-milliseconds by use, in the order of the columns.
std::array<std::pair<std::string_view, std::int64_t>, 5> TimesOf(const UsageLine& line) {
  return {{{"bought", line.bought},
           {"used", line.chip_ms.used},
           {"lent", line.chip_ms.lent},
           {"idle", line.chip_ms.idle},
           {"lost", line.chip_ms.lost}}};
}

void Add(const UsageLine& line, UsageLine& sum) {
  sum.count += 1;  // of a sum: its blocks
  sum.fee += line.fee;
  sum.bought += line.bought;
  sum.chip_ms += line.chip_ms;
}

std::string Utilization(const UsageLine& line) {
  return UtilizationText({.chip_ms = line.chip_ms});
}

// Returns the chip-milliseconds of "1536.00" chip-hours; 0 for text that is no number.
std::int64_t ParseHours(std::string_view text) {
  double hours = 0;
  std::from_chars(text.data(), text.data() + text.size(), hours);
  return std::llround(hours * static_cast<double>(kChipMsOfHour));
}

void Sort(std::vector<UsageLine>& lines) {
  std::ranges::sort(lines, [](const UsageLine& a, const UsageLine& b) {
    return std::tie(a.ns, a.start, a.name) < std::tie(b.ns, b.start, b.name);
  });
}

// Adds the cells that lines and sums share.
void AddNumbers(const UsageLine& line, std::vector<std::string>& cells) {
  cells.push_back(line.fee.ToString());
  for (const auto& [use, chip_ms] : TimesOf(line)) cells.push_back(HoursText(chip_ms));
  cells.push_back(Utilization(line));
}

std::vector<std::string> CellsOf(const UsageLine& line) {
  std::vector<std::string> cells = {
      line.ns, line.name, line.state, line.type, std::to_string(line.count), line.start, line.end};
  AddNumbers(line, cells);
  return cells;
}

std::vector<std::string> CellsOfSum(const std::string& of, const UsageLine& sum) {
  std::vector<std::string> cells = {of, fmt::format("{} blocks", sum.count), "", "", "", "", ""};
  AddNumbers(sum, cells);
  return cells;
}

// A field of RFC 4180.
std::string Quoted(const std::string& cell) {
  if (cell.find_first_of(",\"\r\n") == std::string::npos) return cell;
  std::string quoted = "\"";
  for (const char c : cell) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + '"';
}

Json NumbersJson(const UsageLine& line) {
  Json hours = Json::object();
  for (const auto& [use, chip_ms] : TimesOf(line)) hours[std::string(use)] = HoursText(chip_ms);
  return {{"upfrontFee", line.fee.ToString()},
          {"currencyCode", "USD"},
          {"chipHours", std::move(hours)},
          {"utilization", Utilization(line)}};
}

}  // namespace

std::optional<UsageLine> UsageLineOf(const Json& object) {
  const auto text = [&](const char* field) {
    return std::string(kube::StringAt(object, {"status", field}));
  };
  const auto state = ParseState(text("state"));
  if (!state || *state == BlockState::kPaymentFailed || *state == BlockState::kFailed) {
    return std::nullopt;
  }
  UsageLine line{.ns = std::string(kube::StringAt(object, {"metadata", "namespace"})),
                 .name = std::string(kube::StringAt(object, {"metadata", "name"})),
                 .state = text("state"),
                 .type = text("ultraserverType"),
                 .count = kube::IntAt(object, {"status", "count"}),
                 .start = text("startDate"),
                 .end = text("endDate"),
                 .fee = ParseMoney(text("upfrontFee")).value_or(Money{})};
  if (line.type.empty()) line.type = text("instanceType");
  const auto hours = [&](std::string_view use) {
    return ParseHours(kube::StringAt(object, {"status", "usage", "chipHours", use}));
  };
  line.bought = hours("bought");
  line.chip_ms = {
      .used = hours("used"), .lent = hours("lent"), .idle = hours("idle"), .lost = hours("lost")};
  return line;
}

std::string UsageTable(std::vector<UsageLine> lines) {
  if (lines.empty()) return "No Capacity Blocks.\n";
  Sort(lines);
  std::vector<std::vector<std::string>> rows = {{"NAMESPACE", "NAME", "STATE", "TYPE", "COUNT",
                                                 "START", "END", "FEE", "BOUGHT", "USED", "LENT",
                                                 "IDLE", "LOST", "UTILIZATION"}};
  UsageLine all;
  for (auto first = lines.begin(); first != lines.end();) {
    UsageLine sum;
    const std::string& ns = first->ns;
    auto line = first;
    for (; line != lines.end() && line->ns == ns; ++line) {
      rows.push_back(CellsOf(*line));
      Add(*line, sum);
      Add(*line, all);
    }
    if (line - first > 1) rows.push_back(CellsOfSum(ns, sum));
    first = line;
  }
  if (lines.front().ns != lines.back().ns) rows.push_back(CellsOfSum("all", all));
  return TableText(rows);
}

std::string UsageCsv(std::vector<UsageLine> lines) {
  Sort(lines);
  std::string text =
      "namespace,name,state,type,count,startDate,endDate,upfrontFee,bought,used,lent,idle,lost,"
      "utilization\r\n";
  for (const UsageLine& line : lines) {
    std::string row;
    for (const std::string& cell : CellsOf(line)) row += (row.empty() ? "" : ",") + Quoted(cell);
    text += row + "\r\n";
  }
  return text;
}

Json UsageJson(std::vector<UsageLine> lines) {
  Sort(lines);
  Json rows = Json::array();
  UsageLine all;
  for (const UsageLine& line : lines) {
    Json row = NumbersJson(line);
    row["namespace"] = line.ns;
    row["name"] = line.name;
    row["state"] = line.state;
    row["type"] = line.type;
    row["count"] = line.count;
    row["startDate"] = line.start;
    row["endDate"] = line.end;
    rows.push_back(std::move(row));
    Add(line, all);
  }
  return {{"capacityBlocks", std::move(rows)}, {"total", NumbersJson(all)}};
}

}  // namespace tahoma::controller
