// The functions of selectors: those of cel-go's standard library and its strings and sets
// extensions, and those of Kubernetes for lists, quantities and versions.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/unit/lib/kube/cel/expression_cases.h"

namespace tahoma::kube {
namespace {

TEST(CelFunctionsTest, TextIsCountedInCharacters) {
  CheckTrue({
      "size('日本語') == 3 && '日本語'.substring(1, 2) == '本' && '日本語'.charAt(2) == '語'",
      "'日本語'.indexOf('語') == 2 && '日本日'.lastIndexOf('日') == 2",
      "'日本'.split('') == ['日', '本'] && ''.split('') == [] && ''.split(',') == ['']",
      "'abc'.charAt(3) == '' && 'abc'.substring(3) == '' && 'abc'.substring(1, 1) == ''",
      "'abc'.indexOf('') == 0 && 'abc'.lastIndexOf('') == 3 && 'abc'.indexOf('abcd') == -1",
      "'abab'.indexOf('ab', 1) == 2 && 'abab'.lastIndexOf('ab', 1) == 0",
      "'abab'.indexOf('b', 4) == -1 && 'aaaa'.lastIndexOf('a', 3) == 3",
      "'é'.lowerAscii() == 'é' && 'É'.lowerAscii() == 'É' && 'aÉz'.upperAscii() == 'AÉZ'",
      "' \\t\\n a b \\r\\f\\v'.trim() == 'a b' && ' '.trim() == '' && ''.trim() == ''",
      "''.contains('') && 'a'.startsWith('') && 'a'.endsWith('') && !''.contains('a')",
  });
  Check({
      {"'abc'.substring(2, 1) == ''", "error: invalid substring range. start: 2, end: 1"},
      {"'abc'.substring(-1) == ''", "error: index out of range: -1"},
      {"'abc'.substring(4) == ''", "error: index out of range: 4"},
      {"'abc'.substring(1, 4) == ''", "error: index out of range: 4"},
      {"'abc'.charAt(4) == ''", "error: index out of range: 4"},
      {"'abc'.charAt(-1) == ''", "error: index out of range: -1"},
      {"'abc'.indexOf('a', -1) == 0", "error: index out of range: -1"},
  });
}

TEST(CelFunctionsTest, TextIsTakenApartAndPutTogether) {
  CheckTrue({
      "'a,b,c'.split(',') == ['a', 'b', 'c'] && ',a,'.split(',') == ['', 'a', '']",
      "'a,b,c'.split(',', 0) == [] && 'a,b,c'.split(',', 1) == ['a,b,c']",
      "'a,b,c'.split(',', -1) == ['a', 'b', 'c'] && 'a,b,c'.split(',', 9) == ['a', 'b', 'c']",
      "'abc'.split('', 2) == ['a', 'bc'] && 'abc'.split('', 1) == ['abc']",
      "'abc'.split('', 3) == ['a', 'b', 'c'] && 'abc'.split('', 0) == []",
      "[].join() == '' && ['a'].join(',') == 'a' && ['a', '', 'b'].join(',') == 'a,,b'",
      "['', 'a'].join('-') == '-a' && ['a', 'b'].join() == 'ab'",
      "'aaa'.replace('a', 'b', 2) == 'bba' && 'aaa'.replace('a', 'b', 0) == 'aaa'",
      "'aaa'.replace('aa', 'b') == 'ba' && 'aaa'.replace('a', '') == '' && 'a'.replace('b', 'c') "
      "== 'a'",
      "'aaa'.replace('a', 'aa', -1) == 'aaaaaa'",
  });
  Check({
      {"'a'.split(1) == []", "error: no such overload: split"},
      {"'a'.split('b', 'c') == []", "error: no such overload: split"},
      {"[1].join() == ''", "error: no such overload: join"},
      {"['a'].join(1) == ''", "error: no such overload: join"},
      {"'a'.replace('', 'b') == ''", "error: replace of an empty text is not supported"},
      {"'a'.replace('a', 1) == ''", "error: no such overload: replace"},
      {"dyn(1).contains('a')", "error: no such overload: contains"},
      {"1.contains('a')",
       "compile: 1:3: found no matching overload for 'contains' applied to 'int'"},
      {"'a'.startsWith(1)", "error: no such overload: startsWith"},
  });
}

TEST(CelFunctionsTest, PatternsAreThoseOfRe2AndFindAnywhere) {
  CheckTrue({
      "'trn2.48xlarge'.matches('48') && !'trn2'.matches('^rn') && 'trn2'.matches('')",
      "'a\\nb'.matches('a.b') == false && 'a\\nb'.matches('(?s)a.b') && 'AB'.matches('(?i)ab')",
      "'a.b'.matches(r'a\\.b') && !'axb'.matches(r'a\\.b') && '日'.matches('^.$')",
      "'abc123'.find('[0-9]+') == '123' && 'abc'.find('[0-9]+') == ''",
      "'ab'.matches('a' + 'b') && 'ab'.find('a' + '.') == 'ab'",
  });
  Check({
      {"'a'.matches('(' + ')' + ')')", "error: bad regular expression: unexpected ): ())"},
      {"'a'.matches('(?=a)')", "compile: 1:5: bad regular expression: invalid perl operator: (?="},
      {"'a'.find('[') == ''", "compile: 1:5: bad regular expression: missing ]: ["},
      {"'a'.matches(1)", "error: no such overload: matches"},
  });
}

TEST(CelFunctionsTest, ConversionsTakeWhatFits) {
  CheckTrue({
      "int(1.9) == 1 && int(-1.9) == -1 && int(7u) == 7 && int('-42') == -42 && int('+42') == 42",
      "uint(7) == 7u && uint('42') == 42u && uint(1.9) == 1u && uint('18446744073709551615') > 1u",
      "double('1.5') == 1.5 && double('-2e3') == -2000.0 && double('+.5') == 0.5 && double(3u) == "
      "3.0",
      "string(-7) == '-7' && string(7u) == '7' && string(true) == 'true' && string('a') == 'a'",
      "string(1.5) == '1.5' && string(-0.25) == '-0.25' && string(3.0) == '3'",
      "string(b'a\\303\\251') == 'aé'",
      "bool('t') && bool('1') && bool('True') && !bool('f') && !bool('0') && !bool('FALSE')",
      "dyn(1) == 1 && int(dyn('5')) == 5",
      "[1, 2].map(x, string(x)).join(',') == '1,2'",
  });
  Check({
      {"int(9223372036854775808u) > 0", "error: integer overflow"},
      {"int(1e19) > 0", "error: integer overflow"},
      {"int(0.0 / 0.0) > 0", "error: integer overflow"},
      {"uint(-1) > 0u", "error: integer overflow"},
      {"uint(-1.0) > 0u", "error: integer overflow"},
      {"int('1.5') > 0", "error: \"1.5\" is not a number"},
      {"int('') > 0", "error: \"\" is not a number"},
      {"int(' 1') > 0", "error: \" 1\" is not a number"},
      {"int('+-1') > 0", "error: \"+-1\" is not a number"},
      {"int('9223372036854775808') > 0", "error: \"9223372036854775808\" is not a number"},
      {"uint('+1') > 0u", "error: \"+1\" is not a number"},
      {"double('a') > 0.0", "error: \"a\" is not a number"},
      {"bool('yes')", "error: \"yes\" is not a bool"},
      {"bool(dyn(1))", "error: no such overload: bool"},
      {"int(true) == 1", "error: no such overload: int"},
      {"string([1]) == ''", "error: no such overload: string"},
      {"string(b'\\xff') == ''", "error: invalid UTF-8 in bytes, cannot convert to string"},
      {"int('1', 2) == 1", "compile: 1:1: 'int' cannot be called with 2 arguments"},
  });
}

TEST(CelFunctionsTest, ListsOfKubernetes) {
  CheckTrue({
      "[3, 1, 2].min() == 1 && [3, 1, 2].max() == 3 && ['b', 'a'].min() == 'a' && [1.5].max() == "
      "1.5",
      "[1, 2].sum() == 3 && [1.5, 2.5].sum() == 4.0 && [].sum() == 0 && [1u, 2u].sum() == 3u",
      "[1, 1, 2].isSorted() && ![2, 1].isSorted() && [].isSorted() && ['a', 'b'].isSorted()",
      "[1, 2, 1].indexOf(1) == 0 && [1, 2, 1].lastIndexOf(1) == 2 && [1].indexOf(2) == -1",
      "[1, 2].includes(2) && ![1, 2].includes(3) && 'a'.includes('a') && !dyn('a').includes('b')",
      "sets.contains([1, 2], []) && sets.contains([1, 2], [2, 2]) && !sets.contains([1], [2])",
      "sets.equivalent([], []) && !sets.equivalent([1], []) && sets.equivalent([1, 1], [1])",
      "sets.intersects([1, 2], [2, 3]) && !sets.intersects([1], []) && !sets.intersects([], [])",
      "sets.contains([dyn(1), 2.0], [dyn(2), 1.0])",
  });
  Check({
      {"[].min() == 1", "error: min called on empty list"},
      {"[].max() == 1", "error: max called on empty list"},
      {"[9223372036854775807, 1].sum() > 0", "error: integer overflow"},
      {"[18446744073709551615u, 1u].sum() > 0u", "error: integer overflow"},
      {"['a'].sum() == 'a'", "error: no such overload: sum"},
      {"[dyn(1), 'a'].min() == 1", "error: no such overload: min"},
      {"[dyn(1), 'a'].isSorted()", "error: no such overload: isSorted"},
      {"sets.contains([1], dyn(1))", "error: no such overload: sets"},
      {"sets.union([1], [2]) == [1, 2]", "compile: 1:1: undeclared reference to 'sets.union'"},
  });
}

TEST(CelFunctionsTest, QuantitiesCompareByValue) {
  CheckTrue({
      "quantity('1Gi').compareTo(quantity('1024Mi')) == 0 && quantity('1G') != quantity('1Gi')",
      "quantity('1k') == quantity('1000') && quantity('1000m') == quantity('1')",
      "quantity('1').isGreaterThan(quantity('999m')) && "
      "!quantity('1').isGreaterThan(quantity('1'))",
      "quantity('-1').isLessThan(quantity('0')) && quantity('1').compareTo(quantity('2')) == -1",
      "quantity('1e3') == quantity('1k') && quantity('.5').compareTo(quantity('500m')) == 0",
      "device.capacity['tahoma.dev'].exists(c, c == 'hbm') && 'hbm' in "
      "device.capacity['tahoma.dev']",
      "device.capacity['tahoma.dev'].?hbm.orValue(quantity('0')).isGreaterThan(quantity('95Gi'))",
      "device.capacity['other.com'].size() == 0 && !('other.com' in device.capacity)",
      "!isQuantity('1 Gi') && !isQuantity('') && !isQuantity('1gi') && isQuantity('-1.5Ki')",
  });
  Check({
      {"device.capacity['tahoma.dev'].hbm.compareTo('96Gi') == 0",
       "error: no such overload: comparison of Quantity with string"},
      {"device.capacity['tahoma.dev'].hbm > 1",
       "compile: 1:35: found no matching overload for '>' applied to '(Quantity, int)'"},
      {"device.capacity['tahoma.dev'].hbm == '96Gi'",
       "compile: 1:35: found no matching overload for '==' applied to '(Quantity, string)'"},
      {"device.capacity['tahoma.dev'].nothing == quantity('1')", "error: no such key: nothing"},
      {"quantity(1) == quantity('1')",
       "compile: 1:1: found no matching overload for 'quantity' applied to 'int'"},
      {"quantity('1').isGreaterThan(semver('1.0.0'))",
       "error: no such overload: comparison of Quantity with Semver"},
      {"isQuantity(dyn(1))", "error: no such overload: quantity"},
  });
}

TEST(CelFunctionsTest, VersionsAreStrictUnlessNormalized) {
  CheckTrue({
      "semver('1.2.3').major() == 1 && semver('1.2.3').minor() == 2 && semver('1.2.3').patch() == "
      "3",
      "semver('1.2.3+a') == semver('1.2.3+b') && semver('1.2.3-a') != semver('1.2.3-b')",
      "semver('1.10.0').isGreaterThan(semver('1.9.9')) && "
      "semver('2.0.0').compareTo(semver('10.0.0')) == -1",
      "semver('v1', true) == semver('1.0.0') && semver('v01.002.3', true) == semver('1.2.3')",
      "semver('1.2.3-rc.1+b', true) == semver('1.2.3-rc.1') && semver('0.00.0', true) == "
      "semver('0.0.0')",
      "isSemver('1.2.3-alpha.1+b.2') && !isSemver('v1.2.3') && !isSemver('1.2.3', false) == false",
      "isSemver('v1.2', true) && !isSemver('1.2.3.4', true) && !isSemver('', true)",
      // A short version has no room for a pre-release or a build.
      "!isSemver('1.2-rc', true) && !isSemver('v1+build', true)",
      "device.attributes['neuron.aws.com'].draDriverVersion.minor() == 2",
  });
  Check({
      {"device.attributes['neuron.aws.com'].draDriverVersion == '1.2.0'", "false"},
      {"device.attributes['neuron.aws.com'].instanceType.isLessThan(semver('1.0.0'))",
       "error: no such overload: comparison of string with Semver"},
      {"device.attributes['neuron.aws.com'].draDriverVersion.isLessThan('2.0.0')",
       "error: no such overload: comparison of Semver with string"},
      {"semver('1.0.0') < semver('2.0.0')",
       "compile: 1:17: found no matching overload for '<' applied to '(Semver, Semver)'"},
      {"semver('18446744073709551615.0.0').major() > 0", "error: integer overflow"},
      {"semver('1.2.3', 1) == semver('1.2.3')", "error: no such overload: semver"},
  });
}

}  // namespace
}  // namespace tahoma::kube
