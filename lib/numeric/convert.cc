#include "lib/numeric/convert.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

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

}  // namespace tahoma::sim
