// Every route of the admin API over HTTP: what it shows of a snapshot, and what it refuses.

#include "controller/admin/admin.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "controller/admin/why_route.h"
#include "lib/base/json.h"
#include "lib/rest/bearer.h"
#include "lib/rest/server.h"
#include "tests/support/fleet.h"
#include "tests/unit/lib/rest/raw_client.h"

namespace tahoma::controller {
namespace {

using json = Json;
using ::testing::HasSubstr;
using testing::RawClient;

struct Answer {
  int status = 0;
  std::string head;
  json body;
};

class AdminTest : public ::testing::Test {
 protected:
  AdminTest() : admin_([this] { return std::make_shared<const Snapshot>(snapshot_); }) {
    snapshot_.synced = true;
  }

  // The fleet that the snapshot shows from now on.
  void Show() { snapshot_.cluster = std::make_shared<const ClusterState>(fleet_); }

  void AddGang(const std::string& ns, const std::string& name, bool single, GangView view = {}) {
    view.ref = {.key = {ns, name}, .single = single};
    const GangRef ref = view.ref;
    snapshot_.gangs.Put(ref, std::make_shared<const GangView>(std::move(view)));
  }

  Answer Ask(const std::string& method, const std::string& target) {
    if (server_ == nullptr) Start();
    const std::string text =
        RawClient(server_->port())
            .Ask(method + " " + target + " HTTP/1.1\r\nHost: localhost\r\n" + more_ + "\r\n");
    Answer answer;
    const std::size_t end = text.find("\r\n\r\n");
    if (end == std::string::npos || text.size() < 12) return answer;
    answer.status = std::stoi(text.substr(9, 3));
    answer.head = text.substr(0, end);
    answer.body = TryParseJson(text.substr(end + 4));
    return answer;
  }
  Answer Get(const std::string& target) { return Ask("GET", target); }

  void Start(const std::string& token = "") {
    server_ = std::make_unique<rest::Server>(rest::ServerOptions{}, metrics_);
    if (!token.empty()) server_->SetGate(rest::TokenGate(token));
    admin_.AddRoutes(routes_);
    why_.AddRoutes(routes_);
    routes_.AddTo(*server_, [](rest::Handler handler) { return handler; });
    ASSERT_EQ(server_->Start(), absl::OkStatus());
  }

