#include "lib/kube/cel/functions.h"

#include <re2/re2.h>

#include <array>

#include "lib/base/status.h"

namespace tahoma::kube::internal {
namespace {

using F = CelFunction;
using T = CelType;
constexpr auto kG = CelCallStyle::kGlobal;
constexpr auto kM = CelCallStyle::kMember;
constexpr auto kN = CelCallStyle::kNamespace;

constexpr std::array kSignatures = {
    CelSignature{"size", kG, 1, 1, F::kSize, T::kInt, T::kDyn},
    CelSignature{"size", kM, 1, 1, F::kSize, T::kInt, T::kDyn},
    CelSignature{"contains", kM, 2, 2, F::kContains, T::kBool, T::kString},
    CelSignature{"startsWith", kM, 2, 2, F::kStartsWith, T::kBool, T::kString},
    CelSignature{"endsWith", kM, 2, 2, F::kEndsWith, T::kBool, T::kString},
    CelSignature{"matches", kM, 2, 2, F::kMatches, T::kBool, T::kString},
    CelSignature{"matches", kG, 2, 2, F::kMatches, T::kBool, T::kString},
    CelSignature{"lowerAscii", kM, 1, 1, F::kLowerAscii, T::kString, T::kString},
    CelSignature{"upperAscii", kM, 1, 1, F::kUpperAscii, T::kString, T::kString},
    CelSignature{"trim", kM, 1, 1, F::kTrim, T::kString, T::kString},
    CelSignature{"split", kM, 2, 3, F::kSplit, T::kList, T::kString},
    CelSignature{"join", kM, 1, 2, F::kJoin, T::kString, T::kList},
    CelSignature{"replace", kM, 3, 4, F::kReplace, T::kString, T::kString},
    CelSignature{"substring", kM, 2, 3, F::kSubstring, T::kString, T::kString},
    CelSignature{"indexOf", kM, 2, 3, F::kIndexOf, T::kInt, T::kDyn},
    CelSignature{"lastIndexOf", kM, 2, 3, F::kLastIndexOf, T::kInt, T::kDyn},
    CelSignature{"charAt", kM, 2, 2, F::kCharAt, T::kString, T::kString},
    CelSignature{"find", kM, 2, 2, F::kFind, T::kString, T::kString},
    CelSignature{"min", kM, 1, 1, F::kMin, T::kDyn, T::kList},
    CelSignature{"max", kM, 1, 1, F::kMax, T::kDyn, T::kList},
    CelSignature{"sum", kM, 1, 1, F::kSum, T::kDyn, T::kList},
    CelSignature{"isSorted", kM, 1, 1, F::kIsSorted, T::kBool, T::kList},
    CelSignature{"includes", kM, 2, 2, F::kIncludes, T::kBool, T::kDyn},
    CelSignature{"int", kG, 1, 1, F::kInt, T::kInt, T::kDyn},
    CelSignature{"uint", kG, 1, 1, F::kUint, T::kUint, T::kDyn},
    CelSignature{"double", kG, 1, 1, F::kDouble, T::kDouble, T::kDyn},
    CelSignature{"string", kG, 1, 1, F::kString, T::kString, T::kDyn},
    CelSignature{"bool", kG, 1, 1, F::kBool, T::kBool, T::kDyn},
    CelSignature{"dyn", kG, 1, 1, F::kDyn, T::kDyn, T::kDyn},
    CelSignature{"quantity", kG, 1, 1, F::kQuantity, T::kQuantity, T::kString},
    CelSignature{"isQuantity", kG, 1, 1, F::kIsQuantity, T::kBool, T::kString},
    CelSignature{"semver", kG, 1, 2, F::kSemver, T::kSemver, T::kString},
    CelSignature{"isSemver", kG, 1, 2, F::kIsSemver, T::kBool, T::kString},
    CelSignature{"compareTo", kM, 2, 2, F::kCompareTo, T::kInt, T::kDyn},
    CelSignature{"isGreaterThan", kM, 2, 2, F::kIsGreaterThan, T::kBool, T::kDyn},
    CelSignature{"isLessThan", kM, 2, 2, F::kIsLessThan, T::kBool, T::kDyn},
    CelSignature{"major", kM, 1, 1, F::kMajor, T::kInt, T::kSemver},
    CelSignature{"minor", kM, 1, 1, F::kMinor, T::kInt, T::kSemver},
    CelSignature{"patch", kM, 1, 1, F::kPatch, T::kInt, T::kSemver},
    CelSignature{"sets.contains", kN, 2, 2, F::kSetsContains, T::kBool, T::kList},
    CelSignature{"sets.intersects", kN, 2, 2, F::kSetsIntersects, T::kBool, T::kList},
    CelSignature{"sets.equivalent", kN, 2, 2, F::kSetsEquivalent, T::kBool, T::kList},
    CelSignature{"optional.of", kN, 1, 1, F::kOptionalOf, T::kOptional, T::kDyn},
    CelSignature{"optional.none", kN, 0, 0, F::kOptionalNone, T::kOptional, T::kDyn},
    CelSignature{"optional.ofNonZeroValue", kN, 1, 1, F::kOptionalOfNonZero, T::kOptional, T::kDyn},
    CelSignature{"hasValue", kM, 1, 1, F::kHasValue, T::kBool, T::kOptional},
    CelSignature{"value", kM, 1, 1, F::kValue, T::kDyn, T::kOptional},
    CelSignature{"orValue", kM, 2, 2, F::kOrValue, T::kDyn, T::kOptional},
    CelSignature{"or", kM, 2, 2, F::kOr, T::kOptional, T::kOptional},
};

}  // namespace

const CelSignature* FindCelFunction(std::string_view name, CelCallStyle style, std::size_t args) {
  const CelSignature* wrong_count = nullptr;
  for (const CelSignature& signature : kSignatures) {
    if (signature.name != name || signature.style != style) continue;
    if (args >= signature.args_min && args <= signature.args_max) return &signature;
    wrong_count = &signature;
  }
  return wrong_count;
}

bool IsCelNamespace(std::string_view name) {
  return name == "sets" || name == "optional" || name == "cel";
}

absl::StatusOr<std::unique_ptr<re2::RE2>> CompileCelPattern(std::string_view pattern,
                                                            std::int64_t memory) {
  re2::RE2::Options options(re2::RE2::Quiet);
  options.set_max_mem(memory);
  auto compiled = std::make_unique<re2::RE2>(pattern, options);
  if (!compiled->ok()) return InvalidArgument("bad regular expression: {}", compiled->error());
  return compiled;
}

}  // namespace tahoma::kube::internal
