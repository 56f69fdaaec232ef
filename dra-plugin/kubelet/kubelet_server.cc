#include "dra-plugin/kubelet/kubelet_server.h"

#include <grpc/support/time.h>
#include <grpcpp/grpcpp.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "dra-plugin/claims/cdi.h"
#include "dra-plugin/claims/claims.h"
#include "dra-plugin/kubelet/call_queue.h"
#include "dra-plugin/kubelet/socket_names.h"
#include "dra_health_v1.grpc.pb.h"
#include "dra_health_v1alpha1.grpc.pb.h"
#include "dra_v1.grpc.pb.h"
#include "dra_v1beta1.grpc.pb.h"
#include "lib/base/status.h"
#include "lib/base/utf8.h"
#include "lib/wire/socket.h"
#include "pluginregistration.grpc.pb.h"

namespace tahoma::dra {
namespace {

namespace dra_v1 = k8s::io::kubelet::pkg::apis::dra::v1;
namespace dra_v1beta1 = k8s::io::kubelet::pkg::apis::dra::v1beta1;

constexpr std::size_t kMaxHealthMessage = 1024;  // dra-health v1 api.proto
constexpr std::size_t kMaxError = 4096;          // an event shows 1,024 bytes
constexpr std::int64_t kHealthTimeoutSeconds = 30;
// Two streams and the calls of as many pods as start and end at the same time, most of them waiting
// for each other.
constexpr int kMaxThreads = 64;
constexpr int kPollMs = 3'600'000;
constexpr std::int64_t kStopGraceSeconds = 5;
// A request names the claims of one pod, with some hundred bytes each.
constexpr int kMaxRequestBytes = 1 << 20;

// Returns a text that protobuf accepts. The kubelet would drop a whole answer with a byte that is
// not UTF-8, such as from a proxy's error page.
std::string Utf8(std::string_view text, std::size_t bytes_most) {
  if (IsUtf8(text)) return std::string(CutUtf8(text, bytes_most));
  std::string out(text.substr(0, bytes_most));
  for (char& c : out) {
    if (static_cast<unsigned char>(c) >= 0x80) c = '?';
  }
  return out;
}

// The answers of both versions of the driver's service; the kubelet's messages differ in name only.
class DriverAnswers {
 public:
  DriverAnswers(DriverCalls& driver, CallLock& lock, const KubeletOptions& options,
                const Clock& clock)
      : driver_(driver), options_(options), clock_(clock), queue_(lock) {}

  template <typename Request, typename Response>
  grpc::Status Prepare(const Request& request, Response& response) {
    const Waiting waiting(options_.on_requests);
    const Times times(options_);
    for (const auto& claim : request.claims()) {
      const MonotonicTime begin = clock_.MonotonicNow();
      auto& answer = (*response.mutable_claims())[claim.uid()];
      const absl::StatusOr<std::vector<PreparedDevice>> devices = PrepareOne(RefOf(claim), times);
      if (!devices.ok()) {
        answer.set_error(Text("prepare", RefOf(claim), devices.status(), begin));
        continue;
      }
      for (const PreparedDevice& device : *devices) {
        auto& out = *answer.add_devices();
        out.add_request_names(device.request);
        out.set_pool_name(device.pool);
        out.set_device_name(device.device);
        out.add_cdi_device_ids(CdiDeviceId(options_.driver, claim.uid(), device.device));
      }
    }
    return grpc::Status::OK;
  }

  template <typename Request, typename Response>
  grpc::Status Unprepare(const Request& request, Response& response) {
    const Waiting waiting(options_.on_requests);
    const Times times(options_);
    for (const auto& claim : request.claims()) {
      const MonotonicTime begin = clock_.MonotonicNow();
      auto& answer = (*response.mutable_claims())[claim.uid()];
      const ClaimRef ref = RefOf(claim);
      const absl::Status status = Patiently([this, ref] { return driver_.Unprepare(ref); }, times);
      if (!status.ok()) answer.set_error(Text("unprepare", ref, status, begin));
    }
    return grpc::Status::OK;
  }

  // No call is made again from now on.
  void Hurry() { queue_.EndPauses(); }

 private:
  // A request without an answer yet.
  class Waiting {
   public:
    explicit Waiting(const std::function<void(int)>& tell) : tell_(tell) {
      if (tell_) tell_(1);
    }
    ~Waiting() {
      if (tell_) tell_(-1);
    }
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;

