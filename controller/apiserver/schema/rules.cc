// Texts as in k8s.io/apiextensions-apiserver: pkg/apiserver/schema/cel/validation.go for objects,
// pkg/apis/apiextensions/validation/validation.go for definitions.

#include "controller/apiserver/schema/rules.h"

#include <absl/strings/ascii.h>
#include <absl/strings/str_replace.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>

#include "controller/apiserver/schema/field_path.h"
#include "controller/apiserver/schema/fields.h"
#include "lib/base/check.h"
#include "lib/base/json.h"
#include "lib/base/processor_budget.h"
#include "lib/base/status.h"
#include "lib/kube/cel/object_expression.h"
#include "lib/kube/cel/shape.h"

namespace tahoma::controller::apiserver {

struct SchemaRule {
  // As people wrote them, without space around them.
  std::string rule;
  std::string message;
  std::string reason;
  std::string field;              // below the value; empty: the value itself
  bool asks_without_old = false;  // optionalOldSelf
  std::optional<kube::ObjectExpression> holds;
  std::optional<kube::ObjectExpression> message_expression;
  std::string error;  // why there is no `holds`

  // What errors name the rule by.
  const std::string& Name() const { return message.empty() ? rule : message; }
};

namespace {

using Type = Schema::Type;
using kube::CelShape;
using kube::CelShapePtr;
using kube::CelType;

// k8s.io/apiserver pkg/apis/cel/config.go: RuntimeCELCostBudget,
// MaxEvaluatedMessageExpressionSizeBytes.
constexpr std::uint64_t kRulesCostMax = 10'000'000;
constexpr std::size_t kMessageMax = 5 * 1024;
constexpr std::uint64_t kStepsOfBudget = 16;  // steps of CEL for one of the processor budget
// The patterns of one expression may take some 50 ms to compile.
constexpr std::size_t kStepsOfExpression = 1000;

CelShapePtr ScalarShape(CelType type, std::string unsupported = "") {
  return std::make_shared<const CelShape>(
      CelShape{.type = type, .unsupported = std::move(unsupported)});
}

CelShapePtr ShapeOf(const Schema& schema, bool is_resource);

void AddField(const std::string& name, CelShapePtr shape, CelShape& to) {
  const std::string in_cel = kube::CelFieldName(name);
  if (shape != nullptr && !in_cel.empty()) to.fields[in_cel] = {name, std::move(shape)};
}

CelShapePtr ObjectShape(const Schema& schema, bool is_resource) {
  CelShape shape{.type = CelType::kObject};
  if (schema.additional != nullptr) {
    shape.type = CelType::kMap;
    shape.element = ShapeOf(*schema.additional, schema.additional->embedded_resource);
    if (shape.element == nullptr) return nullptr;
    return std::make_shared<const CelShape>(std::move(shape));
  }
  for (const auto& [name, field] : schema.properties) {
    AddField(name, ShapeOf(*field, field->embedded_resource), shape);
  }
  if (is_resource) {
    CelShape metadata{.type = CelType::kObject};
    for (const char* name : {"name", "generateName"}) {
      AddField(name, ScalarShape(CelType::kString), metadata);
    }
    AddField("apiVersion", ScalarShape(CelType::kString), shape);
    AddField("kind", ScalarShape(CelType::kString), shape);
    AddField("metadata", std::make_shared<const CelShape>(std::move(metadata)), shape);
  }
  return std::make_shared<const CelShape>(std::move(shape));
}

CelShapePtr ListShape(const Schema& schema) {
  using ListType = CelShape::ListType;
  CelShape shape{.type = CelType::kList};
  if (schema.items == nullptr) return nullptr;
  shape.element = ShapeOf(*schema.items, schema.items->embedded_resource);
  if (shape.element == nullptr) return nullptr;
  shape.list_type = schema.list_type == Schema::ListType::kSet   ? ListType::kSet
                    : schema.list_type == Schema::ListType::kMap ? ListType::kMap
                                                                 : ListType::kAtomic;
  shape.keys = schema.list_map_keys;
  return std::make_shared<const CelShape>(std::move(shape));
}

// Returns the type in CEL; null: rules do not see such values.
// Source: k8s.io/apiserver pkg/cel/common/schemas.go, SchemaDeclType.
CelShapePtr ShapeOf(const Schema& schema, bool is_resource) {
  ProcessorBudget::Spend();
  switch (schema.type) {
    case Type::kObject:
      return ObjectShape(schema, is_resource);
    case Type::kArray:
      return ListShape(schema);
    case Type::kString: {
      static constexpr std::array<std::string_view, 4> kNoText = {"byte", "duration", "date",
                                                                  "date-time"};
      const bool is_text =
          std::find(kNoText.begin(), kNoText.end(), schema.format) == kNoText.end();
      return ScalarShape(CelType::kString, is_text ? "" : schema.format);
    }
    case Type::kInteger:
      return ScalarShape(CelType::kInt);
    case Type::kNumber:
      return ScalarShape(CelType::kDouble);
    case Type::kBoolean:
      return ScalarShape(CelType::kBool);
    case Type::kIntOrString:
      return ScalarShape(CelType::kDyn);
    case Type::kAny:
    case Type::kQuantity:
      break;
  }
  return nullptr;
}

// Takes the next piece of a path: a dot, a bracket, a quoted key or a name.
std::string_view NextPiece(std::string_view& rest) {
  std::size_t size = 1;
  if (rest[0] == '\'') {
    while (size < rest.size() && (rest[size] != '\'' || rest[size - 1] == '\\')) ++size;
    size = std::min(size + 1, rest.size());
  } else if (rest[0] != '.' && rest[0] != '[' && rest[0] != ']') {
    size = std::min(rest.find_first_of(".[]"), rest.size());
  }
  const std::string_view piece = rest.substr(0, size);
  rest.remove_prefix(size);
  return piece;
}

// Returns the path as messages have it, ".a['b']" as "a.b" or "a[b]" where b is a key of a map;
// nullopt when the schema has no such field. Source: ValidFieldPath.
std::optional<std::string> FieldBelow(std::string_view path, const Schema& schema) {
  std::string text;
  const Schema* at = &schema;
  while (!path.empty()) {
    const std::string_view kind = NextPiece(path);
    const bool quoted = kind == "[";
    if ((kind != "." && !quoted) || path.empty()) return std::nullopt;
    std::string_view piece = NextPiece(path);
    if (quoted) {
      if (piece.size() < 2 || piece.front() != '\'' || piece.back() != '\'') return std::nullopt;
      piece = piece.substr(1, piece.size() - 2);
      if (path.empty() || NextPiece(path) != "]") return std::nullopt;
    }
    const std::string name =
        absl::StrReplaceAll(std::string(piece), {{"\\'", "'"}, {"\\\\", "\\"}});
    if (!at->properties.empty()) {
      const auto field = at->properties.find(name);
      if (field == at->properties.end()) return std::nullopt;
      at = field->second.get();
      text += (text.empty() ? "" : ".") + name;
    } else if (at->additional != nullptr) {
      at = at->additional.get();
      text += "[" + name + "]";
    } else {
      return std::nullopt;
    }
  }
  return text;
}

bool HasLineBreak(std::string_view text) { return text.find('\n') != std::string_view::npos; }

std::string Trimmed(const Json& rule, std::string_view field) {
  return std::string(absl::StripAsciiWhitespace(TextAt(rule, field)));
}

const std::vector<std::string>& Reasons() {
  static const auto* const reasons = new std::vector<std::string>{
      "FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"};
  return *reasons;
}

// Adds what is wrong with a rule beside its expressions.
void AddFaults(const Json& rule, const std::string& at, const Schema& schema, Causes& faults) {
  const std::string expression = Trimmed(rule, "rule");
  const std::string raw = TextAt(rule, "message");
  const std::string message = Trimmed(rule, "message");
  if (expression.empty()) {
    faults.push_back(Required(at + ".rule", "rule is not specified"));
  } else if (!raw.empty() && message.empty()) {
    faults.push_back(Invalid(at + ".message", raw, "must be non-empty if specified"));
  } else if (HasLineBreak(message)) {
    faults.push_back(Invalid(at + ".message", raw, "must not contain line breaks"));
  } else if (HasLineBreak(expression) && message.empty()) {
    faults.push_back(
        Required(at + ".message", "message must be specified if rule contains line breaks"));
  }
  if (!TextAt(rule, "messageExpression").empty() && Trimmed(rule, "messageExpression").empty()) {
    faults.push_back(
        Required(at + ".messageExpression", "messageExpression must be non-empty if specified"));
  }
  const std::string reason = TextAt(rule, "reason");
  if (rule.contains("reason") &&
      std::find(Reasons().begin(), Reasons().end(), reason) == Reasons().end()) {
    faults.push_back(NotSupported(at + ".reason", reason, Reasons()));
  }
  const std::string path = TextAt(rule, "fieldPath");
  if (!path.empty() && !FieldBelow(path, schema)) {
    faults.push_back(Invalid(at + ".fieldPath", path, "must be a valid path"));
  }
}

// The type of a result that is wrong has no place, other faults have.
std::string CompileError(const absl::Status& status, std::string_view wrong_type) {
  const std::string_view text = Message(status);
  if (text.starts_with("must evaluate")) return std::string(wrong_type);
  return fmt::format("compilation failed: ERROR: <input>:{}", text);
}

void Compile(const Json& from, const RulePlace& place, const std::string& at, CelShapePtr shape,
             SchemaRule& rule, Causes& faults) {
  ProcessorBudget::Spend(kStepsOfExpression);
  auto holds = kube::ObjectExpression::Compile(
      rule.rule, shape, {.result = CelType::kBool, .optional_old_self = rule.asks_without_old});
  if (!holds.ok()) {
    rule.error = CompileError(holds.status(), "cel expression must evaluate to a bool");
    faults.push_back(Invalid(at + ".rule", from, rule.error));
    return;
  }
  rule.holds = *std::move(holds);
  if (rule.holds->uses_old_self() && !place.uncorrelatable.empty()) {
    faults.push_back(Invalid(at + ".rule", TextAt(from, "rule"),
                             fmt::format("oldSelf cannot be used on the uncorrelatable portion of "
                                         "the schema within {}",
                                         place.uncorrelatable)));
  }
  if (!rule.holds->uses_old_self() && from.contains("optionalOldSelf")) {
    faults.push_back(Invalid(at + ".optionalOldSelf", from["optionalOldSelf"],
                             "may not be set if oldSelf is not used in rule"));
  }
  const std::string source = TextAt(from, "messageExpression");
  if (source.empty()) return;
  ProcessorBudget::Spend(kStepsOfExpression);
  auto message = kube::ObjectExpression::Compile(
      source, std::move(shape),
      {.result = CelType::kString, .optional_old_self = rule.asks_without_old});
  if (message.ok()) {
    rule.message_expression = *std::move(message);
  } else {
    faults.push_back(Invalid(
        at + ".messageExpression", from,
        "messageExpression " + CompileError(message.status(), "must evaluate to a string")));
  }
}

// Adds a fault for each list of rules below, which has no place there.
void ForbidRules(const Json& schema, const std::string& path, Causes& faults) {
  ProcessorBudget::Spend();
  if (schema.is_array()) {
    for (std::size_t i = 0; i < schema.size(); ++i) {
      ForbidRules(schema[i], fmt::format("{}[{}]", path, i), faults);
    }
  }
  if (!schema.is_object()) return;
  const bool names = path.ends_with(".properties");
  for (const auto& [name, below] : MembersOf(schema)) {
    const std::string at = names ? fmt::format("{}[{}]", path, CutName(name))
                                 : fmt::format("{}.{}", path, CutName(name));
    if (!names && name == "x-kubernetes-validations") {
      faults.push_back(Forbidden(at, "must be empty to be structural"));
    } else {
      ForbidRules(below, at, faults);
    }
  }
}

// The nearest value, at or above a value, of which the value before is known.
struct Pair {
  const Json* before = nullptr;  // null: there is no such value, so the value counts as new
  const Json* after = nullptr;

