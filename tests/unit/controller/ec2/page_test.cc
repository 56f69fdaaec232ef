#include "controller/ec2/page.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "lib/base/digest.h"

namespace tahoma::controller::ec2 {
namespace {

// The pages of a list, each of so many rows.
std::vector<std::vector<int>> PagesOf(const std::map<std::string, int>& list, std::size_t most) {
  std::vector<std::vector<int>> pages;
  PageRequest request{.rows_most = most, .binding = Sha256("a")};
  for (;;) {
    Page<int> page(request);
    for (const auto& [key, row] : list) {
      if (!page.Offer(key, row)) break;
    }
    pages.push_back(page.rows());
    if (page.next_token().empty()) return pages;
    request.after = *KeyOfToken(page.next_token(), request.binding);
  }
}

TEST(PageTest, PagesTogetherAreTheList) {
  const std::map<std::string, int> list = {{"a", 1}, {"b", 2}, {"c", 3}, {"d", 4}};
  using Pages = std::vector<std::vector<int>>;
  EXPECT_EQ(PagesOf(list, 1), (Pages{{1}, {2}, {3}, {4}}));
  EXPECT_EQ(PagesOf(list, 2), (Pages{{1, 2}, {3, 4}})) << "and no empty one at the end";
  EXPECT_EQ(PagesOf(list, 3), (Pages{{1, 2, 3}, {4}}));
  EXPECT_EQ(PagesOf(list, 1000), (Pages{{1, 2, 3, 4}}));
  EXPECT_EQ(PagesOf({}, 1), (Pages{{}}));
}

TEST(PageTest, RowsThatComeOrGoMakeNoRowAppearTwice) {
  PageRequest request{.rows_most = 2};
  Page<int> first(request);
  first.Offer("a", 1);
  first.Offer("c", 3);
  EXPECT_FALSE(first.Offer("d", 4));
  request.after = *KeyOfToken(first.next_token(), request.binding);
  Page<int> second(request);
  EXPECT_TRUE(second.Offer("b", 2));
  EXPECT_TRUE(second.Offer("d", 4));
  EXPECT_EQ(second.rows(), std::vector<int>{4}) << "c has gone, b is new";
}

TEST(PageTest, ATokenIsGoodForOneRequestOnly) {
  const std::string token = MakeToken("cb-1", Sha256("a"));
  EXPECT_EQ(*KeyOfToken(token, Sha256("a")), "cb-1");
  EXPECT_EQ(RefusalOf(KeyOfToken(token, Sha256("b")).status()).code, "InvalidPaginationToken");
}

TEST(PageTest, ATokenThatWasChangedIsRefused) {
  const std::string token = MakeToken("cb-1", Sha256("a"));
  for (std::size_t i = 0; i < token.size(); ++i) {
    std::string changed = token;
    changed[i] = changed[i] == '0' ? '1' : '0';
    EXPECT_FALSE(KeyOfToken(changed, Sha256("a")).ok()) << i;
    EXPECT_FALSE(KeyOfToken(token.substr(0, i), Sha256("a")).ok()) << i;
  }
  EXPECT_FALSE(KeyOfToken(std::string(100'000, 'a'), Sha256("a")).ok());
  EXPECT_FALSE(KeyOfToken("next", Sha256("a")).ok());
}

struct PageRead {
  PageRequest page;
  absl::Status status;
};

PageRead ReadOf(const std::string& form) {
  const auto parameters = Parameters::Parse(form);
  Reader reader(*parameters);
  PageRequest page = ReadPage(reader, Sha256("a"), 20, 100);
  return {.page = std::move(page), .status = reader.Finish()};
}

TEST(PageTest, MaxResultsHasBounds) {
  EXPECT_EQ(ReadOf("").page.rows_most, 20U);
  EXPECT_EQ(ReadOf("MaxResults=1").page.rows_most, 1U);
  EXPECT_EQ(ReadOf("MaxResults=100").page.rows_most, 100U);
  for (const std::string wrong : {"0", "101", "-1", "x"}) {
    EXPECT_EQ(RefusalOf(ReadOf("MaxResults=" + wrong).status).code, "InvalidParameterValue");
  }
  EXPECT_EQ(RefusalOf(ReadOf("NextToken=x").status).code, "InvalidPaginationToken");
  EXPECT_EQ(ReadOf("NextToken=" + MakeToken("k", Sha256("a"))).page.after, "k");
}

}  // namespace
}  // namespace tahoma::controller::ec2
