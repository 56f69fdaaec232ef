// A controller that starts on a fleet of 1,000,000 chips beside 500,000 pods of other schedulers:
// the memory that the controller takes, and the time until the first decision.
//
// The API server is a function in this process. The server answers lists with JSON text, 500
// objects a page, as kube-apiserver does; the texts are copies of a few templates with other
// numbers, so the server takes hardly any time and keeps nothing. FLEET_ULTRASERVERS makes the
// fleet smaller, with as many pods per node.

#include <absl/container/flat_hash_map.h>
#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "controller/run/core_loop.h"
#include "dra-plugin/inventory/pool.h"
#include "dra-plugin/inventory/shown_pool.h"
#include "dra-plugin/slices/slice_json.h"
#include "lib/base/check.h"
#include "lib/base/json.h"
#include "lib/hw/catalogue.h"
#include "lib/kube/json_writer.h"
#include "sim-node/podrunner/node_object.h"
#include "tests/support/memory_journal.h"

namespace tahoma::controller {
namespace {

using json = Json;
using SteadyTime = std::chrono::steady_clock::time_point;

constexpr int kUltraServers = 15'625;
constexpr std::uint64_t kPodsPerNode = 8;
constexpr std::uint64_t kPageSize = 500;
constexpr const char* kEnded = "the server has ended";

double MsSince(SteadyTime start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
      .count();
}

// The numbers that a template leaves open. Each has a mark in the template's text, of the width of
// the number.
struct Numbers {
  std::uint64_t ultra_server = 0;
  std::uint64_t object = 0;

  std::array<std::uint64_t, 4> all() const {
    return {ultra_server, ultra_server / 32, ultra_server / 1024, object};
  }
};
constexpr std::array<std::string_view, 4> kMarks = {"QQQQQ", "RRRRR", "SSSSS", "TTTTTTT"};

// The JSON text of an object, to be written again and again with other numbers.
class Template {
 public:
  explicit Template(std::string text) : text_(std::move(text)) {
    for (std::size_t mark = 0; mark < kMarks.size(); ++mark) {
      for (std::size_t at = text_.find(kMarks[mark]); at != std::string::npos;
           at = text_.find(kMarks[mark], at + 1)) {
        holes_.emplace_back(at, mark);
      }
    }
  }

  void Append(const Numbers& numbers, std::string& out) const {
    const std::size_t begin = out.size();
    out += text_;
    std::array<std::array<char, 8>, kMarks.size()> digits{};
    const auto all = numbers.all();
    for (std::size_t mark = 0; mark < kMarks.size(); ++mark) {
      std::uint64_t rest = all[mark];
      for (std::size_t i = kMarks[mark].size(); i-- > 0; rest /= 10) {
        digits[mark][i] = static_cast<char>('0' + rest % 10);
      }
    }
    for (const auto& [at, mark] : holes_) {
      std::memcpy(out.data() + begin + at, digits[mark].data(), kMarks[mark].size());
    }
  }

