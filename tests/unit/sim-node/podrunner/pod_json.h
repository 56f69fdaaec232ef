// The pod of the tests of PodMachine, and when they begin.

#pragma once

#include <string>

#include "lib/base/clock.h"
#include "lib/base/json.h"

namespace tahoma::sim::testing {

constexpr WallTime kStart{std::chrono::hours(24 * 365 * 50)};

inline Json PodJson(const std::string& restart_policy = "Always") {
  using json = Json;
  return {{"metadata", {{"name", "p"}, {"namespace", "default"}, {"uid", "u-1"}}},
          {"spec",
           {{"nodeName", "node-0"},
            {"restartPolicy", restart_policy},
            {"containers", json::array({{{"name", "main"}, {"image", "img"}}})}}}};
}

}  // namespace tahoma::sim::testing
