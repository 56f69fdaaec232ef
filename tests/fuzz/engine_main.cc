// Links one fuzz target with libFuzzer, which finds inputs by the code that they reach:
//
//   build/fuzz/fuzz/api build/fuzz/corpus/api -max_total_time=60
//
// Half of its changes are libFuzzer's, half change JSON values (mutate.h).

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "lib/base/rng.h"
#include "tests/fuzz/mutate.h"
#include "tests/fuzz/processor_time.h"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  tahoma::fuzz::FuzzWithinTime({reinterpret_cast<const char*>(data), size});
  return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t max_size, unsigned int seed) {
  tahoma::Rng rng(seed);
  if (rng.Chance(1, 2)) return LLVMFuzzerMutate(data, size, max_size);
  std::string text(reinterpret_cast<const char*>(data), size);
  tahoma::fuzz::MutateJson(rng, text);
  if (text.size() > max_size) return LLVMFuzzerMutate(data, size, max_size);
  std::memcpy(data, text.data(), text.size());
  return text.size();
}
