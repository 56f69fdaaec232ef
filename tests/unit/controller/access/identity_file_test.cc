// Tests the identity file: its meaning, and every error in it.

#include "controller/access/identity_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lib/base/status.h"

namespace tahoma::controller {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::string_view kFileHead =
    "apiVersion: tahoma.dev/v1alpha1\nkind: IdentityFile\nidentities:\n";

absl::StatusOr<std::vector<IdentityEntry>> Parse(const std::string& entries) {
  return ParseIdentityFile(std::string(kFileHead) + entries, "who.yaml");
}

TEST(IdentityFileTest, SaysWhoMayCallAndWhatEachMayDo) {
  const auto entries =
      Parse("- {name: ops, role: admin, tokenSha256: " + Sha256Hex("the-token-of-ops") + "}\n" +
            "- {name: alice, role: edit, groups: [research], namespaces: [a, b], token: "
            "abcdefghijklmnop}\n"
            "- {name: 'system:node:n1', role: node, token: qrstuvwxyz-_.~+/=1}\n"
            "- {name: bob, role: view, namespaces: ['*']}\n");
  ASSERT_TRUE(entries.ok()) << entries.status();
  ASSERT_EQ(entries->size(), 4U);
  EXPECT_EQ((*entries)[0].token, Sha256("the-token-of-ops"));
  EXPECT_EQ((*entries)[0].role, Role::kAdmin);
  EXPECT_EQ((*entries)[1].token, Sha256("abcdefghijklmnop"));
  EXPECT_THAT((*entries)[1].groups, ElementsAre("research"));
  EXPECT_THAT((*entries)[1].namespaces, ElementsAre("a", "b"));
  EXPECT_EQ((*entries)[2].role, Role::kNode);
  EXPECT_EQ((*entries)[3].token, std::nullopt) << "a certificate";
  EXPECT_TRUE((*entries)[3].namespaces.empty()) << "everywhere";
}

TEST(IdentityFileTest, EveryMistakeIsNamedWithItsPlaceAndNoTokenIsRepeated) {
  struct Wrong {
    std::string entries, why;
  };
  const std::vector<Wrong> cases = {
      {"- {name: a, role: root}\n", "who.yaml: identities[0] (a): role is \"root\"; one of admin"},
      {"- {name: a}\n", "role is \"\""},
      {"- {name: a, role: view, tokn: x}\n", "who.yaml:4: identities[0].tokn"},
      {"- {name: a, role: view, token: secret-short}\n", "token must have 16 to 1024 visible"},
      {"- {name: a, role: view, token: 'secret with a space in it'}\n", "token must have 16 to"},
      {"- {name: a, role: view, tokenSha256: abc}\n", "tokenSha256 must have 64 lower-case hex"},
      {"- {name: a, role: view, tokenSha256: " + std::string(64, 'G') + "}\n", "64 lower-case hex"},
      {"- {name: a, role: view, token: secret-of-some-length, tokenSha256: " +
           std::string(64, 'a') + "}\n",
       "token and tokenSha256 are both given"},
      {"- {name: a, role: view, namespaces: []}\n", "namespaces is empty; leave it out"},
      {"- {name: a, role: view, namespaces: ['*', b]}\n", "namespaces has * beside names"},
      {"- name\n", "who.yaml:4: identities[0]"},
      {"[]\n", "it names nobody"},
  };
  for (const Wrong& wrong : cases) {
    const auto entries = Parse(wrong.entries);
    ASSERT_FALSE(entries.ok()) << wrong.entries;
    EXPECT_THAT(Message(entries.status()), HasSubstr(wrong.why));
    EXPECT_THAT(Message(entries.status()), Not(HasSubstr("secret")));
  }
  EXPECT_FALSE(ParseIdentityFile("", "who.yaml").ok());
  EXPECT_FALSE(ParseIdentityFile("kind: IdentityFile\n", "who.yaml").ok());
}

TEST(IdentityFileTest, ATokenFileIsAnAdministrator) {
  const IdentityEntry admin = AdminOfToken("secret");
  EXPECT_EQ(admin.name, "admin");
  EXPECT_EQ(admin.role, Role::kAdmin);
  EXPECT_EQ(admin.token, Sha256("secret"));
  EXPECT_TRUE(admin.namespaces.empty());
}

}  // namespace
}  // namespace tahoma::controller
