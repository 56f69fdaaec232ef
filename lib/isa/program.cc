#include "lib/isa/program.h"

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <numeric>
#include <utility>

#include "lib/isa/slice.h"

namespace tahoma::isa {
namespace {

constexpr std::array<std::string_view, 3> kMemoryNames = {"hbm", "sbuf", "psum"};
constexpr std::array<std::string_view, kEngines> kEngineNames = {"tensor", "vector", "scalar",
                                                                 "gpsimd", "sync"};

std::int64_t Product(std::span<const std::int64_t> extents) {
  return std::accumulate(extents.begin(), extents.end(), std::int64_t{1}, std::multiplies<>());
}

}  // namespace

std::int64_t View::FreeCount() const {
  std::int64_t count = 1;
  for (const Step& step : free) count *= step.count;
  return count;
}

std::int64_t View::AdjacentCount() const {
  std::int64_t adjacent = 1;
  for (auto step = free.rbegin(); step != free.rend(); ++step) {
    if (step->count != 1 && step->stride != adjacent) return adjacent;
    adjacent *= step->count;
  }
  return adjacent;
}

const View* Instruction::Find(std::size_t row_operand) const {
  const unsigned bit = 1U << row_operand;
  if ((left_out & bit) != 0) return nullptr;
  const auto before = static_cast<std::size_t>(std::popcount(left_out & (bit - 1U)));
  return &operands.at(row_operand - before);
}

BufferId Program::Add(Buffer buffer) {
  buffers.push_back(std::move(buffer));
  return BufferId(static_cast<std::uint32_t>(buffers.size() - 1));
}

int Program::Cores() const {
  const auto second = [](const Instruction& one) { return one.core == 1; };
  return std::ranges::any_of(instructions, second) ? 2 : 1;
}

View Program::Whole(BufferId id) const { return Slice(Of(id), id, {}); }

std::string_view Name(Memory memory) { return kMemoryNames.at(static_cast<std::size_t>(memory)); }
std::string_view Name(Use use) {
  constexpr std::array<std::string_view, 4> kNames = {"", "in", "out", "inout"};
  return kNames.at(static_cast<std::size_t>(use));
}

std::string_view Name(Engine engine) { return kEngineNames.at(static_cast<std::size_t>(engine)); }

std::int64_t ElementsOf(const Buffer& buffer) { return Product(buffer.shape); }

std::int64_t BytesOf(const Buffer& buffer) {
  const std::span<const std::int64_t> shape = buffer.shape;
  return Product(buffer.memory == Memory::kHbm ? shape : shape.subspan(1)) *
         static_cast<std::int64_t>(Size(buffer.type));
}

}  // namespace tahoma::isa
