// Instructions that are executed beside an oracle: a map from byte to value, where the index of an
// element is computed from the number of the element.
//
//   Bench bench;
//   const BufferId tile = bench.Add(Memory::kSbuf, ElementType::kFp32, 4, 6, 0);
//   bench.Fill(rng, tile);
//   ASSERT_TRUE(bench.Run({.opcode = Opcode::kMemset, .operands = {bench.Whole(tile)}}).ok());
//   bench.RememberFp32(bench.Whole(tile), 0, 0);
//   EXPECT_EQ(bench.Difference(), "");

#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "lib/base/rng.h"
#include "lib/base/status.h"
#include "lib/numeric/convert.h"
#include "sim-node/emulator/core/execute.h"

namespace tahoma::sim {

using isa::Buffer;
using isa::BufferId;
using isa::Memory;
using isa::Opcode;
using isa::Program;
using isa::View;

// Bytes from 0, and how often the core asked for some.
class FlatHbm : public HbmPort {
 public:
  explicit FlatHbm(std::size_t bytes) : bytes_(bytes) {}

  absl::Status Read(std::uint64_t address, std::span<std::byte> to) override {
    ++calls;
    if (address + to.size() > bytes_.size()) return OutOfRange("no byte {}", address + to.size());
    std::memcpy(to.data(), bytes_.data() + address, to.size());
    return absl::OkStatus();
  }
  absl::Status Write(std::uint64_t address, std::span<const std::byte> from) override {
    ++calls;
    if (address + from.size() > bytes_.size())
      return OutOfRange("no byte {}", address + from.size());
    std::memcpy(bytes_.data() + address, from.data(), from.size());
    return absl::OkStatus();
  }

  int calls = 0;

 private:
  std::vector<std::byte> bytes_;
};

using Place = std::tuple<Memory, int, std::int64_t>;  // memory, partition, byte
using Bytes = std::map<Place, std::byte>;

// The place of the first byte of a view's element by its number.
inline Place PlaceOf(const Program& program, const View& view, std::int64_t number) {
  std::int64_t row = number;
  std::int64_t offset = view.offset;
  for (auto step = view.free.rbegin(); step != view.free.rend(); ++step) {
    offset += row % step->count * step->stride;
    row /= step->count;
  }
  const Buffer& buffer = program.Of(view);
  const auto size = static_cast<std::int64_t>(Size(buffer.type));
  if (buffer.memory == Memory::kHbm) {
    return {Memory::kHbm, 0, *buffer.address + (offset + row * view.rows.stride) * size};
  }
  return {buffer.memory, view.partition + static_cast<int>(row), *buffer.address + offset * size};
}

inline std::int64_t CountOf(const View& view) {
  std::int64_t count = view.rows.count;
  for (const isa::Step& step : view.free) count *= step.count;
  return count;
}

// A program whose instructions are executed, and by the oracle on bytes in a map.
class Bench {
 public:
  explicit Bench(std::size_t hbm_bytes = std::size_t{1} << 20U) : hbm_(hbm_bytes) {}

  BufferId Add(Memory memory, ElementType type, std::int64_t rows, std::int64_t columns,
               std::int64_t address) {
    return program_.Add({.name = fmt::format("b{}", program_.buffers.size()),
                         .memory = memory,
                         .type = type,
                         .shape = {rows, columns},
                         .address = address});
  }

  // Writes random bits to each element of a buffer. Floats are finite unless `any` is true.
  void Fill(Rng& rng, BufferId id, bool any = false) {
    const View whole = program_.Whole(id);
    const ElementType type = program_.Of(id).type;
    for (std::int64_t number = 0; number < CountOf(whole); ++number) {
      std::vector<std::byte> element(Size(type));
      float value = 0;
      do {
        for (std::byte& byte : element) byte = static_cast<std::byte>(rng.Next());
        Widen(type, element.data(), {&value, 1});
      } while (!any && !std::isfinite(value));
      Put(whole, number, element);
    }
  }

