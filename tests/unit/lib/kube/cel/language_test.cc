// The language of selectors, part by part: what the CEL specification (langdef.md), cel-go's
// extensions and the libraries of Kubernetes say of each.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/unit/lib/kube/cel/expression_cases.h"

namespace tahoma::kube {
namespace {

TEST(CelLanguageTest, OperatorsBindAsTheGrammarSays) {
  CheckTrue({
      "1 + 2 * 3 - 4 / 2 == 5",
      "10 - 3 - 2 == 5 && 100 / 10 / 5 == 2 && 17 % 10 % 4 == 3",
      "2 * 7 % 4 == 2 && 7 % 4 * 2 == 6",
      "true || false && false",
      "(true || false) && true",
      "!(false && true) && !false == true",
      "-2 * -3 == 6 && 5 - -3 == 8 && 5--3 == 8 && -(2 + 3) == -5 && --5 == 5",
      "1 + 1 in [2] && !(1 in [2])",
      "false ? false : true ? true : false",
      "true ? 1 + 1 == 2 : false",
      "(1 < 2) == true && 1 < 2 == true",
      "!true || !false",
      "-[1, 2][1] == -2 && -{'a': 1}.a == -1",
      "[1, 2][0] + [1, 2][1] == 3 && 'ab' + 'c' + 'd' == 'abcd'",
      "2 > 1 && 2 >= 2 && 1 <= 1 && 1 != 2",
  });
}

TEST(CelLanguageTest, LiteralsOfNumbers) {
  CheckTrue({
      "0xff == 255 && 0XFF == 255 && 0xAu == 10u && -0x10 == -16",
      "1.5 == 1.50 && .5 == 0.5 && 1e3 == 1000.0 && 1.5E-1 == 0.15 && 2e+1 == 20.0",
      "9223372036854775807 > 9223372036854775806",
      "-9223372036854775808 < -9223372036854775807",
      "18446744073709551615u > 18446744073709551614u",
  });
  Check({
      {"9223372036854775808 > 0", "compile: 1:1: the number does not fit in an int"},
      {"-9223372036854775809 < 0",
       "compile: 1:2: \"9223372036854775809\" is not a number that fits"},
      {"18446744073709551616u > 0u",
       "compile: 1:1: \"18446744073709551616\" is not a number that fits"},
      {"0x > 1", "compile: 1:1: \"0x\" is not a number that fits"},
      {"1e > 1.0", "compile: 1:1: \"1e\" is not a number that fits"},
      {"1e5e5 > 1.0", "compile: 1:1: \"1e5e5\" is not a number that fits"},
      {"1.5u > 1u", "compile: 1:1: \"1.5\" is not a number that fits"},
      {"-1u == 1u", "compile: 1:1: found no matching overload for '-_'"},
      {"1.2.3 == 1", "compile: 1:4: expected the end, found a literal"},
  });
}

TEST(CelLanguageTest, LiteralsOfTextAndBytes) {
  CheckTrue({
      R"("\a\b\f\n\r\t\v".size() == 7)",
      R"("\\\?\"\'\`" == '\\?"\'`')",
      R"('\x41\X42\103' == 'ABC')",
      R"('\u00e9' == '\351' && '\U0001F600'.size() == 1)",
      R"('é' == '\u00e9' && b'é'.size() == 2 && b'\xff'.size() == 1)",
      R"(r'\n' == '\\n' && R"\x" == '\\x' && rb'\n'.size() == 2 && Br'\n'.size() == 2)",
      "'''a\n'b' ''' == \"a\\n'b' \" && \"\"\"x\"y\"\"\" == 'x\"y'",
      "'' == \"\" && '''''' == '' && r'' == ''",
      "b'abc' == b'abc' && b'abc' < b'abd' && b'a' + b'b' == b'ab'",
      "'\u00e4' > 'z' && 'Z' < 'a' && 'a' < 'aa' && '' < 'a'",
  });
  Check({
      {"'a\nb' == ''", "compile: 1:1: the string does not end"},
      {"'a\rb' == ''", "compile: 1:1: the string does not end"},
      {"'''a' == ''", "compile: 1:1: the string does not end"},
      {R"('\x4' == '')", "compile: 1:4: bad digits in an escape"},
      {R"('\18' == '')", "compile: 1:3: bad digits in an escape"},
      {R"('\400' == '')", R"(compile: 1:2: unknown escape "\4")"},
      {R"('\ud800' == '')", "compile: 1:2: the escape is no Unicode code point"},
      {R"('\U00110000' == '')", "compile: 1:2: the escape is no Unicode code point"},
      {R"(b'\u0041' == b'A')", R"(compile: 1:3: unknown escape "\u")"},
      {R"('\u00)", "compile: 1:4: the escape does not end"},
      {R"('\)", "compile: 1:2: the escape does not end"},
  });
}

TEST(CelLanguageTest, PlacesCountCharactersAndMessagesKeepThemWhole) {
  Check({
      // Quotation marks as text processors make them.
      {"device.driver == “neuron.aws.com”", "compile: 1:18: unexpected character '“'"},
      {"'é' == x", "compile: 1:8: undeclared reference to 'x'"},
      {"'a' == 'a' &&\r\n  '日本' == y", "compile: 2:11: undeclared reference to 'y'"},
      {"'\\é' == ''", "compile: 1:2: unknown escape \"\\é\""},
      {"true // “why”\n && z", "compile: 2:5: undeclared reference to 'z'"},
  });
}

TEST(CelLanguageTest, CommentsAndSpaceAreSkipped) {
  CheckTrue({
      "true // the end",
      "// first\n// second\n\ttrue\f\r\n",
      "'//' + 'a' == '//a' // not in a string",
      "[ 1 , 2 , ] . size ( ) == 2",
  });
  Check({
      {"// only a comment", "compile: 1:18: expected an expression, but the expression ends"},
      {"true /* no */", "compile: 1:7: expected an expression, found *"},
  });
}

TEST(CelLanguageTest, ReservedWordsAreNoNames) {
  Check({
      {"[1].all(for, for > 0)", "compile: 1:9: reserved identifier: for"},
      {"[1].all(true, true)", "compile: 1:9: reserved identifier: true"},
      {"cel.bind(null, 1, true)", "compile: 1:10: reserved identifier: null"},
      {"package == 1", "compile: 1:1: reserved identifier: package"},
      {"in == 1", "compile: 1:1: reserved identifier: in"},
      // Ids of attributes may be such words.
      {"has(device.attributes['a'].package)", "false"},
      {"[true].all(device, device)", "true"},
  });
}

TEST(CelLanguageTest, AndAndOrAreCommutative) {
  const std::string error = "1 / 0 == 1";
  for (const std::string& value : {std::string("true"), std::string("false"), error}) {
    for (const std::string& other : {std::string("true"), std::string("false"), error}) {
      const bool fails = value == error || other == error;
      const bool any = value == "true" || other == "true";
      const bool none = value == "false" || other == "false";
      const std::string message = "error: division by zero";
      Check({{value + " || " + other, any     ? "true"
                                      : fails ? message
                                              : "false"},
             {value + " && " + other, none    ? "false"
                                      : fails ? message
                                              : "true"}});
    }
  }
  Check({
      {"dyn(1) || true", "true"},
      {"true || dyn(1)", "true"},
      {"dyn(1) && false", "false"},
      {"dyn(1) && true", "error: no such overload: &&"},
      {"dyn(1) || 1 / 0 == 1", "error: division by zero"},
      {"1 / 0 == 1 ? true : false", "error: division by zero"},
      {"true ? true : 1 / 0 == 1", "true"},
      {"false ? 1 / 0 == 1 : true", "true"},
      {"!(1 / 0 == 1)", "error: division by zero"},
  });
}

TEST(CelLanguageTest, ArithmeticFailsRatherThanWraps) {
  const std::string overflow = "error: integer overflow";
  const std::string max = "9223372036854775807";
  const std::string min = "-9223372036854775808";
  Check({
      {max + " + 1 > 0", overflow},
      {min + " - 1 < 0", overflow},
      {max + " * 2 > 0", overflow},
      {min + " / -1 > 0", overflow},
      {min + " % -1 == 0", overflow},
      {"-(" + min + ") > 0", overflow},
      {"0u - 1u > 0u", overflow},
      {"18446744073709551615u + 1u > 0u", overflow},
      {"18446744073709551615u * 2u > 0u", overflow},
      {"1 / 0 == 0", "error: division by zero"},
      {"1 % 0 == 0", "error: modulus by zero"},
      {"1u / 0u == 0u", "error: division by zero"},
      {"1u % 0u == 0u", "error: modulus by zero"},
      {"1.0 / 0.0 > 1e308", "true"},
      {"-1.0 / 0.0 < -1e308", "true"},
      {"0.0 / 0.0 == 0.0 / 0.0", "false"},
      {"0.0 / 0.0 != 0.0 / 0.0", "true"},
      {"0.0 / 0.0 < 1.0 || 0.0 / 0.0 >= 1.0", "false"},
      {"-0.0 == 0.0", "true"},
      {"-7 / 2 == -3 && -7 % 2 == -1 && 7 / -2 == -3 && 7 % -2 == 1", "true"},
      {"1 + 1.0 == 2.0",
       "compile: 1:3: found no matching overload for '+' applied to '(int, double)'"},
      {"1 + 1u == 2", "compile: 1:3: found no matching overload for '+' applied to '(int, uint)'"},
      {"1.5 % 1.0 == 0.5",
       "compile: 1:5: found no matching overload for '%' applied to '(double, double)'"},
      {"'a' - 'b' == ''",
       "compile: 1:5: found no matching overload for '-' applied to '(string, string)'"},
      {"dyn(1) + 1.0 == 2.0", "error: no such overload: +"},
      {"dyn('a') - 'b' == ''", "error: no such overload: -"},
      {"-'a' == 'a'", "compile: 1:1: found no matching overload for '-_'"},
      {"!1", "compile: 1:2: expected type 'bool', found 'int'"},
      {"-dyn('a') == 'a'", "error: no such overload: -_"},
      {"!dyn(1)", "error: no such overload: !_"},
  });
}

TEST(CelLanguageTest, NumbersOfAllTypesAreComparedExactly) {
  CheckTrue({
      "9007199254740993 > 9007199254740992.0 && 9007199254740992 <= 9007199254740992.0",
      "-1 < 0u && 18446744073709551615u > 9223372036854775807 && 1u < 1.5",
      "9223372036854775807 < 9223372036854775808.0 && -9223372036854775808 >= "
      "-9223372036854775808.0",
      "18446744073709551615u < 18446744073709551616.0 && 0u > -0.5",
      "dyn(1) == 1u && dyn(1u) == 1.0 && dyn(1.5) != 1",
      "1.0 in [dyn(1)] && {1: 'a'}[dyn(1u)] == 'a' && {1: 'a'}[dyn(1.0)] == 'a'",
      "[1, 2][dyn(1.0)] == 2 && [1, 2][dyn(1u)] == 2",
      "dyn([1, 2]) == dyn([1.0, 2.0]) && dyn({'a': 1}) == dyn({'a': 1u})",
      "dyn('1') != 1 && dyn(true) != 1 && dyn(null) != 0",
  });
  Check({
      {"'a' < 1", "compile: 1:5: found no matching overload for '<' applied to '(string, int)'"},
      {"dyn('a') < 1", "error: no such overload: <"},
      {"[1] < [2]", "compile: 1:5: found no matching overload for '<' applied to '(list, list)'"},
      {"dyn([1]) < [2]",
       "compile: 1:10: found no matching overload for '<' applied to '(dyn, list)'"},
      {"quantity('1') < quantity('2')",
       "compile: 1:15: found no matching overload for '<' applied to '(Quantity, Quantity)'"},
      {"dyn(quantity('1')) < dyn(quantity('2'))", "error: no such overload: <"},
  });
}

TEST(CelLanguageTest, ListsAndMaps) {
  CheckTrue({
      "[] == [] && {} == {} && [[]] != [] && size([]) == 0 && {}.size() == 0",
      "[1, 2] != [2, 1] && [1] != [1, 1] && {'a': 1, 'b': 2} == {'b': 2, 'a': 1}",
      "{'a': 1} != {'a': 2} && {'a': 1} != {'b': 1} && {'a': [1]} == {'a': [1]}",
      "{'a': {'b': [1, 2]}}.a.b[1] == 2 && {'a b': 1}['a b'] == 1",
      "{true: 1, false: 2}[true] == 1 && {1u: 'x'}[1u] == 'x'",
      "has({'a': 1}.a) && !has({'a': 1}.b) && 'a' in {'a': 1}",
      "[1] + [] + [2] == [1, 2] && [1, 2, 3][2] == 3",
  });
  Check({
      {"[1][1] == 1", "error: index out of bounds: 1"},
      {"[1][-1] == 1", "error: index out of bounds: -1"},
      {"[1][dyn(0.5)] == 1", "error: index out of bounds: 0.5"},
      {"[1][dyn('0')] == 1", "error: no such overload: an index that is not a number"},
      {"{'a': 1}.b == 1", "error: no such key: b"},
      {"{true: 1}[false] == 1", "error: no such key: false"},
      {"{2u: 1}[1u] == 1", "error: no such key: 1"},
      {"{'a': 1, 'a': 2} == {}", "error: repeated key: a"},
      {"{true: 1, true: 2} == {}", "error: repeated key: true"},
      {"{'a': 1, 1: 2} == {}", "compile: 1:10: expected type 'string' but found 'int'"},
      {"{'a': 1, 'b': 'c'} == {}", "compile: 1:15: expected type 'int' but found 'string'"},
      {"{[1]: 1} == {}", "compile: 1:2: unsupported key type: list"},
      {"{dyn(null): 1} == {}", "error: unsupported key type: null_type"},
      {"[1, 2", "compile: 1:6: expected ']', but the expression ends"},
      {"{'a' 1}", "compile: 1:6: expected ':', found a literal"},
      {"1.a == 1", "compile: 1:3: type 'int' does not support field selection"},
      {"1[0] == 1", "compile: 1:2: type 'int' has no index"},
      {"dyn(1).a == 1", "error: no such overload: type 'int' has no entries"},
      {"1 in 1", "compile: 1:3: found no matching overload for 'in' applied to '(int, int)'"},
      {"1 in dyn(1)", "error: no such overload: in"},
  });
}

TEST(CelLanguageTest, MacrosOverEmptyRangesAndErrors) {
  CheckTrue({
      "[].all(x, false) && ![].exists(x, true) && ![].exists_one(x, true)",
      "[].filter(x, true) == [] && [].map(x, x) == []",
      "{'a': 1, 'b': 2}.all(k, k in ['a', 'b']) && {'a': 1}.map(k, k) == ['a']",
      "{'a': 1, 'b': 2}.filter(k, k == 'b') == ['b'] && {'a': 1}.existsOne(k, true)",
      "[[1, 2], [3]].map(l, l.map(x, x * 2)) == [[2, 4], [6]]",
      "[1, 2].all(x, [3].all(y, x < y)) && [1].all(x, [2].all(x, x == 2) && x == 1)",
      "![1, 0].all(x, 1 / x > 1) && [0, 1].exists(x, 1 / x == 1)",
      "cel.bind(a, [1, 2], a.exists(b, b == 2) && a.size() == 2)",
  });
  Check({
      {"[1, 0].all(x, 1 / x == 1)", "error: division by zero"},
      {"[0, 1].exists_one(x, 1 / x == 1)", "error: division by zero"},
      {"[0, 1].filter(x, 1 / x == 1) == [1]", "error: division by zero"},
      {"[0, 1].map(x, 1 / x == 1, x) == [1]", "error: division by zero"},
      {"[1].all(x, x)", "error: no such overload: a condition that is not bool"},
      {"[1].all(x, 1)", "compile: 1:12: expected type 'bool', found 'int'"},
      {"[1].all(x)", "compile: 1:10: expected ',', found )"},
      {"[1].all(x, true, true)", "compile: 1:5: macros with two variables are not supported"},
      {"[1].all(x.y, true)", "compile: 1:10: expected ',', found ."},
      {"[1].all(1, true)", "compile: 1:9: expected the name of a variable, found a literal"},
      {"[1].all(x, true) && x == 1", "compile: 1:21: undeclared reference to 'x'"},
      {"[1].exists(x, y == 1)", "compile: 1:15: undeclared reference to 'y'"},
      {"has(device)", "compile: 1:1: has() takes a field selection, such as has(a.b)"},
      {"has({'a': 1}['a'])", "compile: 1:1: has() takes a field selection, such as has(a.b)"},
      {"has({'a': 1}.a, true)", "compile: 1:1: has() takes a field selection, such as has(a.b)"},
      {"cel.bind(x, 1)", "compile: 1:14: expected ',', found )"},
      {"cel.bind(x, x, true)", "compile: 1:13: undeclared reference to 'x'"},
      {"cel.block([1], true)", "compile: 1:1: undeclared reference to 'cel.block'"},
  });
}

TEST(CelLanguageTest, OptionalsAreFollowedAndCompared) {
  CheckTrue({
      "{'a': {'b': 1}}.?a.?b.orValue(0) == 1 && {'a': {'b': 1}}.?a.b.orValue(0) == 1",
      "!{'a': 1}.?b.c.d.hasValue() && {}.?a.orValue(7) == 7 && [1][?1].orValue(7) == 7",
      "[1][?0] == optional.of(1) && [1][?1] == optional.none()",
      "optional.of(1) != optional.of(2) && optional.of(1) != optional.none()",
      "optional.none().or(optional.of(2)).value() == 2",
      "!optional.none().optMap(x, x / 0).hasValue()",
      "has({'a': {'b': 1}}.?a.b) && !has({}.?a.b)",
      "!optional.ofNonZeroValue(0).hasValue() && !optional.ofNonZeroValue([]).hasValue()",
      "{?'a': optional.none(), ?'b': optional.of(1)} == {'b': 1}",
      // Parts of the device, looked up through optionals, are the maps that they stand for.
      "device.attributes[?'tahoma.dev'] == optional.of(device.attributes['tahoma.dev'])",
      "device.attributes[?'other.com'] == optional.of({})",
      "device.attributes[?'tahoma.dev'] != optional.of({})",
      "device.attributes.?other.orValue({'x': 1}).size() == 0",
  });
  Check({
      {"optional.of(1) == 1",
       "compile: 1:16: found no matching overload for '==' applied to '(optional, int)'"},
      {"{}.?a.value() == 1", "error: optional.none() dereference"},
      {"[?1] == [1]", "error: no such overload: an entry after '?' must be optional"},
  });
}

}  // namespace
}  // namespace tahoma::kube
