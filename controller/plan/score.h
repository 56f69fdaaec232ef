// Predicts how fast chips will talk to each other: the first criterion in the choice of a place.
//
//   AllReduceTime(torus::Shape::Of<4, 2, 1>());      // 1.225 ms
//   PlaceScores scores;
//   scores.AllReduceTime(0x0777, down);              // of any chips of an instance
//   PredictAllReduce(state, holdings);               // of what a gang has got
//
// The score is the predicted time of an all-reduce of kScoredBytes in each chip, with one rank on
// each: gradients are summed in buckets of some hundred MiB, so that start-up counts a little and
// bandwidth most.
//
// Thread safety: pure functions; a PlaceScores belongs to one thread (it remembers).

#pragma once

#include <absl/container/flat_hash_map.h>

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <tuple>

#include "controller/model/cluster.h"
#include "lib/collective/predict.h"
#include "lib/torus/box.h"

namespace tahoma::controller {

inline constexpr std::uint64_t kScoredBytes = std::uint64_t{256} << 20;

// Returns the time for a box of that size as placed, with sides of 1, 2 and 4 and healthy links, of
// Trainium2: boxes of other chips have the same order. It is read from a table.
collective::Picoseconds AllReduceTime(const torus::Shape& size);

class PlaceScores {
 public:
  // Returns the time for any chips of an instance of that model while links are down;
  // Picoseconds::max() when they are cut off from each other. The first call for a set takes some
  // microseconds.
  collective::Picoseconds AllReduceTime(std::uint16_t chips, const torus::LinkMask& down,
                                        const hw::ChipModel& model = hw::kTrainium2) const;

 private:
  // The model, the chips, and the links between chips of the instance that are down.
  using Asked = std::tuple<const hw::ChipModel*, std::uint16_t, std::array<std::uint16_t, 2>>;
  mutable absl::flat_hash_map<Asked, collective::Picoseconds> known_;
};

// Returns the time for all chips that these claims hold together, over EFA where they are in
// several domains, with the links as they are. A logical core counts as its chip with the HBM banks
// of the gang's cores alone; the chip with the fewest banks decides. nullopt when there are fewer
// than two chips, when a node is not known, when chips are of different models, or when links that
// are down cut chips off.
std::optional<collective::Picoseconds> PredictAllReduce(const ClusterState& state,
                                                        std::span<const Holding* const> holdings);

// Formats a time: "627.2us", "1.273ms", "2.000s".
std::string TimeText(collective::Picoseconds time);

}  // namespace tahoma::controller
