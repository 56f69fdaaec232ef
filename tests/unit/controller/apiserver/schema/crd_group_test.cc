// The groups and names that a CustomResourceDefinition may take.

#include <gmock/gmock.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/support/api_fixture.h"

namespace tahoma::controller::apiserver {
namespace {

using testing::Answer;
using ::testing::HasSubstr;

const std::string kPods = "/api/v1/namespaces/default/pods";

class CrdGroupTest : public testing::ApiFixture {
 protected:
  static Json CrdOf(const std::string& group, const std::string& plural, const std::string& kind) {
    return {{"metadata", {{"name", plural + "." + group}}},
            {"spec",
             {{"group", group},
              {"scope", "Namespaced"},
              {"names", {{"plural", plural}, {"kind", kind}}},
              {"versions",
               {{{"name", "v1"},
                 {"served", true},
                 {"storage", true},
                 {"schema", {{"openAPIV3Schema", {{"type", "object"}}}}}}}}}}};
  }
  static inline const std::string kCrds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
};

// The core group is stored as "core": objects of a group "core" would overwrite core objects.
TEST_F(CrdGroupTest, AGroupIsADomainWithADot) {
  for (const char* group : {"core", "x", "Example.com", "a/b.c", "..", "-a.b"}) {
    const Answer answer = Call("POST", kCrds, CrdOf(group, "pods", "Pod"));
    EXPECT_EQ(answer.status, 422) << group << " " << answer.text;
    EXPECT_THAT(answer.message(), HasSubstr("spec.group: Invalid value")) << group;
  }
  EXPECT_THAT(Call("POST", kCrds, CrdOf("core", "pods", "Pod")).message(),
              HasSubstr("should be a domain with at least one dot"));
  Json misnamed = CrdOf("example.com", "things", "Thing");
  misnamed["metadata"]["name"] = "things.example.org";
  EXPECT_EQ(Call("POST", kCrds, misnamed).status, 422);
  EXPECT_EQ(Call("POST", kCrds, CrdOf("example.com", "things", "Thing")).status, 201);
}

// Deleting a definition deletes its objects: no definition may claim built-in objects.
TEST_F(CrdGroupTest, ADefinitionOfABuiltInKindIsRefused) {
  const std::string claims = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims";
  const Json claim = {{"metadata", {{"name", "c"}}}, {"spec", Json::object()}};
  ASSERT_EQ(Call("POST", claims, claim).status, 201);
  const std::string crd = "resourceclaims.resource.k8s.io";
  const Answer refused = Call("POST", kCrds, CrdOf("resource.k8s.io", "resourceclaims", "Mine"));
  EXPECT_EQ(refused.status, 422) << refused.text;
  EXPECT_THAT(refused.message(), HasSubstr("is already in use by " + crd));
  EXPECT_EQ(Call("POST", kCrds, CrdOf("resource.k8s.io", "mine", "ResourceClaim")).status, 422);
  EXPECT_EQ(Call("DELETE", kCrds + "/" + crd).status, 404);
  EXPECT_EQ(
      Call("POST", kCrds, CrdOf("authorization.k8s.io", "selfsubjectaccessreviews", "Mine")).status,
      422);
  EXPECT_EQ(Call("GET", claims + "/c").status, 200);
}

constexpr const char* kWantsApproval =
    "protected groups must have approval annotation \"api-approved.kubernetes.io\", see "
    "https://github.com/kubernetes/enhancements/pull/1111";
constexpr const char* kApproval = "api-approved.kubernetes.io";

// As apiextensions-apiserver: a group that looks like Kubernetes' own must say who approved it.
TEST_F(CrdGroupTest, AGroupOfKubernetesMustSayWhereItWasApproved) {
  for (const char* group : {"k8s.io", "x.k8s.io", "kubernetes.io", "a.b.kubernetes.io"}) {
    const Answer refused = Call("POST", kCrds, CrdOf(group, "things", "Thing"));
    EXPECT_EQ(refused.status, 422) << group;
    EXPECT_EQ(refused.message(),
              fmt::format("CustomResourceDefinition.apiextensions.k8s.io \"things.{}\" is invalid: "
                          "metadata.annotations[api-approved.kubernetes.io]: Required value: {}",
                          group, kWantsApproval));
  }
  for (const char* group : {"xk8s.io", "k8s.io.example.com", "x.kubernetes.io.example.com"}) {
    const Answer made = Call("POST", kCrds, CrdOf(group, "things", "Thing"));
    EXPECT_EQ(made.status, 201) << made.text;
    EXPECT_EQ(made.body.at("status").at("conditions").size(), 2U);
  }
}

TEST_F(CrdGroupTest, TheConditionSaysHowAGroupOfKubernetesWasApproved) {
  const auto approved_by = [&](const std::string& text) {
    Json crd = CrdOf("x.k8s.io", "things", "Thing");
    crd["metadata"]["annotations"] = {{kApproval, text}};
    const Answer made = Call("POST", kCrds, crd);
    if (made.status != 201) return made.message();
    EXPECT_EQ(Call("DELETE", kCrds + "/things.x.k8s.io").status, 200);
    const Json& condition = made.body.at("status").at("conditions").at(2);
    EXPECT_EQ(condition.at("type"), "KubernetesAPIApprovalPolicyConformant");
    return condition.at("status").get<std::string>() + " " +
           condition.at("reason").get<std::string>() + ": " +
           condition.at("message").get<std::string>();
  };
  const std::string url = "https://github.com/kubernetes/enhancements/pull/1111";
  EXPECT_EQ(approved_by(url), "True ApprovedAnnotation: approved in " + url);
  EXPECT_EQ(approved_by("http://[::1]:80/a b"),
            "True ApprovedAnnotation: approved in http://[::1]:80/a b");
  EXPECT_EQ(approved_by("unapproved, experimental-only"),
            "False UnapprovedAnnotation: not approved: \"unapproved, experimental-only\"");
  for (const char* wrong : {"yes", "github.com/x", "/a/path", "https://", "mailto:a@b.c",
                            "http://a b/", "http://a/%zz", "http://a:port/"}) {
    EXPECT_THAT(approved_by(wrong),
                HasSubstr(fmt::format("metadata.annotations[api-approved.kubernetes.io]: Invalid "
                                      "value: \"{}\": protected groups must have approval "
                                      "annotation \"api-approved.kubernetes.io\" with either a URL "
                                      "or a reason starting with \"unapproved\"",
                                      wrong)));
  }
}

TEST_F(CrdGroupTest, AnApprovalMayChangeButNotBeLost) {
  Json crd = CrdOf("x.k8s.io", "things", "Thing");
  crd["metadata"]["annotations"] = {{kApproval, "unapproved"}};
  ASSERT_EQ(Call("POST", kCrds, crd).status, 201);
  const auto annotate = [&](const Json& value) {
    return Patch(kCrds + "/things.x.k8s.io", "merge-patch+json",
                 {{"metadata", {{"annotations", {{kApproval, value}}}}}});
  };
  const auto since = [](const Answer& answer) {
    return answer.body.at("status").at("conditions").at(2).at("lastTransitionTime");
  };
  clock_.Advance(std::chrono::seconds(10));
  const Answer still = annotate("unapproved, still");
  EXPECT_EQ(still.body.at("status").at("conditions").at(2).at("message"),
            "not approved: \"unapproved, still\"");
  EXPECT_EQ(since(still), still.body.at("metadata").at("creationTimestamp"));
  const Answer approved = annotate("https://example.com/1");
  EXPECT_EQ(approved.body.at("status").at("conditions").at(2).at("status"), "True");
  EXPECT_NE(since(approved), since(still));
  EXPECT_EQ(annotate(nullptr).status, 422);
  EXPECT_EQ(annotate("yes").status, 422);
  EXPECT_EQ(Call("GET", kCrds + "/things.x.k8s.io").body.at("status"), approved.body.at("status"));
}

// A version is part of paths, keys and apiVersion: a slash would make it another version's path.
TEST_F(CrdGroupTest, NamesAndVersionsAreLabelsThatBeginWithALetter) {
  struct Case {
    const char* path;
    Json value;
    const char* why;
  };
  const char* const label = "a DNS-1035 label must consist of";
  for (const Case& c : std::vector<Case>{
           {"/spec/versions/0/name", "v1/x", label},
           {"/spec/versions/0/name", "", label},
           {"/spec/versions/0/name", "V1", label},
           {"/spec/versions/0/name", "1v", label},
           {"/spec/versions/0/name", std::string(64, 'v'), "must be no more than 63 characters"},
           {"/spec/names/plural", "Things", label},
           {"/spec/names/plural", "th/ings", label},
           {"/spec/names/singular", "a thing", label},
           {"/spec/names/kind", "Thing!", "may have mixed case, but should otherwise match"},
           {"/spec/names/listKind", "7Things", "may have mixed case, but should otherwise match"},
           {"/spec/names/listKind", "Thing", "kind and listKind may not be the same"},
           {"/spec/names/shortNames", {"th", "T/h"}, "spec.names.shortNames[1]: Invalid value"},
           {"/spec/names/categories", {"All"}, "spec.names.categories[0]: Invalid value"}}) {
    SCOPED_TRACE(std::string(c.path) + " " + c.value.dump());
    Json crd = CrdOf("example.com", "things", "Thing");
    crd[Json::json_pointer(c.path)] = c.value;
    crd["metadata"]["name"] = crd["spec"]["names"]["plural"].get<std::string>() + ".example.com";
    const Answer answer = Call("POST", kCrds, crd);
    EXPECT_TRUE(answer.status == 422 || answer.status == 400) << answer.text;
    EXPECT_THAT(answer.message(), HasSubstr(c.why));
  }
  Json twice = CrdOf("example.com", "things", "Thing");
  twice["spec"]["versions"].push_back(twice["spec"]["versions"][0]);
  twice["spec"]["versions"][1]["storage"] = false;
  const Answer answer = Call("POST", kCrds, twice);
  EXPECT_EQ(answer.status, 422) << answer.text;
  EXPECT_THAT(answer.message(), HasSubstr("must contain unique version names"));
}

// Stored objects depend on these fields: another name or scope would hide them all.
TEST_F(CrdGroupTest, ScopeKindGroupAndPluralAreImmutable) {
  const std::string crd = kCrds + "/gangs.tahoma.dev";
  const std::string gangs = "/apis/tahoma.dev/v1alpha1/namespaces/default/gangs";
  ASSERT_EQ(Call("POST", gangs, GangOf("train")).status, 201);
  for (const auto& [field, patch] : std::vector<std::pair<std::string, Json>>{
           {"spec.scope", {{"scope", "Cluster"}}},
           {"spec.names.kind", {{"names", {{"kind", "X"}}}}},
           {"spec.names.plural", {{"names", {{"plural", "x"}}}}},
           {"spec.group", {{"group", "example.com"}}}}) {
    const Answer refused = Patch(crd, "merge-patch+json", {{"spec", patch}});
    EXPECT_EQ(refused.status, 422) << field;
    EXPECT_THAT(refused.message(), HasSubstr(field + ": Invalid value: ")) << field;
    EXPECT_THAT(refused.message(), HasSubstr(": field is immutable")) << field;
    EXPECT_EQ(Call("GET", gangs + "/train").status, 200) << field;
  }
  EXPECT_EQ(Patch(crd, "merge-patch+json", {{"spec", {{"names", {{"shortNames", {"g"}}}}}}}).status,
            200);
}

TEST_F(CrdGroupTest, AVersionInWhichObjectsWereStoredStays) {
  Json crd = CrdOf("example.com", "things", "Thing");
  ASSERT_EQ(Call("POST", kCrds, crd).status, 201);
  const std::string path = kCrds + "/things.example.com";
  Json second = crd["spec"]["versions"][0];
  second["name"] = "v2";
  Json both = {crd["spec"]["versions"][0], second};
  both[0]["storage"] = false;
  const Answer moved = Patch(path, "merge-patch+json", {{"spec", {{"versions", both}}}});
  ASSERT_EQ(moved.status, 200) << moved.text;
  EXPECT_EQ(moved.body["status"]["storedVersions"], (Json{"v1", "v2"}));
  const Json only = {{"spec", {{"versions", {second}}}}};
  const Answer refused = Patch(path, "merge-patch+json", only);
  EXPECT_EQ(refused.status, 422);
  EXPECT_THAT(refused.message(),
              HasSubstr("status.storedVersions[0]: Invalid value: \"v1\": missing "
                        "from spec.versions; v1 was previously a storage"));
  const auto say = [&](const Json& stored) {
    return Patch(path + "/status", "merge-patch+json", {{"status", {{"storedVersions", stored}}}});
  };
  EXPECT_THAT(say(Json::array()).message(), HasSubstr("must have at least one stored version"));
  EXPECT_THAT(say({"v1"}).message(), HasSubstr("must have the storage version v2"));
  EXPECT_EQ(say({"v2"}).status, 200);
  EXPECT_EQ(Patch(path, "merge-patch+json", only).status, 200);
}

// An earlier version of the program let the scope be changed; a start restores the scope.
TEST_F(CrdGroupTest, AChangedScopeOfOurOwnDefinitionIsRestoredAtAStart) {
  const std::string gangs = "/apis/tahoma.dev/v1alpha1/namespaces/default/gangs";
  ASSERT_EQ(Call("POST", gangs, GangOf("train")).status, 201);
  const std::string key = "o/apiextensions.k8s.io/customresourcedefinitions//gangs.tahoma.dev";
  Json stored = ParseJson(*store_->Get(Keyspace::kApi, key));
  stored["spec"]["scope"] = "Cluster";
  WriteBatch batch;
  batch.Put(Keyspace::kApi, key, stored.dump());
  ASSERT_TRUE(store_->Commit(std::move(batch)).ok());
  Restart();
  EXPECT_EQ(Call("GET", gangs + "/train").status, 200);
  EXPECT_EQ(Call("GET", kCrds + "/gangs.tahoma.dev").body["spec"]["scope"], "Namespaced");
}

TEST_F(CrdGroupTest, AnIllegalStoredDefinitionIsNotServedAndCanBeDeleted) {
  ASSERT_EQ(Call("POST", kPods, PodOf("p")).status, 201);
  Json stored = CrdOf("core", "pods", "Pod");
  stored["apiVersion"] = "apiextensions.k8s.io/v1";
  stored["kind"] = "CustomResourceDefinition";
  stored["metadata"]["resourceVersion"] = "1";
  WriteBatch batch;
  batch.Put(Keyspace::kApi, "o/apiextensions.k8s.io/customresourcedefinitions//pods.core",
            stored.dump());
  ASSERT_TRUE(store_->Commit(std::move(batch)).ok());
  Restart();
  EXPECT_EQ(Call("GET", "/apis/core/v1/namespaces/default/pods").status, 404);
  EXPECT_EQ(Call("GET", kPods + "/p").status, 200);
  EXPECT_EQ(Call("DELETE", kCrds + "/pods.core").status, 200);
  EXPECT_EQ(Call("GET", kPods + "/p").status, 200);
}

}  // namespace
}  // namespace tahoma::controller::apiserver
