#include "tests/sim/virtual_node.h"

#include <fmt/format.h>

#include <utility>

#include "dra-plugin/inventory/pool.h"
#include "lib/base/check.h"
#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/kube/lease.h"
#include "lib/kube/objects/slice.h"
#include "sim-node/podrunner/node_object.h"

namespace tahoma::simulation {
namespace {

using json = Json;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr seconds kBeat{15};
// The plugin looks every five minutes whether its slices are what they were (dra-plugin/app); no
// world lasts that long.
constexpr seconds kResync{60};
constexpr milliseconds kRetry{500};

sim::NodeFacts FactsOf(const NodePlan& plan, WallTime now) {
  const hw::InstanceType& type = *hw::FindInstanceType(plan.type);
  return {.name = plan.name,
          .instance_type = plan.type,
          .vcpus = type.vcpus,
          .memory_bytes = type.memory_bytes,
          .ultra_server_id = plan.ultra_server,
          .ultra_server_node = plan.z,
          .ready_since = now};
}

sim::HeldClaim HeldOf(const wire::ClaimGrant& grant) {
  sim::HeldClaim held{.claim_uid = grant.claim_uid,
                      .name_space = grant.name_space,
                      .name = grant.name,
                      .lnc = grant.lnc,
                      .chips = grant.chips,
                      .ultra_server_mode = grant.ultra_server_mode};
  for (const wire::ChipCores& one : grant.cores) held.cores.push_back({one.chip, one.cores});
  return held;
}

}  // namespace

absl::StatusOr<std::optional<std::string>> MemoryFiles::Read(std::string_view name) {
  const auto found = files_.find(name);
  if (found == files_.end()) return std::optional<std::string>();
  return std::optional<std::string>(found->second);
}

absl::Status MemoryFiles::Write(std::string_view name, std::string_view bytes) {
  files_.insert_or_assign(std::string(name), std::string(bytes));
  return absl::OkStatus();
}

absl::Status MemoryFiles::Remove(std::string_view name) {
  if (const auto found = files_.find(name); found != files_.end()) files_.erase(found);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> MemoryFiles::List() {
  std::vector<std::string> names;
  for (const auto& [name, bytes] : files_) names.push_back(name);
  return names;
}

absl::StatusOr<wire::Inventory> InstancePort::GetInventory() {
  const sim::Instance::Options& options = instance_.options();
  wire::Inventory inventory;
  inventory.generation = instance_.generation();
  inventory.node_name = options.name;
  inventory.instance_type = std::string(instance_.type().name);
  if (options.ultra_server) {
    inventory.ultra_server = wire::UltraServer{.id = options.ultra_server->id,
                                               .node_id = options.ultra_server->node_id,
                                               .mode = hw::kUltraServerNodes};
  }
  inventory.driver_version = "2.26.10.0";
  inventory.workload_socket = "unix:/run/pods/workload.sock";
  for (int i = 0; i < instance_.chip_count(); ++i) {
    const sim::ChipState& state = instance_.chip(i);
    wire::Chip chip{.index = i,
                    .healthy = !state.fault.has_value(),
                    .lnc = instance_.lnc(i),
                    .bdf = std::string(instance_.type().chips[static_cast<std::size_t>(i)].bdf)};
    if (state.fault) chip.reason = std::string(FaultName(*state.fault));
    for (const torus::Axis axis : {torus::Axis::kX, torus::Axis::kY, torus::Axis::kZ}) {
      for (const auto direction : {torus::Direction::kPlus, torus::Direction::kMinus}) {
        const sim::Port port{axis, direction};
        if (!instance_.IsLinkDependable(i, port)) chip.links_down.push_back(PortName(port));
      }
    }
    inventory.chips.push_back(std::move(chip));
  }
  return inventory;
}

absl::StatusOr<std::string> InstancePort::Apply(const wire::ClaimGrant& grant,
                                                const std::string& token) {
  return instance_.ApplyClaim(HeldOf(grant), token);
}

absl::Status InstancePort::Release(const std::string& claim_uid) {
  instance_.ReleaseClaim(claim_uid);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<wire::ClaimGrant>> InstancePort::List() {
  std::vector<wire::ClaimGrant> grants;
  for (const sim::HeldClaim* held : instance_.claims()) {
    wire::ClaimGrant grant{.claim_uid = held->claim_uid,
                           .name_space = held->name_space,
                           .name = held->name,
                           .lnc = held->lnc,
                           .chips = held->chips,
                           .ultra_server_mode = held->ultra_server_mode};
    for (const sim::CoresOfChip& one : held->cores) grant.cores.push_back({one.chip, one.cores});
    grants.push_back(std::move(grant));
  }
  return grants;
}

VirtualNode::VirtualNode(World& world, ApiHost& api, NodePlan plan)
    : world_(world),
      api_(api),
      plan_(std::move(plan)),
      link_(world, api, plan_.name),
      claim_source_(link_) {}

int VirtualNode::chip_count() const { return hw::FindInstanceType(plan_.type)->chip_count(); }

void VirtualNode::After(Duration delay, Urgency urgency, std::function<void()> action) {
  world_.events.After(delay, urgency, [this, life = life_, action = std::move(action)] {
    if (life == life_ && powered()) action();
  });
}

void VirtualNode::PowerOn() {
  if (powered()) return;
  world_.Mix(plan_.name);
  world_.Mix("on");
  ++life_;
  sim::Instance::Options options{.type = hw::FindInstanceType(plan_.type), .name = plan_.name};
  if (!plan_.ultra_server.empty()) {
    options.ultra_server = sim::UltraServerPlace{.id = plan_.ultra_server, .node_id = plan_.z};
  }
  auto instance = sim::Instance::Create(std::move(options), [this] {
    return std::array<std::uint64_t, 2>{world_.rng.Next(), world_.rng.Next()};
  });
  TAHOMA_CHECK_OK(instance.status());
  instance_ = std::make_unique<sim::Instance>(*std::move(instance));
  for (const int chip : broken_) {
    TAHOMA_CHECK_OK(instance_->BreakChip(chip, sim::ChipFault::kHbmUncorrectable));
  }
  for (const auto& [chip, index] : links_down_) {
    const sim::Port port{static_cast<torus::Axis>(index / 2),
                         static_cast<torus::Direction>(index % 2)};
    TAHOMA_CHECK_OK(instance_->SetLink(chip, port, 0));
  }
  port_ = std::make_unique<InstancePort>(*instance_);
  claims_ = std::make_unique<dra::Claims>(
      dra::Claims::Options{.node_name = plan_.name, .node_socket = "/run/node.sock"}, state_files_,
      cdi_files_, *port_, claim_source_, world_.clock);
  TAHOMA_CHECK_OK(claims_->Start());
  Reconcile();
  slices_ = std::make_unique<dra::SlicePublisher>(link_, plan_.name);
  pods_ = std::make_unique<sim::NodePods>(
      sim::PodMachine::Addresses{.host_ip = "127.0.0.1", .pod_ip = "127.0.0.1"});
  if (!checkpoint_.empty()) TAHOMA_CHECK_OK(pods_->Restore(checkpoint_));
  synced_ = watch_waits_ = publish_waits_ = writing_ = beating_ = false;
  tick_at_.reset();
  writes_.clear();
  watch_ = std::make_unique<kube::Reflector>(
      link_, no_sleep_, Rng(0),
      kube::ReflectorOptions{.resource = kube::kPods,
                             .field_selector = "spec.nodeName=" + plan_.name},
      kube::WatchHandlers{
          .seen =
              [this](const json& pod) {
                Carry(pods_->OnPod(pod, now()));
                return absl::OkStatus();
              },
          .gone = [this](const kube::ObjectKey&,
                         const std::string& uid) { Carry(pods_->OnPodGone(uid, now())); },
          .listed =
              [this] {
                synced_ = true;
                Carry(pods_->OnPodsSynced(now()));
              }});
  Register();
}

// A new sim-node is told what the plugin has prepared. It refuses chips that broke meanwhile.
void VirtualNode::Reconcile() {
  const absl::StatusOr<std::size_t> refused = claims_->Reconcile();
  if (absl::IsAlreadyExists(refused.status())) {
    world_.Fail("node {}: two prepared claims overlap: {}", plan_.name, Message(refused.status()));
  }
  if (refused.ok() && *refused == 0) return;
  world_.Meet("reconcile refused");
  After(seconds(10), Urgency::kBackground, [this] { Reconcile(); });
}

void VirtualNode::PowerOff() {
  if (!powered()) return;
  world_.Mix(plan_.name);
  world_.Mix("off");
  ++life_;
  watch_.reset();
  pods_.reset();
  slices_.reset();
  claims_.reset();
  port_.reset();
  instance_.reset();
}

void VirtualNode::Register() {
  const auto made = link_.Send({.method = "POST",
                                .target = "/api/v1/nodes",
                                .headers = {{"Content-Type", "application/json"}},
                                .body = MakeNode(FactsOf(plan_, now()), now()).dump()});
  if (!made.ok() || (made->status != 201 && made->status != 409)) {
    return After(kRetry, Urgency::kNormal, [this] { Register(); });
  }
  Publish();
  PublishNics();
  if (!std::exchange(beating_, true)) {
    Beat();
    Resync();
  }
  WakeWatch();
}

void VirtualNode::Resync() {
  After(kResync, Urgency::kBackground, [this] { Resync(); });
  Publish();
  PublishNics();
}

// Another driver's slice, which never changes.
void VirtualNode::PublishNics() {
  constexpr int kNics = 6;  // fewer than chips
  if (!world_.swarm.nics || chip_count() != 16) return;
  kube::ResourceSlice slice{.name = plan_.name + "-nics",
                            .driver = "nics.example.com",
                            .pool = plan_.name,
                            .node = plan_.name,
                            .devices = {}};
  for (int i = 0; i < kNics; ++i) {
    slice.devices.push_back({.name = fmt::format("nic-{}", i),
                             .attributes = {{{"nics.example.com", "index"}, std::int64_t{i}}},
                             .capacities = {},
                             .taints = {}});
  }
  const json object = {{"apiVersion", "resource.k8s.io/v1"},
                       {"kind", "ResourceSlice"},
                       {"metadata", {{"name", slice.name}}},
                       {"spec", kube::RenderSliceSpec(slice)}};
  (void)link_.Send({.method = "POST",
                    .target = "/apis/resource.k8s.io/v1/resourceslices",
                    .headers = {{"Content-Type", "application/json"}},
                    .body = object.dump()});
}

// Renews the lease, and says that the node is ready when the API says otherwise.
void VirtualNode::Beat() {
  After(kBeat, Urgency::kBackground, [this] { Beat(); });
  const std::string lease = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
  const auto renewed = link_.Send({.method = "PATCH",
                                   .target = lease + "/" + plan_.name,
                                   .headers = {{"Content-Type", "application/merge-patch+json"}},
                                   .body = kube::NodeLeaseRenewal(plan_.name, now()).dump()});
  if (renewed.ok() && renewed->status == 404) {
    (void)link_.Send({.method = "POST",
                      .target = lease,
                      .headers = {{"Content-Type", "application/json"}},
                      .body = kube::MakeNodeLease(plan_.name, "", now()).dump()});
  }
  const auto node = link_.Send({.method = "GET", .target = "/api/v1/nodes/" + plan_.name});
  if (!node.ok()) return;
  if (node->status == 404) return Register();
  if (node->status != 200) return;
  const json object = TryParseJson(node->body);
  for (const json& condition : object.at("status").value("conditions", json::array())) {
    if (condition.value("type", "") != "Ready" || condition.value("status", "") == "True") continue;
    (void)link_.Send(
        {.method = "PATCH",
         .target = "/api/v1/nodes/" + plan_.name + "/status",
         .headers = {{"Content-Type", "application/strategic-merge-patch+json"}},
         .body = json{{"status", MakeNodeStatus(FactsOf(plan_, now()), now())}}.dump()});
  }
}

void VirtualNode::Publish() {
  if (publish_waits_) return;
  publish_waits_ = true;
  After(world_.Latency(), Urgency::kNormal, [this] {
    publish_waits_ = false;
    const absl::StatusOr<wire::Inventory> inventory = port_->GetInventory();
    const auto pool =
        dra::BuildPool(*inventory, {.publish = {.lnc1 = plan_.cores, .lnc2 = plan_.cores}});
    TAHOMA_CHECK_OK(pool.status());
    if (slices_->Publish(*pool).ok()) return;
    After(kRetry, Urgency::kNormal, [this] { Publish(); });
  });
}

void VirtualNode::WakeWatch() {
  if (!powered() || watch_waits_) return;
  watch_waits_ = true;
  After(world_.Latency(), Urgency::kNormal, [this] { StepWatch(); });
}

void VirtualNode::StepWatch() {
  watch_waits_ = false;
  const bool listed = synced_;
  // A connection does not outlive the server.
  if (std::exchange(api_life_, api_.life()) != api_.life()) link_.BreakStream();
  const absl::Status status = watch_->Step();
  if (status.ok() && listed) return;
  watch_waits_ = true;
  After(status.ok() ? world_.Latency() : Duration(kRetry), Urgency::kNormal,
        [this] { StepWatch(); });
}

void VirtualNode::BreakChip(int chip) {
  broken_.insert(chip);
  if (!powered()) return;
  TAHOMA_CHECK_OK(instance_->BreakChip(chip, sim::ChipFault::kHbmUncorrectable));
  Publish();
}

void VirtualNode::RepairChip(int chip) {
  broken_.erase(chip);
  if (!powered()) return;
  TAHOMA_CHECK_OK(instance_->RepairChip(chip));
  Publish();
}

void VirtualNode::SetLink(int chip, sim::Port port, bool up) {
  const std::pair<int, std::size_t> end{chip, PortIndex(port)};
  up ? static_cast<void>(links_down_.erase(end)) : static_cast<void>(links_down_.insert(end));
  if (!powered()) return;
  TAHOMA_CHECK_OK(instance_->SetLink(chip, port, up ? 1000 : 0));
  Publish();
}

std::set<std::string> VirtualNode::PreparedClaims() {
  std::set<std::string> uids;
  if (!powered()) return uids;
  const auto checkpoint = claims_->Load();
  TAHOMA_CHECK_OK(checkpoint.status());
  for (const auto& [uid, claim] : checkpoint->claims) uids.insert(uid);
  return uids;
}

std::set<std::string> VirtualNode::HeldByInstance() const {
  std::set<std::string> uids;
  if (!powered()) return uids;
  for (const sim::HeldClaim* held : instance_->claims()) uids.insert(held->claim_uid);
  return uids;
}

}  // namespace tahoma::simulation
