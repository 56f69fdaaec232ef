// Expressions made at random, with the answers that a plain computation beside them gives.

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/utf8.h"
#include "tests/unit/lib/kube/cel/expression_cases.h"

namespace tahoma::kube {
namespace {

// Text with the value that it has; nullopt where computing it fails.
struct Whole {
  std::string text;
  std::optional<std::int64_t> value;
};
struct Truth {
  std::string text;
  std::optional<bool> value;
};

__extension__ using Wide = __int128;

constexpr std::int64_t kMin = INT64_MIN;

Whole Literal() {
  const auto value =
      *rc::gen::oneOf(rc::gen::inRange<std::int64_t>(-5, 6), rc::gen::arbitrary<std::int64_t>(),
                      rc::gen::element(kMin, kMin + 1, INT64_MAX, std::int64_t{1} << 32));
  return {std::to_string(value), value};
}

// Computes an operator in arithmetic without bounds; nothing where the result does not fit.
std::optional<std::int64_t> Computed(char op, std::int64_t a, std::int64_t b) {
  const auto x = static_cast<Wide>(a);
  const auto y = static_cast<Wide>(b);
  if ((op == '/' || op == '%') && b == 0) return std::nullopt;
  // The quotient decides for the remainder too, as in Go.
  if (op == '%' && a == kMin && b == -1) return std::nullopt;
  const Wide result = op == '+'   ? x + y
                      : op == '-' ? x - y
                      : op == '*' ? x * y
                      : op == '/' ? x / y
                                  : x % y;
  if (result < kMin || result > INT64_MAX) return std::nullopt;
  return static_cast<std::int64_t>(result);
}

int LevelOf(char op) { return op == '+' || op == '-' ? 1 : 2; }

// With as few parentheses as precedence allows: `level` is the least that needs none.
Whole Integer(int depth, int level) {
  if (depth == 0) return Literal();
  const char op = *rc::gen::element('+', '-', '*', '/', '%', 'n', '?');
  if (op == 'n') {
    const Whole of = Integer(depth - 1, 3);
    const auto value = of.value ? Computed('-', 0, *of.value) : std::nullopt;
    // "--1" and "- -1" are the same; a literal takes the sign itself.
    return {"-(" + of.text + ")", value};
  }
  if (op == '?') {
    const bool yes = *rc::gen::arbitrary<bool>();
    const Whole a = Integer(depth - 1, 1);
    const Whole b = Integer(depth - 1, 1);
    return {std::string(yes ? "(true ? " : "(false ? ") + a.text + " : " + b.text + ")",
            yes ? a.value : b.value};
  }
  const Whole a = Integer(depth - 1, LevelOf(op));
  const Whole b = Integer(depth - 1, LevelOf(op) + 1);
  std::string text = a.text + ' ' + op + ' ' + b.text;
  if (LevelOf(op) < level) text = "(" + text + ")";
  return {text, a.value && b.value ? Computed(op, *a.value, *b.value) : std::nullopt};
}

Truth Comparison(int depth) {
  const Whole a = Integer(depth, 1);
  const Whole b = Integer(depth, 1);
  const std::string op = *rc::gen::element<std::string>("==", "!=", "<", "<=", ">", ">=");
  Truth made{a.text + " " + op + " " + b.text, std::nullopt};
  if (!a.value || !b.value) return made;
  const std::int64_t x = *a.value;
  const std::int64_t y = *b.value;
  made.value = op == "=="   ? x == y
               : op == "!=" ? x != y
               : op == "<"  ? x < y
               : op == "<=" ? x <= y
               : op == ">"  ? x > y
                            : x >= y;
  return made;
}

Truth Logic(int depth, int level) {
  if (depth == 0) return Comparison(*rc::gen::inRange(0, 3));
  const char op = *rc::gen::element('&', '|', '!', '?');
  if (op == '!') {
    const Truth of = Logic(depth - 1, 0);
    return {"!(" + of.text + ")", of.value ? std::optional(!*of.value) : std::nullopt};
  }
  if (op == '?') {
    const Truth condition = Logic(depth - 1, 0);
    const Truth yes = Logic(depth - 1, 0);
    const Truth no = Logic(depth - 1, 0);
    return {"((" + condition.text + ") ? " + yes.text + " : " + no.text + ")",
            !condition.value   ? std::nullopt
            : *condition.value ? yes.value
                               : no.value};
  }
  const int own = op == '|' ? 0 : 1;
  const bool decides = op == '|';
  const Truth a = Logic(depth - 1, own);
  const Truth b = Logic(depth - 1, own);
  std::string text = a.text + (op == '|' ? " || " : " && ") + b.text;
  if (own < level) text = "(" + text + ")";
  if (a.value == decides || b.value == decides) return {text, decides};
  if (!a.value || !b.value) return {text, std::nullopt};
  return {text, !decides};
}

std::string Expected(const std::optional<bool>& value) {
  return !value ? "error" : *value ? "true" : "false";
}
// The answer, without what an error says.
std::string Got(const std::string& expression) {
  const std::string answer = Answer(expression);
  return answer.starts_with("error: ") ? "error" : answer;
}

RC_GTEST_PROP(CelExpressionPropertyTest, IntegersAreComputedExactlyOrFail, ()) {
  const Truth made = Comparison(*rc::gen::inRange(0, 5));
  RC_LOG() << made.text;
  RC_ASSERT(Got(made.text) == Expected(made.value));
}

RC_GTEST_PROP(CelExpressionPropertyTest, LogicAbsorbsErrorsFromEitherSide, ()) {
  const Truth made = Logic(*rc::gen::inRange(0, 5), 0);
  RC_LOG() << made.text;
  RC_ASSERT(Got(made.text) == Expected(made.value));
}

// all(), exists() and exists_one() over a list are the operators over its entries.
RC_GTEST_PROP(CelExpressionPropertyTest, MacrosAreTheirOperatorsOverAllEntries, ()) {
  const auto entries =
      *rc::gen::container<std::vector<std::int64_t>>(rc::gen::inRange<std::int64_t>(-2, 3));
  std::string list = "[";
  std::string ands = "true";
  std::string ors = "false";
  std::string count = "0";
  for (const std::int64_t entry : entries) {
    const std::string text = std::to_string(entry);
    list += (list.size() > 1 ? ", " : "") + text;
    ands += " && 2 / " + text + " > 0";
    ors += " || 2 / " + text + " > 0";
    count += " + (2 / " + text + " > 0 ? 1 : 0)";
  }
  list += "]";
  RC_ASSERT(Got(list + ".all(x, 2 / x > 0)") == Got(ands));
  RC_ASSERT(Got(list + ".exists(x, 2 / x > 0)") == Got(ors));
  RC_ASSERT(Got(list + ".exists_one(x, 2 / x > 0)") == Got(count + " == 1"));
  RC_ASSERT(Got(list + ".filter(x, 2 / x > 0).size() == " + list + ".size()") ==
            Got(count + " == " + std::to_string(entries.size())));
}

// A text's literal in CEL, with a random notation for each character.
std::string Quoted(const std::vector<std::uint32_t>& characters) {
  std::string text = "'";
  for (const std::uint32_t code : characters) {
    const int way = *rc::gen::inRange(0, 3);
    if (way == 0 && code < 0x100) {
      text += fmt::format("\\x{:02x}", code);
    } else if (way == 1 && code < 0x10000) {
      text += fmt::format("\\u{:04X}", code);
    } else {
      text += fmt::format("\\U{:08x}", code);
    }
  }
  return text + "'";
}

RC_GTEST_PROP(CelExpressionPropertyTest, TextFunctionsCountAndCutCharacters, ()) {
  const auto characters = *rc::gen::container<std::vector<std::uint32_t>>(
      rc::gen::element<std::uint32_t>('a', 'b', ',', 0xe9, 0x65e5, 0x1f600, '\'', '\\', '\n'));
  const auto size = static_cast<int>(characters.size());
  const int cut = *rc::gen::inRange(0, size + 1);
  const auto middle = characters.begin() + cut;
  const std::string whole = Quoted(characters);
  const std::string head = Quoted({characters.begin(), middle});
  const std::string tail = Quoted({middle, characters.end()});
  const std::string at = std::to_string(cut);
  for (const std::string& fact : {
           fmt::format("size({}) == {}", whole, size),
           fmt::format("{} + {} == {}", head, tail, whole),
           fmt::format("{}.substring(0, {}) == {} && {}.substring({}) == {}", whole, at, head,
                       whole, at, tail),
           fmt::format("{}.startsWith({}) && {}.endsWith({})", whole, head, whole, tail),
           fmt::format("{}.contains({}) && {}.indexOf({}) <= {}", whole, tail, whole, tail, at),
           fmt::format("{}.lastIndexOf({}) >= {}", whole, tail, at),
           fmt::format("{}.split('').join() == {}", whole, whole),
           fmt::format("{}.split(',').join(',') == {}", whole, whole),
           fmt::format("string({}) == {}", whole, whole),
       }) {
    RC_LOG() << fact;
    RC_ASSERT(Answer(fact) == "true");
  }
}

// Whatever is written, it is answered: no crash, no hang, and messages are whole text.
RC_GTEST_PROP(CelExpressionPropertyTest, AnyTextIsAnswered, ()) {
  const auto parts = *rc::gen::container<std::vector<std::string>>(rc::gen::element<std::string>(
      "device", ".attributes", "['a']", ".?b", "(", ")", "[", "]", "{", "}", "?", ":", ",", "1",
      "2u", "-", "!", "'é'", "“", "b'\\xff'", "all(x, ", "x", " in ", " == ", " + ", " && ",
      ".orValue(", "size(", "string(", "optional.of(", "cel.bind(y, ", "y", "true", "1.5", "//",
      "\n", "has(", ".map(x, ", "null"));
  std::string text;
  for (const std::string& part : parts) text += part;
  const std::string answer = Answer(text);
  RC_ASSERT(!answer.empty());
  RC_ASSERT(IsUtf8(answer));
}

}  // namespace
}  // namespace tahoma::kube
