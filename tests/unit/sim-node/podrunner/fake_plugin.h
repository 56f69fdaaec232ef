// Plugins that a pod runner meets on its sockets: FakePlugin does as a test tells it, SilentSocket
// never answers.
//
//   FakePlugin plugin(folder);                // listens in folder and folder/reg
//   ASSERT_EQ(plugin.AwaitVerdict(), "");     // registered
//   plugin.Hold();                            // takes calls, answers none
//
// Thread safety: any thread.

#pragma once

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "dra_v1.grpc.pb.h"
#include "pluginregistration.grpc.pb.h"

namespace tahoma::sim {

namespace v1 = k8s::io::kubelet::pkg::apis::dra::v1;

// A DRA plugin as a kubelet meets it.
class FakePlugin final : public v1::DRAPlugin::Service,
                         public pluginregistration::Registration::Service {
 public:
  explicit FakePlugin(const std::filesystem::path& folder, std::string endpoint = "dra.sock")
      : endpoint_(folder / endpoint) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("unix:" + endpoint_.string(), grpc::InsecureServerCredentials());
    builder.AddListeningPort("unix:" + (folder / "reg" / "neuron-reg.sock").string(),
                             grpc::InsecureServerCredentials());
    builder.RegisterService(static_cast<v1::DRAPlugin::Service*>(this));
    builder.RegisterService(static_cast<pluginregistration::Registration::Service*>(this));
    server_ = builder.BuildAndStart();
  }
  ~FakePlugin() override {
    Release();
    if (cutting_.joinable()) cutting_.join();
    server_->Shutdown();
  }

  grpc::Status GetInfo(grpc::ServerContext*, const pluginregistration::InfoRequest*,
                       pluginregistration::PluginInfo* answer) override {
    answer->set_type(type);
    answer->set_name("neuron.aws.com");
    answer->set_endpoint(endpoint_.string());
    for (const std::string& known : versions) answer->add_supported_versions(known);
    return grpc::Status::OK;
  }
  grpc::Status NotifyRegistrationStatus(grpc::ServerContext*,
                                        const pluginregistration::RegistrationStatus* verdict,
                                        pluginregistration::RegistrationStatusResponse*) override {
    const std::lock_guard lock(mutex_);
    registered_ = verdict->plugin_registered();
    error_ = verdict->error();
    told_ = true;
    changed_.notify_all();
    return grpc::Status::OK;
  }
  grpc::Status NodePrepareResources(grpc::ServerContext*,
                                    const v1::NodePrepareResourcesRequest* request,
                                    v1::NodePrepareResourcesResponse* answer) override {
    std::unique_lock lock(mutex_);
    ++held_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return !hold_; });
    for (const auto& claim : request->claims()) {
      ++prepared_;
      auto& entry = (*answer->mutable_claims())[claim.uid()];
      auto* device = entry.add_devices();
      device->add_request_names("chips");
      device->add_cdi_device_ids("neuron.aws.com/device=" + claim.uid());
    }
    return grpc::Status::OK;
  }
  grpc::Status NodeUnprepareResources(grpc::ServerContext*,
                                      const v1::NodeUnprepareResourcesRequest* request,
                                      v1::NodeUnprepareResourcesResponse* answer) override {
    const std::lock_guard lock(mutex_);
    for (const auto& claim : request->claims()) {
      ++unprepared_;
      (*answer->mutable_claims())[claim.uid()];
    }
    return grpc::Status::OK;
  }

  // Waits for the kubelet's verdict and returns the kubelet's error, empty when the plugin is
  // registered.
  std::string AwaitVerdict() {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, std::chrono::seconds(30), [&] { return told_; }));
    return registered_ ? "" : error_;
  }
  // Takes calls from now on and answers none until Release.
  void Hold() {
    const std::lock_guard lock(mutex_);
    hold_ = true;
  }
  void Release() {
    const std::lock_guard lock(mutex_);
    hold_ = false;
    changed_.notify_all();
  }
  // Ends at once, as a killed process does: callers that wait get no answer. Shutdown waits for the
  // call that hangs, so a thread of its own does the shutdown.
  void Cut() {
    cutting_ = std::jthread([this] { server_->Shutdown(std::chrono::system_clock::time_point()); });
  }
  void AwaitCalls(int count) {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, std::chrono::seconds(30), [&] { return held_ >= count; }));
  }
  int prepared() const { return prepared_; }
  int unprepared() const { return unprepared_; }

  std::string type = "DRAPlugin";
  std::vector<std::string> versions = {"v1.DRAPlugin"};

 private:
  const std::filesystem::path endpoint_;
  std::unique_ptr<grpc::Server> server_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool told_ = false;
  bool registered_ = false;
  std::string error_;
  std::jthread cutting_;
  bool hold_ = false;
  int held_ = 0;
  std::atomic<int> prepared_ = 0;
  std::atomic<int> unprepared_ = 0;
};

// Takes connections and says nothing.
class SilentSocket {
 public:
  explicit SilentSocket(std::string path) : path_(std::move(path)) {
    fd_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = {}};
    path_.copy(address.sun_path, sizeof address.sun_path - 1);
    void* raw = &address;
    EXPECT_EQ(bind(fd_, static_cast<sockaddr*>(raw), sizeof address), 0);
    EXPECT_EQ(listen(fd_, 8), 0);
  }
  ~SilentSocket() {
    if (accepted_ >= 0) close(accepted_);
    close(fd_);
  }
  void AwaitDial() { accepted_ = accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC); }
  void Remove() { unlink(path_.c_str()); }

 private:
  const std::string path_;
  int fd_ = -1;
  int accepted_ = -1;
};

}  // namespace tahoma::sim