 private:
  std::string text_;
  std::vector<std::pair<std::size_t, std::size_t>> holes_;
};

// Adds what an API server adds to each object.
json Stored(json object, const char* manager, std::string_view fields) {
  json& metadata = object["metadata"];
  metadata["uid"] = "3f2a90c4-55aa-4c1e-9d2f-00000TTTTTTT";
  metadata["resourceVersion"] = "1TTTTTTT";
  metadata["creationTimestamp"] = "2026-11-21T10:00:00Z";
  metadata["managedFields"] = {{{"manager", manager},
                                {"operation", "Update"},
                                {"apiVersion", "v1"},
                                {"time", "2026-11-21T10:00:00Z"},
                                {"fieldsType", "FieldsV1"},
                                {"fieldsV1", ParseJson(fields)}}};
  return object;
}

constexpr std::string_view kNodeFields = R"({"f:metadata":{"f:annotations":{".":{},
  "f:volumes.kubernetes.io/controller-managed-attach-detach":{}},"f:labels":{".":{},
  "f:beta.kubernetes.io/arch":{},"f:beta.kubernetes.io/os":{},"f:kubernetes.io/arch":{},
  "f:kubernetes.io/hostname":{},"f:kubernetes.io/os":{},"f:node.kubernetes.io/instance-type":{},
  "f:topology.kubernetes.io/region":{},"f:topology.kubernetes.io/zone":{}}},"f:spec":{
  "f:providerID":{}},"f:status":{"f:conditions":{"k:{\"type\":\"DiskPressure\"}":{
  "f:lastHeartbeatTime":{}},"k:{\"type\":\"MemoryPressure\"}":{"f:lastHeartbeatTime":{}},
  "k:{\"type\":\"PIDPressure\"}":{"f:lastHeartbeatTime":{}},"k:{\"type\":\"Ready\"}":{
  "f:lastHeartbeatTime":{},"f:lastTransitionTime":{},"f:message":{},"f:reason":{},
  "f:status":{}}},"f:images":{}}})";

constexpr std::string_view kPodFields = R"({"f:metadata":{"f:generateName":{},"f:labels":{".":{},
  "f:app":{},"f:controller-revision-hash":{},"f:pod-template-generation":{}},"f:ownerReferences":{
  ".":{},"k:{\"uid\":\"77aa90c4-55aa-4c1e-9d2f-000000000000\"}":{}}},"f:spec":{"f:affinity":{},
  "f:containers":{"k:{\"name\":\"agent\"}":{".":{},"f:args":{},"f:env":{},"f:image":{},
  "f:imagePullPolicy":{},"f:name":{},"f:resources":{".":{},"f:limits":{},"f:requests":{}},
  "f:terminationMessagePath":{},"f:terminationMessagePolicy":{},"f:volumeMounts":{}}},
  "f:dnsPolicy":{},"f:enableServiceLinks":{},"f:restartPolicy":{},"f:schedulerName":{},
  "f:securityContext":{},"f:terminationGracePeriodSeconds":{},"f:tolerations":{},
  "f:volumes":{}}})";

sim::NodeFacts FactsOfNode(int z) {
  const hw::InstanceType& type = *hw::FindInstanceType("trn2u.48xlarge");
  return {.name = fmt::format("us-QQQQQ-n{}", z),
          .instance_type = std::string(type.name),
          .vcpus = type.vcpus,
          .memory_bytes = type.memory_bytes,
          .ultra_server_id = "us-QQQQQ",
          .ultra_server_node = z,
          .network_layers = {"nn-1111111111SSSSS", "nn-2222222222RRRRR", "nn-3333333333QQQQQ"}};
}

json NodeObject(int z) {
  json node = sim::MakeNode(FactsOfNode(z), WallTime());
  node["metadata"]["labels"]["topology.kubernetes.io/zone"] = "us-east-1a";
  node["metadata"]["annotations"]["volumes.kubernetes.io/controller-managed-attach-detach"] =
      "true";
  for (int i = 0; i < 10; ++i) {
    node["status"]["images"].push_back(
        {{"names",
          {fmt::format("602401143452.dkr.ecr.us-east-1.amazonaws.com/image-{}@sha256:{:064x}", i,
                       i),
           fmt::format("602401143452.dkr.ecr.us-east-1.amazonaws.com/image-{}:v1.2.3", i)}},
         {"sizeBytes", 123456789}});
  }
  node.erase("kind");
  node.erase("apiVersion");
  return Stored(std::move(node), "kubelet", kNodeFields);
}

