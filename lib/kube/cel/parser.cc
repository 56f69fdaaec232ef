#include "lib/kube/cel/parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "lib/base/status.h"
#include "lib/kube/cel/functions.h"
#include "lib/kube/cel/lexer.h"

namespace tahoma::kube::internal {
namespace {

// The deepest nesting: keeps recursion far from the end of the stack (cel-go's limit is 250).
constexpr int kDepthMax = 250;
// The deepest tree: chains of operators nest too, so that parentheses with chains in them could
// reach thousands of levels, each of which is a level of recursion in the checker and the
// evaluator.
constexpr std::size_t kTreeDepthMax = 600;
// The instructions of all patterns together: with this bound compiling an expression takes well
// below a second.
constexpr int kPatternSizesMax = 50'000;

using ExprPointer = std::unique_ptr<CelExpr>;
using ExprOr = absl::StatusOr<ExprPointer>;

class Parser {
 public:
  Parser(std::string_view source, std::initializer_list<std::string_view> variables)
      : source_(source), lexer_(source) {
    for (const std::string_view name : variables) scope_.push_back({std::string(name), slots_++});
  }

  absl::StatusOr<CelParsed> Parse() {
    TAHOMA_RETURN_IF_ERROR(Advance());
    TAHOMA_ASSIGN_OR_RETURN(ExprPointer root, Conditional());
    if (token_.kind != CelTokenKind::kEnd) return Unexpected("the end");
    TAHOMA_RETURN_IF_ERROR(CheckDepth(*root));
    return CelParsed{.root = std::move(root), .slots = slots_};
  }

 private:
  // Parsed arguments are bound to slots while their macro's variables are in scope.
  struct Variable {
    std::string name;
    std::size_t slot;
  };

  absl::Status Advance() {
    TAHOMA_ASSIGN_OR_RETURN(token_, lexer_.Next());
    return absl::OkStatus();
  }
  bool Is(std::string_view symbol) const {
    return token_.kind == CelTokenKind::kSymbol && token_.text == symbol;
  }
  absl::StatusOr<bool> TryConsume(std::string_view symbol) {
    if (!Is(symbol)) return false;
    TAHOMA_RETURN_IF_ERROR(Advance());
    return true;
  }
  absl::Status Expect(std::string_view symbol) {
    if (!Is(symbol)) return Unexpected(fmt::format("'{}'", symbol));
    return Advance();
  }
  absl::Status Error(std::size_t at, std::string_view message) const {
    return CelErrorAt(source_, at, message);
  }
  absl::Status Unexpected(std::string_view wanted) const {
    if (token_.kind == CelTokenKind::kEnd) {
      return Error(token_.at, fmt::format("expected {}, but the expression ends", wanted));
    }
    const std::string_view found =
        token_.kind == CelTokenKind::kLiteral ? "a literal" : std::string_view(token_.text);
    return Error(token_.at, fmt::format("expected {}, found {}", wanted, found));
  }
  static ExprPointer Make(CelOp op, std::size_t at) {
    auto made = std::make_unique<CelExpr>();
    made->op = op;
    made->at = at;
    return made;
  }

  absl::Status CheckDepth(const CelExpr& root) const;
  ExprOr Conditional();
  ExprOr Binary(std::size_t level);
  ExprOr Unary();
  ExprOr Member();
  ExprOr Primary();
  ExprOr ListLiteral();
  ExprOr MapLiteral();
  ExprOr Identifier();
  ExprOr Dot(ExprPointer base);
  ExprOr Index(ExprPointer base);
  absl::StatusOr<std::vector<ExprPointer>> Arguments(std::vector<ExprPointer> args);
  ExprOr Call(std::string name, CelCallStyle style, std::size_t at, std::vector<ExprPointer> args);
  ExprOr Has(std::size_t at);
  ExprOr Bind(std::size_t at);
  ExprOr Macro(CelMacro macro, std::size_t at, ExprPointer range);
  absl::StatusOr<std::string> VariableName();
  static std::optional<CelMacro> MacroOf(std::string_view name);
  ExprPointer Lookup(const std::string& name, std::size_t at) const;

