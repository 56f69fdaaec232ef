// Tests what a client may write, and what it is told when it may not.

#include <gmock/gmock.h>

#include "tests/support/api_fixture.h"
#include "tests/unit/controller/apiserver/paths.h"

namespace tahoma::controller::apiserver {
namespace {

using json = Json;
using testing::Answer;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class WriteVerbsTest : public testing::ApiFixture {};

TEST_F(WriteVerbsTest, CreateFillsInWhatTheServerOwns) {
  json gang = GangOf("g");
  gang["metadata"]["uid"] = "mine";
  gang["metadata"]["creationTimestamp"] = nullptr;
  gang["metadata"]["generation"] = 9;
  gang["status"]["phase"] = "Running";
  const Answer made = Call("POST", kGangs, gang);
  ASSERT_EQ(made.status, 201) << made.text;
  const json& metadata = made.body.at("metadata");
  EXPECT_EQ(metadata.at("uid").get<std::string>().size(), 36U);
  EXPECT_EQ(metadata.at("creationTimestamp"), "2027-01-15T08:00:00Z");
  EXPECT_EQ(metadata.at("generation"), 1);
  EXPECT_EQ(metadata.at("namespace"), "default");
  EXPECT_EQ(metadata.at("managedFields").at(0).at("manager"), "test");
  EXPECT_FALSE(made.body.contains("status") && made.body["status"].contains("phase"));
  EXPECT_EQ(Call("GET", kGangs + "/g").body, made.body);
  const Answer again = Call("POST", kGangs, GangOf("g"));
  EXPECT_EQ(again.status, 409);
  EXPECT_EQ(again.reason(), "AlreadyExists");
  EXPECT_EQ(again.message(), "gangs.tahoma.dev \"g\" already exists");
}

// Stored bodies hold the sets of fields as text; no client may notice.
TEST_F(WriteVerbsTest, OwnersAreObjectsForEveryClient) {
  Call("POST", kMaps, {{"metadata", {{"name", "c"}}}, {"data", {{"a", "1"}}}});
  json got = Call("GET", kMaps + "/c").body;
  const json owned = {{"f:data", {{".", json::object()}, {"f:a", json::object()}}}};
  EXPECT_EQ(got.at("metadata").at("managedFields").at(0).at("fieldsV1"), owned);
  const Answer same = Call("PUT", kMaps + "/c", got);
  EXPECT_EQ(same.body, got) << "nothing changed, so nothing is written";
  const json into =
      json::array({{{"op", "test"},
                    {"path", "/metadata/managedFields/0/fieldsV1/f:data/f:a"},
                    {"value", json::object()}},
                   {{"op", "remove"}, {"path", "/metadata/managedFields/0/fieldsV1/f:data/f:a"}}});
  const Answer patched =
      Call("PATCH", kMaps + "/c", into, {{"Content-Type", "application/json-patch+json"}});
  ASSERT_EQ(patched.status, 200) << patched.text;
  EXPECT_EQ(patched.body.at("metadata").at("managedFields").at(0).at("fieldsV1"),
            json({{"f:data", json::object()}}));
  EXPECT_EQ(Call("GET", kMaps + "/c").body, patched.body);
  const Answer dry = Call("PATCH", kMaps + "/c?dryRun=All", {{"data", {{"b", "2"}}}},
                          {{"Content-Type", "application/merge-patch+json"}});
  EXPECT_TRUE(dry.body.at("metadata").at("managedFields").at(0).at("fieldsV1").is_object());
}

TEST_F(WriteVerbsTest, GenerateNameAddsFiveLettersToACutBase) {
  json map = {{"metadata", {{"generateName", std::string(70, 'a')}}}};
  const Answer made = Call("POST", kMaps, map);
  ASSERT_EQ(made.status, 201) << made.text;
  EXPECT_EQ(made.name().size(), 63U);
  EXPECT_NE(Call("POST", kMaps, map).name(), made.name());
}

TEST_F(WriteVerbsTest, BodiesThatAreNoObjectOfTheKindAreRefused) {
  struct Case {
    std::string body, type;
    int status;
    std::string message;
  };
  const std::string deep = std::string(200, '[') + std::string(200, ']');
  for (const Case& c : std::vector<Case>{
           {"{", "application/json", 400, "json parse error"},
           {"[]", "application/json", 400, "must be an object"},
           {"{\"a\":" + deep + "}", "application/json", 400, "nested deeper than 128"},
           {"a: [", "application/yaml", 400, "error parsing YAML"},
           {"{}", "text/plain", 415, "in an unknown format"},
           {std::string((3 << 20) + 1, ' '), "application/json", 413, "limit is 3145728"},
           {"{}", "application/json", 400, "Object 'Kind' is missing"},
           {R"({"apiVersion":"v1","kind":"Gang"})", "application/json", 400,
            "does not match the expected API version (tahoma.dev/v1alpha1)"},
           {R"({"apiVersion":"tahoma.dev/v1alpha1","kind":"Pod"})", "application/json", 400,
            "cannot be handled as a Gang"},
           {R"({"apiVersion":"tahoma.dev/v1alpha1","kind":"Gang","metadata":{"name":7}})",
            "application/json", 400,
            "json: cannot unmarshal number into Go struct field ObjectMeta.name of type string"},
           {R"({"apiVersion":"tahoma.dev/v1alpha1","kind":"Gang","metadata":
               {"name":"g","namespace":"other"},"spec":{"members":1}})",
            "application/json", 400, "does not match the namespace"}}) {
    const Answer answer = Call("POST", kGangs, c.body, {{"Content-Type", c.type}});
    EXPECT_EQ(answer.status, c.status) << answer.text;
    EXPECT_THAT(answer.message(), HasSubstr(c.message));
    EXPECT_EQ(answer.body.value("kind", ""), "Status");
    EXPECT_EQ(answer.body.value("code", 0), c.status);
  }
  EXPECT_TRUE(Call("GET", kGangs).body.at("items").empty());
}

