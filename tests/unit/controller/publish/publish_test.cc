#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <future>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include "controller/publish/publisher.h"
#include "controller/publish/render.h"
#include "lib/base/bounded_queue.h"
#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/driver/device_config.h"

namespace tahoma::controller {
namespace {

using json = Json;
using ::testing::HasSubstr;

std::shared_ptr<const GangDecision> Decision() {
  auto decision = std::make_shared<GangDecision>();
  decision->key = {"ns", "train"};
  decision->uid = "gang-uid";
  decision->pods = {{.name = "p0", .uid = "u0", .node = "node-a", .rank = 1, .slice = 0}};
  decision->slices = {{"us-0", "4x4x2", "0,0,2", {"node-a"}}};
  DecidedClaim claim;
  claim.name = "c0";
  claim.uid = "cu";
  claim.consumers = {0};
  claim.allocation.node = "node-a";
  DeviceResult result;
  result.request = "chips";
  result.driver = "neuron.aws.com";
  result.pool = "node-a";
  result.device = "neuron-device-3";
  result.tolerations = {ManagedToleration()};
  claim.allocation.results = {result};
  claim.allocation.configs = {
      {ConfigSource::kClaim, {"chips"}, "neuron.aws.com", R"({"kind":"NeuronConfig"})"}};
  decision->claims = {claim};
  return decision;
}

ClaimWrite OfClaim(WriteKind kind) {
  auto base = std::make_shared<ClaimFact>();
  base->uid = "cu";
  base->resource_version = "41";
  base->other_finalizers = {"other"};
  base->reserved_for = {{"", "pods", "elsewhere", "u9"}};
  return {.kind = kind, .run = 7, .index = 0, .decision = Decision(), .base = std::move(base)};
}

PodWrite OfPod(WriteKind kind) { return {.kind = kind, .run = 7, .decision = Decision()}; }

kube::Request Rendered(Write what) { return Render({3, std::move(what)}); }

TEST(RenderTest, TheFinalizerJoinsTheOthersUnderAPrecondition) {
  const kube::Request request = Rendered(OfClaim(WriteKind::kAddFinalizer));
  EXPECT_EQ(request.method, "PATCH");
  EXPECT_EQ(request.target, "/apis/resource.k8s.io/v1/namespaces/ns/resourceclaims/c0");
  EXPECT_EQ(ParseJson(request.Text()), ParseJson(R"({"metadata": {"uid": "cu",
      "resourceVersion": "41", "finalizers": ["other",
      "resource.kubernetes.io/delete-protection"]}})"));
}

TEST(RenderTest, AllocationAndReservationAreOneWrite) {
  const kube::Request request = Rendered(OfClaim(WriteKind::kAllocate));
  EXPECT_EQ(request.method, "PUT");
  EXPECT_EQ(request.target, "/apis/resource.k8s.io/v1/namespaces/ns/resourceclaims/c0/status");
  EXPECT_EQ(ParseJson(request.Text()), ParseJson(R"({
    "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
    "metadata": {"namespace": "ns", "name": "c0", "uid": "cu", "resourceVersion": "41"},
    "status": {
      "reservedFor": [{"resource": "pods", "name": "elsewhere", "uid": "u9"},
                      {"resource": "pods", "name": "p0", "uid": "u0"}],
      "allocation": {
        "devices": {
          "results": [{"request": "chips", "driver": "neuron.aws.com", "pool": "node-a",
            "device": "neuron-device-3", "tolerations": [{"key": "tahoma.dev/managed",
              "operator": "Exists", "effect": "NoSchedule"}]}],
          "config": [{"source": "FromClaim", "requests": ["chips"],
            "opaque": {"driver": "neuron.aws.com", "parameters": {"kind": "NeuronConfig"}}}]},
        "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name",
          "operator": "In", "values": ["node-a"]}]}]}}}})"));
}

// Somebody else's allocation and the plugin's entries about its devices stay.
TEST(RenderTest, AReservationOfAnAllocatedClaimChangesNothingElse) {
  ClaimWrite write = OfClaim(WriteKind::kAllocate);
  auto base = std::make_shared<ClaimFact>(*write.base);
  base->allocation = std::make_shared<const kube::Allocation>();
  write.base = base;
  const kube::Request request = Rendered(write);
  EXPECT_EQ(request.method, "PATCH");
  EXPECT_EQ(ParseJson(request.Text()), ParseJson(R"({
    "metadata": {"uid": "cu", "resourceVersion": "41"},
    "status": {"reservedFor": [{"resource": "pods", "name": "elsewhere", "uid": "u9"},
                               {"resource": "pods", "name": "p0", "uid": "u0"}]}})"));
}