  void Put(const View& view, std::int64_t number, std::span<const std::byte> element) {
    const auto [memory, partition, at] = PlaceOf(program_, view, number);
    if (memory == Memory::kHbm) {
      ASSERT_TRUE(hbm_.Write(static_cast<std::uint64_t>(at), element).ok());
    } else {
      memory_.Write(memory, partition, at, element);
    }
    Remember(view, number, element);
  }

  absl::Status Run(Opcode opcode, std::vector<View> operands, bool accumulate = false,
                   std::int32_t line = 1) {
    return Run({.opcode = opcode,
                .operands = std::move(operands),
                .accumulate = accumulate,
                .line = line});
  }
  absl::Status Run(isa::Instruction instruction,
                   std::optional<std::uint64_t> rounding_seed = std::nullopt) {
    program_.instructions.push_back(std::move(instruction));
    hbm_.calls = 0;
    return Execute(program_, program_.instructions.back(), nullptr, {&memory_, 1}, hbm_,
                   rounding_seed);
  }

  std::vector<std::byte> Expected(const View& view, std::int64_t number) const {
    const auto [memory, partition, at] = PlaceOf(program_, view, number);
    std::vector<std::byte> element;
    for (std::size_t byte = 0; byte < Size(program_.Of(view).type); ++byte) {
      element.push_back(expected_.at({memory, partition, at + static_cast<std::int64_t>(byte)}));
    }
    return element;
  }

  // All elements of a view, in order.
  std::vector<float> ExpectedFp32(const View& view) const {
    std::vector<float> values(static_cast<std::size_t>(CountOf(view)));
    for (std::size_t at = 0; at < values.size(); ++at) {
      const std::vector<std::byte> element = Expected(view, static_cast<std::int64_t>(at));
      Widen(program_.Of(view).type, element.data(), {&values[at], 1});
    }
    return values;
  }

  // The elements of a view on chip as they are, not as the oracle says.
  std::vector<float> FoundFp32(const View& view) const {
    std::vector<float> values(static_cast<std::size_t>(CountOf(view)));
    for (std::size_t number = 0; number < values.size(); ++number) {
      const auto [memory, partition, at] =
          PlaceOf(program_, view, static_cast<std::int64_t>(number));
      std::vector<std::byte> element(Size(program_.Of(view).type));
      EXPECT_TRUE(memory_.Read(memory, partition, at, element).ok());
      Widen(program_.Of(view).type, element.data(), {&values[number], 1});
    }
    return values;
  }

  void Remember(const View& view, std::int64_t number, std::span<const std::byte> element) {
    const auto [memory, partition, at] = PlaceOf(program_, view, number);
    for (std::size_t byte = 0; byte < element.size(); ++byte) {
      expected_[{memory, partition, at + static_cast<std::int64_t>(byte)}] = element[byte];
    }
  }

  void RememberFp32(const View& view, std::int64_t number, float value) {
    std::vector<std::byte> element(Size(program_.Of(view).type));
    Narrow(program_.Of(view).type, {&value, 1}, element.data());
    Remember(view, number, element);
  }

  // The first byte of memory that is not as the oracle says; "" when all are.
  std::string Difference() {
    for (const auto& [place, expected] : expected_) {
      const auto& [memory, partition, at] = place;
      std::byte found{};
      const absl::Status status = memory == Memory::kHbm
                                      ? hbm_.Read(static_cast<std::uint64_t>(at), {&found, 1})
                                      : memory_.Read(memory, partition, at, {&found, 1});
      if (!status.ok() || found != expected) {
        return fmt::format("memory {} partition {} byte {}: {} is not {}", static_cast<int>(memory),
                           partition, at, static_cast<int>(found), static_cast<int>(expected));
      }
    }
    return "";
  }

  View Whole(BufferId id) const { return program_.Whole(id); }
  const Program& program() const { return program_; }
  FlatHbm& hbm() { return hbm_; }
  CoreMemory& memory() { return memory_; }

 private:
  Program program_;
  CoreMemory memory_;
  FlatHbm hbm_;
  Bytes expected_;
};

}  // namespace tahoma::sim