TEST_F(WriteVerbsTest, InvalidValuesNameTheirFieldsInCauses) {
  json gang = GangOf("g", 0);
  gang["metadata"]["name"] = "Bad_Name";
  const Answer answer = Call("POST", kGangs, gang);
  EXPECT_EQ(answer.status, 422);
  EXPECT_EQ(answer.reason(), "Invalid");
  std::vector<std::string> fields;
  for (const json& cause : answer.body.at("details").at("causes")) {
    fields.push_back(cause.at("field"));
  }
  EXPECT_THAT(fields, ::testing::IsSupersetOf({"metadata.name", "spec.members"}));
  EXPECT_EQ(answer.body.at("details").at("kind"), "Gang");
  EXPECT_EQ(answer.body.at("details").at("group"), "tahoma.dev");
}

TEST_F(WriteVerbsTest, AFieldThatComesTwiceInAPatchIsWarnedAboutOrRefused) {
  ASSERT_EQ(Call("POST", kGangs, GangOf("g")).status, 201);
  struct Case {
    std::string type;
    std::string query;
    int refused;
  };
  for (const Case& c : {Case{"application/merge-patch+json", "", 422},
                        Case{"application/apply-patch+yaml", "&fieldManager=a&force=true", 400}}) {
    const std::string patch = R"({"apiVersion":"tahoma.dev/v1alpha1","kind":"Gang",
                                  "metadata":{"annotations":{"a":"1","a":"2"}}})";
    const rest::Headers headers = {{"Content-Type", c.type}};
    const std::string path = kGangs + "/g?fieldValidation=";
    const Answer strict = Call("PATCH", path + "Strict" + c.query, patch, headers);
    EXPECT_EQ(strict.status, c.refused) << strict.text;
    EXPECT_THAT(strict.message(), HasSubstr("duplicate field \"metadata.annotations.a\""));
    const Answer warned = Call("PATCH", path + "Warn" + c.query, patch, headers);
    EXPECT_EQ(warned.status, 200) << warned.text;
    EXPECT_EQ(warned.header("Warning"), "299 - \"duplicate field \\\"metadata.annotations.a\\\"\"");
    EXPECT_EQ(warned.body.at("metadata").at("annotations").at("a"), "2");
    EXPECT_EQ(Call("PATCH", path + "Ignore" + c.query, patch, headers).header("Warning"), "");
  }
}