TEST(RenderTest, TakingBackKeepsOtherPodsReservations) {
  ClaimWrite write = OfClaim(WriteKind::kDeallocate);
  EXPECT_EQ(ParseJson(Rendered(write).Text())["status"],
            ParseJson(R"({"reservedFor": [{"resource": "pods", "name": "elsewhere",
                                             "uid": "u9"}]})"));
  auto base = std::make_shared<ClaimFact>(*write.base);
  base->reserved_for = {{"", "pods", "p0", "u0"}};
  write.base = base;
  EXPECT_EQ(ParseJson(Rendered(write).Text())["status"],
            ParseJson(R"({"reservedFor": null, "allocation": null, "devices": null})"));
}

TEST(RenderTest, ABindingCarriesUidAndRank) {
  const kube::Request request = Rendered(OfPod(WriteKind::kBind));
  EXPECT_EQ(request.method, "POST");
  EXPECT_EQ(request.target, "/api/v1/namespaces/ns/pods/p0/binding");
  const json body = ParseJson(request.Text());
  EXPECT_EQ(body["metadata"]["uid"], "u0");
  EXPECT_EQ(body["metadata"]["annotations"], ParseJson(R"({"tahoma.dev/gang-uid": "gang-uid",
      "tahoma.dev/rank": "1", "tahoma.dev/world-size": "1", "tahoma.dev/slice": "0",
      "tahoma.dev/placement": "us-0 4x4x2+0,0,2"})"));
  EXPECT_EQ(body["target"]["name"], "node-a");
}

TEST(RenderTest, AProvisionerIsToldTheNodeUnlessTheClaimHasChanged) {
  auto claim = std::make_shared<VolumeClaimFact>();
  claim->key = {"ns", "data"};
  claim->uid = "u";
  claim->resource_version = "41";
  const kube::Request request = Rendered(VolumeNodeWrite{.base = claim, .node = "node-a"});
  EXPECT_EQ(request.method, "PATCH");
  EXPECT_EQ(request.target, "/api/v1/namespaces/ns/persistentvolumeclaims/data");
  EXPECT_EQ(ParseJson(request.Text()), ParseJson(R"({"metadata": {"uid": "u",
      "resourceVersion": "41",
      "annotations": {"volume.kubernetes.io/selected-node": "node-a"}}})"));
}

const kube::ExtendedClaimStatus kExtended = {
    .claim = "p0-extended",
    .mappings = {{.container = "main", .resource = "x.com/y", .request = "container-0-request-1"}}};

TEST(RenderTest, AClaimOfExtendedResourcesIsAsKubeSchedulerMakesItAndGoesWithItsPod) {
  const auto claim = std::make_shared<const ExtendedClaim>(ExtendedClaim{
      .requests = {{.name = "container-0-request-1", .device_class = "chips", .count = 4}},
      .status = kExtended});
  const kube::Request request =
      Rendered(ExtendedClaimCreation{.pod = {"ns", "p0"}, .uid = "u0", .claim = claim});
  EXPECT_EQ(request.method, "POST");
  EXPECT_EQ(request.target, "/apis/resource.k8s.io/v1/namespaces/ns/resourceclaims");
  EXPECT_EQ(ParseJson(request.Text()), ParseJson(R"({"apiVersion": "resource.k8s.io/v1",
      "kind": "ResourceClaim",
      "metadata": {"name": "p0-extended", "namespace": "ns",
          "annotations": {"resource.kubernetes.io/extended-resource-claim": "true"},
          "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p0", "uid": "u0",
                               "controller": true}]},
      "spec": {"devices": {"requests": [{"name": "container-0-request-1", "exactly": {
          "deviceClassName": "chips", "allocationMode": "ExactCount", "count": 4}}]}}})"));
}

std::shared_ptr<const WorkloadFact> Workload() {
  return *ParseWorkload(ParseJson(R"({"metadata": {"name": "train", "namespace": "ns", "uid": "w"},
      "spec": {"instanceType": "trn2u.48xlarge", "topologySize": 2, "serverCount": 1,
               "config": {"logicalNeuronCore": 1}, "resourceClaimTemplate": {"name": "rct"}}})"));
}

