#include "lib/kube/cel/evaluator.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/kube/cel/shape.h"

namespace tahoma::kube::internal {
namespace {

constexpr std::uint64_t kBytesPerStep = 10;  // Kubernetes: string traversal factor 0.1

// The cost of a pattern that is known only now and is compiled for the one call.
constexpr std::uint64_t kStepsPerPattern = 10'000;

std::string KeyText(const CelValue& key) {
  if (const auto* text = key.As<std::string>()) return *text;
  if (const auto* number = key.As<std::int64_t>()) return std::to_string(*number);
  if (const auto* number = key.As<std::uint64_t>()) return std::to_string(*number);
  if (const auto* number = key.As<double>()) return fmt::format("{}", *number);
  if (const auto* flag = key.As<bool>()) return *flag ? "true" : "false";
  return std::string(ToString(key.type()));
}

bool IsKey(const CelValue& value) {
  return value.IsNumber() || value.As<bool>() != nullptr || value.As<std::string>() != nullptr;
}

// Returns the place in a list of that size that a number of any type means.
std::optional<std::size_t> PlaceIn(std::size_t size, const CelValue& key) {
  const CelValue end(static_cast<std::uint64_t>(size));
  if (!(Order(key, CelValue(std::int64_t{0})) >= 0) || !(Order(key, end) < 0)) return std::nullopt;
  if (const auto* number = key.As<std::int64_t>()) return static_cast<std::size_t>(*number);
  if (const auto* number = key.As<std::uint64_t>()) return static_cast<std::size_t>(*number);
  const auto place = static_cast<std::size_t>(*key.As<double>());
  const bool whole = Equal(key, CelValue(static_cast<std::uint64_t>(place)));
  return whole ? std::optional(place) : std::nullopt;
}

// Counts the steps to look at a value. Entries of entries count each time that they are met: a list
// that holds another many times over is small in memory and as long to look at as if it held
// copies. Counts no further than `limit`.
std::uint64_t StepsOf(const CelValue& value, std::uint64_t limit) {
  if (const auto* text = value.As<std::string>()) return text->size() / kBytesPerStep;
  if (const auto* bytes = value.As<CelValue::Bytes>()) return bytes->bytes.size() / kBytesPerStep;
  if (const auto* maybe = value.As<CelValue::Optional>()) {
    return maybe->value == nullptr ? 0 : StepsOf(*maybe->value, limit);
  }
  std::uint64_t steps = 0;
  if (const auto* list = value.AsList()) {
    for (const CelValue& entry : *list) {
      if (++steps > limit) break;
      steps += StepsOf(entry, limit - steps);
    }
  }
  if (const auto* map = value.AsMap()) {
    // Comparing maps looks for each key among all keys.
    const std::uint64_t keys = 1 + map->size() / kBytesPerStep;
    for (const auto& [key, entry] : *map) {
      if ((steps += keys) > limit) break;
      steps += StepsOf(key, limit) + StepsOf(entry, limit - steps);
    }
  }
  return steps;
}

absl::Status Overflow() { return OutOfRange("integer overflow"); }

template <typename T>
absl::StatusOr<CelValue> IntegerArithmetic(CelOp op, T a, T b) {
  T result = 0;
  bool overflow = false;
  switch (op) {
    case CelOp::kAdd:
      overflow = __builtin_add_overflow(a, b, &result);
      break;
    case CelOp::kSubtract:
      overflow = __builtin_sub_overflow(a, b, &result);
      break;
    case CelOp::kMultiply:
      overflow = __builtin_mul_overflow(a, b, &result);
      break;
    default:
      if (b == 0) {
        return InvalidArgument("{} by zero", op == CelOp::kDivide ? "division" : "modulus");
      }
      if constexpr (std::numeric_limits<T>::is_signed) {
        if (a == std::numeric_limits<T>::min() && b == T{-1}) return Overflow();
      }
      result = op == CelOp::kDivide ? a / b : a % b;
  }
  if (overflow) return Overflow();
  return CelValue(result);
}

absl::StatusOr<CelValue> RealArithmetic(CelOp op, double a, double b) {
  switch (op) {
    case CelOp::kAdd:
      return CelValue(a + b);
    case CelOp::kSubtract:
      return CelValue(a - b);
    case CelOp::kMultiply:
      return CelValue(a * b);
    case CelOp::kDivide:
      return CelValue(a / b);
    default:
      return NoSuchOverload("_%_");
  }
}

// Returns the steps that a copy of the value takes: lists and maps are shared, texts are not.
std::uint64_t TextSteps(const CelValue& value) {
  return value.As<std::string>() == nullptr && value.As<CelValue::Bytes>() == nullptr
             ? 0
             : StepsOf(value, 0);
}

bool IsPart(const CelValue& value) { return value.As<CelValue::ObjectPart>() != nullptr; }

// Returns the field of an object, by its name in CEL, or the value of a map.
std::optional<CelValue> FieldOf(const CelValue::ObjectPart& object, const std::string& name) {
  const CelShape& shape = *object.shape;
  if (shape.type == CelType::kMap) {
    const Json* value = FindMember(*object.value, name);
    return value == nullptr ? std::nullopt : std::optional(ToCelValue(*value, *shape.element));
  }
  const CelShape::Field* field = FindCelField(shape, name);
  if (field == nullptr) return std::nullopt;
  const Json* value = FindMember(*object.value, field->name);
  return value == nullptr ? std::nullopt : std::optional(ToCelValue(*value, *field->shape));
}

CelValue Some(CelValue value) {
  return CelValue(CelValue::Optional{std::make_shared<const CelValue>(std::move(value))});
}

}  // namespace

absl::Status NoSuchOverload(std::string_view what) {
  return InvalidArgument("no such overload: {}", what);
}

absl::Status CelEvaluator::Spend(std::uint64_t steps) {
  if (steps > cost_left_) {
    cost_left_ = 0;
    return ResourceExhausted("operation cancelled: actual cost limit exceeded");
  }
  cost_left_ -= steps;
  return absl::OkStatus();
}

absl::Status CelEvaluator::SpendOn(const CelValue& value) {
  return Spend(StepsOf(value, cost_left_));
}

absl::Status CelEvaluator::SpendOnCall(const CelExpr& call, const std::vector<CelValue>& args) {
  for (const CelValue& arg : args) TAHOMA_RETURN_IF_ERROR(SpendOn(arg));
  if (args.size() < 2) return absl::OkStatus();
  switch (call.function) {
    case CelFunction::kContains:
    case CelFunction::kIndexOf:
    case CelFunction::kLastIndexOf:
    case CelFunction::kSplit:
    case CelFunction::kReplace:
      // At worst all of the second text is compared at each place of the first.
      return args[0].As<std::string>() == nullptr
                 ? absl::OkStatus()
                 : Spend(StepsOf(args[0], cost_left_) * StepsOf(args[1], cost_left_));
    case CelFunction::kSetsContains:
    case CelFunction::kSetsIntersects:
    case CelFunction::kSetsEquivalent:
      // Each entry is compared with each.
      return args[1].AsList() == nullptr
                 ? absl::OkStatus()
                 : Spend(StepsOf(args[0], cost_left_) * args[1].AsList()->size());
    case CelFunction::kMatches:
    case CelFunction::kFind:
      return Spend(call.pattern == nullptr ? kStepsPerPattern : 0);
    default:
      return absl::OkStatus();
  }
}

CelValue CelEvaluator::IdsOf(const CelValue::DevicePart& part) const {
  const bool capacity = part.type == CelType::kCapIds;
  CelValue::Map map;
  for (const auto& [domain, id] : capacity ? device_->CapacityNames() : device_->AttributeNames()) {
    if (domain != part.domain) continue;
    auto value = capacity ? device_->Capacity(domain, id) : device_->Attribute(domain, id);
    if (value) map.emplace_back(CelValue(id), *std::move(value));
  }
  return CelValue(std::move(map));
}

CelValue CelEvaluator::Materialized(const CelValue& value) const {
  const auto* maybe = value.As<CelValue::Optional>();
  if (maybe != nullptr && maybe->value != nullptr) return Some(Materialized(*maybe->value));
  if (const auto* in_object = value.As<CelValue::ObjectPart>()) {
    return WholeValue(*in_object->value, *in_object->shape);
  }
  const auto* part = value.As<CelValue::DevicePart>();
  if (part == nullptr || part->type == CelType::kDevice) return value;
  if (part->type == CelType::kIds || part->type == CelType::kCapIds) return IdsOf(*part);
  const bool capacity = part->type == CelType::kCapDomains;
  CelValue::Map map;
  for (const auto& [domain, id] : capacity ? device_->CapacityNames() : device_->AttributeNames()) {
    const CelValue key(domain);
    if (FindKey(map, key) != nullptr) continue;
    map.emplace_back(key, IdsOf({capacity ? CelType::kCapIds : CelType::kIds, domain}));
  }
  return CelValue(std::move(map));
}

absl::StatusOr<CelValue::Optional> CelEvaluator::Find(const CelValue& base, const CelValue& key) {
  const auto some = [](CelValue value) {
    return CelValue::Optional{std::make_shared<const CelValue>(std::move(value))};
  };
  const auto* text = key.As<std::string>();
  if (const auto* part = base.As<CelValue::ObjectPart>()) {
    if (part->value->is_array()) {
      if (!key.IsNumber()) return NoSuchOverload("an index that is not a number");
      const auto place = PlaceIn(part->value->size(), key);
      return place ? some(ToCelValue((*part->value)[*place], *part->shape->element))
                   : CelValue::Optional{};
    }
    if (text == nullptr) return NoSuchOverload("a key that is not a string");
    auto found = FieldOf(*part, *text);
    return found ? some(*std::move(found)) : CelValue::Optional{};
  }
  if (const auto* part = base.As<CelValue::DevicePart>()) {
    if (text == nullptr) return NoSuchOverload("a key that is not a string");
    switch (part->type) {
      case CelType::kDomains:
        // A domain that the device does not have is an empty map, not an error.
        return some(CelValue(CelValue::DevicePart{CelType::kIds, *text}));
      case CelType::kCapDomains:
        return some(CelValue(CelValue::DevicePart{CelType::kCapIds, *text}));
      default: {
        auto found = part->type == CelType::kIds ? device_->Attribute(part->domain, *text)
                                                 : device_->Capacity(part->domain, *text);
        return found ? some(*std::move(found)) : CelValue::Optional{};
      }
    }
  }
  if (const auto* map = base.AsMap()) {
    TAHOMA_RETURN_IF_ERROR(Spend(map->size()));
    const CelValue* found = FindKey(*map, key);
    return found != nullptr ? some(*found) : CelValue::Optional{};
  }
  if (const auto* list = base.AsList()) {
    if (!key.IsNumber()) return NoSuchOverload("an index that is not a number");
    const auto place = PlaceIn(list->size(), key);
    return place ? some((*list)[*place]) : CelValue::Optional{};
  }
  return NoSuchOverload(fmt::format("type '{}' has no entries", ToString(base.type())));
}

CelEvaluator::Result CelEvaluator::Select(const CelExpr& e) {
  TAHOMA_ASSIGN_OR_RETURN(CelValue base, Evaluate(*e.args[0]));
  bool optional = e.optional;
  if (const auto* maybe = base.As<CelValue::Optional>()) {
    if (maybe->value == nullptr) {
      return e.op == CelOp::kHas ? CelValue(false) : CelValue(CelValue::Optional{});
    }
    optional = true;
    base = CelValue(*maybe->value);
  }
  const auto* object = base.As<CelValue::ObjectPart>();
  if (object != nullptr && object->value->is_object() && !optional) {
    std::optional<CelValue> field = FieldOf(*object, e.name);
    if (e.op == CelOp::kHas) return CelValue(field.has_value());
    if (!field) return NotFound("no such key: {}", e.name);
    return *std::move(field);
  }
  const auto* part = base.As<CelValue::DevicePart>();
  if (part != nullptr && part->type == CelType::kDevice) {
    if (e.op == CelOp::kHas) return CelValue(true);
    CelValue field;
    if (e.name == "driver") field = CelValue(std::string(device_->Driver()));
    if (e.name == "allowMultipleAllocations")
      field = CelValue(device_->AllowsMultipleAllocations());
    if (e.name == "attributes") field = CelValue(CelValue::DevicePart{CelType::kDomains, ""});
    if (e.name == "capacity") field = CelValue(CelValue::DevicePart{CelType::kCapDomains, ""});
    return optional ? Some(std::move(field)) : std::move(field);
  }
  if (base.AsList() != nullptr || base.type() == CelType::kList) {
    return NoSuchOverload("a list has no fields");
  }
  TAHOMA_ASSIGN_OR_RETURN(CelValue::Optional found, Find(base, CelValue(e.name)));
  if (e.op == CelOp::kHas) return CelValue(found.value != nullptr);
  if (optional) return CelValue(std::move(found));
  if (found.value == nullptr) return NotFound("no such key: {}", e.name);
  return *found.value;
}

CelEvaluator::Result CelEvaluator::Index(const CelExpr& e) {
  TAHOMA_ASSIGN_OR_RETURN(CelValue base, Evaluate(*e.args[0]));
  TAHOMA_ASSIGN_OR_RETURN(const CelValue key, Evaluate(*e.args[1]));
  bool optional = e.optional;
  if (const auto* maybe = base.As<CelValue::Optional>()) {
    if (maybe->value == nullptr) return base;
    optional = true;
    base = CelValue(*maybe->value);
  }
  TAHOMA_ASSIGN_OR_RETURN(CelValue::Optional found, Find(base, key));
  if (optional) return CelValue(std::move(found));
  if (found.value != nullptr) return *found.value;
  if (base.type() == CelType::kList) return OutOfRange("index out of bounds: {}", KeyText(key));
  return NotFound("no such key: {}", KeyText(key));
}

// Evaluates so that false && error is false and true || error is true, whichever side has the
// error.
CelEvaluator::Result CelEvaluator::AndOr(const CelExpr& e) {
  const bool decides = e.op == CelOp::kOr;
  Result left = Evaluate(*e.args[0]);
  const bool* left_bool = left.ok() ? left->As<bool>() : nullptr;
  if (left_bool != nullptr && *left_bool == decides) return CelValue(decides);
  Result right = Evaluate(*e.args[1]);
  const bool* right_bool = right.ok() ? right->As<bool>() : nullptr;
  if (right_bool != nullptr && *right_bool == decides) return CelValue(decides);
  if (!left.ok()) return left;
  if (!right.ok()) return right;
  if (left_bool == nullptr || right_bool == nullptr) return NoSuchOverload(e.name);
  return CelValue(!decides);
}

CelEvaluator::Result CelEvaluator::Arithmetic(const CelExpr& e, const CelValue& a,
                                              const CelValue& b) {
  if (a.type() != b.type()) return NoSuchOverload(e.name);
  if (IsPart(a) || IsPart(b)) return Arithmetic(e, Materialized(a), Materialized(b));
  if (const auto* number = a.As<std::int64_t>()) {
    return IntegerArithmetic(e.op, *number, *b.As<std::int64_t>());
  }
  if (const auto* number = a.As<std::uint64_t>()) {
    return IntegerArithmetic(e.op, *number, *b.As<std::uint64_t>());
  }
  if (const auto* number = a.As<double>()) return RealArithmetic(e.op, *number, *b.As<double>());
  if (e.op != CelOp::kAdd) return NoSuchOverload(e.name);
  TAHOMA_RETURN_IF_ERROR(SpendOn(a));
  TAHOMA_RETURN_IF_ERROR(SpendOn(b));
  if (const auto* text = a.As<std::string>()) return CelValue(*text + *b.As<std::string>());
  if (const auto* bytes = a.As<CelValue::Bytes>()) {
    return CelValue(CelValue::Bytes{bytes->bytes + b.As<CelValue::Bytes>()->bytes});
  }
  if (const auto* list = a.AsList()) {
    CelValue::List both = *list;
    both.insert(both.end(), b.AsList()->begin(), b.AsList()->end());
    return CelValue(std::move(both));
  }
  return NoSuchOverload(e.name);
}

CelEvaluator::Result CelEvaluator::Contains(const CelValue& key, const CelValue& in) {
  const CelValue range = Materialized(in);
  TAHOMA_RETURN_IF_ERROR(SpendOn(range));
  if (const auto* list = range.AsList()) {
    const CelValue whole = Materialized(key);
    return CelValue(std::any_of(list->begin(), list->end(),
                                [&](const CelValue& entry) { return Equal(entry, whole); }));
  }
  if (const auto* map = range.AsMap()) return CelValue(FindKey(*map, key) != nullptr);
  return NoSuchOverload("in");
}

absl::StatusOr<bool> CelEvaluator::AreEqual(const CelValue& a, const CelValue& b) {
  const auto* left = a.As<CelValue::ObjectPart>();
  const auto* right = b.As<CelValue::ObjectPart>();
  if (left != nullptr && right != nullptr && left->shape == right->shape) {
    std::uint64_t steps = 0;
    const bool equal = SameInCel(*left->value, *right->value, *left->shape, steps);
    TAHOMA_RETURN_IF_ERROR(Spend(steps));
    return equal;
  }
  const CelValue whole_a = Materialized(a);
  const CelValue whole_b = Materialized(b);
  TAHOMA_RETURN_IF_ERROR(SpendOn(whole_a));
  TAHOMA_RETURN_IF_ERROR(SpendOn(whole_b));
  return Equal(whole_a, whole_b);
}

CelEvaluator::Result CelEvaluator::Binary(const CelExpr& e) {
  TAHOMA_ASSIGN_OR_RETURN(CelValue a, Evaluate(*e.args[0]));
  TAHOMA_ASSIGN_OR_RETURN(CelValue b, Evaluate(*e.args[1]));
  if (e.op == CelOp::kIn) return Contains(a, b);
  if (e.op >= CelOp::kAdd && e.op <= CelOp::kModulo) return Arithmetic(e, a, b);
  if (e.op == CelOp::kEqual || e.op == CelOp::kNotEqual) {
    TAHOMA_ASSIGN_OR_RETURN(const bool equal, AreEqual(a, b));
    return CelValue(equal == (e.op == CelOp::kEqual));
  }
  a = Materialized(a);
  b = Materialized(b);
  TAHOMA_RETURN_IF_ERROR(SpendOn(a));
  TAHOMA_RETURN_IF_ERROR(SpendOn(b));
  const bool orderly = a.type() != CelType::kQuantity && a.type() != CelType::kSemver;
  const bool numbers = a.IsNumber() && b.IsNumber();
  if (!orderly || (!numbers && a.type() != b.type())) return NoSuchOverload(e.name);
  const std::optional<int> order = Order(a, b);
  if (!order) {
    if (numbers) return CelValue(false);  // NaN
    return NoSuchOverload(e.name);
  }
  switch (e.op) {
    case CelOp::kLess:
      return CelValue(*order < 0);
    case CelOp::kLessEqual:
      return CelValue(*order <= 0);
    case CelOp::kGreater:
      return CelValue(*order > 0);
    default:
      return CelValue(*order >= 0);
  }
}

CelEvaluator::Result CelEvaluator::Aggregate(const CelExpr& e) {
  CelValue::List values;
  for (const auto& arg : e.args) {
    TAHOMA_ASSIGN_OR_RETURN(CelValue value, Evaluate(*arg));
    values.push_back(Materialized(value));
  }
  const std::size_t stride = e.op == CelOp::kMap ? 2 : 1;
  CelValue::List list;
  CelValue::Map map;
  for (std::size_t i = 0; i < values.size(); i += stride) {
    CelValue value = values[i + stride - 1];
    if (e.optional_args[i / stride]) {
      const auto* maybe = value.As<CelValue::Optional>();
      if (maybe == nullptr) return NoSuchOverload("an entry after '?' must be optional");
      if (maybe->value == nullptr) continue;
      value = CelValue(*maybe->value);
    }
    if (e.op == CelOp::kList) {
      list.push_back(std::move(value));
      continue;
    }
    if (!IsKey(values[i])) {
      return InvalidArgument("unsupported key type: {}", ToString(values[i].type()));
    }
    TAHOMA_RETURN_IF_ERROR(Spend(map.size() / kBytesPerStep));
    if (FindKey(map, values[i]) != nullptr) {
      return InvalidArgument("repeated key: {}", KeyText(values[i]));
    }
    map.emplace_back(values[i], std::move(value));
  }
  return e.op == CelOp::kMap ? CelValue(std::move(map)) : CelValue(std::move(list));
}

absl::StatusOr<CelValue> CelEvaluator::RangeOf(const CelValue& value) {
  if (const auto* part = value.As<CelValue::ObjectPart>(); part != nullptr) {
    CelValue::List entries;
    if (part->value->is_array()) {
      for (const Json& entry : *part->value) {
        entries.push_back(ToCelValue(entry, *part->shape->element));
      }
    } else {
      for (const auto& [name, unused] : MembersOf(*part->value)) entries.emplace_back(name);
    }
    TAHOMA_RETURN_IF_ERROR(Spend(entries.size()));
    return CelValue(std::move(entries));
  }
  CelValue range = Materialized(value);
  if (range.AsList() != nullptr) return range;
  if (const auto* map = range.AsMap()) {
    TAHOMA_RETURN_IF_ERROR(Spend(map->size()));
    CelValue::List keys;
    for (const auto& [key, unused] : *map) keys.push_back(key);
    return CelValue(std::move(keys));
  }
  return NoSuchOverload(fmt::format("got '{}', expected iterable type", ToString(value.type())));
}

CelEvaluator::Result CelEvaluator::OptMap(const CelExpr& e) {
  TAHOMA_ASSIGN_OR_RETURN(const CelValue base, Evaluate(*e.args[0]));
  const auto* maybe = base.As<CelValue::Optional>();
  if (maybe == nullptr) return NoSuchOverload("optMap");
  if (maybe->value == nullptr) return base;
  slots_[e.slot] = *maybe->value;
  TAHOMA_ASSIGN_OR_RETURN(CelValue mapped, Evaluate(*e.args[1]));
  return Some(std::move(mapped));
}

CelEvaluator::Result CelEvaluator::Comprehension(const CelExpr& e) {
  if (e.macro == CelMacro::kOptMap) return OptMap(e);
  TAHOMA_ASSIGN_OR_RETURN(const CelValue over, Evaluate(*e.args[0]));
  TAHOMA_ASSIGN_OR_RETURN(const CelValue range, RangeOf(over));
  CelValue::List kept;
  std::size_t hits = 0;
  absl::Status failure = absl::OkStatus();
  for (const CelValue& entry : *range.AsList()) {
    TAHOMA_RETURN_IF_ERROR(Spend(1 + TextSteps(entry)));
    slots_[e.slot] = entry;
    Result got = Evaluate(*e.args[1]);
    if (e.macro == CelMacro::kMap) {
      if (!got.ok()) return got;
      kept.push_back(Materialized(*got));
      continue;
    }
    const bool* flag = got.ok() ? got->As<bool>() : nullptr;
    if (flag == nullptr) {
      failure = got.ok() ? NoSuchOverload("a condition that is not bool") : got.status();
      // all() and exists() may still be decided by another entry; the others may not.
      if (e.macro != CelMacro::kAll && e.macro != CelMacro::kExists) return failure;
      continue;
    }
    if (e.macro == CelMacro::kAll && !*flag) return CelValue(false);
    if (e.macro == CelMacro::kExists && *flag) return CelValue(true);
    if (!*flag) continue;
    ++hits;
    if (e.macro == CelMacro::kFilter) kept.push_back(Materialized(entry));
    if (e.macro == CelMacro::kMapFilter) {
      TAHOMA_ASSIGN_OR_RETURN(CelValue mapped, Evaluate(*e.args[2]));
      kept.push_back(Materialized(mapped));
    }
  }
  if (!failure.ok()) return failure;
  if (e.macro == CelMacro::kAll) return CelValue(true);
  if (e.macro == CelMacro::kExists) return CelValue(false);
  if (e.macro == CelMacro::kExistsOne) return CelValue(hits == 1);
  return CelValue(std::move(kept));
}

CelEvaluator::Result CelEvaluator::Evaluate(const CelExpr& e) {
  TAHOMA_RETURN_IF_ERROR(Spend(1));
  Result result = EvaluateNode(e);
  if (result.ok()) TAHOMA_RETURN_IF_ERROR(Spend(TextSteps(*result)));
  return result;
}

CelEvaluator::Result CelEvaluator::EvaluateNode(const CelExpr& e) {
  switch (e.op) {
    case CelOp::kLiteral:
      return e.literal;
    case CelOp::kVariable:
      return slots_[e.slot];
    case CelOp::kSelect:
    case CelOp::kHas:
      return Select(e);
    case CelOp::kIndex:
      return Index(e);
    case CelOp::kList:
    case CelOp::kMap:
      return Aggregate(e);
    case CelOp::kAnd:
    case CelOp::kOr:
      return AndOr(e);
    case CelOp::kComprehension:
      return Comprehension(e);
    case CelOp::kCall: {
      std::vector<CelValue> args;
      for (const auto& arg : e.args) {
        TAHOMA_ASSIGN_OR_RETURN(const CelValue value, Evaluate(*arg));
        args.push_back(Materialized(value));
      }
      TAHOMA_RETURN_IF_ERROR(SpendOnCall(e, args));
      return CallCelFunction(e, args);
    }
    case CelOp::kBind: {
      TAHOMA_ASSIGN_OR_RETURN(slots_[e.slot], Evaluate(*e.args[0]));
      return Evaluate(*e.args[1]);
    }
    case CelOp::kConditional: {
      TAHOMA_ASSIGN_OR_RETURN(const CelValue condition, Evaluate(*e.args[0]));
      const bool* flag = condition.As<bool>();
      if (flag == nullptr) return NoSuchOverload("_?_:_");
      return Evaluate(*e.args[*flag ? 1 : 2]);
    }
    case CelOp::kNot:
    case CelOp::kNegate: {
      TAHOMA_ASSIGN_OR_RETURN(const CelValue operand, Evaluate(*e.args[0]));
      const bool* flag = operand.As<bool>();
      if (e.op == CelOp::kNot && flag != nullptr) return CelValue(!*flag);
      if (e.op == CelOp::kNot) return NoSuchOverload("!_");
      if (const auto* real = operand.As<double>()) return CelValue(-*real);
      const auto* number = operand.As<std::int64_t>();
      if (number == nullptr) return NoSuchOverload("-_");
      return IntegerArithmetic(CelOp::kSubtract, std::int64_t{0}, *number);
    }
    default:
      return Binary(e);
  }
}

}  // namespace tahoma::kube::internal
