// A pod runner against a scripted API and a real plugin over gRPC: from a bound pod to a program's
// exit code, its log, and the claim's end.

#include "sim-node/podrunner/pod_runner.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <thread>

#include "lib/base/json.h"
#include "lib/base/status.h"
#include "sim-node/podrunner/plugin_registry.h"
#include "tests/unit/sim-node/podrunner/fake_plugin.h"

namespace tahoma::sim {
namespace {

using json = Json;
using std::chrono::seconds;

// Objects by path; records every write. Pods without an object are bound to node-0. The tests
// choose uids and show the runner pods without a server; the in-process API server gives out uids
// and refuses writes of unknown pods, so the tests need this server.
class FakeServer final : public kube::Transport {
 public:
  absl::StatusOr<kube::Response> Send(const kube::Request& request) override {
    std::unique_lock lock(mutex_);
    const std::string path = request.target.substr(0, request.target.find('?'));
    const json body = TryParseJson(request.Text());
    if (request.method == "PATCH" && path.ends_with("/status") && before_status_) {
      const auto call = std::exchange(before_status_, nullptr);
      lock.unlock();
      call();
      lock.lock();
    }
    if (request.method == "GET") {
      const auto found = objects_.find(path);
      if (found == objects_.end() && path.starts_with(kPods)) {
        const std::string uid = path.substr(kPods.size()) + "-uid";
        return Answer(200, {{"metadata", {{"uid", uid}}}, {"spec", {{"nodeName", "node-0"}}}});
      }
      return found == objects_.end() ? Answer(404, {{"kind", "Status"},
                                                    {"code", 404},
                                                    {"reason", "NotFound"},
                                                    {"message", path}})
                                     : Answer(200, found->second);
    }
    if (request.method == "PATCH" && path == refused_) {
      ++refusals_;
      changed_.notify_all();
      return Answer(500, {{"kind", "Status"}, {"code", 500}, {"reason", "InternalError"}});
    }
    if (request.method == "PATCH" && path.ends_with("/status") && body.contains("status")) {
      statuses_[path] = body["status"];
      changed_.notify_all();
      if (after_status_ && after_status_->first == body["status"]["phase"]) {
        const auto call = std::exchange(after_status_, std::nullopt)->second;
        lock.unlock();
        call();
        lock.lock();
      }
    }
    if (request.method == "PATCH" && !body.contains("status")) patched_[path].push_back(body);
    if (request.method == "DELETE") deleted_[path] = body;
    if (request.method == "POST" && path.ends_with("/events")) {
      events_.push_back(body["reason"].get<std::string>() + ": " +
                        body["message"].get<std::string>());
    }
    if (request.method == "POST" && path.ends_with("/nodes") &&
        objects_.contains(path + "/" + body["metadata"]["name"].get<std::string>())) {
      return Answer(409, {{"kind", "Status"}, {"code", 409}, {"reason", "AlreadyExists"}});
    }
    if (request.method == "POST") posted_[path] = body;
    if (request.method == "PATCH" && objects_.contains(path)) {
      changed_.notify_all();
      return Answer(200, objects_[path]);
    }
    changed_.notify_all();
    return Answer(200, body.is_object() ? body : json::object());
  }
  absl::StatusOr<kube::Response> Stream(const kube::Request&, const kube::LineSink&,
                                        std::chrono::milliseconds) override {
    return Unimplemented("no streams here");
  }

