#include "controller/admin/usage_report.h"

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/json.h"

namespace tahoma::controller {
namespace {

using nlohmann::ordered_json;

double Hours(std::int64_t chip_ms) {
  return static_cast<double>(chip_ms) / static_cast<double>(kChipMsOfHour);
}

std::int64_t Bought(const Block& block) {
  return block.chips() * (MillisecondsOf(block.end) - MillisecondsOf(block.start()));
}

// Returns what the block was used for up to now, beyond its last record.
BlockUsage UsageOf(const Snapshot& snapshot, const Block& block, WallTime now) {
  const LiveUsage* live = snapshot.usage.Find(block.reservation);
  return live == nullptr ? block.usage : live->UpTo(now);
}

ordered_json UsageJson(const Block& block, const BlockUsage& usage, const LiveUsage* live) {
  const ChipTally& sums = usage.chip_ms;
  ordered_json body = {{"namespace", block.key.ns},
                       {"name", block.key.name},
                       {"capacityReservationId", block.reservation},
                       {"state", StateName(block.state)},
                       {"asOf", FormatTime(usage.as_of)},
                       {"chipHours",
                        {{"bought", HoursText(Bought(block))},
                         {"elapsed", HoursText(sums.total())},
                         {"used", HoursText(sums.used)},
                         {"lent", HoursText(sums.lent)},
                         {"idle", HoursText(sums.idle)},
                         {"lost", HoursText(sums.lost)}}},
                       {"utilization", UtilizationText(usage)}};
  if (live != nullptr) {
    body["chipsNow"] = {{"used", live->chips.used},
                        {"lent", live->chips.lent},
                        {"idle", live->chips.idle},
                        {"lost", live->chips.lost}};
  }
  return body;
}

}  // namespace

Schema UsageSchema() {
  const auto hours = [](const char* about) { return TextLike("[0-9]+[.][0-9]{2}", about); };
  const auto chips = [](const char* about) { return Integer(0, INT32_MAX, about); };
  return ObjectOf(
      {{"namespace", Text("Its owner.")},
       {"name", Text("The CapacityBlock's name.")},
       {"capacityReservationId", Text("By which it is used.")},
       {"state", Text("What has become of it.")},
       {"asOf", Time("Up to when it is counted.")},
       {"chipHours", ObjectOf({{"bought", hours("be chip-hours from the start to the end")},
                               {"elapsed", hours("be the sum of the four below")},
                               {"used", hours("be those of gangs")},
                               {"lent", hours("be those of preemptible gangs that borrow")},
                               {"idle", hours("be those of healthy chips that nobody has")},
                               {"lost", hours("be those of chips that are not there")}})},
       {"utilization", Text("The part in which chips were used or lent, as 83%; empty before.")},
       {"chipsNow?", ObjectOf({{"used", chips("Of gangs.")},
                               {"lent", chips("Of preemptible gangs that borrow.")},
                               {"idle", chips("Healthy, nobody's.")},
                               {"lost", chips("Not there.")}})}},
      "What the chips of a Capacity Block were used for.");
}

rest::Response ShowUsage(const Snapshot& snapshot, const Block& block, WallTime now) {
  const LiveUsage* live = snapshot.usage.Find(block.reservation);
  const ordered_json body = UsageJson(block, UsageOf(snapshot, block, now), live);
  return rest::Response::Json(
      200, body.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n");
}

void AddUsageMetrics(rest::Metrics& metrics, std::function<std::shared_ptr<const Snapshot>()> take,
                     const Clock& clock) {
  metrics.AddGaugeFamily(
      "tahoma_capacity_block_chip_hours",
      "Chip-hours of the Capacity Blocks that are known, by their owner and what they were used "
      "for: bought (from start to end), used, lent, idle, lost.",
      [take = std::move(take), &clock] {
        const auto snapshot = take();
        const WallTime now = snapshot->block_time.ToBlock(clock.WallNow());
        std::map<std::string, std::pair<std::int64_t, ChipTally>> owners;
        snapshot->block_list.ForEach([&](const std::string&, const auto& block) {
          auto& [bought, sums] = owners[block->key.ns];
          if (block->state != BlockState::kPaymentFailed && block->state != BlockState::kFailed) {
            bought += Bought(*block);
          }
          sums += UsageOf(*snapshot, *block, now).chip_ms;
        });
        std::vector<std::pair<rest::Labels, double>> values;
        for (const auto& [owner, sums] : owners) {
          const auto& [bought, chip_ms] = sums;
          const std::array<std::pair<const char*, std::int64_t>, 5> uses = {
              {{"bought", bought},
               {"used", chip_ms.used},
               {"lent", chip_ms.lent},
               {"idle", chip_ms.idle},
               {"lost", chip_ms.lost}}};
          for (const auto& [use, chip_milliseconds] : uses) {
            values.push_back({{{"owner", owner}, {"use", use}}, Hours(chip_milliseconds)});
          }
        }
        return values;
      });
}

}  // namespace tahoma::controller