TEST(RenderTest, AWorkloadsTemplateIsForWholeNodesAndGoesWithTheWorkload) {
  const kube::Request request = Rendered(ClaimTemplateCreation{.workload = Workload()});
  EXPECT_EQ(request.method, "POST");
  EXPECT_EQ(request.target, "/apis/resource.k8s.io/v1/namespaces/ns/resourceclaimtemplates");
  json made = ParseJson(request.Text());
  EXPECT_EQ(made["metadata"], ParseJson(R"({"name": "rct", "namespace": "ns", "ownerReferences": [
      {"apiVersion": "neuron.aws.com/v1beta1", "kind": "NeuronUltraServerWorkload",
       "name": "train", "uid": "w", "controller": true}]})"));
  const json& devices = made["spec"]["spec"]["devices"];
  const json& exactly = devices["requests"][0]["exactly"];
  EXPECT_EQ(exactly["count"], 1);
  EXPECT_EQ(exactly["selectors"][0]["cel"]["expression"],
            "device.attributes['neuron.aws.com'].resourceType == 'neuron_node' && "
            "device.attributes['neuron.aws.com'].instanceType == 'trn2u.48xlarge'");
  std::vector<hw::DeviceConfig> configs;
  for (const json& config : devices["config"]) {
    EXPECT_EQ(config["requests"][0], devices["requests"][0]["name"]);
    configs.push_back(*hw::ParseDeviceConfig(config["opaque"]["parameters"].dump()));
  }
  EXPECT_EQ(configs,
            (std::vector<hw::DeviceConfig>{hw::UltraServerConfig{2}, hw::NeuronConfig{1}}));
  made["metadata"]["uid"] = "t";
  EXPECT_EQ((*ParseClaimTemplate(made))->workload_uid, "w");
}

TEST(RenderTest, AWorkloadsStatusReadsBackAndIsNotSentAgain) {
  WorkloadGang gang;
  gang.phase = GangPhase::kRunning;
  gang.decision = Decision();
  const WallTime now(std::chrono::seconds(90));
  auto status = std::make_shared<WorkloadStatus>(StatusOf(*Workload(), Facts(), gang, now));
  status->allocated_at = now;
  WorkloadStatusWrite write{
      .key = {"ns", "train"}, .uid = "w", .base_version = "7", .shown = 0, .status = status};
  const kube::Request request = Rendered(write);
  EXPECT_EQ(request.method, "PATCH");
  EXPECT_EQ(request.target,
            "/apis/neuron.aws.com/v1beta1/namespaces/ns/neuronultraserverworkloads/train/status");
  json body = ParseJson(request.Text());
  EXPECT_EQ(body["status"]["state"], "Allocated");
  EXPECT_EQ(body["status"]["allocatedUltraServers"], json::array({"us-0"}));
  EXPECT_EQ(body["status"]["allocatedAt"], "1970-01-01T00:01:30Z");
  EXPECT_EQ(body["status"]["conditions"][0]["type"], "Ready");
  EXPECT_EQ(body["status"]["conditions"][0]["status"], "True");
  body["metadata"]["name"] = "train";
  const auto seen = *ParseWorkload(body);
  EXPECT_EQ(seen->conditions.at(0).since, now);
  write.shown = seen->shown;
  EXPECT_TRUE(ResultIfShown({3, write}, request).has_value());
  status->state = WorkloadState::kDeallocating;
  EXPECT_FALSE(ResultIfShown({3, write}, Rendered(write)).has_value());
}