  // Called once, before the next status of a pod or node is written.
  void BeforeStatus(std::function<void()> call) {
    const std::lock_guard lock(mutex_);
    before_status_ = std::move(call);
  }
  // Called once, after the next status of this phase was taken and before its answer.
  void AfterStatus(std::string phase, std::function<void()> call) {
    const std::lock_guard lock(mutex_);
    after_status_ = {std::move(phase), std::move(call)};
  }
  // Refuses every status of the pod from now on; "" ends the refusal.
  void RefuseStatusOf(const std::string& pod) {
    const std::lock_guard lock(mutex_);
    refused_ = pod.empty() ? "" : "/api/v1/namespaces/default/pods/" + pod + "/status";
  }
  // Refuses every patch of the node from now on; false ends the refusal.
  void RefuseNode(bool refuse) {
    const std::lock_guard lock(mutex_);
    refused_ = refuse ? "/api/v1/nodes/node-0" : "";
  }
  void Put(const std::string& path, json object) {
    const std::lock_guard lock(mutex_);
    objects_[path] = std::move(object);
  }
  // As if restored from a backup from before all writes.
  void Restore() {
    const std::lock_guard lock(mutex_);
    statuses_.clear();
    posted_.clear();
  }
  void AwaitNode() {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(
        changed_.wait_for(lock, seconds(30), [&] { return posted_.contains("/api/v1/nodes"); }));
  }
  bool HasStatus(const std::string& pod) {
    const std::lock_guard lock(mutex_);
    return statuses_.contains(std::string(kPods) + pod + "/status");
  }
  // Returns the pod's status once `good` holds; the last status otherwise.
  json AwaitStatus(const std::string& pod, const std::function<bool(const json&)>& good) {
    std::unique_lock lock(mutex_);
    const std::string path = "/api/v1/namespaces/default/pods/" + pod + "/status";
    EXPECT_TRUE(changed_.wait_for(lock, seconds(30), [&] {
      return statuses_.contains(path) && good(statuses_[path]);
    })) << statuses_[path].dump(1);
    return statuses_[path];
  }
  json AwaitPhase(const std::string& pod, const std::string& phase) {
    return AwaitStatus(pod, [&](const json& status) { return status["phase"] == phase; });
  }
  json AwaitDelete(const std::string& pod) {
    std::unique_lock lock(mutex_);
    const std::string path = "/api/v1/namespaces/default/pods/" + pod;
    EXPECT_TRUE(changed_.wait_for(lock, seconds(30), [&] { return deleted_.contains(path); }));
    return deleted_[path];
  }
  void AwaitEvent(const std::string& part) {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(
        lock, seconds(30),
        [&] {
          return std::any_of(events_.begin(), events_.end(), [&](const std::string& event) {
            return event.find(part) != std::string::npos;
          });
        }))
        << part << " is not in\n"
        << fmt::format("{}", fmt::join(events_, "\n"));
  }
  // Returns the Ready condition of the next status of the node.
  json AwaitReadyOfNode() {
    std::unique_lock lock(mutex_);
    const std::string path = "/api/v1/nodes/node-0/status";
    statuses_.erase(path);
    EXPECT_TRUE(changed_.wait_for(lock, seconds(30), [&] { return statuses_.contains(path); }));
    for (const json& condition : statuses_[path]["conditions"]) {
      if (condition["type"] == "Ready") return condition;
    }
    return nullptr;
  }
  void AwaitRefusal() {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, seconds(30), [&] { return refusals_ > 0; }));
  }
  // Waits for labels of an UltraServer of mode `mode` on the node, and returns the labels.
  json AwaitLabels(const std::string& mode) {
    std::unique_lock lock(mutex_);
    json labels;
    EXPECT_TRUE(changed_.wait_for(lock, seconds(30), [&] {
      for (const json& patch : patched_["/api/v1/nodes/node-0"]) {
        labels = patch["metadata"]["labels"];
        if (labels["neuron.amazonaws.com/ultraserver-mode"] == mode) return true;
      }
      return false;
    }));
    return labels;
  }
  json posted(const std::string& path) {
    const std::lock_guard lock(mutex_);
    return posted_[path];
  }

 private:
  static constexpr std::string_view kPods = "/api/v1/namespaces/default/pods/";

  static kube::Response Answer(int status, const json& body) {
    return {
        .status = status, .headers = {{"Content-Type", "application/json"}}, .body = body.dump()};
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::function<void()> before_status_;
  std::optional<std::pair<std::string, std::function<void()>>> after_status_;
  std::string refused_;
  int refusals_ = 0;
  std::map<std::string, json> objects_;
  std::map<std::string, json> statuses_;
  std::map<std::string, json> deleted_;
  std::map<std::string, std::vector<json>> patched_;
  std::map<std::string, json> posted_;
  std::vector<std::string> events_;
};

