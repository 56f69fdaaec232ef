#include <algorithm>
#include <utility>

#include "controller/reserve/refusal.h"
#include "controller/reserve/search.h"
#include "controller/reserve/segments.h"
#include "lib/base/status.h"

namespace tahoma::controller {
namespace {

absl::StatusOr<const Product*> CheckProduct(const OfferingQuery& query) {
  const bool instances = !query.instance_type.empty() || query.instance_count;
  const bool ultra_servers = !query.ultraserver_type.empty() || query.ultraserver_count;
  if (instances && ultra_servers) {
    return Refuse(kInvalidParameterCombination,
                  "InstanceType and InstanceCount, or UltraserverType and UltraserverCount: not "
                  "both");
  }
  if (!instances && !ultra_servers) {
    return Refuse(kMissingParameter,
                  "InstanceType and InstanceCount are missing, or UltraserverType and "
                  "UltraserverCount");
  }
  const std::string& name = ultra_servers ? query.ultraserver_type : query.instance_type;
  const char* parameter = ultra_servers ? "UltraserverType" : "InstanceType";
  if (name.empty()) return Refuse(kMissingParameter, "{} is missing", parameter);
  const Product* product = FindProduct(name);
  if (product == nullptr || product->ultra_server != ultra_servers) {
    return Refuse(kInvalidParameterValue,
                  "{} {} is not supported for Capacity Blocks; supported: {}", parameter, name,
                  ProductNames(ultra_servers));
  }
  return product;
}

absl::StatusOr<int> CheckCount(const OfferingQuery& query, bool ultra_servers) {
  const auto count = ultra_servers ? query.ultraserver_count : query.instance_count;
  const char* parameter = ultra_servers ? "UltraserverCount" : "InstanceCount";
  if (!count) return Refuse(kMissingParameter, "{} is missing", parameter);
  if (*count < 1 || *count > kHostsMost) {
    return Refuse(kInvalidParameterValue, "{} {}: must be 1 to {}", parameter, *count, kHostsMost);
  }
  return static_cast<int>(*count);
}

absl::StatusOr<std::vector<int>> CheckDurations(const OfferingQuery& query) {
  if (!query.duration_hours) {
    return Refuse(kMissingParameter, "CapacityDurationHours is missing");
  }
  const std::int64_t least = *query.duration_hours;
  const std::int64_t most = query.max_duration_hours.value_or(least);
  for (const auto& [name, hours] :
       {std::pair{"CapacityDurationHours", least}, std::pair{"maxDurationHours", most}}) {
    if (!IsLegalDuration(hours)) {
      return Refuse(kInvalidParameterValue, "{} {}: must be {}", name, hours, LegalHoursText());
    }
  }
  if (most < least) {
    return Refuse(kInvalidParameterCombination,
                  "maxDurationHours {} is below CapacityDurationHours {}", most, least);
  }
  std::vector<int> days;
  for (const int legal : LegalDays()) {
    if (legal * 24 >= least && legal * 24 <= most) days.push_back(legal);
  }
  return days;
}

absl::StatusOr<int> CheckSegments(const OfferingQuery& query) {
  const std::int64_t most = query.segments.value_or(1);
  if (most < 1 || most > kSegmentsMost) {
    return Refuse(kInvalidParameterValue, "segments {}: must be 1 to {}", most, kSegmentsMost);
  }
  return static_cast<int>(most);
}

// Returns the wanted window of time, inside the time that is sold.
absl::Status CheckDates(const OfferingQuery& query, WallTime now, OfferingSearch& search) {
  search.earliest_start = std::max(query.start_date_range.value_or(now), now);
  search.latest_end = query.end_date_range.value_or(now + kHorizon + kSlotLength * kDaysMost);
  if (search.earliest_start > now + kHorizon) {
    return Refuse(kInvalidParameterValue, "StartDateRange {}: must be within 8 weeks, until {}",
                  FormatTime(search.earliest_start), FormatTime(now + kHorizon));
  }
  if (query.end_date_range && *query.end_date_range <= now) {
    return Refuse(kInvalidParameterValue, "EndDateRange {}: must be in the future",
                  FormatTime(*query.end_date_range));
  }
  // A block that begins at once may be almost a day shorter than asked for.
  const auto shortest = kSlotLength * (search.days.front() - 1);
  if (search.latest_end <= search.earliest_start + shortest) {
    return Refuse(kInvalidParameterCombination,
                  "StartDateRange {} to EndDateRange {} is shorter than CapacityDurationHours {}",
                  FormatTime(search.earliest_start), FormatTime(search.latest_end),
                  search.days.front() * 24);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<OfferingSearch> CheckQuery(const OfferingQuery& query, WallTime now) {
  OfferingSearch search;
  TAHOMA_ASSIGN_OR_RETURN(search.product, CheckProduct(query));
  TAHOMA_ASSIGN_OR_RETURN(search.count, CheckCount(query, search.product->ultra_server));
  TAHOMA_ASSIGN_OR_RETURN(search.days, CheckDurations(query));
  TAHOMA_ASSIGN_OR_RETURN(search.segments_most, CheckSegments(query));
  TAHOMA_RETURN_IF_ERROR(CheckDates(query, now, search));
  search.zones = query.zones;
  search.any_cell = query.any_cell;
  search.order = query.order;
  return search;
}

}  // namespace tahoma::controller
