// Answers of an API server to the plugin's slices, reports of health, labels and reads of claims.
// Whatever the answers are, no call crashes, and each failure has a reason.
//
// The first letter is the caller: p publishes and tells whether all slices are shown, h reports
// health, l labels, c reads a claim. Each further line is the body of an answer; "!" and a digit at
// its beginning give the hundreds of the HTTP status. After the last line there are no more
// answers.

#include <algorithm>
#include <string>
#include <string_view>

#include "dra-plugin/claims/allocation.h"
#include "dra-plugin/slices/claim_source.h"
#include "dra-plugin/slices/completeness.h"
#include "dra-plugin/slices/health_reporter.h"
#include "dra-plugin/slices/node_labeller.h"
#include "dra-plugin/slices/slice_publisher.h"
#include "lib/base/check.h"
#include "lib/base/status.h"
#include "tests/fuzz/fuzz_target.h"

namespace {

using namespace tahoma;
using namespace tahoma::dra;

constexpr const char* kNode = "n";

// Gives a line for every request.
class Script final : public kube::Transport {
 public:
  explicit Script(std::string_view text) : rest_(text) {}

  absl::StatusOr<kube::Response> Send(const kube::Request& request) override {
    TAHOMA_CHECK(request.target.starts_with("/api") || request.target == "/version");
    TAHOMA_CHECK(!request.method.empty());
    if (rest_.empty()) return Unavailable("no answer");
    std::string_view line = rest_.substr(0, rest_.find('\n'));
    rest_.remove_prefix(std::min(rest_.size(), line.size() + 1));
    int status = 200;
    if (line.size() >= 2 && line[0] == '!' && line[1] >= '3' && line[1] <= '5') {
      status = 100 * (line[1] - '0') + 9;  // 409 is a conflict
      line.remove_prefix(2);
    }
    return kube::Response{.status = status, .headers = {}, .body = std::string(line)};
  }
  absl::StatusOr<kube::Response> Stream(const kube::Request&, const kube::LineSink&,
                                        std::chrono::milliseconds) override {
    return Unavailable("no watches here");
  }

 private:
  std::string_view rest_;
};

wire::Inventory Node() {
  wire::Inventory inventory = {.generation = 1,
                               .node_name = kNode,
                               .instance_type = "trn2.48xlarge",
                               .driver_version = "2.26.10.0"};
  for (int chip = 0; chip < 16; ++chip) {
    inventory.chips.push_back(
        {.index = chip, .healthy = chip != 5, .reason = chip == 5 ? "dma" : ""});
  }
  return inventory;
}

DevicePool ChipsOf(const wire::Inventory& inventory) {
  const Publish chips = {.chips = true, .lnc1 = false, .lnc2 = false, .node = false};
  return *BuildPool(inventory, {.publish = chips});
}

Checkpoint OneClaim() {
  PreparedClaim claim;
  claim.grant = {.claim_uid = "u-1", .name_space = "default", .name = "a", .chips = {5}};
  claim.token = std::string(wire::kTokenBytes, '0');
  claim.devices = {{.request = "r", .pool = kNode, .device = "neuron-device-5"}};
  return {.claims = {{"u-1", claim}}};
}

// A second call must be as safe as the first: the remembered values came from outside, too.
void Ask(char who, Script& api) {
  static const wire::Inventory kInventory = Node();
  static const DevicePool kPool = ChipsOf(kInventory);
  SlicePublisher publisher(api, kNode);
  HealthReporter reporter(api, kNode);
  NodeLabeller labeller(api, kNode);
  CompletenessReporter completeness(api, kNode);
  ApiClaimSource source(api);
  for (int look = 0; look < 2; ++look) {
    absl::Status status;
    if (who == 'p') {
      status = publisher.Publish(kPool);
      if (const auto node = publisher.HandOverNode(); status.ok() && node != nullptr) {
        const Completeness found = CompletenessOf(kPool, *publisher.server());
        status = completeness.Report(*node, found, WallTime{});
      }
    }
    if (who == 'h') status = reporter.Report(OneClaim(), kPool, WallTime{});
    if (who == 'l') status = labeller.Publish(kInventory);
    if (who == 'c') {
      const auto object = source.Get("default", "a");
      status = object.ok() ? ReadAllocation(*object, {.uid = "u-1"}).status() : object.status();
    }
    TAHOMA_CHECK(status.ok() || !Message(status).empty());
  }
}

}  // namespace

void FuzzOne(std::string_view input) {
  const std::size_t end = input.find('\n');
  if (input.empty() || end == std::string_view::npos) return;
  Script api(input.substr(end + 1));
  Ask(input[0], api);
}
