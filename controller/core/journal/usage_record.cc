#include "controller/core/journal/usage_record.h"

#include <cmath>

#include "controller/core/journal/entry_form.h"
#include "lib/base/json.h"
#include "lib/base/status.h"

namespace tahoma::controller {

namespace {

constexpr double kPart = 1e6;  // of an eighth
// The cores of a million instances: more were never used.
constexpr std::int64_t kUseMost = std::int64_t{128'000'000} * 1'000'000;

bool IsOfType(std::string_view bytes, EntryType type) {
  return bytes.size() > 3 && bytes[3] == static_cast<char>(type);
}

std::int64_t PartsOf(double eighths) {
  return std::clamp<std::int64_t>(std::llround(eighths * kPart), 0, kUseMost);
}

}  // namespace

bool IsUsageEntry(std::string_view bytes) {
  return IsOfType(bytes, EntryType::kUsageCounted) || IsQueueUseEntry(bytes);
}

bool IsQueueUseEntry(std::string_view bytes) { return IsOfType(bytes, EntryType::kQueueUsed); }

std::string EncodeUsage(const UsageRecord& record) {
  Json types = Json::array();
  for (const UsageSum::OfType& one : record.sum.types) {
    types.push_back({one.type, one.eighth_ms});
  }
  return EncodeEntry(EntryType::kUsageCounted, {{"ns", record.key.ns},
                                                {"queue", record.key.queue},
                                                {"at", record.sum.as_of.time_since_epoch().count()},
                                                {"term", record.term},
                                                {"types", std::move(types)}});
}

absl::StatusOr<UsageRecord> DecodeUsage(std::string_view bytes) {
  UsageRecord record;
  const auto read = [&](EntryType type, const Json& body) -> absl::Status {
    if (type != EntryType::kUsageCounted) {
      return DataLoss("journal record of type {} is no usage", static_cast<int>(type));
    }
    body.at("ns").get_to(record.key.ns);
    body.at("queue").get_to(record.key.queue);
    record.sum.as_of = WallTime(std::chrono::nanoseconds(body.at("at").get<std::int64_t>()));
    body.at("term").get_to(record.term);
    for (const Json& one : body.at("types")) {
      UsageSum::OfType& added = record.sum.types.emplace_back();
      one.at(0).get_to(added.type);
      one.at(1).get_to(added.eighth_ms);
      if (added.eighth_ms < 0) return DataLoss("the usage of {} is below 0", added.type);
    }
    if (!std::ranges::is_sorted(record.sum.types, std::ranges::less_equal(),
                                &UsageSum::OfType::type)) {
      return DataLoss("the instance types of a usage are not in order");
    }
    return absl::OkStatus();
  };
  TAHOMA_RETURN_IF_ERROR(DecodeEntry(bytes, read));
  return record;
}

std::string EncodeQueueUse(const QueueUseRecord& record) {
  return EncodeEntry(EntryType::kQueueUsed, {{"queue", record.queue},
                                             {"at", record.use.as_of.time_since_epoch().count()},
                                             {"used", PartsOf(record.use.used)},
                                             {"own", PartsOf(record.use.own)}});
}

absl::StatusOr<QueueUseRecord> DecodeQueueUse(std::string_view bytes) {
  QueueUseRecord record;
  const auto read = [&](EntryType type, const Json& body) -> absl::Status {
    if (type != EntryType::kQueueUsed) {
      return DataLoss("journal record of type {} is no use of a queue", static_cast<int>(type));
    }
    body.at("queue").get_to(record.queue);
    record.use.as_of = WallTime(std::chrono::nanoseconds(body.at("at").get<std::int64_t>()));
    const auto parts = [&](const char* field, double& eighths) -> absl::Status {
      const auto stored = body.at(field).get<std::int64_t>();
      if (stored < 0 || stored > kUseMost) {
        return DataLoss("the use {} of queue {} is not 0 to {}", stored, record.queue, kUseMost);
      }
      eighths = static_cast<double>(stored) / kPart;
      return absl::OkStatus();
    };
    TAHOMA_RETURN_IF_ERROR(parts("used", record.use.used));
    return parts("own", record.use.own);
  };
  TAHOMA_RETURN_IF_ERROR(DecodeEntry(bytes, read));
  return record;
}

}  // namespace tahoma::controller
