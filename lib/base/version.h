// The version of all programs, of the images and of the chart.
//
//   fmt::print("{} {}\n", program, kVersion);
//
// CMakeLists.txt, charts/tahoma/Chart.yaml and images/Dockerfile have it, too; tests/chart compares
// them. What a release has written is kept when it is made: CONTRIBUTING.md, "Formats".
//
// Scope: one constant, in a header of its own: few files know the version.
//
// Thread safety: a constant.

#pragma once

#include <string_view>

namespace tahoma {

inline constexpr std::string_view kVersion = "0.2.0";

}  // namespace tahoma