class PodRunnerTest : public testing::Test {
 protected:
  PodRunnerTest() : client_(server_, sleeper_, Rng(1)) {
    char name[] = "/tmp/tahoma-runner-XXXXXX";
    folder_ = mkdtemp(name);
    std::filesystem::create_directories(folder_ / "reg");
    std::filesystem::create_directories(folder_ / "cdi");
    logs_ = std::make_shared<LogFolder>(folder_ / "state");
    registry_ = *PluginRegistry::Watch(folder_ / "reg", [](std::string_view) {});
    Begin();
  }
  ~PodRunnerTest() override {
    runner_.reset();
    registry_.reset();
    std::filesystem::remove_all(folder_);
  }

  void Begin() {
    runner_ = Make();
    EXPECT_TRUE(runner_->Start().ok());
  }

  std::unique_ptr<PodRunner> Make() {
    const ImageMap images = {{"tools:1",
                              {.commands = {{"sh", "/bin/sh"},
                                            {"true", "/bin/true"},
                                            {"hello-of-image", folder_ / "hello-of-image"}}}}};
    return std::make_unique<PodRunner>(
        PodRunner::Options{.node = {.name = "node-0",
                                    .instance_type = "trn2u.48xlarge",
                                    .ultra_server_id = "us-1"},
                           .images = images,
                           .cdi_dir = folder_ / "cdi",
                           .state_dir = folder_ / "state",
                           .tools_dir = folder_ / "tools",
                           .shutdown_grace = seconds(2),
                           .lease_period = lease_period_,
                           .write_retry = write_retry_},
        PodRunner::Ports{.api = client_,
                         .api_once = once_,
                         .plugins = [this](const auto& driver) { return registry_->Find(driver); },
                         .clock = clock_,
                         .logs = logs_,
                         .seed = 7,
                         .log = [](std::string_view) {},
                         .before_write = [this](WriteStep) { return disk_error_.load(); }});
  }

  static json Pod(const std::string& name, const std::string& script,
                  const std::string& image = "tools:1") {
    return {{"metadata", {{"name", name}, {"namespace", "default"}, {"uid", name + "-uid"}}},
            {"spec",
             {{"nodeName", "node-0"},
              {"restartPolicy", "Never"},
              {"containers", json::array({{{"name", "main"},
                                           {"image", image},
                                           {"command", json::array({"sh", "-c", script})}}})}}}};
  }
  json WithClaim(json pod, const std::string& claim, bool reserved = true) {
    pod["spec"]["resourceClaims"] = {{{"name", "c"}, {"resourceClaimName", claim}}};
    pod["spec"]["containers"][0]["resources"]["claims"] = {{{"name", "c"}}};
    json object = {
        {"metadata", {{"name", claim}, {"namespace", "default"}, {"uid", claim + "-uid"}}},
        {"status",
         {{"allocation",
           {{"devices",
             {{"results", json::array({{{"driver", "neuron.aws.com"}, {"request", "chips"}}})}}}}},
          {"reservedFor", json::array()}}}};
    if (reserved) object["status"]["reservedFor"].push_back({{"uid", pod["metadata"]["uid"]}});
    server_.Put("/apis/resource.k8s.io/v1/namespaces/default/resourceclaims/" + claim, object);
    std::ofstream(folder_ / "cdi" / (claim + ".json"))
        << json{{"cdiVersion", "0.5.0"},
                {"kind", "neuron.aws.com/device"},
                {"devices",
                 json::array({{{"name", claim + "-uid"},
                               {"containerEdits", {{"env", json::array({"CLAIM=" + claim})}}}}})}};
    return pod;
  }
  std::string Checkpoint() const {
    const auto text = ReadFile(folder_ / "state/claims.json");
    return text.ok() ? *text : "";
  }
  std::string Log(const std::string& pod) {
    const auto log = logs_->Find("default", pod, "main", LogFolder::Which::kCurrent);
    if (!log.ok()) return std::string(Message(log.status()));
    std::string out;
    LogReader(*log, {}).Next(out);
    return out;
  }

