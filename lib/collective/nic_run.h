// The time of chunks on the NICs between topology domains.
//
// A chunk has one step between the domains, or two. A step's messages leave when the step before
// has ended, and behind those of the same step of the chunk before. Steps of two kinds share NICs
// as flows do, fairly.
//
// Thread safety: a NicRun belongs to one thread.

#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "lib/collective/domain_links.h"

namespace tahoma::collective {

// The steps of a chunk between the domains: the picoseconds of the fullest NIC, when no other step
// uses it.
struct ChunkOnNics {
  std::array<double, 2> on_nic{};  // the second 0: there is one step
};

// The parts of their own speed at which the two steps go on while both send.
struct StepSpeeds {
  std::array<double, 2> both = {0.5, 0.5};
};

class NicRun {
 public:
  NicRun(std::vector<ChunkOnNics> chunks, const StepSpeeds& speeds, const hw::ChipModel& chip);

  // Returns the time at which each chunk has arrived, when each is ready at its time.
  std::vector<Picoseconds> Run(const std::vector<Picoseconds>& ready);

 private:
  static constexpr Picoseconds kNever = Picoseconds::max();
  // A step of all chunks, one after the other.
  struct Queue {
    std::size_t next = 0;  // chunk
    bool sends = false;
    double left = 0;
  };

  bool Done() const { return ready_.back().back() != kNever; }
  double SpeedOf(std::size_t step) const;
  Picoseconds DepartureOf(std::size_t step) const;
  void Start(Picoseconds now);
  Picoseconds Next(Picoseconds now) const;
  void Advance(Picoseconds elapsed);
  void Finish(Picoseconds now);

  const std::vector<ChunkOnNics> chunks_;
  const StepSpeeds speeds_;
  const Picoseconds step_;                       // the software's, before the departure
  const Picoseconds latency_;                    // from the end on the NICs to the arrival
  std::vector<Queue> queues_;                    // by step
  std::vector<std::vector<Picoseconds>> ready_;  // by step and chunk; the last: has arrived
};

}  // namespace tahoma::collective
