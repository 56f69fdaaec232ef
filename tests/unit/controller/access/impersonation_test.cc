// The users and rights that the headers Impersonate-* ask for. The expected ones are those that
// k8s.io/apiserver's filter makes of the same headers.

#include "controller/access/impersonation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "lib/base/status.h"

namespace tahoma::controller {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// "verb group/resource namespace/name" of each right.
std::vector<std::string> RightsOf(const Impersonation& wanted) {
  std::vector<std::string> rights;
  for (const Attributes& right : wanted.rights) {
    rights.push_back(fmt::format("{} {}/{} {}/{}", right.verb, right.group, right.resource,
                                 right.name_space, right.name));
  }
  return rights;
}

Impersonation Wanted(const rest::Headers& headers) {
  auto wanted = ImpersonationOf(headers);
  EXPECT_TRUE(wanted.ok() && *wanted) << wanted.status();
  return wanted.ok() && *wanted ? **wanted : Impersonation{};
}

TEST(ImpersonationTest, WithoutSuchHeadersNothingIsAskedFor) {
  const auto wanted = ImpersonationOf({{"Authorization", "Bearer x"}, {"Impersonator", "x"}});
  ASSERT_TRUE(wanted.ok());
  EXPECT_FALSE(wanted->has_value());
}

TEST(ImpersonationTest, AUserIsOneOfTheAuthenticated) {
  const Impersonation wanted = Wanted({{"Impersonate-User", "jane"}});
  EXPECT_EQ(wanted.user.name, "jane");
  EXPECT_THAT(wanted.user.groups, ElementsAre("system:authenticated"));
  EXPECT_THAT(RightsOf(wanted), ElementsAre("impersonate /users /jane"));
}

TEST(ImpersonationTest, EachGroupAndTheUidNeedARightOfTheirOwn) {
  const Impersonation wanted = Wanted({{"impersonate-group", "a"},
                                       {"IMPERSONATE-USER", "Jane Doe"},
                                       {"Impersonate-Group", "system:masters"},
                                       {"Impersonate-Uid", "7"}});
  EXPECT_THAT(wanted.user.groups, ElementsAre("a", "system:masters", "system:authenticated"));
  EXPECT_EQ(wanted.user.uid, "7");
  EXPECT_THAT(RightsOf(wanted),
              ElementsAre("impersonate /groups /a", "impersonate /users /Jane Doe",
                          "impersonate /groups /system:masters",
                          "impersonate authentication.k8s.io/uids /7"));
}

TEST(ImpersonationTest, AServiceAccountIsAskedForAsSuch) {
  const Impersonation wanted = Wanted({{"Impersonate-User", "system:serviceaccount:team-a:bot"}});
  EXPECT_THAT(wanted.user.groups,
              ElementsAre("system:serviceaccounts", "system:serviceaccounts:team-a",
                          "system:authenticated"));
  EXPECT_THAT(RightsOf(wanted), ElementsAre("impersonate /serviceaccounts team-a/bot"));
  const Impersonation in_groups = Wanted(
      {{"Impersonate-User", "system:serviceaccount:team-a:bot"}, {"Impersonate-Group", "only"}});
  EXPECT_THAT(in_groups.user.groups, ElementsAre("only", "system:authenticated"));
}

TEST(ImpersonationTest, NobodyIsNotAuthenticated) {
  EXPECT_THAT(Wanted({{"Impersonate-User", "system:anonymous"}}).user.groups,
              ElementsAre("system:unauthenticated"));
}

TEST(ImpersonationTest, HeadersThatCannotBeCarriedOutAreRefusedAndNeverPassedOver) {
  struct Wrong {
    rest::Headers headers;
    const char* why;
  };
  const rest::Headers many(65, {"Impersonate-Group", "g"});
  for (const Wrong& wrong : std::vector<Wrong>{
           {{{"Impersonate-Group", "system:masters"}}, "without Impersonate-User"},
           {{{"Impersonate-Uid", "1"}}, "without Impersonate-User"},
           {{{"Impersonate-User", ""}}, "must have 1 to 253 bytes"},
           {{{"Impersonate-User", "a\nb"}}, "without control characters"},
           {{{"Impersonate-User", "\xff"}}, "of UTF-8"},
           {{{"Impersonate-User", std::string(254, 'a')}}, "must have 1 to 253 bytes"},
           {{{"Impersonate-User", "a"}, {"Impersonate-User", "b"}}, "twice"},
           {{{"Impersonate-User", "a"}, {"Impersonate-Extra-scopes", "x"}}, "no header"},
           {{{"Impersonate-User", "a"}, {"Impersonate-", "x"}}, "no header"},
           {many, "more than 64 headers"}}) {
    const auto wanted = ImpersonationOf(wrong.headers);
    EXPECT_EQ(wanted.status().code(), absl::StatusCode::kInvalidArgument) << wrong.why;
    EXPECT_THAT(std::string(Message(wanted.status())), HasSubstr(wrong.why));
  }
}

}  // namespace
}  // namespace tahoma::controller
