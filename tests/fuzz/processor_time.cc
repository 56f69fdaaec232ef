#include "tests/fuzz/processor_time.h"

#include <cstdio>
#include <cstdlib>
#include <ctime>

#include "tests/fuzz/fuzz_target.h"

namespace tahoma::fuzz {

void FuzzWithinTime(std::string_view input) {
  const std::clock_t begin = std::clock();
  FuzzOne(input);
  const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  if (seconds <= kProcessorSecondsMax) return;
  std::fprintf(stderr, "the input took %.1f s of processor time; at most %d are allowed\n", seconds,
               kProcessorSecondsMax);
  std::abort();
}

}  // namespace tahoma::fuzz
