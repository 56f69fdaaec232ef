#include "sim-node/emulator/core/timeline.h"

#include <fmt/format.h>

#include <iterator>

#include "lib/isa/instruction.h"

namespace tahoma::sim {
namespace {

// The threads of a chip's links come first (sim-node/trace/formats.h).
constexpr std::size_t kFirstThread = 16;

double MicrosecondsOf(VirtualDuration duration) { return Nanoseconds(duration) / 1e3; }

}  // namespace

std::string CoreTimeline(const CoreRun& run, const isa::Program& program,
                         const TimelinePlace& place) {
  const std::size_t threads = kFirstThread + static_cast<std::size_t>(place.core) * kResourcesMax;
  std::string text = fmt::format(
      R"({{"displayTimeUnit":"ns","otherData":{{"title":"{}"}},"traceEvents":[)"
      R"({{"name":"process_name","ph":"M","pid":{},"tid":0,"args":{{"name":"chip {}"}}}})",
      program.name, place.chip, place.chip);
  const auto out = std::back_inserter(text);
  for (std::size_t i = 0; i < run.resources.size(); ++i) {
    if (run.resources[i].instructions == 0) continue;
    fmt::format_to(
        out,
        R"(,{{"name":"thread_name","ph":"M","pid":{},"tid":{},"args":{{"name":"core {} {}"}}}})",
        place.chip, threads + i, place.core, run.NameOf(i));
  }
  for (const Interval& one : run.timeline) {
    const isa::Instruction& instruction = program.instructions[one.instruction];
    fmt::format_to(out,
                   R"(,{{"name":"{}","cat":"core","ph":"X","ts":{:.6f},"dur":{:.6f},"pid":{},)"
                   R"("tid":{},"args":{{"instruction":{},"line":{}}}}})",
                   isa::RowOf(instruction.opcode).name,
                   MicrosecondsOf(one.begin.time_since_epoch()),
                   MicrosecondsOf(one.end - one.begin), place.chip, threads + one.resource,
                   one.instruction, instruction.line);
  }
  return text + "]}\n";
}

}  // namespace tahoma::sim
