#include "lib/driver/block_config.h"

#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/base/utf8.h"
#include "lib/driver/device_config.h"

namespace tahoma::hw {
namespace {

constexpr std::string_view kVersion = "tahoma.dev/v1alpha1";
constexpr std::string_view kKind = "CapacityBlockConfig";
constexpr const char* kReclaim = "reclaimTimestamp";

absl::Status CheckWord(const Json& object, const char* field, std::string_view wanted) {
  const auto at = object.find(field);
  if (at != object.end() && *at == wanted) return absl::OkStatus();
  return InvalidArgument("{} is {}; it must be \"{}\"", field,
                         at == object.end() ? "missing" : std::string(CutUtf8(at->dump(), 64)),
                         wanted);
}

}  // namespace

std::string EncodeBlockConfig(const BlockConfig& config) {
  return Json{{"apiVersion", kVersion}, {"kind", kKind}, {kReclaim, config.reclaim_timestamp}}
      .dump();
}

absl::StatusOr<BlockConfig> ParseBlockConfig(std::string_view json) {
  if (json.size() > kDeviceConfigBytesMax) {
    return InvalidArgument("the configuration has {} bytes; at most {} are allowed", json.size(),
                           kDeviceConfigBytesMax);
  }
  const Json object = TryParseJson(json);
  if (!object.is_object()) return InvalidArgument("the configuration is not a JSON object");
  TAHOMA_RETURN_IF_ERROR(CheckWord(object, "apiVersion", kVersion));
  TAHOMA_RETURN_IF_ERROR(CheckWord(object, "kind", kKind));
  for (const auto& [name, value] : object.items()) {
    if (name == "apiVersion" || name == "kind" || name == kReclaim) continue;
    return InvalidArgument("unknown field \"{}\" in {}; its only field is \"{}\"",
                           CutUtf8(name, 64), kKind, kReclaim);
  }
  const auto at = object.find(kReclaim);
  if (at == object.end() || !at->is_number_integer() || *at < 0 || *at > INT64_MAX) {
    return InvalidArgument("{}.{} is {}; it must be milliseconds since 1970", kKind, kReclaim,
                           at == object.end() ? "missing" : std::string(CutUtf8(at->dump(), 64)));
  }
  return BlockConfig{.reclaim_timestamp = at->get<std::int64_t>()};
}

}  // namespace tahoma::hw
