#include "lib/base/text_order.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>

#include "lib/base/rng.h"

namespace tahoma {
namespace {

// Few different bytes, so that texts often share their beginning; with zeros, and some above ASCII.
std::string RandomText(Rng& rng) {
  constexpr std::string_view kBytes{"ab\0\xff", 4};
  std::string text;
  for (std::uint64_t left = rng.Below(20); left > 0; --left) text += kBytes[rng.Below(4)];
  return text;
}

TEST(TextOrderTest, IsTheOrderOfTheLibrary) {
  Rng rng(3);
  for (int round = 0; round < 200'000; ++round) {
    const std::string a = RandomText(rng);
    std::string b = RandomText(rng);
    if (rng.Below(2) == 0) b = a.substr(0, rng.Below(a.size() + 1)) + b;
    ASSERT_EQ(TextLess{}(a, b), std::less<>{}(a, b)) << a << " and " << b;
    ASSERT_FALSE(TextLess{}(a, a));
  }
}

TEST(TextOrderTest, AMapFindsWhatItHolds) {
  std::map<std::string, int, TextLess> map;
  for (int i = 0; i < 1000; ++i) map["field-" + std::to_string(i)] = i;
  for (int i = 0; i < 1000; ++i) {
    EXPECT_EQ(map.find(std::string_view("field-" + std::to_string(i)))->second, i);
  }
  EXPECT_EQ(map.find(std::string_view("field-")), map.end());
}

}  // namespace
}  // namespace tahoma