TEST(RenderTest, AQueuesStatusReadsBackAndIsNotSentAgain) {
  auto status = std::make_shared<QueueStatus>();
  status->observed_generation = 3;
  status->trouble = QueueTrouble::kNoParent;
  status->message = "its parent fleet does not exist";
  status->stop = QueueStop::kHold;
  status->waiting = 7;
  status->held = {{"trn2.48xlarge", 48}, {"trn1.32xlarge", 0}};
  status->period = "day-and-night/day";
  status->next_change = WallTime(std::chrono::seconds(3600));
  status->ready_since = WallTime(std::chrono::seconds(90));
  QueueStatusWrite write{
      .name = "research", .uid = "u", .base_version = "7", .shown = 0, .status = status};
  const kube::Request request = Rendered(write);
  EXPECT_EQ(request.method, "PATCH");
  EXPECT_EQ(request.target, "/apis/tahoma.dev/v1alpha1/queues/research/status");
  json body = ParseJson(request.Text());
  EXPECT_EQ(body["metadata"], (json{{"uid", "u"}}));
  EXPECT_EQ(body["status"]["waiting"], 7);
  EXPECT_EQ(body["status"]["held"],
            json::array({json{{"instanceType", "trn2.48xlarge"}, {"chips", 48}}}));
  EXPECT_EQ(body["status"]["borrowed"], json::array()) << "or what was borrowed would stay";
  EXPECT_EQ(body["status"]["heldChips"], 48);
  EXPECT_EQ(body["status"]["period"], "day-and-night/day");
  EXPECT_EQ(body["status"]["nextChange"], "1970-01-01T01:00:00Z");
  EXPECT_EQ(body["status"]["conditions"][0]["reason"], "NoParent");
  EXPECT_EQ(body["status"]["conditions"][0]["message"], "its parent fleet does not exist");
  EXPECT_EQ(body["status"]["conditions"][1]["status"], "True");
  EXPECT_EQ(body["status"]["conditions"][1]["reason"], "Hold");
  body["metadata"]["name"] = "research";
  const QueueObject seen = *ParseQueue(body);
  EXPECT_EQ(seen.shown.ready, (QueueCondition{false, status->ready_since}));
  EXPECT_TRUE(seen.shown.stopped->holds);
  write.shown = seen.shown.digest;
  EXPECT_TRUE(ResultIfShown({3, write}, request).has_value());
  status->waiting = 8;
  EXPECT_FALSE(ResultIfShown({3, write}, Rendered(write)).has_value());
}

TEST(RenderTest, ACalendarsStatusReadsBackAndIsNotSentAgain) {
  auto status = std::make_shared<QueueCalendarStatus>();
  status->observed_generation = 3;
  status->trouble = CalendarTrouble::kQueueUnknown;
  status->message = "period day names queue gone, which does not exist";
  status->period = "day,sunday";
  status->next_change = WallTime(std::chrono::seconds(3600));
  status->ready_since = WallTime(std::chrono::seconds(90));
  QueueCalendarStatusWrite write{
      .name = "by-day", .uid = "u", .base_version = "7", .shown = 0, .status = status};
  const kube::Request request = Rendered(write);
  EXPECT_EQ(request.target, "/apis/tahoma.dev/v1alpha1/queuecalendars/by-day/status");
  json body = ParseJson(request.Text());
  EXPECT_EQ(body["metadata"], (json{{"uid", "u"}}));
  EXPECT_EQ(body["status"]["period"], "day,sunday");
  EXPECT_EQ(body["status"]["nextChange"], "1970-01-01T01:00:00Z");
  EXPECT_EQ(body["status"]["conditions"][0]["reason"], "QueueUnknown");
  body["metadata"]["name"] = "by-day";
  const QueueCalendarObject seen = *ParseQueueCalendar(body);
  EXPECT_EQ(seen.shown.ready, (QueueCondition{false, status->ready_since}));
  write.shown = seen.shown.digest;
  EXPECT_TRUE(ResultIfShown({3, write}, request).has_value());
  status->next_change.reset();
  EXPECT_EQ(ParseJson(Rendered(write).Text())["status"]["nextChange"], nullptr)
      << "or the time of before would stay";
  EXPECT_FALSE(ResultIfShown({3, write}, Rendered(write)).has_value());
}

TEST(RenderTest, ADefragmentationsStatusReadsBackAndIsNotSentAgain) {
  const WallTime start(std::chrono::seconds(90));
  auto status = std::make_shared<DefragmentationStatus>();
  status->observed_generation = 2;
  status->phase = DefragmentationPhase::kMoving;
  status->message = "gang default/a moves";
  status->place = "us-0 4x4x4+0,0,0";
  status->chips = {{"us-0-n0", 0xffff}, {"us-0-n1", 0x000f}};
  status->lost = 320;
  status->start = start;
  status->moves = {{.gang = {"default", "a"},
                    .run = 7,
                    .from = "us-0 4x4x2+0,0,0",
                    .to = "us-1 4x4x2+0,0,2",
                    .chips = {{"us-1-n2", 0xffff}},
                    .lost = 320,
                    .state = MoveState::kMoving,
                    .start = start},
                   {.gang = {"default", "b"}, .run = 9, .from = "x", .to = "y", .chips = {}}};
  DefragmentationStatusWrite write{
      .name = "clear", .uid = "u", .base_version = "7", .shown = 0, .status = status};
  const kube::Request request = Rendered(write);
  EXPECT_EQ(request.target, "/apis/tahoma.dev/v1alpha1/defragmentations/clear/status");
  json body = ParseJson(request.Text());
  EXPECT_EQ(body["status"]["moved"], 0);
  body["metadata"]["name"] = "clear";
  const auto seen = *ParseDefragmentation(body);
  EXPECT_EQ(seen->status, *status);
  write.shown = seen->shown;
  EXPECT_TRUE(ResultIfShown({3, write}, request).has_value());
}

