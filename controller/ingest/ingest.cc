#include "controller/ingest/ingest.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>

#include "controller/core/facts/defragmentation.h"
#include "controller/core/facts/other_pod.h"
#include "controller/core/facts/pod_group.h"
#include "controller/core/facts/queue_calendar_object.h"
#include "controller/core/facts/queue_object.h"
#include "controller/core/facts/read_facts.h"
#include "controller/core/facts/read_request.h"
#include "controller/core/facts/ultraserver_workload.h"
#include "controller/core/facts/window_object.h"
#include "controller/model/cordoned_chips.h"
#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/base/utf8.h"

namespace tahoma::controller {
namespace {

constexpr std::size_t kNameMost = 512;  // an object's name in the log is cut to this
// The scheduler of a whole fleet must be back sooner than a node's follower.
constexpr kube::RetryOptions kBackoff{
    .attempts = 0, .first = std::chrono::milliseconds(100), .longest = std::chrono::seconds(10)};

// The parts of objects that are read below. A fleet's lists are gigabytes, and most of the text is
// for others.
JsonPart Metadata(std::vector<JsonPart::Member> more = {}) {
  JsonPart part = {.members = {{"name"}, {"namespace"}, {"uid"}, {"resourceVersion"}}};
  std::ranges::move(more, std::back_inserter(part.members));
  return part;
}

JsonPart NodePart() {
  const JsonPart annotations = {.members = {{std::string(kCordonedChips)}}};
  const JsonPart conditions = {.members = {{"type"}, {"status"}}};
  return {.members = {{"metadata", Metadata({{"labels"}, {"annotations", annotations}})},
                      {"spec", {.members = {{"taints"}, {"unschedulable"}}}},
                      {"status", {.members = {{"conditions", conditions}, {"allocatable"}}}}}};
}

JsonPart SlicePart() {
  const JsonPart devices = {.members = {}, .keep = JsonPart::Keep::kText};
  return {.members = {
              {"metadata", Metadata()},
              {"spec", {.members = {{"driver"}, {"nodeName"}, {"pool"}, {"devices", devices}}}}}};
}

JsonPart OtherPodPart() {
  const JsonPart containers = {.members = {{"resources"}, {"ports"}, {"restartPolicy"}}};
  const JsonPart terms = {.members = {{"requiredDuringSchedulingIgnoredDuringExecution"}}};
  const JsonPart affinity = {.members = {{"podAntiAffinity", terms}}};
  return {.members = {{"metadata", Metadata({{"labels"}, {"deletionTimestamp"}})},
                      {"spec",
                       {.members = {{"nodeName"},
                                    {"affinity", affinity},
                                    {"schedulerName"},
                                    {"hostNetwork"},
                                    {"resources"},
                                    {"overhead"},
                                    {"containers", containers},
                                    {"initContainers", containers}}}}}};
}

}  // namespace

bool IsFor(const std::vector<std::string>& scheduler_names, const Json& pod) {
  const std::string_view name = kube::StringAt(pod, {"spec", "schedulerName"});
  return !name.empty() && std::ranges::find(scheduler_names, name) != scheduler_names.end();
}

using json = Json;

Ingest::Ingest(kube::Transport& transport, std::vector<std::string> scheduler_names, Sink sink,
               kube::Sleeper& sleeper, Rng rng, Log log, HistoryLost history_lost)
    : transport_(transport),
      scheduler_names_(std::move(scheduler_names)),
      sink_(std::move(sink)),
      sleeper_(sleeper),
      rng_(rng),
      log_(std::move(log)),
      history_lost_(std::move(history_lost)) {}

std::size_t Ingest::StartStepping() {
  FollowNodes();
  FollowClasses();
  FollowClaims();
  FollowVolumeClaims();
  FollowVolumes();
  FollowGangs();
  FollowPodGroups();
  FollowPriorityClasses();
  FollowWorkloads();
  FollowBlocks();
  for (const RequestKind kind : kRequestKinds) FollowRequests(kind);
  FollowBudgets();
  FollowQueueCalendars();
  FollowWindows();
  FollowQueues();
  FollowDefragmentations();
  FollowPods();
  FollowOtherPods();
  unlisted_ = static_cast<int>(watches_.size());
  return watches_.size();
}

absl::Status Ingest::Step(std::size_t watch) {
  absl::Status stepped = watches_[watch]->Step();
  (void)lacks_[watch](stepped);
  return stepped;
}

void Ingest::Start() {
  StartStepping();
  for (const auto& watch : watches_) watch->Start();
}

void Ingest::Stop() {
  for (const auto& watch : watches_) watch->Stop();
}

template <typename Join>
void Ingest::PushJoined(Join&& join) {
  const MutexLock lock(fleet_mutex_);
  if (std::optional<Command> command = join(fleet_)) sink_(*std::move(command));
}

void Ingest::Follow(Source source, Seen seen, Gone gone, Wanted wanted) {
  const std::string path = source.resource.CollectionPath("");
  kube::WatchHandlers handlers;
  handlers.wanted = std::move(wanted);
  handlers.seen = std::move(seen);
  handlers.gone = std::move(gone);
  const auto listed = [this, first = std::make_shared<std::atomic<bool>>(true)] {
    if (first->exchange(false) && --unlisted_ == 0) sink_(WatchesSynced{});
  };
  handlers.listed = listed;
  handlers.history_lost = [this, path](const std::string& why) {
    log_(fmt::format("watch: {}: the API lost its history: {}", path, why));
    if (history_lost_) history_lost_(fmt::format("{}: {}", path, why));
  };
  handlers.unreadable = [this, path](const kube::ObjectKey& key, const absl::Status& why) {
    log_(fmt::format("watch: {}: {} is left out: {}", path,
                     key.name.empty() ? "an object" : CutUtf8(key.ToString(), kNameMost),
                     Message(why)));
  };
  // Where the kind is not defined there is none of it.
  lacks_.push_back([listed, presence = source.presence](const absl::Status& status) {
    const bool lacks = (presence != Presence::kRequired && absl::IsNotFound(status)) ||
                       (presence == Presence::kMayBeForbidden && absl::IsPermissionDenied(status));
    if (lacks) listed();
    return lacks;
  });
  handlers.failed = [this, lacks = lacks_.back(),
                     lacked = false](const absl::Status& status) mutable {
    // The kind is asked for again and again: somebody may define it.
    const bool now = lacks(status);
    if (!now || !lacked) log_(fmt::format("watch: {}", Message(status)));
    lacked = now;
  };
  watches_.push_back(std::make_unique<kube::Reflector>(
      transport_, sleeper_, Rng(rng_.Next()),
      kube::ReflectorOptions{.resource = std::move(source.resource),
                             .field_selector = std::move(source.field_selector),
                             .part = std::move(source.part),
                             .backoff = kBackoff},
      std::move(handlers)));
}

void Ingest::FollowNodes() {
  Follow(
      {.resource = kube::kNodes, .part = NodePart()},
      [this](const json& object) -> absl::Status {
        TAHOMA_ASSIGN_OR_RETURN(auto node, kube::ParseNode(object, std::string(kCordonedChips)));
        PushJoined([&](FleetJoin& fleet) { return fleet.OnNode(std::move(node)); });
        return absl::OkStatus();
      },
      [this](const kube::ObjectKey& key, const std::string&) {
        PushJoined([&](FleetJoin& fleet) { return fleet.OnNodeGone(key.name); });
      });
  // Devices of other drivers have details that an allocator reads; ours have counters, which fill
  // most of a slice and which nobody reads.
  FollowSlices({.resource = kube::kResourceSlices,
                .field_selector = fmt::format("spec.driver={}", kNeuronDriver),
                .part = SlicePart()},
               kube::SliceDetails::kLeaveOut);
  FollowSlices({.resource = kube::kResourceSlices,
                .field_selector = fmt::format("spec.driver!={}", kNeuronDriver)},
               kube::SliceDetails::kRead);
}

void Ingest::FollowSlices(Source source, kube::SliceDetails details) {
  Follow(
      std::move(source),
      [this, details](const json& object) -> absl::Status {
        // A server that passes over the field selector tells each slice to both watches.
        const bool ours = kube::StringAt(object, {"spec", "driver"}) == kNeuronDriver;
        if (ours != (details == kube::SliceDetails::kLeaveOut)) return absl::OkStatus();
        TAHOMA_ASSIGN_OR_RETURN(auto slice, kube::ParseResourceSlice(object, details));
        absl::Status believed;
        PushJoined([&](FleetJoin& fleet) {
          believed = fleet.Check(slice);
          return fleet.OnSlice(std::move(slice));
        });
        return believed;
      },
      [this](const kube::ObjectKey& key, const std::string&) {
        PushJoined([&](FleetJoin& fleet) { return fleet.OnSliceGone(key.name); });
      });
}

void Ingest::FollowClasses() {
  Follow(
      {.resource = kube::kDeviceClasses},
      [this](const json& object) -> absl::Status {
        TAHOMA_ASSIGN_OR_RETURN(auto parsed, kube::ParseDeviceClass(object));
        sink_(ClassSeen{std::make_shared<const ClassFact>(std::move(parsed))});
        return absl::OkStatus();
      },
      [this](const kube::ObjectKey& key, const std::string&) { sink_(ClassGone{key.name}); });
}

void Ingest::FollowClaims() {
  Follow(
      {.resource = kube::kResourceClaims},
      [this](const json& object) -> absl::Status {
        TAHOMA_ASSIGN_OR_RETURN(auto claim, ParseClaim(object));
        sink_(ClaimSeen{std::move(claim)});
        return absl::OkStatus();
      },
      [this](const kube::ObjectKey& key, const std::string& uid) {
        sink_(ClaimGone{{key.ns, key.name}, uid});
      });
}

// Without these kinds only pods with volumes wait: a claim, volume or class that is not known keeps
// its pods from being placed.
void Ingest::FollowVolumeClaims() {
  Follow(
      {.resource = kube::kVolumeClaims, .presence = Presence::kMayBeForbidden},
      [this](const json& object) -> absl::Status {
        TAHOMA_ASSIGN_OR_RETURN(auto claim, ParseVolumeClaim(object));
        sink_(VolumeClaimSeen{std::move(claim)});
        return absl::OkStatus();
      },
      [this](const kube::ObjectKey& key, const std::string& uid) {
        sink_(VolumeClaimGone{{key.ns, key.name}, uid});
      });
}

void Ingest::FollowVolumes() {
  Follow(
      {.resource = kube::kVolumes, .presence = Presence::kMayBeForbidden},
      [this](const json& object) -> absl::Status {
        TAHOMA_ASSIGN_OR_RETURN(auto volume, kube::ParseVolume(object));
        sink_(VolumeSeen{std::make_shared<const VolumeFact>(std::move(volume))});
        return absl::OkStatus();
      },
      [this](const kube::ObjectKey& key, const std::string&) { sink_(VolumeGone{key.name}); });
  Follow(
      {.resource = kube::kStorageClasses, .presence = Presence::kMayBeForbidden},
      [this](const json& object) -> absl::Status {
        TAHOMA_ASSIGN_OR_RETURN(auto parsed, kube::ParseStorageClass(object));
        sink_(StorageClassSeen{std::make_shared<const StorageClassFact>(std::move(parsed))});
        return absl::OkStatus();
      },
      [this](const kube::ObjectKey& key, const std::string&) {
        sink_(StorageClassGone{key.name});
      });
}

void Ingest::FollowGangs() {
  Follow(
      {.resource = kGangs},
      [this](const json& object) -> absl::Status {
        TAHOMA_ASSIGN_OR_RETURN(auto gang, ParseGang(object));
        sink_(GangSeen{std::move(gang)});
        return absl::OkStatus();
      },
      [this](const kube::ObjectKey& key, const std::string& uid) {
        sink_(GangGone{{key.ns, key.name}, uid});
      });
}

// Few clusters define any of these kinds.
void Ingest::FollowPodGroups() {
  for (const GroupApi api : kGroupApis) {
    for (kube::Resource& resource : PodGroupsOf(api)) {
      Follow(
          {.resource = std::move(resource), .presence = Presence::kMayBeForbidden},
          [this, api](const json& object) -> absl::Status {
            TAHOMA_ASSIGN_OR_RETURN(auto group, ParsePodGroup(api, object));
            sink_(PodGroupSeen{std::move(group)});
            return absl::OkStatus();
          },
          [this, api](const kube::ObjectKey& key, const std::string& uid) {
            sink_(PodGroupGone{{api, {key.ns, key.name}}, uid});
          });
    }
  }
}

// The numbers of the classes that PodGroups name. A pod has its number itself.
void Ingest::FollowPriorityClasses() {
  Follow(
      {.resource = {.group = "scheduling.k8s.io", .version = "v1", .plural = "priorityclasses"},
       .presence = Presence::kMayBeForbidden},
      [this](const json& object) -> absl::Status {
        kube::Reading reading(object);
        kube::ObjectMeta metadata = kube::ParseMetadata(reading.root());
        const std::int32_t value = reading.root().At("value").Int32();
        TAHOMA_RETURN_IF_ERROR(reading.StatusOf("PriorityClass"));
        sink_(PriorityClassSeen{std::move(metadata.name), value});
        return absl::OkStatus();
      },
      [this](const kube::ObjectKey& key, const std::string&) {
        sink_(PriorityClassGone{key.name});
      });
}

// The workloads are of a CustomResourceDefinition of AWS.
void Ingest::FollowWorkloads() {
  Follow(
      {.resource = kUltraServerWorkloads, .presence = Presence::kMayBeForbidden},
      [this](const json& object) -> absl::Status {
        TAHOMA_ASSIGN_OR_RETURN(auto workload, ParseWorkload(object));
        sink_(WorkloadSeen{std::move(workload)});
        return absl::OkStatus();
      },
      [this](const kube::ObjectKey& key, const std::string& uid) {
        sink_(WorkloadGone{{key.ns, key.name}, uid});
      });
  const JsonPart part = {.members = {{"metadata", Metadata({{"ownerReferences"}})}}};
  Follow(
      {.resource = kClaimTemplates, .part = part, .presence = Presence::kMayBeForbidden},
      [this](const json& object) -> absl::Status {
        TAHOMA_ASSIGN_OR_RETURN(auto claim_template, ParseClaimTemplate(object));
        sink_(ClaimTemplateSeen{std::move(claim_template)});
        return absl::OkStatus();
      },
      [this](const kube::ObjectKey& key, const std::string& uid) {
        sink_(ClaimTemplateGone{{key.ns, key.name}, uid});
      });
}

void Ingest::FollowBlocks() {
  Follow(
      {.resource = kCapacityBlocks, .presence = Presence::kOptional},
      [this](const json& object) -> absl::Status {
        TAHOMA_ASSIGN_OR_RETURN(auto block, ParseBlock(object));
        sink_(BlockSeen{std::move(block)});
        return absl::OkStatus();
      },
      [this](const kube::ObjectKey& key, const std::string& uid) {
        sink_(BlockGone{{key.ns, key.name}, uid});
      });
}

void Ingest::FollowRequests(RequestKind kind) {
  Follow(
      {.resource = ResourceOf(kind), .presence = Presence::kOptional},
      [this, kind](const json& object) -> absl::Status {
        TAHOMA_ASSIGN_OR_RETURN(auto request, ParseRequest(kind, object));
        sink_(RequestSeen{std::move(request)});
        return absl::OkStatus();
      },
      [this, kind](const kube::ObjectKey& key, const std::string& uid) {
        sink_(RequestGone{{kind, key.ns, key.name}, uid});
      });
}

// Without budgets gangs end for others as if nothing guarded the gangs' pods.
void Ingest::FollowBudgets() {
  Follow(
      {.resource = {.group = "policy", .version = "v1", .plural = "poddisruptionbudgets"},
       .presence = Presence::kMayBeForbidden},
      [this](const json& object) -> absl::Status {
        TAHOMA_ASSIGN_OR_RETURN(auto parsed, kube::ParseDisruptionBudget(object));
        sink_(BudgetSeen{std::make_shared<const BudgetFact>(std::move(parsed))});
        return absl::OkStatus();
      },
      [this](const kube::ObjectKey& key, const std::string& uid) {
        sink_(BudgetGone{key.ns, key.name, uid});
      });
}

void Ingest::FollowQueueCalendars() {
  Follow(
      {.resource = kQueueCalendars, .presence = Presence::kMayBeForbidden},
      [this](const json& object) -> absl::Status {
        TAHOMA_ASSIGN_OR_RETURN(QueueCalendarObject read, ParseQueueCalendar(object));
        sink_(QueueCalendarSeen{.calendar = std::move(read.spec), .shown = std::move(read.shown)});
        return absl::OkStatus();
      },
      [this](const kube::ObjectKey& key, const std::string& uid) {
        sink_(QueueCalendarGone{key.name, uid});
      });
}

void Ingest::FollowQueues() {
  Follow(
      {.resource = kQueues, .presence = Presence::kMayBeForbidden},
      [this](const json& object) -> absl::Status {
        TAHOMA_ASSIGN_OR_RETURN(QueueObject queue, ParseQueue(object));
        sink_(QueueSeen{.queue = std::move(queue.spec), .shown = std::move(queue.shown)});
        return absl::OkStatus();
      },
      [this](const kube::ObjectKey& key, const std::string& uid) {
        sink_(QueueGone{key.name, uid});
      });
}

void Ingest::FollowWindows() {
  Follow(
      {.resource = kMaintenanceWindows, .presence = Presence::kMayBeForbidden},
      [this](const json& object) -> absl::Status {
        TAHOMA_ASSIGN_OR_RETURN(WindowObject window, ParseWindow(object));
        sink_(WindowSeen{.window = std::move(window.spec), .shown = std::move(window.shown)});
        return absl::OkStatus();
      },
      [this](const kube::ObjectKey& key, const std::string& uid) {
        sink_(WindowGone{key.name, uid});
      });
}

void Ingest::FollowDefragmentations() {
  Follow(
      {.resource = kDefragmentations, .presence = Presence::kMayBeForbidden},
      [this](const json& object) -> absl::Status {
        TAHOMA_ASSIGN_OR_RETURN(auto fact, ParseDefragmentation(object));
        sink_(DefragmentationSeen{std::move(fact)});
        return absl::OkStatus();
      },
      [this](const kube::ObjectKey& key, const std::string& uid) {
        sink_(DefragmentationGone{key.name, uid});
      });
}

void Ingest::FollowPods() {
  // With one name the server selects the pods: a fleet has many that are not ours. A field selector
  // cannot say "or", and two watches for two names could overtake each other (a pod that is deleted
  // and made again under another scheduler's name): with more names all pods come on one watch, and
  // the others are passed over here.
  const bool one = scheduler_names_.size() == 1;
  Follow(
      {.resource = kube::kPods,
       .field_selector = one ? fmt::format("spec.schedulerName={}", scheduler_names_.front()) : ""},
      [this](const json& object) -> absl::Status {
        TAHOMA_ASSIGN_OR_RETURN(auto pod, ParsePod(object));
        sink_(PodSeen{std::move(pod)});
        return absl::OkStatus();
      },
      [this](const kube::ObjectKey& key, const std::string& uid) {
        sink_(PodGone{{key.ns, key.name}, uid});
      },
      [this](const json& object) { return IsFor(scheduler_names_, object); });
}

// The server leaves out pods without a node and pods that have ended: a pod that ends is told as
// gone.
void Ingest::FollowOtherPods() {
  std::string selector = "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed";
  for (const std::string& name : scheduler_names_) {
    selector += fmt::format(",spec.schedulerName!={}", name);
  }
  Follow(
      {.resource = kube::kPods, .field_selector = std::move(selector), .part = OtherPodPart()},
      [this](const json& object) -> absl::Status {
        kube::Reading reading(object);
        const kube::ObjectMeta metadata = kube::ParseMetadata(reading.root());
        const std::string node(reading.root().At("spec").At("nodeName").Text());
        TAHOMA_RETURN_IF_ERROR(reading.StatusOf("pod"));
        TAHOMA_ASSIGN_OR_RETURN(OtherPodTraits traits, ParseOtherPod(object));
        const kube::ObjectKey key{metadata.ns, metadata.name};
        auto moved = other_pods_.OnPod(key, node, std::move(traits));
        if (moved) sink_(*std::move(moved));
        return absl::OkStatus();
      },
      [this](const kube::ObjectKey& key, const std::string&) {
        if (auto moved = other_pods_.OnPodGone(key)) sink_(*std::move(moved));
      },
      [this](const json& object) { return !IsFor(scheduler_names_, object); });
}

}  // namespace tahoma::controller
