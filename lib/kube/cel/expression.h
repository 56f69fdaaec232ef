// Parsed CEL expressions.
//
// Inside of lib/kube/cel: made by parser.h, typed by checker.h, run by evaluator.h. Macros are
// expanded here into kComprehension and kBind.
//
// Thread safety: immutable once checked.

#pragma once

#include <re2/re2.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lib/kube/cel/value.h"

namespace tahoma::kube::internal {

enum class CelOp : std::uint8_t {
  kLiteral,
  kVariable,     // slot: those of the environment first, then of comprehensions and binds
  kSelect,       // args[0].name, optional: args[0].?name
  kHas,          // has(args[0].name)
  kIndex,        // args[0][args[1]], optional: args[0][?args[1]]
  kList,         // args; optional_args[i]: entry may be left out
  kMap,          // args: key, value, key, value, …
  kCall,         // function over args
  kConditional,  // args[0] ? args[1] : args[2]
  kAnd,
  kOr,
  kNot,
  kNegate,
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kModulo,
  kEqual,
  kNotEqual,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kIn,
  kComprehension,  // macro over args[0] with args[1] (and args[2] for a three-argument map)
  kBind,           // args[0] is bound to the slot in args[1]
};

enum class CelMacro : std::uint8_t {
  kAll,
  kExists,
  kExistsOne,
  kFilter,
  kMap,
  kMapFilter,
  kOptMap
};

enum class CelFunction : std::uint8_t {
  kSize,
  kContains,
  kStartsWith,
  kEndsWith,
  kMatches,
  kLowerAscii,
  kUpperAscii,
  kTrim,
  kSplit,
  kJoin,
  kReplace,
  kSubstring,
  kIndexOf,
  kLastIndexOf,
  kCharAt,
  kFind,
  kMin,
  kMax,
  kSum,
  kIsSorted,
  kIncludes,
  kInt,
  kUint,
  kDouble,
  kString,
  kBool,
  kDyn,
  kQuantity,
  kIsQuantity,
  kSemver,
  kIsSemver,
  kCompareTo,
  kIsGreaterThan,
  kIsLessThan,
  kMajor,
  kMinor,
  kPatch,
  kSetsContains,
  kSetsIntersects,
  kSetsEquivalent,
  kOptionalOf,
  kOptionalNone,
  kOptionalOfNonZero,
  kHasValue,
  kValue,
  kOrValue,
  kOr,
};

struct CelExpr {
  CelOp op = CelOp::kLiteral;
  std::size_t at = 0;  // byte in the source, for messages
  CelValue literal;
  std::string name;      // kSelect, kHas; for messages also kVariable and kCall
  std::size_t slot = 0;  // kVariable, kComprehension, kBind
  bool optional = false;
  CelMacro macro = CelMacro::kAll;
  CelFunction function = CelFunction::kSize;
  std::vector<std::unique_ptr<CelExpr>> args;
  std::vector<bool> optional_args;
  std::unique_ptr<re2::RE2> pattern;  // of kMatches and kFind with a literal pattern
};

}  // namespace tahoma::kube::internal
