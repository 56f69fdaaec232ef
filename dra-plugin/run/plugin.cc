#include "dra-plugin/run/plugin.h"

#include <malloc.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "lib/base/check.h"
#include "lib/base/json.h"
#include "lib/base/status.h"

namespace tahoma::dra {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kDialTimeout = std::chrono::seconds(5);
constexpr milliseconds kWatchPeriod = std::chrono::seconds(30);
constexpr milliseconds kWatchTimeout = std::chrono::seconds(40);
constexpr milliseconds kFirstRetry(100);
constexpr milliseconds kPublishRetryMax = std::chrono::seconds(30);
// A starting kubelet deletes the ResourceSlices of its node, at an unknown time
// (docs/reference/kubernetes-dra.md#what-the-kubelet-does).
constexpr milliseconds kAfterRegistration = std::chrono::seconds(30);

// Returns free memory to the system. Making the slices takes several times the memory that the
// program needs later, and the allocator would keep the memory for a thread that seldom runs.
void ReturnFreeMemory() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

// Logs a problem that differs from the last logged problem.
void LogOnce(std::string_view what, const absl::Status& status, std::string& last) {
  std::string problem(Message(status));
  if (problem == last) return;
  if (!status.ok()) spdlog::warn("{}: {}", what, problem);
  last = std::move(problem);
}

}  // namespace

class Plugin::Driver final : public DriverCalls {
 public:
  Driver(Claims& claims, const Clock& clock, PluginMetrics& metrics)
      : claims_(claims), clock_(clock), metrics_(metrics) {}
  absl::StatusOr<std::vector<PreparedDevice>> Prepare(const ClaimRef& claim) override {
    const MonotonicTime begin = clock_.MonotonicNow();
    auto devices = claims_.Prepare(claim);
    metrics_.ObservePrepare(SecondsSince(begin), devices.status());
    metrics_.SetPrepared(claims_.prepared());
    return devices;
  }
  absl::Status Unprepare(const ClaimRef& claim) override {
    const MonotonicTime begin = clock_.MonotonicNow();
    absl::Status status = claims_.Unprepare(claim);
    metrics_.ObserveUnprepare(SecondsSince(begin), status);
    metrics_.SetPrepared(claims_.prepared());
    return status;
  }

 private:
  double SecondsSince(MonotonicTime begin) const {
    return std::chrono::duration<double>(clock_.MonotonicNow() - begin).count();
  }

  Claims& claims_;
  const Clock& clock_;
  PluginMetrics& metrics_;
};

Plugin::Plugin(PluginOptions options, kube::Transport& transport, const Clock& clock,
               PluginMetrics& metrics)
    : options_(std::move(options)),
      clock_(clock),
      metrics_(metrics),
      data_dir_(fmt::format("{}/{}", options_.plugin_dir, kDriver)),
      node_(options_.node_socket),
      source_(transport),
      publisher_(transport, options_.node_name),
      labeller_(transport, options_.node_name),
      reporter_(transport, options_.node_name),
      completeness_(transport, options_.node_name),
      call_lock_(data_dir_ + "/serialize.lock"),
      publish_(options_.pool.publish),
      damper_(options_.damping) {}

Plugin::~Plugin() { Stop(); }

absl::StatusOr<std::unique_ptr<Plugin>> Plugin::Start(PluginOptions options,
                                                      kube::Transport& transport,
                                                      const Clock& clock, PluginMetrics& metrics) {
  TAHOMA_ASSIGN_OR_RETURN(const wire::Address node, wire::ParseAddress(options.node_socket));
  options.node_socket = node.ToString();
  std::unique_ptr<Plugin> plugin(new Plugin(std::move(options), transport, clock, metrics));
  TAHOMA_RETURN_IF_ERROR(plugin->Open(transport));
  return plugin;
}

