#include "controller/model/fleet_summary_object.h"

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/kube/field.h"
#include "lib/kube/object.h"

namespace tahoma::controller {
namespace {

// docs/formats/topology.md has the format and its version.
constexpr int kFormat = 1;

constexpr std::array<std::pair<const char*, int LayerCounts::*>, 8> kCounts = {{
    {"nodes", &LayerCounts::nodes},
    {"notReady", &LayerCounts::not_ready},
    {"ultraServers", &LayerCounts::ultra_servers},
    {"chips", &LayerCounts::chips},
    {"free", &LayerCounts::free},
    {"held", &LayerCounts::held},
    {"broken", &LayerCounts::broken},
    {"wholeUnits", &LayerCounts::whole_domains},
}};

Json Encode(const LayerCounts& counts) {
  Json object = Json::object();
  for (const auto& [name, member] : kCounts) object[name] = counts.*member;
  return object;
}

// A number that no fleet has is an error.
int DecodeCount(const kube::Field& object, const char* name) {
  const kube::Field field = object.Required(name);
  const std::int64_t number = field.Int();
  if (number >= 0 && number <= std::numeric_limits<int>::max()) return static_cast<int>(number);
  field.Fail(fmt::format("{} is out of range", number));
  return 0;
}

LayerCounts DecodeCounts(const kube::Field& object) {
  LayerCounts counts;
  for (const auto& [name, member] : kCounts) counts.*member = DecodeCount(object, name);
  return counts;
}

absl::StatusOr<FleetSummary> DecodeSummary(std::string_view text) {
  const Json object = TryParseJson(text);
  if (!object.is_object()) return InvalidArgument("expected a JSON object");
  kube::Reading reading(object);
  const kube::Field root = reading.root();
  const int format = DecodeCount(root, "format");
  if (reading.status().ok() && format != kFormat) {
    return InvalidArgument("format {}: only {} is known", format, kFormat);
  }
  FleetSummary summary;
  for (const kube::Field row : root.Required("rows").Items(kSummaryRowsMax)) {
    summary.rows.push_back({.layers = row.Required("layers").Texts(), .counts = DecodeCounts(row)});
  }
  summary.rows_left_out = static_cast<std::size_t>(DecodeCount(root, "rowsLeftOut"));
  summary.all = DecodeCounts(root.Required("all"));
  if (!reading.status().ok()) return reading.status();
  return summary;
}

}  // namespace

Json FleetSummaryObject(const PublishedSummary& published) {
  Json rows = Json::array();
  for (const FleetSummary::Row& row : published.summary.rows) {
    Json object = Encode(row.counts);
    object["layers"] = row.layers;
    rows.push_back(std::move(object));
  }
  const Json summary = {{"format", kFormat},
                        {"rows", std::move(rows)},
                        {"rowsLeftOut", published.summary.rows_left_out},
                        {"all", Encode(published.summary.all)}};
  return {{"apiVersion", "v1"},
          {"kind", "ConfigMap"},
          {"metadata", {{"namespace", kSummaryNamespace}, {"name", kSummaryName}}},
          {"data", {{"made", FormatTime(published.made)}, {"summary", summary.dump()}}}};
}

absl::StatusOr<PublishedSummary> ParseFleetSummaryObject(const Json& object) {
  PublishedSummary published;
  absl::StatusOr<WallTime> made = ParseTime(kube::StringAt(object, {"data", "made"}));
  if (!made.ok()) return Annotate(made.status(), "data.made");
  published.made = *made;
  absl::StatusOr<FleetSummary> summary = DecodeSummary(kube::StringAt(object, {"data", "summary"}));
  if (!summary.ok()) return Annotate(summary.status(), "data.summary");
  published.summary = *std::move(summary);
  return published;
}

}  // namespace tahoma::controller