  std::string_view source_;
  CelLexer lexer_;
  CelToken token_;
  std::vector<Variable> scope_;
  std::size_t slots_ = 0;
  int depth_ = 0;
  int pattern_sizes_ = 0;
};

// Works without recursion, which it guards.
absl::Status Parser::CheckDepth(const CelExpr& root) const {
  std::vector<std::pair<const CelExpr*, std::size_t>> open = {{&root, 1}};
  while (!open.empty()) {
    const auto [e, depth] = open.back();
    open.pop_back();
    if (depth > kTreeDepthMax) return Error(e->at, "the expression is nested too deeply");
    for (const auto& arg : e->args) open.emplace_back(arg.get(), depth + 1);
  }
  return absl::OkStatus();
}

ExprOr Parser::Conditional() {
  if (++depth_ > kDepthMax) return Error(token_.at, "the expression is nested too deeply");
  const std::size_t at = token_.at;
  TAHOMA_ASSIGN_OR_RETURN(ExprPointer condition, Binary(0));
  TAHOMA_ASSIGN_OR_RETURN(const bool ternary, TryConsume("?"));
  if (ternary) {
    ExprPointer made = Make(CelOp::kConditional, at);
    made->args.push_back(std::move(condition));
    TAHOMA_ASSIGN_OR_RETURN(ExprPointer yes, Binary(0));
    made->args.push_back(std::move(yes));
    TAHOMA_RETURN_IF_ERROR(Expect(":"));
    TAHOMA_ASSIGN_OR_RETURN(ExprPointer no, Conditional());
    made->args.push_back(std::move(no));
    condition = std::move(made);
  }
  --depth_;
  return condition;
}

struct Operator {
  std::string_view symbol;
  std::size_t level;
  CelOp op;
};
constexpr std::size_t kRelationLevel = 2;
constexpr std::size_t kUnaryLevel = 5;
constexpr std::array kOperators = {
    Operator{"||", 0, CelOp::kOr},
    Operator{"&&", 1, CelOp::kAnd},
    Operator{"==", kRelationLevel, CelOp::kEqual},
    Operator{"!=", kRelationLevel, CelOp::kNotEqual},
    Operator{"<=", kRelationLevel, CelOp::kLessEqual},
    Operator{">=", kRelationLevel, CelOp::kGreaterEqual},
    Operator{"<", kRelationLevel, CelOp::kLess},
    Operator{">", kRelationLevel, CelOp::kGreater},
    Operator{"in", kRelationLevel, CelOp::kIn},
    Operator{"+", 3, CelOp::kAdd},
    Operator{"-", 3, CelOp::kSubtract},
    Operator{"*", 4, CelOp::kMultiply},
    Operator{"/", 4, CelOp::kDivide},
    Operator{"%", 4, CelOp::kModulo},
};

// Parses left-associative operators by climbing precedence levels. A chain of one operator nests to
// the left; its length is bounded like other nesting.
ExprOr Parser::Binary(std::size_t level) {
  if (level == kUnaryLevel) return Unary();
  TAHOMA_ASSIGN_OR_RETURN(ExprPointer left, Binary(level + 1));
  int chain = 0;
  while (token_.kind == CelTokenKind::kSymbol || token_.text == "in") {
    const Operator* found = nullptr;
    for (const Operator& candidate : kOperators) {
      if (candidate.level == level && candidate.symbol == token_.text) found = &candidate;
    }
    if (found == nullptr) break;
    if (++chain > kDepthMax) return Error(token_.at, "too many operators in a row");
    ExprPointer made = Make(found->op, token_.at);
    made->name = found->symbol;
    TAHOMA_RETURN_IF_ERROR(Advance());
    TAHOMA_ASSIGN_OR_RETURN(ExprPointer right, Binary(level + 1));
    made->args.push_back(std::move(left));
    made->args.push_back(std::move(right));
    left = std::move(made);
  }
  return left;
}

ExprOr Parser::Unary() {
  const std::size_t at = token_.at;
  const bool negates = Is("-");
  if (!negates && !Is("!")) return Member();
  if (++depth_ > kDepthMax) return Error(at, "the expression is nested too deeply");
  TAHOMA_RETURN_IF_ERROR(Advance());
  if (negates && token_.kind == CelTokenKind::kLiteral) {
    if (token_.text == "2^63") {
      token_.text.clear();
    } else if (const auto* number = token_.literal.As<std::int64_t>()) {
      token_.literal = CelValue(-*number);
    } else if (const auto* real = token_.literal.As<double>()) {
      token_.literal = CelValue(-*real);
    } else {
      return Error(at, "found no matching overload for '-_'");
    }
    --depth_;
    return Member();
  }
  ExprPointer made = Make(negates ? CelOp::kNegate : CelOp::kNot, at);
  made->name = negates ? "-" : "!";
  TAHOMA_ASSIGN_OR_RETURN(ExprPointer operand, Unary());
  made->args.push_back(std::move(operand));
  --depth_;
  return made;
}

ExprOr Parser::Member() {
  TAHOMA_ASSIGN_OR_RETURN(ExprPointer base, Primary());
  int chain = 0;
  while (Is(".") || Is("[")) {
    if (++chain > kDepthMax) return Error(token_.at, "too many accesses in a row");
    if (Is(".")) {
      TAHOMA_ASSIGN_OR_RETURN(base, Dot(std::move(base)));
    } else {
      TAHOMA_ASSIGN_OR_RETURN(base, Index(std::move(base)));
    }
  }
  return base;
}

ExprOr Parser::Dot(ExprPointer base) {
  TAHOMA_RETURN_IF_ERROR(Advance());
  TAHOMA_ASSIGN_OR_RETURN(const bool optional, TryConsume("?"));
  if (token_.kind != CelTokenKind::kIdentifier) return Unexpected("a name");
  const std::size_t at = token_.at;
  std::string name = token_.text;
  TAHOMA_RETURN_IF_ERROR(Advance());
  if (!Is("(") || optional) {
    ExprPointer made = Make(CelOp::kSelect, at);
    made->name = std::move(name);
    made->optional = optional;
    made->args.push_back(std::move(base));
    return made;
  }
  if (const auto macro = MacroOf(name)) return Macro(*macro, at, std::move(base));
  std::vector<ExprPointer> args;
  args.push_back(std::move(base));
  TAHOMA_ASSIGN_OR_RETURN(args, Arguments(std::move(args)));
  return Call(std::move(name), CelCallStyle::kMember, at, std::move(args));
}

ExprOr Parser::Index(ExprPointer base) {
  ExprPointer made = Make(CelOp::kIndex, token_.at);
  TAHOMA_RETURN_IF_ERROR(Advance());
  TAHOMA_ASSIGN_OR_RETURN(made->optional, TryConsume("?"));
  TAHOMA_ASSIGN_OR_RETURN(ExprPointer key, Conditional());
  TAHOMA_RETURN_IF_ERROR(Expect("]"));
  made->args.push_back(std::move(base));
  made->args.push_back(std::move(key));
  return made;
}

ExprOr Parser::Primary() {
  if (token_.kind == CelTokenKind::kLiteral) {
    if (token_.text == "2^63") return Error(token_.at, "the number does not fit in an int");
    ExprPointer made = Make(CelOp::kLiteral, token_.at);
    made->literal = token_.literal;
    TAHOMA_RETURN_IF_ERROR(Advance());
    return made;
  }
  if (token_.kind == CelTokenKind::kIdentifier) return Identifier();
  if (Is("[")) return ListLiteral();
  if (Is("{")) return MapLiteral();
  TAHOMA_ASSIGN_OR_RETURN(const bool grouped, TryConsume("("));
  if (!grouped) return Unexpected("an expression");
  TAHOMA_ASSIGN_OR_RETURN(ExprPointer inner, Conditional());
  TAHOMA_RETURN_IF_ERROR(Expect(")"));
  return inner;
}

ExprOr Parser::ListLiteral() {
  ExprPointer made = Make(CelOp::kList, token_.at);
  TAHOMA_RETURN_IF_ERROR(Advance());
  while (!Is("]")) {
    TAHOMA_ASSIGN_OR_RETURN(const bool optional, TryConsume("?"));
    TAHOMA_ASSIGN_OR_RETURN(ExprPointer entry, Conditional());
    made->args.push_back(std::move(entry));
    made->optional_args.push_back(optional);
    TAHOMA_ASSIGN_OR_RETURN(const bool more, TryConsume(","));
    if (!more) break;
  }
  TAHOMA_RETURN_IF_ERROR(Expect("]"));
  return made;
}

ExprOr Parser::MapLiteral() {
  ExprPointer made = Make(CelOp::kMap, token_.at);
  TAHOMA_RETURN_IF_ERROR(Advance());
  while (!Is("}")) {
    TAHOMA_ASSIGN_OR_RETURN(const bool optional, TryConsume("?"));
    TAHOMA_ASSIGN_OR_RETURN(ExprPointer key, Conditional());
    TAHOMA_RETURN_IF_ERROR(Expect(":"));
    TAHOMA_ASSIGN_OR_RETURN(ExprPointer value, Conditional());
    made->args.push_back(std::move(key));
    made->args.push_back(std::move(value));
    made->optional_args.push_back(optional);
    TAHOMA_ASSIGN_OR_RETURN(const bool more, TryConsume(","));
    if (!more) break;
  }
  TAHOMA_RETURN_IF_ERROR(Expect("}"));
  return made;
}

ExprPointer Parser::Lookup(const std::string& name, std::size_t at) const {
  for (auto variable = scope_.rbegin(); variable != scope_.rend(); ++variable) {
    if (variable->name != name) continue;
    ExprPointer made = Make(CelOp::kVariable, at);
    made->name = name;
    made->slot = variable->slot;
    return made;
  }
  return nullptr;
}

ExprOr Parser::Identifier() {
  const std::size_t at = token_.at;
  std::string name = token_.text;
  TAHOMA_RETURN_IF_ERROR(Advance());
  if (name == "true" || name == "false" || name == "null") {
    ExprPointer made = Make(CelOp::kLiteral, at);
    if (name != "null") made->literal = CelValue(name == "true");
    return made;
  }
  if (IsCelWord(name)) return Error(at, fmt::format("reserved identifier: {}", name));
  if (Is("(")) {
    if (name == "has") return Has(at);
    TAHOMA_ASSIGN_OR_RETURN(std::vector<ExprPointer> args, Arguments({}));
    return Call(std::move(name), CelCallStyle::kGlobal, at, std::move(args));
  }
  if (ExprPointer variable = Lookup(name, at)) return variable;
  if (!IsCelNamespace(name) || !Is(".")) {
    return Error(at, fmt::format("undeclared reference to '{}'", name));
  }
  TAHOMA_RETURN_IF_ERROR(Advance());
  name += '.';
  if (token_.kind != CelTokenKind::kIdentifier) return Unexpected("a name");
  name += token_.text;
  TAHOMA_RETURN_IF_ERROR(Advance());
  if (name == "cel.bind" && Is("(")) return Bind(at);
  if (!Is("(")) return Error(at, fmt::format("undeclared reference to '{}'", name));
  TAHOMA_ASSIGN_OR_RETURN(std::vector<ExprPointer> args, Arguments({}));
  return Call(std::move(name), CelCallStyle::kNamespace, at, std::move(args));
}

// Parses "(a, b)" and appends to the arguments that are there already.
absl::StatusOr<std::vector<ExprPointer>> Parser::Arguments(std::vector<ExprPointer> args) {
  TAHOMA_RETURN_IF_ERROR(Expect("("));
  while (!Is(")")) {
    TAHOMA_ASSIGN_OR_RETURN(ExprPointer arg, Conditional());
    args.push_back(std::move(arg));
    TAHOMA_ASSIGN_OR_RETURN(const bool more, TryConsume(","));
    if (!more) break;
  }
  TAHOMA_RETURN_IF_ERROR(Expect(")"));
  return args;
}

ExprOr Parser::Call(std::string name, CelCallStyle style, std::size_t at,
                    std::vector<ExprPointer> args) {
  const CelSignature* found = FindCelFunction(name, style, args.size());
  if (found == nullptr) return Error(at, fmt::format("undeclared reference to '{}'", name));
  if (args.size() < found->args_min || args.size() > found->args_max) {
    return Error(at, fmt::format("'{}' cannot be called with {} arguments", name,
                                 args.size() - (style == CelCallStyle::kMember ? 1 : 0)));
  }
  ExprPointer made = Make(CelOp::kCall, at);
  made->name = std::move(name);
  made->function = found->function;
  made->args = std::move(args);
  const bool patterned =
      found->function == CelFunction::kMatches || found->function == CelFunction::kFind;
  const auto* pattern = patterned && made->args[1]->op == CelOp::kLiteral
                            ? made->args[1]->literal.As<std::string>()
                            : nullptr;
  if (pattern != nullptr) {
    auto compiled = CompileCelPattern(*pattern, kPatternMemory);
    if (!compiled.ok()) return Error(at, Message(compiled.status()));
    made->pattern = *std::move(compiled);
    pattern_sizes_ += made->pattern->ProgramSize();
    if (pattern_sizes_ > kPatternSizesMax) {
      return Error(at, "the regular expressions are too large together");
    }
  }
  return made;
}

// Parses has(e.f), after "has".
ExprOr Parser::Has(std::size_t at) {
  TAHOMA_ASSIGN_OR_RETURN(std::vector<ExprPointer> args, Arguments({}));
  if (args.size() != 1 || args[0]->op != CelOp::kSelect || args[0]->optional) {
    return Error(at, "has() takes a field selection, such as has(a.b)");
  }
  args[0]->op = CelOp::kHas;
  return std::move(args[0]);
}

absl::StatusOr<std::string> Parser::VariableName() {
  if (token_.kind != CelTokenKind::kIdentifier) return Unexpected("the name of a variable");
  std::string name = token_.text;
  if (IsCelWord(name)) return Error(token_.at, fmt::format("reserved identifier: {}", name));
  TAHOMA_RETURN_IF_ERROR(Advance());
  return name;
}

// Parses cel.bind(name, value, body), after "cel.bind".
ExprOr Parser::Bind(std::size_t at) {
  TAHOMA_RETURN_IF_ERROR(Expect("("));
  TAHOMA_ASSIGN_OR_RETURN(std::string name, VariableName());
  TAHOMA_RETURN_IF_ERROR(Expect(","));
  ExprPointer made = Make(CelOp::kBind, at);
  TAHOMA_ASSIGN_OR_RETURN(ExprPointer value, Conditional());
  TAHOMA_RETURN_IF_ERROR(Expect(","));
  made->slot = slots_++;
  scope_.push_back({std::move(name), made->slot});
  TAHOMA_ASSIGN_OR_RETURN(ExprPointer body, Conditional());
  scope_.pop_back();
  TAHOMA_RETURN_IF_ERROR(Expect(")"));
  made->args.push_back(std::move(value));
  made->args.push_back(std::move(body));
  return made;
}

std::optional<CelMacro> Parser::MacroOf(std::string_view name) {
  if (name == "all") return CelMacro::kAll;
  if (name == "exists") return CelMacro::kExists;
  if (name == "exists_one" || name == "existsOne") return CelMacro::kExistsOne;
  if (name == "filter") return CelMacro::kFilter;
  if (name == "map") return CelMacro::kMap;
  if (name == "optMap") return CelMacro::kOptMap;
  return std::nullopt;
}

// Parses range.macro(name, body), after the macro's name.
ExprOr Parser::Macro(CelMacro macro, std::size_t at, ExprPointer range) {
  TAHOMA_RETURN_IF_ERROR(Expect("("));
  TAHOMA_ASSIGN_OR_RETURN(std::string name, VariableName());
  TAHOMA_RETURN_IF_ERROR(Expect(","));
  ExprPointer made = Make(CelOp::kComprehension, at);
  made->macro = macro;
  made->slot = slots_++;
  made->args.push_back(std::move(range));
  scope_.push_back({std::move(name), made->slot});
  TAHOMA_ASSIGN_OR_RETURN(ExprPointer body, Conditional());
  made->args.push_back(std::move(body));
  TAHOMA_ASSIGN_OR_RETURN(const bool third, TryConsume(","));
  if (third) {
    if (macro != CelMacro::kMap) {
      return Error(at, "macros with two variables are not supported");
    }
    made->macro = CelMacro::kMapFilter;
    TAHOMA_ASSIGN_OR_RETURN(ExprPointer transform, Conditional());
    made->args.push_back(std::move(transform));
  }
  scope_.pop_back();
  TAHOMA_RETURN_IF_ERROR(Expect(")"));
  return made;
}

}  // namespace

absl::StatusOr<CelParsed> ParseCel(std::string_view source,
                                   std::initializer_list<std::string_view> variables) {
  return Parser(source, variables).Parse();
}

}  // namespace tahoma::kube::internal