TEST_F(WriteVerbsTest, UnknownFieldsAreWarnedAboutOrRefusedOrIgnored) {
  json gang = GangOf("g");
  gang["spec"]["sahpe"] = "x";
  const Answer strict = Call("POST", kGangs + "?fieldValidation=Strict", gang);
  EXPECT_EQ(strict.status, 400);
  EXPECT_EQ(strict.message(),
            "Gang in version \"v1alpha1\" cannot be handled as a Gang: strict decoding error: "
            "unknown field \"spec.sahpe\"");
  const Answer doubled = Call("POST", kGangs + "?fieldValidation=Strict",
                              R"({"apiVersion":"tahoma.dev/v1alpha1","kind":"Gang",
                                  "metadata":{"name":"g"},"spec":{"members":1,"members":2}})");
  EXPECT_THAT(doubled.message(), HasSubstr("duplicate field \"spec.members\""));
  const Answer warned = Call("POST", kGangs + "?dryRun=All", gang);
  EXPECT_EQ(warned.status, 201);
  EXPECT_EQ(warned.header("Warning"), "299 - \"unknown field \\\"spec.sahpe\\\"\"");
  EXPECT_FALSE(warned.body.at("spec").contains("sahpe"));
  EXPECT_EQ(Call("POST", kGangs + "?fieldValidation=Ignore", gang).header("Warning"), "");
  EXPECT_EQ(Call("POST", kGangs + "?fieldValidation=Loud", gang).status, 422);
}

TEST_F(WriteVerbsTest, DryRunAnswersAsTheRealThingAndChangesNothing) {
  const std::int64_t version = server_->objects().version();
  EXPECT_EQ(Call("POST", kGangs + "?dryRun=All", GangOf("g")).status, 201);
  EXPECT_EQ(Call("POST", kGangs + "?dryRun=Some", GangOf("g")).status, 422);
  EXPECT_EQ(Call("GET", kGangs + "/g").status, 404);
  EXPECT_EQ(server_->objects().version(), version);
  ASSERT_EQ(Call("POST", kGangs, GangOf("g")).status, 201);
  const json before = Call("GET", kGangs + "/g").body;
  const Answer patched =
      Patch(kGangs + "/g?dryRun=All", "merge-patch+json", {{"spec", {{"members", 8}}}});
  EXPECT_EQ(patched.body.at("spec").at("members"), 8);
  EXPECT_EQ(Call("DELETE", kGangs + "/g?dryRun=All").status, 200);
  EXPECT_EQ(Call("GET", kGangs + "/g").body, before);
}

TEST_F(WriteVerbsTest, UpdateWithAnOldVersionIsAConflict) {
  const json first = Call("POST", kGangs, GangOf("g")).body;
  json second = first;
  second["spec"]["members"] = 8;
  const Answer updated = Call("PUT", kGangs + "/g", second);
  ASSERT_EQ(updated.status, 200) << updated.text;
  EXPECT_EQ(updated.body.at("metadata").at("generation"), 2);
  const Answer late = Call("PUT", kGangs + "/g", second);
  EXPECT_EQ(late.status, 409);
  EXPECT_EQ(
      late.message(),
      "Operation cannot be fulfilled on gangs.tahoma.dev \"g\": the object has been modified; "
      "please apply your changes to the latest version and try again");
  json without = second;
  without["metadata"].erase("resourceVersion");
  EXPECT_EQ(Call("PUT", kGangs + "/g", without).status, 422);
  json other_uid = updated.body;
  other_uid["metadata"]["uid"] = "11111111-1111-4111-8111-111111111111";
  EXPECT_THAT(Call("PUT", kGangs + "/g", other_uid).message(), HasSubstr("UID in precondition"));
  EXPECT_EQ(Call("PUT", kGangs + "/other", updated.body).status, 400)
      << "name differs from the URL";
  json missing = GangOf("nope");
  missing["metadata"]["resourceVersion"] = "5";
  EXPECT_EQ(Call("PUT", kGangs + "/nope", missing).status, 404);
}