TEST(RenderTest, TheStatusOfAWindowSaysWhoIsStillThereAndIsReadAsWritten) {
  auto status = std::make_shared<WindowStatus>();
  status->observed_generation = 2;
  status->phase = WindowPhase::kWarned;
  status->nodes = 4;
  status->gangs = 9;
  status->gang_names = {"default/a", "default/b"};
  status->missing = 1;
  status->missing_names = {"node-z"};
  status->blocks = {"default/week"};
  status->drained_since = WallTime(std::chrono::seconds(90));
  WindowStatusWrite write{
      .name = "night-fix", .uid = "u", .base_version = "7", .shown = 0, .status = status};
  const kube::Request request = Rendered(write);
  EXPECT_EQ(request.target, "/apis/tahoma.dev/v1alpha1/maintenancewindows/night-fix/status");
  json body = ParseJson(request.Text());
  EXPECT_EQ(body["metadata"], (json{{"uid", "u"}}));
  EXPECT_EQ(body["status"]["phase"], "Warned");
  EXPECT_EQ(body["status"]["capacityBlocks"], (json{"default/week"}));
  const json& conditions = body["status"]["conditions"];
  EXPECT_EQ(conditions[0]["reason"], "Missing");
  EXPECT_EQ(conditions[0]["message"],
            "1 name has no node: node-z; the hardware is kept when it comes");
  EXPECT_EQ(conditions[1]["status"], "False");
  EXPECT_EQ(conditions[1]["message"], "9 gangs have devices there: default/a, default/b, …");
  body["metadata"]["name"] = "night-fix";
  const WindowObject seen = *ParseWindow(body);
  EXPECT_EQ(seen.shown.drained, (WindowCondition{false, status->drained_since}));
  EXPECT_FALSE(seen.shown.ready->holds);
  write.shown = seen.shown.digest;
  EXPECT_TRUE(ResultIfShown({3, write}, request).has_value());
}

TEST(RenderTest, APodThatMayGoOnLosesTheAnnotationOfItsEnd) {
  const kube::Request request = Rendered(PodReclaimWrite{{"ns", "p0"}, "u0", std::nullopt});
  EXPECT_EQ(ParseJson(request.Text())["metadata"]["annotations"],
            (json{{"tahoma.dev/reclaim-timestamp", nullptr}}));
}

TEST(RenderTest, APodIsToldItsClaimAndTheAnswerSaysWhetherTheServerKeepsIt) {
  const ApiWrite write{3,
                       PodClaimStatusWrite{.key = {"ns", "p0"}, .uid = "u0", .status = kExtended}};
  const kube::Request request = Render(write);
  EXPECT_EQ(request.method, "PATCH");
  EXPECT_EQ(request.target, "/api/v1/namespaces/ns/pods/p0/status");
  json pod = ParseJson(request.Text());
  EXPECT_EQ(pod, ParseJson(R"({"metadata": {"uid": "u0"}, "status": {
      "extendedResourceClaimStatus": {"resourceClaimName": "p0-extended", "requestMappings": [
          {"containerName": "main", "resourceName": "x.com/y",
           "requestName": "container-0-request-1"}]}}})"));
  pod["metadata"]["name"] = "p0";
  const auto answer = [](const json& body) {
    kube::Response response;
    response.status = 200;
    response.body = body.dump();
    return response;
  };
  EXPECT_EQ(ReadAnswer(write, answer(pod)).pod->extended_claim, kExtended);
  pod.erase("status");
  EXPECT_FALSE(ReadAnswer(write, answer(pod)).pod->extended_claim.has_value());
}

TEST(RenderTest, APodIsDeletedWithItsOwnGraceOrTheRemainingSeconds) {
  PodDeletion write{.run = 7, .decision = Decision()};
  EXPECT_FALSE(ParseJson(Rendered(write).Text()).contains("gracePeriodSeconds"));
  write.grace_seconds = 2;
  const json body = ParseJson(Rendered(write).Text());
  EXPECT_EQ(body["gracePeriodSeconds"], 2);
  EXPECT_EQ(body["preconditions"], (json{{"uid", "u0"}}));
}

