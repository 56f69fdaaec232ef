#include "sim-node/emulator/collective/domains/nic_relay.h"

#include <algorithm>
#include <utility>

#include "lib/base/status.h"
#include "sim-node/emulator/collective/domains/nic_help.h"
#include "sim-node/emulator/collective/plan/chip_cost.h"

namespace tahoma::sim {
namespace {

using torus::ChipIndex;

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
      for (const HelpedPiece& leaving : out_.Deal(send.from, begin, end)) {
        for (const HelpedPiece& piece : in_.Deal(send.to, leaving.begin, leaving.end)) {
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
  void AddPiece(const Send& send, ChipIndex sender, const HelpedPiece& piece, Relay::Chunk& chunk) {
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
  // Schedules the handing of one chunk and group, after that of the chunk before.
  const auto hand = [&](Step& step, std::size_t group, Ends& last, Ends after) {
    if (step.empty()) return;
    after.insert(after.end(), last.begin(), last.end());
    const StepWork handing = WorkOf(step, {}, costs, timing);
    last = {schedule.Append(std::move(step), handing,
                            {.after = std::move(after), .through = set.groups()[group].through})};
  };
  // A NIC is far slower than memory.
  const StepWork start{.start = work.start, .memory = {}};
  if (!relay.direct.empty()) schedule.Append(std::move(relay.direct), start, {});
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
    between[chunk % 2] = {
        schedule.Append(std::move(part.between), start, {.after = std::move(ready)})};
    for (std::size_t group = 0; group < set.size(); ++group) {
      hand(part.handed_on[group], group, on[group], between[chunk % 2]);
    }
  }
}

}  // namespace tahoma::sim
