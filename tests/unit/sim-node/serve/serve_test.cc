// A sim-node's sockets and its REST API, over real loopback sockets.

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <future>

#include "lib/base/json.h"
#include "lib/base/rng.h"
#include "lib/base/status.h"
#include "lib/wire/server.h"
#include "sim-node/serve/admin.h"
#include "sim-node/serve/node_server.h"

namespace tahoma::sim {
namespace {

using json = Json;
using std::chrono::seconds;

Instance MakeInstance(std::uint64_t seed) {
  return *Instance::Create({.type = hw::FindInstanceType("trn2u.48xlarge"),
                            .name = "node-1",
                            .ultra_server = UltraServerPlace{.id = "us-7", .node_id = 2},
                            .network_layers = {"nn-1", "nn-2", "nn-3"},
                            .capacity_block_id = "cr-1"},
                           [rng = Rng(seed)]() mutable -> std::array<std::uint64_t, 2> {
                             return {rng.Next(), rng.Next()};
                           });
}

class ServeTest : public testing::Test {
 protected:
  void BreakChip(int chip, ChipFault fault) {
    EXPECT_TRUE(live_.Change([&](Instance& node) { return node.BreakChip(chip, fault); }).ok());
  }
  void SetLink(int chip, Port port, std::uint16_t permille) {
    EXPECT_TRUE(
        live_.Change([&](Instance& node) { return node.SetLink(chip, port, permille); }).ok());
  }

  ServeTest()
      : live_(MakeInstance(5)),
        server_(live_, {.driver_version = "2.26.10.0", .workload_socket = "unix:/w.sock"}) {
    char name[] = "/tmp/tahoma-serve-XXXXXX";
    folder_ = mkdtemp(name);
    plugin_socket_ = *wire::Server::Start(
        "unix:" + (folder_ / "node.sock").string(), {},
        [this](const wire::Request& request) { return server_.ServePlugin(request); });
    workload_socket_ = *wire::Server::Start(
        "unix:" + (folder_ / "pods.sock").string(), server_.WorkloadOptions(),
        [this](const wire::Request& request) { return server_.ServeWorkload(request); });
  }
  ~ServeTest() override {
    live_.Close();
    plugin_socket_->Stop();
    workload_socket_->Stop();
    std::filesystem::remove_all(folder_);
  }

  absl::StatusOr<wire::Reply> Plugin(std::string_view method, std::string params = "{}") {
    wire::Client client(plugin_socket_->address().ToString());
    wire::Request request;
    request.method = method;
    request.params = std::move(params);
    return client.Call(request, seconds(10));
  }
  absl::StatusOr<wire::Reply> Workload(std::string_view method, const json& params) {
    wire::Client client(workload_socket_->address().ToString());
    wire::Request request;
    request.method = method;
    request.params = params.dump();
    return client.Call(request, seconds(10));
  }
  std::string Apply(const std::string& uid, std::vector<int> chips) {
    wire::ApplyParams params;
    params.grant.claim_uid = uid;
    params.grant.name_space = "default";
    params.grant.name = uid;
    params.grant.chips = std::move(chips);
    const auto reply = Plugin(wire::kApplyClaim, wire::EncodeApplyParams(params));
    return reply.ok() ? *wire::DecodeToken(reply->result) : std::string(Message(reply.status()));
  }

