#include "lib/kube/cel/checker.h"

#include <fmt/format.h>

#include <map>
#include <vector>

#include "lib/base/check.h"
#include "lib/base/status.h"
#include "lib/kube/cel/functions.h"
#include "lib/kube/cel/lexer.h"

namespace tahoma::kube::internal {
namespace {

bool IsNumeric(CelType type) {
  return type == CelType::kInt || type == CelType::kUint || type == CelType::kDouble;
}
// Returns whether the type is a part of the device that is a map of names.
bool IsNames(CelType type) {
  return type == CelType::kDomains || type == CelType::kIds || type == CelType::kCapDomains ||
         type == CelType::kCapIds || type == CelType::kDevice;
}
bool IsMap(CelType type) {
  return type == CelType::kMap || (IsNames(type) && type != CelType::kDevice);
}
// Returns whether values of the types may be equal: types that are known and different are an
// error, as in the type checker of cel-go.
bool MayEqual(CelType a, CelType b) {
  return a == b || a == CelType::kDyn || b == CelType::kDyn || a == CelType::kNull ||
         b == CelType::kNull || (IsMap(a) && IsMap(b));
}
bool IsKey(CelType type) {
  return IsNumeric(type) || type == CelType::kDyn || type == CelType::kBool ||
         type == CelType::kString;
}
CelType Joined(CelType a, CelType b) { return a == b ? a : CelType::kDyn; }

class Checker {
 public:
  Checker(std::string_view source, std::vector<CelStatic> slots)
      : source_(source), slots_(std::move(slots)) {}

  absl::StatusOr<CelStatic> Check(const CelExpr& e);
  bool reads_unnamed() const { return reads_unnamed_; }

 private:
  absl::StatusOr<CelStatic> Select(const CelExpr& e, CelStatic base);
  absl::StatusOr<CelStatic> Field(const CelExpr& e, const CelShape& of);
  absl::StatusOr<CelStatic> Index(const CelExpr& e, CelStatic base);
  // Returns how a part of an object may be used.
  absl::StatusOr<CelStatic> Use(const CelExpr& e, const CelShape& shape) const;
  absl::StatusOr<CelType> Arithmetic(const CelExpr& e, CelType a, CelType b);
  absl::StatusOr<CelType> Relation(const CelExpr& e, CelType a, CelType b);
  absl::StatusOr<CelStatic> Logic(const CelExpr& e, const std::vector<CelStatic>& types);
  absl::StatusOr<CelStatic> Comprehension(const CelExpr& e);
  CelStatic EntriesOf(CelStatic range) const;
  absl::StatusOr<CelType> Call(const CelExpr& e, const std::vector<CelStatic>& types);
  absl::StatusOr<CelType> Aggregate(const CelExpr& e, const std::vector<CelStatic>& types);
  absl::StatusOr<CelStatic> Apply(const CelExpr& e, const std::vector<CelStatic>& types);

  absl::Status NoOverload(const CelExpr& e, CelType a, CelType b) const {
    return CelErrorAt(source_, e.at,
                      fmt::format("found no matching overload for '{}' applied to '({}, {})'",
                                  e.name, ToString(a), ToString(b)));
  }
  void NotesUse(CelType type) { reads_unnamed_ = reads_unnamed_ || IsNames(type); }
  // Returns the type of an optional's value, where that is a part of the device or of an object.
  CelStatic Held(const CelExpr& e) const {
    const auto found = held_.find(&e);
    return found == held_.end() ? CelStatic() : found->second;
  }
  // Notes that a part of the device goes, inside of an optional, where it is not followed.
  void NotesHeld(const CelExpr& e) { NotesUse(Held(e)); }
  absl::StatusOr<CelStatic> Entry(const CelExpr& e, CelStatic base);

