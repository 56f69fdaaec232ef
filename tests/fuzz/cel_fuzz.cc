// CEL expressions of device selectors: what compiles gives an answer at a bounded cost, the same
// each time, and does not depend on an attribute that it may not read.

#include <string_view>

#include "lib/base/check.h"
#include "lib/base/status.h"
#include "lib/kube/cel/device_selector.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/support/fake_device.h"

namespace {

using namespace tahoma::kube;

bool Same(const absl::StatusOr<bool>& a, const absl::StatusOr<bool>& b) {
  return a.ok() == b.ok() && (!a.ok() || *a == *b);
}

}  // namespace

void FuzzOne(std::string_view input) {
  const auto selector = DeviceSelector::Compile(input);
  if (!selector.ok()) {
    // Every refusal says where: "line:column: reason".
    TAHOMA_CHECK(absl::IsInvalidArgument(selector.status()));
    TAHOMA_CHECK(!tahoma::Message(selector.status()).empty());
    return;
  }
  TAHOMA_CHECK(selector->source() == input && input.size() <= kSelectorBytesMax);
  const auto answer = selector->Matches(FakeDevice());
  TAHOMA_CHECK(Same(answer, selector->Matches(FakeDevice())));
  for (const char* id : {"deviceId", "instanceType", "draDriverVersion", "x", "spare", "hbm"}) {
    if (!selector->MayRead(id)) TAHOMA_CHECK(Same(answer, selector->Matches(FakeDevice(id))));
  }
}
