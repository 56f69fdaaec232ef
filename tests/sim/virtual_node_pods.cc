// The part of VirtualNode that carries out what its pods want.

#include <utility>

#include "lib/base/check.h"
#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/kube/object.h"
#include "tests/sim/checks.h"
#include "tests/sim/virtual_node.h"

namespace tahoma::simulation {
namespace {

using json = Json;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr milliseconds kWriteRetry{500};
constexpr int kKilled = 137;

std::optional<int> Number(const std::map<std::string, std::string>& annotations, const char* name) {
  const auto found = annotations.find(name);
  if (found == annotations.end()) return std::nullopt;
  return std::stoi(found->second);
}

}  // namespace

void VirtualNode::Carry(const sim::NodeActions& actions) {
  for (const sim::NodeAction& action : actions) {
    if (const auto* read = std::get_if<sim::ReadClaims>(&action)) {
      After(world_.Latency(), Urgency::kNormal, [this, read = *read] { Read(read); });
    } else if (const auto* prepare = std::get_if<sim::PrepareClaim>(&action)) {
      After(world_.Latency(), Urgency::kNormal, [this, claim = prepare->claim] { Prepare(claim); });
    } else if (const auto* unprepare = std::get_if<sim::UnprepareClaim>(&action)) {
      After(world_.Latency(), Urgency::kNormal,
            [this, claim = unprepare->claim] { Unprepare(claim); });
    } else if (const auto* run = std::get_if<sim::RunContainer>(&action)) {
      After(world_.Latency(), Urgency::kNormal, [this, run = *run] { Run(run); });
    } else if (const auto* stop = std::get_if<sim::StopContainer>(&action)) {
      Stop(*stop);
    } else if (std::holds_alternative<sim::SaveCheckpoint>(action)) {
      checkpoint_ = pods_->Checkpoint();
    } else if (const auto* status = std::get_if<sim::WriteStatus>(&action)) {
      writes_.push_back({status->pod, status->status});
    } else if (const auto* remove = std::get_if<sim::DeletePod>(&action)) {
      writes_.push_back({remove->pod, ""});
    }
  }
  if (!writes_.empty() && !std::exchange(writing_, true)) {
    After(world_.Latency(), Urgency::kNormal, [this] { WriteNext(); });
  }
  WakeTick();
}

void VirtualNode::WakeTick() {
  const std::optional<WallTime> due = pods_->NextDeadline();
  if (!due || (tick_at_ && *tick_at_ <= *due)) return;
  tick_at_ = due;
  After(std::max<Duration>(*due - now(), milliseconds(1)), Urgency::kNormal, [this, due] {
    if (tick_at_ != due) return;
    tick_at_.reset();
    Carry(pods_->OnTick(now()));
  });
}

void VirtualNode::Read(const sim::ReadClaims& read) {
  absl::StatusOr<std::vector<sim::ClaimFacts>> claims = std::vector<sim::ClaimFacts>();
  for (const std::string& name : read.names) {
    const absl::StatusOr<std::string> text = claim_source_.Get(read.pod.name_space, name);
    if (!text.ok()) {
      claims = text.status();
      break;
    }
    const auto facts = sim::ParseClaimFacts(ParseJson(*text));
    if (!facts.ok()) {
      claims = facts.status();
      break;
    }
    claims->push_back(*facts);
  }
  Carry(pods_->OnClaimsRead(read.pod.uid, claims, now()));
}

void VirtualNode::Prepare(const sim::ClaimFacts& claim) {
  const auto devices =
      claims_->Prepare({.name_space = claim.name_space, .name = claim.name, .uid = claim.uid});
  const bool overlaps = absl::IsAlreadyExists(devices.status());
  if (!devices.ok()) {
    world_.Meet(fmt::format("prepare refused ({})", static_cast<int>(devices.status().code())));
    if (overlaps) world_.Meet("overlap refused by the plugin");
  }
  if (overlaps && world_.plant == Plant::kAcceptOverlap) {
    OnPrepared(claim);
    return Carry(pods_->OnClaimPrepared(claim.uid, std::vector<sim::PreparedDevice>(), now()));
  }
  if (!devices.ok()) return Carry(pods_->OnClaimPrepared(claim.uid, devices.status(), now()));
  OnPrepared(claim);
  std::vector<sim::PreparedDevice> prepared;
  for (const dra::PreparedDevice& device : *devices) {
    prepared.push_back({.requests = {device.request}, .cdi_ids = {device.device}});
  }
  Carry(pods_->OnClaimPrepared(claim.uid, std::move(prepared), now()));
}

// Whatever the plugin and the API say: no core is prepared for two claims.
void VirtualNode::OnPrepared(const sim::ClaimFacts& claim) {
  if (!api_.up()) return;  // the plugin knew the claim: it was prepared, and checked, before
  const auto object =
      api_.objects().Get({"resource.k8s.io", "resourceclaims"},
                         controller::apiserver::ObjectKey(claim.name_space, claim.name));
  const json* results =
      object == nullptr
          ? nullptr
          : kube::ValueAt(*object->body, {"status", "allocation", "devices", "results"});
  if (results == nullptr || object->body->at("metadata").at("uid") != claim.uid) return;
  std::set<int>& cores = prepared_cores_[claim.uid];
  for (const json& result : *results) {
    if (result.at("pool") != plan_.name) continue;
    for (const int core : CoresOf(result.at("device"), chip_count())) cores.insert(core);
  }
  for (const auto& [uid, others] : prepared_cores_) {
    for (const int core : others) {
      if (uid == claim.uid || !cores.contains(core)) continue;
      return world_.Fail("core {} of chip {} of node {} is prepared for claims {} and {}", core % 8,
                         core / 8, plan_.name, uid, claim.uid);
    }
  }
}

void VirtualNode::Unprepare(const sim::ClaimFacts& claim) {
  const absl::Status done =
      claims_->Unprepare({.name_space = claim.name_space, .name = claim.name, .uid = claim.uid});
  if (done.ok()) prepared_cores_.erase(claim.uid);
  Carry(pods_->OnClaimUnprepared(claim.uid, done, now()));
}

void VirtualNode::Run(const sim::RunContainer& run) {
  const sim::PodMachine* machine = pods_->Find(run.pod.uid);
  if (machine == nullptr) return;
  const auto annotations = machine->spec().annotations;
  world_.Meet("container started");
  Carry(pods_->OnStarted(run.pod.uid, run.container, run.attempt,
                         fmt::format("sim://{}/{}", run.pod.uid, run.attempt), now()));
  const std::optional<int> length = Number(annotations, kRunsFor);
  if (!length) return;
  const int code = Number(annotations, kExitsWith).value_or(0);
  After(seconds(*length), Urgency::kNormal,
        [this, run, code] { Exit(run.pod.uid, run.container, run.attempt, code); });
}

void VirtualNode::Stop(const sim::StopContainer& stop) {
  // SIGTERM is heeded by some, SIGKILL by all.
  if (!stop.kill && world_.rng.Chance(1, 3)) return;
  const int code = stop.kill ? kKilled : 0;
  After(world_.Latency(), Urgency::kNormal,
        [this, stop, code] { Exit(stop.pod.uid, stop.container, stop.attempt, code); });
}

void VirtualNode::Exit(const std::string& pod_uid, const std::string& container, int attempt,
                       int code) {
  Carry(pods_->OnExited(pod_uid, container, attempt,
                        {.code = code, .signal = code == kKilled ? 9 : 0}, now()));
}

void VirtualNode::WriteNext() {
  const int status = SendWrite(writes_.front());
  const bool again = status == 0 || status == 429 || status >= 500;
  if (!again) writes_.pop_front();
  writing_ = !writes_.empty();
  if (!writing_) return;
  After(again ? Duration(kWriteRetry) : world_.Latency(), Urgency::kNormal,
        [this] { WriteNext(); });
}

int VirtualNode::SendWrite(const Write& write) {
  const std::string path =
      fmt::format("/api/v1/namespaces/{}/pods/{}", write.pod.name_space, write.pod.name);
  const auto shown = link_.Send({.method = "GET", .target = path});
  if (!shown.ok() || shown->status != 200) return shown.ok() ? shown->status : 0;
  const auto what = write.status.empty() ? sim::PodWrite::kRemoval : sim::PodWrite::kStatus;
  const absl::Status may = CheckWrite(ParseJson(shown->body), write.pod, plan_.name, what);
  if (!may.ok()) {
    world_.Meet(fmt::format("write withheld ({})", static_cast<int>(may.code())));
    return 409;
  }
  kube::Request request;
  if (write.status.empty()) {
    request = {.method = "DELETE",
               .target = path,
               .headers = {{"Content-Type", "application/json"}},
               .body = json{{"apiVersion", "v1"},
                            {"kind", "DeleteOptions"},
                            {"gracePeriodSeconds", 0},
                            {"preconditions", {{"uid", write.pod.uid}}}}
                           .dump()};
  } else {
    request = {
        .method = "PATCH",
        .target = path + "/status",
        .headers = {{"Content-Type", "application/strategic-merge-patch+json"}},
        .body = json{{"metadata", {{"uid", write.pod.uid}}}, {"status", ParseJson(write.status)}}
                    .dump()};
  }
  const auto answer = link_.Send(request);
  return answer.ok() ? answer->status : 0;
}

}  // namespace tahoma::simulation
