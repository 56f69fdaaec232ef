// The kubelet's gRPC requests, as bytes on the plugin's own sockets. Whatever comes, the plugin
// answers or refuses, every claim of a request has its answer, in UTF-8 and bounded, and what is
// prepared at the end can be unprepared: no core is held by two claims or for ever.
//
// The input is a list of requests: a byte for the method, two for the length, and the message.

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <stdlib.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "dra-plugin/claims/claims.h"
#include "dra-plugin/kubelet/kubelet_server.h"
#include "dra-plugin/slices/claim_source.h"
#include "dra_v1.pb.h"
#include "dra_v1beta1.pb.h"
#include "lib/base/check.h"
#include "lib/base/json.h"
#include "lib/base/mutex.h"
#include "lib/base/status.h"
#include "lib/kube/url.h"
#include "pluginregistration.pb.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/unit/dra-plugin/claims/fakes.h"

// libFuzzer looks for leaks after an input while gRPC's server goes on: a worker thread that is
// about to begin is then known to itself alone.
// NOLINTNEXTLINE: the name that LeakSanitizer calls
extern "C" const char* __lsan_default_suppressions();
// NOLINTNEXTLINE
const char* __lsan_default_suppressions() { return "leak:grpc::ThreadManager::MainWorkLoop\n"; }

namespace {

using namespace tahoma;
using namespace tahoma::dra;

namespace v1 = k8s::io::kubelet::pkg::apis::dra::v1;
namespace v1beta1 = k8s::io::kubelet::pkg::apis::dra::v1beta1;

constexpr std::size_t kRequestsMost = 16;
constexpr std::size_t kErrorBytesMost = 4096;

// Has a claim of every name: "a" has uid "uid-a" and the chip that the name's bytes add up to.
class Api final : public kube::Transport {
 public:
  absl::StatusOr<kube::Response> Send(const kube::Request& request) override {
    const auto target = kube::ParseTarget(request.target);
    TAHOMA_CHECK_OK(target.status());
    const auto path = kube::SplitPath(target->path);
    TAHOMA_CHECK_OK(path.status());  // no name leads anywhere else
    TAHOMA_CHECK(path->size() == 7 && path->at(5) == "resourceclaims");
    const std::string& name = path->at(6);
    int chip = 0;
    for (const char c : name) chip = (chip + static_cast<unsigned char>(c)) % 16;
    const Json claim = ClaimObject(name, "uid-" + name, {fmt::format("neuron-device-{}", chip)});
    return kube::Response{.status = 200, .headers = {}, .body = claim.dump()};
  }
  absl::StatusOr<kube::Response> Stream(const kube::Request&, const kube::LineSink&,
                                        std::chrono::milliseconds) override {
    return Unavailable("no watches here");
  }
};

// The lock is for ThreadSanitizer: it does not see that an answer over gRPC comes after its call.
class Driver final : public DriverCalls {
 public:
  Driver() { node_.inventory = TestInventory(); }
  absl::StatusOr<std::vector<PreparedDevice>> Prepare(const ClaimRef& claim) override {
    const MutexLock lock(mutex_);
    return claims_.Prepare(claim);
  }
  absl::Status Unprepare(const ClaimRef& claim) override {
    const MutexLock lock(mutex_);
    return claims_.Unprepare(claim);
  }

  // Checks that the node holds exactly the prepared claims, each with its file; then clears all.
  void CheckAndClear() {
    const MutexLock lock(mutex_);
    const auto checkpoint = claims_.Load();
    TAHOMA_CHECK_OK(checkpoint.status());
    TAHOMA_CHECK(node_.held.size() == checkpoint->claims.size());
    TAHOMA_CHECK(cdi_.files.size() == checkpoint->claims.size());
    for (const auto& [uid, claim] : checkpoint->claims) {
      TAHOMA_CHECK(node_.held.at(uid).grant == claim.grant);
      TAHOMA_CHECK_OK(claims_.Unprepare({.uid = uid}));
    }
    TAHOMA_CHECK(node_.held.empty() && cdi_.files.empty());
  }

