#include "controller/ctl/defragmentation.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "controller/core/facts/defragmentation.h"
#include "controller/ctl/fleet_reader.h"
#include "controller/ctl/table.h"
#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/kube/answer.h"
#include "lib/kube/object.h"
#include "lib/kube/requests.h"

namespace tahoma::controller {
namespace {

using CellRow = std::vector<std::string>;

std::string CellOf(const Json& object, const char* field) {
  return std::string(kube::StringAt(object, {field}));
}

CellRow MoveCells(const Json& move) {
  return {CellOf(move, "namespace"), CellOf(move, "name"), CellOf(move, "from"), CellOf(move, "to"),
          std::to_string(kube::IntAt(move, {"lostChipSeconds"}))};
}

}  // namespace

Json SpecOfWish(const DefragmentWish& wish, const std::string& ns) {
  Json spec = Json::object();
  if (!wish.shape.empty()) spec["shape"] = wish.shape;
  if (wish.ultra_servers != 0) spec["ultraServers"] = wish.ultra_servers;
  if (wish.slices != 0) spec["slices"] = wish.slices;
  if (wish.moves != 0) spec["maxMoves"] = wish.moves;
  if (wish.for_gang.empty()) return spec;
  const std::size_t slash = wish.for_gang.find('/');
  const bool whole = slash != std::string::npos;
  spec["forGang"] = {{"namespace", whole ? wish.for_gang.substr(0, slash) : ns},
                     {"name", whole ? wish.for_gang.substr(slash + 1) : wish.for_gang}};
  return spec;
}

absl::StatusOr<std::shared_ptr<const Json>> PlanDefragmentation(kube::Transport& admin,
                                                                const Json& spec) {
  kube::Request request{.method = "POST", .target = "/v1/moves/plan"};
  request.headers = {{"Content-Type", "application/json"}};
  request.parsed = std::make_shared<const Json>(spec);
  const auto answer = admin.Send(request);
  if (!answer.ok()) return Annotate(answer.status(), "the admin API");
  auto body = answer->Json();
  if (answer->status == 200) return body;
  if (answer->status == 400) return InvalidArgument("{}", kube::StringAt(*body, {"detail"}));
  return Unavailable("the admin API answers {} to POST {}: {}", answer->status, request.target,
                     kube::StringAt(*body, {"detail"}));
}

std::string MovePlanText(const Json& plan) {
  if (!kube::BoolAt(plan, {"possible"})) {
    return fmt::format("No moves make the place: {}\n", CellOf(plan, "message"));
  }
  const Json& moves = kube::ListAt(plan, {"moves"});
  const std::string place = CellOf(plan, "place");
  if (moves.empty()) return fmt::format("{} is free: nothing has to move.\n", place);
  std::string text = fmt::format("For {} gangs would move, and lose {} chip-seconds of work:\n\n",
                                 place, kube::IntAt(plan, {"lostChipSeconds"}));
  std::vector<CellRow> rows = {{"NAMESPACE", "NAME", "FROM", "TO", "LOST-CHIP-SECONDS"}};
  for (const Json& move : moves) rows.push_back(MoveCells(move));
  return text + TableText(rows) + "\nNothing has moved; --apply moves them.\n";
}

absl::StatusOr<std::string> ApplyDefragmentation(kube::Transport& transport, Json spec) {
  spec["apply"] = true;
  const auto made = kube::ObjectOf(
      transport.Send(kube::CreateRequest(kDefragmentations, "",
                                         {{"apiVersion", "tahoma.dev/v1alpha1"},
                                          {"kind", "Defragmentation"},
                                          {"metadata", {{"generateName", "defragment-"}}},
                                          {"spec", std::move(spec)}})));
  if (!made.ok()) return made.status();
  return std::string(kube::NameOf(**made));
}

absl::Status AbortDefragmentation(kube::Transport& transport, const std::string& name) {
  Json patch;
  patch["spec"]["abort"] = true;
  return kube::StatusOf(transport.Send(kube::PatchRequest(
      kDefragmentations, {"", name}, kube::PatchType::kMerge, std::move(patch))));
}

absl::StatusOr<Json> ListDefragmentations(kube::Transport& transport) {
  Json list = {{"apiVersion", "v1"}, {"kind", "List"}, {"items", Json::array()}};
  TAHOMA_RETURN_IF_ERROR(ReadAll(transport, kDefragmentations, [&](const Json& object) {
    Json one = object;
    one["apiVersion"] = "tahoma.dev/v1alpha1";
    one["kind"] = "Defragmentation";
    list["items"].push_back(std::move(one));
  }));
  return list;
}

std::string DefragmentationsText(const Json& list) {
  std::string text;
  for (const Json& object : kube::ListAt(list, {"items"})) {
    const Json* found = kube::ValueAt(object, {"status"});
    const Json status = found == nullptr ? Json::object() : *found;
    const std::string phase = CellOf(status, "phase");
    text += fmt::format("{}{}: {}\n  {}\n", text.empty() ? "" : "\n", kube::NameOf(object),
                        phase.empty() ? "not looked at yet" : phase, CellOf(status, "message"));
    const std::string until = CellOf(status, "keptUntil");
    if (!until.empty()) {
      text += fmt::format("  {} is kept until {}\n", CellOf(status, "place"), until);
    }
    std::vector<CellRow> rows = {
        {"  NAMESPACE", "NAME", "FROM", "TO", "LOST-CHIP-SECONDS", "STATE"}};
    for (const Json& move : kube::ListAt(status, {"moves"})) {
      CellRow cells = MoveCells(move);
      cells.front() = "  " + cells.front();
      cells.push_back(CellOf(move, "state"));
      rows.push_back(std::move(cells));
    }
    if (rows.size() > 1) text += TableText(rows);
  }
  return text;
}

}  // namespace tahoma::controller