   private:
    const std::function<void(int)>& tell_;
  };

  // The deadlines of a request, for all its claims.
  struct Times {
    explicit Times(const KubeletOptions& options)
        : answer_by(CondVar::In(options.answer_within)),
          repeat_until(std::min(answer_by, CondVar::In(options.repeat_for))) {}
    CondVar::Deadline answer_by;
    CondVar::Deadline repeat_until;
  };

  template <typename Claim>
  static ClaimRef RefOf(const Claim& claim) {
    return {.name_space = claim.namespace_(), .name = claim.name(), .uid = claim.uid()};
  }

  absl::StatusOr<std::vector<PreparedDevice>> PrepareOne(const ClaimRef& claim,
                                                         const Times& times) {
    // A call beyond its deadline still writes its result.
    const auto devices = std::make_shared<std::vector<PreparedDevice>>();
    const auto prepare = [this, claim, devices]() -> absl::Status {
      TAHOMA_ASSIGN_OR_RETURN(*devices, driver_.Prepare(claim));
      return absl::OkStatus();
    };
    TAHOMA_RETURN_IF_ERROR(Patiently(prepare, times));
    return *devices;
  }

  // Repeats the call while something is away: a restarting sim-node, an API server that changes its
  // leader. A failure would make the kubelet's pod late by a minute and more.
  absl::Status Patiently(const CallQueue::Call& call, const Times& times) {
    for (std::chrono::milliseconds pause = options_.first_repeat;; pause *= 2) {
      const absl::Status status = queue_.Run(call, times.answer_by);
      const CondVar::Deadline again = CondVar::In(pause);
      if (!IsAway(status) || again > times.repeat_until || !queue_.Pause(again)) return status;
    }
  }

  std::string Text(std::string_view what, const ClaimRef& claim, const absl::Status& status,
                   MonotonicTime begin) const {
    const std::string who = claim.ToString();
    const std::string_view reason = Message(status);  // most begin with the claim
    spdlog::warn("cannot {} {}{} ({:.1f} ms)", what,
                 reason.starts_with(who) ? "" : fmt::format("{}: ", who), reason,
                 std::chrono::duration<double, std::milli>(clock_.MonotonicNow() - begin).count());
    return Utf8(Message(status), kMaxError);
  }

  DriverCalls& driver_;
  const KubeletOptions& options_;
  const Clock& clock_;
  CallQueue queue_;
};

class DriverV1 final : public dra_v1::DRAPlugin::Service {
 public:
  explicit DriverV1(DriverAnswers& answers) : answers_(answers) {}
  grpc::Status NodePrepareResources(grpc::ServerContext*,
                                    const dra_v1::NodePrepareResourcesRequest* request,
                                    dra_v1::NodePrepareResourcesResponse* response) override {
    return answers_.Prepare(*request, *response);
  }
  grpc::Status NodeUnprepareResources(grpc::ServerContext*,
                                      const dra_v1::NodeUnprepareResourcesRequest* request,
                                      dra_v1::NodeUnprepareResourcesResponse* response) override {
    return answers_.Unprepare(*request, *response);
  }

 private:
  DriverAnswers& answers_;
};

class DriverV1beta1 final : public dra_v1beta1::DRAPlugin::Service {
 public:
  explicit DriverV1beta1(DriverAnswers& answers) : answers_(answers) {}
  grpc::Status NodePrepareResources(grpc::ServerContext*,
                                    const dra_v1beta1::NodePrepareResourcesRequest* request,
                                    dra_v1beta1::NodePrepareResourcesResponse* response) override {
    return answers_.Prepare(*request, *response);
  }
  grpc::Status NodeUnprepareResources(
      grpc::ServerContext*, const dra_v1beta1::NodeUnprepareResourcesRequest* request,
      dra_v1beta1::NodeUnprepareResourcesResponse* response) override {
    return answers_.Unprepare(*request, *response);
  }

 private:
  DriverAnswers& answers_;
};

// Both versions of the health stream.
class HealthAnswers {
 public:
  HealthAnswers(HealthBoard& board, std::chrono::milliseconds period, const Clock& clock)
      : board_(board), period_(period), clock_(clock) {}

