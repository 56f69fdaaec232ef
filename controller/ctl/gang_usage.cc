#include "controller/ctl/gang_usage.h"

#include <fmt/format.h>

#include <charconv>
#include <map>
#include <tuple>
#include <utility>

#include "controller/ctl/table.h"
#include "controller/reserve/usage.h"
#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/kube/object.h"
#include "lib/kube/url.h"

namespace tahoma::controller {
namespace {

// More pages than the controller keeps queues for.
constexpr int kPagesMost = 1000;

double ParseChips(std::string_view text) {
  double chips = 0;
  std::from_chars(text.data(), text.data() + text.size(), chips);
  return chips;
}

GangUsageLine LineOf(const Json& row) {
  const auto text = [&](const char* field) { return std::string(kube::StringAt(row, {field})); };
  return {.ns = text("namespace"),
          .queue = text("queue"),
          .type = text("instanceType"),
          .chip_seconds = kube::IntAt(row, {"chipSeconds"}),
          .chips = ParseChips(text("chips"))};
}

// Adds up the lines that are the same but for what is summed over.
std::vector<GangUsageLine> SumsOf(const std::vector<GangUsageLine>& lines, UsageBy by,
                                  bool by_type) {
  std::map<std::tuple<std::string, std::string, std::string>, GangUsageLine> sums;
  for (const GangUsageLine& line : lines) {
    const std::string ns = by == UsageBy::kQueue ? "" : line.ns;
    const std::string queue = by == UsageBy::kNamespace ? "" : line.queue;
    const std::string type = by_type ? line.type : "";
    GangUsageLine& sum = sums[{ns, queue, type}];
    sum.ns = ns;
    sum.queue = queue;
    sum.type = type;
    sum.chip_seconds += line.chip_seconds;
    sum.chips += line.chips;
  }
  std::vector<GangUsageLine> summed;
  for (auto& [key, line] : sums) summed.push_back(std::move(line));
  return summed;
}

std::string Hours(const GangUsageLine& line) { return HoursText(line.chip_seconds * 1000); }

}  // namespace

absl::StatusOr<GangUsageRead> ReadGangUsage(kube::Transport& admin, const std::string& ns) {
  GangUsageRead read;
  std::string from;
  for (int page = 0; page < kPagesMost; ++page) {
    kube::Query query;
    if (!ns.empty()) query.emplace_back("namespace", ns);
    if (!from.empty()) query.emplace_back("from", from);
    const std::string asked = query.empty() ? "" : "?" + kube::EncodeQuery(query);
    const auto answer = admin.Send({.target = "/v1/usage" + asked});
    if (!answer.ok()) return Annotate(answer.status(), "the admin API");
    const auto body = answer->Json();
    if (answer->status != 200) {
      return Unavailable("the admin API answers {} to GET /v1/usage: {}", answer->status,
                         kube::StringAt(*body, {"detail"}));
    }
    const auto rows = body->find("usage");
    if (rows == body->end() || !rows->is_array()) {
      return DataLoss("the admin API's answer has no list \"usage\"");
    }
    read.as_of = kube::StringAt(*body, {"asOf"});
    for (const Json& row : *rows) read.lines.push_back(LineOf(row));
    from = kube::StringAt(*body, {"next"});
    if (from.empty()) return read;
  }
  return DataLoss("the admin API's answer does not end");
}

std::string GangUsageTable(const std::vector<GangUsageLine>& lines, UsageBy by, bool wide) {
  if (lines.empty()) return "No gang has held chips.\n";
  const std::vector<GangUsageLine> summed = SumsOf(lines, by, wide);
  const auto row = [&](const std::string& ns, const std::string& queue, const GangUsageLine& line) {
    std::vector<std::string> cells;
    if (by != UsageBy::kQueue) cells.push_back(ns);
    if (by != UsageBy::kNamespace)
      cells.push_back(by == UsageBy::kQueue && ns == "all" ? ns : queue);
    if (wide) cells.push_back(line.type);
    cells.push_back(Hours(line));
    cells.push_back(fmt::format("{:g}", line.chips));
    return cells;
  };
  std::vector<std::string> head;
  if (by != UsageBy::kQueue) head.emplace_back("NAMESPACE");
  if (by != UsageBy::kNamespace) head.emplace_back("QUEUE");
  if (wide) head.emplace_back("TYPE");
  head.insert(head.end(), {"CHIP-HOURS", "CHIPS-NOW"});
  std::vector<std::vector<std::string>> rows = {std::move(head)};
  GangUsageLine all;
  for (const GangUsageLine& line : summed) {
    rows.push_back(row(line.ns, line.queue, line));
    all.chip_seconds += line.chip_seconds;
    all.chips += line.chips;
  }
  if (summed.size() > 1) rows.push_back(row("all", "", all));
  return TableText(rows);
}

Json GangUsageJson(const std::vector<GangUsageLine>& lines, UsageBy by) {
  Json rows = Json::array();
  for (const GangUsageLine& line : SumsOf(lines, by, true)) {
    Json row = Json::object();
    if (by != UsageBy::kQueue) row["namespace"] = line.ns;
    if (by != UsageBy::kNamespace) row["queue"] = line.queue;
    row["instanceType"] = line.type;
    row["chipSeconds"] = line.chip_seconds;
    row["chipHours"] = Hours(line);
    row["chips"] = line.chips;
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace tahoma::controller