 private:
  Mutex mutex_;
  CrashPlan never_;
  MemoryFiles state_{never_};
  MemoryFiles cdi_{never_};
  FakeNode node_{never_};
  Api api_;
  ApiClaimSource source_{api_};
  SystemClock clock_;
  Claims claims_{{.node_name = "node-a", .node_socket = "/run/n.sock", .boot_id = "b"},
                 state_,
                 cdi_,
                 node_,
                 source_,
                 clock_};
};

struct Method {
  const char* name;
  bool of_driver;
};
constexpr std::array kMethods = {
    Method{"/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/NodePrepareResources", true},
    Method{"/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/NodeUnprepareResources", true},
    Method{"/k8s.io.kubelet.pkg.apis.dra.v1beta1.DRAPlugin/NodePrepareResources", true},
    Method{"/k8s.io.kubelet.pkg.apis.dra.v1beta1.DRAPlugin/NodeUnprepareResources", true},
    Method{"/pluginregistration.Registration/GetInfo", false},
    Method{"/pluginregistration.Registration/NotifyRegistrationStatus", false}};

class Plugin {
 public:
  Plugin() {
    std::string pattern = std::filesystem::temp_directory_path() / "kub-XXXXXX";
    TAHOMA_CHECK(mkdtemp(pattern.data()) != nullptr);
    lock_ = std::make_unique<CallLock>(pattern + "/lock");
    auto server = KubeletServer::Start({.driver = "neuron.aws.com",
                                        .registry_dir = pattern,
                                        .data_dir = pattern,
                                        .pod_uid = "",
                                        .repeat_for = std::chrono::milliseconds(0)},
                                       driver, *lock_, board_, clock_);
    TAHOMA_CHECK_OK(server.status());
    server_ = *std::move(server);
    for (const std::string& socket : {server_->registration_socket(), server_->driver_socket()}) {
      stubs_.push_back(std::make_unique<grpc::GenericStub>(
          grpc::CreateChannel("unix:" + socket, grpc::InsecureChannelCredentials())));
    }
  }

  // The bytes of the answer, and whether there is one.
  bool Call(const Method& method, std::string_view message, std::string& answer) {
    const grpc::Slice slice(message.data(), message.size());
    const grpc::ByteBuffer request(&slice, 1);
    grpc::ByteBuffer response;
    grpc::ClientContext context;
    grpc::CompletionQueue queue;
    grpc::Status status;
    const auto call =
        stubs_[method.of_driver ? 1 : 0]->PrepareUnaryCall(&context, method.name, request, &queue);
    call->StartCall();
    call->Finish(&response, &status, nullptr);
    void* tag = nullptr;
    bool ok = false;
    TAHOMA_CHECK(queue.Next(&tag, &ok));
    // gRPC refuses a malformed message; the server must still be there.
    TAHOMA_CHECK(status.error_code() != grpc::StatusCode::UNAVAILABLE);
    if (!status.ok()) return false;
    std::vector<grpc::Slice> slices;
    TAHOMA_CHECK(response.Dump(&slices).ok());
    for (const grpc::Slice& part : slices) {
      answer.append(reinterpret_cast<const char*>(part.begin()), part.size());
    }
    return true;
  }

  Driver driver;

 private:
  std::unique_ptr<CallLock> lock_;
  HealthBoard board_;
  SystemClock clock_;
  std::unique_ptr<KubeletServer> server_;
  std::vector<std::unique_ptr<grpc::GenericStub>> stubs_;
};

// The parser of protobuf refuses text that is not UTF-8, as Go's does.
template <typename Request, typename Response>
void CheckAnswer(std::string_view message, const std::string& answer) {
  Request request;
  TAHOMA_CHECK(request.ParseFromArray(message.data(), static_cast<int>(message.size())));
  Response response;
  TAHOMA_CHECK(response.ParseFromString(answer));
  for (const auto& claim : request.claims()) TAHOMA_CHECK(response.claims().contains(claim.uid()));
  for (const auto& [uid, claim] : response.claims()) {
    TAHOMA_CHECK(claim.error().size() <= kErrorBytesMost);
  }
}

void Check(std::size_t method, std::string_view message, const std::string& answer) {
  switch (method) {
    case 0:
      return CheckAnswer<v1::NodePrepareResourcesRequest, v1::NodePrepareResourcesResponse>(message,
                                                                                            answer);
    case 1:
      return CheckAnswer<v1::NodeUnprepareResourcesRequest, v1::NodeUnprepareResourcesResponse>(
          message, answer);
    case 2:
      return CheckAnswer<v1beta1::NodePrepareResourcesRequest,
                         v1beta1::NodePrepareResourcesResponse>(message, answer);
    case 3:
      return CheckAnswer<v1beta1::NodeUnprepareResourcesRequest,
                         v1beta1::NodeUnprepareResourcesResponse>(message, answer);
    case 4:
      TAHOMA_CHECK(pluginregistration::PluginInfo().ParseFromString(answer));
      return;
    default:
      TAHOMA_CHECK(answer.empty());
  }
}

}  // namespace

void FuzzOne(std::string_view input) {
  static auto* const plugin = new Plugin;
  for (std::size_t i = 0; i < kRequestsMost && input.size() >= 3; ++i) {
    const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(input[at]); };
    const std::size_t method = byte(0) % kMethods.size();
    const std::size_t length = std::size_t{byte(1)} << 8U | byte(2);
    const std::string_view message = input.substr(3, length);
    input.remove_prefix(3 + message.size());
    std::string answer;
    if (plugin->Call(kMethods.at(method), message, answer)) Check(method, message, answer);
  }
  plugin->driver.CheckAndClear();
}
