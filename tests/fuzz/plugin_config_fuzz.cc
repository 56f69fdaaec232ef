// The configuration file of dra-plugin: whatever the text, an answer in which every value is within
// its bounds, or a refusal that names the file or the option.

#include <array>
#include <string>
#include <string_view>

#include "dra-plugin/app/settings.h"
#include "lib/base/check.h"
#include "lib/base/status.h"
#include "lib/config/parse.h"
#include "tests/fuzz/fuzz_target.h"

namespace {

using namespace tahoma;
using namespace tahoma::dra;

void CheckNames(const absl::Status& status, const std::array<std::string_view, 2>& options) {
  for (const std::string_view option : options) {
    if (Message(status).starts_with(option)) return;
  }
  TAHOMA_CHECK(status.ok());
}

}  // namespace

void FuzzOne(std::string_view input) {
  Settings settings;
  const absl::Status read = config::ParseFile(input, "file.yaml", DeclareSettings(settings));
  if (!read.ok()) {
    TAHOMA_CHECK(Message(read).starts_with("file.yaml:"));
    return;
  }
  TAHOMA_CHECK(settings.flap_hold.count() >= 0 && settings.flap_hold <= std::chrono::minutes(5));
  TAHOMA_CHECK(settings.resync_period >= std::chrono::seconds(1));
  TAHOMA_CHECK(settings.node_lost_after >= std::chrono::milliseconds(100));
  CheckNames(CheckSettings(settings), {"nodeName", "nodeSocket"});
  const auto pool = PoolOptionsOf(settings);
  CheckNames(pool.status(), {"publish: ", "faultEffects: "});
  if (!pool.ok()) return;
  TAHOMA_CHECK(pool->publish.chips || pool->publish.lnc1 || pool->publish.lnc2 ||
               pool->publish.node);
  TAHOMA_CHECK(pool->fault_effects.size() == settings.fault_effects.size());
}
