#include "sim-node/emulator/core/operand_cursor.h"

#include <algorithm>

#include "lib/base/check.h"
#include "lib/base/status.h"
#include "lib/isa/instruction.h"
#include "lib/numeric/convert.h"

namespace tahoma::sim {
namespace {

// The same elements in the same order by as few steps as possible.
std::vector<isa::Step> Merged(std::span<const isa::Step> steps) {
  std::vector<isa::Step> merged;
  for (const isa::Step& step : steps) {
    if (step.count == 1) continue;
    if (!merged.empty() && merged.back().stride == step.stride * step.count) {
      merged.back() = {.stride = step.stride, .count = merged.back().count * step.count};
    } else {
      merged.push_back(step);
    }
  }
  return merged;
}

}  // namespace

std::size_t Execution::ElementsOf(std::size_t operand) const {
  const isa::View& view = ViewOf(operand);
  return static_cast<std::size_t>(view.Count());
}

void Execution::Round(std::size_t operand, std::size_t first, std::span<const float> values,
                      std::byte* to) const {
  constexpr int kBitsOfElement = 40;  // a buffer has fewer than 2^40 elements
  if (!rounding_seed) return Narrow(TypeOf(operand), values, to);
  const std::uint64_t position =
      (static_cast<std::uint64_t>(operand) << kBitsOfElement) + first_element + first;
  NarrowStochastic(TypeOf(operand), values, *rounding_seed, position, to);
}

OperandCursor::OperandCursor(const Execution& execution, std::size_t operand)
    : execution_(execution),
      operand_(operand),
      memory_(execution.program.Of(execution.ViewOf(operand)).memory),
      element_bytes_(static_cast<std::int64_t>(Size(execution.TypeOf(operand)))),
      partition_(execution.ViewOf(operand).partition),
      offset_(execution.ViewOf(operand).offset) {
  const isa::View& view = execution.ViewOf(operand);
  std::vector<isa::Step> steps = view.free;
  // On the chip each row is another partition, wherever its elements are.
  if (memory_ == isa::Memory::kHbm) steps.insert(steps.begin(), view.rows);
  steps = Merged(steps);
  if (!steps.empty() && steps.back().stride == 1) {
    run_elements_ = steps.back().count;
    steps.pop_back();
  }
  for (const isa::Step& step : steps) outer_.push_back({.step = step});
}

OperandCursor::Run OperandCursor::Next(std::size_t most) {
  const auto& address = execution_.program.Of(execution_.ViewOf(operand_)).address;
  TAHOMA_CHECK(address.has_value());
  const std::int64_t count =
      std::min(run_elements_ - taken_, static_cast<std::int64_t>(most) / element_bytes_);
  TAHOMA_CHECK(count > 0);
  const Run run = {.partition = partition_,
                   .address = *address + (offset_ + taken_) * element_bytes_,
                   .bytes = static_cast<std::size_t>(count * element_bytes_)};
  taken_ += count;
  if (taken_ < run_elements_) return run;
  taken_ = 0;
  for (auto dimension = outer_.rbegin(); dimension != outer_.rend(); ++dimension) {
    offset_ += dimension->step.stride;
    if (++dimension->at < dimension->step.count) return run;
    offset_ -= dimension->step.stride * dimension->step.count;
    dimension->at = 0;
  }
  ++partition_;
  return run;
}

absl::Status OperandCursor::Annotated(const absl::Status& status) const {
  return Annotate(status, isa::RowOf(execution_.instruction.opcode).operands[operand_].name);
}

absl::Status OperandCursor::Read(std::span<std::byte> to) {
  while (!to.empty()) {
    const Run run = Next(to.size());
    const std::span<std::byte> part = to.first(run.bytes);
    const absl::Status status =
        memory_ == isa::Memory::kHbm
            ? execution_.hbm.Read(static_cast<std::uint64_t>(run.address), part)
            : execution_.memory.Read(memory_, run.partition, run.address, part);
    if (!status.ok()) return Annotated(status);
    to = to.subspan(run.bytes);
  }
  return absl::OkStatus();
}

absl::Status OperandCursor::Write(std::span<const std::byte> from) {
  while (!from.empty()) {
    const Run run = Next(from.size());
    const std::span<const std::byte> part = from.first(run.bytes);
    if (memory_ == isa::Memory::kHbm) {
      const absl::Status status =
          execution_.hbm.Write(static_cast<std::uint64_t>(run.address), part);
      if (!status.ok()) return Annotated(status);
    } else {
      execution_.memory.Write(memory_, run.partition, run.address, part);
    }
    from = from.subspan(run.bytes);
  }
  return absl::OkStatus();
}

absl::Status OperandCursor::Take(Moved& moved) {
  moved.written.clear();
  const isa::View& dst = execution_.ViewOf(0);
  if (memory_ == isa::Memory::kHbm || execution_.program.Of(dst).memory == isa::Memory::kHbm) {
    return Read(moved.bytes);
  }
  for (std::size_t done = 0; done < moved.bytes.size();) {
    const Run run = Next(moved.bytes.size() - done);
    const auto part = std::span(moved.bytes).subspan(done, run.bytes);
    for (std::size_t at = 0;; ++at) {
      at += execution_.memory.ReadWritten(
          memory_, run.partition, run.address + static_cast<std::int64_t>(at), part.subspan(at));
      if (at == part.size()) break;
      if (moved.written.empty()) moved.written.assign(moved.bytes.size(), std::byte{1});
      moved.written[done + at] = std::byte{0};
    }
    done += run.bytes;
  }
  return absl::OkStatus();
}

absl::Status OperandCursor::Put(const Moved& moved) {
  if (moved.written.empty()) return Write(moved.bytes);
  for (std::size_t done = 0; done < moved.bytes.size();) {
    const Run run = Next(moved.bytes.size() - done);
    const auto bytes = std::span(moved.bytes).subspan(done, run.bytes);
    const auto written = std::span(moved.written).subspan(done, run.bytes);
    for (std::size_t at = 0; at < run.bytes;) {
      const auto other = std::ranges::find_if(written.subspan(at),
                                              [&](std::byte one) { return one != written[at]; });
      const auto length = static_cast<std::size_t>(other - written.subspan(at).begin());
      const std::int64_t address = run.address + static_cast<std::int64_t>(at);
      if (written[at] == std::byte{0}) {
        execution_.memory.Forget(memory_, run.partition, address, length);
      } else {
        execution_.memory.Write(memory_, run.partition, address, bytes.subspan(at, length));
      }
      at += length;
    }
    done += run.bytes;
  }
  return absl::OkStatus();
}

void OperandCursor::Skip(std::size_t bytes) {
  while (bytes > 0) bytes -= Next(bytes).bytes;
}

absl::StatusOr<std::vector<std::byte>> ReadBytes(const Execution& execution, std::size_t operand) {
  std::vector<std::byte> bytes(execution.ElementsOf(operand) * Size(execution.TypeOf(operand)));
  TAHOMA_RETURN_IF_ERROR(OperandCursor(execution, operand).Read(bytes));
  return bytes;
}

absl::StatusOr<Moved> TakeBytes(const Execution& execution, std::size_t operand) {
  Moved moved;
  moved.bytes.resize(execution.ElementsOf(operand) * Size(execution.TypeOf(operand)));
  TAHOMA_RETURN_IF_ERROR(OperandCursor(execution, operand).Take(moved));
  return moved;
}

absl::Status PutBytes(const Execution& execution, const Moved& moved) {
  return OperandCursor(execution, 0).Put(moved);
}

absl::StatusOr<std::vector<float>> ReadFp32(const Execution& execution, std::size_t operand) {
  TAHOMA_ASSIGN_OR_RETURN(const std::vector<std::byte> bytes, ReadBytes(execution, operand));
  std::vector<float> values(execution.ElementsOf(operand));
  Widen(execution.TypeOf(operand), bytes.data(), values);
  return values;
}

absl::StatusOr<std::vector<float>> ReadColumn(const Execution& execution, std::size_t operand,
                                              float number) {
  if (execution.Has(operand)) return ReadFp32(execution, operand);
  return std::vector<float>(execution.RowsOf(0), number);
}

absl::Status WriteFp32(const Execution& execution, std::size_t operand,
                       std::span<const float> values) {
  TAHOMA_CHECK(values.size() == execution.ElementsOf(operand));
  std::vector<std::byte> bytes(values.size() * Size(execution.TypeOf(operand)));
  execution.Round(operand, 0, values, bytes.data());
  return OperandCursor(execution, operand).Write(bytes);
}

}  // namespace tahoma::sim