  // Ends the runner and begins another on the same folder.
  void BeginAnew() {
    runner_->Stop();
    Begin();
  }

  SystemClock clock_;
  std::atomic<int> disk_error_ = 0;  // the errno of the checkpoint's writes
  seconds lease_period_{10};
  std::chrono::milliseconds write_retry_ = std::chrono::hours(1);
  FakeServer server_;
  kube::InterruptibleSleeper sleeper_;
  kube::Client client_;
  kube::Client once_{server_, sleeper_, Rng(2), {.attempts = 1}};
  std::filesystem::path folder_;
  std::shared_ptr<LogFolder> logs_;
  std::unique_ptr<PluginRegistry> registry_;
  std::unique_ptr<PodRunner> runner_;
};

TEST_F(PodRunnerTest, TheNodeIsRegistered) {
  const json node = server_.posted("/api/v1/nodes");
  EXPECT_EQ(node["metadata"]["name"], "node-0");
  EXPECT_EQ(node["metadata"]["labels"]["node.kubernetes.io/instance-type"], "trn2u.48xlarge");
}

TEST_F(PodRunnerTest, APodRunsToItsEnd) {
  runner_->OnPod(Pod("a", "echo hi $HOSTNAME; exit 3"));
  const json status = server_.AwaitPhase("a", "Failed");
  EXPECT_EQ(status["containerStatuses"][0]["state"]["terminated"]["exitCode"], 3);
  EXPECT_EQ(Log("a"), "hi a\n");
}

TEST_F(PodRunnerTest, AShellFindsThePrograms) {
  runner_->Stop();
  std::ofstream(folder_ / "hello-of-image") << "#!/bin/sh\necho hello\n";
  std::filesystem::permissions(folder_ / "hello-of-image", std::filesystem::perms(0755));
  Begin();
  runner_->OnPod(Pod("a", "hello-of-image && true"));
  server_.AwaitPhase("a", "Succeeded");
  EXPECT_EQ(Log("a"), "hello\n");
}

// The defect: a newer status waited as long as a status that could not be written. Here the first
// status is written after the pod has ended.
TEST_F(PodRunnerTest, AnOutdatedStatusIsFollowedByTheNewestStatusAtOnce) {
  FakePlugin plugin(folder_);
  EXPECT_EQ(plugin.AwaitVerdict(), "");
  server_.BeforeStatus([&] {
    while (plugin.unprepared() == 0) std::this_thread::yield();
  });
  runner_->OnPod(WithClaim(Pod("a", "exit 0"), "one"));
  server_.AwaitPhase("a", "Succeeded");
}

// The defect: a pod with an unwritable status held up the writes of all other pods.
TEST_F(PodRunnerTest, APodWithAnUnwritableStatusDelaysNoOtherPod) {
  server_.RefuseStatusOf("a");
  runner_->OnPod(Pod("a", "exit 0"));
  runner_->OnPod(Pod("b", "exit 0"));
  server_.AwaitPhase("b", "Succeeded");
  runner_->OnPod(Pod("c", "exit 0"));
  server_.AwaitPhase("c", "Succeeded");
}

TEST_F(PodRunnerTest, AFailedStatusWriteIsTriedLaterWithTheNewestStatus) {
  runner_.reset();
  write_retry_ = std::chrono::milliseconds(50);
  Begin();
  server_.RefuseStatusOf("a");
  runner_->OnPod(Pod("a", "exit 0"));
  runner_->OnPod(Pod("b", "exit 0"));
  server_.AwaitPhase("b", "Succeeded");
  server_.RefuseStatusOf("");
  server_.AwaitPhase("a", "Succeeded");
}

TEST_F(PodRunnerTest, AnUnknownImageWaitsAndSaysSo) {
  runner_->OnPod(Pod("a", "true", "other:2"));
  const json status = server_.AwaitStatus("a", [](const json& s) {
    return s["containerStatuses"][0]["state"].contains("waiting") &&
           s["containerStatuses"][0]["state"]["waiting"]["reason"] == "ErrImagePull";
  });
  const std::string message = status["containerStatuses"][0]["state"]["waiting"]["message"];
  EXPECT_NE(message.find("other:2"), std::string::npos) << message;
  EXPECT_NE(message.find("tools:1"), std::string::npos) << message;
}

