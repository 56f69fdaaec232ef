// Checks for mistakes of our own, on in every build.
//
//   TAHOMA_CHECK(index < size);                 // aborts with file, line and the condition
//   TAHOMA_CHECK_OK(journal->Open());           // same, with the Status in the message
//
// Scope: conditions only a programmer can break. Failures of the world (a full disk, a bad
// manifest) are an absl::Status instead.
//
// Thread safety: any thread.

#pragma once

#include <absl/status/status.h>

namespace tahoma::internal {

[[noreturn]] void CheckFailed(const char* file, int line, const char* condition);
[[noreturn]] void CheckOkFailed(const char* file, int line, const char* expression,
                                const absl::Status& status);

}  // namespace tahoma::internal

#define TAHOMA_CHECK(condition)                                        \
  do {                                                                 \
    if (!(condition)) [[unlikely]]                                     \
      ::tahoma::internal::CheckFailed(__FILE__, __LINE__, #condition); \
  } while (false)

#define TAHOMA_CHECK_OK(expression)                                                            \
  do {                                                                                         \
    const ::absl::Status& tahoma_check_status = (expression);                                  \
    if (!tahoma_check_status.ok()) [[unlikely]]                                                \
      ::tahoma::internal::CheckOkFailed(__FILE__, __LINE__, #expression, tahoma_check_status); \
  } while (false)