  bool same() const { return before != nullptr && *before == *after; }
};

class RuleChecker {
 public:
  explicit RuleChecker(Causes& causes) : causes_(causes) {}

  // `old` is null where there is no value to compare with.
  void Check(const Schema& schema, const Json* old, const Json& value, const FieldPath& path,
             Pair changed, int depth) {
    if (!schema.has_rules || value.is_null() || depth > kMaxDepth || spent_) return;
    if (!schema.rules.empty()) {
      if (budget_ == 0) return AddSpent(schema, path);
      const bool same = changed.same();
      for (const auto& rule : schema.rules) {
        if (!spent_) Ask(*rule, schema, old, value, path, same);
      }
    }
    if (value.is_object()) CheckMembers(schema, old, value, path, changed, depth);
    if (value.is_array() && schema.items != nullptr) {
      CheckItems(schema, old, value, path, changed, depth);
    }
  }

 private:
  void Add(Cause cause) {
    if (causes_.size() < kMaxCauses) causes_.push_back(std::move(cause));
  }
  // An error of a rule, not of the object. The value is its type, as kube-apiserver has it.
  void AddError(const Schema& schema, const std::string& field, std::string_view detail) {
    Add(Invalid(field, TypeName(schema), detail));
  }
  void AddSpent(const Schema& schema, const FieldPath& path) {
    spent_ = true;
    AddError(schema, TextOf(path),
             "validation failed due to running out of cost budget, no further validation rules "
             "will be run");
  }
  static std::string TextOf(const FieldPath& path) {
    std::string text = path.Text();
    return text.empty() ? "<nil>" : text;
  }
  static std::string TypeName(const Schema& schema) {
    static const auto* const names = new std::map<Type, std::string>{
        {Type::kObject, "object"},   {Type::kArray, "array"},   {Type::kString, "string"},
        {Type::kInteger, "integer"}, {Type::kNumber, "number"}, {Type::kBoolean, "boolean"}};
    const auto found = names->find(schema.type);
    return found == names->end() ? "" : found->second;
  }

