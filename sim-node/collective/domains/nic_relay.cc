#include "sim-node/collective/domains/nic_relay.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "lib/base/status.h"
#include "sim-node/collective/plan/chip_cost.h"

namespace tahoma::sim {
namespace {

using torus::ChipIndex;

// A range of a message's bytes, and the chip whose NIC carries it.
struct Piece {
  ChipIndex chip;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

// The chips that relay for the chips of a topology domain that cannot send, or receive, themselves.
struct Help {
  std::vector<std::pair<ChipIndex, std::uint64_t>> shares;
  std::uint64_t sum = 0;
};

// Relaying in one direction, in all domains.
class NicHelp {
 public:
  static absl::StatusOr<NicHelp> Of(NicDirection direction, const Step& sends, const DomainSet& set,
                                    const Fabric& fabric) {
    NicHelp help;
    std::map<ChipIndex, std::uint64_t> load;
    for (const Send& send : sends) {
      load[direction == NicDirection::kOut ? send.from : send.to] += send.bytes;
    }
    for (std::size_t group = 0; group < set.size(); ++group) {
      std::vector<std::pair<ChipIndex, std::uint64_t>> working;
      std::uint64_t all = 0;
      std::uint64_t most = 0;
      std::uint64_t stranded = 0;
      for (std::size_t place = 0; place < set.groups()[group].local.size(); ++place) {
        const ChipIndex chip = set.ChipOf(group, place);
        const std::uint64_t own = load[chip];
        all += own;
        most = std::max(most, own);
        if (fabric.capacity(fabric.NicOf(chip, direction)) != 0) {
          working.emplace_back(chip, own);
        } else {
          stranded += own;
          help.group_of_.emplace(chip, group);
        }
      }
      if (stranded > 0 && working.empty()) {
        const std::string_view act = direction == NicDirection::kOut ? "send" : "receive";
        return FailedPrecondition("none of the EFA NICs of the {} chips of domain {} can {}",
                                  set.groups()[group].local.size(), set.groups()[group].domain,
                                  act);
      }
      help.groups_.push_back(Shared(working, stranded, most, all));
    }
    return help;
  }

  bool IsNeededBy(ChipIndex chip) const { return group_of_.contains(chip); }

  // The bytes of a message that the chip sends or gets, dealt out.
  std::vector<Piece> Deal(ChipIndex chip, std::uint64_t begin, std::uint64_t end) const {
    const auto found = group_of_.find(chip);
    if (found == group_of_.end()) return {{.chip = chip, .begin = begin, .end = end}};
    const Help& help = groups_[found->second];
    std::vector<Piece> pieces;
    std::uint64_t dealt = 0;
    for (const auto& [helper, share] : help.shares) {
      const auto at = [&](std::uint64_t sum) {
        return begin + static_cast<std::uint64_t>(static_cast<Wide>(end - begin) * sum / help.sum);
      };
      const Piece piece{.chip = helper, .begin = at(dealt), .end = at(dealt + share)};
      if (piece.begin < piece.end) pieces.push_back(piece);
      dealt += share;
    }
    return pieces;
  }

 private:
  // Fills the working NICs up to one level, the first ones first.
  static Help Shared(const std::vector<std::pair<ChipIndex, std::uint64_t>>& working,
                     std::uint64_t stranded, std::uint64_t most, std::uint64_t all) {
    Help help;
    if (stranded == 0) return help;
    const std::uint64_t level = std::max(most, (all + working.size() - 1) / working.size());
    for (const auto& [chip, own] : working) {
      const std::uint64_t share = std::min(level - own, stranded - help.sum);
      if (share == 0) continue;
      help.shares.emplace_back(chip, share);
      help.sum += share;
    }
    return help;
  }

  std::map<ChipIndex, std::size_t> group_of_;  // of chips that need help
  std::vector<Help> groups_;
};

class RelayMaker {
 public:
  RelayMaker(const DomainSet& set, NicHelp out, NicHelp in,
             const std::map<ChipIndex, std::uint64_t>& free, std::uint64_t chunks)
      : set_(set), out_(std::move(out)), in_(std::move(in)), begin_(free), free_(free) {
    relay_.chunks.resize(chunks);
    for (Relay::Chunk& chunk : relay_.chunks) {
      chunk.handed_over.resize(set.size());
      chunk.handed_on.resize(set.size());
    }
  }

  void Add(const Send& send) {
    if (!out_.IsNeededBy(send.from) && !in_.IsNeededBy(send.to)) {
      relay_.direct.push_back(send);
      return;
    }
    const std::uint64_t chunks = relay_.chunks.size();
    for (std::uint64_t chunk = 0; chunk < chunks; ++chunk) {
      const std::uint64_t begin = send.bytes * chunk / chunks;
      const std::uint64_t end = send.bytes * (chunk + 1) / chunks;
      if (begin == end) continue;
      for (const Piece& leaving : out_.Deal(send.from, begin, end)) {
        for (const Piece& piece : in_.Deal(send.to, leaving.begin, leaving.end)) {
          AddPiece(send, leaving.chip, piece, relay_.chunks[chunk]);
        }
      }
    }
  }