  std::filesystem::path folder_;
  LiveInstance live_;
  NodeServer server_;
  std::unique_ptr<wire::Server> plugin_socket_;
  std::unique_ptr<wire::Server> workload_socket_;
};

TEST_F(ServeTest, TheInventoryTellsWhatTheNodeIs) {
  const wire::Inventory inventory = *wire::DecodeInventory(Plugin(wire::kInventory)->result);
  EXPECT_EQ(inventory.node_name, "node-1");
  EXPECT_EQ(inventory.instance_type, "trn2u.48xlarge");
  ASSERT_TRUE(inventory.ultra_server.has_value());
  EXPECT_EQ(inventory.ultra_server->id, "us-7");
  EXPECT_EQ(inventory.ultra_server->node_id, 2);
  EXPECT_EQ(inventory.network_layers.size(), 3U);
  EXPECT_EQ(inventory.workload_socket, "unix:/w.sock");
  ASSERT_EQ(inventory.chips.size(), 16U);
  EXPECT_EQ(inventory.chips[0].bdf, "0000:cc:00.0");
  EXPECT_TRUE(inventory.chips[0].healthy);
}

TEST_F(ServeTest, FaultsShowInTheInventory) {
  BreakChip(4, ChipFault::kHbmUncorrectable);
  SetLink(0, *ParsePort("z-"), 0);
  SetLink(0, *ParsePort("x+"), 0);
  SetLink(5, *ParsePort("y+"), 500);
  const wire::Inventory inventory = server_.MakeInventory();
  EXPECT_FALSE(inventory.chips[4].healthy);
  EXPECT_EQ(inventory.chips[4].reason, "hbm-uncorrectable");
  EXPECT_EQ(inventory.chips[0].links_down, (std::vector<std::string>{"x+", "z-"}));
  EXPECT_EQ(inventory.chips[1].links_down, (std::vector<std::string>{"x-"}));
  EXPECT_TRUE(inventory.chips[5].links_down.empty());  // slow is not down
}

TEST_F(ServeTest, LinksOfADeadChipAndFlappingOnesAreNoneToPlaceWorkOn) {
  BreakChip(5, ChipFault::kDead);
  ASSERT_TRUE(live_
                  .Change([](Instance& node) {
                    return node.SetLinkFlapping(
                        0, *ParsePort("x+"),
                        {.period = Microseconds(100), .down = Microseconds(10)});
                  })
                  .ok());
  const wire::Inventory inventory = server_.MakeInventory();
  EXPECT_EQ(inventory.chips[5].reason, "dead");
  EXPECT_EQ(inventory.chips[5].links_down.size(), 6U);
  EXPECT_EQ(inventory.chips[6].links_down, (std::vector<std::string>{"x-"}));
  EXPECT_EQ(inventory.chips[0].links_down, (std::vector<std::string>{"x+"}));
}

TEST_F(ServeTest, AWatchEndsWithTheNextChange) {
  wire::WatchParams params;
  params.generation = server_.MakeInventory().generation;
  params.timeout = seconds(60);
  auto watched = std::async(std::launch::async, [&] {
    return Plugin(wire::kWatchInventory, wire::EncodeWatchParams(params));
  });
  BreakChip(4, ChipFault::kDma);
  ASSERT_EQ(watched.wait_for(seconds(20)), std::future_status::ready);
  EXPECT_FALSE(wire::DecodeInventory(watched.get()->result)->chips[4].healthy);
}

TEST_F(ServeTest, AWatchWithoutChangeEndsWithItsTime) {
  wire::WatchParams params;
  params.generation = server_.MakeInventory().generation;
  params.timeout = std::chrono::milliseconds(1);
  const auto reply = Plugin(wire::kWatchInventory, wire::EncodeWatchParams(params));
  EXPECT_EQ(wire::DecodeInventory(reply->result)->generation, params.generation);
}

TEST_F(ServeTest, ATokenShowsItsOwnClaimOnly) {
  const std::string a = Apply("a", {0, 1});
  const std::string b = Apply("b", {2});
  const json seen_a = ParseJson(Workload(kDevices, {{"token", a}})->result);
  const json seen_b = ParseJson(Workload(kDevices, {{"token", b}})->result);
  ASSERT_EQ(seen_a["devices"].size(), 2U);
  ASSERT_EQ(seen_b["devices"].size(), 1U);
  EXPECT_EQ(seen_b["devices"][0]["index"], 2);
  EXPECT_EQ(seen_b["devices"][0]["coreIds"], json({8, 9, 10, 11}));
  EXPECT_EQ(seen_b["claim"]["name"], "b");
  EXPECT_EQ(seen_a["devices"][0]["connectedTo"], json({12, 3, 4, 1}));
}

TEST_F(ServeTest, WithoutAGoodTokenNothingIsAnswered) {
  const std::string token = Apply("a", {0});
  const std::vector<json> bad = {json::object(),
                                 {{"token", ""}},
                                 {{"token", 7}},
                                 {{"token", std::string(32, 'a')}},
                                 {{"token", token + "0"}}};
  for (const json& params : bad) {
    for (const std::string_view method : {kDevices, std::string_view("nothing")}) {
      const absl::Status refused = Workload(method, params).status();
      EXPECT_EQ(refused.code(), absl::StatusCode::kPermissionDenied) << params << refused;
    }
  }
  EXPECT_EQ(Workload("nothing", {{"token", token}}).status().code(),
            absl::StatusCode::kUnimplemented);
}

TEST_F(ServeTest, NoPayloadIsKeptBeforeItsTokenIsGood) {
  std::size_t kept = 0;
  server_.AddWorkloadCall("store", [&](const Caller&, const wire::Request& request) {
    kept += request.payload.size();
    return absl::StatusOr<wire::Reply>(wire::Reply{});
  });
  const std::string token = Apply("a", {0});
  wire::Client client(workload_socket_->address().ToString());
  const std::string payload(kWorkloadFrame.payload_bytes, 'x');
  for (const std::string& shown : {std::string(32, 'a'), token}) {
    const auto reply = client.Call(
        {.method = "store", .params = json{{"token", shown}}.dump(), .payload = payload},
        seconds(20));
    EXPECT_EQ(reply.status().code(),
              shown == token ? absl::StatusCode::kOk : absl::StatusCode::kPermissionDenied);
    EXPECT_EQ(kept, shown == token ? payload.size() : 0);
  }
  EXPECT_FALSE(client
                   .Call({.method = "store",
                          .params = json{{"token", token}}.dump(),
                          .payload = payload + "x"},
                         seconds(20))
                   .ok());
  EXPECT_EQ(kept, payload.size());
}

TEST_F(ServeTest, ACallTakesRoomForItsReplyToo) {
  const std::string token = Apply("a", {0});
  server_.AddWorkloadCall(
      "load",
      [](const Caller&, const wire::Request&) {
        return absl::StatusOr<wire::Reply>(wire::Reply{});
      },
      [](const Json& params) { return params["bytes"].get<std::size_t>(); });
  const std::size_t share = wire::Server::Options().room.bytes_per_caller;
  EXPECT_TRUE(Workload("load", {{"token", token}, {"bytes", share}}).ok());
  const absl::Status refused = Workload("load", {{"token", token}, {"bytes", share + 1}}).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument) << refused;
}

TEST_F(ServeTest, TheWorkloadSocketHandsOutNoClaims) {
  const std::string token = Apply("a", {0});
  EXPECT_EQ(Workload(wire::kApplyClaim, {{"token", token}}).status().code(),
            absl::StatusCode::kUnimplemented);
  EXPECT_EQ(Workload(wire::kListClaims, {{"token", token}}).status().code(),
            absl::StatusCode::kUnimplemented);
}

TEST_F(ServeTest, ClaimsAreListedAndReleased) {
  const std::string token = Apply("a", {0});
  EXPECT_EQ(wire::DecodeClaimList(Plugin(wire::kListClaims)->result)->size(), 1U);
  EXPECT_NE(Apply("b", {0}).find("held by claim default/a"), std::string::npos);
  ASSERT_TRUE(Plugin(wire::kReleaseClaim, wire::EncodeClaimUid("a")).ok());
  EXPECT_TRUE(wire::DecodeClaimList(Plugin(wire::kListClaims)->result)->empty());
  EXPECT_FALSE(Workload(kDevices, {{"token", token}}).ok());
}

TEST_F(ServeTest, ANewSimNodeIsToldTheTokenThatContainersHave) {
  wire::ApplyParams params;
  params.grant.claim_uid = "a";
  params.grant.name_space = "default";
  params.grant.name = "a";
  params.grant.chips = {3};
  params.token = std::string(32, 'c');
  ASSERT_TRUE(Plugin(wire::kApplyClaim, wire::EncodeApplyParams(params)).ok());
  EXPECT_TRUE(Workload(kDevices, {{"token", params.token}}).ok());
}

TEST_F(ServeTest, AddedCallsGetTheCallersClaim) {
  NodeServer server(live_, {});
  server.AddWorkloadCall("who", [](const Caller& caller, const wire::Request&) {
    wire::Reply reply;
    reply.result = json{{"uid", caller.claim.claim_uid}}.dump();
    return absl::StatusOr<wire::Reply>(reply);
  });
  const std::string token = Apply("a", {0});
  wire::Request request;
  request.method = "who";
  request.params = json{{"token", token}}.dump();
  EXPECT_EQ(ParseJson(server.ServeWorkload(request)->result)["uid"], "a");
}

class AdminTest : public testing::Test {
 protected:
  AdminTest() : live_(MakeInstance(5)), server_({.address = "127.0.0.1:0"}, metrics_) {
    InstallAdminRoutes(server_, metrics_, live_);
    EXPECT_TRUE(server_.Start().ok());
  }