// The slices that the plugin publishes for a node.
std::vector<json> SliceObjects(int z, bool cores) {
  wire::Inventory inventory = {.node_name = fmt::format("us-QQQQQ-n{}", z),
                               .instance_type = "trn2u.48xlarge",
                               .ultra_server = wire::UltraServer{.id = "us-QQQQQ", .node_id = z},
                               .network_layers = FactsOfNode(z).network_layers,
                               .driver_version = "2.26.10.0"};
  for (int chip = 0; chip < kChipsPerNode; ++chip) inventory.chips.push_back({.index = chip});
  const auto pool =
      dra::BuildPool(inventory, {.publish = {.lnc1 = cores, .lnc2 = cores, .node = cores}});
  TAHOMA_CHECK_OK(pool.status());
  const std::vector<dra::SliceContent> contents = dra::CutIntoSlices(*pool);
  const dra::SliceOwner owner = {.node_name = inventory.node_name,
                                 .node_uid = "3f2a90c4-55aa-4c1e-9d2f-00000TTTTTTT"};
  std::vector<json> slices;
  for (std::size_t i = 0; i < contents.size(); ++i) {
    json slice =
        dra::SliceObject(owner, {.generation = 1, .slice_count = contents.size()}, contents[i], i);
    slice["metadata"]["name"] = dra::SliceName(owner, i);
    slice.erase("kind");
    slice.erase("apiVersion");
    for (json& device : slice["spec"]["devices"]) {
      for (json& taint : device["taints"]) taint["timeAdded"] = "2026-11-21T10:00:00Z";
    }
    slices.push_back(Stored(std::move(slice), "dra-plugin",
                            R"({"f:metadata":{"f:generateName":{},"f:ownerReferences":{".":{},
                            "k:{\"uid\":\"3f2a90c4-55aa-4c1e-9d2f-00000TTTTTTT\"}":{}}},
                            "f:spec":{"f:devices":{},"f:driver":{},"f:nodeName":{},"f:pool":{
                            "f:generation":{},"f:name":{},"f:resourceSliceCount":{}}}})"));
  }
  return slices;
}

// A pod of a DaemonSet; the sets differ in their requests.
json PodObject(std::uint64_t set, int z) {
  json pod = ParseJson(R"({"metadata": {"generateName": "agent-", "labels": {"app": "agent",
      "controller-revision-hash": "6f7d8b9c5d", "pod-template-generation": "1"},
      "annotations": {"prometheus.io/scrape": "true", "prometheus.io/port": "9100"},
      "ownerReferences": [{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent",
        "uid": "77aa90c4-55aa-4c1e-9d2f-000000000000", "controller": true,
        "blockOwnerDeletion": true}]},
    "spec": {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In",
          "values": ["us-QQQQQ-n0"]}]}]}}},
      "containers": [{"name": "agent", "image": "registry.example.com/agents/agent:v1.2.3",
        "imagePullPolicy": "IfNotPresent", "args": ["--node=$(NODE).local", "--verbose=2"],
        "env": [{"name": "NODE", "valueFrom": {"fieldRef": {"apiVersion": "v1",
          "fieldPath": "spec.nodeName"}}}],
        "resources": {"limits": {"memory": "256Mi"},
          "requests": {"cpu": "100m", "memory": "128Mi"}},
        "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
        "volumeMounts": [{"mountPath": "/host", "name": "host", "readOnly": true},
          {"mountPath": "/var/run/secrets/kubernetes.io/serviceaccount",
           "name": "kube-api-access-x7k2p", "readOnly": true}]}],
      "dnsPolicy": "ClusterFirst", "enableServiceLinks": true, "nodeName": "us-QQQQQ-n0",
      "preemptionPolicy": "PreemptLowerPriority", "priority": 0, "restartPolicy": "Always",
      "schedulerName": "default-scheduler", "securityContext": {}, "serviceAccount": "agent",
      "serviceAccountName": "agent", "terminationGracePeriodSeconds": 30,
      "tolerations": [{"effect": "NoExecute", "key": "node.kubernetes.io/not-ready",
          "operator": "Exists"}, {"effect": "NoExecute",
          "key": "node.kubernetes.io/unreachable", "operator": "Exists"},
        {"effect": "NoSchedule", "key": "node.kubernetes.io/disk-pressure",
          "operator": "Exists"}],
      "volumes": [{"hostPath": {"path": "/", "type": ""}, "name": "host"},
        {"name": "kube-api-access-x7k2p", "projected": {"defaultMode": 420, "sources": [
          {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}}]}}]},
    "status": {"conditions": [
        {"lastProbeTime": null, "lastTransitionTime": "2026-11-21T10:00:00Z",
         "status": "True", "type": "PodScheduled"},
        {"lastProbeTime": null, "lastTransitionTime": "2026-11-21T10:00:00Z",
         "status": "True", "type": "Ready"}],
      "containerStatuses": [{"containerID":
          "containerd://4af1d2c4d5e6f708192a3b4c5d6e7f8091a2b3c4d5e6f708192a3b4c5d6e7f80",
        "image": "registry.example.com/agents/agent:v1.2.3", "lastState": {}, "name": "agent",
        "ready": true, "restartCount": 0, "started": true,
        "state": {"running": {"startedAt": "2026-11-21T10:00:00Z"}}}],
      "hostIP": "10.0.0.1", "phase": "Running", "podIP": "10.1.0.1", "qosClass": "Burstable",
      "startTime": "2026-11-21T10:00:00Z"}})");
  pod["metadata"]["name"] = fmt::format("agent-{}-TTTTTTT", set);
  pod["metadata"]["namespace"] = fmt::format("monitoring-agents-{}", set);
  pod["spec"]["nodeName"] = fmt::format("us-QQQQQ-n{}", z);
  pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] = fmt::format("{}m", 100 + set);
  return Stored(std::move(pod), "kube-controller-manager", kPodFields);
}

