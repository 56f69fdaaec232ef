// Instructions of operators and selections, on random types and views, beside an oracle that takes
// one element after the other.

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "lib/base/rng.h"
#include "lib/base/status.h"
#include "lib/isa/instruction.h"
#include "tests/unit/sim-node/emulator/core/execute_bench.h"

namespace tahoma::sim {
namespace {

using isa::Engine;
using isa::Instruction;

constexpr std::int64_t kRows = 4;
constexpr std::int64_t kColumns = 6;

constexpr std::array kAllTypes = {
    ElementType::kUint8,   ElementType::kInt8,   ElementType::kFp8E3m4, ElementType::kFp8E4m3,
    ElementType::kFp8E5m2, ElementType::kUint16, ElementType::kInt16,   ElementType::kFp16,
    ElementType::kBf16,    ElementType::kUint32, ElementType::kInt32,   ElementType::kFp32,
    ElementType::kFp32r};
constexpr std::array kIntegers = {ElementType::kUint8, ElementType::kInt8,   ElementType::kUint16,
                                  ElementType::kInt16, ElementType::kUint32, ElementType::kInt32};
constexpr std::array kFp32Only = {ElementType::kFp32};

template <typename Values>
auto AnyOf(Rng& rng, const Values& values) {
  return values[rng.Below(values.size())];
}

// A random number of fp32 that an option may have.
float AnyNumber(Rng& rng) { return static_cast<float>(rng.Below(4000)) / 16 - 125; }

// Buffers side by side, and views of all their elements.
class Tiles {
 public:
  explicit Tiles(Rng& rng) : rng_(rng) {}

  template <typename Types>
  View Tile(const Types& types) {
    return Rearranged(Filled(types, kColumns));
  }
  template <typename Types>
  View Column(const Types& types) {
    return bench.Whole(Filled(types, 1));
  }
  float Number(const View& view, std::int64_t at) const {
    return bench.ExpectedFp32(view).at(static_cast<std::size_t>(at));
  }
  // The pattern of an integer, with zeros before.
  std::uint32_t Pattern(const View& view, std::int64_t at) const {
    std::uint32_t pattern = 0;
    const std::vector<std::byte> bytes = bench.Expected(view, at);
    std::memcpy(&pattern, bytes.data(), bytes.size());
    return pattern;
  }
  void RememberPattern(const View& view, std::int64_t at, std::uint32_t pattern) {
    std::array<std::byte, 4> bytes{};
    std::memcpy(bytes.data(), &pattern, 4);
    bench.Remember(view, at, std::span(bytes).first(Size(bench.program().Of(view).type)));
  }
  void ExpectAsRemembered(const Instruction& instruction) {
    const absl::Status status = bench.Run(instruction);
    ASSERT_TRUE(status.ok()) << status;
    ASSERT_EQ(bench.Difference(), "");
  }

  Bench bench;

 private:
  template <typename Types>
  BufferId Filled(const Types& types, std::int64_t columns) {
    const BufferId id = bench.Add(Memory::kSbuf, AnyOf(rng_, types), kRows, columns, address_);
    address_ += 64;
    bench.Fill(rng_, id);
    return id;
  }
  // The elements of each partition in another order.
  View Rearranged(BufferId id) {
    View view = bench.Whole(id);
    if (rng_.Chance(1, 3)) {
      view.offset = kColumns - 1;
      view.free = {{.stride = -1, .count = kColumns}};
    } else if (rng_.Chance(1, 2)) {
      view.free = {{.stride = 1, .count = 2}, {.stride = 2, .count = kColumns / 2}};
    }
    return view;
  }