absl::Status Plugin::Open(kube::Transport& transport) {
  TAHOMA_ASSIGN_OR_RETURN(state_files_, PosixFiles::Open(data_dir_));
  TAHOMA_ASSIGN_OR_RETURN(cdi_files_, PosixFiles::Open(options_.cdi_dir));
  claims_ = std::make_unique<Claims>(Claims::Options{.node_name = options_.node_name,
                                                     .node_socket = options_.node_socket,
                                                     .boot_id = options_.boot_id},
                                     *state_files_, *cdi_files_, node_, source_, clock_);
  {
    const CallLock::Held held(call_lock_);
    TAHOMA_RETURN_IF_ERROR(held.status());
    TAHOMA_RETURN_IF_ERROR(claims_->Start());
    metrics_.SetPrepared(claims_->prepared());
  }
  driver_ = std::make_unique<Driver>(*claims_, clock_, metrics_);
  KubeletOptions kubelet = {.driver = std::string(kDriver),
                            .registry_dir = options_.registry_dir,
                            .data_dir = data_dir_,
                            .pod_uid = options_.pod_uid,
                            .repeat_for = options_.repeat_for};
  kubelet.on_requests = [this](int change) { metrics_.CountRequests(change); };
  kubelet.on_registration = [this](bool registered, const std::string& error) {
    OnRegistration(registered, error);
  };
  TAHOMA_ASSIGN_OR_RETURN(
      server_, KubeletServer::Start(std::move(kubelet), *driver_, call_lock_, board_, clock_));
  spdlog::info("serving the kubelet on {}", server_->registration_socket());
  if (options_.efa) TAHOMA_RETURN_IF_ERROR(Annotate(StartEfa(transport), "the driver of the NICs"));
  follow_thread_ = std::thread([this] { FollowLoop(); });
  publish_thread_ = std::thread([this] { PublishLoop(); });
  return absl::OkStatus();
}

absl::Status Plugin::StartEfa(kube::Transport& transport) {
  EfaDriverOptions options = {.node_name = options_.node_name,
                              .node_socket = options_.node_socket,
                              .plugin_dir = options_.plugin_dir,
                              .registry_dir = options_.registry_dir,
                              .cdi_dir = options_.cdi_dir,
                              .pod_uid = options_.pod_uid,
                              .repeat_for = options_.repeat_for};
  // The driver of the chips registers with the same kubelet, which then publishes both anew.
  options.on_registration = [this](bool registered, const std::string& error) {
    if (registered) return;
    spdlog::error("the kubelet refused the driver of the NICs: {}", error);
    if (options_.on_refused) options_.on_refused(error);
  };
  TAHOMA_ASSIGN_OR_RETURN(efa_, EfaDriver::Start(std::move(options), transport, clock_));
  return absl::OkStatus();
}

void Plugin::Stop() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
    if (session_ != nullptr) session_->Shutdown();
  }
  changed_.NotifyAll();
  // The server stops first: calls of the kubelet use everything below.
  if (server_ != nullptr) server_->Stop();
  if (efa_ != nullptr) efa_->Stop();
  node_.Close();
  if (follow_thread_.joinable()) follow_thread_.join();
  if (publish_thread_.joinable()) publish_thread_.join();
}

bool Plugin::Pause(milliseconds duration) {
  const auto deadline = CondVar::In(duration);
  const MutexLock lock(mutex_);
  while (!stopping_ && changed_.WaitUntil(mutex_, deadline)) {
  }
  return !stopping_;
}

void Plugin::FollowLoop() {
  milliseconds retry = kFirstRetry;
  MonotonicTime last_seen = clock_.MonotonicNow();
  std::string last_message;
  while (true) {
    const absl::Status ended = Session();
    metrics_.SetFollowing(false);
    if (!Pause(milliseconds(0))) return;
    if (session_good_) {
      last_seen = clock_.MonotonicNow();
      retry = kFirstRetry;
    }
    if (std::string message(Message(ended)); message != last_message) {
      spdlog::warn("sim-node at {}: {}", options_.node_socket, message);
      last_message = std::move(message);
    }
    if (clock_.MonotonicNow() - last_seen >= options_.node_lost_after) MarkLost();
    if (!Pause(retry)) return;
    retry = std::min(2 * retry, options_.retry_after_max);
  }
}

