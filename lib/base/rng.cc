#include "lib/base/rng.h"

#include <fmt/format.h>

#include <random>
#include <string_view>

#include "lib/base/check.h"

namespace tahoma {

std::uint64_t Rng::Next() {
  state_ += 0x9e3779b97f4a7c15ULL;
  std::uint64_t z = state_;
  z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27U)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31U);
}

std::uint64_t Rng::Below(std::uint64_t bound) {
  TAHOMA_CHECK(bound > 0);
  // Values at or above the largest multiple of bound would favour small results.
  const std::uint64_t limit = UINT64_MAX - UINT64_MAX % bound;
  std::uint64_t value = Next();
  while (value >= limit) value = Next();
  return value % bound;
}

bool Rng::Chance(std::uint64_t numerator, std::uint64_t denominator) {
  return Below(denominator) < numerator;
}

std::string NewUuid(Rng& rng) {
  const std::uint64_t high = (rng.Next() & ~0xf000ULL) | 0x4000ULL;
  const std::uint64_t low = (rng.Next() & ~(3ULL << 62U)) | (2ULL << 62U);
  return fmt::format("{:08x}-{:04x}-{:04x}-{:04x}-{:012x}", high >> 32U, (high >> 16U) & 0xffffU,
                     high & 0xffffU, low >> 48U, low & 0xffffffffffffULL);
}

std::string NewNameSuffix(Rng& rng, int length) {
  constexpr std::string_view kAlphabet = "bcdfghjklmnpqrstvwxz2456789";
  std::string suffix;
  for (int i = 0; i < length; ++i) suffix += kAlphabet[rng.Below(kAlphabet.size())];
  return suffix;
}

std::uint64_t SeedFromMachine() {
  std::random_device device;
  return (std::uint64_t{device()} << 32U) | device();
}

}  // namespace tahoma