  // One exchange over the socket: "<status> <body>".
  std::string Send(const std::string& method, const std::string& path,
                   const std::string& body = {}) {
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<std::uint16_t>(server_.port()));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const void* raw = &to;
    EXPECT_EQ(connect(fd, static_cast<const sockaddr*>(raw), sizeof to), 0);
    const std::string request = fmt::format(
        "{} {} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
        "Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{}",
        method, path, body.size(), body);
    EXPECT_EQ(write(fd, request.data(), request.size()), static_cast<ssize_t>(request.size()));
    std::string answer;
    char piece[4096];
    for (ssize_t got = 0; (got = read(fd, piece, sizeof piece)) > 0;) {
      answer.append(piece, static_cast<std::size_t>(got));
    }
    close(fd);
    const std::size_t head = answer.find("\r\n\r\n");
    return head == std::string::npos ? answer : answer.substr(9, 3) + " " + answer.substr(head + 4);
  }

  LiveInstance live_;
  rest::Metrics metrics_;
  rest::Server server_;
};

TEST_F(AdminTest, StateShowsChipsLinksAndClaimsButNoToken) {
  const std::string token = live_.Change([](Instance& node) {
    return *node.ApplyClaim({.claim_uid = "u", .name_space = "n", .name = "c", .chips = {1}});
  });
  const std::string text = Send("GET", "/v1/state");
  ASSERT_EQ(text.substr(0, 4), "200 ") << text;
  EXPECT_EQ(text.find(token), std::string::npos);
  const json state = ParseJson(text.substr(4));
  EXPECT_EQ(state["nodeName"], "node-1");
  EXPECT_EQ(state["chips"].size(), 16U);
  EXPECT_EQ(state["claims"][0]["chips"], json({1}));
}

