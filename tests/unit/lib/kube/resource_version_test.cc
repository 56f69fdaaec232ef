// The order of resourceVersions against that of numbers, and when an older list is believed.

#include "lib/kube/resource_version.h"

#include <gtest/gtest.h>

#include <string>

#include "lib/base/rng.h"

namespace tahoma::kube {
namespace {

using Verdict = NewestVersion::Verdict;

TEST(ResourceVersionTest, IsOrderedAsANumberAndNotAsText) {
  EXPECT_TRUE(IsOlderVersion("99", "100"));
  EXPECT_FALSE(IsOlderVersion("100", "99"));
  EXPECT_FALSE(IsOlderVersion("100", "100"));
  EXPECT_TRUE(IsOlderVersion("18446744073709551615", "18446744073709551616")) << "any length";
  Rng rng(1);
  for (int i = 0; i < 5000; ++i) {
    const std::uint64_t a = 1 + (rng.Next() >> rng.Below(64)),
                        b = 1 + (rng.Next() >> rng.Below(64));
    EXPECT_EQ(IsOlderVersion(std::to_string(a), std::to_string(b)), a < b) << a << " " << b;
  }
}

TEST(ResourceVersionTest, WhatIsNoNumberHasNoOrder) {
  for (const char* odd : {"", "0", "01", "-1", "1a", "a", "1.5", " 1", "\xd9\xa1"}) {
    EXPECT_FALSE(IsOlderVersion(odd, "5")) << odd;
    EXPECT_FALSE(IsOlderVersion("5", odd)) << odd;
  }
}

TEST(NewestVersionTest, ListsMayOnlyGoForward) {
  NewestVersion newest;
  EXPECT_EQ(newest.Admit("5"), Verdict::kTake);
  newest.See("9");
  newest.See("7");
  EXPECT_EQ(newest.version(), "9");
  EXPECT_EQ(newest.Admit("8"), Verdict::kRefuse);
  EXPECT_EQ(newest.Admit("9"), Verdict::kTake);
  EXPECT_EQ(newest.Admit("10"), Verdict::kTake);
  EXPECT_EQ(newest.version(), "10");
}

TEST(NewestVersionTest, AListThatStaysOldIsBelievedInTheEnd) {
  NewestVersion newest;
  newest.See("100");
  for (int i = 0; i < NewestVersion::kRefusalsMax; ++i) {
    EXPECT_EQ(newest.Admit("3"), Verdict::kRefuse) << i;
  }
  EXPECT_EQ(newest.Admit("4"), Verdict::kHistoryLost);
  EXPECT_EQ(newest.Admit("4"), Verdict::kTake) << "the next page";
  EXPECT_EQ(newest.Admit("3"), Verdict::kRefuse) << "the count began anew";
}

TEST(NewestVersionTest, RefusalsCountOnlyInARow) {
  NewestVersion newest;
  newest.See("100");
  for (int i = 0; i < 5 * NewestVersion::kRefusalsMax; ++i) {
    EXPECT_EQ(newest.Admit("3"), Verdict::kRefuse) << i;
    if (i % NewestVersion::kRefusalsMax == 3) {
      EXPECT_EQ(newest.Admit("101"), Verdict::kTake);
    }
  }
}

TEST(NewestVersionTest, VersionsWithoutAnOrderAreTakenAsTheyCome) {
  NewestVersion newest;
  for (const char* version : {"b", "a", "7", "c", "3"}) {
    EXPECT_EQ(newest.Admit(version), Verdict::kTake) << version;
  }
}

}  // namespace
}  // namespace tahoma::kube
