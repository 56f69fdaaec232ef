#include "controller/ctl/queue_tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "controller/core/facts/queue_object.h"
#include "controller/ctl/admin_reader.h"
#include "controller/ctl/fleet_reader.h"
#include "controller/ctl/promise_list.h"
#include "controller/ctl/table.h"
#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/kube/object.h"
#include "lib/kube/url.h"

namespace tahoma::controller {
namespace {

using Row = std::vector<std::string>;

// Deeper queues are not moved to the right any more.
constexpr std::size_t kIndentMost = 20;
constexpr std::int64_t kChipsMost = 100'000'000;  // of the definition

std::int64_t SumAt(const Json& object, std::initializer_list<std::string_view> path) {
  const Json* chips = kube::ValueAt(object, path);
  std::int64_t sum = 0;
  if (chips == nullptr || !chips->is_object()) return sum;
  for (const auto& [type, count] : chips->items()) {
    if (!count.is_number_integer()) continue;
    sum += std::clamp<std::int64_t>(count.get<std::int64_t>(), 0, kChipsMost);
  }
  return sum;
}

// Returns the chips as in force now, or without a status those of the queue's own.
std::int64_t GuaranteedOf(const Json& queue) {
  const bool shown = kube::ValueAt(queue, {"status", "guaranteedChips"}) != nullptr;
  return shown ? kube::IntAt(queue, {"status", "guaranteedChips"})
               : SumAt(queue, {"spec", "guaranteed"});
}

// Returns "Ready", the reason why the queue is not, or how it is stopped.
std::string StateOf(const Json& queue) {
  for (const Json& condition : kube::ListAt(queue, {"status", "conditions"})) {
    if (kube::StringAt(condition, {"type"}) != "Ready") continue;
    if (kube::StringAt(condition, {"status"}) != "True") {
      return std::string(kube::StringAt(condition, {"reason"}));
    }
    const std::string_view stop = kube::StringAt(queue, {"spec", "stop"});
    return std::string(stop.empty() ? "Ready" : stop);
  }
  return "";
}

std::string MessageOf(const Json& queue) {
  for (const Json& condition : kube::ListAt(queue, {"status", "conditions"})) {
    if (kube::StringAt(condition, {"type"}) == "Ready") {
      return std::string(kube::StringAt(condition, {"message"}));
    }
  }
  return "";
}

// Returns "trn2.48xlarge=48".
std::string HeldByType(const Json& queue) {
  std::string text;
  for (const Json& held : kube::ListAt(queue, {"status", "held"})) {
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", kube::StringAt(held, {"instanceType"}),
                        kube::IntAt(held, {"chips"}));
  }
  return text;
}

Row RowOf(const Json& queue, std::size_t depth, QueueColumns columns) {
  const auto number = [&](const char* field) {
    return std::to_string(kube::IntAt(queue, {"status", field}));
  };
  const std::int64_t place = kube::IntAt(queue, {"status", "place"});
  const bool limited = kube::ValueAt(queue, {"spec", "limit"}) != nullptr;
  Row row = {std::string(2 * std::min(depth, kIndentMost), ' ') + std::string(kube::NameOf(queue)),
             std::to_string(kube::IntAt(queue, {"spec", "weight"})),
             fmt::format("{}%", number("sharePercent")),
             fmt::format("{}%", number("usedSharePercent")),
             number("heldChips"),
             std::to_string(GuaranteedOf(queue)),
             limited ? std::to_string(SumAt(queue, {"spec", "limit"})) : "",
             number("waiting"),
             number("running"),
             place == 0 ? "" : std::to_string(place),
             StateOf(queue)};
  if (columns == QueueColumns::kWide) {
    row.insert(row.end(),
               {number("usedChipHours"), HeldByType(queue),
                fmt::format("{}", fmt::join(kube::StringsAt(queue, {"spec", "namespaces"}), ",")),
                MessageOf(queue)});
  }
  return row;
}

// The queues by name, and of each the queues below.
struct Tree {
  std::map<std::string, const Json*> queues;
  std::map<std::string, std::vector<std::string>> below;  // by parent, in falling order
};

// Adds the queue's row and those of all queues below that have none yet.
void AddRows(const Tree& tree, const std::string& top, QueueColumns columns,
             std::set<std::string>& shown, std::vector<Row>& rows) {
  std::vector<std::pair<std::string, std::size_t>> open = {{top, 0}};
  while (!open.empty()) {
    const auto [name, depth] = std::move(open.back());
    open.pop_back();
    if (!shown.insert(name).second) continue;
    rows.push_back(RowOf(*tree.queues.at(name), depth, columns));
    const auto below = tree.below.find(name);
    if (below == tree.below.end()) continue;
    for (const std::string& child : below->second) open.emplace_back(child, depth + 1);
  }
}

// Returns a line for each instance type that the queue has a number of.
std::string ChipLines(const Json& queue) {
  std::string text;
  for (const std::string& type : QueueTypesOf(queue)) {
    const Json* limit = kube::ValueAt(queue, {"limit", type});
    const std::int64_t borrowed = kube::IntAt(queue, {"borrowed", type});
    text += fmt::format("  {}: {} chips held", type, kube::IntAt(queue, {"held", type}));
    if (borrowed > 0) text += fmt::format(", {} of them borrowed", borrowed);
    text += fmt::format(", {} guaranteed", kube::IntAt(queue, {"guaranteed", type}));
    if (limit != nullptr) text += fmt::format(", at most {}", kube::IntAt(queue, {"limit", type}));
    text += '\n';
  }
  return text;
}

}  // namespace

