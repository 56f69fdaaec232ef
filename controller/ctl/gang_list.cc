#include "controller/ctl/gang_list.h"

#include <algorithm>
#include <utility>

#include "controller/ctl/fleet_reader.h"
#include "controller/ctl/table.h"
#include "controller/model/gang.h"
#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/kube/answer.h"
#include "lib/kube/client.h"
#include "lib/kube/object.h"
#include "lib/kube/url.h"

namespace tahoma::controller {
namespace {

constexpr std::chrono::minutes kWatchFor{5};
constexpr std::chrono::minutes kSilenceMost{6};

std::string NumberAt(const Json& object, std::initializer_list<std::string_view> path) {
  const std::int64_t number = kube::IntAt(object, path);
  return number == 0 ? "" : std::to_string(number);
}

}  // namespace

GangTable::GangTable(GangColumns columns, bool with_namespace)
    : columns_(columns), with_namespace_(with_namespace) {}

std::vector<std::string> GangTable::Cells(const Json& gang) const {
  const auto text = [&](const char* part, const char* field) {
    return std::string(kube::StringAt(gang, {part, field}));
  };
  std::vector<std::string> cells;
  if (with_namespace_) cells.push_back(text("metadata", "namespace"));
  cells.insert(cells.end(),
               {text("metadata", "name"), std::to_string(kube::IntAt(gang, {"spec", "members"})),
                text("spec", "shape"), text("status", "phase"),
                text("status", "predictedAllReduce"), text("status", "placement")});
  if (columns_ == GangColumns::kWide) {
    const std::string queue = text("status", "queue");
    cells.insert(cells.end(),
                 {NumberAt(gang, {"spec", "chips"}), queue.empty() ? text("spec", "queue") : queue,
                  NumberAt(gang, {"status", "readyMembers"}), text("status", "reason")});
  }
  return cells;
}

std::string GangTable::Text(const std::vector<const Json*>& gangs) {
  std::vector<std::vector<std::string>> rows(1);
  if (with_namespace_) rows[0].emplace_back("NAMESPACE");
  rows[0].insert(rows[0].end(), {"NAME", "MEMBERS", "SHAPE", "PHASE", "ALLREDUCE", "PLACEMENT"});
  if (columns_ == GangColumns::kWide) {
    rows[0].insert(rows[0].end(), {"CHIPS", "QUEUE", "READY", "REASON"});
  }
  for (const Json* gang : gangs) rows.push_back(Cells(*gang));
  return TableText(rows, widths_);
}

std::string GangTable::Row(const Json& gang) { return TableText({Cells(gang)}, widths_); }

absl::StatusOr<Json> ListGangs(kube::Transport& transport, const std::string& ns) {
  kube::InterruptibleSleeper sleeper;
  kube::Client client(transport, sleeper, Rng(0), {.attempts = 1});
  Json list = {{"apiVersion", "v1"},
               {"kind", "List"},
               {"metadata", {{"resourceVersion", ""}}},
               {"items", Json::array()}};
  kube::ListOptions page{.ns = ns};
  do {
    absl::StatusOr<Json> read = client.List(kGangs, page);
    if (absl::IsOutOfRange(read.status()) && !page.continue_token.empty()) {
      // The pages expired before the last was read. One page does not expire.
      page.continue_token.clear();
      page.limit = 0;
      list["items"] = Json::array();
      read = client.List(kGangs, page);
    }
    if (!read.ok()) return Annotate(read.status(), kGangs.CollectionPath(ns));
    list["metadata"]["resourceVersion"] = kube::StringAt(*read, {"metadata", "resourceVersion"});
    for (Json& gang : (*read)["items"]) {
      if (!gang.is_object()) continue;
      gang["apiVersion"] = kGangs.group + "/" + kGangs.version;
      gang["kind"] = "Gang";
      list["items"].push_back(std::move(gang));
    }
    page.continue_token = kube::StringAt(*read, {"metadata", "continue"});
  } while (!page.continue_token.empty());
  if (list["items"].empty()) TAHOMA_RETURN_IF_ERROR(CheckNamespace(transport, ns));
  return list;
}

absl::Status WatchGangs(kube::Transport& transport, const std::string& ns, const Json& list,
                        const std::function<bool(const Json& gang)>& sink) {
  std::string place(kube::StringAt(list, {"metadata", "resourceVersion"}));
  bool goes_on = true;
  absl::Status refused;
  const auto take = [&](std::string_view type, const Json& object) {
    if (type == "ERROR") refused = kube::ErrorOf(object);
    if (type.empty()) refused = Unavailable("a line of the watch is no event");
    if (!refused.ok()) return false;
    if (std::string version(kube::StringAt(object, {"metadata", "resourceVersion"}));
        !version.empty()) {
      place = std::move(version);
    }
    if (type != "BOOKMARK") goes_on = sink(object);
    return goes_on;
  };
  while (goes_on) {
    const kube::Query query{
        {"watch", "true"},
        {"allowWatchBookmarks", "true"},
        {"resourceVersion", place},
        {"timeoutSeconds", std::to_string(std::chrono::seconds(kWatchFor).count())}};
    const absl::StatusOr<kube::Response> ended =
        transport.Watch({.method = "GET",
                         .target = kGangs.CollectionPath(ns) + "?" + kube::EncodeQuery(query),
                         .headers = {{"Accept", "application/json"}}},
                        take, kSilenceMost);
    if (refused.ok()) refused = kube::StatusOf(ended);
    if (!refused.ok()) return Annotate(refused, kGangs.CollectionPath(ns));
  }
  return absl::OkStatus();
}

absl::Status CheckNamespace(kube::Transport& transport, const std::string& ns) {
  if (ns.empty()) return absl::OkStatus();
  kube::InterruptibleSleeper sleeper;
  const absl::Status read =
      kube::Client(transport, sleeper, Rng(0), {.attempts = 1}).Get(kNamespaces, {"", ns}).status();
  if (!absl::IsNotFound(read)) return absl::OkStatus();
  return NotFound("namespace {} is not there", ns);
}

}  // namespace tahoma::controller
