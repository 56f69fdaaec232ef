// Names: what Kubernetes takes and refuses.

#include "lib/kube/name.h"

#include <gtest/gtest.h>

#include <regex>
#include <string>

#include "lib/base/rng.h"

namespace tahoma::kube {
namespace {

TEST(NameTest, SubdomainsAreLowerCaseLabelsJoinedByDots) {
  for (const char* good : {"a", "1", "my-name", "example.com", "a.b.c", "0-0"}) {
    EXPECT_EQ(WrongDns1123Subdomain(good), std::nullopt) << good;
  }
  for (const char* bad : {"", "-a", "a-", "A", "a_b", "a..b", ".a", "a.", "a b", "a/b", "ä"}) {
    EXPECT_NE(WrongDns1123Subdomain(bad), std::nullopt) << bad;
  }
  EXPECT_EQ(WrongDns1123Subdomain(std::string(253, 'a')), std::nullopt);
  EXPECT_EQ(*WrongDns1123Subdomain(std::string(254, 'a')), "must be no more than 253 characters");
}

TEST(NameTest, LabelsHaveNoDotsAndAtMost63Characters) {
  EXPECT_EQ(WrongDns1123Label("a-1"), std::nullopt);
  EXPECT_EQ(*WrongDns1123Label("a.b"), "must not contain dots");
  EXPECT_EQ(WrongDns1123Label(std::string(63, 'a')), std::nullopt);
  EXPECT_EQ(*WrongDns1123Label(std::string(64, 'a')), "must be no more than 63 characters");
}

TEST(NameTest, QualifiedNamesMayHaveAPrefix) {
  for (const char* good : {"a", "A_b.c", "example.com/Name", "tahoma.dev/gang", "1"}) {
    EXPECT_EQ(WrongQualifiedName(good), std::nullopt) << good;
  }
  EXPECT_EQ(*WrongQualifiedName("/a"), "prefix part must be non-empty");
  EXPECT_EQ(*WrongQualifiedName("example.com/"), "name part must be non-empty");
  EXPECT_TRUE(WrongQualifiedName("Example.com/a")->starts_with("prefix part a lowercase RFC 1123"));
  EXPECT_TRUE(WrongQualifiedName("a/b/c")->starts_with("a valid label key must consist of"));
  EXPECT_NE(WrongQualifiedName("-a"), std::nullopt);
  EXPECT_EQ(*WrongQualifiedName(std::string(64, 'a')), "name part must be no more than 63 bytes");
}

// The expressions that Kubernetes names in its messages, as the oracle.
TEST(NameTest, AgreesWithKubernetesExpressionsOnRandomText) {
  const std::string label = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
  const std::string qualified = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
  const std::regex is_label(label), is_subdomain(label + "(\\." + label + ")*"),
      is_value("(" + qualified + ")?"), is_name("(" + label + "(\\." + label + ")*/)?" + qualified);
  Rng rng(3);
  constexpr std::string_view kCharacters = "aZ09-._/ \n\x80";
  for (int i = 0; i < 20'000; ++i) {
    std::string text;
    for (std::uint64_t left = rng.Below(7); left > 0; --left) {
      text += kCharacters[rng.Below(rng.Chance(1, 8) ? kCharacters.size() : 8)];
    }
    EXPECT_EQ(!WrongDns1123Label(text), std::regex_match(text, is_label)) << text;
    EXPECT_EQ(!WrongDns1123Subdomain(text), std::regex_match(text, is_subdomain)) << text;
    EXPECT_EQ(!WrongLabelValue(text), std::regex_match(text, is_value)) << text;
    EXPECT_EQ(!WrongQualifiedName(text), std::regex_match(text, is_name)) << text;
  }
}

TEST(NameTest, LengthsAreCountedInBytesAndOfEachPart) {
  const std::string prefix(253, 'a');
  EXPECT_EQ(WrongQualifiedName(prefix + "/" + std::string(63, 'b')), std::nullopt);
  EXPECT_NE(WrongQualifiedName(prefix + "a/b"), std::nullopt);
  EXPECT_EQ(WrongDns1123Subdomain(std::string(100, 'a') + ".b"), std::nullopt)
      << "a label of a subdomain may be longer than 63";
}

TEST(NameTest, LabelValuesMayBeEmpty) {
  EXPECT_EQ(WrongLabelValue(""), std::nullopt);
  EXPECT_EQ(WrongLabelValue("My_value.1"), std::nullopt);
  EXPECT_TRUE(WrongLabelValue("a b")->starts_with("a valid label must be an empty string"));
  EXPECT_EQ(*WrongLabelValue(std::string(64, 'a')), "must be no more than 63 bytes");
}

}  // namespace
}  // namespace tahoma::kube
