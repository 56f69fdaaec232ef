#include "controller/ingest/ingest.h"

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <utility>

#include "controller/ingest/parse.h"
#include "lib/base/json.h"
#include "lib/base/status.h"

namespace tahoma::controller {

using json = Json;

Ingest::Ingest(kube::Transport& transport, std::vector<std::string> scheduler_names, Sink sink,
               ObjectWatch::Wait wait, Log log, HistoryLost history_lost)
    : transport_(transport),
      scheduler_names_(std::move(scheduler_names)),
      sink_(std::move(sink)),
      wait_(std::move(wait)),
      log_(std::move(log)),
      history_lost_(std::move(history_lost)) {}

std::size_t Ingest::StartStepping() {
  FollowNodes();
  FollowClasses();
  FollowClaims();
  FollowGangs();
  FollowPods();
  unlisted_ = static_cast<int>(watches_.size());
  return watches_.size();
}

absl::Status Ingest::Step(std::size_t watch) { return watches_[watch]->Step(); }

void Ingest::Start() {
  StartStepping();
  for (const auto& watch : watches_) {
    threads_.emplace_back([this, &watch] { watch->Run(wait_); });
  }
}

void Ingest::Stop() {
  for (const auto& watch : watches_) watch->Stop();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

template <typename Join>
void Ingest::PushJoined(Join&& join) {
  const std::lock_guard lock(fleet_mutex_);
  if (std::optional<Command> command = join()) sink_(*std::move(command));
}

void Ingest::Follow(ObjectWatch::Target target, Seen seen, Gone gone, Wanted wanted) {
  ObjectWatch::Handlers handlers;
  handlers.wanted = std::move(wanted);
  handlers.seen = std::move(seen);
  handlers.gone = std::move(gone);
  handlers.listed = [this, first = std::make_shared<std::atomic<bool>>(true)] {
    if (first->exchange(false) && --unlisted_ == 0) sink_(WatchesSynced{});
  };
  handlers.history_lost = [this, path = target.path](const std::string& why) {
    log_(fmt::format("watch: {}: the API lost its history: {}", path, why));
    if (history_lost_) history_lost_(fmt::format("{}: {}", path, why));
  };
  handlers.failed = [this](const absl::Status& status) {
    log_(fmt::format("watch: {}", Message(status)));
  };
  watches_.push_back(
      std::make_unique<ObjectWatch>(transport_, std::move(target), std::move(handlers)));
}

void Ingest::FollowNodes() {
  Follow(
      {.path = "/api/v1/nodes", .field_selector = ""},
      [this](const json& object) {
        auto node = ParseNode(object);
        if (!node.ok()) return log_(std::string(Message(node.status())));
        PushJoined([&] { return fleet_.OnNode(*std::move(node)); });
      },
      [this](const std::string&, const std::string& name, const std::string&) {
        PushJoined([&] { return fleet_.OnNodeGone(name); });
      });
  Follow(
      {.path = "/apis/resource.k8s.io/v1/resourceslices",
       .field_selector = fmt::format("spec.driver={}", kNeuronDriver)},
      [this](const json& object) {
        auto slice = ParseSlice(object);
        if (!slice.ok()) return log_(std::string(Message(slice.status())));
        PushJoined([&] { return fleet_.OnSlice(*std::move(slice)); });
      },
      [this](const std::string&, const std::string& name, const std::string&) {
        PushJoined([&] { return fleet_.OnSliceGone(name); });
      });
}

void Ingest::FollowClasses() {
  Follow(
      {.path = "/apis/resource.k8s.io/v1/deviceclasses", .field_selector = ""},
      [this](const json& object) {
        auto parsed = ParseDeviceClass(object);
        if (!parsed.ok()) return log_(std::string(Message(parsed.status())));
        sink_(ClassSeen{*std::move(parsed)});
      },
      [this](const std::string&, const std::string& name, const std::string&) {
        sink_(ClassGone{name});
      });
}

void Ingest::FollowClaims() {
  Follow(
      {.path = "/apis/resource.k8s.io/v1/resourceclaims", .field_selector = ""},
      [this](const json& object) {
        auto claim = ParseClaim(object);
        if (!claim.ok()) return log_(std::string(Message(claim.status())));
        sink_(ClaimSeen{*std::move(claim)});
      },
      [this](const std::string& ns, const std::string& name, const std::string& uid) {
        sink_(ClaimGone{{ns, name}, uid});
      });
}

void Ingest::FollowGangs() {
  Follow(
      {.path = "/apis/tahoma.dev/v1alpha1/gangs", .field_selector = ""},
      [this](const json& object) {
        auto gang = ParseGang(object);
        if (!gang.ok()) return log_(std::string(Message(gang.status())));
        sink_(GangSeen{*std::move(gang)});
      },
      [this](const std::string& ns, const std::string& name, const std::string& uid) {
        sink_(GangGone{{ns, name}, uid});
      });
}

void Ingest::FollowPods() {
  // One name is selected by the server: a fleet has many pods that are not ours. A field selector
  // cannot say "or", and news of one pod name on two watches could overtake each other (a pod that
  // is deleted and made again under another scheduler's name): with more names all pods come on one
  // watch, and the others are passed over here.
  const bool one = scheduler_names_.size() == 1;
  Follow(
      {.path = "/api/v1/pods",
       .field_selector = one ? fmt::format("spec.schedulerName={}", scheduler_names_.front()) : ""},
      [this](const json& object) {
        auto pod = ParsePod(object);
        if (!pod.ok()) return log_(std::string(Message(pod.status())));
        sink_(PodSeen{*std::move(pod)});
      },
      [this](const std::string& ns, const std::string& name, const std::string& uid) {
        sink_(PodGone{{ns, name}, uid});
      },
      [this](const json& object) { return IsFor(scheduler_names_, object); });
}

}  // namespace tahoma::controller
