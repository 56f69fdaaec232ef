// The pod of the tests of PodMachine, and when they begin.

#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "lib/base/clock.h"

namespace tahoma::sim::testing {

constexpr WallTime kStart{std::chrono::hours(24 * 365 * 50)};

inline nlohmann::json PodJson(const std::string& restart_policy = "Always") {
  using nlohmann::json;
  return {{"metadata", {{"name", "p"}, {"namespace", "default"}, {"uid", "u-1"}}},
          {"spec",
           {{"nodeName", "node-0"},
            {"restartPolicy", restart_policy},
            {"containers", json::array({{{"name", "main"}, {"image", "img"}}})}}}};
}

}  // namespace tahoma::sim::testing