TEST_F(WriteVerbsTest, AWriteThatChangesNothingKeepsTheVersion) {
  const Answer made = Call("POST", kMaps, ConfigMapOf("c", "1"));
  const Answer same = Call("PUT", kMaps + "/c", made.body);
  EXPECT_EQ(same.version(), made.version());
  EXPECT_EQ(Patch(kMaps + "/c", "merge-patch+json", {{"data", {{"key", "1"}}}}).version(),
            made.version());
  clock_.Advance(std::chrono::seconds(5));
  const std::string apply = kMaps + "/c?fieldManager=m&force=true";
  json applied = ConfigMapOf("c", "2");
  applied["apiVersion"] = "v1";
  applied["kind"] = "ConfigMap";
  const Answer first = Patch(apply, "apply-patch+yaml", applied);
  ASSERT_EQ(first.status, 200) << first.text;
  clock_.Advance(std::chrono::seconds(5));
  EXPECT_EQ(Patch(apply, "apply-patch+yaml", applied).version(), first.version());
}

TEST_F(WriteVerbsTest, PatchTypesDoWhatTheyAreNamedFor) {
  ASSERT_EQ(Call("POST", kPods, PodOf("p", {{"a", "1"}, {"b", "2"}})).status, 201);
  const std::string pod = kPods + "/p";
  EXPECT_EQ(Patch(pod, "merge-patch+json", {{"metadata", {{"labels", {{"a", nullptr}}}}}})
                .body.at("metadata")
                .at("labels"),
            (json{{"b", "2"}}));
  EXPECT_EQ(Patch(pod, "json-patch+json",
                  {{{"op", "add"}, {"path", "/metadata/labels/c"}, {"value", "3"}}})
                .status,
            200);
  const Answer strategic = Patch(pod, "strategic-merge-patch+json",
                                 {{"metadata", {{"finalizers", {"example.com/one"}}}}});
  EXPECT_EQ(strategic.status, 200) << strategic.text;
  EXPECT_EQ(Patch(pod, "json-patch+json",
                  {{{"op", "test"}, {"path", "/metadata/labels/c"}, {"value", "9"}}})
                .status,
            422);
  EXPECT_EQ(Patch(pod, "json-patch+json", {{{"op", "jump"}, {"path", "/a"}}}).status, 422);
  EXPECT_EQ(Patch(pod, "json", json::object()).status, 415);
  EXPECT_EQ(Patch(kPods + "/none", "merge-patch+json", json::object()).status, 404);
  ASSERT_EQ(Call("POST", kGangs, GangOf("g")).status, 201);
  const Answer unsupported =
      Patch(kGangs + "/g", "strategic-merge-patch+json", {{"spec", {{"members", 1}}}});
  EXPECT_EQ(unsupported.status, 415);
  EXPECT_EQ(unsupported.reason(), "UnsupportedMediaType");
}

TEST_F(WriteVerbsTest, AMergePatchWithAVersionIsAPrecondition) {
  const Answer made = Call("POST", kMaps, ConfigMapOf("c", "1"));
  const json patch = {{"metadata", {{"resourceVersion", made.version()}}},
                      {"data", {{"key", "2"}}}};
  EXPECT_EQ(Patch(kMaps + "/c", "merge-patch+json", patch).status, 200);
  EXPECT_EQ(Patch(kMaps + "/c", "merge-patch+json", patch).reason(), "Conflict");
}

