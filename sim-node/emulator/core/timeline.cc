#include "sim-node/emulator/core/timeline.h"

#include <fmt/format.h>

#include <iterator>

#include "lib/isa/instruction.h"

namespace tahoma::sim {
namespace {

// The threads of a chip's links come first (sim-node/trace/formats.h).
constexpr std::size_t kFirstThread = 16;

double MicrosecondsOf(VirtualDuration duration) { return Nanoseconds(duration) / 1e3; }

void AddRank(const RankTimeline& rank, const isa::Program& program, std::string& text) {
  const std::size_t threads = kFirstThread + static_cast<std::size_t>(rank.core) * kResourcesMax;
  const auto out = std::back_inserter(text);
  for (std::size_t i = 0; i < rank.run->resources.size(); ++i) {
    if (rank.run->resources[i].instructions == 0) continue;
    fmt::format_to(
        out,
        R"(,{{"name":"thread_name","ph":"M","pid":{},"tid":{},"args":{{"name":"core {} {}"}}}})",
        rank.chip, threads + i, rank.core, rank.run->NameOf(i));
  }
  for (const Interval& one : rank.run->timeline) {
    const isa::Instruction& instruction = program.instructions[one.instruction];
    fmt::format_to(out,
                   R"(,{{"name":"{}","cat":"core","ph":"X","ts":{:.6f},"dur":{:.6f},"pid":{},)"
                   R"("tid":{},"args":{{"instruction":{},"line":{}}}}})",
                   isa::RowOf(instruction.opcode).name,
                   MicrosecondsOf(one.begin.time_since_epoch()),
                   MicrosecondsOf(one.end - one.begin), rank.chip, threads + one.resource,
                   one.instruction, instruction.line);
  }
}

}  // namespace

std::string CoreTimeline(std::span<const RankTimeline> ranks, const isa::Program& program) {
  std::string text = fmt::format(
      R"({{"displayTimeUnit":"ns","otherData":{{"title":"{}"}},"traceEvents":[)", program.name);
  int named = -1;  // ranks of a chip follow one another
  for (const RankTimeline& rank : ranks) {
    if (rank.chip != named) {
      fmt::format_to(
          std::back_inserter(text),
          R"({}{{"name":"process_name","ph":"M","pid":{},"tid":0,"args":{{"name":"chip {}"}}}})",
          named == -1 ? "" : ",", rank.chip, rank.chip);
    }
    named = rank.chip;
    AddRank(rank, program, text);
  }
  return text + "]}\n";
}

}  // namespace tahoma::sim
