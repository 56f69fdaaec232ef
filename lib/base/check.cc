#include "lib/base/check.h"

#include <cstdio>
#include <cstdlib>

namespace tahoma::internal {

void CheckFailed(const char* file, int line, const char* condition) {
  std::fprintf(stderr, "%s:%d: CHECK failed: %s\n", file, line, condition);
  std::abort();
}

void CheckOkFailed(const char* file, int line, const char* expression, const absl::Status& status) {
  std::fprintf(stderr, "%s:%d: CHECK failed: %s is %s\n", file, line, expression,
               status.ToString().c_str());
  std::abort();
}

}  // namespace tahoma::internal