TEST(RenderTest, APodIsToldWhenItsBlockTakesTheHardwareBack) {
  const auto when =
      WallTime(std::chrono::milliseconds(1764095485123) + std::chrono::nanoseconds(9));
  const kube::Request request = Rendered(PodReclaimWrite{{"ns", "p0"}, "u0", when});
  EXPECT_EQ(request.method, "PATCH");
  EXPECT_EQ(request.target, "/api/v1/namespaces/ns/pods/p0/status");
  EXPECT_EQ(ParseJson(request.Text()), ParseJson(R"({"metadata": {"uid": "u0", "annotations":
      {"tahoma.dev/reclaim-timestamp": "1764095485123"}}})"));
  const kube::Request withdrawn = Rendered(PodReclaimWrite{{"ns", "p0"}, "u0", std::nullopt});
  EXPECT_EQ(ParseJson(withdrawn.Text()), ParseJson(R"({"metadata": {"uid": "u0", "annotations":
      {"tahoma.dev/reclaim-timestamp": null}}})"));
}

kube::Response Status(int code, const std::string& body = R"({"metadata": {"name": "c0"}})") {
  kube::Response response;
  response.status = code;
  response.body = body;
  return response;
}

// Where a former leader has written late that it was sold, that must not stay beside the refusal.
TEST(RenderTest, ARefusedBlockShowsNothingOfASale) {
  const auto status = [](BlockView view) {
    const BlockStatusWrite write{.key = {"ns", "train"},
                                 .uid = "u0",
                                 .base_version = "41",
                                 .view = std::make_shared<const BlockView>(std::move(view))};
    const json body = ParseJson(Rendered(write).Text());
    EXPECT_EQ(body.at("metadata").at("resourceVersion"), "41") << "or a late write would count";
    return body.at("status");
  };
  Block block{.bought = {.product = FindProduct("u-trn2x64"), .count = 1}};
  const json sold = status({.block = std::make_shared<const Block>(block)});
  const json refused = status({.refusal = "InsufficientInstanceCapacity", .message = "sold out"});
  for (const auto& [field, value] : sold.items()) {
    if (field == "observedGeneration") continue;
    ASSERT_TRUE(refused.contains(field)) << field << " would stay";
    const bool stays = field == "reason" || field == "message" || field == "conditions";
    EXPECT_EQ(refused.at(field).is_null(), !stays) << field;
  }
  ASSERT_EQ(refused.at("conditions").size(), 1U);
  EXPECT_EQ(refused.at("conditions")[0].at("type"), "Purchased");
  EXPECT_EQ(refused.at("conditions")[0].at("status"), "False");
  // One that cannot be read is evidence.
  EXPECT_FALSE(status({.keeps_record = true, .refusal = "InternalError"}).contains("record"));
}

TEST(AnswerTest, EveryStatusHasAnOutcome) {
  const ApiWrite write{3, OfClaim(WriteKind::kAllocate)};
  const std::vector<std::pair<int, WriteOutcome>> cases = {
      {200, WriteOutcome::kDone},        {404, WriteOutcome::kGone},
      {409, WriteOutcome::kConflict},    {422, WriteOutcome::kRefused},
      {403, WriteOutcome::kRefused},     {429, WriteOutcome::kUnavailable},
      {500, WriteOutcome::kUnavailable}, {503, WriteOutcome::kUnavailable},
      {301, WriteOutcome::kRefused}};
  for (const auto& [code, outcome] : cases) {
    EXPECT_EQ(ReadAnswer(write, Status(code)).outcome, outcome) << code;
  }
  const ApiResult lost = ReadAnswer(write, Unavailable("reset"));
  EXPECT_EQ(lost.outcome, WriteOutcome::kUnavailable);
  EXPECT_EQ(lost.run, 7U);
  EXPECT_EQ(lost.attempt, 3U);
}

TEST(AnswerTest, TheServersReasonIsPassedOn) {
  const ApiResult refused =
      ReadAnswer({1, OfPod(WriteKind::kBind)}, Status(422, R"({"message": "no such thing"})"));
  EXPECT_EQ(refused.message, "no such thing");
}

TEST(AnswerTest, AnAnswerThatCannotBeReadMayHaveBeenCarriedOut) {
  const ApiResult odd = ReadAnswer({1, OfPod(WriteKind::kReadPod)}, Status(200, "{}"));
  EXPECT_EQ(odd.outcome, WriteOutcome::kUnavailable);
}

