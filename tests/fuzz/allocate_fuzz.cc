// Slices, a class and claims as anybody may write them. The allocator answers the same whatever the
// order of the slices, gives no device twice and never more than a claim can hold, and what it
// gives reads back as it was written.
//
//   {"slices": [SLICE…], "selectors": [CEL…], "claims": [SPEC…], "labels": {…}, "inUse": [DEVICE…]}

#include <algorithm>
#include <set>
#include <string>
#include <string_view>

#include "lib/base/check.h"
#include "lib/base/json.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/unit/controller/allocate/world.h"

namespace {

using namespace tahoma::controller::allocate;
using tahoma::Json;
namespace kube = tahoma::kube;

constexpr std::size_t kSteps = 20'000;
constexpr std::size_t kListMost = 8;  // of slices and claims

// Returns whether the world is one: slices that read, with names of their own as in a cluster.
bool Fill(const Json& input, World& world) {
  kube::Reading reading(input);
  std::set<std::string> names;
  for (const kube::Field slice : reading.root().At("slices").Items(kListMost)) {
    const auto parsed = kube::ParseResourceSlice(slice.json(), kube::SliceDetails::kRead);
    if (!parsed.ok() || !names.insert(parsed->name).second) return false;
    TAHOMA_CHECK(kube::RenderSliceSpec(*parsed).is_object());
    world.slices.push_back(slice.json());
  }
  for (const kube::Field claim : reading.root().At("claims").Items(kListMost)) {
    world.claims.push_back(claim.json());
  }
  world.any.selectors = reading.root().At("selectors").Texts(kListMost);
  reading.root().At("labels").Entries([&](const std::string& key, kube::Field value) {
    world.labels.emplace_back(key, value.Text());
  });
  for (std::string& device : reading.root().At("inUse").Texts()) {
    world.in_use.devices.insert({std::string(kTestDriver), "p", std::move(device)});
  }
  return reading.status().ok();
}

void Check(const World& world, const std::vector<kube::Allocation>& allocations) {
  TAHOMA_CHECK(allocations.size() == world.claims.size());
  std::set<DeviceId> given;
  for (const kube::Allocation& allocation : allocations) {
    TAHOMA_CHECK(allocation.results.size() <= static_cast<std::size_t>(kResultsMost));
    std::set<std::size_t> shares;
    for (const kube::ResultDetails& details : allocation.details) {
      if (!details.share_id.empty()) shares.insert(details.result);
    }
    for (std::size_t i = 0; i < allocation.results.size(); ++i) {
      const kube::DeviceResult& result = allocation.results[i];
      const DeviceId id{result.driver, result.pool, result.device};
      if (result.admin_access || shares.contains(i)) continue;
      TAHOMA_CHECK(given.insert(id).second);
      TAHOMA_CHECK(!world.in_use.devices.contains(id));
    }
    const Json written = kube::RenderAllocation(allocation);
    kube::Reading reading(written);
    const kube::Allocation again = kube::ParseAllocation(reading.root());
    TAHOMA_CHECK_OK(reading.status());
    TAHOMA_CHECK(again.results == allocation.results && again.details == allocation.details);
    TAHOMA_CHECK(again.configs == allocation.configs);
  }
}

}  // namespace

void FuzzOne(std::string_view input) {
  const Json object = tahoma::TryParseJson(input);
  World world;
  world.steps = kSteps;
  if (object.is_discarded() || !Fill(object, world)) return;
  const Answer answer = world.Allocate();
  if (answer.ok() && answer->has_value()) Check(world, **answer);
  const std::string text = world.Devices();
  std::ranges::reverse(world.slices);
  TAHOMA_CHECK(world.Devices() == text);
}
