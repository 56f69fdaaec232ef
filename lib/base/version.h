// The version of all programs, of the images and of the chart.
//
//   fmt::print("{} {}\n", program, kVersion);
//
// CMakeLists.txt, charts/tahoma/Chart.yaml and images/Dockerfile repeat the version; tests/chart
// compares all four. CONTRIBUTING.md, "Formats", says how a release's formats are kept.
//
// Scope: a constant, in a header of its own because few files need the version.

#pragma once

#include <string_view>

namespace tahoma {

inline constexpr std::string_view kVersion = "0.2.0";

}  // namespace tahoma
