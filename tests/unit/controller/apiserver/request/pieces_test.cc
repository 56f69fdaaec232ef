#include "controller/apiserver/request/pieces.h"

#include <gtest/gtest.h>

namespace tahoma::controller::apiserver {
namespace {

TEST(PiecesTest, AreOneTextInPartsOfAnySize) {
  const auto shared = std::make_shared<const std::string>("shared text");
  for (const std::size_t most : {1U, 3U, 4U, 100U}) {
    Pieces pieces;
    pieces.Add("own, ");
    pieces.Share(shared, *shared);
    pieces.Share(nullptr, ".");
    pieces.Add("");
    Pieces all;
    all.Append(std::move(pieces));
    std::string text;
    for (std::size_t had = 0; !all.empty(); had = text.size()) {
      all.DrainInto(text, most);
      EXPECT_GT(text.size(), had);
      EXPECT_LT(text.size() - had, 2 * most);
    }
    EXPECT_EQ(text, "own, shared text.") << most;
  }
}

TEST(PiecesTest, SharedTextIsNotCountedAndIsReleasedOnceTaken) {
  auto shared = std::make_shared<const std::string>(1 << 20, 'x');
  const std::weak_ptr<const std::string> seen = shared;
  Pieces pieces;
  pieces.Share(shared, *shared);
  shared.reset();
  EXPECT_EQ(pieces.size(), 1U << 20U);
  EXPECT_LT(pieces.own_bytes(), 100U);
  std::string text;
  pieces.DrainInto(text, 100);
  EXPECT_EQ(text, std::string(100, 'x'));
  EXPECT_FALSE(seen.expired());
  EXPECT_EQ(std::move(pieces).Text().size(), (1U << 20U) - 100);
  EXPECT_TRUE(seen.expired());
}

}  // namespace
}  // namespace tahoma::controller::apiserver
