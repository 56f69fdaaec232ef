#include "controller/admin/calendar_routes.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

#include "controller/admin/answer.h"
#include "controller/reserve/refusal.h"
#include "lib/base/json.h"
#include "lib/base/status.h"

namespace tahoma::controller {
namespace {

using nlohmann::ordered_json;

// Pools of one answer: each has two numbers for each day.
constexpr std::size_t kPoolsMost = 200;
// Days that are shown unless they are said.
constexpr Slot kDaysUsual = 14;

constexpr std::string_view kBlocksToken = "block/";

Schema PoolSchema() {
  const Schema hosts = Integer(0, INT32_MAX, "Hosts.");
  return ObjectOf(
      {{"product", Text("What is sold: u-trn2x64, trn2.48xlarge.")},
       {"availabilityZone", Text("Where it is.")},
       {"cell", Text("The UltraCluster; empty: nodes do not say.")},
       {"healthy", Integer(0, INT32_MAX, "Hosts that work and are not cordoned.")},
       {"spare", Integer(0, INT32_MAX, "Of these: not sold, but delivered in place of others.")},
       {"sold", ListOf(hosts, "For each day from `from` on: hosts of Capacity Blocks.")},
       {"free",
        ListOf(Integer(INT32_MIN, INT32_MAX, "Hosts."),
               "For each day: hosts that can be sold; less than 0 when sold hardware failed.")}},
      "Hosts that are alike and near each other.");
}

Schema HeldSchema() {
  return ObjectOf({{"namespace", Text("The owner.")},
                   {"name", Text("The CapacityBlock's.")},
                   {"capacityReservationId", Text("By which it is used.")},
                   {"state", Text("What has become of it.")},
                   {"product", Text("What it is of.")},
                   {"count", Integer(1, kHostsMost, "Hosts.")},
                   {"availabilityZone", Text("Where it is.")},
                   {"cells", ListOf(ObjectOf({{"cell", Text("A cell.")},
                                              {"hosts", Integer(1, kHostsMost, "Hosts there.")}}),
                                    "Where its hosts are.")},
                   {"startDate", Time("When it begins.")},
                   {"endDate", Time("When it ends.")},
                   {"reclaimDate", Time("When its hardware is taken back.")},
                   {"pendingEndDate?", Time("When it will end once an extension is paid.")},
                   {"hosts", ListOf(Text("A host."), "Its hardware, while it has any.")}},
                  "A Capacity Block in the calendar.");
}

// The days and the zone that are asked for.
struct Window {
  SlotRange slots = {};
  std::string zone = {};