  template <typename Response, typename Status>
  grpc::Status Stream(grpc::ServerContext& context, grpc::ServerWriter<Response>& writer,
                      Status healthy, Status unhealthy) {
    std::uint64_t seen = UINT64_MAX;
    while (!context.IsCancelled()) {
      const std::optional<HealthBoard::Snapshot> now = board_.Wait(seen, period_);
      if (!now.has_value()) break;
      seen = now->version;
      Response response;
      const std::int64_t seconds =
          std::chrono::duration_cast<std::chrono::seconds>(clock_.WallNow().time_since_epoch())
              .count();
      for (const DeviceHealth& device : *now->devices) {
        auto& out = *response.add_devices();
        out.mutable_device()->set_pool_name(device.pool);
        out.mutable_device()->set_device_name(device.device);
        out.set_health(device.healthy ? healthy : unhealthy);
        out.set_last_updated_time(seconds);
        out.set_health_check_timeout_seconds(kHealthTimeoutSeconds);
        out.set_message(Utf8(device.message, kMaxHealthMessage));
      }
      if (!writer.Write(response)) break;
    }
    return grpc::Status::OK;
  }

 private:
  HealthBoard& board_;
  const std::chrono::milliseconds period_;
  const Clock& clock_;
};

class HealthV1 final : public v1::DRAResourceHealth::Service {
 public:
  explicit HealthV1(HealthAnswers& answers) : answers_(answers) {}
  grpc::Status NodeWatchResources(
      grpc::ServerContext* context, const v1::NodeWatchResourcesRequest*,
      grpc::ServerWriter<v1::NodeWatchResourcesResponse>* writer) override {
    return answers_.Stream(*context, *writer, v1::HEALTHY, v1::UNHEALTHY);
  }

 private:
  HealthAnswers& answers_;
};

class HealthV1alpha1 final : public v1alpha1::DRAResourceHealth::Service {
 public:
  explicit HealthV1alpha1(HealthAnswers& answers) : answers_(answers) {}
  grpc::Status NodeWatchResources(
      grpc::ServerContext* context, const v1alpha1::NodeWatchResourcesRequest*,
      grpc::ServerWriter<v1alpha1::NodeWatchResourcesResponse>* writer) override {
    return answers_.Stream(*context, *writer, v1alpha1::HEALTHY, v1alpha1::UNHEALTHY);
  }

 private:
  HealthAnswers& answers_;
};

class RegistrationService final : public pluginregistration::Registration::Service {
 public:
  RegistrationService(const KubeletOptions& options, std::string endpoint)
      : options_(options), endpoint_(std::move(endpoint)) {}

  grpc::Status GetInfo(grpc::ServerContext*, const pluginregistration::InfoRequest*,
                       pluginregistration::PluginInfo* info) override {
    info->set_type("DRAPlugin");
    info->set_name(options_.driver);
    info->set_endpoint(endpoint_);
    for (const char* version : {"v1.DRAPlugin", "v1beta1.DRAPlugin", "v1.DRAResourceHealth",
                                "v1alpha1.DRAResourceHealth"}) {
      info->add_supported_versions(version);
    }
    return grpc::Status::OK;
  }

  grpc::Status NotifyRegistrationStatus(grpc::ServerContext*,
                                        const pluginregistration::RegistrationStatus* status,
                                        pluginregistration::RegistrationStatusResponse*) override {
    if (options_.on_registration) {
      options_.on_registration(status->plugin_registered(), status->error());
    }
    return grpc::Status::OK;
  }

