#include "sim-node/emulator/collective/domains/nic_relay.h"

#include <algorithm>
#include <utility>

#include "sim-node/emulator/collective/plan/chip_cost.h"

namespace tahoma::sim {
namespace {

using torus::ChipIndex;

class RelayMaker {
 public:
  RelayMaker(const DomainSet& set, const std::map<ChipIndex, std::uint64_t>& free,
             std::uint64_t chunks)
      : set_(set), begin_(free), free_(free) {
    relay_.chunks.resize(chunks);
    for (Relay::Chunk& chunk : relay_.chunks) {
      chunk.handed_over.resize(set.size());
      chunk.handed_on.resize(set.size());
    }
  }

  void Add(const Send& send) {
    const ChipIndex sender = set_.ProxyOf(send.from);
    const ChipIndex receiver = set_.ProxyOf(send.to);
    if (sender == send.from && receiver == send.to) {
      relay_.direct.push_back(send);
      return;
    }
    const std::uint64_t chunks = relay_.chunks.size();
    for (std::uint64_t chunk = 0; chunk < chunks; ++chunk) {
      const std::uint64_t begin = send.bytes * chunk / chunks;
      const std::uint64_t end = send.bytes * (chunk + 1) / chunks;
      if (begin == end) continue;
      Send part = send;
      part.offset += begin;
      part.to_offset += begin;
      part.bytes = end - begin;
      AddPart(part, sender, receiver, relay_.chunks[chunk]);
    }
  }

  Relay Finish() {
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

  // `sender` and `receiver` are the chips whose NICs carry the part.
  void AddPart(const Send& send, ChipIndex sender, ChipIndex receiver, Relay::Chunk& chunk) {
    Send leg = send;
    if (sender != send.from) {
      leg.to = sender;
      leg.to_offset = Keep(sender, leg.bytes);
      chunk.handed_over[set_.GroupOf(sender)].push_back(leg);
      leg.offset = leg.to_offset;
    }
    const bool kept = receiver != send.to;
    leg.from = sender;
    leg.to = receiver;
    leg.to_offset = kept ? Keep(receiver, leg.bytes) : send.to_offset;
    chunk.between.push_back(leg);
    if (!kept) return;
    leg.from = receiver;
    leg.to = send.to;
    leg.offset = leg.to_offset;
    leg.to_offset = send.to_offset;
    chunk.handed_on[set_.GroupOf(send.to)].push_back(leg);
  }

  const DomainSet& set_;
  const std::map<ChipIndex, std::uint64_t>& begin_;
  std::map<ChipIndex, std::uint64_t> free_;
  Relay relay_;
};

}  // namespace

Relay RelayOf(const Step& sends, const DomainSet& set,
              const std::map<ChipIndex, std::uint64_t>& free, std::uint64_t chunks) {
  RelayMaker maker(set, free, chunks);
  for (const Send& send : sends) maker.Add(send);
  return maker.Finish();
}

void AppendRelay(Relay relay, const DomainSet& set, const StepWork& work, const ChipCosts& costs,
                 const LinkTiming& timing, Schedule& schedule) {
  using Ends = std::vector<std::uint32_t>;
  // Schedules the handing of one chunk and group, after that of the chunk before.
  const auto hand = [&](Step& step, std::size_t group, Ends& last, Ends after) {
    if (step.empty()) return;
    after.insert(after.end(), last.begin(), last.end());
    const StepWork handing = WorkOf(step, {.banks = set.banks()}, costs, timing);
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
