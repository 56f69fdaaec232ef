// URLs: what is encoded is decoded, and what hides something is refused.

#include "lib/kube/url.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "lib/base/rng.h"

namespace tahoma::kube {
namespace {

TEST(UrlTest, EveryByteSurvivesEncoding) {
  std::string all;
  for (int c = 0; c < 256; ++c) all += static_cast<char>(c);
  EXPECT_EQ(*PercentDecode(PercentEncode(all)), all);
  EXPECT_EQ(PercentEncode("a-b_c.d~e/ ="), "a-b_c.d~e%2F%20%3D");
}

TEST(UrlTest, BrokenEscapesAreRefused) {
  for (const char* text : {"%", "%4", "a%zz", "%-1"})
    EXPECT_FALSE(PercentDecode(text).ok()) << text;
}

TEST(UrlTest, TargetsAreSplitIntoPathAndQuery) {
  const Target target = *ParseTarget("/api/v1/pods?labelSelector=a%3Db&watch=&flag&x=1+2&x=3");
  EXPECT_EQ(target.path, "/api/v1/pods");
  EXPECT_EQ(
      target.query,
      (Query{{"labelSelector", "a=b"}, {"watch", ""}, {"flag", ""}, {"x", "1 2"}, {"x", "3"}}));
  EXPECT_EQ(Find(target.query, "x"), "1 2");
  EXPECT_EQ(Find(target.query, "y"), std::nullopt);
  EXPECT_FALSE(ParseTarget("api").ok());
  EXPECT_FALSE(ParseTarget("/a?b=%z").ok());
}

TEST(UrlTest, QueriesAreReadBackAsTheyWere) {
  const Query query = {{"a b", "c&d"}, {"e", ""}, {"f", "=?+%"}};
  EXPECT_EQ(ParseTarget("/?" + EncodeQuery(query))->query, query);
}

TEST(UrlTest, RandomQueriesAreReadBackAsTheyWere) {
  Rng rng(9);
  const auto text = [&](std::uint64_t least) {
    std::string bytes;
    for (std::uint64_t left = least + rng.Below(8); left > 0; --left) {
      bytes += static_cast<char>(rng.Below(256));
    }
    return bytes;
  };
  for (int i = 0; i < 3000; ++i) {
    Query query;
    for (std::uint64_t left = rng.Below(4); left > 0; --left) query.emplace_back(text(1), text(0));
    EXPECT_EQ(ParseTarget("/p?" + EncodeQuery(query))->query, query);
    const std::string segment = text(1);
    EXPECT_EQ(*PercentDecode(PercentEncode(segment)), segment);
  }
}

TEST(UrlTest, EscapesAreReadInEitherCaseAndPlusIsASpaceOnlyInQueries) {
  EXPECT_EQ(*PercentDecode("%c3%A4+"), "\xc3\xa4+");
  EXPECT_EQ(ParseTarget("/a+b?c=%2B+%2b")->query, (Query{{"c", "+ +"}}));
  EXPECT_EQ(ParseTarget("/a+b?c")->path, "/a+b");
  EXPECT_EQ(ParseTarget("/?=v&&a==b&?")->query, (Query{{"", "v"}, {"a", "=b"}, {"?", ""}}));
  EXPECT_EQ(*SplitPath("/a+b/%7Ec"), (std::vector<std::string>{"a+b", "~c"}));
}

TEST(UrlTest, PathsThatHideSomethingAreRefused) {
  EXPECT_EQ(*SplitPath("/api/v1/namespaces/my%20ns/"),
            (std::vector<std::string>{"api", "v1", "namespaces", "my ns"}));
  EXPECT_TRUE(SplitPath("/")->empty());
  for (const char* path :
       {"/a//b", "/a/../b", "/a/./b", "/a%2Fb", "/a/%2e%2e/b", "/a%00", "/a%0Ab", "/%"}) {
    EXPECT_FALSE(SplitPath(path).ok()) << path;
  }
}

}  // namespace
}  // namespace tahoma::kube
