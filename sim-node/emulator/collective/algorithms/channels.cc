#include "sim-node/emulator/collective/algorithms/channels.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <span>

#include "lib/torus/path.h"

namespace tahoma::sim {
namespace {

using torus::ChipIndex;

// The dimensions of a box by the rate of their links.
struct Dimensions {
  std::vector<int> fast;  // X and Y
  std::vector<int> slow;  // Z
};

Dimensions DimensionsOf(const torus::Box& box, const torus::Shape& torus) {
  const std::vector<ChipIndex> chips = torus::BoxChips(box, torus);
  Dimensions found;
  for (int d = 0; d < std::countr_zero(chips.size()); ++d) {
    const torus::Coord from = torus.CoordOf(chips[0]);
    const torus::Coord to = torus.CoordOf(chips[std::size_t{1} << d]);
    (from.z == to.z ? found.fast : found.slow).push_back(d);
  }
  return found;
}

std::vector<int> Rotated(std::vector<int> list, std::size_t by) {
  std::rotate(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(by), list.end());
  return list;
}

// Returns a channel that uses a dimension in each step.
Channel WithoutPause(std::vector<int> order) {
  std::vector<int> step(order.size());
  std::iota(step.begin(), step.end(), 0);
  return {.order = std::move(order), .step = std::move(step)};
}

// Channels of one kind: which of their exchanges, from the first (bit 0), are over slow dimensions,
// in which steps they are (bit 0: the first), and their share in 1024ths.
struct Pattern {
  std::uint32_t slow;
  std::uint32_t steps;
  std::uint32_t share;
};

// The patterns for boxes with so many dimensions of each kind. Each is the solution of a linear
// programme, the least sum of step times over all such patterns, rounded to 1024ths: sizes that are
// powers of two are then cut evenly.
constexpr Pattern k1Fast1Slow[] = {  // 1.144 x the bound
    {0b01, 0b1001, 146},
    {0b10, 0b0011, 293},
    {0b10, 0b0110, 293},
    {0b10, 0b1100, 292}};
constexpr Pattern k2Fast1Slow[] = {  // 1.050
    {0b001, 0b110001, 103}, {0b010, 0b100011, 171}, {0b100, 0b000111, 241},
    {0b100, 0b001110, 222}, {0b100, 0b011100, 130}, {0b100, 0b111000, 157}};
constexpr Pattern k3Fast1Slow[] = {  // 1.015
    {0b0001, 0b1110001, 93},  {0b0010, 0b1100011, 127}, {0b0100, 0b1000111, 170},
    {0b1000, 0b0001111, 261}, {0b1000, 0b0011110, 165}, {0b1000, 0b0111100, 107},
    {0b1000, 0b1111000, 101}};
constexpr Pattern k4Fast1Slow[] = {  // 1.001
    {0b00001, 0b11110001, 80},  {0b00010, 0b11100011, 104}, {0b00100, 0b11000111, 134},
    {0b01000, 0b10001111, 175}, {0b10000, 0b00011111, 227}, {0b10000, 0b00111110, 147},
    {0b10000, 0b01111100, 95},  {0b10000, 0b11111000, 62}};
constexpr Pattern k1Fast2Slow[] = {  // 1.056
    {0b011, 0b10011, 55},
    {0b101, 0b11001, 273},
    {0b110, 0b00111, 328},
    {0b110, 0b01110, 191},
    {0b110, 0b11100, 177}};
constexpr Pattern k2Fast2Slow[] = {  // 1.016
    {0b0011, 0b1100011, 26},  {0b1001, 0b1110001, 210}, {0b0110, 0b1000111, 210},
    {0b1100, 0b0001111, 263}, {0b1100, 0b0011110, 105}, {0b1100, 0b0111100, 184},
    {0b1100, 0b1111000, 26}};
constexpr Pattern k3Fast2Slow[] = {  // 1.004
    {0b00011, 0b11100011, 85},  {0b10001, 0b11110001, 95},  {0b00110, 0b11000111, 147},
    {0b01100, 0b10001111, 151}, {0b11000, 0b00011111, 241}, {0b11000, 0b00111110, 152},
    {0b11000, 0b01111100, 88},  {0b11000, 0b11111000, 65}};
constexpr Pattern k4Fast2Slow[] = {  // 1.0002
    {0b000011, 0b111100011, 72},  {0b100001, 0b011111001, 39},  {0b100001, 0b111110001, 66},
    {0b000110, 0b111000111, 84},  {0b001100, 0b011001111, 13},  {0b001100, 0b110001111, 147},
    {0b101000, 0b000111111, 115}, {0b110000, 0b000111111, 349}, {0b110000, 0b011111100, 129},
    {0b110000, 0b111111000, 10}};

// Empty where no staggering helps.
std::span<const Pattern> PatternsOf(std::size_t fast, std::size_t slow) {
  constexpr std::span<const Pattern> kOneSlow[] = {k1Fast1Slow, k2Fast1Slow, k3Fast1Slow,
                                                   k4Fast1Slow};
  constexpr std::span<const Pattern> kTwoSlow[] = {k1Fast2Slow, k2Fast2Slow, k3Fast2Slow,
                                                   k4Fast2Slow};
  if (fast == 0 || slow == 0) return {};
  return slow == 1 ? kOneSlow[fast - 1] : kTwoSlow[fast - 1];
}

Channel ChannelOf(const Pattern& pattern, const std::vector<int>& fast,
                  const std::vector<int>& slow) {
  Channel channel;
  channel.weight = pattern.share;
  auto next_fast = fast.begin();
  auto next_slow = slow.begin();
  for (std::uint32_t steps = pattern.steps; steps != 0; steps &= steps - 1) {
    const bool is_slow = (pattern.slow >> channel.order.size() & 1U) != 0;
    channel.order.push_back(is_slow ? *next_slow++ : *next_fast++);
    channel.step.push_back(std::countr_zero(steps));
  }
  return channel;
}

}  // namespace

std::vector<Channel> BalancedChannels(const torus::Box& box, const torus::Shape& torus) {
  const auto [fast, slow] = DimensionsOf(box, torus);
  std::vector<Channel> channels;
  if (fast.empty() || slow.empty()) {
    const std::vector<int>& only = fast.empty() ? slow : fast;
    for (std::size_t r = 0; r < only.size(); ++r)
      channels.push_back(WithoutPause(Rotated(only, r)));
    if (channels.empty()) channels.emplace_back();
    return channels;
  }
  // Row i of the Latin square has the first slow dimension in step i and each fast one once.
  const std::size_t n = fast.size() + 1;
  for (std::size_t s = 0; s < slow.size(); ++s) {
    const std::vector<int> slow_order = Rotated(slow, s);
    for (std::size_t i = 0; i < n; ++i) {
      std::vector<int> order;
      for (std::size_t j = 0; j < n; ++j) {
        const std::size_t symbol = (i + n - j) % n;
        order.push_back(symbol == 0 ? slow_order[0] : fast[symbol - 1]);
      }
      order.insert(order.end(), slow_order.begin() + 1, slow_order.end());
      channels.push_back(WithoutPause(std::move(order)));
    }
  }
  // A Z link has half the rate of an X/Y link. Two Z dimensions together carry what one X/Y
  // dimension does, so the square is balanced; a single one needs as many channels again without
  // it.
  for (std::size_t r = 0; slow.size() == 1 && r < fast.size(); ++r) {
    std::vector<int> order = Rotated(fast, r);
    order.push_back(slow[0]);
    channels.push_back(WithoutPause(std::move(order)));
  }
  return channels;
}

std::vector<Channel> StaggeredChannels(const torus::Box& box, const torus::Shape& torus) {
  const auto [fast, slow] = DimensionsOf(box, torus);
  std::vector<Channel> channels;
  for (const Pattern& pattern : PatternsOf(fast.size(), slow.size())) {
    // Every dimension comes first, second, ... among its like equally often.
    for (std::size_t r = 0; r < std::lcm(fast.size(), slow.size()); ++r) {
      channels.push_back(
          ChannelOf(pattern, Rotated(fast, r % fast.size()), Rotated(slow, r % slow.size())));
    }
  }
  return channels;
}

std::vector<Channel> SlowLastChannels(const torus::Box& box, const torus::Shape& torus) {
  const auto [fast, slow] = DimensionsOf(box, torus);
  std::vector<Channel> channels;
  const std::size_t count =
      std::lcm(std::max<std::size_t>(fast.size(), 1), std::max<std::size_t>(slow.size(), 1));
  for (std::size_t r = 0; r < count; ++r) {
    std::vector<int> order = fast.empty() ? fast : Rotated(fast, r % fast.size());
    for (std::size_t i = 0; i < slow.size(); ++i) order.push_back(slow[(i + r) % slow.size()]);
    channels.push_back(WithoutPause(std::move(order)));
  }
  return channels;
}

}  // namespace tahoma::sim
