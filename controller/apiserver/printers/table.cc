#include "controller/apiserver/printers/table.h"

#include <fmt/format.h>

#include "controller/apiserver/printers/table_cells.h"
#include "controller/apiserver/printers/table_path.h"
#include "lib/base/json.h"
#include "lib/base/processor_budget.h"

namespace tahoma::controller::apiserver {
namespace {

// Several values of a column are printed as a list, as a real server does.
Json CellOf(const Column& column, const Json& object, WallTime now) {
  const std::vector<const Json*> found = FindPath(object, column.json_path);
  if (found.empty()) return nullptr;
  if (column.type == "date") return AgeOf(*found.front(), now);
  if (column.type == "integer" || column.type == "number" || column.type == "boolean") {
    return *found.front();
  }
  std::string text;
  for (const Json* value : found) {
    if (!text.empty()) text += ",";
    text += value->is_string() ? value->get<std::string>() : value->dump();
  }
  return text;
}

}  // namespace

std::string HumanAge(std::chrono::nanoseconds age) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(age).count();
  if (seconds < -1) return "<invalid>";
  if (seconds < 0) return "0s";
  if (seconds < 120) return fmt::format("{}s", seconds);
  // Two units while the first is small, then one; a second unit of zero is left out.
  const auto two = [](std::int64_t big, char b, std::int64_t small, char s) {
    return small == 0 ? fmt::format("{}{}", big, b) : fmt::format("{}{}{}{}", big, b, small, s);
  };
  const auto minutes = seconds / 60;
  if (minutes < 10) return two(minutes, 'm', seconds % 60, 's');
  if (minutes < 180) return fmt::format("{}m", minutes);
  const auto hours = minutes / 60;
  if (hours < 8) return two(hours, 'h', minutes % 60, 'm');
  if (hours < 48) return fmt::format("{}h", hours);
  const auto days = hours / 24;
  if (hours < 192) return two(days, 'd', hours % 24, 'h');
  if (days < 730) return fmt::format("{}d", days);
  if (days < 2920) return two(days / 365, 'y', days % 365, 'd');
  return fmt::format("{}y", days / 365);
}

Json TableColumns(const Kind& kind) {
  Json columns = Json::array();
  for (const Column& column : kind.columns) {
    columns.push_back({{"name", column.name},
                       {"type", column.type},
                       {"format", column.format},
                       {"description", column.description},
                       {"priority", column.priority}});
  }
  return columns;
}

Json PartialObjectMetadata(const Json& object) {
  return {{"kind", "PartialObjectMetadata"},
          {"apiVersion", "meta.k8s.io/v1"},
          {"metadata", object.value("metadata", Json::object())}};
}

Json TableRow(const Kind& kind, const Json& object, IncludeObject include, WallTime now) {
  ProcessorBudget::Spend(1 + kind.columns.size());
  Json cells = Json::array();
  if (kind.built_in) {
    for (Json& cell : BuiltInCells(kind, object, now)) cells.push_back(std::move(cell));
  } else {
    cells.push_back(object.value("/metadata/name"_json_pointer, ""));
    for (std::size_t i = 1; i < kind.columns.size(); ++i) {
      cells.push_back(CellOf(kind.columns[i], object, now));
    }
  }
  Json row = {{"cells", std::move(cells)}};
  if (include == IncludeObject::kMetadata) row["object"] = PartialObjectMetadata(object);
  if (include == IncludeObject::kObject) row["object"] = object;
  if (include == IncludeObject::kNone) row["object"] = nullptr;
  return row;
}

Json MakeTable(const Kind& kind, const std::vector<const Json*>& objects, const Json& list_metadata,
               IncludeObject include, WallTime now, bool with_columns) {
  Json metadata = Json::object();
  for (const char* field : {"resourceVersion", "continue", "remainingItemCount"}) {
    if (list_metadata.is_object() && list_metadata.contains(field)) {
      metadata[field] = list_metadata[field];
    }
  }
  Json rows = Json::array();
  for (const Json* object : objects) rows.push_back(TableRow(kind, *object, include, now));
  return {{"kind", "Table"},
          {"apiVersion", "meta.k8s.io/v1"},
          {"metadata", std::move(metadata)},
          {"columnDefinitions", with_columns ? TableColumns(kind) : Json(nullptr)},
          {"rows", std::move(rows)}};
}

}  // namespace tahoma::controller::apiserver
