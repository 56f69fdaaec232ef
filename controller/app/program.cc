#include "controller/app/program.h"

#include <absl/cleanup/cleanup.h>
#include <spdlog/spdlog.h>

#include <csignal>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "controller/access/callers.h"
#include "controller/admin/admin_access.h"
#include "controller/admin/admin_api.h"
#include "controller/admin/request_body.h"
#include "controller/app/ending.h"
#include "controller/app/metrics.h"
#include "controller/app/offering_key.h"
#include "controller/app/standalone.h"
#include "controller/backup/backup_command.h"
#include "controller/ec2/ec2_front.h"
#include "controller/run/ahead_log.h"
#include "controller/run/cluster_loop.h"
#include "controller/run/core_loop.h"
#include "controller/run/identity.h"
#include "controller/run/leader_label.h"
#include "controller/run/leadership.h"
#include "controller/run/test_clock.h"
#include "controller/store/rocks_journal.h"
#include "controller/store/store.h"
#include "lib/base/clock.h"
#include "lib/base/environment.h"
#include "lib/base/files.h"
#include "lib/base/guarded_clock.h"
#include "lib/base/loopback.h"
#include "lib/base/status.h"
#include "lib/config/log.h"
#include "lib/kube/http_transport.h"
#include "lib/kube/kubeconfig.h"
#include "lib/rest/metrics.h"
#include "lib/rest/probes.h"
#include "lib/rest/process_metrics.h"
#include "lib/rest/server.h"

