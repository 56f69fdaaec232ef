// The time that one input may take: work that grows too fast with the input is a finding.
//
//   FuzzWithinTime(input);      // FuzzOne, or abort
//
// Scope: processor time, so that a busy machine finds nothing. What never ends is for whoever
// started the program to end.
//
// Thread safety: runs come one after the other.

#pragma once

#include <string_view>

namespace tahoma::fuzz {

inline constexpr int kProcessorSecondsMax = 10;

void FuzzWithinTime(std::string_view input);

}  // namespace tahoma::fuzz