TEST_F(WriteVerbsTest, APodWithTolerationsMayBeAppliedAgain) {
  const std::string url = kPods + "/p?fieldManager=alice";
  json pod = PodOf("p");
  pod["apiVersion"] = "v1";
  pod["kind"] = "Pod";
  pod["spec"]["tolerations"] = {{{"key", "mine"}, {"operator", "Exists"}}};
  const Answer first = Patch(url, "apply-patch+yaml", pod);
  ASSERT_EQ(first.status, 201) << first.text;
  // Admission added two.
  EXPECT_EQ(first.body.at("spec").at("tolerations").size(), 3U);
  const Answer again = Patch(url, "apply-patch+yaml", pod);
  EXPECT_EQ(again.status, 200) << again.text;
  EXPECT_EQ(again.body, first.body);
}

TEST_F(WriteVerbsTest, AnApplyThatOwnsNothingLeavesNoListOfOwners) {
  const Answer made = Patch(kMaps + "/c?fieldManager=alice", "apply-patch+yaml",
                            {{"apiVersion", "v1"}, {"kind", "ConfigMap"}});
  ASSERT_EQ(made.status, 201) << made.text;
  EXPECT_FALSE(made.body.at("metadata").contains("managedFields")) << made.text;
  EXPECT_EQ(Call("PUT", kMaps + "/c", made.text).version(), made.version());
}

TEST_F(WriteVerbsTest, ServerSideApplyCreatesMergesAndReportsConflicts) {
  const std::string url = kGangs + "/g?fieldManager=alice";
  EXPECT_EQ(Patch(kGangs + "/g", "apply-patch+yaml", GangOf("g")).status, 422) << "no manager";
  EXPECT_EQ(Patch(url, "apply-patch+yaml", GangOf("g")).status, 201);
  EXPECT_EQ(Patch(url, "apply-patch+yaml", GangOf("g", 5)).body.at("spec").at("members"), 5);
  const Answer conflict = Patch(kGangs + "/g?fieldManager=bob", "apply-patch+yaml", GangOf("g", 6));
  EXPECT_EQ(conflict.status, 409);
  EXPECT_EQ(conflict.reason(), "Conflict");
  EXPECT_EQ(conflict.body.at("details").at("causes").at(0).at("reason"), "FieldManagerConflict");
  EXPECT_EQ(Patch(kGangs + "/g?fieldManager=bob&force=true", "apply-patch+yaml", GangOf("g", 6))
                .body.at("spec")
                .at("members"),
            6);
  const Answer yaml = Call("PATCH", url + "&force=1",
                           "apiVersion: tahoma.dev/v1alpha1\nkind: Gang\nspec: {members: 7}\n",
                           {{"Content-Type", "application/apply-patch+yaml"}});
  EXPECT_EQ(yaml.status, 200) << yaml.text;
  EXPECT_EQ(yaml.body.at("spec").at("members"), 7);
}

TEST_F(WriteVerbsTest, StatusAndSpecAreWrittenApart) {
  ASSERT_EQ(Call("POST", kGangs, GangOf("g")).status, 201);
  const json change = {{"spec", {{"members", 9}}}, {"status", {{"phase", "Running"}}}};
  const Answer status = Patch(kGangs + "/g/status", "merge-patch+json", change);
  ASSERT_EQ(status.status, 200) << status.text;
  EXPECT_EQ(status.body.at("spec").at("members"), 4);
  EXPECT_EQ(status.body.at("status").at("phase"), "Running");
  EXPECT_EQ(status.body.at("metadata").at("generation"), 1);
  const json change_back = {{"spec", {{"members", 9}}}, {"status", {{"phase", "Failed"}}}};
  const Answer main = Patch(kGangs + "/g", "merge-patch+json", change_back);
  EXPECT_EQ(main.body.at("spec").at("members"), 9);
  EXPECT_EQ(main.body.at("status").at("phase"), "Running");
  EXPECT_EQ(main.body.at("metadata").at("generation"), 2);
  EXPECT_EQ(Call("GET", kGangs + "/g/status").body, Call("GET", kGangs + "/g").body);
}