TEST_F(PodRunnerTest, ADeletedPodIsTermedAndRemoved) {
  ASSERT_EQ(std::system(("mkfifo " + (folder_ / "up").string()).c_str()), 0);
  json pod = Pod("a", fmt::format("trap 'echo bye; exit 0' TERM; echo up > {}; "
                                  "while :; do sleep 1000 & wait; done",
                                  (folder_ / "up").string()));
  runner_->OnPod(pod);
  std::string line;
  std::ifstream up(folder_ / "up");
  std::getline(up, line);
  server_.AwaitPhase("a", "Running");
  pod["metadata"]["deletionTimestamp"] = "2026-11-21T10:00:00Z";
  pod["metadata"]["deletionGracePeriodSeconds"] = 30;
  server_.Put("/api/v1/namespaces/default/pods/a", pod);
  runner_->OnPod(pod);
  const json options = server_.AwaitDelete("a");
  EXPECT_EQ(options["gracePeriodSeconds"], 0);
  EXPECT_EQ(options["preconditions"]["uid"], "a-uid");
  server_.AwaitPhase("a", "Succeeded");
}

TEST_F(PodRunnerTest, AClaimIsPreparedInjectedAndUnprepared) {
  FakePlugin plugin(folder_);
  EXPECT_EQ(plugin.AwaitVerdict(), "");
  runner_->OnPod(WithClaim(Pod("a", "echo claim=$CLAIM"), "one"));
  server_.AwaitPhase("a", "Succeeded");
  EXPECT_EQ(Log("a"), "claim=one\n");
  EXPECT_EQ(plugin.prepared(), 1);
  EXPECT_EQ(plugin.unprepared(), 1);
}

TEST_F(PodRunnerTest, AClaimThatIsNotReservedKeepsThePodOut) {
  FakePlugin plugin(folder_);
  plugin.AwaitVerdict();
  runner_->OnPod(WithClaim(Pod("a", "true"), "one", /*reserved=*/false));
  server_.AwaitEvent("not reserved for pod a");
  EXPECT_EQ(plugin.prepared(), 0);
  EXPECT_EQ(server_.AwaitPhase("a", "Pending")["phase"], "Pending");
}

TEST_F(PodRunnerTest, WithoutItsPluginAClaimWaitsWithAnEvent) {
  runner_->OnPod(WithClaim(Pod("a", "true"), "one"));
  server_.AwaitEvent("DRA driver neuron.aws.com is not registered");
  FakePlugin plugin(folder_);
  server_.AwaitPhase("a", "Succeeded");  // tried again once the plugin is there
}

TEST_F(PodRunnerTest, APluginOfAnotherKindIsRefused) {
  registry_.reset();
  FakePlugin plugin(folder_);
  plugin.type = "CSIPlugin";
  registry_ = *PluginRegistry::Watch(folder_ / "reg", [](std::string_view) {});
  EXPECT_NE(plugin.AwaitVerdict().find("CSIPlugin"), std::string::npos);
}

TEST_F(PodRunnerTest, StoppingEndsThePodsAndSaysWhy) {
  runner_->OnPod(Pod("a", "exec sleep 1000"));
  server_.AwaitPhase("a", "Running");
  runner_->Stop();
  const json status = server_.AwaitPhase("a", "Failed");
  EXPECT_EQ(status["reason"], "Terminated");
}

// ---- The node ----------------------------------------------------------------------------------

// The defects: a node taken for lost while its program hung stayed lost for five minutes, and was
// then Ready since a time long before.
TEST_F(PodRunnerTest, ANodeTakenForLostReportsReadyWithinALeasePeriod) {
  lease_period_ = seconds(1);
  BeginAnew();
  const json unknown = {{"type", "Ready"}, {"status", "Unknown"}};
  server_.Put("/api/v1/nodes/node-0", {{"status", {{"conditions", json::array({unknown})}}}});
  const json ready = server_.AwaitReadyOfNode();
  EXPECT_EQ(ready["status"], "True");
  EXPECT_GT(*ParseTime(ready["lastTransitionTime"].get<std::string>()),
            clock_.WallNow() - std::chrono::minutes(5));
}

