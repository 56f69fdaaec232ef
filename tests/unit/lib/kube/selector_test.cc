// Selectors against a table of objects, and random selectors against a brute-force reading.

#include "lib/kube/selector.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/rng.h"
#include "lib/base/status.h"

namespace tahoma::kube {
namespace {

using Labels = std::map<std::string, std::string, std::less<>>;

bool Matches(std::string_view text, const Labels& labels) {
  const auto selector = LabelSelector::Parse(text);
  EXPECT_TRUE(selector.ok()) << text << ": " << selector.status();
  return selector.ok() && selector->Matches([&](std::string_view key) {
    const auto found = labels.find(key);
    return found == labels.end() ? std::nullopt : std::optional<std::string_view>(found->second);
  });
}

TEST(LabelSelectorTest, MatchesAsKubernetesDoes) {
  const Labels labels = {{"app", "train"}, {"tier", "a"}, {"n", "5"}, {"empty", ""}};
  for (const char* yes :
       {"", "app", "app=train", "app==train", "app = train", "app!=other", "app in (train)",
        "app in (x, train)", "tier notin (b,c)", "!old", "old!=x", "old notin (x)", "n>4", "n<6",
        "empty=", "empty in ()", "empty in (a,)", "app=train,tier=a,!old", "app,tier"}) {
    EXPECT_TRUE(Matches(yes, labels)) << yes;
  }
  for (const char* no : {"old", "app=other", "app!=train", "app in (x)", "tier notin (a)", "!app",
                         "n>5", "n<5", "app>1", "old>1", "empty=x", "app=train,tier=b"}) {
    EXPECT_FALSE(Matches(no, labels)) << no;
  }
}

TEST(LabelSelectorTest, MalformedTextIsRefusedWithAReason) {
  struct Case {
    const char* text;
    const char* reason;
  };
  for (const Case& c :
       {Case{"app===train", "found '=', expected: identifier"},
        Case{"app in train", "found 'train' expected: '('"},
        Case{"app in (a", "found '', expected: ',' or ')'"},
        Case{"=a", "found '=', expected: identifier"},
        Case{"app=train,", "found '', expected: identifier after ','"},
        Case{"app train", "found 'train', expected: in, notin, =, ==, !=, gt, lt"},
        Case{"n>x", "the value must be an integer"}, Case{"a_=b", "Invalid value: \"a_\""},
        Case{"a=-b", "Invalid value: \"-b\""}}) {
    const auto selector = LabelSelector::Parse(c.text);
    ASSERT_EQ(selector.status().code(), absl::StatusCode::kInvalidArgument) << c.text;
    EXPECT_NE(std::string(selector.status().message()).find(c.reason), std::string::npos)
        << selector.status();
  }
  EXPECT_FALSE(LabelSelector::Parse(std::string(LabelSelector::kBytesMax + 1, 'a')).ok());
}

// The expected values are from apimachinery 0.36.
TEST(LabelSelectorTest, SpacesEmptyValuesAndOperatorsAsNamesAreRead) {
  const Labels labels = {{"app", "train"}, {"in", "notin"}, {"empty", ""}};
  for (const char* yes : {"  ",
                          "\tapp\n",
                          " app  =  train ",
                          "app  in  (  train  )",
                          "app in(train)",
                          "app\tnotin\r\n(x)",
                          "in",
                          "in=notin",
                          "in in (notin)",
                          "in in (in,notin)",
                          "notin!=in",
                          "!notin",
                          "! notin",
                          "empty=,app",
                          "empty in (,)",
                          "empty in (,,)",
                          "empty notin (a)",
                          "app in (train,)",
                          "app in (,train)",
                          "old notin ()",
                          "app=train , in"}) {
    EXPECT_TRUE(Matches(yes, labels)) << yes;
  }
  for (const char* no : {"app in ()", "app in (,)", "empty notin ()", "empty notin (,a)", "!in",
                         "app=", "empty!=", "in notin (notin)"}) {
    EXPECT_FALSE(Matches(no, labels)) << no;
  }
  for (const char* bad : {"app in", "app in ((", "app in (a b)", "app in (a,b", ",app", "app,,in",
                          "app=a b", "app>", "app>=5", "!app=a", "!", "!!app", "a=b=c", "app <> 5",
                          "app in (a)in", "()", "app(a)", "a=\xff"}) {
    EXPECT_FALSE(LabelSelector::Parse(bad).ok()) << bad;
  }
}

TEST(LabelSelectorTest, RequirementsOfObjectsMeanTheSameAsText) {
  struct Case {
    const char* op;
    std::vector<std::string> values;
    const char* text;
  };
  for (const Case& one : {Case{"In", {"b", "a"}, "k in (a,b)"}, Case{"NotIn", {"a"}, "k notin (a)"},
                          Case{"Exists", {}, "k"}, Case{"DoesNotExist", {}, "!k"}}) {
    LabelSelector selector;
    ASSERT_TRUE(selector.Require("k", one.op, one.values).ok()) << one.op;
    for (const Labels& labels : {Labels{}, Labels{{"k", "a"}}, Labels{{"k", "b"}},
                                 Labels{{"k", "c"}}, Labels{{"other", "a"}}}) {
      const bool matches = selector.Matches([&](std::string_view key) {
        const auto found = labels.find(key);
        return found == labels.end() ? std::nullopt
                                     : std::optional<std::string_view>(found->second);
      });
      EXPECT_EQ(matches, Matches(one.text, labels)) << one.text;
    }
  }
}

TEST(LabelSelectorTest, ARequirementThatKubernetesRefusesChangesNothing) {
  LabelSelector selector;
  const auto why = [&](std::string_view key, std::string_view op, std::vector<std::string> values) {
    return std::string(Message(selector.Require(key, op, std::move(values))));
  };
  EXPECT_EQ(why("k", "Gt", {"1"}),
            "operator: Invalid value: \"Gt\": must be In, NotIn, Exists or DoesNotExist");
  EXPECT_EQ(why("k", "In", {}), "values: must be given with the operator In");
  EXPECT_EQ(why("k", "Exists", {"1"}), "values: must not be given with the operator Exists");
  EXPECT_EQ(why("a b", "Exists", {}).substr(0, 26), "key: Invalid value: \"a b\":");
  // As text the value would be a second requirement.
  EXPECT_EQ(why("k", "In", {"a", "x),b in (y"}).substr(0, 36),
            "values: Invalid value: \"x),b in (y\":");
  EXPECT_TRUE(selector.empty());
}

TEST(LabelSelectorTest, SetsAgreeWithABruteForceReadingOfRandomLabels) {
  Rng rng(11);
  const std::vector<std::string> values = {"", "a", "b", "c"};
  for (int i = 0; i < 500; ++i) {
    Labels labels;
    for (const char* key : {"x", "y"}) {
      if (rng.Chance(2, 3)) labels[key] = values[rng.Below(4)];
    }
    const std::string& one = values[rng.Below(4)];
    const std::string& two = values[rng.Below(4)];
    const auto x = labels.find("x");
    const bool has = x != labels.end();
    const bool listed = has && (x->second == one || x->second == two);
    EXPECT_EQ(Matches(fmt::format("x in ({},{})", one, two), labels), listed);
    EXPECT_EQ(Matches(fmt::format("x notin ({},{})", one, two), labels), !listed);
    EXPECT_EQ(Matches("x=" + one + ",y", labels), has && x->second == one && labels.contains("y"));
  }
}

TEST(FieldSelectorTest, IsReadIntoTerms) {
  EXPECT_EQ(
      *ParseFieldSelector("metadata.name=a,status.phase!=Failed,x==y"),
      (std::vector<FieldTerm>{
          {"metadata.name", "a", true}, {"status.phase", "Failed", false}, {"x", "y", true}}));
  EXPECT_EQ(*ParseFieldSelector("a=b\\,c\\=d\\\\"),
            (std::vector<FieldTerm>{{"a", "b,c=d\\", true}}));
  EXPECT_TRUE(ParseFieldSelector("")->empty());
  EXPECT_EQ(*ParseFieldSelector("spec.nodeName="),
            (std::vector<FieldTerm>{{"spec.nodeName", "", true}}));
  EXPECT_EQ(*ParseFieldSelector(",a!b=c,,d!!=e,"),
            (std::vector<FieldTerm>{{"a!b", "c", true}, {"d!", "e", false}}));
}

TEST(FieldSelectorTest, OtherTextIsRefused) {
  EXPECT_EQ(ParseFieldSelector("abc").status().message(),
            "invalid selector: 'abc'; can't understand 'abc'");
  EXPECT_FALSE(ParseFieldSelector("a=b\\x").ok());
  EXPECT_FALSE(ParseFieldSelector("a=b=c").ok());
  EXPECT_FALSE(ParseFieldSelector("a!b").ok());
}

}  // namespace
}  // namespace tahoma::kube