// The gang that waits: an UltraServer for four pods.
constexpr int kMembers = 4;

json GangItem() {
  return ParseJson(R"({"metadata": {"name": "train", "namespace": "ns", "uid": "u-train",
      "resourceVersion": "7", "generation": 1, "creationTimestamp": "2026-11-21T10:00:00Z"},
    "spec": {"members": 4, "shape": "4x4x4"}})");
}
json ClassItem() {
  json item = ParseJson(R"({"metadata": {"name": "neuron.aws.com", "uid": "u-class",
      "resourceVersion": "7"}, "spec": {"selectors": [{"cel": {}}]}})");
  item["spec"]["selectors"][0]["cel"]["expression"] =
      "device.driver == 'neuron.aws.com' && device.attributes['neuron.aws.com'].resourceType in "
      "['neuron_device', 'neuron_node']";
  return item;
}
json ClaimItem(int member) {
  json claim = ParseJson(R"({"metadata": {"namespace": "ns", "resourceVersion": "7"},
    "spec": {"devices": {"requests": [{"name": "neurons", "exactly": {
      "deviceClassName": "neuron.aws.com", "allocationMode": "ExactCount", "count": 16}}]}}})");
  claim["metadata"]["name"] = fmt::format("claim-{}", member);
  claim["metadata"]["uid"] = fmt::format("u-claim-{}", member);
  return claim;
}
json MemberItem(int member) {
  json pod = ParseJson(R"({"metadata": {"namespace": "ns", "resourceVersion": "7",
      "creationTimestamp": "2026-11-21T10:00:00Z", "labels": {"tahoma.dev/gang": "train"}},
    "spec": {"schedulerName": "tahoma", "containers": [{"name": "main"}]},
    "status": {"phase": "Pending"}})");
  pod["metadata"]["name"] = fmt::format("train-{}", member);
  pod["metadata"]["uid"] = fmt::format("u-train-{}", member);
  pod["spec"]["resourceClaims"] = {
      {{"name", "neurons"}, {"resourceClaimName", fmt::format("claim-{}", member)}}};
  return pod;
}