TEST_F(PodRunnerTest, ANodeThatWasReadyIsReadySinceThenAfterARestart) {
  const json ready = {
      {"type", "Ready"}, {"status", "True"}, {"lastTransitionTime", "2019-01-01T00:00:00Z"}};
  server_.Put("/api/v1/nodes/node-0", {{"status", {{"conditions", {"nonsense", ready}}}}});
  runner_->Stop();
  std::jthread begin([this] { Begin(); });
  EXPECT_EQ(server_.AwaitReadyOfNode()["lastTransitionTime"], "2019-01-01T00:00:00Z");
}

TEST_F(PodRunnerTest, TheLabelsOfTheNodeFollowItsElection) {
  using enum hw::UltraServerMode;
  runner_->OnElection({.running = true});
  server_.AwaitLabels("busy");
  runner_->OnElection({.modes = {kX4, kX2V, kX1},
                       .server_id_2 = "af",
                       .node_id_2 = 0,
                       .server_id_4 = "b0",
                       .node_id_4 = 2});
  EXPECT_EQ(server_.AwaitLabels("1_2_4")["neuron.amazonaws.com/ultraserver-server-id-4"], "b0");
  runner_->OnElection({.modes = {kX1}});
  EXPECT_TRUE(server_.AwaitLabels("1")["neuron.amazonaws.com/ultraserver-server-id-4"].is_null());
}

TEST_F(PodRunnerTest, LabelsThatCannotBeWrittenAreWrittenLater) {
  lease_period_ = seconds(1);
  BeginAnew();
  server_.RefuseNode(true);
  runner_->OnElection({.modes = {hw::UltraServerMode::kX1}});
  server_.AwaitRefusal();
  server_.RefuseNode(false);
  server_.AwaitLabels("1");
}

// ---- An API server that was restored -----------------------------------------------------------

// The defect: neither came back before the runner was started again.
TEST_F(PodRunnerTest, AStatusMissingInAListIsWrittenAgain) {
  runner_->OnPod(Pod("a", "echo once"));
  runner_->OnPodsSynced();
  server_.AwaitPhase("a", "Succeeded");
  server_.Restore();
  runner_->OnPod(Pod("a", "echo once"));
  runner_->OnPodsSynced();
  server_.AwaitPhase("a", "Succeeded");
  server_.AwaitNode();
  EXPECT_EQ(Log("a"), "once\n");
}

// The defect: the second request for a status was taken for the request under way.
TEST_F(PodRunnerTest, AStatusLostBeforeTheAnswerOfItsWriteIsWrittenAgain) {
  FakePlugin plugin(folder_);
  ASSERT_EQ(plugin.AwaitVerdict(), "");
  server_.AfterStatus("Succeeded", [&] {
    server_.Restore();
    runner_->OnPod(Pod("a", "true"));
    runner_->OnPodsSynced();
    runner_->OnPod(WithClaim(Pod("b", "true"), "one"));
    plugin.AwaitCalls(1);  // so the list has been looked at
  });
  runner_->OnPod(Pod("a", "true"));
  server_.AwaitPhase("b", "Succeeded");
  EXPECT_EQ(server_.AwaitPhase("a", "Succeeded")["phase"], "Succeeded");
}

// The defect: a status that had waited for the server was written to another node's pod.
TEST_F(PodRunnerTest, AWaitingWriteDoesNotReachAPodBoundToAnotherNode) {
  runner_.reset();
  write_retry_ = std::chrono::milliseconds(50);
  Begin();
  server_.RefuseStatusOf("a");
  runner_->OnPod(Pod("a", "exit 0"));
  server_.AwaitRefusal();
  json elsewhere = Pod("a", "exit 0");
  elsewhere["spec"]["nodeName"] = "node-1";
  server_.Put("/api/v1/namespaces/default/pods/a", elsewhere);
  server_.RefuseStatusOf("");
  runner_->Stop();  // when all has been written
  EXPECT_FALSE(server_.HasStatus("a"));
}

