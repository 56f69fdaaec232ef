#include <re2/re2.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>

#include "lib/base/status.h"
#include "lib/base/utf8.h"
#include "lib/kube/cel/evaluator.h"
#include "lib/kube/cel/functions.h"

namespace tahoma::kube::internal {
namespace {

using Args = std::vector<CelValue>;
using Result = absl::StatusOr<CelValue>;

// The largest text that a function makes.
constexpr std::size_t kTextMax = 1 << 20;
// The largest pattern that is compiled during evaluation.
constexpr std::size_t kPatternMax = 1024;

const std::string* Text(const Args& args, std::size_t at) {
  return at < args.size() ? args[at].As<std::string>() : nullptr;
}
std::optional<std::int64_t> Integer(const Args& args, std::size_t at) {
  const auto* number = at < args.size() ? args[at].As<std::int64_t>() : nullptr;
  return number == nullptr ? std::nullopt : std::optional(*number);
}
CelValue FromSize(std::size_t size) { return CelValue(static_cast<std::int64_t>(size)); }

// Splits UTF-8 text into its code points, for functions that count characters.
std::vector<std::string> Characters(std::string_view text) {
  std::vector<std::string> characters;
  for (const char c : text) {
    const bool continues = (static_cast<unsigned char>(c) & 0xC0U) == 0x80U;
    if (!continues || characters.empty()) characters.emplace_back();
    characters.back() += c;
  }
  return characters;
}

Result Size(const CelValue& of) {
  if (const auto* text = of.As<std::string>()) return FromSize(CodePoints(*text));
  if (const auto* bytes = of.As<CelValue::Bytes>()) return FromSize(bytes->bytes.size());
  if (const auto* list = of.AsList()) return FromSize(list->size());
  if (const auto* map = of.AsMap()) return FromSize(map->size());
  return NoSuchOverload("size");
}

std::string MapAscii(std::string text, char first, int shift) {
  for (char& c : text) {
    if (c >= first && c < first + 26) c = static_cast<char>(c + shift);
  }
  return text;
}

// Implements matches() and find().
Result Search(const CelExpr& call, const std::string& text, const std::string& pattern) {
  std::unique_ptr<re2::RE2> made;
  const re2::RE2* compiled = call.pattern.get();
  if (compiled == nullptr) {
    if (pattern.size() > kPatternMax) return InvalidArgument("the pattern is too long");
    TAHOMA_ASSIGN_OR_RETURN(made, CompileCelPattern(pattern, kPatternMemoryInEvaluation));
    compiled = made.get();
  }
  if (call.function == CelFunction::kMatches) {
    return CelValue(re2::RE2::PartialMatch(text, *compiled));
  }
  re2::StringPiece found;
  if (!compiled->Match(text, 0, text.size(), re2::RE2::UNANCHORED, &found, 1)) {
    return CelValue(std::string());
  }
  return CelValue(std::string(found.data(), found.size()));
}

Result Trim(const std::string& text) {
  constexpr std::string_view kSpace = " \t\n\r\f\v";
  const std::size_t first = text.find_first_not_of(kSpace);
  if (first == std::string::npos) return CelValue(std::string());
  return CelValue(text.substr(first, text.find_last_not_of(kSpace) - first + 1));
}

Result Split(const Args& args) {
  std::string_view text = *args[0].As<std::string>();
  const std::string* separator = Text(args, 1);
  if (separator == nullptr) return NoSuchOverload("split");
  std::int64_t limit = -1;
  if (args.size() == 3) {
    if (!Integer(args, 2)) return NoSuchOverload("split");
    limit = *Integer(args, 2);
  }
  CelValue::List parts;
  if (limit == 0) return CelValue(std::move(parts));
  if (separator->empty()) {
    std::vector<std::string> characters = Characters(text);
    for (std::string& c : characters) {
      const bool full = limit > 0 && static_cast<std::int64_t>(parts.size()) == limit;
      if (full)  // the last part has the rest
        parts.back() = CelValue(*parts.back().As<std::string>() + c);
      else
        parts.emplace_back(std::move(c));
    }
    return CelValue(std::move(parts));
  }
  while (limit < 0 || static_cast<std::int64_t>(parts.size()) + 1 < limit) {
    const std::size_t at = text.find(*separator);
    if (at == std::string_view::npos) break;
    parts.emplace_back(std::string(text.substr(0, at)));
    text.remove_prefix(at + separator->size());
  }
  parts.emplace_back(std::string(text));
  return CelValue(std::move(parts));
}

Result Join(const Args& args) {
  const std::string* separator = Text(args, 1);
  if (args.size() == 2 && separator == nullptr) return NoSuchOverload("join");
  if (args[0].AsList() == nullptr) return NoSuchOverload("join");
  std::string joined;
  for (const CelValue& entry : *args[0].AsList()) {
    const auto* text = entry.As<std::string>();
    if (text == nullptr) return NoSuchOverload("join");
    if (&entry != args[0].AsList()->data() && separator != nullptr) joined += *separator;
    joined += *text;
    if (joined.size() > kTextMax) return ResourceExhausted("the text is too long");
  }
  return CelValue(std::move(joined));
}

Result Replace(const Args& args) {
  const std::string& text = *args[0].As<std::string>();
  const std::string* from = Text(args, 1);
  const std::string* to = Text(args, 2);
  if (from == nullptr || to == nullptr || (args.size() == 4 && !Integer(args, 3))) {
    return NoSuchOverload("replace");
  }
  if (from->empty()) return InvalidArgument("replace of an empty text is not supported");
  std::int64_t left = args.size() == 4 ? *Integer(args, 3) : -1;
  std::string made;
  std::size_t at = 0;
  for (; left != 0; --left) {
    const std::size_t found = text.find(*from, at);
    if (found == std::string::npos) break;
    made.append(text, at, found - at).append(*to);
    at = found + from->size();
    if (made.size() > kTextMax) return ResourceExhausted("the text is too long");
  }
  return CelValue(made.append(text, at));
}

Result Substring(const Args& args) {
  const std::vector<std::string> characters = Characters(*args[0].As<std::string>());
  const auto size = static_cast<std::int64_t>(characters.size());
  const auto first = Integer(args, 1);
  const auto last = args.size() == 3 ? Integer(args, 2) : std::optional(size);
  if (!first || !last) return NoSuchOverload("substring");
  if (args.size() == 3 && *first > *last) {
    return OutOfRange("invalid substring range. start: {}, end: {}", *first, *last);
  }
  for (const std::int64_t index : {*first, *last}) {
    if (index < 0 || index > size) return OutOfRange("index out of range: {}", index);
  }
  std::string part;
  for (std::int64_t i = *first; i < *last; ++i) part += characters[static_cast<std::size_t>(i)];
  return CelValue(std::move(part));
}

Result CharAt(const Args& args) {
  const std::vector<std::string> characters = Characters(*args[0].As<std::string>());
  const auto at = Integer(args, 1);
  if (!at) return NoSuchOverload("charAt");
  if (*at < 0 || *at > static_cast<std::int64_t>(characters.size())) {
    return OutOfRange("index out of range: {}", *at);
  }
  const auto index = static_cast<std::size_t>(*at);
  return CelValue(index == characters.size() ? std::string() : characters[index]);
}

// Returns where the character with that number starts, or where the text ends; nullopt when it is
// shorter.
std::optional<std::size_t> ByteOf(std::string_view text, std::int64_t character) {
  std::size_t at = 0;
  for (; character > 0; --character) {
    if (at == text.size()) return std::nullopt;
    do ++at;
    while (at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0U) == 0x80U);
  }
  return at;
}

// Returns the position of a text in a text, or of an entry in a list; -1 when absent.
Result IndexOf(const Args& args, bool last) {
  if (const auto* list = args[0].AsList()) {
    if (args.size() != 2) return NoSuchOverload("indexOf");
    std::int64_t found = -1;
    for (std::size_t at = 0; at < list->size() && (last || found < 0); ++at) {
      if (Equal((*list)[at], args[1])) found = static_cast<std::int64_t>(at);
    }
    return CelValue(found);
  }
  const std::string* text = Text(args, 0);
  const std::string* wanted = Text(args, 1);
  if (text == nullptr || wanted == nullptr) return NoSuchOverload("indexOf");
  std::size_t from = last ? std::string::npos : 0;
  if (args.size() == 3) {
    const auto offset = Integer(args, 2);
    if (!offset) return NoSuchOverload("indexOf");
    const auto place = *offset < 0 ? std::nullopt : ByteOf(*text, *offset);
    if (!place) return OutOfRange("index out of range: {}", *offset);
    from = *place;
  }
  // In UTF-8 a text is found at the starts of characters only.
  const std::size_t found = last ? text->rfind(*wanted, from) : text->find(*wanted, from);
  if (found == std::string::npos) return CelValue(std::int64_t{-1});
  return FromSize(CodePoints(std::string_view(*text).substr(0, found)));
}

Result MinOrMax(const CelValue& of, bool max) {
  const auto* list = of.AsList();
  if (list == nullptr) return NoSuchOverload(max ? "max" : "min");
  if (list->empty()) return InvalidArgument("{} called on empty list", max ? "max" : "min");
  const CelValue* best = list->data();
  for (const CelValue& entry : *list) {
    const auto order = Order(entry, *best);
    if (!order) return NoSuchOverload(max ? "max" : "min");
    if (max ? *order > 0 : *order < 0) best = &entry;
  }
  return *best;
}

template <typename T>
Result SumOf(const CelValue::List& list) {
  T sum = 0;
  for (const CelValue& entry : list) {
    const auto* number = entry.As<T>();
    if (number == nullptr) return NoSuchOverload("sum");
    if constexpr (std::is_integral_v<T>) {
      if (__builtin_add_overflow(sum, *number, &sum)) return OutOfRange("integer overflow");
    } else {
      sum += *number;
    }
  }
  return CelValue(sum);
}

Result Sum(const CelValue& of) {
  const auto* list = of.AsList();
  if (list == nullptr) return NoSuchOverload("sum");
  if (!list->empty() && list->front().type() == CelType::kUint) return SumOf<std::uint64_t>(*list);
  if (!list->empty() && list->front().type() == CelType::kDouble) return SumOf<double>(*list);
  return SumOf<std::int64_t>(*list);
}

Result IsSorted(const CelValue& of) {
  const auto* list = of.AsList();
  if (list == nullptr) return NoSuchOverload("isSorted");
  for (std::size_t i = 1; i < list->size(); ++i) {
    const auto order = Order((*list)[i - 1], (*list)[i]);
    if (!order) return NoSuchOverload("isSorted");
    if (*order > 0) return CelValue(false);
  }
  return CelValue(true);
}

bool HasEntry(const CelValue::List& list, const CelValue& wanted) {
  return std::any_of(list.begin(), list.end(),
                     [&](const CelValue& entry) { return Equal(entry, wanted); });
}
bool HasAll(const CelValue::List& list, const CelValue::List& wanted) {
  return std::all_of(wanted.begin(), wanted.end(),
                     [&](const CelValue& entry) { return HasEntry(list, entry); });
}

Result Sets(CelFunction function, const CelValue& a, const CelValue& b) {
  const auto* left = a.AsList();
  const auto* right = b.AsList();
  if (left == nullptr || right == nullptr) return NoSuchOverload("sets");
  if (function == CelFunction::kSetsContains) return CelValue(HasAll(*left, *right));
  if (function == CelFunction::kSetsEquivalent) {
    return CelValue(HasAll(*left, *right) && HasAll(*right, *left));
  }
  return CelValue(std::any_of(right->begin(), right->end(),
                              [&](const CelValue& entry) { return HasEntry(*left, entry); }));
}

// Reads with std::from_chars, and the plus sign that Go's strconv takes for all but unsigned
// numbers.
template <typename T>
Result FromText(const std::string& text) {
  T value = 0;
  std::string_view digits = text;
  if (!std::is_unsigned_v<T> && digits.starts_with('+') && !digits.starts_with("+-")) {
    digits.remove_prefix(1);
  }
  const char* last = digits.data() + digits.size();
  const auto [end, error] = std::from_chars(digits.data(), last, value);
  if (error == std::errc() && end == last) return CelValue(value);
  return InvalidArgument("\"{}\" is not a number", text);
}

template <typename T>
Result ToWhole(const CelValue& of, std::string_view name) {
  const auto overflow = [] { return OutOfRange("integer overflow"); };
  if (const auto* number = of.As<std::int64_t>()) {
    if (!std::numeric_limits<T>::is_signed && *number < 0) return overflow();
    return CelValue(static_cast<T>(*number));
  }
  if (const auto* number = of.As<std::uint64_t>()) {
    if (*number > static_cast<std::uint64_t>(std::numeric_limits<T>::max())) return overflow();
    return CelValue(static_cast<T>(*number));
  }
  if (const auto* real = of.As<double>()) {
    const double whole = std::trunc(*real);
    const double bound = std::numeric_limits<T>::is_signed ? 0x1p63 : 0x1p64;
    const double least = std::numeric_limits<T>::is_signed ? -bound : 0;
    if (!(whole >= least && whole < bound)) return overflow();
    return CelValue(static_cast<T>(whole));
  }
  if (const auto* text = of.As<std::string>()) return FromText<T>(*text);
  return NoSuchOverload(name);
}

Result ToReal(const CelValue& of) {
  if (of.As<double>() != nullptr) return of;
  if (const auto* number = of.As<std::int64_t>()) return CelValue(static_cast<double>(*number));
  if (const auto* number = of.As<std::uint64_t>()) return CelValue(static_cast<double>(*number));
  if (const auto* text = of.As<std::string>()) return FromText<double>(*text);
  return NoSuchOverload("double");
}

Result ToText(const CelValue& of) {
  if (of.As<std::string>() != nullptr) return of;
  if (const auto* flag = of.As<bool>()) return CelValue(std::string(*flag ? "true" : "false"));
  if (const auto* number = of.As<std::int64_t>()) return CelValue(std::to_string(*number));
  if (const auto* number = of.As<std::uint64_t>()) return CelValue(std::to_string(*number));
  if (const auto* real = of.As<double>()) return CelValue(fmt::format("{}", *real));
  if (const auto* bytes = of.As<CelValue::Bytes>()) {
    if (!IsUtf8(bytes->bytes)) {
      return InvalidArgument("invalid UTF-8 in bytes, cannot convert to string");
    }
    return CelValue(bytes->bytes);
  }
  return NoSuchOverload("string");
}

Result ToBool(const CelValue& of) {
  if (of.As<bool>() != nullptr) return of;
  if (const auto* text = of.As<std::string>()) {
    for (const std::string_view yes : {"1", "t", "true", "TRUE", "True"}) {
      if (*text == yes) return CelValue(true);
    }
    for (const std::string_view no : {"0", "f", "false", "FALSE", "False"}) {
      if (*text == no) return CelValue(false);
    }
    return InvalidArgument("\"{}\" is not a bool", *text);
  }
  return NoSuchOverload("bool");
}

Result ParseSemver(const Args& args, bool only_asks) {
  const std::string* text = Text(args, 0);
  const auto* normalize = args.size() == 2 ? args[1].As<bool>() : nullptr;
  if (text == nullptr || (args.size() == 2 && normalize == nullptr))
    return NoSuchOverload("semver");
  auto version =
      normalize != nullptr && *normalize ? Semver::ParseTolerant(*text) : Semver::Parse(*text);
  if (only_asks) return CelValue(version.ok());
  if (!version.ok()) return version.status();
  return CelValue(*std::move(version));
}

Result ParseQuantity(const Args& args, bool only_asks) {
  const std::string* text = Text(args, 0);
  if (text == nullptr) return NoSuchOverload("quantity");
  auto quantity = Quantity::Parse(*text);
  if (only_asks) return CelValue(quantity.ok());
  if (!quantity.ok()) return quantity.status();
  return CelValue(*std::move(quantity));
}

// Implements compareTo, isGreaterThan and isLessThan, of quantities and of versions.
Result CompareTo(CelFunction function, const Args& args) {
  const CelType type = args[0].type();
  if ((type != CelType::kQuantity && type != CelType::kSemver) || args[1].type() != type) {
    return NoSuchOverload(
        fmt::format("comparison of {} with {}", ToString(type), ToString(args[1].type())));
  }
  const int order = *Order(args[0], args[1]);
  if (function == CelFunction::kIsGreaterThan) return CelValue(order > 0);
  if (function == CelFunction::kIsLessThan) return CelValue(order < 0);
  return CelValue(std::int64_t{order < 0 ? -1 : order > 0 ? 1 : 0});
}

Result VersionPart(CelFunction function, const CelValue& of) {
  const Semver* version = of.AsSemver();
  if (version == nullptr) return NoSuchOverload("a part of a version");
  return ToWhole<std::int64_t>(CelValue(function == CelFunction::kMajor   ? version->major
                                        : function == CelFunction::kMinor ? version->minor
                                                                          : version->patch),
                               "int");
}

bool IsZero(const CelValue& value) {
  switch (value.type()) {
    case CelType::kNull:
      return true;
    case CelType::kBool:
      return !*value.As<bool>();
    case CelType::kString:
      return value.As<std::string>()->empty();
    case CelType::kBytes:
      return value.As<CelValue::Bytes>()->bytes.empty();
    case CelType::kList:
      return value.AsList()->empty();
    case CelType::kMap:
      return value.AsMap()->empty();
    default:
      return value.IsNumber() && Equal(value, CelValue(std::int64_t{0}));
  }
}

Result OptionalCall(CelFunction function, const Args& args) {
  const auto some = [&] {
    return CelValue(CelValue::Optional{std::make_shared<const CelValue>(args[0])});
  };
  if (function == CelFunction::kOptionalNone) return CelValue(CelValue::Optional{});
  if (function == CelFunction::kOptionalOf) return some();
  if (function == CelFunction::kOptionalOfNonZero) {
    return IsZero(args[0]) ? CelValue(CelValue::Optional{}) : some();
  }
  const auto* maybe = args[0].As<CelValue::Optional>();
  if (maybe == nullptr) return NoSuchOverload("a function of optionals");
  if (function == CelFunction::kHasValue) return CelValue(maybe->value != nullptr);
  if (function == CelFunction::kOr) return maybe->value != nullptr ? args[0] : args[1];
  if (maybe->value != nullptr) return CelValue(*maybe->value);
  if (function == CelFunction::kOrValue) return args[1];
  return NotFound("optional.none() dereference");
}

Result TextCall(const CelExpr& call, const Args& args) {
  const std::string* text = Text(args, 0);
  if (text == nullptr) return NoSuchOverload(call.name);
  const std::string* other = Text(args, 1);
  switch (call.function) {
    case CelFunction::kLowerAscii:
      return CelValue(MapAscii(*text, 'A', 'a' - 'A'));
    case CelFunction::kUpperAscii:
      return CelValue(MapAscii(*text, 'a', 'A' - 'a'));
    case CelFunction::kTrim:
      return Trim(*text);
    case CelFunction::kSplit:
      return Split(args);
    case CelFunction::kReplace:
      return Replace(args);
    case CelFunction::kSubstring:
      return Substring(args);
    case CelFunction::kCharAt:
      return CharAt(args);
    default:
      break;
  }
  if (other == nullptr) return NoSuchOverload(call.name);
  switch (call.function) {
    case CelFunction::kContains:
      return CelValue(text->find(*other) != std::string::npos);
    case CelFunction::kStartsWith:
      return CelValue(text->starts_with(*other));
    case CelFunction::kEndsWith:
      return CelValue(text->ends_with(*other));
    default:
      return Search(call, *text, *other);
  }
}

Result ConversionCall(CelFunction function, const Args& args) {
  switch (function) {
    case CelFunction::kInt:
      return ToWhole<std::int64_t>(args[0], "int");
    case CelFunction::kUint:
      return ToWhole<std::uint64_t>(args[0], "uint");
    case CelFunction::kDouble:
      return ToReal(args[0]);
    case CelFunction::kString:
      return ToText(args[0]);
    case CelFunction::kBool:
      return ToBool(args[0]);
    case CelFunction::kDyn:
      return args[0];
    case CelFunction::kQuantity:
    case CelFunction::kIsQuantity:
      return ParseQuantity(args, function == CelFunction::kIsQuantity);
    default:
      return ParseSemver(args, function == CelFunction::kIsSemver);
  }
}

}  // namespace