  // Evaluates within the budget. Null: it is used up, and a cause says so.
  std::optional<absl::StatusOr<kube::CelValue>> Evaluate(const kube::ObjectExpression& expression,
                                                         const Schema& schema, const Json* old,
                                                         const Json& value, const FieldPath& path) {
    auto [result, cost] = expression.Evaluate(value, old);
    ProcessorBudget::Spend(1 + cost / kStepsOfBudget);
    if (cost > budget_) {
      AddSpent(schema, path);
      return std::nullopt;
    }
    budget_ -= cost;
    return std::move(result);
  }

  void Ask(const SchemaRule& rule, const Schema& schema, const Json* old, const Json& value,
           const FieldPath& path, bool same) {
    if (!rule.error.empty()) {
      return AddError(schema, TextOf(path), "rule compile error: " + rule.error);
    }
    if (!rule.holds) return;
    const bool uses_old = rule.holds->uses_old_self();
    // The answer would not count.
    if (!uses_old && same) return;
    if (uses_old && old == nullptr && !rule.asks_without_old) return;
    const auto answer = Evaluate(*rule.holds, schema, uses_old ? old : nullptr, value, path);
    if (!answer) return;
    if (!answer->ok()) return AddRunTimeError(rule, schema, answer->status(), path);
    if (*(*answer)->As<bool>()) return;
    const std::string detail = MessageOf(rule, schema, old, value, path);
    if (!spent_) Add(Broken(rule, schema, value, path, detail));
  }