// The API server of the fleet. Lists alone are answered.
class FleetServer final : public kube::Transport {
 public:
  FleetServer(std::uint64_t ultra_servers, bool cores) : nodes_(4 * ultra_servers) {
    for (int z = 0; z < 4; ++z) {
      node_.emplace_back(kube::JsonText(NodeObject(z)));
      std::vector<Template>& slices = slices_.emplace_back();
      for (const json& slice : SliceObjects(z, cores)) slices.emplace_back(kube::JsonText(slice));
    }
    for (std::uint64_t set = 0; set < kPodsPerNode; ++set) {
      std::vector<Template>& pods = pods_.emplace_back();
      for (int z = 0; z < 4; ++z) pods.emplace_back(kube::JsonText(PodObject(set, z)));
    }
  }

  absl::StatusOr<kube::Response> Send(const kube::Request& request) override {
    if (request.method != "GET") return Unavailable("nothing is written here");
    const SteadyTime start = std::chrono::steady_clock::now();
    kube::Response answer{.status = 200, .headers = {}, .body = Answer(request.target)};
    own_us_ += static_cast<std::uint64_t>(1000 * MsSince(start));
    bytes_ += answer.body.size();
    return answer;
  }
  absl::StatusOr<kube::Response> Stream(const kube::Request&, const kube::LineSink&,
                                        std::chrono::milliseconds) override {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return over_; });
    return Unavailable("{}", kEnded);
  }
  void End() {
    const std::lock_guard lock(mutex_);
    over_ = true;
    changed_.notify_all();
  }

  // Time of all threads in the server.
  double own_ms() const { return static_cast<double>(own_us_) / 1000; }
  double mib() const { return static_cast<double>(bytes_) / (1 << 20); }

 private:
  std::string Answer(std::string_view target) const {
    if (target.starts_with("/api/v1/nodes")) {
      return Page(target, nodes_, 1, [&](std::uint64_t i, std::string& out) {
        node_[i % 4].Append({.ultra_server = i / 4, .object = i}, out);
      });
    }
    if (target.find("/resourceslices") != std::string_view::npos) {
      const std::uint64_t each = slices_[0].size();
      return Page(target, nodes_ * each, 1, [&, each](std::uint64_t i, std::string& out) {
        // The first slices of all nodes come first, as their names begin with their index.
        const std::uint64_t node = i % nodes_;
        slices_[node % 4][i / nodes_].Append({.ultra_server = node / 4, .object = i}, out);
      });
    }
    if (target.find("spec.nodeName") != std::string_view::npos) {
      return Page(target, nodes_ * kPodsPerNode, 1, [&](std::uint64_t i, std::string& out) {
        const std::uint64_t node = i * 7919 % nodes_;  // names say nothing of nodes
        pods_[i / nodes_][node % 4].Append({.ultra_server = node / 4, .object = i}, out);
      });
    }
    if (target.starts_with("/api/v1/pods")) return Items(kMembers, MemberItem);
    if (target.find("/resourceclaims") != std::string_view::npos) return Items(kMembers, ClaimItem);
    if (target.find("/gangs") != std::string_view::npos) {
      return Items(1, [](int) { return GangItem(); });
    }
    if (target.find("/deviceclasses") != std::string_view::npos) {
      return Items(1, [](int) { return ClassItem(); });
    }
    return Items(0, MemberItem);
  }

  template <typename Make>
  static std::string Items(int count, const Make& make) {
    json items = json::array();
    for (int i = 0; i < count; ++i) items.push_back(make(i));
    return kube::JsonText({{"kind", "List"},
                           {"apiVersion", "v1"},
                           {"metadata", {{"resourceVersion", "90000000"}}},
                           {"items", std::move(items)}});
  }

  template <typename Append>
  static std::string Page(std::string_view target, std::uint64_t count, std::uint64_t first,
                          const Append& append) {
    std::uint64_t begin = first - 1;
    constexpr std::string_view kToken = "continue=";
    if (const std::size_t at = target.find(kToken); at != std::string_view::npos) {
      std::from_chars(target.data() + at + kToken.size(), target.data() + target.size(), begin);
    }
    const std::uint64_t end = std::min(count, begin + kPageSize);
    std::string out =
        R"({"kind":"List","apiVersion":"v1","metadata":{"resourceVersion":"90000000")";
    if (end < count) {
      out += fmt::format(R"(,"continue":"{}","remainingItemCount":{})", end, count - end);
    }
    out += R"(},"items":[)";
    for (std::uint64_t i = begin; i < end; ++i) {
      if (i == begin + 1) out.reserve((end - begin + 1) * out.size());
      if (i != begin) out += ',';
      append(i, out);
    }
    out += "]}\n";
    return out;
  }

  const std::uint64_t nodes_;
  std::vector<Template> node_;                 // by place in the UltraServer
  std::vector<std::vector<Template>> slices_;  // by place, then index
  std::vector<std::vector<Template>> pods_;    // by set, then place
  std::atomic<std::uint64_t> own_us_ = 0;
  std::atomic<std::uint64_t> bytes_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;
};

