#include "controller/access/access_keys.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "lib/base/status.h"

namespace tahoma::controller {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string FileOf(const std::string& entries) {
  return "apiVersion: tahoma.dev/v1alpha1\nkind: AccessKeyFile\naccessKeys:\n" + entries;
}

constexpr char kAna[] =
    "- {accessKeyId: AKIAEXAMPLE000000001, secretAccessKey: wJalrXUtnFEMI/K7MDENG, name: ana,"
    " namespace: team-a, account: \"111122223333\"}\n";

TEST(AccessKeysTest, AFileNamesCallers) {
  const auto keys = AccessKeys::Parse(
      FileOf(std::string(kAna) +
             "- {accessKeyId: AKIAEXAMPLE000000002, secretAccessKey: 0123456789abcdef, name: bob, "
             "account: \"000000000001\", role: view}\n"),
      "keys.yaml");
  ASSERT_TRUE(keys.ok()) << keys.status();
  const AccessKey* ana = keys->Find("AKIAEXAMPLE000000001");
  ASSERT_NE(ana, nullptr);
  EXPECT_EQ(ana->secret, "wJalrXUtnFEMI/K7MDENG");
  EXPECT_EQ(ana->name, "ana");
  EXPECT_EQ(ana->name_space, "team-a");
  EXPECT_EQ(ana->account, "111122223333");
  EXPECT_TRUE(ana->may_buy);
  EXPECT_FALSE(keys->Find("AKIAEXAMPLE000000002")->may_buy);
  EXPECT_EQ(keys->Find("AKIAEXAMPLE000000002")->name_space, "default");
  EXPECT_EQ(keys->Find("AKIAEXAMPLE00000000"), nullptr);
}

TEST(AccessKeysTest, WhatIsWrongIsSaidWithoutTheSecret) {
  struct Case {
    std::string entries, reason;
  };
  const std::string rest = ", secretAccessKey: 0123456789abcdef, name: bob, account: ";
  for (const Case& c : std::vector<Case>{
           {"", "0 access keys"},
           {"- {accessKeyId: short" + rest + "\"000000000001\"}\n", "accessKeyId must have 16"},
           {"- {accessKeyId: AKIA-EXAMPLE-0000" + rest + "\"000000000001\"}\n",
            "accessKeyId must have 16"},
           {"- {accessKeyId: AKIAEXAMPLE000000002" + rest + "\"000000000001\", namespace: A_b}\n",
            "namespace is \"A_b\": "},
           {"- {accessKeyId: AKIAEXAMPLE000000002" + rest + "\"1\"}\n", "account is \"1\""},
           {"- {accessKeyId: AKIAEXAMPLE000000002" + rest + "\"000000000001\", role: node}\n",
            "one of admin, edit, view is right"},
           {"- {accessKeyId: AKIAEXAMPLE000000002" + rest + "\"000000000001\", rolle: view}\n",
            "rolle"},
           {"- {accessKeyId: AKIAEXAMPLE000000002, secretAccessKey: hunter2, name: bob, account: "
            "\"000000000001\"}\n",
            "secretAccessKey must have 16 to 256"},
           {"- {accessKeyId: AKIAEXAMPLE000000002, secretAccessKey: 0123456789abcdef, account: "
            "\"000000000001\"}\n",
            "name must have"},
           {std::string(kAna) + kAna, "is there twice"},
       }) {
    const auto keys = AccessKeys::Parse(FileOf(c.entries), "keys.yaml");
    ASSERT_FALSE(keys.ok()) << c.entries;
    const std::string message(Message(keys.status()));
    EXPECT_THAT(message, HasSubstr(c.reason));
    EXPECT_THAT(message, HasSubstr("keys.yaml"));
    EXPECT_THAT(message, Not(HasSubstr("hunter2")));
  }
}

}  // namespace
}  // namespace tahoma::controller