absl::Status Plugin::Session() {
  session_good_ = false;
  TAHOMA_ASSIGN_OR_RETURN(const std::shared_ptr<wire::Connection> connection,
                          wire::Connection::Dial(options_.node_socket, kDialTimeout));
  {
    const MutexLock lock(mutex_);
    if (stopping_) return absl::OkStatus();
    session_ = connection;
  }
  std::uint64_t id = 0;
  const auto ask = [&](std::string_view method,
                       std::string params) -> absl::StatusOr<wire::Inventory> {
    TAHOMA_ASSIGN_OR_RETURN(
        const wire::Reply reply,
        wire::Call(*connection, ++id, {.method = std::string(method), .params = std::move(params)},
                   kWatchTimeout));
    return wire::DecodeInventory(reply.result);
  };
  TAHOMA_ASSIGN_OR_RETURN(wire::Inventory inventory, ask(wire::kInventory, "{}"));
  if (inventory.node_name != options_.node_name) {
    return FailedPrecondition("it is node \"{}\"; this plugin serves node \"{}\"",
                              inventory.node_name, options_.node_name);
  }
  TAHOMA_ASSIGN_OR_RETURN(std::size_t refused, GiveClaims());
  spdlog::info("following sim-node at {}", options_.node_socket);
  while (true) {
    TAHOMA_RETURN_IF_ERROR(AdoptInventory(inventory));
    session_good_ = true;
    metrics_.SetFollowing(true);
    const std::uint64_t seen = inventory.generation;
    while (inventory.generation == seen) {
      TAHOMA_ASSIGN_OR_RETURN(
          inventory, ask(wire::kWatchInventory,
                         wire::EncodeWatchParams({.generation = seen, .timeout = kWatchPeriod})));
    }
    // A chip may have been repaired.
    if (refused != 0) {
      TAHOMA_ASSIGN_OR_RETURN(refused, GiveClaims());
    }
  }
}

absl::StatusOr<std::size_t> Plugin::GiveClaims() {
  const CallLock::Held held(call_lock_);
  TAHOMA_RETURN_IF_ERROR(held.status());
  auto refused = claims_->Reconcile();
  if (!refused.ok()) return Annotate(refused.status(), "giving it the prepared claims");
  return refused;
}

absl::Status Plugin::AdoptInventory(const wire::Inventory& inventory) {
  const MutexLock lock(mutex_);
  return MakePool(inventory, /*lost=*/false);
}

void Plugin::MarkLost() {
  const MutexLock lock(mutex_);
  if (lost_ || !inventory_.has_value()) return;
  spdlog::error("sim-node is lost: every device of node {} becomes unhealthy", options_.node_name);
  TAHOMA_CHECK_OK(MakePool(*inventory_, /*lost=*/true));  // the same inventory made a pool before
}

void Plugin::SetPublish(const dra::Publish& publish) {
  const MutexLock lock(mutex_);
  publish_ = publish;
  if (inventory_.has_value()) TAHOMA_CHECK_OK(MakePool(*inventory_, lost_));
}

absl::Status Plugin::MakePool(wire::Inventory inventory, bool lost) {
  PoolOptions options = options_.pool;
  options.publish = publish_;
  options.node_lost = lost;
  const MonotonicTime now = clock_.MonotonicNow();
  const wire::Inventory shown = damper_.Damp(inventory, now);
  TAHOMA_ASSIGN_OR_RETURN(DevicePool pool, BuildPool(shown, options));
  repair_shows_.reset();
  if (const auto wake = damper_.wake()) {
    repair_shows_ = CondVar::In(*wake - now);
    changed_.NotifyAll();
  }
  inventory_ = std::move(inventory);
  lost_ = lost;
  board_.Set(HealthOf(pool, options_.node_name));
  const bool nics_changed = efa_ != nullptr && efa_->Show(shown, options);
  if (pool_ == pool && !nics_changed) return absl::OkStatus();
  pool_ = std::move(pool);
  publish_now_ = true;
  changed_.NotifyAll();
  return absl::OkStatus();
}

// Slices first: gangs can wait for a label, but no claim for a device.
absl::Status Plugin::PublishNode(const DevicePool& pool, const wire::Inventory& inventory) {
  TAHOMA_RETURN_IF_ERROR(Annotate(publisher_.Publish(pool), "ResourceSlices"));
  metrics_.SetDevices(publisher_.Shown(pool));
  TellUsers(pool);
  if (options_.label_node) TAHOMA_RETURN_IF_ERROR(labeller_.Publish(inventory));
  return efa_ == nullptr ? absl::OkStatus() : PublishNics();
}

// A cluster whose policy knows the driver of the chips alone, as of a chart before this driver,
// refuses the slice: the chips are published all the same.
absl::Status Plugin::PublishNics() {
  const absl::Status published = efa_->Publish();
  const bool refused = absl::IsPermissionDenied(published);
  LogOnce("publishing NICs", refused ? published : absl::OkStatus(), last_problems_.nics);
  return refused ? absl::OkStatus() : Annotate(published, "the NICs' ResourceSlice");
}