  ClusterState fleet_;
  Snapshot snapshot_;
  std::string more_;  // header lines of every request
  rest::Metrics metrics_;
  Admin admin_;
  SystemClock clock_;
  WhyRoute why_{[this] { return std::make_shared<const Snapshot>(snapshot_); }, clock_};
  RouteTable routes_;
  std::unique_ptr<rest::Server> server_;
};

GangView View(GangPhase phase, GangReason reason = GangReason::kNone,
              const std::string& message = "") {
  GangView view;
  view.phase = phase;
  view.reason = reason;
  view.message = message;
  return view;
}

std::vector<std::string> NamesOf(const json& rows) {
  std::vector<std::string> names;
  for (const json& row : rows) names.push_back(row["name"]);
  return names;
}

TEST_F(AdminTest, BeforeTheFirstSyncEveryListIsEmptyAndSaysSo) {
  snapshot_ = {};
  const Answer topology = Get("/v1/topology");
  EXPECT_EQ(topology.status, 200);
  EXPECT_EQ(topology.body, (json{{"synced", false}, {"domains", json::array()}}));
  EXPECT_EQ(Get("/v1/nodes").body, (json{{"nodes", json::array()}}));
  EXPECT_EQ(Get("/v1/gangs").body, (json{{"total", 0}, {"gangs", json::array()}}));
}

TEST_F(AdminTest, TopologyShowsDomainsWithTheirShapeAndWhatIsFreeOrBroken) {
  AddUltraServer(fleet_, "us-0");
  fleet_.PutNode(NodeFactsOf({.name = "lone", .broken = 0b101}));
  fleet_.PutNode(NodeFactsOf({.name = "small", .type = "trn2.3xlarge"}));
  Show();
  const Answer answer = Get("/v1/topology");
  ASSERT_EQ(answer.status, 200);
  EXPECT_THAT(answer.head, HasSubstr("Content-Type: application/json"));
  ASSERT_EQ(NamesOf(answer.body["domains"]), (std::vector<std::string>{"us-0", "lone", "small"}));
  const json& ultra = answer.body["domains"][0];
  EXPECT_EQ(ultra["ultraServer"], true);
  EXPECT_EQ(ultra["shape"], "4x4x4");
  EXPECT_EQ(ultra["freeChips"], 64);
  EXPECT_EQ(ultra["brokenChips"], 0);
  EXPECT_EQ(NamesOf(ultra["nodes"]),
            (std::vector<std::string>{"us-0-n0", "us-0-n1", "us-0-n2", "us-0-n3"}));
  EXPECT_EQ(ultra["nodes"][2]["z"], 2);
  const json& lone = answer.body["domains"][1];
  EXPECT_EQ(lone["ultraServer"], false);
  EXPECT_EQ(lone["freeChips"], 14);
  EXPECT_EQ(lone["brokenChips"], 2);
  EXPECT_EQ(lone["nodes"][0]["chips"][0]["healthy"], false);
  EXPECT_EQ(lone["nodes"][0]["chips"][1]["healthy"], true);
  EXPECT_EQ(answer.body["domains"][2]["shape"], "1x1x1");
}

TEST_F(AdminTest, ANodeShowsWhatItHasElected) {
  AddUltraServer(fleet_, "us-0");
  Elect(fleet_, "us-1", {"X4,X2V,X1", "busy", "X1", "X2H,X1"}, "X1");
  Show();
  const Answer answer = Get("/v1/topology");
  EXPECT_FALSE(answer.body["domains"][0]["nodes"][0].contains("ultraServerModes")) << "no election";
  const json& nodes = answer.body["domains"][1]["nodes"];
  EXPECT_EQ(nodes[0]["ultraServerModes"], json({"X4", "X2V", "X1"}));
  EXPECT_EQ(nodes[0]["ultraServerMode"], "X1");
  EXPECT_EQ(nodes[1]["ultraServerModes"], json::array());
  EXPECT_EQ(nodes[3]["ultraServerModes"], json({"X2H", "X1"}));
}

TEST_F(AdminTest, ADomainThatIsGoneLeavesNoRow) {
  AddUltraServer(fleet_, "us-0");
  fleet_.PutNode(NodeFactsOf({.name = "lone"}));
  fleet_.RemoveNode("us-0-n1");
  fleet_.RemoveNode("lone");
  Show();
  const Answer topology = Get("/v1/topology");
  ASSERT_EQ(NamesOf(topology.body["domains"]), (std::vector<std::string>{"us-0"}));
  EXPECT_EQ(NamesOf(topology.body["domains"][0]["nodes"]),
            (std::vector<std::string>{"us-0-n0", "us-0-n2", "us-0-n3"}));
  EXPECT_EQ(Get("/v1/nodes").body["nodes"].size(), 3U);
}

TEST_F(AdminTest, ANodeShowsWhoHoldsWhichCores) {
  fleet_.PutNode(NodeFactsOf({.name = "a", .links_down = {"x+,y-"}}));
  fleet_.Hold(std::make_shared<const Holding>(
      Holding{.claim = {"default", "c"},
              .claim_uid = "u1",
              .holder = "gang default/train",
              .devices = {{.node = "a", .device = "neuron-device-5"}},
              .end = std::nullopt,
              .since = std::nullopt,
              .reservation = ""}));
  fleet_.Hold(std::make_shared<const Holding>(
      Holding{.claim = {"default", "d"},
              .claim_uid = "u2",
              .holder = "pod default/look",
              .devices = {{.node = "a", .device = "neuron-device-6", .admin_access = true}},
              .end = std::nullopt,
              .since = std::nullopt,
              .reservation = ""}));
  Show();
  const Answer answer = Get("/v1/nodes");
  ASSERT_EQ(answer.status, 200);
  const json& node = answer.body["nodes"][0];
  EXPECT_EQ(node["name"], "a");
  EXPECT_EQ(node["instanceType"], "trn2.48xlarge");
  EXPECT_EQ(node["schedulable"], true);
  EXPECT_EQ(node["busyChips"], 1 << 5);
  ASSERT_EQ(node["chips"].size(), 16U);
  EXPECT_EQ(node["chips"][5], (json{{"chip", 5},
                                    {"x", 1},
                                    {"y", 1},
                                    {"healthy", true},

                                    {"busyCores", 255},
                                    {"holder", "gang default/train"}}));
  EXPECT_EQ(node["chips"][0]["linksDown"], "x+,y-");
  EXPECT_FALSE(node["chips"][0].contains("holder")) << "a free chip";
  EXPECT_FALSE(node["chips"][6].contains("holder")) << "admin access occupies nothing";
}

TEST_F(AdminTest, AWholeNodesHolderIsShownOnEveryChipAndPartsOfAChipShareIt) {
  fleet_.PutNode(NodeFactsOf({.name = "a", .type = "trn2u.48xlarge", .ultra_server = "us"}));
  fleet_.PutNode(NodeFactsOf({.name = "b"}));
  const auto hold = [&](const std::string& uid, const std::string& node,
                        const std::string& device) {
    fleet_.Hold(
        std::make_shared<const Holding>(Holding{.claim = {"default", uid},
                                                .claim_uid = uid,
                                                .holder = "pod default/" + uid,
                                                .devices = {{.node = node, .device = device}},
                                                .end = std::nullopt,
                                                .since = std::nullopt,
                                                .reservation = ""}));
  };
  hold("whole", "a", "neuron-node");
  hold("p", "b", "neuron-core-3-lnc2-0");
  hold("q", "b", "neuron-core-3-lnc2-1");
  Show();
  const json nodes = Get("/v1/nodes").body["nodes"];
  for (const json& chip : nodes[0]["chips"]) EXPECT_EQ(chip["holder"], "pod default/whole");
  EXPECT_EQ(nodes[0]["busyChips"], 0xFFFF);
  EXPECT_EQ(nodes[1]["chips"][3]["busyCores"], 0b1111);
  EXPECT_EQ(nodes[1]["chips"][3]["holder"], "pod default/p, pod default/q");
}

TEST_F(AdminTest, AFleetIsReadInPages) {
  for (int i = 0; i < 1500; ++i) {
    fleet_.PutNode(NodeFactsOf({.name = "n" + std::to_string(i), .type = "trn2.3xlarge"}));
  }
  Show();
  for (const std::string rows : {"domains", "nodes"}) {
    SCOPED_TRACE(rows);
    const std::string path = rows == "domains" ? "/v1/topology" : "/v1/nodes";
    const Answer first = Get(path);
    EXPECT_EQ(first.body[rows].size(), 1000U);
    ASSERT_EQ(first.body["next"], 1000);
    const Answer rest = Get(path + "?from=1000");
    EXPECT_EQ(rest.body[rows].size(), 500U);
    EXPECT_EQ(rest.body[rows][0]["name"], "n1000");
    EXPECT_FALSE(rest.body.contains("next"));
    EXPECT_EQ(Get(path + "?from=999999999").body[rows].size(), 0U) << "past the end";
  }
}

TEST_F(AdminTest, APageThatIsNoNumberIsRefused) {
  for (const std::string path : {"/v1/topology", "/v1/nodes"}) {
    for (const std::string from : {"", "-1", "x", "1e3", "1234567890", "%31x"}) {
      const Answer answer = Get(path + "?from=" + from);
      EXPECT_EQ(answer.status, 400) << from;
      EXPECT_THAT(answer.head, HasSubstr("application/problem+json"));
      EXPECT_THAT(answer.body["detail"].get<std::string>(),
                  HasSubstr("must be a whole number, 0 to 999999999"));
    }
  }
}

TEST_F(AdminTest, AGangThatWaitsShowsWhy) {
  AddGang("default", "train", false,
          View(GangPhase::kPending, GangReason::kNeverFits, "no domain has 4x4x4"));
  EXPECT_EQ(Get("/v1/gangs/default/train").body, (json{{"namespace", "default"},
                                                       {"name", "train"},
                                                       {"kind", "Gang"},
                                                       {"phase", "Pending"},
                                                       {"reason", "NeverFits"},
                                                       {"message", "no domain has 4x4x4"},
                                                       {"queue", ""}}));
  EXPECT_EQ(Get("/v1/why/default/train").body, Get("/v1/gangs/default/train").body);
}

TEST_F(AdminTest, APlacedGangShowsItsPodsAndSlices) {
  auto decision = std::make_shared<GangDecision>();
  decision->pods = {{.name = "train-0", .uid = "u0", .node = "us-0-n0", .rank = 0, .slice = 0},
                    {.name = "train-1", .uid = "u1", .node = "us-0-n1", .rank = 1, .slice = 0}};
  decision->slices = {
      {.domain = "us-0", .shape = "4x4x2", .origin = "0,0,0", .nodes = {"us-0-n0", "us-0-n1"}}};
  GangView view = View(GangPhase::kPlaced, GangReason::kBound);
  view.decision = decision;
  view.bound_pods = 2;
  view.predicted_all_reduce = "1.019ms";
  AddGang("default", "train", false, view);
  const json gang = Get("/v1/gangs/default/train").body;
  EXPECT_EQ(gang["boundPods"], 2);
  EXPECT_EQ(gang["predictedAllReduce"], "1.019ms");
  EXPECT_EQ(gang["pods"][1],
            (json{{"name", "train-1"}, {"node", "us-0-n1"}, {"rank", 1}, {"slice", 0}}));
  EXPECT_EQ(gang["slices"], (json::array({json{{"domain", "us-0"},
                                               {"shape", "4x4x2"},
                                               {"origin", "0,0,0"},
                                               {"nodes", {"us-0-n0", "us-0-n1"}}}})));
  EXPECT_FALSE(Get("/v1/why/default/train").body.contains("pods")) << "only the reason";
}

TEST_F(AdminTest, APodIsFoundByItsNameButAGangOfThatNameComesFirst) {
  AddGang("default", "x", true, View(GangPhase::kRunning));
  EXPECT_EQ(Get("/v1/gangs/default/x").body["kind"], "Pod");
  AddGang("default", "x", false, View(GangPhase::kPending));
  EXPECT_EQ(Get("/v1/gangs/default/x").body["kind"], "Gang");
  EXPECT_EQ(Get("/v1/why/default/x").body["phase"], "Pending");
}

TEST_F(AdminTest, GangsAreListedByNamespaceAndNameAndTheListIsBounded) {
  AddGang("b", "a", false);
  AddGang("a", "z", true);
  AddGang("a", "b", false);
  const json few = Get("/v1/gangs").body;
  EXPECT_EQ(few["total"], 3);
  EXPECT_EQ(NamesOf(few["gangs"]), (std::vector<std::string>{"b", "z", "a"}));
  for (int i = 0; i < 1200; ++i) AddGang("c", std::to_string(10'000 + i), false);
  const json many = Get("/v1/gangs").body;
  EXPECT_EQ(many["total"], 1203);
  ASSERT_EQ(many["gangs"].size(), 1000U);
  EXPECT_EQ(many["gangs"][0]["name"], "b");
  EXPECT_EQ(many["gangs"][999]["name"], "10996") << "the first thousand";
  ASSERT_EQ(many["next"], "c/10997");
  const json rest = Get("/v1/gangs?from=c/10997").body;
  ASSERT_EQ(rest["gangs"].size(), 203U);
  EXPECT_EQ(rest["gangs"][0]["name"], "10997");
  EXPECT_EQ(rest["gangs"][202]["name"], "11199");
  EXPECT_FALSE(rest.contains("next"));
}

TEST_F(AdminTest, APageMayBeginWithAPodThatHasAGangsName) {
  for (int i = 0; i < 999; ++i) AddGang("a", std::to_string(10'000 + i), false);
  AddGang("b", "x", false);
  AddGang("b", "x", true);
  const json first = Get("/v1/gangs").body;
  EXPECT_EQ(first["gangs"][999]["kind"], "Gang");
  ASSERT_EQ(first["next"], "b/x/pod");
  const json second = Get("/v1/gangs?from=b/x/pod").body;
  ASSERT_EQ(second["gangs"].size(), 1U);
  EXPECT_EQ(second["gangs"][0]["kind"], "Pod");
}

TEST_F(AdminTest, APageMayBeginWithAGangThatIsNamedPod) {
  for (int i = 0; i < 1000; ++i) AddGang("a", std::to_string(10'000 + i), false);
  AddGang("a", "pod", false);
  const json first = Get("/v1/gangs").body;
  ASSERT_EQ(first["next"], "a/pod");
  EXPECT_EQ(NamesOf(Get("/v1/gangs?from=a/pod").body["gangs"]), (std::vector<std::string>{"pod"}));
}

TEST_F(AdminTest, WhatNoRouteDescribesIsRefused) {
  for (const std::string target :
       {"/v1/nodes?form=1", "/v1/gangs?from=a&from=b", "/v1/gangs/default/a?x",
        "/v1/gangs/De_fault/a", "/v1/gangs/default/-a", "/v1/gangs/default/%c3%a9"}) {
    const Answer answer = Get(target);
    EXPECT_EQ(answer.status, 400) << target;
    EXPECT_EQ(answer.body.value("code", ""), "InvalidParameterValue") << target << answer.body;
  }
}

TEST_F(AdminTest, AnUnknownGangIsNotFoundByName) {
  for (const std::string path : {"/v1/gangs/default/none", "/v1/why/default/none"}) {
    const Answer answer = Get(path);
    EXPECT_EQ(answer.status, 404);
    EXPECT_EQ(answer.body["detail"], "no gang and no waiting or placed pod default/none");
  }
}

TEST_F(AdminTest, NothingCanBeChangedHere) {
  for (const std::string path :
       {"/v1/topology", "/v1/nodes", "/v1/gangs", "/v1/gangs/default/a", "/v1/why/default/a"}) {
    for (const std::string method : {"POST", "PUT", "PATCH", "DELETE"}) {
      const Answer answer = Ask(method, path);
      EXPECT_EQ(answer.status, 405) << method << " " << path;
      EXPECT_THAT(answer.head, HasSubstr("Allow: GET"));
    }
  }
  EXPECT_EQ(Get("/v1/queues").status, 404);
  EXPECT_EQ(Get("/v1/gangs/default").status, 404);
}

TEST_F(AdminTest, WithATokenEveryRouteWantsIt) {
  Start("secret");
  for (const std::string path :
       {"/v1/topology", "/v1/nodes", "/v1/gangs", "/v1/gangs/a/b", "/v1/why/a/b", "/metrics"}) {
    EXPECT_EQ(Get(path).status, 401) << path;
  }
  EXPECT_EQ(Get("/healthz").status, 200) << "probes need none";
  more_ = "Authorization: Bearer wrong\r\n";
  EXPECT_EQ(Get("/v1/nodes").status, 401);
  more_ = "Authorization: Bearer secret\r\n";
  EXPECT_EQ(Get("/v1/nodes").status, 200);
}

TEST_F(AdminTest, NamesThatAreNotTextStillGiveJson) {
  AddGang("default", "odd", false, View(GangPhase::kPending, GangReason::kNone, "a\xff\"b"));
  const Answer answer = Get("/v1/gangs/default/odd");
  EXPECT_EQ(answer.status, 200);
  EXPECT_FALSE(answer.body.is_discarded()) << "the message came from outside";
}

}  // namespace
}  // namespace tahoma::controller
