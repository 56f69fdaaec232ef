#include "lib/driver/device_config.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string>

#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/base/utf8.h"

namespace tahoma::hw {
namespace {

constexpr std::array kModeChoices = {1, 2, 4};

std::string JoinChoices(std::span<const int> choices) {
  std::string text;
  for (std::size_t i = 0; i < choices.size(); ++i) {
    if (i > 0) text += i + 1 == choices.size() ? " or " : ", ";
    text += std::to_string(choices[i]);
  }
  return text;
}

absl::Status CheckFields(const Json& object, std::string_view kind, std::string_view field) {
  for (const auto& [name, value] : object.items()) {
    if (name == "apiVersion" || name == "kind" || name == field) continue;
    return InvalidArgument("unknown field \"{}\" in {}; its only field is \"{}\"",
                           CutUtf8(name, 64), kind, field);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::optional<int>> ReadChoice(const Json& object, std::string_view kind,
                                              const char* field, std::span<const int> choices) {
  const auto at = object.find(field);
  if (at == object.end()) return std::optional<int>();
  if (at->is_number_integer()) {
    for (const int choice : choices) {
      if (*at == choice) return std::optional<int>(choice);
    }
  }
  return InvalidArgument("{}.{} is {}; it must be {}", kind, field,
                         std::string(CutUtf8(at->dump(), 64)), JoinChoices(choices));
}

std::string TextOf(const Json& object, const char* field) {
  const auto at = object.find(field);
  return at != object.end() && at->is_string() ? std::string(CutUtf8(at->get<std::string>(), 64))
                                               : "";
}

}  // namespace

absl::StatusOr<DeviceConfig> ParseDeviceConfig(std::string_view json) {
  if (json.size() > kDeviceConfigBytesMax) {
    return InvalidArgument("the configuration has {} bytes; at most {} are allowed", json.size(),
                           kDeviceConfigBytesMax);
  }
  const Json object = TryParseJson(json);
  if (!object.is_object()) return InvalidArgument("the configuration is not a JSON object");
  const std::string version = TextOf(object, "apiVersion");
  if (version != kDeviceConfigApiVersion) {
    return InvalidArgument("apiVersion is \"{}\"; it must be \"{}\"", version,
                           kDeviceConfigApiVersion);
  }
  const std::string kind = TextOf(object, "kind");
  if (kind == "NeuronConfig") {
    TAHOMA_RETURN_IF_ERROR(CheckFields(object, kind, "logicalNeuronCore"));
    TAHOMA_ASSIGN_OR_RETURN(const auto lnc,
                            ReadChoice(object, kind, "logicalNeuronCore", kLncSizes));
    return DeviceConfig(NeuronConfig{lnc.value_or(kTrainium2.lnc_default)});
  }
  if (kind == "UltraServerConfig") {
    TAHOMA_RETURN_IF_ERROR(CheckFields(object, kind, "ultraserverMode"));
    TAHOMA_ASSIGN_OR_RETURN(const auto mode,
                            ReadChoice(object, kind, "ultraserverMode", kModeChoices));
    if (!mode) {
      return InvalidArgument("UltraServerConfig.ultraserverMode is missing; it must be {}",
                             JoinChoices(kModeChoices));
    }
    return DeviceConfig(UltraServerConfig{*mode});
  }
  return InvalidArgument("kind is \"{}\"; it must be NeuronConfig or UltraServerConfig", kind);
}

}  // namespace tahoma::hw
