#include "lib/numeric/tile_product.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <tuple>
#include <vector>

#include "lib/base/rng.h"

namespace tahoma::sim {
namespace {

struct Tiles {
  TileSizes sizes;
  std::vector<float> stationary;
  std::vector<float> moving;
  std::vector<float> out;

  std::vector<float> Multiplied(Accumulate accumulate) const {
    std::vector<float> result = out;
    MultiplyTiles(sizes, stationary, moving, accumulate, result);
    return result;
  }
};

// Numbers of either sign and of sizes between 2^-range and 2^range.
std::vector<float> RandomNumbers(Rng& rng, std::size_t count, std::uint64_t range) {
  std::vector<float> numbers;
  for (std::size_t i = 0; i < count; ++i) {
    const auto mantissa = static_cast<float>(rng.Below(1U << 24U)) / (1U << 24U);
    const auto exponent = static_cast<int>(rng.Below(2 * range + 1)) - static_cast<int>(range);
    numbers.push_back(std::ldexp(rng.Chance(1, 2) ? mantissa : -mantissa, exponent));
  }
  return numbers;
}

Tiles RandomTiles(Rng& rng, const TileSizes& sizes, std::uint64_t range) {
  return {.sizes = sizes,
          .stationary = RandomNumbers(rng, sizes.k * sizes.m, range),
          .moving = RandomNumbers(rng, sizes.k * sizes.n, range),
          .out = RandomNumbers(rng, sizes.m * sizes.n, range)};
}

// Each operation on a variable of its own in memory, so that no compiler fuses or reorders any.
std::vector<float> OneByOne(const Tiles& tiles, Accumulate accumulate) {
  std::vector<float> result = tiles.out;
  const auto& [k, m, n] = tiles.sizes;
  for (std::size_t row = 0; row < m; ++row) {
    for (std::size_t column = 0; column < n; ++column) {
      volatile float sum = 0;
      for (std::size_t i = 0; i < k; ++i) {
        const volatile float product = tiles.stationary[i * m + row] * tiles.moving[i * n + column];
        sum = sum + product;
      }
      float& to = result[row * n + column];
      to = accumulate == Accumulate::kYes ? to + sum : sum;
    }
  }
  return result;
}

bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

TEST(TileProductTest, BitsAreThoseOfSumsTakenOneByOne) {
  Rng rng(3);
  std::vector<TileSizes> all = {{1, 1, 1}, {128, 128, 512}, {128, 1, 512}, {1, 128, 1}, {7, 5, 9}};
  for (int i = 0; i < 60; ++i) {
    all.push_back({1 + rng.Below(40), 1 + rng.Below(20), 1 + rng.Below(40)});
  }
  for (const TileSizes& sizes : all) {
    for (const std::uint64_t range : {2U, 70U}) {  // with 70 some sums overflow and some vanish
      const Tiles tiles = RandomTiles(rng, sizes, range);
      for (const Accumulate accumulate : {Accumulate::kNo, Accumulate::kYes}) {
        const auto [k, m, n] = sizes;
        std::vector<float> expected = OneByOne(tiles, accumulate);
        std::vector<float> found = tiles.Multiplied(accumulate);
        for (std::size_t at = 0; at < found.size(); ++at) {  // NaNs differ in bits between hosts
          if (std::isnan(found[at]) && std::isnan(expected[at])) found[at] = expected[at] = 0;
        }
        EXPECT_TRUE(SameBits(found, expected)) << k << " " << m << " " << n << " " << range;
      }
    }
  }
}

TEST(TileProductTest, ASumIsAsNearToTheExactAsItsRoundingsAllow) {
  Rng rng(4);
  const TileSizes sizes = {.k = 128, .m = 16, .n = 33};
  const Tiles tiles = RandomTiles(rng, sizes, 3);
  const std::vector<float> found = tiles.Multiplied(Accumulate::kNo);
  for (std::size_t row = 0; row < sizes.m; ++row) {
    for (std::size_t column = 0; column < sizes.n; ++column) {
      double exact = 0, magnitude = 0;
      for (std::size_t i = 0; i < sizes.k; ++i) {
        const double product = static_cast<double>(tiles.stationary[i * sizes.m + row]) *
                               static_cast<double>(tiles.moving[i * sizes.n + column]);
        exact += product;
        magnitude += std::abs(product);
      }
      // k products and k sums, each off by half a step of 2^-24 at most.
      const double bound = magnitude * static_cast<double>(sizes.k + 1) * std::ldexp(1.0, -24);
      EXPECT_NEAR(static_cast<double>(found[row * sizes.n + column]), exact, bound);
    }
  }
}

TEST(TileProductTest, AnAccumulatorIsAddedAfterTheSum) {
  const float tiny = std::ldexp(1.0F, -24);  // 1 + tiny is 1: each alone would be lost
  Tiles tiles = {
      .sizes = {.k = 2, .m = 1, .n = 1}, .stationary = {tiny, tiny}, .moving = {1, 1}, .out = {1}};
  EXPECT_EQ(tiles.Multiplied(Accumulate::kYes), std::vector<float>{1 + 2 * tiny});
  EXPECT_EQ(tiles.Multiplied(Accumulate::kNo), std::vector<float>{2 * tiny});
}

TEST(TileProductTest, ProductsAreRoundedBeforeTheyAreAdded) {
  const float x = 1 + std::ldexp(1.0F, -12);  // x * x = 1 + 2^-11 + 2^-24: the last bit is lost
  const Tiles tiles = {.sizes = {.k = 2, .m = 1, .n = 1},
                       .stationary = {1 + std::ldexp(1.0F, -11), x},
                       .moving = {-1, x},
                       .out = {0}};
  EXPECT_EQ(tiles.Multiplied(Accumulate::kNo), std::vector<float>{0});
}

TEST(TileProductTest, InfinitiesAndNansReachTheirRowsAndColumnsOnly) {
  Rng rng(5);
  Tiles tiles = RandomTiles(rng, {.k = 8, .m = 6, .n = 10}, 2);
  tiles.stationary[3 * 6 + 2] = std::numeric_limits<float>::quiet_NaN();
  tiles.moving[5 * 10 + 9] = std::numeric_limits<float>::infinity();
  const std::vector<float> found = tiles.Multiplied(Accumulate::kNo);
  for (std::size_t row = 0; row < 6; ++row) {
    for (std::size_t column = 0; column < 10; ++column) {
      EXPECT_EQ(std::isfinite(found[row * 10 + column]), row != 2 && column != 9);
    }
  }
}

}  // namespace
}  // namespace tahoma::sim
