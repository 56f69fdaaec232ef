// Elements of any type to fp32 and back, as engines and DMA convert them.
//
//   std::vector<float> values(tile.size() / Size(ElementType::kBf16));
//   Widen(ElementType::kBf16, tile.data(), values);
//   Narrow(ElementType::kFp8E4m3, values, narrowed.data());
//   NarrowStochastic(ElementType::kBf16, values, seed, position, narrowed.data());
//
// Rounding is to nearest, ties to even, unless a function says otherwise. A floating type gets
// infinity for numbers half a step or more beyond its largest, denormals as IEEE has them, and for
// a NaN a quiet NaN of the same sign. An integer type gets its least or largest number for numbers
// beyond, and 0 for a NaN: AWS does not publish how Trainium2 does that, and saturation is our
// assumption (docs/reference/trainium2.md#data-types).
//
// Scope: element.h says what the types are.
//
// Thread safety: pure functions.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "lib/numeric/element.h"

namespace tahoma::sim {

// Reads to.size() elements that lie side by side; `from` needs no alignment. Floating types and
// integers up to 16 bits are exact, those of 32 bits are rounded.
void Widen(ElementType type, const std::byte* from, std::span<float> to);

// Writes from.size() elements side by side; `to` needs no alignment.
void Narrow(ElementType type, std::span<const float> from, std::byte* to);

// Narrows to a floating type by stochastic rounding. A magnitude between two neighbours of the type
// becomes the larger one with the probability of its distance from the smaller one, in steps. A
// number of the type keeps its value, and a NaN becomes a quiet NaN. Infinity takes the place of
// the number one step beyond the largest. Below 2^-40 of the smallest number a magnitude becomes 0.
// fp32 and integers are written as by Narrow: AWS does not publish where hardware rounds
// stochastically (docs/reference/trainium2.md#data-types).
//
// The random bits of from[i] follow from seed and position + i alone, so a tile has the same bytes
// however many calls convert its parts.
void NarrowStochastic(ElementType type, std::span<const float> from, std::uint64_t seed,
                      std::uint64_t position, std::byte* to);

}  // namespace tahoma::sim
