#include "lib/collective/spread.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>

#include "lib/base/rng.h"

namespace tahoma::collective {
namespace {

// A set of pieces.
class Pieces {
 public:
  explicit Pieces(std::size_t count) : words_((count + 63) / 64) {}
  void Add(std::size_t piece) { words_[piece / 64] |= std::uint64_t{1} << (piece % 64); }
  std::size_t word_count() const { return words_.size(); }
  std::uint64_t word(std::size_t i) const { return words_[i]; }

 private:
  std::vector<std::uint64_t> words_;
};

class Greedy {
 public:
  Greedy(const std::vector<std::size_t>& owners, const std::vector<Edge>& edges, std::size_t chips)
      : edges_(edges),
        has_(chips, Pieces(owners.size())),
        promised_(chips, Pieces(owners.size())),
        copies_(owners.size(), 1),
        free_at_(edges.size(), 0),
        missing_((chips - 1) * owners.size()),
        senders_(chips) {
    for (const Edge& edge : edges) senders_[edge.to].push_back(edge.from);
    for (std::size_t piece = 0; piece < owners.size(); ++piece) {
      has_[owners[piece]].Add(piece);
      promised_[owners[piece]].Add(piece);
    }
  }

  std::optional<std::vector<PieceSend>> Run() {
    while (missing_ > 0) {
      Land();
      const bool started = Start();
      if (!started && flying_.empty() && missing_ > 0) return std::nullopt;
      now_ = NextLanding();
    }
    return std::move(sends_);
  }

 private:
  // Until then nobody has anything new, and no link that could be used is free.
  std::size_t NextLanding() const {
    std::size_t next = std::numeric_limits<std::size_t>::max();
    for (const PieceSend& one : flying_) next = std::min(next, one.begin + edges_[one.edge].steps);
    return next;
  }

  // Pieces that have arrived by the beginning of this step can be sent on.
  void Land() {
    std::erase_if(flying_, [this](const PieceSend& one) {
      const Edge& edge = edges_[one.edge];
      if (one.begin + edge.steps > now_) return false;
      has_[edge.to].Add(one.piece);
      return true;
    });
  }

  // Pieces that the edge's sender has and that nobody has promised its receiver, of one word.
  std::uint64_t Choice(const Edge& edge, std::size_t word) const {
    return has_[edge.from].word(word) & ~promised_[edge.to].word(word);
  }

  bool Start() {
    std::vector<std::pair<int, std::size_t>> idle;  // choice, edge
    for (std::size_t i = 0; i < edges_.size(); ++i) {
      if (free_at_[i] > now_) continue;
      int choice = 0;
      for (std::size_t word = 0; word < words(); ++word) {
        choice += std::popcount(Choice(edges_[i], word));
      }
      if (choice > 0) idle.emplace_back(choice, i);
    }
    for (std::size_t i = idle.size(); i > 1; --i) std::swap(idle[i - 1], idle[rng_.Below(i)]);
    std::stable_sort(idle.begin(), idle.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    bool started = false;
    for (const auto& [choice, i] : idle) started |= Carry(i);
    return started;
  }

  bool Carry(std::size_t i) {
    const Edge& edge = edges_[i];
    std::size_t rarest = copies_.size();
    std::uint64_t ties = 0;
    // Pieces that the receiver can get from nobody else come first: the others may come over other
    // edges.
    const std::vector<std::uint64_t> lone = Lone(i);
    for (std::size_t word = 0; word < words(); ++word) {
      for (std::uint64_t left = lone[word]; left != 0; left &= left - 1) {
        const std::size_t piece = word * 64 + static_cast<std::size_t>(std::countr_zero(left));
        if (rarest == copies_.size() || copies_[piece] < copies_[rarest]) {
          rarest = piece;
          ties = 1;
        } else if (copies_[piece] == copies_[rarest] && rng_.Below(++ties) == 0) {
          rarest = piece;
        }
      }
    }
    if (rarest == copies_.size()) return false;  // another edge has just promised it
    promised_[edge.to].Add(rarest);
    ++copies_[rarest];
    --missing_;
    free_at_[i] = now_ + edge.steps;
    flying_.push_back({.piece = rarest, .edge = i, .begin = now_});
    sends_.push_back(flying_.back());
    return true;
  }

  // The pieces to choose from, if possible only those that no other neighbour of the receiver has
  // or is being sent.
  std::vector<std::uint64_t> Lone(std::size_t i) const {
    const Edge& edge = edges_[i];
    std::vector<std::uint64_t> choice(words());
    std::vector<std::uint64_t> lone(words());
    bool any = false;
    for (std::size_t word = 0; word < words(); ++word) {
      choice[word] = lone[word] = Choice(edge, word);
      for (const std::size_t other : senders_[edge.to]) {
        if (other != edge.from) lone[word] &= ~promised_[other].word(word);
      }
      any = any || lone[word] != 0;
    }
    return any ? lone : choice;
  }

  std::size_t words() const { return has_.front().word_count(); }

  const std::vector<Edge>& edges_;
  std::vector<Pieces> has_;
  std::vector<Pieces> promised_;                   // what a chip has or is being sent
  std::vector<std::size_t> copies_;                // of each piece, promised ones included
  std::vector<std::size_t> free_at_;               // step, by edge
  std::size_t missing_;                            // promises that are still to be made
  std::vector<std::vector<std::size_t>> senders_;  // to each chip
  std::size_t now_ = 0;
  std::vector<PieceSend> flying_;
  std::vector<PieceSend> sends_;
  Rng rng_{1};  // breaks ties; any number does
};

}  // namespace

std::optional<std::vector<PieceSend>> Spread(const std::vector<std::size_t>& owners,
                                             const std::vector<Edge>& edges, std::size_t chips) {
  return Greedy(owners, edges, chips).Run();
}

}  // namespace tahoma::collective
