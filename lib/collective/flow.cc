#include "lib/collective/flow.h"

#include <algorithm>
#include <bit>

#include "lib/collective/masks.h"

namespace tahoma::collective {
namespace {

using torus::ChipMask;

}  // namespace

Graph::Graph(const DomainLinks& links, ChipMask through, bool backwards) : chips_(through) {
  for (ChipMask left = through; left != 0; left &= left - 1) {
    for (int port = 0; port < kPortsPerChip; ++port) {
      const auto arc = static_cast<Arc>(Lowest(left) * kPortsPerChip + port);
      if (links.rate(arc) == 0 || (through & Bit(links.to(arc))) == 0) continue;
      const int from = backwards ? links.to(arc) : Lowest(left);
      const int to = backwards ? Lowest(left) : links.to(arc);
      rate_[At(from, to)] += links.rate(arc);
      into_[static_cast<std::size_t>(to)] |= Bit(from);
      out_of_[static_cast<std::size_t>(from)] |= Bit(to);
    }
  }
}

std::uint64_t Graph::RateInto(ChipMask part) const {
  std::uint64_t sum = 0;
  for (ChipMask inside = part; inside != 0; inside &= inside - 1) {
    for (ChipMask from = Into(Lowest(inside)) & ~part; from != 0; from &= from - 1) {
      sum += Rate(Lowest(from), Lowest(inside));
    }
  }
  return sum;
}

void Graph::SetRate(int from, int to, std::uint64_t rate) {
  rate_[At(from, to)] = rate;
  ChipMask& into = into_[static_cast<std::size_t>(to)];
  ChipMask& out_of = out_of_[static_cast<std::size_t>(from)];
  into = rate == 0 ? into & ~Bit(from) : into | Bit(from);
  out_of = rate == 0 ? out_of & ~Bit(to) : out_of | Bit(to);
}

Flow::Flow(const Graph& graph, std::uint64_t times, ChipMask sources, ChipMask fed,
           std::uint64_t feed)
    : sources_(sources), fed_(feed == 0 ? 0 : fed) {
  AddLinks(graph, times);
  feed_.fill(feed);
}

Flow::Flow(const Graph& graph, std::uint64_t times, ChipMask sources,
           const std::array<std::uint64_t, kChipsMax>& feed)
    : sources_(sources), fed_(0), feed_(feed) {
  AddLinks(graph, times);
  for (ChipMask left = graph.chips(); left != 0; left &= left - 1) {
    if (feed[static_cast<std::size_t>(Lowest(left))] != 0) fed_ |= left & (~left + 1);
  }
}

void Flow::AddLinks(const Graph& graph, std::uint64_t times) {
  for (ChipMask left = graph.chips(); left != 0; left &= left - 1) {
    const int to = Lowest(left);
    into_[static_cast<std::size_t>(to)] = graph.Into(to);
    for (ChipMask from = graph.Into(to); from != 0; from &= from - 1) {
      left_[At(Lowest(from), to)] = graph.Rate(Lowest(from), to) * times;
    }
  }
}

std::uint64_t Flow::Fill(int sink, std::uint64_t wanted) {
  std::uint64_t got = 0;
  while (got < wanted) {
    const int begin = FindGiver(sink);
    if (begin < 0) break;
    got += Push(begin, sink, wanted - got);
  }
  return got;
}

int Flow::FindGiver(int sink) {
  seen_ = Bit(sink);
  for (ChipMask frontier = seen_; frontier != 0;) {
    if (const ChipMask giving = frontier & (sources_ | fed_); giving != 0) return Lowest(giving);
    ChipMask next = 0;
    for (; frontier != 0; frontier &= frontier - 1) {
      const int to = Lowest(frontier);
      const ChipMask fresh = into_[static_cast<std::size_t>(to)] & ~seen_;
      seen_ |= fresh;
      next |= fresh;
      for (ChipMask left = fresh; left != 0; left &= left - 1) {
        onward_[static_cast<std::size_t>(Lowest(left))] = static_cast<std::uint8_t>(to);
      }
    }
    frontier = next;
  }
  return -1;
}

std::uint64_t Flow::Push(int begin, int sink, std::uint64_t most) {
  const bool is_source = (sources_ & Bit(begin)) != 0;
  std::uint64_t amount = is_source ? most : std::min(most, feed_[static_cast<std::size_t>(begin)]);
  for (int at = begin; at != sink; at = onward_[static_cast<std::size_t>(at)]) {
    amount = std::min(amount, left_[At(at, onward_[static_cast<std::size_t>(at)])]);
  }
  if (!is_source && (feed_[static_cast<std::size_t>(begin)] -= amount) == 0) fed_ &= ~Bit(begin);
  for (int at = begin; at != sink;) {
    const int to = onward_[static_cast<std::size_t>(at)];
    if ((left_[At(at, to)] -= amount) == 0) into_[static_cast<std::size_t>(to)] &= ~Bit(at);
    left_[At(to, at)] += amount;
    into_[static_cast<std::size_t>(at)] |= Bit(to);
    at = to;
  }
  return amount;
}

std::uint64_t LeastRateFrom(const Graph& graph, ChipMask members, int root) {
  std::uint64_t least = ~std::uint64_t{0};
  for (ChipMask left = members & ~Bit(root); left != 0; left &= left - 1) {
    least = std::min(least, graph.RateInto(left & (~left + 1)));
  }
  Flow flow(graph, 1, Bit(root), 0, 0);
  for (ChipMask left = members & ~Bit(root); left != 0; left &= left - 1) {
    least = std::min(least, flow.Fill(Lowest(left), least));
    flow.AddSource(Lowest(left));
  }
  return least;
}

}  // namespace tahoma::collective
