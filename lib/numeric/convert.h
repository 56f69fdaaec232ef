// Elements of any type to fp32 and back, as engines and DMA convert them.
//
//   std::vector<float> values(tile.size() / Size(ElementType::kBf16));
//   Widen(ElementType::kBf16, tile.data(), values);
//   Narrow(ElementType::kFp8E4m3, values, narrowed.data());
//
// Every rounding is to nearest, ties to even. A floating type gets infinity for what lies half a
// step or more beyond its largest number, denormals as IEEE has them, and for a NaN a quiet NaN of
// the same sign. An integer type gets its least or largest number for what lies beyond, and 0 for a
// NaN; AWS does not publish how Trainium2 converts to integers, and saturation is our assumption
// (docs/reference/trainium2.md#data-types).
//
// Scope: element.h says what the types are.
//
// Thread safety: pure functions.

#pragma once

#include <cstddef>
#include <span>

#include "lib/numeric/element.h"

namespace tahoma::sim {

// Reads to.size() elements that lie side by side; `from` needs no alignment. Floating types and
// integers up to 16 bits are exact, those of 32 bits are rounded.
void Widen(ElementType type, const std::byte* from, std::span<float> to);

// Writes from.size() elements side by side; `to` needs no alignment.
void Narrow(ElementType type, std::span<const float> from, std::byte* to);

}  // namespace tahoma::sim
