// An oracle of exchanges: the least time in which messages of one size between all pairs of some
// chips cross the links, whatever their routes, by linear programming's dual. It shares no code
// with the search for routes: Fleischer's multiplicative weights (2000) over lengths of the links.
//
// Any lengths give a lower bound: all messages along their shortest routes need at least
// sum(distance) of the sum(capacity x length) that the links have in a second. Lengths grow with
// the load of shortest routes, by which the bound comes close to the best.

#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "lib/torus/box.h"
#include "sim-node/emulator/link/torus_links.h"

namespace tahoma::sim::testing {

class ConcurrentFlow {
 public:
  ConcurrentFlow(const TorusLinks& links, torus::ChipMask members, torus::ChipMask through) {
    for (LinkId link = 0; link < links.id_count(); ++link) {
      const std::uint64_t rate = links.capacity(link);
      if (rate == 0) continue;
      const auto hop = links.HopOf(link);
      const int from = hop.from.value();
      const int to = hop.to.value();
      if ((through >> from & through >> to & 1U) == 0) continue;
      arcs_.push_back({.from = from, .to = to, .rate = static_cast<double>(rate)});
    }
    for (int chip = 0; chip < 64; ++chip) {
      if ((members >> chip & 1U) != 0) members_.push_back(chip);
    }
  }

  // Seconds for messages of one byte. Ends early with a bound that is `enough`.
  double LeastTime(int rounds, double enough) const {
    std::vector<double> length(arcs_.size());
    for (std::size_t i = 0; i < arcs_.size(); ++i) length[i] = 1 / arcs_[i].rate;
    double best = 0;
    for (int round = 0; round < rounds; ++round) {
      std::vector<double> load(arcs_.size(), 0);
      double distances = 0;
      for (const int source : members_) distances += AddShortest(source, length, load);
      double have = 0;
      for (std::size_t i = 0; i < arcs_.size(); ++i) have += arcs_[i].rate * length[i];
      best = std::max(best, distances / have);
      if (best >= enough) return best;
      double fullest = 0;
      for (std::size_t i = 0; i < arcs_.size(); ++i) {
        fullest = std::max(fullest, load[i] / arcs_[i].rate);
      }
      const double step = 0.5 / std::sqrt(1.0 + round);
      for (std::size_t i = 0; i < arcs_.size(); ++i) {
        length[i] *= std::exp(step * load[i] / arcs_[i].rate / fullest);
      }
    }
    return best;
  }

 private:
  struct Arc {
    int from = 0;
    int to = 0;
    double rate = 0;
  };

  // Loads the shortest routes from the source to all other members. Returns their summed lengths.
  double AddShortest(int source, const std::vector<double>& length,
                     std::vector<double>& load) const {
    constexpr double kFar = std::numeric_limits<double>::infinity();
    std::array<double, 64> far{};
    std::array<std::size_t, 64> by{};
    far.fill(kFar);
    far.at(static_cast<std::size_t>(source)) = 0;
    for (bool shorter = true; shorter;) {  // Bellman and Ford
      shorter = false;
      for (std::size_t i = 0; i < arcs_.size(); ++i) {
        const auto from = static_cast<std::size_t>(arcs_[i].from);
        const auto to = static_cast<std::size_t>(arcs_[i].to);
        if (far.at(from) + length[i] >= far.at(to) * (1 - 1e-12)) continue;
        far.at(to) = far.at(from) + length[i];
        by.at(to) = i;
        shorter = true;
      }
    }
    double sum = 0;
    for (const int member : members_) {
      sum += far.at(static_cast<std::size_t>(member));
      for (int at = member; at != source; at = arcs_[by.at(static_cast<std::size_t>(at))].from) {
        load[by.at(static_cast<std::size_t>(at))] += 1;
      }
    }
    return sum;
  }

  std::vector<Arc> arcs_;
  std::vector<int> members_;
};

}  // namespace tahoma::sim::testing