TEST_F(AdminTest, ChipsBreakAndAreRepaired) {
  const std::string broken = Send("POST", "/v1/chips/3/break", R"({"reason":"dma"})");
  ASSERT_EQ(broken.substr(0, 4), "200 ") << broken;
  EXPECT_EQ(ParseJson(broken.substr(4))["chips"][3]["errorClass"], "DMA_ERROR");
  EXPECT_NE(Send("GET", "/metrics").find("tahoma_node_chips_broken 1"), std::string::npos);
  const std::string repaired = Send("POST", "/v1/chips/3/repair");
  EXPECT_EQ(ParseJson(repaired.substr(4))["chips"][3]["healthy"], true);
}

TEST_F(AdminTest, LinksGoDownSlowAndUp) {
  const auto permille = [&](const std::string& answer) {
    return ParseJson(answer.substr(4))["chips"][2]["linkPermille"]["z+"];
  };
  EXPECT_EQ(permille(Send("POST", "/v1/links/2/z+/down")), 0);
  EXPECT_EQ(permille(Send("POST", "/v1/links/2/z+/degrade", R"({"permille":250})")), 250);
  EXPECT_EQ(permille(Send("POST", "/v1/links/2/z+/up")), 1000);
}

TEST_F(AdminTest, LinksLosePacketsAndFlapUntilTheyAreUpAgain) {
  const auto chip = [&](const std::string& answer, std::size_t index) {
    EXPECT_EQ(answer.substr(0, 4), "200 ") << answer;
    return ParseJson(answer.substr(4))["chips"][index];
  };
  const std::string lossy = Send("POST", "/v1/links/2/x+/lose", R"({"lossPpm":10000})");
  EXPECT_EQ(chip(lossy, 2)["linkLossPpm"], (json{{"x+", 10000}}));
  EXPECT_EQ(chip(lossy, 3)["linkLossPpm"], (json{{"x-", 10000}}));
  EXPECT_EQ(chip(lossy, 2)["linkPermille"]["x+"], 1000);
  const std::string flapping =
      Send("POST", "/v1/links/2/x+/flap", R"({"periodUs":1000,"downUs":50})");
  EXPECT_EQ(chip(flapping, 2)["linkFlapping"]["x+"],
            (json{{"periodUs", 1000.0}, {"downUs", 50.0}}));
  const std::string up = Send("POST", "/v1/links/3/x-/up");
  EXPECT_FALSE(chip(up, 2).contains("linkLossPpm")) << up;
  EXPECT_FALSE(chip(up, 2).contains("linkFlapping")) << up;
}

