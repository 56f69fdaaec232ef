// Which groups and names a CustomResourceDefinition may take.

#include <gmock/gmock.h>

#include <string>

#include "tests/support/api_fixture.h"

namespace tahoma::controller {
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

// The core group is stored as "core": objects of such a group would be written over those of it.
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

// Deleting a definition deletes its objects: it must not be one of objects that are not its own.
TEST_F(CrdGroupTest, NoneIsMadeForWhatIsBuiltIn) {
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

// An earlier version took it: the server starts, serves the rest, and lets it be deleted.
TEST_F(CrdGroupTest, OneThatWasStoredBeforeIsNotServedAndCanBeDeleted) {
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
}  // namespace tahoma::controller
