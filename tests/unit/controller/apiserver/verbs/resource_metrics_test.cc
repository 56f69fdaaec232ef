// metrics.k8s.io: what nodes say about their pods, with functions in the place of nodes.

#include <gmock/gmock.h>

#include <atomic>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "controller/apiserver/http/api_server.h"
#include "lib/base/mutex.h"
#include "lib/base/status.h"
#include "tests/support/api_fixture.h"

namespace tahoma::controller::apiserver {
namespace {

using testing::Answer;
using ::testing::ElementsAre;

const std::string kMetrics = "/apis/metrics.k8s.io/v1beta1/";

class ResourceMetricsTest : public testing::ApiFixture {
 protected:
  ResourceMetricsTest() {
    server_.reset();
    ApiServer::Options options;
    options.node_fetch = [this](const NodeEndpoint& node, const std::string& target) {
      EXPECT_EQ(target, "/stats/containers");
      asked_ += 1;
      const MutexLock lock(mutex_);
      const auto answer = answers_.find(node.node);
      return answer == answers_.end() ? rest::Response::Text(500, "away")
                                      : rest::Response::Text(200, answer->second);
    };
    auto server = ApiServer::Open(*store_, clock_, std::move(options));
    TAHOMA_CHECK_OK(server.status());
    server_ = *std::move(server);
  }