  bool ShowsZone(const std::string& of) const { return zone.empty() || zone == of; }
  bool Shows(const Block& block) const {
    const bool held = HoldsCapacity(block.state) || block.state == BlockState::kExpired;
    return held && ShowsZone(block.bought.zone) && block.slots().Overlaps(slots);
  }
};

absl::StatusOr<Window> WindowOf(const rest::Request& request, WallTime now) {
  Window window{.zone = request.query_value("zone").value_or("")};
  const Slot today = SlotOf(now);
  const auto slot_of = [&](const char* name) -> std::optional<Slot> {
    const auto text = request.query_value(name);
    if (!text) return std::nullopt;
    return SlotOf(ParseTime(*text).value());
  };
  window.slots.first = std::max(slot_of("from").value_or(today), today);
  window.slots.last = window.slots.first + kDaysUsual;
  if (const auto text = request.query_value("to")) {
    const WallTime to = ParseTime(*text).value();
    window.slots.last = SlotOf(to) + (IsBoundary(to) ? 0 : 1);
  }
  window.slots.last = std::min(window.slots.last, today + kSlotsAhead);
  if (window.slots.empty()) {
    return Refuse(kInvalidParameterValue,
                  "from and to: there must be a day between them that is sold; from {} to {} are",
                  FormatTime(StartOf(today)), FormatTime(StartOf(today + kSlotsAhead)));
  }
  return window;
}

ordered_json PoolRow(const TimeProfile& profile, PoolId id, const Window& window) {
  const Pool& pool = profile.pool(id);
  const Supply& supply = profile.supply(id);
  ordered_json row = {{"product", pool.product->name},
                      {"availabilityZone", pool.zone},
                      {"cell", pool.cell},
                      {"healthy", supply.healthy},
                      {"spare", supply.spare},
                      {"sold", ordered_json::array()},
                      {"free", profile.FreeIn(id, window.slots)}};
  for (Slot slot = window.slots.first; slot < window.slots.last; ++slot) {
    row["sold"].push_back(profile.Booked(id, slot));
  }
  return row;
}

ordered_json HeldRow(const Block& block) {
  ordered_json row = {{"namespace", block.key.ns},
                      {"name", block.key.name},
                      {"capacityReservationId", block.reservation},
                      {"state", StateName(block.state)},
                      {"product", block.product().name},
                      {"count", block.bought.count},
                      {"availabilityZone", block.bought.zone},
                      {"cells", ordered_json::array()},
                      {"startDate", FormatTime(block.start())},
                      {"endDate", FormatTime(block.end)},
                      {"reclaimDate", FormatTime(block.reclaim())}};
  for (const CellShare& share : block.cells) {
    row["cells"].push_back({{"cell", share.cell}, {"hosts", share.hosts}});
  }
  if (const Extension* pending = block.pending_extension()) {
    row["pendingEndDate"] = FormatTime(pending->end);
  }
  row["hosts"] = block.hosts;
  return row;
}

// Adds pools from number `id` on. Returns the first of the next page.
std::optional<std::size_t> AddPools(const TimeProfile& profile, std::size_t id,
                                    const Window& window, ordered_json& rows) {
  for (; id < profile.pool_count(); ++id) {
    if (!window.ShowsZone(profile.pool(PoolId(id)).zone)) continue;
    if (rows.size() == kPoolsMost) return id;
    rows.push_back(PoolRow(profile, PoolId(id), window));
  }
  return std::nullopt;
}

BlockKey KeyIn(std::string_view text) {
  const std::size_t slash = std::min(text.find('/'), text.size());
  return {std::string(text.substr(0, slash)),
          std::string(text.substr(std::min(slash + 1, text.size())))};
}

}  // namespace

void CalendarRoutes::AddRoutes(RouteTable& routes) {
  routes.Name("PoolCalendar", PoolSchema());
  routes.Name("HeldBlock", HeldSchema());
  routes.Add(
      {.path = "/v1/calendar",
       .id = "getCalendar",
       .summary = "What is sold and free in each pool day by day, and which blocks hold what when.",
       .needs = {.verb = "list", .group = "tahoma.dev", .resource = "capacityblocks"},
       .query = {{"from?", Time("The first day shown is the one that this lies in; now.")},
                 {"to?", Time("The last day shown ends here or later; 14 days after `from`.")},
                 {"zone?", Text("Of this availability zone only.")},
                 {"page?", Text("The `next` of the page before.")}},
       .answer = ObjectOf({{"from", Time("When the first day begins, at 11:30 UTC.")},
                           {"to", Time("When the last day ends.")},
                           {"pools", ListOf(Named("PoolCalendar"), "A page of the pools.")},
                           {"blocks", ListOf(Named("HeldBlock"),
                                             "By namespace and name; they "
                                             "begin on the page on which "
                                             "the pools end.")},
                           {"next?", Text("The next page.")}}),
       .handler = [this](const auto& r) { return Show(r); }});
}

rest::Response CalendarRoutes::Show(const rest::Request& request) const {
  const WallTime now = clock_.WallNow();
  const auto window = WindowOf(request, now);
  if (!window.ok()) return Refused(window.status());
  const auto snapshot = take_();
  if (!snapshot->synced) return Refused(Unavailable("the fleet is not known yet"));
  TimeProfile profile = snapshot->profile;
  profile.AdvanceTo(SlotOf(now));
  ordered_json body = {{"from", FormatTime(StartOf(window->slots.first))},
                       {"to", FormatTime(StartOf(window->slots.last))},
                       {"pools", ordered_json::array()},
                       {"blocks", ordered_json::array()}};
  const std::string page = request.query_value("page").value_or("0");
  std::string_view token = page;
  BlockKey first;
  if (token.starts_with(kBlocksToken)) {
    first = KeyIn(token.substr(kBlocksToken.size()));
  } else {
    const auto number = ParseInteger(token);
    if (!number || *number < 0) {
      return Refused(
          Refuse(kInvalidParameterValue, "page {}: must be the `next` of an answer", page));
    }
    const auto next = AddPools(profile, static_cast<std::size_t>(*number), *window, body["pools"]);
    if (next) {
      body["next"] = std::to_string(*next);
      return Answer(200, body);
    }
  }
  const auto blocks = PageOf(
      snapshot->blocks, first, [](const BlockKey& key) { return key; },
      [&](const auto& view) { return view->block != nullptr && window->Shows(*view->block); });
  for (const auto& [key, view] : blocks.rows) body["blocks"].push_back(HeldRow(*view->block));
  if (blocks.next) body["next"] = std::string(kBlocksToken) + ToString(*blocks.next);
  return Answer(200, body);
}

}  // namespace tahoma::controller