class CountingTransport final : public kube::Transport {
 public:
  absl::StatusOr<kube::Response> Send(const kube::Request& request) override {
    const std::lock_guard lock(mutex_);
    requests_.push_back(request);
    return Status(200);
  }
  absl::StatusOr<kube::Response> Stream(const kube::Request&, const kube::LineSink&,
                                        std::chrono::milliseconds) override {
    return Unavailable("no streams");
  }
  std::vector<kube::Request> Take() {
    const std::lock_guard lock(mutex_);
    return std::move(requests_);
  }

 private:
  std::mutex mutex_;
  std::vector<kube::Request> requests_;
};

TEST(PublisherTest, EveryWriteIsAnsweredOnce) {
  CountingTransport transport;
  const SystemClock clock;
  std::promise<void> all;
  std::atomic<int> results = 0;
  Publisher publisher(transport, clock, {.threads = 4}, [&](ApiResult) {
    if (++results == 100) all.set_value();
  });
  std::vector<ApiWrite> writes(100, {3, OfPod(WriteKind::kBind)});
  publisher.Publish(std::move(writes));
  all.get_future().wait();
  EXPECT_EQ(transport.Take().size(), 100U);
}

// Refuses every other pod, by its number, and counts what comes together.
class TogetherTransport final : public kube::Transport {
 public:
  absl::StatusOr<kube::Response> Send(const kube::Request&) override {
    return Unavailable("not one by one");
  }
  std::vector<absl::StatusOr<kube::Response>> SendAll(
      const std::vector<kube::Request>& requests) override {
    largest = std::max(largest, requests.size());
    std::vector<absl::StatusOr<kube::Response>> answers;
    for (const kube::Request& request : requests) {
      const std::string target = request.target.substr(0, request.target.rfind("/binding"));
      answers.emplace_back(Status((target.back() - '0') % 2 == 0 ? 201 : 409));
    }
    return answers;
  }
  absl::StatusOr<kube::Response> Stream(const kube::Request&, const kube::LineSink&,
                                        std::chrono::milliseconds) override {
    return Unavailable("no streams");
  }
  std::size_t largest = 0;  // of one thread
};

TEST(PublisherTest, WritesThatGoTogetherAreEachAnsweredWithTheirOwn) {
  TogetherTransport transport;
  const SystemClock clock;
  std::promise<void> all;
  std::map<std::uint64_t, WriteOutcome> outcomes;
  Publisher publisher(transport, clock, {.threads = 1, .together = 4},
                      [&](const ApiResult& result) {
                        outcomes[result.attempt] = result.outcome;
                        if (outcomes.size() == 100) all.set_value();
                      });
  std::vector<ApiWrite> writes;
  for (std::uint32_t i = 0; i < 100; ++i) {
    auto decision = std::make_shared<GangDecision>(*Decision());
    for (auto& pod : decision->pods) pod.name = fmt::format("p{}", i);
    writes.push_back({i, PodWrite{WriteKind::kBind, 7, 0, std::move(decision)}});
  }
  publisher.Publish(std::move(writes));
  all.get_future().wait();
  for (const auto& [i, outcome] : outcomes) {
    EXPECT_EQ(outcome, i % 2 == 0 ? WriteOutcome::kDone : WriteOutcome::kConflict) << i;
  }
  EXPECT_LE(transport.largest, 4U);
}

// Throws whatever it is asked to do for some pods, and answers for the others.
class ThrowingTransport final : public kube::Transport {
 public:
  absl::StatusOr<kube::Response> Send(const kube::Request& request) override {
    if (request.target.find("/p-bad/") != std::string::npos) throw std::runtime_error("a mistake");
    if (request.target.ends_with("/events")) throw std::runtime_error("a mistake");
    return Status(200);
  }
  absl::StatusOr<kube::Response> Stream(const kube::Request&, const kube::LineSink&,
                                        std::chrono::milliseconds) override {
    return Unavailable("no streams");
  }
};

