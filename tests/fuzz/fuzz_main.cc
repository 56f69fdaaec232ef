// Drives one fuzz target as a regression test: every seed as it is, then mutations of the seeds,
// the same ones on every run. Under `make test-asan` the sanitizers watch.

#include <cstdio>
#include <cstdlib>
#include <string>

#include "lib/base/rng.h"
#include "tests/fuzz/fuzz_target.h"

namespace {

constexpr int kMutations = 20'000;

// One small change: a byte flipped, removed, repeated or taken from another seed.
void Mutate(tahoma::Rng& rng, const std::vector<std::string>& seeds, std::string& text) {
  const std::size_t at = text.empty() ? 0 : rng.Below(text.size());
  switch (rng.Below(5)) {
    case 0:
      if (!text.empty()) text[at] = static_cast<char>(rng.Below(256));
      break;
    case 1:
      if (!text.empty()) text.erase(at, 1 + rng.Below(8));
      break;
    case 2:
      text.insert(at, text.substr(at, 1 + rng.Below(16)));
      break;
    case 3: {
      const std::string& other = seeds[rng.Below(seeds.size())];
      if (!other.empty()) text.insert(at, other.substr(rng.Below(other.size()), 1 + rng.Below(32)));
      break;
    }
    default:
      text.insert(at, 1, "\0{}[]()\"'\\:,.-+&*!#%\n\t"[rng.Below(23)]);
  }
}

}  // namespace

int main() {
  const std::vector<std::string> seeds = FuzzSeeds();
  for (const std::string& seed : seeds) FuzzOne(seed);
  tahoma::Rng rng(1);
  for (int i = 0; i < kMutations; ++i) {
    std::string text = seeds[rng.Below(seeds.size())];
    for (std::uint64_t changes = 1 + rng.Below(6); changes > 0; --changes) Mutate(rng, seeds, text);
    FuzzOne(text);
  }
  std::printf("%zu seeds and %d mutations\n", seeds.size(), kMutations);
  return 0;
}
