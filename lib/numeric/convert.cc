#include "lib/numeric/convert.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "lib/base/rng.h"
#include "lib/numeric/native_types.h"

namespace tahoma::sim {
namespace {

template <typename T>
float ToFp32(T element) {
  if constexpr (std::is_class_v<T>) {
    return element.Widen();
  } else {
    return static_cast<float>(element);
  }
}

template <typename T>
T FromFp32(float value) {
  if constexpr (std::is_class_v<T>) {
    return T::Narrow(value);
  } else if constexpr (std::is_integral_v<T>) {
    if (std::isnan(value)) return 0;
    // A double holds both bounds of every integer type here.
    return static_cast<T>(std::clamp(std::nearbyint(static_cast<double>(value)),
                                     static_cast<double>(std::numeric_limits<T>::min()),
                                     static_cast<double>(std::numeric_limits<T>::max())));
  } else {
    return value;
  }
}

// Adds random bits to those that get lost: the sum carries with the probability wanted.
struct ByRandomBits {
  std::uint64_t random;

  std::uint32_t operator()(std::uint32_t significand, int lost) const {
    if (lost >= 64) return 0;
    const std::uint64_t drawn = random & ((std::uint64_t{1} << lost) - 1U);
    return static_cast<std::uint32_t>((significand + drawn) >> lost);
  }
};

}  // namespace

void Widen(ElementType type, const std::byte* from, std::span<float> to) {
  VisitNativeType(type, [&]<typename T>(std::type_identity<T>) {
    for (std::size_t i = 0; i < to.size(); ++i) {
      T element;
      std::memcpy(&element, from + i * sizeof(T), sizeof(T));
      to[i] = ToFp32(element);
    }
  });
}

void Narrow(ElementType type, std::span<const float> from, std::byte* to) {
  VisitNativeType(type, [&]<typename T>(std::type_identity<T>) {
    for (std::size_t i = 0; i < from.size(); ++i) {
      const T element = FromFp32<T>(from[i]);
      std::memcpy(to + i * sizeof(T), &element, sizeof(T));
    }
  });
}

void NarrowStochastic(ElementType type, std::span<const float> from, std::uint64_t seed,
                      std::uint64_t position, std::byte* to) {
  // Mixed once, so that neighbouring seeds are not neighbouring positions.
  const std::uint64_t key = Rng(seed).Next();
  VisitNativeType(type, [&]<typename T>(std::type_identity<T>) {
    if constexpr (std::is_class_v<T>) {
      for (std::size_t i = 0; i < from.size(); ++i) {
        const T element = T::Narrow(from[i], ByRandomBits{Rng(key + position + i).Next()});
        std::memcpy(to + i * sizeof(T), &element, sizeof(T));
      }
    } else {
      Narrow(type, from, to);
    }
  });
}

}  // namespace tahoma::sim
