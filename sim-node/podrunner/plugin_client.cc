#include "sim-node/podrunner/plugin_client.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>

#include "dra_v1.grpc.pb.h"
#include "dra_v1beta1.grpc.pb.h"
#include "lib/base/status.h"
#include "pluginregistration.grpc.pb.h"

namespace tahoma::sim {
namespace {

namespace v1 = k8s::io::kubelet::pkg::apis::dra::v1;
namespace v1beta1 = k8s::io::kubelet::pkg::apis::dra::v1beta1;

std::shared_ptr<grpc::Channel> Dial(const std::string& socket) {
  grpc::ChannelArguments arguments;
  // Sockets of one name belong to different plugins over time: never share a connection.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel("unix:" + socket, grpc::InsecureChannelCredentials(), arguments);
}

// A grpc deadline is a point of the system's clock, which only grpc itself may read here.
void SetTimeout(grpc::ClientContext& context, std::chrono::milliseconds timeout) {
  context.set_deadline(gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                                    gpr_time_from_millis(timeout.count(), GPR_TIMESPAN)));
  context.set_wait_for_ready(true);
}

absl::Status StatusOf(const grpc::Status& status, std::string_view call) {
  if (status.ok()) return absl::OkStatus();
  // The numbers of grpc and absl codes are the same (both follow google.rpc.Code).
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()),
                      fmt::format("{}: {}", call, status.error_message()));
}

template <typename Request>
void AddClaim(const ClaimFacts& claim, Request& request) {
  auto* added = request.add_claims();
  added->set_namespace_(claim.name_space);
  added->set_uid(claim.uid);
  added->set_name(claim.name);
}

// Every claim of the request must be in the answer
// (docs/reference/kubernetes-dra.md#prepare-and-unprepare).
template <typename Response>
absl::StatusOr<typename std::decay_t<decltype(Response().claims())>::mapped_type> Entry(
    const Response& response, const ClaimFacts& claim, std::string_view call) {
  const auto found = response.claims().find(claim.uid);
  if (found == response.claims().end()) {
    return Internal("{}: the plugin's answer skips claim {}/{} ({})", call, claim.name_space,
                    claim.name, claim.uid);
  }
  if (!found->second.error().empty()) {
    return FailedPrecondition("{}: claim {}/{}: {}", call, claim.name_space, claim.name,
                              found->second.error());
  }
  return found->second;
}

template <typename Request, typename Response, typename Stub>
absl::StatusOr<std::vector<PreparedDevice>> CallPrepare(Stub& stub, const ClaimFacts& claim,
                                                        std::chrono::milliseconds timeout) {
  constexpr std::string_view kCall = "NodePrepareResources";
  Request request;
  AddClaim(claim, request);
  Response response;
  grpc::ClientContext context;
  SetTimeout(context, timeout);
  const absl::Status called =
      StatusOf(stub.NodePrepareResources(&context, request, &response), kCall);
  TAHOMA_RETURN_IF_ERROR(called);
  const auto entry = Entry(response, claim, kCall);
  if (!entry.ok()) return entry.status();
  std::vector<PreparedDevice> devices;
  for (const auto& device : entry->devices()) {
    PreparedDevice prepared;
    prepared.requests.assign(device.request_names().begin(), device.request_names().end());
    prepared.cdi_ids.assign(device.cdi_device_ids().begin(), device.cdi_device_ids().end());
    devices.push_back(std::move(prepared));
  }
  return devices;
}

template <typename Request, typename Response, typename Stub>
absl::Status CallUnprepare(Stub& stub, const ClaimFacts& claim, std::chrono::milliseconds timeout) {
  constexpr std::string_view kCall = "NodeUnprepareResources";
  Request request;
  AddClaim(claim, request);
  Response response;
  grpc::ClientContext context;
  SetTimeout(context, timeout);
  const absl::Status called =
      StatusOf(stub.NodeUnprepareResources(&context, request, &response), kCall);
  TAHOMA_RETURN_IF_ERROR(called);
  return Entry(response, claim, kCall).status();
}

}  // namespace

