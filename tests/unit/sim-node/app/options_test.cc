// Tests the options of sim-node, and which do not go together.

#include "sim-node/app/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "lib/base/status.h"
#include "lib/config/parse.h"

namespace tahoma::sim {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(SimNodeOptionsTest, AFileSaysEverythingThatAnUltraServersMemberNeeds) {
  Options options;
  const absl::Status read = config::ParseFile(
      "apiVersion: tahoma.dev/v1alpha1\nkind: SimNodeConfig\nnodeName: n1\n"
      "instanceType: trn2u.48xlarge\nlinkAddress: \"127.0.0.1:0\"\nnodeSocket: /run/n1.sock\n"
      "ultraServer:\n  id: us-1\n  nodeId: 1\n  peerTimeout: 5s\n  peers:\n  - {nodeId: 0, "
      "address: \"a:1\"}\n"
      "  - {nodeId: 2, address: \"b:1\"}\n  electionTimeout: 2m\nnetworkLayers: [nn-1, nn-2, "
      "nn-3]\n"
      "podRunner:\n  enabled: true\n  kubeconfig: k\n  shutdownGrace: 3s\n  images:\n"
      "    \"tools:1\":\n      entrypoint: /bin/true\n      commands: {sh: /bin/sh}\n",
      "file", DeclareOptions(options));
  ASSERT_TRUE(read.ok()) << read;
  ASSERT_TRUE(CheckOptions(options).ok());
  EXPECT_EQ(options.ultra_server.node_id, 1);
  EXPECT_EQ(options.ultra_server.peer_timeout, std::chrono::seconds(5));
  ASSERT_EQ(options.ultra_server.peers.size(), 2U);
  EXPECT_EQ(options.ultra_server.peers[1].address, "b:1");
  EXPECT_EQ(options.ultra_server.election_timeout, std::chrono::minutes(2));
  EXPECT_EQ(options.network_layers.size(), 3U);
  EXPECT_EQ(options.pod_runner.shutdown_grace, std::chrono::seconds(3));
  EXPECT_EQ(options.pod_runner.images.at("tools:1").commands.at("sh"), "/bin/sh");
  EXPECT_EQ(options.workload_socket, "/run/n1.sock.pods/workload.sock") << "a folder of its own";
  EXPECT_EQ(options.pod_runner.pod_user, "own");
}

TEST(SimNodeOptionsTest, AFileNamesTheNodesBeyondEfa) {
  Options options;
  const absl::Status read = config::ParseFile(
      "apiVersion: tahoma.dev/v1alpha1\nkind: SimNodeConfig\nnodeName: n1\n"
      "peerTls: {insecure: true}\nefa:\n  address: \"10.0.0.1:7001\"\n  peerTimeout: 3s\n  peers:\n"
      "  - {nodeName: n2, address: \"10.0.0.2:7001\"}\n"
      "  layer1Oversubscription: 2.5\n  layer3Oversubscription: 4\n  layerLatency: 500ns\n"
      "  packetLatency: 12us\n",
      "file", DeclareOptions(options));
  ASSERT_TRUE(read.ok()) << read;
  ASSERT_TRUE(CheckOptions(options).ok());
  EXPECT_EQ(options.efa.address, "10.0.0.1:7001");
  EXPECT_EQ(options.efa.peer_timeout, std::chrono::seconds(3));
  ASSERT_EQ(options.efa.peers.size(), 1U);
  EXPECT_EQ(options.efa.peers[0].node_name, "n2");
  EXPECT_EQ(*EfaTimingOf(options.efa.layers),
            (EfaTiming{.packet = Microseconds(12),
                       .layer = Microseconds(0.5),
                       .oversubscription_permille = {2500, 1000, 4000}}));
}

TEST(SimNodeOptionsTest, LayersOfTheNetworkThatCannotBeAreNamed) {
  const auto says = [](const std::string& line) {
    Options options;
    const absl::Status read = config::ParseFile(
        "apiVersion: tahoma.dev/v1alpha1\nkind: SimNodeConfig\nefa:\n  " + line + "\n", "file",
        DeclareOptions(options));
    EXPECT_FALSE(read.ok()) << line;
    return std::string(Message(read));
  };
  EXPECT_THAT(says("layer3Oversubscription: 0.5"),
              StartsWith("file:4: efa.layer3Oversubscription: "));
  EXPECT_THAT(says("layer3Oversubscription: 1001"),
              StartsWith("file:4: efa.layer3Oversubscription: "));
  EXPECT_THAT(says("layerLatency: 2s"), StartsWith("file:4: efa.layerLatency: "));
  EXPECT_THAT(says("layer4Oversubscription: 2"), HasSubstr("layer4Oversubscription"));
}

TEST(SimNodeOptionsTest, AMistakeInAListIsNamedByItsPath) {
  Options options;
  const absl::Status read = config::ParseFile(
      "apiVersion: tahoma.dev/v1alpha1\nkind: SimNodeConfig\nultraServer:\n  peers:\n"
      "  - {nodeId: 0, address: a}\n  - {nodeId: 4, address: b}\n",
      "file", DeclareOptions(options));
  EXPECT_THAT(Message(read), StartsWith("file:6: ultraServer.peers[1].nodeId: "));
}

struct Case {
  std::function<void(Options&)> set;
  std::string says;  // empty: it is fine
};

void Expect(const std::vector<Case>& cases) {
  for (std::size_t i = 0; i < cases.size(); ++i) {
    SCOPED_TRACE(i);
    Options options;
    options.node_name = "n";
    cases[i].set(options);
    const absl::Status checked = CheckOptions(options);
    EXPECT_EQ(checked.ok(), cases[i].says.empty()) << checked;
    EXPECT_THAT(Message(checked), HasSubstr(cases[i].says));
  }
}

TEST(SimNodeOptionsTest, WhatDoesNotGoTogetherIsRefusedWithTheReason) {
  const std::vector<Case> cases = {
      {[](Options&) {}, ""},
      {[](Options& o) { o.node_name.clear(); }, "nodeName is empty; name the node"},
      {[](Options& o) { o.instance_type = "trn9"; },
       "instanceType \"trn9\" is unknown; known are "},
      {[](Options& o) { o.instance_type.clear(); }, "instanceType \"\" is unknown"},
      {[](Options& o) { o.node_socket = "tcp:nowhere"; }, "nodeSocket or workloadSocket: "},
      {[](Options& o) { o.pod_runner.enabled = true; },
       "podRunner.kubeconfig is empty; the pod runner needs an API server"},
      {[](Options& o) { o.ultra_server.peers = {{.node_id = 1, .address = "a:1"}}; },
       "ultraServer.id is empty"},
      {[](Options& o) {
         o.ultra_server.peers = {{.node_id = 1, .address = "a:1"}};
         o.ultra_server.id = "us-1";
       },
       "linkAddress is empty, but ultraServer.peers names other nodes"},
      {[](Options& o) {
         o.ultra_server.peers = {{.node_id = 1, .address = "a:1"}};
         o.ultra_server.id = "us-1";
         o.link_address = "127.0.0.1:0";
       },
       ""},
      {[](Options& o) { o.efa.layers.layer2_oversubscription = 1.0001; },
       "efa: layer2Oversubscription is 1.0001; expected at most three decimals"},
      {[](Options& o) {
         o.efa.peers = {{"m", "a:1"}};
       },
       "efa.address is empty, but efa.peers names other nodes"},
      {[](Options& o) {
         o.efa = {.address = "127.0.0.1:1", .peers = {{"", "a:2"}}};
       },
       "efa.peers: a nodeName is empty"},
      {[](Options& o) {
         o.efa = {.address = "127.0.0.1:1", .peers = {{"n", "a:2"}}};
       },
       "efa.peers: node \"n\" is this one"},
      {[](Options& o) {
         o.efa = {.address = "127.0.0.1:1", .peers = {{"m", "a:2"}, {"m", "a:3"}}};
       },
       "efa.peers: node \"m\" is named twice"},
      {[](Options& o) {
         o.efa = {.address = "127.0.0.1:1", .peers = {{"m", "nowhere"}}};
       },
       "efa.peers: address of m: "},
      {[](Options& o) {
         o.efa = {.address = "127.0.0.1:1", .peers = {{"m", "a:2"}}};
       },
       ""}};
  Expect(cases);
}

TEST(SimNodeOptionsTest, SocketsAndTheFaultApiAreNotOpenToEverybody) {
  const std::vector<Case> cases = {
      {[](Options& o) { o.node_socket = "127.0.0.1:1"; },
       "nodeSocket or workloadSocket: 127.0.0.1:1 is no path of a unix socket"},
      {[](Options& o) { o.workload_socket = "/run/tahoma/w.sock"; },
       "workloadSocket /run/tahoma/w.sock: its folder is given to containers, and nodeSocket "
       "/run/tahoma/node.sock is in it"},
      {[](Options& o) { o.workload_socket = "/run/w.sock"; }, "and nodeSocket /run/tahoma/node"},
      {[](Options& o) { o.workload_socket = "/var/lib/tahoma/w.sock"; },
       "and stateDir /var/lib/tahoma/sim-node is in it"},
      {[](Options& o) { o.workload_socket = "/var/run/cdi/w.sock"; }, "podRunner.cdiDir"},
      {[](Options& o) { o.workload_socket = "/run/tahoma-pods/w.sock"; }, ""},
      {[](Options& o) { o.admin_address = "0.0.0.0:0"; },
       "adminAddress 0.0.0.0:0 can be reached from outside: give an adminTokenFile, or a loopback "
       "address"},
      {[](Options& o) { o.admin_address = ":9000"; }, "adminAddress :9000 can be reached"},
      {[](Options& o) {
         o.admin_address = ":9000";
         o.admin_token_file = "t";
       },
       ""},
      {[](Options& o) { o.admin_tls_cert_file = "c"; },
       "adminTlsCertFile and adminTlsKeyFile go together"},
      {[](Options& o) { o.allowed_hosts = {"node-1.example"}; }, ""},
      {[](Options& o) { o.allowed_hosts = {"http://node-1"}; },
       "allowedHosts: \"http://node-1\" is not a host; expected a name or an address without "
       "port"}};
  Expect(cases);
}

TEST(SimNodeOptionsTest, LogsAreServedBeyondLoopbackOnlyToWhoProvesItself) {
  const std::vector<Case> cases = {
      {[](Options& o) { o.pod_runner.log_address = "0.0.0.0:1"; }, ""},
      {[](Options& o) {
         o.pod_runner = {.enabled = true, .kubeconfig = "k", .log_address = "0.0.0.0:1"};
       },
       "podRunner.logAddress 0.0.0.0:1 can be reached from outside: give "
       "podRunner.logClientCaFile"},
      {[](Options& o) {
         o.pod_runner = {.enabled = true,
                         .kubeconfig = "k",
                         .log_address = "0.0.0.0:1",
                         .log_client_ca_file = "ca"};
       },
       ""},
      {[](Options& o) {
         o.pod_runner = {.enabled = true,
                         .kubeconfig = "k",
                         .log_address = "0.0.0.0:1",
                         .log_tls = false,
                         .log_token_file = "t"};
       },
       "can be reached from outside"},
      {[](Options& o) {
         o.pod_runner = {
             .enabled = true, .kubeconfig = "k", .log_tls = false, .log_client_ca_file = "ca"};
       },
       "podRunner.logClientCaFile needs podRunner.logTls: true"}};
  Expect(cases);
}

TEST(SimNodeOptionsTest, NodesBeyondThisMachineMustProveTheirNames) {
  const std::vector<Case> cases = {
      {[](Options& o) { o.efa.address = "0.0.0.0:7001"; },
       "efa.address 0.0.0.0:7001 can be reached from outside, and without peerTls whoever reaches "
       "it can pass for any node: give certFile"},
      {[](Options& o) { o.link_address = "10.0.0.1:7001"; }, "linkAddress 10.0.0.1:7001 can be"},
      {[](Options& o) {
         o.efa.address = "0.0.0.0:7001";
         o.peer_tls.insecure = true;
       },
       ""},
      {[](Options& o) { o.link_address = "unix:/run/tahoma/link.sock"; }, ""},
      {[](Options& o) { o.peer_tls.cert_file = "c"; },
       "peerTls needs certFile, keyFile and caFile, or none of them"},
      {[](Options& o) {
         o.peer_tls = {.cert_file = "c", .key_file = "k", .ca_file = "a", .insecure = true};
       },
       "peerTls is insecure and has a certFile too"},
      {[](Options& o) { o.peer_tls = {.cert_file = "/none/c", .key_file = "k", .ca_file = "a"}; },
       "peerTls: TLS certificate /none/c: "},
      {[](Options& o) {
         o.peer_tls = {.cert_file = "c", .key_file = "k", .ca_file = "a"};
         o.ultra_server = {.id = "us-1", .peers = {{.node_id = 1, .address = "a:1"}}};
         o.link_address = "127.0.0.1:0";
       },
       "ultraServer.peers: node 1 has no nodeName, which its certificate must be for (peerTls)"}};
  Expect(cases);
}

TEST(SimNodeOptionsTest, AFleetNeedsNothingButItsSizeAndTakesAllThatAFileSays) {
  Options options;
  options.fleet = 62'500;
  ASSERT_TRUE(CheckOptions(options).ok()) << CheckOptions(options);
  const auto plain = FleetOptionsOf(options);
  EXPECT_EQ(plain->plan.nodes, 62'500U);
  EXPECT_EQ(plain->plan.name, "fleet");
  EXPECT_EQ(plain->plan.types.at(0).type->name, "trn2u.48xlarge");
  EXPECT_EQ(plain->plan.publish,
            (dra::Publish{.chips = true, .lnc1 = false, .lnc2 = false, .node = false}));
  EXPECT_EQ(plain->plan.taint, kube::TaintEffect::kNoSchedule);
  EXPECT_EQ(plain->lease_period, std::chrono::seconds(10));

  Options told;
  const absl::Status read = config::ParseFile(
      "apiVersion: tahoma.dev/v1alpha1\nkind: SimNodeConfig\nfleet: 12\nfleetNodes:\n"
      "  kubeconfig: k\n  name: west\n  instanceTypes: {trn2u.48xlarge: 3, trn2.48xlarge: 1}\n"
      "  publish: [chips, node]\n  taint: none\n  leasePeriod: 30s\n  resyncPeriod: 1m\n"
      "  workers: 4\ndriverVersion: 2.27.0.0\n",
      "file", DeclareOptions(told));
  ASSERT_TRUE(read.ok()) << read;
  ASSERT_TRUE(CheckOptions(told).ok()) << CheckOptions(told);
  const auto fleet = FleetOptionsOf(told);
  EXPECT_EQ(fleet->plan.name, "west");
  ASSERT_EQ(fleet->plan.types.size(), 2U);
  EXPECT_EQ(fleet->plan.types[1].nodes, 3U);
  EXPECT_TRUE(fleet->plan.publish.node);
  EXPECT_FALSE(fleet->plan.taint);
  EXPECT_EQ(fleet->lease_period, std::chrono::seconds(30));
  EXPECT_EQ(fleet->resync_period, std::chrono::minutes(1));
  EXPECT_EQ(fleet->workers, 4);
  EXPECT_EQ(fleet->plan.neuron_driver_version, "2.27.0.0");
}

TEST(SimNodeOptionsTest, WhatIsAboutOneNodeDoesNotGoWithAFleet) {
  const auto error = [](const std::function<void(Options&)>& change) {
    Options options;
    options.fleet = 4;
    change(options);
    return std::string(Message(CheckOptions(options)));
  };
  EXPECT_EQ(error([](Options& o) { o.node_name = "n1"; }),
            "fleet and nodeName do not go together: the nodes of a fleet have their names from "
            "fleetNodes.name");
  EXPECT_THAT(error([](Options& o) { o.instance_type = "trn2u.48xlarge"; }),
              StartsWith("fleet and instanceType do not go together"));
  EXPECT_THAT(error([](Options& o) { o.pod_runner.enabled = true; }),
              StartsWith("fleet and podRunner.enabled do not go together"));
  EXPECT_THAT(error([](Options& o) { o.ultra_server.id = "us-1"; }),
              StartsWith("fleet and ultraServer do not go together"));
  EXPECT_THAT(error([](Options& o) { o.link_address = "127.0.0.1:0"; }),
              StartsWith("fleet and linkAddress do not go together"));
  EXPECT_THAT(error([](Options& o) { o.efa.address = "127.0.0.1:0"; }),
              StartsWith("fleet and efa do not go together"));
  EXPECT_THAT(error([](Options& o) {
                o.network_layers = {"a", "b", "c"};
              }),
              StartsWith("fleet and networkLayers do not go together"));
  EXPECT_THAT(error([](Options& o) { o.capacity_block_id = "cr-1"; }),
              StartsWith("fleet and capacityBlockId do not go together"));
  EXPECT_THAT(error([](Options& o) { o.fleet_nodes.name = "West"; }),
              HasSubstr("fleetNodes.name \"West\""));
  EXPECT_THAT(error([](Options& o) {
                o.fleet_nodes.instance_types = {{"trn9", "1"}};
              }),
              HasSubstr("fleetNodes.instanceTypes: \"trn9\" is unknown"));
  EXPECT_THAT(error([](Options& o) { o.fleet_nodes.publish = {}; }), StartsWith("fleetNodes: "));
}

TEST(SimNodeOptionsTest, AFleetsServerWithoutAFleetIsAMistake) {
  Options options;
  options.node_name = "n1";
  options.fleet_nodes.kubeconfig = "k";
  EXPECT_EQ(Message(CheckOptions(options)),
            "fleetNodes.kubeconfig is given, but fleet is 0; say how many nodes");
}

}  // namespace
}  // namespace tahoma::sim
