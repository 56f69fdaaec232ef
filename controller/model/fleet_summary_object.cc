#include "controller/model/fleet_summary_object.h"

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include "lib/base/json.h"
#include "lib/base/status.h"

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

absl::StatusOr<int> DecodeCount(const Json& object, const char* name) {
  const Json* value = FindMember(object, name);
  if (value == nullptr || !value->is_number_integer()) {
    return InvalidArgument("{}: expected a number", name);
  }
  const auto number = value->get<std::int64_t>();
  if (number < 0 || number > std::numeric_limits<int>::max()) {
    return InvalidArgument("{}: {} is out of range", name, number);
  }
  return static_cast<int>(number);
}

absl::StatusOr<LayerCounts> DecodeCounts(const Json& object) {
  LayerCounts counts;
  for (const auto& [name, member] : kCounts) {
    TAHOMA_ASSIGN_OR_RETURN(counts.*member, DecodeCount(object, name));
  }
  return counts;
}

absl::StatusOr<FleetSummary::Row> DecodeRow(const Json& object) {
  FleetSummary::Row row;
  const Json* layers = FindMember(object, "layers");
  if (layers == nullptr || !layers->is_array()) {
    return InvalidArgument("layers: expected a list of names");
  }
  for (const Json& layer : *layers) {
    if (!layer.is_string()) return InvalidArgument("layers: expected a list of names");
    row.layers.push_back(layer.get<std::string>());
  }
  TAHOMA_ASSIGN_OR_RETURN(row.counts, DecodeCounts(object));
  return row;
}

absl::StatusOr<FleetSummary> DecodeSummary(std::string_view text) {
  const Json object = Json::parse(text, nullptr, false);
  if (!object.is_object()) return InvalidArgument("expected a JSON object");
  TAHOMA_ASSIGN_OR_RETURN(const int format, DecodeCount(object, "format"));
  if (format != kFormat) return InvalidArgument("format {}: only {} is known", format, kFormat);
  FleetSummary summary;
  const Json* rows = FindMember(object, "rows");
  if (rows == nullptr || !rows->is_array() || rows->size() > kSummaryRowsMax) {
    return InvalidArgument("rows: expected a list of at most {}", kSummaryRowsMax);
  }
  for (const Json& each : *rows) {
    absl::StatusOr<FleetSummary::Row> row = DecodeRow(each);
    if (!row.ok()) return Annotate(row.status(), fmt::format("rows[{}]", summary.rows.size()));
    summary.rows.push_back(*std::move(row));
  }
  TAHOMA_ASSIGN_OR_RETURN(const int left_out, DecodeCount(object, "rowsLeftOut"));
  summary.rows_left_out = static_cast<std::size_t>(left_out);
  const Json* all = FindMember(object, "all");
  absl::StatusOr<LayerCounts> counts = DecodeCounts(all == nullptr ? Json() : *all);
  if (!counts.ok()) return Annotate(counts.status(), "all");
  summary.all = *counts;
  return summary;
}

// The text at data[key]; empty when it is not there.
std::string_view DataAt(const Json& object, const char* key) {
  const Json* data = FindMember(object, "data");
  const Json* value = data == nullptr ? nullptr : FindMember(*data, key);
  if (value == nullptr || !value->is_string()) return {};
  return value->get_ref<const std::string&>();
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
  absl::StatusOr<WallTime> made = ParseTime(DataAt(object, "made"));
  if (!made.ok()) return Annotate(made.status(), "data.made");
  published.made = *made;
  absl::StatusOr<FleetSummary> summary = DecodeSummary(DataAt(object, "summary"));
  if (!summary.ok()) return Annotate(summary.status(), "data.summary");
  published.summary = *std::move(summary);
  return published;
}

}  // namespace tahoma::controller