  Rng& rng_;
  std::int64_t address_ = 0;
};

float Truth(bool value) { return value ? 1 : 0; }

// The operators in their plainest form.
float Combine(AluOp op, float a, float b) {
  static const std::map<AluOp, float (*)(float, float)> kAll = {
      {AluOp::kAdd, [](float x, float y) { return x + y; }},
      {AluOp::kSubtract, [](float x, float y) { return x - y; }},
      {AluOp::kMultiply, [](float x, float y) { return x * y; }},
      {AluOp::kMaximum, [](float x, float y) { return x < y ? y : x; }},
      {AluOp::kMinimum, [](float x, float y) { return y < x ? y : x; }},
      {AluOp::kAbsMax, [](float x, float y) { return std::fmax(std::fabs(x), std::fabs(y)); }},
      {AluOp::kAbsMin, [](float x, float y) { return std::fmin(std::fabs(x), std::fabs(y)); }},
      {AluOp::kEqual, [](float x, float y) { return Truth(x == y); }},
      {AluOp::kNotEqual, [](float x, float y) { return Truth(x != y); }},
      {AluOp::kGreater, [](float x, float y) { return Truth(x > y); }},
      {AluOp::kGreaterEqual, [](float x, float y) { return Truth(x >= y); }},
      {AluOp::kLess, [](float x, float y) { return Truth(x < y); }},
      {AluOp::kLessEqual, [](float x, float y) { return Truth(x <= y); }},
      {AluOp::kLogicalAnd, [](float x, float y) { return Truth(x != 0 && y != 0); }},
      {AluOp::kLogicalOr, [](float x, float y) { return Truth(x != 0 || y != 0); }},
      {AluOp::kLogicalXor, [](float x, float y) { return Truth((x != 0) != (y != 0)); }},
      {AluOp::kAbs, [](float x, float) { return std::fabs(x); }},
      {AluOp::kSquare, [](float x, float) { return x * x; }},
      {AluOp::kRelu, [](float x, float) { return x < 0 ? 0.0F : x; }},
  };
  return kAll.at(op)(a, b);
}

constexpr std::array kBinary = {
    AluOp::kAdd,        AluOp::kSubtract,  AluOp::kMultiply,  AluOp::kMaximum,
    AluOp::kMinimum,    AluOp::kAbsMax,    AluOp::kAbsMin,    AluOp::kEqual,
    AluOp::kNotEqual,   AluOp::kGreater,   AluOp::kLess,      AluOp::kGreaterEqual,
    AluOp::kLogicalAnd, AluOp::kLessEqual, AluOp::kLogicalOr, AluOp::kLogicalXor};
constexpr std::array kUnary = {AluOp::kAbs, AluOp::kSquare, AluOp::kRelu};

AluOp AnyArithmetic(Rng& rng) {
  return rng.Chance(1, 4) ? AnyOf(rng, kUnary) : AnyOf(rng, kBinary);
}

std::uint32_t CombineBits(AluOp op, std::uint32_t a, std::uint32_t b) {
  std::uint32_t result = 0;
  for (std::uint32_t at = 0; at < 32; ++at) {  // bit by bit
    const auto bit = [at](std::uint32_t of) { return (of >> at & 1U) != 0; };
    const std::uint64_t left = std::uint64_t{at} - b;
    const std::uint64_t right = std::uint64_t{at} + b;
    const std::map<AluOp, bool> all = {
        {AluOp::kBitwiseAnd, bit(a) && bit(b)},
        {AluOp::kBitwiseOr, bit(a) || bit(b)},
        {AluOp::kBitwiseXor, bit(a) != bit(b)},
        {AluOp::kInvert, !bit(a)},
        {AluOp::kLeftShift, at >= b && (a >> (left & 31U) & 1U) != 0},
        {AluOp::kRightShift, right < 32 && (a >> (right & 31U) & 1U) != 0}};
    if (all.at(op)) result |= 1U << at;
  }
  return result;
}

constexpr std::array kBits = {AluOp::kBitwiseAnd, AluOp::kBitwiseOr, AluOp::kBitwiseXor,
                              AluOp::kInvert,     AluOp::kLeftShift, AluOp::kRightShift};

// An operand that is a view, or left out for a number.
struct Scalar {
  std::optional<View> view = std::nullopt;
  float number = 0;

