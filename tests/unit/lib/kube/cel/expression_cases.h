// Checks the values of expressions over the device of tests/support/fake_device.h.
//
//   Check({{"device.driver == 'neuron.aws.com'", "true"}});
//
// Scope: tests of the CEL evaluator.
//
// Thread safety: none needed.

#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "lib/base/status.h"
#include "lib/kube/cel/device_selector.h"
#include "tests/support/fake_device.h"

namespace tahoma::kube {

struct Case {
  std::string expression;
  std::string expected;  // "true", "false", "compile: message", "error: message"
};

inline std::string Answer(const std::string& expression) {
  const auto selector = DeviceSelector::Compile(expression);
  if (!selector.ok()) return "compile: " + std::string(Message(selector.status()));
  const auto matches = selector->Matches(FakeDevice());
  if (!matches.ok()) return "error: " + std::string(Message(matches.status()));
  return *matches ? "true" : "false";
}

inline void Check(const std::vector<Case>& cases) {
  for (const Case& c : cases) EXPECT_EQ(Answer(c.expression), c.expected) << c.expression;
}

// Each of them is true.
inline void CheckTrue(const std::vector<std::string>& expressions) {
  for (const std::string& expression : expressions) {
    EXPECT_EQ(Answer(expression), "true") << expression;
  }
}

inline const std::string kAws = "device.attributes['neuron.aws.com']";

}  // namespace tahoma::kube
