#include "lib/isa/assemble.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "lib/base/status.h"
#include "lib/isa/check.h"
#include "lib/isa/instruction.h"
#include "lib/isa/place.h"
#include "lib/isa/regions.h"
#include "lib/isa/slice.h"
#include "lib/isa/waits.h"

namespace tahoma::isa {
namespace {

// Parts of memory that may be looked at, for any program and for each instruction. A million
// instructions on tiles look at some ten million, in a second.
constexpr std::size_t kWorkMax = std::size_t{1} << 24U;
constexpr std::size_t kWorkOfEach = 64;

// The memories of a program as spaces: SBUF, PSUM, and of HBM each buffer that shares no byte with
// another. Buffers in HBM that do share bytes, by addresses that the program gives, are one space.
class Spaces {
 public:
  explicit Spaces(const Program& program) : program_(program), of_(program.buffers.size()) {
    std::vector<std::size_t> in_hbm;
    for (std::size_t at = 0; at < program.buffers.size(); ++at) {
      const Memory memory = program.buffers[at].memory;
      of_[at].number = memory == Memory::kPsum ? 1 : 0;
      if (memory == Memory::kHbm) in_hbm.push_back(at);
    }
    std::ranges::sort(in_hbm, {}, [&](std::size_t at) { return *program.buffers[at].address; });
    std::int64_t end = 0;
    std::optional<std::size_t> before;
    for (const std::size_t at : in_hbm) {
      const Buffer& buffer = program.buffers[at];
      const bool shares = before && *buffer.address < end;
      of_[at].number = shares ? of_[*before].number : count_++;
      of_[at].shared = shares;
      if (shares) of_[*before].shared = true;
      end = std::max(shares ? end : 0, *buffer.address + BytesOf(buffer));
      before = at;
    }
  }

  std::size_t count() const { return count_; }
  std::size_t Of(const View& view) const {
    return of_[static_cast<std::size_t>(view.buffer)].number;
  }

  Region RegionOf(const View& view) const {
    const Buffer& buffer = program_.Of(view);
    const auto unit = static_cast<std::int64_t>(Size(buffer.type));
    const Hull hull = HullOf(buffer, view);
    const Interval bytes = {.begin = *buffer.address + hull.low * unit,
                            .end = *buffer.address + (hull.high + 1) * unit};
    if (buffer.memory != Memory::kHbm) {
      return {.rows = {.begin = view.partition, .end = view.partition + view.rows.count},
              .columns = bytes};
    }
    if (of_[static_cast<std::size_t>(view.buffer)].shared) {
      return {.rows = {.begin = 0, .end = 1}, .columns = bytes};
    }
    return Tile(buffer, view, hull);
  }

 private:
  struct Space {
    std::size_t number = 0;
    bool shared = false;
  };

  // Tiles beside each other in the rows of a matrix are disjoint, though their bytes interleave: a
  // row of the region is one of the buffer's last dimension, and columns are elements of it.
  static Region Tile(const Buffer& buffer, const View& view, const Hull& hull) {
    const std::int64_t pitch = buffer.shape.back();
    Hull rows = {.low = view.offset / pitch, .high = view.offset / pitch};
    Hull columns = {.low = view.offset % pitch, .high = view.offset % pitch};
    const auto reach = [&](const Step& step) {
      const bool along = step.stride % pitch == 0;
      const std::int64_t far = step.stride / (along ? pitch : 1) * (step.count - 1);
      Hull& reached = along ? rows : columns;
      (far < 0 ? reached.low : reached.high) += far;
    };
    reach(view.rows);
    for (const Step& step : view.free) reach(step);
    if (columns.low < 0 || columns.high >= pitch) {
      rows = {.low = hull.low / pitch, .high = hull.high / pitch};
      columns = {.low = 0, .high = pitch - 1};
    }
    return {.rows = {.begin = rows.low, .end = rows.high + 1},
            .columns = {.begin = columns.low, .end = columns.high + 1}};
  }

  const Program& program_;
  std::vector<Space> of_;
  std::size_t count_ = 2;
};

// Spaces that an instruction writes; in the others nobody waits for anybody.
std::vector<bool> WrittenOf(const Program& program, const Spaces& spaces) {
  std::vector<bool> written(spaces.count());
  for (const Instruction& instruction : program.instructions) {
    ForEachOperand(instruction, [&](const OperandRow& row, const View& view) {
      if (row.written) written[spaces.Of(view)] = true;
    });
  }
  return written;
}

// Finds the waits of a core. Meetings alone order the instructions of two cores.
absl::Status FindWaits(const Program& program, const Spaces& spaces,
                       const std::vector<bool>& written, int core,
                       std::vector<std::vector<std::uint32_t>>& waits) {
  std::vector<Regions> regions(spaces.count());
  Waits order(program.instructions.size());
  const std::size_t most = kWorkMax + kWorkOfEach * program.instructions.size();
  std::size_t work = 0;
  std::vector<std::uint32_t> earlier;
  for (std::uint32_t at = 0; at < program.instructions.size(); ++at) {
    const Instruction& instruction = program.instructions[at];
    if (instruction.core != core) continue;
    const Toucher self = {.instruction = at,
                          .engine = instruction.engine,
                          .asynchronous = IsAsynchronous(instruction.opcode)};
    const auto add = [&](std::uint32_t found) {
      if (found != at && (earlier.empty() || earlier.back() != found)) earlier.push_back(found);
    };
    earlier.clear();
    ForEachOperand(instruction, [&](const OperandRow& row, const View& view) {
      const std::size_t space = spaces.Of(view);
      if (!written[space]) return;
      Regions& there = regions[space];
      const Region region =
          spaces.RegionOf(&view == IndirectOf(instruction) ? program.Whole(view.buffer) : view);
      work -= there.work();
      if (row.written) {
        there.Write(region, self, add);
      } else {
        there.Read(region, self, add);
      }
      work += there.work();
    });
    if (work > most) {
      return ResourceExhausted(
          "{}: until here {} parts of buffers were compared to find who waits for whom, the most "
          "that is done for this program; expected fewer small views of buffers that are used "
          "whole",
          PlaceOf(program, at), most);
    }
    waits[at] = order.Next(at, instruction, earlier);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Assembled> Assemble(Program program) {
  TAHOMA_RETURN_IF_ERROR(PlaceBuffers(program));
  Assembled assembled;
  assembled.waits.resize(program.instructions.size());
  const Spaces spaces(program);
  const std::vector<bool> written = WrittenOf(program, spaces);
  for (int core = 0; core < program.Cores(); ++core) {
    TAHOMA_RETURN_IF_ERROR(FindWaits(program, spaces, written, core, assembled.waits));
  }
  for (const Buffer& buffer : program.buffers) {
    if (buffer.memory != Memory::kHbm) continue;
    assembled.hbm_bytes = std::max(assembled.hbm_bytes, *buffer.address + BytesOf(buffer));
  }
  assembled.program = std::move(program);
  return assembled;
}

}  // namespace tahoma::isa
