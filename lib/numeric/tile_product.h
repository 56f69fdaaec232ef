// The product of two tiles in fp32, as a systolic array makes it.
//
//   const TileSizes sizes = {.k = 128, .m = 128, .n = 512};
//   MultiplyTiles(sizes, stationary, moving, Accumulate::kNo, out);
//   // out[m][n] = stationary[0][m] * moving[0][n] + … + stationary[127][m] * moving[127][n]
//
// A sum begins at zero and takes its products by ascending k, the rows of the array; each product
// and each sum is rounded to fp32, to nearest even, and none is fused. Only the finished sum is
// added to an accumulator. So a result has the same bits on every host, but for those of a NaN. AWS
// publishes neither the order in which the Tensor engine adds nor how wide its sums are inside.
//
// Scope: arithmetic. What nc_matmul reads and writes is in sim-node/emulator/core.
//
// Thread safety: pure function.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace tahoma::sim {

struct TileSizes {
  std::size_t k = 0;  // products of a sum
  std::size_t m = 0;  // columns of the stationary tile, rows of the result
  std::size_t n = 0;  // columns of the moving tile and of the result
};

enum class Accumulate : std::uint8_t { kNo, kYes };

// All tiles are row-major: `stationary` is [k, m], `moving` [k, n], `out` [m, n]. With kYes the
// product is added to `out`, else it replaces what is there. Sizes of spans must be equal to those.
void MultiplyTiles(const TileSizes& sizes, std::span<const float> stationary,
                   std::span<const float> moving, Accumulate accumulate, std::span<float> out);

}  // namespace tahoma::sim
