// Expressions with their results over a device: each operator, macro, function and error of the
// subset in device_selector.h.

#include "lib/kube/cel/device_selector.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/unit/lib/kube/cel/expression_cases.h"

namespace tahoma::kube {
namespace {

TEST(DeviceSelectorTest, ReadsTheDeviceAsKubernetesDefinesIt) {
  Check({
      {"true", "true"},
      {"false", "false"},
      {"device.driver == 'neuron.aws.com'", "true"},
      {"device.driver == \"\"", "false"},
      {"device.allowMultipleAllocations", "true"},
      {kAws + ".instanceType == 'trn2.48xlarge'", "true"},
      {kAws + "[\"instanceType\"] == \"trn2.48xlarge\"", "true"},
      {kAws + ".resourceType in ['neuron_device', 'neuron_node']", "true"},
      {kAws + ".deviceId > 5", "true"},
      {kAws + ".deviceId % 4 == 2 && " + kAws + ".deviceId / 4 == 1", "true"},
      {"device.attributes['tahoma.dev'].spare", "false"},
      {"'neuron.aws.com' in device.attributes", "true"},
      {"'other.com' in device.attributes", "false"},
      {"'deviceId' in " + kAws, "true"},
      {"has(" + kAws + ".deviceId)", "true"},
      {"has(" + kAws + ".nothing)", "false"},
      {"has(device.attributes['other.com'].nothing)", "false"},
      {"size(device.attributes) == 3 && device.attributes['tahoma.dev'].size() == 2", "true"},
      {"device.attributes['other.com'] == {}", "true"},
      {"device.capacity['tahoma.dev'].hbm.isGreaterThan(quantity('64Gi'))", "true"},
      {"device.capacity['tahoma.dev'].hbm.compareTo(quantity('98304Mi')) == 0", "true"},
      {"device.capacity['tahoma.dev'].hbm == quantity('96Gi')", "true"},
      {kAws + ".draDriverVersion.isLessThan(semver('1.10.0'))", "true"},
      {kAws + ".draDriverVersion.compareTo(semver('1.2.0')) == 0", "true"},
  });
}

TEST(DeviceSelectorTest, FailsAtRunTimeWhereKubernetesDoes) {
  Check({
      {kAws + ".nothing == 1", "error: no such key: nothing"},
      {"device.attributes['other.com'].nothing", "error: no such key: nothing"},
      {"device.attributes['other.com']['nothing']", "error: no such key: nothing"},
      {"device.capacity['tahoma.dev'].nothing.isLessThan(quantity('1'))",
       "error: no such key: nothing"},
      {"true || " + kAws + ".nothing", "true"},
      {kAws + ".nothing || true", "true"},
      {kAws + ".nothing && false", "false"},
      {kAws + ".nothing && true", "error: no such key: nothing"},
      {kAws + ".instanceType", "error: CEL result of type string could not be converted to bool"},
      {kAws + ".instanceType > 1", "error: no such overload: >"},
      {kAws + ".instanceType == 1", "false"},
      {"1 / (" + kAws + ".deviceId - 6) == 1", "error: division by zero"},
      {"9223372036854775807 + " + kAws + ".deviceId > 0", "error: integer overflow"},
      {"[1, 2][2] == 1", "error: index out of bounds: 2"},
      {"{'a': 1}['b'] == 1", "error: no such key: b"},
      {"semver('1.2') == semver('1.2.0')", "error: \"1.2\" is not a version of the form 1.2.3"},
      {"optional.none().value() == 1", "error: optional.none() dereference"},
      {kAws + ".deviceId.exists(x, x > 0)",
       "error: no such overload: got 'int', expected iterable type"},
      {"[1, 2].map(x, x / (x - 1)).size() == 2", "error: division by zero"},
      {"[0, 1].exists(x, 1 / x == 1)", "true"},
      {"[0, 2].exists(x, 1 / x == 1)", "error: division by zero"},
  });
}

TEST(DeviceSelectorTest, NamesThePlaceOfAnUnsupportedExpression) {
  Check({
      {"?!", "compile: 1:1: expected an expression, found ?"},
      {"", "compile: 1:1: expected an expression, but the expression ends"},
      {"1", "compile: must evaluate to bool or the unknown type, not int"},
      {"device.driver", "compile: must evaluate to bool or the unknown type, not string"},
      {"device.driver == 1",
       "compile: 1:15: found no matching overload for '==' applied to '(string, int)'"},
      {"device.color == 'red'", "compile: 1:8: undefined field 'color'"},
      {"devise.driver == 'a'", "compile: 1:1: undeclared reference to 'devise'"},
      {"true &&\n  url('http://a').getHost() == 'a'",
       "compile: 2:3: undeclared reference to 'url'"},
      {"'a'.reverse() == 'a'", "compile: 1:5: undeclared reference to 'reverse'"},
      {"'a'.startsWith() == true", "compile: 1:5: 'startsWith' cannot be called with 0 arguments"},
      {"'abc", "compile: 1:1: the string does not end"},
      {"'\\q' == ''", "compile: 1:2: unknown escape \"\\q\""},
      {"true true", "compile: 1:6: expected the end, found true"},
      {"true & false", "compile: 1:6: unexpected character '&'"},
      {"[1, 'a'].size() == 2", "compile: 1:5: expected type 'int' but found 'string'"},
      {"1 && true", "compile: 1:1: expected type 'bool', found 'int'"},
      {"true.exists(x, x)",
       "compile: 1:6: type 'bool' cannot be the range of a comprehension "
       "(must be list, map, or dynamic)"},
      {"'a'.matches('(')", "compile: 1:5: bad regular expression: missing ): ("},
      {"99999999999999999999 > 1",
       "compile: 1:1: \"99999999999999999999\" is not a number that fits"},
      {"{'a': 1}.all(k, true, true)", "compile: 1:10: macros with two variables are not supported"},
  });
}

TEST(DeviceSelectorTest, ComputesLikeCel) {
  Check({
      {"1 + 2 * 3 == 7 && (1 + 2) * 3 == 9 && 7 % 4 == 3 && -7 / 2 == -3", "true"},
      {"1u + 2u == 3u && 0x10 == 16 && 1.5e2 == 150.0", "true"},
      {"1 < 2.5 && 3u > 2 && dyn(1) == 1.0 && 9007199254740993 > 9007199254740992.0", "true"},
      {"-9223372036854775808 < 0", "true"},
      {"'a' + 'b' == 'ab' && [1] + [2] == [1, 2] && 'a' < 'b'", "true"},
      {"true ? 1 == 1 : 1 == 2", "true"},
      {"!(1 != 1) && !false", "true"},
      {"2 in [1, 2] && !('c' in {'a': 1})", "true"},
      {"'\\u00e9\\x41\\101\\n' == 'éAA\\n' && r'\\d' == '\\\\d' && '''a'b''' == \"a'b\"", "true"},
      {"b'ab'.size() == 2 && 'é'.size() == 1", "true"},
      {"// a comment\n true", "true"},
      {"null == null && !(null == dyn(1))", "true"},
  });
}

TEST(DeviceSelectorTest, HasTheMacros) {
  Check({
      {"[1, 2, 3].all(x, x > 0) && ![1, 2, 3].all(x, x > 1)", "true"},
      {"[1, 2, 3].exists_one(x, x == 2) && ![2, 2].exists_one(x, x == 2)", "true"},
      {"[1, 2, 3].filter(x, x > 1) == [2, 3] && [1, 2].map(x, x * 2) == [2, 4]", "true"},
      {"[1, 2, 3].map(x, x > 1, x * 2) == [4, 6]", "true"},
      {"device.attributes.exists(d, d == 'tahoma.dev')", "true"},
      {kAws + ".exists(id, id.startsWith('neuronDriver'))", "true"},
      {"cel.bind(aws, " + kAws + ", aws.deviceId == 6 && aws.instanceType == 'trn2.48xlarge')",
       "true"},
      {"cel.bind(x, 1, cel.bind(x, 2, x == 2) && x == 1)", "true"},
      {"[[1], [2]].exists(x, x.exists(y, y == 2))", "true"},
  });
}

TEST(DeviceSelectorTest, HasOptionals) {
  Check({
      {kAws + ".?deviceId.orValue(0) == 6", "true"},
      {kAws + ".?nothing.orValue(7) == 7", "true"},
      {kAws + "[?'nothing'].hasValue()", "false"},
      {"device.attributes[?'other.com'].?nothing.orValue(true)", "true"},
      {"optional.of(1).or(optional.of(2)).value() == 1", "true"},
      {"optional.ofNonZeroValue('').hasValue()", "false"},
      {kAws + ".?deviceId.optMap(x, x + 1).orValue(0) == 7", "true"},
      {"[?optional.none(), ?optional.of(1)] == [1]", "true"},
  });
}

TEST(DeviceSelectorTest, HasTheFunctions) {
  Check({
      {"'TRN2'.lowerAscii() == 'trn2' && 'a'.upperAscii() == 'A' && ' a '.trim() == 'a'", "true"},
      {kAws + ".instanceType.split('.')[1] == '48xlarge'", "true"},
      {"'a,b,c'.split(',', 2) == ['a', 'b,c'] && ['a', 'b'].join('-') == 'a-b'", "true"},
      {kAws + ".instanceType.matches('^trn2u?[.]')", "true"},
      {"'a1b2'.find('[0-9]') == '1' && matches('x', 'x|y')", "true"},
      {"'abc'.contains('b') && 'abc'.endsWith('c') && 'abcabc'.lastIndexOf('b') == 4", "true"},
      {"'abc'.substring(1) == 'bc' && 'abc'.substring(0, 1) == 'a' && 'abc'.charAt(1) == 'b'",
       "true"},
      {"'aba'.replace('a', 'c') == 'cbc' && 'abc'.indexOf('z') == -1", "true"},
      {"[3, 1, 2].min() == 1 && [3, 1].max() == 3 && [1, 2].sum() == 3 && [1, 2].isSorted()",
       "true"},
      {"sets.contains([1, 2, 3], [2]) && sets.intersects([1], [1, 2]) && "
       "sets.equivalent([1, 2], [2, 1, 1])",
       "true"},
      {"int('7') == 7 && uint(7) == 7u && double(1) == 1.0 && string(7) == '7' && bool('true')",
       "true"},
      {"isQuantity('96Gi') && !isQuantity('x') && isSemver('1.2.3') && !isSemver('1.2')", "true"},
      {"semver('v1.2', true).minor() == 2 && semver('1.0.0-rc.1').isLessThan(semver('1.0.0'))",
       "true"},
      {kAws + ".instanceType.includes('trn2.48xlarge')", "true"},
  });
}

TEST(DeviceSelectorTest, KnowsWhatAnExpressionCannotDependOn) {
  const auto reads = [](const std::string& source) {
    const auto selector = DeviceSelector::Compile(source);
    EXPECT_TRUE(selector.ok()) << selector.status();
    return selector->MayRead("ultraserverId");
  };
  EXPECT_FALSE(reads(kAws + ".instanceType == 'trn2.48xlarge'"));
  EXPECT_FALSE(reads("cel.bind(a, " + kAws + ", a.deviceId == 1)"));
  EXPECT_TRUE(reads(kAws + ".ultraserverId == 'us-1'"));
  EXPECT_TRUE(reads("device.attributes['tahoma.dev']['ultraserverId'] == 'us-1'"));
  EXPECT_TRUE(reads("device.attributes['tahoma.dev']['ultra' + 'serverId'] == 'us-1'"));
  EXPECT_TRUE(reads("device.attributes.exists(d, size(d) > 3)"));
  EXPECT_TRUE(reads(kAws + " == {}"));
  EXPECT_TRUE(reads("cel.bind(d, device, d.attributes['a'].size() > 2)"));
}

TEST(DeviceSelectorTest, KnowsTheValuesThatEveryDeviceItSelectsMustHave) {
  const auto required = [](const std::string& source) {
    const auto selector = DeviceSelector::Compile(source);
    EXPECT_TRUE(selector.ok()) << source << selector.status();
    std::string text;
    for (const RequiredAttribute& one : selector->Required()) {
      text += fmt::format("{}/{}:", one.domain, one.id);
      for (const CelValue& value : one.values) {
        if (const auto* word = value.As<std::string>()) text += *word + ",";
        if (const auto* number = value.As<std::int64_t>()) text += fmt::format("{},", *number);
        if (const auto* flag = value.As<bool>()) text += *flag ? "true," : "false,";
      }
      text += " ";
    }
    return text;
  };
  const std::string a = "device.attributes['d.com'].serial";
  EXPECT_EQ(required(a + " == 'A7'"), "d.com/serial:A7, ");
  EXPECT_EQ(required("3 == device.attributes['d.com']['n'] && " + a + " in ['A', 'B'] && true"),
            "d.com/n:3, d.com/serial:A,B, ");
  EXPECT_EQ(required("(true && device.attributes['d.com'].on == false)"), "d.com/on:false, ");
  EXPECT_EQ(required(a + " in []"), "d.com/serial: ");
  for (const std::string& none : {
           a + " == 'A7' || true",
           "!(" + a + " == 'A7')",
           a + " != 'A7'",
           a + " in ['A', " + a + "]",
           a + " == " + a,
           std::string("device.attributes['d.com'].n == 3.0"),
           std::string("device.attributes['d.com'].n in [3u]"),
           std::string("device.attributes[?'d.com'].serial == optional.of('A7')"),
           std::string("device.attributes['d' + '.com'].serial == 'A7'"),
           std::string("{'d.com': {'serial': 'A7'}}['d.com'].serial == 'A7'"),
           std::string("true ? " + a + " == 'A7' : true"),
           std::string("[1].exists(x, " + a + " == 'A7')"),
           std::string("cel.bind(x, " + a + " == 'A7', x || true)"),
       }) {
    EXPECT_EQ(required(none), "") << none;
  }
}

// A name of unknown type counts as an attribute; otherwise a scheduler would take devices for equal
// that the expression tells apart.
TEST(DeviceSelectorTest, KnowsWhatMayBeReadThroughOptionalsAndMixedTypes) {
  const auto reads = [](const std::string& source) {
    const auto selector = DeviceSelector::Compile(source);
    EXPECT_TRUE(selector.ok()) << source << selector.status();
    return selector.ok() && selector->MayRead("ultraserverId");
  };
  for (const char* computes : {
           "device.attributes[?'tahoma.dev'][?'ultra' + 'serverId'].orValue('') == 'us-1'",
           "device.attributes.?tahoma['ultra' + 'serverId'].hasValue()",
           "device.?attributes['tahoma.dev']['ultra' + 'serverId'].hasValue()",
           "device.attributes[?'tahoma.dev'].orValue({})['ultra' + 'serverId'] == 'us-1'",
           "device.attributes[?'tahoma.dev'].value().exists(id, id.startsWith('ultra'))",
           "device.attributes[?'tahoma.dev'].optMap(ids, ids.size()).orValue(0) > 2",
           "cel.bind(ids, device.attributes[?'tahoma.dev'], ids[?'ultra' + 'serverId'].hasValue())",
           "device.attributes[?'tahoma.dev'] == optional.none()",
           "[device.attributes[?'tahoma.dev']].exists(ids, ids['ultra' + 'serverId'].hasValue())",
           "(true ? device.attributes['tahoma.dev'] : {'a': 'b'})['ultra' + 'serverId'] == 'us-1'",
           "(true ? dyn(1) : device.attributes['tahoma.dev']['ultra' + 'serverId']) == 1",
           "('ultra' + 'serverId') in device.attributes['tahoma.dev']",
           "[1].map(x, device.attributes['tahoma.dev'])[0].size() > 2",
           "dyn(device.attributes['tahoma.dev']).size() > 2",
       }) {
    EXPECT_TRUE(reads(computes)) << computes;
  }
  for (const char* names : {
           "device.attributes[?'tahoma.dev'][?'rack'].orValue('') == 'r1'",
           "device.attributes[?'other.com'].?nothing.orValue(true)",
           "device.?attributes['tahoma.dev'].?rack.hasValue()",
           "(true ? device.attributes['a'] : device.attributes['b']).rack == 'r1'",
           "has(device.attributes[?'tahoma.dev'].rack)",
           "'rack' in device.attributes['tahoma.dev']",
           "[1, 2].map(x, x)[0 + 1] == 2",
           "optional.of([1]).value()[1 - 1] == 1",
       }) {
    EXPECT_FALSE(reads(names)) << names;
  }
}

TEST(DeviceSelectorTest, BoundsDepthLengthAndCost) {
  const std::string deep = std::string(300, '(') + "true" + std::string(300, ')');
  EXPECT_NE(Answer(deep).find("nested too deeply"), std::string::npos);
  EXPECT_NE(Answer(std::string(300, '!') + "true").find("nested too deeply"), std::string::npos);
  EXPECT_NE(Answer(std::string(11000, ' ')).find("at most 10240"), std::string::npos);
  std::string list = "[0";
  for (int i = 1; i < 120; ++i) list += "," + std::to_string(i);
  list += "]";
  const std::string cubic =
      list + ".all(a, " + list + ".all(b, " + list + ".all(c, a + b + c >= 0)))";
  EXPECT_EQ(Answer(cubic), "error: operation cancelled: actual cost limit exceeded");
}

TEST(DeviceSelectorTest, EveryCutOffOfAnExpressionIsAnswered) {
  const std::string whole =
      "device.attributes['a'].?b.orValue([1, {'x': 2.5e1}]) == "
      "(cel.bind(v, -1, v) in [1u] ? r\"\\d\" : '''t''')";
  for (std::size_t length = 0; length < whole.size(); ++length) {
    EXPECT_FALSE(Answer(whole.substr(0, length)).empty());
    EXPECT_FALSE(Answer(whole.substr(length)).empty());
  }
}

TEST(SemverTest, OrdersAsTheSpecificationSays) {
  const std::vector<std::string> ascending = {"1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.beta",
                                              "1.0.0-beta",  "1.0.0-beta.2",  "1.0.0-beta.11",
                                              "1.0.0-rc.1",  "1.0.0",         "1.0.1+build",
                                              "1.2.0",       "10.0.0"};
  for (std::size_t i = 0; i < ascending.size(); ++i) {
    for (std::size_t j = 0; j < ascending.size(); ++j) {
      const int order = Compare(*Semver::Parse(ascending[i]), *Semver::Parse(ascending[j]));
      EXPECT_EQ(order < 0, i < j) << ascending[i] << " " << ascending[j];
      EXPECT_EQ(order > 0, i > j) << ascending[i] << " " << ascending[j];
    }
  }
  for (const char* bad : {"", "1", "1.2", "1.2.3.4", "01.2.3", "1.2.x", "1.2.3-", "1.2.3-01",
                          "1.2.3+", "v1.2.3", "1.2.99999999999999999999"}) {
    EXPECT_FALSE(Semver::Parse(bad).ok()) << bad;
  }
}

}  // namespace
}  // namespace tahoma::kube