  Relay Take() {
    for (const auto& [chip, free] : free_) {
      relay_.bytes = std::max(relay_.bytes, free - begin_.at(chip));
    }
    std::erase_if(relay_.chunks, [](const Relay::Chunk& chunk) { return chunk.between.empty(); });
    return std::move(relay_);
  }

 private:
  std::uint64_t Keep(ChipIndex chip, std::uint64_t bytes) {
    const std::uint64_t at = free_.at(chip);
    free_.at(chip) += bytes;
    return at;
  }

  // `sender` and piece.chip are those whose NICs carry the piece.
  void AddPiece(const Send& send, ChipIndex sender, const Piece& piece, Relay::Chunk& chunk) {
    Send leg = send;
    leg.bytes = piece.end - piece.begin;
    leg.offset = send.offset + piece.begin;
    if (sender != send.from) {
      leg.to = sender;
      leg.to_offset = Keep(sender, leg.bytes);
      chunk.handed_over[set_.GroupOf(sender)].push_back(leg);
      leg.offset = leg.to_offset;
    }
    const bool kept = piece.chip != send.to;
    leg.from = sender;
    leg.to = piece.chip;
    leg.to_offset = kept ? Keep(piece.chip, leg.bytes) : send.to_offset + piece.begin;
    chunk.between.push_back(leg);
    if (!kept) return;
    leg.from = piece.chip;
    leg.to = send.to;
    leg.offset = leg.to_offset;
    leg.to_offset = send.to_offset + piece.begin;
    chunk.handed_on[set_.GroupOf(send.to)].push_back(leg);
  }

  const DomainSet& set_;
  const NicHelp out_;
  const NicHelp in_;
  const std::map<ChipIndex, std::uint64_t>& begin_;
  std::map<ChipIndex, std::uint64_t> free_;
  Relay relay_;
};

}  // namespace

absl::StatusOr<Relay> RelayOf(const Step& sends, const DomainSet& set, const Fabric& fabric,
                              const std::map<ChipIndex, std::uint64_t>& free,
                              std::uint64_t chunks) {
  TAHOMA_ASSIGN_OR_RETURN(NicHelp out, NicHelp::Of(NicDirection::kOut, sends, set, fabric));
  TAHOMA_ASSIGN_OR_RETURN(NicHelp in, NicHelp::Of(NicDirection::kIn, sends, set, fabric));
  RelayMaker maker(set, std::move(out), std::move(in), free, chunks);
  for (const Send& send : sends) maker.Add(send);
  return maker.Take();
}

void AppendRelay(Relay relay, const DomainSet& set, const StepWork& work, const ChipCosts& costs,
                 const LinkTiming& timing, Schedule& schedule) {
  using Ends = std::vector<std::uint32_t>;
  const auto add = [&](Step step, const StepWork& of_step, torus::ChipMask through, Ends after) {
    schedule.scheduled.push_back({.step = static_cast<std::uint32_t>(schedule.steps.size()),
                                  .after = std::move(after),
                                  .through = through});
    schedule.steps.push_back(std::move(step));
    schedule.work.push_back(of_step);
    return static_cast<std::uint32_t>(schedule.scheduled.size() - 1);
  };
  // Schedules the handing of one chunk and group, after that of the chunk before.
  const auto hand = [&](Step& step, std::size_t group, Ends& last, Ends after) {
    if (step.empty()) return;
    after.insert(after.end(), last.begin(), last.end());
    const StepWork handing = WorkOf(step, {}, costs, timing);
    last = {add(std::move(step), handing, set.groups()[group].through, std::move(after))};
  };
  // A NIC is far slower than memory.
  const StepWork start{.start = work.start, .memory = {}};
  if (!relay.direct.empty()) add(std::move(relay.direct), start, kAllChips, {});
  std::vector<Ends> over(set.size());
  std::vector<Ends> on(set.size());
  std::vector<Ends> between(2);  // of the two chunks before: while one ends, the next has begun
  for (std::size_t chunk = 0; chunk < relay.chunks.size(); ++chunk) {
    Relay::Chunk& part = relay.chunks[chunk];
    Ends ready = between[chunk % 2];
    for (std::size_t group = 0; group < set.size(); ++group) {
      hand(part.handed_over[group], group, over[group], {});
      ready.insert(ready.end(), over[group].begin(), over[group].end());
    }
    between[chunk % 2] = {add(std::move(part.between), start, kAllChips, std::move(ready))};
    for (std::size_t group = 0; group < set.size(); ++group) {
      hand(part.handed_on[group], group, on[group], between[chunk % 2]);
    }
  }
}

}  // namespace tahoma::sim