 private:
  const KubeletOptions& options_;
  const std::string endpoint_;
};

// Removes a socket that a dead plugin left.
absl::Status MakeRoom(const std::string& path) {
  struct stat found = {};
  if (lstat(path.c_str(), &found) != 0) return absl::OkStatus();
  if (!S_ISSOCK(found.st_mode)) {
    return FailedPrecondition("{}: the file exists and is no socket; remove it", path);
  }
  if (wire::Connection::Dial(path, std::chrono::seconds(1)).ok()) {
    return AlreadyExists("{}: another plugin is serving there", path);
  }
  unlink(path.c_str());
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<grpc::Server>> Serve(const std::string& path,
                                                    const std::vector<grpc::Service*>& services) {
  TAHOMA_RETURN_IF_ERROR(MakeRoom(path));
  grpc::ServerBuilder builder;
  grpc::ResourceQuota quota("kubelet");
  quota.SetMaxThreads(kMaxThreads);
  builder.SetResourceQuota(quota);
  builder.SetMaxReceiveMessageSize(kMaxRequestBytes);
  builder.SetSyncServerOption(grpc::ServerBuilder::NUM_CQS, 1);
  builder.SetSyncServerOption(grpc::ServerBuilder::MIN_POLLERS, 1);
  builder.SetSyncServerOption(grpc::ServerBuilder::MAX_POLLERS, 1);
  // The only poller need not check again and again for other pollers.
  builder.SetSyncServerOption(grpc::ServerBuilder::CQ_TIMEOUT_MSEC, kPollMs);
  builder.AddListeningPort("unix:" + path, grpc::InsecureServerCredentials());
  for (grpc::Service* service : services) builder.RegisterService(service);
  std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr) return Unavailable("{}: cannot listen on the socket", path);
  // Every caller is taken for the kubelet, so no other user may call: until the mode is set, the
  // umask and the folders keep other users out.
  if (chmod(path.c_str(), 0600) != 0) {
    return Unavailable("{}: the socket cannot be closed to other users", path);
  }
  return server;
}

class GrpcKubeletServer final : public KubeletServer {
 public:
  GrpcKubeletServer(KubeletOptions options, DriverCalls& driver, CallLock& lock, HealthBoard& board,
                    const Clock& clock)
      : options_(std::move(options)),
        board_(board),
        answers_(driver, lock, options_, clock),
        health_answers_(board, options_.health_period, clock) {}
  ~GrpcKubeletServer() override { Stop(); }

  absl::Status Listen() {
    TAHOMA_RETURN_IF_ERROR(MakeFolders());
    TAHOMA_ASSIGN_OR_RETURN(driver_socket_, DriverSocket(options_.data_dir, options_.pod_uid));
    TAHOMA_ASSIGN_OR_RETURN(
        registration_socket_,
        RegistrationSocket(options_.registry_dir, options_.driver, options_.pod_uid));
    registration_ = std::make_unique<RegistrationService>(options_, driver_socket_);
    // The kubelet dials the driver as soon as it finds the registration.
    TAHOMA_ASSIGN_OR_RETURN(
        driver_server_,
        Serve(driver_socket_, {&driver_v1_, &driver_v1beta1_, &health_v1_, &health_v1alpha1_}));
    TAHOMA_ASSIGN_OR_RETURN(registration_server_,
                            Serve(registration_socket_, {registration_.get()}));
    return absl::OkStatus();
  }

  void Stop() override {
    board_.Close();
    answers_.Hurry();
    const gpr_timespec deadline = gpr_time_add(
        gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_seconds(kStopGraceSeconds, GPR_TIMESPAN));
    for (auto* server : {registration_server_.get(), driver_server_.get()}) {
      if (server == nullptr) continue;
      server->Shutdown(deadline);
      server->Wait();
    }
    registration_server_.reset();
    driver_server_.reset();
  }

  const std::string& registration_socket() const override { return registration_socket_; }
  const std::string& driver_socket() const override { return driver_socket_; }

 private:
  absl::Status MakeFolders() const {
    for (const std::string& folder : {options_.data_dir, options_.registry_dir}) {
      std::error_code error;
      std::filesystem::create_directories(folder, error);
      if (error) {
        return FailedPrecondition("{}: cannot make the folder: {}", folder, error.message());
      }
    }
    return absl::OkStatus();
  }

  const KubeletOptions options_;
  HealthBoard& board_;
  DriverAnswers answers_;
  HealthAnswers health_answers_;
  DriverV1 driver_v1_{answers_};
  DriverV1beta1 driver_v1beta1_{answers_};
  HealthV1 health_v1_{health_answers_};
  HealthV1alpha1 health_v1alpha1_{health_answers_};
  std::unique_ptr<RegistrationService> registration_;
  std::string driver_socket_;
  std::string registration_socket_;
  std::unique_ptr<grpc::Server> driver_server_;
  std::unique_ptr<grpc::Server> registration_server_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<KubeletServer>> KubeletServer::Start(KubeletOptions options,
                                                                    DriverCalls& driver,
                                                                    CallLock& lock,
                                                                    HealthBoard& board,
                                                                    const Clock& clock) {
  auto server = std::make_unique<GrpcKubeletServer>(std::move(options), driver, lock, board, clock);
  TAHOMA_RETURN_IF_ERROR(server->Listen());
  return std::unique_ptr<KubeletServer>(std::move(server));
}

}  // namespace tahoma::dra
