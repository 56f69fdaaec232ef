#include "lib/numeric/alu.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "lib/base/check.h"

namespace tahoma::sim {
namespace {

struct AluRow {
  std::string_view name;
  AluKind kind;
  bool unary;
  bool reduction;
};
constexpr AluRow Arithmetic(std::string_view name) {
  return {.name = name, .kind = AluKind::kArithmetic, .unary = false, .reduction = false};
}
constexpr AluRow Bits(std::string_view name) {
  return {.name = name, .kind = AluKind::kBits, .unary = false, .reduction = false};
}
constexpr AluRow Unary(AluRow row) {
  row.unary = true;
  return row;
}
constexpr AluRow Reducing(AluRow row) {
  row.reduction = true;
  return row;
}
constexpr std::array<AluRow, kAluOps> kAluRows = {
    Reducing(Arithmetic("add")),
    Reducing(Arithmetic("subtract")),
    Reducing(Arithmetic("multiply")),
    Reducing(Arithmetic("maximum")),
    Reducing(Arithmetic("minimum")),
    Arithmetic("power"),
    Arithmetic("abs_max"),
    Arithmetic("abs_min"),
    Arithmetic("equal"),
    Arithmetic("not_equal"),
    Arithmetic("greater"),
    Arithmetic("greater_equal"),
    Arithmetic("less"),
    Arithmetic("less_equal"),
    Reducing(Arithmetic("logical_and")),
    Reducing(Arithmetic("logical_or")),
    Reducing(Arithmetic("logical_xor")),
    Unary(Arithmetic("abs")),
    Unary(Arithmetic("square")),
    Unary(Arithmetic("relu")),
    Unary(Arithmetic("rsqrt")),
    Unary(Arithmetic("reciprocal")),
    Reducing(Bits("bitwise_and")),
    Reducing(Bits("bitwise_or")),
    Reducing(Bits("bitwise_xor")),
    Unary(Bits("invert")),
    Bits("left_shift"),
    Bits("right_shift"),
};

const AluRow& RowOf(AluOp op) { return kAluRows.at(static_cast<std::size_t>(op)); }

// Calls visit with the operator as a function of two floats.
template <typename Visit>
void VisitArithmetic(AluOp op, const Visit& visit) {
  switch (op) {
    case AluOp::kAdd:
      return visit([](float a, float b) { return a + b; });
    case AluOp::kSubtract:
      return visit([](float a, float b) { return a - b; });
    case AluOp::kMultiply:
      return visit([](float a, float b) { return a * b; });
    case AluOp::kMaximum:
      return visit([](float a, float b) { return std::max(a, b); });
    case AluOp::kMinimum:
      return visit([](float a, float b) { return std::min(a, b); });
    case AluOp::kPower:
      return visit([](float a, float b) {
        return static_cast<float>(std::pow(static_cast<double>(a), static_cast<double>(b)));
      });
    case AluOp::kAbsMax:
      return visit([](float a, float b) { return std::max(std::abs(a), std::abs(b)); });
    case AluOp::kAbsMin:
      return visit([](float a, float b) { return std::min(std::abs(a), std::abs(b)); });
    case AluOp::kEqual:
      return visit([](float a, float b) { return a == b ? 1.0F : 0.0F; });
    case AluOp::kNotEqual:
      return visit([](float a, float b) { return a != b ? 1.0F : 0.0F; });
    case AluOp::kGreater:
      return visit([](float a, float b) { return a > b ? 1.0F : 0.0F; });
    case AluOp::kGreaterEqual:
      return visit([](float a, float b) { return a >= b ? 1.0F : 0.0F; });
    case AluOp::kLess:
      return visit([](float a, float b) { return a < b ? 1.0F : 0.0F; });
    case AluOp::kLessEqual:
      return visit([](float a, float b) { return a <= b ? 1.0F : 0.0F; });
    case AluOp::kLogicalAnd:
      return visit([](float a, float b) { return a != 0 && b != 0 ? 1.0F : 0.0F; });
    case AluOp::kLogicalOr:
      return visit([](float a, float b) { return a != 0 || b != 0 ? 1.0F : 0.0F; });
    case AluOp::kLogicalXor:
      return visit([](float a, float b) { return ((a != 0) ^ (b != 0)) ? 1.0F : 0.0F; });
    case AluOp::kAbs:
      return visit([](float a, float) { return std::abs(a); });
    case AluOp::kSquare:
      return visit([](float a, float) { return a * a; });
    case AluOp::kRelu:
      return visit([](float a, float) { return std::max(a, 0.0F); });
    case AluOp::kRsqrt:
      return visit(
          [](float a, float) { return static_cast<float>(1 / std::sqrt(static_cast<double>(a))); });
    case AluOp::kReciprocal:
      return visit([](float a, float) { return 1 / a; });
    default:
      TAHOMA_CHECK(false);
  }
}

// The same for operators on bits.
template <typename Visit>
void VisitBits(AluOp op, const Visit& visit) {
  using Word = std::uint32_t;
  switch (op) {
    case AluOp::kBitwiseAnd:
      return visit([](Word a, Word b) { return a & b; });
    case AluOp::kBitwiseOr:
      return visit([](Word a, Word b) { return a | b; });
    case AluOp::kBitwiseXor:
      return visit([](Word a, Word b) { return a ^ b; });
    case AluOp::kInvert:
      return visit([](Word a, Word) { return ~a; });
    case AluOp::kLeftShift:
      return visit([](Word a, Word b) { return b < 32 ? a << b : 0U; });
    case AluOp::kRightShift:
      return visit([](Word a, Word b) { return b < 32 ? a >> b : 0U; });
    default:
      TAHOMA_CHECK(false);
  }
}

// A block is copied out, computed and copied back: so g++ makes vector instructions of the loop in
// the middle at -O2, too, although the spans may be the same memory.
constexpr std::size_t kBlock = 16;

template <typename T, typename Function>
void ApplyInBlocks(std::span<T> values, std::span<const T> others, const Function& function) {
  std::size_t at = 0;
  for (; at + kBlock <= values.size(); at += kBlock) {
    std::array<T, kBlock> left, right;
    std::copy_n(&values[at], kBlock, left.begin());
    std::copy_n(&others[at], kBlock, right.begin());
    for (std::size_t i = 0; i < kBlock; ++i) left[i] = function(left[i], right[i]);
    std::copy_n(left.begin(), kBlock, &values[at]);
  }
  for (; at < values.size(); ++at) values[at] = function(values[at], others[at]);
}

template <typename T, typename Function>
void ApplyInOrder(std::span<T> values, std::span<const T> others, bool reversed,
                  const Function& function) {
  TAHOMA_CHECK(values.size() == others.size());
  if (!reversed) return ApplyInBlocks(values, others, function);
  ApplyInBlocks(values, others, [&function](T a, T b) { return function(b, a); });
}

// Calls apply for pieces of `values`, each with as many copies of `other`.
template <typename T, typename ApplyPiece>
void WithCopies(std::span<T> values, T other, const ApplyPiece& apply) {
  constexpr std::size_t kCopies = 256;
  std::array<T, kCopies> copies;
  const std::size_t most = std::min(kCopies, values.size());
  std::fill_n(copies.begin(), most, other);
  for (std::size_t at = 0; at < values.size(); at += most) {
    const std::size_t count = std::min(most, values.size() - at);
    apply(values.subspan(at, count), std::span<const T>(copies).first(count));
  }
}

}  // namespace

std::string_view Name(AluOp op) { return RowOf(op).name; }
AluKind KindOf(AluOp op) { return RowOf(op).kind; }
bool IsUnary(AluOp op) { return RowOf(op).unary; }
bool IsReduction(AluOp op) { return RowOf(op).reduction; }

void Apply(AluOp op, std::span<float> values, std::span<const float> others, bool reversed) {
  VisitArithmetic(op, [&](const auto& function) {
    ApplyInOrder(values, others, reversed && !IsUnary(op), function);
  });
}

void Apply(AluOp op, std::span<float> values, float other, bool reversed) {
  WithCopies(values, other, [&](std::span<float> piece, std::span<const float> others) {
    Apply(op, piece, others, reversed);
  });
}

float Reduce(AluOp op, float start, std::span<const float> values) {
  TAHOMA_CHECK(IsReduction(op));
  VisitArithmetic(op, [&](const auto& function) {
    for (const float value : values) start = function(start, value);
  });
  return start;
}

void ApplyBits(AluOp op, std::span<std::uint32_t> values, std::span<const std::uint32_t> others,
               bool reversed) {
  VisitBits(op, [&](const auto& function) {
    ApplyInOrder(values, others, reversed && !IsUnary(op), function);
  });
}

void ApplyBits(AluOp op, std::span<std::uint32_t> values, std::uint32_t other, bool reversed) {
  WithCopies(values, other,
             [&](std::span<std::uint32_t> piece, std::span<const std::uint32_t> others) {
               ApplyBits(op, piece, others, reversed);
             });
}

}  // namespace tahoma::sim
