#include "controller/ctl/calendar_reader.h"

#include <utility>

#include "controller/ctl/fleet_reader.h"
#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/kube/field.h"
#include "lib/kube/object.h"

namespace tahoma::controller {
namespace {

using kube::Field;

constexpr std::size_t kNamesMost = 10'000;

WallTime TimeOf(Field field) {
  const auto time = ParseTime(field.Text());
  if (!time.ok()) field.Fail("is no time");
  return time.value_or(WallTime{});
}

}  // namespace

std::optional<CalendarBlock> CalendarBlockOf(const Json& object) {
  kube::Reading reading(object);
  const Field status = reading.root().At("status");
  const auto state = ParseState(status.At("state").Text());
  if (!state) return std::nullopt;
  const Field metadata = reading.root().At("metadata");
  CalendarBlock block{.ns = std::string(metadata.At("namespace").Text()),
                      .name = std::string(metadata.At("name").Text()),
                      .state = *state,
                      .type = std::string(status.At("ultraserverType").Text()),
                      .count = status.At("count").Int(),
                      .start = TimeOf(status.At("startDate")),
                      .end = TimeOf(status.At("endDate")),
                      .reclaim = TimeOf(status.At("reclaimDate")),
                      .fee = std::string(status.At("upfrontFee").Text())};
  if (block.type.empty()) block.type = status.At("instanceType").Text();
  const Field binding = status.At("binding");
  for (const Field cell : binding.At("cells").Items(kNamesMost)) {
    block.cells.emplace_back(cell.At("cell").Text());
  }
  block.hosts = binding.At("hosts").Texts(kNamesMost);
  block.extended_end = block.end;
  for (const Field extension : status.At("extensions").Items(kNamesMost)) {
    if (extension.At("capacityBlockExtensionStatus").Text() ==
        StateName(ExtensionState::kPaymentPending)) {
      block.extended_end = TimeOf(extension.At("capacityBlockExtensionEndDate"));
    }
  }
  if (!reading.status().ok() || block.start >= block.end) return std::nullopt;
  return block;
}

absl::StatusOr<CalendarRead> ReadCalendarBlocks(kube::Transport& transport, const std::string& ns) {
  CalendarRead read;
  const auto add = [&](const Json& object) {
    if (auto block = CalendarBlockOf(object)) read.blocks.push_back(*std::move(block));
    if (kube::IntAt(object, {"status", "timeScale"}) > 1) read.test_clock = true;
  };
  TAHOMA_RETURN_IF_ERROR(ReadAll(transport, kCapacityBlocks, add, {.ns = ns}));
  return read;
}

absl::StatusOr<WallTime> ReadBlockTime(kube::Transport& admin) {
  const auto answer = admin.Send({.target = "/v1/clock"});
  if (!answer.ok()) return Annotate(answer.status(), "the admin API");
  return ParseTime(kube::StringAt(*answer->Json(), {"blockTime"}));
}

Json CalendarJson(const std::vector<CalendarBlock>& blocks) {
  Json rows = Json::array();
  for (const CalendarBlock& block : blocks) {
    rows.push_back({{"namespace", block.ns},
                    {"name", block.name},
                    {"state", StateName(block.state)},
                    {"type", block.type},
                    {"count", block.count},
                    {"cells", block.cells},
                    {"hosts", block.hosts},
                    {"startDate", FormatTime(block.start)},
                    {"reclaimDate", FormatTime(block.reclaim)},
                    {"endDate", FormatTime(block.end)},
                    {"upfrontFee", block.fee}});
    if (block.extended_end > block.end) {
      rows.back()["extendedEndDate"] = FormatTime(block.extended_end);
    }
  }
  return {{"capacityBlocks", std::move(rows)}};
}

}  // namespace tahoma::controller
