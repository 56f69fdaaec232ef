// The opaque configurations of claims. What is taken is one of the values that a chip knows, and is
// taken again when it is written as AWS writes it; a refusal names what is wrong, in UTF-8, since a
// kubelet's client drops an answer that is not.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <variant>

#include "lib/base/check.h"
#include "lib/base/status.h"
#include "lib/base/utf8.h"
#include "lib/driver/block_config.h"
#include "lib/driver/device_config.h"
#include "tests/fuzz/fuzz_target.h"

namespace {

using namespace tahoma;

std::string TextOf(const hw::DeviceConfig& config) {
  const auto* neuron = std::get_if<hw::NeuronConfig>(&config);
  return fmt::format(R"({{"apiVersion":"{}","kind":"{}","{}":{}}})", hw::kDeviceConfigApiVersion,
                     neuron != nullptr ? "NeuronConfig" : "UltraServerConfig",
                     neuron != nullptr ? "logicalNeuronCore" : "ultraserverMode",
                     neuron != nullptr ? neuron->logical_neuron_core
                                       : std::get<hw::UltraServerConfig>(config).ultraserver_mode);
}

// Every refusal says one of these, and what would be right.
void CheckRefusal(const absl::Status& status) {
  constexpr std::array kNamed = {"apiVersion",      "kind",          "logicalNeuronCore",
                                 "ultraserverMode", "unknown field", "reclaimTimestamp",
                                 "JSON object",     "bytes"};
  constexpr std::array kRight = {"must be", "its only field is", "not a JSON object", "at most"};
  const std::string_view message = Message(status);
  const auto said = [&](const char* words) {
    return message.find(words) != std::string_view::npos;
  };
  TAHOMA_CHECK(absl::IsInvalidArgument(status));
  TAHOMA_CHECK(IsUtf8(message));
  TAHOMA_CHECK(std::any_of(kNamed.begin(), kNamed.end(), said));
  TAHOMA_CHECK(std::any_of(kRight.begin(), kRight.end(), said));
}

}  // namespace

void FuzzOne(std::string_view input) {
  const auto config = hw::ParseDeviceConfig(input);
  if (config.ok()) {
    const auto again = hw::ParseDeviceConfig(TextOf(*config));
    TAHOMA_CHECK_OK(again.status());
    TAHOMA_CHECK(*again == *config);
  } else {
    CheckRefusal(config.status());
  }
  const auto block = hw::ParseBlockConfig(input);
  if (block.ok()) {
    TAHOMA_CHECK(*hw::ParseBlockConfig(hw::EncodeBlockConfig(*block)) == *block);
  } else {
    CheckRefusal(block.status());
  }
  TAHOMA_CHECK(!config.ok() || !block.ok());
}