  float Of(const Tiles& tiles, std::int64_t row) const {
    return view ? tiles.Number(*view, row) : number;
  }
  std::uint32_t PatternOf(const Tiles& tiles, std::int64_t row) const {
    if (view) return tiles.Pattern(*view, row);
    return static_cast<std::uint32_t>(static_cast<std::int64_t>(number));
  }
};

template <typename Types>
Scalar AnyScalar(Rng& rng, Tiles& tiles, const Types& types) {
  if (rng.Chance(1, 2)) return {.view = tiles.Column(types)};
  return {.number = AnyNumber(rng)};
}

// The instruction with the operands that are there.
void SetOperands(Instruction& instruction, const std::vector<std::optional<View>>& operands) {
  for (std::size_t at = 0; at < operands.size(); ++at) {
    if (operands[at]) {
      instruction.operands.push_back(*operands[at]);
    } else {
      instruction.left_out |= static_cast<std::uint8_t>(1U << at);
    }
  }
}

Instruction Begin(isa::Opcode opcode) { return isa::Plain(isa::RowOf(opcode)); }

constexpr int kPrograms = 300;

TEST(AluInstructionsTest, TensorTensorHasAllOperatorsOfTwoNumbers) {
  Rng rng(41);
  for (int i = 0; i < kPrograms; ++i) {
    Tiles tiles(rng);
    const View out = tiles.Tile(kAllTypes), a = tiles.Tile(kAllTypes), b = tiles.Tile(kAllTypes);
    Instruction instruction = Begin(Opcode::kTensorTensor);
    instruction.op = AnyOf(rng, kBinary);
    SetOperands(instruction, {out, a, b});
    for (std::int64_t at = 0; at < CountOf(out); ++at) {
      tiles.bench.RememberFp32(out, at,
                               Combine(instruction.op, tiles.Number(a, at), tiles.Number(b, at)));
    }
    tiles.ExpectAsRemembered(instruction);
  }
}

TEST(AluInstructionsTest, TensorTensorCombinesBitsOfIntegers) {
  Rng rng(42);
  for (int i = 0; i < kPrograms; ++i) {
    Tiles tiles(rng);
    const View out = tiles.Tile(kIntegers), a = tiles.Tile(kIntegers), b = tiles.Tile(kIntegers);
    Instruction instruction = Begin(Opcode::kTensorTensor);
    do {
      instruction.op = AnyOf(rng, kBits);
    } while (IsUnary(instruction.op));
    SetOperands(instruction, {out, a, b});
    if (rng.Chance(2, 3)) {  // shifts by a few bits
      for (std::int64_t at = 0; at < CountOf(b); ++at) {
        const std::uint32_t small = static_cast<std::uint32_t>(rng.Below(35));
        tiles.bench.Put(
            b, at,
            std::as_bytes(std::span(&small, 1)).first(Size(tiles.bench.program().Of(b).type)));
      }
    }
    for (std::int64_t at = 0; at < CountOf(out); ++at) {
      tiles.RememberPattern(
          out, at, CombineBits(instruction.op, tiles.Pattern(a, at), tiles.Pattern(b, at)));
    }
    tiles.ExpectAsRemembered(instruction);
  }
}

// By arithmetic of 128 bits.
__extension__ using Wide = __int128;

std::uint32_t CombineWide(AluOp op, Wide a, Wide b) {
  const auto abs = [](Wide value) { return value < 0 ? -value : value; };
  const std::map<AluOp, Wide> all = {{AluOp::kAdd, a + b},
                                     {AluOp::kSubtract, a - b},
                                     {AluOp::kMultiply, a * b},
                                     {AluOp::kMaximum, a < b ? b : a},
                                     {AluOp::kMinimum, a < b ? a : b},
                                     {AluOp::kAbsMax, abs(a) < abs(b) ? abs(b) : abs(a)},
                                     {AluOp::kAbsMin, abs(a) < abs(b) ? abs(a) : abs(b)},
                                     {AluOp::kEqual, a == b},
                                     {AluOp::kNotEqual, a != b},
                                     {AluOp::kGreater, a > b},
                                     {AluOp::kGreaterEqual, a >= b},
                                     {AluOp::kLess, a < b},
                                     {AluOp::kLessEqual, a <= b},
                                     {AluOp::kLogicalAnd, a != 0 && b != 0},
                                     {AluOp::kLogicalOr, a != 0 || b != 0},
                                     {AluOp::kLogicalXor, (a != 0) != (b != 0)}};
  return static_cast<std::uint32_t>(all.at(op) & 0xFFFFFFFF);
}

TEST(AluInstructionsTest, GpSimdComputesExactlyWithIntegersOf32Bits) {
  Rng rng(43);
  constexpr std::array kWide = {ElementType::kInt32, ElementType::kUint32};
  constexpr std::array<std::uint32_t, 6> kEdges = {0, 1, 0x7FFFFFFF, 0x80000000, 0x80000001, ~0U};
  for (int i = 0; i < kPrograms; ++i) {
    Tiles tiles(rng);
    const View out = tiles.Tile(kWide), a = tiles.Tile(kWide), b = tiles.Tile(kWide);
    for (const View& view : {a, b}) {
      for (std::int64_t at = 0; at < CountOf(view); ++at) {
        const std::uint32_t edge = AnyOf(rng, kEdges);
        if (rng.Chance(1, 3)) tiles.bench.Put(view, at, std::as_bytes(std::span(&edge, 1)));
      }
    }
    Instruction instruction = Begin(Opcode::kTensorTensor);
    instruction.engine = Engine::kGpSimd;
    instruction.op = AnyOf(rng, kBinary);
    SetOperands(instruction, {out, a, b});
    const auto integer = [&](const View& view, std::int64_t at) -> Wide {
      const std::uint32_t pattern = tiles.Pattern(view, at);
      if (tiles.bench.program().Of(view).type == ElementType::kUint32) return pattern;
      return std::bit_cast<std::int32_t>(pattern);
    };
    for (std::int64_t at = 0; at < CountOf(out); ++at) {
      tiles.RememberPattern(out, at, CombineWide(instruction.op, integer(a, at), integer(b, at)));
    }
    tiles.ExpectAsRemembered(instruction);
  }
}

TEST(AluInstructionsTest, ThePowerOfFp32IsCs) {
  Rng rng(44);
  Tiles tiles(rng);
  const View out = tiles.Tile(kFp32Only), a = tiles.Tile(kFp32Only), b = tiles.Tile(kFp32Only);
  for (std::int64_t at = 0; at < CountOf(a); ++at) {
    const std::array<float, 2> values = {static_cast<float>(1 + rng.Below(9)),
                                         static_cast<float>(rng.Below(9)) - 4};
    tiles.bench.Put(a, at, std::as_bytes(std::span(&values[0], 1)));
    tiles.bench.Put(b, at, std::as_bytes(std::span(&values[1], 1)));
    tiles.bench.RememberFp32(out, at, static_cast<float>(std::pow(values[0], values[1])));
  }
  Instruction instruction = Begin(Opcode::kTensorTensor);
  instruction.engine = Engine::kGpSimd;
  instruction.op = AluOp::kPower;
  SetOperands(instruction, {out, a, b});
  tiles.ExpectAsRemembered(instruction);
}

float Reversible(AluOp op, float a, float b, bool reversed) {
  return reversed && !IsUnary(op) ? Combine(op, b, a) : Combine(op, a, b);
}

TEST(AluInstructionsTest, TensorScalarHasOneOrTwoOperatorsOfNumbers) {
  Rng rng(45);
  for (int i = 0; i < kPrograms; ++i) {
    Tiles tiles(rng);
    const View out = tiles.Tile(kAllTypes), data = tiles.Tile(kAllTypes);
    const Scalar first = AnyScalar(rng, tiles, kAllTypes),
                 second = AnyScalar(rng, tiles, kAllTypes);
    const bool two = rng.Chance(2, 3);
    Instruction instruction = Begin(Opcode::kTensorScalar);
    instruction.op = AnyArithmetic(rng);
    instruction.reverse = rng.Chance(1, 2);
    instruction.value = first.number;
    if (two) {
      instruction.op1 = AnyArithmetic(rng);
      instruction.reverse1 = rng.Chance(1, 2);
      instruction.value1 = second.number;
    }
    SetOperands(instruction, {out, data, first.view, two ? second.view : std::nullopt});
    for (std::int64_t at = 0; at < CountOf(out); ++at) {
      float value = Reversible(instruction.op, tiles.Number(data, at),
                               first.Of(tiles, at / kColumns), instruction.reverse);
      if (two) {
        value = Reversible(*instruction.op1, value, second.Of(tiles, at / kColumns),
                           instruction.reverse1);
      }
      tiles.bench.RememberFp32(out, at, value);
    }
    tiles.ExpectAsRemembered(instruction);
  }
}

TEST(AluInstructionsTest, TensorScalarCombinesBitsOfIntegers) {
  Rng rng(46);
  for (int i = 0; i < kPrograms; ++i) {
    Tiles tiles(rng);
    const View out = tiles.Tile(kIntegers), data = tiles.Tile(kIntegers);
    Scalar first = AnyScalar(rng, tiles, kIntegers), second = AnyScalar(rng, tiles, kIntegers);
    first.number = static_cast<float>(rng.Below(40)) - 4;
    second.number = rng.Chance(1, 2) ? 4294901760.0F : static_cast<float>(rng.Below(40));
    Instruction instruction = Begin(Opcode::kTensorScalar);
    instruction.op = AnyOf(rng, kBits);
    instruction.op1 = AnyOf(rng, kBits);
    instruction.reverse = rng.Chance(1, 2);
    instruction.reverse1 = rng.Chance(1, 2);
    instruction.value = first.number;
    instruction.value1 = second.number;
    SetOperands(instruction, {out, data, first.view, second.view});
    const auto combined = [](AluOp op, std::uint32_t a, std::uint32_t b, bool reversed) {
      return reversed && op != AluOp::kInvert ? CombineBits(op, b, a) : CombineBits(op, a, b);
    };
    for (std::int64_t at = 0; at < CountOf(out); ++at) {
      const std::uint32_t value =
          combined(instruction.op, tiles.Pattern(data, at), first.PatternOf(tiles, at / kColumns),
                   instruction.reverse);
      tiles.RememberPattern(out, at,
                            combined(*instruction.op1, value,
                                     second.PatternOf(tiles, at / kColumns), instruction.reverse1));
    }
    tiles.ExpectAsRemembered(instruction);
  }
}

TEST(AluInstructionsTest, ScalarTensorTensorTakesANumberAndThenATile) {
  Rng rng(47);
  for (int i = 0; i < kPrograms; ++i) {
    Tiles tiles(rng);
    const View out = tiles.Tile(kAllTypes), a = tiles.Tile(kAllTypes), b = tiles.Tile(kAllTypes);
    const Scalar scalar = AnyScalar(rng, tiles, kAllTypes);
    Instruction instruction = Begin(Opcode::kScalarTensorTensor);
    instruction.op = AnyArithmetic(rng);
    instruction.op1 = AnyOf(rng, kBinary);
    instruction.reverse = rng.Chance(1, 2);
    instruction.reverse1 = rng.Chance(1, 2);
    instruction.value = scalar.number;
    SetOperands(instruction, {out, a, scalar.view, b});
    for (std::int64_t at = 0; at < CountOf(out); ++at) {
      const float value = Reversible(instruction.op, tiles.Number(a, at),
                                     scalar.Of(tiles, at / kColumns), instruction.reverse);
      tiles.bench.RememberFp32(
          out, at, Reversible(*instruction.op1, value, tiles.Number(b, at), instruction.reverse1));
    }
    tiles.ExpectAsRemembered(instruction);
  }
}

TEST(AluInstructionsTest, TensorScalarReduceWritesTheResultsAndOneNumberOfEachPartition) {
  Rng rng(48);
  for (int i = 0; i < kPrograms; ++i) {
    Tiles tiles(rng);
    const View out = tiles.Tile(kAllTypes), data = tiles.Tile(kAllTypes);
    const View reduced = tiles.Column(kAllTypes);
    const Scalar scalar = AnyScalar(rng, tiles, kAllTypes);
    Instruction instruction = Begin(Opcode::kTensorScalarReduce);
    instruction.op = AnyArithmetic(rng);
    instruction.op1 =
        AnyOf(rng, std::array{AluOp::kAdd, AluOp::kMultiply, AluOp::kMaximum, AluOp::kMinimum});
    instruction.value = scalar.number;
    SetOperands(instruction, {out, reduced, data, scalar.view});
    std::map<std::int64_t, float> all;
    for (std::int64_t at = 0; at < CountOf(out); ++at) {
      const float value =
          Combine(instruction.op, tiles.Number(data, at), scalar.Of(tiles, at / kColumns));
      tiles.bench.RememberFp32(out, at, value);
      const auto [one, first] = all.try_emplace(at / kColumns, value);
      if (!first) one->second = Combine(*instruction.op1, one->second, value);
    }
    for (const auto& [row, value] : all) tiles.bench.RememberFp32(reduced, row, value);
    tiles.ExpectAsRemembered(instruction);
  }
}

TEST(AluInstructionsTest, AScanTakesTheResultBefore) {
  Rng rng(49);
  for (int i = 0; i < kPrograms; ++i) {
    Tiles tiles(rng);
    const View out = tiles.Tile(kAllTypes), a = tiles.Tile(kAllTypes), b = tiles.Tile(kAllTypes);
    const Scalar initial = AnyScalar(rng, tiles, kAllTypes);
    Instruction instruction = Begin(Opcode::kTensorTensorScan);
    instruction.op = AnyOf(rng, kBinary);
    instruction.op1 = AnyOf(rng, kBinary);
    instruction.reverse = rng.Chance(1, 2);
    instruction.reverse1 = rng.Chance(1, 2);
    instruction.value = initial.number;
    SetOperands(instruction, {out, a, b, initial.view});
    float state = 0;
    for (std::int64_t at = 0; at < CountOf(out); ++at) {
      if (at % kColumns == 0) state = initial.Of(tiles, at / kColumns);
      state = Reversible(instruction.op, tiles.Number(a, at), state, instruction.reverse);
      state = Reversible(*instruction.op1, state, tiles.Number(b, at), instruction.reverse1);
      tiles.bench.RememberFp32(out, at, state);
    }
    tiles.ExpectAsRemembered(instruction);
  }
}

TEST(AluInstructionsTest, ACumulativeInstructionTakesTheResultBefore) {
  Rng rng(50);
  const std::map<AluOp, float> reductions = {
      {AluOp::kAdd, 0.0F},
      {AluOp::kSubtract, 0.0F},
      {AluOp::kMultiply, 1.0F},
      {AluOp::kMaximum, -std::numeric_limits<float>::infinity()},
      {AluOp::kMinimum, std::numeric_limits<float>::infinity()}};
  for (int i = 0; i < kPrograms; ++i) {
    Tiles tiles(rng);
    const View out = tiles.Tile(kAllTypes), data = tiles.Tile(kAllTypes);
    const Scalar scalar = AnyScalar(rng, tiles, kFp32Only);
    const auto [op1, start] = *std::next(reductions.begin(), static_cast<int>(rng.Below(5)));
    const Scalar initial =
        rng.Chance(1, 2) ? Scalar{.view = tiles.Column(kFp32Only)} : Scalar{.number = start};
    Instruction instruction = Begin(Opcode::kTensorScalarCumulative);
    instruction.op = AnyArithmetic(rng);
    instruction.op1 = op1;
    instruction.value = scalar.number;
    SetOperands(instruction, {out, data, scalar.view, initial.view});
    float state = 0;
    for (std::int64_t at = 0; at < CountOf(out); ++at) {
      if (at % kColumns == 0) state = initial.Of(tiles, at / kColumns);
      const float value =
          Combine(instruction.op, tiles.Number(data, at), scalar.Of(tiles, at / kColumns));
      state = Combine(op1, value, state);
      tiles.bench.RememberFp32(out, at, state);
    }
    tiles.ExpectAsRemembered(instruction);
  }
}

TEST(AluInstructionsTest, APredicateSaysWhichElementsAreCopied) {
  Rng rng(51);
  constexpr std::array kPredicates = {ElementType::kUint8, ElementType::kUint16,
                                      ElementType::kUint32};
  for (int i = 0; i < kPrograms; ++i) {
    Tiles tiles(rng);
    const View out = tiles.Tile(kAllTypes);
    const std::array type = {tiles.bench.program().Of(out).type};
    const View predicate = tiles.Tile(kPredicates), tile = tiles.Tile(type);
    const bool number = rng.Chance(1, 3);
    Instruction instruction = Begin(Opcode::kTensorCopyPredicated);
    instruction.reverse = rng.Chance(1, 2);
    instruction.value = number ? AnyNumber(rng) : 0;
    for (std::int64_t at = 0; at < CountOf(out); ++at) {
      constexpr std::array<std::byte, 4> kZeros{};
      if (rng.Chance(1, 2)) {
        tiles.bench.Put(predicate, at,
                        std::span(kZeros).first(Size(tiles.bench.program().Of(predicate).type)));
      }
    }
    SetOperands(instruction, {out, number ? std::nullopt : std::optional(tile), predicate});
    for (std::int64_t at = 0; at < CountOf(out); ++at) {
      if ((tiles.Pattern(predicate, at) == 0) != instruction.reverse) continue;
      if (number) {
        tiles.bench.RememberFp32(out, at, instruction.value);
      } else {
        tiles.bench.Remember(out, at, tiles.bench.Expected(tile, at));
      }
    }
    tiles.ExpectAsRemembered(instruction);
  }
}

TEST(AluInstructionsTest, APredicatedCopyLeavesUnwrittenElementsUnwritten) {
  Rng rng(52);
  Tiles tiles(rng);
  const View out =
      tiles.bench.Whole(tiles.bench.Add(Memory::kSbuf, ElementType::kFp32, kRows, kColumns, 4096));
  const View predicate = tiles.Tile(std::array{ElementType::kUint8});
  for (std::int64_t at = 0; at < CountOf(out); ++at) {
    const std::array element = {at == 3 ? std::byte{7} : std::byte{0}};
    tiles.bench.Put(predicate, at, element);
  }
  tiles.bench.RememberFp32(out, 3, 1.5F);
  Instruction instruction = Begin(Opcode::kTensorCopyPredicated);
  instruction.value = 1.5F;
  SetOperands(instruction, {out, std::nullopt, predicate});
  tiles.ExpectAsRemembered(instruction);
  const View shorter = tiles.Tile(std::array{ElementType::kBf16});
  EXPECT_EQ(Message(tiles.bench.Run(Opcode::kTensorCopy, {shorter, out})),
            "line 1: tensor_copy: src: sbuf partition 0 byte 4096 is read, and nothing has "
            "written it");
}

TEST(AluInstructionsTest, ARangeOfIndicesSaysWhichElementsAreKept) {
  Rng rng(53);
  constexpr std::array kFloats = {
      ElementType::kFp8E3m4, ElementType::kFp8E4m3, ElementType::kFp8E5m2, ElementType::kFp16,
      ElementType::kBf16,    ElementType::kFp32,    ElementType::kFp32r};
  constexpr std::array kComparisons = {AluOp::kEqual, AluOp::kLess, AluOp::kLessEqual,
                                       AluOp::kGreater, AluOp::kGreaterEqual};
  for (int i = 0; i < kPrograms; ++i) {
    Tiles tiles(rng);
    const View out = tiles.Tile(kFloats), data = tiles.Tile(kFloats);
    const View bound0 = tiles.Column(kFp32Only), bound1 = tiles.Column(kFp32Only);
    const View reduced = tiles.Column(kFloats);
    const float start = static_cast<float>(rng.Below(40)) - 20;
    for (const View& bound : {bound0, bound1}) {
      for (std::int64_t row = 0; row < kRows; ++row) {
        const float value = start + static_cast<float>(rng.Below(16)) / 2 - 1;
        tiles.bench.Put(bound, row, std::as_bytes(std::span(&value, 1)));
      }
    }
    Instruction instruction = Begin(Opcode::kRangeSelect);
    instruction.op = AnyOf(rng, kComparisons);
    instruction.op1 = AnyOf(rng, kComparisons);
    instruction.value = start;
    const bool reduces = rng.Chance(1, 2);
    SetOperands(instruction,
                {out, reduces ? std::optional(reduced) : std::nullopt, data, bound0, bound1});
    for (std::int64_t row = 0; row < kRows; ++row) {
      float largest = -std::numeric_limits<float>::infinity();
      for (std::int64_t column = 0; column < kColumns; ++column) {
        const float index = start + static_cast<float>(column);
        const bool kept = Combine(instruction.op, index, tiles.Number(bound0, row)) == 1 &&
                          Combine(*instruction.op1, index, tiles.Number(bound1, row)) == 1;
        const float value = kept ? tiles.Number(data, row * kColumns + column) : -3.4028235e38F;
        largest = std::fmax(largest, value);
        tiles.bench.RememberFp32(out, row * kColumns + column, value);
      }
      if (reduces) tiles.bench.RememberFp32(reduced, row, largest);
    }
    tiles.ExpectAsRemembered(instruction);
  }
}

}  // namespace
}  // namespace tahoma::sim