absl::StatusOr<PluginFacts> AskPlugin(const std::string& registration_socket,
                                      std::chrono::milliseconds timeout) {
  const auto stub = pluginregistration::Registration::NewStub(Dial(registration_socket));
  grpc::ClientContext context;
  SetTimeout(context, timeout);
  pluginregistration::PluginInfo answer;
  const absl::Status called = StatusOf(stub->GetInfo(&context, {}, &answer), "GetInfo");
  TAHOMA_RETURN_IF_ERROR(called);
  if (answer.type() != "DRAPlugin") {
    return InvalidArgument("plugin type is \"{}\"; expected DRAPlugin", answer.type());
  }
  if (answer.name().empty() || answer.name().size() > 63) {
    return InvalidArgument("driver name \"{}\" must have 1 to 63 characters", answer.name());
  }
  if (answer.endpoint().empty()) return InvalidArgument("plugin {} has no endpoint", answer.name());
  PluginFacts facts{.driver = answer.name(), .endpoint = answer.endpoint()};
  const auto& versions = answer.supported_versions();
  const auto speaks = [&](const char* version) {
    return std::find(versions.begin(), versions.end(), version) != versions.end();
  };
  if (speaks("v1.DRAPlugin")) return facts;
  if (speaks("v1beta1.DRAPlugin")) {
    facts.version = PluginVersion::kV1Beta1;
    return facts;
  }
  return InvalidArgument("plugin {} supports [{}]; expected v1.DRAPlugin or v1beta1.DRAPlugin",
                         answer.name(), fmt::join(versions, ", "));
}

absl::Status NotifyPlugin(const std::string& registration_socket, const std::string& error,
                          std::chrono::milliseconds timeout) {
  const auto stub = pluginregistration::Registration::NewStub(Dial(registration_socket));
  grpc::ClientContext context;
  SetTimeout(context, timeout);
  pluginregistration::RegistrationStatus verdict;
  verdict.set_plugin_registered(error.empty());
  verdict.set_error(error);
  pluginregistration::RegistrationStatusResponse answer;
  return StatusOf(stub->NotifyRegistrationStatus(&context, verdict, &answer),
                  "NotifyRegistrationStatus");
}

class PluginClient::Stubs {
 public:
  explicit Stubs(const std::string& endpoint)
      : channel(Dial(endpoint)),
        current(v1::DRAPlugin::NewStub(channel)),
        beta(v1beta1::DRAPlugin::NewStub(channel)) {}
  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<v1::DRAPlugin::Stub> current;
  std::unique_ptr<v1beta1::DRAPlugin::Stub> beta;
};

PluginClient::PluginClient(const std::string& endpoint, PluginVersion version,
                           std::chrono::milliseconds timeout)
    : stubs_(std::make_unique<Stubs>(endpoint)), version_(version), timeout_(timeout) {}

PluginClient::~PluginClient() = default;

absl::StatusOr<std::vector<PreparedDevice>> PluginClient::Prepare(const ClaimFacts& claim) {
  if (version_ == PluginVersion::kV1) {
    return CallPrepare<v1::NodePrepareResourcesRequest, v1::NodePrepareResourcesResponse>(
        *stubs_->current, claim, timeout_);
  }
  return CallPrepare<v1beta1::NodePrepareResourcesRequest, v1beta1::NodePrepareResourcesResponse>(
      *stubs_->beta, claim, timeout_);
}

absl::Status PluginClient::Unprepare(const ClaimFacts& claim) {
  if (version_ == PluginVersion::kV1) {
    return CallUnprepare<v1::NodeUnprepareResourcesRequest, v1::NodeUnprepareResourcesResponse>(
        *stubs_->current, claim, timeout_);
  }
  return CallUnprepare<v1beta1::NodeUnprepareResourcesRequest,
                       v1beta1::NodeUnprepareResourcesResponse>(*stubs_->beta, claim, timeout_);
}

}  // namespace tahoma::sim
