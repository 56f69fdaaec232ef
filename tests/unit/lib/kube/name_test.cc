// Names: what Kubernetes takes and refuses.

#include "lib/kube/name.h"

#include <gtest/gtest.h>

#include <string>

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
  EXPECT_NE(WrongDns1123Label("a.b"), std::nullopt);
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

TEST(NameTest, LabelValuesMayBeEmpty) {
  EXPECT_EQ(WrongLabelValue(""), std::nullopt);
  EXPECT_EQ(WrongLabelValue("My_value.1"), std::nullopt);
  EXPECT_TRUE(WrongLabelValue("a b")->starts_with("a valid label must be an empty string"));
  EXPECT_EQ(*WrongLabelValue(std::string(64, 'a')), "must be no more than 63 bytes");
}

}  // namespace
}  // namespace tahoma::kube