TEST(PublisherTest, AWriteThatThrowsIsAnsweredAndStopsNoOther) {
  ThrowingTransport transport;
  const SystemClock clock;
  std::promise<void> all;
  std::map<std::uint64_t, WriteOutcome> outcomes;
  Publisher publisher(transport, clock, {.threads = 1}, [&](const ApiResult& result) {
    outcomes[result.attempt] = result.outcome;
    if (outcomes.size() == 9) all.set_value();
  });
  for (std::uint64_t i = 0; i < 9; ++i) {
    auto decision = std::make_shared<GangDecision>(*Decision());
    decision->pods[0].name = i % 3 == 0 ? "p-bad" : "p-good";
    std::vector<ApiWrite> writes;
    if (i == 0) {
      writes.push_back({3, EventNote{.ns = "ns",
                                     .name = "p",
                                     .uid = "u",
                                     .reason = ToString(EventReason::kScheduled),
                                     .message = "m",
                                     .when = {}}});
    }
    writes.push_back({i, PodWrite{WriteKind::kBind, 7, 0, std::move(decision)}});
    publisher.Publish(std::move(writes));
  }
  all.get_future().wait();
  for (const auto& [i, outcome] : outcomes) {
    EXPECT_EQ(outcome, i % 3 == 0 ? WriteOutcome::kUnavailable : WriteOutcome::kDone) << i;
  }
}

// A cluster whose chart is of an older release, which gives the right to patch claims' status only.
class PatchingTransport final : public kube::Transport {
 public:
  absl::StatusOr<kube::Response> Send(const kube::Request& request) override {
    methods += request.method + " ";
    if (request.method == "PUT") return Status(403);
    kube::Response answer = Status(patches_are_answered);
    answer.body = R"({"metadata": {"name": "c0", "namespace": "ns", "uid": "cu",
                                   "resourceVersion": "42"}})";
    return answer;
  }
  absl::StatusOr<kube::Response> Stream(const kube::Request&, const kube::LineSink&,
                                        std::chrono::milliseconds) override {
    return Unavailable("no streams");
  }
  int patches_are_answered = 200;
  std::string methods;
};

class PatchingClusterTest : public ::testing::Test {
 protected:
  WriteOutcome Allocate() {
    publisher_.Publish({{3, OfClaim(WriteKind::kAllocate)}});
    return outcomes_.PopAll(1).front();
  }

  PatchingTransport transport_;
  const SystemClock clock_;
  BoundedQueue<WriteOutcome> outcomes_{1};
  Publisher publisher_{transport_, clock_, {.threads = 1}, [this](const ApiResult& result) {
                         outcomes_.Push(result.outcome);
                       }};
};

TEST_F(PatchingClusterTest, TheStatusIsPatchedWhereOnlyPatchesAreAllowed) {
  EXPECT_EQ(Allocate(), WriteOutcome::kDone);
  EXPECT_EQ(Allocate(), WriteOutcome::kDone);
  EXPECT_EQ(transport_.methods, "PUT PATCH PATCH ");
}

TEST_F(PatchingClusterTest, AStatusThatMayBeNeitherReplacedNorPatchedIsRefused) {
  transport_.patches_are_answered = 403;
  EXPECT_EQ(Allocate(), WriteOutcome::kRefused);
  EXPECT_EQ(Allocate(), WriteOutcome::kRefused);
  EXPECT_EQ(transport_.methods, "PUT PATCH PUT PATCH ") << "it says nothing of updates";
}

TEST(PublisherTest, AFormerLeaderSendsNothing) {
  CountingTransport transport;
  const SystemClock clock;
  std::promise<void> all;
  std::atomic<int> results = 0;
  Publisher publisher(transport, clock, {.threads = 2, .may_send = [] { return false; }},
                      [&](const ApiResult& result) {
                        EXPECT_EQ(result.outcome, WriteOutcome::kUnavailable);
                        EXPECT_EQ(result.message, "this controller does not lead");
                        if (++results == 10) all.set_value();
                      });
  publisher.Publish(std::vector<ApiWrite>(10, {3, OfPod(WriteKind::kBind)}));
  all.get_future().wait();
  EXPECT_TRUE(transport.Take().empty());
}

TEST(EventTest, EqualEventsShareTheirName) {
  EventNote event{.ns = "ns",
                  .name = "p",
                  .uid = "u",
                  .reason = ToString(EventReason::kScheduled),
                  .message = "m",
                  .when = {}};
  const std::string name = EventName(event);
  event.when += std::chrono::seconds(5);
  EXPECT_EQ(EventName(event), name);
  event.message = "other";
  EXPECT_NE(EventName(event), name);
  const json body = ParseJson(RenderEvent(event, name, 1).Text());
  EXPECT_EQ(body["involvedObject"]["kind"], "Pod");
  EXPECT_EQ(body["reportingComponent"], "tahoma");
  EXPECT_EQ(ParseJson(RenderEventRepeat(event, name, 4).Text())["count"], 4);
}

}  // namespace
}  // namespace tahoma::controller