  void AddRunTimeError(const SchemaRule& rule, const Schema& schema, const absl::Status& status,
                       const FieldPath& path) {
    const std::string_view text = Message(status);
    if (text.starts_with("no such overload")) {
      AddError(schema, TextOf(path),
               fmt::format("'no such overload': call arguments did not match a supported operator, "
                           "function or macro signature for rule: {}",
                           rule.Name()));
    } else if (absl::IsResourceExhausted(status)) {
      spent_ = true;
      AddError(schema, TextOf(path),
               fmt::format("'{}': no further validation rules will be run due to call cost exceeds "
                           "limit for rule: {}",
                           text, rule.Name()));
    } else {
      AddError(schema, TextOf(path), fmt::format("{} evaluating rule: {}", text, rule.Name()));
    }
  }

  std::string MessageOf(const SchemaRule& rule, const Schema& schema, const Json* old,
                        const Json& value, const FieldPath& path) {
    const std::string otherwise = rule.message.empty() ? "failed rule: " + rule.rule : rule.message;
    if (!rule.message_expression ||
        (rule.message_expression->uses_old_self() && old == nullptr && !rule.asks_without_old)) {
      return otherwise;
    }
    const auto answer = Evaluate(*rule.message_expression, schema, old, value, path);
    if (!answer || !answer->ok()) return otherwise;
    std::string text = *(*answer)->As<std::string>();
    absl::StripAsciiWhitespace(&text);
    if (text.empty() || text.size() > kMessageMax || HasLineBreak(text)) return otherwise;
    return text;
  }

  static Cause Broken(const SchemaRule& rule, const Schema& schema, const Json& value,
                      const FieldPath& path, const std::string& detail) {
    std::string field = path.Text();
    if (!rule.field.empty()) field += (field.empty() ? "" : ".") + rule.field;
    if (field.empty()) field = "<nil>";
    if (rule.reason == "FieldValueForbidden") return Forbidden(std::move(field), detail);
    if (rule.reason == "FieldValueRequired") return Required(std::move(field), detail);
    const bool whole = schema.type == Type::kObject || schema.type == Type::kArray;
    const bool duplicate = rule.reason == "FieldValueDuplicate";
    if (!whole) {
      return duplicate ? Duplicate(std::move(field), value)
                       : Invalid(std::move(field), value, detail);
    }
    return duplicate ? Cause{"FieldValueDuplicate", "Duplicate value", std::move(field)}
                     : Cause{"FieldValueInvalid", "Invalid value: " + detail, std::move(field)};
  }

