// Lists, pages, selectors, forms of answers, paths; and discovery as a client meets it.

#include "controller/apiserver/verbs/read_verbs.h"

#include <gmock/gmock.h>

#include <set>

#include "controller/apiserver/http/in_process_transport.h"
#include "lib/kube/json_writer.h"
#include "tests/support/api_fixture.h"
#include "tests/unit/controller/apiserver/paths.h"

namespace tahoma::controller::apiserver {
namespace {

using json = Json;
using testing::Answer;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kTable = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";

class ReadVerbsTest : public testing::ApiFixture {
 protected:
  void CreateMaps(const std::vector<std::string>& names) {
    for (const std::string& name : names) {
      json map = ConfigMapOf(name, "1");
      map["metadata"]["labels"] = {{"name", name}};
      ASSERT_EQ(Call("POST", kMaps, map).status, 201);
    }
  }
};

TEST_F(ReadVerbsTest, AListHasKindVersionAndItemsInOrder) {
  CreateMaps({"b", "a", "c"});
  const Answer list = Call("GET", kMaps);
  EXPECT_EQ(list.body.at("kind"), "ConfigMapList");
  EXPECT_EQ(list.body.at("apiVersion"), "v1");
  EXPECT_EQ(list.version(), std::to_string(server_->objects().version()));
  EXPECT_THAT(list.names(), ElementsAre("a", "b", "c"));
  EXPECT_THAT(Call("GET", "/api/v1/configmaps").names(), ElementsAre("a", "b", "c"));
  EXPECT_THAT(Call("GET", "/api/v1/namespaces/other/configmaps").names(), ElementsAre());
  EXPECT_EQ(list.header("Cache-Control"), "no-cache, private");
}

// They are cut out of the objects' texts.
TEST_F(ReadVerbsTest, ItemsAreTheObjectsWithoutTheirVersionsAndKinds) {
  json map = ConfigMapOf("a", "quoted \" and \\ and \\\" and \\\\");
  map["data"]["apiVersion"] = "v1";
  map["data"]["kind"] = "ConfigMap";
  map["data"]["metadata"] = R"("kind":"ConfigMap","metadata":{[[)";
  ASSERT_EQ(Call("POST", kMaps, map).status, 201);
  ASSERT_EQ(Call("POST", kMaps, json{{"metadata", {{"name", "b"}}}}).status, 201);
  const json event = {{"metadata", {{"name", "e"}}},
                      {"action", "bind"},
                      {"count", 1},
                      {"involvedObject", {{"kind", "Pod"}, {"apiVersion", "v1"}, {"name", "p"}}},
                      {"lastTimestamp", "2027-01-15T08:00:00Z"}};
  const std::string events = "/api/v1/namespaces/default/events";
  ASSERT_EQ(Call("POST", events, event).status, 201);
  ASSERT_EQ(Call("POST", "/api/v1/namespaces/default/pods", PodOf("p")).status, 201);
  for (const std::string& path : {kMaps, events, std::string("/api/v1/namespaces/default/pods"),
                                  std::string("/api/v1/namespaces")}) {
    const Answer list = Call("GET", path);
    ASSERT_FALSE(list.body.at("items").empty()) << path;
    for (const json& item : list.body.at("items")) {
      const std::string name = item.at("metadata").at("name");
      json object = Call("GET", path + "/" + name).body;
      EXPECT_EQ(object.erase("apiVersion") + object.erase("kind"), 2U) << path << name;
      EXPECT_EQ(item, object) << path << name;
    }
  }
}

TEST_F(ReadVerbsTest, PagesAreOfOneVersionWhateverHappensInBetween) {
  CreateMaps({"a", "b", "c", "d", "e"});
  const Answer first = Call("GET", kMaps + "?limit=2");
  EXPECT_THAT(first.names(), ElementsAre("a", "b"));
  EXPECT_EQ(first.body.at("metadata").at("remainingItemCount"), 3);
  Call("DELETE", kMaps + "/c");
  CreateMaps({"aa", "cc"});
  const std::string token = first.body.at("metadata").at("continue");
  const Answer second = Call("GET", kMaps + "?limit=2&continue=" + token);
  EXPECT_THAT(second.names(), ElementsAre("c", "d"));
  EXPECT_EQ(second.version(), first.version());
  const Answer third = Call(
      "GET",
      kMaps + "?limit=2&continue=" + second.body.at("metadata").at("continue").get<std::string>());
  EXPECT_THAT(third.names(), ElementsAre("e"));
  EXPECT_FALSE(third.body.at("metadata").contains("continue"));
  EXPECT_FALSE(Call("GET", kMaps + "?limit=1&labelSelector=name")
                   .body.at("metadata")
                   .contains("remainingItemCount"));
}

TEST_F(ReadVerbsTest, APageOfAForgottenVersionIsExpired) {
  CreateMaps({"a", "b"});
  const std::string token = Call("GET", kMaps + "?limit=1").body.at("metadata").at("continue");
  CreateMaps({"c"});
  Restart();
  const Answer late = Call("GET", kMaps + "?limit=1&continue=" + token);
  EXPECT_EQ(late.status, 410);
  EXPECT_EQ(late.reason(), "Expired");
  for (const char* bad : {"x", "e30", "!!"}) {
    EXPECT_EQ(Call("GET", kMaps + "?continue=" + bad).status, 400) << bad;
  }
}

TEST_F(ReadVerbsTest, ContinueTokensSurviveTheRoundTrip) {
  const std::string start("ns/name\0", 8);
  const auto token = DecodeContinue(EncodeContinue({77, start}));
  ASSERT_TRUE(token.ok());
  EXPECT_EQ(token->version, 77);
  EXPECT_EQ(token->start, start);
}

TEST_F(ReadVerbsTest, VersionParametersFollowKubernetesRules) {
  CreateMaps({"a"});
  const std::string now = Call("GET", kMaps).version();
  CreateMaps({"b"});
  struct Case {
    std::string query;
    int status;
  };
  for (const Case& c :
       std::vector<Case>{{"resourceVersion=0", 200},
                         {"resourceVersion=" + now, 200},
                         {"resourceVersion=999999", 504},
                         {"resourceVersion=x", 400},
                         {"resourceVersionMatch=Exact", 422},
                         {"resourceVersion=0&resourceVersionMatch=Exact", 422},
                         {"resourceVersion=1&resourceVersionMatch=Sometimes", 422},
                         {"resourceVersion=" + now + "&resourceVersionMatch=NotOlderThan", 200},
                         {"sendInitialEvents=true", 422},
                         {"limit=-1", 200},
                         {"limit=x", 400},
                         {"watch=1&resourceVersionMatch=NotOlderThan", 422},
                         {"watch=1&sendInitialEvents=true", 422},
                         {"a=%zz", 400}}) {
    EXPECT_EQ(Call("GET", kMaps + "?" + c.query).status, c.status) << c.query;
  }
  EXPECT_THAT(Call("GET", kMaps + "?resourceVersionMatch=Exact&resourceVersion=" + now).names(),
              ElementsAre("a"));
  const Answer future = Call("GET", kMaps + "?resourceVersion=999999");
  EXPECT_EQ(future.body.at("details").at("causes").at(0).at("reason"), "ResourceVersionTooLarge");
  EXPECT_EQ(future.header("Retry-After"), "1");
}

TEST_F(ReadVerbsTest, SelectorsChooseByLabelsAndFields) {
  CreateMaps({"a", "b", "c"});
  EXPECT_THAT(Call("GET", kMaps + "?labelSelector=name%20in%20(a,c)").names(),
              ElementsAre("a", "c"));
  EXPECT_THAT(Call("GET", kMaps + "?labelSelector=name!=a,!other").names(), ElementsAre("b", "c"));
  EXPECT_THAT(Call("GET", kMaps + "?fieldSelector=metadata.name%3Db").names(), ElementsAre("b"));
  EXPECT_THAT(Call("GET", kMaps + "?fieldSelector=metadata.name!=b").names(),
              ElementsAre("a", "c"));
  EXPECT_EQ(Call("GET", kMaps + "?labelSelector=%3D%3D").status, 400);
  EXPECT_EQ(Call("GET", kMaps + "?fieldSelector=data.key%3D1").message(),
            "\"data.key\" is not a known field selector: only \"metadata.name\", "
            "\"metadata.namespace\"");
  EXPECT_EQ(Call("GET", kPods + "?fieldSelector=data.key%3D1").message(),
            "field label not supported: data.key");
  json pod = PodOf("p");
  pod["spec"]["nodeName"] = "n1";
  ASSERT_EQ(Call("POST", kPods, pod).status, 201);
  ASSERT_EQ(Call("POST", kPods, PodOf("q")).status, 201);
  EXPECT_THAT(Call("GET", kPods + "?fieldSelector=spec.nodeName%3Dn1").names(), ElementsAre("p"));
  EXPECT_THAT(Call("GET", kPods + "?fieldSelector=spec.nodeName%3D").names(), ElementsAre("q"));
  EXPECT_EQ(Call("GET", kPods + "?fieldSelector=status.phase%3DPending").names().size(), 2U);
}

TEST_F(ReadVerbsTest, AcceptChoosesTableMetadataOrTheWholeObject) {
  ASSERT_EQ(Call("POST", kGangs, GangOf("g")).status, 201);
  const Answer table = Call("GET", kGangs, "", {{"Accept", kTable}});
  EXPECT_EQ(table.body.at("kind"), "Table");
  EXPECT_EQ(table.body.at("rows").at(0).at("cells").at(0), "g");
  EXPECT_EQ(table.body.at("rows").at(0).at("object").at("kind"), "PartialObjectMetadata");
  EXPECT_EQ(Call("GET", kGangs + "/g?includeObject=Object", "", {{"Accept", kTable}})
                .body.at("rows")
                .at(0)
                .at("object")
                .at("kind"),
            "Gang");
  EXPECT_EQ(Call("GET", kGangs + "?includeObject=All", "", {{"Accept", kTable}}).status, 400);
  const std::string partial =
      "application/cbor;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,"
      "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";
  const Answer list = Call("GET", kGangs, "", {{"Accept", partial}});
  EXPECT_EQ(list.body.at("kind"), "PartialObjectMetadataList");
  EXPECT_FALSE(list.body.at("items").at(0).contains("spec"));
  EXPECT_EQ(Call("GET", kGangs, "", {{"Accept", "*/*"}}).body.at("kind"), "GangList");
  const Answer refused = Call("GET", kGangs, "", {{"Accept", "text/html"}});
  EXPECT_EQ(refused.status, 406);
  EXPECT_EQ(refused.reason(), "NotAcceptable");
}

TEST_F(ReadVerbsTest, PathsThatLeadNowhereAre404AndWrongMethods405) {
  for (const char* path :
       {"/api/v1/unicorns", "/api/v1/namespaces/default/nodes", "/api/v1/pods/p",
        "/api/v1/namespaces/default/pods/p/status/x", "/apis/resource.k8s.io/v9/resourceclaims",
        "/api/v1/namespaces/default/pods/p/unknown"}) {
    const Answer answer = Call("GET", path);
    EXPECT_EQ(answer.status, 404) << path;
    EXPECT_EQ(answer.reason(), "NotFound") << path;
  }
  // Outside the built-in groups Go's own handler answers.
  for (const char* path : {"/apis/no.such/v1/things", "/apis/tahoma.dev/v9/gangs", "/nowhere",
                           "/openapi/v3/apis/no/v1"}) {
    const Answer answer = Call("GET", path);
    EXPECT_EQ(answer.status, 404) << path;
    EXPECT_EQ(answer.text, "404 page not found\n") << path;
  }
  // Groups of Kubernetes that are not served say where they are.
  for (const char* path : {"/apis/networking.k8s.io/v1/namespaces/default/ingresses",
                           "/apis/autoscaling/v2", "/apis/rbac.authorization.k8s.io"}) {
    const Answer answer = Call("GET", path);
    EXPECT_EQ(answer.status, 404) << path;
    EXPECT_EQ(answer.reason(), "NotFound") << path;
    EXPECT_THAT(answer.message(), HasSubstr("examples/kind/up.sh")) << path;
  }
  EXPECT_EQ(Call("GET", "/api/v1/namespaces/default/pods/a%2Fb").status, 400);
  EXPECT_EQ(Call("GET", "/api/v1/namespaces/../pods/x").status, 400);
  EXPECT_EQ(Call("POST", "/api/v1/pods", PodOf("p")).status, 405);
  EXPECT_EQ(Call("PUT", kMaps).status, 405);
  EXPECT_EQ(Call("POST", kMaps + "/a").reason(), "MethodNotAllowed");
}

TEST_F(ReadVerbsTest, DiscoveryOpenApiAndVersionAreServed) {
  const Answer aggregated =
      Call("GET", "/apis", "",
           {{"Accept", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"}});
  EXPECT_EQ(aggregated.body.at("kind"), "APIGroupDiscoveryList");
  EXPECT_EQ(aggregated.header("Content-Type"),
            "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList");
  EXPECT_EQ(Call("GET", "/apis").body.at("kind"), "APIGroupList");
  EXPECT_EQ(Call("GET", "/api").body.at("kind"), "APIVersions");
  EXPECT_EQ(Call("GET", "/apis/tahoma.dev").body.at("kind"), "APIGroup");
  EXPECT_EQ(Call("GET", "/apis/tahoma.dev/v1alpha1").body.at("kind"), "APIResourceList");
  EXPECT_EQ(Call("GET", "/api/v1").body.at("kind"), "APIResourceList");
  EXPECT_EQ(Call("GET", "/version").body.at("gitVersion"), "v1.36.0+tahoma");
  for (const char* probe : {"/healthz", "/livez", "/readyz"}) {
    EXPECT_EQ(Call("GET", probe).text, "ok");
  }
  const Answer index = Call("GET", "/openapi/v3");
  const std::string url =
      index.body.at("paths").at("apis/tahoma.dev/v1alpha1").at("serverRelativeURL");
  const Answer document = Call("GET", url);
  EXPECT_EQ(document.body.at("openapi"), "3.0.0");
  EXPECT_EQ(document.header("Cache-Control"), "public, immutable");
  EXPECT_EQ(Call("GET", url, "", {{"If-None-Match", document.header("Etag")}}).status, 304);
  const Answer moved = Call("GET", "/openapi/v3/apis/tahoma.dev/v1alpha1?hash=OLD");
  EXPECT_EQ(moved.status, 301);
  EXPECT_EQ(moved.header("Location"), url);
}

TEST_F(ReadVerbsTest, TheInProcessTransportSpeaksForClientsOfThisProcess) {
  InProcessTransport transport(*server_, clock_, "ours");
  const auto made = transport.Send(
      {.method = "POST", .target = kMaps, .headers = {}, .body = ConfigMapOf("c", "1").dump()});
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(made->status, 201);
  EXPECT_EQ(ParseJson(made->body).at("metadata").at("managedFields").at(0).at("manager"), "ours");
  ASSERT_NE(made->parsed, nullptr);  // the stored object itself, no parsing needed
  EXPECT_EQ(kube::JsonText(*made->parsed), made->body);
  std::vector<std::string> lines;
  const auto head = transport.Stream(
      {.method = "GET", .target = kMaps + "?watch=true", .headers = {}, .body = {}},
      [&](std::string_view line) {
        lines.emplace_back(line);
        return false;
      },
      std::chrono::seconds(10));
  ASSERT_TRUE(head.ok());
  EXPECT_EQ(head->status, 200);
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_EQ(ParseJson(lines[0]).at("type"), "ADDED");
  const auto refused = transport.Stream(
      {.method = "GET", .target = "/api/v1/unicorns?watch=true", .headers = {}, .body = {}},
      [](std::string_view) { return true; }, std::chrono::seconds(1));
  EXPECT_EQ(refused->status, 404);
  EXPECT_THAT(refused->body, HasSubstr("NotFound"));
}

// The defect: in the process they were "ok" whatever the checks said.
TEST_F(ReadVerbsTest, ProbesSayHowTheChecksAre) {
  server_->probes()->Add(rest::Probes::Kind::kReadyz, "store", [] { return "no room"; });
  EXPECT_EQ(Call("GET", "/readyz").status, 503);
  EXPECT_THAT(Call("GET", "/readyz").text, HasSubstr("[-]store failed: no room\n"));
  EXPECT_EQ(Call("GET", "/readyz?exclude=store").text, "ok");
  EXPECT_EQ(Call("GET", "/livez").text, "ok");
  EXPECT_EQ(Call("GET", "/readyz/none").status, 404);
}

TEST_F(ReadVerbsTest, ComponentsSayHowTheyAreWhenTheyAreRead) {
  std::string trouble;
  server_->probes()->Add(rest::Probes::Kind::kReadyz, "store", [&] { return trouble; });
  server_->probes()->Add(rest::Probes::Kind::kReadyz, "core", [] { return std::string(); });
  const std::string path = "/api/v1/componentstatuses";
  EXPECT_EQ(Call("GET", path).names(), (std::vector<std::string>{"core", "store"}));
  EXPECT_EQ(Call("GET", path + "/store").body.at("conditions"),
            ParseJson(R"([{"type": "Healthy", "status": "True", "message": "ok"}])"));
  trouble = "no commit succeeds";
  EXPECT_EQ(
      Call("GET", path + "/store").body.at("conditions"),
      ParseJson(R"([{"type": "Healthy", "status": "False", "message": "no commit succeeds"}])"));
  EXPECT_EQ(Call("GET", path + "/other").status, 404);
  EXPECT_EQ(Call("DELETE", path + "/store").status, 405);
  EXPECT_EQ(Call("POST", path, {{"metadata", {{"name", "own"}}}}).status, 405);
}

}  // namespace
}  // namespace tahoma::controller::apiserver
