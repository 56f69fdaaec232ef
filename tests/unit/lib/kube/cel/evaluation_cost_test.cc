// Anyone who may make a claim writes expressions, and the only scheduler runs them. An expression
// made to waste time or memory must be refused, however short.

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "tests/unit/lib/kube/cel/expression_cases.h"

namespace tahoma::kube {
namespace {

constexpr std::string_view kRefused = "error: operation cancelled: actual cost limit exceeded";

// `body` may use v<levels>: `first` doubled `levels` times, by "+", or by "[]" into a list of two.
std::string Grown(const std::string& first, const std::string& joiner, int levels,
                  const std::string& body) {
  std::string text = "cel.bind(v0, " + first + ", ";
  for (int i = 1; i <= levels; ++i) {
    const std::string before = "v" + std::to_string(i - 1);
    text += "cel.bind(v" + std::to_string(i) + ", ";
    text += joiner == "+" ? before + " + " + before : "[" + before + ", " + before + "]";
    text += ", ";
  }
  return text + body + std::string(static_cast<std::size_t>(levels) + 1, ')');
}

// Each expression would take minutes, or more memory than a machine has.
TEST(CelEvaluationCostTest, SmallExpressionsWithMuchWorkAreRefused) {
  const std::vector<std::string> expressions = {
      // Lists with shared entries: 2^40 comparisons, or sums of lengths.
      Grown("[1, 1]", "[]", 40, "v40 == v40"),
      Grown("[1, 1]", "[]", 40, "v40 in [v40]"),
      Grown("[1, 1]", "[]", 40, "[v40].indexOf(v40) == 0"),
      Grown("[1, 1]", "[]", 40, "sets.contains([v40], [v40])"),
      Grown("[1, 1]", "[]", 40, "{'a': v40} == {'a': v40}"),
      Grown("[1, 1]", "[]", 40, "optional.of(v40) == optional.of(v40)"),
      // Texts and lists of texts that double.
      Grown("'0123456789'", "+", 40, "v40 == ''"),
      Grown("'0123456789'", "+", 16,
            "cel.bind(w, [v16, v16], " + Grown("w", "+", 20, "v20 == []") + ")"),
      // Each of many texts in each of many.
      Grown("'aaaaaaaaaa'", "+", 16, "v16.contains(v15 + 'b')"),
      Grown("'aaaaaaaaaa'", "+", 16, "v16.indexOf(v15 + 'b') == 0"),
      Grown("'aaaaaaaaaa'", "+", 16, "v16.lastIndexOf('b' + v15) == 0"),
      Grown("'aaaaaaaaaa'", "+", 16, "v16.split(v15 + 'b').size() == 0"),
      Grown("'aaaaaaaaaa'", "+", 16, "v16.replace(v15 + 'b', '') == ''"),
      Grown("[1, 2]", "+", 15, "sets.equivalent(v15, v15)"),
      // Long lists and texts, read anew in each round.
      Grown("[1, 2]", "+", 15, "v15.all(x, v15.exists(y, v15 == v15))"),
      Grown("'0123456789'", "+", 16, Grown("[1, 2]", "+", 15, "v15.exists(x, dyn(v16))")),
      Grown("'0123456789'", "+", 14,
            "[1, 2, 3, 4].map(x, v14).map(x, x).map(x, x).map(x, x)"
            ".map(x, x).map(x, x).map(x, x).map(x, x).map(x, x).map(x, x).map(x, x) == []"),
      // Patterns, compiled in each round.
      Grown("[1, 2]", "+", 10, "v10.all(x, !'b'.matches('((a{30}){3' + '0})'))"),
  };
  for (const std::string& expression : expressions)
    EXPECT_EQ(Answer(expression), kRefused) << expression;
}

// && , ||, all() and exists() absorb errors, but not the end of the budget.
TEST(CelEvaluationCostTest, TheEndOfTheBudgetIsNotAbsorbed) {
  const std::string expensive = Grown("[1, 1]", "[]", 40, "v40 == v40");
  for (const std::string& expression : {expensive + " || true", "!" + expensive + " && false",
                                        "[1, 2].exists(x, x == 2 || " + expensive + ")",
                                        "[1, 2].all(x, x == 1 ? " + expensive + " : false)",
                                        "[" + expensive + "].exists(x, x) || true"}) {
    EXPECT_EQ(Answer(expression), kRefused);
  }
}

TEST(CelEvaluationCostTest, WorkOfUsualSizeIsDone) {
  std::string list = "[0";
  for (int i = 1; i < 300; ++i) list += ", " + std::to_string(i);
  list += "]";
  CheckTrue({
      list + ".all(x, " + list + ".exists(y, x == y)) || true",
      "sets.contains(" + list + ", [299, 0])",
      list + ".map(x, string(x)).join(',').split(',').size() == 300",
      list + "[dyn(299.0)] == 299 && 299 in " + list,
      Grown("'0123456789'", "+", 8, "v8.contains('9012') && v8.size() == 2560"),
      "['neuron', 'trn'].exists(p, device.driver.matches('^' + p))",
      "device.attributes.all(d, device.attributes[d].all(id, device.attributes[d][id] != 'none'))",
  });
}

TEST(CelEvaluationCostTest, PatternsAreBoundedAloneAndTogether) {
  EXPECT_NE(Answer("'a'.matches('(\\\\pL{1000})')").find("pattern too large"), std::string::npos);
  EXPECT_NE(Answer("'a'.matches('(\\\\pL{' + '1000})')").find("pattern too large"),
            std::string::npos);
  EXPECT_NE(Answer("'a'.matches('" + std::string(2000, 'a') + "' + 'b')").find("too long"),
            std::string::npos);
  std::string many = "true";
  for (int i = 0; i < 200; ++i) many += " || 'a'.matches('((a{30}){30})')";
  EXPECT_NE(Answer(many).find("the regular expressions are too large together"), std::string::npos);
}

// Each level of the tree is a level of the machine's stack, of which the trees of the first two
// expressions would take more than half in a release.
TEST(CelEvaluationCostTest, TreesOfAnyShapeAreAnsweredWithinTheStack) {
  const std::size_t max = kSelectorBytesMax;
  std::string sums = "1";  // sums of up to 250 terms in 20 parentheses
  while (sums.size() + 600 < max) {
    sums = "(" + sums + ")";
    for (int i = 0; i < 240; ++i) sums += "+1";
  }
  std::string fields = "dyn({})";
  while (fields.size() + 600 < max) {
    fields = "(" + fields + ")";
    for (int i = 0; i < 240; ++i) fields += ".a";
  }
  std::string calls = "'a'";
  for (int i = 0; i < 249; ++i) calls = "string(" + calls + ")";
  std::string lists = std::string(249, '[') + std::string(249, ']');
  for (const std::string& expression :
       {sums + " > 0", fields + " == 1", calls + " == 'a'", lists + " != []",
        std::string(249, '-') + "1 == 1", std::string(max - 1, '('), std::string(max - 1, '['),
        std::string(max - 1, '{'), std::string(max - 1, '-'), std::string(max - 1, '!'),
        std::string(max - 1, '?'), std::string(max - 1, '.')}) {
    EXPECT_FALSE(Answer(expression).empty());
  }
  EXPECT_NE(Answer(sums + " > 0").find("nested too deeply"), std::string::npos);
  EXPECT_NE(Answer(fields + " == 1").find("nested too deeply"), std::string::npos);
  std::string usual = "device.driver == 'a'";
  for (int i = 0; i < 240; ++i) usual += " || device.driver == 'b'";
  EXPECT_EQ(Answer("(" + usual + ") == false"), "true");
}

}  // namespace
}  // namespace tahoma::kube