absl::StatusOr<CelValue> CallCelFunction(const CelExpr& call, const std::vector<CelValue>& args) {
  const CelFunction function = call.function;
  if (function >= CelFunction::kInt && function <= CelFunction::kIsSemver) {
    return ConversionCall(function, args);
  }
  if (function >= CelFunction::kOptionalOf) return OptionalCall(function, args);
  switch (function) {
    case CelFunction::kSize:
      return Size(args[0]);
    case CelFunction::kJoin:
      return Join(args);
    case CelFunction::kIndexOf:
    case CelFunction::kLastIndexOf:
      return IndexOf(args, function == CelFunction::kLastIndexOf);
    case CelFunction::kMin:
    case CelFunction::kMax:
      return MinOrMax(args[0], function == CelFunction::kMax);
    case CelFunction::kSum:
      return Sum(args[0]);
    case CelFunction::kIsSorted:
      return IsSorted(args[0]);
    case CelFunction::kIncludes:
      // A list includes its entries; any other value, itself (Kubernetes 1.36).
      return CelValue(args[0].AsList() != nullptr ? HasEntry(*args[0].AsList(), args[1])
                                                  : Equal(args[0], args[1]));
    case CelFunction::kCompareTo:
    case CelFunction::kIsGreaterThan:
    case CelFunction::kIsLessThan:
      return CompareTo(function, args);
    case CelFunction::kMajor:
    case CelFunction::kMinor:
    case CelFunction::kPatch:
      return VersionPart(function, args[0]);
    case CelFunction::kSetsContains:
    case CelFunction::kSetsIntersects:
    case CelFunction::kSetsEquivalent:
      return Sets(function, args[0], args[1]);
    default:
      return TextCall(call, args);
  }
}

}  // namespace tahoma::kube::internal
