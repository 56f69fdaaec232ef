#include "sim-node/emulator/collective/algorithms/bucket.h"

#include <algorithm>
#include <utility>

#include "lib/base/check.h"

namespace tahoma::sim {
namespace {

using torus::Axis;
using torus::ChipIndex;
using torus::Coord;
using torus::Direction;

constexpr int kSide = 4;
constexpr std::size_t kRingSteps = kSide - 1;

struct Sends {
  const ChipSet& set;
  const torus::Shape& torus;
  std::vector<std::size_t> places = {};  // in the set, by chip

  // Chip `from` sends to `to` what is for chips with `coordinate` along the axis of the leg, and
  // has come to it over the axes `before`.
  void Append(const Cutter& cutter, std::size_t part, ChipIndex from, ChipIndex to, Axis axis,
              int coordinate, const std::vector<Axis>& before, Step& step) const {
    const Coord at = torus.CoordOf(from);
    for (std::size_t owner = 0; owner < places.size(); ++owner) {
      const Coord of = torus.CoordOf(ChipIndex(static_cast<int>(owner)));
      if (of.along(axis) != coordinate) continue;
      const bool comes_here = std::all_of(before.begin(), before.end(), [&](Axis done) {
        return of.along(done) == at.along(done);
      });
      if (comes_here) cutter.Append(step, from, to, places[owner], part, Action::kReduce);
    }
  }
};

ChipIndex Moved(const torus::Shape& torus, ChipIndex chip, Axis axis, int by) {
  Coord at = torus.CoordOf(chip);
  at.set(axis, (at.along(axis) + by + kSide) % kSide);
  return torus.IndexOf(at);
}

void AppendLeg(const Sends& sends, const Cutter& cutter, std::size_t part,
               const BucketChannel& channel, std::size_t leg_number, std::size_t delay,
               std::vector<Step>& steps) {
  const BucketLeg& leg = channel.legs[leg_number];
  const int sign = channel.direction == Direction::kPlus ? 1 : -1;
  std::vector<Axis> before;
  for (std::size_t i = 0; i < leg_number; ++i) before.push_back(channel.legs[i].axis);
  for (const ChipIndex from : sends.set.chips()) {
    const int at = sends.torus.CoordOf(from).along(leg.axis);
    for (int t = 0; t < kSide - 1; ++t) {
      const int by = leg.direct ? t + 1 : sign;
      const int target = leg.direct ? at + by : at - sign * (t + 1);
      const std::size_t step =
          leg.first_step + delay + (leg.direct ? 0 : static_cast<std::size_t>(t));
      sends.Append(cutter, part, from, Moved(sends.torus, from, leg.axis, by), leg.axis,
                   (target + kSide) % kSide, before, steps[step]);
    }
  }
}

BucketChannel Ringed(const std::vector<Axis>& axes, std::size_t first_step, Direction direction,
                     std::uint32_t weight) {
  BucketChannel channel{.legs = {}, .direction = direction, .weight = weight};
  for (const Axis axis : axes) {
    channel.legs.push_back({.axis = axis, .first_step = first_step});
    first_step += kRingSteps;
  }
  return channel;
}

}  // namespace

std::vector<BucketChannel> BucketChannels(bool pipelined) {
  std::vector<BucketChannel> channels;
  for (const Direction direction : torus::kDirections) {
    for (const auto& [one, other] :
         {std::pair(Axis::kX, Axis::kY), std::pair(Axis::kY, Axis::kX)}) {
      if (pipelined) {
        channels.push_back(Ringed({one, other, Axis::kZ}, 0, direction, 59));
        channels.push_back(Ringed({Axis::kZ, one, other}, 0, direction, 16));
        continue;
      }
      channels.push_back(Ringed({one, other, Axis::kZ}, 0, direction, 80));
      // These steps run beside the first class's first three, and beside the next, in which it
      // sends a quarter.
      for (const std::size_t round : {std::size_t{0}, std::size_t{1}}) {
        BucketChannel channel =
            Ringed({Axis::kZ}, round * kRingSteps, direction, round == 0 ? 20 : 5);
        channel.legs.push_back({.axis = one, .first_step = 2 * kRingSteps + round, .direct = true});
        channel.legs.push_back(
            {.axis = other, .first_step = 2 * kRingSteps + round + 1, .direct = true});
        channels.push_back(std::move(channel));
      }
    }
  }
  return channels;
}

std::vector<Step> BucketSteps(Phase phase, const ChipSet& set, const torus::Shape& torus,
                              const Layout& layout, std::size_t stripes) {
  TAHOMA_CHECK(set.size() == static_cast<std::size_t>(kSide * kSide * kSide));
  Sends sends{.set = set, .torus = torus};
  for (std::size_t chip = 0; chip < set.size(); ++chip) {
    sends.places.push_back(set.PlaceOf(ChipIndex(static_cast<int>(chip))));
  }
  const std::vector<BucketChannel> channels = BucketChannels(stripes > 1);
  std::vector<std::uint32_t> weights;
  for (const BucketChannel& channel : channels) weights.push_back(channel.weight);
  std::vector<Step> steps(3 * kRingSteps + stripes - 1);
  for (std::size_t stripe = 0; stripe < stripes; ++stripe) {
    const Cutter cutter(layout, weights, {.index = stripe, .count = stripes});
    for (std::size_t part = 0; part < channels.size(); ++part) {
      for (std::size_t leg = 0; leg < channels[part].legs.size(); ++leg) {
        AppendLeg(sends, cutter, part, channels[part], leg, stripe, steps);
      }
    }
  }
  if (phase == Phase::kReduceScatter) return steps;
  // All-gather undoes reduce-scatter: last step first, every message back where it came from.
  std::reverse(steps.begin(), steps.end());
  for (Step& step : steps) {
    for (Send& send : step) {
      std::swap(send.from, send.to);
      send.action = Action::kCopy;
    }
  }
  return steps;
}

}  // namespace tahoma::sim