// Reports to users fail alone: a role that may not write reports must still publish devices.
void Plugin::TellUsers(const DevicePool& pool) {
  const absl::StatusOr<Checkpoint> claims = LoadClaims();
  const absl::Status told =
      claims.ok() ? reporter_.Report(*claims, pool, clock_.WallNow()) : claims.status();
  LogOnce("reporting devices' health", told, last_problems_.report);
  if (const std::shared_ptr<const Json> node = publisher_.HandOverNode()) {
    const Completeness found = CompletenessOf(pool, *publisher_.server());
    LogOnce("reporting what is not shown", completeness_.Report(*node, found, clock_.WallNow()),
            last_problems_.condition);
  }
}

absl::StatusOr<Checkpoint> Plugin::LoadClaims() {
  const CallLock::Held held(call_lock_);
  TAHOMA_RETURN_IF_ERROR(held.status());
  return claims_->Load();
}

absl::Status Plugin::DropStaleClaims() {
  TAHOMA_ASSIGN_OR_RETURN(const Checkpoint checkpoint, LoadClaims());
  TAHOMA_ASSIGN_OR_RETURN(const std::vector<PreparedClaim> found, claims_->FindStale(checkpoint));
  std::set<std::string> seen;
  for (const PreparedClaim& claim : found) {
    const std::string& uid = claim.grant.claim_uid;
    if (claims_->IsOfEarlierBoot(claim) || stale_.contains(uid)) {
      const CallLock::Held held(call_lock_);
      TAHOMA_RETURN_IF_ERROR(held.status());
      TAHOMA_RETURN_IF_ERROR(claims_->Drop(claim));
      metrics_.SetPrepared(claims_->prepared());
      metrics_.CountDroppedClaim();
    } else {
      seen.insert(uid);
    }
  }
  stale_ = std::move(seen);
  return absl::OkStatus();
}

void Plugin::WaitForWork(CondVar::Deadline deadline) {
  while (!stopping_ && !publish_now_) {
    const bool repair_first = repair_shows_.has_value() && *repair_shows_ < deadline;
    if (changed_.WaitUntil(mutex_, repair_first ? *repair_shows_ : deadline)) continue;
    if (!repair_first) return;
    TAHOMA_CHECK_OK(MakePool(*inventory_, lost_));
  }
}

void Plugin::PublishLoop() {
  milliseconds wait = options_.resync_period;
  milliseconds retry = kFirstRetry;
  auto look_for_stale = CondVar::In(milliseconds(0));
  MutexLock lock(mutex_);
  while (true) {
    WaitForWork(CondVar::In(wait));
    if (stopping_) return;
    publish_now_ = false;
    if (!pool_.has_value()) continue;
    const DevicePool pool = *pool_;
    const wire::Inventory inventory = *inventory_;
    const bool again_soon = std::exchange(publish_soon_, false);
    lock.Unlock();
    const absl::Status status = PublishNode(pool, inventory);
    metrics_.ObservePublication(status);
    if (!status.ok()) spdlog::warn("publishing: {}", Message(status));
    if (status.ok() && CondVar::In(milliseconds(0)) >= look_for_stale) {
      look_for_stale = CondVar::In(2 * options_.resync_period);
      const absl::Status dropped = DropStaleClaims();
      if (!dropped.ok()) spdlog::warn("looking for stale claims: {}", Message(dropped));
    }
    ReturnFreeMemory();
    retry = status.ok() ? kFirstRetry : std::min(2 * retry, kPublishRetryMax);
    wait = !status.ok() ? retry : again_soon ? kAfterRegistration : options_.resync_period;
    lock.Lock();
  }
}

void Plugin::OnRegistration(bool registered, const std::string& error) {
  metrics_.SetRegistered(registered);
  if (!registered) {
    spdlog::error("the kubelet refused the plugin: {}", error);
    if (options_.on_refused) options_.on_refused(error);
    return;
  }
  spdlog::info("registered with the kubelet");
  {
    const MutexLock lock(mutex_);
    publish_now_ = true;
    publish_soon_ = true;
  }
  changed_.NotifyAll();
}

}  // namespace tahoma::dra