  void AddNode(const std::string& name, const std::string& ready = "True") {
    const Json node = {{"metadata", {{"name", name}, {"labels", {{"zone", "a"}}}}},
                       {"status",
                        {{"conditions", {{{"type", "Ready"}, {"status", ready}}}},
                         {"addresses", {{{"type", "InternalIP"}, {"address", "10.0.0.7"}}}},
                         {"daemonEndpoints", {{"kubeletEndpoint", {{"Port", 10250}}}}}}}};
    ASSERT_EQ(Call("POST", "/api/v1/nodes", node).status, 201);
  }
  void AddPod(const std::string& name, const std::string& node,
              const std::string& phase = "Running") {
    Json pod = PodOf(name, {{"app", name}});
    pod["spec"]["nodeName"] = node;
    const std::string pods = "/api/v1/namespaces/default/pods";
    ASSERT_EQ(Call("POST", pods, pod).status, 201);
    ASSERT_EQ(
        Patch(pods + "/" + name + "/status", "merge-patch+json", {{"status", {{"phase", phase}}}})
            .status,
        200);
  }
  static Json Use(const std::string& pod, const std::string& container, std::int64_t cores,
                  std::int64_t bytes) {
    return {{"namespace", "default"}, {"pod", pod},           {"container", container},
            {"cpuNanoCores", cores},  {"memoryBytes", bytes}, {"windowMillis", 10'500}};
  }
  void Say(const std::string& node, const Json& containers) {
    const MutexLock lock(mutex_);
    answers_[node] = Json{{"containers", containers}}.dump();
  }
  std::vector<std::string> Names(const std::string& path) {
    std::vector<std::string> names;
    const Answer list = Call("GET", kMetrics + path);
    EXPECT_EQ(list.status, 200) << list.text;
    for (const Json& item : list.body["items"]) names.push_back(item["metadata"]["name"]);
    return names;
  }

  std::atomic<int> asked_ = 0;
  Mutex mutex_;
  std::map<std::string, std::string> answers_;
};

TEST_F(ResourceMetricsTest, APodHasTheNumbersOfItsContainersWithTheWindow) {
  AddNode("n");
  AddPod("web", "n");
  Say("n", {Use("web", "main", 250'000'000, 3 << 20), Use("web", "side", 1, 4096),
            Use("gone", "main", 1, 1)});
  const Answer pod = Call("GET", kMetrics + "namespaces/default/pods/web");
  ASSERT_EQ(pod.status, 200) << pod.text;
  const std::string now = FormatTime(clock_.WallNow());
  EXPECT_EQ(pod.body,
            (Json{{"apiVersion", "metrics.k8s.io/v1beta1"},
                  {"kind", "PodMetrics"},
                  {"metadata",
                   {{"name", "web"},
                    {"namespace", "default"},
                    {"labels", {{"app", "web"}}},
                    {"creationTimestamp", now}}},
                  {"timestamp", now},
                  {"window", "10.500s"},
                  {"containers",
                   {{{"name", "main"}, {"usage", {{"cpu", "250000000n"}, {"memory", "3072Ki"}}}},
                    {{"name", "side"}, {"usage", {{"cpu", "1n"}, {"memory", "4Ki"}}}}}}}));
  EXPECT_EQ(Call("GET", kMetrics + "namespaces/default/pods/gone").status, 404);
}

TEST_F(ResourceMetricsTest, ANodeUsesWhatItsContainersUse) {
  AddNode("n");
  Say("n", {Use("web", "main", 250'000'000, 3 << 20), Use("db", "main", 1, 1 << 20)});
  const Answer node = Call("GET", kMetrics + "nodes/n");
  ASSERT_EQ(node.status, 200) << node.text;
  EXPECT_EQ(node.body["usage"], (Json{{"cpu", "250000001n"}, {"memory", "4096Ki"}}));
  EXPECT_EQ(node.body["metadata"]["labels"]["zone"], "a");
  EXPECT_THAT(Names("nodes?labelSelector=zone%3Da"), ElementsAre("n"));
  EXPECT_THAT(Names("nodes?labelSelector=zone%3Db"), ElementsAre());
}

TEST_F(ResourceMetricsTest, NodesAwayAndPodsThatDoNotRunAreLeftOut) {
  AddNode("a");
  AddNode("away");
  AddNode("down", "False");
  AddNode("unknown", "Unknown");
  for (const char* name : {"pod-a", "pod-away", "pod-down"})
    AddPod(name, std::string(name).substr(4));
  AddPod("pending", "a", "Pending");
  AddPod("bare", "a");
  AddPod("homeless", "no-such-node");
  for (const char* node : {"a", "down", "unknown"}) {
    Say(node,
        {Use("pod-a", "main", 1, 1), Use("pod-down", "main", 1, 1), Use("pending", "main", 1, 1)});
  }
  EXPECT_THAT(Names("pods"), ElementsAre("pod-a"));
  EXPECT_EQ(asked_, 2) << "each node once, and none that is not ready";
  EXPECT_THAT(Names("nodes"), ElementsAre("a"));
}

TEST_F(ResourceMetricsTest, ANodeSpeaksForNoPodOfAnotherNode) {
  AddNode("a");
  AddNode("liar");
  AddPod("web", "a");
  Say("a", Json::array());
  Say("liar", {Use("web", "main", 1, 1)});
  EXPECT_THAT(Names("pods"), ElementsAre());
}

TEST_F(ResourceMetricsTest, AnswersOfAnyFormAreBorneAndNumbersBounded) {
  AddNode("n");
  AddPod("web", "n");
  const std::vector<std::string> odd = {
      "",
      "null",
      "[]",
      "{",
      "7",
      R"({"containers": 7})",
      R"({"containers": [7, null, [], {}]})",
      R"({"containers": [{"namespace": 1, "pod": [], "container": {}, "cpuNanoCores": "x"}]})",
      R"({"containers": [)" + std::string(1 << 20, ' ') + "]}"};
  for (const std::string& text : odd) {
    {
      const MutexLock lock(mutex_);
      answers_["n"] = text;
    }
    EXPECT_THAT(Names("pods"), ElementsAre()) << text.substr(0, 60);
    Names("nodes");
  }
  Json huge = Json::array();
  for (int i = 0; i < 1000; ++i) huge.push_back(Use("web", "main", INT64_MAX, INT64_MAX));
  huge.push_back(Use("web", "main", INT64_MIN, -1));
  Say("n", huge);
  EXPECT_EQ(Call("GET", kMetrics + "nodes/n").body["usage"]["cpu"], "100000000000000000n");
}

TEST_F(ResourceMetricsTest, ManyNodesAreAskedOnceEachAndAListHasNoPages) {
  for (int i = 0; i < 300; ++i) {
    AddNode(fmt::format("n{:03}", i));
    Say(fmt::format("n{:03}", i), Json::array());
  }
  EXPECT_EQ(Names("nodes?limit=7").size(), 300U);
  EXPECT_EQ(asked_, 300);
}

// The clock of the test stands still while a node talks, so only the node's own end is waited for.
TEST_F(ResourceMetricsTest, NodesWhoseTurnDoesNotComeInTimeAreLeftOut) {
  server_.reset();
  ApiServer::Options options;
  options.node_fetch = [this](const NodeEndpoint&, const std::string&) {
    clock_.Advance(std::chrono::seconds(2));
    return rest::Response::Text(200, R"({"containers": []})");
  };
  auto server = ApiServer::Open(*store_, clock_, std::move(options));
  TAHOMA_CHECK_OK(server.status());
  server_ = *std::move(server);
  for (int i = 0; i < 200; ++i) AddNode(fmt::format("n{:03}", i));
  const std::size_t heard = Names("nodes").size();
  EXPECT_GE(heard, 1U);
  EXPECT_LE(heard, 64U) << "some at a time, for five seconds";
}

TEST_F(ResourceMetricsTest, ANodeThatTalksWithoutEndIsLeftOut) {
  server_.reset();
  std::atomic<int> closed = 0;
  ApiServer::Options options;
  options.node_fetch = [&](const NodeEndpoint&, const std::string&) {
    rest::Response drip = rest::Response::Stream("text/plain", [this](std::string& out, auto) {
      out += " ";
      clock_.Advance(std::chrono::milliseconds(100));
      return true;
    });
    drip.closed = [&closed] { closed += 1; };
    return drip;
  };
  auto server = ApiServer::Open(*store_, clock_, std::move(options));
  TAHOMA_CHECK_OK(server.status());
  server_ = *std::move(server);
  AddNode("n");
  EXPECT_THAT(Names("nodes"), ElementsAre());
  EXPECT_EQ(closed, 1);
}

TEST_F(ResourceMetricsTest, ANinthReadAtOnceIsAskedToComeAgain) {
  server_.reset();
  Mutex mutex;
  CondVar changed;
  int inside = 0;
  bool open = false;
  ApiServer::Options options;
  options.node_fetch = [&](const NodeEndpoint&, const std::string&) {
    const MutexLock lock(mutex);
    inside += 1;
    changed.NotifyAll();
    while (!open) changed.Wait(mutex);
    return rest::Response::Text(200, R"({"containers": []})");
  };
  auto server = ApiServer::Open(*store_, clock_, std::move(options));
  TAHOMA_CHECK_OK(server.status());
  server_ = *std::move(server);
  AddNode("n");
  std::vector<std::jthread> readers;
  for (int i = 0; i < 8; ++i) {
    readers.emplace_back([this] { EXPECT_EQ(Call("GET", kMetrics + "nodes").status, 200); });
  }
  {
    const MutexLock lock(mutex);
    while (inside < 8) changed.Wait(mutex);
  }
  EXPECT_EQ(Call("GET", kMetrics + "nodes").status, 429);
  EXPECT_EQ(Call("GET", kMetrics + "nodes/n").status, 429);
  {
    const MutexLock lock(mutex);
    open = true;
  }
  changed.NotifyAll();
  readers.clear();
  EXPECT_EQ(Call("GET", kMetrics + "nodes").status, 200);
}

TEST_F(ResourceMetricsTest, NothingIsStored) {
  for (const char* method : {"POST", "PUT", "DELETE", "PATCH"}) {
    EXPECT_EQ(Call(method, kMetrics + "nodes", Json::object()).status, 405) << method;
  }
  const Answer table = Call("GET", kMetrics + "nodes", "",
                            {{"Accept", "application/json;as=Table;v=v1;g=meta.k8s.io"}});
  EXPECT_EQ(table.body["columnDefinitions"].size(), 4U) << table.text;
}

}  // namespace
}  // namespace tahoma::controller::apiserver