TEST_F(WriteVerbsTest, ScaleIsReadPatchedAndReplacedWithoutAContentType) {
  ASSERT_EQ(Call("POST", kGangs, GangOf("g")).status, 201);
  const Answer scale = Call("GET", kGangs + "/g/scale");
  EXPECT_EQ(scale.body.at("kind"), "Scale");
  EXPECT_EQ(scale.body.at("spec").at("replicas"), 4);
  EXPECT_EQ(Patch(kGangs + "/g/scale", "merge-patch+json", {{"spec", {{"replicas", 8}}}})
                .body.at("spec")
                .at("replicas"),
            8);
  EXPECT_EQ(Call("PUT", kGangs + "/g/scale", scale.body).reason(), "Conflict") << "old version";
  json next = Call("GET", kGangs + "/g/scale").body;
  next["spec"]["replicas"] = 2;
  EXPECT_EQ(Call("PUT", kGangs + "/g/scale", next).status, 200);
  EXPECT_EQ(Call("GET", kGangs + "/g").body.at("spec").at("members"), 2);
  next["spec"]["replicas"] = -1;
  next["metadata"].erase("resourceVersion");
  const Answer negative = Call("PUT", kGangs + "/g/scale", next);
  EXPECT_EQ(negative.status, 422);
  EXPECT_THAT(negative.message(), HasSubstr(".spec.members: Invalid value: -1: should be a "
                                            "non-negative integer"));
  const Answer table = Call("GET", kGangs + "/g/scale", "",
                            {{"Accept", "application/json;as=Table;v=v1;g=meta.k8s.io"}});
  EXPECT_EQ(table.body.at("rows").at(0).at("cells"), json({"g", 2, 0, "0s"}));
  next["metadata"]["name"] = "h";
  EXPECT_EQ(Call("PUT", kGangs + "/g/scale", next).message(),
            "the name of the object (h) does not match the name on the URL (g)");
  EXPECT_EQ(Call("GET", kPods + "/p/scale").status, 404);
}

TEST_F(WriteVerbsTest, NamespacesMustExistAndNotBeTerminating) {
  const std::string maps = "/api/v1/namespaces/team/configmaps";
  const Answer missing = Call("POST", maps, ConfigMapOf("c", "1"));
  EXPECT_EQ(missing.status, 404);
  EXPECT_EQ(missing.message(), "namespaces \"team\" not found");
  ASSERT_EQ(Call("POST", "/api/v1/namespaces", {{"metadata", {{"name", "team"}}}}).status, 201);
  ASSERT_EQ(Call("POST", maps, ConfigMapOf("c", "1")).status, 201);
  const Answer deleted = Call("DELETE", "/api/v1/namespaces/team");
  EXPECT_EQ(deleted.body.at("status").at("phase"), "Terminating");
  const Answer late = Call("POST", maps, ConfigMapOf("d", "1"));
  EXPECT_EQ(late.status, 403);
  EXPECT_EQ(late.body.at("details").at("causes").at(0).at("reason"), "NamespaceTerminating");
  json finalized = Call("GET", "/api/v1/namespaces/team").body;
  finalized["spec"]["finalizers"] = json::array();
  EXPECT_EQ(Call("PUT", "/api/v1/namespaces/team/finalize", finalized).status, 200);
  EXPECT_EQ(Call("GET", "/api/v1/namespaces/team").status, 404);
}

TEST_F(WriteVerbsTest, ACrdMakesAKindAndTakesItAwayWithItsObjects) {
  ASSERT_EQ(Call("POST", kGangs, GangOf("g")).status, 201);
  Restart();
  EXPECT_EQ(Call("GET", kGangs + "/g").status, 200)
      << "kinds of stored CRDs are there after a start";
  const std::string crd =
      "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/gangs.tahoma.dev";
  EXPECT_EQ(Call("GET", crd).body.at("status").at("acceptedNames").at("kind"), "Gang");
  EXPECT_EQ(Call("DELETE", crd).status, 200);
  EXPECT_EQ(Call("GET", kGangs).status, 404);
  Restart();
  EXPECT_THAT(Call("GET", kGangs).names(), ElementsAre());
  EXPECT_EQ(Call("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
                 {{"metadata", {{"name", "x"}}}, {"spec", {{"group", "y"}}}})
                .status,
            422);
}

}  // namespace
}  // namespace tahoma::controller::apiserver