namespace tahoma::controller {
namespace {

// Each thread has at most one request at the API server.
constexpr int kClusterPublishers = 32;
// A caller of the admin API waits for two reviews, and so may the end of this program: less than
// kEndingMost.
constexpr kube::HttpLimits kReviewLimits{.connect_timeout = std::chrono::seconds(2),
                                         .request_timeout = std::chrono::seconds(2)};
// A change by the admin API is at most some requests, one after the other.
constexpr kube::HttpLimits kChangeLimits{.connect_timeout = std::chrono::seconds(2),
                                         .request_timeout = std::chrono::seconds(5)};

void Log(const std::string& line) { spdlog::info("{}", line); }
void Warn(const std::string& line) { spdlog::warn("{}", line); }

// Whether SIGTERM or SIGINT has come, waiting for it a little.
bool Ended() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  const timespec poll{.tv_sec = 0, .tv_nsec = 200'000'000};
  const int signal = sigtimedwait(&signals, nullptr, &poll);
  if (signal != SIGTERM && signal != SIGINT) return false;
  EndWithin(kEndingMost);
  Log(fmt::format("ending: {}", signal == SIGTERM ? "SIGTERM" : "SIGINT"));
  return true;
}

// Returns the store's health, or OK if the store may still recover by itself.
absl::Status Lasting(const absl::Status& store) {
  return absl::IsUnavailable(store) ? absl::OkStatus() : store;
}

// Waits until a signal comes or the loop or the store fails for good.
absl::Status WaitForEnd(CoreLoop& loop, const Store& store, const Clock& clock) {
  AheadLog ahead(Warn);
  while (!Ended()) {
    ahead.Look(*loop.snapshot(), clock.WallNow());
    TAHOMA_RETURN_IF_ERROR(loop.health());
    TAHOMA_RETURN_IF_ERROR(Lasting(store.health()));
  }
  return absl::OkStatus();
}

// The named checks of /livez and /readyz. A restart helps where something hangs or the store cannot
// come back; a disk without room it does not mend.
template <typename Loop>
void AddChecks(rest::Probes& probes, const Loop& loop, const Store& store) {
  using Kind = rest::Probes::Kind;
  probes.Add(Kind::kReadyz, "store",
             [&store] { return std::string(store.health().ok() ? "" : "no commit succeeds"); });
  probes.Add(Kind::kLivez, "store", [&store] {
    return std::string(Lasting(store.health()).ok() ? "" : "it cannot come back");
  });
  for (const Kind kind : {Kind::kLivez, Kind::kReadyz}) {
    probes.Add(kind, "core", [&loop] { return loop.CoreTrouble(); });
    probes.Add(kind, "publishers", [&loop] { return loop.PublisherTrouble(); });
  }
}

// Returns why the Capacity Block's object may not be deleted, "" when it may; nullopt before the
// blocks are known.
std::optional<std::string> WhyKept(const Snapshot& now, const BlockKey& key) {
  if (!now.synced) return std::nullopt;
  const auto* view = now.blocks.Find(key);
  const Block* block = view == nullptr ? nullptr : (*view)->block.get();
  if (block == nullptr || !HoldsCapacity(block->state)) return "";
  return WhyNotCancelled(StateName(block->state), FormatTime(block->end));
}

template <typename Server>
struct StopAtEnd {
  Server& server;
  ~StopAtEnd() { server.Stop(); }
};

absl::Status WritePorts(const Options& options, const std::string& text) {
  if (options.port_file.empty()) return absl::OkStatus();
  return WriteAtomically(options.port_file, text, 0600);
}

absl::Status WriteFiles(const Options& options, const StandaloneApi& api,
                        const rest::Server& admin) {
  if (!options.write_kubeconfig.empty()) {
    KubeconfigParts parts{.url = api.url(),
                          .ca_file = options.tls_cert_file,
                          .token_file = options.token_file,
                          .admin_url = admin.url()};
    if (!options.token_file.empty()) {
      TAHOMA_ASSIGN_OR_RETURN(parts.token,
                              ReadTokenFile(options.token_file, [](const std::string&) {}));
    }
    TAHOMA_RETURN_IF_ERROR(WriteAtomically(options.write_kubeconfig, KubeconfigText(parts), 0600));
  }
  return WritePorts(options, fmt::format("listenAddress: {}\nadminAddress: {}\n", api.address(),
                                         admin.address()));
}

rest::ServerOptions AdminOptions(const Options& options, std::shared_ptr<rest::Probes> probes) {
  rest::ServerOptions server;
  server.probes = std::move(probes);
  server.address = options.admin_address;
  server.tls.cert_file = options.tls_cert_file;
  server.tls.key_file = options.tls_key_file;
  server.tls.client_ca_file = options.client_ca_file;
  server.max_body_bytes = kAdminBodyBytesMost;
  // Requests that have come in part, and as much of answers that wait for their readers.
  server.max_buffered_bytes = kAdminBufferedBytesMost;
  server.max_buffered_bytes_per_client = kAdminBufferedBytesMost / 4 * 3;
  server.max_threads = 64;
  server.reserved_threads = 8;
  server.stop_grace = std::chrono::seconds(2);
  server.allowed_hosts = options.allowed_hosts;
  server.log = Warn;
  return server;
}

template <typename Loop>
std::unique_ptr<Ec2Front> MakeEc2(Loop& loop, kube::Transport& objects, Callers& callers,
                                  const Clock& clock, const Clock& block_clock) {
  return std::make_unique<Ec2Front>(
      [&loop] { return loop.snapshot(); },
      [&loop](auto order) { return loop.Order(std::move(order)); }, objects,
      ec2::Ec2Options{.keys = callers.access_keys(), .audit = callers.audit(), .log = Warn}, clock,
      block_clock);
}

template <typename Loop>
AdminApi AdminOf(Loop& loop, kube::Transport& objects, const Clock& clock,
                 const BlockTime& block_time) {
  return AdminApi({.snapshot = [&loop] { return loop.snapshot(); },
                   .order = [&loop](auto order) { return loop.Order(std::move(order)); },
                   .objects = objects,
                   .block_time = block_time},
                  clock);
}

absl::Status RunStandalone(const Options& options, Callers& callers, rest::Metrics& metrics) {
  const SystemClock machine;
  const GuardedClock clock(machine, Warn);
  apiserver::HttpFrontOptions front;
  front.access = callers.access();
  front.audit = callers.audit();
  front.log = Warn;
  TAHOMA_ASSIGN_OR_RETURN(
      const auto api,
      StandaloneApi::Open(options, std::move(front), clock, metrics, Warn, TellEvictions(metrics)));
  const BlockTime& block_time = api->block_time();
  if (block_time.test()) Warn(TestClockLine(block_time, clock.WallNow()));
  const BlockClock block_clock(clock, block_time);
  CoreLoopOptions loop_options = StandaloneApi::LoopOptions();
  TAHOMA_ASSIGN_OR_RETURN(loop_options.core.blocks, BookOptionsOf(options.blocks));
  TAHOMA_ASSIGN_OR_RETURN(loop_options.core.blocks.offering_key, OfferingKeyOf(api->store()));
  loop_options.core.block_time = block_time;
  loop_options.scheduler_names = SchedulerNames(options);
  loop_options.log = Warn;
  TellDecisions(metrics, loop_options);
  CoreLoop loop(api->transport(), api->journal(), clock, std::move(loop_options));
  AddMetrics(metrics, clock, [&loop] { return loop.snapshot(); });
  AddStoreMetrics(metrics, api->store());
  AddLeaderMetric(metrics).Set(1);
  AdminApi admin = AdminOf(loop, api->transport(), clock, block_time);
  const auto ec2 = MakeEc2(loop, api->transport(), callers, clock, block_clock);
  admin.routes().Add(BackupRoute(api->store()));
  AdminAccess admin_access(callers.access(), callers.audit(), clock, SeedFromMachine(),
                           admin.routes());
  const std::shared_ptr<rest::Probes>& probes = api->server().probes();
  rest::Server server(AdminOptions(options, probes), metrics);
  ec2->AddTo(server, [&](rest::Request& head) { return admin_access.Admit(head); });
  admin.AddTo(server, admin_access);
  AddChecks(*probes, loop, api->store());
  api->server().deletion_guard().Set([&loop](const std::string& ns, const std::string& name) {
    return WhyKept(*loop.snapshot(), {ns, name});
  });
  const absl::Cleanup unguard = [&api] { api->server().deletion_guard().Set(nullptr); };
  // The API's probes ask the loop, which ends before the API does.
  const StopAtEnd<apiserver::HttpFront> stop_front{api->front()};
  TAHOMA_RETURN_IF_ERROR(Annotate(server.Start(), "adminAddress"));
  TAHOMA_RETURN_IF_ERROR(loop.Start());
  TAHOMA_RETURN_IF_ERROR(WriteFiles(options, *api, server));
  Log(fmt::format("serving the Kubernetes API at {}, the admin API at {}, data in {}", api->url(),
                  server.url(), options.data_dir));
  const absl::Status status = WaitForEnd(loop, api->store(), clock);
  EndWithin(kEndingMost);
  server.Stop();
  api->EndStreams();
  loop.Stop();
  return status;
}

absl::StatusOr<kube::ServerAccess> AccessOf(const Options& options) {
  return kube::FindAccess(
      options.kubeconfig.empty() ? FromEnvironment("KUBECONFIG") : options.kubeconfig,
      FromEnvironment);
}

absl::StatusOr<std::unique_ptr<Store>> OpenClusterStore(const Options& options,
                                                        const Clock& clock) {
  TAHOMA_ASSIGN_OR_RETURN(auto store, Store::Open({.dir = options.data_dir, .log = Warn}));
  // A test's store is no cluster's.
  TAHOMA_RETURN_IF_ERROR(
      BlockTimeOf(*store, options.data_dir, options.time_scale, clock.WallNow()).status());
  return store;
}

absl::StatusOr<CoreLoopOptions> ClusterLoopOptions(const Options& options) {
  CoreLoopOptions loop{.publisher = {.threads = kClusterPublishers},
                       .scheduler_names = SchedulerNames(options),
                       .log = Warn};
  TAHOMA_ASSIGN_OR_RETURN(loop.core.blocks, BookOptionsOf(options.blocks));
  return loop;
}

// Returns whether we lead; false when the program ends before.
bool StandBy(Leadership& leadership, LeaderLabel& label) {
  Log("standing by for the lease");
  while (!leadership.Wait(std::chrono::milliseconds(200))) {
    label.Tend(false);
    if (Ended()) return false;
  }
  return true;
}

// Leads until a signal comes, or somebody else had better.
absl::Status Lead(ClusterLoop& loop, const Store& store, const Leadership& leadership,
                  LeaderLabel& label, const Clock& clock) {
  AheadLog ahead(Warn);
  absl::Status status;
  while (status.ok() && !Ended()) {
    ahead.Look(*loop.snapshot(), clock.WallNow());
    label.Tend(leadership.leading());
    status = loop.Tend();
    // Another controller, on another disk, does better than one that waits for its own.
    if (status.ok()) status = store.health();
    // Another controller may act from now on: nothing more may be written by this one.
    if (status.ok() && leadership.lost()) status = Aborted("the leader lease was lost");
  }
  return status;
}

absl::Status RunCluster(const Options& options, Callers& callers, rest::Metrics& metrics) {
  const SystemClock machine;
  const GuardedClock clock(machine, Warn);
  TAHOMA_ASSIGN_OR_RETURN(kube::ServerAccess access, AccessOf(options));
  const std::string ns = access.default_namespace;
  // The lease has a transport of its own: it is renewed beside any number of other requests, and
  // given up after they have ended.
  TAHOMA_ASSIGN_OR_RETURN(const auto lease_transport,
                          kube::HttpTransport::Create(access, {}, Warn));
  TAHOMA_ASSIGN_OR_RETURN(const auto review_transport,
                          kube::HttpTransport::Create(access, kReviewLimits));
  TAHOMA_ASSIGN_OR_RETURN(const auto objects_transport,
                          kube::HttpTransport::Create(access, kChangeLimits));
  TAHOMA_ASSIGN_OR_RETURN(const auto store, OpenClusterStore(options, clock));
  RocksJournal journal(*store);
  std::unique_ptr<Leadership> leadership;
  TAHOMA_ASSIGN_OR_RETURN(CoreLoopOptions loop_options, ClusterLoopOptions(options));
  TAHOMA_ASSIGN_OR_RETURN(loop_options.core.blocks.offering_key, OfferingKeyOf(*store));
  loop_options.own_namespace = ns;
  loop_options.publisher.may_send = [&leadership] { return leadership->leading(); };
  loop_options.term = [&leadership] { return leadership->term(); };
  TellDecisions(metrics, loop_options);
  ClusterLoop loop(std::move(access), journal, clock, std::move(loop_options));
  AddMetrics(metrics, clock, [&loop] { return loop.snapshot(); });
  AddStoreMetrics(metrics, *store);
  rest::Gauge& leads = AddLeaderMetric(metrics);
  AdminApi admin = AdminOf(loop, *objects_transport, clock, BlockTime());
  const auto ec2 = MakeEc2(loop, *objects_transport, callers, clock, clock);
  std::optional<ClusterAccess> cluster;
  if (options.admin_asks_cluster) cluster.emplace(*review_transport, clock);
  AdminAccess admin_access(callers.access(), callers.audit(), clock, SeedFromMachine(),
                           admin.routes(), cluster ? &*cluster : nullptr);
  const auto probes = std::make_shared<rest::Probes>();
  rest::Server server(AdminOptions(options, probes), metrics);
  ec2->AddTo(server, [&](rest::Request& head) { return admin_access.Admit(head); });
  admin.AddTo(server, admin_access);
  AddChecks(*probes, loop, *store);
  server.SetReady("standing by");
  TAHOMA_RETURN_IF_ERROR(Annotate(server.Start(), "adminAddress"));
  Log(fmt::format("serving the admin API at {}, data in {}", server.url(), options.data_dir));
  TAHOMA_RETURN_IF_ERROR(WritePorts(options, fmt::format("adminAddress: {}\n", server.address())));
  leadership = std::make_unique<Leadership>(
      *lease_transport, clock,
      kube::LeaderElectionOptions{
          .ns = ns, .name = "tahoma-controller", .identity = LeaseIdentity(options.data_dir)},
      Log, [&loop] { loop.LoseHistory("the lease is older than this controller wrote it"); });
  // Writing stops before the lease is given up. The thread that renews it may still call the loop,
  // so the loop is destroyed last.
  const absl::Cleanup end = [&] {
    loop.Stop();
    leadership.reset();
  };
  LeaderLabel label(*objects_transport, clock, {ns, options.pod_name}, Warn);
  if (!StandBy(*leadership, label)) return absl::OkStatus();
  TAHOMA_RETURN_IF_ERROR(loop.Start());
  server.SetReady("");
  leads.Set(1);
  const absl::Status status = Lead(loop, *store, *leadership, label, clock);
  leads.Set(0);
  EndWithin(kEndingMost);
  label.Tend(false);
  // The server waits for its callers: an order that is in vain would outlast its patience.
  if (!status.ok()) loop.EndOrders();
  server.Stop();
  return status;
}

}  // namespace

absl::Status RunProgram(const Options& options) {
  config::StartLog("controller", options.log);
  rest::Metrics metrics;
  rest::AddProcessMetrics(metrics, "controller");
  TAHOMA_ASSIGN_OR_RETURN(const auto callers, Callers::Open(CallerFilesOf(options), metrics, Log));
  if (callers->open() && !options.admin_asks_cluster && !IsLoopback(options.admin_address)) {
    return PermissionDenied(
        "adminAddress {} can be reached from outside: give a tokenFile or an identityFile, or a "
        "loopback address",
        options.admin_address);
  }
  // This check runs before anything is written.
  TAHOMA_RETURN_IF_ERROR(
      Annotate(rest::Server::Check(AdminOptions(options, nullptr)), "adminAddress"));
  callers->Start();
  return options.standalone ? RunStandalone(options, *callers, metrics)
                            : RunCluster(options, *callers, metrics);
}

}  // namespace tahoma::controller
