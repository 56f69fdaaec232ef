// The callers that are known, and the rights of each role. The decisions are checked against a
// table written out by hand, and against the listed rules, read slowly.

#include "controller/access/access_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "lib/base/status.h"

namespace tahoma::controller {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

IdentityEntry Entry(const std::string& name, Role role, const std::string& token = "",
                    std::vector<std::string> namespaces = {}) {
  IdentityEntry entry{.name = name, .token = std::nullopt, .role = role, .groups = {}};
  if (!token.empty()) entry.token = Sha256(token);
  entry.namespaces = std::move(namespaces);
  return entry;
}

AccessTable TableOf(const std::vector<IdentityEntry>& entries, bool certificates = false) {
  auto table = AccessTable::Make(entries, certificates);
  EXPECT_TRUE(table.ok()) << table.status();
  return *std::move(table);
}

rest::Identity User(const std::string& name, std::vector<std::string> groups = {}) {
  return {.name = name, .groups = std::move(groups)};
}

class AccessTableTest : public ::testing::Test {
 protected:
  bool May(const std::string& name, const Attributes& attributes) const {
    return table_.Authorize(User(name), attributes, NoObjects()).allowed;
  }
  const AccessTable table_ =
      TableOf({Entry("ops", Role::kAdmin, "token-of-ops-1234"), Entry("ed", Role::kEdit),
               Entry("vera", Role::kView), Entry("team", Role::kEdit, "", {"team-a", "team-b"}),
               Entry("lead", Role::kAdmin, "", {"team-a"})});
};

// "verb group/resource/subresource namespace": who may, by hand, from Kubernetes' ClusterRoles.
struct Case {
  const char* verb;
  const char* group;
  const char* resource;
  const char* subresource;
  bool view, edit, admin;
};

TEST_F(AccessTableTest, ViewEditAndAdminMayDoWhatTheRolesOfKubernetesMay) {
  const std::vector<Case> cases = {
      {"list", "", "pods", "", true, true, true},
      {"get", "", "pods", "log", true, true, true},
      {"get", "", "configmaps", "", true, true, true},
      {"list", "", "events", "", true, true, true},
      {"get", "", "secrets", "", false, true, true},
      {"list", "", "secrets", "", false, true, true},
      {"create", "", "pods", "", false, true, true},
      {"delete", "", "pods", "", false, true, true},
      {"deletecollection", "", "pods", "", false, true, true},
      {"create", "", "pods", "eviction", false, true, true},
      {"create", "", "pods", "binding", false, false, true},
      {"patch", "", "pods", "status", false, false, true},
      {"create", "", "pods", "exec", false, true, true},
      {"update", "", "secrets", "", false, true, true},
      {"create", "", "namespaces", "", false, false, true},
      {"delete", "", "namespaces", "", false, false, true},
      {"create", "", "nodes", "", false, false, true},
      {"patch", "", "nodes", "status", false, false, true},
      {"create", "resource.k8s.io", "resourceclaims", "", false, true, true},
      {"patch", "resource.k8s.io", "resourceclaims", "status", false, false, true},
      {"create", "resource.k8s.io", "resourceslices", "", false, false, true},
      {"create", "resource.k8s.io", "deviceclasses", "", false, false, true},
      {"list", "tahoma.dev", "gangs", "", true, true, true},
      {"create", "tahoma.dev", "gangs", "", false, true, true},
      {"patch", "tahoma.dev", "gangs", "status", false, false, true},
      {"list", "example.com", "widgets", "", false, false, true},
      {"create", "apiextensions.k8s.io", "customresourcedefinitions", "", false, false, true},
      {"update", "coordination.k8s.io", "leases", "", false, true, true},
      {"create", "authorization.k8s.io", "subjectaccessreviews", "", false, false, true},
      {"create", "authorization.k8s.io", "selfsubjectaccessreviews", "", true, true, true},
  };
  for (const Case& c : cases) {
    const Attributes wanted{.verb = c.verb,
                            .group = c.group,
                            .resource = c.resource,
                            .subresource = c.subresource,
                            .name_space = "default"};
    SCOPED_TRACE(fmt::format("{} {} {}/{}", c.verb, c.group, c.resource, c.subresource));
    EXPECT_EQ(May("vera", wanted), c.view);
    EXPECT_EQ(May("ed", wanted), c.edit);
    EXPECT_EQ(May("ops", wanted), c.admin);
  }
}

TEST_F(AccessTableTest, ReadersOfTheWholeClusterSeeNodesAndSlices) {
  for (const char* who : {"vera", "ed"}) {
    EXPECT_TRUE(May(who, {.verb = "list", .resource = "nodes"})) << who;
    EXPECT_TRUE(
        May(who, {.verb = "watch", .group = "resource.k8s.io", .resource = "resourceslices"}));
    EXPECT_TRUE(May(who, {.verb = "get", .path = "/metrics"})) << who;
    EXPECT_FALSE(May(who, {.verb = "post", .path = "/metrics"})) << who;
  }
}

// A new CRD of ours must not be forgotten.
TEST_F(AccessTableTest, EveryKindOfOursCanBeReadByViewAndWrittenByEdit) {
  // The controller shows these, or whoever runs the cluster sets them.
  const std::set<std::string> read_only = {
      "capacityreservations", "ultraservers",       "capacityblockquotas", "defragmentations",
      "maintenancewindows",   "neuronultraservers", "queuecalendars",      "queues"};
  std::vector<std::filesystem::path> files;
  for (const char* folder : {"charts/tahoma/crds", "charts/tahoma/aws-crds"}) {
    for (const auto& file : std::filesystem::directory_iterator(folder)) files.push_back(file);
  }
  int kinds = 0;
  for (const std::filesystem::path& file : files) {
    const std::string name = file.stem().string();  // "tahoma.dev_gangs"
    const std::size_t underscore = name.find('_');
    ASSERT_NE(underscore, std::string::npos) << name;
    Attributes wanted{.verb = "list", .group = name.substr(0, underscore)};
    wanted.resource = name.substr(underscore + 1);
    wanted.name_space = "default";
    EXPECT_TRUE(May("vera", wanted)) << name;
    wanted.verb = "create";
    EXPECT_EQ(May("ed", wanted), !read_only.contains(wanted.resource)) << name;
    ++kinds;
  }
  EXPECT_GT(kinds, 0);
}

TEST_F(AccessTableTest, ARoleInNamespacesHoldsThereOnly) {
  const auto pods = [](const char* name_space) {
    return Attributes{.verb = "create", .resource = "pods", .name_space = name_space};
  };
  EXPECT_TRUE(May("team", pods("team-a")));
  EXPECT_TRUE(May("team", pods("team-b")));
  EXPECT_FALSE(May("team", pods("team-c")));
  EXPECT_FALSE(May("team", {.verb = "list", .resource = "pods"})) << "all namespaces";
  EXPECT_FALSE(May("team", {.verb = "list", .resource = "nodes"}));
  EXPECT_FALSE(May("team", {.verb = "get", .path = "/metrics"}));
  EXPECT_TRUE(May("team", {.verb = "get", .path = "/apis/tahoma.dev/v1alpha1"}));
  EXPECT_TRUE(May(
      "team", {.verb = "get", .resource = "namespaces", .name_space = "team-a", .name = "team-a"}));
  EXPECT_FALSE(May("team", {.verb = "list", .resource = "namespaces"}));
}

TEST_F(AccessTableTest, AnAdminOfANamespaceIsNoAdminOfTheCluster) {
  EXPECT_TRUE(May("lead", {.verb = "create",
                           .group = "authorization.k8s.io",
                           .resource = "localsubjectaccessreviews",
                           .name_space = "team-a"}));
  EXPECT_FALSE(
      May("lead",
          {.verb = "delete", .resource = "namespaces", .name_space = "team-a", .name = "team-a"}));
  EXPECT_FALSE(May("lead", {.verb = "patch",
                            .group = "tahoma.dev",
                            .resource = "gangs",
                            .subresource = "status",
                            .name_space = "team-a"}));
  EXPECT_FALSE(May("lead", {.verb = "list", .resource = "secrets", .name_space = "team-b"}));
}

TEST_F(AccessTableTest, AUserWithoutARoleMayOnlyReadDiscoveryAndReviewHimself) {
  EXPECT_TRUE(May("stranger", {.verb = "get", .path = "/openapi/v3"}));
  EXPECT_TRUE(May("stranger", {.verb = "get", .path = "/api"}));
  EXPECT_FALSE(May("stranger", {.verb = "get", .path = "/apix"}));
  EXPECT_FALSE(May("stranger", {.verb = "list", .resource = "pods", .name_space = "default"}));
  EXPECT_TRUE(
      May("stranger",
          {.verb = "create", .group = "authentication.k8s.io", .resource = "selfsubjectreviews"}));
}

TEST_F(AccessTableTest, MembersOfSystemMastersMayEverything) {
  const auto decision = table_.Authorize(User("anybody", {"system:masters"}),
                                         {.verb = "delete", .resource = "nodes"}, NoObjects());
  EXPECT_TRUE(decision.allowed);
  EXPECT_EQ(decision.reason, "admin");
}

// The listing is what `kubectl auth can-i --list` shows; it must be the decisions themselves.
TEST_F(AccessTableTest, TheListedRulesAreThoseThatDecide) {
  const std::vector<std::string> verbs = {"get",    "list",  "watch",  "create",
                                          "update", "patch", "delete", "deletecollection"};
  const std::vector<std::string> groups = {"",
                                           "resource.k8s.io",
                                           "tahoma.dev",
                                           "example.com",
                                           "coordination.k8s.io",
                                           "authorization.k8s.io"};
  const std::vector<std::string> resources = {"pods",
                                              "pods/log",
                                              "pods/status",
                                              "pods/binding",
                                              "secrets",
                                              "nodes",
                                              "namespaces",
                                              "gangs",
                                              "gangs/status",
                                              "resourceclaims",
                                              "resourceclaims/status",
                                              "leases",
                                              "podsx",
                                              "pod"};
  const auto says = [](std::string_view word, std::string_view wanted) {
    return word == "*" || word == wanted;
  };
  const auto slow = [&](const std::vector<Rule>& rules, const std::string& verb,
                        const std::string& group, const std::string& resource) {
    int hits = 0;
    for (const Rule& rule : rules) {
      for (const auto& v : rule.verbs) {
        for (const auto& g : rule.groups) {
          for (const auto& r : rule.resources) {
            hits += says(v, verb) && says(g, group) && says(r, resource) ? 1 : 0;
          }
        }
      }
    }
    return hits > 0;
  };
  int allowed = 0;
  for (const char* who : {"ops", "ed", "vera", "team", "lead", "stranger"}) {
    for (const std::string name_space : {"", "default", "team-a"}) {
      const std::vector<Rule> rules = table_.RulesFor(User(who), name_space);
      for (const auto& verb : verbs) {
        for (const auto& group : groups) {
          for (const auto& resource : resources) {
            const std::size_t slash = resource.find('/');
            Attributes wanted{.verb = verb, .group = group, .name_space = name_space};
            wanted.resource = resource.substr(0, slash);
            if (slash != std::string::npos) wanted.subresource = resource.substr(slash + 1);
            const bool may = May(who, wanted);
            allowed += may ? 1 : 0;
            EXPECT_EQ(may, slow(rules, verb, group, resource))
                << who << " " << verb << " " << group << " " << resource << " in " << name_space;
          }
        }
      }
    }
  }
  EXPECT_GT(allowed, 100);
}

// ---- Who is known ------------------------------------------------------------------------------

TEST_F(AccessTableTest, ATokenNamesItsUserAndNothingElseDoes) {
  const auto ops = table_.Authenticate("token-of-ops-1234", std::nullopt);
  ASSERT_NE(ops, nullptr);
  EXPECT_EQ(ops->name, "ops");
  EXPECT_THAT(ops->groups, ElementsAre("system:authenticated"));
  for (const char* wrong : {"", "token-of-ops-123", "token-of-ops-12345", "TOKEN-OF-OPS-1234"}) {
    EXPECT_EQ(table_.Authenticate(wrong, std::nullopt), nullptr) << wrong;
  }
  EXPECT_EQ(table_.Authenticate(std::nullopt, std::nullopt), nullptr);
}

TEST_F(AccessTableTest, ACertificateGivesNameAndGroups) {
  const auto user = table_.Authenticate(
      std::nullopt, rest::ClientSubject{.common_name = "vera", .organizations = {"research"}});
  ASSERT_NE(user, nullptr);
  EXPECT_EQ(user->name, "vera");
  EXPECT_THAT(user->groups, ElementsAre("research", "system:authenticated"));
  EXPECT_TRUE(table_.Authorize(*user, {.verb = "list", .resource = "nodes"}, NoObjects()).allowed);
  EXPECT_EQ(table_.Authenticate(std::nullopt,
                                rest::ClientSubject{.common_name = "a\nb", .organizations = {}}),
            nullptr)
      << "names stand in logs";
  EXPECT_EQ(table_.Authenticate(std::nullopt, rest::ClientSubject{}), nullptr);
}

TEST(AccessTable, WithoutTokensAndCertificatesItIsOpen) {
  const AccessTable open = TableOf({});
  EXPECT_TRUE(open.open());
  const auto user = open.Authenticate(std::nullopt, std::nullopt);
  ASSERT_NE(user, nullptr);
  EXPECT_TRUE(open.Authorize(*user, {.verb = "delete", .resource = "nodes"}, NoObjects()).allowed);
  EXPECT_FALSE(TableOf({}, true).open());
  EXPECT_EQ(TableOf({}, true).Authenticate(std::nullopt, std::nullopt), nullptr);
}

TEST(AccessTable, ATokenIsReplacedByASecondEntryOfTheName) {
  const AccessTable table = TableOf({Entry("ci", Role::kEdit, "old-token-123456", {"a"}),
                                     Entry("ci", Role::kEdit, "new-token-123456", {"a"})});
  EXPECT_EQ(table.Authenticate("old-token-123456", std::nullopt)->name, "ci");
  EXPECT_EQ(table.Authenticate("new-token-123456", std::nullopt)->name, "ci");
}

TEST(AccessTable, RefusesEntriesThatContradictEachOtherOrPretendToBeTheSystem) {
  struct Wrong {
    std::vector<IdentityEntry> entries;
    std::string why;
  };
  IdentityEntry masters = Entry("x", Role::kView);
  masters.groups = {"system:masters"};
  const std::vector<Wrong> cases = {
      {{Entry("a", Role::kEdit, "t-1234567890123456"), Entry("a", Role::kView)},
       "identities[1] (a): an entry above has this name with another role"},
      {{Entry("a", Role::kEdit, "t-1234567890123456"),
        Entry("b", Role::kEdit, "t-1234567890123456")},
       "identities[1] (b): an entry above has the same token"},
      {{Entry("system:admin", Role::kView)}, "names that begin with system: are of the system"},
      {{Entry("system:serviceaccount:a", Role::kView)}, "are of the system"},
      {{Entry("system:serviceaccount:a:b", Role::kView, "t-1234567890123456")},
       "leave token, tokenSha256 and groups out"},
      {{masters}, "the group system:masters comes with a role or a certificate"},
      {{Entry("node-1", Role::kNode)}, "the role node needs a name such as system:node:NODE"},
      {{Entry("system:node:", Role::kNode)}, "the role node needs a name"},
      {{Entry("system:node:n", Role::kNode, "", {"a"})}, "is not restricted to namespaces"},
      {{Entry("", Role::kView)}, "must have 1 to 253 visible ASCII characters"},
      {{Entry("a b", Role::kView)}, "must have 1 to 253 visible ASCII characters"},
      {std::vector<IdentityEntry>(1001, Entry("a", Role::kView)), "1001 identities; at most 1000"},
  };
  for (const Wrong& wrong : cases) {
    const auto table = AccessTable::Make(wrong.entries, false);
    ASSERT_FALSE(table.ok()) << wrong.why;
    EXPECT_THAT(Message(table.status()), HasSubstr(wrong.why));
  }
}

TEST(AccessTable, AServiceAccountHasTheRoleOfItsName) {
  const AccessTable table =
      TableOf({Entry("system:serviceaccount:team-a:ci", Role::kEdit, "", {"team-a"})});
  const auto may = [&](const std::string& name, const std::string& space) {
    return table
        .Authorize(User(name), {.verb = "create", .resource = "pods", .name_space = space},
                   NoObjects())
        .allowed;
  };
  EXPECT_TRUE(may("system:serviceaccount:team-a:ci", "team-a"));
  EXPECT_FALSE(may("system:serviceaccount:team-a:ci", "team-b"));
  EXPECT_FALSE(may("system:serviceaccount:team-b:ci", "team-a"));
  EXPECT_FALSE(may("system:serviceaccount:team-a:c", "team-a"));
}

TEST(AccessTable, ADenialReadsAsKubernetesSaysIt) {
  EXPECT_EQ(DenialOf(User("x"), {.verb = "list", .resource = "pods", .name_space = "y"}),
            R"(User "x" cannot list resource "pods" in API group "" in the namespace "y")");
  EXPECT_EQ(DenialOf(User("x"), {.verb = "patch",
                                 .group = "resource.k8s.io",
                                 .resource = "resourceclaims",
                                 .subresource = "status",
                                 .name_space = "y"}),
            R"(User "x" cannot patch resource "resourceclaims/status" in API group )"
            R"("resource.k8s.io" in the namespace "y")");
  EXPECT_EQ(DenialOf(User("x"), {.verb = "create", .resource = "nodes"}),
            R"(User "x" cannot create resource "nodes" in API group "" at the cluster scope)");
  EXPECT_EQ(DenialOf(User("x"), {.verb = "get", .path = "/metrics"}),
            R"(User "x" cannot get path "/metrics")");
}

}  // namespace
}  // namespace tahoma::controller