// Tells when the first decision is on disk.
class FirstWrite final : public Journal {
 public:
  absl::Status Write(const JournalBatch& batch) override {
    if (!batch.empty()) {
      const std::lock_guard lock(mutex_);
      written_ = true;
      changed_.notify_all();
    }
    return journal_.Write(batch);
  }
  absl::Status Load(const std::function<absl::Status(Sequence, std::string_view)>& visit) override {
    return journal_.Load(visit);
  }
  void Wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return written_; });
  }

 private:
  MemoryJournal journal_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool written_ = false;
};

double StatusMib(std::string_view name) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(name)) return std::stod(line.substr(name.size() + 1)) / 1024;
  }
  return 0;
}

double CpuSeconds() {
  rusage use{};
  getrusage(RUSAGE_SELF, &use);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(use.ru_utime) + seconds(use.ru_stime);
}

void Start(benchmark::State& run, bool cores) {
  const char* const wanted = std::getenv("FLEET_ULTRASERVERS");
  const int ultra_servers = wanted == nullptr ? kUltraServers : std::atoi(wanted);
  FleetServer server(static_cast<std::uint64_t>(ultra_servers), cores);
  const SystemClock clock;
  for (auto unused : run) {
    FirstWrite journal;
    const double cpu = CpuSeconds();
    const SteadyTime start = std::chrono::steady_clock::now();
    CoreLoop loop(server, journal, clock, {.log = [](const std::string& line) {
                    if (line.find(kEnded) != std::string::npos) return;
                    fmt::print(stderr, "{}\n", line.substr(0, 300));
                  }});
    TAHOMA_CHECK_OK(loop.Start());
    journal.Wait();
    run.counters["ms"] = MsSince(start);
    run.counters["cpu_s"] = CpuSeconds() - cpu;
    run.counters["server_ms"] = server.own_ms();
    run.counters["list_mib"] = server.mib();
    run.counters["peak_mib"] = StatusMib("VmHWM:");
    // The snapshot with the decision comes a moment after the decision.
    while (!loop.snapshot()->synced) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    const ClusterState::Totals totals = loop.snapshot()->cluster->Count();
    TAHOMA_CHECK(totals.chips == static_cast<std::size_t>(64 * ultra_servers));
    run.counters["mib"] = StatusMib("VmRSS:");
    server.End();
    loop.Stop();
  }
}

void StartOnChips(benchmark::State& run) { Start(run, false); }
void StartOnCores(benchmark::State& run) { Start(run, true); }
BENCHMARK(StartOnChips)->Name("fleet_1m_rss_mib")->Iterations(1)->Unit(benchmark::kMillisecond);
BENCHMARK(StartOnChips)
    ->Name("fleet_1m_start_to_first_decision_ms")
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);
BENCHMARK(StartOnCores)
    ->Name("fleet_1m_cores_rss_mib")
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace tahoma::controller

BENCHMARK_MAIN();