std::set<std::string> QueueTypesOf(const Json& queue) {
  std::set<std::string> types;
  for (const char* field : {"guaranteed", "limit", "held"}) {
    const Json* chips = kube::ValueAt(queue, {field});
    if (chips == nullptr || !chips->is_object()) continue;
    for (const auto& [type, count] : chips->items()) types.insert(type);
  }
  return types;
}

absl::StatusOr<Json> ListQueues(kube::Transport& transport) {
  Json list = {{"apiVersion", "v1"}, {"kind", "List"}, {"items", Json::array()}};
  TAHOMA_RETURN_IF_ERROR(ReadAll(transport, kQueues, [&](const Json& object) {
    Json queue = object;
    queue["apiVersion"] = kQueues.group + "/" + kQueues.version;
    queue["kind"] = "Queue";
    list["items"].push_back(std::move(queue));
  }));
  return list;
}

std::string QueueTreeText(const Json& list, QueueColumns columns) {
  Tree tree;
  for (const Json& queue : kube::ListAt(list, {"items"})) {
    tree.queues.emplace(kube::NameOf(queue), &queue);
  }
  for (auto queue = tree.queues.rbegin(); queue != tree.queues.rend(); ++queue) {
    tree.below[std::string(kube::StringAt(*queue->second, {"spec", "parent"}))].push_back(
        queue->first);
  }
  std::vector<Row> rows = {{"NAME", "WEIGHT", "SHARE", "USED", "HELD", "GUARANTEED", "LIMIT",
                            "WAITING", "RUNNING", "NEXT", "STATE"}};
  if (columns == QueueColumns::kWide) {
    rows[0].insert(rows[0].end(), {"CHIP-HOURS", "HELD-BY-TYPE", "NAMESPACES", "MESSAGE"});
  }
  std::set<std::string> shown;
  for (const auto& [name, queue] : tree.queues) {
    const std::string parent(kube::StringAt(*queue, {"spec", "parent"}));
    if (!tree.queues.contains(parent)) AddRows(tree, name, columns, shown, rows);
  }
  for (const auto& [name, queue] : tree.queues) AddRows(tree, name, columns, shown, rows);
  return TableText(rows);
}

absl::StatusOr<QueueRead> ReadQueue(kube::Transport& admin, const std::string& name) {
  const std::string path = "/v1/queues/" + kube::PercentEncode(name);
  QueueRead read;
  TAHOMA_ASSIGN_OR_RETURN(Json queue, AskAdmin(admin, {.target = path}));
  TAHOMA_ASSIGN_OR_RETURN(Json gangs, AskAdmin(admin, {.target = path + "/gangs"}));
  read.queue = std::make_shared<const Json>(std::move(queue));
  read.gangs = std::make_shared<const Json>(std::move(gangs));
  return read;
}

std::string QueueText(const QueueRead& read) {
  const Json& queue = *read.queue;
  const auto text_of = [&](const char* field) { return kube::StringAt(queue, {field}); };
  const auto number = [&](const char* field) { return kube::IntAt(queue, {field}); };
  const std::string_view parent = text_of("parent"), stop = text_of("stop");
  std::string text = fmt::format("Queue {}{}: {}{}{}\n", text_of("name"),
                                 parent.empty() ? "" : fmt::format(" in {}", parent),
                                 text_of("reason"), stop.empty() ? "" : ", stopped: ", stop);
  if (!text_of("message").empty()) text += fmt::format("  {}\n", text_of("message"));
  if (!kube::BoolAt(queue, {"object"})) text += "  there is no Queue of this name\n";
  text += fmt::format("  weight {}: {} % of what siblings use is wanted, {} % was used\n",
                      number("weight"), number("sharePercent"), number("usedSharePercent"));
  text += ChipLines(queue);
  if (!text_of("period").empty()) text += fmt::format("  by QueueCalendar {}\n", text_of("period"));
  text += fmt::format("  {} gangs wait, {} run, here and in queues below", number("waiting"),
                      number("running"));
  if (number("place") != 0) text += fmt::format("; place {} among siblings", number("place"));
  text += '\n';
  const Json& gangs = kube::ListAt(*read.gangs, {"gangs"});
  if (gangs.empty()) return text;
  std::vector<Row> rows = {
      {"PLACE", "NAMESPACE", "NAME", "PRIORITY", "SINCE", "START", "REASON", "MESSAGE"}};
  for (const Json& gang : gangs) {
    const auto cell = [&](const char* field) { return std::string(kube::StringAt(gang, {field})); };
    const Json* promise = kube::ValueAt(gang, {"promise"});
    const std::string start = promise == nullptr ? "" : StartOf(*promise);
    rows.push_back({std::to_string(rows.size()), cell("namespace"), cell("name"),
                    std::to_string(kube::IntAt(gang, {"priority"})), cell("since"), start,
                    cell("reason"), cell("message")});
  }
  text += "\n" + TableText(rows);
  if (kube::ValueAt(*read.gangs, {"next"}) != nullptr) text += "… and more\n";
  return text;
}

Json QueueJson(const QueueRead& read) {
  return {{"queue", *read.queue}, {"gangs", kube::ListAt(*read.gangs, {"gangs"})}};
}

}  // namespace tahoma::controller