  // What is known of a value below another: its own pair, or that of the value above.
  static Pair Below(const Pair& above, const Json* old, const Json& value) {
    return above.before == nullptr || old == nullptr ? above : Pair{old, &value};
  }

  void CheckMembers(const Schema& schema, const Json* old, const Json& value, const FieldPath& path,
                    const Pair& changed, int depth) {
    for (const auto& [name, member] : MembersOf(value)) {
      const auto field = schema.properties.find(name);
      const bool known = field != schema.properties.end();
      const Schema* below = known ? field->second.get() : schema.additional.get();
      if (below == nullptr || !below->has_rules) continue;
      const Json* old_member = old == nullptr ? nullptr : FindMember(*old, name);
      const FieldPath at = known ? FieldPath(path, name) : FieldPath::Key(path, name);
      Check(*below, old_member, member, at, Below(changed, old_member, member), depth + 1);
    }
  }

  void CheckItems(const Schema& schema, const Json* old, const Json& value, const FieldPath& path,
                  const Pair& changed, int depth) {
    std::map<Json, const Json*> old_items;
    if (schema.list_type == Schema::ListType::kMap && old != nullptr && old->is_array()) {
      for (const Json& item : *old) old_items.emplace(KeyOf(schema, item), &item);
    }
    for (std::size_t i = 0; i < value.size(); ++i) {
      const auto found =
          old_items.empty() ? old_items.end() : old_items.find(KeyOf(schema, value[i]));
      const Json* old_item = found == old_items.end() ? nullptr : found->second;
      Check(*schema.items, old_item, value[i], FieldPath(path, i),
            Below(changed, old_item, value[i]), depth + 1);
    }
  }
  static Json KeyOf(const Schema& schema, const Json& item) {
    Json key = Json::array();
    for (const std::string& name : schema.list_map_keys) key.push_back(ValueAt(item, {name}));
    return key;
  }

  Causes& causes_;
  std::uint64_t budget_ = kRulesCostMax;
  bool spent_ = false;
};

}  // namespace

void ReadRules(const Json& open_api, const RulePlace& place, Schema& schema, Causes& faults) {
  const auto has_rules = [](const SchemaPtr& below) { return below && below->has_rules; };
  schema.has_rules = has_rules(schema.items) || has_rules(schema.additional) ||
                     std::any_of(schema.properties.begin(), schema.properties.end(),
                                 [&](const auto& field) { return has_rules(field.second); });
  for (const char* junctor : {"allOf", "anyOf", "oneOf", "not"}) {
    ForbidRules(ValueAt(open_api, {junctor}), place.path + "." + junctor, faults);
  }
  const Json& rules = ValueAt(open_api, {"x-kubernetes-validations"});
  if (!rules.is_array() || rules.empty()) return;
  schema.has_rules = true;
  Causes wrong, compiler;
  const CelShapePtr shape = ShapeOf(schema, place.is_resource);
  for (std::size_t i = 0; i < rules.size(); ++i) {
    const std::string at = fmt::format("{}.x-kubernetes-validations[{}]", place.path, i);
    auto rule = std::make_shared<SchemaRule>();
    rule->rule = Trimmed(rules[i], "rule");
    rule->message = Trimmed(rules[i], "message");
    rule->reason = TextAt(rules[i], "reason");
    rule->field = FieldBelow(TextAt(rules[i], "fieldPath"), schema).value_or("");
    rule->asks_without_old = ValueAt(rules[i], {"optionalOldSelf"}) == true;
    AddFaults(rules[i], at, schema, wrong);
    if (shape == nullptr) {
      rule->error = "failed to convert to declType for CEL validation rules";
      compiler.push_back(Invalid(at + ".rule", rules[i], rule->error));
    } else if (!rule->rule.empty()) {
      Compile(rules[i], place, at, shape, *rule, compiler);
    }
    schema.rules.push_back(std::move(rule));
  }
  // What a compiler says of rules that are not whole would only distract.
  if (wrong.empty()) wrong = std::move(compiler);
  faults.insert(faults.end(), wrong.begin(), wrong.end());
}

void CheckRules(const Schema& schema, const Json* old_object, const Json& object, Causes& causes) {
  RuleChecker(causes).Check(schema, old_object, object, FieldPath(), {old_object, &object}, 0);
}

}  // namespace tahoma::controller::apiserver