// ---- Plugins in trouble
// --------------------------------------------------------------------------

// The defect: a few hanging calls took all the threads that start containers.
TEST_F(PodRunnerTest, APluginThatHangsDelaysOnlyPodsWithItsClaims) {
  FakePlugin plugin(folder_);
  ASSERT_EQ(plugin.AwaitVerdict(), "");
  plugin.Hold();
  std::vector<std::string> stuck;
  for (int i = 0; i < 6; ++i) {
    stuck.push_back(fmt::format("stuck-{}", i));
    runner_->OnPod(WithClaim(Pod(stuck.back(), "true"), fmt::format("claim-{}", i)));
  }
  plugin.AwaitCalls(4);
  runner_->OnPod(Pod("free", "true"));
  server_.AwaitPhase("free", "Succeeded");
  EXPECT_EQ(plugin.prepared(), 0);
  plugin.Release();
  for (const std::string& pod : stuck) server_.AwaitPhase(pod, "Succeeded");
  EXPECT_EQ(plugin.prepared(), 6);
  EXPECT_EQ(plugin.unprepared(), 6);
}

TEST_F(PodRunnerTest, APluginThatDiesDuringAPrepareIsAskedAgainAfterItsRestart) {
  auto plugin = std::make_unique<FakePlugin>(folder_);
  ASSERT_EQ(plugin->AwaitVerdict(), "");
  plugin->Hold();
  runner_->OnPod(WithClaim(Pod("a", "echo claim=$CLAIM"), "one"));
  plugin->AwaitCalls(1);
  plugin->Cut();
  server_.AwaitEvent("FailedPrepareDynamicResources: NodePrepareResources: ");
  plugin.reset();
  FakePlugin next(folder_);
  EXPECT_EQ(next.AwaitVerdict(), "");
  server_.AwaitPhase("a", "Succeeded");
  EXPECT_EQ(Log("a"), "claim=one\n");
  EXPECT_EQ(next.unprepared(), 1);
}

TEST_F(PodRunnerTest, APluginOfNoKnownVersionIsToldWhichAreKnown) {
  registry_.reset();
  FakePlugin plugin(folder_);
  plugin.versions = {"v1alpha4.DRAPlugin", "v1.DRAResourceHealth"};
  registry_ = *PluginRegistry::Watch(folder_ / "reg", [](std::string_view) {});
  EXPECT_EQ(plugin.AwaitVerdict(),
            "plugin neuron.aws.com supports [v1alpha4.DRAPlugin, v1.DRAResourceHealth]; expected "
            "v1.DRAPlugin or v1beta1.DRAPlugin");
  EXPECT_FALSE(registry_->Find("neuron.aws.com").ok());
}

// The defect: on a file system that reuses freed inodes, the next plugin was taken for the former
// plugin, and calls went to a removed socket.
TEST_F(PodRunnerTest, APluginOnTheSocketOfAFormerPluginIsRegisteredAnew) {
  auto first = std::make_unique<FakePlugin>(folder_, "first.sock");
  ASSERT_EQ(first->AwaitVerdict(), "");
  // While the registry waits for a silent plugin, the two plugins change places unseen.
  SilentSocket silent(folder_ / "reg" / "silent-reg.sock");
  silent.AwaitDial();
  first.reset();
  FakePlugin second(folder_, "second.sock");
  silent.Remove();
  EXPECT_EQ(second.AwaitVerdict(), "");
  runner_->OnPod(WithClaim(Pod("a", "true"), "one"));
  server_.AwaitPhase("a", "Succeeded");
  EXPECT_EQ(second.prepared(), 1);
}

// ---- A disk that is full -----------------------------------------------------------------------

