#include "lib/numeric/tile_product.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "lib/base/check.h"

// Compiled with -ffp-contract=off (CMakeLists.txt): a compiler for a host with fused multiply-add
// would otherwise round once where the header promises two roundings.

namespace tahoma::sim {
namespace {

// Four numbers that the host multiplies at once. Every x86-64 and arm64 host has registers of 16
// bytes, and enough of them for the sums of a block.
using Lanes = float __attribute__((vector_size(16)));
constexpr std::size_t kLanes = 4;
constexpr std::size_t kBlockRows = 4;
constexpr std::size_t kBlockVectors = 2;
constexpr std::size_t kBlockColumns = kBlockVectors * kLanes;
using Block = std::array<std::array<float, kBlockColumns>, kBlockRows>;

// Copies columns [begin, begin + width) of a tile of `rows` rows side by side; columns beyond the
// tile are zero.
void Pack(std::span<const float> tile, std::size_t rows, std::size_t begin, std::size_t width,
          std::span<float> to) {
  const std::size_t columns = tile.size() / rows;
  const std::size_t there = std::min(width, columns - begin);
  for (std::size_t row = 0; row < rows; ++row) {
    std::copy_n(&tile[row * columns + begin], there, &to[row * width]);
    std::fill_n(&to[row * width] + there, width - there, 0.0F);
  }
}

// The sums of a block, whose packed columns are kBlockRows wide in `stationary` and kBlockColumns
// in `moving`.
Block Multiply(std::size_t k, const float* stationary, const float* moving) {
  Lanes sums[kBlockRows][kBlockVectors] = {};
  for (std::size_t step = 0; step < k; ++step) {
    Lanes right[kBlockVectors];
    std::memcpy(right, moving + step * kBlockColumns, sizeof right);
    const float* left = stationary + step * kBlockRows;
    // Unrolled, all sums stay in registers: five times as fast.
#pragma GCC unroll 4
    for (std::size_t row = 0; row < kBlockRows; ++row) {
#pragma GCC unroll 2
      for (std::size_t at = 0; at < kBlockVectors; ++at) sums[row][at] += left[row] * right[at];
    }
  }
  Block block;
  static_assert(sizeof block == sizeof sums);
  std::memcpy(&block, sums, sizeof block);
  return block;
}

void Store(const Block& block, std::size_t n, std::size_t row, std::size_t column,
           Accumulate accumulate, std::span<float> out) {
  const std::size_t rows = std::min(kBlockRows, out.size() / n - row);
  const std::size_t columns = std::min(kBlockColumns, n - column);
  for (std::size_t i = 0; i < rows; ++i) {
    float* to = &out[(row + i) * n + column];
    for (std::size_t j = 0; j < columns; ++j) {
      to[j] = accumulate == Accumulate::kYes ? to[j] + block[i][j] : block[i][j];
    }
  }
}

}  // namespace

void MultiplyTiles(const TileSizes& sizes, std::span<const float> stationary,
                   std::span<const float> moving, Accumulate accumulate, std::span<float> out) {
  const auto& [k, m, n] = sizes;
  TAHOMA_CHECK(k > 0 && m > 0 && n > 0);
  TAHOMA_CHECK(stationary.size() == k * m && moving.size() == k * n && out.size() == m * n);
  std::vector<float> left(k * kBlockRows * ((m + kBlockRows - 1) / kBlockRows));
  for (std::size_t row = 0; row < m; row += kBlockRows) {
    Pack(stationary, k, row, kBlockRows, std::span(left).subspan(k * row));
  }
  std::vector<float> right(k * kBlockColumns);
  for (std::size_t column = 0; column < n; column += kBlockColumns) {
    Pack(moving, k, column, kBlockColumns, right);
    for (std::size_t row = 0; row < m; row += kBlockRows) {
      Store(Multiply(k, &left[k * row], right.data()), n, row, column, accumulate, out);
    }
  }
}

}  // namespace tahoma::sim