TEST_F(AdminTest, ADeadChipsLinksAreDownUntilItsRepair) {
  ASSERT_EQ(Send("POST", "/v1/links/5/y+/degrade", R"({"permille":250})").substr(0, 4), "200 ");
  const json dead =
      ParseJson(Send("POST", "/v1/chips/5/break", R"({"reason":"dead"})").substr(4))["chips"];
  EXPECT_EQ(dead[5]["reason"], "dead");
  EXPECT_FALSE(dead[5].contains("errorClass")) << "a dead chip reports nothing";
  for (const auto& [port, permille] : dead[5]["linkPermille"].items())
    EXPECT_EQ(permille, 0) << port;
  EXPECT_EQ(dead[6]["linkPermille"]["x-"], 0);
  EXPECT_EQ(dead[6]["linkPermille"]["x+"], 1000);
  EXPECT_NE(Send("GET", "/metrics").find("tahoma_node_links_down 10"), std::string::npos);
  const json repaired = ParseJson(Send("POST", "/v1/chips/5/repair").substr(4))["chips"];
  EXPECT_EQ(repaired[5]["linkPermille"]["y+"], 250);
  EXPECT_EQ(repaired[6]["linkPermille"]["x-"], 1000);
}

TEST_F(AdminTest, ANetworkCardGoesDownAndUp) {
  const std::string down = Send("POST", "/v1/efa/7/down");
  EXPECT_EQ(ParseJson(down.substr(4))["chips"][7]["efa"], "down");
  EXPECT_NE(Send("GET", "/metrics").find("tahoma_node_efa_down 1"), std::string::npos);
  const std::string up = Send("POST", "/v1/efa/7/up");
  EXPECT_EQ(ParseJson(up.substr(4))["chips"][7]["efa"], "up");
}

TEST_F(AdminTest, WithoutPeersThereIsAPlaceInTheUltraServerButNoElection) {
  const json place = ParseJson(Send("GET", "/v1/state").substr(4))["ultraServer"];
  EXPECT_EQ(place, (json{{"id", "us-7"}, {"nodeId", 2}}));
  for (const std::string path : {"elect", "mode"}) {
    const std::string answer = Send("POST", "/v1/ultraserver/" + path, R"({"mode":"X4"})");
    EXPECT_NE(answer.find("has no ultraServer.peers"), std::string::npos) << answer;
    EXPECT_NE(answer.substr(0, 3), "200");
  }
}

TEST_F(AdminTest, BadRequestsAreRefusedByNameAndChangeNothing) {
  const std::uint64_t before = live_.Read([](const Instance& node) { return node.generation(); });
  const std::vector<std::array<std::string, 3>> bad = {
      {"/v1/chips/16/break", R"({"reason":"dma"})", "chip 16"},
      {"/v1/chips/x/break", R"({"reason":"dma"})", "not a number"},
      {"/v1/chips/1/break", R"({"reason":"meteor"})", "meteor"},
      {"/v1/chips/1/break", R"({"why":"dma"})", "unknown field"},
      {"/v1/chips/1/break", "{", "JSON object"},
      {"/v1/chips/1/break", R"({"reason":1})", "string"},
      {"/v1/links/1/w+/down", "", "w+"},
      {"/v1/links/1/x+/degrade", R"({"permille":1001})", "0 to 1000"},
      {"/v1/links/1/x+/degrade", R"({"permille":"a"})", "0 to 1000"},
      {"/v1/links/1/x+/lose", R"({"lossPpm":500001})", "0 to 500000"},
      {"/v1/links/1/x+/lose", R"({"loss":1})", "unknown field"},
      {"/v1/links/1/x+/flap", R"({"periodUs":100})", "no \\\"downUs\\\""},
      {"/v1/links/1/x+/flap", R"({"periodUs":100,"downUs":100})", "is down for"},
      {"/v1/links/1/x+/flap", R"({"periodUs":9,"downUs":1})", "flaps with a period"},
      {"/v1/links/1/x+/flap", R"({"periodUs":1e3,"downUs":1})", "an integer from 1"},
      {"/v1/efa/16/down", "", "chip 16"},
      {"/v1/ultraserver/mode", R"({"mode":"X3"})", "expected X4, X2H, X2V or X1"},
      {"/v1/ultraserver/mode", R"({"mode":4})", "mode must be a string"},
  };
  for (const auto& [path, body, expected] : bad) {
    const std::string answer = Send("POST", path, body);
    EXPECT_EQ(answer.substr(0, 4), "400 ") << answer;
    EXPECT_NE(answer.find(expected), std::string::npos) << answer;
  }
  EXPECT_EQ(Send("POST", "/v1/chips/1/explode").substr(0, 4), "404 ");
  EXPECT_EQ(live_.Read([](const Instance& node) { return node.generation(); }), before);
}

}  // namespace
}  // namespace tahoma::sim