// The defect: the failure was logged and the claim prepared all the same; a crash then lost the
// claim.
TEST_F(PodRunnerTest, AClaimThatCannotBeRecordedIsNotPreparedUntilItCan) {
  FakePlugin plugin(folder_);
  ASSERT_EQ(plugin.AwaitVerdict(), "");
  disk_error_ = ENOSPC;
  runner_->OnPod(WithClaim(Pod("a", "echo claim=$CLAIM"), "one"));
  server_.AwaitEvent("FailedPrepareDynamicResources: the prepared claims cannot be recorded: ");
  EXPECT_EQ(plugin.prepared(), 0);
  EXPECT_EQ(Checkpoint().find("one-uid"), std::string::npos);
  disk_error_ = 0;
  server_.AwaitPhase("a", "Succeeded");
  EXPECT_EQ(Log("a"), "claim=one\n");
  EXPECT_EQ(plugin.prepared(), 1);
}

TEST_F(PodRunnerTest, ARecordedClaimIsOnDiskBeforeThePluginIsAsked) {
  FakePlugin plugin(folder_);
  ASSERT_EQ(plugin.AwaitVerdict(), "");
  plugin.Hold();
  runner_->OnPod(WithClaim(Pod("a", "true"), "one"));
  plugin.AwaitCalls(1);
  EXPECT_NE(Checkpoint().find("one-uid"), std::string::npos);
  plugin.Release();
  server_.AwaitPhase("a", "Succeeded");
}

TEST_F(PodRunnerTest, ACheckpointThatCannotBeReadKeepsTheRunnerFromStarting) {
  runner_->Stop();
  std::filesystem::remove(folder_ / "state/claims.json");
  std::filesystem::create_directory(folder_ / "state/claims.json");
  const absl::Status started = Make()->Start();
  EXPECT_EQ(Message(started),
            (folder_ / "state/claims.json").string() + ": cannot be read: Is a directory");
}

// ---- What is left behind -----------------------------------------------------------------------

// The defect: nobody removed the logs, and the logs of a vanished pod were still served.
TEST_F(PodRunnerTest, AVanishedPodsLogsAreRemovedAfterItsEnd) {
  runner_->OnPod(Pod("a", "echo up; exec sleep 1000"));
  server_.AwaitPhase("a", "Running");
  ASSERT_TRUE(std::filesystem::exists(folder_ / "state/pods/a-uid"));
  runner_->OnPodGone("a-uid");
  runner_->Stop();  // when every pod has ended
  EXPECT_FALSE(std::filesystem::exists(folder_ / "state/pods/a-uid"));
  EXPECT_EQ(Log("a"), "pod default/a is not on this node");
}

TEST_F(PodRunnerTest, TheLogsOfPodsThatWentWhileNoRunnerWasThereAreRemoved) {
  std::filesystem::create_directories(folder_ / "state/pods/old-uid/main/work");
  std::ofstream(folder_ / "state/pods/old-uid/main/0.log") << "x";
  runner_->OnPod(Pod("a", "echo kept"));
  server_.AwaitPhase("a", "Succeeded");
  runner_->OnPodsSynced();
  runner_->Stop();
  EXPECT_FALSE(std::filesystem::exists(folder_ / "state/pods/old-uid"));
  EXPECT_EQ(Log("a"), "kept\n");
}

// The defect was the end of the program, see node_pods_test.cc.
TEST_F(PodRunnerTest, ACommandOutOfASecretMayBeAnyBytes) {
  server_.Put("/api/v1/namespaces/default/secrets/s", {{"data", {{"k", "//79AEE="}}}});
  json pod = Pod("a", "true");
  json& main = pod["spec"]["containers"][0];
  main["env"] = json::array(
      {{{"name", "V"}, {"valueFrom", {{"secretKeyRef", {{"name", "s"}, {"key", "k"}}}}}}});
  main["command"] = {"$(V)"};
  runner_->OnPod(pod);
  server_.AwaitStatus("a", [](const json& status) {
    return status["containerStatuses"][0]["state"].contains("waiting") &&
           status["containerStatuses"][0]["state"]["waiting"]["reason"] == "CreateContainerError";
  });
  server_.AwaitEvent("has no command");
  main["command"] = {"sh", "-c", "true"};
  pod["metadata"]["name"] = "b";
  pod["metadata"]["uid"] = "b-uid";
  runner_->OnPod(pod);
  server_.AwaitEvent("variable V contains a zero byte");
}

}  // namespace
}  // namespace tahoma::sim
