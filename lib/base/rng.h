// A random number generator, which is passed in.
//
//   Rng rng(seed);                 // same seed, same numbers, on every machine
//   rng.Below(6);                  // 0 .. 5
//   NewUuid(rng);                  // "3f0c8a1e-…", version 4
//
// Only the programs' app folders take a seed from the machine (SeedFromMachine).
//
// Thread safety: one Rng belongs to one thread; guard it otherwise.

#pragma once

#include <cstdint>
#include <string>

namespace tahoma {

// xoshiro-free on purpose: SplitMix64 passes the tests that matter here and is seven lines
// (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014).
class Rng {
 public:
  explicit Rng(std::uint64_t seed) : state_(seed) {}

  std::uint64_t Next();
  // Uniform in [0, bound); bound must be positive.
  std::uint64_t Below(std::uint64_t bound);
  // True with probability numerator/denominator.
  bool Chance(std::uint64_t numerator, std::uint64_t denominator);

 private:
  std::uint64_t state_;
};

std::string NewUuid(Rng& rng);

// `length` characters of Kubernetes' generateName alphabet (apimachinery util/rand).
std::string NewNameSuffix(Rng& rng, int length = 5);

// A seed from the operating system.
std::uint64_t SeedFromMachine();

}  // namespace tahoma
