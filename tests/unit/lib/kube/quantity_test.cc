// Quantities: canonical forms as Kubernetes prints them, and arithmetic against whole numbers.

#include "lib/kube/quantity.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "lib/base/rng.h"

namespace tahoma::kube {
namespace {

TEST(QuantityTest, IsPrintedInItsCanonicalForm) {
  struct Case {
    const char* text;
    const char* canonical;
  };
  for (const Case& c : {Case{"0", "0"},
                        Case{"0n", "0"},
                        Case{"-0", "0"},
                        Case{"1", "1"},
                        Case{"+1", "1"},
                        Case{"1000", "1k"},
                        Case{"1500", "1500"},
                        Case{"1.5k", "1500"},
                        Case{"100m", "100m"},
                        Case{"1000m", "1"},
                        Case{"0.5", "500m"},
                        Case{".5", "500m"},
                        Case{"5.", "5"},
                        Case{"1Ki", "1Ki"},
                        Case{"1024Ki", "1Mi"},
                        Case{"1.5Gi", "1536Mi"},
                        Case{"0.5Ki", "512"},
                        Case{"96Gi", "96Gi"},
                        Case{"1e3", "1e3"},
                        Case{"12e6", "12e6"},
                        Case{"1E", "1E"},
                        Case{"1E3", "1e3"},
                        Case{"1e-3", "1e-3"},
                        Case{"-1.5", "-1500m"},
                        Case{"1u", "1u"},
                        Case{"1500u", "1500u"},
                        Case{"1n", "1n"},
                        Case{"0.1n", "1n"},
                        Case{"-0.1n", "-1n"},
                        Case{"9223372036854775807", "9223372036854775807"},
                        Case{"99999999999999999999", "9223372036854775807"},
                        Case{"100E", "9223372036854775807"},
                        Case{"0.00000000000000000000000000000000000000001", "1n"}}) {
    const auto quantity = Quantity::Parse(c.text);
    ASSERT_TRUE(quantity.ok()) << c.text;
    EXPECT_EQ(quantity->ToString(), c.canonical) << c.text;
    EXPECT_EQ(*Quantity::Parse(quantity->ToString()), *quantity) << c.text;
  }
}

// The expected values are those of apimachinery 0.36.
TEST(QuantityTest, ABinaryNumberWithAFractionLosesNothing) {
  for (const auto& [text, canonical] :
       std::vector<std::pair<std::string, std::string>>{{"1.0005Ki", "1024512m"},
                                                        {"-1.0005Ki", "-1024512m"},
                                                        {"1.1Mi", "1153433600m"},
                                                        {"1.5Ki", "1536"},
                                                        {"0.1Ki", "102400m"},
                                                        {"1.0000000001Gi", "1073741824107374183n"},
                                                        {"7.5Gi", "7680Mi"},
                                                        {"1.5Ei", "1536Pi"}}) {
    const Quantity quantity = *Quantity::Parse(text);
    EXPECT_EQ(quantity.ToString(), canonical) << text;
    EXPECT_EQ(*Quantity::Parse(quantity.ToString()), quantity) << text;
  }
}

TEST(QuantityTest, AnExponentHasOneSign) {
  EXPECT_EQ(Quantity::Parse("1e+3")->ToString(), "1e3");
  for (const char* text : {"1e+-3", "1e-+3", "1e--3", "1e++3", "1e+", "1e-", "1E+-3", "1e 3"}) {
    EXPECT_FALSE(Quantity::Parse(text).ok()) << text;
  }
}

TEST(QuantityTest, OtherTextIsRefused) {
  for (const char* text : {"", " ", "1 ", " 1", "Gi", "1gi", "1KI", "1.2.3", "--1", "1e", "1e1.5",
                           "0x10", "1K", "NaN", "1e99999", "e3", "-", ".", "1kk"}) {
    EXPECT_EQ(Quantity::Parse(text).status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
  EXPECT_FALSE(Quantity::Parse(std::string(1000, '1')).ok());
}

TEST(QuantityTest, ComparesByValueInAnyForm) {
  EXPECT_EQ(*Quantity::Parse("1Ki"), *Quantity::Parse("1024"));
  EXPECT_EQ(*Quantity::Parse("1k"), *Quantity::Parse("1e3"));
  EXPECT_GT(*Quantity::Parse("96Gi"), *Quantity::Parse("100e9"));
  EXPECT_LT(*Quantity::Parse("-1"), *Quantity::Parse("1m"));
}

TEST(QuantityTest, RoundsUpToIntegersAsKubernetesDoes) {
  EXPECT_EQ(Quantity::Parse("1.1")->Value(), 2);
  EXPECT_EQ(Quantity::Parse("-1.1")->Value(), -2);
  EXPECT_EQ(Quantity::Parse("1.0001")->MilliValue(), 1001);
  EXPECT_FALSE(Quantity::Parse("1.1")->IsInteger());
  EXPECT_TRUE(Quantity::Parse("1100m")->IsInteger() == false);
  EXPECT_TRUE(Quantity::Parse("2000m")->IsInteger());
  EXPECT_DOUBLE_EQ(Quantity::Parse("1500m")->AsDouble(), 1.5);
  EXPECT_EQ(Quantity::Parse("-3")->Sign(), -1);
}

TEST(QuantityTest, AddsAndSubtractsExactlyAndKeepsTheLeftForm) {
  EXPECT_EQ((*Quantity::Parse("96Gi") + *Quantity::Parse("1Gi")).ToString(), "97Gi");
  EXPECT_EQ((*Quantity::Parse("0") + *Quantity::Parse("1Gi")).ToString(), "1Gi");
  EXPECT_EQ((*Quantity::Parse("1") - *Quantity::Parse("100m")).ToString(), "900m");
  EXPECT_EQ((*Quantity::Parse("8E") + *Quantity::Parse("8E")).Value(), INT64_MAX);
}

TEST(QuantityTest, AgreesWithIntegerArithmeticOnRandomNumbers) {
  Rng rng(5);
  for (int i = 0; i < 2000; ++i) {
    const auto a = static_cast<std::int64_t>(rng.Next() >> 3U) - (std::int64_t{1} << 60);
    const auto b = static_cast<std::int64_t>(rng.Next() >> 3U) - (std::int64_t{1} << 60);
    const Quantity qa = *Quantity::Parse(std::to_string(a));
    const Quantity qb = *Quantity::Parse(std::to_string(b));
    EXPECT_EQ((qa + qb).Value(), a + b);
    EXPECT_EQ((qa - qb).Value(), a - b);
    EXPECT_EQ(qa < qb, a < b);
    EXPECT_EQ(*Quantity::Parse(qa.ToString()), qa);
  }
}

}  // namespace
}  // namespace tahoma::kube
