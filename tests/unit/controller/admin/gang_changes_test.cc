// Changes of gangs: the priority by two writers, and cancelling.

#include "tests/unit/controller/admin/admin_fixture.h"

namespace tahoma::controller {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr const char* kGang = "/v1/gangs/default/train";
constexpr const char* kSpec = "/v1/gangs/default/train/spec";
constexpr const char* kObject = "/apis/tahoma.dev/v1alpha1/namespaces/default/gangs/train";

class GangChangesTest : public AdminFixture {
 protected:
  void MakeGang() {
    const auto made =
        Call("POST", "/apis/tahoma.dev/v1alpha1/namespaces/default/gangs", GangOf("train", 4));
    ASSERT_EQ(made.status, 201) << made.text;
  }
  void MakePod(const std::string& name, const std::string& gang) {
    const Json labels = gang.empty() ? Json(nullptr) : Json{{"tahoma.dev/gang", gang}};
    ASSERT_EQ(Call("POST", "/api/v1/namespaces/default/pods", PodOf(name, labels)).status, 201);
  }
  bool PodIsThere(const std::string& name) {
    const auto pod = Call("GET", "/api/v1/namespaces/default/pods/" + name);
    return pod.status == 200 && !pod.body["metadata"].contains("deletionTimestamp");
  }
  Outcome Patch(const std::string& body, const std::string& match) {
    return Ask("PATCH", kSpec, body,
               "Content-Type: application/json\r\n" +
                   (match.empty() ? "" : "If-Match: " + match + "\r\n"));
  }
};

TEST_F(GangChangesTest, ThePriorityIsThatOfTheGang) {
  MakeGang();
  const Outcome spec = Get(kSpec);
  ASSERT_EQ(spec.status, 200) << spec.body;
  EXPECT_EQ(spec.body, (Json{{"namespace", "default"},
                             {"name", "train"},
                             {"members", 4},
                             {"shape", "4x4x4"},
                             {"slices", 1},
                             {"queue", "default"}}));
  const Outcome changed = Patch(R"({"priority":7})", spec.header("ETag"));
  EXPECT_EQ(changed.status, 200) << changed.body;
  EXPECT_EQ(changed.body["priority"], 7);
  EXPECT_NE(changed.header("ETag"), spec.header("ETag"));
  EXPECT_EQ(Call("GET", kObject).body["spec"]["priority"], 7);
}

TEST_F(GangChangesTest, TheSecondOfTwoWritersGetsAConflict) {
  MakeGang();
  const std::string tag = Get(kSpec).header("ETag");
  EXPECT_EQ(Patch(R"({"priority":1})", tag).status, 200);
  const Outcome late = Patch(R"({"priority":2})", tag);
  EXPECT_EQ(late.status, 412);
  EXPECT_THAT(late.detail(), HasSubstr("changed meanwhile"));
  EXPECT_EQ(Call("GET", kObject).body["spec"]["priority"], 1);
  EXPECT_EQ(Patch(R"({"priority":2})", "").status, 428);
  EXPECT_EQ(Patch(R"({"priority":2})", "*").status, 200);
}

TEST_F(GangChangesTest, AWriteOfTheStatusInBetweenIsNoConflict) {
  MakeGang();
  const std::string tag = Get(kSpec).header("ETag");
  const auto status =
      Call("PATCH", std::string(kObject) + "/status", Json{{"status", {{"phase", "Pending"}}}},
           {{"Content-Type", "application/merge-patch+json"}});
  ASSERT_EQ(status.status, 200) << status.text;
  EXPECT_EQ(Patch(R"({"priority":3})", tag).status, 200);
}

TEST_F(GangChangesTest, AGangThatWasMadeAnewIsAnotherOne) {
  MakeGang();
  const std::string tag = Get(kSpec).header("ETag");
  EXPECT_EQ(Call("DELETE", kObject).status, 200);
  MakeGang();
  EXPECT_EQ(Patch(R"({"priority":3})", tag).status, 412);
}

TEST_F(GangChangesTest, AMalformedPriorityIsRefused) {
  MakeGang();
  for (const std::string body :
       {"{}", R"({"priority":"high"})", R"({"priority":2147483648})", R"({"priority":1.5})",
        R"({"priority":null})", R"({"priority":1,"shape":"4x4"})", "[]", "x"}) {
    EXPECT_EQ(Patch(body, "*").status, 400) << body;
  }
  EXPECT_EQ(Get("/v1/gangs/default/none/spec").status, 404);
  EXPECT_EQ(Ask("PATCH", "/v1/gangs/default/none/spec", R"({"priority":1})",
                "Content-Type: application/json\r\nIf-Match: *\r\n")
                .status,
            404);
}

TEST_F(GangChangesTest, ACancelledGangAndItsPodsAreDeleted) {
  MakeGang();
  for (int i = 0; i < 4; ++i) MakePod("train-" + std::to_string(i), "train");
  MakePod("other", "other");
  const Outcome answer = Ask("DELETE", kGang);
  ASSERT_EQ(answer.status, 202) << answer.body;
  EXPECT_EQ(answer.body, (Json{{"namespace", "default"},
                               {"name", "train"},
                               {"kind", "Gang"},
                               {"podsEnding", 4},
                               {"refused", Json::array()}}));
  EXPECT_EQ(Call("GET", kObject).status, 404);
  EXPECT_FALSE(PodIsThere("train-0"));
  EXPECT_FALSE(PodIsThere("train-3"));
  EXPECT_TRUE(PodIsThere("other"));
  EXPECT_EQ(Ask("DELETE", kGang).status, 404) << "nothing of it is left";
}

// A pod may have a longer name than a label's value, a gang may not.
TEST_F(GangChangesTest, ANameThatIsTooLongForAGangIsThatOfAPodOrOfNothing) {
  const std::string longest(64, 'a');
  const Outcome none = Ask("DELETE", "/v1/gangs/default/" + longest);
  EXPECT_EQ(none.status, 404);
  EXPECT_THAT(none.detail(), HasSubstr("there is no Gang and no pod without a Gang default/aaa"));
  MakePod(longest, "");
  EXPECT_EQ(Ask("DELETE", "/v1/gangs/default/" + longest).status, 202);
  EXPECT_FALSE(PodIsThere(longest));
}

TEST_F(GangChangesTest, CancellingThatWasCutShortGoesOnWhenItIsRepeated) {
  MakePod("train-0", "train");
  const Outcome answer = Ask("DELETE", kGang);
  EXPECT_EQ(answer.status, 202) << "the Gang had gone, its pod had not";
  EXPECT_EQ(answer.body["podsEnding"], 1);
  EXPECT_FALSE(PodIsThere("train-0"));
}

TEST_F(GangChangesTest, APodWithoutAGangIsAGangOfOne) {
  MakePod("train", "");
  MakePod("member", "wide");
  const Outcome answer = Ask("DELETE", kGang);
  EXPECT_EQ(answer.status, 202);
  EXPECT_EQ(answer.body["kind"], "Pod");
  EXPECT_FALSE(PodIsThere("train"));
  EXPECT_EQ(Ask("DELETE", "/v1/gangs/default/member").status, 404) << "it belongs to another gang";
  EXPECT_TRUE(PodIsThere("member"));
}

TEST_F(GangChangesTest, WhoMayChangeGangsInTheNamespaceMayAndLeavesALine) {
  MakeGang();
  Identities({{.name = "ed",
               .token = Sha256("ed"),
               .role = Role::kEdit,
               .groups = {},
               .namespaces = {"default"}},
              {.name = "vera",
               .token = Sha256("v"),
               .role = Role::kView,
               .groups = {},
               .namespaces = {}}});
  token_ = "v";
  EXPECT_EQ(Get(kSpec).status, 200);
  EXPECT_EQ(Ask("DELETE", kGang).status, 403);
  EXPECT_EQ(Patch(R"({"priority":1})", "*").status, 403);
  token_ = "ed";
  EXPECT_EQ(Ask("DELETE", "/v1/gangs/other/train").status, 403);
  EXPECT_EQ(Patch(R"({"priority":1})", "*").status, 200);
  EXPECT_EQ(Ask("DELETE", kGang).status, 202);
  ASSERT_THAT(audit_, SizeIs(5));
  const Json patched = ParseJson(audit_[3]), cancelled = ParseJson(audit_[4]);
  EXPECT_EQ(patched["verb"], "patch");
  EXPECT_EQ(cancelled["verb"], "delete");
  EXPECT_EQ(cancelled["user"]["username"], "ed");
  EXPECT_EQ(cancelled["objectRef"]["name"], "train");
}

}  // namespace
}  // namespace tahoma::controller