  std::string_view source_;
  std::vector<CelStatic> slots_;
  bool reads_unnamed_ = false;
  std::map<const CelExpr*, CelStatic> held_;
};

// Returns the type of a selected or indexed entry, an optional where the expression asks for one.
absl::StatusOr<CelStatic> Checker::Entry(const CelExpr& e, CelStatic base) {
  const bool through = base == CelType::kOptional;
  if (through) base = Held(*e.args[0]);
  TAHOMA_ASSIGN_OR_RETURN(const CelStatic type,
                          e.op == CelOp::kIndex ? Index(e, base) : Select(e, base));
  if (e.op == CelOp::kHas) return CelStatic(CelType::kBool);
  if (!through && !e.optional) return type;
  if (IsNames(type) || type.shape != nullptr) held_[&e] = type;
  return CelStatic(CelType::kOptional);
}

absl::StatusOr<CelStatic> Checker::Use(const CelExpr& e, const CelShape& shape) const {
  if (shape.unsupported.empty()) return CelStatic(shape.type, &shape);
  return CelErrorAt(source_, e.at,
                    fmt::format("values of the format '{}' are not supported", shape.unsupported));
}

absl::StatusOr<CelStatic> Checker::Field(const CelExpr& e, const CelShape& of) {
  if (of.type == CelType::kMap) {
    return e.op == CelOp::kHas ? absl::StatusOr<CelStatic>(CelStatic()) : Use(e, *of.element);
  }
  const CelShape::Field* found = FindCelField(of, e.name);
  if (found == nullptr) {
    return CelErrorAt(source_, e.at, fmt::format("undefined field '{}'", e.name));
  }
  if (e.op == CelOp::kHas) return CelStatic();
  return Use(e, *found->shape);
}

absl::StatusOr<CelStatic> Checker::Select(const CelExpr& e, CelStatic base) {
  if (base == CelType::kObject || (base == CelType::kMap && base.shape != nullptr)) {
    return Field(e, *base.shape);
  }
  CelType type = CelType::kDyn;
  if (base == CelType::kDevice) {
    if (e.name == "driver")
      type = CelType::kString;
    else if (e.name == "attributes")
      type = CelType::kDomains;
    else if (e.name == "capacity")
      type = CelType::kCapDomains;
    else if (e.name == "allowMultipleAllocations")
      type = CelType::kBool;
    else
      return CelErrorAt(source_, e.at, fmt::format("undefined field '{}'", e.name));
  } else if (base == CelType::kDomains) {
    type = CelType::kIds;
  } else if (base == CelType::kCapDomains) {
    type = CelType::kCapIds;
  } else if (base == CelType::kCapIds) {
    type = CelType::kQuantity;
  } else if (base != CelType::kDyn && base != CelType::kMap && base != CelType::kIds) {
    return CelErrorAt(source_, e.at,
                      fmt::format("type '{}' does not support field selection", ToString(base)));
  }
  return CelStatic(type);
}

absl::StatusOr<CelStatic> Checker::Index(const CelExpr& e, CelStatic base) {
  TAHOMA_ASSIGN_OR_RETURN(const CelType key, Check(*e.args[1]));
  NotesUse(key);
  if (base == CelType::kDevice) return CelErrorAt(source_, e.at, "a device has no index");
  if (IsNames(base)) {
    if (key != CelType::kString && key != CelType::kDyn) {
      return CelErrorAt(source_, e.at,
                        fmt::format("the key must be a string, not {}", ToString(key)));
    }
    reads_unnamed_ = reads_unnamed_ || e.args[1]->op != CelOp::kLiteral;
  } else if (base != CelType::kDyn && base != CelType::kMap && base != CelType::kList) {
    return CelErrorAt(source_, e.at, fmt::format("type '{}' has no index", ToString(base)));
  }
  if (base == CelType::kDomains) return CelStatic(CelType::kIds);
  if (base == CelType::kCapDomains) return CelStatic(CelType::kCapIds);
  if (base.shape != nullptr && base.shape->element != nullptr) return Use(e, *base.shape->element);
  return CelStatic(base == CelType::kCapIds ? CelType::kQuantity : CelType::kDyn);
}

absl::StatusOr<CelType> Checker::Arithmetic(const CelExpr& e, CelType a, CelType b) {
  if (a == CelType::kDyn || b == CelType::kDyn) {
    const CelType known = a == CelType::kDyn ? b : a;
    if (known == CelType::kBool || known == CelType::kQuantity || known == CelType::kObject ||
        IsMap(known)) {
      return NoOverload(e, a, b);
    }
    return CelType::kDyn;
  }
  const bool fits =
      a == b &&
      (IsNumeric(a) ? e.op != CelOp::kModulo || a != CelType::kDouble
                    : e.op == CelOp::kAdd &&
                          (a == CelType::kString || a == CelType::kBytes || a == CelType::kList));
  if (!fits) return NoOverload(e, a, b);
  return a;
}

absl::StatusOr<CelType> Checker::Relation(const CelExpr& e, CelType a, CelType b) {
  if (e.op == CelOp::kIn) {
    NotesUse(a);
    if (b != CelType::kDyn && b != CelType::kList && !IsMap(b)) return NoOverload(e, a, b);
    reads_unnamed_ = reads_unnamed_ || (IsNames(b) && e.args[0]->op != CelOp::kLiteral);
    return CelType::kBool;
  }
  NotesUse(a);
  NotesUse(b);
  if (e.op == CelOp::kEqual || e.op == CelOp::kNotEqual) {
    if (!MayEqual(a, b)) return NoOverload(e, a, b);
    return CelType::kBool;
  }
  const auto ordered = [](CelType t) {
    return IsNumeric(t) || t == CelType::kDyn || t == CelType::kString || t == CelType::kBytes ||
           t == CelType::kBool;
  };
  if (!ordered(a) || !ordered(b) || !(MayEqual(a, b) || (IsNumeric(a) && IsNumeric(b)))) {
    return NoOverload(e, a, b);
  }
  return CelType::kBool;
}

absl::StatusOr<CelStatic> Checker::Logic(const CelExpr& e, const std::vector<CelStatic>& types) {
  const std::size_t conditions = e.op == CelOp::kConditional ? 1 : types.size();
  for (std::size_t i = 0; i < conditions; ++i) {
    if (types[i] == CelType::kBool || types[i] == CelType::kDyn) continue;
    return CelErrorAt(source_, e.args[i]->at,
                      fmt::format("expected type 'bool', found '{}'", ToString(types[i])));
  }
  if (e.op != CelOp::kConditional) return CelStatic(CelType::kBool);
  if (!MayEqual(types[1], types[2])) return NoOverload(e, types[1], types[2]);
  if (types[1].shape != nullptr && types[1].shape == types[2].shape) return types[1];
  const CelType joined = Joined(types[1], types[2]);
  if (joined == CelType::kDyn) {
    NotesUse(types[1]);
    NotesUse(types[2]);
  }
  return CelStatic(joined);
}

// Returns the type of a macro's variable: the entries of a list, the keys of a map.
CelStatic Checker::EntriesOf(CelStatic range) const {
  if (range == CelType::kList && range.shape != nullptr) {
    return {range.shape->element->type, range.shape->element.get()};
  }
  return IsMap(range) && (range != CelType::kMap || range.shape != nullptr) ? CelType::kString
                                                                            : CelType::kDyn;
}

absl::StatusOr<CelStatic> Checker::Comprehension(const CelExpr& e) {
  TAHOMA_ASSIGN_OR_RETURN(const CelStatic range, Check(*e.args[0]));
  NotesUse(range);
  NotesHeld(*e.args[0]);
  const bool iterable = e.macro == CelMacro::kOptMap ? range == CelType::kOptional
                                                     : range == CelType::kList || IsMap(range);
  if (range != CelType::kDyn && !iterable) {
    return CelErrorAt(source_, e.at,
                      fmt::format("type '{}' cannot be the range of a comprehension "
                                  "(must be list, map, or dynamic)",
                                  ToString(range)));
  }
  slots_[e.slot] = EntriesOf(range);
  CelType last = CelType::kDyn;
  for (std::size_t i = 1; i < e.args.size(); ++i) {
    TAHOMA_ASSIGN_OR_RETURN(last, Check(*e.args[i]));
    NotesUse(last);
    NotesHeld(*e.args[i]);
    const bool condition = e.macro != CelMacro::kMap && e.macro != CelMacro::kOptMap &&
                           !(e.macro == CelMacro::kMapFilter && i == 2);
    if (condition && last != CelType::kBool && last != CelType::kDyn) {
      return CelErrorAt(source_, e.args[i]->at,
                        fmt::format("expected type 'bool', found '{}'", ToString(last)));
    }
  }
  switch (e.macro) {
    case CelMacro::kAll:
    case CelMacro::kExists:
    case CelMacro::kExistsOne:
      return CelStatic(CelType::kBool);
    case CelMacro::kOptMap:
      return CelStatic(CelType::kOptional);
    case CelMacro::kFilter:
      return range == CelType::kList ? range : CelStatic(CelType::kList);
    case CelMacro::kMap:
    case CelMacro::kMapFilter:
      break;
  }
  return CelStatic(CelType::kList);
}

absl::StatusOr<CelType> Checker::Call(const CelExpr& e, const std::vector<CelStatic>& types) {
  for (const CelType type : types) NotesUse(type);
  const CelSignature* signature = nullptr;
  for (const auto style :
       {CelCallStyle::kMember, CelCallStyle::kGlobal, CelCallStyle::kNamespace}) {
    const CelSignature* found = FindCelFunction(e.name, style, types.size());
    if (found != nullptr && found->function == e.function) signature = found;
  }
  TAHOMA_CHECK(signature != nullptr);  // the parser has found it
  if (!types.empty() && signature->receiver != CelType::kDyn && types[0] != CelType::kDyn &&
      types[0] != signature->receiver) {
    return CelErrorAt(source_, e.at,
                      fmt::format("found no matching overload for '{}' applied to '{}'", e.name,
                                  ToString(types[0])));
  }
  return signature->result;
}

absl::StatusOr<CelType> Checker::Aggregate(const CelExpr& e, const std::vector<CelStatic>& types) {
  // A list or map is homogeneous: entries of one type (Kubernetes' base environment).
  const std::size_t stride = e.op == CelOp::kMap ? 2 : 1;
  for (std::size_t i = 0; i < types.size(); ++i) {
    NotesUse(types[i]);
    const bool is_key = stride == 2 && i % 2 == 0;
    if (is_key && !IsKey(types[i])) {
      return CelErrorAt(source_, e.args[i]->at,
                        fmt::format("unsupported key type: {}", ToString(types[i])));
    }
    const CelType first = types[i % stride];
    if (e.optional_args[i / stride] || e.optional_args[0] || MayEqual(first, types[i])) continue;
    return CelErrorAt(
        source_, e.args[i]->at,
        fmt::format("expected type '{}' but found '{}'", ToString(first), ToString(types[i])));
  }
  return e.op == CelOp::kMap ? CelType::kMap : CelType::kList;
}

absl::StatusOr<CelStatic> Checker::Apply(const CelExpr& e, const std::vector<CelStatic>& types) {
  switch (e.op) {
    case CelOp::kList:
    case CelOp::kMap:
      return Aggregate(e, types);
    case CelOp::kCall:
      return Call(e, types);
    case CelOp::kConditional:
    case CelOp::kAnd:
    case CelOp::kOr:
    case CelOp::kNot:
      return Logic(e, types);
    case CelOp::kNegate:
      if (types[0] == CelType::kInt || types[0] == CelType::kDouble || types[0] == CelType::kDyn) {
        return types[0];
      }
      return CelErrorAt(source_, e.at, "found no matching overload for '-_'");
    case CelOp::kAdd:
      if (types[0].shape != nullptr && types[0].shape->list_type != CelShape::ListType::kAtomic) {
        return CelErrorAt(source_, e.at, "'+' of lists of the type set or map is not supported");
      }
      [[fallthrough]];
    case CelOp::kSubtract:
    case CelOp::kMultiply:
    case CelOp::kDivide:
    case CelOp::kModulo:
      return Arithmetic(e, types[0], types[1]);
    default:
      return Relation(e, types[0], types[1]);
  }
}

absl::StatusOr<CelStatic> Checker::Check(const CelExpr& e) {
  switch (e.op) {
    case CelOp::kLiteral:
      return CelStatic(e.literal.type());
    case CelOp::kVariable:
      return slots_[e.slot].shape == nullptr ? slots_[e.slot] : Use(e, *slots_[e.slot].shape);
    case CelOp::kComprehension:
      return Comprehension(e);
    case CelOp::kBind: {
      TAHOMA_ASSIGN_OR_RETURN(slots_[e.slot], Check(*e.args[0]));
      TAHOMA_ASSIGN_OR_RETURN(const CelStatic type, Check(*e.args[1]));
      NotesHeld(*e.args[0]);
      NotesHeld(*e.args[1]);
      return type;
    }
    case CelOp::kSelect:
    case CelOp::kHas:
    case CelOp::kIndex: {
      TAHOMA_ASSIGN_OR_RETURN(const CelStatic base, Check(*e.args[0]));
      return Entry(e, base);
    }
    default:
      break;
  }
  std::vector<CelStatic> types;
  for (const auto& arg : e.args) {
    TAHOMA_ASSIGN_OR_RETURN(const CelStatic type, Check(*arg));
    types.push_back(type);
    NotesHeld(*arg);
  }
  return Apply(e, types);
}

}  // namespace

absl::StatusOr<CelChecked> CheckCel(std::string_view source, const CelParsed& parsed,
                                    std::vector<CelStatic> variables) {
  variables.resize(parsed.slots);
  Checker checker(source, std::move(variables));
  TAHOMA_ASSIGN_OR_RETURN(const CelType type, checker.Check(*parsed.root));
  return CelChecked{.type = type, .reads_unnamed = checker.reads_unnamed()};
}

}  // namespace tahoma::kube::internal
