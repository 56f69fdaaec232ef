// The standalone API as function calls: creates and patches per second with synced commits, and an
// event read by 1,000 watches.

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "controller/apiserver/http/api_server.h"
#include "controller/apiserver/schema/json_text.h"
#include "controller/store/store.h"
#include "lib/base/check.h"
#include "lib/base/clock.h"
#include "tests/support/temp_dir.h"

namespace tahoma::controller {
namespace {

struct Fixture {
  Fixture() {
    auto opened = Store::Open({.dir = dir.path()});
    TAHOMA_CHECK_OK(opened.status());
    store = *std::move(opened);
    auto made = apiserver::ApiServer::Open(*store, clock, {.seed = 1});
    TAHOMA_CHECK_OK(made.status());
    server = *std::move(made);
  }
  rest::Response Call(const std::string& method, const std::string& target,
                      const std::string& body = "", const std::string& type = "application/json") {
    rest::Request request;
    request.method = method;
    request.target = request.path = target.substr(0, target.find('?'));
    if (target.find('?') != std::string::npos) request.query = target.substr(target.find('?') + 1);
    request.headers = {{"Content-Type", type}};
    request.body = body;
    return server->Handle(request);
  }
  testing::TempDir dir;
  SystemClock clock;
  std::unique_ptr<Store> store;
  std::unique_ptr<apiserver::ApiServer> server;
};

Fixture& Shared() {
  static Fixture fixture;
  return fixture;
}

const std::string kPods = "/api/v1/namespaces/default/pods";
std::atomic<int> next_pod = 0;

std::string NextPod() {
  return R"({"metadata":{"name":"p)" + std::to_string(next_pod++) +
         R"(","labels":{"tahoma.dev/gang":"g"}},"spec":{"schedulerName":"tahoma","containers":[)"
         R"({"name":"main","image":"train","resources":{"claims":[{"name":"c"}]}}],)"
         R"("resourceClaims":[{"name":"c","resourceClaimTemplateName":"t"}]}})";
}

void BM_CreatePods(benchmark::State& state) {
  Fixture& fixture = Shared();
  for (auto _ : state) {
    const auto response = fixture.Call("POST", kPods, NextPod());
    TAHOMA_CHECK(response.status == 201);
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(BM_CreatePods)->Threads(1)->Threads(16)->Threads(64)->UseRealTime();

void BM_PatchStatus(benchmark::State& state) {
  Fixture& fixture = Shared();
  int i = state.thread_index() * 7;
  for (auto _ : state) {
    const std::string pod = kPods + "/p" + std::to_string(i++ % std::max(1, next_pod.load()));
    const auto response = fixture.Call("PATCH", pod + "/status",
                                       R"({"status":{"message":")" + std::to_string(i) + R"("}})",
                                       "application/merge-patch+json");
    TAHOMA_CHECK(response.status == 200);
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(BM_PatchStatus)->Threads(16)->Threads(64)->UseRealTime();

// Measures the processor time of a write: everything but the commit.
void BM_CreateWithoutCommit(benchmark::State& state) {
  Fixture& fixture = Shared();
  for (auto _ : state) {
    const auto response = fixture.Call("POST", kPods + "?dryRun=All", NextPod());
    TAHOMA_CHECK(response.status == 201);
  }
}
BENCHMARK(BM_CreateWithoutCommit)->Unit(benchmark::kMicrosecond);

void BM_PatchStatusWithoutCommit(benchmark::State& state) {
  Fixture& fixture = Shared();
  (void)fixture.Call("POST", kPods,
                     R"({"metadata":{"name":"patched"},"spec":{"containers":[)"
                     R"({"name":"main","image":"train"}]}})");
  for (auto _ : state) {
    const auto response = fixture.Call(
        "PATCH", kPods + "/patched/status?dryRun=All",
        R"({"status":{"conditions":[{"type":"PodScheduled","status":"True"}],"message":"m"}})",
        "application/strategic-merge-patch+json");
    TAHOMA_CHECK(response.status == 200);
  }
}
BENCHMARK(BM_PatchStatusWithoutCommit)->Unit(benchmark::kMicrosecond);

// A strategic merge patch of 533 kB: 3,580 conditions of a node, all present already, in another
// order. Not stored.
void StrategicMerge533Kb(benchmark::State& state) {
  Fixture& fixture = Shared();
  (void)fixture.Call("POST", "/api/v1/nodes", R"({"metadata":{"name":"wide"}})");
  const auto conditions = [](bool forward) {
    std::string text;
    for (int i = 0; i < 3580; ++i) {
      text += fmt::format(R"({}{{"type":"example.com/a-condition-that-a-node-may-have-{:05}",)"
                          R"("status":"True","reason":"Reason","message":"{:40}"}})",
                          i == 0 ? "" : ",", forward ? i : 3579 - i, "a message");
    }
    return R"({"status":{"conditions":[)" + text + "]}}";
  };
  const std::string status = "/api/v1/nodes/wide/status";
  const auto stored =
      fixture.Call("PATCH", status, conditions(true), "application/merge-patch+json");
  TAHOMA_CHECK(stored.status == 200);
  const std::string patch = conditions(false);
  for (auto _ : state) {
    const auto response = fixture.Call("PATCH", status + "?dryRun=All", patch,
                                       "application/strategic-merge-patch+json");
    TAHOMA_CHECK(response.status == 200);
  }
  state.counters["kb"] = static_cast<double>(patch.size()) / 1000;
}
BENCHMARK(StrategicMerge533Kb)->Name("strategic_merge_533kb_ms")->Unit(benchmark::kMillisecond);

// The five writes of the standalone controller that bind a pod with one claim.
void BM_BindPod(benchmark::State& state) {
  Fixture& fixture = Shared();
  const std::string merge = "application/merge-patch+json";
  const std::string claims = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims";
  const auto send = [&](const std::string& method, const std::string& target,
                        const std::string& body, const std::string& type = "application/json") {
    TAHOMA_CHECK(fixture.Call(method, target, body, type).status / 100 == 2);
  };
  for (auto _ : state) {
    const std::string text = NextPod();
    const std::string name = "p" + std::to_string(next_pod - 1);
    const std::string pod = kPods + "/" + name;
    const std::string claim = claims + "/" + name + "-c";
    send("POST", kPods, text);
    send("POST", claims,
         R"({"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaim","metadata":{"name":")" +
             name + R"(-c","ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":")" + name +
             R"(","uid":"u","controller":true,"blockOwnerDeletion":true}],"finalizers":)"
             R"(["resource.kubernetes.io/delete-protection"]},"spec":{"devices":)"
             R"({"requests":[{"name":"r","exactly":{"deviceClassName":"neuron.aws.com",)"
             R"("allocationMode":"ExactCount","count":1}}]}}})");
    send("PATCH", pod + "/status?fieldManager=ResourceClaimController",
         R"({"status":{"resourceClaimStatuses":[{"name":"c","resourceClaimName":")" + name +
             R"(-c"}]}})",
         "application/strategic-merge-patch+json");
    send("PATCH", claim + "/status",
         R"({"status":{"reservedFor":[{"resource":"pods","name":")" + name +
             R"(","uid":"u"}],"allocation":{"devices":{"results":[{"request":"r","driver":)"
             R"("neuron.aws.com","pool":"node-1","device":"neuron-device-0","tolerations":)"
             R"([{"key":"tahoma.dev/managed","operator":"Exists","effect":"NoSchedule"}]}]},)"
             R"("nodeSelector":{"nodeSelectorTerms":[{"matchFields":[{"key":"metadata.name",)"
             R"("operator":"In","values":["node-1"]}]}]}}}})",
         merge);
    send("POST", pod + "/binding",
         R"({"metadata":{"annotations":{"tahoma.dev/gang-uid":"u","tahoma.dev/rank":"0",)"
         R"("tahoma.dev/world-size":"1"}},"target":{"kind":"Node","name":"node-1"}})");
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(BM_BindPod)->Iterations(200)->Threads(1)->UseRealTime();

void BM_ReadJson(benchmark::State& state) {
  const std::string text = NextPod();
  for (auto _ : state) benchmark::DoNotOptimize(apiserver::ReadJson(text));
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(text.size()));
}
BENCHMARK(BM_ReadJson);

void BM_ListPods(benchmark::State& state) {
  Fixture& fixture = Shared();
  for (auto _ : state) benchmark::DoNotOptimize(fixture.Call("GET", kPods + "?limit=500"));
}
BENCHMARK(BM_ListPods)->Unit(benchmark::kMicrosecond);

// The time of a list of 10,000 pods in protobuf over the time in JSON, alternately; both forms are
// cached, as after the first reader.
void BM_ListProtobufOverJson(benchmark::State& state) {
  Fixture fixture;
  for (int i = 0; i < 10'000; ++i) {
    TAHOMA_CHECK(fixture.Call("POST", kPods, NextPod()).status == 201);
  }
  const auto list = [&](const char* accept) {
    rest::Request request;
    request.method = "GET";
    request.target = request.path = kPods;
    request.headers = {{"Accept", accept}};
    const MonotonicTime start = fixture.clock.MonotonicNow();
    const rest::Response answer = fixture.server->Handle(request);
    TAHOMA_CHECK(answer.status == 200 && answer.content_type == accept);
    return std::chrono::duration<double>(fixture.clock.MonotonicNow() - start).count();
  };
  constexpr char kProtobuf[] = "application/vnd.kubernetes.protobuf";
  list(kProtobuf);
  double protobuf = 0;
  double json = 0;
  for (auto _ : state) {
    protobuf += list(kProtobuf);
    json += list("application/json");
  }
  state.counters["ratio"] = protobuf / json;
}
BENCHMARK(BM_ListProtobufOverJson)
    ->Name("protobuf_list_10000_pods_vs_json_ratio")
    ->Unit(benchmark::kMillisecond)
    ->Iterations(50);

// A change, read by 1,000 open watches in one thread.
void BM_FanOutTo1000Watches(benchmark::State& state) {
  Fixture& fixture = Shared();
  std::vector<rest::Response> watches;
  const std::string query =
      kPods + "?watch=1&resourceVersion=" + std::to_string(fixture.server->objects().version());
  for (int i = 0; i < 1000; ++i) watches.push_back(fixture.Call("GET", query));
  std::string out;
  for (auto& watch : watches) watch.source(out, std::chrono::milliseconds(0));
  static int i = 0;
  for (auto _ : state) {
    fixture.Call("PATCH", kPods + "/p0",
                 R"({"metadata":{"annotations":{"n":")" + std::to_string(i++) + R"("}}})",
                 "application/merge-patch+json");
    for (auto& watch : watches) {
      out.clear();
      watch.source(out, std::chrono::milliseconds(0));
      TAHOMA_CHECK(!out.empty());
    }
  }
  state.SetItemsProcessed(state.iterations() * 1000);
}
BENCHMARK(BM_FanOutTo1000Watches)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace tahoma::controller

BENCHMARK_MAIN();
