// How long a test waits for what must happen: under a sanitizer, which makes programs several times
// as slow, longer. CMake's limit of a whole test grows by the same factor.
//
//   constexpr std::chrono::seconds kSoon = Patience(20);
//   EXPECT_TRUE(program.WaitUntil([&] { return program.log() == "ready\n"; }, kSoon));
//
// Thread safety: constants.

#pragma once

#include <chrono>

namespace tahoma::testing {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

constexpr std::chrono::seconds Patience(int seconds) {
  return std::chrono::seconds(kSanitized ? 5 * seconds : seconds);
}

}  // namespace tahoma::testing
